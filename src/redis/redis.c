/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis.h"

#include "container.h"
#include "reply.h"
#include "run/entropy.h"
#include "wire/wire.h"

#include <becalm/backoff.h>

#include <errno.h>
#include <hiredis.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_SIZE 4096u
#define WORD_MAX  32u

/* One budget. */
struct slot {
    struct slot *next;
    struct becalm_lease *lease;
    struct script_part part; /* its request is the last one */
    uint32_t chunk;
    bool used;                           /* by those that are being bound */
    bool asked;                          /* in this tick */
    bool parting;                        /* the name that it had before has not said goodbye */
    struct becalm_lease_request goodbye; /* of that name */
};

/* One run of the script, which is not answered yet. */
struct run {
    struct run *next;
    struct slot *slot[SCRIPT_BUDGETS]; /* NULL: it is gone */
    uint32_t count;
    bool whole;   /* sent with the script */
    bool goodbye; /* nobody listens to its answer */
};

/* The connection. Its memory lives until events for it can't come any more. */
struct link {
    struct wire wire; /* first */
    struct redis *redis;
};

struct redis {
    struct loop *loop;
    struct redis_options options;
    struct becalm_backoff_policy backoff;
    char fleet[SCRIPT_FLEET_MAX + 1];
    enum redis_state state;
    struct link *link;
    struct reply_reader reader;
    uint64_t name;      /* of this instance while the connection lasts */
    uint64_t old_name;  /* who says goodbye */
    uint32_t greetings; /* replies that are due */
    struct run *first_run;
    struct run **last_run;
    struct slot *slots;
    struct timer tick;  /* the leases are looked after */
    struct timer limit; /* the server is silent for too long */
    struct timer again;
    uint32_t tries; /* since it was last up */
    bool told;      /* that it is away */
    char error[WORD_MAX];
    struct redis_count count;
};

static struct becalm_moment moment(struct redis *redis)
{
    return (struct becalm_moment){.now = redis->loop->now, .random = becalm_rand_next(&redis->loop->random)};
}

/* ----------------------------------------------------------------------------------------------------- its end */

static void runs_forget(struct redis *redis)
{
    while (redis->first_run != NULL) {
        struct run *run = redis->first_run;
        redis->first_run = run->next;
        free(run);
    }
    redis->last_run = &redis->first_run;
}

static void link_close(struct redis *redis)
{
    if (redis->link != NULL) {
        redis->link->redis = NULL;
        bytes_free(&redis->link->wire.out);
        loop_bury(redis->loop, &redis->link->wire.source);
        redis->link = NULL;
    }
    reply_close(&redis->reader);
    runs_forget(redis);
    timer_disarm(&redis->limit);
}

/* Each lives on its own share, under another name from now on: whoever was copied has lost its connection, too. */
static void leases_lose(struct redis *redis)
{
    struct becalm_moment at = moment(redis);
    for (struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
        struct becalm_lease_request goodbye;
        if (becalm_lease_lost(slot->lease, &slot->part.policy, &at, &goodbye)) {
            slot->parting = true;
            slot->goodbye = goodbye;
            redis->old_name = redis->name;
        }
    }
}

static void again_plan(struct redis *redis)
{
    struct becalm_wait wait;
    struct becalm_backoff_draw draw = {
        .n = ++redis->tries, .hint = BECALM_NEVER, .random = becalm_rand_next(&redis->loop->random)};
    becalm_backoff_wait(&redis->backoff, &draw, &wait);
    wheel_arm(&redis->loop->wheel, &redis->again, becalm_ns_after(redis->loop->now, wait.wait));
}

/* `why` ends at its first space. */
static void fail(struct redis *redis, const char *why)
{
    snprintf(redis->error, sizeof redis->error, "%.*s", (int)strcspn(why, " "), why);
    link_close(redis);
    redis->state = REDIS_AWAY;
    redis->count.lost++;
    leases_lose(redis);
    if (!redis->told) {
        redis->told = true;
        if (redis->options.note != NULL) {
            redis->options.note(redis->options.self, redis->error);
        }
    }
    again_plan(redis);
}

/* ------------------------------------------------------------------------------------------------------- writing */

static bool command_add(struct bytes *out, int count, const char **word)
{
    char *command = NULL;
    int length = redisFormatCommandArgv(&command, count, word, NULL);
    bool done = length > 0 && bytes_add(out, command, (size_t)length);
    redisFreeCommand(command);
    return done;
}

static bool send_bytes(struct redis *redis, struct bytes *out, bool written)
{
    struct iovec part = {.iov_base = out->at, .iov_len = out->length};
    bool sent = written && wire_write(&redis->link->wire, &part, 1) >= 0;
    bytes_free(out);
    return sent;
}

