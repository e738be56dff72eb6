/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "cmd_top_fleet.h"

#include "top/json_reader.h"
#include "top/link.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SILENT_MS   5000u
#define PATIENCE_MS 5000u /* --once: until the gateway has read the list */
#define STEP_MS     100u
#define WORD        64u
#define MILLIONTHS  JSON_READER_ONE

/* One process. Numbers are in millionths, as they are read. */
struct instance {
    char id[WORD], name[WORD], version[WORD], policy[WORD];
    uint64_t calls, retries, shared_calls, shared_retries, budgets, degraded, told;
    uint32_t odd; /* with another policy or version than most */
};

/* One store, and the processes that share it. */
struct roll {
    char store[288], fleet[WORD], error[160];
    bool up;
    bool read;
    bool answered;
    uint64_t age;             /* of its last answer */
    uint64_t lowest, highest; /* percentages of the gateway's budgets in it; 0: none is known */
    struct instance *instance;
    uint32_t count;
};

static void instance_read(struct json_reader *json, struct instance *to)
{
    char key[32];
    json_reader_object(json);
    while (json_reader_key(json, key, sizeof key)) {
        struct {
            const char *key;
            char *text;
            uint64_t *number;
        } const field[] = {
            {"id", to->id, NULL},
            {"name", to->name, NULL},
            {"version", to->version, NULL},
            {"policy", to->policy, NULL},
            {"budgets", NULL, &to->budgets},
            {"callsPerSecond", NULL, &to->calls},
            {"degraded", NULL, &to->degraded},
            {"retriesPerSecond", NULL, &to->retries},
            {"sharedCallsPerSecond", NULL, &to->shared_calls},
            {"sharedRetriesPerSecond", NULL, &to->shared_retries},
            {"toldSecondsAgo", NULL, &to->told},
        };
        size_t i = 0;
        while (i < sizeof field / sizeof *field && strcmp(field[i].key, key) != 0) {
            i++;
        }
        if (i == sizeof field / sizeof *field) {
            json_reader_skip(json);
        } else if (field[i].text != NULL) {
            json_reader_text(json, field[i].text, WORD);
        } else {
            *field[i].number = json_reader_number(json);
        }
    }
}

static bool instances_read(struct json_reader *json, struct roll *roll)
{
    json_reader_array(json);
    while (json_reader_item(json)) {
        if (roll->count % 64 == 0) {
            struct instance *more = realloc(roll->instance, (roll->count + 64) * sizeof *more);
            if (more == NULL) {
                return false;
            }
            roll->instance = more;
        }
        struct instance *instance = &roll->instance[roll->count++];
        memset(instance, 0, sizeof *instance);
        instance_read(json, instance);
    }
    return true;
}

static void budget_read(struct json_reader *json, struct roll *roll)
{
    char key[32];
    json_reader_object(json);
    while (json_reader_key(json, key, sizeof key)) {
        if (strcmp(key, "percent") != 0) {
            json_reader_skip(json);
            continue;
        }
        uint64_t percent = json_reader_number(json);
        roll->lowest = roll->lowest == 0 || percent < roll->lowest ? percent : roll->lowest;
        roll->highest = percent > roll->highest ? percent : roll->highest;
    }
}

static bool roll_read(struct json_reader *json, struct roll *roll)
{
    char key[32];
    bool memory = true;
    json_reader_object(json);
    while (memory && json_reader_key(json, key, sizeof key)) {
        if (strcmp(key, "store") == 0) {
            json_reader_text(json, roll->store, sizeof roll->store);
        } else if (strcmp(key, "fleet") == 0) {
            json_reader_text(json, roll->fleet, sizeof roll->fleet);
        } else if (strcmp(key, "error") == 0) {
            json_reader_text(json, roll->error, sizeof roll->error);
        } else if (strcmp(key, "up") == 0) {
            roll->up = json_reader_bool(json);
        } else if (strcmp(key, "answeredSecondsAgo") == 0) {
            roll->answered = true;
            roll->age = json_reader_number(json);
        } else if (strcmp(key, "budgets") == 0) {
            json_reader_array(json);
            while (json_reader_item(json)) {
                budget_read(json, roll);
            }
        } else if (strcmp(key, "readSecondsAgo") == 0) {
            roll->read = true;
            json_reader_skip(json);
        } else if (strcmp(key, "instances") == 0) {
            memory = instances_read(json, roll);
        } else {
            json_reader_skip(json);
        }
    }
    return memory;
}

