/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "roster.h"

#include "container.h"
#include "policy/value.h"

#include <becalm/version.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WANTED_FOR (10 * BECALM_S)
#define SOON       (BECALM_S / 10)
#define MOST       5000u
#define FIELDS     10u /* that every version tells */
#define FIELDS_NOW 12u
#define LINE_MAX_  768u

struct roster {
    struct roster_options options;
    struct redis_script script;
    struct redis_command command;
    bool flying;
    struct timer timer;
    char key[128];
    char id[ROSTER_WORD];
    becalm_ns wanted_until;
    becalm_ns read_at;
    struct roster_entry *entry;
    uint32_t count;
    char error[REPLY_TEXT];
};

void roster_count(struct roster_totals *totals, uint64_t calls, uint64_t retries, bool shared)
{
    totals->calls += calls;
    totals->retries += retries;
    totals->shared_calls += shared ? calls : 0;
    totals->shared_retries += shared ? retries : 0;
}

void roster_rates_begin(struct roster_rates *rates, becalm_ns now, const struct roster_totals *totals)
{
    rates->told = *totals;
    rates->told_at = now;
}

/* In thousandths a second. */
static uint64_t rate_of(uint64_t now, uint64_t before, becalm_ns passed)
{
    return now < before ? 0 : (now - before) * 1000 * 1000 / (passed / BECALM_MS);
}

void roster_rates(struct roster_rates *rates, becalm_ns now, const struct roster_totals *totals,
                  struct roster_entry *entry)
{
    becalm_ns passed = becalm_ns_max(becalm_ns_since(now, rates->told_at), BECALM_MS);
    const struct roster_totals *told = &rates->told;
    snprintf(entry->version, sizeof entry->version, "%s", becalm_version());
    (void)gethostname(entry->name, sizeof entry->name - 1);
    entry->calls_milli = rate_of(totals->calls, told->calls, passed);
    entry->retries_milli = rate_of(totals->retries, told->retries, passed);
    entry->shared_calls_milli = rate_of(totals->shared_calls, told->shared_calls, passed);
    entry->shared_retries_milli = rate_of(totals->shared_retries, told->shared_retries, passed);
    entry->up_seconds = becalm_ns_since(now, rates->begun_at) / BECALM_S;
    roster_rates_begin(rates, now, totals);
}

/* ------------------------------------------------------------------------------------------------------- reading */

static bool word_take(char *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isalnum(c) && strchr("._-:", c) == NULL) {
            return false;
        }
    }
    if (length == 0 || length >= ROSTER_WORD) {
        return false;
    }
    memcpy(to, text, length);
    to[length] = 0;
    return true;
}

static bool number_take(uint64_t *to, const char *text, size_t length)
{
    char copy[24];
    if (length == 0 || length > 15) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    return value_integer(copy, to);
}

bool roster_parse(const char *line, size_t length, struct roster_entry *entry)
{
    const char *field[FIELDS_NOW];
    size_t size[FIELDS_NOW];
    uint32_t count = 0;
    const char *end = line + length;
    while (line <= end && count < FIELDS_NOW) {
        const char *space = memchr(line, ' ', (size_t)(end - line));
        field[count] = line;
        size[count++] = (size_t)((space == NULL ? end : space) - line);
        line = space == NULL ? end + 1 : space + 1;
    }
    memset(entry, 0, sizeof *entry);
    uint64_t *const number[] = {
        &entry->calls_milli,        &entry->retries_milli,       &entry->budgets, &entry->degraded, &entry->up_seconds,
        &entry->shared_calls_milli, &entry->shared_retries_milli};
    bool right = (count == FIELDS || count == FIELDS_NOW) && word_take(entry->id, field[0], size[0]) &&
                 number_take(&entry->age_ms, field[1], size[1]) && word_take(entry->name, field[2], size[2]) &&
                 word_take(entry->version, field[3], size[3]) && word_take(entry->policy, field[4], size[4]);
    for (uint32_t i = 0; right && 5 + i < count; i++) {
        right = number_take(number[i], field[5 + i], size[5 + i]);
    }
    if (count == FIELDS) {
        entry->shared_calls_milli = entry->calls_milli;
        entry->shared_retries_milli = entry->retries_milli;
    }
    return right;
}

static void list_take(struct roster *roster, const char *text, size_t length)
{
    const char *end = text + length;
    uint32_t lines = 1;
    for (const char *c = text; c < end; c++) {
        lines += *c == '\n';
    }
    struct roster_entry *entry = calloc(lines < MOST ? lines : MOST, sizeof *entry);
    if (entry == NULL) {
        return;
    }
    uint32_t count = 0;
    while (text < end && count < MOST) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop == NULL ? end : stop;
        count += roster_parse(text, (size_t)(stop - text), &entry[count]);
        text = stop + 1;
    }
    free(roster->entry);
    roster->entry = entry;
    roster->count = count;
    roster->read_at = roster->options.loop->now;
}

