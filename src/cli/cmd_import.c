/* SPDX-License-Identifier: MIT */
/* becalm import: retry configuration of other systems as a policy on stdout; settings without an equal are reported on
 * stderr. */
#include "cli.h"
#include "json.h"
#include "policy/diag.h"
#include "policy/file.h"
#include "policy/import/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool file_add(const struct cli_command *command, struct import *import, const char *path)
{
    size_t length = 0;
    bool typed = strcmp(path, "-") == 0;
    FILE *file = typed ? stdin : fopen(path, "rb");
    char *text = file == NULL ? NULL : file_read_most(file, IMPORT_BYTES_MAX, &length);
    int saved = errno;
    if (file != NULL && !typed) {
        (void)fclose(file); /* nothing was written to it */
    }
    if (text == NULL) {
        cli_fail(command, "%s: %s", path, strerror(saved));
        return false;
    }
    (void)import_add(import, typed ? "<stdin>" : path, text, length); /* the diags tell */
    free(text);
    return true;
}

/* The output is not trusted to be right, but tried. */
static bool policy_loads(const char *policy, struct becalm_diags *diags)
{
    struct becalm_config *config = NULL;
    struct becalm_diags *own = calloc(1, sizeof *own);
    int rc = own == NULL ? BECALM_ENOMEM : becalm_config_parse(&config, "policy", policy, strlen(policy), NULL, own);
    becalm_config_free(config);
    for (uint32_t i = 0; rc != 0 && own != NULL && i < own->count; i++) {
        const struct becalm_diag *d = &own->diag[i];
        diags_make_room(diags, BECALM_ERROR);
        becalm_diag_add(diags, BECALM_ERROR, "the imported policy", d->line, d->column, d->code, "%s", d->message);
    }
    if (rc != 0 && (own == NULL || own->count == 0)) {
        diags_make_room(diags, BECALM_ERROR);
        becalm_diag_add(diags, BECALM_ERROR, "the imported policy", 1, 1, "no-memory",
                        "there is not enough memory to load it");
    }
    free(own);
    return rc == 0;
}

#define LINES_MAX 12u /* of findings that are no errors; repeated ones are one line */

/* Says the same as one before it, of another place? */
static bool repeats(const struct becalm_diags *diags, uint32_t index)
{
    uint32_t i = 0;
    while (i < index && (diags->diag[i].severity != diags->diag[index].severity ||
                         strcmp(diags->diag[i].message, diags->diag[index].message) != 0)) {
        i++;
    }
    return i < index;
}

/* How often it is said from there on. */
static uint32_t times(const struct becalm_diags *diags, uint32_t index)
{
    uint32_t count = 0;
    for (uint32_t i = index; i < diags->count; i++) {
        count += diags->diag[i].severity == diags->diag[index].severity &&
                 strcmp(diags->diag[i].message, diags->diag[index].message) == 0;
    }
    return count;
}

/* Errors first, each of them; then warnings, then notes. Returns how many findings the lines are about. */
static uint32_t lines_print(const struct becalm_diags *diags)
{
    uint32_t told = 0;
    uint32_t lines = 0;
    for (enum becalm_severity severity = BECALM_ERROR; severity <= BECALM_NOTE; severity++) {
        for (uint32_t i = 0; i < diags->count; i++) {
            bool error = severity == BECALM_ERROR;
            if (diags->diag[i].severity != severity || (!error && (repeats(diags, i) || lines == LINES_MAX))) {
                continue;
            }
            char line[1024];
            uint32_t often = error ? 1 : times(diags, i);
            becalm_diag_write(&diags->diag[i], line, sizeof line);
            fputs(line, stderr);
            if (often > 1) {
                fprintf(stderr, " (%u times)", (unsigned)often);
            }
            fputc('\n', stderr);
            told += often;
            lines += !error;
        }
    }
    return told;
}

static void number_print(uint32_t number, const char *one, const char *many)
{
    fprintf(stderr, "%u %s", (unsigned)number, number == 1 ? one : many);
}

/* The summary: services and routes, differences, and how to use more of Becalm's defaults. */
static void summary_print(const struct import_counts *counts, const struct becalm_diags *diags)
{
    number_print(counts->services, "service, ", "services, ");
    number_print(counts->routes, "route; ", "routes; ");
    number_print(counts->left_out, "setting left out, ", "settings left out, ");
    number_print(counts->changed, "value changed\n", "values changed\n");
    number_print(diags->warnings, "warning: requests are routed or called in another way; ",
                 "warnings: requests are routed or called in another way; ");
    number_print(diags->notes, "note: routes and calls stay the same\n", "notes: routes and calls stay the same\n");
    fputs(
        "the policy turns off what the source does not configure; to use Becalm's default retries and timeouts, remove "
        "the lines that say `not written`\n",
        stderr);
}

static void diags_print(const struct becalm_diags *diags, const struct import_counts *counts, bool printed)
{
    uint32_t told = lines_print(diags);
    uint32_t all = diags->errors + diags->warnings + diags->notes;
    if (all > told) {
        fprintf(stderr, "and %u more%s\n", (unsigned)(all - told),
                printed ? "; the comments in the policy name all of them" : "");
    }
    if (printed) {
        summary_print(counts, diags);
    }
}

