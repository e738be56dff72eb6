/* SPDX-License-Identifier: MIT */
#include "room.h"

#include "client/client.h"
#include "gateway_shared.h"
#include "greeting.h"

#include "container.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define TRIES    8u              /* connections given up for a new one, when others take the place of the first */
#define TRIM_MAX 4096u           /* connections given up in one go */
#define TOLD     (10 * BECALM_S) /* between two lines in the log */
#define GREETING \
    (100 * BECALM_MS) /* within which a load balancer sends its header, so that its connection is left alone */
#define BARREN (100 * BECALM_MS) /* before a worker that had no connection to close is asked for one again */

struct room {
    struct client *waiting[ROOM_WAITING]; /* in order */
    uint32_t waiting_count;
    uint32_t round;                /* clients, from the first on, that take part in the present round; 0: no round */
    uint32_t turned_away;          /* connections without a place that are being told so */
    becalm_ns told_at;             /* the latest line in the log */
    BECALM_ATOMIC(uint64_t) asked; /* bit n: worker n has not looked yet */
    BECALM_ATOMIC(uint32_t) top;   /* crowd_top(), or 1 with greetings alone; other workers read it */
    BECALM_ATOMIC(uint64_t) barren_until; /* until then the worker knows of no connection that it could close */
};

static const struct becalm_settings *settings_of(const struct worker *worker)
{
    return worker->view->snapshot->settings;
}

static bool place_take(struct client *client)
{
    struct gateway *gateway = client->worker->gateway;
    uint32_t max = settings_of(client->worker)->max_connections;
    client->placed = atomic_fetch_add_explicit(&gateway->connections, 1, memory_order_relaxed) < max;
    if (!client->placed) { /* for a moment it counts too many, never too few */
        atomic_fetch_sub_explicit(&gateway->connections, 1, memory_order_relaxed);
    }
    return client->placed;
}

static struct log_pair places_of(const struct worker *worker)
{
    return (struct log_pair){
        .key = "maxConnections", .type = LOG_NUMBER, .number = settings_of(worker)->max_connections};
}

static struct log_pair files_allowed(const struct worker *worker)
{
    (void)worker;
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    return (struct log_pair){.key = "openFiles", .type = LOG_NUMBER, .number = files.rlim_cur};
}

/* A full gateway is worth a line, but not one for each connection. */
static void tell(struct worker *worker, const char *message, struct log_pair (*about)(const struct worker *))
{
    struct room *room = worker->room;
    if (room->told_at == 0 || becalm_ns_since(worker->loop.now, room->told_at) >= TOLD) {
        struct log_pair pair = about(worker);
        room->told_at = worker->loop.now;
        log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall, message, &pair, 1);
    }
}

static void displace(struct crowd_member *member, enum metrics_bound bound)
{
    struct client *client = CONTAINER_OF(member, struct client, member);
    struct worker *worker = client->worker;
    gateway_count_bound(worker->gateway, bound);
    if (bound == METRICS_CONNECTIONS_DISPLACED) {
        tell(worker, "all connections are taken: idle connections are closed for new ones", places_of);
    }
    client_displace(client, "connections", "another client needs the connection");
}

/* A slow connection is closed only for a client that has no more connections than the slow one's client. */
static bool displace_for(struct worker *worker, uint32_t level)
{
    struct crowd_member *victim = crowd_pick(&worker->crowd, PRICE_IDLE, 0);
    if (victim == NULL) {
        victim = crowd_pick(&worker->crowd, PRICE_SLOW, level);
    }
    if (victim != NULL) {
        displace(victim, METRICS_CONNECTIONS_DISPLACED);
    }
    return victim != NULL;
}

static bool place_make(struct client *client)
{
    for (uint32_t i = 0; i < TRIES; i++) {
        if (place_take(client)) {
            return true;
        }
        if (!displace_for(client->worker, client->member.group->level)) {
            return false;
        }
    }
    return place_take(client);
}

static void turn_away(struct client *client, enum metrics_bound bound, const char *reason, const char *what)
{
    struct worker *worker = client->worker;
    gateway_count_bound(worker->gateway, bound);
    if (worker->room->turned_away >= ROOM_TURNED_AWAY) {
        client_close(client);
        return;
    }
    worker->room->turned_away++;
    client_enter(client, CLIENT_BUSY);
    client_refuse(client, 503, reason, what);
}

