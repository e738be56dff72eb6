/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_TROUBLE_H
#define BECALM_TOP_TROUBLE_H

/* The problem of a service, in two words. The thresholds are those of the alerts (docs/alerts.md), over a shorter time;
 * worst first. The page has the same table: dashboard/trouble.js. */

#include "state.h"

enum trouble_weight { TROUBLE_FINE, TROUBLE_WARNING, TROUBLE_CRITICAL };

#define TROUBLES(X)                                                                                            \
    X(FORCED_OPEN, CRITICAL, "forced open", "an operator has forced a breaker open: it refuses all calls")     \
    X(BREAKER_OPEN, CRITICAL, "breaker open", "a breaker refuses calls until its next probes succeed")         \
    X(NO_HOST, CRITICAL, "no usable host", "every host is ejected, unhealthy, unresolved or sent Retry-After") \
    X(STORM, CRITICAL, "retry storm", "more than half of the attempts are retries")                            \
    X(FAILING, CRITICAL, "failing", "more than 5 % of the calls fail")                                         \
    X(REFUSING, CRITICAL, "refusing", "more than 5 % of the calls are refused before an attempt")              \
    X(HALF_OPEN, WARNING, "half open", "a breaker lets a few probes through")                                  \
    X(BUDGET_EMPTY, WARNING, "budget empty", "more than half of the retries due could not be paid for")        \
    X(MANY_RETRIES, WARNING, "many retries", "more than 30 % of the attempts are retries")                     \
    X(OVERLOADED, WARNING, "overloaded", "more calls wait in the gate than the service serves")                \
    X(HOSTS_BAD, WARNING, "hosts failing", "too many hosts fail, so calls still go to failing ones")           \
    X(EJECTED, WARNING, "host ejected", "a host gets no calls because it fails or is slow")                    \
    X(UNHEALTHY, WARNING, "host unhealthy", "a host gets no calls because it fails its health checks")         \
    X(SAVED, FINE, "saved by retries", "more than 5 % of the calls fail at first and succeed after retries")

#define TROUBLE_ENUM(name, weight, word, sentence) TROUBLE_##name,
enum trouble { TROUBLES(TROUBLE_ENUM) TROUBLE_COUNT };

const char *trouble_word(enum trouble);
const char *trouble_sentence(enum trouble);
enum trouble_weight trouble_weight(enum trouble);
const char *trouble_weight_word(enum trouble_weight); /* "critical" */

/* All problems of a service, bit n for trouble n. `rate` is the recent growth of the counts of state.h, in any unit. */
uint32_t trouble_find(const struct state_service *, const uint64_t rate[STATE_COUNTS]);

#endif
