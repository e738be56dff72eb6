/* SPDX-License-Identifier: MIT */
/* becalm init: asks three questions and writes a first policy. Each answer is judged by the loader itself as soon as it
 * is given, so that the written policy is always valid. An option answers a question before it is asked; the end of the
 * input answers all remaining questions with their defaults. */
#include "cli.h"

#include <becalm/config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES 1024
#define POLICY_BYTES 8192

enum question { SERVICE, HOSTS, MODE, QUESTIONS };

static const struct {
    const char *option;
    const char *ask;
    const char *fallback;
} questions[QUESTIONS] = {
    [SERVICE] = {"service", "What is the name of the service behind Becalm?", "app"},
    [HOSTS] = {"hosts", "Where are its hosts? host:port, several with commas", "127.0.0.1:9001"},
    [MODE] = {"mode", "Shall Becalm enforce the policy (enforce), or at first only count its decisions (shadow)?",
              "shadow"},
};

struct init {
    const struct cli_command *command;
    const char *listen;
    char answer[QUESTIONS][ANSWER_BYTES];
    char policy[POLICY_BYTES];
    bool ended; /* the input has */
};

/* ---- the policy that the answers make ---- */

struct text {
    char *at;
    size_t size, used;
};

static void put(struct text *text, const char *more)
{
    size_t length = strlen(more);
    size_t room = text->used < text->size ? text->size - text->used : 0;
    if (length < room) {
        memcpy(text->at + text->used, more, length + 1);
    }
    text->used += length; /* at or above the size: it did not fit */
}

/* Writes a text in quotes, with all characters escaped as needed. */
static void put_quoted(struct text *text, const char *word, size_t length)
{
    put(text, "\"");
    for (size_t i = 0; i < length; i++) {
        char c[3] = {word[i], '\0', '\0'};
        if (c[0] == '"' || c[0] == '\\') {
            c[0] = '\\';
            c[1] = word[i];
        }
        put(text, c);
    }
    put(text, "\"");
}

static void put_hosts(struct text *text, const char *hosts)
{
    bool first = true;
    put(text, "[");
    for (const char *at = hosts; *at != '\0'; first = false) {
        at += strspn(at, ", ");
        size_t length = strcspn(at, ", ");
        if (length == 0) {
            break;
        }
        put(text, first ? "" : ", ");
        put_quoted(text, at, length);
        at += length;
    }
    put(text, "]");
}

/* False: it does not fit. */
static bool policy_write(struct init *init)
{
    struct text text = {init->policy, sizeof init->policy, 0};
    put(&text, "# yaml-language-server: $schema=/usr/share/becalm/becalm.schema.json\n"
               "# Written by `becalm init`. becalm.yaml(5) lists all keys; `becalm check` finds mistakes.\n"
               "listen: ");
    put_quoted(&text, init->listen, strlen(init->listen));
    put(&text, "\nadmin: 127.0.0.1:9900 # the dashboard, metrics and `becalm top`\n\n");
    put(&text, "defaults: {mode: ");
    put_quoted(&text, init->answer[MODE], strlen(init->answer[MODE]));
    put(&text, strcmp(init->answer[MODE], "shadow") == 0
                   ? "} # Becalm only counts its decisions; remove this line to enforce them\n"
                   : "}\n");
    put(&text, "\nservices:\n  ");
    put_quoted(&text, init->answer[SERVICE], strlen(init->answer[SERVICE]));
    put(&text, ":\n    hosts: ");
    put_hosts(&text, init->answer[HOSTS]);
    put(&text, "\n    match: {prefix: /} # all requests go to this service\n");
    return text.used < text.size;
}

/* The loader's first error in the policy of the answers so far. NULL: none. */
static const char *objection(struct init *init, struct becalm_diags *diags)
{
    struct becalm_config *config = NULL;
    memset(diags, 0, sizeof *diags);
    if (!policy_write(init)) {
        return "that is too long";
    }
    int rc = becalm_config_parse(&config, "becalm.yaml", init->policy, strlen(init->policy), NULL, diags);
    becalm_config_free(config);
    if (rc == 0) {
        return NULL;
    }
    return diags->count > 0 ? diags->diag[0].message : "there is not enough memory";
}

/* ---- asking ---- */

/* False: the input has ended. */
static bool read_line(char line[ANSWER_BYTES])
{
    if (fgets(line, ANSWER_BYTES, stdin) == NULL) {
        return false;
    }
    size_t length = strcspn(line, "\n");
    if (line[length] == '\0') { /* too long: the rest of the line must not answer the next question */
        for (int c = getchar(); c != '\n' && c != EOF;) {
            c = getchar();
        }
    }
    line[length] = '\0';
    return true;
}

static bool answer_fits(struct init *init, enum question question, const char *answer, struct becalm_diags *diags)
{
    (void)snprintf(init->answer[question], ANSWER_BYTES, "%s", answer);
    const char *why = objection(init, diags);
    if (why != NULL) {
        fprintf(stderr, "  That can't be: %s\n", why);
    }
    return why == NULL;
}

