/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* strncasecmp */
#include "metrics.h"

#include "metrics_text.h"

#include <becalm/version.h>

#include <stddef.h>
#include <strings.h>

/* ---- the counters of a target ---- */

static uint64_t total(const struct metrics_target *t, size_t offset)
{
    return meter_total(t->meters, t->meter_count, offset);
}

static void target_sample(struct metrics_text *w, const struct metrics_target *t, const char *suffix)
{
    metrics_sample(w, suffix);
    metrics_label(w, "service", t->service);
    metrics_label(w, "endpoint", t->endpoint == NULL ? METRICS_DEFAULT : t->endpoint);
    if (t->operation != NULL) {
        metrics_label(w, "operation", t->operation);
    }
}

/* Counters with one more label. rate() misses the first count of a series that did not exist before, so the series
 * that alerts use exist from the start: `always` has their bits. */
struct labelled_family {
    const char *name;
    const char *help;
    const char *label;
    size_t offset; /* of an array of counts in struct meter */
    uint32_t count;
    uint32_t always;
    const char *(*word)(uint32_t);
};

static const char *reason_word(uint32_t reason)
{
    return becalm_reason_word((enum becalm_reason)reason);
}

static const char *attempt_word(uint32_t i)
{
    static const char *const word[METER_ATTEMPTS] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    return word[i];
}

static const char *status_word(uint32_t status)
{
    return meter_status_word((enum meter_status)status);
}

static const char *result_word(uint32_t result)
{
    return meter_result_word((enum meter_result)result);
}

static const char *hedge_word(uint32_t result)
{
    return meter_hedge_word((enum meter_hedge)result);
}

static const char *state_word(uint32_t state)
{
    return becalm_breaker_word((enum becalm_breaker_state)state);
}

static const char *fallback_word(uint32_t by)
{
    return (enum meter_fallback)by == METER_FALLBACK_SERVICE ? "service" : "answer";
}

static const struct labelled_family labelled_families[] = {
    {"http_client_retry_attempts_total", "Retries sent, by their number; 9 is the ninth and all after it.", "attempt",
     offsetof(struct meter, retries), METER_ATTEMPTS, 1, attempt_word},
    {"http_client_requests_total", "Attempts that were sent and have ended: first attempts, retries and hedges.",
     "status", offsetof(struct meter, attempts), METER_STATUS_COUNT, 7, status_word},
    {"becalm_retry_overflow_total", "Retries that were due and were not made, by reason.", "reason",
     offsetof(struct meter, overflow), BECALM_REASON_COUNT,
     1u << BECALM_WHY_BUDGET_EMPTY | 1u << BECALM_WHY_BREAKER_OPEN, reason_word},
    {"becalm_shed_total", "Calls that were refused before an attempt, by reason.", "reason",
     offsetof(struct meter, shed), BECALM_REASON_COUNT, 1u << BECALM_WHY_SHED, reason_word},
    {"becalm_shadow_total", "In mode shadow: decisions that the policy would have made instead, by reason.", "reason",
     offsetof(struct meter, would), BECALM_REASON_COUNT, 0, reason_word},
    {"becalm_hedges_total", "Hedges that were sent, and their results.", "result", offsetof(struct meter, hedges),
     METER_HEDGE_COUNT, 7, hedge_word},
    {"becalm_fallbacks_total", "Calls that a fallback answered, by its kind.", "by", offsetof(struct meter, fallbacks),
     METER_FALLBACK_COUNT, 0, fallback_word},
};
_Static_assert(BECALM_REASON_COUNT <= 32, "a reason is a bit of labelled_family.always");

static void write_labelled(struct metrics_text *w, const struct metrics *m, const struct labelled_family *family)
{
    metrics_family(w, family->name, "counter", family->help);
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t k = 0; k < family->count; k++) {
            uint64_t count = total(&m->target[i], family->offset + k * sizeof(meter_count));
            if (count > 0 || (family->always >> k & 1) != 0) {
                target_sample(w, &m->target[i], "");
                metrics_label(w, family->label, family->word(k));
                metrics_number(w, count);
            }
        }
    }
}

/* The calls that injected faults have hit. */
static void write_faults(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_faults_injected_total", "counter", "Attempts and calls that a fault on order has hit.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t k = 0; k < METER_FAULTS; k++) {
            uint64_t count = total(&m->target[i], offsetof(struct meter, faults) + k * sizeof(meter_count));
            if (count > 0) {
                target_sample(w, &m->target[i], "");
                metrics_label(w, "fault", m->gateway->fault_words[k]);
                metrics_number(w, count);
            }
        }
    }
}

