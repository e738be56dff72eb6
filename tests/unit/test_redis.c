/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis/leases.h"

#include <time.h>

#include "lib/check.h"
#include "lib/redis_server.h"

/* The connection to Redis, with a real redis-server that is killed, stopped, emptied and misled. No test waits for a
 * time, only for an event, and no longer than a minute. */

struct lab {
    struct loop loop;
    struct redis_server server;
    struct leases *leases[2];
    struct becalm_lease *lease[2];
    struct becalm_lease_policy policy;
    char noted[8][32]; /* the last event, "up" when it was up */
    uint32_t notes;
    uint32_t spent; /* by the second */
    becalm_ns timeout;
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
    struct leases_options options = {.redis = {.loop = &lab->loop,
                                               .timeout = lab->timeout,
                                               .wait_base = 10 * BECALM_MS,
                                               .wait_cap = 100 * BECALM_MS,
                                               .note = i == 0 ? note : NULL,
                                               .self = lab},
                                     .fleet = "test"};
    char url[160];
    snprintf(url, sizeof url, "redis+unix://%s", lab->server.socket);
    check_true(redis_place_parse(url, &options.redis.place) == NULL);
    snprintf(options.redis.place.password, sizeof options.redis.place.password, "%s", login);
    void *memory = aligned_alloc(64, becalm_lease_bytes(1));
    lab->lease[i] = becalm_lease_init(memory, 1);
    lab->leases[i] = leases_make(&options);
    check_true(lab->leases[i] != NULL);
    leases_bind_begin(lab->leases[i]);
    check_true(leases_bind(lab->leases[i], "pay", lab->lease[i], &lab->policy));
    leases_bind_end(lab->leases[i]);
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
        leases_free(lab->leases[i]);
        free(lab->lease[i]);
    }
    loop_turn(&lab->loop, false);
    loop_close(&lab->loop);
    redis_server_close(&lab->server);
    free(lab);
}

static uint64_t losses(const struct lab *lab)
{
    struct redis_count count = redis_count(leases_redis(lab->leases[0]));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < REDIS_LOSSES; i++) {
        sum += count.lost[i];
    }
    return sum;
}

typedef bool lab_fn(struct lab *);

static void wait_for(struct lab *lab, lab_fn *is, const char *what)
{
    time_t from = time(NULL);
    while (!is(lab)) {
        if (time(NULL) - from > 60) {
            print_error("not after a minute: %s; last error: %s\n", what, redis_error(leases_redis(lab->leases[0])));
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
    return redis_count(leases_redis(lab->leases[0])).reloads >= 2 && leased(lab);
}

static void call(struct lab *lab, uint32_t i, uint32_t calls)
{
    struct becalm_moment at = {.now = lab->loop.now};
    for (uint32_t n = 0; n < calls; n++) {
        becalm_lease_begin(lab->lease[i], &at);
    }
}

/* The other instance spends the retries that it gets, in however many portions. */
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
    check_eq_u64(redis_count(leases_redis(lab->leases[0])).connects, 1);
    redisReply *keys = redisCommand(lab->server.link, "KEYS becalm:{test}:*");
    check_eq_u64(keys->elements, 3); /* two instances and one pot */
    freeReplyObject(keys);
    lab_close(lab);
}

#define MANY 300u /* budgets: more than one run has */

static struct becalm_lease *many[MANY];

static bool all_leased(struct lab *lab)
{
    (void)lab;
    for (uint32_t i = 0; i < MANY; i++) {
        if (becalm_lease_degraded(many[i])) {
            return false;
        }
    }
    return true;
}

static void test_redis__more_budgets_than_one_run_has_are_all_leased(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    leases_bind_begin(lab->leases[0]);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "budget%u", i);
        many[i] = becalm_lease_init(aligned_alloc(64, becalm_lease_bytes(1)), 1);
        check_true(leases_bind(lab->leases[0], name, many[i], &lab->policy));
    }
    leases_bind_end(lab->leases[0]);
    WAIT_FOR(lab, all_leased);
    redisReply *keys = redisCommand(lab->server.link, "KEYS becalm:{test}:p:budget*");
    check_eq_u64(keys->elements, MANY);
    freeReplyObject(keys);
    keys = redisCommand(lab->server.link, "KEYS becalm:{test}:r:*");
    check_eq_u64(keys->elements, 2); /* the records of two runs */
    freeReplyObject(keys);
    struct becalm_moment now = {.now = lab->loop.now, .random = 1};
    for (uint32_t i = 0; i < MANY; i++) { /* each with only its own earnings */
        for (uint32_t n = 0; n < 10 * (i == MANY - 1); n++) {
            becalm_lease_begin(many[i], &now);
        }
    }
    while (becalm_lease_totals(many[MANY - 1]).told == 0) {
        loop_turn(&lab->loop, true);
    }
    check_eq_u64(becalm_lease_totals(many[MANY - 1]).told, 10);
    check_eq_u64(becalm_lease_totals(many[MANY - 1 - 256]).told, 0);
    leases_free(lab->leases[0]);
    lab->leases[0] = NULL;
    for (uint32_t i = 0; i < MANY; i++) {
        free(many[i]);
    }
    lab_close(lab);
}

