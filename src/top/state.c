/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* strptime, timegm */
#include "state.h"

#include "json_reader.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Every object is a table of its keys, each with the place of its value and the function that reads it there. */
struct field {
    const char *key;
    size_t offset;
    void (*read)(struct json_reader *, void *at);
};

static void read_object(struct json_reader *r, const struct field *fields, void *into)
{
    char key[STATE_WORD_MAX];
    json_reader_object(r);
    while (json_reader_key(r, key, sizeof key)) {
        const struct field *field = fields;
        while (field->key != NULL && strcmp(field->key, key) != 0) {
            field++;
        }
        if (field->key == NULL) {
            json_reader_skip(r);
        } else {
            field->read(r, (char *)into + field->offset);
        }
    }
}

/* ---- values ---- */

static void read_count(struct json_reader *r, void *at)
{
    *(uint64_t *)at = json_reader_number(r) / JSON_READER_ONE;
}

/* Shares in ppm, and retries in millionths. */
static void read_millionths(struct json_reader *r, void *at)
{
    *(uint64_t *)at = json_reader_number(r);
}

/* Milliseconds with decimals become microseconds. */
static void read_ms(struct json_reader *r, void *at)
{
    *(uint64_t *)at = json_reader_number(r) / 1000;
}

static void read_bool(struct json_reader *r, void *at)
{
    *(bool *)at = json_reader_bool(r);
}

static void read_false(struct json_reader *r, void *at)
{
    *(bool *)at = !json_reader_bool(r);
}

static void read_word(struct json_reader *r, void *at)
{
    json_reader_text(r, at, STATE_WORD_MAX);
}

static void read_time(struct json_reader *r, void *at)
{
    json_reader_text(r, at, 32);
}

static void read_name(struct json_reader *r, void *at)
{
    json_reader_text(r, at, STATE_NAME_MAX);
}

static void read_sentence(struct json_reader *r, void *at)
{
    json_reader_text(r, at, 256);
}

/* ---- counts ---- */

const char *state_reason_word(uint32_t reason)
{
    return reason < BECALM_REASON_COUNT ? becalm_reason_word((enum becalm_reason)reason) : "other";
}

static uint32_t reason_of(const char *word)
{
    uint32_t reason = 0;
    while (reason < BECALM_REASON_COUNT && strcmp(word, becalm_reason_word((enum becalm_reason)reason)) != 0) {
        reason++;
    }
    return reason;
}

static void read_reasons(struct json_reader *r, void *at)
{
    char word[STATE_WORD_MAX];
    uint64_t *count = at;
    json_reader_object(r);
    while (json_reader_key(r, word, sizeof word)) {
        uint64_t value;
        read_count(r, &value);
        count[reason_of(word)] += value;
    }
}

/* The sum of an object's or an array's counts. */
static void read_sum_by_reason(struct json_reader *r, void *at)
{
    uint64_t count[STATE_REASONS] = {0};
    read_reasons(r, count);
    for (uint32_t i = 0; i < STATE_REASONS; i++) {
        *(uint64_t *)at += count[i];
    }
}

static void read_sum(struct json_reader *r, void *at)
{
    json_reader_array(r);
    while (json_reader_item(r)) {
        uint64_t value;
        read_count(r, &value);
        *(uint64_t *)at += value;
    }
}

static void read_calls(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"first_attempt", STATE_FIRST_ATTEMPT * sizeof(uint64_t), read_sum_by_reason},
        {"after_retry", STATE_AFTER_RETRY * sizeof(uint64_t), read_sum_by_reason},
        {"failed", STATE_FAILED * sizeof(uint64_t), read_sum_by_reason},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_hedges(struct json_reader *r, void *at)
{
    static const struct field fields[] = {{"sent", 0, read_count}, {NULL, 0, NULL}};
    read_object(r, fields, at);
}

static void read_protocols(struct json_reader *r, void *at)
{
    static const struct field by_protocol[] = {
        {"h1", 0, read_count},
        {"h2", sizeof(uint64_t), read_count},
        {"grpc", 2 * sizeof(uint64_t), read_count},
        {NULL, 0, NULL},
    };
    char side[STATE_WORD_MAX];
    uint64_t *count = at;
    json_reader_object(r);
    while (json_reader_key(r, side, sizeof side)) {
        bool hosts = strcmp(side, "hosts") == 0;
        read_object(r, by_protocol, hosts ? count + STATE_PROTOCOLS : count);
    }
}

