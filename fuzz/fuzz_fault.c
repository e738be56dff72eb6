/* SPDX-License-Identifier: MIT */
/* Orders of faults: any input is a complete order, or is refused with a sentence. */
#include "fault/fault.h"

#include <becalm/base.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct fault *fault)
{
    BECALM_ASSERT(fault->service != NULL && fault->length > 0 && fault->cap > 0);
    BECALM_ASSERT(fault->share > 0 && fault->share <= FAULT_ALL && fault->callers > 0 && fault->callers <= FAULT_ALL);
    BECALM_ASSERT((fault->on > 0) == (fault->off > 0) && (fault->word != FAULT_ROLLING || fault->each > 0));
    BECALM_ASSERT((fault->clients != NULL) == (fault->trust != NULL));
    BECALM_ASSERT(memchr(fault->name, '\0', sizeof fault->name) != NULL && fault->status >= 400 && fault->status < 600);
    BECALM_ASSERT(!fault->to_clients || (fault->hosts == 0 && fault->each == 0));
    BECALM_ASSERT(fault_is_of_gateways(fault->word) && fault_word(fault->word) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_diags diags;
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    struct yaml_tree *tree = yaml_parse("body", (const char *)data, size, &diags);
    struct fault *fault = tree == NULL || diags.errors > 0 ? NULL : fault_read(tree, &diags);
    if (fault != NULL) {
        BECALM_ASSERT(diags.errors == 0);
        check(fault);
    } else {
        BECALM_ASSERT(diags.errors > 0 && diags.diag[0].message[0] != '\0');
    }
    fault_free(fault);
    yaml_free(tree);
    return 0;
}
