/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis/request.h"

#include <becalm/rand.h>

#include <hiredis.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "lib/check.h"
#include "lib/redis_server.h"

/* The store in C and the script in a real Redis get the same random requests, at the same times of a clock that jumps:
 * every answer must be the same. */

#define BUDGETS   3u
#define INSTANCES 12u
#define PLACES    BECALM_LEASE_INSTANCES_MAX
#define TOGETHER  50u /* runs on their way at once */

/* The state of one budget in one instance. */
struct lab {
    uint64_t random;
    uint64_t now_ms;
    struct becalm_lease_store *store[BUDGETS];
    struct script_part part[BUDGETS];
    struct becalm_lease_request known[INSTANCES][BUDGETS];
    struct redis_server server;
    char sha[41];
    struct becalm_lease_answer right[TOGETHER][BUDGETS];
    uint32_t count[TOGETHER];
    uint64_t answered, refused, granted, lost;
};

static uint64_t draw(struct lab *lab, uint64_t below)
{
    return becalm_rand_below(becalm_rand_next(&lab->random), below);
}

/* The script with another clock: that of the test. */
static void script_load(struct lab *lab)
{
    static const char clock[] = "local now = time[1] * 1000 + floor(time[2] / 1000)";
    static const char other[] = "local now = tonumber(redis.call('GET', 'clock'))";
    struct redis_script whole = redis_script("store");
    size_t length = whole.length;
    const char *text = whole.text;
    const char *at = memmem(text, length, clock, sizeof clock - 1);
    check_true(at != NULL);
    char *script = malloc(length + sizeof other);
    size_t before = (size_t)(at - text);
    size_t rest = length - before - (sizeof clock - 1);
    memcpy(script, text, before);
    memcpy(script + before, other, sizeof other - 1);
    memcpy(script + before + sizeof other - 1, at + sizeof clock - 1, rest);
    redisReply *reply = redisCommand(lab->server.link, "SCRIPT LOAD %b", script, before + sizeof other - 1 + rest);
    check_true(reply != NULL && reply->type == REDIS_REPLY_STRING && reply->len == 40);
    memcpy(lab->sha, reply->str, 41);
    freeReplyObject(reply);
    free(script);
}

static void clock_moves(struct lab *lab)
{
    uint64_t what = draw(lab, 100);
    if (what == 0) {
        lab->now_ms += draw(lab, 6000000);
        lab->now_ms -= draw(lab, 6000000);
    } else if (what < 5) {
        lab->now_ms += draw(lab, 6000);
        lab->now_ms -= draw(lab, 6000);
    } else {
        lab->now_ms += draw(lab, 200);
    }
}

/* A possible next request of the instance, or an impossible one. */
static struct becalm_lease_request request_make(struct lab *lab, struct becalm_lease_request *known)
{
    known->number++;
    known->first += draw(lab, 50) == 0 ? draw(lab, UINT64_C(3000000000)) : draw(lab, 60);
    known->spent += draw(lab, known->granted - known->spent - known->returned + 1);
    known->returned += draw(lab, 4) == 0 ? draw(lab, known->granted - known->spent - known->returned + 1) : 0;
    known->level = draw(lab, 30) == 0 ? draw(lab, 3000000) : draw(lab, 20);
    known->leaving = draw(lab, 30) == 0;
    known->era += draw(lab, 100) == 0 ? draw(lab, 4) : 0;
    known->era -= draw(lab, 100) == 0 ? draw(lab, known->era + 1) : 0;
    struct becalm_lease_request request = *known;
    uint64_t what = draw(lab, 100);
    if (what < 4) { /* one that was seen, or overtaken */
        request.number -= draw(lab, request.number);
        request.answered = request.answered < request.number ? request.answered : request.number - 1;
    } else if (what < 7) { /* nonsense */
        uint64_t *word = &request.number;
        word[draw(lab, 8)] = draw(lab, 2) == 0 ? 0 : becalm_rand_next(&lab->random) >> draw(lab, 64);
    } else if (what < 10) { /* the store has lost writes */
        known->granted += draw(lab, 20);
        known->number += draw(lab, 20);
        request = *known;
        request.answered = request.number - 1;
        known->answered = request.answered;
        lab->lost++;
    }
    return request;
}

