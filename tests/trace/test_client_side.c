/* SPDX-License-Identifier: MIT */
/* Exchanges whose client's side is the test's own: heads that never were bytes of HTTP/1, several requests at once on
 * one connection, and every call of the exchange written down. An HTTP/2 side does the same. */
#include "exchange_lab.h"

#include "check.h"
#include "proxy/exchange/exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MS  BECALM_MS
#define ONE "services: {a: {hosts: ['%s'], match: {prefix: /}}}\n"

struct side {
    struct client_stream stream;
    bool blocked;
    bool broken; /* it can't be written to */
    char trace[4096];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void note(struct side *side, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(side->trace + side->length, sizeof side->trace - side->length, format, arguments);
    va_end(arguments);
    check_true(length > 0 && (size_t)length < sizeof side->trace - side->length);
    side->length += (size_t)length;
}

static struct side *side_of(const struct client_stream *stream)
{
    return (struct side *)(uintptr_t)stream; /* it comes first */
}

static void note_part(struct side *side, const struct stream_part *part)
{
    for (int i = 0; i < part->pieces->count; i++) {
        note(side, " '%.*s'", (int)part->pieces->piece[i].length, part->pieces->piece[i].at);
    }
    for (uint32_t i = 0; part->trailers != NULL && i < part->trailers->field_count; i++) {
        struct becalm_text name = field_name(part->trailers, &part->trailers->field[i]);
        note(side, " trailer %.*s", (int)name.length, name.at);
    }
    note(side, part->ended ? " ended\n" : "\n");
}

static bool begin(struct client_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    note(side_of(stream), "begin %u", draft->status);
    note_part(side_of(stream), part);
    return !side_of(stream)->broken;
}

static bool more(struct client_stream *stream, const struct stream_part *part)
{
    note(side_of(stream), "more");
    note_part(side_of(stream), part);
    return !side_of(stream)->broken;
}

static bool interim(struct client_stream *stream, const struct draft *draft)
{
    note(side_of(stream), "interim %u\n", draft->status);
    return true;
}

static bool blocked(const struct client_stream *stream)
{
    return side_of(stream)->blocked;
}

static void moves(struct client_stream *stream)
{
    (void)stream;
}

static void took(struct client_stream *stream)
{
    note(side_of(stream), "took\n");
}

static void began(struct client_stream *stream)
{
    note(side_of(stream), "began\n");
}

static bool left(const struct client_stream *stream)
{
    (void)stream;
    return false;
}

static void done(struct client_stream *stream, bool keep)
{
    check_true(stream->exchange == NULL);
    note(side_of(stream), keep ? "done\n" : "done, the last\n");
}

static void cut(struct client_stream *stream)
{
    note(side_of(stream), "cut\n");
    if (stream->exchange != NULL) {
        exchange_cancel(stream->exchange);
    }
}

static uint64_t identity(const struct client_stream *stream)
{
    (void)stream;
    return 7;
}

static bool trusted(struct client_stream *stream)
{
    (void)stream;
    return false;
}

static void origin(struct client_stream *stream, struct origin *origin)
{
    (void)stream;
    *origin = (struct origin){0};
}

static struct becalm_text peer(const struct client_stream *stream, char *text, size_t size)
{
    (void)stream, (void)text, (void)size;
    return (struct becalm_text){"192.0.2.1", 9};
}

static struct host_owner owner(struct client_stream *stream)
{
    (void)stream;
    return (struct host_owner){0};
}

static const struct client_stream_ops ops = {
    .begin = begin,
    .more = more,
    .interim = interim,
    .blocked = blocked,
    .moves = moves,
    .took = took,
    .began = began,
    .left = left,
    .done = done,
    .cut = cut,
    .identity = identity,
    .trusted = trusted,
    .origin = origin,
    .peer = peer,
    .owner = owner,
};

/* A head as it is unpacked from another protocol: the texts one behind the other. */
static void side_asks(struct lab *lab, struct side *side, const char *method, enum body_framing framing)
{
    static struct head head;
    char bytes[64];
    int method_length = snprintf(bytes, sizeof bytes, "%s", method);
    snprintf(bytes + method_length, sizeof bytes - (size_t)method_length, "/ahostshop");
    memset(side, 0, sizeof *side);
    side->stream.ops = &ops;
    memset(&head, 0, sizeof head);
    head.bytes = bytes;
    head.length = (uint32_t)strlen(bytes);
    head.method_length = head.target = (uint32_t)method_length;
    head.target_length = 2;
    head.version = HTTP_2;
    head.keep_alive = true;
    head.framing = framing;
    head.seen = FIELD_BIT(FIELD_HOST);
    head.field_count = 1;
    head.field[0] = (struct field){
        .name = head.target + 2, .name_length = 4, .value = head.target + 6, .value_length = 4, .id = FIELD_HOST};
    exchange_open(lab->worker, &side->stream, &head);
    lab_settle(lab);
}

static void test_client_side__two_requests_at_once_and_an_answer_in_pieces(void **state)
{
    (void)state;
    struct lab lab;
    struct side one;
    struct side two;
    check_true(lab_open(&lab, ONE));
    side_asks(&lab, &one, "GET", BODY_NONE);
    side_asks(&lab, &two, "GET", BODY_NONE);
    lab_host_says(&lab, 2, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    lab_host_says(&lab, 1, "2\r\ncd\r\n0\r\nx-sum: 1\r\n\r\n");
    check_eq_str(two.trace, "began\nbegin 200 'hello' ended\ndone\n");
    check_eq_str(one.trace, "began\nbegin 200 'ab'\nmore 'cd' trailer x-sum ended\ndone\n");
    check_eq_str(lab.trace, "[  0ms] host a1 hears GET /a\n"
                            "[  0ms] host a2 hears GET /a\n"
                            "[  0ms] host a2 says 200 and 5 bytes\n"
                            "[  0ms] host a1 says 200 and 7 bytes\n"
                            "[  0ms] host a1 says 22 bytes\n");
    lab_close(&lab);
}

static void test_client_side__a_body_is_collected_and_sent_with_its_length(void **state)
{
    (void)state;
    struct lab lab;
    struct side side;
    check_true(lab_open(&lab, ONE));
    side_asks(&lab, &side, "PUT", BODY_OPEN);
    check_eq_str(side.trace, "");
    check_true(exchange_body(side.stream.exchange, (struct becalm_text){"ab", 2}));
    check_true(exchange_body_came(side.stream.exchange, false));
    check_true(exchange_body(side.stream.exchange, (struct becalm_text){"cde", 3}));
    check_true(exchange_body_came(side.stream.exchange, true));
    lab_settle(&lab);
    lab_host_says(&lab, 1, "HTTP/1.1 204 No Content\r\n\r\n");
    check_eq_str(side.trace, "began\nbegin 204 ended\ndone\n");
    check_eq_str(lab.trace, "[  0ms] host a1 hears PUT /a and 5 bytes\n"
                            "[  0ms] host a1 says 204\n");
    lab_close(&lab);
}

static void test_client_side__an_answer_that_breaks_off_is_cut_and_our_own_is_told(void **state)
{
    (void)state;
    struct lab lab;
    struct side side;
    check_true(lab_open(&lab, ONE));
    side_asks(&lab, &side, "GET", BODY_NONE);
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
    lab_host_goes(&lab, 1);
    check_eq_str(side.trace, "began\nbegin 200 'he'\ncut\n");
    side_asks(&lab, &side, "CONNECT", BODY_NONE); /* nothing here could be a tunnel */
    check_true(strncmp(side.trace, "begin 40", 8) == 0 && strstr(side.trace, "ended\ndone") != NULL);
    lab_close(&lab);
}

static void test_client_side__one_that_goes_or_breaks_is_told_nothing_more(void **state)
{
    (void)state;
    struct lab lab;
    struct side side;
    check_true(lab_open(&lab, ONE));
    side_asks(&lab, &side, "GET", BODY_NONE);
    exchange_cancel(side.stream.exchange);
    check_true(side.stream.exchange == NULL);
    lab_settle(&lab);
    check_eq_str(side.trace, "began\n");
    side_asks(&lab, &side, "GET", BODY_NONE);
    side.broken = true;
    lab_host_says(&lab, 2, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
    check_eq_str(side.trace, "began\nbegin 200 'he'\ncut\n");
    check_eq_u64(lab.worker->exchange_count, 0);
    lab_close(&lab);
}

static void test_client_side__one_that_does_not_read_holds_up_its_host_alone(void **state)
{
    (void)state;
    struct lab lab;
    struct side slow;
    struct side quick;
    check_true(lab_open(&lab, ONE));
    side_asks(&lab, &slow, "GET", BODY_NONE);
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    slow.blocked = true;
    lab_host_says(&lab, 1, "cd");
    side_asks(&lab, &quick, "GET", BODY_NONE);
    lab_host_says(&lab, 2, "HTTP/1.1 204 No Content\r\n\r\n");
    check_eq_str(slow.trace, "began\nbegin 200 'ab'\n");
    check_eq_str(quick.trace, "began\nbegin 204 ended\ndone\n");
    slow.blocked = false;
    exchange_unblocked(slow.stream.exchange);
    check_eq_str(slow.trace, "began\nbegin 200 'ab'\nmore 'cd' ended\ndone\n");
    lab_close(&lab);
}

BECALM_TESTS(cmocka_unit_test(test_client_side__two_requests_at_once_and_an_answer_in_pieces),
             cmocka_unit_test(test_client_side__a_body_is_collected_and_sent_with_its_length),
             cmocka_unit_test(test_client_side__an_answer_that_breaks_off_is_cut_and_our_own_is_told),
             cmocka_unit_test(test_client_side__one_that_goes_or_breaks_is_told_nothing_more),
             cmocka_unit_test(test_client_side__one_that_does_not_read_holds_up_its_host_alone))
