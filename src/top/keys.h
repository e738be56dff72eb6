/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_KEYS_H
#define BECALM_TOP_KEYS_H

/* Keys out of the bytes that a terminal sends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_kind {
    KEY_NONE, /* nothing yet, or nothing that is known */
    KEY_CHARACTER,
    KEY_ENTER,
    KEY_ESCAPE,
    KEY_BACKSPACE,
    KEY_UP,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END
};

struct key {
    enum key_kind kind;
    char character; /* CHARACTER: printable ASCII */
};

#define KEYS_SEQUENCE_MAX 16u

/* Begins as {0}. */
struct keys {
    char sequence[KEYS_SEQUENCE_MAX]; /* the characters since an escape */
    uint32_t length;
};

/* Takes one byte; most make a key at once, a sequence with its last. */
struct key keys_byte(struct keys *, char byte);

/* True while a sequence has begun. If then nothing follows, it was the escape key: keys_end() says so. */
bool keys_pending(const struct keys *);
struct key keys_end(struct keys *);

#endif
