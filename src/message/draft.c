/* SPDX-License-Identifier: MIT */
#include "draft.h"

void draft_add_number(struct draft *draft, const char *name, uint64_t number)
{
    size_t from = draft->values.length;
    text_put_number(&draft->values, number);
    draft_add_made(draft, name, from);
}
