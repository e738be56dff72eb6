/* SPDX-License-Identifier: MIT */
#include "h1_lab.h"

/* All that came of a body, however it was cut. */
struct decoded {
    char data[1024];
    size_t data_length;
    char trailers[H1_TRAILER_BYTES];
    size_t trailers_length;
    enum h1_piece_kind last; /* NONE: more was wanted */
    const char *what;
    size_t used;
};

static void decode_append(struct decoded *d, const struct h1_piece *piece)
{
    if (piece->kind == H1_PIECE_DATA) {
        assert_true(d->data_length + piece->length <= sizeof d->data);
        memcpy(d->data + d->data_length, piece->at, piece->length);
        d->data_length += piece->length;
    } else {
        assert_true(d->trailers_length + piece->length <= sizeof d->trailers);
        memcpy(d->trailers + d->trailers_length, piece->at, piece->length);
        d->trailers_length += piece->length;
    }
}

/* Feeds bytes in parts of this length, each in memory of its own. */
static void decode(struct decoded *d, const struct head *head, struct becalm_text bytes, size_t part)
{
    struct h1_body body;
    h1_body_init(&body, head);
    d->data_length = d->trailers_length = d->used = 0;
    d->last = H1_PIECE_NONE;
    d->what = NULL;
    while (d->used < bytes.length && d->last == H1_PIECE_NONE) {
        size_t length = bytes.length - d->used < part ? bytes.length - d->used : part;
        struct becalm_text bare = bytes_bare((struct becalm_text){bytes.at + d->used, length});
        const char *at = bare.at;
        for (;;) {
            struct h1_piece piece = h1_body_next(&body, &at, bare.at + length);
            if (piece.kind != H1_PIECE_DATA && piece.kind != H1_PIECE_TRAILER) {
                d->last = piece.kind;
                d->what = piece.what;
                break;
            }
            check_true(piece.length > 0);
            decode_append(d, &piece);
        }
        d->used += (size_t)(at - bare.at);
        text_drop(bare);
    }
}

/* At once, and in parts of every length: the same must come of it. */
static void decode_all_ways(struct decoded *d, const struct head *head, struct becalm_text bytes)
{
    static struct decoded again;
    decode(d, head, bytes, bytes.length + 1);
    for (size_t part = 1; part < bytes.length; part++) {
        decode(&again, head, bytes, part);
        if (again.last != d->last || again.used != d->used || again.data_length != d->data_length ||
            again.trailers_length != d->trailers_length || memcmp(again.data, d->data, d->data_length) != 0 ||
            memcmp(again.trailers, d->trailers, d->trailers_length) != 0 || again.what != d->what) {
            fail_msg("in parts of %zu bytes something else came of: %.*s", part, (int)bytes.length, bytes.at);
        }
        if (bytes.length > 2000 && part > 3) {
            break; /* long ones only vary the limits */
        }
    }
}

static const struct head chunked = {.framing = BODY_OPEN};
static const struct head chunked_answer = {.framing = BODY_OPEN, .status = 200};

