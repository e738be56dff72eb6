/* SPDX-License-Identifier: MIT */
#include "h1_lab.h"

#include "h1/h1_internal.h"

/* ---- accepted heads ---- */

static void test_h1_request__a_plain_request_in_its_parts(void **state)
{
    struct lab lab;
    (void)state;
    request_of(&lab,
               "GET /a/b?c=d HTTP/1.1\r\nHost: shop:8080\r\nX-Empty:\r\nx-BLANKS: \t a b \t\r\nTE: trailers\r\n\r\n");
    check_text(head_method(&lab.head), "GET");
    check_text((struct becalm_text){lab.bytes.at + lab.head.target, lab.head.target_length}, "/a/b?c=d");
    check_eq_u64(lab.head.length, lab.bytes.length);
    check_eq_u64(lab.head.version, HTTP_1_1);
    check_eq_u64(lab.head.framing, BODY_NONE);
    check_eq_u64(lab.head.content_length, 0);
    check_true(lab.head.keep_alive && !lab.head.close && !lab.head.expects_continue && !lab.head.upgrades);
    check_eq_u64(lab.head.field_count, 4);
    check_text(field_name(&lab.head, &lab.head.field[0]), "Host");
    check_text(field_value(&lab.head, &lab.head.field[0]), "shop:8080");
    check_text(field_value(&lab.head, &lab.head.field[1]), "");
    check_text(field_value(&lab.head, &lab.head.field[2]), "a b");
    check_true(!lab.head.field[0].hop && !lab.head.field[1].hop && lab.head.field[3].hop);
    check_text(head_find(&lab.head, FIELD_TE), "trailers");
    check_text(head_find(&lab.head, FIELD_COOKIE), NULL);
    check_text(head_find_other(&lab.head, text("X-Blanks")), "a b");
    check_text(head_find_other(&lab.head, text("x-blank")), NULL);
    check_true(head_has(&lab.head, FIELD_HOST) && head_has(&lab.head, FIELD_OTHER) && !head_has(&lab.head, FIELD_VIA));
    lab_drop(&lab);
}

