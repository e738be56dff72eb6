/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "key_desk.h"

#include "key_words.h"

#include "container.h"
#include "policy/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANTED_FOR (10 * BECALM_S)
#define MOST       1000u
#define REPLY_MOST (1u << 18)
#define TELLINGS   16u             /* on their way at once: others want Redis, too */
#define AHEAD      (60 * BECALM_S) /* a clock that has gained so much was set; keys.lua has the same */

/* A key that is told again. */
struct telling {
    struct redis_command command;
    struct key_desk *desk;
    uint64_t which; /* key_memory_next() */
    struct key_stamp stamp;
    bool flying;
};

struct key_desk {
    struct key_desk_options options;
    struct redis *redis;
    struct redis_script script;
    struct redis_user user;
    struct timer timer;
    struct redis_command list;
    bool listing;
    struct key_stamp stamp; /* of the request in flight */
    becalm_ns clock;        /* of the store at the last answer; 0: none yet */
    becalm_ns clock_at;     /* when that was, */
    becalm_ns expected;     /* and the time that it should have shown at the next request; 0: unknown */
    struct telling telling[TELLINGS];
    uint32_t flying;
    uint64_t from;      /* where the next key to tell is looked for */
    uint32_t forgotten; /* keys, that are not all told yet */
    becalm_ns wanted_until;
    uint64_t count;
    struct store_held *held;
    uint32_t held_count;
};

/* One order to release a key: its guard is asked for, then both go. */
struct order {
    struct redis_command command;
    struct key_desk *desk;
    unsigned char id[STORE_ID];
    unsigned char guard[STORE_ID];
};

static struct key_names names_of(const struct key_desk *desk, const struct order *order)
{
    return (struct key_names){
        .keyring = desk->options.keyring, .redis = desk->redis, .id = order == NULL ? NULL : order->id};
}

/* ------------------------------------------------------------------------------------------------------- the list */

static bool number_take(const char **at, const char *end, uint64_t *to)
{
    char text[24];
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    size_t length = space == NULL ? 0 : (size_t)(space - *at);
    if (length == 0 || length >= sizeof text) {
        return false;
    }
    memcpy(text, *at, length);
    text[length] = '\0';
    *at = space + 1;
    return value_integer(text, to) && *to < UINT64_MAX / BECALM_MS / 2;
}

/* "ID AGE LEFT WHERE", times in milliseconds. */
static bool line_read(struct store_held *held, const char *at, const char *end, becalm_ns now)
{
    uint64_t age;
    uint64_t left;
    const char *rest = at + KEY_HEX;
    if (end - at <= (ptrdiff_t)KEY_HEX || !key_hex_read(held->id, at, KEY_HEX - 1) || rest[-1] != ' ' ||
        !number_take(&rest, end, &age) || !number_take(&rest, end, &left)) {
        return false;
    }
    held->since = age * BECALM_MS < now ? now - age * BECALM_MS : 0;
    held->until = becalm_ns_after(now, left * BECALM_MS);
    snprintf(held->where, sizeof held->where, "%.*s", (int)(end - rest), rest);
    return true;
}

static void lines_read(struct key_desk *desk, const char *at, size_t length)
{
    const char *end = at + length;
    desk->held_count = 0;
    if (desk->held == NULL) {
        desk->held = calloc(MOST, sizeof *desk->held);
    }
    while (desk->held != NULL && at < end && desk->held_count < MOST) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop == NULL ? end : stop;
        desk->held_count += line_read(&desk->held[desk->held_count], at, stop, desk->options.loop->now);
        at = stop + 1;
    }
}

/* ------------------------------------------------------------------------------------- keys that the store forgot */

static void tell_done(struct redis_command *, const struct reply *);

/* False: there is nothing more to tell, or it can't be told now. */
static bool tell(struct telling *telling)
{
    struct key_desk *desk = telling->desk;
    struct keyring *ring = desk->options.keyring;
    struct redis_command *command = &telling->command;
    becalm_ns now = desk->options.loop->now;
    struct key_done done;
    char where[STORE_WHERE];
    if (!key_memory_next(ring->memory, &desk->from, now, &done, &telling->which, where)) {
        return false;
    }
    struct key_names names = names_of(desk, NULL);
    names.id = done.id;
    names.guard = done.guard;
    *command = (struct redis_command){.done = tell_done, .script = &desk->script};
    telling->flying =
        key_words(command, &names, "tell") && redis_word(command, (const char *)done.fingerprint, STORE_HASH) &&
        redis_number(command, (done.until - now) / BECALM_MS + 1) && redis_word(command, where, strlen(where)) &&
        redis_number(command, done.status) && redis_send(desk->redis, command);
    telling->stamp = names.stamp;
    desk->flying += telling->flying;
    if (!telling->flying) {
        redis_command_free(command);
    }
    return telling->flying;
}

