/* SPDX-License-Identifier: MIT */
#ifndef BECALM_OUTLIER_H
#define BECALM_OUTLIER_H

/* The hosts of a service and the ejection of failing hosts. A host is ejected by its failure rate (at least min_calls
 * results in `window`, half of them failed, twice the rate of all other hosts together, and neither only late nor only
 * rejections that the others could not take) or, Istio's way, by failures in a row. It is out for base_ejection x the
 * number of its ejections, then one probe is sent. At most floor(hosts * max_ejected) hosts are out, never the last
 * one. If more would have to be ejected, ejections are ignored altogether, because then the hosts are not the cause.
 * Becalm's own refusals never count against a host.
 *
 * A driver that checks hosts by itself (the gateway's health checks) reports which hosts fail: a host that fails gets
 * no attempts while another host passes. If all hosts fail their checks, the checks are ignored: the check itself may
 * be wrong.
 *
 * This object also remembers the Retry-After of each host: it delays retries to that host, never first attempts. Shared
 * by threads without locks. */

#include <becalm/outcome.h>
#include <becalm/window.h>

BECALM_BEGIN_DECLS

#define BECALM_NO_HOST     UINT32_MAX
#define BECALM_HOSTS_MAX   4096u
#define BECALM_HINT_MAX    (60 * BECALM_S) /* no hint is remembered for longer */
#define BECALM_HINT_MARKED (1 * BECALM_S)  /* the hint of a host that says it is overloaded, but not for how long */
#define BECALM_PROBE_LEASE (10 * BECALM_S) /* a probe that has not come back by then is lost: the next one goes out */

struct becalm_outlier_policy {
    bool enabled;               /* true; false: hosts are only counted and their hints remembered */
    uint32_t failure_share_ppm; /* 500,000; 1 to 1,000,000 */
    uint32_t min_calls;         /* 5; 1 to 1,000,000 */
    becalm_ns window;           /* 10 s; 100 ms to 1 h */
    uint32_t consecutive;       /* 0: by rate; else this many failures in a row, at most 1,000,000 */
    becalm_ns interval;         /* 30 s: how long without a failure until the times ejected are counted down by one */
    becalm_ns base_ejection;    /* 5 s; at least 1 ms */
    becalm_ns max_ejection;     /* 300 s; at least base_ejection, at most 24 h */
    uint32_t max_ejected_ppm;   /* 500,000; at most 1,000,000; 0: no host is ejected */
};

/* One host, in a cache line of its own. Touch it only through the functions below. */
struct becalm_host {
    BECALM_ATOMIC(uint64_t) in_flight;
    BECALM_ATOMIC(uint64_t) ejected_until; /* 0: in use; else ejected until then, and on until a probe succeeds */
    BECALM_ATOMIC(uint64_t) probing;       /* after the ejection: when its one probe counts as lost; 0: no probe yet */
    BECALM_ATOMIC(uint64_t) times;         /* times ejected */
    BECALM_ATOMIC(uint64_t) calm_since;    /* last failure or return: `times` counts down from here */
    BECALM_ATOMIC(uint64_t) streak;        /* failures in a row; in the high half, how long the last one is fresh */
    BECALM_ATOMIC(uint64_t) hint_until;    /* the host's Retry-After: no retries until this instant */
    struct becalm_window *window;          /* lanes: results, failed, late, shed; NULL unless ejection is on, by rate */
};

struct becalm_hosts {
    uint32_t count;
    /* How many hosts are out, in one word: a pick reads nothing else while all hosts are well. Low half: hosts whose
     * ejected_until is not 0, ignored ejections included. High half: hosts that fail their checks. */
    BECALM_ATOMIC(uint64_t) out;
    struct becalm_host *host;
    BECALM_ATOMIC(uint64_t) * failing; /* a bit for each host: it fails its checks */
};

BECALM_API void becalm_outlier_defaults(struct becalm_outlier_policy *);

