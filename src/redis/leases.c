/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "leases.h"

#include "container.h"
#include "run/entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One budget. */
struct slot {
    struct slot *next; /* by chunk and index */
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
    struct redis_command command; /* first */
    struct leases *leases;
    struct slot *slot[SCRIPT_BUDGETS]; /* NULL: it is gone */
    struct run *next;                  /* of those that are on their way */
    uint32_t count;
    bool goodbye; /* its answer is ignored */
};

struct leases {
    struct redis_user user; /* first */
    struct loop *loop;
    struct redis *redis;
    struct redis_script script;
    char fleet[SCRIPT_FLEET_MAX + 1];
    uint64_t name;     /* of this instance while the connection lasts */
    uint64_t old_name; /* the name that says goodbye */
    struct run *runs;  /* on their way */
    struct slot *slots;
    struct timer tick; /* maintains the leases */
};

static struct becalm_moment moment(struct leases *leases)
{
    return (struct becalm_moment){.now = leases->loop->now, .random = becalm_rand_next(&leases->loop->random)};
}

static void tick_now(struct leases *leases)
{
    wheel_arm(&leases->loop->wheel, &leases->tick, leases->loop->now);
}

/* -------------------------------------------------------------------------------------------------------- asking */

static void run_forget(struct run *run)
{
    struct run **link = &run->leases->runs;
    while (*link != run) {
        link = &(*link)->next;
    }
    *link = run->next;
    redis_command_free(&run->command);
    free(run);
}

/* A store that was away finds at most so many again in a second: up to 400 are all there within two seconds, and a
 * thousand within five. A tenth of that is for the last one to connect and to be granted a lease. */
#define WAIT_EACH (4500 * BECALM_US)
#define WAIT_MIN  (1800 * BECALM_MS)
#define WAIT_MAX  (4500 * BECALM_MS)

static void live_hear(const struct leases *leases, const struct becalm_lease *lease)
{
    becalm_ns wait = becalm_lease_live(lease) * WAIT_EACH;
    redis_wait_at_most(leases->redis, becalm_ns_min(becalm_ns_max(wait, WAIT_MIN), WAIT_MAX));
}

static void run_hear(const struct run *run, const struct reply *reply)
{
    for (uint32_t i = 0; !run->goodbye && i < run->count; i++) {
        struct becalm_lease_answer answer = script_answer(reply, i);
        if (run->slot[i] != NULL && becalm_lease_answer(run->slot[i]->lease, run->leases->loop->now, &answer)) {
            live_hear(run->leases, run->slot[i]->lease);
        }
    }
}

static void run_done(struct redis_command *command, const struct reply *reply)
{
    struct run *run = CONTAINER_OF(command, struct run, command);
    struct leases *leases = run->leases;
    bool goodbye = run->goodbye;
    bool right = reply != NULL && script_answers(reply, run->count);
    if (right) {
        run_hear(run, reply);
    }
    run_forget(run);
    if (reply == NULL) {
        return;
    }
    if (!right) {
        redis_lose(leases->redis, redis_refusal(reply));
        return;
    }
    redis_good(leases->redis);
    if (goodbye && leases->runs == NULL) { /* now under the new name */
        tick_now(leases);
    }
}

/* Its memory is gone if it could not be sent. */
static bool run_send(struct leases *leases, struct run *run)
{
    struct script_part *part = calloc(run->count, sizeof *part);
    bool filled = part != NULL;
    for (uint32_t i = 0; filled && i < run->count; i++) {
        part[i] = run->slot[i]->part;
        part[i].request = run->goodbye ? run->slot[i]->goodbye : run->slot[i]->part.request;
        part[i].request.instance = run->goodbye ? leases->old_name : leases->name;
    }
    struct script_run what = {.fleet = leases->fleet, .chunk = run->slot[0]->chunk, .part = part, .count = run->count};
    run->leases = leases;
    run->command.script = &leases->script;
    run->command.done = run_done;
    run->next = leases->runs;
    leases->runs = run;
    bool sent = filled && script_fill(&what, &run->command) && redis_send(leases->redis, &run->command);
    free(part);
    if (!sent) {
        run_forget(run);
    }
    return sent;
}