static void tell_all(struct key_desk *desk)
{
    for (uint32_t i = 0; i < TELLINGS; i++) {
        if (!desk->telling[i].flying && !tell(&desk->telling[i])) {
            break;
        }
    }
    if (desk->flying == 0 && desk->forgotten > 0) {
        desk->options.forgotten(desk->options.self, desk->forgotten, true);
        desk->forgotten = 0;
    }
}

static void tell_done(struct redis_command *command, const struct reply *reply)
{
    struct telling *telling = CONTAINER_OF(command, struct telling, command);
    struct key_desk *desk = telling->desk;
    const struct reply_item *item = reply == NULL ? NULL : reply->item;
    telling->flying = false;
    desk->flying--;
    if (reply == NULL) {
        return; /* from the beginning, when it is back */
    }
    if (reply->kind != REPLY_LIST || reply->count != 2 || !reply_says(item, "ok") || item[1].number < 0) {
        redis_lose(desk->redis, redis_refusal(reply));
        return;
    }
    key_memory_told(desk->options.keyring->memory, telling->which, &telling->stamp, (uint64_t)item[1].number);
    tell_all(desk);
}

/* The store's clock shows so much. True: it was set forward, so that keys have ended before their time, or will. */
static bool clock_hear(struct key_desk *desk, uint64_t clock)
{
    desk->clock = clock < UINT64_MAX / BECALM_MS ? clock * BECALM_MS : 0;
    desk->clock_at = desk->options.loop->now;
    return desk->expected > 0 && becalm_ns_since(desk->clock, desk->expected) >= AHEAD;
}

/* The store remembers so many ends of this process. */
static void count_hear(struct key_desk *desk, uint64_t count, bool set)
{
    struct key_memory *memory = desk->options.keyring->memory;
    if (key_memory_misses(memory, &desk->stamp, count) || set) {
        desk->forgotten = key_memory_lost(memory, desk->options.loop->now);
        desk->from = 0;
        desk->options.forgotten(desk->options.self, desk->forgotten, false);
    }
    if (desk->flying == 0) {
        tell_all(desk);
    }
}

/* ------------------------------------------------------------------------------------------------------- asking */

static void list_done(struct redis_command *command, const struct reply *reply)
{
    struct key_desk *desk = CONTAINER_OF(command, struct key_desk, list);
    desk->listing = false;
    if (reply == NULL) {
        return;
    }
    const struct reply_item *item = reply->item;
    if (reply->kind != REPLY_LIST || reply->count != 5 || item[1].number < 0 || item[2].text == NULL ||
        item[3].number < 0 || item[4].number < 0) {
        redis_lose(desk->redis, redis_refusal(reply));
        return;
    }
    redis_good(desk->redis);
    atomic_store_explicit(&desk->options.keyring->listed, true, memory_order_relaxed);
    desk->count = (uint64_t)item[1].number;
    if (desk->options.loop->now < desk->wanted_until) {
        lines_read(desk, item[2].text, item[2].length);
    }
    count_hear(desk, (uint64_t)item[3].number, clock_hear(desk, (uint64_t)item[4].number));
}

/* Adds the time that the store's clock should show now. */
static bool clock_add(struct key_desk *desk)
{
    becalm_ns passed = becalm_ns_since(desk->options.loop->now, desk->clock_at);
    desk->expected = desk->clock == 0 ? 0 : becalm_ns_after(desk->clock, passed);
    return desk->expected == 0 ? redis_word(&desk->list, "", 0) : redis_number(&desk->list, desk->expected / BECALM_MS);
}

static void timer_fires(struct timer *timer)
{
    struct key_desk *desk = CONTAINER_OF(timer, struct key_desk, timer);
    struct loop *loop = desk->options.loop;
    struct key_names names = names_of(desk, NULL);
    wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, key_patience(desk->options.keyring)));
    if (desk->listing || redis_state(desk->redis) != REDIS_UP) {
        return;
    }
    desk->list = (struct redis_command){.done = list_done, .script = &desk->script};
    desk->listing = key_words(&desk->list, &names, "list") &&
                    redis_number(&desk->list, loop->now < desk->wanted_until ? MOST : 0) &&
                    redis_number(&desk->list, desk->options.keyring->ttl / BECALM_MS) && clock_add(desk) &&
                    redis_send(desk->redis, &desk->list);
    desk->stamp = names.stamp;
    if (!desk->listing) {
        redis_command_free(&desk->list);
    }
}

static void list_now(struct key_desk *desk)
{
    wheel_arm(&desk->options.loop->wheel, &desk->timer, desk->options.loop->now);
}

static void connection_up(struct redis_user *user)
{
    struct key_desk *desk = CONTAINER_OF(user, struct key_desk, user);
    desk->from = 0;
    list_now(desk);
}

static void connection_lost(struct redis_user *user)
{
    const struct key_desk *desk = CONTAINER_OF(user, struct key_desk, user);
    atomic_store_explicit(&desk->options.keyring->listed, false, memory_order_relaxed);
}