/* Who it is, and whether anybody answers: what lies unread in a hung server is answered to nobody, later. */
static bool greet(struct redis *redis)
{
    const struct redis_place *place = &redis->options.place;
    struct bytes out = {.at = NULL};
    char name[32];
    char database[16];
    bool written = true;
    redis->greetings = 2;
    if (place->password[0] != 0) {
        const char *word[] = {"AUTH", place->user, place->password};
        const char *alone[] = {"AUTH", place->password};
        written = place->user[0] != 0 ? command_add(&out, 3, word) : command_add(&out, 2, alone);
        redis->greetings++;
    }
    if (place->database != 0) {
        snprintf(database, sizeof database, "%" PRIu32, place->database);
        written = written && command_add(&out, 2, (const char *[]){"SELECT", database});
        redis->greetings++;
    }
    snprintf(name, sizeof name, "becalm-%08" PRIx32, (uint32_t)redis->name);
    written = written && command_add(&out, 3, (const char *[]){"CLIENT", "SETNAME", name}) &&
              command_add(&out, 1, (const char *[]){"PING"});
    return send_bytes(redis, &out, written);
}

static bool run_send(struct redis *redis, struct run *run)
{
    struct script_part *part = calloc(run->count, sizeof *part);
    struct bytes out = {.at = NULL};
    bool written = part != NULL;
    for (uint32_t i = 0; written && i < run->count; i++) {
        part[i] = run->slot[i]->part;
        part[i].request = run->goodbye ? run->slot[i]->goodbye : run->slot[i]->part.request;
        part[i].request.instance = run->goodbye ? redis->old_name : redis->name;
    }
    struct script_run what = {.fleet = redis->fleet, .chunk = run->slot[0]->chunk, .part = part, .count = run->count};
    written = written && script_write(&what, run->whole, &out);
    free(part);
    *redis->last_run = run;
    redis->last_run = &run->next;
    run->next = NULL;
    return send_bytes(redis, &out, written);
}

/* The budgets of one chunk that have something to say. NULL: none has, or there is no memory. */
static struct run *run_make(struct redis *redis, uint32_t chunk, bool goodbye)
{
    struct run *run = calloc(1, sizeof *run);
    for (struct slot *slot = redis->slots; run != NULL && slot != NULL; slot = slot->next) {
        if (slot->chunk == chunk && (goodbye ? slot->parting : slot->asked)) {
            run->slot[run->count++] = slot;
        }
    }
    if (run != NULL && run->count == 0) {
        free(run);
        return NULL;
    }
    if (run != NULL) {
        run->goodbye = goodbye;
    }
    return run;
}

static bool runs_send(struct redis *redis, bool goodbye)
{
    uint32_t chunks = 0;
    bool sent = true;
    for (const struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
        chunks = slot->chunk >= chunks ? slot->chunk + 1 : chunks;
    }
    for (uint32_t chunk = 0; sent && chunk < chunks; chunk++) {
        struct run *run = run_make(redis, chunk, goodbye);
        sent = run == NULL || run_send(redis, run);
    }
    return sent;
}

/* All leases in one moment, so that their next times are the same: one message for all of them. */
static void tick_fires(struct timer *timer)
{
    struct redis *redis = CONTAINER_OF(timer, struct redis, tick);
    struct becalm_moment at = moment(redis);
    bool asks = redis->state == REDIS_UP && redis->first_run == NULL;
    becalm_ns next = BECALM_NEVER;
    for (struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
        slot->asked = false;
        if (asks) {
            slot->asked = becalm_lease_ask(slot->lease, &slot->part.policy, &at, &slot->part.request);
        } else {
            becalm_lease_tend(slot->lease, &slot->part.policy, &at);
        }
        next = becalm_ns_min(next, becalm_lease_ask_at(slot->lease));
    }
    wheel_arm(&redis->loop->wheel, timer, next);
    if (asks && !runs_send(redis, false)) {
        fail(redis, "broken");
    } else if (asks && redis->first_run != NULL) {
        wheel_arm(&redis->loop->wheel, &redis->limit, becalm_ns_after(redis->loop->now, REDIS_TIMEOUT));
    }
}

/* ------------------------------------------------------------------------------------------------------- reading */

static void become_up(struct redis *redis)
{
    redis->state = REDIS_UP;
    timer_disarm(&redis->limit);
    if (!runs_send(redis, true)) {
        fail(redis, "broken");
        return;
    }
    for (struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
        slot->parting = false;
    }
    if (redis->first_run == NULL) {
        wheel_arm(&redis->loop->wheel, &redis->tick, redis->loop->now);
    } else { /* the goodbyes first */
        wheel_arm(&redis->loop->wheel, &redis->limit, becalm_ns_after(redis->loop->now, REDIS_TIMEOUT));
    }
}

