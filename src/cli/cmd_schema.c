/* SPDX-License-Identifier: MIT */
/* becalm schema: the keys of a policy, as a JSON Schema for editors and pipelines. It is made from the tables that the
 * loader uses (policy/schema.h), so it has every key and no other. Editors support draft 7. Rules that a schema can't
 * express (the range of a duration, keys that contradict each other) are left to `becalm check`. */
#include "cli.h"

#include <becalm/config.h>
#include <becalm/version.h>

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "policy/explain.h"
#include "policy/schema.h"

#define NAME_BYTES     128
#define SENTENCE_BYTES 512
#define PPM_PER_CENT   10000.0

#define NUMBER "[0-9]+(\\.[0-9]+)?"

/* Units go down, and there is at least one. */
static const char duration_pattern[] =
    "^(?=.)(" NUMBER "h)?(" NUMBER "m)?(" NUMBER "s)?(" NUMBER "ms)?(" NUMBER "us)?(" NUMBER "ns)?$";
static const char size_pattern[] = "^" NUMBER "(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)?$";
static const char rate_pattern[] = "^" NUMBER "/[smh]$";
static const char percent_pattern[] = "^" NUMBER "%?$";
static const char address_pattern[] = "^(unix:/.+|\\[[0-9A-Fa-f:.]+\\]:[0-9]+|[^:/\\[\\]]+:[0-9]+)$";
static const char host_pattern[] =
    "^(unix:/.+|\\[[0-9A-Fa-f:.]+\\]:[0-9]+|[^:/\\[\\]]+:[0-9]+|https://[^/]+|srv://_[^/:]+\\._[^/:]+)$";
static const char network_pattern[] =
    "^(unix|[0-9A-Fa-f:.]+(/[0-9]+)?|cn:.+|dns:(\\*\\.)?[!-)+-~]+|[!-)+-.0-9;-~]+://[!-)+-~]+(/\\*)?)$";
static const char statuses_pattern[] = "^([1-5][0-9]{2}(-[1-5][0-9]{2})?|[1-5]xx)$";
static const char quantile_pattern[] = "^p[0-9]{1,2}(\\.[0-9]+)?$";
static const char upper_code_pattern[] = "^[A-Za-z_-]+$"; /* gRPC's codes, in any case */

/* The key by which an explained default is looked up. */
struct built_in {
    const char *key;
    char value[SENTENCE_BYTES];
};

static void built_in_find(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                          void *data)
{
    struct built_in *wanted = data;
    (void)origin;
    (void)sentence;
    if (strcmp(key, wanted->key) == 0) {
        (void)snprintf(wanted->value, sizeof wanted->value, "%s", value);
    }
}

/* The sentence of a key, its range if a schema can't express it, and its default. */
static void description(struct json *json, const struct schema_key *key, const struct becalm_rules *defaults)
{
    char text[2 * SENTENCE_BYTES];
    struct built_in built_in = {.key = key->name};
    size_t used = (size_t)snprintf(text, sizeof text, "%s", key->sentence);
    if (key->type == TYPE_DURATION || key->type == TYPE_SIZE) {
        char low[48];
        char high[48];
        explain_number(&(struct schema_key){.type = key->type}, key->min, low, sizeof low);
        explain_number(&(struct schema_key){.type = key->type}, key->max, high, sizeof high);
        used += (size_t)snprintf(text + used, sizeof text - used, "; from %s to %s", low, high);
    }
    if (defaults != NULL) {
        becalm_rules_explain(defaults, built_in_find, &built_in);
    }
    if (built_in.value[0] != '\0') {
        (void)snprintf(text + used, sizeof text - used, "; default: %s", built_in.value);
    }
    json_text(json, "description", text);
}

static void pattern(struct json *json, const char *regex)
{
    json_object(json, NULL);
    json_text(json, "type", "string");
    json_text(json, "pattern", regex);
    json_object_end(json);
}

static void of_type(struct json *json, const char *type)
{
    json_object(json, NULL);
    json_text(json, "type", type);
    json_object_end(json);
}

