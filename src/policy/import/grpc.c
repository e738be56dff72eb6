/* SPDX-License-Identifier: MIT */
/* gRPC: a service config (gRFC A6, service_config.proto). A method's config becomes an endpoint, a service's a service,
 * one for everything the defaults. */
#include "../value.h"
#include "dialect.h"
#include "route.h"

#include <string.h>

#define ATTEMPTS_MAX 5u /* gRPC never makes more, even if more is written */

/* ---- status codes ---- */

/* "UNAVAILABLE", or 14, in a policy's words: "unavailable". NULL: the code does not exist, which was reported. */
static const char *code_read(struct source *s, const struct from *from, char *word, size_t size)
{
    uint64_t number;
    const char *text = source_text(s, from);
    if (text == NULL) {
        return NULL;
    }
    int code = becalm_grpc_code((struct becalm_text){text, strlen(text)});
    if (code < 0 && value_integer(text, &number) && number <= 16) {
        code = (int)number;
    }
    if (code < 0) {
        source_error(s, from->node, "bad-value", "%s: \"%.64s\" is not a gRPC status code", from->path, text);
        return NULL;
    }
    const char *name = becalm_grpc_word((uint32_t)code);
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < size; i++) {
        word[i] = name[i] == '_' ? '-' : name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    }
    word[i] = '\0';
    return word;
}

static void codes_put(struct source *s, struct emit_target *target, const char *key, const struct from *from)
{
    static const char *const lost[] = {"connect-failure", "refused-stream", "reset"};
    struct source_list list = {.emit = s->emit};
    struct from out = *from;
    for (uint32_t i = 0; i < from->node->count; i++) {
        char word[32];
        const char *name = code_read(s, &(struct from){from->node->item[i], from->path, NULL}, word, sizeof word);
        struct becalm_retry_on known = {0};
        if (name == NULL) {
            continue;
        }
        if (becalm_retry_on_add(&known, (struct becalm_text){name, strlen(name)}) != 0) {
            const char *path = emit_text(s->emit, "%s \"%s\"", from->path, name);
            source_no_equal(s, target, &(struct from){from->node->item[i], path, NULL}, "it is never retried");
        } else {
            source_list_add(&list, name);
        }
    }
    if (source_list_has(&list, "unavailable")) {
        for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
            source_list_add(&list, lost[i]);
        }
        out.remark = "a connection that fails or is lost is UNAVAILABLE, too";
    }
    source_put_list(s, target, key, &list, &out);
}

/* ---- policies ---- */

static void attempts_put(struct source *s, struct emit_target *target, const char *key, const struct from *from,
                         const char *what)
{
    uint64_t attempts;
    struct from out = *from;
    if (from->node == NULL || !source_integer(s, from, &attempts)) {
        return;
    }
    if (attempts < 2) {
        source_error(s, from->node, "bad-value", "%s: %llu is below 2, the least that gRPC takes", from->path,
                     (unsigned long long)attempts);
        return;
    }
    out.remark = emit_text(s->emit, "the first attempt is no %s%s", what,
                           attempts > ATTEMPTS_MAX ? ", and gRPC makes at most 5 attempts" : "");
    source_put_integer(s, target, key, (attempts > ATTEMPTS_MAX ? ATTEMPTS_MAX : attempts) - 1, &out);
}

/* gRPC refuses a retryPolicy that lacks one of these, or has one that is no good: then nothing is retried. */
static bool retry_policy_complete(struct source *s, struct emit_target *target, const struct from *block)
{
    static const char *const keys[] = {"maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier",
                                       "retryableStatusCodes"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (source_get(block->node, keys[i]) == NULL) {
            source_no_equal(
                s, target, block,
                emit_text(s->emit, "%s is not written, so that gRPC refuses it: nothing is retried", keys[i]));
            return false;
        }
    }
    return true;
}

/* gRPC refuses a whole config that lacks one of these. */
static struct from required(struct source *s, const struct from *block, const char *key, const char *path)
{
    const struct from from = {source_get(block->node, key), path, NULL};
    if (from.node == NULL) {
        source_error(s, block->node, "missing", "%s is not written; gRPC needs it", path);
    }
    return from;
}

