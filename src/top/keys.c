/* SPDX-License-Identifier: MIT */
#include "keys.h"

#include <string.h>

#define ESCAPE '\033'

static struct key plain(char byte)
{
    switch (byte) {
    case '\r':
    case '\n':
        return (struct key){KEY_ENTER, 0};
    case '\b':
    case 0x7f:
        return (struct key){KEY_BACKSPACE, 0};
    default:
        return (struct key){byte >= ' ' && byte < 0x7f ? KEY_CHARACTER : KEY_NONE, byte};
    }
}

/* The sequences that terminals send after the escape: "[A", or "OA" in another mode; xterm, VT220 and the Linux
 * console. */
static struct key named(const char *sequence)
{
    static const struct {
        const char *sequence;
        enum key_kind kind;
    } names[] = {
        {"[A", KEY_UP},    {"OA", KEY_UP},       {"[B", KEY_DOWN},       {"OB", KEY_DOWN}, {"[C", KEY_RIGHT},
        {"OC", KEY_RIGHT}, {"[D", KEY_LEFT},     {"OD", KEY_LEFT},       {"[H", KEY_HOME}, {"OH", KEY_HOME},
        {"[1~", KEY_HOME}, {"[7~", KEY_HOME},    {"[F", KEY_END},        {"OF", KEY_END},  {"[4~", KEY_END},
        {"[8~", KEY_END},  {"[5~", KEY_PAGE_UP}, {"[6~", KEY_PAGE_DOWN},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].sequence, sequence) == 0) {
            return (struct key){names[i].kind, 0};
        }
    }
    return (struct key){KEY_NONE, 0};
}

bool keys_pending(const struct keys *keys)
{
    return keys->length > 0;
}

struct key keys_end(struct keys *keys)
{
    bool alone = keys->length == 1;
    keys->length = 0;
    return (struct key){alone ? KEY_ESCAPE : KEY_NONE, 0};
}

/* Entry: a sequence has begun. A letter or a tilde ends it, but for the bracket or the O at its beginning. */
static struct key continued(struct keys *keys, char byte)
{
    bool introduces = keys->length == 1 && (byte == '[' || byte == 'O');
    bool too_long = keys->length + 1 == KEYS_SEQUENCE_MAX;
    keys->sequence[keys->length++] = byte;
    if (!too_long && (introduces || byte < '@' || byte > '~')) {
        return (struct key){KEY_NONE, 0};
    }
    char text[KEYS_SEQUENCE_MAX];
    memcpy(text, keys->sequence + 1, keys->length - 1);
    text[keys->length - 1] = '\0';
    keys->length = 0;
    return named(text);
}

struct key keys_byte(struct keys *keys, char byte)
{
    if (byte == ESCAPE) {
        struct key before = keys_pending(keys) ? keys_end(keys) : (struct key){KEY_NONE, 0};
        keys->sequence[0] = ESCAPE;
        keys->length = 1;
        return before;
    }
    return keys_pending(keys) ? continued(keys, byte) : plain(byte);
}
