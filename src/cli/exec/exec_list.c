/* SPDX-License-Identifier: MIT */
/* `becalm exec --list-budgets`: the budgets, breakers and leases that processes of this machine share, and how much is
 * left. */
#define _GNU_SOURCE
#include "cmd_exec.h"

#include "cli/json.h"
#include "exec/directory.h"
#include "policy/value.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_BYTES 256

/* One file of the directory. */
struct listed {
    char name[SHARED_NAME_MAX + 1];
    const char *kind;
    struct shared shared;
    char why[TEXT_BYTES]; /* why the file can't be used, or would be made anew; empty: it can be used */
};

static int is_listed(const struct dirent *entry)
{
    char name[SHARED_NAME_MAX + 1];
    return shared_name_read(entry->d_name, name) != NULL;
}

static void see(struct listed *listed, const char *file, const struct directory *directory, becalm_ns now)
{
    struct becalm_budget_policy budget;
    struct becalm_breaker_policy breaker;
    struct becalm_lease_policy lease;
    becalm_budget_defaults(&budget, BECALM_BUDGET_TOKENS);
    becalm_breaker_defaults(&breaker);
    becalm_lease_defaults(&lease);
    listed->kind = shared_name_read(file, listed->name);
    listed->why[0] = '\0';
    struct shared_want want = {.name = listed->name};
    if (strcmp(listed->kind, "budget") == 0) {
        want.budget = &budget;
    } else if (strcmp(listed->kind, "breaker") == 0) {
        want.breaker = &breaker;
    } else {
        want.lease = &lease;
    }
    (void)shared_see(&listed->shared, &want, directory, now, listed->why, sizeof listed->why);
}

/* ---- in words ---- */

static double tokens(uint64_t millionths)
{
    return (double)millionths / BECALM_TOKEN;
}

static void budget_words(const struct shared *shared, becalm_ns now, char *text, size_t size)
{
    const struct becalm_budget_policy *policy = &shared->budget;
    uint64_t left = becalm_budget_left(shared_budget(shared), policy, now);
    if (left == UINT64_MAX) {
        (void)snprintf(text, size, "no limit");
        return;
    }
    (void)snprintf(text, size, "%.1f of %.1f retries left%s", tokens(left),
                   tokens(becalm_budget_cap(shared_budget(shared), policy, now)),
                   left < BECALM_TOKEN ? ": no retry now" : "");
}

static void breaker_words(const struct shared *shared, becalm_ns now, char *text, size_t size)
{
    const struct becalm_breaker *breaker = shared_breaker(shared);
    enum becalm_breaker_state state = becalm_breaker_state(breaker);
    becalm_ns at = becalm_breaker_retest_at(breaker);
    char wait[40] = "no time";
    if (state != BECALM_BREAKER_OPEN) {
        (void)snprintf(text, size, "%s", becalm_breaker_word(state));
        return;
    }
    if (at > now) {
        (void)value_write_duration((at - now + BECALM_S - 1) / BECALM_S * BECALM_S, wait, sizeof wait);
    }
    (void)snprintf(text, size, "%s, tries again in %s", becalm_breaker_word(state), wait);
}

static void words_of(const struct listed *listed, becalm_ns now, char *text, size_t size)
{
    const struct shared *shared = &listed->shared;
    if (listed->why[0] != '\0') {
        (void)snprintf(text, size, "%s", listed->why);
    } else if (shared->want.budget != NULL) {
        budget_words(shared, now, text, size);
    } else if (shared->want.breaker != NULL) {
        breaker_words(shared, now, text, size);
    } else {
        (void)snprintf(text, size, "%llu retries may be made now%s",
                       (unsigned long long)becalm_lease_left(shared_lease(shared)),
                       becalm_lease_degraded(shared_lease(shared)) ? ", of the own share" : ", of the store's");
    }
}

static void print_one(const struct listed *listed, becalm_ns now)
{
    char text[TEXT_BYTES];
    char name[sizeof listed->name];
    size_t i = 0;
    for (; listed->name[i] != '\0'; i++) { /* no name may move a cursor */
        name[i] = (unsigned char)listed->name[i] < ' ' || listed->name[i] == 0x7f ? '?' : listed->name[i];
    }
    name[i] = '\0';
    words_of(listed, now, text, sizeof text);
    printf("%-24s %-8s %s\n", name, listed->kind, text);
}

/* ---- as JSON ---- */

static void write_one(struct json *json, const struct listed *listed, becalm_ns now)
{
    const struct shared *shared = &listed->shared;
    json_object(json, NULL);
    json_text(json, "name", listed->name);
    json_text(json, "kind", listed->kind);
    json_text(json, "file", shared->path);
    if (listed->why[0] != '\0') {
        json_text(json, "error", listed->why);
    } else if (shared->want.budget != NULL) {
        const struct becalm_budget *budget = shared_budget(shared);
        uint64_t left = becalm_budget_left(budget, &shared->budget, now);
        if (left == UINT64_MAX) {
            json_null(json, "left");
        } else {
            json_number(json, "left", tokens(left), 6);
            json_number(json, "cap", tokens(becalm_budget_cap(budget, &shared->budget, now)), 6);
        }
    } else if (shared->want.breaker != NULL) {
        becalm_ns at = becalm_breaker_retest_at(shared_breaker(shared));
        json_text(json, "state", becalm_breaker_word(becalm_breaker_state(shared_breaker(shared))));
        if (becalm_breaker_state(shared_breaker(shared)) == BECALM_BREAKER_OPEN) {
            json_number(json, "retestInSeconds", at > now ? (double)(at - now) / 1e9 : 0, 3);
        }
    } else {
        json_integer(json, "left", becalm_lease_left(shared_lease(shared)));
        json_boolean(json, "ownShare", becalm_lease_degraded(shared_lease(shared)));
    }
    json_object_end(json);
}

/* ---- all of them ---- */

static int list(const struct directory *directory, bool as_json)
{
    struct json json;
    struct dirent **entry = NULL;
    becalm_ns now = exec_now();
    int count = scandirat(directory->fd, ".", &entry, is_listed, alphasort);
    if (count < 0) {
        return cli_fail(&cmd_exec, "%s: %s", directory->path, strerror(errno));
    }
    if (as_json) {
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_text(&json, "directory", directory->path);
        json_array(&json, "shared");
    } else {
        printf("%s: %s\n", directory->path, count == 0 ? "nothing is shared" : "shared budgets and breakers");
    }
    for (int i = 0; i < count; i++) {
        struct listed listed;
        see(&listed, entry[i]->d_name, directory, now);
        if (as_json) {
            write_one(&json, &listed, now);
        } else {
            print_one(&listed, now);
        }
        shared_close(&listed.shared);
        free(entry[i]);
    }
    free(entry);
    if (as_json) {
        json_array_end(&json);
        json_object_end(&json);
        json_end(&json);
    }
    return 0;
}

int exec_list(const char *named, bool as_json)
{
    struct directory directory;
    char why[TEXT_BYTES];
    if (!directory_find(&directory, named, why, sizeof why)) {
        return cli_fail(&cmd_exec, "no budget or breaker is shared here: %s", why);
    }
    int rc = list(&directory, as_json);
    directory_close(&directory);
    return rc;
}
