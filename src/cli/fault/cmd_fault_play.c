/* SPDX-License-Identifier: MIT */
/* becalm fault play: the faults of a scenario, on a real gateway, with the simulated curve beside the real one. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_fault.h"

#include "embedded.h"
#include "fault/fault.h"
#include "policy/diag.h"
#include "policy/value.h"
#include "scenario/builtin.h"
#include "sim/file_policies.h"
#include "sim/measure.h"
#include "sim/reference.h"
#include "top/json_reader.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COLUMNS_MAX 64u
#define NOT_YET     UINT64_MAX

struct player {
    struct fault_desk desk;
    const struct cli_command *self;
    const struct cli_args *args;
    struct scenario_file *file;
    const struct scenario *plan;
    struct becalm_config *config; /* --policy; NULL: our default */
    const char *service;          /* the gateway's service whose curve is shown */
    uint32_t service_index;       /* and in the scenario */
    struct world_result result;
    struct measure measure;
    uint32_t begun;   /* faults that were ordered */
    uint64_t sampled; /* the latest second of the gateway that was told */
    bool simulated;
};

/* ---- the faults to play ---- */

/* The gateway's name of the scenario's service: --service FROM=TO. */
static const char *service_of(const struct player *p, const char *name)
{
    const char *const *map = cli_values(p->self, p->args, "service");
    size_t length = strlen(name);
    for (uint32_t i = 0; map != NULL && map[i] != NULL; i++) {
        if (strncmp(map[i], name, length) == 0 && map[i][length] == '=') {
            return map[i] + length + 1;
        }
    }
    return name;
}

