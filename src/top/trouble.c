/* SPDX-License-Identifier: MIT */
#include "trouble.h"

#include <becalm/breaker.h>

#include <string.h>

static const struct {
    enum trouble_weight weight;
    const char *word;
    const char *sentence;
} troubles[TROUBLE_COUNT] = {
#define TROUBLE_ROW(name, weight, word, sentence) {TROUBLE_##weight, word, sentence},
    TROUBLES(TROUBLE_ROW)};

const char *trouble_word(enum trouble trouble)
{
    return troubles[trouble].word;
}

const char *trouble_sentence(enum trouble trouble)
{
    return troubles[trouble].sentence;
}

enum trouble_weight trouble_weight(enum trouble trouble)
{
    return troubles[trouble].weight;
}

const char *trouble_weight_word(enum trouble_weight weight)
{
    switch (weight) {
    case TROUBLE_FINE:
        return "fine";
    case TROUBLE_WARNING:
        return "warning";
    case TROUBLE_CRITICAL:
        return "critical";
    }
    return "fine";
}

static uint32_t bit(enum trouble trouble, bool is_so)
{
    return is_so ? 1u << trouble : 0;
}

/* Is `part` more than so many per cent of `whole`? */
static bool above(uint64_t part, uint64_t percent, uint64_t whole)
{
    return part > whole / 100 * percent + whole % 100 * percent / 100;
}

static uint64_t sum(const uint64_t *count)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < STATE_REASONS; i++) {
        all += count[i];
    }
    return all;
}

static uint32_t find_in_traffic(const uint64_t rate[STATE_COUNTS])
{
    uint64_t calls = rate[STATE_FIRST_ATTEMPT] + rate[STATE_AFTER_RETRY] + rate[STATE_FAILED];
    uint64_t refused = sum(&rate[STATE_REFUSED]);
    uint64_t more = rate[STATE_RETRIES] + rate[STATE_HEDGES];
    uint64_t attempts = more + (calls > refused ? calls - refused : 0);
    uint64_t due = rate[STATE_RETRIES] + sum(&rate[STATE_NOT_RETRIED]);
    return bit(TROUBLE_STORM, above(rate[STATE_RETRIES], 50, attempts)) |
           bit(TROUBLE_FAILING, above(rate[STATE_FAILED], 5, calls)) | bit(TROUBLE_REFUSING, above(refused, 5, calls)) |
           bit(TROUBLE_BUDGET_EMPTY, above(rate[STATE_NOT_RETRIED + BECALM_WHY_BUDGET_EMPTY], 50, due)) |
           bit(TROUBLE_MANY_RETRIES, above(rate[STATE_RETRIES], 30, attempts)) |
           bit(TROUBLE_SAVED, above(rate[STATE_AFTER_RETRY], 5, calls));
}

static uint32_t find_in_hosts(const struct state_service *service)
{
    uint32_t usable = 0;
    uint32_t ejected = 0;
    uint32_t unhealthy = 0;
    for (uint32_t i = 0; i < service->host_count; i++) {
        usable += service->host[i].usable;
        ejected += service->host[i].ejected;
        unhealthy += service->host[i].unhealthy;
    }
    bool all = unhealthy > 0 && unhealthy == service->host_count;
    return bit(TROUBLE_NO_HOST, usable == 0 && service->host_count > 0) |
           bit(TROUBLE_HOSTS_BAD, (ejected > 0 && service->ejections_ignored) || all) |
           bit(TROUBLE_UNHEALTHY, unhealthy > 0 && !all) |
           bit(TROUBLE_EJECTED, ejected > 0 && !service->ejections_ignored);
}

static bool is(const struct state_breaker *breaker, enum becalm_breaker_state state)
{
    return strcmp(breaker->state, becalm_breaker_word(state)) == 0;
}

uint32_t trouble_find(const struct state_service *service, const uint64_t rate[STATE_COUNTS])
{
    uint32_t found = find_in_traffic(rate) | find_in_hosts(service);
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        const struct state_endpoint *endpoint = &service->endpoint[i];
        found |= bit(TROUBLE_FORCED_OPEN, is(&endpoint->breaker, BECALM_BREAKER_FORCED_OPEN)) |
                 bit(TROUBLE_BREAKER_OPEN, is(&endpoint->breaker, BECALM_BREAKER_OPEN)) |
                 bit(TROUBLE_HALF_OPEN, is(&endpoint->breaker, BECALM_BREAKER_HALF_OPEN)) |
                 bit(TROUBLE_OVERLOADED, endpoint->gate.overloaded);
    }
    return found;
}
