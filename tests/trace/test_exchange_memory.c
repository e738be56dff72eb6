/* SPDX-License-Identifier: MIT */
/* Exchanges when memory is out: each allocation of a worker fails in turn, in every kind of exchange, and random
 * scripts. For every fate of a request, no object may be left behind: exchange_script.h asserts that. */
#include "exchange_script.h"

#include "allocator.h"
#include "check.h"

#if BECALM_OWN_ALLOCATOR
static _Thread_local uint32_t before_failure; /* 0: none fails; of the worker alone, not of the log's thread */
static bool failed;
static uint32_t fail_at;

static bool refuse(void)
{
    if (before_failure == 0 || --before_failure > 0) {
        return false;
    }
    failed = true;
    return true;
}

BECALM_VISIBLE void *malloc(size_t size)
{
    return refuse() ? NULL : __libc_malloc(size);
}

BECALM_VISIBLE void *calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __libc_calloc(count, size);
}

BECALM_VISIBLE void *realloc(void *memory, size_t size)
{
    return refuse() ? NULL : __libc_realloc(memory, size);
}

/* A script says when to begin; the test, how many succeed from there on. */
static void fail_after(uint32_t after)
{
    before_failure = after == UINT32_MAX ? 0 : fail_at + 1;
}
#endif

/* As the corpus of fuzz_exchange: a number for the action, and its arguments. 17 lets memory run out. */
#define CLIENT   0
#define ASKS     1
#define ANSWERS  4
#define SPEAKS   7
#define REPLIES  8
#define GOES     9
#define LEAVES   11
#define ENDS     12
#define PASS     13
#define PAUSES   15
#define NO_SPACE 17, 0

static const uint8_t scripts[][40] = {
    {NO_SPACE, CLIENT, ASKS, 0, 0, ANSWERS, 0, 0, ASKS, 0, 0, ANSWERS, 0, 0},                  /* two requests */
    {CLIENT, NO_SPACE, ASKS, 0, 0, ANSWERS, 0, 4, PASS, 2, ANSWERS, 0, 5, PASS, 2},            /* a retry; held */
    {CLIENT, ASKS, 0, 3, NO_SPACE, PASS, 1, ANSWERS, 1, 0},                                    /* a hedge */
    {CLIENT, ASKS, 0, 4, NO_SPACE, GOES, 0, ANSWERS, 0, 0, CLIENT, ASKS, 1, 4, ANSWERS, 1, 0}, /* a key */
    {CLIENT, NO_SPACE, ASKS, 0, 6, ASKS, 0, 11, ANSWERS, 0, 2, ANSWERS, 0, 12},                /* an upload */
    {CLIENT, NO_SPACE, ASKS, 0, 7, ANSWERS, 0, 9, SPEAKS, 0, 201, ANSWERS, 0, 0},              /* Expect */
    {CLIENT, ASKS, 0, 9, NO_SPACE, ANSWERS, 0, 10, SPEAKS, 0, 201, REPLIES, 0, 201, LEAVES, 0, ENDS, 0},
    {CLIENT, NO_SPACE, ASKS, 0, 10, REPLIES, 0, 201, LEAVES, 0, ENDS, 0}, /* tunnels */
    {CLIENT,  PAUSES, 0,   0,       ASKS, 0,   0,    ANSWERS, 0,      11, NO_SPACE,
     REPLIES, 0,      255, REPLIES, 0,    255, PASS, 3,       PAUSES, 0,  0},
    {CLIENT, ASKS, 0, 9, ANSWERS, 0, 10, PAUSES, 1, 0, NO_SPACE, SPEAKS, 0, 255, SPEAKS, 0, 255, PASS, 3, PAUSES, 1, 0},
    {CLIENT, ASKS, 0, 0, NO_SPACE, REPLIES, 0, 20, 'H', 'T', 'T', 'P', PASS, 1, REPLIES, 0, 201}, /* part of a head */
    {CLIENT, NO_SPACE, SPEAKS, 0, 4, 'G', 'E', 'T', ' ', PASS, 1, SPEAKS, 0, 4, '/', ' ', '\r', '\n'},
};

static void test_exchange_memory__survives_the_failure_of_any_allocation(void **state)
{
    (void)state;
#if BECALM_OWN_ALLOCATOR
    exchange_script_fail = fail_after;
    uint32_t failures = 0;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        fail_at = 0;
        do {
            failed = false;
            exchange_script_run(scripts[i], sizeof scripts[i]);
            failures += failed;
            fail_at++;
        } while (failed);
    }
    exchange_script_fail = NULL;
    check_between_u64(failures, 40, 1000); /* it has tried something */
#else
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) { /* at least the sanitizers look on */
        exchange_script_run(scripts[i], sizeof scripts[i]);
    }
#endif
}

static void test_exchange_memory__random_scripts_leave_nothing_behind(void **state)
{
    (void)state;
    uint64_t random = 4711;
    uint32_t runs = getenv("BECALM_SOAK") == NULL ? 60 : 20000;
    for (uint32_t run = 0; run < runs; run++) {
        uint8_t script[160];
        for (size_t i = 0; i < sizeof script; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            script[i] = (uint8_t)(random >> 56);
        }
        script[0] = CLIENT;
        exchange_script_run(script, sizeof script);
    }
}

BECALM_TESTS(cmocka_unit_test(test_exchange_memory__survives_the_failure_of_any_allocation),
             cmocka_unit_test(test_exchange_memory__random_scripts_leave_nothing_behind))