/* A text. YAML makes numbers and booleans of some. */
static void plain(struct json *json)
{
    of_type(json, "string");
    of_type(json, "number");
    of_type(json, "boolean");
}

static void reference(struct json *json, const char *key, const char *definition)
{
    char path[3 * NAME_BYTES];
    (void)snprintf(path, sizeof path, "#/definitions/%s", definition);
    json_object(json, key);
    json_text(json, "$ref", path);
    json_object_end(json);
}

static void range(struct json *json, const char *type, double low, double high)
{
    json_object(json, NULL);
    json_text(json, "type", type);
    json_number(json, "minimum", low, 6);
    json_number(json, "maximum", high, 6);
    json_object_end(json);
}

static void number_zero(struct json *json)
{
    json_object(json, NULL);
    json_integer(json, "const", 0);
    json_object_end(json);
}

/* One of some words. YAML makes a number of 1.2, and YAML 1.1 a boolean of off. */
static void words(struct json *json, const char *const *list)
{
    json_object(json, NULL);
    json_array(json, "enum");
    for (size_t i = 0; list[i] != NULL; i++) {
        char *end;
        double number = strtod(list[i], &end);
        if (list[i][0] == '\0') {
            continue;
        }
        json_text(json, NULL, list[i]);
        if (*end == '\0') {
            json_number(json, NULL, number, 6);
        } else if (strcmp(list[i], "off") == 0) {
            json_boolean(json, NULL, false);
        }
    }
    json_array_end(json);
    json_object_end(json);
}

static void word(struct json *json, const char *text)
{
    words(json, (const char *const[]){text, NULL});
}

/* An item of retryOn. */
static void condition(struct json *json)
{
    const char *names[64];
    unsigned count = 0;
    while (count < 63 && (names[count] = becalm_retry_on_name(count)) != NULL) {
        count++;
    }
    names[count] = NULL;
    words(json, names);
    range(json, "integer", 400, 599);
    pattern(json, upper_code_pattern);
}

static void item(struct json *json, const struct schema_key *key);

