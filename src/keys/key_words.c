/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "key_words.h"

#include "redis/request.h"

#include <ctype.h>
#include <string.h>

#define PATIENCE_MOST (2 * BECALM_S)

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
    char *end = stpcpy(stpcpy(stpcpy(stpcpy(text, "becalm:{"), fleet), "}:"), kind);
    if (id != NULL) {
        key_hex(end, id);
        end += KEY_HEX - 1;
    }
    return redis_word(command, text, (size_t)(end - text));
}

becalm_ns key_patience(const struct keyring *ring)
{
    return ring->lease / 3 < PATIENCE_MOST ? ring->lease / 3 : PATIENCE_MOST;
}

/* Without a guard its place is filled with the record's name: scripts do not touch a guard that is not known. */
static bool record_add(struct redis_command *command, const struct key_names *names)
{
    const char *fleet = names->keyring->fleet;
    const unsigned char *guard = names->guard == NULL ? names->id : names->guard;
    return name_add(command, fleet, "k:", names->id) &&
           name_add(command, fleet, names->guard == NULL ? "k:" : "g:", guard);
}

bool key_words(struct redis_command *command, struct key_names *names, const char *what)
{
    unsigned char process[STORE_ID];
    const struct keyring *ring = names->keyring;
    const char *run = redis_run(names->redis);
    bool alone = names->id == NULL;
    bool older = names->older != NULL;
    names->stamp = key_memory_stamp(ring->memory, process);
    bool added = redis_number(command, alone   ? 3
                                       : older ? 7
                                               : 5) &&
                 name_add(command, ring->fleet, "held", NULL) && name_add(command, ring->fleet, "era", NULL) &&
                 name_add(command, ring->fleet, "e:", process) && (alone || record_add(command, names)) &&
                 (!older || (name_add(command, ring->fleet, "k:", names->older) &&
                             name_add(command, ring->fleet, "g:", names->older + STORE_ID)));
    return added && redis_word(command, what, strlen(what)) && redis_word(command, run, strlen(run)) &&
           redis_number(command, ring->lease / BECALM_MS);
}
