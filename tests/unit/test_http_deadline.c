/* SPDX-License-Identifier: MIT */
#include <becalm/rand.h>

#include "http_lab.h"

#define ALL_DIALECTS 15u

static const enum becalm_deadline_dialect dialects[] = {BECALM_DEADLINE_GRPC, BECALM_DEADLINE_REQUEST,
                                                        BECALM_DEADLINE_ENVOY, BECALM_DEADLINE_BAGGAGE};

/* One value in one dialect. */
static becalm_ns read_one(enum becalm_deadline_dialect dialect, struct becalm_text value, unsigned *came)
{
    struct becalm_deadline_headers headers = {0};
    switch (dialect) {
    case BECALM_DEADLINE_GRPC:
        headers.grpc_timeout = value;
        break;
    case BECALM_DEADLINE_REQUEST:
        headers.request_deadline_ms = value;
        break;
    case BECALM_DEADLINE_ENVOY:
        headers.envoy_expected_ms = value;
        break;
    case BECALM_DEADLINE_BAGGAGE:
        headers.baggage = value;
        break;
    }
    return becalm_deadline_read(&headers, came);
}

static void check_read(enum becalm_deadline_dialect dialect, const char *literal, bool readable, becalm_ns expected)
{
    struct becalm_text value = text_bare(literal);
    unsigned came = 99;
    becalm_ns left = read_one(dialect, value, &came);
    text_drop(value);
    if (came != (readable ? (unsigned)dialect : 0u) || left != (readable ? expected : BECALM_NEVER)) {
        fail_msg("\"%s\" is %" PRIu64 ", dialects %u", literal, left, came);
    }
}

static void test_deadline_header__no_header_is_no_deadline(void **state)
{
    struct becalm_deadline_headers headers = {0};
    unsigned came = 99;
    (void)state;
    check_eq_u64(becalm_deadline_read(&headers, &came), BECALM_NEVER);
    check_eq_u64(came, 0);
}

static void test_deadline_header__grpc_timeout_in_every_unit_and_length(void **state)
{
    static const struct {
        char letter;
        becalm_ns unit;
    } units[] = {{'n', 1},        {'u', BECALM_US},     {'m', BECALM_MS},
                 {'S', BECALM_S}, {'M', 60 * BECALM_S}, {'H', 3600 * BECALM_S}};
    static const char *const numbers[] = {"0",    "1",     "00000001", "9",       "42",       "999",
                                          "1000", "65536", "100000",   "1234567", "12345678", "99999999"};
    (void)state;
    for (size_t u = 0; u < COUNT(units); u++) {
        for (size_t i = 0; i < COUNT(numbers); i++) {
            char value[16];
            uint64_t count = strtoull(numbers[i], NULL, 10);
            becalm_ns expected = count > BECALM_NEVER / units[u].unit ? BECALM_NEVER : count * units[u].unit;
            (void)snprintf(value, sizeof value, "%s%c", numbers[i], units[u].letter);
            check_read(BECALM_DEADLINE_GRPC, value, true, expected);
        }
    }
    check_read(BECALM_DEADLINE_GRPC, " 5S\t", true, 5 * BECALM_S);
}

static void test_deadline_header__what_is_no_grpc_timeout_is_ignored(void **state)
{
    static const char *const wrong[] = {"",   " ",      "S",          "5",          "5s",   "5h",    "5N",
                                        "5U", "-5S",    "+5S",        "1.5S",       "5 S",  "5SS",   "5ms",
                                        "S5", "5S, 6S", "123456789n", "000000001S", "0x5S", "5\xb5", "5S;"};
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        check_read(BECALM_DEADLINE_GRPC, wrong[i], false, 0);
    }
}

