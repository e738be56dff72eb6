/* SPDX-License-Identifier: MIT */
#include "svg.h"

#include "http/utf8.h"

#include <inttypes.h>
#include <string.h>

/* XML knows no control characters but these three, and not the last two code points of the first plane. */
static bool is_text(const char *at, size_t length)
{
    unsigned char c = (unsigned char)at[0];
    if (length == 1) {
        return (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
    }
    bool c1 = c == 0xc2 && (unsigned char)at[1] <= 0x9f;
    bool last = length == 3 && (memcmp(at, "\xef\xbf\xbe", 3) == 0 || memcmp(at, "\xef\xbf\xbf", 3) == 0);
    return length > 1 && !c1 && !last;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void svg_escape(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t length = utf8_length(text, 4);
        if (!is_text(text, length)) {
            putc('?', out);
        } else if (entity(*text) != NULL) {
            fputs(entity(*text), out);
        } else {
            fwrite(text, 1, length, out);
        }
        text += length == 0 ? 1 : length;
    }
}

static void put_length(FILE *out, uint32_t tenths)
{
    fprintf(out, "%" PRIu32 ".%" PRIu32, tenths / 10, tenths % 10);
}

static void put_attribute(FILE *out, const char *name, uint32_t tenths)
{
    fprintf(out, " %s=\"", name);
    put_length(out, tenths);
    putc('"', out);
}

void svg_open(FILE *out, const struct svg_frame *frame)
{
    fputs("<svg", out);
    if (frame->standalone) {
        fputs(" xmlns=\"http://www.w3.org/2000/svg\"", out);
        put_attribute(out, "width", frame->width);
        put_attribute(out, "height", frame->height);
    }
    fputs(" viewBox=\"0 0 ", out);
    put_length(out, frame->width);
    putc(' ', out);
    put_length(out, frame->height);
    fprintf(out, "\" role=\"img\" aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">", frame->id, frame->id,
            frame->id);
    svg_escape(out, frame->title);
    fprintf(out, "</title>\n<desc id=\"%s-desc\">", frame->id);
    svg_escape(out, frame->desc);
    fputs("</desc>\n", out);
}

void svg_close(FILE *out)
{
    fputs("</svg>\n", out);
}

void svg_group_open(FILE *out, uint32_t x, uint32_t y)
{
    fputs("<g transform=\"translate(", out);
    put_length(out, x);
    putc(' ', out);
    put_length(out, y);
    fputs(")\">\n", out);
}

void svg_group_close(FILE *out)
{
    fputs("</g>\n", out);
}

void svg_rect(FILE *out, const char *class, const struct svg_box *box)
{
    fprintf(out, "<rect class=\"%s\"", class);
    put_attribute(out, "x", box->x);
    put_attribute(out, "y", box->y);
    put_attribute(out, "width", box->width);
    put_attribute(out, "height", box->height);
    fputs("/>\n", out);
}

void svg_line(FILE *out, const char *class, uint32_t x1, uint32_t y1, uint32_t x2, uint32_t y2)
{
    fprintf(out, "<line class=\"%s\"", class);
    put_attribute(out, "x1", x1);
    put_attribute(out, "y1", y1);
    put_attribute(out, "x2", x2);
    put_attribute(out, "y2", y2);
    fputs("/>\n", out);
}

void svg_text(FILE *out, const char *class, uint32_t x, uint32_t y, enum svg_anchor anchor, const char *text)
{
    static const char *const word[] = {[SVG_START] = "start", [SVG_MIDDLE] = "middle", [SVG_END] = "end"};
    fprintf(out, "<text class=\"%s\" text-anchor=\"%s\"", class, word[anchor]);
    put_attribute(out, "x", x);
    put_attribute(out, "y", y);
    putc('>', out);
    svg_escape(out, text);
    fputs("</text>\n", out);
}

/* Only where the height changes is there anything to write. */
void svg_steps(FILE *out, const char *class, const struct svg_box *box, const uint32_t *height, uint32_t count,
               bool area)
{
    uint32_t bottom = box->y + box->height;
    uint32_t at = area ? bottom : bottom - height[0];
    fprintf(out, "<path class=\"%s\" d=\"M", class);
    put_length(out, box->x);
    putc(' ', out);
    put_length(out, at);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t y = bottom - height[i];
        if (y != at) {
            putc('H', out);
            put_length(out, box->x + (uint32_t)((uint64_t)box->width * i / count));
            putc('V', out);
            put_length(out, y);
            at = y;
        }
    }
    putc('H', out);
    put_length(out, box->x + box->width);
    if (area) {
        putc('V', out);
        put_length(out, bottom);
        putc('Z', out);
    }
    fputs("\"/>\n", out);
}