static void test_h1_body__none_is_over_at_once(void **state)
{
    static const struct head heads[] = {{.framing = BODY_NONE}, {.framing = BODY_LENGTH, .content_length = 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct h1_body body;
        const char *bytes = "GET";
        const char *at = bytes;
        h1_body_init(&body, &heads[i]);
        check_eq_u64(h1_body_next(&body, &at, bytes + 3).kind, H1_PIECE_END);
        check_eq_u64(h1_body_next(&body, &at, bytes).kind, H1_PIECE_END);
        check_true(at == bytes && body.ended && h1_body_closed(&body));
    }
}

static void test_h1_body__of_a_length_leaves_the_next_message_alone(void **state)
{
    static struct decoded d;
    (void)state;
    decode_all_ways(&d, &(struct head){.framing = BODY_LENGTH, .content_length = 5}, text("helloGET / HTTP/1.1"));
    check_eq_u64(d.last, H1_PIECE_END);
    check_eq_u64(d.used, 5);
    check_text((struct becalm_text){d.data, d.data_length}, "hello");
    decode_all_ways(&d, &(struct head){.framing = BODY_LENGTH, .content_length = 6}, text("hello"));
    check_eq_u64(d.last, H1_PIECE_NONE);
    check_eq_u64(d.data_length, 5);
}

static void test_h1_body__until_close_ends_with_the_connection_alone(void **state)
{
    static struct decoded d;
    struct h1_body body;
    (void)state;
    decode_all_ways(&d, &(struct head){.framing = BODY_UNTIL_CLOSE}, text("0\r\n\r\n"));
    check_eq_u64(d.last, H1_PIECE_NONE);
    check_eq_u64(d.data_length, 5);
    h1_body_init(&body, &(struct head){.framing = BODY_UNTIL_CLOSE});
    check_true(!body.ended && h1_body_closed(&body) && body.ended);
}

static void test_h1_body__cut_short_is_not_whole(void **state)
{
    static const struct head heads[] = {{.framing = BODY_OPEN}, {.framing = BODY_LENGTH, .content_length = 6}};
    (void)state;
    for (size_t i = 0; i < COUNT(heads); i++) {
        struct h1_body body;
        const char *bytes = "5\r\nx";
        const char *at = bytes;
        h1_body_init(&body, &heads[i]);
        check_eq_u64(h1_body_next(&body, &at, bytes + 4).kind, H1_PIECE_DATA);
        check_eq_u64(h1_body_next(&body, &at, bytes + 4).kind, H1_PIECE_NONE);
        check_true(!h1_body_closed(&body));
    }
}

static void test_h1_chunks__of_every_form(void **state)
{
    static const struct {
        const char *bytes;
        const char *data;
        const char *trailers;
        const char *rest;
    } rows[] = {
        {"0\r\n\r\n", "", "", ""},
        {"0000\r\n\r\nGET", "", "", "GET"},
        {"5\r\nhello\r\n0\r\n\r\n", "hello", "", ""},
        {"3\r\nhel\r\n00002\r\nlo\r\n0\r\n\r\n\r\n", "hello", "", "\r\n"},
        {"A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n", "01234567890123456789a", "", ""},
        {"0000000000000001\r\nx\r\n0\r\n\r\n", "x", "", ""},
        {"1;a=b\r\nx\r\n0;c\r\n\r\n", "x", "", ""},
        {"1;a=\"b;\tc\xc3\xa9\" ; d\r\nx\r\n0\r\n\r\n", "x", "", ""},
        {"1;\r\nx\r\n0\r\n\r\n", "x", "", ""},
        {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "", ""},
        {"0\r\nA: b\r\n\r\nGET", "", "A: b\r\n\r\n", "GET"},
        {"1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x", "A: b\r\nC: d\r\n\r\n", ""},
        {"0\r\nContent-Length: 5\r\n\r\n", "", "Content-Length: 5\r\n\r\n", ""}, /* h1_parse_trailers() refuses it */
    };
    static struct decoded d;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        decode_all_ways(&d, &chunked, text(rows[i].bytes));
        check_eq_u64(d.last, H1_PIECE_END);
        check_text((struct becalm_text){d.data, d.data_length}, rows[i].data);
        check_text((struct becalm_text){d.trailers, d.trailers_length}, rows[i].trailers);
        check_eq_str(rows[i].bytes + d.used, rows[i].rest);
    }
}

static void test_h1_chunks__malformed_ones_are_refused(void **state)
{
    static const struct becalm_text rows[] = {
        BYTES("\r\n"),
        BYTES("\n"),
        BYTES("x\r\n"),
        BYTES(" 5\r\nhello\r\n"),
        BYTES("5 \r\nhello\r\n"),
        BYTES("5\t\r\nhello\r\n"),
        BYTES("5 ;a\r\nhello\r\n"),
        BYTES("0x10\r\n"),
        BYTES("x10\r\n"),
        BYTES("+5\r\nhello\r\n"),
        BYTES("-5\r\nhello\r\n"),
        BYTES("5_0\r\nhello\r\n"),
        BYTES("5\nhello\r\n"),
        BYTES("5\rhello\r\n"),
        BYTES("5\r\rhello\r\n"),
        BYTES(";a\r\n"),
        BYTES("00000000000000001\r\nx\r\n"),
        BYTES("10000000000000000\r\n"),
        BYTES("fffffffffffffffff\r\n"),
        BYTES("ffffffffffffffff\r\n"),
        BYTES("8000000000000000\r\n"),
        BYTES("5;a\nhello\r\n"),
        BYTES("5;a\rb\r\nhello\r\n"),
        BYTES("5;a\0b\r\nhello\r\n"),
        BYTES("5;a\x7f\r\nhello\r\n"),
        BYTES("5\r\nhelloX\r\n"),
        BYTES("5\r\nhello\n0\r\n\r\n"),
        BYTES("5\r\nhello\rX0\r\n\r\n"),
        BYTES("5\r\nhello0\r\n\r\n"),
        BYTES("5\r\nhello\r\n\r\n0\r\n\r\n"),
        BYTES("0\r\n\rX"),
        BYTES("0\r\n\n"),
        BYTES("0\n\n"),
        BYTES("0\r\nA: b\n\r\n"),
        BYTES("0\r\nA: b\rC: d\r\n\r\n"),
        BYTES("0\r\nA: b\r\n\n"),
        BYTES("0\r\nA: b\r\n\rX"),
    };
    static struct decoded d;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        decode_all_ways(&d, &chunked, rows[i]);
        if (d.last != H1_PIECE_BAD || d.what == NULL) {
            fail_msg("%s", rows[i].at);
        }
    }
}

