/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "text_internal.h"

/* `; name=value`, where the value may be quoted or missing. */
static bool take_parameter(struct becalm_text *text, struct becalm_text *name, struct becalm_text *value)
{
    text_skip_blanks(text);
    if (!text_take(text, ';')) {
        return false;
    }
    text_skip_blanks(text);
    if (!text_take_token(text, name)) {
        return false;
    }
    *value = (struct becalm_text){NULL, 0};
    return !text_take(text, '=') || text_take_quoted(text, value) || text_take_token(text, value);
}

enum becalm_mark_kind becalm_mark_parse(struct becalm_text text)
{
    struct becalm_text word;
    struct becalm_text name;
    struct becalm_text value;
    enum becalm_mark_kind overloaded = BECALM_MARK_OVERLOADED;
    enum becalm_mark_kind spent = BECALM_MARK_SPENT;
    text = text_trim(text);
    if (!text_take_token(&text, &word)) {
        return BECALM_MARK_NONE;
    }
    while (!text_ended(text)) {
        if (!take_parameter(&text, &name, &value)) {
            return BECALM_MARK_NONE;
        }
        if (text_is_word(name, "scope")) {
            /* A scope that we do not know is wider than nothing: at least that host is meant. */
            overloaded = text_is_word(value, "service") ? BECALM_MARK_OVERLOADED : BECALM_MARK_OVERLOADED_HOST;
        } else if (text_is_word(name, "unasked")) {
            spent = BECALM_MARK_UNASKED;
        }
    }
    if (text_is_word(word, "overloaded")) {
        return overloaded;
    }
    return text_is_word(word, "spent") ? spent : BECALM_MARK_NONE;
}

size_t becalm_mark_write(enum becalm_mark_kind mark, enum becalm_reason reason, char *text, size_t size)
{
    struct text_out out = {text, size, 0};
    BECALM_ASSERT(size >= 96);
    text[0] = '\0';
    switch (mark) {
    case BECALM_MARK_NONE:
        return 0;
    case BECALM_MARK_OVERLOADED_HOST:
        out_add(&out, "overloaded; scope=host; reason=");
        break;
    case BECALM_MARK_OVERLOADED:
        out_add(&out, "overloaded; scope=service; reason=");
        break;
    case BECALM_MARK_SPENT:
        out_add(&out, "spent; scope=service; reason=");
        break;
    case BECALM_MARK_UNASKED:
        out_add(&out, "spent; scope=service; unasked; reason=");
        break;
    }
    out_add(&out, becalm_reason_word(reason));
    return out.length;
}