static void write_plain(struct metrics_text *w, const struct metrics *m, const char *name, const char *type,
                        const char *help, size_t offset)
{
    metrics_family(w, name, type, help);
    for (uint32_t i = 0; i < m->target_count; i++) {
        target_sample(w, &m->target[i], "");
        metrics_number(w, total(&m->target[i], offset));
    }
}

/* The protocols of one side: of clients by requests that arrive, of hosts by attempts that are sent. */
static void write_spoken(struct metrics_text *w, const struct metrics_target *t, const char *side, size_t offset)
{
    for (uint32_t i = 0; i < METER_PROTOCOL_COUNT; i++) {
        uint64_t count = total(t, offset + i * sizeof(meter_count));
        if (count > 0 || i == METER_H1) {
            target_sample(w, t, "");
            metrics_label(w, "side", side);
            metrics_label(w, "protocol", meter_protocol_word((enum meter_protocol)i));
            metrics_number(w, count);
        }
    }
}

static void write_protocols(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_protocol_requests_total", "counter",
                   "Requests of clients and attempts to hosts, by the protocol that was spoken.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        write_spoken(w, &m->target[i], "clients", offsetof(struct meter, arrivals));
        write_spoken(w, &m->target[i], "hosts", offsetof(struct meter, sent));
    }
}

static void write_arrivals(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_arrivals_total", "counter", "Requests, counted when they arrive.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        target_sample(w, &m->target[i], "");
        metrics_number(w, meter_arrivals(m->target[i].meters, m->target[i].meter_count));
    }
    if (m->gateway != NULL) { /* with libcurl only libcurl knows the protocol */
        write_protocols(w, m);
    }
}

static void write_calls(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_calls_total", "counter", "Calls that ended, by result and reason.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t result = 0; result < METER_RESULT_COUNT; result++) {
            for (uint32_t reason = 0; reason < BECALM_REASON_COUNT; reason++) {
                uint64_t count = total(&m->target[i], offsetof(struct meter, calls[result][reason]));
                uint32_t always = result == METER_FAILED ? BECALM_WHY_ATTEMPTS_SPENT : BECALM_WHY_OK;
                if (count > 0 || reason == always) {
                    target_sample(w, &m->target[i], "");
                    metrics_label(w, "result", result_word(result));
                    metrics_label(w, "reason", reason_word(reason));
                    metrics_number(w, count);
                }
            }
        }
    }
}

static void write_transitions(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "circuit_breaker_transitions_total", "counter", "State changes of the circuit breaker.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t from = 0; from < METER_STATES; from++) {
            for (uint32_t to = 0; to < METER_STATES; to++) {
                uint64_t count = total(&m->target[i], offsetof(struct meter, transitions[from][to]));
                if (count > 0 || (from == BECALM_BREAKER_CLOSED && to == BECALM_BREAKER_OPEN)) {
                    target_sample(w, &m->target[i], "");
                    metrics_label(w, "from", state_word(from));
                    metrics_label(w, "to", state_word(to));
                    metrics_number(w, count);
                }
            }
        }
    }
}

/* ---- answered statuses: workers have seen different ones, in a different order ---- */

static uint64_t code_count(const struct meter *meter, uint32_t number)
{
    for (uint32_t i = 0; i < METER_CODES - 1; i++) {
        if (atomic_load_explicit(&meter->code_number[i], memory_order_relaxed) == number) {
            return atomic_load_explicit(&meter->code[i], memory_order_relaxed);
        }
    }
    return 0;
}

/* Does one of the first `workers` have it already? */
static bool code_written(const struct metrics_target *t, uint32_t workers, uint32_t number)
{
    bool written = false;
    for (uint32_t i = 0; i < workers; i++) {
        written = written || code_count(t->meters[i], number) > 0;
    }
    return written;
}

static void write_code(struct metrics_text *w, const struct metrics_target *t, uint32_t number)
{
    char text[12];
    struct buffer word = {.at = text, .size = sizeof text - 1};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->meter_count; i++) {
        sum += code_count(t->meters[i], number);
    }
    buffer_number(&word, number);
    text[word.length] = '\0';
    target_sample(w, t, "");
    metrics_label(w, "code", text);
    metrics_number(w, sum);
}

