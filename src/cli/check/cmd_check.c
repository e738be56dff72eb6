/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <becalm/config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cmd_check_format.h"
#include "cmd_check_route.h"
#include "cmd_check_store.h"
#include "policy/diag.h"
#include "policy/file.h"
#include "policy/lint/lint.h"
#include "policy/text/escape.h"
#include "policy/value.h"
#include "tls/tls_set.h"

#define WIDTH           80
#define TABLE_ROWS      20 /* the worst services; --json has all */
#define NAME_WIDTH      24
#define UNWRITTEN_NAMES 5  /* services that one line names; --json tells of all */
#define WHERE_AT        56 /* --explain: the column of "file:line" */

/* One run of the command. */
struct check {
    const struct cli_command *command;
    const struct cli_args *args;
    struct becalm_config **configs;
    uint32_t count; /* of those that were loaded */
    struct graph *graph;
    struct lint_report report;
    uint32_t errors;
    uint32_t warnings;
    uint32_t silenced;
    enum check_format format;
    bool json;
};

/* ---- loading ---- */

/* The semicolon between the two halves of a message: the first that is not inside quotes, which hold the user's own
 * text. */
static const char *message_half(const char *message)
{
    bool quoted = false;
    for (const char *c = message; *c != '\0'; c++) {
        quoted ^= *c == '"';
        if (!quoted && c[0] == ';' && c[1] == ' ') {
            return c;
        }
    }
    return NULL;
}

/* A diagnostic has the error and, after a semicolon, the correction. Most have both. */
static void finding_from_diag(struct lint_finding *finding, const struct becalm_diag *diag, uint32_t order)
{
    const char *half = message_half(diag->message);
    size_t length = half == NULL ? strlen(diag->message) : (size_t)(half - diag->message);
    finding->code = diag->code;
    finding->loading = true;
    finding->severity = diag->severity;
    finding->order = order;
    finding->line = diag->line;
    finding->column = diag->column;
    (void)snprintf(finding->file, sizeof finding->file, "%s", diag->file);
    (void)snprintf(finding->message, sizeof finding->message, "%.*s", (int)length, diag->message);
    (void)snprintf(finding->remedy, sizeof finding->remedy, "%s", half == NULL ? "" : half + 2);
}

static void diags_take(struct check *c, const struct becalm_diags *diags, uint32_t order)
{
    for (uint32_t i = 0; i < diags->count; i++) {
        struct lint_finding *finding = lint_append(&c->report);
        if (finding != NULL) {
            finding_from_diag(finding, &diags->diag[i], order);
        }
    }
    c->errors += diags->errors;
    c->warnings += diags->warnings;
}

static int input_load(struct becalm_config **config, const struct becalm_load_options *options,
                      struct becalm_diags *diags)
{
    size_t length = 0;
    char *text = file_read_open(stdin, &length);
    *config = NULL;
    if (text == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, "<stdin>", 1, 1, "unreadable", "%s", strerror(errno));
        return BECALM_EIO;
    }
    int rc = becalm_config_parse(config, "<stdin>", text, length, options, diags);
    free(text);
    return rc;
}

/* Checks the certificates and keys of the policy: whether they can be read, belong together and are valid. */
static int certificates_check(const struct becalm_config *config, struct becalm_diags *diags)
{
    struct tls_set *set = NULL;
    int rc = tls_set_make(&set, &(struct tls_set_plan){.config = config}, diags);
    tls_set_drop(set);
    diags_sort(diags);
    return rc;
}

/* Loads all files. False: no memory. Errors in the files are in the report. */
static bool files_load(struct check *c)
{
    struct becalm_load_options options = {
        .shared_budgets = true,
        .substitute = true,
        .allow_unknown = cli_has(c->command, c->args, "allow-unknown"),
        .parts = cli_values(c->command, c->args, "include"),
        .set = cli_values(c->command, c->args, "set"),
    };
    struct becalm_diags *diags = malloc(sizeof *diags); /* too large for a stack */
    bool fine = diags != NULL;
    for (uint32_t i = 0; fine && i < c->args->word_count; i++) {
        const char *path = c->args->words[i];
        struct becalm_config *config = NULL;
        memset(diags, 0, sizeof *diags);
        int rc = strcmp(path, "-") == 0 ? input_load(&config, &options, diags)
                                        : becalm_config_load(&config, path, &options, diags);
        if (rc == 0) {
            rc = certificates_check(config, diags);
        }
        if (rc == 0 && cli_has(c->command, c->args, "store")) {
            rc = check_store(config, diags);
        }
        diags_take(c, diags, i);
        fine = rc != BECALM_ENOMEM;
        if (config != NULL) {
            c->configs[c->count++] = config;
        }
    }
    free(diags);
    return fine;
}

