/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* May others read or write what is in there? Whoever can write could make us trust their files. */
static bool is_ours_alone(const struct stat *status)
{
    return S_ISDIR(status->st_mode) && status->st_uid == geteuid() && (status->st_mode & 077) == 0;
}

/* A parent that the system made for this user. Under sudo the variable may still name another user's. */
static bool is_our_runtime(const char *path)
{
    struct stat status;
    return path != NULL && path[0] == '/' && stat(path, &status) == 0 && is_ours_alone(&status);
}

static void choose(char path[DIRECTORY_PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char usual[64];
    unsigned user = (unsigned)geteuid();
    (void)snprintf(usual, sizeof usual, "/run/user/%u", user);
    if (!is_our_runtime(runtime) || strlen(runtime) > DIRECTORY_PATH_MAX - sizeof "/becalm") {
        runtime = is_our_runtime(usual) ? usual : NULL;
    }
    if (runtime == NULL) {
        (void)snprintf(path, DIRECTORY_PATH_MAX, "/tmp/becalm-%u", user);
    } else {
        (void)snprintf(path, DIRECTORY_PATH_MAX, "%s/becalm", runtime);
    }
}

int directory_open(char path[DIRECTORY_PATH_MAX], char *why, size_t size)
{
    struct stat status;
    choose(path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        (void)snprintf(why, size, "can't make %s: %s", path, strerror(errno));
        return -1;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        (void)snprintf(why, size, "can't open %s: %s", path, strerror(errno));
        goto fail;
    }
    if (!is_ours_alone(&status)) {
        (void)snprintf(why, size, "%s is not this user's alone (mode 0700)", path);
        goto fail;
    }
    return fd;
fail:
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}
