/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_METER_H
#define BECALM_METER_METER_H

/* Counters. Each worker has a meter of its own per target and is its only writer, so counting is a plain add; readers
 * on other threads see whole numbers (relaxed atomics) and add the workers up. Names and labels are in
 * becalm-metrics(7); metrics.h writes them out. */

#include <becalm/call.h>

#define METER_ATTEMPTS 9u  /* label `attempt`: 1 to 8, and 9 for all above */
#define METER_BUCKETS  15u /* the OpenTelemetry list and +Inf */
#define METER_STATES   6u  /* of a breaker */
#define METER_FAULTS   20u /* kinds of faults on order, or more */
#define METER_CODES    64u /* statuses that one target has answered, the first 63 different ones; the last is `other` */

enum meter_result { METER_FIRST_ATTEMPT, METER_AFTER_RETRY, METER_FAILED, METER_RESULT_COUNT };
enum meter_status { METER_SUCCESS, METER_SERVER_ERROR, METER_ERROR, METER_STATUS_COUNT };
/* The protocols of clients and hosts. A gRPC call counts as gRPC over any version of HTTP. */
enum meter_protocol { METER_H1, METER_H2, METER_GRPC, METER_PROTOCOL_COUNT };
enum meter_hedge { METER_HEDGE_SENT, METER_HEDGE_WON, METER_HEDGE_LOST, METER_HEDGE_COUNT };

typedef BECALM_ATOMIC(uint64_t) meter_count;

struct meter_histogram {
    meter_count bucket[METER_BUCKETS];
    meter_count sum_us;
};

/* A call that is counted in one bucket of a histogram, and can be looked at: the trace of it. A reader on another
 * thread takes it whole or not at all. */
#define METER_TRACE       32u /* digits of an id */
#define METER_TRACE_WORDS (METER_TRACE / sizeof(uint64_t))
struct meter_exemplar {
    BECALM_ATOMIC(uint32_t) turn; /* odd: it is being written; 0: there is none */
    meter_count value_us;
    meter_count wall_ms; /* since 1970 */
    meter_count trace[METER_TRACE_WORDS];
};

/* Fallbacks that answered in place of a service. */
enum meter_fallback { METER_FALLBACK_ANSWER, METER_FALLBACK_SERVICE, METER_FALLBACK_COUNT };

struct meter {
    meter_count arrivals[METER_PROTOCOL_COUNT]; /* all requests for the target, shed ones too */
    meter_count sent[METER_PROTOCOL_COUNT];     /* attempts, as they were written to hosts */
    meter_count code[METER_CODES];              /* how often code_number[i] was answered to a client */
    BECALM_ATOMIC(uint32_t) code_number[METER_CODES];
    meter_count attempts[METER_STATUS_COUNT]; /* on the wire, by how they ended */
    meter_count retries[METER_ATTEMPTS];      /* sent, by number */
    meter_count calls[METER_RESULT_COUNT][BECALM_REASON_COUNT];
    meter_count overflow[BECALM_REASON_COUNT]; /* retries that were not made, by reason */
    meter_count shed[BECALM_REASON_COUNT];     /* calls refused before their first attempt */
    meter_count would[BECALM_REASON_COUNT]; /* mode shadow: the reasons with which the policy would have ended calls */
    meter_count hedges[METER_HEDGE_COUNT];
    meter_count transitions[METER_STATES][METER_STATES];
    meter_count active;               /* calls in progress: a gauge, of this worker */
    meter_count in_flight;            /* attempts in flight, answers in progress among them: a gauge */
    meter_count answers;              /* answers in progress: a gauge */
    meter_count active_retries;       /* retries waiting or in flight: a gauge */
    meter_count redone;               /* stale pooled connections that were replaced without an attempt */
    meter_count parked;               /* calls that waited for a host to accept connections */
    meter_count probes;               /* connections that were refused while calls waited */
    meter_count faults[METER_FAULTS]; /* calls and attempts that faults on order have hit, by kind */
    meter_count fallbacks[METER_FALLBACK_COUNT];
    struct meter_histogram delay;                  /* of retries, as waited */
    struct meter_histogram duration;               /* of calls */
    struct meter_exemplar exemplar[METER_BUCKETS]; /* of `duration`: the latest call of each bucket that is traced */
};

/* Only its own worker calls these. */
static inline void meter_add(meter_count *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

/* A request was answered to the client with this status. METER_CLIENT_LEFT: it did not wait for one. */
#define METER_CLIENT_LEFT 499u /* nginx's number */
void meter_code(struct meter *, uint32_t status);

/* An attempt has ended on the wire, as judged. A cancelled one without an answer counts as an error too: it was sent.
 */
void meter_attempt(struct meter *, const struct becalm_outcome *);

/* Retry number `retry` (1 is the first) was sent after waiting so long. */
void meter_retry(struct meter *, uint32_t retry, becalm_ns waited);

/* A step of the engine moved the breaker, or not (from == to). */
void meter_breaker(struct meter *, enum becalm_breaker_state from, enum becalm_breaker_state to);

/* A call has ended: calls, overflow, shed, would, duration from its record. */
void meter_call(struct meter *, const struct becalm_record *);

/* A call that took so long, as its record says, is traced by this id. */
void meter_exemplar(struct meter *, const struct becalm_record *, uint64_t wall, const char trace_id[METER_TRACE]);

/* The latest of all workers in one bucket; any thread. False: there is none. */
struct meter_example {
    uint64_t value_us;
    uint64_t wall_ms;
    char trace_id[METER_TRACE + 1];
};
bool meter_example(const struct meter *const *meters, uint32_t count, uint32_t bucket, struct meter_example *);

/* One count, the `offset`th byte of struct meter, over the meters of all workers; any thread. */
uint64_t meter_total(const struct meter *const *meters, uint32_t count, size_t offset);

/* All requests that arrived, by any protocol. */
uint64_t meter_arrivals(const struct meter *const *meters, uint32_t count);

/* The words of the labels: "after_retry", "server_error", "won", "h2". */
const char *meter_result_word(enum meter_result);
const char *meter_status_word(enum meter_status);
const char *meter_hedge_word(enum meter_hedge);
const char *meter_protocol_word(enum meter_protocol);

/* The histograms' bounds in microseconds, all but +Inf; and one more value for a histogram. */
extern const uint32_t meter_bound_us[METER_BUCKETS - 1];
void meter_observe(struct meter_histogram *, becalm_ns);

/* Adds the meter's counts: calls that arrived, and their retries. */
void meter_totals(const struct meter *, uint64_t *calls, uint64_t *retries);

#endif
