/* SPDX-License-Identifier: MIT */
#include "policy/value.h"

#include "check.h"

#include <becalm/rand.h>

/* Each check leaves the output alone where the text is refused. */
#define UNTOUCHED UINT64_C(77777)

static uint64_t duration(const char *text)
{
    becalm_ns out = UNTOUCHED;
    return value_duration(text, &out) ? out : UNTOUCHED;
}

static void test_duration__of_nothing_is_refused_and_zero_needs_no_unit(void **state)
{
    (void)state;
    check_eq_u64(duration(""), UNTOUCHED);
    check_eq_u64(duration("0"), 0);
    check_eq_u64(duration("0s"), 0);
    check_eq_u64(duration("0.0ms"), 0);
}

static void test_duration__has_units_from_nanoseconds_to_hours(void **state)
{
    (void)state;
    check_eq_u64(duration("10ns"), 10);
    check_eq_u64(duration("250us"), 250 * BECALM_US);
    check_eq_u64(duration("100ms"), 100 * BECALM_MS);
    check_eq_u64(duration("1s"), BECALM_S);
    check_eq_u64(duration("2m"), 120 * BECALM_S);
    check_eq_u64(duration("1h"), 3600 * BECALM_S);
    check_eq_u64(duration("24h"), 86400 * BECALM_S);
}

static void test_duration__fractions_are_exact_or_refused(void **state)
{
    (void)state;
    check_eq_u64(duration("1.5s"), 1500 * BECALM_MS);
    check_eq_u64(duration("1.50s"), 1500 * BECALM_MS);
    check_eq_u64(duration("0.1ms"), 100 * BECALM_US);
    check_eq_u64(duration("0.000000001s"), 1);
    check_eq_u64(duration("0.5m"), 30 * BECALM_S);
    check_eq_u64(duration("0.000000000000"
                          "5h"),
                 UNTOUCHED); /* 1.8 ns */
    check_eq_u64(duration("0.00000000001h"), 36);
    check_eq_u64(duration("0.0000000001s"), UNTOUCHED);
    check_eq_u64(duration("0.5ns"), UNTOUCHED);
    check_eq_u64(duration("1.0ns"), 1);
    check_eq_u64(duration("0.00000000000000000001s"), UNTOUCHED);
    check_eq_u64(duration("1.00000000000000000000000000s"), BECALM_S);
}

static void test_duration__never_guesses_a_unit(void **state)
{
    (void)state;
    static const char *const wrong[] = {"100",    "1.5", "ms",  "1 s",  " 1s",        "1s ",  "-1s",
                                        "+1s",    "1.s", ".5s", "1S",   "1sec",       "1d",   "1e3ms",
                                        "0x10ms", "01s", "00s", "1,5s", "1s2",        "1s1s", "1s1m",
                                        "1.5.5",  "inf", "nan", "none", "1\xc2\xb5s", "1min"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (duration(wrong[i]) != UNTOUCHED) {
            fail_msg("accepted %s", wrong[i]);
        }
    }
}

static void test_duration__parts_go_down_in_unit(void **state)
{
    (void)state;
    check_eq_u64(duration("1h30m"), 5400 * BECALM_S);
    check_eq_u64(duration("1m30.5s"), 90500 * BECALM_MS);
    check_eq_u64(duration("1h0m1.5s"), 3601500 * BECALM_MS);
    check_eq_u64(duration("30m1h"), UNTOUCHED);
}

static void test_duration__ends_at_ten_years(void **state)
{
    (void)state;
    check_eq_u64(duration("87600h"), 87600 * 3600 * BECALM_S);
    check_eq_u64(duration("87600.1h"), UNTOUCHED);
    check_eq_u64(duration("87600h1ns"), UNTOUCHED);
    check_eq_u64(duration("18446744073709551615ns"), UNTOUCHED);
    check_eq_u64(duration("18446744073709551616ns"), UNTOUCHED);
    check_eq_u64(duration("5124095576030431h"), UNTOUCHED); /* 2^64 ns and a bit */
    check_eq_u64(duration("99999999999999999999999999999999s"), UNTOUCHED);
}

static uint64_t percent(const char *text)
{
    uint32_t out = (uint32_t)UNTOUCHED;
    return value_percent(text, &out) ? out : UNTOUCHED;
}

