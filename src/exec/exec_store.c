/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exec_store.h"

#include "container.h"
#include "redis/lookup.h"
#include "redis/request.h"
#include "run/entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#define LOOK (100 * BECALM_MS) /* while another process is at it, or the server owes an answer */

struct exec_store {
    struct redis_user user; /* first */
    struct loop loop;
    const struct redis_site *site;
    struct shared *shared;
    struct lookup lookup;
    struct redis *redis; /* NULL: not connected */
    struct redis_script script;
    struct redis_command command;
    struct script_part part;
    char fleet[SCRIPT_FLEET_MAX + 1];
    bool asked;       /* the command is on its way */
    bool held;        /* the lock is ours: no other process asks the store or updates the lease */
    bool over;        /* the connection is of no more use */
    becalm_ns due_at; /* the next look */
};

static struct becalm_lease *lease_of(const struct exec_store *store)
{
    return shared_lease(store->shared);
}

static struct becalm_moment moment(struct exec_store *store)
{
    return (struct becalm_moment){.now = store->loop.now, .random = becalm_rand_next(&store->loop.random)};
}

static bool lock_take(struct exec_store *store)
{
    store->held = store->held || (store->shared->fd >= 0 && flock(store->shared->fd, LOCK_EX | LOCK_NB) == 0);
    return store->held;
}

static void lock_give(struct exec_store *store)
{
    if (store->held && store->shared->fd >= 0) {
        (void)flock(store->shared->fd, LOCK_UN);
    }
    store->held = false;
}

/* -------------------------------------------------------------------------------------------------------- asking */

static void answer_hear(struct exec_store *store, const struct reply *reply)
{
    struct becalm_lease_answer answer = script_answer(reply, 0);
    (void)becalm_lease_answer(lease_of(store), store->loop.now, &answer);
    store->due_at = becalm_lease_ask_at(lease_of(store));
    redis_good(store->redis);
}

static void command_done(struct redis_command *command, const struct reply *reply)
{
    struct exec_store *store = CONTAINER_OF(command, struct exec_store, command);
    store->asked = false;
    if (reply == NULL) { /* `lost` follows */
        return;
    }
    if (script_answers(reply, 1)) {
        answer_hear(store, reply);
        lock_give(store);
        return;
    }
    redis_lose(store->redis, redis_refusal(reply));
}

static bool command_send(struct exec_store *store)
{
    struct script_run run = {.fleet = store->fleet, .part = &store->part, .count = 1};
    store->command = (struct redis_command){.script = &store->script, .done = command_done};
    bool sent = script_fill(&run, &store->command) && redis_send(store->redis, &store->command);
    if (!sent) {
        redis_command_free(&store->command);
    }
    return sent;
}

/* With the lock and a connection. */
static void ask(struct exec_store *store)
{
    struct becalm_moment at = moment(store);
    if (store->asked) {
        return;
    }
    if (becalm_lease_ask(lease_of(store), &store->shared->lease, &at, &store->part.request)) {
        store->part.policy = store->shared->lease;
        store->asked = command_send(store);
        if (!store->asked) {
            redis_lose(store->redis, "closed");
        }
    } else { /* the lease has nothing to report, or waits for the answer to a process that is gone */
        store->due_at = becalm_lease_ask_at(lease_of(store));
        lock_give(store);
    }
}

/* ---------------------------------------------------------------------------------------------------- connecting */

static bool host_find(void *self, const char *host, union address_socket *socket)
{
    struct exec_store *store = self;
    return lookup_find(&store->lookup, host, socket);
}

static void connection_up(struct redis_user *user)
{
    struct exec_store *store = CONTAINER_OF(user, struct exec_store, user);
    if (store->held) {
        ask(store);
    }
}

/* It was this process's turn to ask, and the store can't be reached: the instance lives on its own share at once. */
static void connection_lost(struct exec_store *store)
{
    struct becalm_lease_request goodbye; /* the goodbye is not sent: the rest of the lease is spent or lost */
    struct becalm_moment at = moment(store);
    if (store->held) {
        (void)becalm_lease_lost(lease_of(store), &store->shared->lease, &at, &goodbye);
        becalm_lease_tend(lease_of(store), &store->shared->lease, &at);
        store->due_at = becalm_lease_ask_at(lease_of(store));
    }
    lock_give(store);
}

/* A connection that ended, or never began, is not made again before an exchange is due and no other process is at it.
 */
static void note(void *self, const char *why)
{
    struct exec_store *store = self;
    store->over = why != NULL;
}

static void connect_now(struct exec_store *store)
{
    struct redis_options options = {
        .loop = &store->loop, .user = &store->user, .find = host_find, .note = note, .self = store};
    redis_site_use(store->site, &options);
    store->redis = redis_make(&options);
    store->over = store->redis == NULL;
}

static void connection_end(struct exec_store *store)
{
    connection_lost(store);
    redis_free(store->redis);
    store->redis = NULL;
    store->over = false;
    store->asked = false;
}

/* ----------------------------------------------------------------------------------------------------- the turns */

/* An exchange may be due. A process without a connection makes one only then: one process of the machine at a time. */
static void look(struct exec_store *store)
{
    struct becalm_moment at = moment(store);
    store->due_at = becalm_ns_after(store->loop.now, LOOK);
    if (!lock_take(store)) {
        return;
    }
    bool due = becalm_lease_ask_at(lease_of(store)) <= store->loop.now;
    bool waits = store->asked || (store->redis != NULL && redis_state(store->redis) != REDIS_UP);
    if (waits && due) {
        becalm_lease_tend(lease_of(store), &store->shared->lease, &at);
    } else if (!waits && !due) {
        store->due_at = becalm_lease_ask_at(lease_of(store));
        lock_give(store);
    } else if (!waits && store->redis == NULL) {
        connect_now(store);
    } else if (!waits) {
        ask(store);
    }
}

void exec_store_turn(struct exec_store *store, becalm_ns now)
{
    loop_turn(&store->loop, false);
    if (store->over) {
        connection_end(store);
    }
    if (now >= store->due_at) {
        look(store);
        loop_turn(&store->loop, false); /* a connection that is to be made */
    }
}

int exec_store_fd(const struct exec_store *store)
{
    return store->loop.epoll_fd;
}

becalm_ns exec_store_due(struct exec_store *store)
{
    return becalm_ns_min(store->due_at, wheel_next(&store->loop.wheel));
}

static void nobody_wakes(struct loop *loop)
{
    (void)loop;
}

struct exec_store *exec_store_open(const struct exec_store_options *options)
{
    struct exec_store *store = calloc(1, sizeof *store);
    if (store == NULL || loop_init(&store->loop, nobody_wakes) != 0) {
        free(store);
        return NULL;
    }
    store->user.up = connection_up;
    store->site = options->site;
    store->shared = options->shared;
    store->script = redis_script("store");
    store->lookup.random = entropy_seed();
    script_name(store->fleet, sizeof store->fleet, options->fleet, NULL);
    script_name(store->part.name, sizeof store->part.name, options->service, options->endpoint);
    return store;
}

void exec_store_close(struct exec_store *store)
{
    if (store == NULL) {
        return;
    }
    lock_give(store);
    redis_free(store->redis);
    lookup_clear(&store->lookup);
    loop_turn(&store->loop, false); /* frees the buried sources */
    loop_close(&store->loop);
    free(store);
}