/* How many others say the same. */
static uint32_t same(const struct roll *roll, const struct instance *one)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < roll->count; i++) {
        count +=
            strcmp(roll->instance[i].policy, one->policy) == 0 && strcmp(roll->instance[i].version, one->version) == 0;
    }
    return count;
}

static bool is_silent(const struct instance *i)
{
    return i->told / 1000 >= SILENT_MS;
}

static uint64_t badness(const struct instance *i)
{
    uint64_t ratio = i->calls == 0 ? 0 : i->retries * 1000 / i->calls;
    return (uint64_t)is_silent(i) << 62 | (uint64_t)(i->degraded > 0) << 61 | (uint64_t)(i->odd != 0) << 60 |
           (ratio < 1000000 ? ratio : 1000000);
}

static int worst_first(const void *a, const void *b)
{
    uint64_t x = badness(a);
    uint64_t y = badness(b);
    return x != y ? (x < y ? 1 : -1) : strcmp(((const struct instance *)a)->id, ((const struct instance *)b)->id);
}

static void roll_sort(struct roll *roll)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < roll->count; i++) {
        uint32_t count = same(roll, &roll->instance[i]);
        most = count > most ? count : most;
    }
    for (uint32_t i = 0; i < roll->count; i++) {
        roll->instance[i].odd = same(roll, &roll->instance[i]) < most;
    }
    if (roll->count > 0) {
        qsort(roll->instance, roll->count, sizeof *roll->instance, worst_first);
    }
}

static void instance_print(const struct instance *i)
{
    const char *trouble = is_silent(i) ? "silent" : i->degraded > 0 ? "degraded" : i->odd ? "differs" : "";
    uint64_t permille = i->calls == 0 ? 0 : i->retries * 1000 / i->calls;
    printf("%-12.12s %-20.20s %-10.10s %-9.9s %9" PRIu64 " %9" PRIu64 " %5" PRIu64 ".%" PRIu64 " %% %5" PRIu64
           " s  %s\n",
           i->id, i->name, i->version, i->policy, i->calls / MILLIONTHS, i->retries / MILLIONTHS, permille / 10,
           permille % 10, i->told / MILLIONTHS, trouble);
}

/* Is it there, which error does it give, and how old is its last answer? */
static void store_print(const struct roll *roll)
{
    printf("store %s %s%s%s", roll->store, roll->up ? "up" : "AWAY", roll->error[0] == 0 ? "" : ": ", roll->error);
    if (roll->answered) {
        printf(", answered %" PRIu64 ".%" PRIu64 " s ago", roll->age / MILLIONTHS, roll->age / (MILLIONTHS / 10) % 10);
    }
}

/* The retries that shared budgets cover, compared with the allowed share. Silent processes may be dead, so they do not
 * count. */
static void ratio_print(const struct roll *roll)
{
    uint64_t calls = 0;
    uint64_t retries = 0;
    for (uint32_t i = 0; i < roll->count; i++) {
        calls += is_silent(&roll->instance[i]) ? 0 : roll->instance[i].shared_calls;
        retries += is_silent(&roll->instance[i]) ? 0 : roll->instance[i].shared_retries;
    }
    uint64_t permille = calls == 0 ? 0 : retries * 1000 / calls;
    printf("%" PRIu64 " calls/s   %" PRIu64 " retries/s = %" PRIu64 ".%" PRIu64 " %%", calls / MILLIONTHS,
           retries / MILLIONTHS, permille / 10, permille % 10);
    if (roll->lowest != roll->highest) {
        printf(" of %g to %g %% allowed", (double)roll->lowest / MILLIONTHS, (double)roll->highest / MILLIONTHS);
    } else if (roll->highest > 0) {
        printf(" of %g %% allowed", (double)roll->highest / MILLIONTHS);
    }
}

