/* SPDX-License-Identifier: MIT */
#include "traefik_middleware.h"

#include "policy/import/dialect.h"

#include <string.h>

#define PASSED_ON   "requests are passed on unchanged"
#define OWN_ANSWER  "Becalm sends neither redirects nor fixed answers"
#define NOT_ABOUT   NOTE "it is not about retries"
#define MILLION     1000000u
#define APPLICATION "an error of the application (500) is retried once per call"

/* ---- retry ---- */

/* Where no answer comes, Traefik answers with 502, and after a timeout with 504: these are statuses as well. */
static void own_answers_add(struct source_list *on, uint64_t low, uint64_t high)
{
    if (low <= 502 && high >= 502) {
        source_list_add(on, "connect-failure");
        source_list_add(on, "refused-stream");
        source_list_add(on, "reset");
    }
    if (low <= 504 && high >= 504) {
        source_list_add(on, "timeout");
    }
}

/* "503", "500-504": as retryOn. True if 500 is among them. */
static bool statuses_add(struct source *s, struct source_list *on, const struct from *list)
{
    bool application = false;
    for (uint32_t i = 0; list->node != NULL && source_is(s, list, YAML_SEQUENCE) && i < list->node->count; i++) {
        const struct from item = {list->node->item[i], list->path, NULL};
        const char *text = source_text(s, &item);
        const char *dash = text == NULL ? NULL : strchr(text, '-');
        uint64_t low = 0;
        uint64_t high = 0;
        if (text == NULL) {
            continue;
        }
        const char *first = dash == NULL ? text : emit_text(s->emit, "%.*s", (int)(dash - text), text);
        if (!value_integer(first, &low) || !value_integer(dash == NULL ? text : dash + 1, &high) || low < 100 ||
            high > 599) {
            source_error(s, item.node, "bad-value", "%s: \"%.64s\" is no status", item.path, text);
            continue;
        }
        if (low < 400) {
            source_no_equal(s, NULL, &item, "only statuses from 400 to 599 are failures");
            low = 400;
        }
        application = application || (low <= 500 && high >= 500);
        own_answers_add(on, low, high);
        if (low <= 500 && high == 599) {
            source_list_add(on, "5xx");
            high = 499;
        }
        for (; low <= high; low++) {
            source_list_add(on, emit_text(s->emit, "%u", (unsigned)low));
        }
    }
    return application;
}

/* The root of 2 that grows to it in `steps` steps, in millionths, rounded down. */
static uint64_t root_of_two(uint64_t steps)
{
    uint64_t low = MILLION;
    uint64_t high = 2 * (uint64_t)MILLION + 1;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        uint64_t power = MILLION;
        for (uint64_t i = 0; i < steps && power <= 2 * (uint64_t)MILLION; i++) {
            power = power * middle / MILLION;
        }
        *(power <= 2 * (uint64_t)MILLION ? &low : &high) = middle;
    }
    return low;
}

static void waits_put(struct source *s, struct emit_target *rules, const struct from *interval,
                      const struct from *count, uint64_t attempts)
{
    becalm_ns first = 0;
    struct from from = *interval;
    if (interval->node == NULL || !source_duration(s, interval, &first) || first == 0) {
        from = (struct from){count->node, count->path, "without an initialInterval Traefik does not wait"};
        source_put_duration(s, rules, "initialDelay", 0, &from);
        return;
    }
    source_put_duration(s, rules, "initialDelay", first, &from);
    from.remark = "the waits at most double over all attempts";
    source_put_duration(s, rules, "maxDelay", first > BECALM_NEVER / 3 ? BECALM_NEVER : first * 3, &from);
    source_put_decimal(s, rules, "multiplier", root_of_two(attempts - 1), MILLION, &from);
    from.remark = "half of a wait is random";
    source_put_word(s, rules, "jitter", "proportional", &from);
    source_put_word(s, rules, "jitterFactor", "0.5", &from);
}

