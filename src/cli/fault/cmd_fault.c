/* SPDX-License-Identifier: MIT */
/* becalm fault: injects faults into a gateway, for game days. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_fault.h"

#include "top/json_reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- the gateway ---- */

bool fault_desk_open(struct fault_desk *desk, const struct cli_command *self, const struct cli_args *args, int *code)
{
    char why[LINK_WHY_MAX];
    const char *admin = cli_value(self, args, "admin");
    desk->self = self;
    desk->link = NULL;
    if (!link_place_parse(admin == NULL ? LINK_DEFAULT : admin, &desk->place, why)) {
        *code = cli_usage(self, "%s", why);
        return false;
    }
    desk->token_file = cli_value(self, args, "token-file");
    desk->link = link_new(&desk->place, desk->token_file);
    if (desk->link == NULL) {
        *code = cli_fail(self, "out of memory");
    }
    return desk->link != NULL;
}

/* Reads the detail of a problem document. */
static void problem_read(const char *text, size_t length, char *detail, size_t size)
{
    struct json_reader r;
    char key[32];
    detail[0] = '\0';
    json_reader_init(&r, text, length);
    json_reader_object(&r);
    while (json_reader_key(&r, key, sizeof key)) {
        if (strcmp(key, "detail") == 0) {
            json_reader_text(&r, detail, size);
        } else {
            json_reader_skip(&r);
        }
    }
}

int fault_desk_order(struct fault_desk *desk, const char *method, const char *name, const char *body)
{
    char detail[512];
    size_t length;
    link_order(desk->link, method, name == NULL ? "/api/faults" : "/api/faults/", name, body);
    if (link_end(desk->link) == LINK_FAILED) {
        return cli_fail(desk->self, "%s: %s", desk->place.name, link_why(desk->link));
    }
    if (link_status(desk->link) == 200) {
        return 0;
    }
    if (link_status(desk->link) == 401 && desk->token_file == NULL) {
        return cli_fail(desk->self,
                        "%s asks for a token; write --token-file and the file that its adminTokenFile names",
                        desk->place.name);
    }
    if (link_status(desk->link) == 401) {
        return cli_fail(desk->self, "%s does not know the token in %s: its adminTokenFile has another one",
                        desk->place.name, desk->token_file);
    }
    const char *text = link_text(desk->link, &length);
    problem_read(text, length, detail, sizeof detail);
    return cli_fail(desk->self, "%s: %ld: %s", desk->place.name, link_status(desk->link),
                    detail[0] == '\0' ? "is this the admin address of a gateway?" : detail);
}

/* ---- the faults in force, as text ---- */

struct told {
    char name[40];
    char service[132];
    char endpoint[132];
    char fault[32];
    char towards[16];
    uint64_t ends_ms;
    uint64_t hits;
    uint64_t cap;
};

static void told_read(struct json_reader *r, struct told *told)
{
    char key[32];
    *told = (struct told){.hits = 0};
    json_reader_object(r);
    while (json_reader_key(r, key, sizeof key)) {
        if (strcmp(key, "name") == 0) {
            json_reader_text(r, told->name, sizeof told->name);
        } else if (strcmp(key, "service") == 0) {
            json_reader_text(r, told->service, sizeof told->service);
        } else if (strcmp(key, "endpoint") == 0) {
            json_reader_text(r, told->endpoint, sizeof told->endpoint);
        } else if (strcmp(key, "fault") == 0) {
            json_reader_text(r, told->fault, sizeof told->fault);
        } else if (strcmp(key, "towards") == 0) {
            json_reader_text(r, told->towards, sizeof told->towards);
        } else if (strcmp(key, "endsInMs") == 0) {
            told->ends_ms = json_reader_number(r) / JSON_READER_ONE;
        } else if (strcmp(key, "hits") == 0) {
            told->hits = json_reader_number(r) / JSON_READER_ONE;
        } else if (strcmp(key, "cap") == 0) {
            told->cap = json_reader_number(r) / JSON_READER_ONE;
        } else {
            json_reader_skip(r);
        }
    }
}

static void told_print(const struct told *told)
{
    bool whole = told->endpoint[0] == '\0';
    printf("%s: %s of %s%s%s towards %s, ends in %llu s, has hit %llu of at most %llu\n", told->name, told->fault,
           told->service, whole ? "" : " ", told->endpoint, told->towards,
           (unsigned long long)((told->ends_ms + 999) / 1000), (unsigned long long)told->hits,
           (unsigned long long)told->cap);
}

static void print_answer(const struct fault_desk *desk)
{
    size_t length;
    const char *text = link_text(desk->link, &length);
    fwrite(text, 1, length, stdout);
}

/* ---- inject ---- */

static void put_list(struct buffer *body, const char *key, const char *const *list)
{
    if (list == NULL || list[0] == NULL) {
        return;
    }
    buffer_json_open(body, key, '[');
    for (uint32_t i = 0; list[i] != NULL; i++) {
        buffer_json_chars(body, NULL, list[i]);
    }
    buffer_json_close(body, ']');
}

