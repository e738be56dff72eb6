/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "seal.h"

#include "libssl/libssl.h"
#include "run/entropy.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#define NONCE 12u
#define TAG   16u

static bool digits_read(unsigned char key[SEAL_KEY], const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < (size_t)2 * SEAL_KEY; i++) {
        const char *digit = text[i] == 0 ? NULL : strchr(digits, tolower((unsigned char)text[i]));
        if (digit == NULL) {
            return false;
        }
        unsigned value = (unsigned)(digit - digits);
        key[i / 2] = (unsigned char)(i % 2 == 0 ? value << 4 : key[i / 2] | value);
    }
    return true;
}

const char *seals_read(struct seals *seals, const char *text)
{
    static const char wrong[] = "each line is a name of at most 32 characters, a space, and 64 digits of hexadecimal";
    seals->count = 0;
    while (*text != 0) {
        size_t length = strcspn(text, "\r\n");
        size_t name = strcspn(text, " \r\n");
        if (length > 0 && (name == 0 || name > SEAL_NAME || length != name + 1 + (size_t)2 * SEAL_KEY)) {
            return wrong;
        }
        if (length > 0 && seals->count == SEALS_MAX) {
            return "it has more than eight keys";
        }
        if (length > 0) {
            memset(seals->seal[seals->count].name, 0, sizeof seals->seal[0].name);
            memcpy(seals->seal[seals->count].name, text, name);
            if (!digits_read(seals->seal[seals->count++].key, text + name + 1)) {
                return wrong;
            }
        }
        text += length;
        text += strspn(text, "\r\n");
    }
    return seals->count == 0 ? "it has no key" : NULL;
}

static const unsigned char *octets(const char *text)
{
    return (const unsigned char *)text;
}

bool seal_close(const struct seals *seals, struct becalm_text plain, struct becalm_text id, struct bytes *out)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char nonce[NONCE];
    unsigned char tag[TAG];
    int length = 0;
    size_t before = out->length;
    /* The text is encrypted where it lies, behind its nonce. */
    bool made = context != NULL && plain.length < INT_MAX && entropy_fill(nonce, sizeof nonce) &&
                bytes_add(out, (const char *)nonce, sizeof nonce) && bytes_add(out, plain.at, plain.length);
    unsigned char *at = made ? (unsigned char *)out->at + before + NONCE : NULL;
    made = made && EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, seals->seal[0].key, nonce) == 1 &&
           EVP_EncryptUpdate(context, NULL, &length, octets(id.at), (int)id.length) == 1 &&
           (plain.length == 0 || EVP_EncryptUpdate(context, at, &length, at, (int)plain.length) == 1) &&
           EVP_EncryptFinal_ex(context, tag, &length) == 1 &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG, tag) == 1 &&
           bytes_add(out, (const char *)tag, sizeof tag);
    EVP_CIPHER_CTX_free(context);
    return made;
}

static const unsigned char *key_find(const struct seals *seals, struct becalm_text name)
{
    for (uint32_t i = 0; i < seals->count; i++) {
        if (strlen(seals->seal[i].name) == name.length && memcmp(seals->seal[i].name, name.at, name.length) == 0) {
            return seals->seal[i].key;
        }
    }
    return NULL;
}

bool seal_open(const struct seals *seals, struct becalm_text name, struct becalm_text sealed, struct becalm_text id,
               struct bytes *out)
{
    const unsigned char *key = key_find(seals, name);
    if (key == NULL || sealed.length < NONCE + TAG || sealed.length >= INT_MAX) {
        return false;
    }
    size_t length = sealed.length - NONCE - TAG;
    size_t before = out->length;
    int written = 0;
    unsigned char tag[TAG];
    unsigned char rest[TAG];
    memcpy(tag, sealed.at + NONCE + length, TAG);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool right = context != NULL && bytes_add(out, sealed.at + NONCE, length);
    unsigned char *at = right && length > 0 ? (unsigned char *)out->at + before : NULL; /* nothing may have no place */
    right = right && EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, octets(sealed.at)) == 1 &&
            EVP_DecryptUpdate(context, NULL, &written, octets(id.at), (int)id.length) == 1 &&
            (length == 0 || EVP_DecryptUpdate(context, at, &written, at, (int)length) == 1) &&
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
            EVP_DecryptFinal_ex(context, rest, &written) == 1;
    EVP_CIPHER_CTX_free(context);
    return right;
}
