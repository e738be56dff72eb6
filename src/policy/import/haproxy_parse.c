/* SPDX-License-Identifier: MIT */
/* HAProxy's configuration language: a directive per line, sections by their keyword. Follows its manual, and the
 * verdicts of haproxy -c. */
#include "directives.h"

#include <string.h>

static const char *const sections[] = {"global",    "defaults",  "frontend",    "backend",     "listen",
                                       "peers",     "resolvers", "mailers",     "userlist",    "program",
                                       "cache",     "ring",      "http-errors", "log-forward", "fcgi-app",
                                       "crt-store", "traces",    "acme",        "log-profile", "dynamic-update"};

static bool is_line_end(int byte)
{
    return byte < 0 || byte == '\n' || byte == '\r';
}

static int hex_digit(int byte)
{
    return byte >= '0' && byte <= '9'   ? byte - '0'
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                        : -1;
}

/* \x41, behind its x. A zero would end the word. */
static void hex_read(struct directives *d)
{
    const struct text_place start = d->place;
    int high = hex_digit(directives_peek(d));
    int low = high < 0 ? -1 : hex_digit(directives_peek_next(d));
    if (low < 0 || high * 16 + low == 0) {
        directives_error(d, start, "syntax", "\\x needs two hexadecimal digits that are not 00");
        return;
    }
    directives_word_byte(d, (char)(high * 16 + low));
    directives_step(d);
    directives_step(d);
}

/* A backslash. Returns false at one that joins the line with the next. */
static bool escape_read(struct directives *d, bool quoted)
{
    static const char letters[] = "rnt";
    static const char controls[] = "\r\n\t";
    directives_step(d);
    int byte = directives_peek(d);
    if (is_line_end(byte)) {
        return false;
    }
    const char *letter = quoted ? NULL : strchr(letters, byte);
    directives_step(d);
    if (!quoted && byte == 'x') {
        hex_read(d);
    } else if (letter != NULL) {
        directives_word_byte(d, controls[letter - letters]);
    } else {
        if (quoted && strchr("\"\\$#", byte) == NULL) {
            directives_word_byte(d, '\\'); /* in quotes it stands for itself in front of anything else */
        }
        directives_word_byte(d, (char)byte);
    }
    return true;
}

static void quoted_read(struct directives *d)
{
    const struct text_place start = d->place;
    int quote = directives_peek(d);
    directives_step(d);
    while (!is_line_end(directives_peek(d)) && directives_peek(d) != quote) {
        if (quote == '"' && directives_peek(d) == '\\') {
            (void)escape_read(d, true);
        } else {
            directives_word_byte(d, (char)directives_peek(d));
            directives_step(d);
        }
    }
    if (directives_peek(d) == quote) {
        directives_step(d);
    } else {
        directives_error(d, start, "syntax", "the quote that opens here is not closed on its line; close it");
    }
}

/* A word may be made of bare and quoted pieces. */
static void word_read(struct directives *d)
{
    const struct text_place start = d->place;
    for (int byte = directives_peek(d); !is_line_end(byte) && byte != ' ' && byte != '\t' && byte != '#';
         byte = directives_peek(d)) {
        if (byte == '"' || byte == '\'') {
            quoted_read(d);
        } else if (byte == '\\' && !escape_read(d, false)) {
            break;
        } else if (byte != '\\') {
            directives_word_byte(d, (char)byte);
            directives_step(d);
        }
    }
    directives_word_end(d, start);
}

static void line_end_skip(struct directives *d)
{
    if (directives_peek(d) == '\r' && directives_peek_next(d) == '\n') {
        directives_step(d);
    }
    directives_step(d);
}

/* The words up to the end of the line. A backslash at the end of a line continues it. */
static void words_read(struct directives *d)
{
    for (int byte = directives_peek(d); !is_line_end(byte); byte = directives_peek(d)) {
        if (byte == ' ' || byte == '\t') {
            directives_step(d);
        } else if (byte == '#') {
            directives_skip_line(d);
        } else if (byte == '\\' && is_line_end(directives_peek_next(d))) {
            directives_step(d);
            line_end_skip(d);
        } else {
            word_read(d);
        }
    }
}

/* Does a section begin here? Its keyword is never quoted. */
static bool section_ahead(const char *text, size_t left)
{
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        size_t length = strlen(sections[i]);
        if (left >= length && memcmp(text, sections[i], length) == 0 &&
            (left == length || strchr(" \t\r\n#", text[length]) != NULL)) {
            return true;
        }
    }
    return false;
}

/* Open are: the root, and in a section its directive and its block. */
static void line_read(struct directives *d)
{
    const struct text_place start = d->place;
    bool section = section_ahead(d->text + d->at, d->length - d->at);
    if (section && d->depth > 1) {
        directives_close(d);
        directives_close(d);
    }
    directives_open(d, start);
    words_read(d);
    if (section) {
        directives_open(d, start);
    } else if (!d->failed) {
        directives_close(d);
    }
}

struct yaml_tree *haproxy_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    struct directives *d = directives_begin(name, text, length, diags);
    if (d == NULL) {
        return NULL;
    }
    for (int byte = directives_peek(d); byte >= 0; byte = directives_peek(d)) {
        if (byte == ' ' || byte == '\t' || is_line_end(byte)) {
            directives_step(d);
        } else if (byte == '#') {
            directives_skip_line(d);
        } else if (byte == '\\' && is_line_end(directives_peek_next(d))) {
            directives_step(d); /* it continues a line without a word */
        } else {
            line_read(d);
        }
    }
    return directives_end(d);
}

/* A section's keyword at the start of a line, and no YAML's colon behind it. A section name that only HAProxy has is
 * enough alone; the other names are common words. */
bool haproxy_is(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end == NULL ? length - at : (size_t)(end - text) - at;
        bool plain = memchr(text + at, '{', line) == NULL && memchr(text + at, ':', line) == NULL &&
                     memchr(text + at, ';', line) == NULL && memchr(text + at, '=', line) == NULL;
        if (plain && section_ahead(text + at, line)) {
            return true;
        }
        at += line + 1;
    }
    return false;
}