static void test_percent__becomes_parts_per_million(void **state)
{
    (void)state;
    check_eq_u64(percent(""), UNTOUCHED);
    check_eq_u64(percent("0"), 0);
    check_eq_u64(percent("10"), 100000);
    check_eq_u64(percent("10%"), 100000);
    check_eq_u64(percent("10.5"), 105000);
    check_eq_u64(percent("0.0001%"), 1);
    check_eq_u64(percent("100"), 1000000);
    check_eq_u64(percent("100.0001"), UNTOUCHED);
    check_eq_u64(percent("0.00001"), UNTOUCHED);
    check_eq_u64(percent("-1"), UNTOUCHED);
    check_eq_u64(percent("10 %"), UNTOUCHED);
    check_eq_u64(percent("%"), UNTOUCHED);
    check_eq_u64(percent("10%%"), UNTOUCHED);
    check_eq_u64(percent("429497"), UNTOUCHED); /* 2^32 ppm and a bit */
}

static uint64_t size(const char *text)
{
    uint64_t out = UNTOUCHED;
    return value_size(text, &out) ? out : UNTOUCHED;
}

static void test_size__knows_thousands_from_1024s(void **state)
{
    (void)state;
    check_eq_u64(size(""), UNTOUCHED);
    check_eq_u64(size("0"), 0);
    check_eq_u64(size("100"), 100);
    check_eq_u64(size("100B"), 100);
    check_eq_u64(size("64KiB"), 65536);
    check_eq_u64(size("1MiB"), 1048576);
    check_eq_u64(size("2GiB"), UINT64_C(2147483648));
    check_eq_u64(size("10kB"), 10000);
    check_eq_u64(size("1.5MiB"), 1572864);
    check_eq_u64(size("0.5B"), UNTOUCHED);
    check_eq_u64(size("10KB"), UNTOUCHED);
    check_eq_u64(size("10K"), UNTOUCHED);
    check_eq_u64(size("10 kB"), UNTOUCHED);
    check_eq_u64(size("9223372036854775807"), INT64_MAX);
    check_eq_u64(size("9223372036854775808"), UNTOUCHED);
    check_eq_u64(size("18446744073709551615"), UNTOUCHED);
    check_eq_u64(size("16777216TiB"), UNTOUCHED);
}

static uint64_t integer(const char *text)
{
    uint64_t out = UNTOUCHED;
    return value_integer(text, &out) ? out : UNTOUCHED;
}

static void test_integer__is_digits_and_nothing_else(void **state)
{
    (void)state;
    check_eq_u64(integer(""), UNTOUCHED);
    check_eq_u64(integer("0"), 0);
    check_eq_u64(integer("3"), 3);
    check_eq_u64(integer("18446744073709551615"), UINT64_MAX);
    check_eq_u64(integer("18446744073709551616"), UNTOUCHED);
    check_eq_u64(integer("010"), UNTOUCHED);
    check_eq_u64(integer("1.0"), UNTOUCHED);
    check_eq_u64(integer("-1"), UNTOUCHED);
    check_eq_u64(integer("+1"), UNTOUCHED);
    check_eq_u64(integer("0x10"), UNTOUCHED);
    check_eq_u64(integer("1_000"), UNTOUCHED);
    check_eq_u64(integer("3 "), UNTOUCHED);
    check_eq_u64(integer("three"), UNTOUCHED);
}

static uint64_t decimal(const char *text, uint32_t scale)
{
    uint64_t out = UNTOUCHED;
    return value_decimal(text, scale, &out) ? out : UNTOUCHED;
}

static void test_decimal__is_exact_at_its_scale_or_refused(void **state)
{
    (void)state;
    check_eq_u64(decimal("", 1000), UNTOUCHED);
    check_eq_u64(decimal("2.0", 1000000), 2000000);
    check_eq_u64(decimal("2", 1000000), 2000000);
    check_eq_u64(decimal("0.1", 1000), 100);
    check_eq_u64(decimal("0.5", 2), 1);
    check_eq_u64(decimal("0.25", 2), UNTOUCHED);
    check_eq_u64(decimal("0.0001", 1000), UNTOUCHED);
    check_eq_u64(decimal("2.0x", 1000), UNTOUCHED);
    check_eq_u64(decimal("18446744073709551.615", 1000), UINT64_MAX);
    check_eq_u64(decimal("18446744073709551.616", 1000), UNTOUCHED);
    check_eq_u64(decimal("0.9999999999999999999", 1), UNTOUCHED);
}

