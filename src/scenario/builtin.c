/* SPDX-License-Identifier: MIT */
#include "builtin.h"

#include "policy/value.h"

#include <string.h>

#define NAMES_MAX 128u

const struct embedded *builtin_find(const char *name)
{
    for (const struct embedded *each = embedded_scenarios; each->name != NULL; each++) {
        if (strcmp(each->name, name) == 0) {
            return each;
        }
    }
    return NULL;
}

const char *builtin_nearest(const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (const struct embedded *each = embedded_scenarios; each->name != NULL && count < NAMES_MAX; each++) {
        names[count++] = each->name;
    }
    return value_nearest(name, names, count);
}
