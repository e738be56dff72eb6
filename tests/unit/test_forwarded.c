/* SPDX-License-Identifier: MIT */
/* The header fields that tell hosts about the client, and ids of requests that came without one. */
#include "h1_lab.h"
#include "origin/forwarded.h"
#include "origin/request_id.h"

#include <becalm/rand.h>

#include <arpa/inet.h>

static char room[4096];
static char values[2048];

static struct origin_ip ip_of(const char *text)
{
    union address_socket socket = {0};
    struct origin_ip ip;
    if (inet_pton(AF_INET, text, &socket.v4.sin_addr) == 1) {
        socket.v4.sin_family = AF_INET;
    } else if (inet_pton(AF_INET6, text, &socket.v6.sin6_addr) == 1) {
        socket.v6.sin6_family = AF_INET6;
    } else {
        socket.local.sun_family = AF_UNIX;
    }
    origin_ip_set(&ip, &socket);
    return ip;
}

static struct forwarded_kept kept; /* shared by all tests, and cleared by each */

/* One request, as it goes to a host. */
struct asked {
    struct origin origin;
    enum becalm_forwarded which;
    const char *authority;
    const char *said; /* in the client's head */
};

static void write_to(char *to, size_t size, const struct asked *asked, bool by_kept)
{
    struct lab lab;
    char text[1024];
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n", asked->authority, asked->said);
    request_of(&lab, text);
    struct draft draft;
    draft_begin(&draft, values, sizeof values);
    draft.method = head_method(&lab.head);
    draft.path = head_target(&lab.head);
    draft.authority = head_find(&lab.head, FIELD_HOST);
    draft.passed = &lab.head;
    draft.skip = FIELD_BIT(FIELD_HOST);
    if (by_kept) {
        forwarded_add_kept(&draft, &kept, &asked->origin, asked->which, draft.authority);
    } else {
        forwarded_add(&draft, &asked->origin, asked->which, draft.authority);
    }
    struct text_sink out = {.at = to, .size = size - 1};
    h1_put_request(&out, &draft);
    check_true(!out.full);
    to[out.length] = '\0';
    lab_drop(&lab);
}

/* Lines that are kept are those that would be written, when they are made and when they are found. */
static void check_kept(const struct asked *asked)
{
    static char again[sizeof room];
    write_to(room, sizeof room, asked, false);
    for (unsigned i = 0; i < 2; i++) {
        write_to(again, sizeof again, asked, true);
        check_eq_str(again, room);
    }
}

/* The head for a host behind its first two lines, with `said` in the client's head. */
static const char *told(const char *ip, bool tls, bool trusted, enum becalm_forwarded which, const char *said)
{
    struct asked asked = {{.ip = ip_of(ip), .tls = tls, .trusted = trusted}, which, "shop.test:80", said};
    check_kept(&asked);
    return strstr(room, "shop.test:80\r\n") + strlen("shop.test:80\r\n");
}

static void test_forwarded__all_four_fields_say_who_asked(void **state)
{
    (void)state;
    check_eq_str(told("192.0.2.1", false, false, BECALM_FORWARDED_ALL, ""),
                 "x-forwarded-for: 192.0.2.1\r\nx-forwarded-proto: http\r\nx-forwarded-host: shop.test:80\r\n"
                 "forwarded: for=192.0.2.1;host=\"shop.test:80\";proto=http\r\n\r\n");
}

