/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_SEAL_H
#define BECALM_KEYS_SEAL_H

/* Answers that are kept where others can read: AES-256 in Galois/counter mode, with the id of their idempotency key as
 * associated data, so that none can be put in another's place.
 *
 * A file of keys has a line for each: a name, a space, 64 digits of hexadecimal. New answers are sealed by the first;
 * any of them opens. So a key is replaced by a line above it, and taken out when all that it sealed has expired. */

#include "loop/bytes.h"

#include <becalm/http.h>

#define SEAL_KEY  32u
#define SEAL_NAME 32u
#define SEALS_MAX 8u

struct seals {
    struct {
        char name[SEAL_NAME + 1];
        unsigned char key[SEAL_KEY];
    } seal[SEALS_MAX];
    uint32_t count; /* 0: nothing is sealed */
};

/* NULL, or a sentence about the error in the text. */
const char *seals_read(struct seals *, const char *text);

/* Adds the sealed text to *out, by the first key. False: no memory. */
bool seal_close(const struct seals *, struct becalm_text plain, struct becalm_text id, struct bytes *out);

/* Adds the text that was sealed. False: the keyring has no such key, or the text was not sealed for this id. */
bool seal_open(const struct seals *, struct becalm_text name, struct becalm_text sealed, struct becalm_text id,
               struct bytes *out);

#endif