static void write_codes(struct metrics_text *w, const struct metrics_target *t)
{
    for (uint32_t worker = 0; worker < t->meter_count; worker++) {
        for (uint32_t i = 0; i < METER_CODES - 1; i++) {
            uint32_t number = atomic_load_explicit(&t->meters[worker]->code_number[i], memory_order_relaxed);
            if (number == 0) {
                break;
            }
            if (code_count(t->meters[worker], number) > 0 && !code_written(t, worker, number)) {
                write_code(w, t, number);
            }
        }
    }
    uint64_t other = total(t, offsetof(struct meter, code[METER_CODES - 1]));
    if (other > 0) {
        target_sample(w, t, "");
        metrics_label(w, "code", "other");
        metrics_number(w, other);
    }
}

static void write_answers(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "http_server_requests_total", "counter", "Answered requests, by status.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        write_codes(w, &m->target[i]);
    }
}

/* ---- histograms ---- */

/* Seconds, with the zeros behind them cut but for one: 0.25, 1.0; the same in both formats, so that the series do not
 * change with the format. */
static void write_bound(struct metrics_text *w, uint32_t bound_us)
{
    char text[16];
    struct buffer word = {.at = text, .size = sizeof text - 1};
    buffer_decimal(&word, bound_us, 6);
    while (text[word.length - 1] == '0' && text[word.length - 2] != '.') {
        word.length--;
    }
    text[word.length] = '\0';
    metrics_label(w, "le", text);
}

/* The count of a bucket; of durations with a trace that shows one of its calls, where the format has that. */
static void write_bucket(struct metrics_text *w, const struct metrics_target *t, size_t offset, uint32_t bucket,
                         uint64_t count)
{
    struct meter_example example;
    bool shown = w->open_metrics && offset == offsetof(struct meter, duration) &&
                 meter_example(t->meters, t->meter_count, bucket, &example);
    if (shown) {
        metrics_exemplar(w, count, example.trace_id, example.value_us, example.wall_ms);
    } else {
        metrics_number(w, count);
    }
}

static void write_histogram(struct metrics_text *w, const struct metrics *m, const char *name, const char *help,
                            size_t offset)
{
    metrics_family(w, name, "histogram", help);
    for (uint32_t i = 0; i < m->target_count; i++) {
        const struct metrics_target *t = &m->target[i];
        uint64_t sum = 0; /* a bucket includes all counts below it */
        for (uint32_t k = 0; k < METER_BUCKETS; k++) {
            sum += total(t, offset + offsetof(struct meter_histogram, bucket[k]));
            target_sample(w, t, "_bucket");
            if (k < METER_BUCKETS - 1) {
                write_bound(w, meter_bound_us[k]);
            } else {
                metrics_label(w, "le", "+Inf");
            }
            write_bucket(w, t, offset, k, sum);
        }
        target_sample(w, t, "_sum");
        metrics_decimal(w, total(t, offset + offsetof(struct meter_histogram, sum_us)), 6);
        target_sample(w, t, "_count");
        metrics_number(w, sum);
    }
}

/* ---- the state of the engine's objects ---- */

enum part {
    PART_BUDGET,
    PART_SERVICE_BUDGET,
    PART_BREAKER,
    PART_LIMIT,
    PART_GATE,
    PART_HOSTS,
    PART_RESTART,
    PART_LEASE
};

static const void *part_of(const struct metrics_target *t, enum part part)
{
    switch (part) {
    case PART_BUDGET:
        return t->target->budget;
    case PART_SERVICE_BUDGET:
        return t->target->service_budget;
    case PART_BREAKER:
        return t->target->breaker;
    case PART_LIMIT:
        return t->target->limit;
    case PART_GATE:
        return t->target->gate;
    case PART_RESTART:
        return t->target->restart;
    case PART_HOSTS:
        return t->target->hosts;
    case PART_LEASE:
        return t->target->lease;
    }
    BECALM_UNREACHABLE();
}

/* Of the targets of one service, is this the first with this part? Two that share a limit have one, not two. */
static bool has_part_first(const struct metrics *m, uint32_t index, enum part part)
{
    const void *own = part_of(&m->target[index], part);
    for (uint32_t i = index; i > 0 && strcmp(m->target[i - 1].service, m->target[index].service) == 0; i--) {
        if (part_of(&m->target[i - 1], part) == own) {
            return false;
        }
    }
    return own != NULL;
}

