/* SPDX-License-Identifier: MIT */
/* A worker writes which trace shows a bucket, while others read it: they get it whole, or not at all. */
#include "check.h"
#include "meter/meter.h"

#include <pthread.h>
#include <string.h>

#define READERS 4
#define WRITES  200000u

static struct meter meter;
static BECALM_ATOMIC(bool) over;

/* Of write number n: 32 times the same letter, which its time tells too. */
static char letter(uint64_t n)
{
    return (char)('a' + n % 26);
}

static void *reads(void *data)
{
    uint64_t *found = data;
    const struct meter *meters[] = {&meter};
    uint64_t latest = 0;
    while (!atomic_load_explicit(&over, memory_order_acquire)) {
        struct meter_example example;
        if (meter_example(meters, 1, 0, &example)) {
            char expected[METER_TRACE + 1] = {0};
            memset(expected, letter(example.wall_ms), METER_TRACE);
            check_eq_str(example.trace_id, expected);
            check_true(example.wall_ms >= latest && example.value_us == example.wall_ms % 1000);
            latest = example.wall_ms;
            ++*found;
        }
    }
    return NULL;
}

static void test_meter__an_example_is_read_whole_while_it_is_written(void **state)
{
    (void)state;
    pthread_t thread[READERS];
    uint64_t found[READERS] = {0};
    for (int i = 0; i < READERS; i++) {
        check_true(pthread_create(&thread[i], NULL, reads, &found[i]) == 0);
    }
    for (uint64_t n = 1; n <= WRITES; n++) {
        char trace[METER_TRACE];
        memset(trace, letter(n), sizeof trace);
        struct becalm_record record = {.ended_at = n % 1000 * BECALM_US};
        meter_exemplar(&meter, &record, n * BECALM_MS, trace);
    }
    atomic_store_explicit(&over, true, memory_order_release);
    for (int i = 0; i < READERS; i++) {
        check_true(pthread_join(thread[i], NULL) == 0);
    }
    struct meter_example last;
    const struct meter *meters[] = {&meter};
    check_true(meter_example(meters, 1, 0, &last) && last.wall_ms == WRITES);
}

BECALM_TESTS(cmocka_unit_test(test_meter__an_example_is_read_whole_while_it_is_written))
