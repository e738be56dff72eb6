/* SPDX-License-Identifier: MIT */
/* Random bytes as a configuration of another system: the first byte names the dialect by a letter, or leaves it to be
 * recognised. The resulting policy must load. */
#include "policy/import/import.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A policy may be larger than its source: one rule may become many endpoints. That it is too large is no mistake. */
static bool too_large(const struct becalm_diags *diags)
{
    return diags->count > 0 &&
           (strcmp(diags->diag[0].code, "too-large") == 0 || strcmp(diags->diag[0].code, "too-many") == 0);
}

/* The dialect that stands on the command line; NULL: none does. */
static const char *word_of(uint8_t byte)
{
    size_t count = 0;
    while (import_word(count) != NULL) {
        count++;
    }
    return byte >= 'a' && (size_t)(byte - 'a') < count ? import_word((size_t)(byte - 'a')) : NULL;
}

static void check_loads(const char *policy)
{
    static struct becalm_diags diags;
    struct becalm_config *config = NULL;
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    int rc = becalm_config_parse(&config, "imported", policy, strlen(policy), NULL, &diags);
    BECALM_ASSERT(rc == 0 || too_large(&diags));
    becalm_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_diags diags;
    if (size == 0) {
        return 0;
    }
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    struct import *import = import_new(word_of(data[0]), &diags);
    BECALM_ASSERT(import != NULL);
    bool added = import_add(import, "fuzz.yaml", (const char *)data + 1, size - 1);
    BECALM_ASSERT(added || diags.errors > 0);
    char *policy = import_finish(import);
    BECALM_ASSERT(policy != NULL || diags.errors > 0);
    for (uint32_t i = 0; i < diags.count; i++) {
        BECALM_ASSERT(diags.diag[i].line > 0 && diags.diag[i].column > 0 && diags.diag[i].message[0] != '\0');
    }
    if (policy != NULL) {
        check_loads(policy);
    }
    free(policy);
    import_free(import);
    return 0;
}
