/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_REQUEST_ID_H
#define BECALM_ORIGIN_REQUEST_ID_H

/* X-Request-Id of a request that came without one: 32 hexadecimal digits, of which half say which gateway made it. It
 * tells requests apart and is no secret. */

#include <becalm/base.h>

#define REQUEST_ID_LENGTH 32u

/* `gateway` has 16 digits; `state` is a state of becalm_rand_next() that is used only here, because its numbers are
 * visible on the wire. Returns the random half as a number. */
uint64_t request_id_make(char text[REQUEST_ID_LENGTH], const char *gateway, uint64_t *state);

#endif
