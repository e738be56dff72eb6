/* SPDX-License-Identifier: MIT */
/* Random bytes as events to calls; chaos.h has the invariants that are asserted. */
#include "chaos.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chaos_counts counts = {0};
    chaos_run(data, size < 65536 ? size : 65536, &counts);
    return 0;
}
