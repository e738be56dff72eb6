/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_PROCESS_H
#define BECALM_METER_PROCESS_H

/* The kernel's figures of this process. */

#include <becalm/ns.h>

struct process_figures {
    becalm_ns cpu; /* time used, user and system, all threads */
    uint64_t resident_bytes;
    uint64_t open_fds;
    uint64_t max_fds;     /* UINT64_MAX: no limit */
    becalm_ns started_at; /* since 1970, to a hundredth of a second */
};

/* False: /proc is not there or can't be read. */
bool process_read(struct process_figures *);

#endif
