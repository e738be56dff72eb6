/* SPDX-License-Identifier: MIT */
#include "explain_header.h"

#include "log_text.h"

#define HOST_MAX    64u
#define INTEGER_MAX 999999999999u /* of a decimal in RFC 8941, before the point */

/* The record as it will be when the call is over. */
static struct becalm_record settled(const struct explain *e)
{
    struct becalm_record r = *e->record;
    if (r.reason == BECALM_WHY_NONE) {
        r.reason = e->why;
        r.ended_at = e->now;
    }
    return r;
}

/* ---- the numbers behind the reason, in units that people use ---- */

struct figures {
    const char *unit; /* NULL: there is nothing to compare */
    uint64_t have;
    uint64_t need;
    unsigned decimals;
    bool has_need;
};

static uint64_t ms_of(becalm_ns d)
{
    return becalm_ns_min(d / BECALM_US, INTEGER_MAX * (uint64_t)1000 + 999);
}

static struct figures figures_in_ms(const struct becalm_record *r)
{
    return (struct figures){"ms", ms_of(r->have), ms_of(r->need), 3, r->need != BECALM_NEVER};
}

static struct figures figures_in(const struct becalm_record *r, const char *unit)
{
    return (struct figures){unit, r->have, r->need, 0, true};
}

static struct figures figures_of(const struct becalm_record *r)
{
    if (r->have == 0 && r->need == 0) {
        return (struct figures){0};
    }
    switch (r->reason) {
    case BECALM_WHY_BUDGET_EMPTY:
        return (struct figures){"retries", r->have / 1000, r->need / 1000, 3, true};
    case BECALM_WHY_DEADLINE:
    case BECALM_WHY_BREAKER_OPEN:
    case BECALM_WHY_RATE:
    case BECALM_WHY_NO_HOST:
    case BECALM_WHY_NO_CONNECTION:
        return figures_in_ms(r);
    case BECALM_WHY_SHED: /* a call that waited was shed by its time; a call that found no place, by the number of
                             waiting calls */
        return r->gated > 0 || r->need > BECALM_QUEUE_MAX ? figures_in_ms(r) : figures_in(r, "calls");
    case BECALM_WHY_ATTEMPTS_SPENT:
        return figures_in(r, "attempts");
    case BECALM_WHY_LIMIT: /* a first attempt may have waited in line for a slot */
        return r->gated > 0 && r->attempts == 0 ? figures_in_ms(r) : figures_in(r, "slots");
    case BECALM_WHY_ANSWERS:
        return figures_in(r, "answers");
    case BECALM_WHY_THROTTLED:
        return (struct figures){"percent", r->have / 1000, 0, 1, false};
    case BECALM_WHY_NONE:
    case BECALM_WHY_OK:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_STOPPED:
    case BECALM_WHY_CANCELLED:
    case BECALM_WHY_RETRIES_OFF:
        return (struct figures){0};
    }
    BECALM_UNREACHABLE();
}

/* ---- the header ---- */

static const char *host_name(const struct explain *e, uint32_t host)
{
    return host < e->host_count && e->hosts != NULL ? e->hosts[host] : NULL;
}

static void put_number(struct buffer *b, const char *name, uint64_t value, unsigned decimals)
{
    buffer_chars(b, "; ");
    buffer_chars(b, name);
    buffer_chars(b, "=");
    buffer_decimal(b, value, decimals);
}

static void put_word(struct buffer *b, const char *name, const char *word)
{
    buffer_chars(b, "; ");
    buffer_chars(b, name);
    buffer_chars(b, "=");
    buffer_chars(b, word);
}

/* A string of RFC 8941: visible ASCII only. */
static void put_host(struct buffer *b, const char *host)
{
    buffer_chars(b, "; host=\"");
    for (size_t i = 0; host[i] != '\0' && i < HOST_MAX; i++) {
        char c = host[i] >= ' ' && host[i] <= '~' ? host[i] : '?';
        buffer_chars(b, c == '"' || c == '\\' ? "\\" : "");
        buffer_bytes(b, &c, 1);
    }
    buffer_chars(b, "\"");
}