static void test_redis__a_script_that_is_forgotten_is_sent_again(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    client_open(lab, 0, "");
    WAIT_FOR(lab, leased);
    redis_server_tell(&lab->server, "SCRIPT FLUSH");
    call(lab, 0, 10);
    WAIT_FOR(lab, reloaded);
    redis_server_tell(&lab->server, "FLUSHALL");
    call(lab, 0, 10);
    uint64_t before = redis_count(leases_redis(lab->leases[0])).answered;
    while (redis_count(leases_redis(lab->leases[0])).answered < before + 2) {
        loop_turn(&lab->loop, true);
    }
    check_true(leased(lab));
    check_eq_u64(losses(lab), 0);
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
    check_eq_u64(redis_state(leases_redis(lab->leases[0])), REDIS_AWAY);
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
    lab->timeout = 200 * BECALM_MS;
    client_open(lab, 0, "");
    WAIT_FOR(lab, leased);
    kill(lab->server.pid, SIGSTOP);
    WAIT_FOR(lab, degraded);
    while (losses(lab) < 2) { /* connections are taken and not answered */
        loop_turn(&lab->loop, true);
    }
    check_eq_str(redis_error(leases_redis(lab->leases[0])), "timeout");
    kill(lab->server.pid, SIGCONT);
    WAIT_FOR(lab, leased);
    lab_close(lab);
}