/* ---- findings ---- */

static void findings_count(struct check *c)
{
    uint32_t errors = 0;
    uint32_t warnings = 0;
    for (uint32_t i = 0; i < c->report.count; i++) {
        const struct lint_finding *finding = &c->report.findings[i];
        c->silenced += finding->silenced;
        errors += !finding->silenced && finding->severity == BECALM_ERROR;
        warnings += !finding->silenced && finding->severity == BECALM_WARNING;
    }
    /* The loader also counts errors beyond the room of its list. */
    c->errors = errors > c->errors ? errors : c->errors;
    c->warnings = warnings > c->warnings ? warnings : c->warnings;
    c->errors += c->report.cut; /* unchecked rules count as an error */
}

static void findings_print(const struct check *c)
{
    struct cli_style style = cli_style(stdout);
    for (uint32_t i = 0; i < c->report.count; i++) {
        const struct lint_finding *f = &c->report.findings[i];
        if (f->silenced) {
            continue;
        }
        bool one_line = f->loading && f->remedy[0] != '\0';
        printf("%s%s:%u:%u:%s %s%s:%s %s%s%s %s[%s]%s\n", style.bold, f->file, f->line, f->column, style.reset,
               f->severity == BECALM_ERROR ? style.red : style.yellow, diag_severity_word(f->severity), style.reset,
               f->message, one_line ? "; " : "", one_line ? f->remedy : "", style.dim, f->code, style.reset);
        if (!one_line && f->remedy[0] != '\0') {
            printf("    %s\n", f->remedy);
        }
    }
    if (c->report.cut) {
        printf("error: there are more than %u findings, and the rest was not checked; fix these first\n",
               LINT_FINDINGS_MAX);
    }
}

/* ---- the table ---- */

