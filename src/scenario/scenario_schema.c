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
     .sentence = "the timeout of each attempt"},
    {"references", FIELD(BOOLEAN, references), .sentence = "whether --compare all runs the reference policies beside the scenario's own"},
    {"link.latency", FIELD(DURATION, link), RANGE(0, 10 * BECALM_S), .sentence = "the latency of each message, one way"},
    {"link.deviation", FIELD(DURATION, link_deviation), RANGE(0, 10 * BECALM_S), .sentence = "the standard deviation of link.latency"},
    {"pool.maxPerHost", FIELD(INTEGER, pool_max), RANGE(1, MILLION), .word = "any", .stands_for = UINT32_MAX,
     .sentence = "the most connections of one proxy to one host; if it is set, the simulation models connections"},
    {"pool.streams", FIELD(INTEGER, streams), RANGE(1, MILLION),
     .sentence = "protocol h2: the most attempts that share a connection"},
    {"protocol", FIELD(EITHER, shared), .words = protocol_words,
     .sentence = "h2: attempts share connections, as streams of HTTP/2; the simulation models connections then"},
    {"link.loss", FIELD(PERCENT, loss_ppm), RANGE(0, MILLION), .sentence = "the share of all messages that vanish"},
};
#undef ROW

#define ROW struct scenario_service
static const struct schema_key service[] = {
    {"workers", FIELD(INTEGER, workers), RANGE(1, MILLION), .word = "any", .stands_for = 0,
     .sentence = "requests that one host serves at once"},
    {"hosts", FIELD(INTEGER, hosts), RANGE(1, BECALM_HOSTS_MAX), .sentence = "the number of hosts behind a load balancer"},
    {"queue.max", FIELD(INTEGER, queue_max), RANGE(0, 100 * MILLION), .word = "none", .stands_for = UINT32_MAX,
     .sentence = "the most requests that wait at one host; further requests are refused"},
    {"queue.expiry", FIELD(BOOLEAN, expiry), .sentence = "whether the queue skips requests whose caller has given up"},
    {"queue.order", FIELD(EITHER, lifo), .words = order_words, .sentence = "which request is served first"},
    {"queue.codel", FIELD(BOOLEAN, codel), .sentence = "whether requests that have waited too long are refused"},
    {"gate", FIELD(BOOLEAN, gate), .sentence = "whether a gateway of Becalm stands in front of the service"},
    {"gateRetries", FIELD(BOOLEAN, gate_retries), .sentence = "false: the gateway in front neither retries nor hedges"},
    {"instances", FIELD(INTEGER, instances), RANGE(1, 10000), .sentence = "as a caller: instances, each with its own budget, breaker and limit"},
    {"role", FIELD(WORD, role), .words = role_words, .sentence = "as a caller: the driver of the policy, a library, sidecar or gateway"},
    {"passes", FIELD(WORD, passes), .words = passes_words, .sentence = "the headers that its application passes on: deadlines and marks, only a trace id, or none"},
    {"errors", FIELD(PERCENT, error_ppm), RANGE(0, MILLION), .sentence = "the share of its own answers that are errors"},
    {"hangs.percent", FIELD(PERCENT, hang_ppm), RANGE(0, MILLION), .sentence = "the share of its attempts that hang"},
    {"hangs.time", FIELD(DURATION, hang), RANGE(1, HOUR), .sentence = "the time that a hang adds"},
    {"hangs.only", FIELD(EITHER, hang_first), .words = hang_words, .sentence = "which attempts may hang"},
    {"quota.rate", FIELD(RATE, quota_milli), RANGE(1, UINT64_C(1000) * MILLION), .sentence = "the requests of each client that the service accepts; further requests get 429"},
    {"quota.burst", FIELD(INTEGER, quota_burst), RANGE(1, MILLION), .sentence = "the most requests of quota.rate that may come at once"},
    {"quota.retryAfter", FIELD(DURATION, quota_after), RANGE(0, HOUR), .sentence = "the Retry-After of a 429, in whole seconds"},
    {"row", FIELD(BOOLEAN, row), .sentence = "one versioned row: read it, then write with the version that was read"},
    {"accept.max", FIELD(INTEGER, accept_max), RANGE(1, MILLION), .word = "any", .stands_for = SCENARIO_NONE,
     .sentence = "the most connections that the service accepts in 100 ms; with more, it crashes"},
    {"accept.restart", FIELD(DURATION, restart), RANGE(100 * BECALM_MS, HOUR), .sentence = "how long the service is down after a crash"},
    {"effect", FIELD(BOOLEAN, effect), .sentence = "whether requests have an effect that must not happen twice, such as a charge"},
    {"calls", FIELD(LIST, calls), .sentence = "the services that it calls for each request, all at once"},
    {"fanOut", FIELD(INTEGER, fan_out), RANGE(1, 10000), .sentence = "how many times the service calls each of `calls`"},
};
#undef ROW

