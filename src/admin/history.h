/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ADMIN_HISTORY_H
#define BECALM_ADMIN_HISTORY_H

/* The history of each target's meters and gauges, for up to a day, in bounded memory: 6 minutes in steps of a second,
 * an hour in steps of 10 seconds, a day in steps of 3 minutes. A target has a history from its first request, or the
 * first change of its breaker, so idle targets cost nothing; when HISTORY_BYTES_MAX are in use, further targets have
 * none.
 *
 * The control thread samples once a second and is the only one that reads. Time is passed in. */

#include "proxy/snapshot.h"

#define HISTORY_BYTES_MAX (64u * 1024 * 1024)
#define HISTORY_MOVES     32u /* of a breaker, the latest */
#define HISTORY_STAYS     32u /* of a target, the latest */

enum history_range { HISTORY_MINUTES, HISTORY_HOUR, HISTORY_DAY, HISTORY_RANGES };

/* Retries that were due and not made, by reason: all that is `overflow` in a meter. */
enum history_refusal {
    HISTORY_BUDGET_EMPTY,
    HISTORY_BREAKER_OPEN, /* and probes, which are not retried */
    HISTORY_DEADLINE,
    HISTORY_LIMIT, /* and the rate */
    HISTORY_STOPPED,
    HISTORY_REFUSALS
};

/* One target over one step: first counts over the step, then gauges at its end. But in_flight and waiting are the most
 * that was seen in the step, because a step of minutes would hide peaks. */
struct history_sample {
    uint64_t wall_ms; /* of its end */
    uint32_t span_ms; /* the length of the sample */
    uint32_t arrivals;
    uint32_t first_attempt, after_retry, failed; /* calls that ended, by result */
    uint32_t attempts, attempts_failed;          /* that ended on the wire */
    uint32_t retries, hedges;                    /* that were sent */
    uint32_t refused[HISTORY_REFUSALS];
    uint32_t shed;   /* calls refused before their first attempt */
    uint32_t opened; /* how often the breaker did */
    uint32_t in_flight, waiting;
    uint32_t limit;                   /* UINT32_MAX: none */
    uint32_t budget_left, budget_cap; /* thousandths of a retry; UINT32_MAX: none */
    uint32_t p50_us, p95_us, p99_us;  /* UINT32_MAX: nothing to measure */
    uint32_t breaker;                 /* enum becalm_breaker_state */
};

/* Within the second before, the breaker went `count` times from one state to another. */
struct history_move {
    uint64_t wall_ms;
    uint32_t from, to; /* enum becalm_breaker_state */
    uint32_t count;
};

/* A breaker was in one state for a time. HALF_OPEN between two OPEN states counts as open, so that an outage of hours
 * is one stay whose beginning is known. */
struct history_stay {
    uint64_t since_ms, until_ms; /* until_ms is 0 while the state lasts */
    uint32_t state;              /* enum becalm_breaker_state, never HALF_OPEN */
    uint32_t probes_failed;      /* that left it open; saturates */
};

/* Signs of a retry storm in one service: the values of the three Prometheus queries that detect one. */
struct history_storm {
    uint64_t attempts;   /* in 5 minutes */
    uint32_t retry_ppm;  /* retries among them */
    bool has_growth;     /* there is a minute of 5 minutes ago, and there were requests in it */
    uint32_t growth_ppm; /* requests in the last minute against that one; saturates */
    uint32_t in_flight;  /* the most attempts at once, in 5 minutes */
};
#define HISTORY_STORM_ATTEMPTS  20u      /* with fewer retries there is no storm, at any share */
#define HISTORY_STORM_RETRY     500000u  /* more: a sign of a storm */
#define HISTORY_STORM_GROWTH    3000000u /* more: a sign of a storm */
#define HISTORY_STORM_IN_FLIGHT 100u     /* more: a sign of a storm */

/* ---- the history of one target, and of one service ---- */

struct history_target;
struct history_service;

struct history_target *history_target_new(void); /* NULL: no memory */
void history_target_free(struct history_target *);
size_t history_target_bytes(void);

/* One more second. */
void history_target_note(struct history_target *, const struct history_sample *);
void history_target_move(struct history_target *, const struct history_move *);
/* Where the moves of this second led, after how many openings and failed probes. */
void history_target_stay(struct history_target *, const struct history_sample *, uint32_t opened, uint32_t failed);

/* Sample number `index` of a range, the oldest first; `count` says how many there are. The step that is still running
 * is none of them: it has a function of its own, which says false where a step has just ended. */
uint32_t history_target_count(const struct history_target *, enum history_range);
const struct history_sample *history_target_at(const struct history_target *, enum history_range, uint32_t index);
bool history_target_running(const struct history_target *, enum history_range, struct history_sample *);
uint32_t history_target_moves(const struct history_target *);
const struct history_move *history_target_move_at(const struct history_target *, uint32_t index); /* oldest first */
uint32_t history_target_stays(const struct history_target *);
const struct history_stay *history_target_stay_at(const struct history_target *, uint32_t index); /* oldest first */
/* When the latest second ended in which a call succeeded; 0: none has. */
uint64_t history_target_success_at(const struct history_target *);

struct history_service *history_service_new(void); /* NULL: no memory */
void history_service_free(struct history_service *);
/* One more second of all its targets together: arrivals, attempts, retries and in_flight count. */
void history_service_note(struct history_service *, const struct history_sample *sum);
void history_service_storm(const struct history_service *, struct history_storm *);

/* How many requests arrived and attempts ended in the second that is `age` seconds old; 0 is the latest. False: it is
 * not known. */
bool history_service_second(const struct history_service *, uint32_t age, uint32_t *arrivals, uint32_t *attempts);

/* ---- all of a gateway ---- */

struct history;

struct history *history_make(void); /* NULL: no memory */
void history_free(struct history *);

/* Samples every target of the snapshot. Those that it does not have are forgotten. */
void history_note(struct history *, struct snapshot *, becalm_ns now, uint64_t wall);

/* How often history_note() was called: tells one second from the next, even if the wall clock is set. */
uint64_t history_number(const struct history *);

/* The latest second of the snapshot's n-th target. False: the snapshot is newer than the latest sample. */
bool history_latest(const struct history *, const struct snapshot *, uint32_t target, struct history_sample *);
/* Whether its n-th service is in a storm; all 0: nothing is known. */
void history_storm(const struct history *, const struct snapshot *, uint32_t service, struct history_storm *);
/* True: there is no memory for the history of one more target. */
bool history_is_full(const struct history *);
/* NULL: it has none. */
const struct history_service *history_service_of(const struct history *, const struct snapshot *, uint32_t service);
const struct history_target *history_of(const struct history *, const struct snapshot *, uint32_t target);

#endif