/* ---- the engine's objects ---- */

static void read_budget(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"kind", offsetof(struct state_budget, kind), read_word},
        {"left", offsetof(struct state_budget, left), read_millionths},
        {"cap", offsetof(struct state_budget, cap), read_millionths},
        {"retryRatio", offsetof(struct state_budget, retry_ratio), read_millionths},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_breaker(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"state", offsetof(struct state_breaker, state), read_word},
        {"retestInMs", offsetof(struct state_breaker, retest), read_ms},
        {"calls", offsetof(struct state_breaker, calls), read_count},
        {"failed", offsetof(struct state_breaker, failed), read_count},
        {"slow", offsetof(struct state_breaker, slow), read_count},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_limit(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"now", offsetof(struct state_limit, now), read_count},
        {"inFlight", offsetof(struct state_limit, in_flight), read_count},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_gate(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"waiting", offsetof(struct state_gate, waiting), read_count},
        {"shedShare", offsetof(struct state_gate, shed_share), read_millionths},
        {"overloaded", offsetof(struct state_gate, overloaded), read_bool},
        {"shared", offsetof(struct state_gate, shared), read_bool},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_latency(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"p50", offsetof(struct state_latency, p50), read_ms},
        {"p99", offsetof(struct state_latency, p99), read_ms},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

/* ---- services ---- */

/* Room for one more element, zeroed; NULL, and the reader fails, if there are too many or no memory. */
static void *grow(struct json_reader *r, void **list, uint32_t *count, uint32_t most, size_t size)
{
    bool is_power_of_two = (*count & (*count - 1)) == 0;
    if (*count == most) {
        json_reader_fail(r);
        return NULL;
    }
    if (is_power_of_two) {
        void *more = realloc(*list, (*count == 0 ? 1 : *count * 2) * size);
        if (more == NULL) {
            json_reader_fail(r);
            return NULL;
        }
        *list = more;
    }
    void *element = (char *)*list + *count * size;
    memset(element, 0, size);
    ++*count;
    return element;
}

static void read_endpoint(struct json_reader *r, struct state_endpoint *endpoint)
{
#define COUNT(index) offsetof(struct state_endpoint, count[index])
    static const struct field fields[] = {
        {"name", offsetof(struct state_endpoint, name), read_name},
        {"arrivals", COUNT(STATE_ARRIVALS), read_count},
        {"protocols", COUNT(STATE_CLIENTS), read_protocols},
        {"calls", COUNT(0), read_calls},
        {"retries", COUNT(STATE_RETRIES), read_sum},
        {"hedges", COUNT(STATE_HEDGES), read_hedges},
        {"shed", COUNT(STATE_REFUSED), read_reasons},
        {"overflow", COUNT(STATE_NOT_RETRIED), read_reasons},
        {"budget", offsetof(struct state_endpoint, budget), read_budget},
        {"serviceBudget", offsetof(struct state_endpoint, service_budget), read_budget},
        {"breaker", offsetof(struct state_endpoint, breaker), read_breaker},
        {"limit", offsetof(struct state_endpoint, limit), read_limit},
        {"gate", offsetof(struct state_endpoint, gate), read_gate},
        {"latencyMs", offsetof(struct state_endpoint, latency), read_latency},
        {NULL, 0, NULL},
    };
#undef COUNT
    endpoint->budget.left = endpoint->budget.cap = STATE_NONE;
    endpoint->service_budget = endpoint->budget;
    endpoint->breaker.retest = STATE_NONE;
    endpoint->limit.now = STATE_NONE;
    endpoint->latency = (struct state_latency){STATE_NONE, STATE_NONE};
    read_object(r, fields, endpoint);
}

static void read_endpoints(struct json_reader *r, void *at)
{
    struct state_service *service = at;
    json_reader_array(r);
    while (json_reader_item(r)) {
        void *list = service->endpoint;
        struct state_endpoint *endpoint =
            grow(r, &list, &service->endpoint_count, STATE_ENDPOINTS_MAX, sizeof *endpoint);
        service->endpoint = list;
        if (endpoint != NULL) {
            read_endpoint(r, endpoint);
        }
    }
}

