/* SPDX-License-Identifier: MIT */
#include "buffer.h"

#include "http/utf8.h"

#include <stdlib.h>

void buffer_free(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){.bytes_max = b->bytes_max};
}

/* Makes room for so many more bytes, or sets `full`. */
static bool buffer_reserve(struct buffer *b, size_t more)
{
    if (b->full) {
        return false;
    }
    if (more <= b->size - b->length) {
        return true;
    }
    b->full = true;
    if (more > b->bytes_max || b->length > b->bytes_max - more) {
        return false;
    }
    size_t size = b->size < 4096 ? 4096 : b->size;
    while (size < b->length + more) {
        size *= 2;
    }
    size = size > b->bytes_max ? b->bytes_max : size;
    char *at = realloc(b->at, size);
    if (at == NULL) {
        return false;
    }
    b->at = at;
    b->size = size;
    b->full = false;
    return true;
}

void buffer_bytes(struct buffer *b, const void *bytes, size_t length)
{
    if (length > 0 && buffer_reserve(b, length)) {
        memcpy(b->at + b->length, bytes, length);
        b->length += length;
    }
}

void buffer_chars(struct buffer *b, const char *text)
{
    buffer_bytes(b, text, strlen(text));
}

void buffer_padded(struct buffer *b, uint64_t number, unsigned digits)
{
    char text[20];
    size_t at = sizeof text;
    BECALM_ASSERT(digits <= sizeof text);
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 || sizeof text - at < digits);
    buffer_bytes(b, text + at, sizeof text - at);
}

void buffer_number(struct buffer *b, uint64_t number)
{
    buffer_padded(b, number, 1);
}

void buffer_decimal(struct buffer *b, uint64_t value, unsigned decimals)
{
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++) {
        one *= 10;
    }
    buffer_number(b, value / one);
    if (decimals > 0) {
        buffer_chars(b, ".");
        buffer_padded(b, value % one, decimals);
    }
}

static uint32_t code_point(const char *at, size_t length)
{
    uint32_t code = (unsigned char)at[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        code = code << 6 | ((unsigned char)at[i] & 0x3fu);
    }
    return code;
}

/* Characters that a terminal, an editor or a reader of lines may take for more than a character. */
static bool is_tricky(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* One character as a JSON string has it, at most 6 bytes into `out`; returns how many. *used is how many bytes of
 * the text it was. */
static size_t json_character(struct becalm_text text, char out[6], size_t *used)
{
    static const char digit[] = "0123456789abcdef";
    static const char short_form[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    size_t length = utf8_length(text.at, text.length);
    uint32_t code = length == 0 ? 0xfffd : length == 1 ? (unsigned char)text.at[0] : code_point(text.at, length);
    *used = length == 0 ? 1 : length;
    const char *brief = code == 0 || code > 0x7f ? NULL : strchr(short_form, (int)code);
    if (brief != NULL && (brief - short_form) % 2 == 0) {
        out[0] = '\\';
        out[1] = brief[1];
        return 2;
    }
    if (length == 0 || is_tricky(code)) {
        out[0] = '\\';
        out[1] = 'u';
        for (unsigned i = 0; i < 4; i++) {
            out[2 + i] = digit[code >> (12 - 4 * i) & 15];
        }
        return 6;
    }
    memcpy(out, text.at, length);
    return length;
}

size_t buffer_plain_run(struct becalm_text text, size_t most)
{
    size_t length = 0;
    while (length < text.length && length < most && text.at[length] >= ' ' && text.at[length] <= '~' &&
           text.at[length] != '"' && text.at[length] != '\\') {
        length++;
    }
    return length;
}

void buffer_json_text(struct buffer *b, struct becalm_text text, size_t room)
{
    size_t written = 2; /* the quotes */
    size_t safe = b->length + 1;
    BECALM_ASSERT(room >= 8);
    buffer_chars(b, "\"");
    while (text.length > 0) {
        char out[6];
        size_t used = buffer_plain_run(text, written + 3 < room ? room - written - 3 : 0); /* most text, in one piece */
        size_t length = used;
        const char *from = text.at;
        if (used == 0) {
            length = json_character(text, out, &used);
            from = out;
        }
        if (written + length > room) { /* back to where the dots still fit */
            b->length = b->full ? b->length : safe;
            buffer_chars(b, "...");
            break;
        }
        buffer_bytes(b, from, length);
        written += length;
        safe = written + 3 <= room ? b->length : safe;
        text.at += used;
        text.length -= used;
    }
    buffer_chars(b, "\"");
}

/* Writes the separator before a member: nothing in a new object or array, else a comma; then the key. */
static void json_before(struct buffer *b, const char *key)
{
    char last = b->length == 0 ? '[' : b->at[b->length - 1];
    if (last != '{' && last != '[' && last != '\n') {
        buffer_chars(b, ",");
    }
    if (key != NULL) {
        buffer_chars(b, "\"");
        buffer_chars(b, key);
        buffer_chars(b, "\":");
    }
}

void buffer_json_open(struct buffer *b, const char *key, char bracket)
{
    json_before(b, key);
    buffer_bytes(b, &bracket, 1);
}

void buffer_json_close(struct buffer *b, char bracket)
{
    buffer_bytes(b, &bracket, 1);
}

void buffer_json_string(struct buffer *b, const char *key, struct becalm_text text)
{
    if (text.at != NULL) {
        json_before(b, key);
        buffer_json_text(b, text, SIZE_MAX);
    }
}

void buffer_json_chars(struct buffer *b, const char *key, const char *text)
{
    buffer_json_string(b, key, text_of(text));
}

void buffer_json_number(struct buffer *b, const char *key, uint64_t number)
{
    json_before(b, key);
    buffer_number(b, number);
}

void buffer_json_decimal(struct buffer *b, const char *key, uint64_t value, unsigned decimals)
{
    json_before(b, key);
    buffer_decimal(b, value, decimals);
}

void buffer_json_bool(struct buffer *b, const char *key, bool value)
{
    json_before(b, key);
    buffer_chars(b, value ? "true" : "false");
}

void buffer_json_null(struct buffer *b, const char *key)
{
    json_before(b, key);
    buffer_chars(b, "null");
}
