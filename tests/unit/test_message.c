/* SPDX-License-Identifier: MIT */
/* Heads independent of the protocol: drafts, packed and added fields, and their form in HTTP/1. */
#include "h1_lab.h"
#include "message/answer_head.h"
#include "message/packed.h"

static char text_room[4096];

static const char *written(const struct draft *draft, enum http_version to)
{
    struct text_sink out = {.at = text_room, .size = sizeof text_room - 1};
    h1_put_answer(&out, draft, to);
    check_true(!out.full);
    text_room[out.length] = '\0';
    return text_room;
}

/* A head whose bytes no codec of HTTP/1 has seen: names and values one behind the other, as an unpacked one has them.
 */
static void test_message__a_head_needs_no_bytes_of_http_1(void **state)
{
    (void)state;
    static struct head head;
    memset(&head, 0, sizeof head);
    head.bytes = "x-ab1content-lengthzz";
    head.version = HTTP_2;
    head.status = 200;
    head.framing = BODY_OPEN;
    head.seen = FIELD_BIT(FIELD_OTHER) | FIELD_BIT(FIELD_CONTENT_LENGTH);
    head.field_count = 2;
    head.field[0] = (struct field){.name = 0, .name_length = 3, .value = 3, .value_length = 2};
    head.field[1] =
        (struct field){.name = 5, .name_length = 14, .value = 19, .value_length = 2, .id = FIELD_CONTENT_LENGTH};
    struct draft draft;
    draft_begin(&draft, NULL, 0);
    draft.status = head.status;
    draft.passed = &head;
    draft.skip = answer_head_skip(false);
    draft.framing = BODY_OPEN;
    answer_head_add(&draft, &(struct answer_head){.passes = true, .passed = head.version});
    check_eq_str(written(&draft, HTTP_1_1),
                 "HTTP/1.1 200 OK\r\nx-a: b1\r\nvia: 2 becalm\r\ntransfer-encoding: chunked\r\n\r\n");
    check_eq_str(written(&draft, HTTP_1_0),
                 "HTTP/1.1 200 OK\r\nx-a: b1\r\nvia: 2 becalm\r\nconnection: keep-alive\r\n\r\n");
    draft.close = true;
    check_eq_str(written(&draft, HTTP_1_0), "HTTP/1.1 200 OK\r\nx-a: b1\r\nvia: 2 becalm\r\nconnection: close\r\n\r\n");
}

static void test_message__what_is_packed_is_written_as_what_passed(void **state)
{
    (void)state;
    struct lab lab;
    struct draft draft;
    char packed[512];
    char passed[1024];
    struct text_sink out = {.at = packed + 1, .size = sizeof packed - 1}; /* at any address */
    answer_of(&lab,
              "HTTP/1.1 200 Fine\r\nX-A: 1\r\nConnection: x-b\r\nX-B: 2\r\nx-empty:\r\nContent-Length: 0\r\n\r\n");
    draft_begin(&draft, NULL, 0);
    draft.status = 200;
    draft.phrase = head_phrase(&lab.head);
    draft.passed = &lab.head;
    draft.skip = answer_head_skip(false);
    answer_head_add(&draft, &(struct answer_head){.passes = true, .passed = HTTP_1_0, .date = text("now")});
    packed_put_draft(&out, &draft);
    check_true(!out.full);
    strcpy(passed, written(&draft, HTTP_1_1));
    check_eq_str(passed, "HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-empty: \r\ndate: now\r\nvia: 1.0 becalm\r\n\r\n");
    draft_begin(&draft, NULL, 0);
    draft.status = 200;
    draft.packed = (struct becalm_text){out.at, out.length};
    check_eq_str(written(&draft, HTTP_1_1), passed);
    lab_drop(&lab);
}

static void test_message__what_has_no_body_keeps_the_length_that_it_speaks_of(void **state)
{
    (void)state;
    check_eq_u64(answer_head_skip(true) >> FIELD_CONTENT_LENGTH & 1, 0);
    check_eq_u64(answer_head_skip(false) >> FIELD_CONTENT_LENGTH & 1, 1);
    check_eq_u64(answer_head_skip(true) >> FIELD_BECALM_RETRY & 1, 1);
}

static void test_message__each_note_says_why(void **state)
{
    (void)state;
    static const struct {
        struct answer_head head;
        const char *expected;
    } rows[] = {
        {{.note = ANSWER_NOTE_RECEIVED, .received = 503, .reason = "deadline"},
         "HTTP/1.1 200 OK\r\nproxy-status: becalm; received-status=503; details=\"deadline\"\r\n\r\n"},
        {{.note = ANSWER_NOTE_ERROR, .error = "dns_error", .reason = "shed", .retry_after = 3},
         "HTTP/1.1 200 OK\r\nproxy-status: becalm; error=dns_error; details=\"shed\"\r\nretry-after: 3\r\n\r\n"},
        {{.note = ANSWER_NOTE_REPLAYED, .reason = "replayed", .length_known = true, .length = 12},
         "HTTP/1.1 200 OK\r\ncontent-length: 12\r\nproxy-status: becalm; details=\"replayed\"\r\n"
         "idempotent-replayed: true\r\n\r\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct draft draft;
        char values[256];
        draft_begin(&draft, values, sizeof values);
        draft.status = 200;
        answer_head_add(&draft, &rows[i].head);
        check_eq_str(written(&draft, HTTP_1_1), rows[i].expected);
    }
}

static void test_message__a_value_without_room_spoils_the_head(void **state)
{
    (void)state;
    struct draft draft;
    char room[4];
    struct text_sink out = {.at = text_room, .size = sizeof text_room};
    draft_begin(&draft, room, sizeof room);
    draft.status = 200;
    draft_add_number(&draft, "content-length", 12345);
    h1_put_answer(&out, &draft, HTTP_1_1);
    check_true(out.full);
}

static void test_message__a_request_is_written_with_its_authority(void **state)
{
    (void)state;
    struct lab lab;
    struct draft draft;
    struct text_sink out = {.at = text_room, .size = sizeof text_room - 1};
    request_of(&lab, "GET http://shop/a HTTP/1.1\r\nHost: other\r\nX-A: 1\r\n\r\n");
    draft_begin(&draft, NULL, 0);
    draft.method = head_method(&lab.head);
    draft.path = text("/a");
    draft.authority = h1_authority(&lab.head);
    draft.passed = &lab.head;
    draft.skip = FIELD_BIT(FIELD_HOST);
    draft.te_trailers = true;
    draft.framing = BODY_OPEN;
    h1_put_request(&out, &draft);
    out.at[out.length] = '\0';
    check_eq_str(out.at, "GET /a HTTP/1.1\r\nhost: shop\r\nX-A: 1\r\ntransfer-encoding: chunked\r\n"
                         "te: trailers\r\nconnection: te\r\n\r\n");
    lab_drop(&lab);
}

BECALM_TESTS(cmocka_unit_test(test_message__a_head_needs_no_bytes_of_http_1),
             cmocka_unit_test(test_message__what_is_packed_is_written_as_what_passed),
             cmocka_unit_test(test_message__what_has_no_body_keeps_the_length_that_it_speaks_of),
             cmocka_unit_test(test_message__each_note_says_why),
             cmocka_unit_test(test_message__a_value_without_room_spoils_the_head),
             cmocka_unit_test(test_message__a_request_is_written_with_its_authority))
