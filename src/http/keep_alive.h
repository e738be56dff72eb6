/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_KEEP_ALIVE_H
#define BECALM_HTTP_KEEP_ALIVE_H

/* The Keep-Alive field of an answer (RFC 2068, 19.7.1.1): "timeout=5, max=100" says for how long its server keeps an
 * idle connection, and how many more requests it takes on it. */

#include <becalm/http.h>

#define BECALM__KEEP_ALIVE_MAX 1000000u /* seconds; a larger value is cut to this */

struct becalm__keep_alive {
    bool has_timeout;
    uint32_t timeout; /* seconds; the least, if it is said twice */
    bool spent;       /* max=0: not one more */
};

/* Reads one line, and adds it to the lines before. False: the line is malformed and ignored. Parameters of other names
 * are skipped. */
bool becalm__keep_alive_read(struct becalm_text, struct becalm__keep_alive *);

#endif