static void retry_put(struct source *s, struct emit_target *rules, const struct from *block)
{
    static const struct field fields[] = {
        {"attempts", NULL},
        {"initialInterval", NULL},
        {"status", NULL},
        {"disableRetryOnNetworkError", NULL},
        {"retryNonIdempotentMethod", NULL},
        {"timeout", "it ends the retrying, not the attempt that runs; write a deadline"},
        {"maxRequestBodyBytes", NOTE "see requestBuffer"},
        {NULL, NULL}};
    const struct from count = {source_get(block->node, "attempts"), "retry.attempts", NULL};
    const struct from interval = {source_get(block->node, "initialInterval"), "retry.initialInterval", NULL};
    const struct from status = {source_get(block->node, "status"), "retry.status", NULL};
    const struct from off = {source_get(block->node, "disableRetryOnNetworkError"), "retry.disableRetryOnNetworkError",
                             NULL};
    const struct from every = {source_get(block->node, "retryNonIdempotentMethod"), "retry.retryNonIdempotentMethod",
                               NULL};
    struct source_list on = {.emit = s->emit};
    uint64_t attempts = 0;
    bool no_network = false;
    bool all_methods = false;
    source_rest(s, rules, block->node, "retry", fields);
    if (!source_integer(s, &count, &attempts) || attempts == 0) {
        source_no_equal(s, rules, block, "it has no attempts, which Traefik refuses; it is left out");
        return;
    }
    source_put_integer(s, rules, "maxRetries", attempts - 1, &count);
    if (attempts == 1) {
        return;
    }
    if (!(source_boolean(s, &off, &no_network) && no_network)) {
        source_list_add(&on, "connect-failure");
        source_list_add(&on, "refused-stream");
    }
    if (statuses_add(s, &on, &status) && attempts > 2) {
        source_no_equal(s, rules, &status, APPLICATION);
    }
    const struct from never_sent = {block->node, "retry", "what was sent is not repeated"};
    source_put_list(s, rules, "retryOn", &on, status.node != NULL ? &status : &never_sent);
    if (source_boolean(s, &every, &all_methods) && all_methods) {
        source_put_word(s, rules, "idempotent", "true", &every);
    }
    waits_put(s, rules, &interval, &count, attempts);
}

/* ---- buffering ---- */

/* IsNetworkError() && Attempts() < 3, and no other expression. */
static void expression_retry(struct source *s, struct emit_target *rules, const struct from *from)
{
    const char *text = source_text(s, from);
    const char *attempts = text == NULL ? NULL : strstr(text, "Attempts()");
    if (text == NULL) {
        return;
    }
    const char *c = attempts == NULL ? "" : attempts + strlen("Attempts()");
    c += strspn(c, " ");
    bool below = *c == '<';
    bool equal = below && c[1] == '=';
    c += below + equal;
    c += strspn(c, " ");
    size_t digits = strspn(c, "0123456789");
    uint64_t number = 0;
    bool plain = strncmp(text, "IsNetworkError() && Attempts()", 30) == 0 && below && c[digits] == '\0' &&
                 value_integer(emit_text(s->emit, "%.*s", (int)digits, c), &number);
    if (!plain || number == 0) {
        source_no_equal(s, rules, from, "only IsNetworkError() && Attempts() < N is read; it is left out");
        return;
    }
    number = equal ? number : number - 1;
    source_put_integer(s, rules, "maxRetries", number > 10 ? 10 : number, from);
    source_put_word(s, rules, "retryOn", "[connect-failure, refused-stream, reset, timeout, 502, 504]", from);
    source_put_duration(s, rules, "initialDelay", 0, from);
    source_put_word(s, rules, "idempotent", "true",
                    &(struct from){from->node, from->path, "Traefik repeats every method"});
}

static void buffering_put(struct source *s, struct emit_target *rules, const struct from *block)
{
    const struct from expression = {source_get(block->node, "retryExpression"), "buffering.retryExpression", NULL};
    if (expression.node != NULL) {
        expression_retry(s, rules, &expression);
    }
}