static void test_h1_request__odd_but_clear_ones_are_taken(void **state)
{
    static const struct {
        struct becalm_text bytes;
        enum body_framing framing;
        uint64_t length;
        bool keep_alive;
    } rows[] = {
        {BYTES("GET / HTTP/1.0\r\n\r\n"), BODY_NONE, 0, false},
        {BYTES("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("GET / HTTP/1.0\r\nConnection: Keep-Alive, close\r\n\r\n"), BODY_NONE, 0, false},
        {BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), BODY_NONE, 0, false},
        {BYTES("GET / HTTP/1.1\r\nHost: a\r\nConnection: , ,CLOSE\t,\r\n\r\n"), BODY_NONE, 0, false},
        {BYTES("GET / HTTP/1.1\r\nHost: a\r\nConnection: a\r\nConnection: close\r\n\r\n"), BODY_NONE, 0, false},
        {BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), BODY_LENGTH, 0, true},
        {BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:42 \r\n\r\n"), BODY_LENGTH, 42, true},
        {BYTES("POST / HTTP/1.0\r\nContent-Length: 007\r\n\r\n"), BODY_LENGTH, 7, false},
        {BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:  42  \r\n\r\n"), BODY_LENGTH, 42, true},
        {BYTES("POST / HTTP/1.0\r\nContent-Length: 9223372036854775807\r\n\r\n"), BODY_LENGTH, INT64_MAX, false},
        {BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), BODY_OPEN, 0, true},
        {BYTES("POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:CHUNKED \r\n\r\n"), BODY_OPEN, 0, true},
        {BYTES("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nContent-Length: 0\r\n\r\n"), BODY_LENGTH, 0, true},
        {BYTES("GET http://a/b HTTP/1.1\r\nHost: other\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("GET HTTP://a.b:80 HTTP/1.1\r\nHost: a.b\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("GET / HTTP/1.1\r\nHost: a_b.%2F~-.c\r\nX: caf\xc3\xa9 \xff\ty\r\n\r\n"), BODY_NONE, 0, true},
        {BYTES("GET /{|}\"<>%zz HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~1aZ: v\r\n\r\n"), BODY_NONE, 0, true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        request_of(&lab, rows[i].bytes.at);
        if (lab.head.framing != rows[i].framing || lab.head.content_length != rows[i].length ||
            lab.head.keep_alive != rows[i].keep_alive) {
            fail_msg("framing %d, length %" PRIu64 ", keep-alive %d: %s", (int)lab.head.framing,
                     lab.head.content_length, lab.head.keep_alive, rows[i].bytes.at);
        }
        lab_drop(&lab);
    }
}

/* ---- refused heads ---- */

#define HOST "Host: a\r\n"

struct refusal {
    uint32_t status;
    struct becalm_text bytes;
};

static void check_refused(const struct refusal *row)
{
    struct lab lab;
    lab_request(&lab, row->bytes);
    if (lab.verdict.kind != H1_BAD || lab.verdict.status != row->status || lab.verdict.what == NULL) {
        fail_msg("%u (%s), expected %u: %s", lab.verdict.status, lab.verdict.what, row->status, row->bytes.at);
    }
    lab_drop(&lab);
}

static void check_all_refused(const struct refusal *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_refused(&rows[i]);
    }
}

static void test_h1_request__malformed_request_lines_are_refused(void **state)
{
    static const struct refusal rows[] = {
        {400, BYTES("GET /\r\n\r\n")}, /* HTTP/0.9 */
        {400, BYTES("GET / \r\n" HOST "\r\n")},
        {400, BYTES("GET\r\n" HOST "\r\n")},
        {400, BYTES("\r\n\r\n")},
        {400, BYTES("\n\n")},
        {400, BYTES(" GET / HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET  / HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /  HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/1.1 \r\n" HOST "\r\n")},
        {400, BYTES("GET / x HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET\t/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /\tHTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /a\tb HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /a\x01 HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /a\0b HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /a\x7f HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /a\rb HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("G(T / HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("G\0T / HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET / http/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/1\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/1.10\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/11.1\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/1,1\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/x.1\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTPS/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET / ICE/1.0\r\n" HOST "\r\n")},
        {400, BYTES("GET / RTSP/1.0\r\n" HOST "\r\n")},
        {505, BYTES("GET / HTTP/1.2\r\n" HOST "\r\n")},
        {505, BYTES("GET / HTTP/0.9\r\n" HOST "\r\n")},
        {505, BYTES("GET / HTTP/2.0\r\n" HOST "\r\n")},
        {505, BYTES("GET / HTTP/3.1\r\n" HOST "\r\n")},
        {505, BYTES("PRI * HTTP/2.0\r\n\r\n")},
        {400, BYTES("connect a:80 HTTP/1.1\r\n" HOST "\r\n")}, /* not CONNECT, and no path */
        {400, BYTES("options * HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("QUERY * HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GE(T / HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("G\xc3\x89T / HTTP/1.1\r\n" HOST "\r\n")},
    };
    (void)state;
    check_all_refused(rows, COUNT(rows));
}

static void test_h1_request__targets_that_are_none_are_refused(void **state)
{
    static const struct refusal rows[] = {
        {400, BYTES("GET a HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET ?a HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET * HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("OPTIONS ** HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET /a#b HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://a/#b HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET https://a/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http:/a HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http:// HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http:///a HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://a?b HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://user@a/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://user:secret@a/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://a:b/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://a:65536/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET http://[::1/ HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("GET a:80 HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT a HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT a: HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT :80 HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT /a HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT u@a:80 HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT http://a:80 HTTP/1.1\r\n" HOST "\r\n")},
        {400, BYTES("CONNECT a:80 HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n")},
        {400, BYTES("CONNECT a:80 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n")},
    };
    (void)state;
    check_all_refused(rows, COUNT(rows));
}

static void test_h1_request__ambiguous_hosts_are_refused(void **state)
{
    static const struct refusal rows[] = {
        {400, BYTES("GET / HTTP/1.1\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nX: y\r\n\r\n")},
        {400, BYTES("GET http://a/ HTTP/1.1\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhOsT: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost:\r\nHost: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: http://a\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a?b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a#b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a<b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a%2\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a%xx\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a:x\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: :80\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: [a]\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: ::1\r\n\r\n")},
    };
    (void)state;
    check_all_refused(rows, COUNT(rows));
}

static void test_h1_request__malformed_fields_are_refused(void **state)
{
    static const struct refusal rows[] = {
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n")}, /* obs-fold */
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X:\r\n b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\r\n \r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X:\r\n \r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\r\n \r\nY: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X:\r\n\t\r\nY: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n , x\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n X: y\r\n" HOST "\r\n")}, /* before the first field */
        {400, BYTES("GET / HTTP/1.1\r\n\tX: y\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST ": y\r\n\r\n")}, /* empty name */
        {400, BYTES("GET / HTTP/1.1\r\n: y\r\n" HOST "\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST ":\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X : y\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X\t: y\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X y: z\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X(: y\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X\0: y\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X\xc3\xa9: y\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n")}, /* control bytes */
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: \x1f\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\x0b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n")}, /* CR and LF alone */
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\r\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\rbY: c\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\rY: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "X: a\nY: b\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a\n\r\n")},
        {400, BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n")},
        {400, BYTES("GET / HTTP/1.1\nHost: a\n\n")},
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "\rX: y\r\n\r\n")}, /* CR LF CR X */
        {400, BYTES("GET / HTTP/1.1\r\n" HOST "\rX\r\n\r\n")},
    };
    (void)state;
    check_all_refused(rows, COUNT(rows));
}

#define PLACES 20 /* more than the parser looks at in one step, at every distance from one */

/* Puts each byte at each of twenty places, and compares the accepted bytes with the allowed ones. */
static void check_each_byte(const char *before, const char *behind, bool (*may)(unsigned char))
{
    size_t front = strlen(before);
    char bytes[128];
    for (unsigned c = 0; c < 256; c++) {
        for (size_t place = 0; place < PLACES; place++) {
            struct head head;
            size_t length = front + PLACES + strlen(behind);
            memcpy(bytes, before, front);
            memset(bytes + front, 'a', PLACES);
            bytes[front + place] = (char)c;
            memcpy(bytes + front + PLACES, behind, strlen(behind));
            struct becalm_text bare = bytes_bare((struct becalm_text){bytes, length});
            bool taken = memcmp(before, "HTTP", 4) == 0
                             ? h1_parse_answer(bare.at, length, &limits, false, false, &head).kind == H1_OK
                             : h1_parse_request(bare.at, length, &limits, &head).kind == H1_OK;
            if (taken != may((unsigned char)c)) {
                fail_msg("byte 0x%02x at %zu behind %s: %s", c, place, before, taken ? "taken" : "refused");
            }
            text_drop(bare);
        }
    }
}

static bool is_letter_or_digit(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool may_name(unsigned char c)
{
    return is_letter_or_digit(c) || (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool may_name_or_end_it(unsigned char c)
{
    return c == ':' || may_name(c);
}

static bool may_text(unsigned char c)
{
    return c == '\t' || (c >= ' ' && c != 0x7f);
}

static bool may_target(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '#';
}

static void test_h1__each_byte_is_taken_only_where_it_belongs(void **state)
{
    (void)state;
    check_each_byte("GET / HTTP/1.1\r\n" HOST "x", ": y\r\n\r\n", may_name_or_end_it);
    check_each_byte("GET / HTTP/1.1\r\n" HOST "X:", "\r\n\r\n", may_text);
    check_each_byte("GET / HTTP/1.1\r\n" HOST "X: ", "\r\nY: and another line\r\n\r\n", may_text);
    check_each_byte("GET /", " HTTP/1.1\r\n" HOST "\r\n", may_target);
    check_each_byte("HTTP/1.1 200 ", "\r\nX: y\r\n\r\n", may_text);
}

static void test_h1_request__any_token_is_a_method(void **state)
{
    static const char methods[] =
        " GET POST PUT HEAD DELETE PATCH OPTIONS TRACE PROPFIND M-SEARCH QUERY VERSION-CONTROL PRI"
        " BREW get Get GETS GE X x!#$%&'*+-.^_`|~09 ";
    (void)state;
    for (const char *at = methods + 1; *at != '\0'; at = strchr(at, ' ') + 1) {
        char bytes[64];
        struct lab lab;
        struct becalm_text method = {at, (size_t)(strchr(at, ' ') - at)};
        snprintf(bytes, sizeof bytes, "%.*s / HTTP/1.1\r\n" HOST "\r\n", (int)method.length, at);
        request_of(&lab, bytes);
        check_eq_u64(lab.head.method_length, method.length);
        check_true(memcmp(head_method(&lab.head).at, at, method.length) == 0);
        lab_drop(&lab);
    }
}

static void test_h1_request__ambiguous_framing_is_refused(void **state)
{
#define POST "POST / HTTP/1.1\r\n" HOST
    static const struct refusal rows[] = {
        {400, BYTES(POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1, 1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1,\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1 1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: +1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: -1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 0x1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1.0\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1e3\r\n\r\n")},
        {400, BYTES(POST "Content-Length: a\r\n\r\n")},
        {400, BYTES(POST "Content-Length:\r\n\r\n")},
        {400, BYTES(POST "Content-Length: \r\n\r\n")},
        {400, BYTES(POST "Content-Length: \"1\"\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 9223372036854775808\r\n\r\n")}, /* 2^63 */
        {400, BYTES(POST "Content-Length: 18446744073709551615\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 18446744073709551616\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 99999999999999999999999\r\n\r\n")},
        {400, BYTES(POST "Content-Length:\t1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: \t 1\r\n\r\n")},
        {400, BYTES(POST "Content-Length: 1 \t \r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding:\tchunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked\t\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunkedx\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked;q=1\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked, identity\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked,\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked, chunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: gzip,Chunked ,chunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: identity\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: gzip\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding:\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: \x0b"
                         "chunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n")},
        {400, BYTES(POST "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n")},
        {400, BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")},
        {501, BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n")},
        {501, BYTES(POST "Transfer-Encoding: gzip,chunked\r\n\r\n")},
    };
    (void)state;
    check_all_refused(rows, COUNT(rows));
}

/* The rules alone, with any fields. */
static void test_h1_settle__refuses_two_framings_by_itself(void **state)
{
    static const char length[] = "Content-Length: 1";
    static const struct field one = {.name_length = 14, .value = 16, .value_length = 1, .id = FIELD_CONTENT_LENGTH};
    struct head head = {
        .version = HTTP_1_1, .seen = UINT64_C(1) << FIELD_CONTENT_LENGTH, .field_count = 2, .field = {one, one}};
    (void)state;
    head.bytes = length;
    check_eq_u64(h1__settle_answer(&head, 0, H1__FRAMED).kind, H1_OK);
    check_eq_u64(h1__settle_answer(&head, UINT64_C(1) << FIELD_CONTENT_LENGTH, H1__FRAMED).kind, H1_BAD);

    static const char both[] = "Content-Length: 1\r\nTransfer-Encoding: chunked";
    head.field[1] =
        (struct field){.name = 19, .name_length = 17, .value = 38, .value_length = 7, .id = FIELD_TRANSFER_ENCODING};
    head.bytes = both;
    head.seen = UINT64_C(1) << FIELD_TRANSFER_ENCODING;
    check_eq_u64(h1__settle_answer(&head, 0, H1__FRAMED).kind, H1_OK);
    head.seen |= UINT64_C(1) << FIELD_CONTENT_LENGTH;
    check_eq_u64(h1__settle_answer(&head, 0, H1__FRAMED).kind, H1_BAD);
}

/* "GET /aaa HTTP/1.1 CRLF Host: a CRLF (X: y CRLF) * fields CRLF" */
static struct becalm_text big_request(size_t target, size_t fields)
{
    char *bytes = malloc(target + 64 + 6 * fields);
    assert_non_null(bytes);
    struct text_sink out = {.at = bytes, .size = target + 64 + 6 * fields};
    text_put_chars(&out, "GET /");
    for (size_t i = 0; i < target; i++) {
        text_put_chars(&out, "a");
    }
    text_put_chars(&out, " HTTP/1.1\r\nHost: a\r\n");
    for (size_t i = 0; i < fields; i++) {
        text_put_chars(&out, "X: y\r\n");
    }
    text_put_chars(&out, "\r\n");
    check_true(!out.full);
    return (struct becalm_text){bytes, out.length};
}

static void test_h1_request__the_last_field_that_fits_fits(void **state)
{
    struct lab lab;
    (void)state;
    struct becalm_text bytes = big_request(0, HEAD_REQUEST_FIELDS_MAX - 1);
    lab_request(&lab, bytes);
    check_eq_u64(lab.verdict.kind, H1_OK);
    check_eq_u64(lab.head.field_count, HEAD_REQUEST_FIELDS_MAX);
    lab_drop(&lab);
    text_drop(bytes);
    bytes = big_request(0, HEAD_REQUEST_FIELDS_MAX);
    check_refused(&(struct refusal){431, bytes});
    text_drop(bytes);
}

/* One byte more, and its length would be 0 in a field's 16 bits: a name of another length. */
static void test_h1_request__a_name_has_at_most_65535_bytes(void **state)
{
    static const struct h1_limits wide = {.head_bytes = 1 << 18};
    static const char before[] = "GET / HTTP/1.1\r\n" HOST;
    static const char behind[] = ": y\r\n\r\n";
    struct head head;
    (void)state;
    for (size_t name = UINT16_MAX; name <= UINT16_MAX + 5u; name++) {
        size_t length = sizeof before - 1 + name + sizeof behind - 1;
        char *bytes = malloc(length);
        assert_non_null(bytes);
        memcpy(bytes, before, sizeof before - 1);
        memset(bytes + sizeof before - 1, 'x', name);
        memcpy(bytes + sizeof before - 1 + name, behind, sizeof behind - 1);
        check_eq_u64(h1_parse_request(bytes, length, &wide, &head).status, name == UINT16_MAX ? 0 : 431);
        free(bytes);
    }
}

static void test_h1_request__large_heads_are_414_or_431(void **state)
{
    struct head head;
    (void)state;
    struct becalm_text bytes = big_request(1000, 10);
    struct h1_limits tight = {.head_bytes = (uint32_t)bytes.length};
    check_eq_u64(h1_parse_request(bytes.at, bytes.length, &tight, &head).kind, H1_OK);
    tight.head_bytes--;
    check_eq_u64(h1_parse_request(bytes.at, bytes.length, &tight, &head).status, 431);
    check_eq_u64(h1_parse_answer(bytes.at, bytes.length, &tight, false, false, &head).status, 502);
    tight.head_bytes = 1000;
    check_eq_u64(h1_parse_request(bytes.at, bytes.length, &tight, &head).status, 414);
    check_eq_u64(h1_too_large(bytes.at, 1000).status, 414);
    check_eq_u64(h1_too_large(bytes.at, 1016).status, 431);
    text_drop(bytes);
}

static void test_h1_request__a_length_that_is_no_head_is_refused(void **state)
{
    struct head head;
    const char *bytes = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    (void)state;
    for (size_t length = 0; length < strlen(bytes); length++) {
        struct becalm_text part = bytes_bare((struct becalm_text){bytes, length});
        check_eq_u64(h1_parse_request(part.at, length, &limits, &head).kind, H1_BAD);
        check_eq_u64(h1_parse_answer(part.at, length, &limits, false, false, &head).kind, H1_BAD);
        text_drop(part);
    }
}

/* ---- the meaning of fields ---- */

static void test_h1_name__every_name_is_found_in_any_case(void **state)
{
    static const char *const texts[] = {
#define NAME(id, name) [id] = name,
        FIELD_NAMES(NAME)
#undef NAME
    };
    (void)state;
    for (size_t id = 1; id < FIELD_COUNT; id++) {
        size_t length = strlen(texts[id]);
        struct becalm_text lower = text_bare(texts[id]);
        char *upper = (char *)(uintptr_t)text_bare(texts[id]).at;
        for (size_t i = 0; i < length; i++) {
            upper[i] = (char)(lower.at[i] >= 'a' && lower.at[i] <= 'z' ? lower.at[i] - 'a' + 'A' : lower.at[i]);
        }
        check_eq_u64(field_find(lower.at, length), id);
        check_eq_u64(field_find(upper, length), id);
        for (size_t i = 0; i < length; i++) { /* and one that differs by a letter is not */
            upper[i] ^= 1;
            check_true(field_find(upper, length) != id);
            upper[i] ^= 1;
        }
        text_drop(lower);
        free(upper);
    }
    check_eq_u64(field_find("", 0), FIELD_OTHER);
    check_eq_u64(field_find("x", 1), FIELD_OTHER);
}

static bool is_dropped(const struct lab *lab, const char *name)
{
    for (uint32_t i = 0; i < lab->head.field_count; i++) {
        struct becalm_text found = field_name(&lab->head, &lab->head.field[i]);
        if (found.length == strlen(name) && memcmp(found.at, name, found.length) == 0) {
            return lab->head.field[i].hop;
        }
    }
    fail_msg("no field %s", name);
    return false;
}

static void test_h1_connection__drops_what_it_names(void **state)
{
    struct lab lab;
    (void)state;
    request_of(&lab, "GET / HTTP/1.1\r\n" HOST "X-One: 1\r\nConnection: x-one , X-TWO\r\nX-Two: 2\r\nX-Three: 3\r\n"
                     "Keep-Alive: 5\r\nProxy-Connection: a\r\nProxy-Authorization: b\r\nHTTP2-Settings: c\r\n\r\n");
    check_true(is_dropped(&lab, "X-One") && is_dropped(&lab, "X-Two") && !is_dropped(&lab, "X-Three"));
    check_true(is_dropped(&lab, "Connection") && is_dropped(&lab, "Keep-Alive") &&
               is_dropped(&lab, "Proxy-Connection"));
    check_true(is_dropped(&lab, "Proxy-Authorization") && is_dropped(&lab, "HTTP2-Settings"));
    lab_drop(&lab);
}

static void test_h1_connection__never_drops_framing_routing_or_credentials(void **state)
{
    struct lab lab;
    (void)state;
    request_of(&lab,
               "POST / HTTP/1.1\r\n" HOST "Connection: host, content-length, transfer-encoding, trailer, cookie\r\n"
               "Connection: authorization, idempotency-key, via, expect, content-type, date\r\n"
               "Content-Length: 3\r\nTrailer: x\r\nCookie: a\r\nAuthorization: b\r\nIdempotency-Key: c\r\n"
               "Via: d\r\nExpect: 100-continue\r\nContent-Type: e\r\nDate: f\r\n\r\n");
    check_eq_u64(lab.head.framing, BODY_LENGTH);
    check_eq_u64(lab.head.content_length, 3);
    check_true(lab.head.expects_continue);
    for (uint32_t i = 0; i < lab.head.field_count; i++) {
        check_eq_u64(lab.head.field[i].hop, lab.head.field[i].id == FIELD_CONNECTION);
    }
    lab_drop(&lab);
}

static void test_h1_connection__that_names_too_much_is_refused(void **state)
{
    char bytes[512] = "GET / HTTP/1.1\r\n" HOST "Connection: close";
    (void)state;
    for (size_t i = 0; i < 32; i++) {
        strcat(bytes, ",x");
    }
    size_t length = strlen(bytes);
    struct lab lab;
    strcpy(bytes + length, "\r\n\r\n");
    request_of(&lab, bytes);
    lab_drop(&lab);
    strcpy(bytes + length, ",x\r\n\r\n");
    check_refused(&(struct refusal){400, text(bytes)});
}

static void test_h1_upgrade__wants_both_fields_and_exactly_websocket(void **state)
{
    static const struct {
        const char *fields;
        bool upgrades;
        bool websocket;
    } rows[] = {
        {"Connection: Upgrade\r\nUpgrade: websocket\r\n", true, true},
        {"Connection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\n", true, true},
        {"Connection: Upgrade\r\nUpgrade: h2c\r\n", true, false},
        {"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", true, false},
        {"Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n", true, false},
        {"Connection: Upgrade\r\nUpgrade: websocket/13\r\n", true, false},
        {"Connection: Upgrade\r\n", false, false},
        {"Upgrade: websocket\r\n", false, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        char bytes[256];
        snprintf(bytes, sizeof bytes, "GET / HTTP/1.1\r\n" HOST "%s\r\n", rows[i].fields);
        request_of(&lab, bytes);
        bool one = rows[i].websocket || strstr(rows[i].fields, "Upgrade: h2c\r\n") == rows[i].fields + 21 ||
                   strstr(rows[i].fields, "/13") != NULL;
        if (lab.head.upgrades != rows[i].upgrades || lab.head.websocket != rows[i].websocket ||
            lab.head.one_protocol != one) {
            fail_msg("%s", rows[i].fields);
        }
        lab_drop(&lab);
        snprintf(bytes, sizeof bytes, "GET / HTTP/1.0\r\n" HOST "%s\r\n", rows[i].fields);
        request_of(&lab, bytes);
        check_true(!lab.head.upgrades && !lab.head.websocket);
        lab_drop(&lab);
    }
}

static void test_h1_expect__is_heard_from_http_1_1_only(void **state)
{
    struct lab lab;
    (void)state;
    request_of(&lab, "PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n");
    check_true(lab.head.expects_continue);
    lab_drop(&lab);
    request_of(&lab, "PUT / HTTP/1.0\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    check_true(!lab.head.expects_continue);
    lab_drop(&lab);
    request_of(&lab, "PUT / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\nContent-Length: 1\r\n\r\n");
    check_true(!lab.head.expects_continue);
    lab_drop(&lab);
}

static void test_h1_authority__of_an_absolute_target_wins(void **state)
{
    static const struct {
        const char *bytes;
        const char *authority;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a:1\r\n\r\n", "a:1"},
        {"GET http://b:2/c HTTP/1.1\r\nHost: a:1\r\n\r\n", "b:2"},
        {"GET http://b HTTP/1.1\r\nHost:\r\n\r\n", "b"},
        {"CONNECT b:2 HTTP/1.1\r\nHost: a:1\r\n\r\n", "b:2"},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "a"},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", ""},
        {"GET / HTTP/1.0\r\n\r\n", NULL},
        {"GET http://b/ HTTP/1.0\r\n\r\n", "b"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        request_of(&lab, rows[i].bytes);
        check_text(h1_authority(&lab.head), rows[i].authority);
        lab_drop(&lab);
    }
}

static void test_h1_target__in_parts(void **state)
{
    static const struct {
        const char *target;
        bool connect;
        const char *authority;
        const char *path;
    } rows[] = {
        {"/", false, NULL, "/"},
        {"//a/b?c", false, NULL, "//a/b?c"},
        {"*", false, NULL, "*"},
        {"http://a", false, "a", "/"},
        {"http://a:80/b?c", false, "a:80", "/b?c"},
        {"hTTp://[::ffff:1.2.3.4]:80/", false, "[::ffff:1.2.3.4]:80", "/"},
        {"a:80", true, "a:80", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct h1_target target;
        struct becalm_text bare = text_bare(rows[i].target);
        check_true(h1_target_split(bare, rows[i].connect, &target));
        check_text(target.authority, rows[i].authority);
        check_text(target.path, rows[i].path);
        text_drop(bare);
    }
    struct h1_target target;
    check_true(!h1_target_split(text(""), false, &target));
    check_true(!h1_target_split(text(""), true, &target));
}

/* ---- answers ---- */

static void test_h1_answer__ends_where_its_status_and_fields_say(void **state)
{
    enum to { TO_GET, TO_HEAD, TO_CONNECT };
    static const struct {
        const char *bytes;
        enum to to;
        enum body_framing framing;
        uint64_t length;
        bool keep_alive;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_LENGTH, 5, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", TO_GET, BODY_OPEN, 0, true},
        {"HTTP/1.1 200 OK\r\n\r\n", TO_GET, BODY_UNTIL_CLOSE, 0, false},
        {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_LENGTH, 5, true},
        {"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_LENGTH, 5, true},
        {"HTTP/1.1 200 so \xc3\xa4 lala\t!\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_LENGTH, 5, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", TO_GET, BODY_LENGTH, 5, false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_LENGTH, 5, false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", TO_GET, BODY_LENGTH, 5, true},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", TO_GET, BODY_UNTIL_CLOSE, 0, false},
        {"HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", TO_GET, BODY_LENGTH, 0, true},
        {"HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n", TO_GET, BODY_LENGTH, 0, true},
        {"HTTP/1.1 999 Odd\r\n\r\n", TO_GET, BODY_UNTIL_CLOSE, 0, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_LENGTH, 5, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\ncontent-length:  5 \r\nContent-Length: 5\r\n\r\n", TO_GET,
         BODY_LENGTH, 5, true},
        {"HTTP/1.1 100 Continue\r\n\r\n", TO_GET, BODY_NONE, 0, true},
        {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n", TO_GET, BODY_NONE, 0, true},
        {"HTTP/1.1 204 No Content\r\n\r\n", TO_GET, BODY_NONE, 0, true},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", TO_GET, BODY_NONE, 0, true},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_NONE, 5, false},
        {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", TO_GET, BODY_NONE, 0, false},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", TO_GET, BODY_NONE, 5, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", TO_HEAD, BODY_NONE, 5, true},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", TO_HEAD, BODY_NONE, 0, true},
        {"HTTP/1.1 200 OK\r\n\r\n", TO_HEAD, BODY_NONE, 0, true},
        {"HTTP/1.1 200 OK\r\n\r\n", TO_CONNECT, BODY_NONE, 0, true},
        {"HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n", TO_CONNECT, BODY_LENGTH, 5, true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        lab_answer_to(&lab, text(rows[i].bytes), rows[i].to == TO_HEAD, rows[i].to == TO_CONNECT);
        if (lab.verdict.kind != H1_OK || lab.head.framing != rows[i].framing ||
            lab.head.content_length != rows[i].length || lab.head.keep_alive != rows[i].keep_alive) {
            fail_msg("row %zu: %s: %s", i, lab.verdict.what, rows[i].bytes);
        }
        lab_drop(&lab);
    }
}

static void test_h1_answer__passes_a_length_on_only_where_it_means_something(void **state)
{
    struct lab lab;
    (void)state;
    answer_of(&lab, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
    check_true(!is_dropped(&lab, "Content-Length"));
    lab_drop(&lab);
    answer_of(&lab, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n");
    check_true(is_dropped(&lab, "Content-Length"));
    lab_drop(&lab);
    lab_answer_to(&lab, text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), false, true);
    check_true(is_dropped(&lab, "Content-Length"));
    lab_drop(&lab);
}

static void test_h1_answer__keeps_its_phrase(void **state)
{
    static const struct {
        const char *line;
        const char *phrase;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", "OK"},
        {"HTTP/1.1 200 All is well\r\n\r\n", "All is well"},
        {"HTTP/1.1 200 \r\n\r\n", ""},
        {"HTTP/1.1 200\r\n\r\n", ""},
        {"HTTP/1.0 404  Pas trouv\xe9 \t\r\n\r\n", " Pas trouv\xe9 \t"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        answer_of(&lab, rows[i].line);
        check_text(head_phrase(&lab.head), rows[i].phrase);
        lab_drop(&lab);
    }
}

static void test_h1_answer__of_equal_lengths_one_is_passed_on(void **state)
{
    static const char *const rows[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\ncontent-length: 5\r\nContent-Length: 5\r\n\r\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        uint32_t passed = 0;
        answer_of(&lab, rows[i]);
        for (uint32_t field = 0; field < lab.head.field_count; field++) {
            passed += !lab.head.field[field].hop;
        }
        check_eq_u64(passed, 1);
        lab_drop(&lab);
    }
}

/* A host may have twice as many as a client. */
static void test_h1_answer__the_last_field_that_fits_fits(void **state)
{
    static char bytes[HEAD_FIELDS_MAX * 8 + 64];
    struct text_sink out = {.at = bytes, .size = sizeof bytes};
    struct head head;
    (void)state;
    text_put_chars(&out, "HTTP/1.1 200 OK\r\n");
    for (uint32_t i = 0; i < HEAD_FIELDS_MAX; i++) {
        text_put_chars(&out, "X: y\r\n");
    }
    text_put_chars(&out, "\r\n");
    check_eq_u64(h1_parse_answer(bytes, out.length, &limits, false, false, &head).kind, H1_OK);
    check_eq_u64(head.field_count, HEAD_FIELDS_MAX);
    out.length -= 2;
    text_put_chars(&out, "X: y\r\n\r\n");
    check_true(!out.full);
    check_eq_str(h1_parse_answer(bytes, out.length, &limits, false, false, &head).what, "there are too many fields");
}

static void test_h1_answer__ambiguous_ones_are_502(void **state)
{
#define OK "HTTP/1.1 200 OK\r\n"
    static const struct becalm_text rows[] = {
        BYTES("\r\n\r\n"),
        BYTES("SSH-2.0-OpenSSH\r\n\r\n"),
        BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        BYTES("HTTP/1.1 20\r\n\r\n"),
        BYTES("HTTP/1.1 2000 OK\r\n\r\n"),
        BYTES("HTTP/1.1 099 Low\r\n\r\n"),
        BYTES("HTTP/1.1 1000 High\r\n\r\n"),
        BYTES("HTTP/1.1 000 Low\r\n\r\n"),
        BYTES("\r\nHTTP/1.1 200 OK\r\n\r\n"), /* an empty line is left out before this is asked */
        BYTES("HTTP/1.1 2x0 OK\r\n\r\n"),
        BYTES("HTTP/1.1 -20 OK\r\n\r\n"),
        BYTES("HTTP/1.1  200 OK\r\n\r\n"),
        BYTES("HTTP/1.1\t200 OK\r\n\r\n"),
        BYTES("HTTP/1.1 200\tOK\r\n\r\n"),
        BYTES("HTTP/1.1 200OK\r\n\r\n"),
        BYTES(" HTTP/1.1 200 OK\r\n\r\n"),
        BYTES("HTTP/2.0 200 OK\r\n\r\n"),
        BYTES("HTTP/1.2 200 OK\r\n\r\n"),
        BYTES("HTTP/0.9 200 OK\r\n\r\n"),
        BYTES("http/1.1 200 OK\r\n\r\n"),
        BYTES("ICY 200 OK\r\n\r\n"),
        BYTES("HTTP/1.1 200 O\0K\r\n\r\n"),
        BYTES("HTTP/1.1 200 O\x01K\r\n\r\n"),
        BYTES("HTTP/1.1 200 O\rK\r\n\r\n"),
        BYTES("HTTP/1.1 200 OK\n\r\n"),
        BYTES("HTTP/1.1 200 OK\r\n\n"),
        BYTES("HTTP/1.1 200 OK\n\n"),
        BYTES(OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        BYTES(OK "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"),
        BYTES(OK "Content-Length: 1\r\nContent-Length: 01\r\n\r\n"),
        BYTES(OK "Content-Length: 1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        BYTES(OK "Content-Length: 1\r\nContent-Length:\t1\r\n\r\n"),
        BYTES(OK "Content-Length: 1\r\nContent-Length: \r\n\r\n"),
        BYTES(OK "Content-Length:\r\nContent-Length:\r\n\r\n"),
        BYTES(OK "Content-Length: x\r\nContent-Length: x\r\n\r\n"),
        BYTES(OK "Content-Length: 1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        BYTES(OK "Content-Length: 1, 1\r\n\r\n"),
        BYTES(OK "Content-Length: +1\r\n\r\n"),
        BYTES(OK "Content-Length: 99999999999999999999\r\n\r\n"),
        BYTES(OK "Transfer-Encoding: gzip\r\n\r\n"),
        BYTES(OK "Transfer-Encoding: gzip, chunked\r\n\r\n"),
        BYTES(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        BYTES("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        BYTES("HTTP/1.1 204 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        BYTES(OK "X: a\r\n b\r\nContent-Length: 1\r\n\r\n"),
        BYTES(OK " X: a\r\nContent-Length: 1\r\n\r\n"),
        BYTES(OK ": a\r\nContent-Length: 1\r\n\r\n"),
        BYTES(OK "X : a\r\nContent-Length: 1\r\n\r\n"),
        BYTES(OK "X: a\x01\r\nContent-Length: 1\r\n\r\n"),
        BYTES(OK "X: a\nContent-Length: 1\r\n\r\n"),
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lab lab;
        lab_answer_to(&lab, rows[i], false, false);
        if (lab.verdict.kind != H1_BAD || lab.verdict.status != 502 || lab.verdict.what == NULL) {
            fail_msg("%u %s: %s", lab.verdict.status, lab.verdict.what, rows[i].at);
        }
        lab_drop(&lab);
    }
}

/* ---- trailers ---- */

static struct h1_verdict trailers_of(struct becalm_text bytes, struct head *head)
{
    memset(head, 0xa5, sizeof *head);
    struct becalm_text bare = bytes_bare(bytes);
    struct h1_verdict verdict = h1_parse_trailers(bare.at, bare.length, head);
    text_drop(bare);
    head->bytes = bytes.at; /* the same, and they stay */
    return verdict;
}

static void test_h1_trailers__drop_what_must_not_come_behind_a_body(void **state)
{
    static const char bytes[] =
        "Grpc-Status: 0\r\nAuthorization: a\r\nX-Other: b\r\nServer-Timing: c\r\nCookie: d\r\nSet-Cookie: e\r\n"
        "X-Amz-Checksum-Crc32: e\r\nConnection: close\r\nTE: x\r\nUpgrade: x\r\nKeep-Alive: x\r\n"
        "Proxy-Authorization: x\r\nWWW-Authenticate: x\r\nX-API-Key: x\r\nForwarded: x\r\nX-Forwarded-Host: x\r\n"
        "Content-Type: x\r\nContent-Encoding: x\r\nIdempotency-Key: x\r\nX-Request-Deadline-Ms: 1\r\n"
        "X-Envoy-Overloaded: 1\r\nBecalm-Retry: spent\r\nVia: x\r\nExpect: x\r\nX-Sum: 9\r\n\r\n";
    struct head head;
    (void)state;
    check_eq_u64(trailers_of(text(bytes), &head).kind, H1_OK);
    check_eq_u64(head.field_count, 5);
    check_eq_u64(head.length, sizeof bytes - 1);
    check_text(head_find(&head, FIELD_GRPC_STATUS), "0");
    check_text(head_find(&head, FIELD_AUTHORIZATION), NULL);
    check_text(head_find_other(&head, text("x-sum")), "9");
    check_text(head_find_other(&head, text("set-cookie")), NULL);
    check_text(field_name(&head, &head.field[1]), "X-Other");
    check_text(field_name(&head, &head.field[2]), "Server-Timing");
    check_eq_u64(trailers_of(text("\r\n"), &head).kind, H1_OK);
    check_eq_u64(head.field_count, 0);
}

/* Bytes are read many at a time, and the last ones together with those before them. The result does not depend on the
 * lengths, nor on the place of a rare byte. */
static void test_h1_trailers__names_and_values_of_any_length_at_any_place(void **state)
{
    (void)state;
    for (int name = 1; name <= 40; name++) {
        for (int value = 0; value <= 40; value++) {
            char bytes[128];
            char names[41];
            char values[41];
            struct head head;
            memset(names, 'n', sizeof names);
            memset(values, 'v', sizeof values);
            names[value % name] = '.';                  /* a name's, but seldom */
            values[value / 2] = value > 2 ? '\t' : 'v'; /* the same of a value, if it is not at an end of it */
            snprintf(bytes, sizeof bytes, "%.*s: %.*s\r\n\r\n", name, names, value, values);
            check_eq_u64(trailers_of(text(bytes), &head).kind, H1_OK);
            check_eq_u64(head.field_count, 1);
            names[name] = values[value] = '\0';
            check_text(field_name(&head, &head.field[0]), names);
            check_text(field_value(&head, &head.field[0]), values);
            bytes[name / 2] = ' ';
            check_eq_u64(trailers_of(text(bytes), &head).kind, H1_BAD);
            bytes[name / 2] = 'n';
            bytes[name + 2 + value / 2] = '\x7f';
            check_eq_u64(trailers_of(text(bytes), &head).kind, H1_BAD);
        }
    }
}

static void test_h1_trailers__those_of_grpc_are_kept_but_for_one_connections_and_ours(void **state)
{
    static const char bytes[] = "grpc-status: 0\r\nset-cookie: a\r\nauthorization: b\r\nx-a: 1\r\nx-a: 2\r\n"
                                "becalm-retry: spent\r\nconnection: x-a\r\nbecalm-explain: c\r\n\r\n";
    struct head head;
    (void)state;
    check_eq_u64(h1_parse_metadata(bytes, sizeof bytes - 1, &head).kind, H1_OK);
    check_eq_u64(head.field_count, 5);
    check_text(head_find(&head, FIELD_GRPC_STATUS), "0");
    check_text(field_value(&head, &head.field[4]), "2");
    check_true(!head_has(&head, FIELD_BECALM_RETRY));
    check_eq_u64(h1_parse_metadata("content-length: 5\r\n\r\n", 21, &head).kind, H1_BAD);
}

static void test_h1_trailers__framing_and_malformed_ones_are_refused(void **state)
{
    static const struct becalm_text rows[] = {
        BYTES("Content-Length: 1\r\n\r\n"),
        BYTES("Transfer-Encoding: chunked\r\n\r\n"),
        BYTES("Trailer: a\r\n\r\n"),
        BYTES("Host: a\r\n\r\n"),
        BYTES("Etag: a\r\nhost: a\r\n\r\n"),
        BYTES("Etag: a\r\n b\r\n\r\n"),
        BYTES(" Etag: a\r\n\r\n"),
        BYTES("Etag : a\r\n\r\n"),
        BYTES(": a\r\n\r\n"),
        BYTES("Etag\r\n\r\n"),
        BYTES("Etag: \x01\r\n\r\n"),
        BYTES("Etag: a\nB: c\r\n\r\n"),
        BYTES("Etag: a\r\n"),
        BYTES("Etag: a\r\n\r\n\r\n"),
        BYTES("\n"),
        BYTES(""),
    };
    struct head head;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct h1_verdict verdict = trailers_of(rows[i], &head);
        if (verdict.kind != H1_BAD || verdict.status != 400) {
            fail_msg("%s", rows[i].at);
        }
    }
}

/* ---- where heads begin and end ---- */

static void test_h1_head_end__is_the_first_empty_line(void **state)
{
    static const struct {
        const char *bytes;
        size_t end;
    } rows[] = {
        {"", 0},           {"a", 0},           {"a\r\n", 0},       {"a\r\n\r", 0},     {"a\r\n\r\n", 5},
        {"a\r\n\r\nb", 5}, {"a\n\nb", 3},      {"a\r\n\nb", 4},    {"a\n\r\nb", 4},    {"\r\n\r\n", 4},
        {"\n\n", 2},       {"a\r\r\n\r\n", 6}, {"a\r\n\r\r\n", 0}, {"a\nb\nc\n\n", 7}, {"a\r\rb\r\r", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_text bare = text_bare(rows[i].bytes);
        check_eq_u64(head_end(bare), rows[i].end);
        text_drop(bare);
    }
}

/* One byte after the other: a line feed, and behind it another one, with or without a CR before it. */
static size_t head_end_slowly(struct becalm_text bytes)
{
    for (size_t at = 0; at + 1 < bytes.length; at++) {
        size_t next = at + 1 + (bytes.at[at + 1] == '\r');
        if (bytes.at[at] == '\n' && next < bytes.length && bytes.at[next] == '\n') {
            return next + 1;
        }
    }
    return 0;
}

static void test_h1_head_end__is_the_same_at_every_place_of_a_long_head(void **state)
{
    static const char few[] = "\n\r\t abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    uint64_t seed = 7;
    (void)state;
    for (uint32_t turn = 0; turn < 20000; turn++) {
        char text[80];
        size_t length = becalm_rand_below(becalm_rand_next(&seed), 70);
        for (size_t i = 0; i < length; i++) {
            uint32_t range = turn % 3 == 0 ? 4 : (uint32_t)sizeof few - 1;
            text[i] = few[becalm_rand_below(becalm_rand_next(&seed), range)];
        }
        memcpy(text + length, "\r\n\r\n", turn % 2 == 0 ? 4 : 0);
        text[length + (turn % 2 == 0 ? 4 : 0)] = '\0';
        struct becalm_text bare = text_bare(text);
        check_eq_u64(head_end(bare), head_end_slowly(bare));
        text_drop(bare);
    }
}

static void test_h1_leading_blank__two_empty_lines_at_most(void **state)
{
    static const struct {
        const char *bytes;
        size_t blank;
    } rows[] = {
        {"", 0},        {"\r", 0},          {"\n", 0},     {"\r\n", 2},    {"\r\n\r", 2},
        {"\r\nGET", 2}, {"\r\n\r\nGET", 4}, {"\r\n\n", 2}, {"GET\r\n", 0}, {"\r\n\r\n\r\n", 4},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_text bare = text_bare(rows[i].bytes);
        check_eq_u64(h1_leading_blank(bare.at, bare.length), rows[i].blank);
        text_drop(bare);
    }
}

BECALM_TESTS(cmocka_unit_test(test_h1_request__a_plain_request_in_its_parts),
             cmocka_unit_test(test_h1_request__odd_but_clear_ones_are_taken),
             cmocka_unit_test(test_h1_request__malformed_request_lines_are_refused),
             cmocka_unit_test(test_h1_request__targets_that_are_none_are_refused),
             cmocka_unit_test(test_h1_request__ambiguous_hosts_are_refused),
             cmocka_unit_test(test_h1_request__malformed_fields_are_refused),
             cmocka_unit_test(test_h1__each_byte_is_taken_only_where_it_belongs),
             cmocka_unit_test(test_h1_request__any_token_is_a_method),
             cmocka_unit_test(test_h1_request__ambiguous_framing_is_refused),
             cmocka_unit_test(test_h1_settle__refuses_two_framings_by_itself),
             cmocka_unit_test(test_h1_request__the_last_field_that_fits_fits),
             cmocka_unit_test(test_h1_request__a_name_has_at_most_65535_bytes),
             cmocka_unit_test(test_h1_request__large_heads_are_414_or_431),
             cmocka_unit_test(test_h1_request__a_length_that_is_no_head_is_refused),
             cmocka_unit_test(test_h1_name__every_name_is_found_in_any_case),
             cmocka_unit_test(test_h1_connection__drops_what_it_names),
             cmocka_unit_test(test_h1_connection__never_drops_framing_routing_or_credentials),
             cmocka_unit_test(test_h1_connection__that_names_too_much_is_refused),
             cmocka_unit_test(test_h1_upgrade__wants_both_fields_and_exactly_websocket),
             cmocka_unit_test(test_h1_expect__is_heard_from_http_1_1_only),
             cmocka_unit_test(test_h1_authority__of_an_absolute_target_wins),
             cmocka_unit_test(test_h1_target__in_parts),
             cmocka_unit_test(test_h1_answer__ends_where_its_status_and_fields_say),
             cmocka_unit_test(test_h1_answer__passes_a_length_on_only_where_it_means_something),
             cmocka_unit_test(test_h1_answer__keeps_its_phrase),
             cmocka_unit_test(test_h1_answer__of_equal_lengths_one_is_passed_on),
             cmocka_unit_test(test_h1_answer__the_last_field_that_fits_fits),
             cmocka_unit_test(test_h1_answer__ambiguous_ones_are_502),
             cmocka_unit_test(test_h1_trailers__drop_what_must_not_come_behind_a_body),
             cmocka_unit_test(test_h1_trailers__names_and_values_of_any_length_at_any_place),
             cmocka_unit_test(test_h1_trailers__those_of_grpc_are_kept_but_for_one_connections_and_ours),
             cmocka_unit_test(test_h1_trailers__framing_and_malformed_ones_are_refused),
             cmocka_unit_test(test_h1_head_end__is_the_first_empty_line),
             cmocka_unit_test(test_h1_head_end__is_the_same_at_every_place_of_a_long_head),
             cmocka_unit_test(test_h1_leading_blank__two_empty_lines_at_most))
