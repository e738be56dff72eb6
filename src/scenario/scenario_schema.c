/* SPDX-License-Identifier: MIT */
#include "scenario_schema.h"

#include <becalm/outlier.h>

#define HOUR    (3600 * BECALM_S)
#define MILLION 1000000u

/* clang-format off */
#define RANGE(low, high) .min = (low), .max = (high)
#define FIELD(what, field) .type = TYPE_##what, .offset = offsetof(ROW, field)

static const char *const hang_words[] = {"all", "first", NULL};
static const char *const role_words[] = {"library", "sidecar", "gateway", NULL};
static const char *const passes_words[] = {"all", "trace", "nothing", NULL};
static const char *const order_words[] = {"fifo", "lifo", NULL};
static const char *const protocol_words[] = {"h1", "h2", NULL};

#define ROW struct scenario
static const struct schema_key top[] = {
    {"name", FIELD(TEXT, name), .sentence = "the scenario's name"},
    {"about", FIELD(TEXT, about), .sentence = "its purpose, in a sentence"},
    {"length", FIELD(DURATION, length), RANGE(BECALM_S, HOUR), .sentence = "how long clients call"},
    {"attempts", FIELD(INTEGER, attempts), RANGE(1, 100), .sentence = "attempts of the reference policies"},
    {"timeout", FIELD(DURATION, timeout), RANGE(BECALM_MS, HOUR), .word = "none", .stands_for = BECALM_NEVER,
     .sentence = "of each attempt"},
    {"references", FIELD(BOOLEAN, references), .sentence = "whether --compare all has the reference policies beside its own"},
    {"link.latency", FIELD(DURATION, link), RANGE(0, 10 * BECALM_S), .sentence = "of each message, one way"},
    {"link.deviation", FIELD(DURATION, link_deviation), RANGE(0, 10 * BECALM_S), .sentence = "standard deviation of that"},
    {"pool.maxPerHost", FIELD(INTEGER, pool_max), RANGE(1, MILLION), .word = "any", .stands_for = UINT32_MAX,
     .sentence = "connections of one proxy to one host; written, connections are part of the world"},
    {"pool.streams", FIELD(INTEGER, streams), RANGE(1, MILLION),
     .sentence = "protocol h2: attempts that share a connection at most"},
    {"protocol", FIELD(EITHER, shared), .words = protocol_words,
     .sentence = "h2: attempts share connections, as streams of HTTP/2; connections are part of the world then"},
    {"link.loss", FIELD(PERCENT, loss_ppm), RANGE(0, MILLION), .sentence = "of all messages, which vanish"},
};
#undef ROW

#define ROW struct scenario_service
static const struct schema_key service[] = {
    {"workers", FIELD(INTEGER, workers), RANGE(1, MILLION), .word = "any", .stands_for = 0,
     .sentence = "requests that one host serves at once"},
    {"hosts", FIELD(INTEGER, hosts), RANGE(1, BECALM_HOSTS_MAX), .sentence = "behind a balancer"},
    {"queue.max", FIELD(INTEGER, queue_max), RANGE(0, 100 * MILLION), .word = "none", .stands_for = UINT32_MAX,
     .sentence = "requests that wait at one host; more are refused"},
    {"queue.expiry", FIELD(BOOLEAN, expiry), .sentence = "whether requests whose caller has given up are left out"},
    {"queue.order", FIELD(EITHER, lifo), .words = order_words, .sentence = "which request is served first"},
    {"queue.codel", FIELD(BOOLEAN, codel), .sentence = "whether requests that have waited too long are refused"},
    {"gate", FIELD(BOOLEAN, gate), .sentence = "whether a gateway of ours stands in front"},
    {"gateRetries", FIELD(BOOLEAN, gate_retries), .sentence = "false: the gateway in front neither retries nor hedges"},
    {"instances", FIELD(INTEGER, instances), RANGE(1, 10000), .sentence = "as a caller: each with its own budget, breaker and limit"},
    {"role", FIELD(WORD, role), .words = role_words, .sentence = "as a caller: the driver of the policy, a library, sidecar or gateway"},
    {"passes", FIELD(WORD, passes), .words = passes_words, .sentence = "what its application passes on: deadlines and marks, only a trace id, or nothing"},
    {"errors", FIELD(PERCENT, error_ppm), RANGE(0, MILLION), .sentence = "of its own answers"},
    {"hangs.percent", FIELD(PERCENT, hang_ppm), RANGE(0, MILLION), .sentence = "of its attempts that hang"},
    {"hangs.time", FIELD(DURATION, hang), RANGE(1, HOUR), .sentence = "that a hang adds"},
    {"hangs.only", FIELD(EITHER, hang_first), .words = hang_words, .sentence = "which attempts may hang"},
    {"quota.rate", FIELD(RATE, quota_milli), RANGE(1, UINT64_C(1000) * MILLION), .sentence = "requests of each client that it accepts; further ones get 429"},
    {"quota.burst", FIELD(INTEGER, quota_burst), RANGE(1, MILLION), .sentence = "how many of them may come at once"},
    {"quota.retryAfter", FIELD(DURATION, quota_after), RANGE(0, HOUR), .sentence = "the Retry-After of a 429, in whole seconds"},
    {"row", FIELD(BOOLEAN, row), .sentence = "one versioned row: read it, then write with the version that was read"},
    {"accept.max", FIELD(INTEGER, accept_max), RANGE(1, MILLION), .word = "any", .stands_for = SCENARIO_NONE,
     .sentence = "connections that it takes in 100 ms; more, and it falls over"},
    {"accept.restart", FIELD(DURATION, restart), RANGE(100 * BECALM_MS, HOUR), .sentence = "how long it is down then"},
    {"effect", FIELD(BOOLEAN, effect), .sentence = "whether requests have an effect that must not happen twice, such as a charge"},
    {"calls", FIELD(LIST, calls), .sentence = "the services that it calls for each request, all at once"},
    {"fanOut", FIELD(INTEGER, fan_out), RANGE(1, 10000), .sentence = "how many times it calls each of them"},
};
#undef ROW

