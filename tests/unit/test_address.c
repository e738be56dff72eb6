/* SPDX-License-Identifier: MIT */
#include "loop/address.h"

#include <arpa/inet.h>

#include "check.h"

static struct address parse(const char *text)
{
    struct address address;
    if (!address_parse(text, &address)) {
        fail_msg("refused %s", text);
    }
    return address;
}

static void test_address__what_the_loader_refuses_is_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ":80", "a", "a:", "a:65536", "::1:80", "[::1]", "unix:", "unix:x", "a b:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct address address;
        if (address_parse(wrong[i], &address)) {
            fail_msg("accepted %s", wrong[i]);
        }
    }
}

static void test_address__is_an_ip_a_path_or_a_name(void **state)
{
    (void)state;
    struct address v4 = parse("10.1.2.3:8080");
    check_eq_u64(v4.kind, ADDRESS_IP);
    check_eq_u64(v4.socket.any.sa_family, AF_INET);
    check_eq_u64(ntohl(v4.socket.v4.sin_addr.s_addr), 0x0a010203);
    check_eq_u64(ntohs(v4.socket.v4.sin_port), 8080);
    check_eq_u64(v4.port, 8080);
    check_eq_str(v4.name, "");
    struct address v6 = parse("[2001:db8::1]:0");
    check_eq_u64(v6.kind, ADDRESS_IP);
    check_eq_u64(v6.socket.any.sa_family, AF_INET6);
    check_eq_u64(v6.socket.v6.sin6_addr.s6_addr[15], 1);
    check_eq_u64(v6.port, 0);
    struct address local = parse("unix:/run/becalm.sock");
    check_eq_u64(local.kind, ADDRESS_LOCAL);
    check_eq_u64(local.socket.any.sa_family, AF_UNIX);
    check_eq_str(local.socket.local.sun_path, "/run/becalm.sock");
    struct address name = parse("payment-service:65535");
    check_eq_u64(name.kind, ADDRESS_NAME);
    check_eq_str(name.name, "payment-service");
    check_eq_u64(name.port, 65535);
    check_eq_u64(parse("unix:80").kind, ADDRESS_NAME); /* a host of that name */
}

static void test_address__writes_what_it_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"127.0.0.1:1", "[::1]:65535", "[2001:db8::1]:80", "unix:/tmp/x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[ADDRESS_TEXT_MAX];
        struct address address = parse(texts[i]);
        check_eq_u64(address_write(&address.socket, text, sizeof text), strlen(texts[i]));
        check_eq_str(text, texts[i]);
    }
}

static void test_address__of_a_client_is_written_for_logs(void **state)
{
    (void)state;
    char text[ADDRESS_TEXT_MAX];
    struct address mapped = parse("[::ffff:10.0.0.1]:80");
    check_eq_u64(address_write(&mapped.socket, text, sizeof text), 11);
    check_eq_str(text, "10.0.0.1:80");
    struct address v6 = parse("[::1]:80");
    check_eq_u64(address_write_ip(&v6.socket, text, sizeof text), 3);
    check_eq_str(text, "::1");
    union address_socket unnamed = {.any.sa_family = AF_UNIX};
    check_eq_u64(address_write(&unnamed, text, sizeof text), 5);
    check_eq_str(text, "unix:");
    check_eq_u64(address_write(&v6.socket, text, 4), 3); /* cut */
    check_eq_str(text, "[::");
    check_eq_u64(address_write(&v6.socket, text, 0), 0);
}

static void test_address__the_longest_path_has_no_zero_behind_it_and_is_written_whole(void **state)
{
    (void)state;
    char text[ADDRESS_TEXT_MAX];
    union address_socket full = {.local.sun_family = AF_UNIX};
    memset(full.local.sun_path, 'a', sizeof full.local.sun_path);
    check_eq_u64(address_write(&full, text, sizeof text), 5 + sizeof full.local.sun_path);
}

static void test_address__equal_ones_have_the_same_ip_and_port(void **state)
{
    (void)state;
    struct address a = parse("127.0.0.1:80");
    struct address same = parse("127.0.0.1:80");
    struct address port = parse("127.0.0.1:81");
    struct address v6 = parse("[::ffff:127.0.0.1]:80");
    check_true(address_equal(&a.socket, &same.socket));
    check_true(!address_equal(&a.socket, &port.socket));
    check_true(!address_equal(&a.socket, &v6.socket));
    check_eq_u64(address_length(&a.socket), sizeof(struct sockaddr_in));
    check_eq_u64(address_length(&v6.socket), sizeof(struct sockaddr_in6));
}

BECALM_TESTS(cmocka_unit_test(test_address__what_the_loader_refuses_is_none),
             cmocka_unit_test(test_address__is_an_ip_a_path_or_a_name),
             cmocka_unit_test(test_address__writes_what_it_read),
             cmocka_unit_test(test_address__of_a_client_is_written_for_logs),
             cmocka_unit_test(test_address__the_longest_path_has_no_zero_behind_it_and_is_written_whole),
             cmocka_unit_test(test_address__equal_ones_have_the_same_ip_and_port))