static int by_badness(const void *a, const void *b)
{
    const struct graph_node *x = *(const struct graph_node *const *)a;
    const struct graph_node *y = *(const struct graph_node *const *)b;
    if (x->budgeted != y->budgeted) {
        return x->budgeted > y->budgeted ? -1 : 1;
    }
    if (x->unbudgeted != y->unbudgeted) {
        return x->unbudgeted > y->unbudgeted ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* the order of the files */
}

static void amount_print(uint64_t ppm, int width)
{
    char text[48];
    (void)snprintf(text, sizeof text, "%s%sx", ppm == GRAPH_MOST ? ">" : "", lint_amount(ppm).text);
    printf("%*s", width, text);
}

/* One word of a path, on a new line if this one is full. */
static void path_word(size_t *column, const char *text)
{
    size_t length = strlen(text);
    if (*column + length + 3 > WIDTH && *column > 6) {
        printf("\n      ");
        *column = 6;
    }
    fputs(text, stdout);
    *column += length;
}

/* "    client > frontend x3 > orders x3": each with the attempts of the hop that leads to it. */
static void path_print(const struct graph *graph, const uint32_t *path, uint32_t count, const char *whose)
{
    size_t column = 4 + strlen(whose);
    printf("    %s", whose);
    path_word(&column, "client");
    for (uint32_t i = 0; i < count; i++) {
        char word[192] = " > ...";
        if (path[i] != GRAPH_NONE) {
            struct graph_entry entry = graph_entry(graph, path[0]);
            const struct graph_hop *hop = i == 0 && entry.retries ? &graph->hops[entry.hop] : NULL;
            if (i > 0 && path[i - 1] != GRAPH_NONE) {
                hop = graph_hop_between(graph, path[i - 1], path[i]);
            }
            (void)snprintf(word, sizeof word, " > %.128s", graph->nodes[path[i]].name);
            escape_text(word, sizeof word);
            if (hop != NULL && hop->attempts > 1) {
                size_t used = strlen(word);
                (void)snprintf(word + used, sizeof word - used, " x%u", hop->attempts);
            }
        }
        path_word(&column, word);
    }
    putchar('\n');
}

/* The path of the first figure, and that of the second if it is another one. */
static void paths_print(const struct graph *graph, uint32_t node)
{
    uint32_t path[GRAPH_PATH_MAX];
    uint32_t other[GRAPH_PATH_MAX];
    uint32_t count = graph_path(graph, node, GRAPH_BY_UNBUDGETED, path);
    uint32_t other_count = graph_path(graph, node, GRAPH_BY_BUDGETED, other);
    path_print(graph, path, count, "");
    if (count != other_count || memcmp(path, other, count * sizeof *path) != 0) {
        path_print(graph, other, other_count, "with budgets: ");
    }
}

static void row_print(const struct graph *graph, const struct graph_node *node)
{
    char name[160];
    (void)snprintf(name, sizeof name, "%.128s", node->name);
    escape_text(name, sizeof name);
    if (strlen(name) > NAME_WIDTH) {
        printf("  %s\n  %*s", name, NAME_WIDTH, "");
    } else {
        printf("  %-*s", NAME_WIDTH, name);
    }
    amount_print(node->unbudgeted, 12);
    amount_print(node->budgeted, 10);
    amount_print(node->dead, 8);
    amount_print(node->marked, 8);
    printf("%14s\n", node->time.most == BECALM_NEVER ? "no limit" : lint_duration(node->time.most).text);
    paths_print(graph, (uint32_t)(node - graph->nodes));
}

/* The longest that a call to this service waits for a host to accept connections, in any file. */
static becalm_ns parked_of(const struct graph *graph, const struct graph_node *node)
{
    becalm_ns longest = 0;
    for (uint32_t hop = node->hop; hop != GRAPH_NONE; hop = graph->hops[hop].next) {
        longest = becalm_ns_max(longest, graph->hops[hop].parked);
    }
    return longest;
}

static void parked_print(const struct graph *graph)
{
    const struct graph_node *worst = NULL;
    becalm_ns longest = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        becalm_ns parked = parked_of(graph, &graph->nodes[n]);
        if (parked > longest) {
            longest = parked;
            worst = &graph->nodes[n];
        }
    }
    if (worst != NULL) {
        char name[160];
        (void)snprintf(name, sizeof name, "%.128s", worst->name);
        escape_text(name, sizeof name);
        printf("  While a service restarts, a call to it waits for up to %s (%s)\n", lint_duration(longest).text, name);
    }
}

/* The attempt timeout of calls to this service where no file says one; 0: every file that has the service does. */
static becalm_ns unwritten_of(const struct graph *graph, const struct graph_node *node)
{
    becalm_ns longest = 0;
    for (uint32_t hop = node->hop; hop != GRAPH_NONE; hop = graph->hops[hop].next) {
        longest = becalm_ns_max(longest, graph->hops[hop].unwritten);
    }
    return longest;
}

/* The learned attempt timeout of a service without a written one, which the table names. */
static void unwritten_print(const struct graph *graph)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        becalm_ns timeout = unwritten_of(graph, &graph->nodes[n]);
        if (timeout == 0 || ++count > UNWRITTEN_NAMES) {
            continue;
        }
        char name[160];
        (void)snprintf(name, sizeof name, "%.128s", graph->nodes[n].name);
        escape_text(name, sizeof name);
        if (count == 1) {
            printf("  Where `attemptTimeout` is not written it is learned, and no answer within %s is cut: %s",
                   lint_duration(timeout).text, name);
        } else {
            printf(", %s", name);
        }
    }
    if (count > UNWRITTEN_NAMES) {
        printf(" and %u more", count - UNWRITTEN_NAMES);
    }
    if (count > 0) {
        putchar('\n');
    }
}