static void write_in_flight(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "http_client_concurrent_requests", "gauge", "Attempts in flight to a service.");
    for (uint32_t i = 0; i < m->target_count;) {
        const char *service = m->target[i].service;
        uint64_t sum = 0;
        for (; i < m->target_count && strcmp(m->target[i].service, service) == 0; i++) {
            sum += total(&m->target[i], offsetof(struct meter, in_flight));
        }
        metrics_sample(w, "");
        metrics_label(w, "service", service);
        metrics_number(w, sum);
    }
}

static void write_pending(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_pending_requests", "gauge", "Calls that wait in the gate.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        if (has_part_first(m, i, PART_GATE)) {
            target_sample(w, &m->target[i], "");
            metrics_number(w, becalm_gate_waiting(m->target[i].target->gate));
        }
    }
}

static void write_parked(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_parked_calls", "gauge", "Calls that wait for a host to accept connections.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        if (has_part_first(m, i, PART_RESTART)) {
            target_sample(w, &m->target[i], "");
            metrics_number(w, becalm_restart_parked(m->target[i].target->restart));
        }
    }
}

static enum becalm_breaker_state breaker_state(const struct metrics_target *t)
{
    return t->target->breaker == NULL ? BECALM_BREAKER_DISABLED : becalm_breaker_state(t->target->breaker);
}

/* As alerts want it: 2 is open. */
static uint64_t breaker_number(enum becalm_breaker_state state)
{
    switch (state) {
    case BECALM_BREAKER_OPEN:
    case BECALM_BREAKER_FORCED_OPEN:
        return 2;
    case BECALM_BREAKER_HALF_OPEN:
        return 1;
    case BECALM_BREAKER_CLOSED:
    case BECALM_BREAKER_DISABLED:
    case BECALM_BREAKER_METRICS_ONLY:
        return 0;
    }
    BECALM_UNREACHABLE();
}

/* A target without a breaker of its own has none that it could share: it is written as switched off. */
static bool has_breaker_first(const struct metrics *m, uint32_t index)
{
    const struct metrics_target *t = &m->target[index];
    return t->target->breaker == NULL ? t->operation == NULL : has_part_first(m, index, PART_BREAKER);
}

static void write_breakers(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "circuit_breaker_state", "gauge", "0 closed, 1 half-open, 2 open or forced open.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        if (has_breaker_first(m, i)) {
            target_sample(w, &m->target[i], "");
            metrics_number(w, breaker_number(breaker_state(&m->target[i])));
        }
    }
    metrics_family(w, "becalm_breaker_state", "gauge",
                   "1 for the present state of the circuit breaker, 0 for the other states.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t state = 0; state < METER_STATES && has_breaker_first(m, i); state++) {
            target_sample(w, &m->target[i], "");
            metrics_label(w, "state", state_word(state));
            metrics_number(w, state == (uint32_t)breaker_state(&m->target[i]));
        }
    }
}

static void budget_left(struct metrics_text *w, const struct metrics *m, const struct becalm_budget *budget,
                        const struct becalm_budget_policy *policy)
{
    uint64_t left = becalm_budget_left(budget, policy, m->now);
    if (left == UINT64_MAX) {
        metrics_infinity(w);
    } else {
        metrics_decimal(w, left, 6);
    }
}

static void write_budgets(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_budget_left", "gauge", "Retries that the budget could pay for now.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        const struct metrics_target *t = &m->target[i];
        if (has_part_first(m, i, PART_BUDGET)) {
            target_sample(w, t, "");
            budget_left(w, m, t->target->budget, &t->policy->budget);
        }
    }
    metrics_family(w, "becalm_budget_retry_ratio", "gauge", "Retries per first attempt, over the budget's window.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        if (has_part_first(m, i, PART_BUDGET)) {
            target_sample(w, &m->target[i], "");
            metrics_decimal(w, becalm_budget_retry_ratio(m->target[i].target->budget, m->now), 6);
        }
    }
}

/* The budgets that all instances share: one family for each figure, and no family without any. */
static bool has_lease(const struct metrics *m)
{
    for (uint32_t i = 0; i < m->target_count; i++) {
        if (m->target[i].target->lease != NULL) {
            return true;
        }
    }
    return false;
}