static void diags_tell(struct becalm_diags *diags)
{
    diags_sort(diags);
    for (uint32_t i = 0; i < diags->count; i++) {
        char line[1024];
        becalm_diag_write(&diags->diag[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
}

static int scenario_open(struct player *p, const char *name)
{
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    const struct embedded *builtin = strchr(name, '/') == NULL && strchr(name, '.') == NULL ? builtin_find(name) : NULL;
    struct becalm_load_options options = {.set = cli_values(p->self, p->args, "set")};
    if (diags == NULL) {
        return cli_fail(p->self, "out of memory");
    }
    int rc = builtin == NULL
                 ? scenario_load(&p->file, name, &options, diags)
                 : scenario_parse(&p->file, name, (const char *)builtin->text, builtin->length, &options, diags);
    const char *policy = cli_value(p->self, p->args, "policy");
    if (rc == 0 && policy != NULL) {
        rc = becalm_config_load(&p->config, policy, NULL, diags);
    }
    diags_tell(diags);
    p->plan = rc == 0 ? scenario_of(p->file) : NULL;
    free(diags);
    return rc == 0 ? 0 : 1;
}

/* Can a gateway do all of it? */
static int plan_check(const struct player *p)
{
    bool skip = cli_has(p->self, p->args, "skip");
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->plan->fault_count; i++) {
        const struct scenario_fault *fault = &p->plan->faults[i];
        bool fine = fault_is_of_gateways(fault->kind) && fault->from == NULL;
        if (!fine && !skip) {
            return cli_fail(p->self, "no gateway can do %s of %s; --skip leaves it out",
                            scenario_fault_words[fault->kind], fault->name);
        }
        count += fine;
    }
    return count > 0 ? 0 : cli_fail(p->self, "the scenario has no fault that a gateway can do");
}

static void put_ns(struct buffer *body, const char *key, becalm_ns duration)
{
    char text[32];
    size_t length = value_write_duration(duration, text, sizeof text);
    buffer_json_string(body, key, (struct becalm_text){text, length});
}

static void put_share(struct buffer *body, const char *key, uint32_t ppm)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%u.%04u%%", ppm / 10000, ppm % 10000);
    buffer_json_chars(body, key, text);
}

static void put_effect(struct buffer *body, const struct scenario_fault *fault)
{
    const char *word = scenario_fault_words[fault->kind];
    switch (fault->kind) {
    case FAULT_ERRORS:
    case FAULT_HANG:
    case FAULT_CUT_CALLERS:
        put_share(body, word, fault->ppm);
        break;
    case FAULT_LATENCY:
        put_ns(body, word, fault->latency);
        break;
    case FAULT_BAD_HOSTS:
    case FAULT_KILL_HOSTS:
        buffer_json_number(body, word, fault->count);
        break;
    case FAULT_ROLLING:
        put_ns(body, word, fault->each);
        break;
    case FAULT_DEAD:
    case FAULT_REFUSE:
    case FAULT_PARTITION:
    case FAULT_SWALLOW:
        buffer_json_bool(body, word, true);
        break;
    case FAULT_CAPACITY:
    case FAULT_SURGE:
    case FAULT_STORE:
    case FAULT_LOSE_CONNECTIONS:
    case FAULT_KILL_STORE:
    case FAULT_HANG_STORE:
    case FAULT_EMPTY_STORE:
        break; /* plan_check() has refused them */
    }
}

/* The order of a fault; 0, or an exit code. */
static int order(struct player *p, uint32_t index)
{
    const struct scenario_fault *fault = &p->plan->faults[index];
    struct buffer body = {.bytes_max = FAULT_BODY_MAX};
    char name[FAULT_NAME_MAX];
    (void)snprintf(name, sizeof name, "play-%" PRIu32, index + 1);
    buffer_json_open(&body, NULL, '{');
    buffer_json_chars(&body, "service", service_of(p, fault->service));
    buffer_json_chars(&body, "name", name);
    put_ns(&body, "for", fault->length);
    put_effect(&body, fault);
    buffer_json_chars(&body, "cap", cli_value(p->self, p->args, "cap"));
    if (fault->kind == FAULT_CUT_CALLERS && fault->silent) {
        buffer_json_bool(&body, "silent", true);
    }
    if (fault->on > 0) {
        buffer_json_open(&body, "flap", '{');
        put_ns(&body, "on", fault->on);
        put_ns(&body, "off", fault->off);
        buffer_json_close(&body, '}');
    }
    buffer_json_close(&body, '}');
    buffer_bytes(&body, "", 1);
    int code = 0;
    if (body.full) {
        code = cli_fail(p->self, "out of memory");
    } else if (cli_has(p->self, p->args, "dry-run")) {
        printf("%" PRIu64 ".%03" PRIu64 " s: %s\n", fault->at / BECALM_S, fault->at % BECALM_S / BECALM_MS, body.at);
    } else {
        code = fault_desk_order(&p->desk, "POST", NULL, body.at);
        p->begun |= code == 0;
    }
    buffer_free(&body);
    return code;
}

/* ---- the simulation ---- */

static int simulate(struct player *p)
{
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct file_policies policies = {0};
    struct world_options options = {.seed = 1};
    int rc = 0;
    if (p->config != NULL) {
        rc = file_policies_make(&policies, p->config, p->plan, &options);
    } else {
        (void)reference_options("becalm", p->plan, &hop, &gate, &options);
    }
    options.seed = 1;
    p->simulated = true;
    rc = rc == 0 ? world_run(p->plan, &options, &p->result) : rc;
    rc = rc == 0 ? measure_take(p->plan, &p->result, &p->measure) : rc;
    file_policies_free(&policies);
    return rc == 0 ? 0 : cli_fail(p->self, "the scenario can't be simulated");
}

/* ---- the curve ---- */

/* The counts of one second. */
struct second {
    uint64_t number;
    uint64_t arrivals;
    uint64_t attempts;
    uint64_t good;
    uint64_t failed;
};

struct columns {
    uint32_t count;
    char name[COLUMNS_MAX][24];
};

static void read_row(struct json_reader *r, const struct columns *columns, struct second *second)
{
    json_reader_array(r);
    for (uint32_t i = 0; json_reader_item(r); i++) {
        const char *name = i < columns->count ? columns->name[i] : "";
        uint64_t *to = strcmp(name, "arrivals") == 0                                          ? &second->arrivals
                       : strcmp(name, "attempts") == 0                                        ? &second->attempts
                       : strcmp(name, "firstAttempt") == 0 || strcmp(name, "afterRetry") == 0 ? &second->good
                       : strcmp(name, "failed") == 0                                          ? &second->failed
                                                                                              : NULL;
        if (to == NULL) {
            json_reader_skip(r);
        } else {
            *to += json_reader_number(r) / JSON_READER_ONE;
        }
    }
}

static void read_endpoints(struct json_reader *r, const struct columns *columns, struct second *second)
{
    char key[24];
    json_reader_array(r);
    while (json_reader_item(r)) {
        json_reader_object(r);
        while (json_reader_key(r, key, sizeof key)) {
            if (strcmp(key, "row") == 0) {
                read_row(r, columns, second);
            } else {
                json_reader_skip(r);
            }
        }
    }
}

/* A service is known by its name, which stands before its endpoints. */
static void read_service(struct json_reader *r, const char *wanted, const struct columns *columns,
                         struct second *second)
{
    char key[24];
    char name[132] = "";
    json_reader_object(r);
    while (json_reader_key(r, key, sizeof key)) {
        if (strcmp(key, "name") == 0) {
            json_reader_text(r, name, sizeof name);
        } else if (strcmp(key, "endpoints") == 0 && strcmp(name, wanted) == 0) {
            read_endpoints(r, columns, second);
        } else {
            json_reader_skip(r);
        }
    }
}

static bool sample_read(const char *text, size_t length, const char *service, struct second *second)
{
    struct json_reader r;
    struct columns columns = {0};
    char key[24];
    *second = (struct second){0};
    json_reader_init(&r, text, length);
    json_reader_object(&r);
    while (json_reader_key(&r, key, sizeof key)) {
        if (strcmp(key, "number") == 0) {
            second->number = json_reader_number(&r) / JSON_READER_ONE;
        } else if (strcmp(key, "columns") == 0) {
            json_reader_array(&r);
            while (json_reader_item(&r)) {
                char *name = columns.name[columns.count < COLUMNS_MAX - 1 ? columns.count++ : COLUMNS_MAX - 1];
                json_reader_text(&r, name, sizeof columns.name[0]);
            }
        } else if (strcmp(key, "services") == 0) {
            json_reader_array(&r);
            while (json_reader_item(&r)) {
                read_service(&r, service, &columns, second);
            }
        } else {
            json_reader_skip(&r);
        }
    }
    return !r.failed;
}

/* A share in hundredths; -1: of nothing. */
static void print_share(uint64_t part, uint64_t whole)
{
    if (whole == 0) {
        printf(" %9s", "-");
    } else {
        printf(" %6" PRIu64 ".%02" PRIu64, part / whole, part * 100 / whole % 100);
    }
}

static void print_second(const struct player *p, uint64_t second, const struct second *real)
{
    uint64_t begun = 0;
    uint64_t good = 0;
    bool simulated = second < p->result.seconds;
    for (uint32_t c = 0; simulated && c < p->plan->client_count; c++) {
        begun += p->result.client[c].begun[second];
        good += p->result.client[c].good[second];
    }
    uint64_t arrived = simulated ? p->result.service[p->service_index].arrivals[second] : 0;
    uint64_t offered = simulated ? p->measure.service[p->service_index].offered[second] : 0;
    if (cli_has(p->self, p->args, "json")) {
        printf("{\"second\":%" PRIu64 ",\"arrivals\":%" PRIu64 ",\"attempts\":%" PRIu64 ",\"good\":%" PRIu64
               ",\"failed\":%" PRIu64 ",\"simulated\":{\"attempts\":%" PRIu64 ",\"offeredMilli\":%" PRIu64
               ",\"calls\":%" PRIu64 ",\"good\":%" PRIu64 "}}\n",
               second, real->arrivals, real->attempts, real->good, real->failed, arrived, offered, begun, good);
        (void)fflush(stdout);
        return;
    }
    printf("%6" PRIu64 " %10" PRIu64, second, real->arrivals);
    print_share(real->attempts, real->arrivals);
    print_share(arrived * 1000, offered);
    print_share(real->good * 100, real->good + real->failed);
    print_share(good * 100, begun);
    putchar('\n');
    (void)fflush(stdout);
}

/* One more second of the gateway, if there is a new one. */
static int sample(struct player *p, uint64_t second)
{
    struct second real;
    size_t length;
    link_ask(p->desk.link, "/api/sample", NULL);
    if (link_end(p->desk.link) == LINK_FAILED) {
        return cli_fail(p->self, "%s: %s", p->desk.place.name, link_why(p->desk.link));
    }
    const char *text = link_text(p->desk.link, &length);
    if (!sample_read(text, length, p->service, &real)) {
        return cli_fail(p->self, "%s: the answer makes no sense", p->desk.place.name);
    }
    if (real.number != p->sampled) {
        p->sampled = real.number;
        print_second(p, second, &real);
    }
    return 0;
}

/* ---- time ---- */

static becalm_ns now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (becalm_ns)time.tv_sec * BECALM_S + (becalm_ns)time.tv_nsec;
}

