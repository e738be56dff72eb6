/* SPDX-License-Identifier: MIT */
#include "path.h"

#include "text_internal.h"

/* What the bytes since the last slash were: 0 to 2 dots, or anything else. */
#define NO_DOTS 3u

static int hex_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c = to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that an escape at the front of a text stands for; -1 if it is no escape. */
static int escape_value(const char *at, size_t length)
{
    if (length < 3 || hex_value(at[1]) < 0 || hex_value(at[2]) < 0) {
        return -1;
    }
    return hex_value(at[1]) * 16 + hex_value(at[2]);
}

static bool is_letter_or_digit(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* RFC 3986, 2.3 */
static bool is_unreserved(int c)
{
    return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* Moves on by one character. False: a dot segment has ended here. */
static bool dots_note(unsigned *dots, int c)
{
    bool border = c == '/' || c == '\\';
    if (border || c == ';') {
        bool fine = *dots != 1 && *dots != 2;
        *dots = border ? 0 : NO_DOTS;
        return fine;
    }
    *dots = c == '.' && *dots < NO_DOTS ? *dots + 1 : NO_DOTS;
    return true;
}

bool becalm__path_read(struct becalm_text target, struct becalm__path *path)
{
    unsigned dots = NO_DOTS;
    size_t i = 0;
    *path = (struct becalm__path){.text = {target.at, 0}};
    while (i < target.length && target.at[i] != '?') {
        int c = (unsigned char)target.at[i];
        size_t width = 1;
        if (is_letter_or_digit(c)) { /* most are */
            dots = NO_DOTS;
            i++;
            continue;
        }
        if (c <= ' ' || c == 0x7f || c == '#') {
            return false;
        }
        if (c == '%') {
            c = escape_value(target.at + i, target.length - i);
            if (c < 0) {
                return false;
            }
            path->escaped = true;
            width = 3;
        }
        if (!dots_note(&dots, c)) {
            return false;
        }
        i += width;
    }
    path->text.length = i;
    bool star = text_is(path->text, "*");
    return dots_note(&dots, '/') && (target.length == 0 || star || (i > 0 && target.at[0] == '/'));
}

/* One character of a path in its normal form: one byte, or an escape of three. Returns what was read of the path. */
static size_t unit_read(struct becalm_text rest, char unit[3], size_t *length)
{
    static const char digits[] = "0123456789ABCDEF";
    unit[0] = rest.at[0];
    *length = 1;
    if (rest.at[0] != '%') {
        return 1;
    }
    int value = escape_value(rest.at, rest.length);
    BECALM_ASSERT(value >= 0); /* becalm__path_read() has seen it */
    if (is_unreserved(value)) {
        unit[0] = (char)value;
    } else {
        unit[1] = digits[value / 16];
        unit[2] = digits[value % 16];
        *length = 3;
    }
    return 3;
}

struct becalm_text becalm__path_normalize(const struct becalm__path *path, char normal[BECALM__PATH_NORMAL_MAX])
{
    struct becalm_text rest = path->text;
    size_t written = 0;
    if (!path->escaped) {
        return path->text;
    }
    while (!text_ended(rest) && written <= BECALM__PATH_RULE_MAX) {
        char unit[3];
        size_t length;
        text_skip(&rest, unit_read(rest, unit, &length));
        memcpy(normal + written, unit, length);
        written += length;
    }
    return (struct becalm_text){normal, written};
}
