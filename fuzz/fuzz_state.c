/* SPDX-License-Identifier: MIT */
/* Random bytes as a gateway's state and decisions, twice as two states of a table; every page of the view drawn from
 * them stays within its screen and sends no control character of theirs to the terminal. */
#include "top/view.h"

#include <becalm/base.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_screen(const struct screen *s)
{
    uint32_t column = 0;
    uint32_t lines = 0;
    for (size_t i = 0; i < s->length; i++) {
        unsigned char c = (unsigned char)s->text[i];
        BECALM_ASSERT(c == '\n' || (c >= ' ' && c != 0x7f));
        column = c == '\n' ? 0 : column + ((c & 0xc0) != 0x80);
        lines += c == '\n';
        BECALM_ASSERT(column <= s->width);
    }
    BECALM_ASSERT(lines <= s->height);
}

static void draw(struct view *view, uint32_t width, bool utf8)
{
    for (uint32_t page = VIEW_LIST; page <= VIEW_SERVICE; page++) {
        struct screen s = {.width = width, .height = 200, .utf8 = utf8, .reset = ""};
        view->page = (enum view_page)page;
        view_draw(view, &s);
        check_screen(&s);
        free(s.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct view view;
    const char *text = (const char *)data;
    memset(&view, 0, sizeof view);
    view.admin = "fuzz";
    int decisions = state_read_decisions(text, size, view.decision);
    view.decision_count = decisions < 0 ? 0 : (uint32_t)decisions;
    for (uint32_t i = 0; i < 2; i++) {
        struct state *state = state_read(text, size);
        if (state != NULL) {
            state->at = i * BECALM_S;
            BECALM_ASSERT(table_add(&view.table, state));
        }
    }
    if (view.table.row_count > 0) {
        memcpy(view.chosen, view.table.row[0].name, sizeof view.chosen);
        memcpy(view.decisions_of, view.chosen, sizeof view.chosen);
    }
    draw(&view, 80, true);
    draw(&view, 120, false);
    view_free(&view);
    return 0;
}
