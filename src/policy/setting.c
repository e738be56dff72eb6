/* SPDX-License-Identifier: MIT */
#include "setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "value.h"

#define WORDS_MAX 160

void setting_wrong(const struct setting *s, const char *should)
{
    const char *text = s->node->kind == YAML_SCALAR    ? yaml_shown(s->node)
                       : s->node->kind == YAML_MAPPING ? "{...}"
                                                       : "[...]";
    loader_error(s->l, s->node->line, s->node->column, "wrong-type", "%s: \"%.64s\" is not %s", s->key->name, text,
                 should);
}

static bool is_scalar(const struct setting *s, const char *should)
{
    if (s->node->kind == YAML_SCALAR) {
        return true;
    }
    setting_wrong(s, should);
    return false;
}

/* The meaning of a key's word, for the message that proposes the word instead of 0. */
static const char *word_purpose(const char *word)
{
    if (strcmp(word, "off") == 0) {
        return "to switch it off";
    }
    if (strcmp(word, "auto") == 0) {
        return "for the default";
    }
    return strcmp(word, "none") == 0 || strcmp(word, "any") == 0 ? "for no limit" : "or";
}

static bool in_range(const struct setting *s, uint64_t value)
{
    char bound[48];
    if (value >= s->key->min && value <= s->key->max) {
        return true;
    }
    bool below = value < s->key->min;
    explain_number(s->key, below ? s->key->min : s->key->max, bound, sizeof bound);
    if (value == 0 && s->key->word != NULL) { /* in other products 0 means off */
        loader_error(s->l, s->node->line, s->node->column, "out-of-range",
                     "%s: %.64s is below %s, the least allowed; %s write %s: %s", s->key->name, yaml_shown(s->node),
                     bound, word_purpose(s->key->word), s->key->name, s->key->word);
        return false;
    }
    loader_error(s->l, s->node->line, s->node->column, "out-of-range", "%s: %.64s is %s %s, the %s allowed",
                 s->key->name, yaml_shown(s->node), below ? "below" : "above", bound, below ? "least" : "most");
    return false;
}

/* The word that is allowed instead of a number. */
static bool is_off_word(const struct setting *s)
{
    return s->key->word != NULL && strcmp(s->node->text, s->key->word) == 0;
}

/* How a number of this type is written, for messages. */
static const char *number_example(const struct schema_key *key)
{
    if (key->type == TYPE_DURATION) {
        return "a duration; write a number with its unit, like 100ms, 1.5s or 2m";
    }
    if (key->type == TYPE_PERCENT) {
        return "a percentage; write a number from 0 to 100, like 10 or 0.5";
    }
    if (key->type == TYPE_DECIMAL || key->type == TYPE_JITTER_FACTOR) {
        return "a number; write one like 2.0";
    }
    if (key->type == TYPE_SIZE) {
        return "a size; write a number with its unit, like 64KiB or 1MiB";
    }
    if (key->type == TYPE_RATE) {
        return "a rate; write a number per second or minute, like 200/s";
    }
    return "a whole number; write one like 3";
}

static bool number_parse(const struct schema_key *key, const char *text, uint64_t *value)
{
    uint32_t ppm = 0;
    if (key->type == TYPE_DURATION || key->type == TYPE_ATTEMPT_TIMEOUT) {
        return value_duration(text, value);
    }
    if (key->type == TYPE_PERCENT) {
        bool fine = value_percent(text, &ppm);
        *value = ppm;
        return fine;
    }
    if (key->type == TYPE_DECIMAL || key->type == TYPE_JITTER_FACTOR) {
        return value_decimal(text, key->scale, value);
    }
    if (key->type == TYPE_SIZE) {
        return value_size(text, value);
    }
    return key->type == TYPE_RATE ? value_rate(text, value) : value_integer(text, value);
}

/* A negative number, which in other products often means "unlimited". */
static bool is_below_zero(const struct schema_key *key, const char *text)
{
    uint64_t value = 0;
    return text[0] == '-' && number_parse(key, text + 1, &value);
}

/* Is it a well-written number with more digits than any field holds? It is, if it is one with its digits replaced by a
 * single digit. */
