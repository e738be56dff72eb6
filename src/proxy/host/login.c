/* SPDX-License-Identifier: MIT */
#include "login.h"

#include "http/text_internal.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Skips a quoted string: commas inside it do not separate. */
static const char *skip_quoted(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        at += *at == '\\' && at + 1 < end;
    }
    return at < end ? at + 1 : end;
}

/* A list of challenges and of their parameters, both with commas between them: a scheme is a word that no "=" follows.
 */
bool login_named(struct becalm_text value)
{
    const char *at = value.at;
    const char *end = value.at + value.length;
    while (at < end) {
        while (at < end && (is_blank(*at) || *at == ',')) {
            at++;
        }
        const char *word = at;
        while (at < end && !is_blank(*at) && *at != ',' && *at != '=' && *at != '"') {
            at++;
        }
        struct becalm_text scheme = {word, (size_t)(at - word)};
        if ((at == end || *at != '=') && (text_is_word(scheme, "ntlm") || text_is_word(scheme, "negotiate"))) {
            return true;
        }
        while (at < end && *at != ',') {
            at = *at == '"' ? skip_quoted(at, end) : at + 1;
        }
    }
    return false;
}

bool login__seen(const struct head *head, uint64_t names)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if ((names >> field->id & 1) != 0 && login_named(field_value(head, field))) {
            return true;
        }
    }
    return false;
}