static void read_host(struct json_reader *r, struct state_host *host)
{
    static const struct field fields[] = {
        {"name", offsetof(struct state_host, name), read_name},
        {"address", offsetof(struct state_host, address), read_name},
        {"inFlight", offsetof(struct state_host, in_flight), read_count},
        {"usable", offsetof(struct state_host, usable), read_bool},
        {"ejected", offsetof(struct state_host, ejected), read_bool},
        {"unhealthy", offsetof(struct state_host, unhealthy), read_bool},
        {"ejectedForMs", offsetof(struct state_host, ejected_for), read_ms},
        {"timesEjected", offsetof(struct state_host, times_ejected), read_count},
        {"askedForQuietMs", offsetof(struct state_host, quiet), read_ms},
        {"attempts", offsetof(struct state_host, attempts), read_count},
        {"failed", offsetof(struct state_host, failed), read_count},
        {NULL, 0, NULL},
    };
    read_object(r, fields, host);
}

static void read_hosts(struct json_reader *r, void *at)
{
    struct state_service *service = at;
    json_reader_array(r);
    while (json_reader_item(r)) {
        void *list = service->host;
        struct state_host *host = grow(r, &list, &service->host_count, STATE_HOSTS_MAX, sizeof *host);
        service->host = list;
        if (host != NULL) {
            read_host(r, host);
        }
    }
}

static void read_service(struct json_reader *r, struct state_service *service)
{
    static const struct field fields[] = {
        {"name", offsetof(struct state_service, name), read_name},
        {"hosts", 0, read_hosts},
        {"ejectionsIgnored", offsetof(struct state_service, ejections_ignored), read_bool},
        {"endpoints", 0, read_endpoints},
        {NULL, 0, NULL},
    };
    read_object(r, fields, service);
}

static void read_services(struct json_reader *r, void *at)
{
    struct state *state = at;
    json_reader_array(r);
    while (json_reader_item(r)) {
        void *list = state->service;
        struct state_service *service = grow(r, &list, &state->service_count, STATE_SERVICES_MAX, sizeof *service);
        state->service = list;
        if (service != NULL) {
            read_service(r, service);
        }
    }
}

/* ---- the gateway ---- */

static void read_length(struct json_reader *r, void *at)
{
    uint64_t count = 0;
    json_reader_array(r);
    while (json_reader_item(r)) {
        json_reader_skip(r);
        count++;
    }
    *(uint64_t *)at = count;
}

/* ---- protocols ---- */

static void words_add(struct state_words *words, const char *word, uint64_t count)
{
    if (count > 0 && words->words < STATE_WORDS_MAX) {
        memcpy(words->word[words->words], word, STATE_WORD_MAX);
        words->count[words->words++] = count;
    }
}

static void read_words(struct json_reader *r, void *at)
{
    char word[STATE_WORD_MAX] = "";
    json_reader_object(r);
    while (json_reader_key(r, word, sizeof word)) {
        uint64_t value;
        read_count(r, &value);
        words_add(at, word, value);
    }
}

static void read_http2(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"clientsEnded", offsetof(struct state, clients_ended), read_words},
        {"hostsEnded", offsetof(struct state, hosts_ended), read_words},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_handshakes(struct json_reader *r, void *at)
{
    struct row {
        char side[STATE_WORD_MAX];
        char result[STATE_WORD_MAX];
        uint64_t count;
    };
    static const struct field fields[] = {
        {"side", offsetof(struct row, side), read_word},
        {"result", offsetof(struct row, result), read_word},
        {"count", offsetof(struct row, count), read_count},
        {NULL, 0, NULL},
    };
    struct state *state = at;
    state->tls = true;
    json_reader_array(r);
    while (json_reader_item(r)) {
        struct row row = {.count = 0};
        read_object(r, fields, &row);
        struct state_handshakes *side = strcmp(row.side, "hosts") == 0 ? &state->hosts : &state->clients;
        if (strcmp(row.result, "full") == 0) {
            side->full += row.count;
        } else if (strcmp(row.result, "resumed") == 0) {
            side->resumed += row.count;
        } else {
            words_add(&side->failed, row.result, row.count);
        }
    }
}

