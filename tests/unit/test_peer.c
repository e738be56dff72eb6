/* SPDX-License-Identifier: MIT */
#include "origin/peer.h"

#include "check.h"

#include <unistd.h>

static const struct peer_key KEY = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};

static uint64_t who(const char *text)
{
    struct address address;
    check_true(address_parse(text, &address));
    return peer_of_socket(&KEY, -1, &address.socket);
}

static uint64_t named(const char *name)
{
    return peer_of_name(&KEY, (struct becalm_text){name, strlen(name)});
}

/* The example of the paper's appendix, and the first ones of its list of vectors. */
static void test_peer__hashes_as_siphash_does(void **state)
{
    (void)state;
    unsigned char bytes[15];
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)i;
    }
    check_eq_u64(peer_hash(&KEY, bytes, 0), UINT64_C(0x726fdb47dd0e0e31));
    check_eq_u64(peer_hash(&KEY, bytes, 1), UINT64_C(0x74f839c593dc67fd));
    check_eq_u64(peer_hash(&KEY, bytes, 8), UINT64_C(0x93f5f5799a932462));
    check_eq_u64(peer_hash(&KEY, bytes, 15), UINT64_C(0xa129ca6149be45e5));
}

static void test_peer__an_ipv4_address_is_a_client_whatever_its_port(void **state)
{
    (void)state;
    check_true(who("127.0.0.2:1") == who("127.0.0.2:65535"));
    check_true(who("127.0.0.2:1") != who("127.0.0.3:1"));
    check_true(who("127.0.0.2:1") == who("[::ffff:127.0.0.2]:9"));
    check_true(who("127.0.0.2:1") != PEER_NOBODY);
}

static void test_peer__ipv6_is_a_client_per_network_of_64_bits(void **state)
{
    (void)state;
    check_true(who("[2001:db8:1:2::1]:1") == who("[2001:db8:1:2:ffff:ffff:ffff:ffff]:2"));
    check_true(who("[2001:db8:1:2::1]:1") != who("[2001:db8:1:3::1]:1"));
    check_true(who("[::1]:1") != who("[2001:db8::1]:1"));
}

static void test_peer__a_unix_socket_tells_the_user(void **state)
{
    (void)state;
    int pair[2];
    union address_socket local = {.local = {.sun_family = AF_UNIX}};
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    uint64_t user = peer_of_socket(&KEY, pair[0], &local);
    check_true(user == peer_of_socket(&KEY, pair[1], &local));
    check_true(user != peer_of_socket(&KEY, -1, &local)); /* its identity is unknown */
    check_true(peer_of_socket(&KEY, -1, &local) != PEER_NOBODY);
    close(pair[0]);
    close(pair[1]);
}

static void test_peer__a_name_is_not_an_address(void **state)
{
    (void)state;
    check_true(named("a") == named("a"));
    check_true(named("a") != named("b"));
    check_true(named("") != named("a"));
    check_true(named("") == peer_of_name(&KEY, (struct becalm_text){0}));
    check_true(named("\x7f\x00\x00\x02") != who("127.0.0.2:1"));
    check_true(named("a name that is longer than any address could ever be, as tokens are") !=
               named("a name that is longer than any address could ever be, as tokens arf"));
}

static void test_peer__each_key_gives_others(void **state)
{
    (void)state;
    struct peer_key one;
    struct peer_key two;
    peer_key_draw(&one);
    peer_key_draw(&two);
    check_true(peer_hash(&one, "a", 1) != peer_hash(&two, "a", 1));
}

BECALM_TESTS(cmocka_unit_test(test_peer__hashes_as_siphash_does),
             cmocka_unit_test(test_peer__an_ipv4_address_is_a_client_whatever_its_port),
             cmocka_unit_test(test_peer__ipv6_is_a_client_per_network_of_64_bits),
             cmocka_unit_test(test_peer__a_unix_socket_tells_the_user),
             cmocka_unit_test(test_peer__a_name_is_not_an_address), cmocka_unit_test(test_peer__each_key_gives_others))