/* A Redis user without the permission for this script can still share budgets: the connection stays. */
static void done(struct redis_command *command, const struct reply *reply)
{
    struct roster *roster = CONTAINER_OF(command, struct roster, command);
    roster->flying = false;
    if (reply == NULL) {
        return;
    }
    bool right = reply->kind == REPLY_WORD;
    snprintf(roster->error, sizeof roster->error, "%s", right ? "" : reply->text);
    if (right && reply->item[0].length > 0) {
        list_take(roster, reply->item[0].text, reply->item[0].length);
    }
}

/* ------------------------------------------------------------------------------------------------------- telling */

static void word_put(char *to, const char *text)
{
    size_t n = 0;
    for (; *text != 0 && n < ROSTER_WORD - 1; text++) {
        to[n++] = (isalnum((unsigned char)*text) || strchr("._-:", *text) != NULL) ? *text : '_';
    }
    to[n] = 0;
    if (n == 0) {
        snprintf(to, ROSTER_WORD, "-");
    }
}

static void line_write(struct roster *roster, char *line, size_t size)
{
    struct roster_entry told;
    struct roster_entry e;
    memset(&told, 0, sizeof told);
    roster->options.tell(roster->options.self, &told);
    e = told;
    word_put(e.id, told.id);
    word_put(e.name, told.name);
    word_put(e.version, told.version);
    word_put(e.policy, told.policy);
    memcpy(roster->id, e.id, sizeof roster->id);
    snprintf(line, size, "%s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
             e.name, e.version, e.policy, e.calls_milli, e.retries_milli, e.budgets, e.degraded, e.up_seconds,
             e.shared_calls_milli, e.shared_retries_milli);
}

static bool line_fill(struct roster *roster, struct redis_command *command, const char *line, bool reads)
{
    command->script = &roster->script;
    return redis_number(command, 1) && redis_word(command, roster->key, strlen(roster->key)) &&
           redis_word(command, roster->id, strlen(roster->id)) && redis_word(command, line, strlen(line)) &&
           redis_word(command, reads ? "1" : "0", 1);
}

static void timer_fires(struct timer *timer)
{
    struct roster *roster = CONTAINER_OF(timer, struct roster, timer);
    struct loop *loop = roster->options.loop;
    char line[LINE_MAX_];
    wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, ROSTER_EVERY));
    struct redis *redis = roster->options.redis;
    bool reads = loop->now < roster->wanted_until;
    if (roster->flying || redis_state(redis) != REDIS_UP) {
        redis_send_late(redis); /* two seconds have passed since the last one, or a page wants the list now */
        if (roster->flying && reads) {
            wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, SOON));
        }
        return;
    }
    line_write(roster, line, sizeof line);
    roster->command = (struct redis_command){.done = done};
    roster->flying = line_fill(roster, &roster->command, line, reads) &&
                     (reads ? redis_send(redis, &roster->command) : redis_send_along(redis, &roster->command));
    if (!roster->flying) {
        redis_command_free(&roster->command);
    }
}

struct roster *roster_make(const struct roster_options *options)
{
    struct roster *roster = calloc(1, sizeof *roster);
    if (roster != NULL) {
        roster->options = *options;
        roster->script = redis_script("who");
        roster->timer.fire = timer_fires;
        snprintf(roster->key, sizeof roster->key, "becalm:{%s}:who", options->fleet);
        wheel_arm(&options->loop->wheel, &roster->timer, becalm_ns_after(options->loop->now, BECALM_S / 2));
    }
    return roster;
}

static void farewell_done(struct redis_command *command, const struct reply *reply)
{
    (void)reply;
    free(command);
}

void roster_leave(struct roster *roster)
{
    if (roster == NULL) {
        return;
    }
    struct redis_command *farewell = roster->id[0] == 0 ? NULL : calloc(1, sizeof *farewell);
    if (farewell != NULL) {
        farewell->done = farewell_done;
        if (!line_fill(roster, farewell, "", false) || !redis_send(roster->options.redis, farewell)) {
            redis_command_free(farewell);
            free(farewell);
        }
    }
    timer_disarm(&roster->timer);
}

void roster_free(struct roster *roster)
{
    if (roster != NULL) {
        free(roster->entry);
        free(roster);
    }
}

uint32_t roster_look(struct roster *roster, const struct roster_entry **entry, becalm_ns *read_at)
{
    struct loop *loop = roster->options.loop;
    bool sleeps = loop->now >= roster->wanted_until;
    roster->wanted_until = becalm_ns_after(loop->now, WANTED_FOR);
    if (sleeps) { /* the first look must not wait for the next turn */
        wheel_arm(&loop->wheel, &roster->timer, loop->now);
    }
    *entry = roster->entry;
    *read_at = roster->read_at;
    return roster->count;
}

const char *roster_error(const struct roster *roster)
{
    return roster->error;
}
