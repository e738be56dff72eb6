/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_SCREEN_H
#define BECALM_TOP_SCREEN_H

/* A screen as text, line by line from its top. Text that does not fit in a line is cut, with a sign at its end, and
 * lines below the last one are cut, too, so that nothing wraps or scrolls. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How text is marked. Every mark but PLAIN is doubled by a word or a sign in the text. */
enum screen_mark {
    SCREEN_PLAIN,
    SCREEN_STRONG,
    SCREEN_FAINT,
    SCREEN_BAD,
    SCREEN_WARN,
    SCREEN_GOOD,
    SCREEN_CHOSEN,
    SCREEN_MARKS
};

struct screen {
    uint32_t width;
    uint32_t height; /* 0: as many lines as there are */
    bool utf8;
    bool live;                      /* a terminal, of which the rest of each line is cleared */
    const char *mark[SCREEN_MARKS]; /* the text that begins each mark; "" for none */
    const char *reset;              /* the text that ends a mark */

    /* Filled by the functions below; `text` is to be freed. */
    char *text;
    size_t length;
    size_t size;
    uint32_t row;
    uint32_t column;
    uint32_t lines; /* that were ended, shown or not */
    uint32_t skip;  /* lines that are not shown, before the next one */
    bool full;      /* no memory */
    bool is_cut;    /* the line is full, and says that there was more */
    size_t last_at; /* of `text`: the last character of the line, and its bytes */
    size_t last_length;
};

/* Appends to the line. Columns are counted, not bytes. */
void screen_put(struct screen *, enum screen_mark, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same in a field of so many columns: cut with a sign, filled with blanks; at the right if `width` is below 0. */
void screen_field(struct screen *, enum screen_mark, int width, const char *text);

/* Blanks up to a column. */
void screen_to(struct screen *, uint32_t column);

/* Ends the line. */
void screen_line(struct screen *);

/* Lines until `row` is reached, if the height is bounded. */
void screen_down(struct screen *, uint32_t row);

/* A text's width in columns, each character being one. */
uint32_t screen_columns(const char *text);

/* True while lines are still shown. */
bool screen_has_room(const struct screen *);

/* ---- figures: short, for narrow columns ---- */

#define SCREEN_FIGURE_MAX 24u

/* STATE_NONE is "-" in all of them. They return their text. */
const char *screen_rate(uint64_t milli, char text[SCREEN_FIGURE_MAX]);  /* 0 0.4 12.3 123 1234 12.3k 1.2M */
const char *screen_share(uint64_t ppm, char text[SCREEN_FIGURE_MAX]);   /* 100% 99.9% 5.2%: cut, not rounded */
const char *screen_factor(uint64_t ppm, char text[SCREEN_FIGURE_MAX]);  /* 1.10x */
const char *screen_time(uint64_t us, char text[SCREEN_FIGURE_MAX]);     /* 0ms 0.4ms 120ms 1.2s 3m12s 2h05m 4d03h */
const char *screen_count(uint64_t count, char text[SCREEN_FIGURE_MAX]); /* 12 1234 12.3k */
const char *screen_tokens(uint64_t millionths, char text[SCREEN_FIGURE_MAX]); /* 9.5 */

#endif
