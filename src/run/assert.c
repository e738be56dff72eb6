/* SPDX-License-Identifier: MIT */
#include <becalm/base.h>

#include <stdio.h>
#include <stdlib.h>

/* Weak, so that a program with a crash handler of its own defines the same function and gets the bug reported there. */
__attribute__((weak)) void becalm_assert_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: becalm: this must not happen: %s\n", file, line, expression);
    abort();
}
