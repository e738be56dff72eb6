/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis/redis.h"

#include <time.h>

#include "lib/check.h"
#include "lib/redis_server.h"

/* The connection to Redis, with a real redis-server that is killed, stopped, emptied and misled. Nothing here waits for
 * a time, only for what must happen, and no longer than a minute. */

struct lab {
    struct loop loop;
    struct redis_server server;
    struct redis *redis[2];
    struct becalm_lease *lease[2];
    struct becalm_lease_policy policy;
    char noted[8][32]; /* what was told, "up" when it was up */
    uint32_t notes;
    uint32_t spent; /* by the second */
};

static void woken(struct loop *loop)
{
    (void)loop;
}

static void note(void *self, const char *why)
{
    struct lab *lab = self;
    if (lab->notes < 8) {
        snprintf(lab->noted[lab->notes++], sizeof lab->noted[0], "%s", why == NULL ? "up" : why);
    }
}

static void client_open(struct lab *lab, uint32_t i, const char *login)
{
    struct redis_options options = {.loop = &lab->loop, .fleet = "test", .note = i == 0 ? note : NULL, .self = lab};
    char url[160];
    snprintf(url, sizeof url, "redis+unix://%s", lab->server.socket);
    check_true(redis_place_parse(url, &options.place) == NULL);
    snprintf(options.place.password, sizeof options.place.password, "%s", login);
    void *memory = aligned_alloc(64, becalm_lease_bytes(1));
    lab->lease[i] = becalm_lease_init(memory, 1);
    lab->redis[i] = redis_make(&options);
    check_true(lab->redis[i] != NULL);
    redis_bind_begin(lab->redis[i]);
    check_true(redis_bind(lab->redis[i], "pay", lab->lease[i], &lab->policy));
    redis_bind_end(lab->redis[i]);
}

static struct lab *lab_open(void)
{
    struct lab *lab = calloc(1, sizeof *lab);
    if (!redis_server_open(&lab->server)) {
        free(lab);
        skip();
    }
    check_true(loop_init(&lab->loop, woken) == 0);
    becalm_lease_defaults(&lab->policy);
    lab->policy.enabled = true;
    return lab;
}

static void lab_close(struct lab *lab)
{
    for (uint32_t i = 0; i < 2; i++) {
        redis_free(lab->redis[i]);
        free(lab->lease[i]);
    }
    loop_turn(&lab->loop, false);
    loop_close(&lab->loop);
    redis_server_close(&lab->server);
    free(lab);
}

typedef bool lab_fn(struct lab *);

static void wait_for(struct lab *lab, lab_fn *is, const char *what)
{
    time_t from = time(NULL);
    while (!is(lab)) {
        if (time(NULL) - from > 60) {
            print_error("not after a minute: %s; last error: %s\n", what, redis_error(lab->redis[0]));
            fail();
        }
        loop_turn(&lab->loop, true);
    }
}

#define WAIT_FOR(lab, is) wait_for(lab, is, #is)

static bool leased(struct lab *lab)
{
    return !becalm_lease_degraded(lab->lease[0]);
}

static bool degraded(struct lab *lab)
{
    return becalm_lease_degraded(lab->lease[0]);
}

static bool two_live(struct lab *lab)
{
    return becalm_lease_live(lab->lease[0]) == 2 && becalm_lease_live(lab->lease[1]) == 2;
}

static bool reloaded(struct lab *lab)
{
    return redis_count(lab->redis[0]).reloads >= 2 && leased(lab);
}

static void call(struct lab *lab, uint32_t i, uint32_t calls)
{
    struct becalm_moment at = {.now = lab->loop.now};
    for (uint32_t n = 0; n < calls; n++) {
        becalm_lease_begin(lab->lease[i], &at);
    }
}

/* The other spends what comes to it, in however many portions. */
static bool spent_forty(struct lab *lab)
{
    struct becalm_moment at = {.now = lab->loop.now};
    while (lab->spent < 40 && becalm_lease_take(lab->lease[1], &at)) {
        lab->spent++;
    }
    return lab->spent == 40;
}

static void test_redis__what_one_earns_another_may_spend(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    client_open(lab, 1, "");
    WAIT_FOR(lab, leased);
    WAIT_FOR(lab, two_live);
    check_eq_str(lab->noted[0], "up");
    call(lab, 0, 1000); /* 200 retries, of which the pot holds half */
    WAIT_FOR(lab, spent_forty);
    check_eq_u64(redis_count(lab->redis[0]).connects, 1);
    redisReply *keys = redisCommand(lab->server.link, "KEYS becalm:{test}:*");
    check_eq_u64(keys->elements, 3); /* two instances and one pot */
    freeReplyObject(keys);
    lab_close(lab);
}

static void test_redis__a_script_that_is_forgotten_is_sent_again(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    WAIT_FOR(lab, leased);
    redis_server_tell(&lab->server, "SCRIPT FLUSH");
    WAIT_FOR(lab, reloaded);
    redis_server_tell(&lab->server, "FLUSHALL");
    call(lab, 0, 10);
    uint64_t before = redis_count(lab->redis[0]).exchanges;
    while (redis_count(lab->redis[0]).exchanges < before + 3) {
        loop_turn(&lab->loop, true);
    }
    check_true(leased(lab));
    check_eq_u64(redis_count(lab->redis[0]).lost, 0);
    lab_close(lab);
}