static void retry_policy(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {{"maxAttempts", NULL},
                                          {"initialBackoff", NULL},
                                          {"maxBackoff", NULL},
                                          {"backoffMultiplier", NULL},
                                          {"retryableStatusCodes", NULL},
                                          {"perAttemptRecvTimeout", NULL},
                                          {NULL, NULL}};
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    if (!retry_policy_complete(s, target, block)) {
        return;
    }
    source_rest(s, target, block->node, "retryPolicy", fields);
    const struct from attempts = required(s, block, "maxAttempts", "retryPolicy.maxAttempts");
    const struct from base = required(s, block, "initialBackoff", "retryPolicy.initialBackoff");
    const struct from cap = required(s, block, "maxBackoff", "retryPolicy.maxBackoff");
    const struct from factor = required(s, block, "backoffMultiplier", "retryPolicy.backoffMultiplier");
    const struct from codes = required(s, block, "retryableStatusCodes", "retryPolicy.retryableStatusCodes");
    attempts_put(s, target, "maxRetries", &attempts, "retry");
    source_put_word(
        s, target, "idempotent", "true",
        &(struct from){block->node, "retryPolicy", "gRPC retries the listed codes, also when a connection is lost"});
    becalm_ns first, most;
    uint64_t multiplier;
    if (source_duration(s, &base, &first) && source_duration(s, &cap, &most)) {
        /* A cap below the base is allowed there, and means the cap. */
        source_put_duration(s, target, "initialDelay", first < most ? first : most, first < most ? &base : &cap);
        source_put_duration(s, target, "maxDelay", most, &cap);
    }
    if (source_decimal(s, &factor, 1000000, &multiplier)) {
        source_put_decimal(s, target, "multiplier", multiplier, 1000000, &factor);
    }
    source_take_duration(
        s, target, "attemptTimeout",
        &(struct from){source_get(block->node, "perAttemptRecvTimeout"), "retryPolicy.perAttemptRecvTimeout", NULL});
    if (source_is(s, &codes, YAML_SEQUENCE)) {
        codes_put(s, target, "retryOn", &codes);
    }
    emit_note(s->emit, target, "gRPC spreads each wait by 20 % to either side; Becalm's full jitter spreads it wider.");
}

static void hedging_policy(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {
        {"maxAttempts", NULL}, {"hedgingDelay", NULL}, {"nonFatalStatusCodes", NULL}, {NULL, NULL}};
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    source_rest(s, target, block->node, "hedgingPolicy", fields);
    const struct from attempts = required(s, block, "maxAttempts", "hedgingPolicy.maxAttempts");
    const struct from delay = {source_get(block->node, "hedgingDelay"), "hedgingPolicy.hedgingDelay", NULL};
    const struct from codes = {source_get(block->node, "nonFatalStatusCodes"), "hedgingPolicy.nonFatalStatusCodes",
                               NULL};
    emit_note(s->emit, target, "Becalm pays hedges from a bucket of their own: hedge.percent and hedge.cap.");
    struct from safe = *block;
    safe.remark = "gRPC hedges only methods that may run twice";
    source_put_word(s, target, "idempotent", "true", &safe);
    source_put_word(s, target, "hedge.enabled", "true", block);
    if (delay.node != NULL) {
        source_take_duration(s, target, "hedge.delay", &delay);
    } else {
        source_no_equal(s, target, &(struct from){block->node, "hedgingPolicy without a hedgingDelay", NULL},
                        "gRPC then sends all copies at once; a hedge waits, here for the p95 of the answers");
    }
    attempts_put(s, target, "hedge.max", &attempts, "hedge");
    if (codes.node != NULL && source_is(s, &codes, YAML_SEQUENCE)) {
        codes_put(s, target, "hedge.nonFatal", &codes);
    } else if (codes.node == NULL) {
        source_put_list(s, target, "hedge.nonFatal", &(struct source_list){.emit = s->emit},
                        &(struct from){block->node, "hedgingPolicy", "gRPC's default: every failure is fatal"});
    }
}

static void throttling(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {{"maxTokens", NULL}, {"tokenRatio", NULL}, {NULL, NULL}};
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    source_rest(s, target, block->node, "retryThrottling", fields);
    const struct from most = required(s, block, "maxTokens", "retryThrottling.maxTokens");
    const struct from ratio = required(s, block, "tokenRatio", "retryThrottling.tokenRatio");
    uint64_t tokens, milli;
    source_put_word(s, target, "budget.kind", "grpc", block);
    if (source_decimal(s, &most, 1000, &tokens)) {
        source_put_decimal(s, target, "budget.maxTokens", tokens, 1000, &most);
    }
    if (source_decimal(s, &ratio, 1000, &milli)) {
        source_put_decimal(s, target, "budget.tokenRatio", milli, 1000, &ratio);
    }
    source_put_word(s, target, "budget.level", "service", block);
}