/* The last word: a place, or none. */
static void settle(struct client *client)
{
    if (place_make(client)) {
        client_admit(client);
    } else {
        tell(client->worker, "all connections are taken, and none is idle: new connections get 503", places_of);
        turn_away(client, METRICS_CONNECTIONS_REFUSED, "connections", "too many connections");
    }
}

/* Waiting for other workers. */

static void round_begin(struct worker *worker)
{
    struct gateway *gateway = worker->gateway;
    struct room *room = worker->room;
    uint64_t all = gateway->worker_count == 64 ? UINT64_MAX : (UINT64_C(1) << gateway->worker_count) - 1;
    room->round = room->waiting_count;
    if (room->round == 0) {
        return;
    }
    /* relaxed: the order that follows publishes it */
    atomic_store_explicit(&room->asked, all & ~(UINT64_C(1) << worker->number), memory_order_relaxed);
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        if (i != worker->number) {
            worker_order(&gateway->worker[i], WORKER_ROOM);
        }
    }
    if (gateway->worker_count == 1) {
        worker_order(worker, WORKER_ROOMED);
    }
}

static void waiting_remove(struct client *client)
{
    struct room *room = client->worker->room;
    uint32_t i = 0;
    while (i < room->waiting_count && room->waiting[i] != client) {
        i++;
    }
    if (i == room->waiting_count) {
        return;
    }
    room->waiting_count--;
    room->round -= i < room->round;
    memmove(&room->waiting[i], &room->waiting[i + 1], (room->waiting_count - i) * sizeof(struct client *));
    atomic_fetch_sub_explicit(&client->worker->gateway->waiting, 1, memory_order_relaxed);
}

static void waiting_add(struct client *client)
{
    struct room *room = client->worker->room;
    room->waiting[room->waiting_count++] = client;
    atomic_fetch_add_explicit(&client->worker->gateway->waiting, 1, memory_order_relaxed);
    wheel_arm(&client->worker->loop.wheel, &client->timer,
              becalm_ns_after(client->worker->loop.now, CLIENT_PLACE_PATIENCE));
    if (room->round == 0) {
        round_begin(client->worker);
    }
}

/* The highest level of the other workers, plus 1. */
static uint32_t top_elsewhere(const struct worker *worker)
{
    uint32_t top = 0;
    for (uint32_t i = 0; i < worker->gateway->worker_count; i++) {
        const struct worker *other = &worker->gateway->worker[i];
        uint32_t its = atomic_load_explicit(&other->room->top, memory_order_relaxed);
        top = other != worker && its > top ? its : top;
    }
    return top;
}

void room_asked(struct worker *worker)
{
    struct gateway *gateway = worker->gateway;
    uint32_t max = settings_of(worker)->max_connections;
    for (uint32_t i = 0; i < ROOM_WAITING; i++) {
        uint32_t wanted = atomic_load_explicit(&gateway->waiting, memory_order_relaxed);
        uint32_t taken = atomic_load_explicit(&gateway->connections, memory_order_relaxed);
        if (wanted == 0 || taken + wanted <= max || !displace_for(worker, 1)) {
            break;
        }
    }
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        struct worker *other = &gateway->worker[i];
        uint64_t bit = UINT64_C(1) << worker->number;
        /* relaxed: the counts that it is about are atomic themselves */
        if (other != worker && atomic_fetch_and_explicit(&other->room->asked, ~bit, memory_order_relaxed) == bit) {
            worker_order(other, WORKER_ROOMED);
        }
    }
}

void room_answered(struct worker *worker)
{
    struct room *room = worker->room;
    while (room->round > 0) {
        struct client *client = room->waiting[0];
        waiting_remove(client);
        settle(client);
    }
    round_begin(worker);
}

static void room_late(struct client *client)
{
    waiting_remove(client);
    settle(client);
}

/* Coming and going. */

static void publish_top(struct worker *worker)
{
    uint32_t top = crowd_top(&worker->crowd);
    top = top == 0 && worker->greeting_count > 0 ? 1 : top;
    if (top != atomic_load_explicit(&worker->room->top, memory_order_relaxed)) {
        atomic_store_explicit(&worker->room->top, top, memory_order_relaxed);
    }
}

void room_greets(struct worker *worker)
{
    publish_top(worker);
}

