/* SPDX-License-Identifier: MIT */
#include "keep_alive.h"

#include "text_internal.h"

/* "name=value": a token on either side, or a quoted string. */
static bool take_parameter(struct becalm_text *line, struct becalm_text *name, struct becalm_text *value)
{
    *value = (struct becalm_text){0};
    if (!text_take_token(line, name)) {
        return false;
    }
    return !text_take(line, '=') || text_take_quoted(line, value) || text_take_token(line, value);
}

/* Digits and nothing else. */
static bool read_count(struct becalm_text text, uint32_t *count)
{
    uint64_t number;
    bool digits = text_take_number(&text, &number) > 0 && text_ended(text);
    *count = number < BECALM__KEEP_ALIVE_MAX ? (uint32_t)number : BECALM__KEEP_ALIVE_MAX;
    return digits;
}

static bool note(struct becalm__keep_alive *keep, struct becalm_text name, struct becalm_text value)
{
    uint32_t count;
    bool timeout = text_is_word(name, "timeout");
    if (!timeout && !text_is_word(name, "max")) {
        return true;
    }
    if (!read_count(value, &count)) {
        return false;
    }
    if (timeout) {
        keep->timeout = keep->has_timeout && keep->timeout < count ? keep->timeout : count;
        keep->has_timeout = true;
    } else {
        keep->spent |= count == 0;
    }
    return true;
}

bool becalm__keep_alive_read(struct becalm_text line, struct becalm__keep_alive *keep)
{
    struct becalm__keep_alive found = *keep;
    struct becalm_text name;
    struct becalm_text value;
    bool more = true;
    line = text_trim(line);
    while (more) {
        if (!take_parameter(&line, &name, &value) || !note(&found, name, value)) {
            return false;
        }
        text_skip_blanks(&line);
        more = text_take(&line, ',');
        text_skip_blanks(&line);
    }
    if (!text_ended(line)) {
        return false;
    }
    *keep = found;
    return true;
}
