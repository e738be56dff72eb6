/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RESTART_H
#define BECALM_RESTART_H

/* All hosts of a service refuse connections for a moment, for example because its one process restarts. Calls that were
 * never sent wait ("are parked") for at most three quarters of their timeout, while one connection attempt every 100 ms
 * probes whether a host is back. When a connection is accepted, all parked calls continue. Parking is neither a retry
 * nor load: it costs no budget, and breaker, limit and ejection ignore it. If connections are refused for longer than
 * the attempt's timeout (at least 1 s, at most 5 s), the service is gone and does not restart: parked calls end at
 * once, and new calls are handled as usual (retry, breaker) until a connection is accepted again.
 *
 * HAProxy pauses for a second before each call tries the same server again; here all calls share one wait.
 *
 * There are two structs, as for the gate. `struct becalm_restart` belongs to the service; all threads share its few
 * atomic words. `struct becalm_parking` belongs to one worker thread and links the parked calls of that worker. */

#include <becalm/outlier.h>

BECALM_BEGIN_DECLS

#define BECALM_RESTART_PROBE (100 * BECALM_MS) /* from one connection attempt to the next, over all workers */
#define BECALM_RESTART_LEAST (1 * BECALM_S)    /* refused for so long, or the attempt's timeout if it is longer, ... */
#define BECALM_RESTART_MOST  (5 * BECALM_S)    /* ... but never longer than this: gone */

struct becalm_restart_policy {
    bool enabled; /* true: calls that were never sent wait for a host that restarts */
};

enum becalm_restart_state {
    BECALM_RESTART_UP,   /* some host may take calls, as far as is known */
    BECALM_RESTART_DOWN, /* every host that may be picked refuses, not for long yet: calls wait */
    BECALM_RESTART_GONE  /* all hosts have refused connections for too long: calls no longer wait */
};

/* Touch it only through the functions below. */
struct becalm_restart {
    BECALM_ATOMIC(uint64_t) down_since; /* 0: up; else since when every host refuses */
    BECALM_ATOMIC(uint64_t) probe_at;   /* when the next connection attempt may be made; meaningless while up */
    BECALM_ATOMIC(uint64_t) parked;     /* calls in the lines of all workers */
    BECALM_ATOMIC(uint64_t) turn;       /* counts connection attempts, so that each host has its turn */
    uint32_t hosts;                     /* at least 1 */
    BECALM_ATOMIC(uint64_t) * refusing; /* one bit per host: its latest connection was refused */
};

/* The next step of a parked call. */
enum becalm_berth_verdict {
    BECALM_BERTH_WAITS,
    BECALM_BERTH_GO,    /* a host is back: continue as if nothing had happened */
    BECALM_BERTH_PROBE, /* make the next connection attempt */
    BECALM_BERTH_END    /* the service is gone: end now */
};

/* One parked call's place in line. Embedded in struct becalm_call. */
struct becalm_berth {
    struct becalm_parking *parking; /* NULL: not parked */
    becalm_ns entered_at;           /* when it was parked first; 0: never */
    becalm_ns leave_at;             /* until when it may wait, in all; set when it is parked first */
    becalm_ns parked_at;            /* when it was parked last */
    struct becalm_berth *next;
    struct becalm_berth *previous;
    void *owner; /* for the driver: which call this is */
    enum becalm_berth_verdict verdict;
};

/* The parked calls of one worker. */
struct becalm_parking {
    struct becalm_restart *restart;
    struct becalm_berth *first;
    struct becalm_berth *last;
};

BECALM_API void becalm_restart_defaults(struct becalm_restart_policy *);

/* Bytes for a service of this many hosts; a service without hosts of its own counts as one host. */
BECALM_API size_t becalm_restart_bytes(uint32_t hosts);
/* Makes it, up, in `memory`, which is 64-aligned. */
BECALM_API struct becalm_restart *becalm_restart_init(void *memory, uint32_t hosts);
/* A reload: gives `to`, fresh from init, the state of `from`, if they have as many hosts. Parked calls stay in `from`.
 */
BECALM_API void becalm_restart_carry(struct becalm_restart *to, const struct becalm_restart *from);

/* `timeout` is the policy's attempt_timeout. */
BECALM_API enum becalm_restart_state becalm_restart_peek(const struct becalm_restart *, becalm_ns timeout,
                                                         becalm_ns now);

/* A host refused a connection (no process listens there). Notes it; if every host that may be picked refuses now, the
 * service is down since this moment. `hosts` may be NULL, and `host` BECALM_NO_HOST, if the target has none. */
BECALM_API void becalm_restart_refused(struct becalm_restart *, const struct becalm_hosts *hosts,
                                       const struct becalm_outlier_policy *, uint32_t host, becalm_ns now);

/* A host accepted a connection. True: the service was down or gone, and is up now. Writes nothing while no host
 * refuses.
 */
BECALM_API bool becalm_restart_accepted(struct becalm_restart *, uint32_t host);

/* The host to probe next, in turn. Hosts that are ejected although they do not refuse connections are skipped. */
BECALM_API uint32_t becalm_restart_turn(struct becalm_restart *, const struct becalm_hosts *hosts,
                                        const struct becalm_outlier_policy *, becalm_ns now);

/* Calls that are parked, over all workers. */
BECALM_API uint64_t becalm_restart_parked(const struct becalm_restart *);

BECALM_API void becalm_parking_init(struct becalm_parking *, struct becalm_restart *);

/* Parks a call, in the order of entered_at: a call that was refused goes back to its former place. False: `room`
 * calls are parked already; a call that has been parked before always gets in. The caller has set owner, entered_at and
 * leave_at. */
BECALM_API bool becalm_parking_enter(struct becalm_parking *, uint64_t room, becalm_ns now, struct becalm_berth *);

/* The next call that need not wait, out of the line and with its verdict; NULL: no call is parked, or all go on
 * waiting. Call it until NULL, and feed each owner a SERVE event: after an action with BECALM_DO_PARK, after
 * becalm_call_accepted() said so (on every worker), and whenever becalm_parking_wake_at() has come. */
BECALM_API struct becalm_berth *becalm_parking_next(struct becalm_parking *, becalm_ns timeout, becalm_ns now);

/* When to look at the line again; NEVER: no call is parked. */
BECALM_API becalm_ns becalm_parking_wake_at(const struct becalm_parking *, becalm_ns timeout, becalm_ns now);

/* The call leaves by itself (its timer, or cancelled). One that is not parked is left alone. */
BECALM_API void becalm_parking_leave(struct becalm_berth *);

BECALM_END_DECLS

#endif
