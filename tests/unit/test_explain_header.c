/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "journal/explain_header.h"

static const char *const hosts[] = {"10.0.0.1:9001", "say \"\\\xc3\xbc\""};

/* Two attempts that failed, and no budget for a third. */
static struct becalm_record sample(void)
{
    struct becalm_record r = {.began_at = 10 * BECALM_S,
                              .ended_at = 10 * BECALM_S + 95120 * BECALM_US,
                              .attempts = 2,
                              .reason = BECALM_WHY_BUDGET_EMPTY,
                              .have = 200000,
                              .need = 1000000};
    r.attempt[0] = (struct becalm_record_attempt){
        .host = 0, .status = 503, .outcome = BECALM_OUTCOME_REJECTED, .sent_at = r.began_at, .took = 12 * BECALM_MS};
    r.attempt[1] = (struct becalm_record_attempt){.number = 1,
                                                  .host = 1,
                                                  .outcome = BECALM_OUTCOME_TIMED_OUT,
                                                  .waited = 80 * BECALM_MS,
                                                  .sent_at = r.began_at + 92 * BECALM_MS,
                                                  .took = 3120 * BECALM_US};
    return r;
}

/* The header, zero-terminated. */
static const char *header_of(const struct becalm_record *r, char text[EXPLAIN_HEADER_MAX + 1])
{
    struct explain e = {.record = r, .hosts = hosts, .host_count = 2};
    text[explain_header(&e, text)] = '\0';
    return text;
}

static void check_header(const struct becalm_record *r, const char *expected)
{
    char text[EXPLAIN_HEADER_MAX + 1];
    check_eq_str(header_of(r, text), expected);
}

static void test_explain_header__a_call_that_went_well(void **state)
{
    (void)state;
    struct becalm_record r = {.reason = BECALM_WHY_OK, .attempts = 1, .ended_at = 5 * BECALM_MS};
    r.attempt[0] = (struct becalm_record_attempt){.host = BECALM_NO_HOST, .status = 200, .took = 5 * BECALM_MS};
    check_header(&r, "call; reason=ok; attempts=1; took=5.000, attempt; n=0; outcome=ok; status=200; took=5.000");
}

/* The header is written when the answer's head is passed on, before the call is over. */
static void test_explain_header__an_answer_on_its_way_has_the_reason_that_the_end_will_have(void **state)
{
    (void)state;
    struct becalm_record r = {.began_at = 1 * BECALM_MS};
    struct explain e = {.record = &r, .why = BECALM_WHY_OK, .now = 5 * BECALM_MS};
    char text[EXPLAIN_HEADER_MAX + 1];
    text[explain_header(&e, text)] = '\0';
    check_eq_str(text, "call; reason=ok; attempts=0; took=4.000");
}

static void test_explain_header__each_attempt_and_each_wait(void **state)
{
    (void)state;
    struct becalm_record r = sample();
    check_header(&r, "call; reason=budget_empty; have=0.200; need=1.000; unit=retries; attempts=2; took=95.120, "
                     "attempt; n=0; host=\"10.0.0.1:9001\"; outcome=rejected; status=503; took=12.000, "
                     "attempt; n=1; waited=80.000; host=\"say \\\"\\\\??\\\"\"; outcome=timed_out; took=3.120");
    r.attempt[1].hedge = true;
    r.attempt[1].open = true;
    r.would = BECALM_WHY_BACKOFF;
    r.gated = 7 * BECALM_MS;
    check_header(&r, "call; reason=budget_empty; have=0.200; need=1.000; unit=retries; would=backoff; attempts=2; "
                     "gated=7.000; took=95.120, "
                     "attempt; n=0; host=\"10.0.0.1:9001\"; outcome=rejected; status=503; took=12.000, "
                     "attempt; n=1; hedge; waited=80.000; host=\"say \\\"\\\\??\\\"\"; open");
}