/* ---- configs ---- */

static const struct field method_fields[] = {{"name", NULL},
                                             {"timeout", NULL},
                                             {"retryPolicy", NULL},
                                             {"hedgingPolicy", NULL},
                                             {"waitForReady", "a call waits in the gate, not for a connection"},
                                             {"maxRequestMessageBytes", NOTE "maxBody holds for all services"},
                                             {"maxResponseMessageBytes", NOTE "answers may have any size"},
                                             {NULL, NULL}};

static void method_rules(struct source *s, struct emit_target *target, const struct yaml_node *config)
{
    const struct from retry = {source_get(config, "retryPolicy"), "retryPolicy", NULL};
    const struct from hedging = {source_get(config, "hedgingPolicy"), "hedgingPolicy", NULL};
    if (retry.node != NULL && hedging.node != NULL) {
        source_error(s, hedging.node, "conflict", "hedgingPolicy stands beside retryPolicy; gRPC takes one of them");
        return;
    }
    source_rest(s, target, config, "methodConfig", method_fields);
    source_take_duration(s, target, "deadline", &(struct from){source_get(config, "timeout"), "timeout", NULL});
    if (retry.node != NULL) {
        retry_policy(s, target, &retry);
    }
    if (hedging.node != NULL) {
        hedging_policy(s, target, &hedging);
    }
}

static void method_name(struct source *s, const struct yaml_node *config, const struct yaml_node *name)
{
    static const struct field fields[] = {{"service", NULL}, {"method", NULL}, {NULL, NULL}};
    if (!source_is(s, &(struct from){name, "name", NULL}, YAML_MAPPING)) {
        return;
    }
    const struct from service = {source_get(name, "service"), "name.service", NULL};
    const struct from method = {source_get(name, "method"), "name.method", NULL};
    const char *service_text = source_text(s, &service);
    const char *method_text = source_text(s, &method);
    bool named = service_text != NULL && service_text[0] != '\0';
    bool one = method_text != NULL && method_text[0] != '\0';
    struct from from = named ? service : (struct from){name, "name", NULL};
    if (one && !named) {
        source_error(s, method.node, "missing", "name.method stands without name.service");
        return;
    }
    const char *path = emit_text(s->emit, "/%s/%s", named ? service_text : "", one ? method_text : "");
    if (!value_path(path)) {
        source_error(s, one ? method.node : service.node, "wrong-type", "%s is no name that a path can have",
                     one ? "name.method" : "name.service");
        return;
    }
    struct emit_target *target =
        named ? emit_service(s->emit, service_text, source_where(s, &from)) : emit_defaults(s->emit);
    if (named) {
        emit_note_once(s->emit, target, "A service config has no address of the service: add `hosts`.");
        source_put_h2(s, target, &(struct from){from.node, from.path, "gRPC is HTTP/2"});
    }
    struct route *route = route_add(s, target, one ? method_text : NULL, one ? &method : &from);
    struct route_match m = {.path = one ? path : NULL, .prefix = named && !one ? path : NULL};
    route_add_match(s, route, &m, one ? &method : &from);
    source_rest(s, route_rules(route), name, "name", fields);
    method_rules(s, route_rules(route), config);
}

static void method_config(struct source *s, const struct yaml_node *config)
{
    const struct from names = {source_get(config, "name"), "methodConfig.name", NULL};
    if (!source_is(s, &(struct from){config, "methodConfig", NULL}, YAML_MAPPING)) {
        return;
    }
    if (names.node == NULL || (names.node->kind == YAML_SEQUENCE && names.node->count == 0)) {
        source_no_equal(s, NULL, &(struct from){config, "methodConfig without a name", NULL},
                        "gRPC uses it for no method; it is left out");
        return;
    }
    for (uint32_t i = 0; source_is(s, &names, YAML_SEQUENCE) && i < names.node->count; i++) {
        method_name(s, config, names.node->item[i]);
    }
}