static void json_print(const char *policy, const struct becalm_diags *diags, const struct import_counts *counts)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "policy", policy);
    json_array(&json, "findings");
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct becalm_diag *d = &diags->diag[i];
        json_object(&json, NULL);
        json_text(&json, "code", d->code);
        json_text(&json, "severity", diag_severity_word(d->severity));
        json_text(&json, "file", d->file);
        json_integer(&json, "line", d->line);
        json_integer(&json, "column", d->column);
        json_text(&json, "message", d->message);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object(&json, "summary");
    json_integer(&json, "errors", diags->errors);
    json_integer(&json, "warnings", diags->warnings);
    json_integer(&json, "notes", diags->notes);
    json_integer(&json, "services", counts->services);
    json_integer(&json, "routes", counts->routes);
    json_integer(&json, "leftOut", counts->left_out);
    json_integer(&json, "changed", counts->changed);
    json_object_end(&json);
    json_object_end(&json);
    json_end(&json);
}

/* A first word that is neither a dialect nor a file is most likely a dialect that does not exist. */
static bool looks_like_a_dialect(const char *word)
{
    return strpbrk(word, "./") == NULL && strcmp(word, "-") != 0 && access(word, F_OK) != 0;
}

/* "istio, grpc, ...": the list of dialects for an error message. */
static void dialects_write(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; import_word(i) != NULL && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ", ", import_word(i));
    }
}

static int import_run(const struct cli_command *command, const struct cli_args *args)
{
    int rc = 1;
    char *policy = NULL;
    const char *first = args->word_count == 0 ? NULL : args->words[0];
    const char *dialect = import_knows(first) ? first : NULL;
    char words[256];
    dialects_write(words, sizeof words);
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    struct import *import = diags == NULL ? NULL : import_new(dialect, diags);
    uint32_t skip = dialect == NULL ? 0 : 1;
    if (args->word_count == skip) {
        rc = cli_usage(command, "no FILE is given; write - to read from stdin. The dialects are: %s", words);
        goto out;
    }
    if (dialect == NULL && looks_like_a_dialect(first)) {
        rc = cli_usage(command, "'%s' is neither a dialect nor a file. The dialects are: %s", first, words);
        goto out;
    }
    if (import == NULL) {
        rc = cli_fail(command, "out of memory");
        goto out;
    }
    for (uint32_t i = skip; i < args->word_count; i++) {
        if (!file_add(command, import, args->words[i])) {
            goto out;
        }
    }
    policy = import_finish(import);
    if (policy != NULL && !policy_loads(policy, diags)) {
        free(policy);
        policy = NULL;
    }
    if (cli_has(command, args, "json")) {
        json_print(policy, diags, import_counts(import));
    } else {
        diags_print(diags, import_counts(import), policy != NULL);
        fputs(policy == NULL ? "" : policy, stdout);
    }
    rc = policy == NULL || diags->errors > 0 || (cli_has(command, args, "strict") && diags->warnings > 0) ? 1 : 0;
out:
    free(policy);
    import_free(import);
    free(diags);
    return rc;
}

static const struct cli_option options[] = {
    {.name = "strict", .help = "exit with 1 if the policy differs from the source"},
    {.name = "json", .help = "print the policy and the findings as JSON"},
    {.name = NULL}};

const struct cli_command cmd_import = {
    .name = "import",
    .summary = "translate the retry configuration of other systems",
    .usage = "import [DIALECT] [options] FILE...",
    .purpose = "Translates the retry configuration of another system into a policy, and prints\n"
               "it; each line has a comment with its origin. The format of each object in a file\n"
               "is recognised; give a DIALECT for objects that are not recognised:\n\n"
               "  istio         VirtualService, DestinationRule, Gateway\n"
               "  gateway-api   HTTPRoute, GRPCRoute, BackendTrafficPolicy\n"
               "  grpc          a service config\n"
               "  envoy         a bootstrap file, or pieces of one\n"
               "  nginx         nginx.conf, with the files that it includes\n"
               "  ingress-nginx Ingress with its annotations, the controller's ConfigMap\n"
               "  haproxy       haproxy.cfg\n"
               "  linkerd       ServiceProfile, Service with annotations\n"
               "  resilience4j  Spring's application.yml or application.properties\n"
               "  traefik       dynamic configuration; IngressRoute, Middleware\n"
               "  kong          kong.yml\n"
               "  consul        service-router and similar entries, HCL or Kubernetes\n"
               "  dapr          Resiliency\n"
               "  aws           ~/.aws/config\n"
               "  spring-cloud-gateway  routes of an application.yml\n\n"
               "A setting without an equivalent in Becalm is reported on standard error and in a\n"
               "comment of the policy: as a warning if requests are routed or called in another\n"
               "way, else as a note. A file may have many documents; - is standard input.\n"
               "Exit codes: 0 translated, 1 the input is broken, 2 usage.",
    .options = options,
    .examples = "  becalm import virtualservice.yaml httproute.yaml > policy.yaml\n"
                "  kubectl get vs,dr,httproute -o yaml | becalm import -\n"
                "  becalm import grpc service_config.json | becalm check -\n",
    .complete = CLI_FILE,
    .run = import_run,
};