static void put_call(struct buffer *b, const struct becalm_record *r)
{
    struct figures figures = figures_of(r);
    buffer_chars(b, "call");
    put_word(b, "reason", becalm_reason_word(r->reason));
    if (figures.unit != NULL) {
        put_number(b, "have", figures.have, figures.decimals);
    }
    if (figures.unit != NULL && figures.has_need) {
        put_number(b, "need", figures.need, figures.decimals);
    }
    if (figures.unit != NULL) {
        put_word(b, "unit", figures.unit);
    }
    if (r->would != BECALM_WHY_NONE) {
        put_word(b, "would", becalm_reason_word(r->would));
    }
    put_number(b, "attempts", r->attempts, 0);
    if (r->gated > 0) {
        put_number(b, "gated", ms_of(r->gated), 3);
    }
    put_number(b, "took", ms_of(becalm_ns_since(r->ended_at, r->began_at)), 3);
}

static void put_attempt(struct buffer *b, const struct explain *e, const struct becalm_record_attempt *a)
{
    const char *host = host_name(e, a->host);
    buffer_chars(b, ", attempt");
    put_number(b, "n", a->number, 0);
    if (a->hedge) {
        buffer_chars(b, "; hedge");
    }
    if (a->number > 0) {
        put_number(b, "waited", ms_of(a->waited), 3);
    }
    if (host != NULL) {
        put_host(b, host);
    }
    if (a->open) {
        buffer_chars(b, "; open");
        return;
    }
    put_word(b, "outcome", becalm_outcome_word(a->outcome));
    if (a->status != 0) {
        put_number(b, "status", a->status, 0);
    }
    put_number(b, "took", ms_of(a->took), 3);
}

size_t explain_header(const struct explain *e, char text[EXPLAIN_HEADER_MAX])
{
    struct buffer b = {.at = text, .size = EXPLAIN_HEADER_MAX};
    struct becalm_record r = settled(e);
    put_call(&b, &r);
    BECALM_ASSERT(!b.full);
    size_t whole = b.length;
    for (uint32_t i = 0; i < becalm_record_kept(&r) && !b.full; i++) {
        put_attempt(&b, e, &r.attempt[i]);
        whole = b.full ? whole : b.length;
    }
    return whole;
}

/* ---- which number would have to change for the opposite decision ---- */

/* {have} and {need} stand for the numbers. NULL: no number decides this reason. */
static const char *change_by_numbers(const struct becalm_record *r, const struct figures *figures)
{
    switch (r->reason) {
    case BECALM_WHY_BUDGET_EMPTY:
        return "Another attempt costs {need} retries and the budget had {have}; successes fill it.";
    case BECALM_WHY_BREAKER_OPEN:
        return figures->has_need ? "The breaker tries again in {need} ms, and closes when the probes succeed."
                                 : "The breaker was forced open; an operator has to release it.";
    case BECALM_WHY_DEADLINE:
        return r->attempts == 0 ? "It waited {have} ms in the gate, where it may wait {need} ms; a shorter queue."
                                : "Another attempt needs {need} ms, and {have} ms were left before the deadline.";
    case BECALM_WHY_RATE:
        return "The client-side rate requires a wait of {need} ms, and {have} ms were left before the deadline.";
    case BECALM_WHY_SHED:
        return strcmp(figures->unit, "ms") == 0
                   ? "It waited {have} ms in the gate, where it may wait {need} ms; a shorter queue."
                   : "{have} calls waited in the gate, where {need} may wait; a shorter queue.";
    case BECALM_WHY_ATTEMPTS_SPENT:
        return "{have} of {need} attempts were made; a larger maxRetries, if the failures are independent.";
    case BECALM_WHY_LIMIT:
        if (strcmp(figures->unit, "ms") == 0) {
            return "It waited {have} ms for a free slot, and may wait {need} ms; a shorter line.";
        }
        return r->have < r->need ? "The limit is at its bottom and lets few calls through; answers raise it."
                                 : "{have} attempts were in flight and {need} may be; a free slot.";
    case BECALM_WHY_ANSWERS:
        return "{have} answers were in progress, and with the attempts in flight {need} may be; an answer that ends, "
               "or "
               "a larger limit.maxAnswers.";
    case BECALM_WHY_NO_HOST:
        return "It waited {have} ms for a host that accepts connections, of the {need} ms that it may wait.";
    case BECALM_WHY_NO_CONNECTION:
        return "It waited {have} ms of {need} ms for a connection to its host; a larger pool.maxPerHost, or calls that "
               "end sooner.";
    case BECALM_WHY_THROTTLED:
        return "{have} % of the calls are rejected here, because the service rejects most; accepted calls lower that.";
    case BECALM_WHY_NONE:
    case BECALM_WHY_OK:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_STOPPED:
    case BECALM_WHY_CANCELLED:
    case BECALM_WHY_RETRIES_OFF:
        return NULL;
    }
    BECALM_UNREACHABLE();
}

