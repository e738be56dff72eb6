/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700

#include "replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A new file has the mode that any other program would have given it. */
static mode_t mode_of_new(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int temporary_open(struct replace *file, mode_t mode)
{
    static const char ending[] = ".XXXXXX";
    size_t length = strlen(file->path);
    file->temporary = malloc(length + sizeof ending);
    if (file->temporary == NULL) {
        return -1;
    }
    memcpy(file->temporary, file->path, length);
    memcpy(file->temporary + length, ending, sizeof ending);
    int fd = mkstemp(file->temporary);
    if (fd < 0) {
        free(file->temporary);
        file->temporary = NULL; /* there is nothing to remove */
        return -1;
    }
    file->out = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
    if (file->out == NULL) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return 0;
}

int replace_open(struct replace *file, const char *path)
{
    struct stat info;
    bool there = stat(path, &info) == 0;
    memset(file, 0, sizeof *file);
    file->path = there ? realpath(path, NULL) : strdup(path);
    int rc = file->path == NULL ? -1 : 0;
    if (rc == 0 && there && !S_ISREG(info.st_mode)) {
        file->out = fopen(path, "w");
        rc = file->out == NULL ? -1 : 0;
    } else if (rc == 0) {
        rc = temporary_open(file, there ? info.st_mode & 07777 : mode_of_new());
    }
    if (rc != 0) {
        int why = errno;
        replace_close(file);
        errno = why;
    }
    return rc;
}

int replace_commit(struct replace *file)
{
    bool wrong = ferror(file->out) != 0;
    errno = wrong ? EIO : 0;
    int rc = fclose(file->out) != 0 || wrong ? -1 : 0;
    file->out = NULL;
    if (rc == 0 && file->temporary != NULL) {
        rc = rename(file->temporary, file->path);
        if (rc == 0) {
            free(file->temporary);
            file->temporary = NULL;
        }
    }
    int why = errno;
    replace_close(file);
    errno = why;
    return rc;
}

void replace_close(struct replace *file)
{
    if (file->out != NULL) {
        fclose(file->out);
    }
    if (file->temporary != NULL) {
        unlink(file->temporary);
    }
    free(file->temporary);
    free(file->path);
    memset(file, 0, sizeof *file);
}