static bool table_print(const struct check *c)
{
    const struct graph *graph = c->graph;
    struct cli_style style = cli_style(stdout);
    if (graph->node_count == 0) {
        return true;
    }
    const struct graph_node **nodes = calloc(graph->node_count, sizeof *nodes);
    if (nodes == NULL) {
        return false;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        nodes[n] = &graph->nodes[n];
    }
    qsort(nodes, graph->node_count, sizeof *nodes, by_badness);
    printf("%s%sWorst case per client request, in attempts at each service%s\n",
           c->report.count > c->silenced ? "\n" : "", style.bold, style.reset);
    printf("%s  %-*s%12s%10s%8s%8s%14s%s\n", style.dim, NAME_WIDTH, "service", "no budgets", "budgets", "dead", "marks",
           "client waits", style.reset);
    for (uint32_t n = 0; n < graph->node_count && n < TABLE_ROWS; n++) {
        row_print(graph, nodes[n]);
    }
    if (graph->node_count > TABLE_ROWS) {
        printf("  (and %u services below that; --json has them all)\n", graph->node_count - TABLE_ROWS);
    }
    parked_print(graph);
    unwritten_print(graph);
    putchar('\n');
    free(nodes);
    return true;
}

static void summary_print(const struct check *c)
{
    char silenced[48] = "";
    const char *name = c->args->word_count == 1 ? c->args->words[0] : NULL;
    if (c->silenced > 0) {
        (void)snprintf(silenced, sizeof silenced, ", %u silenced", c->silenced);
    }
    if (name == NULL) {
        printf("%u files: ", c->args->word_count);
    } else {
        printf("%s: ", strcmp(name, "-") == 0 ? "<stdin>" : name);
    }
    if (c->errors + c->warnings == 0) {
        printf("no findings%s\n", silenced);
        return;
    }
    printf("%u error%s, %u warning%s%s\n", c->errors, c->errors == 1 ? "" : "s", c->warnings,
           c->warnings == 1 ? "" : "s", silenced);
}

/* ---- JSON ---- */

static void findings_json(const struct check *c, struct json *json)
{
    json_array(json, "findings");
    for (uint32_t i = 0; i < c->report.count; i++) {
        const struct lint_finding *f = &c->report.findings[i];
        if (f->silenced) {
            continue;
        }
        json_object(json, NULL);
        json_text(json, "code", f->code);
        json_text(json, "severity", diag_severity_word(f->severity));
        json_text(json, "file", f->file);
        json_integer(json, "line", f->line);
        json_integer(json, "column", f->column);
        json_text(json, "message", f->message);
        json_text(json, "remedy", f->remedy[0] == '\0' ? NULL : f->remedy);
        json_object_end(json);
    }
    json_array_end(json);
}

static void amount_json(struct json *json, const char *key, uint64_t ppm)
{
    json_number(json, key, (double)ppm / GRAPH_ONE, 3);
}

static void node_json(const struct graph *graph, uint32_t n, struct json *json)
{
    const struct graph_node *node = &graph->nodes[n];
    uint32_t path[GRAPH_PATH_MAX];
    uint32_t count = graph_path(graph, n, GRAPH_BY_UNBUDGETED, path);
    json_object(json, NULL);
    json_text(json, "service", node->name);
    json_array(json, "path");
    for (uint32_t i = 0; i < count; i++) {
        json_text(json, NULL, path[i] == GRAPH_NONE ? "..." : graph->nodes[path[i]].name);
    }
    json_array_end(json);
    amount_json(json, "unbudgeted", node->unbudgeted);
    amount_json(json, "budgeted", node->budgeted);
    amount_json(json, "dead", node->dead);
    amount_json(json, "marked", node->marked);
    if (node->time.most == BECALM_NEVER) {
        json_null(json, "longest_ms");
    } else {
        json_integer(json, "longest_ms", node->time.most / BECALM_MS + (node->time.most % BECALM_MS != 0));
    }
    json_integer(json, "restart_ms", parked_of(graph, node) / BECALM_MS);
    json_boolean(json, "timeout_written", unwritten_of(graph, node) == 0);
    json_object_end(json);
}

