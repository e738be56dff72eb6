/* SPDX-License-Identifier: MIT */
#include "h1_internal.h"

#include <string.h>

/* Characters of a registered name as they are in use: letters, digits, - . _ ~ and %, which two hexadecimal digits have
 * to follow. RFC 3986 allows !$&'()*+,;= as well, but no host has these in its name, and a comma looks like two hosts.
 */
#define A 1
/* clang-format off */
static const bool name_char[256] = {
    ['-'] = A, ['.'] = A, ['_'] = A, ['~'] = A,
    ['0'] = A, A, A, A, A, A, A, A, A, A,
    ['A'] = A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A,
    ['a'] = A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A, A,
};
/* clang-format on */

static bool is_hex(char c)
{
    return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
}

static bool take_registered_name(struct becalm_text *text)
{
    size_t before = text->length;
    for (;;) {
        size_t plain = 0;
        while (plain < text->length && name_char[(unsigned char)text->at[plain]]) {
            plain++;
        }
        text_skip(text, plain);
        if (text_peek(*text) != '%') {
            return text->length < before;
        }
        if (text->length < 3 || !is_hex(text->at[1]) || !is_hex(text->at[2])) {
            return false;
        }
        text_skip(text, 3);
    }
}

/* [::1]: its digits are not counted, because the gateway does not connect to it. */
static bool take_ipv6(struct becalm_text *text)
{
    size_t colons = 0;
    text_skip(text, 1);
    while (is_hex(text_peek(*text)) || text_peek(*text) == ':' || text_peek(*text) == '.') {
        colons += text->at[0] == ':';
        text_skip(text, 1);
    }
    return colons >= 2 && text_take(text, ']');
}

static bool take_host(struct becalm_text *text)
{
    return text_peek(*text) == '[' ? take_ipv6(text) : take_registered_name(text);
}

/* ":80", ":" or nothing, up to the end. */
static bool is_port(struct becalm_text text)
{
    uint64_t port = 0;
    if (text_take(&text, ':')) {
        text_take_number(&text, &port);
    }
    return text_ended(text) && port <= UINT16_MAX;
}

bool h1__authority_valid(struct becalm_text text)
{
    return take_host(&text) && is_port(text);
}

/* CONNECT wants a port, too. */
static bool is_tunnel(struct becalm_text text)
{
    return take_host(&text) && text.length > 1 && is_port(text);
}

static bool split_absolute(struct becalm_text rest, struct h1_target *target)
{
    size_t length = 0;
    while (length < rest.length && rest.at[length] != '/' && rest.at[length] != '?') {
        length++;
    }
    target->authority = (struct becalm_text){rest.at, length};
    text_skip(&rest, length);
    target->path = text_ended(rest) ? (struct becalm_text){"/", 1} : rest;
    return target->path.at[0] == '/' && h1__authority_valid(target->authority);
}

bool h1_target_split(struct becalm_text text, bool connect, struct h1_target *target)
{
    *target = (struct h1_target){0};
    if (text_ended(text) || memchr(text.at, '#', text.length) != NULL) {
        return false; /* a client must not send a fragment; programs that cut it and programs that do not see different
                         paths */
    }
    if (connect) {
        target->authority = text;
        return is_tunnel(text);
    }
    if (text.at[0] == '/' || text_is(text, "*")) {
        target->path = text;
        return true;
    }
    return text_take_word(&text, "http://") && split_absolute(text, target);
}

struct becalm_text h1_authority(const struct head *head)
{
    struct h1_target target;
    struct becalm_text text = head_target(head);
    if (text.at[0] == '/' || !h1_target_split(text, text_is(head_method(head), "CONNECT"), &target) ||
        target.authority.at == NULL) {
        return head_find(head, FIELD_HOST);
    }
    return target.authority;
}