#define ROW struct scenario_endpoint
static const struct schema_key endpoint[] = {
    {"share", FIELD(PERCENT, share_ppm), RANGE(0, MILLION), .sentence = "of the requests to its service"},
    {"errors", FIELD(PERCENT, error_ppm), RANGE(0, MILLION), .sentence = "of its own answers"},
    {"hangs.percent", FIELD(PERCENT, hang_ppm), RANGE(0, MILLION), .sentence = "of its attempts that hang"},
    {"hangs.time", FIELD(DURATION, hang), RANGE(1, HOUR), .sentence = "that a hang adds"},
    {"hangs.only", FIELD(EITHER, hang_first), .words = hang_words, .sentence = "which attempts may hang"},
};
#undef ROW

#define ROW struct scenario_link
static const struct schema_key link_of[] = {
    {"from", FIELD(TEXT, from), .sentence = "the client or service that calls"},
    {"to", FIELD(TEXT, to), .sentence = "the service that is called"},
    {"latency", FIELD(DURATION, latency), RANGE(0, 10 * BECALM_S), .sentence = "of each message, one way"},
    {"loss", FIELD(PERCENT, loss_ppm), RANGE(0, MILLION), .sentence = "of its messages, which vanish"},
};
#undef ROW

static const char *const marks_words[] = {"conditional", "always", NULL};

#define ROW struct scenario_policy
static const struct schema_key policy[] = {
    {"carries", FIELD(BOOLEAN, carries), .sentence = "false: neither deadlines nor marks travel"},
    {"joins", FIELD(BOOLEAN, joins), .sentence = "false: sidecars join no calls to requests by trace ids"},
    {"marks", FIELD(EITHER, marks_always), .words = marks_words, .sentence = "when a mark that retries were spent is obeyed"},
};
#undef ROW

#define ROW struct dist_keys
static const struct schema_key weight[] = {
    {"weight", FIELD(INTEGER, weight), RANGE(1, MILLION), .sentence = "how often, relative to the weights of the other parts"},
};

static const struct schema_key dist_of[] = {
    {"constant", FIELD(DURATION, constant), RANGE(0, HOUR), .sentence = "always the same"},
    {"exponential", FIELD(DURATION, exponential), RANGE(1, HOUR), .sentence = "its mean"},
    {"lognormal.median", FIELD(DURATION, median), RANGE(1, HOUR), .sentence = "the median"},
    {"lognormal.sigma", FIELD(DECIMAL, sigma), RANGE(1, 4000), .scale = 1000, .sentence = "of the logarithm"},
    {"pareto.least", FIELD(DURATION, least), RANGE(1, HOUR), .sentence = "the least"},
    {"pareto.alpha", FIELD(DECIMAL, alpha), RANGE(500, 100000), .scale = 1000, .sentence = "how fast the tail falls"},
    {"normal.mean", FIELD(DURATION, mean), RANGE(1, HOUR), .sentence = "the mean"},
    {"normal.deviation", FIELD(DURATION, deviation), RANGE(0, HOUR), .sentence = "the standard deviation"},
};
#undef ROW

#define ROW struct scenario_client
static const struct schema_key client[] = {
    {"to", FIELD(TEXT, to), .sentence = "the service that is called"},
    {"rate", FIELD(RATE, rate_milli), RANGE(1, UINT64_C(1000) * MILLION), .sentence = "calls per second of all callers together"},
    {"calls", FIELD(INTEGER, calls), RANGE(1, MILLION), .sentence = "that each caller makes, before it stops"},
    {"callers", FIELD(INTEGER, callers), RANGE(1, MILLION), .sentence = "instances, each with its own budget, breaker and limit"},
    {"role", FIELD(WORD, role), .words = role_words, .sentence = "the driver of the policy: a library, sidecar or gateway"},
    {"timeout", FIELD(DURATION, timeout), RANGE(BECALM_MS, HOUR), .sentence = "of its attempts, in place of the policy's"},
    {"retries", FIELD(BOOLEAN, retries), .sentence = "false: one attempt with any policy"},
    {"connections", FIELD(INTEGER, connections), RANGE(1, MILLION), .sentence = "that each caller keeps open, instead of calling"},
    {"key", FIELD(BOOLEAN, key), .sentence = "whether requests carry an idempotency key"},
    {"repeats", FIELD(BOOLEAN, repeats), .sentence = "whether the next call after a failed one is the same operation"},
};
#undef ROW