static void test_redis__a_killed_server_is_degraded_at_once_and_back_with_the_next(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    WAIT_FOR(lab, leased);
    redis_server_kill(&lab->server);
    WAIT_FOR(lab, degraded);
    check_eq_u64(redis_state(lab->redis[0]), REDIS_AWAY);
    check_eq_str(lab->noted[1], "closed");
    check_true(redis_server_start(&lab->server));
    WAIT_FOR(lab, leased);
    check_eq_u64(lab->notes, 3);
    check_eq_str(lab->noted[2], "up");
    lab_close(lab);
}

static void test_redis__a_hung_server_is_given_up_and_found_again(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    WAIT_FOR(lab, leased);
    kill(lab->server.pid, SIGSTOP);
    WAIT_FOR(lab, degraded);
    while (redis_count(lab->redis[0]).lost < 2) { /* connections are taken and not answered */
        loop_turn(&lab->loop, true);
    }
    check_eq_str(redis_error(lab->redis[0]), "timeout");
    kill(lab->server.pid, SIGCONT);
    WAIT_FOR(lab, leased);
    lab_close(lab);
}

/* Until that word was the last error. */
static void wait_error(struct lab *lab, const char *word)
{
    time_t from = time(NULL);
    while (strcmp(redis_error(lab->redis[0]), word) != 0) {
        check_true(time(NULL) - from < 60);
        loop_turn(&lab->loop, true);
    }
    check_true(degraded(lab));
}

static void test_redis__every_error_is_named_and_ends_when_its_cause_does(void **state)
{
    (void)state;
    static const char *const story[][3] = {
        {"REPLICAOF 127.0.0.1 1", "READONLY", "REPLICAOF NO ONE"},
        {"CONFIG SET maxmemory 1", "OOM", "CONFIG SET maxmemory 0"},
        {"ACL SETUSER default -evalsha -eval", "NOPERM", "ACL SETUSER default +evalsha +eval"},
        {"CONFIG SET min-replicas-to-write 1", "NOREPLICAS", "CONFIG SET min-replicas-to-write 0"},
    };
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    for (size_t i = 0; i < sizeof story / sizeof *story; i++) {
        WAIT_FOR(lab, leased);
        redis_server_tell(&lab->server, story[i][0]);
        wait_error(lab, story[i][1]);
        redis_server_tell(&lab->server, story[i][2]);
    }
    WAIT_FOR(lab, leased);
    lab_close(lab);
}

static void test_redis__a_password_is_told_and_a_wrong_one_is_named(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    redis_server_tell(&lab->server, "CONFIG SET requirepass secret");
    client_open(lab, 0, "guessed");
    wait_error(lab, "WRONGPASS");
    client_open(lab, 1, "secret");
    redis_server_tell(&lab->server, "AUTH secret");
    while (becalm_lease_degraded(lab->lease[1])) {
        loop_turn(&lab->loop, true);
    }
    redis_server_tell(&lab->server, "CONFIG SET requirepass guessed"); /* it is changed, and the other one is right */
    WAIT_FOR(lab, leased);
    lab_close(lab);
}

static void test_redis__a_place_is_read_from_a_url(void **state)
{
    (void)state;
    struct redis_place place;
    check_true(redis_place_parse("redis://cache", &place) == NULL);
    check_eq_str(place.host, "cache:6379");
    check_true(redis_place_parse("redis://me:p%40ss@[::1]:7000/3", &place) == NULL);
    check_eq_str(place.host, "[::1]:7000");
    check_eq_str(place.user, "me");
    check_eq_str(place.password, "p@ss");
    check_eq_u64(place.database, 3);
    check_true(redis_place_parse("redis://:alone@10.0.0.1", &place) == NULL);
    check_eq_str(place.user, "");
    check_eq_str(place.password, "alone");
    static const char *const wrong[] = {"http://cache",     "redis://",         "redis://cache/x",  "redis://a%4@cache",
                                        "redis://cache/0?", "redis://cache:no", "redis+unix://rel", "rediss://cache"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (redis_place_parse(wrong[i], &place) == NULL) {
            print_error("%s is taken\n", wrong[i]);
            fail();
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_redis__a_place_is_read_from_a_url),
             cmocka_unit_test(test_redis__what_one_earns_another_may_spend),
             cmocka_unit_test(test_redis__a_script_that_is_forgotten_is_sent_again),
             cmocka_unit_test(test_redis__a_killed_server_is_degraded_at_once_and_back_with_the_next),
             cmocka_unit_test(test_redis__a_hung_server_is_given_up_and_found_again),
             cmocka_unit_test(test_redis__every_error_is_named_and_ends_when_its_cause_does),
             cmocka_unit_test(test_redis__a_password_is_told_and_a_wrong_one_is_named))