static bool is_too_large(const struct schema_key *key, const char *text)
{
    char shorter[64];
    uint64_t value = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits < 2 || text[0] == '0' || strlen(text + digits) + 2 > sizeof shorter) {
        return false;
    }
    (void)snprintf(shorter, sizeof shorter, "1%s", text + digits);
    return key->type != TYPE_PERCENT && !number_parse(key, text, &value) && number_parse(key, shorter, &value);
}

static void not_a_number(const struct setting *s)
{
    char should[128];
    if (s->node->kind == YAML_SCALAR && s->node->written == NULL && strstr(s->node->text, "${") != NULL) {
        setting_wrong(s, "a value; ${...} is not replaced here, write the value, or use --set");
        return;
    }
    if (s->node->kind == YAML_SCALAR && is_below_zero(s->key, s->node->text)) {
        loader_error(s->l, s->node->line, s->node->column, "wrong-type", "%s: %.64s is below 0%s%s%s", s->key->name,
                     yaml_shown(s->node), s->key->word == NULL ? "" : "; for no limit write ",
                     s->key->word == NULL ? "" : s->key->word,
                     strcmp(s->key->name, "maxRetries") == 0 ? "; 0 is no retries, and there is no \"for ever\"" : "");
        return;
    }
    if (s->node->kind == YAML_SCALAR && is_too_large(s->key, s->node->text)) {
        (void)in_range(s, UINT64_MAX);
        return;
    }
    (void)snprintf(should, sizeof should, "%s%s%s", number_example(s->key),
                   s->key->word == NULL ? "" : ", or the word ", s->key->word == NULL ? "" : s->key->word);
    setting_wrong(s, should);
}

static bool is_wide(enum schema_type type)
{
    return type == TYPE_DURATION || type == TYPE_SIZE || type == TYPE_RATE;
}

/* Any number: text, or the key's word, into a field of 32 or 64 bits. */
static bool set_number(const struct setting *s)
{
    uint64_t value = s->key->stands_for;
    if (s->node->kind != YAML_SCALAR) {
        not_a_number(s);
        return false;
    }
    if (!is_off_word(s)) {
        if (!number_parse(s->key, s->node->text, &value)) {
            not_a_number(s);
            return false;
        }
        if (!in_range(s, value)) {
            return false;
        }
    }
    if (is_wide(s->key->type)) {
        *(uint64_t *)s->field = value;
    } else {
        *(uint32_t *)s->field = (uint32_t)value;
    }
    return true;
}

static bool set_boolean(const struct setting *s)
{
    static const char should[] = "a yes or no; write true or false";
    if (!is_scalar(s, should)) {
        return false;
    }
    if (!value_boolean(s->node->text, s->field)) {
        setting_wrong(s, should);
        return false;
    }
    return true;
}

/* The index of the value among the key's words; -1: it is none of them, and this is reported. */
static int word_of(const struct setting *s)
{
    char known[WORDS_MAX];
    char should[WORDS_MAX + 64];
    for (int i = 0; s->node->kind == YAML_SCALAR && s->key->words[i] != NULL; i++) {
        if (strcmp(s->node->text, s->key->words[i]) == 0) {
            return i;
        }
    }
    value_join_words(s->key->words, known, sizeof known);
    (void)snprintf(should, sizeof should, "known here; write %s", known);
    setting_wrong(s, should);
    return -1;
}

static bool set_word(const struct setting *s)
{
    int word = word_of(s);
    if (word < 0) {
        return false;
    }
    if (s->key->type == TYPE_EITHER) {
        *(bool *)s->field = word == 1;
    } else {
        *(int *)s->field = word; /* the enums of config.h and the engine are ints */
    }
    return true;
}

/* The message for a text that is not of this type; NULL: it is. */
static const char *text_should(enum schema_type type, const char *text)
{
    if ((type == TYPE_ADDRESS || type == TYPE_ADMIN) && !value_address(text)) {
        return "an address; write host:port, [ipv6]:port or unix:/path";
    }
    if (type == TYPE_HOST && !value_match_host(text)) {
        return "a host; write a name like pay.local, with a port or not, *.example.com, or *";
    }
    if (type == TYPE_PATH && !value_path(text)) {
        return "a path; write one that begins with a slash and has no query and no dot segments, like /pay";
    }
    if (type == TYPE_METHOD && !value_method(text)) {
        return "a method; write one in capital letters, like POST";
    }
    if (type == TYPE_KEY_SCOPE && !value_key_scope(text)) {
        return "a scope; write credentials, authorization, header:NAME, cookie:NAME or none";
    }
    if (type == TYPE_CLIENT_KEY && !value_client_key(text)) {
        return "a way to tell clients apart; write address, certificate or header:NAME";
    }
    return NULL;
}