/* The figures of one lease, in the order of their families. */
static void lease_figure(struct metrics_text *w, const struct metrics_target *t, uint32_t family)
{
    const struct becalm_lease *lease = t->target->lease;
    const struct becalm_lease_totals totals = becalm_lease_totals(lease);
    const uint64_t figure[] = {becalm_lease_degraded(lease),
                               becalm_lease_left(lease),
                               becalm_lease_live(lease),
                               totals.told,
                               totals.granted,
                               totals.spent,
                               totals.returned};
    target_sample(w, t, "");
    if (family < sizeof figure / sizeof *figure) {
        metrics_number(w, figure[family]);
    } else {
        metrics_decimal(w, t->policy->lease.share_ppm, 4);
    }
}

static void write_leases(struct metrics_text *w, const struct metrics *m)
{
    static const char *const family[][3] = {
        {"becalm_shared_degraded", "gauge",
         "1 while the instance has no lease of a shared budget and uses its own share."},
        {"becalm_shared_left", "gauge", "Retries of a shared budget that this instance may make now."},
        {"becalm_shared_live", "gauge",
         "Instances that share the budget, by the store's last answer; 0: the store never answered."},
        {"becalm_shared_told_total", "counter", "First attempts that were reported to the store of a shared budget."},
        {"becalm_shared_granted_total", "counter", "Retries of a shared budget that the store has granted."},
        {"becalm_shared_spent_total", "counter", "Granted retries that were made, or lost with a lease."},
        {"becalm_shared_returned_total", "counter", "Granted retries that were returned to the store unspent."},
        {"becalm_shared_percent", "gauge", "The policy's bound: retries per first attempt of all instances."},
    };
    for (uint32_t f = 0; has_lease(m) && f < sizeof family / sizeof *family; f++) {
        metrics_family(w, family[f][0], family[f][1], family[f][2]);
        for (uint32_t i = 0; i < m->target_count; i++) {
            if (has_part_first(m, i, PART_LEASE)) {
                lease_figure(w, &m->target[i], f);
            }
        }
    }
}

/* The second level, where endpoints pay to their service too. */
static void write_service_budgets(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_service_budget_left", "gauge",
                   "Retries that the service's budget can pay for now, where endpoints pay to both budgets.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        const struct metrics_target *t = &m->target[i];
        if (has_part_first(m, i, PART_SERVICE_BUDGET)) {
            metrics_sample(w, "");
            metrics_label(w, "service", t->service);
            budget_left(w, m, t->target->service_budget, &t->policy->service_budget);
        }
    }
}

static void write_in_progress(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_answers_in_progress", "gauge",
                   "Answers whose head has come and whose body has not ended; not in flight for the limit.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        if (has_part_first(m, i, PART_LIMIT)) {
            target_sample(w, &m->target[i], "");
            metrics_number(w, becalm_limit_answers(m->target[i].target->limit));
        }
    }
}

static void write_limits(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_limit", "gauge", "Attempts that may be in flight now.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        const struct metrics_target *t = &m->target[i];
        if (has_part_first(m, i, PART_LIMIT)) {
            uint32_t limit = becalm_limit_now(t->target->limit, &t->policy->limit);
            target_sample(w, t, "");
            if (limit == UINT32_MAX) {
                metrics_infinity(w);
            } else {
                metrics_number(w, limit);
            }
        }
    }
}

static void write_timeouts(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_attempt_timeout_seconds", "gauge",
                   "The timeout of an attempt; where the policy has none, the time after which an attempt is overdue.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        const struct metrics_target *t = &m->target[i];
        target_sample(w, t, "");
        metrics_decimal(w, becalm_target_timeout(t->target, t->policy) / BECALM_US, 6);
    }
}

static void write_hosts(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_host_ejected", "gauge", "1 while the host is ejected, else 0.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        const struct metrics_target *t = &m->target[i];
        for (uint32_t host = 0; host < t->host_count && has_part_first(m, i, PART_HOSTS); host++) {
            metrics_sample(w, "");
            metrics_label(w, "service", t->service);
            metrics_label(w, "host", t->hosts[host]);
            metrics_number(w, becalm_host_ejected(t->target->hosts, host, m->now));
        }
    }
}

/* One of the hosts of a service that has health checks; the service's own target speaks for all of it. */
static const struct metrics_health *health_of(const struct metrics *m, uint32_t target, uint32_t host)
{
    const struct metrics_target *t = &m->target[target];
    bool told = t->endpoint == NULL && t->health != NULL && t->health[host].checked;
    return told ? &t->health[host] : NULL;
}

