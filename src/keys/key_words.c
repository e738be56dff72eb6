/* SPDX-License-Identifier: MIT */
#include "key_words.h"

#include "redis/request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void key_hex(char text[KEY_HEX], const unsigned char id[STORE_ID])
{
    for (unsigned i = 0; i < STORE_ID; i++) {
        text[2 * i] = digits[id[i] >> 4];
        text[2 * i + 1] = digits[id[i] & 15];
    }
    text[KEY_HEX - 1] = '\0';
}

bool key_hex_read(unsigned char id[STORE_ID], const char *text, size_t length)
{
    if (length != KEY_HEX - 1) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        const char *digit = memchr(digits, tolower((unsigned char)text[i]), 16);
        if (digit == NULL) {
            return false;
        }
        unsigned value = (unsigned)(digit - digits);
        id[i / 2] = (unsigned char)(i % 2 == 0 ? value << 4 : id[i / 2] | value);
    }
    return true;
}

static bool name_add(struct redis_command *command, const char *fleet, const char *kind, const unsigned char *id)
{
    char text[SCRIPT_FLEET_MAX + KEY_HEX + 24];
    char hex[KEY_HEX] = "";
    if (id != NULL) {
        key_hex(hex, id);
    }
    int length = snprintf(text, sizeof text, "becalm:{%s}:%s%s", fleet, kind, hex);
    return redis_word(command, text, (size_t)length);
}

bool key_words(struct redis_command *command, const struct key_names *names, const char *what)
{
    bool alone = names->id == NULL;
    /* Without a guard the record stands for it: who does not know it does not touch it. */
    bool added =
        redis_number(command, alone ? 1 : 3) &&
        (alone || (name_add(command, names->fleet, "k:", names->id) &&
                   name_add(command, names->fleet,
                            names->guard == NULL ? "k:" : "g:", names->guard == NULL ? names->id : names->guard))) &&
        name_add(command, names->fleet, "held", NULL);
    return added && redis_word(command, what, strlen(what));
}
