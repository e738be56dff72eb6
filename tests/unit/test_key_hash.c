/* SPDX-License-Identifier: MIT */
#include "unit/store_lab.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#define SECRET "thirty-two bytes of a secret ..."

/* Gateways of other versions share keys by these hashes, so they must not change: RFC 2104, of each text behind
 * its length + 1 in eight bytes; 0 and nothing is an absent one. */
static void hash_as_told(const struct becalm_text *texts, size_t count, unsigned char hash[STORE_HASH])
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += 8 + texts[i].length;
    }
    unsigned char *all = calloc(size + 1, 1);
    unsigned char *at = all;
    assert_non_null(all);
    for (size_t i = 0; i < count; i++) {
        uint64_t length = texts[i].at == NULL ? 0 : texts[i].length + 1;
        for (unsigned n = 0; n < 8; n++) {
            *at++ = (unsigned char)(length >> (8 * n));
        }
        for (size_t n = 0; n < texts[i].length; n++) {
            *at++ = (unsigned char)texts[i].at[n];
        }
    }
    assert_non_null(HMAC(EVP_sha256(), SECRET, STORE_HASH, all, size, hash, NULL));
    free(all);
}

static void check_hash(struct key_hash *hash, const struct becalm_text *texts, size_t count)
{
    unsigned char made[STORE_HASH];
    unsigned char wanted[STORE_HASH];
    hash_as_told(texts, count, wanted);
    check_true(key_hash_texts(hash, texts, count, made));
    check_true(memcmp(made, wanted, STORE_HASH) == 0);
}

static void test_key_hash__none_is_freed_and_an_empty_list_has_a_hash(void **state)
{
    (void)state;
    struct key_hash *hash = hash_of(SECRET);
    key_hash_free(NULL);
    check_hash(hash, NULL, 0);
    key_hash_free(hash);
}

/* With all lengths of two adjacent texts, short and long, and however often the hash was used before. */
static void test_key_hash__it_is_the_hmac_of_texts_with_their_lengths(void **state)
{
    (void)state;
    struct key_hash *hash = hash_of(SECRET);
    char letters[700];
    for (size_t i = 0; i < sizeof letters; i++) {
        letters[i] = (char)('a' + i % 26);
    }
    for (size_t length = 0; length < sizeof letters; length++) {
        const struct becalm_text texts[] = {
            {letters, length}, {NULL, 0}, {letters, sizeof letters - length}, {letters, 3}, {"", 0}};
        check_hash(hash, texts, COUNT(texts));
    }
    key_hash_free(hash);
}

static void test_key_hash__another_secret_has_another_hash(void **state)
{
    (void)state;
    const struct becalm_text one = text("one");
    unsigned char made[2][STORE_HASH];
    struct key_hash *hash[] = {hash_of(SECRET), hash_of("")};
    for (size_t i = 0; i < 2; i++) {
        check_true(key_hash_texts(hash[i], &one, 1, made[i]));
        key_hash_free(hash[i]);
    }
    check_true(memcmp(made[0], made[1], STORE_HASH) != 0);
}

BECALM_TESTS(cmocka_unit_test(test_key_hash__none_is_freed_and_an_empty_list_has_a_hash),
             cmocka_unit_test(test_key_hash__it_is_the_hmac_of_texts_with_their_lengths),
             cmocka_unit_test(test_key_hash__another_secret_has_another_hash))