static void test_forwarded__addresses_are_written_as_rfc_7239_wants_them(void **state)
{
    (void)state;
    static const struct {
        const char *ip;
        const char *expected;
    } rows[] = {
        {"0.0.0.0", "for=0.0.0.0;"},
        {"9.10.99.100", "for=9.10.99.100;"},
        {"255.199.200.1", "for=255.199.200.1;"},
        {"2001:db8::17", "for=\"[2001:db8::17]\";"},
        {"::1", "for=\"[::1]\";"},
        {"::ffff:10.0.0.1", "for=10.0.0.1;"},
        {"::fffe:10.0.0.1", "for=\"[::fffe:a00:1]\";"},
        {"unix", "for=unknown;"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = told(rows[i].ip, true, false, BECALM_FORWARDED_STANDARD, "");
        check_true(strstr(text, rows[i].expected) != NULL);
        check_true(strstr(text, ";proto=https\r\n") != NULL && strstr(text, "x-forwarded") == NULL);
    }
}

static void test_forwarded__a_unix_sockets_peer_has_no_x_forwarded_for(void **state)
{
    (void)state;
    check_eq_str(told("unix", true, false, BECALM_FORWARDED_X, ""),
                 "x-forwarded-proto: https\r\nx-forwarded-host: shop.test:80\r\n\r\n");
    check_eq_str(told("unix", false, true, BECALM_FORWARDED_X, "X-Forwarded-For: 192.0.2.7\r\n"),
                 "x-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: http\r\nx-forwarded-host: shop.test:80\r\n\r\n");
}

#define SAID                                                                                                 \
    "X-Forwarded-For: 192.0.2.7\r\nX-A: 1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n" \
    "Forwarded: for=192.0.2.7\r\nX-Forwarded-For: 192.0.2.8, 192.0.2.9\r\nForwarded: for=192.0.2.9;proto=https\r\n"

static void test_forwarded__what_a_trusted_peer_says_stays_and_the_peer_is_added(void **state)
{
    (void)state;
    check_eq_str(told("10.0.0.1", false, true, BECALM_FORWARDED_ALL, SAID),
                 "X-A: 1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n"
                 "x-forwarded-for: 192.0.2.7, 192.0.2.8, 192.0.2.9, 10.0.0.1\r\n"
                 "forwarded: for=192.0.2.7, for=192.0.2.9;proto=https, for=10.0.0.1;host=\"shop.test:80\";proto=http"
                 "\r\n\r\n");
}

static void test_forwarded__what_anybody_else_says_is_left_out(void **state)
{
    (void)state;
    check_eq_str(told("10.0.0.1", false, false, BECALM_FORWARDED_X, SAID),
                 "X-A: 1\r\nx-forwarded-for: 10.0.0.1\r\nx-forwarded-proto: http\r\n"
                 "x-forwarded-host: shop.test:80\r\n\r\n");
    check_eq_str(told("10.0.0.1", false, false, BECALM_FORWARDED_OFF, SAID), "X-A: 1\r\n\r\n");
}

static void test_forwarded__off_passes_what_a_trusted_peer_says(void **state)
{
    (void)state;
    check_eq_str(told("10.0.0.1", false, true, BECALM_FORWARDED_OFF, SAID), SAID "\r\n");
}

static void test_forwarded__what_is_for_one_connection_only_is_not_added_to(void **state)
{
    (void)state;
    check_eq_str(told("10.0.0.1", false, true, BECALM_FORWARDED_X,
                      "Connection: x-forwarded-for\r\nX-Forwarded-For: 192.0.2.7\r\n"),
                 "x-forwarded-for: 10.0.0.1\r\nx-forwarded-proto: http\r\nx-forwarded-host: shop.test:80\r\n\r\n");
}

/* Many share a place there, in turn: each is told of as itself. */
static void test_forwarded__what_is_kept_is_no_other_clients(void **state)
{
    (void)state;
    static const char *const authorities[] = {"a",
                                              "b",
                                              "shop.test",
                                              "shop.text",
                                              "0123456789012345678901234567890123456789012345678901234567890123",
                                              "01234567890123456789012345678901234567890123456789012345678901234"};
    static const enum becalm_forwarded which[] = {BECALM_FORWARDED_ALL, BECALM_FORWARDED_X, BECALM_FORWARDED_STANDARD,
                                                  BECALM_FORWARDED_OFF};
    uint64_t seed = 1;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t bits = becalm_rand_next(&seed);
        struct asked asked = {.which = which[bits >> 40 & 3], .authority = authorities[(bits >> 32) % 6], .said = ""};
        asked.origin.tls = bits >> 50 & 1;
        asked.origin.trusted = bits >> 51 & 1;
        asked.origin.ip = ip_of("192.0.2.1");
        if (bits >> 52 & 1) {
            asked.origin.ip = ip_of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"); /* the longest */
        }
        asked.origin.ip.bytes[bits & 15] ^= bits >> 53 & 1;
        asked.origin.ip.bytes[15] = (unsigned char)(bits >> 16 & 7);
        check_kept(&asked);
    }
}

static void test_forwarded__values_that_do_not_fit_are_told(void **state)
{
    (void)state;
    static struct head head;
    struct draft draft;
    struct origin origin = {.ip = ip_of("192.0.2.1")};
    draft_begin(&draft, values, 16);
    draft.passed = &head;
    forwarded_add(&draft, &origin, BECALM_FORWARDED_ALL, (struct becalm_text){"a", 1});
    check_true(draft.values.full && draft.count == 0);
}

static void test_request_id__has_the_gateways_digits_and_drawn_ones(void **state)
{
    (void)state;
    char one[REQUEST_ID_LENGTH];
    char other[REQUEST_ID_LENGTH];
    uint64_t draws = 1;
    for (int i = 0; i < 1000; i++) {
        uint64_t draw = draws;
        char expected[REQUEST_ID_LENGTH + 1];
        snprintf(expected, sizeof expected, "0123456789abcdef%016llx", (unsigned long long)becalm_rand_next(&draw));
        request_id_make(one, "0123456789abcdef", &draws);
        assert_memory_equal(one, expected, sizeof one);
        check_eq_u64(draws, draw);
    }
    request_id_make(other, "0123456789abcdef", &draws);
    check_true(memcmp(one, other, sizeof one) != 0);
}

BECALM_TESTS(cmocka_unit_test(test_forwarded__all_four_fields_say_who_asked),
             cmocka_unit_test(test_forwarded__addresses_are_written_as_rfc_7239_wants_them),
             cmocka_unit_test(test_forwarded__a_unix_sockets_peer_has_no_x_forwarded_for),
             cmocka_unit_test(test_forwarded__what_a_trusted_peer_says_stays_and_the_peer_is_added),
             cmocka_unit_test(test_forwarded__what_anybody_else_says_is_left_out),
             cmocka_unit_test(test_forwarded__off_passes_what_a_trusted_peer_says),
             cmocka_unit_test(test_forwarded__what_is_for_one_connection_only_is_not_added_to),
             cmocka_unit_test(test_forwarded__what_is_kept_is_no_other_clients),
             cmocka_unit_test(test_forwarded__values_that_do_not_fit_are_told),
             cmocka_unit_test(test_request_id__has_the_gateways_digits_and_drawn_ones))