static void greeted(struct redis *redis, const struct reply *reply)
{
    bool named = redis->greetings == 2; /* the server need not let us have a name */
    if (reply->kind == REPLY_ERROR && !named) {
        fail(redis, reply->text);
    } else if (--redis->greetings == 0) {
        become_up(redis);
    }
}

/* The first good answer since it was away. */
static void answers(struct redis *redis)
{
    redis->count.exchanges++;
    redis->tries = 0;
    if (redis->told || redis->count.exchanges == 1) {
        redis->told = false;
        if (redis->options.note != NULL) {
            redis->options.note(redis->options.self, NULL);
        }
    }
}

static void run_answered(struct redis *redis, const struct run *run, const struct reply *reply)
{
    for (uint32_t i = 0; !run->goodbye && i < run->count; i++) {
        struct becalm_lease_answer answer = script_answer(&reply->number[(size_t)i * SCRIPT_NUMBERS]);
        if (run->slot[i] != NULL) {
            (void)becalm_lease_answer(run->slot[i]->lease, redis->loop->now, &answer);
        }
    }
    answers(redis);
}

static bool run_whole(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->slot[i] == NULL) {
            return false;
        }
    }
    return true;
}

static void told(struct redis *redis, const struct reply *reply)
{
    struct run *run = redis->first_run;
    if (run == NULL) {
        fail(redis, "unasked");
        return;
    }
    redis->first_run = run->next;
    redis->last_run = redis->first_run == NULL ? &redis->first_run : redis->last_run;
    bool unknown = reply->kind == REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0 && !run->whole;
    if (unknown && run_whole(run)) {
        run->whole = true;
        redis->count.reloads++;
        if (!run_send(redis, run)) {
            fail(redis, "broken");
        }
        return;
    }
    bool goodbye = run->goodbye;
    bool right = unknown || (reply->kind == REPLY_LIST && reply->count == run->count * SCRIPT_NUMBERS);
    if (right && !unknown) {
        run_answered(redis, run, reply);
    }
    free(run);
    if (!right) {
        fail(redis, reply->kind == REPLY_ERROR ? reply->text : "nonsense");
    } else if (redis->first_run == NULL) {
        timer_disarm(&redis->limit);
        if (goodbye) { /* now under the new name */
            wheel_arm(&redis->loop->wheel, &redis->tick, redis->loop->now);
        }
    }
}

static void replies_hear(struct redis *redis)
{
    while (redis->link != NULL) {
        enum reply_next next = reply_next(&redis->reader);
        if (next == REPLY_BROKEN) {
            fail(redis, "nonsense");
        }
        if (next != REPLY_THERE) {
            return;
        }
        if (redis->state == REDIS_GREETING) {
            greeted(redis, &redis->reader.reply);
        } else {
            told(redis, &redis->reader.reply);
        }
    }
}

static void link_ready(struct source *source, uint32_t events)
{
    struct link *link = CONTAINER_OF(source, struct link, wire.source);
    struct redis *redis = link->redis;
    char bytes[READ_SIZE];
    wire_note(&link->wire, events);
    if (redis->state == REDIS_CONNECTING) {
        if ((events & (EPOLLHUP | EPOLLERR)) != 0 || !greet(redis)) {
            fail(redis, "refused");
            return;
        }
        redis->state = REDIS_GREETING;
    }
    if (wire_blocked(&link->wire) && wire_write(&link->wire, NULL, 0) < 0) {
        fail(redis, "broken");
        return;
    }
    while (redis->link == link && wire_readable(&link->wire)) {
        ssize_t got = wire_read(&link->wire, bytes, sizeof bytes);
        if (got == WIRE_LATER) {
            return;
        }
        if (got <= 0 || !reply_feed(&redis->reader, bytes, (size_t)got)) {
            fail(redis, "closed");
            return;
        }
        replies_hear(redis);
    }
}

/* ----------------------------------------------------------------------------------------------------- beginning */

static bool address_find(struct redis *redis, union address_socket *socket)
{
    struct address address;
    if (redis->options.find != NULL) {
        return redis->options.find(redis->options.self, &redis->options.place, socket);
    }
    bool right = address_parse(redis->options.place.host, &address) && address.kind != ADDRESS_NAME;
    *socket = address.socket;
    return right;
}

