/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include "http/utf8.h"
#include "state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096

/* ---- lines ---- */

bool screen_has_room(const struct screen *s)
{
    return s->height == 0 || s->row < s->height;
}

static bool is_shown(const struct screen *s)
{
    return s->skip == 0 && screen_has_room(s);
}

static void append(struct screen *s, const char *text, size_t length)
{
    if (s->length + length + 1 > s->size) {
        size_t size = (s->length + length + 1) * 2;
        char *more = realloc(s->text, size);
        if (more == NULL) {
            s->full = true;
            return;
        }
        s->text = more;
        s->size = size;
    }
    memcpy(s->text + s->length, text, length);
    s->length += length;
    s->text[s->length] = '\0';
}

/* The length of the character at `text`, which is zero-terminated; a byte that is not UTF-8 counts as one character. */
static size_t character(const char *text)
{
    size_t length = utf8_length(text, 4);
    return length == 0 ? 1 : length;
}

uint32_t screen_columns(const char *text)
{
    uint32_t columns = 0;
    for (; *text != '\0'; text += character(text)) {
        columns++;
    }
    return columns;
}

/* The last character of the line becomes the sign that more of it is not shown. */
static void cut(struct screen *s)
{
    const char *sign = s->utf8 ? "\u2026" : "~";
    size_t length = strlen(sign);
    if (s->is_cut || s->column == 0 || s->full) {
        return;
    }
    s->is_cut = true;
    append(s, "    ", 4); /* room for a longer one */
    if (s->full) {
        return;
    }
    s->length -= 4;
    size_t behind = s->last_at + s->last_length;
    memmove(s->text + s->last_at + length, s->text + behind, s->length - behind + 1);
    memcpy(s->text + s->last_at, sign, length);
    s->length = s->length + length - s->last_length;
    s->text[s->length] = '\0';
    s->last_length = length;
}

/* At most `most` columns of a text. Where the terminal has no UTF-8, another character is a question mark. */
static void put_columns(struct screen *s, const char *text, uint32_t most)
{
    for (; most > 0 && *text != '\0' && s->column < s->width; most--) {
        size_t length = character(text);
        bool foreign = length > 1 && !s->utf8;
        s->last_at = s->length;
        append(s, foreign ? "?" : text, foreign ? 1 : length);
        s->last_length = s->length - s->last_at;
        text += length;
        s->column++;
    }
    if (most > 0 && s->column == s->width && text[strspn(text, " ")] != '\0') { /* blanks are not missed */
        cut(s);
    }
}

static void put_marked(struct screen *s, enum screen_mark mark, const char *text, uint32_t most)
{
    if (!is_shown(s) || most == 0 || s->is_cut) {
        return;
    }
    bool marked = s->mark[mark] != NULL && s->mark[mark][0] != '\0';
    if (marked) {
        append(s, s->mark[mark], strlen(s->mark[mark]));
    }
    put_columns(s, text, most);
    if (marked) {
        append(s, s->reset, strlen(s->reset));
    }
}

void screen_put(struct screen *s, enum screen_mark mark, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put_marked(s, mark, text, UINT32_MAX);
}

static void put_blanks(struct screen *s, enum screen_mark mark, uint32_t count)
{
    static const char blanks[] = "                                                                ";
    while (count > 0) {
        uint32_t some = count < sizeof blanks - 1 ? count : (uint32_t)(sizeof blanks - 1);
        put_marked(s, mark, blanks, some);
        count -= some;
    }
}

void screen_field(struct screen *s, enum screen_mark mark, int width, const char *text)
{
    uint32_t columns = screen_columns(text);
    uint32_t wide = (uint32_t)(width < 0 ? -width : width);
    enum screen_mark around = mark == SCREEN_CHOSEN ? mark : SCREEN_PLAIN;
    if (wide == 0) {
        return;
    }
    if (width < 0 && columns < wide) {
        put_blanks(s, around, wide - columns);
    }
    if (columns > wide) {
        put_marked(s, mark, text, wide - 1);
        put_marked(s, mark, s->utf8 ? "\u2026" : "~", 1);
    } else {
        put_marked(s, mark, text, columns);
    }
    if (width > 0 && columns < wide) {
        put_blanks(s, around, wide - columns);
    }
}

void screen_to(struct screen *s, uint32_t column)
{
    put_blanks(s, SCREEN_PLAIN, column > s->column ? column - s->column : 0);
}