/* A service config, or a piece of one, which holds for every service. */
static void config_read(struct source *s, const struct yaml_node *config)
{
    static const struct field fields[] = {
        {"methodConfig", NULL},
        {"retryThrottling", NULL},
        {"retryPolicy", NULL},
        {"hedgingPolicy", NULL},
        {"timeout", NULL},
        {"loadBalancingPolicy", NOTE "Becalm picks hosts in its own way"},
        {"loadBalancingConfig", NOTE "Becalm picks hosts in its own way"},
        {"healthCheckConfig", NOTE "bad hosts are found by their answers: see outlier"},
        {NULL, NULL}};
    struct emit_target *defaults = emit_defaults(s->emit);
    const struct from methods = {source_get(config, "methodConfig"), "methodConfig", NULL};
    const struct from throttle = {source_get(config, "retryThrottling"), "retryThrottling", NULL};
    bool piece = source_get(config, "retryPolicy") != NULL || source_get(config, "hedgingPolicy") != NULL ||
                 source_get(config, "timeout") != NULL;
    source_rest(s, NULL, config, "", fields);
    if (throttle.node != NULL) {
        throttling(s, defaults, &throttle);
    }
    if (piece && methods.node == NULL) {
        method_rules(s, defaults, config);
    }
    for (uint32_t i = 0; source_is(s, &methods, YAML_SEQUENCE) && i < methods.node->count; i++) {
        method_config(s, methods.node->item[i]);
    }
}

/* The format in DNS: a list of choices, each with the clients that it is for. */
static void choices_read(struct source *s, const struct yaml_node *list)
{
    static const struct field fields[] = {{"serviceConfig", NULL},
                                          {"clientLanguage", "a policy holds for every client"},
                                          {"percentage", "a policy holds for every client"},
                                          {"clientHostname", "a policy holds for every client"},
                                          {NULL, NULL}};
    for (uint32_t i = 0; i < list->count; i++) {
        const struct from choice = {list->item[i], "a choice", NULL};
        if (source_is(s, &choice, YAML_MAPPING)) {
            const struct from config = {source_get(choice.node, "serviceConfig"), "serviceConfig", NULL};
            source_rest(s, NULL, choice.node, "", fields);
            if (source_is(s, &config, YAML_MAPPING)) {
                config_read(s, config.node);
            }
        }
    }
}

/* The inside of a retryPolicy or hedgingPolicy alone, as documentation often prints it. */
static bool bare_block(struct source *s, const struct yaml_node *root)
{
    if (source_get(root, "maxAttempts") == NULL) {
        return false;
    }
    bool hedges = source_get(root, "hedgingDelay") != NULL || source_get(root, "nonFatalStatusCodes") != NULL;
    const struct from block = {root, hedges ? "hedgingPolicy" : "retryPolicy", NULL};
    (hedges ? hedging_policy : retry_policy)(s, emit_defaults(s->emit), &block);
    return true;
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "without a retryPolicy gRPC does not retry"},
                                             {"attemptTimeout", "none", "gRPC has none"},
                                             {"deadline", "none", "gRPC's default"},
                                             {"idempotent", "false", "nothing is repeated there"},
                                             {"hedge.enabled", "false", "nothing is hedged there"},
                                             {NULL, NULL, NULL}};

static bool grpc_recognises(const struct object *object)
{
    static const char *const keys[] = {"methodConfig", "retryThrottling", "retryPolicy", "hedgingPolicy"};
    for (size_t i = 0; object->kind[0] == '\0' && i < sizeof keys / sizeof *keys; i++) {
        if (source_get(object->node, keys[i]) != NULL) {
            return true;
        }
    }
    return object->node->kind == YAML_SEQUENCE && object->node->count > 0 &&
           source_get(object->node->item[0], "serviceConfig") != NULL;
}

static void grpc_read(struct source *s, const struct objects *objects)
{
    for (uint32_t i = 0; i < objects->count; i++) {
        const struct yaml_node *root = objects->at[i].node;
        s->file = objects->at[i].file;
        if (root->kind == YAML_SEQUENCE) {
            choices_read(s, root);
        } else if (source_is(s, &(struct from){root, "the document", NULL}, YAML_MAPPING) && !bare_block(s, root)) {
            config_read(s, root);
        }
    }
}

const struct dialect dialect_grpc = {
    .word = "grpc", .product = "gRPC", .unwritten = unwritten, .recognises = grpc_recognises, .read = grpc_read};
