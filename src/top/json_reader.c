/* SPDX-License-Identifier: MIT */
#include "json_reader.h"

#include "http/utf8.h"

#include <string.h>

void json_reader_init(struct json_reader *r, const char *text, size_t length)
{
    *r = (struct json_reader){.at = text, .end = text + length};
}

void json_reader_fail(struct json_reader *r)
{
    r->failed = true;
    r->at = r->end;
}

static void skip_blanks(struct json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) {
        r->at++;
    }
}

/* The next character that is no blank; 0 at the end, which no JSON has outside of strings. */
static char peek(struct json_reader *r)
{
    skip_blanks(r);
    return r->at < r->end ? *r->at : '\0';
}

static bool take(struct json_reader *r, char c)
{
    if (peek(r) != c) {
        json_reader_fail(r);
        return false;
    }
    r->at++;
    return true;
}

/* ---- objects and arrays ---- */

static void step_in(struct json_reader *r, char open)
{
    if (r->depth == JSON_READER_DEPTH) {
        json_reader_fail(r);
    } else if (take(r, open)) {
        r->depth++;
        r->begun &= ~(1ull << r->depth);
    }
}

/* Is there another member? Takes the comma before it, or the bracket behind the last. */
static bool step_on(struct json_reader *r, char close)
{
    if (r->failed || r->depth == 0) {
        json_reader_fail(r);
        return false;
    }
    if (peek(r) == close) {
        r->at++;
        r->depth--;
        return false;
    }
    bool first = (r->begun >> r->depth & 1) == 0;
    r->begun |= 1ull << r->depth;
    return first ? r->at < r->end : take(r, ',');
}

void json_reader_object(struct json_reader *r)
{
    step_in(r, '{');
}

bool json_reader_key(struct json_reader *r, char *key, size_t size)
{
    key[0] = '\0';
    if (!step_on(r, '}')) {
        return false;
    }
    json_reader_text(r, key, size);
    return take(r, ':');
}

void json_reader_array(struct json_reader *r)
{
    step_in(r, '[');
}

bool json_reader_item(struct json_reader *r)
{
    return step_on(r, ']');
}

/* ---- strings ---- */

/* Four hexadecimal digits; fails otherwise. */
static uint32_t take_hex(struct json_reader *r)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        char c = r->at < r->end ? *r->at : '\0';
        c = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
        const char *digit = c == '\0' ? NULL : strchr(digits, c);
        if (digit == NULL) {
            json_reader_fail(r);
            return 0;
        }
        value = value * 16 + (uint32_t)(digit - digits);
        r->at++;
    }
    return value;
}

/* A code point as UTF-8; half a surrogate pair is a question mark. Returns the length. */
static size_t encode(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point >= 0xd800 && point <= 0xdfff) {
        out[0] = '?';
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (char)((0xf0 << (4 - length) & 0xf0) | point);
    return length;
}

/* Reads the characters after a backslash. */
static size_t take_escape(struct json_reader *r, char out[4])
{
    static const char escapes[] = "\"\\/bfnrt";
    char c = r->at < r->end ? *r->at++ : '\0';
    if (c != 'u') {
        if (c == '\0' || strchr(escapes, c) == NULL) {
            json_reader_fail(r);
        }
        out[0] = strchr("\"\\/", c) != NULL ? c : '?'; /* the other escapes are control characters */
        return 1;
    }
    uint32_t point = take_hex(r);
    if (point >= 0xd800 && point <= 0xdbff && r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        uint32_t low = take_hex(r);
        point = low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
    }
    return encode(point, out);
}

/* One character of a string, and its length. */
static size_t take_character(struct json_reader *r, char out[4])
{
    unsigned char c = (unsigned char)*r->at;
    if (c < 0x20) {
        json_reader_fail(r);
        return 0;
    }
    if (c == '\\') {
        r->at++;
        return take_escape(r, out);
    }
    size_t length = utf8_length(r->at, (size_t)(r->end - r->at));
    if (length == 0) {
        out[0] = '?';
        r->at++;
        return 1;
    }
    memcpy(out, r->at, length);
    r->at += length;
    return length;
}

