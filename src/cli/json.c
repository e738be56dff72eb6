/* SPDX-License-Identifier: MIT */
#include "json.h"

#include "http/utf8.h"

#include <becalm/base.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

void json_begin(struct json *json, FILE *out)
{
    *json = (struct json){.out = out, .first = true};
}

void json_end(struct json *json)
{
    BECALM_ASSERT(json->depth == 0 && !json->first);
    putc('\n', json->out);
}

static void line(struct json *json)
{
    putc('\n', json->out);
    for (uint32_t i = 0; i < json->depth; i++) {
        fputs("  ", json->out);
    }
}

static void escaped(FILE *out, unsigned char c)
{
    static const char short_form[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    for (const char *at = short_form; *at != '\0'; at += 2) {
        if (c == (unsigned char)at[0]) {
            putc('\\', out);
            putc(at[1], out);
            return;
        }
    }
    if (c < 0x20 || c == 0x7f) {
        fprintf(out, "\\u%04x", (unsigned)c);
    } else {
        putc(c, out);
    }
}

static void string(FILE *out, const char *value)
{
    putc('"', out);
    while (*value != '\0') {
        size_t length = utf8_length(value, 4);
        if (length == 0) {
            fputs("\xef\xbf\xbd", out); /* U+FFFD, the replacement character */
            value++;
        } else if (length == 1) {
            escaped(out, (unsigned char)*value);
            value++;
        } else {
            fwrite(value, 1, length, out);
            value += length;
        }
    }
    putc('"', out);
}

/* Writes the text before every value: a comma after the previous one, a new line, the key. */
static void before(struct json *json, const char *key)
{
    BECALM_ASSERT(json->depth > 0 || (json->first && key == NULL));
    if (!json->first) {
        putc(',', json->out);
    }
    if (json->depth > 0) {
        line(json);
    }
    if (key != NULL) {
        string(json->out, key);
        fputs(": ", json->out);
    }
    json->first = false;
}

static void open_with(struct json *json, const char *key, char bracket)
{
    before(json, key);
    putc(bracket, json->out);
    json->depth++;
    json->first = true;
}

static void close_with(struct json *json, char bracket)
{
    BECALM_ASSERT(json->depth > 0);
    json->depth--;
    if (!json->first) { /* an empty one stays on its line: {} */
        line(json);
    }
    putc(bracket, json->out);
    json->first = false;
}

void json_object(struct json *json, const char *key)
{
    open_with(json, key, '{');
}

void json_object_end(struct json *json)
{
    close_with(json, '}');
}

void json_array(struct json *json, const char *key)
{
    open_with(json, key, '[');
}

void json_array_end(struct json *json)
{
    close_with(json, ']');
}

void json_text(struct json *json, const char *key, const char *value)
{
    if (value == NULL) {
        json_null(json, key);
        return;
    }
    before(json, key);
    string(json->out, value);
}

void json_integer(struct json *json, const char *key, uint64_t value)
{
    before(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_number(struct json *json, const char *key, double value, int decimals)
{
    char text[512]; /* the largest double has 309 digits before the point */
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    BECALM_ASSERT(decimals >= 0 && decimals <= 100);
    int length = snprintf(text, sizeof text, "%.*f", decimals, value);
    BECALM_ASSERT(length > 0 && (size_t)length < sizeof text);
    if (decimals > 0) {
        while (text[length - 1] == '0') {
            length--;
        }
        if (text[length - 1] == '.') {
            length--;
        }
        text[length] = '\0';
    }
    before(json, key);
    fputs(strcmp(text, "-0") == 0 ? "0" : text, json->out);
}

void json_boolean(struct json *json, const char *key, bool value)
{
    before(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
    before(json, key);
    fputs("null", json->out);
}