static void put_option(struct buffer *body, const struct cli_command *self, const struct cli_args *args,
                       const char *option, const char *key)
{
    buffer_json_chars(body, key, cli_value(self, args, option));
}

static int inject_run(const struct cli_command *self, const struct cli_args *args)
{
    struct fault_desk desk;
    char word[32];
    int code = 0;
    const char *equals = args->word_count == 2 ? strchr(args->words[1], '=') : NULL;
    if (args->word_count != 2) {
        return cli_usage(self, "a service and a fault: becalm fault inject payment errors=10%% --for 30s");
    }
    size_t length = equals == NULL ? strlen(args->words[1]) : (size_t)(equals - args->words[1]);
    if (length >= sizeof word) {
        return cli_usage(self, "'%.40s' is no fault", args->words[1]);
    }
    memcpy(word, args->words[1], length);
    word[length] = '\0';
    if (cli_value(self, args, "for") == NULL) {
        return cli_usage(self, "a fault needs an end: give its length, such as --for 30s");
    }
    if (!fault_desk_open(&desk, self, args, &code)) {
        return code;
    }
    struct buffer body = {.bytes_max = FAULT_BODY_MAX};
    const char *value = equals == NULL ? "true" : equals + 1;
    buffer_json_open(&body, NULL, '{');
    buffer_json_chars(&body, "service", args->words[0]);
    buffer_json_chars(&body, word, value);
    put_option(&body, self, args, "for", "for");
    put_option(&body, self, args, "endpoint", "endpoint");
    put_option(&body, self, args, "name", "name");
    put_option(&body, self, args, "share", "share");
    put_option(&body, self, args, "status", "status");
    put_option(&body, self, args, "cap", "cap");
    put_option(&body, self, args, "towards", "towards");
    put_list(&body, "clients", cli_values(self, args, "client"));
    put_list(&body, "headers", cli_values(self, args, "header"));
    buffer_json_close(&body, '}');
    buffer_bytes(&body, "", 1);
    code = body.full ? cli_fail(self, "out of memory") : fault_desk_order(&desk, "POST", NULL, body.at);
    if (code == 0 && cli_has(self, args, "json")) {
        print_answer(&desk);
    } else if (code == 0) {
        struct json_reader r;
        struct told told;
        size_t size;
        const char *text = link_text(desk.link, &size);
        json_reader_init(&r, text, size);
        told_read(&r, &told);
        told_print(&told);
    }
    buffer_free(&body);
    link_free(desk.link);
    return code;
}

/* ---- list ---- */

static void list_print(const char *text, size_t length)
{
    struct json_reader r;
    struct told told;
    char key[32];
    uint32_t count = 0;
    json_reader_init(&r, text, length);
    json_reader_object(&r);
    while (json_reader_key(&r, key, sizeof key)) {
        if (strcmp(key, "faults") != 0) {
            json_reader_skip(&r);
            continue;
        }
        json_reader_array(&r);
        while (json_reader_item(&r)) {
            told_read(&r, &told);
            told_print(&told);
            count++;
        }
    }
    if (count == 0) {
        puts("no fault is in force");
    }
}

static int list_run(const struct cli_command *self, const struct cli_args *args)
{
    struct fault_desk desk;
    int code = 0;
    size_t length;
    if (!fault_desk_open(&desk, self, args, &code)) {
        return code;
    }
    code = fault_desk_order(&desk, "GET", NULL, NULL);
    if (code == 0 && cli_has(self, args, "json")) {
        print_answer(&desk);
    } else if (code == 0) {
        const char *text = link_text(desk.link, &length);
        list_print(text, length);
    }
    link_free(desk.link);
    return code;
}

/* ---- clear ---- */

static int clear_run(const struct cli_command *self, const struct cli_args *args)
{
    struct fault_desk desk;
    int code = 0;
    if (!fault_desk_open(&desk, self, args, &code)) {
        return code;
    }
    if (args->word_count == 0) {
        code = fault_desk_order(&desk, "DELETE", NULL, NULL);
    }
    for (uint32_t i = 0; i < args->word_count && code == 0; i++) {
        code = fault_desk_order(&desk, "DELETE", args->words[i], NULL);
    }
    if (code == 0 && cli_has(self, args, "json")) {
        print_answer(&desk);
    }
    link_free(desk.link);
    return code;
}

/* ---- the commands ---- */