/* C0, DEL, and C1, which is U+0080 to U+009F. */
static bool is_control(const char *character, size_t length)
{
    unsigned char first = (unsigned char)character[0];
    return length == 1 ? first < 0x20 || first == 0x7f
                       : length == 2 && first == 0xc2 && (unsigned char)character[1] < 0xa0;
}

void json_reader_text(struct json_reader *r, char *text, size_t size)
{
    size_t at = 0;
    bool cut = false;
    text[0] = '\0';
    if (!take(r, '"')) {
        return;
    }
    while (r->at < r->end && *r->at != '"') {
        char character[4];
        size_t length = take_character(r, character);
        if (length > 0 && is_control(character, length)) {
            character[0] = '?';
            length = 1;
        }
        cut = cut || at + length + 1 > size;
        if (!cut) {
            memcpy(text + at, character, length);
            at += length;
        }
    }
    text[r->failed ? 0 : at] = '\0';
    if (r->at == r->end) {
        json_reader_fail(r);
        text[0] = '\0';
    } else {
        r->at++;
    }
}

/* ---- numbers and words ---- */

static bool is_digit(const struct json_reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static uint64_t times_ten(uint64_t value, uint32_t digit)
{
    return value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
}

/* All digits that follow, of which there must be one; the first `most` of them are added to *value. Returns how many
 * were added. */
static uint32_t take_digits(struct json_reader *r, uint64_t *value, uint32_t most)
{
    uint32_t added = 0;
    if (!is_digit(r)) {
        json_reader_fail(r);
    }
    for (; is_digit(r); r->at++) {
        if (added < most) {
            *value = times_ten(*value, (uint32_t)(*r->at - '0'));
            added++;
        }
    }
    return added;
}

static uint64_t scale(uint64_t value, uint64_t places, bool down)
{
    for (; places > 0 && value > 0 && value < UINT64_MAX; places--) {
        value = down ? value / 10 : times_ten(value, 0);
    }
    return value;
}

uint64_t json_reader_number(struct json_reader *r)
{
    uint64_t value = 0;
    uint32_t decimals = 0;
    bool negative = peek(r) == '-';
    r->at += negative;
    if (is_digit(r) && *r->at == '0') {
        r->at++; /* and no other digit may follow */
    } else {
        take_digits(r, &value, UINT32_MAX);
    }
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        decimals = take_digits(r, &value, 6);
    }
    value = scale(value, 6 - decimals, false);
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        uint64_t power = 0;
        r->at++;
        bool down = r->at < r->end && *r->at == '-';
        r->at += down || (r->at < r->end && *r->at == '+');
        take_digits(r, &power, UINT32_MAX);
        value = scale(value, power, down);
    }
    return negative || r->failed ? 0 : value;
}

static bool take_word(struct json_reader *r, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) {
        json_reader_fail(r);
        return false;
    }
    r->at += length;
    return true;
}

bool json_reader_bool(struct json_reader *r)
{
    if (peek(r) == 't') {
        return take_word(r, "true");
    }
    take_word(r, "false");
    return false;
}

void json_reader_skip(struct json_reader *r)
{
    char text[8];
    switch (peek(r)) {
    case '{':
        json_reader_object(r);
        while (json_reader_key(r, text, sizeof text)) {
            json_reader_skip(r);
        }
        break;
    case '[':
        json_reader_array(r);
        while (json_reader_item(r)) {
            json_reader_skip(r);
        }
        break;
    case '"':
        json_reader_text(r, text, sizeof text);
        break;
    case 't':
    case 'f':
        json_reader_bool(r);
        break;
    case 'n':
        take_word(r, "null");
        break;
    default:
        json_reader_number(r);
        break;
    }
}

bool json_reader_done(struct json_reader *r)
{
    if (!r->failed && (peek(r) != '\0' || r->at < r->end || r->depth != 0)) {
        json_reader_fail(r);
    }
    return !r->failed;
}