static int ask(struct init *init, enum question question, struct becalm_diags *diags)
{
    char line[ANSWER_BYTES];
    while (!init->ended) {
        fprintf(stderr, "%s\n  [%s] ", questions[question].ask, questions[question].fallback);
        if (!read_line(line)) {
            fputc('\n', stderr);
            init->ended = true;
        } else if (answer_fits(init, question, line[0] == '\0' ? questions[question].fallback : line, diags)) {
            return 0;
        } else {
            (void)answer_fits(init, question, questions[question].fallback, diags);
        }
    }
    return 0; /* the default is set already */
}

static int answers_take(struct init *init, const struct cli_args *args, struct becalm_diags *diags)
{
    int rc = 0;
    for (int q = 0; q < QUESTIONS; q++) {
        (void)snprintf(init->answer[q], ANSWER_BYTES, "%s", questions[q].fallback);
    }
    init->listen = cli_value(init->command, args, "listen");
    init->listen = init->listen == NULL ? BECALM_LISTEN_DEFAULT : init->listen;
    const char *why = objection(init, diags);
    if (why != NULL) {
        return cli_fail(init->command, "--listen: %s", why);
    }
    for (int q = 0; q < QUESTIONS && rc == 0; q++) {
        const char *given = cli_value(init->command, args, questions[q].option);
        if (given == NULL) {
            rc = cli_has(init->command, args, "yes") ? 0 : ask(init, (enum question)q, diags);
            continue;
        }
        (void)snprintf(init->answer[q], ANSWER_BYTES, "%s", given);
        why = objection(init, diags);
        if (why != NULL) {
            rc = cli_fail(init->command, "--%s: %s", questions[q].option, why);
        }
    }
    return rc;
}

/* ---- the command ---- */

static int file_write(const struct init *init, const char *path, bool force)
{
    FILE *file = fopen(path, force ? "w" : "wx");
    if (file == NULL && errno == EEXIST) {
        return cli_fail(init->command, "%s is there already; --force writes over it", path);
    }
    if (file == NULL) {
        return cli_fail(init->command, "%s: %s", path, strerror(errno));
    }
    bool written = fputs(init->policy, file) >= 0;
    written = fclose(file) == 0 && written;
    if (!written) {
        return cli_fail(init->command, "%s: %s", path, strerror(errno));
    }
    printf("%s is written. Next:\n"
           "  becalm check %s    # errors, warnings and the worst case\n"
           "  becalm proxy %s    # run it; http://127.0.0.1:9900/ is the dashboard\n",
           path, path, path);
    if (strncmp(init->listen, "unix:", 5) != 0) {
        printf("  curl -i http://%s/\n", init->listen);
    }
    return 0;
}

static int init_run(const struct cli_command *command, const struct cli_args *args)
{
    const char *path = args->word_count == 0 ? "becalm.yaml" : args->words[0];
    bool force = cli_has(command, args, "force");
    if (args->word_count > 1) {
        return cli_usage(command, "one FILE at most");
    }
    FILE *there = force ? NULL : fopen(path, "r"); /* refuse before the questions, not after */
    if (there != NULL) {
        (void)fclose(there);
        return cli_fail(command, "%s is there already; --force writes over it", path);
    }
    struct init *init = calloc(1, sizeof *init);
    struct becalm_diags *diags = calloc(1, sizeof *diags); /* too large for a stack, both */
    int rc;
    if (init == NULL || diags == NULL) {
        rc = cli_fail(command, "there is not enough memory");
    } else {
        init->command = command;
        rc = answers_take(init, args, diags);
        rc = rc == 0 ? file_write(init, path, force) : rc;
    }
    free(diags);
    free(init);
    return rc;
}

static const struct cli_option init_options[] = {
    {.name = "service", .argument = "NAME", .help = "the service's name"},
    {.name = "hosts", .argument = "LIST", .help = "the addresses of its hosts: host:port, separated by commas"},
    {.name = "mode",
     .argument = "MODE",
     .help = "shadow: only count decisions; enforce: apply them",
     .complete = CLI_WORDS,
     .words = "shadow enforce"},
    {.name = "listen", .argument = "ADDRESS", .help = "the address that Becalm listens on (" BECALM_LISTEN_DEFAULT ")"},
    {.name = "yes", .letter = 'y', .help = "ask nothing, and use the default of each missing option"},
    {.name = "force", .help = "overwrite an existing file"},
    {.name = NULL},
};

const struct cli_command cmd_init = {
    .name = "init",
    .summary = "ask three questions and write a first policy",
    .usage = "init [options] [FILE]",
    .purpose = "Writes a first policy to FILE (default: becalm.yaml): one service, the address\n"
               "that Becalm listens on, and shadow mode, in which it only counts. After a wrong\n"
               "answer the question is asked again. The end of the input, and --yes, take the\n"
               "defaults.",
    .options = init_options,
    .examples = "  becalm init\n"
                "  becalm init --yes --service payment --hosts 10.0.0.1:80,10.0.0.2:80\n",
    .complete = CLI_FILE,
    .run = init_run,
};