static void test_boolean__has_six_words(void **state)
{
    (void)state;
    bool out = false;
    check_true(value_boolean("true", &out) && out);
    check_true(value_boolean("off", &out) && !out);
    check_true(value_boolean("on", &out) && out);
    check_true(value_boolean("no", &out) && !out);
    check_true(value_boolean("Yes", &out) && out);
    check_true(value_boolean("FALSE", &out) && !out);
    static const char *const wrong[] = {"", "1", "0", "y", "n", "truee", "tru", "enabled", "~", "null"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(!value_boolean(wrong[i], &out));
    }
}

static uint64_t rate(const char *text)
{
    uint64_t out = UNTOUCHED;
    return value_rate(text, &out) ? out : UNTOUCHED;
}

static void test_rate__is_thousandths_per_second(void **state)
{
    (void)state;
    check_eq_u64(rate(""), UNTOUCHED);
    check_eq_u64(rate("0/s"), 0);
    check_eq_u64(rate("200/s"), 200000);
    check_eq_u64(rate("12000/m"), 200000);
    check_eq_u64(rate("0.5/s"), 500);
    check_eq_u64(rate("100/m"), 1667);
    check_eq_u64(rate("3600/h"), 1000);
    check_eq_u64(rate("1/h"), UNTOUCHED); /* would be none at all */
    check_eq_u64(rate("2/h"), 1);
    check_eq_u64(rate("200"), UNTOUCHED);
    check_eq_u64(rate("200/"), UNTOUCHED);
    check_eq_u64(rate("200/d"), UNTOUCHED);
    check_eq_u64(rate("200 /s"), UNTOUCHED);
    check_eq_u64(rate("0.0001/s"), UNTOUCHED);
    check_eq_u64(rate("1000000000/s"), UINT64_C(1000000000000));
    check_eq_u64(rate("1000000001/s"), UNTOUCHED);
}