static bool set_text(const struct setting *s)
{
    if (!is_scalar(s, "a text")) {
        return false;
    }
    if (s->node->length == 0) {
        setting_wrong(s, "a text; it is empty");
        return false;
    }
    if (s->key->word != NULL && yaml_is(s->node, s->key->word)) {
        *(const char **)s->field = NULL;
        return true;
    }
    const char *should = text_should(s->key->type, s->node->text);
    if (should != NULL) {
        setting_wrong(s, should);
        return false;
    }
    const char *text = arena_text(s->l->arena, s->node->text);
    *(const char **)s->field = text;
    return text != NULL || loader_no_memory(s->l);
}

/* A relative path is relative to the policy's folder, so that it means the same wherever the program was started. */
static bool set_file(const struct setting *s)
{
    struct becalm_file *file = s->field;
    const char *slash = strrchr(s->l->name, '/');
    if (!is_scalar(s, "a file; write its path")) {
        return false;
    }
    if (s->node->length == 0) {
        setting_wrong(s, "a file; it is empty");
        return false;
    }
    bool joined = s->node->text[0] != '/' && slash != NULL && s->node->line > 0;
    size_t folder = joined ? (size_t)(slash - s->l->name) + 1 : 0;
    char *path = arena_take(s->l->arena, folder + s->node->length + 1);
    if (path == NULL) {
        return loader_no_memory(s->l);
    }
    memcpy(path, s->l->name, folder);
    memcpy(path + folder, s->node->text, s->node->length + 1);
    *file =
        (struct becalm_file){.path = path, .written = path + folder, .line = s->node->line, .column = s->node->column};
    return true;
}

static bool set_redis(const struct setting *s)
{
    bool of_budget = strncmp(s->key->name, "budget.", 7) == 0;
    if (of_budget && !s->l->shared_budgets && !yaml_is(s->node, s->key->word)) {
        loader_error(s->l, s->node->line, s->node->column, "not-yet",
                     "%s: a budget that all instances share through Redis needs a gateway, libbecalm-curl or "
                     "becalm exec, and libbecalm alone has no store; remove the key",
                     s->key->name);
        return false;
    }
    if (s->node->kind == YAML_SCALAR && !yaml_is(s->node, s->key->word) && !value_redis(s->node->text)) {
        loader_error(s->l, s->node->line, s->node->column, "wrong-type", /* without the text: it may have a password */
                     "%s is not a store; write redis://host:6379, rediss:// with TLS, redis+unix:///path, or none",
                     s->key->name);
        return false;
    }
    return set_text(s);
}

static bool list_item_is_fine(const struct setting *s, const struct yaml_node *item)
{
    const struct setting one = {s->l, s->key, item, NULL, NULL};
    if (item->kind != YAML_SCALAR || item->length == 0) {
        setting_wrong(&one, "a text");
        return false;
    }
    if (s->key->type == TYPE_HOSTS && !value_address(item->text) && !value_https(item->text) &&
        !value_srv(item->text)) {
        setting_wrong(&one, "an address; write host:port, [ipv6]:port, unix:/path, https://host for TLS, or "
                            "srv://_http._tcp.name for SRV records");
        return false;
    }
    if (s->key->type == TYPE_NETWORKS && !value_cidr(item->text) && !yaml_is(item, "unix") &&
        !value_peer_name(item->text)) {
        setting_wrong(
            &one, "a network; write an address like 10.0.0.1, a range like 10.0.0.0/8, unix, or a name of a client's "
                  "certificate: spiffe://..., dns:NAME or cn:NAME");
        return false;
    }
    return true;
}

/* The items of a list; a single text is a list of one. */
static uint32_t list_count(const struct yaml_node *node)
{
    return node->kind == YAML_SEQUENCE ? node->count : 1;
}

static const struct yaml_node *list_item(const struct yaml_node *node, uint32_t i)
{
    return node->kind == YAML_SEQUENCE ? node->item[i] : node;
}