static void all_json(const struct check *c)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    findings_json(c, &json);
    json_object(&json, "summary");
    json_integer(&json, "errors", c->errors);
    json_integer(&json, "warnings", c->warnings);
    if (c->report.cut) {
        json_boolean(&json, "truncated", true);
    }
    json_object_end(&json);
    json_array(&json, "amplification");
    for (uint32_t n = 0; c->graph != NULL && n < c->graph->node_count; n++) {
        node_json(c->graph, n, &json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_end(&json);
}

/* ---- --explain ---- */

/* The target whose policy is printed. */
struct told {
    struct json *json; /* NULL: as text */
    const struct becalm_config *config;
    const char *file;
    const struct becalm_service *service;   /* NULL: defaults */
    const struct becalm_endpoint *endpoint; /* NULL: the service's own */
    const struct becalm_rules *rules;
    bool retries_off; /* by gatewayRetries */
};

static bool in_file(struct becalm_origin origin)
{
    return origin.level != BECALM_FROM_BUILT_IN && origin.level != BECALM_FROM_SET;
}

static void value_json(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                       void *data)
{
    const struct told *told = data;
    struct json *json = told->json;
    json_object(json, NULL);
    json_text(json, "key", key);
    json_text(json, "value", value);
    json_text(json, "from", becalm_origin_word(origin.level));
    json_text(json, "file", in_file(origin) ? becalm_service_file(told->config, told->service, origin) : NULL);
    if (in_file(origin)) {
        json_integer(json, "line", origin.line);
        json_integer(json, "column", origin.column);
    } else {
        json_null(json, "line");
        json_null(json, "column");
    }
    json_text(json, "sentence", sentence);
    json_object_end(json);
}

/* Words from `column` on; further lines begin at `indent`. Returns the column. */
static size_t print_wrapped(const char *text, size_t column, size_t indent)
{
    for (bool first = true; *text != '\0'; first = false) {
        size_t length = strcspn(text, " ");
        if (!first && column + 1 + length > WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += length;
        text += length + strspn(text + length, " ");
    }
    return column;
}

static void value_print(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                        void *data)
{
    const struct told *told = data;
    struct cli_style style = cli_style(stdout);
    char left[1024];
    (void)snprintf(left, sizeof left, "%s: %s", key, value);
    escape_text(left, sizeof left);
    printf("  ");
    size_t column = print_wrapped(left, 2, 6);
    if (column + 2 > WHERE_AT) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", (int)(WHERE_AT - column), "");
    if (in_file(origin)) {
        printf("%s:%u\n", becalm_service_file(told->config, told->service, origin), origin.line);
    } else {
        printf("%s\n", becalm_origin_word(origin.level));
    }
    printf("    %s", style.dim);
    (void)print_wrapped(sentence, 4, 4);
    printf("%s\n", style.reset);
}

static void told_json(const struct told *told)
{
    struct json *json = told->json;
    json_object(json, NULL);
    json_text(json, "service", told->service == NULL ? NULL : told->service->name);
    json_text(json, "endpoint", told->endpoint == NULL ? NULL : told->endpoint->name);
    json_text(json, "file", told->file);
    json_boolean(json, "retries_off", told->retries_off);
    json_array(json, "values");
    becalm_rules_explain(told->rules, value_json, (void *)(uintptr_t)told);
    json_array_end(json);
    json_object_end(json);
}

static void told_print(const struct told *told)
{
    struct cli_style style = cli_style(stdout);
    if (told->service == NULL) {
        printf("%sdefaults%s (%s)\n", style.bold, style.reset, told->file);
    } else {
        printf("%s%s%s%s%s (%s:%u)\n", style.bold, told->service->name, told->endpoint == NULL ? "" : "/",
               told->endpoint == NULL ? "" : told->endpoint->name, style.reset, told->file,
               told->endpoint == NULL ? told->service->line : told->endpoint->line);
    }
    if (told->retries_off) {
        printf("  (gatewayRetries: false turns retries and hedges off while the role is gateway)\n");
    }
    becalm_rules_explain(told->rules, value_print, (void *)(uintptr_t)told);
}

static void tell(struct told told, const struct becalm_config *config, uint32_t *count)
{
    const struct becalm_settings *settings = becalm_config_settings(config);
    told.config = config;
    told.file = told.service == NULL ? becalm_config_name(config) : told.service->file;
    told.retries_off = settings->role == BECALM_ROLE_GATEWAY && !settings->gateway_retries;
    if (told.json != NULL) {
        told_json(&told);
    } else {
        if (*count > 0) {
            putchar('\n');
        }
        told_print(&told);
    }
    ++*count;
}

/* Is `target` this service ("all", its name), or this endpoint of it ("name/endpoint")? */
static bool is_target(const char *target, const struct becalm_service *service, const struct becalm_endpoint *endpoint)
{
    size_t length = strlen(service->name);
    if (strcmp(target, "all") == 0) {
        return true;
    }
    if (strncmp(target, service->name, length) != 0) {
        return false;
    }
    return endpoint == NULL ? target[length] == '\0'
                            : target[length] == '/' && strcmp(target + length + 1, endpoint->name) == 0;
}

static uint32_t explain_config(const struct becalm_config *config, const char *target, struct json *json,
                               uint32_t count)
{
    uint32_t services = becalm_config_services(config);
    if (strcmp(target, "defaults") == 0 || (services == 0 && strcmp(target, "all") == 0)) {
        tell((struct told){.json = json, .rules = becalm_config_defaults(config)}, config, &count);
    }
    for (uint32_t s = 0; s < services; s++) {
        const struct becalm_service *service = becalm_config_service(config, s);
        if (is_target(target, service, NULL)) {
            tell((struct told){.json = json, .service = service, .rules = &service->rules}, config, &count);
        }
        for (uint32_t e = 0; e < service->endpoint_count; e++) {
            const struct becalm_endpoint *endpoint = &service->endpoints[e];
            if (is_target(target, service, endpoint)) {
                tell((struct told){.json = json, .service = service, .endpoint = endpoint, .rules = &endpoint->rules},
                     config, &count);
            }
        }
    }
    return count;
}

/* The known service with the most similar name; NULL: none. */
static const char *nearest_service(const struct check *c, const char *target)
{
    const char **names = calloc(c->graph->node_count + (size_t)1, sizeof *names);
    if (names == NULL) {
        return NULL;
    }
    for (uint32_t n = 0; n < c->graph->node_count; n++) {
        names[n] = c->graph->nodes[n].name;
    }
    const char *nearest = value_nearest(target, names, c->graph->node_count);
    free(names);
    return nearest;
}

static bool target_exists(const struct check *c, const char *target)
{
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t s = 0; s < becalm_config_services(c->configs[i]); s++) {
            const struct becalm_service *service = becalm_config_service(c->configs[i], s);
            bool found = is_target(target, service, NULL);
            for (uint32_t e = 0; e < service->endpoint_count && !found; e++) {
                found = is_target(target, service, &service->endpoints[e]);
            }
            if (found) {
                return true;
            }
        }
    }
    return strcmp(target, "all") == 0 || strcmp(target, "defaults") == 0;
}

