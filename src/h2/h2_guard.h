/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_GUARD_H
#define BECALM_H2_H2_GUARD_H

/* Counts frames that cost this side work and the peer nothing. Each kind has a bucket, which normal use refills: a peer
 * that sends requests may also reset, ping and change settings. */

#include "h2.h"

#define H2_GUARD_FRAMES     1000u /* that carry nothing */
#define H2_GUARD_RESETS     200u
#define H2_GUARD_FAULTS     200u
#define H2_GUARD_PER_ASKED  16u               /* frames for a whole request */
#define H2_GUARD_PER_SENT   4u                /* and for a frame of a body that was sent: windows for it, and a PING */
#define H2_GUARD_PER_BYTES  1024u             /* and one for so much of a body that came */
#define H2_GUARD_YOUNG      (100 * BECALM_MS) /* a stream that is reset before was not meant */
#define H2_GUARD_EACH       (1 * BECALM_S)    /* one frame is forgiven */
#define H2_GUARD_WINDOW_MIN 64u               /* a window that opens by less is hardly opened */

struct h2_guard {
    uint32_t frames; /* how many of each are left */
    uint32_t resets;
    uint32_t faults;
    uint32_t bytes; /* that came since a frame was given for them */
    becalm_ns since;
};

void h2_guard_init(struct h2_guard *);
void h2_guard_time(struct h2_guard *, becalm_ns now);
/* False: that was one too many. */
bool h2_guard_frame(struct h2_guard *);
bool h2_guard_fault(struct h2_guard *);
bool h2_guard_reset(struct h2_guard *, becalm_ns age);
/* Normal use, which refills the buckets. */
void h2_guard_asked(struct h2_guard *);
void h2_guard_answered(struct h2_guard *);
void h2_guard_sent(struct h2_guard *);
void h2_guard_came(struct h2_guard *, size_t bytes);

#endif
