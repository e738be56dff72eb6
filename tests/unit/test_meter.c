/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "meter/meter.h"

static struct becalm_record record(enum becalm_reason reason, uint32_t attempts, enum becalm_outcome_kind last)
{
    struct becalm_record r = {
        .reason = reason, .attempts = attempts, .began_at = 1 * BECALM_S, .ended_at = 2 * BECALM_S};
    for (uint32_t i = 0; i < attempts && i < BECALM_RECORD_MAX; i++) {
        r.attempt[i] = (struct becalm_record_attempt){.number = i, .outcome = BECALM_OUTCOME_REJECTED, .status = 503};
    }
    if (attempts > 0) {
        r.attempt[attempts < BECALM_RECORD_MAX ? attempts - 1 : BECALM_RECORD_MAX - 1].outcome = last;
    }
    return r;
}

/* Counts the record in a fresh meter, and checks where it went. */
static void check_call(const struct becalm_record *r, enum meter_result result, bool overflow, bool shed)
{
    static struct meter meter;
    memset(&meter, 0, sizeof meter);
    meter_call(&meter, r);
    for (uint32_t i = 0; i < METER_RESULT_COUNT; i++) {
        for (uint32_t reason = 0; reason < BECALM_REASON_COUNT; reason++) {
            check_eq_u64(meter.calls[i][reason], i == (uint32_t)result && reason == (uint32_t)r->reason);
            check_eq_u64(meter.overflow[reason], overflow && reason == (uint32_t)r->reason);
            check_eq_u64(meter.shed[reason], shed && reason == (uint32_t)r->reason);
        }
    }
}

static void test_meter__success_is_told_by_the_attempt_that_brought_it(void **state)
{
    (void)state;
    struct becalm_record r = record(BECALM_WHY_OK, 1, BECALM_OUTCOME_OK);
    check_call(&r, METER_FIRST_ATTEMPT, false, false);
    r = record(BECALM_WHY_OK, 3, BECALM_OUTCOME_OK);
    check_call(&r, METER_AFTER_RETRY, false, false);
    r = record(BECALM_WHY_OK, 20, BECALM_OUTCOME_OK); /* more than the record keeps */
    check_call(&r, METER_AFTER_RETRY, false, false);
    r = record(BECALM_WHY_OK, 2, BECALM_OUTCOME_CANCELLED); /* a hedge in vain */
    r.attempt[0].outcome = BECALM_OUTCOME_OK;
    check_call(&r, METER_FIRST_ATTEMPT, false, false);
}

static void test_meter__an_error_of_the_caller_is_not_a_failed_call(void **state)
{
    (void)state;
    struct becalm_record r = record(BECALM_WHY_PERMANENT, 1, BECALM_OUTCOME_PERMANENT);
    check_call(&r, METER_FIRST_ATTEMPT, false, false);
    r = record(BECALM_WHY_PERMANENT, 2, BECALM_OUTCOME_PERMANENT);
    check_call(&r, METER_AFTER_RETRY, false, false);
    r = record(BECALM_WHY_PERMANENT, 1, BECALM_OUTCOME_TLS); /* but here no host answered */
    check_call(&r, METER_FAILED, false, false);
}

static void test_meter__a_retry_that_was_due_and_not_made_is_overflow(void **state)
{
    (void)state;
    struct becalm_record r = record(BECALM_WHY_BUDGET_EMPTY, 1, BECALM_OUTCOME_REJECTED);
    check_call(&r, METER_FAILED, true, false);
    r = record(BECALM_WHY_BREAKER_OPEN, 2, BECALM_OUTCOME_REFUSED);
    check_call(&r, METER_FAILED, true, false);
    r = record(BECALM_WHY_ATTEMPTS_SPENT, 3, BECALM_OUTCOME_REJECTED); /* all were made */
    check_call(&r, METER_FAILED, false, false);
    r = record(BECALM_WHY_NOT_IDEMPOTENT, 1, BECALM_OUTCOME_BROKEN); /* none was due */
    check_call(&r, METER_FAILED, false, false);
    r = record(BECALM_WHY_DEADLINE, 1, BECALM_OUTCOME_REJECTED);
    check_call(&r, METER_FAILED, true, false);
    r = record(BECALM_WHY_DEADLINE, 1, BECALM_OUTCOME_CANCELLED); /* cut by it */
    check_call(&r, METER_FAILED, false, false);
}

static void test_meter__what_was_refused_before_anything_was_sent_is_shed(void **state)
{
    (void)state;
    struct becalm_record r = record(BECALM_WHY_SHED, 0, BECALM_OUTCOME_OK);
    check_call(&r, METER_FAILED, false, true);
    r = record(BECALM_WHY_BREAKER_OPEN, 0, BECALM_OUTCOME_OK);
    check_call(&r, METER_FAILED, false, true);
    r = record(BECALM_WHY_CANCELLED, 0, BECALM_OUTCOME_OK); /* the caller's own doing */
    check_call(&r, METER_FAILED, false, false);
}

