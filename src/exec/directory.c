/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* May others read or write what is in there? Whoever can write could make us trust their files. */
static bool is_ours_alone(const struct stat *status)
{
    return status->st_uid == geteuid() && (status->st_mode & 077) == 0;
}

/* All of its group may make and replace files, and nobody else anything. With the sticky bit they could not replace
 * each other's. */
static bool is_of_a_group(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) && (status->st_mode & 01077) == 070;
}

void directory_default(char path[DIRECTORY_PATH_MAX], uid_t user)
{
    if (user == 0) {
        (void)snprintf(path, DIRECTORY_PATH_MAX, "/run/becalm-exec");
    } else {
        (void)snprintf(path, DIRECTORY_PATH_MAX, "/tmp/becalm-%u", (unsigned)user);
    }
}

/* The default one is made by who needs it first; whatever else is at its place shows when it is opened. */
static bool make(const char *path, char *why, size_t size)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        (void)snprintf(why, size, "can't make %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

bool directory_open(struct directory *directory, const char *named, char *why, size_t size)
{
    struct stat status;
    *directory = (struct directory){.fd = -1};
    if (named == NULL) {
        directory_default(directory->path, geteuid());
    } else if (snprintf(directory->path, sizeof directory->path, "%s", named) >= (int)sizeof directory->path) {
        (void)snprintf(why, size, "the directory's path is too long");
        return false;
    }
    if (named == NULL && !make(directory->path, why, size)) {
        return false;
    }
    directory->fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory->fd < 0 || fstat(directory->fd, &status) != 0) {
        (void)snprintf(why, size, "can't open %s: %s", directory->path, strerror(errno));
        goto fail;
    }
    directory->group_shared = named != NULL && is_of_a_group(&status);
    directory->group = status.st_gid;
    if (!directory->group_shared && !is_ours_alone(&status)) {
        (void)snprintf(why, size, "%s is not this user's alone (mode 0700)%s", directory->path,
                       named == NULL ? "" : ", nor root's for a group (mode 2770)");
        goto fail;
    }
    return true;
fail:
    directory_close(directory);
    return false;
}

void directory_close(struct directory *directory)
{
    if (directory->fd >= 0) {
        close(directory->fd);
        directory->fd = -1;
    }
}