static bool tally(struct client *client)
{
    uint32_t max = settings_of(client->worker)->max_connections_per_client;
    struct tally *clients = &client->worker->gateway->clients;
    client->tallied = tally_take(clients, client_identity(client), max == 0 ? UINT32_MAX : max);
    if (!client->tallied) { /* its own longest idle one goes, if this worker has it */
        struct crowd_member *victim = crowd_pick_of(&client->worker->crowd, client->member.group, PRICE_IDLE);
        if (victim != NULL) {
            displace(victim, METRICS_CLIENT_DISPLACED);
            client->tallied = tally_take(clients, client_identity(client), max);
        }
    }
    return client->tallied;
}

static void room_enter(struct client *client)
{
    struct worker *worker = client->worker;
    publish_top(worker);
    if (!tally(client)) {
        turn_away(client, METRICS_CLIENT_REFUSED, "client_connections", "this client has too many connections");
        return;
    }
    if (place_take(client)) {
        client_admit(client);
        return;
    }
    if (crowd_top(&worker->crowd) >= top_elsewhere(worker) && place_make(client)) {
        client_admit(client);
    } else if (worker->room->waiting_count == ROOM_WAITING) {
        settle(client);
    } else { /* also with one worker: bytes that have arrived on other connections are read first, and then more
                connections are idle */
        waiting_add(client);
    }
}

static void room_leave(struct client *client)
{
    struct gateway *gateway = client->worker->gateway;
    if (client->placed) {
        atomic_fetch_sub_explicit(&gateway->connections, 1, memory_order_relaxed);
    } else if (client->state == CLIENT_WAITING) {
        waiting_remove(client);
    } else {
        client->worker->room->turned_away--;
    }
    if (client->tallied) {
        tally_give(&gateway->clients, client_identity(client));
    }
}

/* A connection that has not even sent its PROXY protocol header goes first. Else two: the new connection may need a
 * second descriptor, to a host. False: there is none to be had here. */
static bool squeeze(struct worker *worker)
{
    bool any = greeting_give_up(worker, GREETING);
    if (!any) {
        bool one = displace_for(worker, 1);
        any = displace_for(worker, 1) || one;
    }
    publish_top(worker);
    if (!any) { /* relaxed: a guess, for all workers */
        atomic_store_explicit(&worker->room->barren_until, becalm_ns_after(worker->loop.now, BARREN),
                              memory_order_relaxed);
    }
    return any;
}

void room_squeeze_here(struct worker *worker)
{
    squeeze(worker);
}

/* The worker with the largest client, of those that may have a connection to close. NULL: none. */
static struct worker *richest(struct worker *worker)
{
    struct gateway *gateway = worker->gateway;
    struct worker *found = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        struct worker *each = &gateway->worker[(worker->number + i) % gateway->worker_count]; /* itself first */
        uint32_t top = atomic_load_explicit(&each->room->top, memory_order_relaxed);
        bool barren = atomic_load_explicit(&each->room->barren_until, memory_order_relaxed) > worker->loop.now;
        if (top > most && !barren) {
            most = top;
            found = each;
        }
    }
    return found;
}

enum worker_squeeze room_squeeze(struct worker *worker)
{
    tell(worker, "no descriptor is left: idle connections are closed for new ones; allow more open files",
         files_allowed);
    if (greeting_give_up(worker, GREETING)) { /* also if another worker has more clients */
        return SQUEEZE_DONE;
    }
    publish_top(worker);
    struct worker *from = richest(worker);
    if (from == worker && squeeze(worker)) {
        return SQUEEZE_DONE;
    }
    from = from == worker ? richest(worker) : from; /* now another one, or none */
    if (from != NULL && from != worker) {
        worker_order(from, WORKER_SQUEEZE);
    }
    return from == NULL ? SQUEEZE_NOTHING : SQUEEZE_SOON;
}

void room_trim(struct worker *worker)
{
    uint32_t max = settings_of(worker)->max_connections;
    for (uint32_t i = 0; i < TRIM_MAX; i++) {
        struct crowd_member *victim = atomic_load_explicit(&worker->gateway->connections, memory_order_relaxed) > max
                                          ? crowd_pick(&worker->crowd, PRICE_IDLE, 0)
                                          : NULL;
        if (victim == NULL) {
            break;
        }
        displace(victim, METRICS_CONNECTIONS_DISPLACED);
    }
}

bool room_make(struct worker *worker)
{
    static const struct client_places places = {.enter = room_enter, .late = room_late, .leave = room_leave};
    worker->places = &places;
    worker->squeeze = room_squeeze;
    worker->room = calloc(1, sizeof *worker->room);
    return worker->room != NULL;
}

void room_free(struct worker *worker)
{
    free(worker->room);
}
