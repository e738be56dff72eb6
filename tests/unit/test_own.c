/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "h1/h1.h"
#include "journal/decisions.h"
#include "message/own.h"

#include <stdlib.h>
#include <string.h>

static char text[4096];

static const char *write_closing(const struct own *own, bool closes)
{
    struct text_sink out = {.at = text, .size = sizeof text - 1};
    struct draft draft;
    char room[OWN_ROOM];
    struct becalm_text body = own_draft(&draft, own, room);
    draft.close = closes;
    h1_put_answer(&out, &draft, HTTP_1_1);
    text_put(&out, body);
    assert_false(out.full);
    text[out.length] = '\0';
    return text;
}

static const char *write_own(const struct own *own)
{
    return write_closing(own, false);
}

static struct own own_of(uint32_t status)
{
    return (struct own){
        .status = status,
        .error = "destination_unavailable",
        .reason = "shed",
        .title = "a \"title\"",
        .retry_after = BECALM_NEVER,
        .grpc_status = BECALM_GRPC_NONE,
        .date = {"now", 3},
    };
}

static void test_own__is_a_problem_document_of_the_length_that_it_says(void **state)
{
    (void)state;
    struct own own = own_of(502);
    own.last_status = 500;
    own.attempts = 2;
    const char *answer = write_own(&own);
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    assert_non_null(strstr(answer, "HTTP/1.1 502 Bad Gateway\r\n"));
    assert_non_null(strstr(answer, "proxy-status: becalm; error=destination_unavailable; details=\"shed\"\r\n"));
    assert_null(strstr(answer, "retry-after"));
    assert_null(strstr(answer, "connection: close"));
    check_eq_u64(strtoul(strstr(answer, "content-length: ") + 16, NULL, 10), strlen(body));
    check_eq_str(body, "{\"type\":\"tag:becalm,2026:shed\",\"title\":\"a \\\"title\\\"\",\"reason\":\"shed\","
                       "\"lastStatus\":500,\"attempts\":2,\"status\":502}\n");
}

static void test_own__a_503_says_when_to_come_back_and_not_all_at_once(void **state)
{
    (void)state;
    struct own own = own_of(503);
    unsigned seen[16] = {0};
    own.retry_after = 4500 * BECALM_MS;
    for (unsigned i = 0; i < 1000; i++) {
        own.random = i * UINT64_C(0x9e3779b97f4a7c15);
        const char *answer = write_closing(&own, true);
        unsigned long wait = strtoul(strstr(answer, "retry-after: ") + 13, NULL, 10);
        assert_true(wait >= 5 && wait <= 8);
        seen[wait]++;
        assert_non_null(strstr(answer, "connection: close\r\n\r\n"));
    }
    assert_true(seen[5] > 100 && seen[6] > 100 && seen[7] > 100 && seen[8] > 100);
}

static void test_own__grpc_has_its_status_in_the_head_and_no_body(void **state)
{
    (void)state;
    struct own own = own_of(503);
    own.grpc_status = 14;
    own.mark = BECALM_MARK_OVERLOADED;
    own.mark_reason = BECALM_WHY_SHED;
    const char *answer = write_own(&own);
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(answer, "grpc-status: 14\r\n"));
    assert_non_null(strstr(answer, "grpc-retry-pushback-ms: -1\r\n"));
    assert_non_null(strstr(answer, "becalm-retry: overloaded; scope=service; reason=shed\r\n"));
    check_eq_str(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
}

static void test_decisions__keep_the_latest_and_all_that_went_wrong(void **state)
{
    (void)state;
    struct decisions decisions;
    static struct decision list[DECISIONS + 1];
    struct becalm_record well = {.reason = BECALM_WHY_OK, .attempts = 1};
    struct becalm_record failed = {.reason = BECALM_WHY_SHED};
    unsigned kept = 0;
    assert_int_equal(decisions_init(&decisions), 0);
    check_eq_u64(decisions_read(&decisions, list, DECISIONS + 1), 0);
    for (unsigned i = 0; i < 640; i++) {
        kept += decisions_want(&decisions, &well);
        assert_true(decisions_want(&decisions, &failed));
    }
    check_between_u64(kept, 1, 20); /* a sample of successful calls */
    for (unsigned i = 0; i < DECISIONS + 10; i++) {
        decisions_keep(&decisions, &(struct decision){.status = i});
    }
    check_eq_u64(decisions_read(&decisions, list, DECISIONS + 1), DECISIONS);
    check_eq_u64(list[0].status, DECISIONS + 9);
    check_eq_u64(list[DECISIONS - 1].status, 10);
    check_eq_u64(decisions_read(&decisions, list, 2), 2);
    decisions_free(&decisions);
}

BECALM_TESTS(cmocka_unit_test(test_own__is_a_problem_document_of_the_length_that_it_says),
             cmocka_unit_test(test_own__a_503_says_when_to_come_back_and_not_all_at_once),
             cmocka_unit_test(test_own__grpc_has_its_status_in_the_head_and_no_body),
             cmocka_unit_test(test_decisions__keep_the_latest_and_all_that_went_wrong))