static const char *change_by_reason(const struct becalm_record *r)
{
    switch (r->reason) {
    case BECALM_WHY_BUDGET_EMPTY:
        return "A token in the bucket of the hedges; successes fill it.";
    case BECALM_WHY_BREAKER_OPEN:
        return "The breaker is about to probe, and closes when the probes succeed.";
    case BECALM_WHY_PROBE_FAILED:
        return "A probe of the breaker is not retried; the next one comes after the open time.";
    case BECALM_WHY_DEADLINE:
        return r->attempts == 0
                   ? "A longer deadline, or an earlier call: the deadline had passed when the call arrived."
                   : "An answer before the deadline; the last attempt was still open when it passed.";
    case BECALM_WHY_SHED:
        return "A less busy CPU; see gate.cpuThreshold.";
    case BECALM_WHY_ATTEMPTS_SPENT:
        return "An error of the application is retried once only.";
    case BECALM_WHY_LIMIT:
        return "Less than 80 % of the limit in use; then a hedge may be sent.";
    case BECALM_WHY_ANSWERS:
        return "Fewer answers in progress; then a hedge may be sent.";
    case BECALM_WHY_RATE:
        return "A client-side rate that lets a hedge through at once.";
    case BECALM_WHY_THROTTLED:
        return "Calls that the service accepts; they lower the share of calls that is rejected here.";
    case BECALM_WHY_NOT_IDEMPOTENT:
        return "An Idempotency-Key on the request, or idempotent: true on the endpoint if it is safe to execute the "
               "request twice.";
    case BECALM_WHY_NOT_REPLAYABLE:
        return "A body within replay.perRequest, and room in replay.total.";
    case BECALM_WHY_NOT_LISTED:
        return "This failure in retryOn.";
    case BECALM_WHY_PERMANENT:
        return "Nothing: the same request gets the same answer.";
    case BECALM_WHY_ANSWER_DELIVERED:
        return "Nothing: an answer that has reached the caller can't be taken back.";
    case BECALM_WHY_STOPPED:
        return "An answer without a mark or pushback that says not to retry.";
    case BECALM_WHY_CANCELLED:
        return "A caller that waits longer, or a faster answer.";
    case BECALM_WHY_NO_HOST:
        return "A host that accepts connections. A retry from a layer above does not wait for one, nor does a call "
               "when too many wait.";
    case BECALM_WHY_NO_CONNECTION:
        return "A larger pool.maxPerHost, or calls that end sooner.";
    case BECALM_WHY_RETRIES_OFF:
        return r->would == BECALM_WHY_NONE ? "A maxRetries above 0." : "mode: enforce; see `would`.";
    case BECALM_WHY_NONE:
    case BECALM_WHY_OK:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
        return NULL;
    }
    BECALM_UNREACHABLE();
}

