/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* May other users read or write the files in there? A user who can write could make us trust forged files. */
static bool is_ours_alone(const struct stat *status)
{
    return status->st_uid == geteuid() && (status->st_mode & 077) == 0;
}

/* All members of its group may make and replace files, and other users can do nothing. With the sticky bit members
 * could not replace files of other members. */
static bool is_of_a_group(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) && (status->st_mode & 01077) == 070;
}

bool directory_default(char path[DIRECTORY_PATH_MAX], uid_t user, const char *runtime, uint32_t place)
{
    int length = 0;
    if (user == 0) {
        length = snprintf(path, DIRECTORY_PATH_MAX, "/run/becalm-exec");
        return place == 0;
    }
    if (place == 0 && runtime != NULL && runtime[0] == '/') {
        length = snprintf(path, DIRECTORY_PATH_MAX, "%s/becalm", runtime);
    } else if (place == 0) { /* where it is for sessions; cron has no variable that says so */
        length = snprintf(path, DIRECTORY_PATH_MAX, "/run/user/%u/becalm", (unsigned)user);
    } else if (place == 1) {
        length = snprintf(path, DIRECTORY_PATH_MAX, "/tmp/becalm-%u", (unsigned)user);
    } else {
        length = snprintf(path, DIRECTORY_PATH_MAX, "/tmp/becalm-%u.%u", (unsigned)user, (unsigned)place - 1);
    }
    return place < DIRECTORY_PLACES && length < DIRECTORY_PATH_MAX;
}

/* Opens it for this user alone, or says why not. */
static bool open_alone(struct directory *directory, bool make, char *why, size_t size)
{
    struct stat status;
    if (make && mkdir(directory->path, 0700) != 0 && errno != EEXIST) {
        (void)snprintf(why, size, "can't make %s: %s", directory->path, strerror(errno));
        return false;
    }
    directory->fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory->fd < 0 || fstat(directory->fd, &status) != 0) {
        (void)snprintf(why, size, "can't open %s: %s", directory->path, strerror(errno));
    } else if (!is_ours_alone(&status)) {
        (void)snprintf(why, size, "%s is not this user's alone (mode 0700)", directory->path);
    } else {
        directory->group = status.st_gid;
        return true;
    }
    directory_close(directory);
    return false;
}

/* Every process of the user walks through the places in the same order, so that all find the same one. */
static bool open_default(struct directory *directory, bool make, char *why, size_t size)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    for (uint32_t place = 0; directory_default(directory->path, geteuid(), runtime, place); place++) {
        if (open_alone(directory, make, why, size)) {
            return true;
        }
    }
    return false;
}

static bool open_named(struct directory *directory, const char *named, char *why, size_t size)
{
    struct stat status;
    if (snprintf(directory->path, sizeof directory->path, "%s", named) >= (int)sizeof directory->path) {
        (void)snprintf(why, size, "the directory's path is too long");
        return false;
    }
    directory->fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory->fd < 0 || fstat(directory->fd, &status) != 0) {
        (void)snprintf(why, size, "can't open %s: %s", directory->path, strerror(errno));
        goto fail;
    }
    directory->group_shared = is_of_a_group(&status);
    directory->group = status.st_gid;
    if (!directory->group_shared && !is_ours_alone(&status)) {
        (void)snprintf(why, size, "%s is not this user's alone (mode 0700), nor root's for a group (mode 2770)",
                       directory->path);
        goto fail;
    }
    return true;
fail:
    directory_close(directory);
    return false;
}

bool directory_open(struct directory *directory, const char *named, char *why, size_t size)
{
    *directory = (struct directory){.fd = -1};
    return named == NULL ? open_default(directory, true, why, size) : open_named(directory, named, why, size);
}

bool directory_find(struct directory *directory, const char *named, char *why, size_t size)
{
    *directory = (struct directory){.fd = -1};
    return named == NULL ? open_default(directory, false, why, size) : open_named(directory, named, why, size);
}

void directory_close(struct directory *directory)
{
    if (directory->fd >= 0) {
        close(directory->fd);
        directory->fd = -1;
    }
}
