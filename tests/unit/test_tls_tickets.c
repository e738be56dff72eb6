/* SPDX-License-Identifier: MIT */
#include "tls/tls_tickets.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <string.h>

#include "check.h"

#define HOUR (3600 * BECALM_S)

/* The result for OpenSSL: 1, 2 (and a new ticket for the client), or 0 for a key that is not known. */
static int opens(struct tls_tickets *tickets, unsigned char name[16], bool seals)
{
    unsigned char iv[EVP_MAX_IV_LENGTH] = {0};
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac);
    int rc = tls_tickets_key(tickets, name, iv, cipher, mac, seals);
    EVP_MAC_CTX_free(mac);
    EVP_MAC_free(hmac);
    EVP_CIPHER_CTX_free(cipher);
    return rc;
}

static void test_tls_tickets__a_key_seals_for_an_hour_and_opens_for_two_more(void **state)
{
    (void)state;
    unsigned char first[16];
    unsigned char later[16];
    struct tls_tickets *tickets = tls_tickets_random();
    assert_int_equal(opens(tickets, first, true), 1);
    tls_tickets_age(tickets, HOUR - BECALM_S);
    assert_int_equal(opens(tickets, first, false), 1);
    tls_tickets_age(tickets, 2 * BECALM_S);
    assert_int_equal(opens(tickets, first, false), 2); /* the client gets one of the new key */
    assert_int_equal(opens(tickets, later, true), 1);
    assert_memory_not_equal(first, later, sizeof first);
    tls_tickets_age(tickets, HOUR);
    assert_int_equal(opens(tickets, first, false), 2);
    tls_tickets_age(tickets, HOUR);
    assert_int_equal(opens(tickets, first, false), 0);
    assert_int_equal(opens(tickets, later, false), 2);
    tls_tickets_drop(tickets);
}

static void test_tls_tickets__after_a_long_pause_no_old_key_opens(void **state)
{
    (void)state;
    unsigned char name[16];
    struct tls_tickets *tickets = tls_tickets_random();
    assert_int_equal(opens(tickets, name, true), 1);
    tls_tickets_age(tickets, 100 * HOUR);
    assert_int_equal(opens(tickets, name, false), 0);
    tls_tickets_drop(tickets);
}

/* "AAAA...": 80 bytes, of which the first says which key it is. */
static void put_key(char *line, unsigned char number)
{
    unsigned char bytes[80] = {number};
    assert_int_equal(EVP_EncodeBlock((unsigned char *)line, bytes, sizeof bytes), 108);
    line[108] = '\n';
}

static void test_tls_tickets__the_first_key_of_a_file_seals_and_all_open(void **state)
{
    (void)state;
    char text[2 * 109 + 1];
    const char *why;
    unsigned char name[16];
    unsigned char old[16] = {2};
    unsigned char unknown[16] = {3};
    put_key(text, 1);
    put_key(text + 109, 2);
    struct tls_tickets *tickets = tls_tickets_parse(text, 2 * 109, &why);
    assert_non_null(tickets);
    assert_int_equal(opens(tickets, name, true), 1);
    assert_int_equal(name[0], 1);
    tls_tickets_age(tickets, 100 * HOUR); /* the operator changes the keys of a file */
    assert_int_equal(opens(tickets, name, false), 1);
    assert_int_equal(opens(tickets, old, false), 2);
    assert_int_equal(opens(tickets, unknown, false), 0);
    tls_tickets_drop(tickets);
}

static void test_tls_tickets__what_is_no_key_is_refused_with_a_reason(void **state)
{
    (void)state;
    char text[17 * 109];
    const char *why;
    const char *const wrong[] = {"", "\n\n", "short\n", "!!!!"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(tls_tickets_parse(wrong[i], strlen(wrong[i]), &why));
        assert_non_null(why);
    }
    put_key(text, 1);
    assert_null(tls_tickets_parse(text, 107, &why));
    for (unsigned char i = 0; i < 17; i++) {
        put_key(text + i * 109, i);
    }
    assert_null(tls_tickets_parse(text, sizeof text, &why));
    assert_non_null(strstr(why, "16"));
    struct tls_tickets *tickets = tls_tickets_parse(text, 16 * 109, &why);
    assert_non_null(tickets);
    tls_tickets_drop(tickets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_tickets__a_key_seals_for_an_hour_and_opens_for_two_more),
        cmocka_unit_test(test_tls_tickets__after_a_long_pause_no_old_key_opens),
        cmocka_unit_test(test_tls_tickets__the_first_key_of_a_file_seals_and_all_open),
        cmocka_unit_test(test_tls_tickets__what_is_no_key_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
