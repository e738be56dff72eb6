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

/* Rows: name, type, field, range, and a sentence about its effect. */
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
     .sentence = "how waits are randomized, so that callers do not retry in step"},
    {"jitterFactor", FIELD(JITTER_FACTOR, policy.backoff.jitter_ppm), RANGE(0, MILLION), .scale = MILLION,
     .sentence = "proportional jitter: a wait may be longer or shorter by this share"},
    {"connectTimeout", FIELD(DURATION, connect_timeout), RANGE(BECALM_MS, HOUR),
     .sentence = "how long a connection attempt may take"},
    {"attemptTimeout", FIELD(ATTEMPT_TIMEOUT, policy.attempt_timeout), RANGE(BECALM_MS, DAY), .words = timeout_words,
     .sentence = "how long one attempt may take until the head of its answer arrives; learned: an attempt that takes longer than usual is overdue, but is not cut; none: an attempt may take as long as its call"},
    {"retryOverdue", FIELD(BOOLEAN, policy.retry_overdue),
     .sentence = "false: no retry is sent beside an attempt that takes much longer than usual, before its timeout"},
    {"deadline", FIELD(DURATION, policy.deadline), RANGE(BECALM_MS, DAY), .word = "none", .stands_for = BECALM_NEVER,
     .sentence = "how long the whole call may take, with all retries and waits; 16s if only attemptTimeout is written"},
    {"retryOn", FIELD(RETRY_ON, retry_on),
     .sentence = "the failures that are retried"},
    {"idempotent", FIELD(BOOLEAN, policy.idempotent),
     .sentence = "true: POST and PATCH may be retried, too"},
    {"idempotencyKey", FIELD(WORD, key), .words = key_words,
     .sentence = "the effect of an Idempotency-Key: optional: it allows retries; required: a POST without a key is refused; off: keys are ignored; enforced: no key is executed twice"},
    {"keyScope", FIELD(KEY_SCOPE, key_scope),
     .sentence = "the owner of an Idempotency-Key: only requests with the same values of these fields get its answer"},
    {"replay", FIELD(BOOLEAN, replay),
     .sentence = "false: the body of a request is not kept for a retry, but streamed from its first byte"},
    {"expectContinue", FIELD(BOOLEAN, expect_continue),
     .sentence = "true: a POST that may not be repeated sends its body only after the host answered 100, so that no POST is lost when the host restarts"},
    {"retryMode", .type = TYPE_RETRY_MODE, .words = retry_modes,
     .sentence = "AWS's modes: standard is budget aws with full jitter, adaptive adds the client rate limit"},
    {"budget.kind", FIELD(BUDGET_KIND, policy.budget.kind), .words = schema_budget_kinds,
     .sentence = "how retries are paid for"},
    {"budget.percent", FIELD(PERCENT, policy.budget.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "earned: the part of a token that a success earns; ratio: retries per first attempt; concurrency: retries per call in progress"},
    {"budget.start", FIELD(DECIMAL, policy.budget.start), RANGE(0, 1000 * (uint64_t)MILLION), .scale = MILLION,
     .sentence = "earned: the tokens at the start"},
    {"budget.neverSentCost", FIELD(DECIMAL, policy.budget.never_sent_cost), RANGE(1, MILLION), .scale = MILLION,
     .sentence = "earned: the price of a retry after an attempt that was never sent"},
    {"budget.window", FIELD(DURATION, policy.budget.window), RANGE(BECALM_S, HOUR),
     .sentence = "ratio, adaptive: the time over which retries and first attempts are counted"},
    {"budget.minPerSecond", FIELD(INTEGER, policy.budget.min_per_second), RANGE(0, MILLION),
     .sentence = "ratio: retries per second that are always allowed, in every instance"},
    {"budget.of", FIELD(EITHER, policy.budget.of_attempts), .words = of_words,
     .sentence = "ratio: retries are a share of first attempts, or of all attempts as in the SRE book"},
    {"budget.minConcurrency", FIELD(INTEGER, policy.budget.min_concurrency), RANGE(0, MILLION),
     .sentence = "concurrency: retries in progress that are always allowed"},
    {"budget.minPercent", FIELD(PERCENT, policy.budget.min_share_ppm), RANGE(0, PPM_MAX),
     .sentence = "adaptive: the share of retries when nothing succeeds"},
    {"budget.maxPercent", FIELD(PERCENT, policy.budget.max_share_ppm), RANGE(0, PPM_MAX),
     .sentence = "adaptive: the share of retries when everything succeeds"},
    {"budget.capacity", FIELD(INTEGER, policy.budget.capacity), RANGE(1, MILLION),
     .sentence = "tokens, aws: the maximum number of tokens"},
    {"budget.refillPerSecond", FIELD(INTEGER, policy.budget.refill_per_second), RANGE(0, MILLION),
     .sentence = "tokens: how many tokens are added per second"},
    {"budget.refillEvery", FIELD(DURATION, policy.budget.refill_every), RANGE(0, DAY),
     .sentence = "tokens: the time after which one token is added, instead of refillPerSecond: 6m for ten an hour"},
    {"budget.maxTokens", FIELD(DECIMAL, policy.budget.max_tokens_milli), RANGE(1, MILLION), .scale = 1000,
     .sentence = "grpc: the maximum number of tokens; a failure takes one, and retries stop at half"},
    {"budget.tokenRatio", FIELD(DECIMAL, policy.budget.token_ratio_milli), RANGE(1, MILLION), .scale = 1000,
     .sentence = "grpc: the tokens that a success gives back"},
    {"budget.retryCost", FIELD(INTEGER, policy.budget.retry_cost), RANGE(1, MILLION),
     .sentence = "aws: the price of a retry"},
    {"budget.timeoutCost", FIELD(INTEGER, policy.budget.timeout_cost), RANGE(1, MILLION),
     .sentence = "aws: the price of a retry after a timeout"},
    {"budget.level", FIELD(WORD, level), .words = level_words,
     .sentence = "whether an endpoint has its own budget, shares the budget of its service, or needs both"},
    {"budget.shared.redis", FIELD(REDIS, shared_redis), .word = "none",
     .sentence = "the store of a budget that all instances share; a retry needs a token of it and of the instance's own budget"},
    {"budget.shared.percent", FIELD(PERCENT, policy.lease.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "retries per first attempt, for all instances together"},
    {"limit.kind", FIELD(LIMIT_KIND, policy.limit.kind), .words = schema_limit_kinds,
     .sentence = "how the number of attempts in flight is limited"},
    {"limit.min", FIELD(INTEGER, policy.limit.min), RANGE(1, MILLION),
     .sentence = "the smallest limit"},
    {"limit.max", FIELD(INTEGER, policy.limit.max), RANGE(1, MILLION),
     .sentence = "the largest limit; fixed: the limit"},
    {"limit.maxAnswers", FIELD(INTEGER, policy.limit.max_answers), RANGE(1, MILLION),
     .sentence = "how many attempts in flight and answers in progress, such as open streams, there may be together"},
    {"gate.targetQueueTime", FIELD(DURATION, policy.gate.target_wait), RANGE(BECALM_US, HOUR),
     .sentence = "a call that waited longer is dropped while the queue stays full"},
    {"gate.maxQueueTime", FIELD(DURATION, policy.gate.max_wait), RANGE(BECALM_US, HOUR),
     .sentence = "the longest time that a call waits in the gate; the default is extended to half of the attempt's timeout if that is longer (in a caller, to twice the usual time of an answer), and to a quarter of the time to the deadline where no attemptTimeout is written"},
    {"gate.minQueue", FIELD(INTEGER, policy.gate.min_queue), RANGE(0, MILLION),
     .sentence = "while fewer calls than this wait, none is dropped because of targetQueueTime"},
    {"gate.maxQueue", FIELD(INTEGER, policy.gate.max_queue), RANGE(0, MILLION),
     .sentence = "how many calls may wait in the gate"},
    {"gate.cpuThreshold", FIELD(PERCENT, policy.gate.cpu_threshold_ppm), RANGE(1, PPM_MAX), .word = "off",
     .sentence = "calls are shed above this share of the machine's CPU"},
    {"gate.retryAfter", FIELD(DURATION, policy.gate.retry_after), RANGE(0, HOUR),
     .sentence = "the Retry-After of an answer to a call that was shed"},
    {"breaker.preset", .type = TYPE_PRESET, .words = preset_words,
     .sentence = "another library's defaults for all of `breaker`"},
    {"breaker.enabled", FIELD(BOOLEAN, policy.breaker.enabled),
     .sentence = "whether there is a circuit breaker"},
    {"breaker.per", FIELD(EITHER, policy.breaker.per_attempt), .words = per_words,
     .sentence = "whether the breaker counts whole calls, or each attempt"},
    {"breaker.mode", FIELD(WORD, policy.breaker.mode), .words = breaker_modes,
     .sentence = "the breaker opens at a rate of failures, or after consecutive failures"},
    {"breaker.failureRateThreshold", FIELD(PERCENT, policy.breaker.failure_share_ppm), RANGE(1, PPM_MAX),
     .sentence = "rate: the breaker opens when this share of calls failed"},
    {"breaker.slowCallRateThreshold", FIELD(PERCENT, policy.breaker.slow_share_ppm), RANGE(1, PPM_MAX), .word = "off",
     .stands_for = BECALM_BREAKER_SLOW_OFF,
     .sentence = "rate: the breaker opens when this share of calls was slow"},
    {"breaker.slowCallDurationThreshold", FIELD(DURATION, policy.breaker.slow_after), RANGE(BECALM_MS, DAY),
     .sentence = "a call that takes this long is slow"},
    {"breaker.slidingWindowType", FIELD(WORD, policy.breaker.window_kind), .words = window_words,
     .sentence = "rate: the share is counted over the last calls, or over the last seconds"},
    {"breaker.slidingWindowSize", FIELD(INTEGER, policy.breaker.window_size), RANGE(1, MILLION),
     .sentence = "rate: the size of the window, in calls or in seconds"},
    {"breaker.minimumNumberOfCalls", FIELD(INTEGER, policy.breaker.min_calls), RANGE(1, MILLION),
     .sentence = "rate: the breaker never opens on fewer calls than this"},
    {"breaker.permittedNumberOfCallsInHalfOpenState", FIELD(INTEGER, policy.breaker.probes), RANGE(1, 65535),
     .sentence = "rate: how many probes a half-open breaker sends"},
    {"breaker.maxWaitDurationInHalfOpenState", FIELD(DURATION, policy.breaker.half_open_for), RANGE(BECALM_MS, DAY),
     .sentence = "a probe without a result after this time has failed"},
    {"breaker.waitDurationInOpenState", FIELD(DURATION, policy.breaker.open_for), RANGE(BECALM_MS, DAY),
     .sentence = "how long an open breaker refuses calls before it probes"},
    {"breaker.openMultiplier", FIELD(DECIMAL, policy.breaker.open_factor_ppm), RANGE(MILLION, 100 * MILLION),
     .scale = MILLION,
     .sentence = "the open time is multiplied by this with each opening in a row, up to 60s"},
    {"breaker.failureThreshold", FIELD(INTEGER, policy.breaker.failure_threshold), RANGE(1, 65535),
     .sentence = "consecutive: the breaker opens after this many failures in a row"},
    {"breaker.successThreshold", FIELD(INTEGER, policy.breaker.success_threshold), RANGE(1, 65535),
     .sentence = "consecutive: the breaker closes after this many successful probes"},
    {"throttle.enabled", FIELD(BOOLEAN, policy.throttle.enabled),
     .sentence = "whether a caller whose calls are rejected stops sending some of them"},
    {"throttle.k", FIELD(DECIMAL, policy.throttle.k_milli), RANGE(1000, 100000), .scale = 1000,
     .sentence = "how many requests may be sent for each accepted one before the throttle rejects calls"},
    {"throttle.window", FIELD(DURATION, policy.throttle.window), RANGE(BECALM_S, HOUR),
     .sentence = "the time over which requests and accepted requests are counted"},
    {"rate.enabled", FIELD(BOOLEAN, policy.rate.enabled),
     .sentence = "AWS's adaptive client rate limit, which reacts to 429 and 503"},
    {"hedge.enabled", FIELD(BOOLEAN, policy.hedge.enabled),
     .sentence = "whether a second attempt is sent beside a slow one, instead of a retry after it"},
    {"hedge.delay", FIELD(HEDGE_DELAY, policy.hedge), RANGE(BECALM_US, HOUR),
     .sentence = "when the second attempt is sent: after a fixed time, or at a measured quantile such as p95"},
    {"hedge.max", FIELD(INTEGER, policy.hedge.max), RANGE(1, BECALM_SLOTS - 1),
     .sentence = "how many hedges a call may send"},
    {"hedge.percent", FIELD(PERCENT, policy.hedge.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "the part of a hedge that a success earns"},
    {"hedge.cap", FIELD(DECIMAL, policy.hedge.cap), RANGE(MILLION, 1000 * (uint64_t)MILLION), .scale = MILLION,
     .sentence = "how many hedges may be saved up"},
    {"hedge.nonFatal", FIELD(NON_FATAL, policy.hedge.non_fatal),
     .sentence = "failures after which the next hedge is sent at once; any other failure ends the call"},
    {"outlier.enabled", FIELD(BOOLEAN, policy.outlier.enabled),
     .sentence = "whether failing hosts are ejected for a while"},
    {"outlier.failureRateThreshold", FIELD(PERCENT, policy.outlier.failure_share_ppm), RANGE(1, PPM_MAX),
     .sentence = "a host is ejected when this share of its results failed"},
    {"outlier.minimumNumberOfCalls", FIELD(INTEGER, policy.outlier.min_calls), RANGE(1, MILLION),
     .sentence = "a host with fewer results than this is not ejected"},
    {"outlier.window", FIELD(DURATION, policy.outlier.window), RANGE(100 * BECALM_MS, HOUR),
     .sentence = "the time over which the results of a host are counted"},
    {"outlier.consecutive5xxErrors", FIELD(INTEGER, policy.outlier.consecutive), RANGE(0, MILLION),
     .sentence = "as in Istio: a host is ejected after this many failures in a row; 0: by rate"},
    {"outlier.interval", FIELD(DURATION, policy.outlier.interval), RANGE(BECALM_MS, DAY),
     .sentence = "after this time without failures, one earlier ejection of a host no longer counts"},
    {"outlier.baseEjectionTime", FIELD(DURATION, policy.outlier.base_ejection), RANGE(BECALM_MS, 300 * BECALM_S),
     .sentence = "how long a host is ejected, multiplied by the number of its ejections"},
    {"outlier.maxEjectionPercent", FIELD(PERCENT, policy.outlier.max_ejected_ppm), RANGE(0, PPM_MAX),
     .sentence = "the largest share of hosts that are ejected at once"},
    {"restart.enabled", FIELD(BOOLEAN, policy.restart.enabled),
     .sentence = "whether calls wait for a host that restarts, while no host accepts connections"},
    {"fallback.on", FIELD(WORDS, fallback.on), .words = fallback_words,
     .sentence = "when the fallback answers: open: the breaker is open; shed: the call was refused here; failed: no retry is left"},
    {"fallback.service", FIELD(TEXT, fallback.service), .word = "none",
     .sentence = "a service that gets the request instead, unless the request might then be executed twice"},
    {"fallback.status", FIELD(INTEGER, fallback.status), RANGE(200, 599), .word = "none",
     .sentence = "the status of an answer that is written in the policy, used if no service answers"},
    {"fallback.headers", FIELD(LIST, fallback.headers), .sentence = "the header fields of that answer: [\"content-type: application/json\"]"},
    {"fallback.body", FIELD(TEXT, fallback.body), .word = "none", .sentence = "the body of that answer"},
    {"mode", FIELD(EITHER, policy.shadow), .words = mode_words,
     .sentence = "shadow: decisions are counted, but not carried out"},
};
#undef ROW

#define MATCH_ROWS \
    {"match.host", FIELD(HOST, match.host), .sentence = "the host of the request, or a list of hosts"}, \
    {"match.prefix", FIELD(PATH, match.prefix), .sentence = "the beginning of the path, up to the end of a segment"}, \
    {"match.start", FIELD(PATH, match.start), .sentence = "the beginning of the path, also up to the middle of a segment"}, \
    {"match.path", FIELD(PATH, match.path), .sentence = "the whole path"}, \
    {"match.method", FIELD(METHOD, match.method), .sentence = "the method"}, \
    {"match.header", FIELD(HEADER, match), .sentence = "a header and its value"}

#define ROW becalm_service
static const struct schema_key service[] = {
    {"hosts", FIELD(HOSTS, hosts), .sentence = "the addresses of the service"},
    {"unlisted", FIELD(EITHER, unlisted), .words = unlisted_words,
     .sentence = "pass: requests go to the host that they name, if match.host allows it; default: refuse, requests go only to the written hosts"},
    {"listen", FIELD(LISTEN_OWN, listen), .sentence = "addresses that lead to this service alone, with any host and path"},
    MATCH_ROWS,
    {"replacePrefix", FIELD(PATH, replace_prefix), .sentence = "the prefix that hosts get instead of match.prefix; / removes it"},
    {"send", FIELD(WORDS, send), .words = send_words,
     .sentence = "which of the gateway's own header fields are sent to the hosts; []: none, for hosts of other owners"},
    {"healthCheck.kind", FIELD(WORD, health_check.kind), .words = health_kinds,
     .sentence = "how the gateway checks the hosts, independent of calls; http if path is set, else off"},
    {"healthCheck.path", FIELD(PATH, health_check.path), .sentence = "http: the path of the GET request"},
    {"healthCheck.host", FIELD(TEXT, health_check.host), .sentence = "http, grpc: the Host of the request; default: the host as it is written"},
    {"healthCheck.grpcService", FIELD(TEXT, health_check.grpc_service), .sentence = "grpc: the service whose health is asked for; default: the whole server"},
    {"healthCheck.statuses", FIELD(STATUSES, health_check.status), .sentence = "http: the statuses of a healthy host: 200, 200-299 or 2xx; default: 200-399"},
    {"healthCheck.interval", FIELD(DURATION, health_check.interval), RANGE(100 * BECALM_MS, DAY), .sentence = "the time between two checks, plus or minus a tenth; default: 5s"},
    {"healthCheck.timeout", FIELD(DURATION, health_check.timeout), RANGE(BECALM_MS, HOUR), .sentence = "how long a check may take; default: 1s"},
    {"healthCheck.unhealthyThreshold", FIELD(INTEGER, health_check.unhealthy), RANGE(1, 1000),
     .sentence = "after this many failures in a row a host gets no calls; default: 3"},
    {"healthCheck.healthyThreshold", FIELD(INTEGER, health_check.healthy), RANGE(1, 1000),
     .sentence = "after this many successes in a row a host gets calls again; default: 2"},
    {"calls", FIELD(LIST, calls), .sentence = "the services that this service calls"},
    {"traffic", FIELD(RATE, traffic_milli), RANGE(1, UINT64_MAX / 2), .sentence = "calls per second, from all instances together"},
    {"instances", FIELD(INTEGER, instances), RANGE(1, MILLION), .sentence = "how many instances call this service"},
    {"protocol", FIELD(WORD, protocol), .words = protocol_words,
     .sentence = "the protocol for hosts; auto: over TLS HTTP/2 if the host offers it, else HTTP/1"},
    {"proxyProtocol", FIELD(WORD, introduction), .words = introduction_words,
     .sentence = "v1, v2: each connection to a host begins with a PROXY protocol header with the client's address; it speaks HTTP/1 and serves one client"},
    {"tls.serverName", FIELD(TEXT, tls.server_name), .sentence = "the name that the certificate of a host must have; default: the host's own name"},
    {"tls.ca", FIELD(FILE, tls.ca), .sentence = "the CA that signs the certificates of the hosts; default: the CAs that the system trusts"},
    {"tls.cert", FIELD(FILE, tls.cert), .sentence = "the gateway's certificate, for hosts that ask for one"},
    {"tls.key", FIELD(FILE, tls.key), .sentence = "the private key of tls.cert"},
    {"tls.verify", FIELD(WORD, tls.verify), .words = verify_words,
     .sentence = "whether the certificates of hosts are verified; none: any server that answers is trusted"},
};
#undef ROW

#define ROW becalm_listener
static const struct schema_key listener[] = {
    {"address", FIELD(ADDRESS, address), .sentence = "the address that the listener listens on"},
    {"tls.certificates", .type = TYPE_CERTIFICATES, .sentence = "the certificates of the listener, each with its key; a client that asks for an unknown name gets the first"},
    {"tls.clientCa", FIELD(FILE, client_ca), .sentence = "the CA that signs the certificates of clients"},
    {"tls.clientAuth", FIELD(WORD, client_auth), .words = client_auth_words,
     .sentence = "whether clients must show a certificate; default: required with clientCa, else none"},
    {"tls.minVersion", FIELD(WORD, min_version), .words = tls_versions, .sentence = "the oldest version of TLS that is accepted"},
    {"tls.strictSni", FIELD(BOOLEAN, strict_sni),
     .sentence = "true: a client that names no host, or a host without a certificate, is refused; false: it gets the first certificate"},
    {"tls.ticketKeysFile", FIELD(FILE, ticket_keys),
     .sentence = "the keys of session tickets, for replicas that resume each other's sessions; default: random keys"},
    {"protocols", .type = TYPE_PROTOCOLS, .sentence = "the versions of HTTP that are accepted"},
    {"proxyProtocol", FIELD(BOOLEAN, proxy_protocol),
     .sentence = "true: each connection begins with a PROXY protocol header, version 1 or 2, with the client's address"},
    {"role", FIELD(WORD, role_written), .words = listener_roles,
     .sentence = "the role of this instance for clients of this listener; auto: the policy's role"},
    {"unlisted", FIELD(WORD, unlisted_written), .words = listener_unlisted,
     .sentence = "whether this listener accepts requests for services with unlisted: pass; auto: loopback addresses and Unix sockets do in role sidecar"},
};
#undef ROW

#define ROW becalm_certificate
static const struct schema_key certificate[] = {
    {"cert", FIELD(FILE, cert), .sentence = "a chain of certificates in PEM, the server's own certificate first"},
    {"key", FIELD(FILE, key), .sentence = "the private key of cert, in PEM"},
};
#undef ROW

#define ROW becalm_endpoint
static const struct schema_key endpoint[] = {MATCH_ROWS};
#undef ROW

#define ROW becalm_settings
static const struct schema_key settings[] = {
    {"listen", FIELD(LISTEN, listen), .sentence = "the addresses that the gateway listens on"},
    {"admin", FIELD(ADMIN, admin), .word = "none",
     .sentence = "the address of metrics, health and the dashboard; none: they are off"},
    {"adminTokenFile", FIELD(FILE, admin_token), .sentence = "a file with the bearer token for the admin address"},
    {"role", FIELD(WORD, role), .words = role_words, .sentence = "whether this instance is a gateway that many clients share, or the sidecar of one program"},
    {"gatewayRetries", FIELD(BOOLEAN, gateway_retries), .sentence = "false: in role gateway no call is retried or hedged"},
    {"workers", FIELD(INTEGER, workers), RANGE(1, 64), .word = "auto", .sentence = "the number of threads; auto: one per CPU that the process may use, by affinity and the CPU quota of its cgroup"},
    {"trust", FIELD(NETWORKS, trust), .sentence = "the peers whose deadline, attempt and mark headers are accepted"},
    {"forwarded", FIELD(WORD, forwarded), .words = forwarded_words,
     .sentence = "which header fields tell hosts about the client; auto: all in role gateway, off in role sidecar"},
    {"join", FIELD(WORDS, join), .words = join_words,
     .sentence = "the ids by which outgoing calls are joined to incoming requests, if listeners have both roles; []: none"},
    {"clientKey", FIELD(CLIENT_KEY, client_key), .word = "address",
     .sentence = "how clients behind trusted peers are told apart: address, certificate or header:NAME"},
    {"log.level", FIELD(WORD, log_level), .words = log_levels, .sentence = "how much is logged"},
    {"log.format", FIELD(WORD, log_format), .words = log_formats, .sentence = "the format of log lines"},
    {"log.access", FIELD(WORD, log_access), .words = log_accesses, .sentence = "the access log, with one line per request"},
    {"log.query", FIELD(BOOLEAN, log_query), .sentence = "true: the access log and /api/decisions show the query of a URL"},
    {"drain.delay", FIELD(DURATION, drain_delay), RANGE(0, HOUR), .sentence = "how long a draining gateway still accepts connections"},
    {"drain.limit", FIELD(DURATION, drain_limit), RANGE(0, DAY), .sentence = "after how long a draining gateway exits, even with requests in progress"},
    {"headerTimeout", FIELD(DURATION, header_timeout), RANGE(BECALM_MS, HOUR), .sentence = "how long the head of a request may take to arrive"},
    {"bodyTimeout", FIELD(DURATION, body_timeout), RANGE(BECALM_MS, DAY), .word = "none", .stands_for = BECALM_NEVER,
     .sentence = "how long each 16 KiB of a request's body may take to arrive"},
    {"idleTimeout", FIELD(DURATION, idle_timeout), RANGE(BECALM_MS, DAY), .sentence = "how long a connection may be silent"},
    {"streamIdleTimeout", FIELD(DURATION, stream_idle_timeout), RANGE(BECALM_MS, DAY), .word = "auto",
     .sentence = "how long an answer that is an event stream may be silent; auto: 5m, or idleTimeout if that is longer"},
    {"tunnelIdleTimeout", FIELD(DURATION, tunnel_idle_timeout), RANGE(BECALM_MS, DAY), .word = "auto",
     .sentence = "how long a tunnel (WebSocket, another upgrade, CONNECT) may be silent; auto: 1h, or idleTimeout if that is longer"},
    {"maxConnections", FIELD(INTEGER, max_connections), RANGE(1, 10 * MILLION), .sentence = "how many connections of clients may be open at once"},
    {"maxConnectionsPerClient", FIELD(INTEGER, max_connections_per_client), RANGE(1, 10 * MILLION), .word = "none",
     .sentence = "how many connections of one client may be open at once"},
    {"maxHeaderBytes", FIELD(SIZE, max_header_bytes), RANGE(256, BECALM_HEADER_BYTES_MAX), .sentence = "how large the head of a request may be, at most 64KiB"},
    {"maxBody", FIELD(SIZE, max_body), RANGE(0, UINT64_C(1) << 62), .word = "none", .stands_for = UINT64_MAX,
     .sentence = "how large a request's body may be"},
    {"maxBuffered", FIELD(SIZE, max_buffered), RANGE(1 << 20, UINT64_C(1) << 40), .word = "auto",
     .sentence = "how many bytes may wait in memory for slow clients and hosts; auto: a quarter of the cgroup's memory, 256MiB without a memory limit"},
    {"replay.perRequest", FIELD(SIZE, replay_per_request), RANGE(0, 1 << 30), .sentence = "the largest request body that is kept for a retry"},
    {"replay.total", FIELD(SIZE, replay_total), RANGE(0, UINT64_C(1) << 40), .sentence = "how many bytes of request bodies are kept for retries, in all"},
    {"upgrades", FIELD(LIST, upgrades), .sentence = "the protocols that a connection may be upgraded to"},
    {"connect", FIELD(BOOLEAN, connect), .sentence = "whether CONNECT is tunnelled"},
    {"paths", FIELD(WORD, paths), .words = path_words, .sentence = "whether all spellings of a path must lead to the same target"},
    {"maxTunnels", FIELD(INTEGER, max_tunnels), RANGE(1, 10 * MILLION), .word = "auto",
     .sentence = "how many tunnels may be open at once; auto: half of maxConnections"},
    {"maxTunnelsPerHost", FIELD(INTEGER, max_tunnels_per_host), RANGE(1, 10 * MILLION), .word = "auto",
     .sentence = "how many tunnels to one host may be open at once; auto: pool.maxPerHost, or 1024 if that is auto, too"},
    {"pool.maxPerHost", FIELD(INTEGER, pool_max_per_host), RANGE(1, MILLION), .word = "auto",
     .sentence = "how many connections to one host may be open; auto: as many as limit allows, of which 1024 are kept when idle"},
    {"pool.idle", FIELD(DURATION, pool_idle), RANGE(0, DAY), .sentence = "how long an idle connection is kept"},
    {"pool.streams", FIELD(INTEGER, pool_streams), RANGE(1, 1000),
     .sentence = "how many calls share one HTTP/2 connection to a host, if the host allows as many"},
    {"http2.streams", FIELD(INTEGER, http2_streams), RANGE(1, 1000), .sentence = "how many requests a client may have in progress on one HTTP/2 connection"},
    {"http2.window", FIELD(SIZE, http2_window), RANGE(1 << 10, 2 << 20),
     .sentence = "how many bytes of one body may wait in the gateway, for each HTTP/2 stream of a client or a host"},
    {"idempotencyStore.ttl", FIELD(DURATION, store_ttl), RANGE(BECALM_S, 365 * DAY), .sentence = "how long an answer is kept for its key"},
    {"idempotencyStore.maxEntries", FIELD(INTEGER, store_max_entries), RANGE(1, 100 * MILLION), .sentence = "how many answers are kept"},
    {"idempotencyStore.maxBytes", FIELD(SIZE, store_max_bytes), RANGE(1, UINT64_C(1) << 40), .sentence = "how many bytes of answers are kept"},
    {"idempotencyStore.redis", FIELD(EITHER, keys.shared), .words = place_words,
     .sentence = "inherit: keys are in the Redis of `store`, shared by all gateways of the fleet; none: each gateway keeps its keys in memory"},
    {"idempotencyStore.secretFile", FIELD(FILE, keys.secret_file),
     .sentence = "with redis: a file whose first line is a secret that all gateways share; Redis gets keys only as hashes with this secret"},
    {"idempotencyStore.encryptFile", FIELD(FILE, keys.encrypt_file),
     .sentence = "with redis: a file with AES-256 keys that encrypt the stored answers; default: answers are not encrypted"},
    {"idempotencyStore.maxAnswer", FIELD(SIZE, keys.max_answer), RANGE(0, 64 * 1024), .sentence = "with redis: the largest body of an answer that is kept"},
    {"idempotencyStore.timeout", FIELD(DURATION, keys.timeout), RANGE(BECALM_MS, 60 * BECALM_S), .sentence = "with redis: how long a call waits for Redis to answer about its key"},
    {"idempotencyStore.lease", FIELD(DURATION, keys.lease), RANGE(BECALM_S, HOUR),
     .sentence = "with redis: a gateway that holds a key and does not renew it for this long is taken for dead"},
    {"idempotencyStore.replicas", FIELD(INTEGER, keys.replicas), RANGE(0, 16),
     .sentence = "with redis: how many replicas of Redis must have an enforced key before its call is sent"},
    {"idempotencyStore.fence", FIELD(BOOLEAN, keys.fence),
     .sentence = "with redis: hosts get becalm-key-fence, a number that is higher each time a key is started again"},
    {"idempotencyStore.onAway", FIELD(WORD, keys.away), .words = away_words,
     .sentence = "with redis, when Redis does not answer: refuse the call, keep its key in local memory, or let the call pass; auto: refuse for enforced keys, local for others"},
    {"fleet", FIELD(TEXT, fleet), .sentence = "the name of the group of instances that share the store"},
    {"store.redis", FIELD(REDIS, store.redis), .word = "none",
     .sentence = "the Redis that the instances share: redis://host:6379/0, rediss:// with TLS, redis+unix:///path; several hosts, and ?sentinel=NAME"},
    {"store.user", FIELD(TEXT, store.user), .sentence = "the user name at the store"},
    {"store.passwordFile", FIELD(FILE, store.password_file), .sentence = "a file with the password, read for each connection"},
    {"store.passwordEnv", FIELD(TEXT, store.password_env), .sentence = "an environment variable with the password"},
    {"store.timeout", FIELD(DURATION, store.timeout), RANGE(10 * BECALM_MS, 60 * BECALM_S), .sentence = "how long the store may take to connect and to answer"},
    {"store.ca", FIELD(FILE, store.tls.ca), .sentence = "the CA that signs the certificate of the store; default: the CAs that the system trusts"},
    {"store.cert", FIELD(FILE, store.tls.cert), .sentence = "the gateway's certificate, if the store asks for one"},
    {"store.key", FIELD(FILE, store.tls.key), .sentence = "the private key of store.cert"},
    {"store.serverName", FIELD(TEXT, store.tls.server_name), .sentence = "the name that the certificate of the store must have; default: the host's own name"},
    {"store.verify", FIELD(WORD, store.tls.verify), .words = verify_words,
     .sentence = "whether the certificate of the store is verified; none: any server that answers is trusted"},
    {"tracing.endpoint", FIELD(TEXT, tracing.endpoint), .word = "none",
     .sentence = "a collector that accepts OTLP over HTTP: http://host:4318; with a collector, traces are continued or started, and calls and attempts have spans"},
    {"tracing.headers", FIELD(LIST, tracing.headers), .sentence = "header fields for the collector: [\"name: value\"]"},
    {"tracing.service", FIELD(TEXT, tracing.service), .sentence = "the service.name of the spans"},
    {"tracing.sample", FIELD(PERCENT, tracing.share_ppm), RANGE(0, PPM_MAX),
     .sentence = "the share of traces started here that are sampled; a continued traceparent has its own sampling decision"},
    {"tracing.parent", FIELD(WORD, tracing.parent), .words = trace_parents,
     .sentence = "whose traceparent is continued: of all peers, of peers in trust, or of none; requests of other peers start a new trace"},
    {"tracing.timeout", FIELD(DURATION, tracing.timeout), RANGE(10 * BECALM_MS, 60 * BECALM_S), .sentence = "how long the collector may take for one export"},
    {"tracing.ca", FIELD(FILE, tracing.tls.ca), .sentence = "the CA that signs the collector's certificate; default: the CAs that the system trusts"},
    {"tracing.cert", FIELD(FILE, tracing.tls.cert), .sentence = "the gateway's certificate, if the collector asks for one"},
    {"tracing.key", FIELD(FILE, tracing.tls.key), .sentence = "the private key of tracing.cert"},
    {"tracing.verify", FIELD(WORD, tracing.tls.verify), .words = verify_words,
     .sentence = "whether the collector's certificate is verified; none: any server that answers is trusted"},
    {"explain", FIELD(BOOLEAN, explain), .sentence = "true: every answer has the decision record in a header"},
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