static void run_send(struct lab *lab, uint32_t slot)
{
    uint32_t who = (uint32_t)draw(lab, INSTANCES);
    struct bytes out = {.at = NULL};
    struct script_part part[BUDGETS];
    lab->count[slot] = 0;
    clock_moves(lab);
    if (draw(lab, 2000) == 0) { /* another begins in its place */
        memset(lab->known[who], 0, sizeof lab->known[who]);
    }
    uint64_t name = lab->known[who][0].instance != 0 ? lab->known[who][0].instance : becalm_rand_next(&lab->random) | 1;
    uint32_t first = (uint32_t)draw(lab, BUDGETS);
    for (uint32_t b = first; b < BUDGETS; b++) {
        struct becalm_lease_request *known = &lab->known[who][b];
        lab->known[who][0].instance = known->instance = name;
        uint32_t n = lab->count[slot]++;
        struct becalm_lease_answer *right = &lab->right[slot][n];
        part[n] = lab->part[b];
        part[n].request = request_make(lab, known);
        part[n].request.instance = name;
        memset(right, 0, sizeof *right);
        if (becalm_lease_store_exchange(lab->store[b], &part[n].policy, lab->now_ms * BECALM_MS, &part[n].request,
                                        right)) {
            lab->answered++;
            if (right->granted > known->granted && right->granted - known->granted < 10000000 &&
                draw(lab, 5) != 0) { /* it is heard */
                lab->granted += right->granted - known->granted;
                known->granted = right->granted;
                known->era = right->era;
                known->answered = part[n].request.number < known->number ? part[n].request.number : known->number;
            }
        } else {
            lab->refused++;
            memset(right, 0, sizeof *right);
        }
    }
    struct script_run run = {.fleet = "test", .part = part, .count = lab->count[slot]};
    struct redis_command command = {.count = 0};
    check_true(script_fill(&run, &command));
    char head[128];
    int length = snprintf(head, sizeof head, "*%u\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", command.count + 2, lab->sha);
    check_true(bytes_add(&out, head, (size_t)length) && bytes_add(&out, command.words.at, command.words.length));
    redis_command_free(&command);
    check_true(redisAppendCommand(lab->server.link, "SET clock %llu", (unsigned long long)lab->now_ms) == REDIS_OK);
    check_true(redisAppendFormattedCommand(lab->server.link, out.at, out.length) == REDIS_OK);
    bytes_free(&out);
}

static void answer_check(const struct lab *lab, uint32_t slot, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        print_error("%s\n", reply->str);
    }
    check_eq_u64((uint64_t)reply->type, REDIS_REPLY_STRING);
    struct reply whole = {.kind = REPLY_WORD, .item[0] = {.text = reply->str, .length = (size_t)reply->len}};
    check_true(script_answers(&whole, lab->count[slot]));
    check_true(!script_answers(&whole, lab->count[slot] + 1));
    for (uint32_t n = 0; n < lab->count[slot]; n++) {
        struct becalm_lease_answer got = script_answer(&whole, n);
        const struct becalm_lease_answer *right = &lab->right[slot][n];
        check_eq_u64(got.number, right->number);
        check_eq_u64(got.granted, right->granted);
        check_eq_u64(got.live, right->live);
        check_eq_u64(got.room, right->room);
        check_eq_u64(got.next, right->next);
        check_eq_u64(got.ttl, right->ttl);
        check_eq_u64(got.era, right->era);
    }
}

static void test_redis_script__answers_what_the_store_in_c_answers(void **state)
{
    (void)state;
    static const uint32_t shares[BUDGETS] = {200000, 1000000, 12347};
    static const uint32_t floors[BUDGETS] = {100000, 0, 1234567};
    uint32_t rounds = getenv("BECALM_SOAK") != NULL ? 10000 : 200;
    struct lab *lab = calloc(1, sizeof *lab);
    if (!redis_server_open(&lab->server)) {
        print_message("redis-server is not there, or did not start\n");
        free(lab);
        skip();
    }
    lab->random = 11;
    lab->now_ms = UINT64_C(1780000000000);
    script_load(lab);
    for (uint32_t b = 0; b < BUDGETS; b++) {
        lab->store[b] = becalm_lease_store_init(aligned_alloc(64, becalm_lease_store_bytes(PLACES)), PLACES);
        becalm_lease_defaults(&lab->part[b].policy);
        lab->part[b].policy.share_ppm = shares[b];
        lab->part[b].policy.floor = floors[b];
        lab->part[b].index = 2 * b; /* the place between is another's */
        snprintf(lab->part[b].name, sizeof lab->part[b].name, "budget%u", b);
    }
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < TOGETHER; i++) {
            run_send(lab, i);
        }
        for (uint32_t i = 0; i < 2 * TOGETHER; i++) {
            void *reply = NULL;
            check_true(redisGetReply(lab->server.link, &reply) == REDIS_OK);
            if (i % 2 == 1) {
                answer_check(lab, i / 2, reply);
            }
            freeReplyObject(reply);
        }
    }
    printf("%" PRIu64 " answered, %" PRIu64 " refused, %" PRIu64 " retries granted, %" PRIu64 " lost writes\n",
           lab->answered, lab->refused, lab->granted, lab->lost);
    check_true(lab->granted > 1000 && lab->refused > 100 && lab->lost > 100);
    for (uint32_t b = 0; b < BUDGETS; b++) {
        free(lab->store[b]);
    }
    redis_server_close(&lab->server);
    free(lab);
}