/* Sleeps until then. False: told to end. */
static bool sleep_until(becalm_ns at, const sigset_t *stops)
{
    for (becalm_ns from = now(); from < at; from = now()) {
        becalm_ns left = at - from;
        struct timespec wait = {(time_t)(left / BECALM_S), (long)(left % BECALM_S)};
        if (sigtimedwait(stops, NULL, &wait) > 0) {
            return false;
        }
    }
    return true;
}

/* The fault that begins first of those that begin at `at` or later and were not ordered; NOT_YET: none. */
static becalm_ns next_fault(const struct player *p, const bool *ordered, uint32_t *index)
{
    becalm_ns next = BECALM_NEVER;
    for (uint32_t i = 0; i < p->plan->fault_count; i++) {
        const struct scenario_fault *fault = &p->plan->faults[i];
        if (!ordered[i] && fault->at < next && fault_is_of_gateways(fault->kind) && fault->from == NULL) {
            next = fault->at;
            *index = i;
        }
    }
    return next;
}

static int play(struct player *p, bool *ordered)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
    becalm_ns start = now();
    int code = 0;
    bool dry = cli_has(p->self, p->args, "dry-run");
    uint64_t second = 0;
    if (!dry && !cli_has(p->self, p->args, "json")) {
        printf("%6s %10s %9s %9s %9s %9s\n", "second", "arrivals", "load", "simulated", "success", "simulated");
    }
    while (code == 0) {
        uint32_t index = 0;
        becalm_ns next = next_fault(p, ordered, &index);
        becalm_ns tick = (second + 1) * BECALM_S;
        if (next == BECALM_NEVER && (dry || tick > p->plan->length)) {
            break;
        }
        if (!dry && !sleep_until(becalm_ns_after(start, becalm_ns_min(next, tick)), &stops)) {
            return cli_fail(p->self, "told to end");
        }
        if (next != BECALM_NEVER && (dry || next <= tick)) {
            ordered[index] = true;
            code = order(p, index);
        } else {
            code = sample(p, second++);
        }
    }
    return code;
}