static void test_explain_header__the_numbers_have_the_unit_of_their_reason(void **state)
{
    (void)state;
    static const struct {
        struct becalm_record record;
        const char *expected;
    } row[] = {
        {{.reason = BECALM_WHY_BREAKER_OPEN, .need = 750 * BECALM_MS}, "have=0.000; need=750.000; unit=ms"},
        {{.reason = BECALM_WHY_BREAKER_OPEN, .need = BECALM_NEVER}, "have=0.000; unit=ms"},
        {{.reason = BECALM_WHY_DEADLINE, .have = 1 * BECALM_MS, .need = 2 * BECALM_MS},
         "have=1.000; need=2.000; unit=ms"},
        {{.reason = BECALM_WHY_ATTEMPTS_SPENT, .have = 3, .need = 3}, "have=3; need=3; unit=attempts"},
        {{.reason = BECALM_WHY_LIMIT, .have = 10, .need = 10}, "have=10; need=10; unit=slots"},
        {{.reason = BECALM_WHY_LIMIT, .gated = BECALM_S, .have = BECALM_S, .need = BECALM_S},
         "have=1000.000; need=1000.000; unit=ms"},
        {{.reason = BECALM_WHY_LIMIT, .gated = BECALM_S, .attempts = 1, .have = 10, .need = 10},
         "have=10; need=10; unit=slots"},
        {{.reason = BECALM_WHY_ANSWERS, .have = 9, .need = 10}, "have=9; need=10; unit=answers"},
        {{.reason = BECALM_WHY_THROTTLED, .have = 833333}, "have=83.3; unit=percent"},
        {{.reason = BECALM_WHY_SHED, .have = 1000, .need = 1000}, "have=1000; need=1000; unit=calls"},
        {{.reason = BECALM_WHY_SHED, .gated = 20 * BECALM_MS, .have = 20 * BECALM_MS, .need = BECALM_S},
         "have=20.000; need=1000.000; unit=ms; attempts=0; gated=20.000"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char text[EXPLAIN_HEADER_MAX + 1];
        if (strstr(header_of(&row[i].record, text), row[i].expected) == NULL) {
            check_eq_str(text, row[i].expected);
        }
    }
}

/* However long it gets, it ends with a whole attempt and stays below its bound. */
static void test_explain_header__is_bounded(void **state)
{
    (void)state;
    static const char *const long_hosts[] = {"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
                                             "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""};
    struct becalm_record r = sample();
    char text[EXPLAIN_HEADER_MAX];
    struct explain e = {.record = &r, .hosts = long_hosts, .host_count = 1};
    r.attempts = UINT32_MAX;
    r.reason = BECALM_WHY_DEADLINE;
    r.have = BECALM_NEVER - 1;
    r.need = BECALM_NEVER - 1;
    r.gated = BECALM_NEVER;
    r.would = BECALM_WHY_NOT_REPLAYABLE;
    for (uint32_t i = 0; i < BECALM_RECORD_MAX; i++) {
        r.attempt[i] = (struct becalm_record_attempt){.number = UINT32_MAX,
                                                      .status = UINT32_MAX,
                                                      .outcome = BECALM_OUTCOME_RATE_LIMITED,
                                                      .waited = BECALM_NEVER,
                                                      .took = BECALM_NEVER};
    }
    size_t length = explain_header(&e, text);
    check_between_u64(length, 700, EXPLAIN_HEADER_MAX);
    check_true(memcmp(text + length - 21, "took=999999999999.999", 21) == 0);
    for (size_t i = 0; i < length; i++) {
        check_true(text[i] >= ' ' && text[i] <= '~');
    }
}

static void test_explain_header__the_same_as_json(void **state)
{
    (void)state;
    struct becalm_record r = sample();
    struct explain e = {.record = &r,
                        .hosts = hosts,
                        .host_count = 1, /* the second has no name */
                        .wall = 1767323045678 * BECALM_MS,
                        .service = text_of("payment"),
                        .method = text_of("GET"),
                        .target = text_of("/a\"\n"),
                        .status = 503};
    struct buffer b = {.bytes_max = 4096};
    record_json(&b, NULL, &e);
    buffer_bytes(&b, "", 1);
    check_true(!b.full);
    check_eq_str(b.at,
                 "{\"time\":\"2026-01-02T03:04:05.678Z\",\"service\":\"payment\",\"method\":\"GET\","
                 "\"target\":\"/a\\\"\\n\",\"status\":503,\"reason\":\"budget_empty\","
                 "\"sentence\":\"the budget could not pay for another retry\","
                 "\"change\":\"Another attempt costs 1.000 retries and the budget had 0.200; successes fill it.\","
                 "\"have\":0.200,\"need\":1.000,\"unit\":\"retries\",\"gatedMs\":0.000,\"tookMs\":95.120,"
                 "\"attempts\":2,\"hedges\":0,\"attempt\":["
                 "{\"number\":0,\"host\":\"10.0.0.1:9001\",\"hedge\":false,\"open\":false,\"sentMs\":0.000,"
                 "\"outcome\":\"rejected\",\"tookMs\":12.000,\"status\":503},"
                 "{\"number\":1,\"hedge\":false,\"open\":false,\"waitedMs\":80.000,\"sentMs\":92.000,"
                 "\"outcome\":\"timed_out\",\"tookMs\":3.120}]}");
    buffer_free(&b);
}

/* Every end of a call has a sentence on the change that would have decided otherwise, with numbers and without; a
 * success has none. */
static void test_explain_header__every_refusal_says_what_would_have_to_change(void **state)
{
    (void)state;
    for (uint32_t reason = BECALM_WHY_ATTEMPTS_SPENT; reason < BECALM_REASON_COUNT; reason++) {
        for (uint32_t numbers = 0; numbers < 2; numbers++) {
            for (uint32_t attempts = 0; attempts < 2; attempts++) {
                struct becalm_record r = sample();
                struct explain e = {.record = &r};
                struct buffer b = {.bytes_max = 4096};
                r.reason = (enum becalm_reason)reason;
                r.attempts = attempts;
                r.have = numbers * 5;
                r.need = numbers * 7;
                record_json(&b, NULL, &e);
                buffer_bytes(&b, "", 1);
                check_true(strstr(b.at, "\"change\":\"") != NULL);
                check_true(strstr(b.at, "{have}") == NULL && strstr(b.at, "{need}") == NULL);
                buffer_free(&b);
            }
        }
    }
    struct becalm_record ok = {.reason = BECALM_WHY_OK};
    struct buffer b = {.bytes_max = 4096};
    record_json(&b, NULL, &(struct explain){.record = &ok});
    buffer_bytes(&b, "", 1);
    check_true(strstr(b.at, "\"change\"") == NULL);
    buffer_free(&b);
}

BECALM_TESTS(cmocka_unit_test(test_explain_header__a_call_that_went_well),
             cmocka_unit_test(test_explain_header__an_answer_on_its_way_has_the_reason_that_the_end_will_have),
             cmocka_unit_test(test_explain_header__each_attempt_and_each_wait),
             cmocka_unit_test(test_explain_header__the_numbers_have_the_unit_of_their_reason),
             cmocka_unit_test(test_explain_header__is_bounded), cmocka_unit_test(test_explain_header__the_same_as_json),
             cmocka_unit_test(test_explain_header__every_refusal_says_what_would_have_to_change))