static void test_address__is_a_host_and_a_port_or_a_unix_path(void **state)
{
    (void)state;
    static const char *const right[] = {
        "127.0.0.1:8080", "localhost:80",    "payment-service:80",    "a.b_c.example.:443",
        "[::1]:80",       "[2001:db8::1]:0", "unix:/run/becalm.sock", "unix:80",
        "10.example:1",   "1.2.3.4x:1"};
    static const char *const wrong[] = {
        "",        "localhost",  ":80",          "localhost:", "localhost:65536", "::1:80",      "[::1]",
        "[::1]80", "[::g]:80",   "256.0.0.1:80", "1.2.3:80",   "80:80",           "-a:80",       "a-:80",
        "a..b:80", ".a:80",      "a b:80",       "a:80 ",      "a:080",           "unix:",       "unix:path",
        "unix:/",  "unix:/a\nb", "http://a:80",  "a:80/path",  "[127.0.0.1]:80",  "1.2.3.4.:80", "\xc3\xa9:80"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        if (!value_address(right[i])) {
            fail_msg("refused %s", right[i]);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (value_address(wrong[i])) {
            fail_msg("accepted %s", wrong[i]);
        }
    }
}

static void test_address__has_the_lengths_of_dns_and_of_sockets(void **state)
{
    (void)state;
    char text[400];
    memset(text, 'a', sizeof text);
    memcpy(text + 63, ":1", 3);
    check_true(value_address(text));
    memset(text, 'a', 64);
    memcpy(text + 64, ":1", 3);
    check_true(!value_address(text));
    for (size_t i = 0; i < 300; i++) {
        text[i] = i % 2 == 0 ? 'a' : '.';
    }
    memcpy(text + 253, ":1", 3);
    check_true(value_address(text));
    memcpy(text + 253, "..", 2);
    text[253] = '.';
    text[254] = 'a';
    memcpy(text + 255, ":1", 3);
    check_true(!value_address(text));
    memcpy(text, "unix:/", 6);
    memset(text + 6, 'a', 200);
    text[5 + 107] = 0;
    check_true(value_address(text));
    text[5 + 107] = 'a';
    text[5 + 108] = 0;
    check_true(!value_address(text));
}

static void test_match__hosts_paths_and_methods_are_those_that_a_request_can_have(void **state)
{
    (void)state;
    static const struct {
        bool (*is)(const char *);
        const char *right[12];
        const char *wrong[14];
    } rows[] = {
        {value_match_host,
         {"pay.local", "PAY.local:80", "*.x.y", "*", "10.0.0.1", "[::1]", "[::1]:80", "::1"},
         {"", "a b", "http://a", "a/b", "a.*", "*a", "unix:/x", "a:65536"}},
        {value_path,
         {"/", "/a", "/a/b/", "/%70", "/a%2fb", "/a;v=1", "//", "/\xc3\xa9"},
         {"", "a", "/a?b", "/a/../b", "/%2e", "/%", "/a#b", "*"}},
        {value_method,
         {"GET", "M-SEARCH", "X", "GET", "PUT", "PATCH", "A1", "A_B"},
         {"", "get", "Get", "GET ", "GET,PUT", "*", "G\xc3", "G/T"}},
        {value_upgrade,
         {"websocket", "tcp", "SPDY/3.1", "WebSocket", "TLS/1.0", "x", "irc/6.9", "h2c-like"},
         {"", "h2c", "H2", "HTTP/2.0", "http", "a/b/c", "a/", "a b"}},
        {value_key_scope,
         {"credentials", "authorization", "none", "header:X-Tenant", "cookie:sid", "cookie:__Host-s", "header:a",
          "cookie:1"},
         {"", "header:", "cookie:", "header:a b", "cookie:a=b", "cookies:a", "Authorization", "header:a:b"}},
        {value_client_key,
         {"header:X-Client-Id", "header:a", "header:x_y", "header:1", "header:X-Forwarded-For", "header:A.B",
          "header:~", "header:x-tenant"},
         {"", "header:", "header", "cookie:a", "header:a b", "header:a:b", "Header:a", "X-Client-Id"}},
        {value_redis,
         {"redis://a", "rediss://a.b:6380", "redis://[::1]", "redis://[::1]:1/15", "redis://:p@ss@h/0", "redis://u:p@h",
          "redis://10.0.0.1:6379/2", "redis://h/65535", "redis://a,b:1/3?sentinel=m", "rediss://a?sentinel=m",
          "redis+unix:///s"},
         {"", "h:6379", "redis:/h", "redis://", "redis://h/x", "redis://h/65536", "redis://h h", "redis://unix:/x",
          "redis://a,,b", "redis://a?sentinel=", "redis://a?x=1", "redis+unix://s", "redis://,"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < 12 && rows[i].right[j] != NULL; j++) {
            if (!rows[i].is(rows[i].right[j])) {
                fail_msg("refused %s", rows[i].right[j]);
            }
        }
        for (size_t j = 0; j < 14 && rows[i].wrong[j] != NULL; j++) {
            if (rows[i].is(rows[i].wrong[j])) {
                fail_msg("accepted \"%s\"", rows[i].wrong[j]);
            }
        }
    }
}

static void test_cidr__is_an_address_with_or_without_a_prefix(void **state)
{
    (void)state;
    static const char *const right[] = {"127.0.0.0/8", "::1",       "10.0.0.1",    "0.0.0.0/0",
                                        "::/0",        "fe80::/10", "10.0.0.1/32", "::1/128"};
    static const char *const wrong[] = {"",          "127.0.0.0/33", "::1/129",      "10.0.0",
                                        "10.0.0.1/", "localhost",    "10.0.0.1/8/8", "[::1]",
                                        "/8",        "::1/-1",       "10.0.0.1:80",  "1::2::3"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        if (!value_cidr(right[i])) {
            fail_msg("refused %s", right[i]);
        }
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (value_cidr(wrong[i])) {
            fail_msg("accepted %s", wrong[i]);
        }
    }
}

#define check_written(duration, expected)                                                          \
    do {                                                                                           \
        char written_text[32];                                                                     \
        size_t written_length = value_write_duration(duration, written_text, sizeof written_text); \
        check_eq_str(written_text, expected);                                                      \
        check_eq_u64(written_length, strlen(expected));                                            \
    } while (0)

static void test_srv__is_a_service_a_protocol_and_a_domain(void **state)
{
    (void)state;
    static const char *const right[] = {"srv://_http._tcp.a", "srv://_pay-1._tcp.shop.svc.cluster.local"};
    static const char *const wrong[] = {"srv://",
                                        "_http._tcp.a",
                                        "srv://http._tcp.a",
                                        "srv://_http.tcp.a",
                                        "srv://_http._tcp",
                                        "srv://_http._tcp.",
                                        "srv://_http._tcp.a:80",
                                        "srv://_http._tcp.a/",
                                        "srv://_http._tcp.a b"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        check_true(value_srv(right[i]));
        check_true(!value_address(right[i]));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(!value_srv(wrong[i]));
    }
    check_eq_str(value_srv_domain(right[1]), "shop.svc.cluster.local");
}

static void test_statuses__are_one_a_range_or_a_hundred(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",     "99",      "600",     "0xx",     "6xx", "2xX",     "200-",
                                        "-200", "299-200", "200-600", "200-2xx", "ok",  "0200-299"};
    uint64_t set[VALUE_STATUS_WORDS] = {0};
    char text[64];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(!value_statuses(wrong[i], set));
    }
    check_eq_u64(value_write_statuses(set, text, sizeof text), 0);
    check_true(value_statuses("204", set) && value_statuses("100-101", set) && value_statuses("5xx", set));
    check_eq_u64(value_write_statuses(set, text, sizeof text), strlen("100-101, 204, 500-599"));
    check_eq_str(text, "100-101, 204, 500-599");
    check_eq_u64(value_write_statuses(set, text, 10), 9);
    check_eq_str(text, "100-101, ");
}