#define ROW struct scenario_endpoint
static const struct schema_key endpoint[] = {
    {"share", FIELD(PERCENT, share_ppm), RANGE(0, MILLION), .sentence = "the share of the requests to its service"},
    {"errors", FIELD(PERCENT, error_ppm), RANGE(0, MILLION), .sentence = "the share of its own answers that are errors"},
    {"hangs.percent", FIELD(PERCENT, hang_ppm), RANGE(0, MILLION), .sentence = "the share of its attempts that hang"},
    {"hangs.time", FIELD(DURATION, hang), RANGE(1, HOUR), .sentence = "the time that a hang adds"},
    {"hangs.only", FIELD(EITHER, hang_first), .words = hang_words, .sentence = "which attempts may hang"},
};
#undef ROW

#define ROW struct scenario_link
static const struct schema_key link_of[] = {
    {"from", FIELD(TEXT, from), .sentence = "the client or service that calls"},
    {"to", FIELD(TEXT, to), .sentence = "the service that is called"},
    {"latency", FIELD(DURATION, latency), RANGE(0, 10 * BECALM_S), .sentence = "the latency of each message, one way"},
    {"loss", FIELD(PERCENT, loss_ppm), RANGE(0, MILLION), .sentence = "the share of its messages that vanish"},
};
#undef ROW

static const char *const marks_words[] = {"conditional", "always", NULL};

#define ROW struct scenario_policy
static const struct schema_key policy[] = {
    {"carries", FIELD(BOOLEAN, carries), .sentence = "false: callers pass on neither deadlines nor marks"},
    {"joins", FIELD(BOOLEAN, joins), .sentence = "false: sidecars join no calls to requests by trace ids"},
    {"marks", FIELD(EITHER, marks_always), .words = marks_words, .sentence = "when a mark that retries were spent is obeyed"},
};
#undef ROW

#define ROW struct dist_keys
static const struct schema_key weight[] = {
    {"weight", FIELD(INTEGER, weight), RANGE(1, MILLION), .sentence = "how often this part is drawn, relative to the weights of the other parts"},
};

static const struct schema_key dist_of[] = {
    {"constant", FIELD(DURATION, constant), RANGE(0, HOUR), .sentence = "a time that is always the same"},
    {"exponential", FIELD(DURATION, exponential), RANGE(1, HOUR), .sentence = "the mean"},
    {"lognormal.median", FIELD(DURATION, median), RANGE(1, HOUR), .sentence = "the median"},
    {"lognormal.sigma", FIELD(DECIMAL, sigma), RANGE(1, 4000), .scale = 1000, .sentence = "the standard deviation of the logarithm"},
    {"pareto.least", FIELD(DURATION, least), RANGE(1, HOUR), .sentence = "the least value"},
    {"pareto.alpha", FIELD(DECIMAL, alpha), RANGE(500, 100000), .scale = 1000, .sentence = "how fast the tail falls"},
    {"normal.mean", FIELD(DURATION, mean), RANGE(1, HOUR), .sentence = "the mean"},
    {"normal.deviation", FIELD(DURATION, deviation), RANGE(0, HOUR), .sentence = "the standard deviation"},
};
#undef ROW

#define ROW struct scenario_client
static const struct schema_key client[] = {
    {"to", FIELD(TEXT, to), .sentence = "the service that is called"},
    {"rate", FIELD(RATE, rate_milli), RANGE(1, UINT64_C(1000) * MILLION), .sentence = "calls per second of all callers together"},
    {"calls", FIELD(INTEGER, calls), RANGE(1, MILLION), .sentence = "the calls that each caller makes before it stops"},
    {"callers", FIELD(INTEGER, callers), RANGE(1, MILLION), .sentence = "instances, each with its own budget, breaker and limit"},
    {"role", FIELD(WORD, role), .words = role_words, .sentence = "the driver of the policy: a library, sidecar or gateway"},
    {"timeout", FIELD(DURATION, timeout), RANGE(BECALM_MS, HOUR), .sentence = "the timeout of its attempts, in place of the policy's"},
    {"retries", FIELD(BOOLEAN, retries), .sentence = "false: one attempt with any policy"},
    {"connections", FIELD(INTEGER, connections), RANGE(1, MILLION), .sentence = "the connections that each caller keeps open, instead of calling"},
    {"key", FIELD(BOOLEAN, key), .sentence = "whether requests carry an idempotency key"},
    {"repeats", FIELD(BOOLEAN, repeats), .sentence = "whether the next call after a failed one is the same operation"},
};
#undef ROW