static bool set_list(const struct setting *s)
{
    uint32_t count = list_count(s->node);
    const char **list = arena_take(s->l->arena, (count + 1) * sizeof *list);
    if (list == NULL) {
        return loader_no_memory(s->l);
    }
    if (s->node->kind == YAML_MAPPING) {
        setting_wrong(s, "a list; write [one, two]");
        return false;
    }
    if (count == 0 && s->key->type == TYPE_HOSTS) {
        loader_error(s->l, s->node->line, s->node->column, "wrong-type",
                     "%s: the list is empty; write at least one address, like [\"127.0.0.1:9001\"]", s->key->name);
        return false;
    }
    bool fine = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct yaml_node *item = list_item(s->node, i);
        fine = list_item_is_fine(s, item) && fine;
        list[i] = item->kind == YAML_SCALAR ? arena_text(s->l->arena, item->text) : "";
        if (list[i] == NULL) {
            return loader_no_memory(s->l);
        }
    }
    *(const char *const **)s->field = list;
    return fine;
}

/* One host, or a list of them, of which the first goes into the field: hosts_spread() makes matches from the rest. */
static bool set_match_host(const struct setting *s)
{
    bool fine = true;
    if (s->node->kind != YAML_SEQUENCE) {
        return set_text(s);
    }
    if (s->node->count == 0) {
        setting_wrong(s, "a host; write a name, or a list of names");
        return false;
    }
    for (uint32_t i = s->node->count; i > 0; i--) { /* the first comes last, and stays */
        const struct setting one = {s->l, s->key, s->node->item[i - 1], s->field, s->base};
        fine = set_text(&one) && fine;
    }
    return fine;
}

static bool set_words(const struct setting *s)
{
    uint32_t set = 0;
    bool fine = s->node->kind != YAML_MAPPING;
    if (!fine) {
        setting_wrong(s, "a list; write [one, two]");
    }
    for (uint32_t i = 0; s->node->kind != YAML_MAPPING && i < list_count(s->node); i++) {
        const struct setting one = {s->l, s->key, list_item(s->node, i), NULL, NULL};
        int word = word_of(&one);
        fine = word >= 0 && fine;
        set |= word < 0 ? 0 : UINT32_C(1) << word;
    }
    *(uint32_t *)s->field = set;
    return fine;
}

static bool retry_on_item(const struct setting *s, const struct yaml_node *item, struct becalm_retry_on *set)
{
    const char *names[64];
    size_t count = 0;
    if (item->kind == YAML_SCALAR && becalm_retry_on_add(set, (struct becalm_text){item->text, item->length}) == 0) {
        return true;
    }
    while (count < 64 && (names[count] = becalm_retry_on_name((unsigned)count)) != NULL) {
        count++;
    }
    const char *text = item->kind == YAML_SCALAR ? yaml_shown(item) : "[...]";
    uint64_t status = 0;
    if (item->kind == YAML_SCALAR && value_integer(item->text, &status) && status >= 100 && status <= 999) {
        loader_error(s->l, item->line, item->column, "wrong-type",
                     "%s: %.64s is no failure; write a status from 400 to 599", s->key->name, text);
        return false;
    }
    const char *near = item->kind == YAML_SCALAR ? value_nearest(item->text, names, count) : NULL;
    loader_error(s->l, item->line, item->column, "wrong-type",
                 "%s: \"%.64s\" is neither a condition, a gRPC code nor a status%s%s%s", s->key->name, text,
                 near == NULL ? "; write for example 5xx, unavailable or 503" : "; did you mean \"",
                 near == NULL ? "" : near, near == NULL ? "" : "\"?");
    return false;
}

/* Istio and Envoy write such lists as one text with commas; the loader takes lists only, and says so. */
static bool set_retry_on(const struct setting *s, struct becalm_retry_on *set)
{
    memset(set, 0, sizeof *set);
    if (s->node->kind == YAML_MAPPING || (s->node->kind == YAML_SCALAR && strchr(s->node->text, ',') != NULL)) {
        setting_wrong(s, "a list; write [5xx, reset, 429]");
        return false;
    }
    bool fine = true;
    for (uint32_t i = 0; i < list_count(s->node); i++) {
        fine = retry_on_item(s, list_item(s->node, i), set) && fine;
    }
    return fine;
}

