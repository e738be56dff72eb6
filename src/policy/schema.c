/* SPDX-License-Identifier: MIT */
#include "schema.h"

#include <string.h>

#define HOUR    (3600 * BECALM_S)
#define DAY     (24 * HOUR)
#define MILLION 1000000u
#define PPM_MAX MILLION

const char *const schema_budget_kinds[] = {"earned", "ratio", "tokens", "concurrency", "adaptive",
                                           "grpc",   "aws",   "none",   NULL};
const char *const schema_limit_kinds[] = {"auto", "slots", "aimd", "fixed", "none", NULL};

static const char *const growth_words[] = {"exponential", "linear", "constant", NULL};
static const char *const jitter_words[] = {"full", "none", "equal", "decorrelated", "proportional", NULL};
static const char *const key_words[] = {"optional", "required", "off", "enforced", NULL};
static const char *const away_words[] = {"auto", "refuse", "local", "pass", NULL};
static const char *const place_words[] = {"none", "inherit", NULL};
static const char *const level_words[] = {"endpoint", "service", "both", NULL};
static const char *const of_words[] = {"first", "attempts", NULL};
static const char *const timeout_words[] = {"", "learned", "none", NULL}; /* by enum becalm_timeout_kind */
static const char *const per_words[] = {"call", "attempt", NULL};
static const char *const breaker_modes[] = {"rate", "consecutive", NULL};
static const char *const window_words[] = {"COUNT_BASED", "TIME_BASED", NULL};
static const char *const preset_words[] = {"resilience4j", NULL};
static const char *const retry_modes[] = {"standard", "adaptive", NULL};
static const char *const mode_words[] = {"enforce", "shadow", NULL};
static const char *const role_words[] = {"gateway", "sidecar", NULL};
static const char *const listener_roles[] = {"auto", "gateway", "sidecar", NULL};
static const char *const fallback_words[] = {"open", "shed", "failed", NULL};
static const char *const unlisted_words[] = {"refuse", "pass", NULL};
static const char *const listener_unlisted[] = {"auto", "pass", "refuse", NULL};
static const char *const forwarded_words[] = {"auto", "all", "x-forwarded", "standard", "off", NULL};
static const char *const join_words[] = {"traceparent", "b3", "x-cloud-trace-context", "x-request-id", NULL};
static const char *const send_words[] = {"deadline", "attempts", "via", "forwarded", "request-id", "trace", NULL};
static const char *const trace_parents[] = {"all", "trusted", "none", NULL};
static const char *const path_words[] = {"resolved", "as-is", NULL};
static const char *const client_auth_words[] = {"none", "optional", "required", NULL};
static const char *const tls_versions[] = {"1.2", "1.3", NULL};
static const char *const protocol_words[] = {"auto", "h1", "h2", NULL};
static const char *const introduction_words[] = {"off", "v1", "v2", NULL};
static const char *const health_kinds[] = {"off", "http", "tcp", "grpc", NULL};
static const char *const verify_words[] = {"full", "none", NULL};
static const char *const log_levels[] = {"error", "warn", "info", "debug", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const log_accesses[] = {"off", "json", "combined", NULL};

/* clang-format off */

/* Rows: name, type, field, range, and what it does. */
#define FIELD(type_, field) .type = TYPE_##type_, .offset = offsetof(struct ROW, field)
#define RANGE(low, high) .min = (low), .max = (high)

#define ROW becalm_rules
static const struct schema_key rules[] = {
    {"maxRetries", FIELD(INTEGER, policy.max_retries), RANGE(0, BECALM_RETRIES_MAX),
     .sentence = "how many retries a call may make: retries, not attempts"},
    {"growth", FIELD(WORD, policy.backoff.growth), .words = growth_words,
     .sentence = "how the wait grows from one retry to the next"},
    {"initialDelay", FIELD(DURATION, policy.backoff.base), RANGE(0, DAY),
     .sentence = "the wait before the first retry, before jitter"},
    {"maxDelay", FIELD(DURATION, policy.backoff.cap), RANGE(0, DAY),
     .sentence = "no wait is longer than this"},
    {"multiplier", FIELD(DECIMAL, policy.backoff.factor_ppm), RANGE(MILLION, 100 * MILLION), .scale = MILLION,
     .sentence = "exponential growth: each wait is this many times the one before"},
    {"jitter", FIELD(WORD, policy.backoff.jitter), .words = jitter_words,
     .sentence = "how the wait is spread, so that callers do not retry in step"},
    {"jitterFactor", FIELD(JITTER_FACTOR, policy.backoff.jitter_ppm), RANGE(0, MILLION), .scale = MILLION,
     .sentence = "proportional jitter: the wait is spread by this share to either side"},
    {"connectTimeout", FIELD(DURATION, connect_timeout), RANGE(BECALM_MS, HOUR),
     .sentence = "how long connecting may take"},
    {"attemptTimeout", FIELD(ATTEMPT_TIMEOUT, policy.attempt_timeout), RANGE(BECALM_MS, DAY), .words = timeout_words,
     .sentence = "how long one attempt may take until the head of its answer; learned: it is overdue by what others took, and not cut; none: as long as its call"},
    {"deadline", FIELD(DURATION, policy.deadline), RANGE(BECALM_MS, DAY), .word = "none", .stands_for = BECALM_NEVER,
     .sentence = "how long the whole call may take, retries and waits included; 16s if only attemptTimeout is written"},
    {"retryOn", FIELD(RETRY_ON, retry_on),
     .sentence = "which failures are worth another attempt"},
    {"idempotent", FIELD(BOOLEAN, policy.idempotent),
     .sentence = "true: POST and PATCH may be repeated as well"},
    {"idempotencyKey", FIELD(WORD, key), .words = key_words,
     .sentence = "what an Idempotency-Key is worth: allows retries, is required, is ignored, or is enforced: nothing is done twice"},
    {"keyScope", FIELD(KEY_SCOPE, key_scope),
     .sentence = "the owner of an Idempotency-Key: only requests with the same values of these get its answer"},
    {"replay", FIELD(BOOLEAN, replay),
     .sentence = "false: a request's body is not kept for a retry, but streams from its first byte"},
    {"expectContinue", FIELD(BOOLEAN, expect_continue),
     .sentence = "true: a POST that may not be repeated sends its body when the host has said 100, so a restart loses none"},
    {"retryMode", .type = TYPE_RETRY_MODE, .words = retry_modes,
     .sentence = "AWS's modes: standard is budget aws with full jitter, adaptive adds the client rate limit"},
    {"budget.kind", FIELD(BUDGET_KIND, policy.budget.kind), .words = schema_budget_kinds,
     .sentence = "what a retry is paid from"},
    {"budget.percent", FIELD(PERCENT, policy.budget.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "earned: what a success earns; ratio: retries per first attempt; concurrency: per call in progress"},
    {"budget.start", FIELD(DECIMAL, policy.budget.start), RANGE(0, 1000 * (uint64_t)MILLION), .scale = MILLION,
     .sentence = "earned: tokens at the start"},
    {"budget.neverSentCost", FIELD(DECIMAL, policy.budget.never_sent_cost), RANGE(1, MILLION), .scale = MILLION,
     .sentence = "earned: the price of a retry after an attempt that was never sent"},
    {"budget.window", FIELD(DURATION, policy.budget.window), RANGE(BECALM_S, HOUR),
     .sentence = "ratio, adaptive: over which time retries and first attempts are counted"},
    {"budget.minPerSecond", FIELD(INTEGER, policy.budget.min_per_second), RANGE(0, MILLION),
     .sentence = "ratio: retries a second that are always allowed, in every instance"},
    {"budget.of", FIELD(EITHER, policy.budget.of_attempts), .words = of_words,
     .sentence = "ratio: a share of first attempts, or of all attempts as the SRE book counts"},
    {"budget.minConcurrency", FIELD(INTEGER, policy.budget.min_concurrency), RANGE(0, MILLION),
     .sentence = "concurrency: retries in progress that are always allowed"},
    {"budget.minPercent", FIELD(PERCENT, policy.budget.min_share_ppm), RANGE(0, PPM_MAX),
     .sentence = "adaptive: the share of retries when nothing succeeds"},
    {"budget.maxPercent", FIELD(PERCENT, policy.budget.max_share_ppm), RANGE(0, PPM_MAX),
     .sentence = "adaptive: the share of retries when everything succeeds"},
    {"budget.capacity", FIELD(INTEGER, policy.budget.capacity), RANGE(1, MILLION),
     .sentence = "tokens, aws: how many tokens there are at most"},
    {"budget.refillPerSecond", FIELD(INTEGER, policy.budget.refill_per_second), RANGE(0, MILLION),
     .sentence = "tokens: how many come back per second"},
    {"budget.refillEvery", FIELD(DURATION, policy.budget.refill_every), RANGE(0, DAY),
     .sentence = "tokens: one comes back in so long, instead of refillPerSecond: 6m for ten an hour"},
    {"budget.maxTokens", FIELD(DECIMAL, policy.budget.max_tokens_milli), RANGE(1, MILLION), .scale = 1000,
     .sentence = "grpc: a failure takes one of these; retries stop at half"},
    {"budget.tokenRatio", FIELD(DECIMAL, policy.budget.token_ratio_milli), RANGE(1, MILLION), .scale = 1000,
     .sentence = "grpc: what a success gives back"},
    {"budget.retryCost", FIELD(INTEGER, policy.budget.retry_cost), RANGE(1, MILLION),
     .sentence = "aws: the price of a retry"},
    {"budget.timeoutCost", FIELD(INTEGER, policy.budget.timeout_cost), RANGE(1, MILLION),
     .sentence = "aws: the price of a retry after a timeout"},
    {"budget.level", FIELD(WORD, level), .words = level_words,
     .sentence = "whether an endpoint has a budget of its own, shares its service's, or needs both"},
    {"budget.shared.redis", FIELD(REDIS, shared_redis), .word = "none",
     .sentence = "the store of a budget that all instances share; a retry needs it beside the instance's own"},
    {"budget.shared.percent", FIELD(PERCENT, policy.lease.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "retries per first attempt, of all instances together"},
    {"limit.kind", FIELD(LIMIT_KIND, policy.limit.kind), .words = schema_limit_kinds,
     .sentence = "how the number of attempts in flight is limited"},
    {"limit.min", FIELD(INTEGER, policy.limit.min), RANGE(1, MILLION),
     .sentence = "the limit never falls below this"},
    {"limit.max", FIELD(INTEGER, policy.limit.max), RANGE(1, MILLION),
     .sentence = "the limit never grows above this; fixed: the limit"},
    {"limit.maxAnswers", FIELD(INTEGER, policy.limit.max_answers), RANGE(1, MILLION),
     .sentence = "attempts in flight and answers in progress, such as open streams, that there may be together"},
    {"gate.targetQueueTime", FIELD(DURATION, policy.gate.target_wait), RANGE(BECALM_US, HOUR),
     .sentence = "a call that waited longer is dropped while the queue stays full"},
    {"gate.maxQueueTime", FIELD(DURATION, policy.gate.max_wait), RANGE(BECALM_US, HOUR),
     .sentence = "no call waits longer in the gate; the default gives way to half of the attempt's timeout"},
    {"gate.minQueue", FIELD(INTEGER, policy.gate.min_queue), RANGE(0, MILLION),
     .sentence = "no call is dropped for targetQueueTime while fewer than these wait"},
    {"gate.maxQueue", FIELD(INTEGER, policy.gate.max_queue), RANGE(0, MILLION),
     .sentence = "how many calls may wait in the gate"},
    {"gate.cpuThreshold", FIELD(PERCENT, policy.gate.cpu_threshold_ppm), RANGE(1, PPM_MAX), .word = "off",
     .sentence = "shed calls above this share of the machine's CPU"},
    {"gate.retryAfter", FIELD(DURATION, policy.gate.retry_after), RANGE(0, HOUR),
     .sentence = "what a caller is told whose call was shed"},
    {"breaker.preset", .type = TYPE_PRESET, .words = preset_words,
     .sentence = "another library's defaults for all of `breaker`"},
    {"breaker.enabled", FIELD(BOOLEAN, policy.breaker.enabled),
     .sentence = "whether there is a circuit breaker"},
    {"breaker.per", FIELD(EITHER, policy.breaker.per_attempt), .words = per_words,
     .sentence = "whether whole calls are recorded, or each attempt"},
    {"breaker.mode", FIELD(WORD, policy.breaker.mode), .words = breaker_modes,
     .sentence = "opens at a rate of failures, or after failures in a row"},
    {"breaker.failureRateThreshold", FIELD(PERCENT, policy.breaker.failure_share_ppm), RANGE(1, PPM_MAX),
     .sentence = "rate: opens when this share of calls failed"},
    {"breaker.slowCallRateThreshold", FIELD(PERCENT, policy.breaker.slow_share_ppm), RANGE(1, PPM_MAX), .word = "off",
     .stands_for = BECALM_BREAKER_SLOW_OFF,
     .sentence = "rate: opens when this share of calls was slow"},
    {"breaker.slowCallDurationThreshold", FIELD(DURATION, policy.breaker.slow_after), RANGE(BECALM_MS, DAY),
     .sentence = "a call that takes this long is slow"},
    {"breaker.slidingWindowType", FIELD(WORD, policy.breaker.window_kind), .words = window_words,
     .sentence = "rate: over the last calls, or the last seconds"},
    {"breaker.slidingWindowSize", FIELD(INTEGER, policy.breaker.window_size), RANGE(1, MILLION),
     .sentence = "rate: how many calls, or how many seconds"},
    {"breaker.minimumNumberOfCalls", FIELD(INTEGER, policy.breaker.min_calls), RANGE(1, MILLION),
     .sentence = "rate: never opens on fewer calls"},
    {"breaker.permittedNumberOfCallsInHalfOpenState", FIELD(INTEGER, policy.breaker.probes), RANGE(1, 65535),
     .sentence = "rate: how many probes a half-open breaker sends"},
    {"breaker.maxWaitDurationInHalfOpenState", FIELD(DURATION, policy.breaker.half_open_for), RANGE(BECALM_MS, DAY),
     .sentence = "a probe that has not reported by then has failed"},
    {"breaker.waitDurationInOpenState", FIELD(DURATION, policy.breaker.open_for), RANGE(BECALM_MS, DAY),
     .sentence = "how long an open breaker refuses calls before it probes"},
    {"breaker.openMultiplier", FIELD(DECIMAL, policy.breaker.open_factor_ppm), RANGE(MILLION, 100 * MILLION),
     .scale = MILLION,
     .sentence = "the open time grows by this with each opening in a row, to 60s at most"},
    {"breaker.failureThreshold", FIELD(INTEGER, policy.breaker.failure_threshold), RANGE(1, 65535),
     .sentence = "consecutive: opens after this many failures in a row"},
    {"breaker.successThreshold", FIELD(INTEGER, policy.breaker.success_threshold), RANGE(1, 65535),
     .sentence = "consecutive: closes after this many successful probes"},
    {"throttle.enabled", FIELD(BOOLEAN, policy.throttle.enabled),
     .sentence = "whether a caller whose calls are turned away stops sending some of them"},
    {"throttle.k", FIELD(DECIMAL, policy.throttle.k_milli), RANGE(1000, 100000), .scale = 1000,
     .sentence = "how many requests may be sent per accepted one before calls are rejected"},
    {"throttle.window", FIELD(DURATION, policy.throttle.window), RANGE(BECALM_S, HOUR),
     .sentence = "over which time requests and accepts are counted"},
    {"rate.enabled", FIELD(BOOLEAN, policy.rate.enabled),
     .sentence = "AWS's adaptive client rate limit, which reacts to 429 and 503"},
    {"hedge.enabled", FIELD(BOOLEAN, policy.hedge.enabled),
     .sentence = "whether a slow attempt gets a second one beside it instead of a retry after it"},
    {"hedge.delay", FIELD(HEDGE_DELAY, policy.hedge), RANGE(BECALM_US, HOUR),
     .sentence = "when: after a fixed time, or at a live quantile like p95"},
    {"hedge.max", FIELD(INTEGER, policy.hedge.max), RANGE(1, BECALM_SLOTS - 1),
     .sentence = "how many hedges a call may send"},
    {"hedge.percent", FIELD(PERCENT, policy.hedge.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "what a success earns towards hedges"},
    {"hedge.cap", FIELD(DECIMAL, policy.hedge.cap), RANGE(MILLION, 1000 * (uint64_t)MILLION), .scale = MILLION,
     .sentence = "how many hedges may be saved up"},
    {"hedge.nonFatal", FIELD(NON_FATAL, policy.hedge.non_fatal),
     .sentence = "failures after which the next hedge is sent at once; any other ends the call"},
    {"outlier.enabled", FIELD(BOOLEAN, policy.outlier.enabled),
     .sentence = "whether bad hosts are left out for a while"},
    {"outlier.failureRateThreshold", FIELD(PERCENT, policy.outlier.failure_share_ppm), RANGE(1, PPM_MAX),
     .sentence = "a host is ejected when this share of its results failed"},
    {"outlier.minimumNumberOfCalls", FIELD(INTEGER, policy.outlier.min_calls), RANGE(1, MILLION),
     .sentence = "never on fewer results"},
    {"outlier.window", FIELD(DURATION, policy.outlier.window), RANGE(100 * BECALM_MS, HOUR),
     .sentence = "over which time a host's results are counted"},
    {"outlier.consecutive5xxErrors", FIELD(INTEGER, policy.outlier.consecutive), RANGE(0, MILLION),
     .sentence = "Istio's way: ejected after this many failures in a row; 0: by rate"},
    {"outlier.interval", FIELD(DURATION, policy.outlier.interval), RANGE(BECALM_MS, DAY),
     .sentence = "a host well for this long is forgiven one earlier ejection"},
    {"outlier.baseEjectionTime", FIELD(DURATION, policy.outlier.base_ejection), RANGE(BECALM_MS, 300 * BECALM_S),
     .sentence = "how long a host is out, times how often it was"},
    {"outlier.maxEjectionPercent", FIELD(PERCENT, policy.outlier.max_ejected_ppm), RANGE(0, PPM_MAX),
     .sentence = "no more of the hosts are out at once"},
    {"restart.enabled", FIELD(BOOLEAN, policy.restart.enabled),
     .sentence = "whether calls wait while no host accepts connections, for one that restarts"},
    {"fallback.on", FIELD(WORDS, fallback.on), .words = fallback_words,
     .sentence = "when the fallback answers: the breaker is open, the call was shed here, or nothing is left to try"},
    {"fallback.service", FIELD(TEXT, fallback.service), .word = "none",
     .sentence = "a service that is asked instead, if that does nothing twice"},
    {"fallback.status", FIELD(INTEGER, fallback.status), RANGE(200, 599), .word = "none",
     .sentence = "the status of an answer that the policy has, for when no service answers"},
    {"fallback.headers", FIELD(LIST, fallback.headers), .sentence = "its fields: [\"content-type: application/json\"]"},
    {"fallback.body", FIELD(TEXT, fallback.body), .word = "none", .sentence = "its body"},
    {"mode", FIELD(EITHER, policy.shadow), .words = mode_words,
     .sentence = "shadow: count what would have been done, and do nothing"},
};
#undef ROW

#define MATCH_ROWS \
    {"match.host", FIELD(HOST, match.host), .sentence = "the request's host, or a list of them"}, \
    {"match.prefix", FIELD(PATH, match.prefix), .sentence = "what the path begins with, up to the end of a segment"}, \
    {"match.start", FIELD(PATH, match.start), .sentence = "what the path begins with, inside of a segment too"}, \
    {"match.path", FIELD(PATH, match.path), .sentence = "the whole path"}, \
    {"match.method", FIELD(METHOD, match.method), .sentence = "the method"}, \
    {"match.header", FIELD(HEADER, match), .sentence = "a header and its value"}

#define ROW becalm_service
static const struct schema_key service[] = {
    {"hosts", FIELD(HOSTS, hosts), .sentence = "the addresses of the service"},
    {"unlisted", FIELD(EITHER, unlisted), .words = unlisted_words,
     .sentence = "pass: requests go to the host that they name, whichever match.host lets in; default: refuse, its hosts are written"},
    {"listen", FIELD(LISTEN_OWN, listen), .sentence = "addresses that lead to this service alone, whatever host and path a request names"},
    MATCH_ROWS,
    {"replacePrefix", FIELD(PATH, replace_prefix), .sentence = "what its hosts get in place of match.prefix; / takes it off"},
    {"send", FIELD(WORDS, send), .words = send_words,
     .sentence = "which fields of ours go to its hosts; []: none, for strangers"},
    {"healthCheck.kind", FIELD(WORD, health_check.kind), .words = health_kinds,
     .sentence = "what its hosts are asked beside all calls; http with path, else off"},
    {"healthCheck.path", FIELD(PATH, health_check.path), .sentence = "http: what is asked for, by GET"},
    {"healthCheck.host", FIELD(TEXT, health_check.host), .sentence = "http, grpc: the Host that is asked for; default: the host as it is written"},
    {"healthCheck.grpcService", FIELD(TEXT, health_check.grpc_service), .sentence = "grpc: whose health is asked for; default: the whole server's"},
    {"healthCheck.statuses", FIELD(STATUSES, health_check.status), .sentence = "http: which answers are right: 200, 200-299 or 2xx; default: 200-399"},
    {"healthCheck.interval", FIELD(DURATION, health_check.interval), RANGE(100 * BECALM_MS, DAY), .sentence = "how often, more or less a tenth; default: 5s"},
    {"healthCheck.timeout", FIELD(DURATION, health_check.timeout), RANGE(BECALM_MS, HOUR), .sentence = "how long a check may take; default: 1s"},
    {"healthCheck.unhealthyThreshold", FIELD(INTEGER, health_check.unhealthy), RANGE(1, 1000),
     .sentence = "so many failures in a row take a host out; default: 3"},
    {"healthCheck.healthyThreshold", FIELD(INTEGER, health_check.healthy), RANGE(1, 1000),
     .sentence = "so many successes in a row bring it back; default: 2"},
    {"calls", FIELD(LIST, calls), .sentence = "the services that this one calls"},
    {"traffic", FIELD(RATE, traffic_milli), RANGE(1, UINT64_MAX / 2), .sentence = "calls a second over all instances"},
    {"instances", FIELD(INTEGER, instances), RANGE(1, MILLION), .sentence = "how many instances call it"},
    {"protocol", FIELD(WORD, protocol), .words = protocol_words,
     .sentence = "what is spoken with the hosts; auto: with TLS HTTP/2 where they offer it, else HTTP/1"},
    {"proxyProtocol", FIELD(WORD, introduction), .words = introduction_words,
     .sentence = "v1, v2: each connection to its hosts begins with the PROXY protocol, which says whose it is; it speaks HTTP/1 and serves one client"},
    {"tls.serverName", FIELD(TEXT, tls.server_name), .sentence = "the name that the hosts' certificate must have; default: the host's own"},
    {"tls.ca", FIELD(FILE, tls.ca), .sentence = "the authority that signs the hosts' certificates; default: those that the system trusts"},
    {"tls.cert", FIELD(FILE, tls.cert), .sentence = "our certificate, for hosts that ask for one"},
    {"tls.key", FIELD(FILE, tls.key), .sentence = "its private key"},
    {"tls.verify", FIELD(WORD, tls.verify), .words = verify_words,
     .sentence = "whether the hosts' certificate is verified; none: any server that answers is trusted"},
};
#undef ROW

#define ROW becalm_listener
static const struct schema_key listener[] = {
    {"address", FIELD(ADDRESS, address), .sentence = "where it listens"},
    {"tls.certificates", .type = TYPE_CERTIFICATES, .sentence = "its certificates, each with its key; the first is for names that none has"},
    {"tls.clientCa", FIELD(FILE, client_ca), .sentence = "the CA that signs the certificates of clients"},
    {"tls.clientAuth", FIELD(WORD, client_auth), .words = client_auth_words,
     .sentence = "whether clients show a certificate; default: required with clientCa, else none"},
    {"tls.minVersion", FIELD(WORD, min_version), .words = tls_versions, .sentence = "the oldest version of TLS that is spoken"},
    {"tls.strictSni", FIELD(BOOLEAN, strict_sni),
     .sentence = "true: a client that names none of the certificates, or nothing, is turned away; false: it gets the first"},
    {"tls.ticketKeysFile", FIELD(FILE, ticket_keys),
     .sentence = "keys of session tickets, for replicas that resume each other's sessions; default: random ones"},
    {"protocols", .type = TYPE_PROTOCOLS, .sentence = "which versions of HTTP are spoken"},
    {"proxyProtocol", FIELD(BOOLEAN, proxy_protocol),
     .sentence = "true: each connection begins with the PROXY protocol, version 1 or 2, which says whose it is"},
    {"role", FIELD(WORD, role_written), .words = listener_roles,
     .sentence = "the role of this instance for clients of this listener; auto: the policy's role"},
    {"unlisted", FIELD(WORD, unlisted_written), .words = listener_unlisted,
     .sentence = "whether services with unlisted: pass are found by it; auto: by loopback and Unix sockets in role sidecar"},
};
#undef ROW

#define ROW becalm_certificate
static const struct schema_key certificate[] = {
    {"cert", FIELD(FILE, cert), .sentence = "a chain of certificates in PEM, the server's own first"},
    {"key", FIELD(FILE, key), .sentence = "its private key in PEM"},
};
#undef ROW

#define ROW becalm_endpoint
static const struct schema_key endpoint[] = {MATCH_ROWS};
#undef ROW

#define ROW becalm_settings
static const struct schema_key settings[] = {
    {"listen", FIELD(LISTEN, listen), .sentence = "where the gateway listens"},
    {"admin", FIELD(ADMIN, admin), .word = "none",
     .sentence = "where metrics, health and the dashboard are; none: nowhere"},
    {"adminTokenFile", FIELD(FILE, admin_token), .sentence = "a file with the bearer token for the admin address"},
    {"role", FIELD(WORD, role), .words = role_words, .sentence = "what this instance is"},
    {"gatewayRetries", FIELD(BOOLEAN, gateway_retries), .sentence = "false: in role gateway nothing is retried or hedged"},
    {"workers", FIELD(INTEGER, workers), RANGE(1, 64), .word = "auto", .sentence = "threads; auto: one per CPU that the process may use, by affinity and the quota of its cgroup"},
    {"trust", FIELD(NETWORKS, trust), .sentence = "whose deadline, attempt and mark headers count"},
    {"forwarded", FIELD(WORD, forwarded), .words = forwarded_words,
     .sentence = "which fields tell hosts about the client; auto: all in role gateway, off in role sidecar"},
    {"join", FIELD(WORDS, join), .words = join_words,
     .sentence = "ids by which calls that go out are joined to requests that came in, where listeners have both roles; []: none"},
    {"clientKey", FIELD(CLIENT_KEY, client_key), .word = "address",
     .sentence = "what tells clients of trusted peers apart: address, or header:NAME"},
    {"log.level", FIELD(WORD, log_level), .words = log_levels, .sentence = "how much is logged"},
    {"log.format", FIELD(WORD, log_format), .words = log_formats, .sentence = "how it is logged"},
    {"log.access", FIELD(WORD, log_access), .words = log_accesses, .sentence = "a line per request"},
    {"log.query", FIELD(BOOLEAN, log_query), .sentence = "true: the access log and /api/decisions show what is behind the ? of a URL"},
    {"drain.delay", FIELD(DURATION, drain_delay), RANGE(0, HOUR), .sentence = "how long a draining gateway goes on accepting"},
    {"drain.limit", FIELD(DURATION, drain_limit), RANGE(0, DAY), .sentence = "when a draining gateway stops at last"},
    {"headerTimeout", FIELD(DURATION, header_timeout), RANGE(BECALM_MS, HOUR), .sentence = "how long a request's head may take"},
    {"bodyTimeout", FIELD(DURATION, body_timeout), RANGE(BECALM_MS, DAY), .word = "none", .stands_for = BECALM_NEVER,
     .sentence = "how long each 16 KiB of a request's body may take"},
    {"idleTimeout", FIELD(DURATION, idle_timeout), RANGE(BECALM_MS, DAY), .sentence = "how long nothing may happen on a connection"},
    {"streamIdleTimeout", FIELD(DURATION, stream_idle_timeout), RANGE(BECALM_MS, DAY), .word = "auto",
     .sentence = "the same for an answer that is an event stream; auto: 5m, or idleTimeout if that is longer"},
    {"tunnelIdleTimeout", FIELD(DURATION, tunnel_idle_timeout), RANGE(BECALM_MS, DAY), .word = "auto",
     .sentence = "the same for a tunnel: WebSocket, other upgrades, CONNECT; auto: 1h, or idleTimeout if that is longer"},
    {"maxConnections", FIELD(INTEGER, max_connections), RANGE(1, 10 * MILLION), .sentence = "how many clients at once"},
    {"maxConnectionsPerClient", FIELD(INTEGER, max_connections_per_client), RANGE(1, 10 * MILLION), .word = "none",
     .sentence = "how many connections of one client at once"},
    {"maxHeaderBytes", FIELD(SIZE, max_header_bytes), RANGE(256, BECALM_HEADER_BYTES_MAX), .sentence = "how large a head may be, 64KiB at most"},
    {"maxBody", FIELD(SIZE, max_body), RANGE(0, UINT64_C(1) << 62), .word = "none", .stands_for = UINT64_MAX,
     .sentence = "how large a request's body may be"},
    {"maxBuffered", FIELD(SIZE, max_buffered), RANGE(1 << 20, UINT64_C(1) << 40), .word = "auto",
     .sentence = "how much may wait for slow readers; auto: a quarter of the cgroup's memory, 256MiB without a limit"},
    {"replay.perRequest", FIELD(SIZE, replay_per_request), RANGE(0, 1 << 30), .sentence = "a larger body is not kept for a retry"},
    {"replay.total", FIELD(SIZE, replay_total), RANGE(0, UINT64_C(1) << 40), .sentence = "kept for retries in all"},
    {"upgrades", FIELD(LIST, upgrades), .sentence = "which protocols a connection may change to"},
    {"connect", FIELD(BOOLEAN, connect), .sentence = "whether CONNECT is tunnelled"},
    {"paths", FIELD(WORD, paths), .words = path_words, .sentence = "whether a path has to lead to one target in all its spellings"},
    {"maxTunnels", FIELD(INTEGER, max_tunnels), RANGE(1, 10 * MILLION), .word = "auto",
     .sentence = "how many tunnels at once; auto: half of maxConnections"},
    {"maxTunnelsPerHost", FIELD(INTEGER, max_tunnels_per_host), RANGE(1, 10 * MILLION), .word = "auto",
     .sentence = "how many tunnels to one host; auto: pool.maxPerHost, or 1024 if that is auto, too"},
    {"pool.maxPerHost", FIELD(INTEGER, pool_max_per_host), RANGE(1, MILLION), .word = "auto",
     .sentence = "connections to one host; auto: as many as limit allows, of which 1024 are kept when idle"},
    {"pool.idle", FIELD(DURATION, pool_idle), RANGE(0, DAY), .sentence = "how long an idle connection is kept"},
    {"pool.streams", FIELD(INTEGER, pool_streams), RANGE(1, 1000),
     .sentence = "how many calls share a connection to a host that speaks HTTP/2, if it allows as many"},
    {"http2.streams", FIELD(INTEGER, http2_streams), RANGE(1, 1000), .sentence = "how many requests at once a client may have on a connection of HTTP/2"},
    {"http2.window", FIELD(SIZE, http2_window), RANGE(1 << 10, 2 << 20),
     .sentence = "how much of one body may wait here, on a stream of a client or of a host"},
    {"idempotencyStore.ttl", FIELD(DURATION, store_ttl), RANGE(BECALM_S, 365 * DAY), .sentence = "how long an answer is kept for its key"},
    {"idempotencyStore.maxEntries", FIELD(INTEGER, store_max_entries), RANGE(1, 100 * MILLION), .sentence = "how many answers"},
    {"idempotencyStore.maxBytes", FIELD(SIZE, store_max_bytes), RANGE(1, UINT64_C(1) << 40), .sentence = "how many bytes of answers"},
    {"idempotencyStore.redis", FIELD(EITHER, keys.shared), .words = place_words,
     .sentence = "inherit: keys are in the Redis of `store`, and all gateways of the fleet keep them together; none: each in its memory"},
    {"idempotencyStore.secretFile", FIELD(FILE, keys.secret_file),
     .sentence = "with redis: a file whose first line all gateways have in common; keys are known by hashes that need it"},
    {"idempotencyStore.encryptFile", FIELD(FILE, keys.encrypt_file),
     .sentence = "with redis: a file with keys of AES-256 by which answers are encrypted; default: they are not"},
    {"idempotencyStore.maxAnswer", FIELD(SIZE, keys.max_answer), RANGE(0, 64 * 1024), .sentence = "with redis: the largest body that is kept"},
    {"idempotencyStore.timeout", FIELD(DURATION, keys.timeout), RANGE(BECALM_MS, 60 * BECALM_S), .sentence = "with redis: how long a call waits to hear of its key"},
    {"idempotencyStore.lease", FIELD(DURATION, keys.lease), RANGE(BECALM_S, HOUR),
     .sentence = "with redis: a gateway that holds a key and does not renew it for so long is taken for dead"},
    {"idempotencyStore.replicas", FIELD(INTEGER, keys.replicas), RANGE(0, 16),
     .sentence = "with redis: so many of its replicas must have an enforced key before its call is made"},
    {"idempotencyStore.fence", FIELD(BOOLEAN, keys.fence),
     .sentence = "with redis: hosts get becalm-key-fence, a number that is higher for each later beginning of a key"},
    {"idempotencyStore.onAway", FIELD(WORD, keys.away), .words = away_words,
     .sentence = "with redis, when it does not answer: refuse the call, keep its key in memory, or let it pass; auto: refuse for enforced keys, local for others"},
    {"fleet", FIELD(TEXT, fleet), .sentence = "the name of the instances that share what is in the store"},
    {"store.redis", FIELD(REDIS, store.redis), .word = "none",
     .sentence = "the Redis that they share: redis://host:6379/0, rediss:// with TLS, redis+unix:///path; several hosts, and ?sentinel=NAME"},
    {"store.user", FIELD(TEXT, store.user), .sentence = "the user name at the store"},
    {"store.passwordFile", FIELD(FILE, store.password_file), .sentence = "a file with the password; read at each connection"},
    {"store.passwordEnv", FIELD(TEXT, store.password_env), .sentence = "a variable of the environment with the password"},
    {"store.timeout", FIELD(DURATION, store.timeout), RANGE(10 * BECALM_MS, 60 * BECALM_S), .sentence = "how long it may take to connect and to answer"},
    {"store.ca", FIELD(FILE, store.tls.ca), .sentence = "the authority that signs its certificate; default: those that the system trusts"},
    {"store.cert", FIELD(FILE, store.tls.cert), .sentence = "our certificate, if it asks for one"},
    {"store.key", FIELD(FILE, store.tls.key), .sentence = "its private key"},
    {"store.serverName", FIELD(TEXT, store.tls.server_name), .sentence = "the name that its certificate must have; default: the host's own"},
    {"store.verify", FIELD(WORD, store.tls.verify), .words = verify_words,
     .sentence = "whether its certificate is verified; none: any server that answers is trusted"},
    {"tracing.endpoint", FIELD(TEXT, tracing.endpoint), .word = "none",
     .sentence = "a collector that takes OTLP over HTTP: http://host:4318; with one, traces are continued and begun, and calls and attempts have spans"},
    {"tracing.headers", FIELD(LIST, tracing.headers), .sentence = "fields for the collector: [\"name: value\"]"},
    {"tracing.service", FIELD(TEXT, tracing.service), .sentence = "service.name of the spans"},
    {"tracing.sample", FIELD(PERCENT, tracing.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "how many of the traces that begin here are sampled; a traceparent that is continued says so itself"},
    {"tracing.parent", FIELD(WORD, tracing.parent), .words = trace_parents,
     .sentence = "whose traceparent is continued: that of all peers, of peers in trust, or of none; for others a new trace begins"},
    {"tracing.timeout", FIELD(DURATION, tracing.timeout), RANGE(10 * BECALM_MS, 60 * BECALM_S), .sentence = "how long the collector may take for one export"},
    {"tracing.ca", FIELD(FILE, tracing.tls.ca), .sentence = "the authority that signs the collector's certificate; default: those that the system trusts"},
    {"tracing.cert", FIELD(FILE, tracing.tls.cert), .sentence = "our certificate, if it asks for one"},
    {"tracing.key", FIELD(FILE, tracing.tls.key), .sentence = "its private key"},
    {"tracing.verify", FIELD(WORD, tracing.tls.verify), .words = verify_words,
     .sentence = "whether its certificate is verified; none: any server that answers is trusted"},
    {"explain", FIELD(BOOLEAN, explain), .sentence = "send the decision record with every answer"},
};
#undef ROW
/* clang-format on */

#define SCHEMA(table)                                             \
    {                                                             \
        .keys = (table), .count = sizeof(table) / sizeof *(table) \
    }

const struct schema schema_rules = SCHEMA(rules);
const struct schema schema_service = SCHEMA(service);
const struct schema schema_endpoint = SCHEMA(endpoint);
const struct schema schema_settings = SCHEMA(settings);
const struct schema schema_listener = SCHEMA(listener);
const struct schema schema_certificate = SCHEMA(certificate);

_Static_assert(sizeof rules / sizeof *rules <= SCHEMA_KEYS_MAX, "every key of the rules has an origin");

bool schema_is_map(const struct schema *schema, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; i < schema->count; i++) {
        if (strncmp(schema->keys[i].name, name, length) == 0 && schema->keys[i].name[length] == '.') {
            return true;
        }
    }
    return false;
}

const struct schema_key *schema_find(const struct schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->count; i++) {
        if (strcmp(schema->keys[i].name, name) == 0) {
            return &schema->keys[i];
        }
    }
    return NULL;
}