static void test_write_duration__picks_the_shortest_exact_form(void **state)
{
    (void)state;
    check_written(0, "0");
    check_written(1, "1ns");
    check_written(1500 * BECALM_MS, "1.5s");
    check_written(100 * BECALM_MS, "100ms");
    check_written(10 * BECALM_S, "10s");
    check_written(60 * BECALM_S, "1m");
    check_written(90 * BECALM_S, "90s");
    check_written(120 * BECALM_S, "2m");
    check_written(5400 * BECALM_S, "90m");
    check_written(324 * BECALM_S, "324s");
    check_written(24 * 3600 * BECALM_S, "24h");
    check_written(2500 * BECALM_US, "2.5ms");
    check_written(BECALM_S + 1, "1000000001ns"); /* of equal length, and no fraction */
    check_written(BECALM_NEVER, "never");
    check_written(BECALM_NEVER - 1, "18446744073709551614ns");
}

static void test_write_duration__is_cut_at_the_size(void **state)
{
    (void)state;
    char text[4] = "xxx";
    check_eq_u64(value_write_duration(100 * BECALM_MS, text, 0), 0);
    check_eq_str(text, "xxx");
    check_eq_u64(value_write_duration(100 * BECALM_MS, text, sizeof text), 3);
    check_eq_str(text, "100");
}

static void test_write_duration__is_read_back_as_the_same(void **state)
{
    (void)state;
    uint64_t seed = 20240611;
    for (uint32_t i = 0; i < 20000; i++) {
        char text[32];
        becalm_ns out = 0;
        uint64_t random = becalm_rand_next(&seed);
        static const uint64_t coarse[] = {1, 1000, 100000, 1000000, 500000000, 1000000000, UINT64_C(60000000000)};
        uint64_t unit = coarse[random % 7];
        becalm_ns before = (random >> 8) % (UINT64_C(315360000) * BECALM_S / unit) * unit;
        (void)value_write_duration(before, text, sizeof text);
        if (!value_duration(text, &out) || out != before) {
            fail_msg("seed 20240611, round %u: %" PRIu64 " ns was written as %s and read as %" PRIu64, i, before, text,
                     out);
        }
    }
}

static const char *const keys[] = {"maxRetries", "maxDelay", "initialDelay", "jitter",  "jitterFactor",
                                   "budget",     "breaker",  "deadline",     "retryOn", "k"};

static const char *nearest(const char *text)
{
    const char *found = value_nearest(text, keys, sizeof keys / sizeof *keys);
    return found == NULL ? "(none)" : found;
}

