/* SPDX-License-Identifier: MIT */
/* nginx's configuration language: words, ";" and "{ }". Follows its documentation, and the verdicts of nginx -t. */
#include "directives.h"

#include <string.h>

static bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* In quotes and outside of them \" \' \\ \t \r \n are one character; any other backslash stands for itself. */
static void escape_read(struct directives *d)
{
    static const char from[] = "\"'\\trn";
    static const char to[] = "\"'\\\t\r\n";
    int next = directives_peek_next(d);
    const char *found = next > 0 ? strchr(from, next) : NULL;
    directives_step(d);
    if (found == NULL) {
        directives_word_byte(d, '\\');
    }
    if (directives_peek(d) >= 0) {
        directives_word_byte(d, found == NULL ? (char)directives_peek(d) : to[found - from]);
        directives_step(d);
    }
}

static void quoted_read(struct directives *d)
{
    const struct text_place start = d->place;
    int quote = directives_peek(d);
    directives_step(d);
    while (directives_peek(d) >= 0 && directives_peek(d) != quote) {
        if (directives_peek(d) == '\\') {
            escape_read(d);
        } else {
            directives_word_byte(d, (char)directives_peek(d));
            directives_step(d);
        }
    }
    if (directives_peek(d) < 0) {
        directives_error(d, start, "syntax", "the quote that opens here is never closed; close it");
    }
    directives_step(d);
    int next = directives_peek(d);
    if (next >= 0 && !is_blank(next) && next != ';' && next != '{' && next != ')') {
        directives_error(d, d->place, "syntax", "a blank or \";\" must stand behind a quoted word");
    }
    directives_word_end(d, start);
}

static void bare_read(struct directives *d)
{
    const struct text_place start = d->place;
    for (int byte = directives_peek(d); byte >= 0 && !is_blank(byte) && byte != ';'; byte = directives_peek(d)) {
        if (byte == '\\') {
            escape_read(d);
            continue;
        }
        if (byte == '{') {
            break;
        }
        directives_word_byte(d, (char)byte);
        directives_step(d);
        if (byte == '$' && directives_peek(d) == '{') { /* ${name} is part of a word */
            directives_word_byte(d, '{');
            directives_step(d);
        }
    }
    directives_word_end(d, start);
}

/* Code of another language: everything up to the bracket that closes. Lua's texts and comments may hold brackets. */
static void code_skip(struct directives *d)
{
    const struct text_place start = d->place;
    unsigned depth = 1;
    while (depth > 0 && directives_peek(d) >= 0) {
        int byte = directives_peek(d);
        directives_step(d);
        if (byte == '-' && directives_peek(d) == '-') {
            directives_skip_line(d);
        } else if (byte == '"' || byte == '\'') {
            while (directives_peek(d) >= 0 && directives_peek(d) != byte && directives_peek(d) != '\n') {
                if (directives_peek(d) == '\\') {
                    directives_step(d);
                }
                directives_step(d);
            }
            directives_step(d);
        } else if (byte == '{') {
            depth++;
        } else if (byte == '}') {
            depth--;
        }
    }
    if (depth > 0) {
        directives_error(d, start, "syntax", "the block of code is never closed; write a \"}\" behind it");
    }
}

static bool is_code(const char *name)
{
    static const char ending[] = "_by_lua_block";
    size_t length = strlen(name);
    return length >= sizeof ending - 1 && strcmp(name + length - (sizeof ending - 1), ending) == 0;
}

/* A "{": the directive gets a block. */
static void block_begin(struct directives *d)
{
    const struct yaml_node *name = directives_items(d) == 0 ? NULL : d->item[d->open[d->depth - 1].first];
    const struct text_place place = d->place;
    directives_step(d);
    if (name == NULL) {
        directives_error(d, place, "syntax", "a block needs a name; write a directive in front of the \"{\"");
        name = yaml_tree_scalar(d->tree, place.line, place.column, "", 0);
        directives_word_end(d, place);
    }
    bool code = !d->failed && name != NULL && is_code(name->text);
    directives_open(d, place);
    if (code) {
        code_skip(d);
        directives_close(d); /* the block, which is empty */
        directives_close(d);
    }
}

/* One directive, up to its ";" or "{". A directive that is open when another one should begin is the block's own. */
static void directive_read(struct directives *d)
{
    directives_open(d, d->place);
    for (;;) {
        int byte = directives_peek(d);
        if (byte < 0) {
            if (!d->failed) {
                directives_error(d, d->place, "syntax", "the file ends inside of a directive; a \";\" is missing");
            }
            directives_close(d);
            return;
        }
        if (is_blank(byte)) {
            directives_step(d);
        } else if (byte == '#') {
            directives_skip_line(d);
        } else if (byte == ';') {
            directives_step(d);
            directives_close(d);
            return;
        } else if (byte == '{') {
            block_begin(d);
            return;
        } else if (byte == '"' || byte == '\'') {
            quoted_read(d);
        } else if (byte == '}') {
            directives_error(d, d->place, "syntax", "a \";\" is missing in front of the \"}\"");
            directives_close(d);
            return;
        } else {
            bare_read(d);
        }
    }
}

/* Open are: the root, and for each block its directive and the block. */
static void close_block(struct directives *d)
{
    if (d->depth < 3) {
        directives_error(d, d->place, "syntax", "a \"}\" closes a block that was not opened; remove it");
    } else {
        directives_close(d);
        directives_close(d);
    }
    directives_step(d);
}

struct yaml_tree *nginx_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags)
{
    struct directives *d = directives_begin(name, text, length, diags);
    if (d == NULL) {
        return NULL;
    }
    for (int byte = directives_peek(d); byte >= 0; byte = directives_peek(d)) {
        if (is_blank(byte)) {
            directives_step(d);
        } else if (byte == '#') {
            directives_skip_line(d);
        } else if (byte == '}') {
            close_block(d);
        } else if (byte == ';') {
            directives_error(d, d->place, "syntax", "there is no directive in front of this \";\"; remove it");
            directives_step(d);
        } else {
            directive_read(d);
        }
    }
    if (d->depth > 1 && !d->failed) {
        const struct text_place open = d->open[d->depth - 1].place;
        directives_error(d, open, "syntax", "the block that opens here is never closed; write a \"}\" behind it");
    }
    return directives_end(d);
}

/* ---- which product's file is it? ---- */

/* Does a line of the text begin with the word, followed by the characters that nginx requires? */
static bool line_has(const char *line, size_t length, const char *word)
{
    size_t have = strlen(word);
    while (length > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    if (length <= have || memcmp(line, word, have) != 0 || strchr(" \t{", line[have]) == NULL) {
        return false;
    }
    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL) {
        length--;
    }
    return strchr("{};", line[length - 1]) != NULL;
}

bool nginx_is(const char *text, size_t length)
{
    static const char *const words[] = {"http",       "server", "upstream", "location",        "events",
                                        "proxy_pass", "listen", "include",  "worker_processes"};
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end == NULL ? length - at : (size_t)(end - text) - at;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (line_has(text + at, line, words[i])) {
                return true;
            }
        }
        at += line + 1;
    }
    return false;
}
