/* SPDX-License-Identifier: MIT */
/* Keys and values in lines: INI as AWS's tools read it, and Java's .properties. */
#include "directives.h"

#include <string.h>

static bool is_line_end(int byte)
{
    return byte < 0 || byte == '\n' || byte == '\r';
}

static void blanks_skip(struct directives *d)
{
    while (directives_peek(d) == ' ' || directives_peek(d) == '\t' || directives_peek(d) == '\f') {
        directives_step(d);
    }
}

/* ---- INI ---- */

/* The text up to `stop` or the end of the line, without the blanks around it. " #" and " ;" begin a comment. */
static void text_read(struct directives *d, const char *stop)
{
    blanks_skip(d);
    const struct text_place start = d->place;
    bool blank = false;
    size_t length = 0; /* up to the last byte that is no blank */
    for (int byte = directives_peek(d); !is_line_end(byte) && strchr(stop, byte) == NULL; byte = directives_peek(d)) {
        if (blank && (byte == '#' || byte == ';')) {
            directives_skip_line(d);
            break;
        }
        blank = byte == ' ' || byte == '\t';
        directives_word_byte(d, (char)byte);
        length = blank ? length : d->word_length;
        directives_step(d);
    }
    d->word_length = length;
    directives_word_end(d, start);
}

/* [name]: the following lines are in its block. */
static void section_read(struct directives *d)
{
    const struct text_place start = d->place;
    while (d->depth > 1) {
        directives_close(d);
    }
    directives_open(d, start);
    directives_step(d);
    text_read(d, "]");
    if (directives_peek(d) != ']') {
        directives_error(d, start, "syntax", "the name of a section stands in brackets; write a \"]\" behind it");
    }
    directives_skip_line(d);
    directives_open(d, start);
}

/* Open are: the root, in a section its directive and its block, below a key without a value that key and its block. */
static void key_read(struct directives *d, bool indented, uint32_t *outer)
{
    if (!indented && *outer > 0) {
        directives_close(d);
        directives_close(d);
        *outer = 0;
    }
    const struct text_place start = d->place;
    directives_open(d, start);
    text_read(d, "=");
    if (directives_peek(d) != '=') {
        directives_error(d, start, "syntax", "there is no \"=\" behind this key; write \"key = value\"");
        directives_close(d);
        return;
    }
    directives_step(d);
    blanks_skip(d);
    bool empty = is_line_end(directives_peek(d));
    if (empty && *outer == 0 && !d->failed) {
        directives_open(d, start);
        *outer = d->depth;
        return;
    }
    text_read(d, "");
    if (!d->failed) {
        directives_close(d);
    }
}

struct yaml_tree *ini_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    struct directives *d = directives_begin(name, text, length, diags);
    uint32_t outer = 0; /* the depth below a key whose value is the block of indented lines after it */
    if (d == NULL) {
        return NULL;
    }
    while (directives_peek(d) >= 0) {
        const struct text_place start = d->place;
        blanks_skip(d);
        int byte = directives_peek(d);
        if (is_line_end(byte)) {
            directives_step(d);
        } else if (byte == '#' || byte == ';') {
            directives_skip_line(d);
        } else if (byte == '[') {
            outer = 0;
            section_read(d);
        } else {
            key_read(d, d->place.column > start.column, &outer);
        }
    }
    return directives_end(d);
}

/* ---- .properties ---- */

/* A backslash: the end of the line continues it, \t \n \r \f are controls, \u0041 is a character, the rest is itself.
 */
static void escape_read(struct directives *d)
{
    static const char letters[] = "tnrf";
    static const char controls[] = "\t\n\r\f";
    directives_step(d);
    int byte = directives_peek(d);
    if (is_line_end(byte)) {
        if (byte == '\r' && directives_peek_next(d) == '\n') {
            directives_step(d);
        }
        directives_step(d);
        blanks_skip(d);
        return;
    }
    const char *letter = strchr(letters, byte);
    directives_word_byte(d, letter != NULL ? controls[letter - letters] : (char)byte);
    directives_step(d);
}

static void property_text(struct directives *d, bool key)
{
    const struct text_place start = d->place;
    for (int byte = directives_peek(d); !is_line_end(byte); byte = directives_peek(d)) {
        if (key && strchr("=: \t\f", byte) != NULL) {
            break;
        }
        if (byte == '\\') {
            escape_read(d);
        } else {
            directives_word_byte(d, (char)byte);
            directives_step(d);
        }
    }
    while (!key && d->word_length > 0 && strchr(" \t", d->word[d->word_length - 1]) != NULL) {
        d->word_length--;
    }
    directives_word_end(d, start);
}

struct yaml_tree *properties_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    struct directives *d = directives_begin(name, text, length, diags);
    if (d == NULL) {
        return NULL;
    }
    while (directives_peek(d) >= 0) {
        blanks_skip(d);
        int byte = directives_peek(d);
        if (is_line_end(byte)) {
            directives_step(d);
        } else if (byte == '#' || byte == '!') {
            directives_skip_line(d);
        } else {
            directives_open(d, d->place);
            property_text(d, true);
            blanks_skip(d);
            if (directives_peek(d) == '=' || directives_peek(d) == ':') {
                directives_step(d);
                blanks_skip(d);
            }
            property_text(d, false);
            if (!d->failed) {
                directives_close(d);
            }
        }
    }
    return directives_end(d);
}

/* ---- which product's file is it? ---- */

/* The first line that is neither blank nor a comment. */
static const char *first_line(const char *text, size_t length, size_t *out)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end == NULL ? length - at : (size_t)(end - text) - at;
        size_t blank = 0;
        while (blank < line && strchr(" \t\r", text[at + blank]) != NULL) {
            blank++;
        }
        if (blank < line && strchr("#;!", text[at + blank]) == NULL) {
            *out = line - blank;
            return text + at + blank;
        }
        at += line + 1;
    }
    return NULL;
}

bool ini_is(const char *text, size_t length)
{
    size_t left = 0;
    const char *line = first_line(text, length, &left);
    const char *close = line == NULL || line[0] != '[' ? NULL : memchr(line, ']', left);
    if (close == NULL || memchr(line, ',', (size_t)(close - line)) != NULL ||
        memchr(line, '"', (size_t)(close - line)) != NULL) {
        return false; /* JSON's list */
    }
    size_t rest = left - (size_t)(close + 1 - line);
    return close > line + 1 && (rest == 0 || strchr(" \t\r#;", close[1]) != NULL);
}

bool properties_is(const char *text, size_t length)
{
    size_t left = 0;
    const char *line = first_line(text, length, &left);
    const char *sign = line == NULL ? NULL : memchr(line, '=', left);
    size_t key = sign == NULL ? 0 : (size_t)(sign - line);
    return key > 0 && memchr(line, '.', key) != NULL && memchr(line, ':', key) == NULL &&
           memchr(line, '{', key) == NULL && memchr(line, ';', left) == NULL;
}