static void roll_print(struct roll *roll)
{
    roll_sort(roll);
    printf("fleet %s   ", roll->fleet);
    store_print(roll);
    printf("   %u instances   ", roll->count);
    ratio_print(roll);
    printf("\n");
    printf("%-12s %-20s %-10s %-9s %9s %9s %9s %7s\n", "instance", "machine", "version", "policy", "calls/s",
           "retries/s", "ratio", "told");
    for (uint32_t i = 0; i < roll->count; i++) {
        instance_print(&roll->instance[i]);
    }
}

/* Reads the page, and prints it if `shows`. -1: it can't be read; 0: the list has not come yet; else there it is. */
static int page_read(const char *text, size_t length, bool shows)
{
    struct json_reader json;
    char key[32];
    bool ready = true;
    uint32_t stores = 0;
    json_reader_init(&json, text, length);
    json_reader_object(&json);
    while (json_reader_key(&json, key, sizeof key)) {
        if (strcmp(key, "stores") != 0) {
            json_reader_skip(&json);
            continue;
        }
        json_reader_array(&json);
        while (json_reader_item(&json)) {
            struct roll roll = {.count = 0};
            bool memory = roll_read(&json, &roll);
            ready = ready && (roll.read || !roll.up);
            stores++;
            if (shows && memory) {
                roll_print(&roll);
            }
            free(roll.instance);
        }
    }
    if (shows && stores == 0 && !json.failed) {
        printf("This gateway has no fleet: its policy has no shared budget.\n");
    }
    return json.failed ? -1 : ready;
}

/* One question and its answer. NULL: `why` says it. */
static const char *page_ask(struct link *link, size_t *length)
{
    enum link_state state;
    link_ask(link, "/api/fleet", NULL);
    while ((state = link_step(link)) == LINK_BUSY) {
        link_wait(link, NULL, 0, (int)STEP_MS);
    }
    return state == LINK_DONE ? link_text(link, length) : NULL;
}

/* -1: failed, and it was told. */
static int show(const struct cli_command *self, const struct watch *watch, struct link *link, bool waits, bool as_json)
{
    size_t length = 0;
    const char *text = NULL;
    int there = 0;
    for (uint32_t waited = 0; there == 0 && waited <= PATIENCE_MS; waited += STEP_MS) {
        if (waited > 0) {
            (void)poll(NULL, 0, STEP_MS);
        }
        text = page_ask(link, &length);
        there = text == NULL ? -1 : waits ? page_read(text, length, false) : 1;
    }
    if (text == NULL || there < 0) {
        (void)cli_fail(self, "%s: %s", watch->place->name, text == NULL ? link_why(link) : "its answer is not a fleet");
        return -1;
    }
    if (as_json) {
        printf("%.*s\n", (int)length, text);
    } else {
        (void)page_read(text, length, true);
    }
    return 0;
}

int top_fleet(const struct cli_command *self, const struct watch *watch, bool once, bool as_json)
{
    struct link *link = link_new(watch->place, watch->token_file);
    if (link == NULL) {
        return cli_fail(self, "out of memory");
    }
    if (!once && isatty(STDOUT_FILENO) != 1) {
        link_free(link);
        return cli_usage(self, "this is no terminal; use --once");
    }
    int rc = show(self, watch, link, once, as_json);
    while (rc == 0 && !once) {
        (void)fflush(stdout);
        (void)poll(NULL, 0, (int)(watch->interval / BECALM_MS));
        printf("\033[H\033[J");
        rc = show(self, watch, link, false, false);
    }
    link_free(link);
    return rc == 0 ? 0 : 1;
}
