/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_PHRASE_H
#define BECALM_MESSAGE_PHRASE_H

#include <stdint.h>

/* The registered phrase of a status (RFC 9110, 15 and the IANA registry), for HTTP/1 and for people; "" if it has none.
 */
const char *status_phrase(uint32_t status);

#endif
