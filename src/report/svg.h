/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_SVG_H
#define BECALM_SIM_SVG_H

/* Elements of SVG, written to a stream. Lengths are tenths of a pixel and are written with one decimal, so that the
 * same picture is the same bytes on every machine and two of them differ line by line. How things look is said by the
 * classes and a style sheet, never by an element. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Text for XML and HTML, in an element or an attribute: bytes that are no text become question marks. */
void svg_escape(FILE *, const char *text);

struct svg_box {
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
};

/* A picture has a name and a description for people who can't see it. `id` is the prefix of their ids. */
struct svg_frame {
    uint32_t width;
    uint32_t height;
    const char *id;
    const char *title;
    const char *desc;
    bool standalone; /* a file of its own, and not part of a page */
};

void svg_open(FILE *, const struct svg_frame *);
void svg_close(FILE *);

/* Moves all elements until svg_group_close() by this much. */
void svg_group_open(FILE *, uint32_t x, uint32_t y);
void svg_group_close(FILE *);

void svg_rect(FILE *, const char *class, const struct svg_box *);
void svg_line(FILE *, const char *class, uint32_t x1, uint32_t y1, uint32_t x2, uint32_t y2);

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };
void svg_text(FILE *, const char *class, uint32_t x, uint32_t y, enum svg_anchor, const char *text);

/* A curve of steps from x = box->x to its right edge; the heights are from 0, the bottom, to box->height. With `area`
 * it is closed along the bottom. */
void svg_steps(FILE *, const char *class, const struct svg_box *, const uint32_t *height, uint32_t count, bool area);

#endif