/* Istio's defaults: 5 failures in a row, interval 30 s, ejected for 30 s x the number of ejections, at most 10 % of the
 * hosts. */
BECALM_API void becalm_outlier_istio(struct becalm_outlier_policy *);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. Rules that are off are not
 * checked. */
BECALM_API int becalm_outlier_check(const struct becalm_outlier_policy *, const char **why);

/* Bytes for `count` hosts (0 to BECALM_HOSTS_MAX) with windows of `cells` cells. */
BECALM_API size_t becalm_hosts_bytes(const struct becalm_outlier_policy *, uint32_t count, uint32_t cells);

/* Makes them, all in and idle, in `memory`, which is 64-aligned. The policy must pass its check. */
BECALM_API struct becalm_hosts *becalm_hosts_init(void *memory, const struct becalm_outlier_policy *, uint32_t count,
                                                  uint32_t cells);

/* A reload: gives `to`, fresh from init, the ejections, times, hints and checks of `from`, if they are as many hosts;
 * else nothing. Attempts in flight and probes stay with `from`, which they report to; windows start anew. Where the
 * hosts changed, becalm_host_carry() does the same for one host that stays, at its old and its new index. */
BECALM_API void becalm_hosts_carry(struct becalm_hosts *to, const struct becalm_hosts *from);
BECALM_API void becalm_host_carry(struct becalm_hosts *to, uint32_t host, const struct becalm_hosts *from,
                                  uint32_t from_host);

/* The result of the driver's own check: the host fails it from now on, or passes it again. */
BECALM_API void becalm_hosts_check(struct becalm_hosts *, uint32_t host, bool passes);
BECALM_API bool becalm_host_fails_checks(const struct becalm_hosts *, uint32_t host);

/* For display: do all hosts fail their checks, so that these are ignored? */
BECALM_API bool becalm_hosts_all_fail(const struct becalm_hosts *);

/* May this host be used now? Not while it is ejected; after that, by one attempt, the probe. Not while it fails its
 * checks and another host passes them. */
BECALM_API bool becalm_host_usable(const struct becalm_hosts *, const struct becalm_outlier_policy *, uint32_t host,
                                   becalm_ns now);

/* An attempt is sent to the host, and ends: each _sent is followed by one _note. `host` may be BECALM_NO_HOST: then
 * nothing happens. Call neither for an attempt that was never sent (refused by our own limit, breaker or budget). */
BECALM_API void becalm_hosts_sent(struct becalm_hosts *, uint32_t host, becalm_ns now);
BECALM_API void becalm_hosts_note(struct becalm_hosts *, const struct becalm_outlier_policy *,
                                  const struct becalm_moment *, uint32_t host, const struct becalm_outcome *);

/* The host accepts connections again after a restart, see restart.h: ends any ejection of it. */
BECALM_API void becalm_hosts_back(struct becalm_hosts *, uint32_t host, becalm_ns now);

/* How long a retry to this host should still wait because its server asked for it; 0 for BECALM_NO_HOST. */
BECALM_API becalm_ns becalm_hosts_hint(const struct becalm_hosts *, uint32_t host, becalm_ns now);

/* For display: is the host's ejection running? Once it is over, becalm_host_usable() tells whether the probe is out. */
BECALM_API bool becalm_host_ejected(const struct becalm_hosts *, uint32_t host, becalm_ns now);

/* For display: are more hosts bad than may be out, so that ejections are ignored and every host is usable? */
BECALM_API bool becalm_hosts_ignored(const struct becalm_hosts *, const struct becalm_outlier_policy *);

/* For display: how many results the host had in `window`, and how many of them failed. False: they are not counted,
 * because ejection is off or by failures in a row. */
BECALM_API bool becalm_host_read(const struct becalm_hosts *, uint32_t host, becalm_ns now, uint64_t *results,
                                 uint64_t *failed);

BECALM_END_DECLS

#endif