/* Ends all faults that this command has ordered, however it ends itself. */
static void clear_own(struct player *p, const bool *ordered)
{
    char name[FAULT_NAME_MAX];
    for (uint32_t i = 0; p->begun != 0 && i < p->plan->fault_count; i++) {
        if (ordered[i]) {
            (void)snprintf(name, sizeof name, "play-%" PRIu32, i + 1);
            link_order(p->desk.link, "DELETE", "/api/faults/", name, NULL);
            (void)link_end(p->desk.link); /* most are over already, which is 404 */
        }
    }
}

static int play_scenario(struct player *p)
{
    int code = plan_check(p);
    bool *ordered = calloc(p->plan->fault_count + 1, sizeof *ordered);
    uint32_t first = 0;
    if (ordered == NULL) {
        return cli_fail(p->self, "out of memory");
    }
    if (code == 0) {
        (void)next_fault(p, ordered, &first);
        p->service = service_of(p, p->plan->faults[first].service);
        p->service_index = scenario_find(p->plan, p->plan->faults[first].service);
        code = cli_has(p->self, p->args, "dry-run") ? 0 : simulate(p);
    }
    if (code == 0) {
        code = play(p, ordered);
        clear_own(p, ordered);
    }
    if (p->simulated) {
        measure_free(&p->measure);
        world_result_free(p->plan, &p->result);
    }
    free(ordered);
    return code;
}

int fault_play(const struct cli_command *self, const struct cli_args *args)
{
    struct player p = {.self = self, .args = args, .sampled = NOT_YET};
    int code = 0;
    if (args->word_count != 1) {
        return cli_usage(self, "one scenario");
    }
    if (!fault_desk_open(&p.desk, self, args, &code)) {
        return code;
    }
    code = scenario_open(&p, args->words[0]);
    if (code == 0) {
        code = play_scenario(&p);
    }
    scenario_free(p.file);
    becalm_config_free(p.config);
    link_free(p.desk.link);
    return code;
}
