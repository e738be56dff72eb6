/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "probe.h"

#include "request.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (5 * BECALM_S)
#define WORDS    6u

bool redis_find_waiting(void *self, const char *host, union address_socket *to)
{
    struct address address;
    struct addrinfo *found = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    char port[8];
    (void)self;
    if (!address_parse(host, &address)) {
        return false;
    }
    if (address.kind != ADDRESS_NAME) {
        *to = address.socket;
        return true;
    }
    snprintf(port, sizeof port, "%u", address.port);
    bool right = getaddrinfo(address.name, port, &hints, &found) == 0 && found->ai_addrlen <= sizeof *to;
    if (right) {
        memset(to, 0, sizeof *to);
        memcpy(to, found->ai_addr, found->ai_addrlen);
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return right;
}

/* One visit. */
struct visit {
    struct loop loop;
    struct redis *redis;
    struct redis_probe *probe;
    const char *fleet;
    bool keys;
    bool replicas;
    char key[SCRIPT_FLEET_MAX + 32];
    struct redis_command command;
    const char *permission; /* of the command that is tried */
    bool answered;
    bool lost;
    struct timer end;
    bool over;
};

static void woken(struct loop *loop)
{
    (void)loop;
}

static void end_fires(struct timer *timer)
{
    ((struct visit *)((char *)timer - offsetof(struct visit, end)))->over = true;
}

static void note(void *self, const char *why)
{
    struct visit *visit = self;
    if (why != NULL) {
        snprintf(visit->probe->error, sizeof visit->probe->error, "%s", why);
        visit->lost = true;
    }
}

static void missing_add(struct redis_probe *probe, const char *what)
{
    for (uint32_t i = 0; i < probe->missing_count; i++) {
        if (strcmp(probe->missing[i], what) == 0) {
            return;
        }
    }
    if (probe->missing_count < PROBE_MISSING_MAX) {
        snprintf(probe->missing[probe->missing_count++], sizeof probe->missing[0], "%s", what);
    }
}

/* NOPERM is about a command or about a key. Any other error is reported in the server's words. */
static void heard(struct visit *visit, const struct reply *reply)
{
    char keys[96];
    /* Not an error: the trial runs a script that does not exist, and its key holds text. */
    bool script = strncmp(reply->text, "NOSCRIPT", 8) == 0 || strncmp(reply->text, "WRONGTYPE", 9) == 0;
    if (reply->kind != REPLY_ERROR || script) {
        return;
    }
    if (strncmp(reply->text, "NOPERM", 6) != 0) {
        snprintf(visit->probe->error, sizeof visit->probe->error, "%s", reply->text);
    } else if (strstr(reply->text, " key") != NULL) {
        snprintf(keys, sizeof keys, "~becalm:{%s}:*", visit->fleet);
        missing_add(visit->probe, keys);
    } else {
        missing_add(visit->probe, visit->permission);
    }
}

/* Reads which keys the server evicts when its memory is full. A user may lack the permission to read that. */
static void policy_heard(struct visit *visit, const struct reply *reply)
{
    const struct reply_item *item = reply->item;
    bool told = reply->kind == REPLY_LIST && reply->count == 2 && item[1].text != NULL;
    if (told && !reply_says(&item[1], "noeviction")) {
        snprintf(visit->probe->evicts, sizeof visit->probe->evicts, "%.*s", (int)item[1].length, item[1].text);
    }
}

static void done(struct redis_command *command, const struct reply *reply)
{
    struct visit *visit = (struct visit *)((char *)command - offsetof(struct visit, command));
    visit->answered = true;
    if (reply != NULL && visit->permission == NULL) {
        policy_heard(visit, reply);
    } else if (reply != NULL) {
        heard(visit, reply);
    }
}

/* Every command that budgets and keys need, by its permission; NULL ends the words, and "" is our key. `need`: all
 * fleets need it, or only fleets that share keys, or that wait for replicas. */
static const struct trial {
    const char *permission;
    const char *word[WORDS];
    enum need { FOR_ALL, FOR_KEYS, FOR_REPLICAS } need;
} trials[] = {
    {"+ping", {"PING"}, FOR_ALL},
    {"+time", {"TIME"}, FOR_ALL},
    {"+eval", {"EVAL", "return 1", "0"}, FOR_ALL},
    {"+evalsha", {"EVALSHA", "0000000000000000000000000000000000000000", "0"}, FOR_ALL},
    {"+mget", {"MGET", ""}, FOR_ALL},
    {"+set", {"SET", "", "x", "PX", "1000"}, FOR_ALL},
    {"+hset", {"HSET", "", "x", "y"}, FOR_ALL},
    {"+hlen", {"HLEN", ""}, FOR_ALL},
    {"+hgetall", {"HGETALL", ""}, FOR_ALL},
    {"+hdel", {"HDEL", "", "x"}, FOR_ALL},
    {"+pexpire", {"PEXPIRE", "", "1000"}, FOR_ALL},
    {"+hmget", {"HMGET", "", "x"}, FOR_KEYS},
    {"+zadd", {"ZADD", "", "1", "x"}, FOR_KEYS},
    {"+zrem", {"ZREM", "", "x"}, FOR_KEYS},
    {"+zcard", {"ZCARD", ""}, FOR_KEYS},
    {"+zrange", {"ZRANGE", "", "0", "1"}, FOR_KEYS},
    {"+zremrangebyscore", {"ZREMRANGEBYSCORE", "", "0", "1"}, FOR_KEYS},
    {"+del", {"DEL", ""}, FOR_KEYS},
    {"+info", {"INFO", "server"}, FOR_KEYS},
    {"+wait", {"WAIT", "0", "1"}, FOR_REPLICAS},
    {NULL, {"CONFIG", "GET", "maxmemory-policy"}, FOR_KEYS}, /* not required: see policy_heard() */
};

static bool try(struct visit *visit, const struct trial *trial)
{
    visit->command = (struct redis_command){.done = done};
    visit->permission = trial->permission;
    visit->answered = false;
    for (uint32_t i = 0; i < WORDS && trial->word[i] != NULL; i++) {
        const char *word = trial->word[i][0] == 0 ? visit->key : trial->word[i];
        if (!redis_word(&visit->command, word, strlen(word))) {
            redis_command_free(&visit->command);
            return false;
        }
    }
    if (!redis_send(visit->redis, &visit->command)) {
        redis_command_free(&visit->command);
        return false;
    }
    while (!visit->answered && !visit->over) {
        loop_turn(&visit->loop, true);
    }
    return visit->answered && visit->probe->error[0] == 0;
}

static void go(struct visit *visit)
{
    while (redis_state(visit->redis) != REDIS_UP && !visit->lost && !visit->over) {
        loop_turn(&visit->loop, true);
    }
    snprintf(visit->probe->host, sizeof visit->probe->host, "%s", redis_host(visit->redis));
    bool right = redis_state(visit->redis) == REDIS_UP;
    visit->probe->answers = right;
    for (size_t i = 0; right && i < sizeof trials / sizeof *trials; i++) {
        enum need most = visit->replicas ? FOR_REPLICAS : visit->keys ? FOR_KEYS : FOR_ALL;
        right = trials[i].need > most || try(visit, &trials[i]);
    }
    if (visit->over && visit->probe->error[0] == 0) {
        snprintf(visit->probe->error, sizeof visit->probe->error, "timeout");
    }
}

bool redis_probe(const struct redis_site *site, const char *fleet, bool keys, bool replicas, struct redis_probe *probe)
{
    struct visit *visit = calloc(1, sizeof *visit);
    memset(probe, 0, sizeof *probe);
    if (visit == NULL || loop_init(&visit->loop, woken) != 0) {
        free(visit);
        return false;
    }
    struct redis_options options = {.loop = &visit->loop, .find = redis_find_waiting, .note = note, .self = visit};
    redis_site_use(site, &options);
    visit->probe = probe;
    visit->fleet = fleet;
    visit->keys = keys;
    visit->replicas = keys && replicas;
    visit->end.fire = end_fires;
    snprintf(visit->key, sizeof visit->key, "becalm:{%s}:check", fleet);
    visit->redis = redis_make(&options);
    if (visit->redis != NULL) {
        wheel_arm(&visit->loop.wheel, &visit->end, becalm_ns_after(visit->loop.now, PATIENCE));
        go(visit);
    }
    bool made = visit->redis != NULL;
    redis_free(visit->redis);
    timer_disarm(&visit->end);
    loop_turn(&visit->loop, false); /* frees the connection */
    loop_close(&visit->loop);
    free(visit);
    return made;
}
