/* SPDX-License-Identifier: MIT */
/* becalm diff: describes a change of a policy in words: which services come, go or change, how many attempts and how
 * much time a call may take, which values differ, and how the worst case changes. It compares the effective values, so
 * a line that was moved, or that writes a default, is no difference. */
#include "cli.h"

#include <becalm/config.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "policy/explain.h"
#include "policy/graph.h"
#include "policy/lint/lint.h"
#include "policy/text/escape.h"

#define KEY_BYTES   64
#define VALUE_BYTES 512
#define LIST_BYTES  1024
#define SIDES       2

enum side { OLD, NEW };

/* A key of the rules, as becalm_rules_explain() tells it. */
struct value {
    char key[KEY_BYTES];
    char text[VALUE_BYTES];
    const char *sentence;
};

struct values {
    struct value *value;
    uint32_t count;
    uint32_t room;
    bool failed; /* no memory */
};

struct diff {
    const struct cli_command *command;
    const char *name[SIDES]; /* of the files */
    struct becalm_config *config[SIDES];
    struct graph *graph[SIDES];
    struct json *json; /* NULL: as text */
    uint32_t changes;
    const char *between; /* a name, or one amount, and the next */
    bool failed;         /* no memory */
};

/* ---- lists of values ---- */

static void values_take(const char *key, const char *text, struct becalm_origin origin, const char *sentence,
                        void *data)
{
    struct values *values = data;
    (void)origin;
    if (values->count == values->room) {
        uint32_t room = values->room == 0 ? 64 : 2 * values->room;
        struct value *grown = realloc(values->value, room * sizeof *grown);
        if (grown == NULL) {
            values->failed = true;
            return;
        }
        values->value = grown;
        values->room = room;
    }
    struct value *value = &values->value[values->count++];
    (void)snprintf(value->key, sizeof value->key, "%s", key);
    (void)snprintf(value->text, sizeof value->text, "%s", text);
    escape_text(value->text, sizeof value->text);
    value->sentence = sentence;
}

static const struct value *values_find(const struct values *values, const char *key)
{
    for (uint32_t i = 0; i < values->count; i++) {
        if (strcmp(values->value[i].key, key) == 0) {
            return &values->value[i];
        }
    }
    return NULL;
}

/* "a, b"; cut with dots. */
static void list_write(char text[LIST_BYTES], const char *const *list, uint32_t count)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && used < LIST_BYTES; i++) {
        used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%s", i == 0 ? "" : ", ", list[i]);
    }
    if (used >= LIST_BYTES) {
        memcpy(text + LIST_BYTES - 4, "...", 4);
    }
    escape_text(text, LIST_BYTES);
}

static void match_write(char text[LIST_BYTES], const struct becalm_match *match)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct becalm_match *one = match; one != NULL && used < LIST_BYTES; one = one->next) {
        const struct {
            const char *key, *value;
        } part[] = {{"host", one->host},         {"prefix", one->prefix}, {"start", one->start},
                    {"path", one->path},         {"method", one->method}, {"header", one->header_name},
                    {"value", one->header_value}};
        if (one->alias) {
            continue;
        }
        for (size_t i = 0; i < sizeof part / sizeof part[0] && used < LIST_BYTES; i++) {
            if (part[i].value != NULL) {
                used += (size_t)snprintf(text + used, LIST_BYTES - used, "%s%s %s", used == 0 ? "" : ", ", part[i].key,
                                         part[i].value);
            }
        }
    }
    escape_text(text, LIST_BYTES);
}

/* ---- telling ---- */

static const char *or_none(const char *text)
{
    return text == NULL || text[0] == '\0' ? "none" : text;
}

/* One value; `sentence` may be NULL. */
static void tell_value(struct diff *d, const char *key, const char *before, const char *after, const char *sentence)
{
    struct cli_style style = cli_style(stdout);
    d->changes++;
    if (d->json != NULL) {
        json_object(d->json, NULL);
        json_text(d->json, "key", key);
        json_text(d->json, "old", before);
        json_text(d->json, "new", after);
        json_object_end(d->json);
        return;
    }
    printf("    %s: %s -> %s%s%s\n", key, or_none(before), style.bold, or_none(after), style.reset);
    if (sentence != NULL) {
        printf("        %s%s%s\n", style.dim, sentence, style.reset);
    }
}

/* The attempts and the time of one call under the rules. */
struct bound {
    uint32_t attempts;
    becalm_ns deadline;
};