/* ---- circuitBreaker ---- */

/* One comparison, "NAME(arguments) > number". False: it is something else. */
struct comparison {
    const char *name;
    const char *arguments;
    uint64_t bound; /* in millionths */
};

static bool comparison_read(struct source *s, const char *text, const struct from *from, struct comparison *out)
{
    const char *open = strchr(text, '(');
    const char *close = open == NULL ? NULL : strchr(open, ')');
    const char *more = close == NULL ? NULL : strchr(close, '>');
    if (more == NULL || close + 1 + strspn(close + 1, " ") != more) {
        return false;
    }
    const char *number = more + 1 + (more[1] == '=');
    number += strspn(number, " ");
    size_t length = strspn(number, "0123456789.");
    struct yaml_node *scalar = emit_take(s->emit, sizeof *scalar);
    if (length == 0 || number[length + strspn(number + length, " ")] != '\0' || scalar == NULL) {
        return false;
    }
    *scalar = (struct yaml_node){.kind = YAML_SCALAR, .line = from->node->line, .column = from->node->column};
    scalar->text = emit_text(s->emit, "%.*s", (int)length, number);
    scalar->length = length;
    text += strspn(text, " ");
    out->name = emit_text(s->emit, "%.*s", (int)(open - text), text);
    out->arguments = emit_text(s->emit, "%.*s", (int)(close - open - 1), open + 1);
    return source_decimal(s, &(struct from){scalar, from->path, NULL}, MILLION, &out->bound);
}

/* A bound that the breaker has. */
static bool bound_put(struct source *s, struct emit_target *rules, const struct comparison *c, const struct from *from)
{
    uint64_t quantile = 0;
    if (strcmp(c->name, "NetworkErrorRatio") == 0) {
        source_no_equal(s, rules, from, "every 5xx counts here, not only errors of the network");
        source_put_percent(s, rules, "breaker.failureRateThreshold", c->bound, from);
        return true;
    }
    if (strcmp(c->name, "ResponseCodeRatio") == 0 && strncmp(c->arguments, "500", 3) == 0) {
        source_put_percent(s, rules, "breaker.failureRateThreshold", c->bound, from);
        return true;
    }
    const char *whole = emit_text(s->emit, "%.*s", (int)strcspn(c->arguments, "."), c->arguments);
    if (strcmp(c->name, "LatencyAtQuantileMS") == 0 && value_integer(whole, &quantile) && quantile < 100) {
        source_put_percent(s, rules, "breaker.slowCallRateThreshold", (100 - quantile) * 10000, from);
        source_put_duration(s, rules, "breaker.slowCallDurationThreshold",
                            c->bound > BECALM_NEVER / 2 ? BECALM_NEVER / 2 : c->bound, from); /* ms x 10^6 are ns */
        return true;
    }
    return false;
}