/* One run of the script as it is. */
static struct becalm_lease_answer run_alone(struct lab *lab, const struct script_part *part)
{
    struct redis_script script = redis_script("store");
    struct script_run run = {.fleet = "alone", .part = part, .count = 1};
    struct redis_command command = {.count = 0};
    struct bytes out = {.at = NULL};
    char head[64];
    check_true(script_fill(&run, &command));
    int length = snprintf(head, sizeof head, "*%u\r\n$4\r\nEVAL\r\n$%zu\r\n", command.count + 2, script.length);
    check_true(bytes_add(&out, head, (size_t)length) && bytes_add(&out, script.text, script.length) &&
               bytes_add(&out, "\r\n", 2) && bytes_add(&out, command.words.at, command.words.length));
    redis_command_free(&command);
    check_true(redisAppendFormattedCommand(lab->server.link, out.at, out.length) == REDIS_OK);
    bytes_free(&out);
    void *got = NULL;
    check_true(redisGetReply(lab->server.link, &got) == REDIS_OK);
    const redisReply *reply = got;
    struct reply whole = {.kind = REPLY_WORD, .item[0] = {.text = reply->str, .length = (size_t)reply->len}};
    check_true(script_answers(&whole, 1));
    struct becalm_lease_answer answer = script_answer(&whole, 0);
    freeReplyObject(got);
    return answer;
}

static void test_redis_script__a_budget_begins_anew_in_a_place_that_another_had(void **state)
{
    (void)state;
    struct lab *lab = calloc(1, sizeof *lab);
    if (!redis_server_open(&lab->server)) {
        print_message("redis-server is not there, or did not start\n");
        free(lab);
        skip();
    }
    struct script_part one = {.name = "one", .index = 1};
    becalm_lease_defaults(&one.policy);
    one.request = (struct becalm_lease_request){.instance = 7, .number = 1, .level = 10};
    check_eq_u64(run_alone(lab, &one).number, 1); /* known: its reports earn from now on */
    one.request.number = 2;
    one.request.answered = 1;
    one.request.first = 100;
    struct becalm_lease_answer answer = run_alone(lab, &one);
    check_eq_u64(answer.granted, 10); /* half of the busiest second */
    struct script_part two = {.name = "two", .index = 1};
    two.policy = one.policy;
    two.request = (struct becalm_lease_request){.instance = 7, .number = 1, .level = 1};
    answer = run_alone(lab, &two);
    check_eq_u64(answer.number, 1);
    check_eq_u64(answer.granted, 1); /* of the floor, and none of the other instance's grant */
    check_eq_u64(answer.era, 0);
    two.request.number = 2;
    two.request.answered = 1;
    two.request.granted = answer.granted;
    check_eq_u64(run_alone(lab, &two).era, 0); /* its record is there: nothing was lost */
    redis_server_close(&lab->server);
    free(lab);
}

static void test_redis_script__has_the_hash_by_which_redis_names_its_text(void **state)
{
    (void)state;
    static const char *const names[] = {"store", "who", "keys"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct redis_script script = redis_script(names[i]);
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned int size = 0;
        char sha[2 * EVP_MAX_MD_SIZE + 1];
        check_true(EVP_Digest(script.text, script.length, digest, &size, EVP_sha1(), NULL) == 1);
        for (unsigned int n = 0; n < size; n++) {
            snprintf(sha + (size_t)2 * n, 3, "%02x", digest[n]);
        }
        check_eq_str(script.sha, sha);
    }
}

static void test_redis_script__names_have_only_what_a_key_may_have(void **state)
{
    (void)state;
    char name[SCRIPT_NAME_MAX + 1];
    char longer[300];
    script_name(name, sizeof name, "pay", NULL);
    check_eq_str(name, "pay");
    script_name(name, sizeof name, "pay ment", "{charge}:1");
    check_eq_str(name, "pay%20ment/%7Bcharge%7D%3A1");
    memset(longer, 'a', sizeof longer);
    longer[299] = 0;
    script_name(name, sizeof name, longer, NULL);
    check_eq_u64(strlen(name), SCRIPT_NAME_MAX);
    char other[SCRIPT_NAME_MAX + 1];
    longer[298] = 'b';
    script_name(other, sizeof other, longer, NULL);
    check_true(strcmp(name, other) != 0);
    memset(longer, ' ', 299);
    script_name(other, sizeof other, longer, NULL);
    check_eq_u64(strlen(other), SCRIPT_NAME_MAX);
}

BECALM_TESTS(cmocka_unit_test(test_redis_script__has_the_hash_by_which_redis_names_its_text),
             cmocka_unit_test(test_redis_script__names_have_only_what_a_key_may_have),
             cmocka_unit_test(test_redis_script__a_budget_begins_anew_in_a_place_that_another_had),
             cmocka_unit_test(test_redis_script__answers_what_the_store_in_c_answers))