/* Adds the sentence as a member, its numbers filled in. */
static void put_change(struct buffer *b, const struct becalm_record *r, const struct figures *figures)
{
    char text[256];
    struct buffer sentence = {.at = text, .size = sizeof text};
    const char *at = figures->unit == NULL ? change_by_reason(r) : change_by_numbers(r, figures);
    if (at == NULL) {
        return;
    }
    while (*at != '\0') {
        bool have = strncmp(at, "{have}", 6) == 0;
        bool need = strncmp(at, "{need}", 6) == 0;
        if (have || need) {
            buffer_decimal(&sentence, have ? figures->have : figures->need, figures->decimals);
            at += 6;
        } else {
            buffer_bytes(&sentence, at++, 1);
        }
    }
    buffer_json_string(b, "change", (struct becalm_text){sentence.at, sentence.length});
}

/* ---- JSON ---- */

static void attempt_json(struct buffer *b, const struct explain *e, const struct becalm_record_attempt *a)
{
    buffer_json_open(b, NULL, '{');
    buffer_json_number(b, "number", a->number);
    buffer_json_chars(b, "host", host_name(e, a->host));
    buffer_json_bool(b, "hedge", a->hedge);
    buffer_json_bool(b, "open", a->open);
    if (a->number > 0) {
        buffer_json_decimal(b, "waitedMs", ms_of(a->waited), 3);
    }
    buffer_json_decimal(b, "sentMs", ms_of(becalm_ns_since(a->sent_at, e->record->began_at)), 3);
    if (!a->open) {
        buffer_json_chars(b, "outcome", becalm_outcome_word(a->outcome));
        buffer_json_decimal(b, "tookMs", ms_of(a->took), 3);
    }
    if (!a->open && a->status != 0) {
        buffer_json_number(b, "status", a->status);
    }
    buffer_json_close(b, '}');
}

static void decision_json(struct buffer *b, const struct becalm_record *r)
{
    struct figures figures = figures_of(r);
    buffer_json_chars(b, "reason", becalm_reason_word(r->reason));
    buffer_json_chars(b, "sentence", becalm_reason_sentence(r->reason));
    put_change(b, r, &figures);
    if (figures.unit != NULL) {
        buffer_json_decimal(b, "have", figures.have, figures.decimals);
    }
    if (figures.unit != NULL && figures.has_need) {
        buffer_json_decimal(b, "need", figures.need, figures.decimals);
    }
    buffer_json_chars(b, "unit", figures.unit);
    buffer_json_chars(b, "would", r->would == BECALM_WHY_NONE ? NULL : becalm_reason_word(r->would));
    buffer_json_decimal(b, "gatedMs", ms_of(r->gated), 3);
    buffer_json_decimal(b, "tookMs", ms_of(becalm_ns_since(r->ended_at, r->began_at)), 3);
    buffer_json_number(b, "attempts", r->attempts);
    buffer_json_number(b, "hedges", r->hedges);
}

void record_json(struct buffer *b, const char *key, const struct explain *e)
{
    char text[24];
    struct buffer time = {.at = text, .size = sizeof text};
    struct becalm_record r = settled(e);
    log_text_time(&time, e->wall);
    buffer_json_open(b, key, '{');
    buffer_json_string(b, "time", (struct becalm_text){time.at, time.length});
    buffer_json_string(b, "service", e->service);
    buffer_json_string(b, "endpoint", e->endpoint);
    buffer_json_string(b, "method", e->method);
    buffer_json_string(b, "target", e->target);
    buffer_json_string(b, "requestId", e->request_id);
    buffer_json_string(b, "asked", e->asked);
    buffer_json_string(b, "fallback", e->fallback);
    buffer_json_string(b, "fault", e->fault);
    if (e->status != 0) {
        buffer_json_number(b, "status", e->status);
    }
    decision_json(b, &r);
    buffer_json_open(b, "attempt", '[');
    for (uint32_t i = 0; i < becalm_record_kept(&r); i++) {
        attempt_json(b, e, &r.attempt[i]);
    }
    buffer_json_close(b, ']');
    buffer_json_close(b, '}');
}