static struct bound bound_of(const struct becalm_config *config, const struct becalm_rules *rules)
{
    struct becalm_policy policy;
    becalm_rules_policy(config, rules, &policy);
    uint32_t attempts = policy.max_retries + 1;
    uint32_t hedged = policy.hedge.enabled ? policy.hedge.max + 1 : 0;
    return (struct bound){attempts > hedged ? attempts : hedged, policy.deadline};
}

static const char *ends_within(becalm_ns deadline, struct lint_text *text)
{
    if (deadline == BECALM_NEVER) {
        return "any time";
    }
    *text = lint_duration(deadline);
    return text->text;
}

/* "payment/charge: a call makes at most 2 attempts instead of 4, and may take 2s instead of 10s". */
static void tell_bound(const struct diff *d, const char *service, const char *endpoint, struct bound before,
                       struct bound after)
{
    struct cli_style style = cli_style(stdout);
    struct lint_text text[SIDES];
    bool attempts = before.attempts != after.attempts;
    bool time = before.deadline != after.deadline;
    if (d->json != NULL) {
        json_integer(d->json, "old_attempts", before.attempts);
        json_integer(d->json, "new_attempts", after.attempts);
        return;
    }
    printf("%s%s%s%s%s", style.bold, service, endpoint == NULL ? "" : "/", endpoint == NULL ? "" : endpoint,
           style.reset);
    if (attempts) {
        printf(": a call makes at most %u attempt%s instead of %u", after.attempts, after.attempts == 1 ? "" : "s",
               before.attempts);
    }
    if (time) {
        printf("%s may take %s", attempts ? ", and" : ": a call", ends_within(after.deadline, &text[NEW]));
        printf(" instead of %s", ends_within(before.deadline, &text[OLD]));
    }
    if (!attempts && !time) {
        printf(": as many attempts and as much time as before");
    }
    putchar('\n');
}

/* ---- one service, or one endpoint of it ---- */

struct told {
    const char *service;
    const char *endpoint;                   /* NULL: the service's own rules */
    const struct becalm_service *of[SIDES]; /* for its hosts and the like; NULL: of an endpoint */
    const struct becalm_match *match[SIDES];
    const struct becalm_rules *rules[SIDES];
};

static void begin_target(struct diff *d, const struct told *told, bool *begun)
{
    if (*begun) {
        return;
    }
    *begun = true;
    if (d->json != NULL) {
        json_object(d->json, NULL);
        json_text(d->json, "service", told->service);
        json_text(d->json, "endpoint", told->endpoint);
        json_text(d->json, "change", "changed");
    }
    tell_bound(d, told->service, told->endpoint, bound_of(d->config[OLD], told->rules[OLD]),
               bound_of(d->config[NEW], told->rules[NEW]));
    if (d->json != NULL) {
        json_array(d->json, "values");
    }
}

static void diff_text(struct diff *d, const struct told *told, bool *begun, const char *key, const char *before,
                      const char *after)
{
    if (strcmp(before, after) != 0) {
        begin_target(d, told, begun);
        tell_value(d, key, before, after, NULL);
    }
}

/* As one would write it, but for the brackets of a list. */
static void value_write(const struct schema_key *key, const void *base, char text[LIST_BYTES])
{
    explain_value(key, base, text, LIST_BYTES);
    size_t length = strlen(text);
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']' && memchr(text + 1, '[', length - 1) == NULL) {
        memmove(text, text + 1, length - 2);
        text[length - 2] = '\0';
    }
    escape_text(text, LIST_BYTES);
}

static void diff_place(struct diff *d, const struct told *told, bool *begun)
{
    char text[SIDES][LIST_BYTES];
    match_write(text[OLD], told->match[OLD]);
    match_write(text[NEW], told->match[NEW]);
    diff_text(d, told, begun, "match", text[OLD], text[NEW]);
    if (told->of[OLD] == NULL) {
        return;
    }
    for (uint32_t i = 0; i < schema_service.count; i++) {
        const struct schema_key *key = &schema_service.keys[i];
        if (strncmp(key->name, "match.", strlen("match.")) == 0) {
            continue; /* all of them were printed above */
        }
        for (int side = OLD; side <= NEW; side++) {
            value_write(key, told->of[side], text[side]);
        }
        diff_text(d, told, begun, key->name, text[OLD], text[NEW]);
    }
    diff_text(d, told, begun, "tls", told->of[OLD]->tls.enabled ? "on" : "off",
              told->of[NEW]->tls.enabled ? "on" : "off");
}

