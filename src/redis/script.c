/* SPDX-License-Identifier: MIT */
#include "script.h"

#include "embedded.h"

#include <string.h>

extern const struct embedded embedded_redis[];

struct redis_script redis_script(const char *name)
{
    const struct embedded *found = embedded_redis;
    while (strcmp(found->name, name) != 0) {
        found++;
    }
    return (struct redis_script){.text = (const char *)found->text, .length = found->length, .sha = found->sha1};
}