/* Until that word was the last error. */
static void wait_error(struct lab *lab, const char *word)
{
    time_t from = time(NULL);
    while (strcmp(redis_error(leases_redis(lab->leases[0])), word) != 0) {
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
        call(lab, 0, 5); /* an instance with news sends them soon */
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
    redis_server_tell(&lab->server, "CONFIG SET requirepass guessed"); /* now the guess is right */
    WAIT_FOR(lab, leased);
    lab_close(lab);
}

/* A second user: commands and a script of its own. */
struct asked {
    struct redis_command command; /* first */
    struct redis *redis;
    char text[REPLY_TEXT];
    uint32_t replies;
    uint32_t drops;
};

static void asked_done(struct redis_command *command, const struct reply *reply)
{
    struct asked *asked = (struct asked *)command;
    if (reply == NULL) {
        asked->drops++;
        return;
    }
    asked->replies++;
    snprintf(asked->text, sizeof asked->text, "%s", reply->text);
    redis_good(asked->redis);
}

static bool ask(struct asked *asked, struct redis *redis, const struct redis_script *script, const char *const *word)
{
    *asked = (struct asked){.command = {.script = script, .done = asked_done}, .redis = redis};
    for (; *word != NULL; word++) {
        check_true(redis_word(&asked->command, *word, strlen(*word)));
    }
    bool sent = redis_send(redis, &asked->command);
    if (!sent) {
        redis_command_free(&asked->command);
    }
    return sent;
}

static void until_up(struct lab *lab, const struct redis *redis)
{
    time_t from = time(NULL);
    while (redis_state(redis) != REDIS_UP) {
        check_true(time(NULL) - from < 60);
        loop_turn(&lab->loop, true);
    }
}

static void test_redis__commands_are_answered_in_turn_and_each_once(void **state)
{
    (void)state;
    static const char text[] = "return redis.call('GET', KEYS[1]) .. ARGV[1]";
    struct redis_script script = {
        .text = text,
        .length = sizeof text - 1,
        .sha = "0000000000000000000000000000000000000000", /* unknown to the server, so the script is sent */
    };
    struct lab *lab = lab_open();
    struct redis_options options = {.loop = &lab->loop, .wait_base = 10 * BECALM_MS, .wait_cap = 100 * BECALM_MS};
    struct asked asked[3];
    char url[160];
    snprintf(url, sizeof url, "redis+unix://%s", lab->server.socket);
    check_true(redis_place_parse(url, &options.place) == NULL);
    struct redis *redis = redis_make(&options);
    check_true(!ask(&asked[0], redis, NULL, (const char *[]){"PING", NULL})); /* not before it is up */
    until_up(lab, redis);
    check_true(ask(&asked[0], redis, NULL, (const char *[]){"SET", "key", "a b\r\nc", NULL}));
    check_true(ask(&asked[1], redis, &script, (const char *[]){"1", "key", "!", NULL}));
    check_true(ask(&asked[2], redis, NULL, (const char *[]){"NONE", NULL}));
    while (asked[2].replies == 0 || asked[1].replies == 0) {
        loop_turn(&lab->loop, true);
    }
    check_eq_str(asked[0].text, "OK");
    check_eq_str(asked[1].text, "a b\r\nc!");
    check_true(strncmp(asked[2].text, "ERR unknown command", 19) == 0);
    check_eq_u64(redis_count(redis).answered, 3);
    check_eq_u64(redis_count(redis).reloads, 1);
    kill(lab->server.pid, SIGSTOP);
    check_true(ask(&asked[0], redis, NULL, (const char *[]){"PING", NULL}));
    check_true(ask(&asked[1], redis, NULL, (const char *[]){"PING", NULL}));
    redis_server_kill(&lab->server);
    while (redis_state(redis) == REDIS_UP) {
        loop_turn(&lab->loop, true);
    }
    check_true(asked[0].drops == 1 && asked[1].drops == 1 && asked[1].replies == 0);
    check_true(!ask(&asked[0], redis, NULL, (const char *[]){"PING", NULL}));
    check_true(redis_server_start(&lab->server));
    until_up(lab, redis);
    check_true(ask(&asked[0], redis, NULL, (const char *[]){"PING", NULL}));
    redis_free(redis);
    check_eq_u64(asked[0].drops, 1);
    lab_close(lab);
}

static void test_redis__a_place_is_read_from_a_url(void **state)
{
    (void)state;
    struct redis_place place;
    check_true(redis_place_parse("redis://cache", &place) == NULL);
    check_eq_str(place.host[0], "cache:6379");
    check_true(redis_place_parse("redis://me:p%40ss@[::1]:7000/3", &place) == NULL);
    check_eq_str(place.host[0], "[::1]:7000");
    check_eq_str(place.user, "me");
    check_eq_str(place.password, "p@ss");
    check_eq_u64(place.database, 3);
    check_true(redis_place_parse("redis://:alone@10.0.0.1", &place) == NULL);
    check_eq_str(place.user, "");
    check_eq_str(place.password, "alone");
    check_true(redis_place_parse("rediss://a,b:7001,[::1]/2?sentinel=my%20own", &place) == NULL);
    check_true(place.tls && place.host_count == 3);
    check_eq_str(place.host[0], "a:26379");
    check_eq_str(place.host[1], "b:7001");
    check_eq_str(place.host[2], "[::1]:26379");
    check_eq_str(place.master, "my own");
    check_eq_u64(place.database, 2);
    static const char *const wrong[] = {"redis://a,",       "redis://a?sentinel=", "redis://a,b,c,d,e,f,g,h,i",
                                        "redis://a/-1",     "http://cache",        "redis://",
                                        "redis://cache/x",  "redis://a%4@cache",   "redis://cache/0?",
                                        "redis://cache:no", "redis+unix://rel"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (redis_place_parse(wrong[i], &place) == NULL) {
            print_error("%s is taken\n", wrong[i]);
            fail();
        }
    }
}

/* An end for loops that wait for nothing else. */
struct alarm {
    struct timer timer;
    bool rang;
};

static void alarm_rings(struct timer *timer)
{
    ((struct alarm *)timer)->rang = true;
}

static void alarm_set(struct lab *lab, struct alarm *alarm, becalm_ns wait)
{
    *alarm = (struct alarm){.timer = {.fire = alarm_rings}};
    wheel_arm(&lab->loop.wheel, &alarm->timer, becalm_ns_after(lab->loop.now, wait));
}

static struct redis *redis_open(struct lab *lab, becalm_ns base)
{
    struct redis_options options = {.loop = &lab->loop, .wait_base = base, .wait_cap = 600 * BECALM_S};
    char url[160];
    snprintf(url, sizeof url, "redis+unix://%s", lab->server.socket);
    check_true(redis_place_parse(url, &options.place) == NULL);
    struct redis *redis = redis_make(&options);
    check_true(redis != NULL);
    return redis;
}

static void test_redis__waits_grow_while_the_server_is_away(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    struct alarm alarm;
    redis_server_kill(&lab->server);
    struct redis *redis = redis_open(lab, BECALM_MS);
    alarm_set(lab, &alarm, BECALM_S);
    while (!alarm.rang) {
        loop_turn(&lab->loop, true);
    }
    check_true(redis_count(redis).connects <= 60); /* it would be 2000 of half a millisecond each */
    redis_free(redis);
    lab_close(lab);
}

static void test_redis__a_good_answer_begins_with_short_waits_again(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    struct redis *redis = redis_open(lab, BECALM_MS);
    struct alarm alarm;
    alarm_set(lab, &alarm, 120 * BECALM_S);
    for (uint32_t turn = 0; turn < 25; turn++) { /* the 25th wait would be of hours */
        while (redis_state(redis) != REDIS_UP && !alarm.rang) {
            loop_turn(&lab->loop, true);
        }
        check_true(!alarm.rang);
        redis_good(redis);
        redis_server_tell(&lab->server, "CLIENT KILL TYPE normal");
        while (redis_state(redis) == REDIS_UP) {
            loop_turn(&lab->loop, true);
        }
    }
    timer_disarm(&alarm.timer);
    redis_free(redis);
    lab_close(lab);
}

static bool ask_along(struct asked *asked, struct redis *redis)
{
    *asked = (struct asked){.command = {.done = asked_done}, .redis = redis};
    return redis_word(&asked->command, "PING", 4) && redis_send_along(redis, &asked->command);
}

static void until_replied(struct lab *lab, const struct asked *asked)
{
    while (asked->replies == 0) {
        loop_turn(&lab->loop, true);
    }
}

static void test_redis__what_has_time_is_written_with_the_next_command(void **state)
{
    (void)state;
    struct lab *lab = lab_open();
    struct redis *redis = redis_open(lab, 10 * BECALM_MS);
    struct asked along;
    struct asked second;
    struct asked now;
    check_true(!ask_along(&along, redis)); /* not before it is up */
    redis_command_free(&along.command);
    until_up(lab, redis);
    check_true(ask_along(&along, redis));
    check_true(!ask_along(&second, redis)); /* one waits */
    redis_command_free(&second.command);
    check_true(!redis_waits(redis)); /* nothing was sent */
    check_true(ask(&now, redis, NULL, (const char *[]){"ECHO", "x", NULL}));
    until_replied(lab, &along);
    check_eq_str(now.text, "x");
    check_eq_str(along.text, "PONG");
    check_true(ask_along(&along, redis));
    redis_send_late(redis);
    until_replied(lab, &along);
    redis_send_late(redis); /* nothing waits any more */
    check_eq_u64(redis_count(redis).answered, 3);
    check_true(ask_along(&along, redis));
    redis_server_kill(&lab->server);
    while (redis_state(redis) == REDIS_UP) {
        loop_turn(&lab->loop, true);
    }
    check_eq_u64(along.drops, 1);
    check_eq_u64(along.replies, 0);
    redis_free(redis);
    check_eq_u64(along.drops, 1);
    lab_close(lab);
}

BECALM_TESTS(cmocka_unit_test(test_redis__a_place_is_read_from_a_url),
             cmocka_unit_test(test_redis__commands_are_answered_in_turn_and_each_once),
             cmocka_unit_test(test_redis__what_has_time_is_written_with_the_next_command),
             cmocka_unit_test(test_redis__waits_grow_while_the_server_is_away),
             cmocka_unit_test(test_redis__a_good_answer_begins_with_short_waits_again),
             cmocka_unit_test(test_redis__what_one_earns_another_may_spend),
             cmocka_unit_test(test_redis__more_budgets_than_one_run_has_are_all_leased),
             cmocka_unit_test(test_redis__a_script_that_is_forgotten_is_sent_again),
             cmocka_unit_test(test_redis__a_killed_server_is_degraded_at_once_and_back_with_the_next),
             cmocka_unit_test(test_redis__a_hung_server_is_given_up_and_found_again),
             cmocka_unit_test(test_redis__every_error_is_named_and_ends_when_its_cause_does),
             cmocka_unit_test(test_redis__a_password_is_told_and_a_wrong_one_is_named))