static void diff_rules(struct diff *d, const struct told *told, bool *begun)
{
    struct values values[SIDES] = {{.value = NULL}, {.value = NULL}};
    becalm_rules_explain(told->rules[OLD], values_take, &values[OLD]);
    becalm_rules_explain(told->rules[NEW], values_take, &values[NEW]);
    d->failed = d->failed || values[OLD].failed || values[NEW].failed;
    for (uint32_t i = 0; i < values[NEW].count; i++) {
        const struct value *after = &values[NEW].value[i];
        const struct value *before = values_find(&values[OLD], after->key);
        if (before == NULL || strcmp(before->text, after->text) != 0) {
            begin_target(d, told, begun);
            tell_value(d, after->key, before == NULL ? NULL : before->text, after->text, after->sentence);
        }
    }
    for (uint32_t i = 0; i < values[OLD].count; i++) {
        const struct value *before = &values[OLD].value[i];
        if (values_find(&values[NEW], before->key) == NULL) {
            begin_target(d, told, begun);
            tell_value(d, before->key, before->text, NULL, before->sentence);
        }
    }
    free(values[OLD].value);
    free(values[NEW].value);
}

static void diff_target(struct diff *d, const struct told *told)
{
    bool begun = false;
    diff_place(d, told, &begun);
    diff_rules(d, told, &begun);
    if (begun && d->json != NULL) {
        json_array_end(d->json);
        json_object_end(d->json);
    }
}

/* A service or endpoint that only one of the files has. */
static void tell_only(struct diff *d, const char *service, const char *endpoint, enum side side, const char *what)
{
    struct cli_style style = cli_style(stdout);
    d->changes++;
    if (d->json != NULL) {
        json_object(d->json, NULL);
        json_text(d->json, "service", service);
        json_text(d->json, "endpoint", endpoint);
        json_text(d->json, "change", side == NEW ? "added" : "removed");
        json_object_end(d->json);
        return;
    }
    printf("%s%s%s%s%s is %s: %s\n", style.bold, service, endpoint == NULL ? "" : "/", endpoint == NULL ? "" : endpoint,
           style.reset, side == NEW ? "new" : "gone", what);
}

static const struct becalm_endpoint *endpoint_find(const struct becalm_service *service, const char *name)
{
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        if (strcmp(service->endpoints[i].name, name) == 0) {
            return &service->endpoints[i];
        }
    }
    return NULL;
}

static void diff_endpoints(struct diff *d, const struct becalm_service *before, const struct becalm_service *after)
{
    for (uint32_t i = 0; i < after->endpoint_count; i++) {
        const struct becalm_endpoint *endpoint = &after->endpoints[i];
        const struct becalm_endpoint *was = endpoint_find(before, endpoint->name);
        if (was == NULL) {
            tell_only(d, after->name, endpoint->name, NEW, "its requests have rules of their own now");
        } else {
            diff_target(d, &(struct told){.service = after->name,
                                          .endpoint = endpoint->name,
                                          .match = {&was->match, &endpoint->match},
                                          .rules = {&was->rules, &endpoint->rules}});
        }
    }
    for (uint32_t i = 0; i < before->endpoint_count; i++) {
        if (endpoint_find(after, before->endpoints[i].name) == NULL) {
            tell_only(d, before->name, before->endpoints[i].name, OLD, "its requests have the service's rules now");
        }
    }
}

static void diff_services(struct diff *d)
{
    for (uint32_t i = 0; i < becalm_config_services(d->config[NEW]); i++) {
        const struct becalm_service *after = becalm_config_service(d->config[NEW], i);
        const struct becalm_service *before = becalm_config_find(d->config[OLD], after->name);
        if (before == NULL) {
            char hosts[LIST_BYTES];
            list_write(hosts, after->hosts, after->host_count);
            tell_only(d, after->name, NULL, NEW, hosts);
            continue;
        }
        diff_target(d, &(struct told){.service = after->name,
                                      .of = {before, after},
                                      .match = {&before->match, &after->match},
                                      .rules = {&before->rules, &after->rules}});
        diff_endpoints(d, before, after);
    }
    for (uint32_t i = 0; i < becalm_config_services(d->config[OLD]); i++) {
        const char *name = becalm_config_service(d->config[OLD], i)->name;
        if (becalm_config_find(d->config[NEW], name) == NULL) {
            tell_only(d, name, NULL, OLD, "its requests find no service, or one with a wider match");
        }
    }
}

/* ---- the gateway as a whole ---- */

static void diff_setting(struct diff *d, bool *begun, const char *key, const char *before, const char *after)
{
    if (strcmp(before, after) == 0) {
        return;
    }
    if (!*begun && d->json == NULL) {
        printf("the gateway as a whole\n");
    }
    *begun = true;
    tell_value(d, key, before, after, NULL);
}

