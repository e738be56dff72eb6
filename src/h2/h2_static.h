/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_STATIC_H
#define BECALM_H2_H2_STATIC_H

/* The fields that every side of HTTP/2 knows by a number (RFC 7541, appendix A). */

#include <becalm/http.h>

#define H2_STATIC_COUNT 61u /* the indices are 1 to 61 */

/* The first with this name; 0: there is none. */
uint32_t h2_static_name(struct becalm_text name);
/* The one with this value, too; `first` is the first of its name, and not 0. 0: there is none. */
uint32_t h2_static_field(uint32_t first, struct becalm_text value);

#endif
