/* SPDX-License-Identifier: MIT */
#include "draft.h"

void draft_add_number(struct draft *draft, const char *name, uint64_t number)
{
    static const char digits[] = "0123456789";
    if (number < 10) {
        draft_add(draft, name, (struct becalm_text){digits + number, 1});
        return;
    }
    size_t from = draft->values.length;
    text_put_number(&draft->values, number);
    draft_add_made(draft, name, from);
}