/* --------------------------------------------------------------------------------------------------------- orders */

static void order_over(struct order *order, const char *why)
{
    struct key_desk *desk = order->desk;
    desk->options.ordered(desk->options.self, order->id, why);
    redis_command_free(&order->command);
    free(order);
}

static bool order_send(struct order *order, const char *what, bool knows_guard,
                       void (*done)(struct redis_command *, const struct reply *))
{
    struct key_desk *desk = order->desk;
    struct key_names names = names_of(desk, order);
    names.guard = knows_guard ? order->guard : NULL;
    order->command = (struct redis_command){.done = done, .script = &desk->script};
    return key_words(&order->command, &names, what) && redis_send(desk->redis, &order->command);
}

static void free_done(struct redis_command *command, const struct reply *reply)
{
    struct order *order = CONTAINER_OF(command, struct order, command);
    struct key_desk *desk = order->desk;
    bool listed = reply != NULL && reply->kind == REPLY_LIST && reply->count > 0;
    order_over(order, reply == NULL                             ? "the store was lost"
                      : listed && reply_says(reply->item, "ok") ? NULL
                                                                : "it is not held any more");
    if (reply != NULL && !listed) {
        redis_lose(desk->redis, redis_refusal(reply));
    } else if (reply != NULL) {
        list_now(desk);
    }
}

/* "held", and the guard's name, whose last digits are its id. */
static void look_done(struct redis_command *command, const struct reply *reply)
{
    struct order *order = CONTAINER_OF(command, struct order, command);
    struct key_desk *desk = order->desk;
    const struct reply_item *item = reply == NULL ? NULL : reply->item;
    bool listed = reply != NULL && reply->kind == REPLY_LIST && reply->count == 2 && item[1].text != NULL;
    size_t hex = KEY_HEX - 1;
    if (!listed) {
        order_over(order, "the store was lost");
        if (reply != NULL) {
            redis_lose(desk->redis, redis_refusal(reply));
        }
    } else if (!reply_says(item, "held")) {
        order_over(order, reply_says(item, "none") ? "there is no such key" : "the key is in flight or has its answer");
    } else if (item[1].length < hex || !key_hex_read(order->guard, item[1].text + item[1].length - hex, hex) ||
               !order_send(order, "free", true, free_done)) {
        order_over(order, "the store was lost");
    }
}

bool key_desk_release(struct key_desk *desk, const unsigned char id[STORE_ID])
{
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL) {
        return false;
    }
    order->desk = desk;
    memcpy(order->id, id, sizeof order->id);
    if (!order_send(order, "look", false, look_done)) {
        redis_command_free(&order->command);
        free(order);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------ beginning and end */

struct key_desk *key_desk_make(const struct key_desk_options *options)
{
    struct key_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL) {
        return NULL;
    }
    struct redis_options redis = {.loop = options->loop,
                                  .find = options->find,
                                  .note = options->note,
                                  .self = options->self,
                                  .user = &desk->user,
                                  .wait_cap = key_patience(options->keyring),
                                  .wants_run = true,
                                  .reply_bytes = REPLY_MOST};
    redis_site_use(&options->keyring->site, &redis);
    desk->options = *options;
    desk->user = (struct redis_user){.up = connection_up, .lost = connection_lost};
    desk->script = redis_script("keys");
    desk->timer.fire = timer_fires;
    for (uint32_t i = 0; i < TELLINGS; i++) {
        desk->telling[i].desk = desk;
    }
    desk->redis = redis_make(&redis);
    if (desk->redis == NULL) {
        free(desk);
        return NULL;
    }
    keyring_use(desk->options.keyring);
    list_now(desk);
    return desk;
}

void key_desk_free(struct key_desk *desk)
{
    if (desk == NULL) {
        return;
    }
    redis_free(desk->redis);
    timer_disarm(&desk->timer);
    keyring_drop(desk->options.keyring);
    free(desk->held);
    free(desk);
}

struct keyring *key_desk_keyring(const struct key_desk *desk)
{
    return desk->options.keyring;
}

const struct redis *key_desk_redis(const struct key_desk *desk)
{
    return desk->redis;
}

uint64_t key_desk_count(const struct key_desk *desk)
{
    return desk->count;
}

uint32_t key_desk_held(struct key_desk *desk, becalm_ns now, struct store_held *list, uint32_t most)
{
    bool slept = now >= desk->wanted_until;
    uint32_t count = desk->held_count < most ? desk->held_count : most;
    desk->wanted_until = becalm_ns_after(now, WANTED_FOR);
    if (slept) { /* the first look must not wait for the next turn */
        list_now(desk);
        return 0; /* the present list was read long ago */
    }
    if (count > 0) {
        memcpy(list, desk->held, count * sizeof *list);
    }
    return count;
}
