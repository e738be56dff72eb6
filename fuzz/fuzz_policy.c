/* SPDX-License-Identifier: MIT */
/* Random bytes as a policy file: it loads, or says where it is wrong. */
#include <becalm/config.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_diags diags;
    struct becalm_config *config = NULL;
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    static const struct becalm_load_options all = {.shared_budgets = true};
    int rc = becalm_config_parse(&config, "fuzz.yaml", (const char *)data, size, &all, &diags);
    BECALM_ASSERT(rc == 0 || rc == BECALM_EPARSE);
    BECALM_ASSERT((rc == 0) == (config != NULL) && (rc == 0) == (diags.errors == 0));
    for (uint32_t i = 0; i < diags.count; i++) {
        BECALM_ASSERT(diags.diag[i].line > 0 && diags.diag[i].column > 0 && diags.diag[i].message[0] != '\0');
    }
    becalm_config_free(config);
    return 0;
}