#define ROW struct scenario_fault
static const struct schema_key fault[] = {
    {"at", FIELD(DURATION, at), RANGE(0, HOUR), .sentence = "when it begins"},
    {"for", FIELD(DURATION, length), RANGE(BECALM_MS, HOUR), .sentence = "how long it lasts"},
    {"service", FIELD(TEXT, service), .sentence = "the service that it hits"},
    {"silent", FIELD(BOOLEAN, silent), .sentence = "cutCallers: their packets vanish, instead of being refused"},
    {"from", FIELD(TEXT, from), .sentence = "partition: only from this client or service"},
    {"client", FIELD(TEXT, client), .sentence = "surge: whose calls"},
    {"flap.on", FIELD(DURATION, on), RANGE(BECALM_MS, HOUR), .sentence = "it comes for so long"},
    {"flap.off", FIELD(DURATION, off), RANGE(BECALM_MS, HOUR), .sentence = "and goes for so long, again and again"},
};
#undef ROW

#define ROW struct fault_keys
static const struct schema_key effect[] = {
    {"capacity", FIELD(DECIMAL, capacity), RANGE(0, MILLION), .scale = MILLION, .sentence = "the share of its capacity that is left"},
    {"errors", FIELD(PERCENT, errors), RANGE(0, MILLION), .sentence = "of its own answers"},
    {"dead", FIELD(BOOLEAN, dead), .sentence = "every attempt fails at once"},
    {"latency", FIELD(DURATION, latency), RANGE(1, HOUR), .sentence = "added to its time"},
    {"hangs", FIELD(PERCENT, hangs), RANGE(0, MILLION), .sentence = "of its attempts"},
    {"badHosts", FIELD(INTEGER, bad_hosts), RANGE(1, BECALM_HOSTS_MAX), .sentence = "hosts that fail every attempt"},
    {"cutCallers", FIELD(PERCENT, cut_callers), RANGE(0, MILLION), .sentence = "the share of callers that can't reach it"},
    {"refuse", FIELD(BOOLEAN, refuse), .sentence = "every connection is refused"},
    {"swallow", FIELD(BOOLEAN, swallow), .sentence = "connections are neither accepted nor refused"},
    {"killHosts", FIELD(INTEGER, kill_hosts), RANGE(1, BECALM_HOSTS_MAX), .sentence = "hosts that are down"},
    {"rolling", FIELD(DURATION, rolling), RANGE(BECALM_MS, HOUR), .sentence = "hosts are down for this long, one after the other"},
    {"partition", FIELD(BOOLEAN, partition), .sentence = "messages to it and from it vanish"},
    {"surge", FIELD(DECIMAL, surge), RANGE(1, 1000 * 1000), .scale = 1000, .sentence = "a client calls so many times as often"},
    {"store", FIELD(DURATION, store), RANGE(1, HOUR), .word = "away", .stands_for = BECALM_NEVER,
     .sentence = "added to each message to and from the store of its shared budget, or away"},
    {"loseConnections", FIELD(INTEGER, lose_connections), RANGE(1, MILLION),
     .sentence = "connections to it that break when it begins, with all that is on them"},
    {"killStore", FIELD(DURATION, kill_store), RANGE(0, HOUR), .word = "empty", .stands_for = BECALM_NEVER,
     .sentence = "the store of its shared budget dies, and is back from a file so old, or empty"},
    {"hangStore", FIELD(BOOLEAN, hang_store), .sentence = "the store of its shared budget does nothing until it goes on"},
    {"emptyStore", FIELD(BOOLEAN, empty_store), .sentence = "the store of its shared budget forgets everything, once"},
};
#undef ROW
/* clang-format on */

#define SCHEMA(table)                                             \
    {                                                             \
        .keys = (table), .count = sizeof(table) / sizeof *(table) \
    }

const struct schema schema_scenario = SCHEMA(top);
const struct schema schema_scenario_service = SCHEMA(service);
const struct schema schema_scenario_endpoint = SCHEMA(endpoint);
const struct schema schema_scenario_dist = SCHEMA(dist_of);
const struct schema schema_scenario_weight = SCHEMA(weight);
const struct schema schema_scenario_link = SCHEMA(link_of);
const struct schema schema_scenario_policy = SCHEMA(policy);
const struct schema schema_scenario_client = SCHEMA(client);
const struct schema schema_scenario_fault = SCHEMA(fault);
const struct schema schema_scenario_effect = SCHEMA(effect);