static void breaker_put(struct source *s, struct emit_target *rules, const struct from *block)
{
    static const struct field fields[] = {{"expression", NULL},
                                          {"fallbackDuration", NULL},
                                          {"checkPeriod", NOTE "the breaker looks at each result"},
                                          {"recoveryDuration", NOTE "a breaker lets probes through, then all calls"},
                                          {"responseCode", NOTE "a refused request gets a 503"},
                                          {NULL, NULL}};
    const struct from expression = {source_get(block->node, "expression"), "circuitBreaker.expression", NULL};
    const struct from time = {source_get(block->node, "fallbackDuration"), "circuitBreaker.fallbackDuration", NULL};
    const char *text = expression.node == NULL ? NULL : source_text(s, &expression);
    bool known = text != NULL;
    source_rest(s, rules, block->node, "circuitBreaker", fields);
    for (const char *c = text; known && *c != '\0';) {
        struct comparison comparison;
        const char * or = strstr(c, "||");
        const char *part = or == NULL ? c : emit_text(s->emit, "%.*s", (int)(or -c), c);
        known = comparison_read(s, part, &expression, &comparison) && bound_put(s, rules, &comparison, &expression);
        c = or == NULL ? "" : or +2;
    }
    if (!known) {
        source_no_equal(s, rules, expression.node != NULL ? &expression : block,
                        "a breaker opens at a share of failures or of slow calls; it is left out");
        return;
    }
    const struct from unwritten = {block->node, "circuitBreaker", "Traefik's default"};
    source_put_word(s, rules, "breaker.slidingWindowType", "TIME_BASED", &unwritten);
    source_put_integer(s, rules, "breaker.slidingWindowSize", 10, &unwritten);
    source_put_integer(s, rules, "breaker.minimumNumberOfCalls", 1, &unwritten);
    if (time.node != NULL) {
        source_take_duration(s, rules, "breaker.waitDurationInOpenState", &time);
    } else {
        source_put_duration(s, rules, "breaker.waitDurationInOpenState", 10 * BECALM_S, &unwritten);
    }
}

/* ---- inFlightReq ---- */

static void in_flight_put(struct source *s, struct emit_target *rules, const struct from *block)
{
    const struct from amount = {source_get(block->node, "amount"), "inFlightReq.amount", NULL};
    const struct from criterion = {source_get(block->node, "sourceCriterion"), "inFlightReq.sourceCriterion", NULL};
    uint64_t most;
    if (criterion.node != NULL) {
        source_no_equal(s, rules, &criterion, "calls are limited for all clients together; it is left out");
    } else if (source_integer(s, &amount, &most)) {
        source_put_word(s, rules, "limit.kind", "fixed", &amount);
        source_put_integer(s, rules, "limit.max", most, &amount);
        source_put_integer(s, rules, "gate.maxQueue", 0, &amount);
    }
}

void traefik_middleware_put(struct source *s, struct emit_target *rules, const struct yaml_node *middleware)
{
    static const struct field fields[] = {{"retry", NULL},
                                          {"circuitBreaker", NULL},
                                          {"inFlightReq", NULL},
                                          {"buffering", NULL},
                                          {"chain", NULL},
                                          {"stripPrefix", PASSED_ON},
                                          {"stripPrefixRegex", PASSED_ON},
                                          {"addPrefix", PASSED_ON},
                                          {"replacePath", PASSED_ON},
                                          {"replacePathRegex", PASSED_ON},
                                          {"redirectScheme", OWN_ANSWER},
                                          {"redirectRegex", OWN_ANSWER},
                                          {"errors", OWN_ANSWER},
                                          {"headers", NOT_ABOUT},
                                          {"compress", NOT_ABOUT},
                                          {"rateLimit", NOTE "clients have no rates"},
                                          {"basicAuth", NOT_ABOUT},
                                          {"digestAuth", NOT_ABOUT},
                                          {"forwardAuth", NOT_ABOUT},
                                          {"ipAllowList", NOT_ABOUT},
                                          {"ipWhiteList", NOT_ABOUT},
                                          {"contentType", NOT_ABOUT},
                                          {"passTLSClientCert", NOT_ABOUT},
                                          {"grpcWeb", NOT_ABOUT},
                                          {"plugin", NOTE "Becalm has no plugins"},
                                          {NULL, NULL}};
    static const struct {
        const char *name;
        void (*put)(struct source *, struct emit_target *, const struct from *);
    } known[] = {{"retry", retry_put},
                 {"circuitBreaker", breaker_put},
                 {"inFlightReq", in_flight_put},
                 {"buffering", buffering_put}};
    source_rest(s, rules, middleware, "", fields);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct from block = {source_get(middleware, known[i].name), known[i].name, NULL};
        if (block.node != NULL && source_is(s, &block, YAML_MAPPING)) {
            known[i].put(s, rules, &block);
        }
    }
}
