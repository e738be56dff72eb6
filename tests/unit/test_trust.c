/* SPDX-License-Identifier: MIT */
#include "origin/trust.h"

#include "check.h"
#include "loop/address.h"

#include <string.h>

static bool trusts(const char *const *networks, const char *peer)
{
    struct address address;
    struct trust *trust = trust_make(networks);
    assert_non_null(trust);
    check_true(address_parse(peer, &address));
    bool has = trust_has(trust, &address.socket.any);
    trust_free(trust);
    return has;
}

#define TRUSTS(peer, ...) trusts((const char *const[]){__VA_ARGS__, NULL}, (peer))

static void test_trust__an_empty_list_trusts_nobody(void **state)
{
    (void)state;
    const char *const none[] = {NULL};
    check_true(!trusts(none, "127.0.0.1:1"));
    check_true(!trusts(none, "[::1]:1"));
    check_true(!trusts(none, "unix:/x"));
    trust_free(NULL);
}

static void test_trust__unix_sockets_are_trusted_by_their_word(void **state)
{
    (void)state;
    check_true(TRUSTS("unix:/x", "unix"));
    check_true(TRUSTS("unix:/x", "10.0.0.0/8", "unix"));
    check_true(TRUSTS("10.0.0.1:1", "unix", "10.0.0.0/8"));
    check_true(!TRUSTS("10.0.0.1:1", "unix"));
    check_true(!TRUSTS("unix:/x", "0.0.0.0/0", "::/0"));
}

static void test_trust__counts_the_bits_of_a_network(void **state)
{
    (void)state;
    check_true(TRUSTS("10.255.0.1:1", "10.0.0.0/8"));
    check_true(!TRUSTS("11.0.0.1:1", "10.0.0.0/8"));
    check_true(TRUSTS("10.0.0.5:1", "10.0.0.4/30"));
    check_true(TRUSTS("10.0.0.7:1", "10.0.0.4/30"));
    check_true(!TRUSTS("10.0.0.8:1", "10.0.0.4/30"));
    check_true(!TRUSTS("10.0.0.3:1", "10.0.0.4/30"));
    check_true(TRUSTS("10.9.9.9:1", "10.1.2.3/8")); /* the bits behind the prefix say nothing */
    check_true(TRUSTS("1.2.3.4:1", "0.0.0.0/0"));
    check_true(TRUSTS("[2001:db8:7fff::1]:1", "2001:db8::/33"));
    check_true(!TRUSTS("[2001:db8:8000::1]:1", "2001:db8::/33"));
}

static void test_trust__an_address_alone_is_itself(void **state)
{
    (void)state;
    check_true(TRUSTS("10.0.0.1:1", "10.0.0.1"));
    check_true(!TRUSTS("10.0.0.2:1", "10.0.0.1"));
    check_true(TRUSTS("[::1]:1", "::1"));
    check_true(!TRUSTS("[::2]:1", "::1"));
    check_true(TRUSTS("[::2]:1", "10.0.0.0/8", "::1", "::2"));
}

static void test_trust__ipv4_inside_ipv6_is_ipv4(void **state)
{
    (void)state;
    check_true(TRUSTS("[::ffff:10.0.0.1]:1", "10.0.0.0/8"));
    check_true(TRUSTS("10.0.0.1:1", "::ffff:10.0.0.0/104"));
    check_true(!TRUSTS("11.0.0.1:1", "::ffff:10.0.0.0/104"));
    check_true(TRUSTS("10.0.0.1:1", "::ffff:10.0.0.1"));
    check_true(!TRUSTS("10.0.0.1:1", "::/0")); /* all of IPv6, and nothing else */
    check_true(!TRUSTS("10.0.0.1:1", "::ffff:0:0/80"));
    check_true(TRUSTS("[::1]:1", "::ffff:0:0/80"));
    check_true(!TRUSTS("[::1]:1", "0.0.0.0/0"));
}

static void test_trust__another_family_is_nobody(void **state)
{
    (void)state;
    const char *const all[] = {"0.0.0.0/0", "::/0", NULL};
    struct trust *trust = trust_make(all);
    struct sockaddr_storage packet = {.ss_family = AF_UNSPEC};
    check_true(!trust_has(trust, (const struct sockaddr *)&packet));
    trust_free(trust);
}

static bool names(const char *entry, enum tls_name_kind kind, const char *name)
{
    struct trust *trust = trust_make((const char *const[]){"10.0.0.0/8", entry, NULL});
    check_true(trust_names_any(trust));
    bool has = trust_names(trust, kind, (struct becalm_text){name, strlen(name)});
    trust_free(trust);
    return has;
}

static void test_trust__names_of_certificates(void **state)
{
    (void)state;
    check_true(names("spiffe://a/b", TLS_NAME_URI, "spiffe://a/b"));
    check_true(!names("spiffe://a/b", TLS_NAME_URI, "spiffe://a/B"));
    check_true(!names("spiffe://a/b", TLS_NAME_URI, "spiffe://a/"));
    check_true(!names("spiffe://a/b", TLS_NAME_DNS, "spiffe://a/b"));
    check_true(names("spiffe://a/*", TLS_NAME_URI, "spiffe://a/b/c"));
    check_true(!names("spiffe://a/*", TLS_NAME_URI, "spiffe://a/"));
    check_true(!names("spiffe://a/*", TLS_NAME_URI, "spiffe://ab/c"));
    check_true(names("dns:a.test", TLS_NAME_DNS, "A.Test"));
    check_true(!names("dns:a.test", TLS_NAME_COMMON, "a.test"));
    check_true(!names("dns:a.test", TLS_NAME_DNS, "a.tes"));
    check_true(names("dns:*.test", TLS_NAME_DNS, "a.test"));
    check_true(!names("dns:*.test", TLS_NAME_DNS, "test"));
    check_true(!names("dns:*.test", TLS_NAME_DNS, ".test"));
    check_true(!names("dns:*.test", TLS_NAME_DNS, "a.b.test"));
    check_true(names("cn:Shop Cart", TLS_NAME_COMMON, "Shop Cart"));
    check_true(!names("cn:shop", TLS_NAME_COMMON, ""));
}

BECALM_TESTS(cmocka_unit_test(test_trust__names_of_certificates),
             cmocka_unit_test(test_trust__an_empty_list_trusts_nobody),
             cmocka_unit_test(test_trust__unix_sockets_are_trusted_by_their_word),
             cmocka_unit_test(test_trust__counts_the_bits_of_a_network),
             cmocka_unit_test(test_trust__an_address_alone_is_itself),
             cmocka_unit_test(test_trust__ipv4_inside_ipv6_is_ipv4),
             cmocka_unit_test(test_trust__another_family_is_nobody))
