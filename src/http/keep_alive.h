/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_KEEP_ALIVE_H
#define BECALM_HTTP_KEEP_ALIVE_H

/* The Keep-Alive field of an answer (RFC 2068, 19.7.1.1): "timeout=5, max=100" says for how long its server keeps an
 * idle connection, and how many more requests it takes on it. */

#include <becalm/http.h>

#define BECALM__KEEP_ALIVE_MAX 1000000u /* seconds; whoever says more may mean it */

struct becalm__keep_alive {
    bool has_timeout;
    uint32_t timeout; /* seconds; the least, if it is said twice */
    bool spent;       /* max=0: not one more */
};

/* Reads one line, and adds it to what was read before. False: it is malformed, and nothing of it counts. Parameters of
 * other names are left out. */
bool becalm__keep_alive_read(struct becalm_text, struct becalm__keep_alive *);

#endif