#define ROW struct scenario_fault
static const struct schema_key fault[] = {
    {"at", FIELD(DURATION, at), RANGE(0, HOUR), .sentence = "when it begins"},
    {"for", FIELD(DURATION, length), RANGE(BECALM_MS, HOUR), .sentence = "how long it lasts"},
    {"service", FIELD(TEXT, service), .sentence = "the service that it hits"},
    {"silent", FIELD(BOOLEAN, silent), .sentence = "cutCallers: packets of the callers vanish, instead of being refused"},
    {"from", FIELD(TEXT, from), .sentence = "partition: cut only messages of this client or service"},
    {"client", FIELD(TEXT, client), .sentence = "surge: the client that calls more often"},
    {"flap.on", FIELD(DURATION, on), RANGE(BECALM_MS, HOUR), .sentence = "how long the fault is on, again and again"},
    {"flap.off", FIELD(DURATION, off), RANGE(BECALM_MS, HOUR), .sentence = "how long the fault is off in between"},
};
#undef ROW

#define ROW struct fault_keys
static const struct schema_key effect[] = {
    {"capacity", FIELD(DECIMAL, capacity), RANGE(0, MILLION), .scale = MILLION, .sentence = "the share of its capacity that is left"},
    {"errors", FIELD(PERCENT, errors), RANGE(0, MILLION), .sentence = "the share of its own answers that are errors"},
    {"dead", FIELD(BOOLEAN, dead), .sentence = "every attempt fails at once"},
    {"latency", FIELD(DURATION, latency), RANGE(1, HOUR), .sentence = "time that is added to the service's time"},
    {"hangs", FIELD(PERCENT, hangs), RANGE(0, MILLION), .sentence = "the share of its attempts that hang"},
    {"badHosts", FIELD(INTEGER, bad_hosts), RANGE(1, BECALM_HOSTS_MAX), .sentence = "hosts that fail every attempt"},
    {"cutCallers", FIELD(PERCENT, cut_callers), RANGE(0, MILLION), .sentence = "the share of callers that can't reach it"},
    {"refuse", FIELD(BOOLEAN, refuse), .sentence = "every connection is refused"},
    {"swallow", FIELD(BOOLEAN, swallow), .sentence = "connections are neither accepted nor refused"},
    {"killHosts", FIELD(INTEGER, kill_hosts), RANGE(1, BECALM_HOSTS_MAX), .sentence = "hosts that are down"},
    {"rolling", FIELD(DURATION, rolling), RANGE(BECALM_MS, HOUR), .sentence = "hosts are down for this long, one after the other"},
    {"partition", FIELD(BOOLEAN, partition), .sentence = "messages to it and from it vanish"},
    {"surge", FIELD(DECIMAL, surge), RANGE(1, 1000 * 1000), .scale = 1000, .sentence = "the factor by which a client calls more often"},
    {"store", FIELD(DURATION, store), RANGE(1, HOUR), .word = "away", .stands_for = BECALM_NEVER,
     .sentence = "latency that is added to each message to and from the store of the shared budget; away: the store does not answer"},
    {"loseConnections", FIELD(INTEGER, lose_connections), RANGE(1, MILLION),
     .sentence = "connections to the service that break when the fault begins, with all requests on them"},
    {"killStore", FIELD(DURATION, kill_store), RANGE(0, HOUR), .word = "empty", .stands_for = BECALM_NEVER,
     .sentence = "the store of the shared budget dies, and is restored from a file of this age; empty: without data"},
    {"hangStore", FIELD(BOOLEAN, hang_store), .sentence = "the store of the shared budget hangs until the fault ends"},
    {"emptyStore", FIELD(BOOLEAN, empty_store), .sentence = "the store of the shared budget loses all data, once"},
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