static void test_deadline_header__milliseconds(void **state)
{
    static const struct {
        const char *value;
        bool readable;
        becalm_ns left;
    } rows[] = {
        {"0", true, 0},
        {"1", true, BECALM_MS},
        {"1500", true, 1500 * BECALM_MS},
        {" 1500 ", true, 1500 * BECALM_MS},
        {"0001", true, BECALM_MS},
        {"18446744073709", true, UINT64_C(18446744073709) * BECALM_MS},
        {"18446744073710", true, BECALM_NEVER},
        {"18446744073709551615", true, BECALM_NEVER},
        {"18446744073709551616", true, BECALM_NEVER}, /* 2^64 does not wrap to 0 */
        {"99999999999999999999999", true, BECALM_NEVER},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {"1.5", false, 0},
        {"1ms", false, 0},
        {"1, 2", false, 0},
        {"never", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_read(BECALM_DEADLINE_REQUEST, rows[i].value, rows[i].readable, rows[i].left);
        check_read(BECALM_DEADLINE_ENVOY, rows[i].value, rows[i].readable, rows[i].left);
    }
}

static void test_deadline_header__the_member_of_baggage(void **state)
{
    static const struct {
        const char *value;
        bool readable;
        uint64_t milliseconds;
    } rows[] = {
        {"deadline-ms=250", true, 250},
        {"deadline-ms=0", true, 0},
        {" deadline-ms = 250 ", true, 250},
        {"user=alice,deadline-ms=250", true, 250},
        {"user=alice , deadline-ms=250 , region=eu", true, 250},
        {"deadline-ms=250;source=gateway;x", true, 250},
        {"user=a;deadline-ms=1, deadline-ms=250", true, 250}, /* a property is no member */
        {"deadline-ms=250,deadline-ms=100,deadline-ms=300", true, 100},
        {"deadline-ms=soon,deadline-ms=250", true, 250},
        {",,deadline-ms=250,,", true, 250},
        {"", false, 0},
        {",", false, 0},
        {"=", false, 0},
        {"deadline-ms", false, 0},
        {"deadline-ms=", false, 0},
        {"deadline-ms=-1", false, 0},
        {"deadline-ms=1=2", false, 0},
        {"Deadline-Ms=250", false, 0}, /* keys are case-sensitive */
        {"xdeadline-ms=250", false, 0},
        {"deadline-msx=250", false, 0},
        {"user=deadline-ms=250", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_read(BECALM_DEADLINE_BAGGAGE, rows[i].value, rows[i].readable, rows[i].milliseconds * BECALM_MS);
    }
}

static void test_deadline_header__the_least_wins_and_each_dialect_is_named(void **state)
{
    struct becalm_deadline_headers headers = {
        .grpc_timeout = text("4S"),
        .request_deadline_ms = text("3000"),
        .envoy_expected_ms = text("2000"),
        .baggage = text("deadline-ms=1000"),
    };
    unsigned came;
    (void)state;
    check_eq_u64(becalm_deadline_read(&headers, &came), 1 * BECALM_S);
    check_eq_u64(came, ALL_DIALECTS);
    headers.baggage = text("deadline-ms=later");
    check_eq_u64(becalm_deadline_read(&headers, &came), 2 * BECALM_S);
    check_eq_u64(came, BECALM_DEADLINE_GRPC | BECALM_DEADLINE_REQUEST | BECALM_DEADLINE_ENVOY);
    headers.envoy_expected_ms = text("x");
    check_eq_u64(becalm_deadline_read(&headers, &came), 3 * BECALM_S);
    headers.request_deadline_ms = text(NULL);
    check_eq_u64(becalm_deadline_read(&headers, &came), 4 * BECALM_S);
    check_eq_u64(came, BECALM_DEADLINE_GRPC);
    headers.request_deadline_ms = text("0");
    check_eq_u64(becalm_deadline_read(&headers, &came), 0); /* nothing left is not nothing said */
}

static void test_deadline_header__written_in_the_finest_unit_that_fits(void **state)
{
    static const struct {
        becalm_ns left;
        const char *grpc;
        const char *milliseconds;
    } rows[] = {
        {0, "0n", "0"},
        {1, "1n", "1"}, /* something stays something */
        {999999, "999999n", "1"},
        {BECALM_MS, "1000000n", "1"},
        {1999999, "1999999n", "1"},
        {99999999, "99999999n", "99"},
        {100000000, "100000u", "100"},
        {100000999, "100000u", "100"},
        {23 * BECALM_S, "23000000u", "23000"},
        {99999999999, "99999999u", "99999"},
        {100 * BECALM_S, "100000m", "100000"},
        {99999999 * BECALM_MS + 999999, "99999999m", "99999999"},
        {100000 * BECALM_S, "100000S", "100000000"},
        {99999999 * BECALM_S, "99999999S", "99999999000"},
        {100000000 * BECALM_S, "1666666M", "100000000000"},
        {99999999 * (60 * BECALM_S), "99999999M", "5999999940000"},
        {100000000 * (60 * BECALM_S), "1666666H", "6000000000000"},
        {BECALM_NEVER, "5124095H", "18446744073709"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char value[24];
        check_eq_u64(becalm_deadline_write(BECALM_DEADLINE_GRPC, rows[i].left, value, sizeof value),
                     strlen(rows[i].grpc));
        check_eq_str(value, rows[i].grpc);
        for (size_t d = 1; d < COUNT(dialects); d++) {
            check_eq_u64(becalm_deadline_write(dialects[d], rows[i].left, value, sizeof value),
                         strlen(rows[i].milliseconds));
            check_eq_str(value, rows[i].milliseconds);
        }
    }
}

static void check_round_trip(becalm_ns left)
{
    static const becalm_ns units[] = {1, BECALM_US, BECALM_MS, BECALM_S, 60 * BECALM_S, 3600 * BECALM_S};
    for (size_t d = 0; d < COUNT(dialects); d++) {
        char value[64] = "deadline-ms=";
        size_t start = dialects[d] == BECALM_DEADLINE_BAGGAGE ? strlen(value) : 0;
        size_t length = becalm_deadline_write(dialects[d], left, value + start, 24);
        unsigned came;
        becalm_ns read = read_one(dialects[d], (struct becalm_text){value, start + length}, &came);
        becalm_ns unit = BECALM_MS;
        for (size_t u = 0; dialects[d] == BECALM_DEADLINE_GRPC && u < COUNT(units); u++) {
            unit = "numSMH"[u] == value[length - 1] ? units[u] : unit;
        }
        check_eq_u64(came, dialects[d]);
        if (left > 0 && left < unit) {
            check_eq_u64(read, unit);
        } else if (read > left || left - read >= unit) {
            fail_msg("%" PRIu64 " was written as %s and read as %" PRIu64, left, value, read);
        }
    }
}

static void test_deadline_header__what_is_written_reads_as_the_same_or_less_than_a_unit_less(void **state)
{
    uint64_t seed = 20260101;
    (void)state;
    for (becalm_ns left = 1; left < BECALM_NEVER / 3; left = left * 3 + 1) {
        check_round_trip(left - 1);
        check_round_trip(left);
    }
    for (unsigned i = 0; i < 20000; i++) {
        check_round_trip(becalm_rand_next(&seed) >> (i % 64));
    }
    check_round_trip(BECALM_NEVER - 1);
}

BECALM_TESTS(cmocka_unit_test(test_deadline_header__no_header_is_no_deadline),
             cmocka_unit_test(test_deadline_header__grpc_timeout_in_every_unit_and_length),
             cmocka_unit_test(test_deadline_header__what_is_no_grpc_timeout_is_ignored),
             cmocka_unit_test(test_deadline_header__milliseconds),
             cmocka_unit_test(test_deadline_header__the_member_of_baggage),
             cmocka_unit_test(test_deadline_header__the_least_wins_and_each_dialect_is_named),
             cmocka_unit_test(test_deadline_header__written_in_the_finest_unit_that_fits),
             cmocka_unit_test(test_deadline_header__what_is_written_reads_as_the_same_or_less_than_a_unit_less))