static void test_meter__a_shadow_counts_what_it_would_have_said(void **state)
{
    (void)state;
    static struct meter meter;
    struct becalm_record r = record(BECALM_WHY_RETRIES_OFF, 1, BECALM_OUTCOME_REJECTED);
    meter_call(&meter, &r);
    check_eq_u64(meter.would[BECALM_WHY_NONE], 0);
    r.would = BECALM_WHY_BACKOFF;
    meter_call(&meter, &r);
    check_eq_u64(meter.would[BECALM_WHY_BACKOFF], 1);
    check_eq_u64(meter.duration.bucket[9], 2); /* both took a second: the bucket of at most 1 s */
    check_eq_u64(meter.duration.sum_us, 2000000);
}

static void test_meter__a_value_falls_into_the_first_bucket_that_holds_it(void **state)
{
    (void)state;
    static const struct {
        becalm_ns value;
        unsigned bucket;
    } row[] = {{0, 0},
               {5 * BECALM_MS, 0},
               {5 * BECALM_MS + 1, 1},
               {99 * BECALM_MS, 5},
               {10 * BECALM_S, 13},
               {11 * BECALM_S, 14}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct meter_histogram histogram = {0};
        meter_observe(&histogram, row[i].value);
        for (unsigned k = 0; k < METER_BUCKETS; k++) {
            check_eq_u64(histogram.bucket[k], k == row[i].bucket);
        }
        check_eq_u64(histogram.sum_us, row[i].value / 1000);
    }
}

static void test_meter__statuses_beyond_the_bound_share_the_last_place(void **state)
{
    (void)state;
    static struct meter meter;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 100; i++) {
            meter_code(&meter, 200 + i);
        }
    }
    for (uint32_t i = 0; i < METER_CODES - 1; i++) {
        check_eq_u64(meter.code_number[i], 200 + i);
        check_eq_u64(meter.code[i], 2);
    }
    check_eq_u64(meter.code_number[METER_CODES - 1], 0);
    check_eq_u64(meter.code[METER_CODES - 1], 2 * (100 - 63));
}

static void test_meter__attempts_retries_and_breakers(void **state)
{
    (void)state;
    static struct meter meter;
    meter_attempt(&meter, &(struct becalm_outcome){.kind = BECALM_OUTCOME_OK, .status = 200});
    meter_attempt(&meter, &(struct becalm_outcome){.kind = BECALM_OUTCOME_PERMANENT, .status = 404});
    meter_attempt(&meter, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REJECTED, .status = 503});
    meter_attempt(&meter, &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
    check_eq_u64(meter.attempts[METER_SUCCESS], 2);
    check_eq_u64(meter.attempts[METER_SERVER_ERROR], 1);
    check_eq_u64(meter.attempts[METER_ERROR], 1);
    meter_retry(&meter, 1, 6 * BECALM_MS);
    meter_retry(&meter, 8, 0);
    meter_retry(&meter, 9, 0);
    meter_retry(&meter, 1000, 0);
    check_eq_u64(meter.retries[0], 1);
    check_eq_u64(meter.retries[7], 1);
    check_eq_u64(meter.retries[8], 2);
    check_eq_u64(meter.delay.bucket[1], 1);
    meter_breaker(&meter, BECALM_BREAKER_CLOSED, BECALM_BREAKER_CLOSED);
    meter_breaker(&meter, BECALM_BREAKER_CLOSED, BECALM_BREAKER_OPEN);
    check_eq_u64(meter.transitions[BECALM_BREAKER_CLOSED][BECALM_BREAKER_CLOSED], 0);
    check_eq_u64(meter.transitions[BECALM_BREAKER_CLOSED][BECALM_BREAKER_OPEN], 1);
}

BECALM_TESTS(cmocka_unit_test(test_meter__success_is_told_by_the_attempt_that_brought_it),
             cmocka_unit_test(test_meter__an_error_of_the_caller_is_not_a_failed_call),
             cmocka_unit_test(test_meter__a_retry_that_was_due_and_not_made_is_overflow),
             cmocka_unit_test(test_meter__what_was_refused_before_anything_was_sent_is_shed),
             cmocka_unit_test(test_meter__a_shadow_counts_what_it_would_have_said),
             cmocka_unit_test(test_meter__a_value_falls_into_the_first_bucket_that_holds_it),
             cmocka_unit_test(test_meter__statuses_beyond_the_bound_share_the_last_place),
             cmocka_unit_test(test_meter__attempts_retries_and_breakers))