/* One thing, or a list of them. */
static void list(struct json *json, const struct schema_key *key, uint64_t least)
{
    item(json, key);
    json_object(json, NULL);
    json_text(json, "type", "array");
    json_integer(json, "minItems", least);
    json_object(json, "items");
    json_array(json, "anyOf");
    item(json, key);
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

/* The types of one item of a key's list: alternatives of anyOf. */
static void item(struct json *json, const struct schema_key *key)
{
    if (key->type == TYPE_RETRY_ON || key->type == TYPE_NON_FATAL) {
        condition(json);
    } else if (key->type == TYPE_HOSTS) {
        pattern(json, host_pattern);
    } else if (key->type == TYPE_NETWORKS) {
        pattern(json, network_pattern);
    } else if (key->type == TYPE_STATUSES) {
        range(json, "integer", 100, 599);
        pattern(json, statuses_pattern);
    } else if (key->type == TYPE_LISTEN || key->type == TYPE_LISTEN_OWN) {
        pattern(json, address_pattern);
        reference(json, NULL, "listener");
    } else if (key->type == TYPE_CERTIFICATES) {
        reference(json, NULL, "certificate");
    } else if (key->type == TYPE_PROTOCOLS) {
        words(json, (const char *const[]){"h1", "h2", NULL});
    } else if (key->type == TYPE_HOST) {
        pattern(json, "^[^/ ]+$");
        of_type(json, "boolean");
    } else if (key->type == TYPE_WORDS) {
        words(json, key->words);
    } else {
        plain(json);
    }
}

/* Numbers, with a unit or without. */
static void numbers(struct json *json, const struct schema_key *key)
{
    if (key->type == TYPE_INTEGER) {
        range(json, "integer", (double)key->min, (double)key->max);
    } else if (key->type == TYPE_PERCENT) {
        range(json, "number", (double)key->min / PPM_PER_CENT, (double)key->max / PPM_PER_CENT);
        pattern(json, percent_pattern);
    } else if (key->type == TYPE_SIZE) {
        of_type(json, "integer");
        pattern(json, size_pattern);
    } else if (key->type == TYPE_RATE) {
        pattern(json, rate_pattern);
    } else {
        range(json, "number", (double)key->min / key->scale, (double)key->max / key->scale);
    }
}

static void durations(struct json *json, const struct schema_key *key)
{
    if (key->type == TYPE_ATTEMPT_TIMEOUT) {
        words(json, key->words);
    }
    if (key->type == TYPE_HEDGE_DELAY) {
        pattern(json, quantile_pattern);
    }
    pattern(json, duration_pattern);
    if (key->type == TYPE_DURATION && key->min == 0) {
        number_zero(json);
    }
}

/* Texts of a certain form. */
static void texts(struct json *json, const struct schema_key *key)
{
    const char *form = key->type == TYPE_PATH         ? "^/[^?#]*$"
                       : key->type == TYPE_METHOD     ? "^[A-Z0-9_-]+$"
                       : key->type == TYPE_KEY_SCOPE  ? "^(credentials|authorization|none|header:.+|cookie:.+)$"
                       : key->type == TYPE_CLIENT_KEY ? "^(certificate|header:.+)$"
                       : key->type == TYPE_REDIS      ? "^redis(s|[+]unix)?://.+$"
                                                      : address_pattern;
    pattern(json, form);
    if (key->type == TYPE_METHOD) {
        of_type(json, "integer");
    } else if (key->type == TYPE_ADMIN) {
        reference(json, NULL, "listener");
    }
}

static void one_header(struct json *json)
{
    json_object(json, NULL);
    json_text(json, "type", "object");
    json_integer(json, "minProperties", 1);
    json_integer(json, "maxProperties", 1);
    json_object_end(json);
}

/* The types of a key's value: alternatives of anyOf. */
static void alternatives(struct json *json, const struct schema_key *key)
{
    switch (key->type) {
    case TYPE_INTEGER:
    case TYPE_PERCENT:
    case TYPE_DECIMAL:
    case TYPE_JITTER_FACTOR:
    case TYPE_SIZE:
    case TYPE_RATE:
        numbers(json, key);
        break;
    case TYPE_DURATION:
    case TYPE_ATTEMPT_TIMEOUT:
    case TYPE_HEDGE_DELAY:
        durations(json, key);
        break;
    case TYPE_BOOLEAN:
        of_type(json, "boolean");
        words(json, (const char *const[]){"on", "off", "yes", "no", NULL});
        break;
    case TYPE_WORD:
    case TYPE_EITHER:
    case TYPE_BUDGET_KIND:
    case TYPE_LIMIT_KIND:
    case TYPE_PRESET:
    case TYPE_RETRY_MODE:
        words(json, key->words);
        break;
    case TYPE_TEXT:
    case TYPE_FILE:
        plain(json);
        break;
    case TYPE_PATH:
    case TYPE_METHOD:
    case TYPE_KEY_SCOPE:
    case TYPE_CLIENT_KEY:
    case TYPE_REDIS:
    case TYPE_ADDRESS:
    case TYPE_ADMIN:
        texts(json, key);
        break;
    case TYPE_LIST:
    case TYPE_WORDS:
    case TYPE_NETWORKS:
    case TYPE_RETRY_ON:
    case TYPE_NON_FATAL:
    case TYPE_LISTEN:
    case TYPE_LISTEN_OWN:
        list(json, key, 0);
        break;
    case TYPE_HOST:
    case TYPE_HOSTS:
    case TYPE_STATUSES:
    case TYPE_CERTIFICATES:
    case TYPE_PROTOCOLS:
        list(json, key, 1);
        break;
    case TYPE_HEADER:
        one_header(json);
        break;
    }
    if (key->word != NULL) {
        word(json, key->word);
    }
}

static void one_key(struct json *json, const char *name, const struct schema_key *key,
                    const struct becalm_rules *defaults)
{
    json_object(json, name);
    description(json, key, defaults);
    json_array(json, "anyOf");
    alternatives(json, key);
    json_array_end(json);
    json_object_end(json);
}

/* Has a key before this one stood in the same mapping, `length` bytes of its name? */
static bool is_told(const struct schema *schema, uint32_t at, size_t length)
{
    for (uint32_t i = 0; i < at; i++) {
        if (strncmp(schema->keys[i].name, schema->keys[at].name, length) == 0) {
            return true;
        }
    }
    return false;
}

static void object_or_null(struct json *json)
{
    json_array(json, "type");
    json_text(json, NULL, "object");
    json_text(json, NULL, "null");
    json_array_end(json);
}

static void properties(struct json *json, const struct schema *schema, const char *prefix,
                       const struct becalm_rules *defaults);

/* The keys below a dotted name: `budget`, `budget.shared`. A key with nothing below it changes nothing, so null is one.
 * A match may be a list of them. */
static void mapping(struct json *json, const struct schema *schema, const char *prefix, const char *name,
                    const struct becalm_rules *defaults)
{
    bool many = strcmp(prefix, "match.") == 0;
    json_object(json, name);
    for (int form = 0; form <= many; form++) {
        if (many && form == 0) {
            json_array(json, "anyOf");
        }
        if (many) {
            json_object(json, NULL);
        }
        if (form == 0) {
            object_or_null(json);
        } else {
            json_text(json, "type", "array");
            json_integer(json, "minItems", 1);
            json_object(json, "items");
            json_text(json, "type", "object");
        }
        json_boolean(json, "additionalProperties", false);
        json_object(json, "properties");
        properties(json, schema, prefix, defaults);
        json_object_end(json);
        if (form == 1) {
            json_object_end(json);
        }
        if (many) {
            json_object_end(json);
        }
    }
    if (many) {
        json_array_end(json);
    }
    json_object_end(json);
}

static void properties(struct json *json, const struct schema *schema, const char *prefix,
                       const struct becalm_rules *defaults)
{
    size_t begin = strlen(prefix);
    for (uint32_t i = 0; i < schema->count; i++) {
        const char *name = schema->keys[i].name;
        const char *dot = strchr(name + (strlen(name) < begin ? strlen(name) : begin), '.');
        if (strncmp(name, prefix, begin) != 0) {
            continue;
        }
        if (dot == NULL) {
            one_key(json, name + begin, &schema->keys[i], defaults);
        } else if (!is_told(schema, i, (size_t)(dot - name) + 1)) {
            char inner[NAME_BYTES];
            char last[NAME_BYTES];
            (void)snprintf(inner, sizeof inner, "%.*s.", (int)(dot - name), name);
            (void)snprintf(last, sizeof last, "%.*s", (int)(dot - name) - (int)begin, name + begin);
            mapping(json, schema, inner, last, defaults);
        }
    }
}

/* The keys of the rules again, in a service or an endpoint: described once, in `defaults`. */
static void rules_again(struct json *json)
{
    for (uint32_t i = 0; i < schema_rules.count; i++) {
        const char *name = schema_rules.keys[i].name;
        size_t length = strcspn(name, ".");
        if (name[length] == '.' && is_told(&schema_rules, i, length + 1)) {
            continue;
        }
        char key[NAME_BYTES];
        char path[2 * NAME_BYTES];
        (void)snprintf(key, sizeof key, "%.*s", (int)length, name);
        (void)snprintf(path, sizeof path, "defaults/properties/%s", key);
        reference(json, key, path);
    }
}

static void begin_object(struct json *json, const char *name, const char *sentence)
{
    json_object(json, name);
    json_text(json, "description", sentence);
    object_or_null(json);
    json_boolean(json, "additionalProperties", false);
    json_object(json, "properties");
}

static void end_object(struct json *json)
{
    json_object_end(json);
    json_object_end(json);
}

/* A mapping of names. */
static void named(struct json *json, const char *key, const char *sentence, const char *definition)
{
    json_object(json, key);
    json_text(json, "description", sentence);
    object_or_null(json);
    json_object(json, "propertyNames");
    json_text(json, "pattern", "^[A-Za-z0-9_.:/-]{1,128}$");
    json_object_end(json);
    reference(json, "additionalProperties", definition);
    json_object_end(json);
}

static void definitions(struct json *json, const struct becalm_rules *defaults)
{
    json_object(json, "definitions");
    begin_object(json, "defaults", "the rules that every service inherits");
    properties(json, &schema_rules, "", defaults);
    end_object(json);
    begin_object(json, "endpoint", "requests of a service that have rules of their own");
    rules_again(json);
    properties(json, &schema_endpoint, "", NULL);
    end_object(json);
    begin_object(json, "service", "a service: its hosts, the requests that go to it, and the rules of calls to it");
    rules_again(json);
    properties(json, &schema_service, "", NULL);
    named(json, "endpoints", "requests of this service that have rules of their own, by name", "endpoint");
    end_object(json);
    begin_object(json, "listener", "an address that clients connect to, and its protocols");
    properties(json, &schema_listener, "", NULL);
    end_object(json);
    begin_object(json, "certificate", "a certificate and its key");
    properties(json, &schema_certificate, "", NULL);
    end_object(json);
    json_object_end(json);
}

static void version_property(struct json *json)
{
    json_object(json, "version");
    json_text(json, "description", "the version of the format");
    json_array(json, "enum");
    json_integer(json, NULL, 1);
    json_array_end(json);
    json_object_end(json);
}

static void include_property(struct json *json)
{
    json_object(json, "include");
    json_text(json, "description", "files, and folders of files, with more services");
    json_array(json, "anyOf");
    list(json, &(struct schema_key){.type = TYPE_LIST}, 0);
    json_array_end(json);
    json_object_end(json);
}

static void lint_property(struct json *json)
{
    json_object(json, "lint");
    json_text(json, "description", "rules of `becalm check` that are silenced, each with the reason why");
    object_or_null(json);
    json_boolean(json, "additionalProperties", false);
    json_array(json, "required");
    json_text(json, NULL, "ignore");
    json_array_end(json);
    json_object(json, "properties");
    json_object(json, "ignore");
    json_text(json, "type", "object");
    json_object(json, "additionalProperties");
    json_text(json, "type", "string");
    json_integer(json, "minLength", 1);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
}

static void schema_print(const struct becalm_rules *defaults)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "$schema", "http://json-schema.org/draft-07/schema#");
    json_text(&json, "$id", "tag:becalm,2026:policy");
    json_text(&json, "title", "A policy of Becalm " BECALM_VERSION);
    json_text(&json, "type", "object");
    json_boolean(&json, "additionalProperties", false);
    json_object(&json, "properties");
    version_property(&json);
    include_property(&json);
    properties(&json, &schema_settings, "", NULL);
    reference(&json, "defaults", "defaults");
    named(&json, "services", "the services, by name", "service");
    lint_property(&json);
    json_object_end(&json);
    definitions(&json, defaults);
    json_object_end(&json);
    json_end(&json);
}

static int schema_run(const struct cli_command *command, const struct cli_args *args)
{
    struct becalm_config *config = NULL;
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    (void)args;
    /* An empty policy has the default of every rule. */
    if (diags == NULL || becalm_config_parse(&config, "", "{}", 2, NULL, diags) != 0) {
        free(diags);
        return cli_fail(command, "there is not enough memory");
    }
    schema_print(becalm_config_defaults(config));
    becalm_config_free(config);
    free(diags);
    return 0;
}

const struct cli_command cmd_schema = {
    .name = "schema",
    .summary = "print the JSON Schema of a policy, for editors",
    .usage = "schema",
    .purpose = "Prints a JSON Schema (draft 7) of the policy file, with a sentence and the\n"
               "default of each key, so that an editor completes keys, explains them and marks\n"
               "mistakes. Only `becalm check` checks ranges of durations, contradictions and\n"
               "everything that involves more than one key.",
    .examples = "  becalm schema >becalm.schema.json\n"
                "  (first line of a policy, for the YAML language server of most editors)\n"
                "  # yaml-language-server: $schema=becalm.schema.json\n",
    .run = schema_run,
};