/* Hosts do, clients may not: see the rows above. */
static void test_h1_chunks__blanks_behind_the_size_of_an_answers_are_taken(void **state)
{
    static const char *const rows[] = {
        "5 \r\nhello\r\n0\r\n\r\n",
        "5\t \t\r\nhello\r\n0  \r\n\r\n",
        "5  ;a=b\r\nhello\r\n0\t;c\r\n\r\n",
        "2 \r\nhe\r\n3\r\nllo\r\n0 \r\n\r\n",
    };
    static const char *const refused[] = {
        " 5\r\nhello\r\n",   "5 5\r\nhello\r\n", "5 a\r\nhello\r\n",    "5 \nhello\r\n",
        "5 \r\r\nhello\r\n", " \r\nhello\r\n",   "5 \x01\r\nhello\r\n", "5 -\r\nhello\r\n",
    };
    static struct decoded d;
    char many[2 * H1_EXTENSION_BYTES];
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        decode_all_ways(&d, &chunked_answer, text(rows[i]));
        check_eq_u64(d.last, H1_PIECE_END);
        check_text((struct becalm_text){d.data, d.data_length}, "hello");
        decode_all_ways(&d, &chunked, text(rows[i]));
        check_eq_u64(d.last, H1_PIECE_BAD);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        decode_all_ways(&d, &chunked_answer, text(refused[i]));
        if (d.last != H1_PIECE_BAD || d.what == NULL) {
            fail_msg("%s", refused[i]);
        }
    }
    memset(many, ' ', sizeof many);
    many[0] = '5';
    decode(&d, &chunked_answer, (struct becalm_text){many, 1 + H1_EXTENSION_BYTES}, sizeof many);
    check_eq_u64(d.last, H1_PIECE_NONE);
    decode(&d, &chunked_answer, (struct becalm_text){many, 2 + H1_EXTENSION_BYTES}, sizeof many);
    check_eq_u64(d.last, H1_PIECE_BAD);
}

/* `before`, then `letters` letters, then `after`. */
static enum h1_piece_kind decode_padded(const char *before, size_t letters, const char *after)
{
    static struct decoded d;
    static char bytes[2 * H1_TRAILER_BYTES];
    size_t length = strlen(before);
    assert_true(length + letters + strlen(after) < sizeof bytes);
    memcpy(bytes, before, length);
    memset(bytes + length, 'a', letters);
    strcpy(bytes + length + letters, after);
    decode_all_ways(&d, &chunked, text(bytes));
    return d.last;
}

static void test_h1_chunks__an_extension_has_256_bytes_at_most(void **state)
{
    (void)state;
    check_eq_u64(decode_padded("1;", H1_EXTENSION_BYTES, "\r\nx\r\n0\r\n\r\n"), H1_PIECE_END);
    check_eq_u64(decode_padded("1;", H1_EXTENSION_BYTES + 1, "\r\nx\r\n0\r\n\r\n"), H1_PIECE_BAD);
    check_eq_u64(decode_padded("1\r\nx\r\n0;", H1_EXTENSION_BYTES + 1, "\r\n\r\n"), H1_PIECE_BAD);
    check_eq_u64(decode_padded("1;a\r\nx\r\n0;", H1_EXTENSION_BYTES, "\r\n\r\n"), H1_PIECE_END); /* counted for each */
}

static void test_h1_chunks__trailers_have_8192_bytes_at_most(void **state)
{
    size_t frame = strlen("A:\r\n\r\n");
    (void)state;
    check_eq_u64(decode_padded("0;ext\r\nA:", H1_TRAILER_BYTES - frame, "\r\n\r\n"), H1_PIECE_END);
    check_eq_u64(decode_padded("0;ext\r\nA:", H1_TRAILER_BYTES - frame + 1, "\r\n\r\n"), H1_PIECE_BAD);
}

static void test_h1_chunks__the_largest_size_is_counted_down(void **state)
{
    struct h1_body body;
    const char *bytes = "7fffffffffffffff\r\nab";
    const char *at = bytes;
    (void)state;
    h1_body_init(&body, &chunked);
    check_eq_u64(h1_body_next(&body, &at, bytes + strlen(bytes)).length, 2);
    check_eq_u64(body.left, INT64_MAX - 2);
}

BECALM_TESTS(cmocka_unit_test(test_h1_body__none_is_over_at_once),
             cmocka_unit_test(test_h1_body__of_a_length_leaves_the_next_message_alone),
             cmocka_unit_test(test_h1_body__until_close_ends_with_the_connection_alone),
             cmocka_unit_test(test_h1_body__cut_short_is_not_whole), cmocka_unit_test(test_h1_chunks__of_every_form),
             cmocka_unit_test(test_h1_chunks__malformed_ones_are_refused),
             cmocka_unit_test(test_h1_chunks__blanks_behind_the_size_of_an_answers_are_taken),
             cmocka_unit_test(test_h1_chunks__an_extension_has_256_bytes_at_most),
             cmocka_unit_test(test_h1_chunks__trailers_have_8192_bytes_at_most),
             cmocka_unit_test(test_h1_chunks__the_largest_size_is_counted_down))
