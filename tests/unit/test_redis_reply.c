/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis/reply.h"

#include "lib/check.h"

/* Feeds a text in pieces of `step` bytes. Returns the last result. */
static enum reply_next hear(struct reply_reader *reader, const char *text, size_t step)
{
    enum reply_next last = REPLY_NONE;
    for (size_t i = 0; text[i] != 0 && last != REPLY_BROKEN;) {
        size_t length = strnlen(text + i, step);
        check_true(reply_feed(reader, text + i, length));
        i += length;
        enum reply_next next = reply_next(reader);
        last = next == REPLY_NONE ? last : next;
    }
    return last;
}

static enum reply_next heard(const char *text, size_t step, struct reply *reply)
{
    struct reply_reader reader;
    check_true(reply_open(&reader, 0));
    enum reply_next next = hear(&reader, text, step);
    *reply = reader.reply;
    reply_close(&reader);
    return next;
}

static void test_redis_reply__words_errors_and_lists_are_read(void **state)
{
    (void)state;
    struct reply reply;
    for (size_t step = 1; step < 8; step++) {
        check_eq_u64(heard("+PONG\r\n", step, &reply), REPLY_THERE);
        check_eq_u64(reply.kind, REPLY_WORD);
        check_eq_str(reply.text, "PONG");
        check_eq_u64(heard("-NOSCRIPT No matching script\r\n", step, &reply), REPLY_THERE);
        check_eq_u64(reply.kind, REPLY_ERROR);
        check_eq_str(reply.text, "NOSCRIPT No matching script");
        check_eq_u64(heard("*3\r\n:7\r\n$1\r\nx\r\n:-3\r\n", step, &reply), REPLY_THERE);
        check_eq_u64(reply.kind, REPLY_LIST);
        check_eq_u64(reply.count, 3);
        check_true(reply.item[0].number == 7 && reply.item[1].number == -1 && reply.item[2].number == -3);
        check_eq_u64(reply.item[1].length, 1);
    }
}

static void test_redis_reply__texts_are_whole_and_lists_in_lists_are_passed_over(void **state)
{
    (void)state;
    struct reply_reader reader;
    for (size_t step = 1; step < 8; step++) {
        check_true(reply_open(&reader, 0));
        check_eq_u64(hear(&reader, "*4\r\n$6\r\nmaster\r\n*2\r\n$1\r\na\r\n:5\r\n$0\r\n\r\n$2\r\nok\r\n", step),
                     REPLY_THERE);
        const struct reply *reply = &reader.reply;
        check_eq_u64(reply->count, 4);
        check_true(reply_says(&reply->item[0], "master") && reply_says(&reply->item[2], ""));
        check_true(reply_says(&reply->item[3], "ok") && !reply_says(&reply->item[3], "okay"));
        check_eq_u64(reply->item[1].kind, REPLY_NOTHING);
        check_eq_u64(hear(&reader, "*-1\r\n", step), REPLY_THERE);
        check_eq_u64(reply->kind, REPLY_NOTHING);
        check_eq_u64(hear(&reader, "$3\r\nabc\r\n", step), REPLY_THERE);
        check_true(reply->kind == REPLY_WORD && reply_says(&reply->item[0], "abc"));
        reply_close(&reader);
    }
}

static void test_redis_reply__what_no_redis_says_is_broken_and_takes_no_memory(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", "*2147483647\r\n", "*225\r\n", "*1\r\n*225\r\n", "$-7\r\n", ":x\r\n",
        "*9999999999999999999999\r\n",
    };
    struct reply reply;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (heard(wrong[i], 64, &reply) != REPLY_BROKEN) {
            print_error("%s is taken\n", wrong[i]);
            fail();
        }
    }
    check_eq_u64(heard("*224\r\n", 64, &reply), REPLY_NONE);
}

static void test_redis_reply__one_that_does_not_end_is_given_up(void **state)
{
    (void)state;
    struct reply_reader reader;
    char many[1000];
    memset(many, 'a', sizeof many);
    check_true(reply_open(&reader, 0));
    check_true(reply_feed(&reader, "$400000000\r\n", 12));
    size_t fed = 12;
    while (reply_next(&reader) == REPLY_NONE) {
        check_true(reply_feed(&reader, many, sizeof many));
        fed += sizeof many;
        check_true(fed < 2 * REPLY_BYTES);
    }
    reply_close(&reader);
}

BECALM_TESTS(cmocka_unit_test(test_redis_reply__words_errors_and_lists_are_read),
             cmocka_unit_test(test_redis_reply__texts_are_whole_and_lists_in_lists_are_passed_over),
             cmocka_unit_test(test_redis_reply__what_no_redis_says_is_broken_and_takes_no_memory),
             cmocka_unit_test(test_redis_reply__one_that_does_not_end_is_given_up))