/* Every key of a table, as one would write its value. */
static void diff_table(struct diff *d, bool *begun, const char *prefix, const struct schema *schema,
                       const void *const base[SIDES])
{
    for (uint32_t i = 0; i < schema->count; i++) {
        char key[KEY_BYTES + LIST_BYTES];
        char text[SIDES][LIST_BYTES];
        for (int side = OLD; side <= NEW; side++) {
            value_write(&schema->keys[i], base[side], text[side]);
        }
        (void)snprintf(key, sizeof key, "%s%s", prefix, schema->keys[i].name);
        diff_setting(d, begun, key, text[OLD], text[NEW]);
    }
}

/* The keys of a listener that have no single value in the table. */
static void listener_write(const struct becalm_listener *listener, char certificates[LIST_BYTES],
                           char protocols[LIST_BYTES])
{
    size_t used = 0;
    certificates[0] = '\0';
    for (uint32_t i = 0; i < listener->certificate_count && used < LIST_BYTES; i++) {
        const struct becalm_certificate *one = &listener->certificates[i];
        used += (size_t)snprintf(certificates + used, LIST_BYTES - used, "%s%s and %s", i == 0 ? "" : ", ",
                                 one->cert.path, one->key.path);
    }
    escape_text(certificates, LIST_BYTES);
    (void)snprintf(protocols, LIST_BYTES, "%s%s%s", listener->h1 ? "h1" : "", listener->h1 && listener->h2 ? ", " : "",
                   listener->h2 ? "h2" : "");
}

static void diff_listener(struct diff *d, bool *begun, const char *prefix, const struct becalm_listener *before,
                          const struct becalm_listener *after)
{
    const void *const base[SIDES] = {before, after};
    char certificates[SIDES][LIST_BYTES];
    char protocols[SIDES][LIST_BYTES];
    char key[KEY_BYTES + LIST_BYTES];
    diff_table(d, begun, prefix, &schema_listener, base);
    listener_write(before, certificates[OLD], protocols[OLD]);
    listener_write(after, certificates[NEW], protocols[NEW]);
    (void)snprintf(key, sizeof key, "%stls.certificates", prefix);
    diff_setting(d, begun, key, certificates[OLD], certificates[NEW]);
    (void)snprintf(key, sizeof key, "%sprotocols", prefix);
    diff_setting(d, begun, key, protocols[OLD], protocols[NEW]);
}

static void diff_settings(struct diff *d)
{
    const struct becalm_settings *of[SIDES] = {becalm_config_settings(d->config[OLD]),
                                               becalm_config_settings(d->config[NEW])};
    const void *const base[SIDES] = {of[OLD], of[NEW]};
    bool begun = false;
    diff_table(d, &begun, "", &schema_settings, base);
    for (uint32_t i = 0; i < of[NEW]->listener_count; i++) {
        const struct becalm_listener *after = &of[NEW]->listeners[i];
        for (uint32_t k = 0; k < of[OLD]->listener_count; k++) {
            const struct becalm_listener *before = &of[OLD]->listeners[k];
            if (strcmp(before->address, after->address) == 0) {
                char prefix[LIST_BYTES];
                (void)snprintf(prefix, sizeof prefix, "listen[%s].", after->address);
                escape_text(prefix, sizeof prefix);
                diff_listener(d, &begun, prefix, before, after);
            }
        }
    }
    diff_listener(d, &begun, "admin.", &of[OLD]->admin_tls, &of[NEW]->admin_tls);
}

/* ---- the worst case ---- */

static void tell_amount(struct diff *d, const char *key, const char *words, uint64_t before, uint64_t after)
{
    if (d->json != NULL) {
        json_object(d->json, key);
        json_number(d->json, "old", (double)before / GRAPH_ONE, 3);
        json_number(d->json, "new", (double)after / GRAPH_ONE, 3);
        json_object_end(d->json);
    } else if (before != after) {
        printf("%s %sx -> %sx %s", d->between, lint_amount(before).text, lint_amount(after).text, words);
        d->between = ",";
    }
}

static void tell_waits(const struct diff *d, becalm_ns before, becalm_ns after)
{
    struct lint_text text[SIDES];
    if (d->json == NULL && before != after) {
        printf("%s the client waits up to %s", d->between,
               before == BECALM_NEVER ? "any time" : (text[OLD] = lint_duration(before)).text);
        printf(" -> %s", after == BECALM_NEVER ? "any time" : (text[NEW] = lint_duration(after)).text);
    }
}

