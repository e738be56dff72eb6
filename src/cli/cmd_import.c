/* SPDX-License-Identifier: MIT */
/* becalm import: other people's retry configuration as a policy on stdout, what has no equal on stderr. */
#include "cli.h"
#include "json.h"
#include "policy/diag.h"
#include "policy/file.h"
#include "policy/import/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool file_add(const struct cli_command *command, struct import *import, const char *path)
{
    size_t length = 0;
    bool typed = strcmp(path, "-") == 0;
    char *text = typed ? file_read_open(stdin, &length) : file_read(path, &length);
    if (text == NULL) {
        cli_fail(command, "%s: %s", path, strerror(errno));
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
        import_make_room(diags);
        becalm_diag_add(diags, BECALM_ERROR, "the imported policy", d->line, d->column, d->code, "%s", d->message);
    }
    if (rc != 0 && (own == NULL || own->count == 0)) {
        import_make_room(diags);
        becalm_diag_add(diags, BECALM_ERROR, "the imported policy", 1, 1, "no-memory",
                        "there is not enough memory to load it");
    }
    free(own);
    return rc == 0;
}

static void diags_print(const struct becalm_diags *diags, bool printed)
{
    for (uint32_t i = 0; i < diags->count; i++) {
        char line[1024];
        becalm_diag_write(&diags->diag[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    uint32_t all = diags->errors + diags->warnings;
    if (all > diags->count) {
        fprintf(stderr, "and %u more%s\n", (unsigned)(all - diags->count),
                printed ? "; the comments in the policy name them all" : "");
    }
}

static void json_print(const char *policy, const struct becalm_diags *diags)
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
    json_object_end(&json);
    json_object_end(&json);
    json_end(&json);
}

static int import_run(const struct cli_command *command, const struct cli_args *args, enum import_dialect dialect)
{
    int rc = 1;
    char *policy = NULL;
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    struct import *import = diags == NULL ? NULL : import_new(dialect, diags);
    if (args->word_count == 0) {
        rc = cli_usage(command, "no FILE is given; write - to read from stdin");
        goto out;
    }
    if (import == NULL) {
        rc = cli_fail(command, "out of memory");
        goto out;
    }
    for (uint32_t i = 0; i < args->word_count; i++) {
        if (!file_add(command, import, args->words[i])) {
            goto out;
        }
    }
    policy = diags->errors > 0 ? NULL : import_finish(import);
    if (policy != NULL && !policy_loads(policy, diags)) {
        free(policy);
        policy = NULL;
    }
    if (cli_has(command, args, "json")) {
        json_print(policy, diags);
    } else {
        diags_print(diags, policy != NULL);
        fputs(policy == NULL ? "" : policy, stdout);
    }
    rc = policy == NULL || (cli_has(command, args, "strict") && diags->warnings > 0) ? 1 : 0;
out:
    free(policy);
    import_free(import);
    free(diags);
    return rc;
}

static int istio_run(const struct cli_command *command, const struct cli_args *args)
{
    return import_run(command, args, IMPORT_ISTIO);
}

static int grpc_run(const struct cli_command *command, const struct cli_args *args)
{
    return import_run(command, args, IMPORT_GRPC);
}

static int envoy_run(const struct cli_command *command, const struct cli_args *args)
{
    return import_run(command, args, IMPORT_ENVOY);
}

static int gateway_api_run(const struct cli_command *command, const struct cli_args *args)
{
    return import_run(command, args, IMPORT_GATEWAY_API);
}

static const struct cli_option options[] = {
    {.name = "strict", .help = "exit with 1 if anything has no equal in Becalm"},
    {.name = "json", .help = "print the policy and the warnings as JSON"},
    {.name = NULL}};

#define HOW                                                                            \
    "Prints the policy on standard output, each line with a comment that says where\n" \
    "it came from. What has no equal in Becalm is a warning on standard error and a\n" \
    "comment in the policy. A file may have many documents; - is standard input."

static const struct cli_command dialects[] = {
    {.name = "istio",
     .summary = "VirtualService and DestinationRule",
     .usage = "import istio [options] FILE...",
     .purpose = "Translate Istio's VirtualServices and DestinationRules: retries, timeout,\n"
                "outlierDetection, connectionPool, retryBudget. `attempts: 3` is 3 retries.\n\n" HOW,
     .options = options,
     .examples = "  becalm import istio virtualservice.yaml destinationrule.yaml > policy.yaml\n"
                 "  kubectl get vs,dr -o yaml | becalm import istio -\n",
     .complete = CLI_FILE,
     .run = istio_run},
    {.name = "grpc",
     .summary = "service config: retryPolicy, hedgingPolicy, retryThrottling",
     .usage = "import grpc [options] FILE...",
     .purpose = "Translate a gRPC service config: retryPolicy, hedgingPolicy, retryThrottling,\n"
                "timeout. `maxAttempts: 3` is 2 retries, or 2 hedges.\n\n" HOW,
     .options = options,
     .examples = "  becalm import grpc service_config.json > policy.yaml\n",
     .complete = CLI_FILE,
     .run = grpc_run},
    {.name = "envoy",
     .summary = "routes and clusters of a bootstrap file, or pieces of one",
     .usage = "import envoy [options] FILE...",
     .purpose = "Translate Envoy's configuration: retry_policy and hedge_policy of routes,\n"
                "circuit_breakers with retry_budget and outlier_detection of clusters.\n"
                "`num_retries: 3` is 3 retries.\n\n" HOW,
     .options = options,
     .examples = "  becalm import envoy envoy.yaml > policy.yaml\n",
     .complete = CLI_FILE,
     .run = envoy_run},
    {.name = "gateway-api",
     .summary = "HTTPRoute's retry and timeouts, retryConstraint",
     .usage = "import gateway-api [options] FILE...",
     .purpose = "Translate Kubernetes' Gateway API: retry and timeouts of HTTPRoutes, and the\n"
                "retryConstraint of a BackendTrafficPolicy. `attempts: 3` is 3 retries.\n\n" HOW,
     .options = options,
     .examples = "  becalm import gateway-api httproute.yaml backendtrafficpolicy.yaml\n",
     .complete = CLI_FILE,
     .run = gateway_api_run},
    {.name = NULL}};

const struct cli_command cmd_import = {
    .name = "import",
    .summary = "translate the retry configuration of other systems",
    .usage = "import DIALECT [options] FILE...",
    .purpose = "Print the policy that the retry configuration of another system means.\n"
               "Exit codes: 0 translated, 1 the input is broken, 2 usage.",
    .examples = "  becalm import istio virtualservice.yaml destinationrule.yaml > policy.yaml\n"
                "  becalm import grpc service_config.json | becalm check -\n",
    .subcommands = dialects,
};
