/* SPDX-License-Identifier: MIT */
#include "h2_field_rules.h"

#include "http/text_internal.h"

enum { NAME = 1, METHOD = 2, AUTHORITY = 4, PATH = 8, SCHEME = 16 };

/* Where each byte is allowed: names and methods are tokens (RFC 9110, 5.6.2), names in lower case; an authority has the
 * characters of RFC 3986, and a path all visible characters. */
/* clang-format off */
static const uint8_t may[256] = {
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     0, 15,  8, 11, 15, 15, 15, 15, 12, 12, 15, 31, 12, 31, 31,  8, /* blank ! " # $ ... */
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 12, 12,  8, 12,  8,  8, /* 0 1 2 ... */
    12, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, /* @ A B ... */
    30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 12,  8, 12, 11, 15, /* P Q R ... */
    11, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, /* ` a b ... */
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,  8, 11,  8, 15,  0, /* p q r ... */
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8, /* beyond ASCII */
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
     8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,  8,
};
/* clang-format on */

static bool all_may(struct becalm_text text, uint8_t what)
{
    uint8_t each = what;
    for (size_t i = 0; i < text.length; i++) {
        each &= may[(unsigned char)text.at[i]];
    }
    return each != 0 && text.length > 0;
}

bool h2_is_name(struct becalm_text text)
{
    return all_may(text, NAME);
}

bool h2_is_method(struct becalm_text text)
{
    return all_may(text, METHOD);
}

bool h2_is_authority(struct becalm_text text)
{
    return all_may(text, AUTHORITY);
}

bool h2_is_path(struct becalm_text text)
{
    return all_may(text, PATH);
}

bool h2_is_scheme(struct becalm_text text)
{
    return all_may(text, SCHEME) && to_lower(text.at[0]) >= 'a' && to_lower(text.at[0]) <= 'z';
}

bool h2_is_status(struct becalm_text text)
{
    return text.length == 3 && is_digit(text.at[0]) && is_digit(text.at[1]) && is_digit(text.at[2]) &&
           memcmp(text.at, "101", 3) != 0; /* HTTP/2 knows no upgrade */
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Control bytes among eight: those below a blank, and DEL. Tabs are found, too. */
static bool may_have_control(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = ones << 7;
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    uint64_t low = (eight - ones * ' ') & ~eight;
    uint64_t del = eight ^ ones * 0x7f;
    return ((low | ((del - ones) & ~del)) & tops) != 0;
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

bool h2_is_value(struct becalm_text text)
{
    size_t at = 0;
    if (text.length > 0 && (is_blank(text.at[0]) || is_blank(text.at[text.length - 1]))) {
        return false;
    }
    while (text.length - at >= 8 && !may_have_control(text.at + at)) {
        at += 8;
    }
    while (at < text.length && !is_control(text.at[at])) {
        at++;
    }
    return at == text.length;
}

int64_t h2_length_of(struct becalm_text text)
{
    uint64_t number;
    bool all = text_take_number(&text, &number) > 0 && text_ended(text);
    return all && number <= INT64_MAX ? (int64_t)number : -1;
}

static bool is(struct becalm_text name, const char *word)
{
    return memcmp(name.at, word, name.length) == 0;
}

enum h2_field_kind h2_field_kind(struct becalm_text name)
{
    switch (name.length) {
    case 2:
        return is(name, "te") ? H2_FIELD_TE : H2_FIELD_ANY;
    case 4:
        return is(name, "host") ? H2_FIELD_HOST : H2_FIELD_ANY;
    case 7:
        return is(name, "upgrade") ? H2_FIELD_HOP : H2_FIELD_ANY;
    case 10:
        return is(name, "connection") || is(name, "keep-alive") ? H2_FIELD_HOP : H2_FIELD_ANY;
    case 14:
        return is(name, "content-length") ? H2_FIELD_LENGTH : H2_FIELD_ANY;
    case 16:
        return is(name, "proxy-connection") ? H2_FIELD_HOP : H2_FIELD_ANY;
    case 17:
        return is(name, "transfer-encoding") ? H2_FIELD_HOP : H2_FIELD_ANY;
    default: /* no other is so long */
        return H2_FIELD_ANY;
    }
}