static const struct cli_option inject_options[] = {
    {.name = "for", .argument = "TIME", .help = "the length of the fault, up to 1h; required"},
    {.name = "endpoint",
     .argument = "NAME",
     .help = "only calls of this endpoint; 'default': of the service's own rules"},
    {.name = "share", .argument = "PERCENT", .help = "the share of attempts or calls that it hits: 100%"},
    {.name = "status", .argument = "STATUS", .help = "the status of answers with errors: 502; 400 to 599"},
    {.name = "towards",
     .argument = "WHOM",
     .help = "hosts: attempts fail; clients: calls fail, before the engine sees them",
     .complete = CLI_WORDS,
     .words = "hosts clients"},
    {.name = "client", .argument = "NETWORK", .help = "only calls from this network; may be repeated", .many = true},
    {.name = "header",
     .argument = "FIELD",
     .help = "only calls with this header, 'name: value'; may be repeated",
     .many = true},
    {.name = "cap", .argument = "N", .help = "the fault ends after it has hit N calls: 100000"},
    {.name = "name", .argument = "NAME", .help = "the name of the fault, for list and clear"},
    {.name = "json", .help = "print the gateway's answer"},
    FAULT_DESK_OPTIONS,
    {.name = NULL},
};

static const struct cli_option list_options[] = {
    {.name = "json", .help = "print the gateway's answer"},
    FAULT_DESK_OPTIONS,
    {.name = NULL},
};

static const struct cli_option clear_options[] = {
    {.name = "json", .help = "print the gateway's answer; for several names, the last one"},
    FAULT_DESK_OPTIONS,
    {.name = NULL},
};

static const struct cli_option play_options[] = {
    {.name = "service",
     .argument = "FROM=TO",
     .help = "the gateway's name of a service of the scenario; may be repeated",
     .many = true},
    {.name = "policy",
     .argument = "FILE",
     .help = "simulate with this policy instead of the default one",
     .complete = CLI_FILE},
    {.name = "set", .argument = "KEY=VALUE", .help = "override a key of the scenario; may be repeated", .many = true},
    {.name = "cap", .argument = "N", .help = "each fault ends after it has hit N calls: 100000"},
    {.name = "skip", .help = "leave out faults that no gateway can inject"},
    {.name = "json", .help = "every second as a JSON object on a line"},
    {.name = "dry-run", .help = "print the faults, and inject none"},
    FAULT_DESK_OPTIONS,
    {.name = NULL},
};

static const struct cli_command fault_commands[] = {
    {
        .name = "inject",
        .summary = "inject a fault for a limited time",
        .usage = "fault inject [options] --for TIME SERVICE FAULT",
        .purpose = "Injects a fault at a gateway. FAULT is a word of a scenario's faults with its\n"
                   "value: errors=10%, dead, latency=200ms, hangs=10%, refuse, swallow,\n"
                   "partition, cutCallers=10%, badHosts=1, killHosts=1, rolling=5s; or\n"
                   "reset=10%. The gateway asks for the token of its adminTokenFile.",
        .options = inject_options,
        .examples = "  becalm fault inject payment errors=30% --for 1m --token-file token\n"
                    "  becalm fault inject payment latency=500ms --for 30s --header 'x-game-day: yes'\n"
                    "  becalm fault inject front errors=5% --status 503 --towards clients --for 10s\n",
        .complete = CLI_WORDS,
        .words = "errors= dead latency= hangs= refuse swallow partition cutCallers= badHosts= killHosts= rolling= "
                 "reset=",
        .run = inject_run,
    },
    {
        .name = "list",
        .summary = "list the faults in force",
        .usage = "fault list [options]",
        .purpose = "Prints the faults that are in force at a gateway.",
        .options = list_options,
        .examples = "  becalm fault list --token-file token\n",
        .run = list_run,
    },
    {
        .name = "clear",
        .summary = "end faults at once",
        .usage = "fault clear [options] [NAME...]",
        .purpose = "Ends the faults of these names, or all of them. Calls that they delayed go on.",
        .options = clear_options,
        .examples = "  becalm fault clear --token-file token\n",
        .complete = CLI_WORDS,
        .words = "",
        .run = clear_run,
    },
    {
        .name = "play",
        .summary = "play a scenario's faults on a real gateway",
        .usage = "fault play [options] SCENARIO",
        .purpose = "Injects the faults of a scenario, a file or a built-in one, each at its time.\n"
                   "Every second it prints the figures of the first fault's service: requests,\n"
                   "attempts per request and success in percent, beside those of the simulation.\n"
                   "Ends with the scenario's length. A signal ends it and its faults.",
        .options = play_options,
        .examples = "  becalm fault play outage.yaml --service api=payment --token-file token\n",
        .complete = CLI_FILE,
        .run = fault_play,
    },
    {.name = NULL},
};

const struct cli_command cmd_fault = {
    .name = "fault",
    .summary = "inject faults at a gateway for a limited time: game days",
    .usage = "fault COMMAND",
    .purpose = "Injects faults into real traffic: delays, errors, resets and refusals for a\n"
               "share of the calls of a service. Every fault has an end.",
    .subcommands = fault_commands,
    .examples = "  becalm fault inject payment errors=30% --for 1m --token-file token\n"
                "  becalm fault clear --token-file token\n",
};
