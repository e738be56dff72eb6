/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "text_internal.h"

/* Stricter than all visible characters, so that two keys in one field, or a key with parameters, are never one long
 * key. */
static bool is_bare(struct becalm_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        if (c <= ' ' || c > '~' || strchr("\"\\,;", c) != NULL) {
            return false;
        }
    }
    return true;
}

bool becalm_key_parse(struct becalm_text value, struct becalm_text *key)
{
    struct becalm_text rest = text_trim(value);
    struct becalm_text inside;
    if (text_take_quoted(&rest, &inside)) {
        if (!text_ended(rest)) {
            return false;
        }
    } else if (is_bare(rest)) {
        inside = rest;
    } else {
        return false;
    }
    if (inside.length < 1 || inside.length > BECALM_KEY_MAX) {
        return false;
    }
    *key = inside;
    return true;
}