static void health_sample(struct metrics_text *w, const struct metrics_target *t, uint32_t host)
{
    metrics_sample(w, "");
    metrics_label(w, "service", t->service);
    metrics_label(w, "host", t->hosts[host]);
}

static void write_health(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_host_healthy", "gauge", "1 while the host passes its health checks, else 0.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t host = 0; host < m->target[i].host_count; host++) {
            const struct metrics_health *health = health_of(m, i, host);
            if (health != NULL) {
                health_sample(w, &m->target[i], host);
                metrics_number(w, health->passes);
            }
        }
    }
}

static void write_health_checks(struct metrics_text *w, const struct metrics *m)
{
    metrics_family(w, "becalm_health_checks_total", "counter", "Health checks of a host, by their result.");
    for (uint32_t i = 0; i < m->target_count; i++) {
        for (uint32_t host = 0; host < m->target[i].host_count; host++) {
            const struct metrics_health *health = health_of(m, i, host);
            for (int passed = 0; health != NULL && passed < 2; passed++) {
                health_sample(w, &m->target[i], host);
                metrics_label(w, "result", passed == 1 ? "passed" : "failed");
                metrics_number(w, passed == 1 ? health->passed : health->failed);
            }
        }
    }
}

static void write_build(struct metrics_text *w)
{
    metrics_family(w, "becalm_build_info", "gauge", "1; the version is a label.");
    metrics_sample(w, "");
    metrics_label(w, "version", becalm_version());
    metrics_number(w, 1);
}

void metrics_write(struct buffer *out, const struct metrics *m)
{
    struct metrics_text w = {.out = out, .open_metrics = m->open_metrics};
    write_answers(&w, m);
    write_arrivals(&w, m);
    write_calls(&w, m);
    for (size_t i = 0; i < sizeof labelled_families / sizeof labelled_families[0]; i++) {
        write_labelled(&w, m, &labelled_families[i]);
    }
    write_parked(&w, m);
    write_plain(&w, m, "becalm_parked_total", "counter", "Calls that waited for a host to accept connections.",
                offsetof(struct meter, parked));
    write_plain(&w, m, "becalm_probes_total", "counter", "Connections that were refused while calls waited.",
                offsetof(struct meter, probes));
    write_plain(&w, m, "becalm_redone_total", "counter",
                "Attempts sent again on a new connection, because the host had closed the pooled one.",
                offsetof(struct meter, redone));
    write_in_flight(&w, m);
    write_plain(&w, m, "becalm_active_requests", "gauge", "Calls in progress.", offsetof(struct meter, active));
    write_pending(&w, m);
    write_plain(&w, m, "becalm_active_retries", "gauge", "Retries that wait or are in flight.",
                offsetof(struct meter, active_retries));
    write_breakers(&w, m);
    write_transitions(&w, m);
    write_budgets(&w, m);
    write_service_budgets(&w, m);
    write_leases(&w, m);
    write_limits(&w, m);
    write_in_progress(&w, m);
    write_timeouts(&w, m);
    write_hosts(&w, m);
    write_health(&w, m);
    write_health_checks(&w, m);
    write_histogram(&w, m, "becalm_retry_delay_seconds", "How long retries waited before they were sent.",
                    offsetof(struct meter, delay));
    write_histogram(&w, m, "becalm_request_duration_seconds", "How long calls took, all attempts and waits together.",
                    offsetof(struct meter, duration));
    write_build(&w);
    metrics_single(&w, "becalm_unrouted_requests_total", "counter", "Requests that belong to no service.", m->unrouted);
    if (m->redis_count > 0) {
        metrics_redis_write(&w, m->redis, m->redis_count);
    }
    if (m->gateway != NULL) {
        write_faults(&w, m);
        metrics_single(&w, "becalm_faults_in_force", "gauge", "Faults on order that are in force.", m->gateway->faults);
        metrics_gateway_write(&w, m->gateway);
        metrics_process_write(&w);
    }
    metrics_end(&w);
}

/* ---- which format ---- */

bool metrics_accepts_open(struct becalm_text accept)
{
    static const char wanted[] = "application/openmetrics-text";
    for (size_t i = 0; i + sizeof wanted - 1 <= accept.length; i++) {
        if (strncasecmp(accept.at + i, wanted, sizeof wanted - 1) == 0) {
            return true;
        }
    }
    return false;
}

const char *metrics_content_type(bool open_metrics)
{
    return open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                        : "text/plain; version=0.0.4; charset=utf-8";
}
