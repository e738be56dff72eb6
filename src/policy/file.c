/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "file.h"

#include "yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *file_read_open(FILE *file, size_t *length)
{
    return file_read_most(file, YAML_BYTES_MAX, length);
}

char *file_read_most(FILE *file, size_t most, size_t *length)
{
    char *text = malloc(most + 2);
    *length = 0;
    if (text == NULL) {
        return NULL;
    }
    errno = 0;
    *length = fread(text, 1, most + 1, file);
    if (ferror(file) != 0) {
        int saved = errno == 0 ? EIO : errno;
        free(text);
        errno = saved;
        return NULL;
    }
    text[*length] = '\0';
    return text;
}

static char *read_and_close(FILE *file, size_t *length)
{
    *length = 0;
    if (file == NULL) {
        return NULL;
    }
    char *text = file_read_open(file, length);
    int saved = errno;
    (void)fclose(file); /* nothing was written to it */
    errno = saved;
    return text;
}

char *file_read(const char *path, size_t *length)
{
    return read_and_close(fopen(path, "rb"), length);
}

/* O_NONBLOCK: to open a FIFO that nobody writes to would take for ever. A regular file does not mind. */
int file_open_regular(const char *path, const char **why)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *why = fd < 0 || fstat(fd, &status) != 0 ? strerror(errno)
           : S_ISREG(status.st_mode)         ? NULL
                                             : "it is not a regular file";
    if (*why != NULL && fd >= 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

char *file_read_regular(const char *path, size_t *length, const char **why)
{
    int fd = file_open_regular(path, why);
    *length = 0;
    if (fd < 0) {
        return NULL;
    }
    FILE *file = fdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
    }
    char *text = read_and_close(file, length);
    *why = text == NULL ? strerror(errno) : NULL;
    return text;
}