/* Keeps the one that expires first, as seconds since 1970. */
static void read_certificates(struct json_reader *r, void *at)
{
    struct row {
        char file[256];
        uint64_t expires;
    };
    static const struct field fields[] = {
        {"file", offsetof(struct row, file), read_sentence},
        {"expires", offsetof(struct row, expires), read_count},
        {NULL, 0, NULL},
    };
    struct state *state = at;
    json_reader_array(r);
    while (json_reader_item(r)) {
        struct row row = {.file = ""};
        read_object(r, fields, &row);
        if (state->certificate[0] == '\0' || (int64_t)row.expires < state->expires_in) {
            memcpy(state->certificate, row.file, sizeof row.file);
            state->expires_in = (int64_t)row.expires;
        }
    }
}

static void read_tls(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"handshakes", 0, read_handshakes}, {"certificates", 0, read_certificates}, {NULL, 0, NULL}};
    read_object(r, fields, at);
}

/* "2026-01-02T03:04:05..." in seconds since 1970; 0: it is no time. */
static int64_t seconds_of(const char *time)
{
    struct tm tm = {0};
    return strptime(time, "%Y-%m-%dT%H:%M:%S", &tm) == NULL ? 0 : (int64_t)timegm(&tm);
}

static void read_reload(struct json_reader *r, void *at)
{
    static const struct field fields[] = {
        {"successful", offsetof(struct state, reload_failed), read_false},
        {"why", offsetof(struct state, reload_why), read_sentence},
        {NULL, 0, NULL},
    };
    read_object(r, fields, at);
}

static void read_state(struct json_reader *r, struct state *state)
{
    static const struct field fields[] = {
        {"version", offsetof(struct state, version), read_word},
        {"id", offsetof(struct state, id), read_name},
        {"role", offsetof(struct state, role), read_word},
        {"time", offsetof(struct state, time), read_time},
        {"started", offsetof(struct state, started), read_time},
        {"uptimeSeconds", offsetof(struct state, uptime), read_count},
        {"connections", offsetof(struct state, connections), read_count},
        {"unrouted", offsetof(struct state, unrouted), read_count},
        {"draining", offsetof(struct state, draining), read_bool},
        {"faults", offsetof(struct state, faults), read_length},
        {"reload", 0, read_reload},
        {"http2", 0, read_http2},
        {"tls", 0, read_tls},
        {"services", 0, read_services},
        {NULL, 0, NULL},
    };
    read_object(r, fields, state);
    state->expires_in -= state->certificate[0] == '\0' ? 0 : seconds_of(state->time);
}

struct state *state_read(const char *text, size_t length)
{
    struct json_reader r;
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    json_reader_init(&r, text, length);
    read_state(&r, state);
    if (!json_reader_done(&r) || state->version[0] == '\0') { /* JSON, but another program's */
        state_free(state);
        return NULL;
    }
    return state;
}

void state_free(struct state *state)
{
    if (state == NULL) {
        return;
    }
    for (uint32_t i = 0; i < state->service_count; i++) {
        free(state->service[i].host);
        free(state->service[i].endpoint);
    }
    free(state->service);
    free(state);
}

/* ---- decisions ---- */

static void read_decision(struct json_reader *r, struct state_decision *decision)
{
    static const struct field fields[] = {
        {"time", offsetof(struct state_decision, time), read_time},
        {"method", offsetof(struct state_decision, method), read_word},
        {"target", offsetof(struct state_decision, target), read_name},
        {"reason", offsetof(struct state_decision, reason), read_word},
        {"change", offsetof(struct state_decision, change), read_sentence},
        {"status", offsetof(struct state_decision, status), read_count},
        {"attempts", offsetof(struct state_decision, attempts), read_count},
        {"tookMs", offsetof(struct state_decision, took), read_ms},
        {NULL, 0, NULL},
    };
    *decision = (struct state_decision){.attempts = 0};
    read_object(r, fields, decision);
}

struct decisions {
    struct state_decision *decision;
    uint32_t count;
};

static void read_decisions(struct json_reader *r, void *at)
{
    struct decisions *list = at;
    json_reader_array(r);
    while (json_reader_item(r)) {
        if (list->count < STATE_DECISIONS_MAX) {
            read_decision(r, &list->decision[list->count++]);
        } else {
            json_reader_skip(r);
        }
    }
}

int state_read_decisions(const char *text, size_t length, struct state_decision *decision)
{
    static const struct field fields[] = {{"decisions", 0, read_decisions}, {NULL, 0, NULL}};
    struct decisions list = {decision, 0};
    struct json_reader r;
    json_reader_init(&r, text, length);
    read_object(&r, fields, &list);
    return json_reader_done(&r) ? (int)list.count : -1;
}
