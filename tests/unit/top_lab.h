/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_TOP_LAB_H
#define BECALM_TESTS_TOP_LAB_H

/* States of a gateway, made by hand. */

#include "check.h"
#include "top/view.h"

#include <stdio.h>

/* The differences between services; the rest is a service with a closed breaker and one usable host. */
struct lab_service {
    const char *name;
    unsigned first, after, failed, retries;
    unsigned shed;       /* by breaker_open; they are among `failed` too */
    unsigned unpaid;     /* retries that the budget could not pay */
    const char *breaker; /* NULL: CLOSED */
    bool ejected;        /* its host is, and not usable */
    bool ignored;        /* it is still used */
    bool unhealthy;      /* a second host fails its health checks */
    bool all_unhealthy;  /* and so does the first, so that both are used */
};

#define LAB_SECOND(usable) \
    ", {\"name\": \"10.0.0.2:80\", \"address\": \"10.0.0.2:80\", \"usable\": " usable ", \"unhealthy\": true}"

static inline int lab_write_service(char *text, size_t size, const struct lab_service *s)
{
    static const char second_out[] = LAB_SECOND("false");
    static const char second_used[] = LAB_SECOND("true");
    return snprintf(text, size,
                    "{\"name\": \"%s\", \"hosts\": [{\"name\": \"10.0.0.1:80\", \"address\": \"10.0.0.1:80\", "
                    "\"inFlight\": 1, \"usable\": %s, \"ejected\": %s, \"unhealthy\": %s, \"ejectedForMs\": 1500.0, "
                    "\"timesEjected\": 2}%s], "
                    "\"ejectionsIgnored\": %s, \"endpoints\": [{\"name\": \"default\", \"arrivals\": %u, "
                    "\"protocols\": {\"clients\": {\"h1\": %u, \"h2\": 0, \"grpc\": %u}, "
                    "\"hosts\": {\"h1\": 0, \"h2\": %u, \"grpc\": 0}}, "
                    "\"calls\": {\"first_attempt\": {\"ok\": %u}, \"after_retry\": {\"ok\": %u}, \"failed\": "
                    "{\"attempts_spent\": %u}}, \"retries\": [%u, 0], \"overflow\": {\"budget_empty\": %u}, \"shed\": "
                    "{\"breaker_open\": %u}, \"hedges\": {\"sent\": 0}, \"budget\": {\"kind\": \"earned\", \"left\": "
                    "9.5, \"cap\": 10, \"retryRatio\": 0.05}, \"breaker\": {\"state\": \"%s\", \"calls\": 50, "
                    "\"failed\": 3, \"slow\": 0}, \"limit\": {\"kind\": \"fixed\", \"now\": 100, \"inFlight\": 7}, "
                    "\"gate\": {\"waiting\": 4, \"shedShare\": 0, \"overloaded\": false, \"shared\": false}, "
                    "\"latencyMs\": {\"count\": 9, \"p50\": 2.5, \"p99\": 120}}]}",
                    s->name, s->ejected && !s->ignored ? "false" : "true", s->ejected ? "true" : "false",
                    s->all_unhealthy ? "true" : "false",
                    s->all_unhealthy ? second_used
                    : s->unhealthy   ? second_out
                                     : "",
                    s->ignored ? "true" : "false", s->first + s->after + s->failed, s->first, s->after + s->failed,
                    s->retries, s->first, s->after, s->failed, s->retries, s->unpaid, s->shed,
                    s->breaker == NULL ? "CLOSED" : s->breaker);
}

/* Read from text, as it comes from a gateway. `at` is in seconds. */
static inline struct state *lab_state(uint32_t at, const char *started, const struct lab_service *service,
                                      uint32_t count)
{
    size_t size = 1000 + count * (size_t)2000;
    char *text = malloc(size);
    assert_non_null(text);
    int length = snprintf(text, size,
                          "{\"version\": \"0.1.0\", \"id\": \"ab\", \"role\": \"gateway\", \"started\": \"%s\", "
                          "\"uptimeSeconds\": %u.25, \"connections\": 3, \"unrouted\": 0, \"draining\": false, "
                          "\"reload\": {\"successful\": true}, \"news\": [{\"x\": null}], \"services\": [",
                          started, at);
    for (uint32_t i = 0; i < count; i++) {
        length += snprintf(text + length, size - (size_t)length, "%s", i == 0 ? "" : ", ");
        length += lab_write_service(text + length, size - (size_t)length, &service[i]);
    }
    length += snprintf(text + length, size - (size_t)length, "]}\n");
    struct state *state = state_read(text, (size_t)length);
    free(text);
    assert_non_null(state);
    state->at = (at + 1000u) * BECALM_S;
    return state;
}

static inline const struct table_row *lab_row(const struct table *table, const char *name)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (strcmp(table->row[i].name, name) == 0) {
            return &table->row[i];
        }
    }
    return NULL;
}

#endif