/* The budgets of one chunk that have something to say. NULL: none has, or there is no memory. */
static struct run *run_make(const struct leases *leases, uint32_t chunk, bool goodbye)
{
    struct run *run = calloc(1, sizeof *run);
    for (struct slot *slot = leases->slots; run != NULL && slot != NULL; slot = slot->next) {
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

static void runs_send(struct leases *leases, bool goodbye)
{
    uint32_t chunks = 0;
    for (const struct slot *slot = leases->slots; slot != NULL; slot = slot->next) {
        chunks = slot->chunk >= chunks ? slot->chunk + 1 : chunks;
    }
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        struct run *run = run_make(leases, chunk, goodbye);
        if (run != NULL && !run_send(leases, run)) {
            redis_lose(leases->redis, "closed");
            return;
        }
    }
}

/* All leases in one moment, so that their next times are the same: one message for all of them. */
static void tick_fires(struct timer *timer)
{
    struct leases *leases = CONTAINER_OF(timer, struct leases, tick);
    struct becalm_moment at = moment(leases);
    bool asks = redis_state(leases->redis) == REDIS_UP && leases->runs == NULL;
    becalm_ns next = BECALM_NEVER;
    for (struct slot *slot = leases->slots; slot != NULL; slot = slot->next) {
        slot->asked = false;
        if (asks) {
            slot->asked = becalm_lease_ask(slot->lease, &slot->part.policy, &at, &slot->part.request);
        } else {
            becalm_lease_tend(slot->lease, &slot->part.policy, &at);
        }
        next = becalm_ns_min(next, becalm_lease_ask_at(slot->lease));
    }
    wheel_arm(&leases->loop->wheel, timer, next);
    if (asks) {
        runs_send(leases, false);
    }
}

/* ------------------------------------------------------------------------------------------- the connection's end */

static void connection_up(struct redis_user *user)
{
    struct leases *leases = CONTAINER_OF(user, struct leases, user);
    if (!entropy_fill_now(&leases->name, sizeof leases->name)) {
        leases->name = becalm_rand_next(&leases->loop->random);
    }
    leases->name |= 1;
    runs_send(leases, true); /* the goodbyes first */
    if (redis_state(leases->redis) != REDIS_UP) {
        return;
    }
    for (struct slot *slot = leases->slots; slot != NULL; slot = slot->next) {
        slot->parting = false;
    }
    if (leases->runs == NULL) {
        tick_now(leases);
    }
}

/* Each lives on its own share, under another name from now on: a process that was copied has lost its connection, too.
 */
static void connection_lost(struct redis_user *user)
{
    struct leases *leases = CONTAINER_OF(user, struct leases, user);
    struct becalm_moment at = moment(leases);
    for (struct slot *slot = leases->slots; slot != NULL; slot = slot->next) {
        struct becalm_lease_request goodbye;
        if (becalm_lease_lost(slot->lease, &slot->part.policy, &at, &goodbye)) {
            slot->parting = true;
            slot->goodbye = goodbye;
            leases->old_name = leases->name;
        }
    }
}

struct leases *leases_make(const struct leases_options *options)
{
    struct leases *leases = calloc(1, sizeof *leases);
    if (leases == NULL) {
        return NULL;
    }
    struct redis_options redis = options->redis;
    redis.user = &leases->user;
    leases->user = (struct redis_user){.up = connection_up, .lost = connection_lost};
    leases->loop = redis.loop;
    leases->script = redis_script("store");
    script_name(leases->fleet, sizeof leases->fleet, options->fleet == NULL ? "default" : options->fleet, NULL);
    leases->tick.fire = tick_fires;
    leases->redis = redis_make(&redis);
    if (leases->redis == NULL) {
        free(leases);
        return NULL;
    }
    return leases;
}

/* ------------------------------------------------------------------------------------------------------- budgets */

void leases_bind_begin(struct leases *leases)
{
    for (struct slot *slot = leases->slots; slot != NULL; slot = slot->next) {
        slot->used = false;
    }
}

/* The first place that is free, with all that are taken before it: the places of a chunk rise along the list. */
static struct slot **place_find(struct leases *leases, struct slot *slot)
{
    struct slot **link = &leases->slots;
    uint32_t place = 0;
    while (*link != NULL && (*link)->chunk * SCRIPT_BUDGETS + (*link)->part.index == place) {
        link = &(*link)->next;
        place++;
    }
    slot->chunk = place / SCRIPT_BUDGETS;
    slot->part.index = place % SCRIPT_BUDGETS;
    return link;
}

bool leases_bind(struct leases *leases, const char *name, struct becalm_lease *lease,
                 const struct becalm_lease_policy *policy)
{
    for (struct slot *slot = leases->slots; slot != NULL; slot = slot->next) {
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
    struct slot **link = place_find(leases, slot);
    slot->next = *link;
    *link = slot;
    tick_now(leases);
    return true;
}

/* Removes the slot from the runs in flight, and returns its lease with a goodbye. */
static void slot_leave(struct leases *leases, struct slot *slot)
{
    struct becalm_moment at = moment(leases);
    for (struct run *sent = leases->runs; sent != NULL; sent = sent->next) {
        for (uint32_t i = 0; i < sent->count; i++) {
            sent->slot[i] = sent->slot[i] == slot ? NULL : sent->slot[i];
        }
    }
    becalm_lease_leave(slot->lease, &at, &slot->part.request);
    if (redis_state(leases->redis) != REDIS_UP || slot->part.request.answered == 0) {
        return;
    }
    struct run *run = calloc(1, sizeof *run);
    if (run != NULL) {
        run->slot[0] = slot;
        run->count = 1;
        if (run_send(leases, run)) {
            run->slot[0] = NULL;
        }
    }
}

void leases_bind_end(struct leases *leases)
{
    for (struct slot **link = &leases->slots; *link != NULL;) {
        struct slot *slot = *link;
        if (slot->used) {
            link = &slot->next;
        } else {
            *link = slot->next;
            slot_leave(leases, slot);
            free(slot);
        }
    }
}

void leases_free(struct leases *leases)
{
    if (leases == NULL) {
        return;
    }
    leases_bind_begin(leases);
    leases_bind_end(leases);
    redis_free(leases->redis);
    timer_disarm(&leases->tick);
    free(leases);
}

struct redis *leases_redis(const struct leases *leases)
{
    return leases->redis;
}
