/* SPDX-License-Identifier: MIT */
#include "cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 4096u

struct walk {
    const char *root;
    const char *controller;
    cgroup_fn *limit;
    uint64_t least;
};

/* A cgroup and all that it is inside of. */
static void groups_walk(struct walk *w, const char *mount, const char *group, int version)
{
    char path[PATH_MAX_BYTES];
    size_t length = strlen(group);
    for (;;) {
        int written = snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%.*s", w->root, mount, (int)length, group);
        if (written > 0 && (size_t)written < sizeof path) {
            uint64_t limit = w->limit(path, version);
            w->least = limit < w->least ? limit : w->least;
        }
        if (length == 0) {
            return;
        }
        do {
            length--;
        } while (length > 0 && group[length] != '/');
    }
}

/* Is a word in a list with commas? */
static bool names(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1) {
        if (strncmp(at, word, length) == 0 && (at[length] == '\0' || at[length] == ',')) {
            return true;
        }
    }
    return false;
}

/* One line of /proc/self/cgroup: "0::/path" of version 2, "4:cpu,cpuacct:/path" of version 1. */
static void line_walk(struct walk *w, char *line)
{
    char mount[PATH_MAX_BYTES];
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0') {
        groups_walk(w, "", group, 2);
        groups_walk(w, "/unified", group, 2);
    } else if (names(controllers, w->controller)) { /* mounted by all of its names, or by one of them */
        snprintf(mount, sizeof mount, "/%s", controllers);
        groups_walk(w, mount, group, 1);
        snprintf(mount, sizeof mount, "/%s", w->controller);
        groups_walk(w, mount, group, 1);
    }
}

uint64_t cgroup_least(const char *root, const char *controller, cgroup_fn *limit)
{
    char line[PATH_MAX_BYTES];
    struct walk w = {.root = root, .controller = controller, .limit = limit, .least = UINT64_MAX};
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line_walk(&w, line);
    }
    if (file != NULL) {
        fclose(file);
    }
    return w.least;
}