static void test_nearest__of_nothing_is_nothing(void **state)
{
    (void)state;
    check_eq_str(nearest(""), "(none)");
    check_true(value_nearest("x", NULL, 0) == NULL);
}

static void test_nearest__forgives_case_dashes_and_a_third_of_the_letters(void **state)
{
    (void)state;
    check_eq_str(nearest("maxRetries"), "maxRetries");
    check_eq_str(nearest("maxretries"), "maxRetries");
    check_eq_str(nearest("max_retries"), "maxRetries");
    check_eq_str(nearest("max-retries"), "maxRetries");
    check_eq_str(nearest("maxRetry"), "maxRetries");
    check_eq_str(nearest("maxReties"), "maxRetries");
    check_eq_str(nearest("maxRetires"), "maxRetries");
    check_eq_str(nearest("retries"), "maxRetries");
    check_eq_str(nearest("jiter"), "jitter");
    check_eq_str(nearest("ijtter"), "jitter");
    check_eq_str(nearest("budgte"), "budget");
    check_eq_str(nearest("braker"), "breaker");
    check_eq_str(nearest("K"), "k");
    check_eq_str(nearest("init"), "initialDelay");
    check_eq_str(nearest("ini"), "(none)");
    check_eq_str(nearest("jitte"), "jitter"); /* nearer than jitterFactor */
}

static void test_nearest__suggests_nothing_for_a_stranger(void **state)
{
    (void)state;
    check_eq_str(nearest("colour"), "(none)");
    check_eq_str(nearest("j"), "(none)");
    check_eq_str(nearest("bud"), "(none)");
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    check_eq_str(nearest(text), "(none)");
    memset(text, '-', sizeof text - 1);
    check_eq_str(nearest(text), "(none)");
}

static void test_nearest__a_swap_of_neighbours_is_one_step(void **state)
{
    (void)state;
    static const char *const names[] = {"abc", "acb"};
    check_eq_str(value_nearest("bac", names, 2), "abc"); /* one swap; without swaps it would be two steps of three */
    static const char *const equal[] = {"axcd", "bxcd"};
    check_eq_str(value_nearest("xxcd", equal, 2), "axcd");
}

BECALM_TESTS(cmocka_unit_test(test_duration__of_nothing_is_refused_and_zero_needs_no_unit),
             cmocka_unit_test(test_duration__has_units_from_nanoseconds_to_hours),
             cmocka_unit_test(test_duration__fractions_are_exact_or_refused),
             cmocka_unit_test(test_duration__never_guesses_a_unit),
             cmocka_unit_test(test_duration__parts_go_down_in_unit), cmocka_unit_test(test_duration__ends_at_ten_years),
             cmocka_unit_test(test_percent__becomes_parts_per_million),
             cmocka_unit_test(test_size__knows_thousands_from_1024s),
             cmocka_unit_test(test_integer__is_digits_and_nothing_else),
             cmocka_unit_test(test_decimal__is_exact_at_its_scale_or_refused),
             cmocka_unit_test(test_boolean__has_six_words), cmocka_unit_test(test_rate__is_thousandths_per_second),
             cmocka_unit_test(test_address__is_a_host_and_a_port_or_a_unix_path),
             cmocka_unit_test(test_address__has_the_lengths_of_dns_and_of_sockets),
             cmocka_unit_test(test_match__hosts_paths_and_methods_are_those_that_a_request_can_have),
             cmocka_unit_test(test_cidr__is_an_address_with_or_without_a_prefix),
             cmocka_unit_test(test_srv__is_a_service_a_protocol_and_a_domain),
             cmocka_unit_test(test_statuses__are_one_a_range_or_a_hundred),
             cmocka_unit_test(test_write_duration__picks_the_shortest_exact_form),
             cmocka_unit_test(test_write_duration__is_cut_at_the_size),
             cmocka_unit_test(test_write_duration__is_read_back_as_the_same),
             cmocka_unit_test(test_nearest__of_nothing_is_nothing),
             cmocka_unit_test(test_nearest__forgives_case_dashes_and_a_third_of_the_letters),
             cmocka_unit_test(test_nearest__suggests_nothing_for_a_stranger),
             cmocka_unit_test(test_nearest__a_swap_of_neighbours_is_one_step))