static int explain(const struct check *c, const char *target)
{
    struct json json;
    uint32_t count = 0;
    if (!target_exists(c, target)) {
        const char *nearest = nearest_service(c, target);
        return nearest == NULL
                   ? cli_fail(c->command, "there is no service or endpoint '%s'", target)
                   : cli_fail(c->command, "there is no service or endpoint '%s'; did you mean '%s'?", target, nearest);
    }
    if (c->json) {
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_array(&json, "explain");
    }
    for (uint32_t i = 0; i < c->count; i++) {
        count = explain_config(c->configs[i], target, c->json ? &json : NULL, count);
    }
    if (c->json) {
        json_array_end(&json);
        json_object_end(&json);
        json_end(&json);
    }
    return 0;
}

/* ---- the command ---- */

/* Lints and computes, if all files could be loaded. 0 or BECALM_ENOMEM. */
static int judge(struct check *c, uint64_t most)
{
    const struct becalm_config *const *configs = (const struct becalm_config *const *)c->configs;
    if (c->count < c->args->word_count) {
        lint_sort(&c->report);
        return 0;
    }
    int rc = graph_build(&c->graph, configs, c->count);
    if (rc == 0) {
        rc = lint_run(&c->report, configs, c->count, c->graph);
    }
    if (rc == 0 && most > 0) {
        lint_amplification(&c->report, configs, c->count, c->graph, most);
    }
    return rc;
}

static int report(struct check *c)
{
    findings_count(c);
    if (c->json) {
        all_json(c);
    } else if (c->format != CHECK_TEXT) {
        check_format_print(c->format, &c->report, c->args->words, c->args->word_count,
                           cli_has(c->command, c->args, "strict"));
    } else {
        findings_print(c);
        if (c->graph != NULL && !table_print(c)) {
            return cli_fail(c->command, "there is not enough memory");
        }
        summary_print(c);
    }
    return c->errors > 0 || (c->warnings > 0 && cli_has(c->command, c->args, "strict"));
}

