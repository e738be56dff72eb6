/* SPDX-License-Identifier: MIT */
/* Random bytes as actions of clients, hosts, the clock and the operator on a worker of a gateway, and as allocations
 * that fail; exchange_script.h has the assertions. */
#include "exchange_script.h"

#include <stdbool.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The linker sends the gateway's allocations here: --wrap in CMakeLists.txt. Other threads' always succeed. */
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);

static _Thread_local uint32_t before_failure; /* 0: none fails */

static void fail_after(uint32_t after)
{
    before_failure = after == UINT32_MAX ? 0 : after + 1;
}

static bool fails(void)
{
    return before_failure > 0 && --before_failure == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    exchange_script_fail = fail_after;
    exchange_script_run(data, size < 512 ? size : 512);
    return 0;
}