static struct link *link_open(struct redis *redis, const union address_socket *to)
{
    struct link *link = calloc(1, sizeof *link);
    int on = 1;
    if (link == NULL) {
        return NULL;
    }
    link->redis = redis;
    link->wire.source.ready = link_ready;
    link->wire.source.fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->wire.source.fd < 0) {
        free(link);
        return NULL;
    }
    if (to->any.sa_family != AF_UNIX) {
        setsockopt(link->wire.source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if ((connect(link->wire.source.fd, &to->any, address_length(to)) != 0 && errno != EINPROGRESS) ||
        loop_watch(redis->loop, &link->wire.source) != 0) {
        loop_bury(redis->loop, &link->wire.source);
        return NULL;
    }
    return link;
}

static void again_fires(struct timer *timer)
{
    struct redis *redis = CONTAINER_OF(timer, struct redis, again);
    union address_socket to;
    memset(&to, 0, sizeof to);
    redis->count.connects++;
    if (!address_find(redis, &to)) {
        fail(redis, "unresolved");
        return;
    }
    if (!entropy_fill_now(&redis->name, sizeof redis->name)) {
        redis->name = becalm_rand_next(&redis->loop->random);
    }
    redis->name |= 1;
    redis->link = link_open(redis, &to);
    if (redis->link == NULL || !reply_open(&redis->reader)) {
        fail(redis, "refused");
        return;
    }
    redis->state = REDIS_CONNECTING;
    wheel_arm(&redis->loop->wheel, &redis->limit, becalm_ns_after(redis->loop->now, REDIS_TIMEOUT));
}

static void limit_fires(struct timer *timer)
{
    fail(CONTAINER_OF(timer, struct redis, limit), "timeout");
}

struct redis *redis_make(const struct redis_options *options)
{
    struct redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL) {
        return NULL;
    }
    redis->loop = options->loop;
    redis->options = *options;
    redis->last_run = &redis->first_run;
    becalm_backoff_defaults(&redis->backoff);
    redis->backoff.base = 200 * BECALM_MS;
    redis->backoff.cap = 5 * BECALM_S;
    script_name(redis->fleet, sizeof redis->fleet, options->fleet == NULL ? "default" : options->fleet, NULL);
    redis->tick.fire = tick_fires;
    redis->limit.fire = limit_fires;
    redis->again.fire = again_fires;
    wheel_arm(&redis->loop->wheel, &redis->again, redis->loop->now);
    return redis;
}

/* ------------------------------------------------------------------------------------------------------- budgets */

void redis_bind_begin(struct redis *redis)
{
    for (struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
        slot->used = false;
    }
}

/* A chunk that has room. */
static uint32_t chunk_find(const struct redis *redis)
{
    for (uint32_t chunk = 0;; chunk++) {
        uint32_t count = 0;
        for (const struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
            count += slot->chunk == chunk;
        }
        if (count < SCRIPT_BUDGETS) {
            return chunk;
        }
    }
}

bool redis_bind(struct redis *redis, const char *name, struct becalm_lease *lease,
                const struct becalm_lease_policy *policy)
{
    for (struct slot *slot = redis->slots; slot != NULL; slot = slot->next) {
        if (slot->lease == lease) {
            slot->used = true;
            return true;
        }
    }
    struct slot *slot = calloc(1, sizeof *slot);
    if (slot == NULL) {
        return false;
    }
    slot->lease = lease;
    slot->used = true;
    slot->part.policy = *policy;
    snprintf(slot->part.name, sizeof slot->part.name, "%s", name);
    slot->chunk = chunk_find(redis);
    slot->next = redis->slots;
    redis->slots = slot;
    wheel_arm(&redis->loop->wheel, &redis->tick, redis->loop->now);
    return true;
}

/* Takes it out of what is on its way, and lets its name say goodbye. */
static void slot_leave(struct redis *redis, struct slot *slot)
{
    struct becalm_moment at = moment(redis);
    struct run *run = calloc(1, sizeof *run);
    for (struct run *sent = redis->first_run; sent != NULL; sent = sent->next) {
        for (uint32_t i = 0; i < sent->count; i++) {
            sent->slot[i] = sent->slot[i] == slot ? NULL : sent->slot[i];
        }
    }
    becalm_lease_leave(slot->lease, &at, &slot->part.request);
    if (redis->state == REDIS_UP && slot->part.request.answered > 0 && run != NULL) {
        run->slot[0] = slot;
        run->count = 1;
        (void)run_send(redis, run); /* if it can't be sent, an event says so */
        run->slot[0] = NULL;
    } else {
        free(run);
    }
}

void redis_bind_end(struct redis *redis)
{
    for (struct slot **link = &redis->slots; *link != NULL;) {
        struct slot *slot = *link;
        if (slot->used) {
            link = &slot->next;
        } else {
            *link = slot->next;
            slot_leave(redis, slot);
            free(slot);
        }
    }
}

void redis_free(struct redis *redis)
{
    if (redis == NULL) {
        return;
    }
    redis_bind_begin(redis);
    redis_bind_end(redis);
    link_close(redis);
    timer_disarm(&redis->tick);
    timer_disarm(&redis->again);
    free(redis);
}

enum redis_state redis_state(const struct redis *redis)
{
    return redis->state;
}

const char *redis_error(const struct redis *redis)
{
    return redis->error;
}

struct redis_count redis_count(const struct redis *redis)
{
    return redis->count;
}
