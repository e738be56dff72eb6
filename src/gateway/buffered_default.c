/* SPDX-License-Identifier: MIT */
#include "buffered_default.h"

#include <stdio.h>
#include <stdlib.h>

#include "cgroup.h"

#define WITHOUT        (UINT64_C(256) << 20) /* a limit */
#define LEAST          (UINT64_C(1) << 20)
#define PATH_MAX_BYTES 4096u

/* The number in a file of a cgroup. UINT64_MAX: there is no file, or no limit, which version 1 writes as a number near
 * 2^63. */
static uint64_t limit_read(const char *path)
{
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return UINT64_MAX;
    }
    char *got = fgets(text, sizeof text, file);
    fclose(file);
    char *end = text;
    uint64_t limit = got == NULL ? UINT64_MAX : strtoull(text, &end, 10);
    return end == text || limit >= UINT64_C(1) << 60 ? UINT64_MAX : limit;
}

static uint64_t memory_limit(const char *folder, int version)
{
    char path[PATH_MAX_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", folder, version == 2 ? "memory.max" : "memory.limit_in_bytes");
    return length > 0 && (size_t)length < sizeof path ? limit_read(path) : UINT64_MAX;
}

uint64_t memory_allowed(const char *root)
{
    return cgroup_least(root, "memory", memory_limit);
}

uint64_t buffered_default(const char *root)
{
    uint64_t least = memory_allowed(root);
    return least == UINT64_MAX ? WITHOUT : least / 4 < LEAST ? LEAST : least / 4;
}