static int check_run(const struct cli_command *command, const struct cli_args *args)
{
    const char *format = cli_value(command, args, "format");
    struct check c = {.command = command, .args = args};
    c.format = format == NULL ? CHECK_TEXT : check_format_named(format);
    c.json = cli_has(command, args, "json") || c.format == CHECK_JSON;
    const char *most_text = cli_value(command, args, "max-amplification");
    const char *target = cli_value(command, args, "explain");
    uint64_t most = 0;
    int rc = 0;
    if (most_text != NULL && (!value_decimal(most_text, GRAPH_ONE, &most) || most < GRAPH_ONE)) {
        return cli_usage(command, "--max-amplification is a number from 1 on, like 2 or 1.5; '%s' is not", most_text);
    }
    if (c.format == CHECK_FORMATS || (cli_has(command, args, "json") && format != NULL && c.format != CHECK_JSON)) {
        return cli_usage(command, "--format is one of " CHECK_FORMAT_WORDS ", and --json is the same as json; not '%s'",
                         format);
    }
    if (args->word_count == 0) {
        return cli_usage(command, "no policy is given: name at least one file, or - for standard input");
    }
    c.configs = calloc(args->word_count, sizeof(struct becalm_config *));
    if (c.configs == NULL || !files_load(&c) || judge(&c, most) != 0) {
        rc = cli_fail(command, "there is not enough memory");
    } else if (target != NULL && c.graph != NULL) {
        rc = explain(&c, target);
    } else if (cli_has(command, args, "route") && c.graph != NULL) {
        rc = check_route(command, args, c.configs, c.count);
    } else {
        rc = report(&c);
    }
    for (uint32_t i = 0; i < c.count; i++) {
        becalm_config_free(c.configs[i]);
    }
    free(c.configs);
    graph_free(c.graph);
    lint_free(&c.report);
    return rc;
}

static const struct cli_option check_options[] = {
    {.name = "json", .help = "print findings and figures as JSON"},
    {.name = "format",
     .argument = "FORMAT",
     .help = "print findings as text, json, for github (annotations), as sarif, or as junit",
     .complete = CLI_WORDS,
     .words = CHECK_FORMAT_WORDS},
    {.name = "strict", .help = "fail on warnings too"},
    {.name = "max-amplification",
     .argument = "X",
     .help = "fail if a client request can become more than X attempts at a service, budgets included"},
    {.name = "explain",
     .argument = "TARGET",
     .help = "print the effective policy and where it came from; TARGET is SERVICE, SERVICE/ENDPOINT, defaults or all"},
    {.name = "route",
     .argument = "REQUEST",
     .help = "print the service and endpoint that a request is routed to, and why: 'POST /pay'; may be repeated",
     .many = true},
    {.name = "host", .argument = "HOST", .help = "the host of the --route"},
    {.name = "header",
     .argument = "LINE",
     .help = "a header of the --route: 'x-plan: gold'; may be repeated",
     .many = true},
    {.name = "store", .help = "connect to the Redis of the files, and list the permissions that its user lacks"},
    {.name = "allow-unknown", .help = "warn of unknown keys instead of refusing them"},
    {.name = "include",
     .argument = "PATH",
     .help = "a file, or a folder of files, with more services of the policy; may be repeated",
     .complete = CLI_FILE,
     .many = true},
    {.name = "set", .argument = "KEY=VALUE", .help = "override a key of the files; may be repeated", .many = true},
    {.name = NULL},
};

const struct cli_command cmd_check = {
    .name = "check",
    .summary = "validate a policy, and prove its worst case",
    .usage = "check [options] POLICY...",
    .purpose = "Validates and lints policy files. From the call graph in them (calls: [...]) it\n"
               "computes how many attempts one client request can become at each service, and\n"
               "how long the client can wait. Several files are checked together; - is standard\n"
               "input. Exits 0 if there are no errors (warnings are allowed), 1 if there are.",
    .options = check_options,
    .examples = "  becalm check policy.yaml\n"
                "  becalm check --max-amplification 2 gateway.yaml sidecars/*.yaml\n"
                "  becalm check --format github --strict policies/*.yaml\n"
                "  becalm check --explain payment-service/charge policy.yaml\n"
                "  becalm check --route 'POST /pay' --host shop.example policy.yaml\n",
    .complete = CLI_FILE,
    .run = check_run,
};
