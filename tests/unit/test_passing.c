/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "proxy/passing.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct becalm_text text_of(const char *text)
{
    return (struct becalm_text){text, strlen(text)};
}

static union address_socket address(const char *text)
{
    struct passing_name name = {.port = 80};
    union address_socket made;
    memcpy(name.text, text, strlen(text) + 1);
    assert_true(passing_literal(&name, &made));
    return made;
}

static void test_passing__names(void **state)
{
    static const struct {
        const char *authority;
        const char *name; /* NULL: none */
        uint16_t port;
    } cases[] = {
        {"Example.Test", "example.test", 80},
        {"example.test.:8080", "example.test", 8080},
        {"example.test:", "example.test", 80},
        {"[::1]:443", "::1", 443},
        {"10.0.0.1:65535", "10.0.0.1", 65535},
        {"", NULL, 0},
        {":80", NULL, 0},
        {"example.test:0", NULL, 0},
        {"example.test:65536", NULL, 0},
        {"example.test:80x", NULL, 0},
        {"a%2eb", NULL, 0},
        {"a b", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]80", NULL, 0},
        {"a:b:80", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct passing_name name;
        bool read = passing_name_read(text_of(cases[i].authority), &name);
        assert_int_equal(read, cases[i].name != NULL);
        if (read) {
            assert_string_equal(name.text, cases[i].name);
            assert_int_equal(name.port, cases[i].port);
            assert_false(name.written);
        }
    }
    char longest[300];
    memset(longest, 'a', sizeof longest);
    struct passing_name name;
    assert_true(passing_name_read((struct becalm_text){longest, 253}, &name));
    assert_false(passing_name_read((struct becalm_text){longest, 254}, &name));
}

static void test_passing__guarded_addresses(void **state)
{
    static const char *const guarded[] = {"127.0.0.1",
                                          "127.255.255.255",
                                          "0.0.0.0",
                                          "0.1.2.3",
                                          "169.254.169.254",
                                          "169.254.0.1",
                                          "224.0.0.1",
                                          "240.0.0.1",
                                          "255.255.255.255",
                                          "::",
                                          "::1",
                                          "::ffff:127.0.0.1",
                                          "::127.0.0.1",
                                          "fe80::1",
                                          "fec0::1",
                                          "ff02::1",
                                          "::ffff:169.254.169.254",
                                          "64:ff9b::7f00:1",
                                          "2002:7f00:1::",
                                          "100.100.100.200",
                                          "168.63.129.16",
                                          "192.0.0.192",
                                          "::ffff:168.63.129.16",
                                          "fd00:ec2::254",
                                          "fd20:ce::254"};
    static const char *const open[] = {
        "10.0.0.1",        "192.168.1.1",   "126.255.255.255", "128.0.0.1",     "169.253.1.1",     "169.255.1.1",
        "223.255.255.255", "1.0.0.0",       "2001:db8::1",     "fd00::1",       "::ffff:10.0.0.1", "64:ff9b::a00:1",
        "2002:a00:1::",    "fd00:ec2::255", "100.100.100.201", "168.63.129.17", "192.0.0.193",     "fd20:ce::255"};
    (void)state;
    for (size_t i = 0; i < sizeof guarded / sizeof *guarded; i++) {
        union address_socket it = address(guarded[i]);
        assert_true(passing_guards(&it));
    }
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        union address_socket it = address(open[i]);
        assert_false(passing_guards(&it));
    }
    union address_socket local = {.local = {.sun_family = AF_UNIX}};
    assert_true(passing_guards(&local));
}

static uint32_t asked;

static void ask(void *asker)
{
    assert_ptr_equal(asker, &asked);
    asked++;
}

static struct passing_name name_of(const char *authority)
{
    struct passing_name name;
    assert_true(passing_name_read(text_of(authority), &name));
    return name;
}

static void test_passing__a_name_is_asked_for_once_and_then_known(void **state)
{
    struct passing passing;
    struct passing_name name = name_of("example.test:8080");
    union address_socket to;
    union address_socket list[3] = {address("127.0.0.1"), address("10.0.0.1"), address("10.0.0.2")};
    (void)state;
    asked = 0;
    passing_init(&passing);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_FULL); /* there is no resolver */
    passing_resolve_by(&passing, ask, &asked);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_LATER);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_LATER);
    assert_int_equal(asked, 1);
    struct passing_host *host = passing_next(&passing);
    assert_string_equal(host->name.text, "example.test");
    assert_null(passing_next(&passing));

    passing_answer(&passing, host, list, 3);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_READY);
    assert_true(address_equal(&to, &list[1])); /* the first is guarded */
    assert_int_equal(passing_find(&passing, &name, 1, 1, &to), PASSING_READY);
    assert_true(address_equal(&to, &list[2]));
    passing_answer(&passing, host, list, 1);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_GUARDED);
    passing_answer(&passing, host, NULL, 0);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_NONE);

    name.written = true; /* another host for the client */
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_LATER);
    passing_answer(&passing, passing_next(&passing), list, 1);
    assert_int_equal(passing_find(&passing, &name, 1, 0, &to), PASSING_READY);
    passing_free(&passing);
}

static void test_passing__addresses_need_nobody_and_are_guarded(void **state)
{
    struct passing passing;
    struct passing_name here = name_of("127.0.0.1:80");
    struct passing_name there = name_of("[2001:db8::1]:443");
    union address_socket to;
    (void)state;
    passing_init(&passing);
    assert_int_equal(passing_find(&passing, &here, 1, 0, &to), PASSING_GUARDED);
    here.written = true;
    assert_int_equal(passing_find(&passing, &here, 1, 0, &to), PASSING_READY);
    assert_int_equal(passing_find(&passing, &there, 1, 0, &to), PASSING_READY);
    assert_int_equal(ntohs(to.v6.sin6_port), 443);
    passing_free(&passing);
}

static void test_passing__names_are_bounded_and_forgotten(void **state)
{
    struct passing passing;
    union address_socket to;
    uint32_t forgotten = 0;
    (void)state;
    passing_init(&passing);
    passing_resolve_by(&passing, ask, &asked);
    for (uint32_t i = 0; i <= PASSING_NAMES; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "host%u.test", i);
        struct passing_name name = name_of(text);
        assert_int_equal(passing_find(&passing, &name, i == 0 ? 5 : 1, 0, &to),
                         i == PASSING_NAMES ? PASSING_FULL : PASSING_LATER);
    }
    assert_null(passing_unused(&passing, PASSING_UNUSED + 4)); /* the control thread has not heard of them */
    while (passing_next(&passing) != NULL) {
    }
    struct passing_host *host;
    assert_null(passing_unused(&passing, PASSING_UNUSED));
    while ((host = passing_unused(&passing, PASSING_UNUSED + 4)) != NULL) {
        free(host);
        forgotten++;
    }
    assert_int_equal(forgotten, PASSING_NAMES - 1); /* but for the one that was in use since */
    struct passing_name name = name_of("host0.test");
    assert_int_equal(passing_find(&passing, &name, 5, 0, &to), PASSING_LATER);
    assert_int_equal(passing.count, 1);
    passing_free(&passing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passing__names),
        cmocka_unit_test(test_passing__guarded_addresses),
        cmocka_unit_test(test_passing__a_name_is_asked_for_once_and_then_known),
        cmocka_unit_test(test_passing__addresses_need_nobody_and_are_guarded),
        cmocka_unit_test(test_passing__names_are_bounded_and_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