static bool set_statuses(const struct setting *s)
{
    uint64_t set[VALUE_STATUS_WORDS] = {0};
    uint32_t count = list_count(s->node);
    for (uint32_t i = 0; i < count; i++) {
        const struct setting one = {s->l, s->key, list_item(s->node, i), NULL, NULL};
        if (one.node->kind != YAML_SCALAR || !value_statuses(one.node->text, set)) {
            setting_wrong(&one, "a status; write one like 200, a range like 200-299, or 2xx");
            return false;
        }
    }
    if (count == 0) {
        setting_wrong(s, "a list of statuses; it is empty");
        return false;
    }
    memcpy(s->field, set, sizeof set);
    return true;
}

static bool set_non_fatal(const struct setting *s)
{
    struct becalm_retry_on set;
    const uint32_t never = BECALM_OUTCOME_BIT(BECALM_OUTCOME_OK) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_PERMANENT) |
                           BECALM_OUTCOME_BIT(BECALM_OUTCOME_CANCELLED);
    if (!set_retry_on(s, &set)) {
        return false;
    }
    *(uint32_t *)s->field = becalm_retry_on_outcomes(&set) & ~never;
    return true;
}

static bool set_header(const struct setting *s)
{
    struct becalm_match *match = s->field;
    if (s->node->kind != YAML_MAPPING || s->node->count != 1 || s->node->item[0]->kind != YAML_SCALAR) {
        setting_wrong(s, "one header and its value; write {name: value}");
        return false;
    }
    match->header_name = arena_text(s->l->arena, s->node->key[0]->text);
    match->header_value = arena_text(s->l->arena, s->node->item[0]->text);
    return (match->header_name != NULL && match->header_value != NULL) || loader_no_memory(s->l);
}

static bool set_attempt_timeout(const struct setting *s)
{
    static const char should[] = "a duration; write a number with its unit, like 100ms, 1.5s or 2m, or the word "
                                 "learned or none";
    struct becalm_policy *policy = &((struct becalm_rules *)s->base)->policy;
    becalm_ns timeout = BECALM_RULES_LEAST;
    if (!is_scalar(s, should)) {
        return false;
    }
    enum becalm_timeout_kind kind = BECALM_TIMEOUT_EXACT;
    for (int i = BECALM_TIMEOUT_LEARNED; s->key->words[i] != NULL; i++) {
        kind = yaml_is(s->node, s->key->words[i]) ? (enum becalm_timeout_kind)i : kind;
    }
    if (kind == BECALM_TIMEOUT_EXACT && is_too_large(s->key, s->node->text)) {
        timeout = BECALM_NEVER;
    } else if (kind == BECALM_TIMEOUT_EXACT && !value_duration(s->node->text, &timeout)) {
        setting_wrong(s, should);
        return false;
    }
    if (!in_range(s, timeout)) {
        return false;
    }
    policy->attempt_timeout = timeout;
    policy->timeout_kind = kind;
    return true;
}

static bool set_hedge_delay(const struct setting *s)
{
    static const char should[] = "when to hedge; write a quantile like p95 or a time like 50ms";
    struct becalm_hedge_policy *hedge = s->field;
    uint64_t percent;
    if (!is_scalar(s, should)) {
        return false;
    }
    if (s->node->text[0] == 'p' && value_decimal(s->node->text + 1, 10000, &percent)) {
        if (percent < 10000 || percent > 999999) {
            setting_wrong(s, should);
            return false;
        }
        hedge->delay = 0;
        hedge->quantile_ppm = (uint32_t)percent;
        return true;
    }
    becalm_ns delay;
    if (!value_duration(s->node->text, &delay)) {
        setting_wrong(s, should);
        return false;
    }
    if (!in_range(s, delay)) {
        return false;
    }
    hedge->delay = delay;
    return true;
}

bool setting_brings_others(const struct schema_key *key)
{
    return key->type == TYPE_BUDGET_KIND || key->type == TYPE_LIMIT_KIND || key->type == TYPE_PRESET ||
           key->type == TYPE_RETRY_MODE;
}

