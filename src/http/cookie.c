/* SPDX-License-Identifier: MIT */
#include "cookie.h"

#include "text_internal.h"

/* RFC 6265, 4.1.1: neither blank nor control, neither " , ; nor backslash. */
static bool is_octet(char c)
{
    return c > ' ' && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\';
}

/* Octets, with quotation marks around all of them or none. */
static bool take_value(struct becalm_text *line, struct becalm_text *value)
{
    value->at = line->at;
    bool quoted = text_take(line, '"');
    while (is_octet(text_peek(*line))) {
        text_skip(line, 1);
    }
    bool fine = !quoted || text_take(line, '"');
    value->length = (size_t)(line->at - value->at);
    return fine;
}

enum becalm__cookie becalm__cookie_take(struct becalm_text *line, struct becalm_text *name, struct becalm_text *value)
{
    if (text_ended(*line)) {
        return BECALM__COOKIE_END;
    }
    if (!text_take_token(line, name) || !text_take(line, '=') || !take_value(line, value)) {
        return BECALM__COOKIE_BAD;
    }
    if (text_ended(*line)) {
        return BECALM__COOKIE_PAIR;
    }
    bool more = text_take(line, ';');
    text_skip_blanks(line);
    return more && !text_ended(*line) ? BECALM__COOKIE_PAIR : BECALM__COOKIE_BAD;
}