static void diff_worst(struct diff *d)
{
    const struct graph *graph = d->graph[NEW];
    bool begun = false;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *after = &graph->nodes[i];
        uint32_t index = graph_find(d->graph[OLD], after->name);
        const struct graph_node *before = index == GRAPH_NONE ? NULL : &d->graph[OLD]->nodes[index];
        if (before == NULL || (before->unbudgeted == after->unbudgeted && before->budgeted == after->budgeted &&
                               before->dead == after->dead && before->time.most == after->time.most)) {
            continue;
        }
        if (d->json != NULL) {
            json_object(d->json, NULL);
            json_text(d->json, "service", after->name);
        } else {
            printf("%s  %s", begun ? "" : "worst case per client request, in attempts at each service\n", after->name);
        }
        begun = true;
        d->between = ":";
        tell_amount(d, "no_budgets", "without budgets", before->unbudgeted, after->unbudgeted);
        tell_amount(d, "budgets", "with budgets", before->budgeted, after->budgeted);
        tell_amount(d, "dead", "while it is dead", before->dead, after->dead);
        tell_waits(d, before->time.most, after->time.most);
        if (d->json != NULL) {
            json_object_end(d->json);
        } else {
            putchar('\n');
        }
    }
}

/* ---- the command ---- */

static void diff_tell(struct diff *d)
{
    if (d->json == NULL) {
        diff_settings(d);
        diff_services(d);
        diff_worst(d);
        if (d->changes == 0) {
            printf("%s and %s mean the same\n", d->name[OLD], d->name[NEW]);
        }
        return;
    }
    json_object(d->json, NULL);
    json_array(d->json, "settings");
    diff_settings(d);
    json_array_end(d->json);
    json_array(d->json, "services");
    diff_services(d);
    json_array_end(d->json);
    json_array(d->json, "worst");
    diff_worst(d);
    json_array_end(d->json);
    json_object_end(d->json);
}

/* A file, or the first of a policy in several files: the files in `include` are loaded with it. */
static int side_load(struct diff *d, enum side side)
{
    struct becalm_load_options options = {.shared_budgets = true, .substitute = true};
    struct becalm_diags *diags = calloc(1, sizeof *diags); /* too large for a stack */
    int rc = diags == NULL ? BECALM_ENOMEM : becalm_config_load(&d->config[side], d->name[side], &options, diags);
    for (uint32_t i = 0; rc != 0 && diags != NULL && i < diags->count; i++) {
        char line[1024];
        becalm_diag_write(&diags->diag[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    free(diags);
    if (rc == 0) {
        const struct becalm_config *const one[] = {d->config[side]};
        rc = graph_build(&d->graph[side], one, 1);
    }
    return rc;
}

static int diff_run(const struct cli_command *command, const struct cli_args *args)
{
    struct diff d = {.command = command};
    struct json json;
    if (args->word_count != 2) {
        return cli_usage(command, "give two policies: the old one and the new one");
    }
    d.name[OLD] = args->words[OLD];
    d.name[NEW] = args->words[NEW];
    int rc = side_load(&d, OLD) != 0 || side_load(&d, NEW) != 0;
    if (rc == 0) {
        d.json = cli_has(command, args, "json") ? &json : NULL;
        if (d.json != NULL) {
            json_begin(&json, stdout);
        }
        diff_tell(&d);
        if (d.json != NULL) {
            json_end(&json);
        }
        rc = d.failed ? cli_fail(command, "there is not enough memory") : 0;
        if (rc == 0 && cli_has(command, args, "exit-code")) {
            rc = d.changes > 0;
        }
    }
    for (int side = OLD; side <= NEW; side++) {
        graph_free(d.graph[side]);
        becalm_config_free(d.config[side]);
    }
    return rc;
}

static const struct cli_option diff_options[] = {
    {.name = "json", .help = "print the differences as JSON"},
    {.name = "exit-code", .help = "exit with 1 if the policies mean different things"},
    {.name = NULL},
};

const struct cli_command cmd_diff = {
    .name = "diff",
    .summary = "describe a change of a policy in words",
    .usage = "diff [options] OLD NEW",
    .purpose = "Compares the effective values of two policies: added and removed services and\n"
               "endpoints, attempts and time of a call, every changed value, and the worst case\n"
               "from the call graph. A key that only moved within the file, or that has the\n"
               "default value, is no difference. Exits 0, or 1 if a policy is not valid.",
    .options = diff_options,
    .examples = "  becalm diff becalm.yaml becalm.new.yaml\n"
                "  git show HEAD:becalm.yaml > old.yaml && becalm diff old.yaml becalm.yaml\n"
                "  becalm diff --exit-code --json old.yaml new.yaml\n",
    .complete = CLI_FILE,
    .run = diff_run,
};