static bool set_budget_kind(const struct setting *s)
{
    struct becalm_rules *rules = s->base;
    int kind = word_of(s);
    if (kind >= 0 && (enum becalm_budget_kind)kind != rules->policy.budget.kind) {
        becalm_budget_defaults(&rules->policy.budget, (enum becalm_budget_kind)kind);
    }
    return kind >= 0;
}

static bool set_limit_kind(const struct setting *s)
{
    struct becalm_rules *rules = s->base;
    int kind = word_of(s);
    if (kind < 0) {
        return false;
    }
    rules->auto_limit = kind == 0;
    becalm_limit_defaults(&rules->policy.limit, kind == 0 ? BECALM_LIMIT_AIMD : (enum becalm_limit_kind)(kind - 1));
    return true;
}

static bool set_preset(const struct setting *s)
{
    struct becalm_rules *rules = s->base;
    if (word_of(s) < 0) {
        return false;
    }
    becalm_breaker_resilience4j(&rules->policy.breaker);
    return true;
}

static bool set_retry_mode(const struct setting *s)
{
    struct becalm_rules *rules = s->base;
    int mode = word_of(s);
    if (mode < 0) {
        return false;
    }
    becalm_budget_defaults(&rules->policy.budget, BECALM_BUDGET_AWS);
    rules->policy.backoff.jitter = BECALM_JITTER_FULL;
    rules->policy.rate.enabled = mode == 1;
    return true;
}

static bool set_jitter_factor(const struct setting *s)
{
    struct becalm_rules *rules = s->base;
    if (!set_number(s)) {
        return false;
    }
    rules->policy.backoff.jitter = BECALM_JITTER_PROPORTIONAL;
    return true;
}

static bool set_nested(const struct setting *s)
{
    return s->l->nested(s->l, s->key, s->base, s->node);
}

/* The admin address: a text or a mapping. Its place is kept for the error message if the address can't be bound. */
static bool set_admin(const struct setting *s)
{
    struct becalm_settings *settings = s->base;
    if (s->node->kind == YAML_MAPPING) {
        return set_nested(s);
    }
    settings->admin_tls.file = s->l->name;
    settings->admin_tls.line = s->node->line;
    settings->admin_tls.column = s->node->column;
    return set_text(s);
}

bool setting_apply(const struct setting *s)
{
    switch (s->key->type) {
    case TYPE_INTEGER:
    case TYPE_DURATION:
    case TYPE_PERCENT:
    case TYPE_DECIMAL:
    case TYPE_SIZE:
    case TYPE_RATE:
        return set_number(s);
    case TYPE_BOOLEAN:
        return set_boolean(s);
    case TYPE_WORD:
    case TYPE_EITHER:
        return set_word(s);
    case TYPE_WORDS:
        return set_words(s);
    case TYPE_HOST:
        return set_match_host(s);
    case TYPE_TEXT:
    case TYPE_ADDRESS:
    case TYPE_PATH:
    case TYPE_METHOD:
    case TYPE_KEY_SCOPE:
    case TYPE_CLIENT_KEY:
        return set_text(s);
    case TYPE_REDIS:
        return set_redis(s);
    case TYPE_LIST:
    case TYPE_HOSTS:
    case TYPE_NETWORKS:
        return set_list(s);
    case TYPE_ADMIN:
        return set_admin(s);
    case TYPE_FILE:
        return set_file(s);
    case TYPE_LISTEN:
    case TYPE_LISTEN_OWN:
    case TYPE_CERTIFICATES:
    case TYPE_PROTOCOLS:
        return set_nested(s);
    case TYPE_STATUSES:
        return set_statuses(s);
    case TYPE_RETRY_ON:
        return set_retry_on(s, s->field);
    case TYPE_NON_FATAL:
        return set_non_fatal(s);
    case TYPE_BUDGET_KIND:
        return set_budget_kind(s);
    case TYPE_LIMIT_KIND:
        return set_limit_kind(s);
    case TYPE_PRESET:
        return set_preset(s);
    case TYPE_RETRY_MODE:
        return set_retry_mode(s);
    case TYPE_JITTER_FACTOR:
        return set_jitter_factor(s);
    case TYPE_ATTEMPT_TIMEOUT:
        return set_attempt_timeout(s);
    case TYPE_HEDGE_DELAY:
        return set_hedge_delay(s);
    case TYPE_HEADER:
        return set_header(s);
    }
    return false;
}
