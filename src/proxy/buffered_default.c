/* SPDX-License-Identifier: MIT */
#include "buffered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITHOUT        (UINT64_C(256) << 20) /* a limit */
#define LEAST          (UINT64_C(1) << 20)
#define PATH_MAX_BYTES 4096u

/* The number in a file of a cgroup; UINT64_MAX: it is not there, or says that there is no limit, which version 1 does
 * by a number near 2^63. */
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

/* The least of a cgroup and all that it is inside of. In a container the path may be the host's, of which only the end
 * of the way, the mount itself, is there. */
static uint64_t limit_of(const char *mount, const char *group, const char *name)
{
    char path[PATH_MAX_BYTES];
    uint64_t least = UINT64_MAX;
    size_t length = strlen(group);
    for (;;) {
        int written = snprintf(path, sizeof path, "%s%.*s/%s", mount, (int)length, group, name);
        if (written > 0 && (size_t)written < sizeof path) {
            uint64_t limit = limit_read(path);
            least = limit < least ? limit : least;
        }
        if (length == 0) {
            return least;
        }
        do {
            length--;
        } while (length > 0 && group[length] != '/');
    }
}

/* One line of /proc/self/cgroup: "0::/path" of version 2, "4:memory:/path" of version 1. */
static uint64_t limit_of_line(const char *root, char *line)
{
    char mount[PATH_MAX_BYTES];
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return UINT64_MAX;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        uint64_t least = UINT64_MAX;
        static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
            snprintf(mount, sizeof mount, "%s%s", root, mounts[i]);
            uint64_t limit = limit_of(mount, group, "memory.max");
            least = limit < least ? limit : least;
        }
        return least;
    }
    if (strcmp(controllers, "memory") != 0) {
        return UINT64_MAX;
    }
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/memory", root);
    return limit_of(mount, group, "memory.limit_in_bytes");
}

uint64_t buffered_default(const char *root)
{
    char line[PATH_MAX_BYTES];
    uint64_t least = UINT64_MAX;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        uint64_t limit = limit_of_line(root, line);
        least = limit < least ? limit : least;
    }
    if (file != NULL) {
        fclose(file);
    }
    return least == UINT64_MAX ? WITHOUT : least / 4 < LEAST ? LEAST : least / 4;
}