void screen_line(struct screen *s)
{
    if (s->skip > 0) {
        s->skip--;
    } else if (screen_has_room(s)) {
        const char *end = s->live ? "\033[K\r\n" : "\n";
        append(s, end, strlen(end));
        s->row++;
    }
    s->lines++;
    s->column = 0;
    s->is_cut = false;
}

void screen_down(struct screen *s, uint32_t row)
{
    s->skip = 0;
    while (s->height > 0 && s->row < row && screen_has_room(s)) {
        screen_line(s);
    }
}

/* ---- figures ---- */

/* A value in thousandths with at most four digits and a letter. */
static const char *short_figure(uint64_t milli, char text[SCREEN_FIGURE_MAX])
{
    static const char letters[] = " kMGTP";
    size_t letter = 0;
    uint64_t above = 9999999; /* four digits are read more easily than one and a letter */
    if (milli == STATE_NONE) {
        return strcpy(text, "-");
    }
    while (milli > above && letters[letter + 1] != '\0') {
        milli /= 1000;
        letter++;
        above = 999999;
    }
    char *end = text;
    if (milli == 0) {
        end += sprintf(end, "0");
    } else if (milli < 100 && letter == 0) {
        end += sprintf(end, "0.%02" PRIu64, milli < 10 ? 1 : milli / 10); /* a value above 0 is never shown as 0 */
    } else if (milli < 100000) {
        end += sprintf(end, "%" PRIu64 ".%" PRIu64, milli / 1000, milli % 1000 / 100);
    } else {
        end += sprintf(end, "%" PRIu64, milli / 1000);
    }
    if (letter > 0) {
        *end++ = letters[letter];
        *end = '\0';
    }
    return text;
}

const char *screen_rate(uint64_t milli, char text[SCREEN_FIGURE_MAX])
{
    return short_figure(milli, text);
}

const char *screen_count(uint64_t count, char text[SCREEN_FIGURE_MAX])
{
    if (count < 10000) {
        sprintf(text, "%" PRIu64, count);
        return text;
    }
    return short_figure(count > STATE_NONE / 1000 ? STATE_NONE : count * 1000, text);
}

const char *screen_tokens(uint64_t millionths, char text[SCREEN_FIGURE_MAX])
{
    return short_figure(millionths == STATE_NONE ? STATE_NONE : millionths / 1000, text);
}

const char *screen_share(uint64_t ppm, char text[SCREEN_FIGURE_MAX])
{
    if (ppm == STATE_NONE) {
        return strcpy(text, "-");
    }
    if (ppm % 1000000 == 0 || ppm > 1000000) {
        sprintf(text, "%" PRIu64 "%%", ppm / 10000);
    } else {
        sprintf(text, "%" PRIu64 ".%" PRIu64 "%%", ppm / 10000, ppm % 10000 / 1000);
    }
    return text;
}

const char *screen_factor(uint64_t ppm, char text[SCREEN_FIGURE_MAX])
{
    if (ppm == STATE_NONE) {
        return strcpy(text, "-");
    }
    if (ppm < 10000000) {
        sprintf(text, "%" PRIu64 ".%02" PRIu64 "x", ppm / 1000000, ppm % 1000000 / 10000);
    } else {
        sprintf(text, "%" PRIu64 ".%" PRIu64 "x", ppm / 1000000, ppm % 1000000 / 100000);
    }
    return text;
}

const char *screen_time(uint64_t us, char text[SCREEN_FIGURE_MAX])
{
    uint64_t seconds = us / 1000000;
    if (us == STATE_NONE) {
        return strcpy(text, "-");
    }
    if (us == 0) {
        strcpy(text, "0ms");
    } else if (us < 10000) {
        sprintf(text, "%" PRIu64 ".%" PRIu64 "ms", us / 1000, us % 1000 / 100);
    } else if (us < 1000000) {
        sprintf(text, "%" PRIu64 "ms", us / 1000);
    } else if (seconds < 60) {
        sprintf(text, "%" PRIu64 ".%" PRIu64 "s", seconds, us % 1000000 / 100000);
    } else if (seconds < 3600) {
        sprintf(text, "%" PRIu64 "m%02" PRIu64 "s", seconds / 60, seconds % 60);
    } else if (seconds < 86400) {
        sprintf(text, "%" PRIu64 "h%02" PRIu64 "m", seconds / 3600, seconds % 3600 / 60);
    } else {
        sprintf(text, "%" PRIu64 "d%02" PRIu64 "h", seconds / 86400, seconds % 86400 / 3600);
    }
    return text;
}
