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

#define FIRST_ROOM 4096u /* half of the first allocation */

char *file_read_open(FILE *file, size_t *length)
{
    return file_read_most(file, YAML_BYTES_MAX, length);
}

/* Frees the text of a file that could not be read; keeps errno, or says EIO. */
static char *give_up(char *text)
{
    int saved = errno == 0 ? EIO : errno;
    free(text);
    errno = saved;
    return NULL;
}

/* Allocates as much memory as the file needs, not the maximum. When a large block is freed, glibc raises the size from
 * which it maps blocks separately; then large tables of a gateway would come from the heap and be written with zeros.
 */
char *file_read_most(FILE *file, size_t most, size_t *length)
{
    size_t room = FIRST_ROOM;
    char *text = NULL;
    *length = 0;
    errno = 0;
    do {
        room = 2 * room < most + 1 ? 2 * room : most + 1;
        char *larger = realloc(text, room + 1);
        if (larger == NULL) {
            return give_up(text);
        }
        text = larger;
        *length += fread(text + *length, 1, room - *length, file);
    } while (*length == room && room < most + 1);
    if (ferror(file) != 0) {
        return give_up(text);
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

/* O_NONBLOCK: opening a FIFO without a writer would block forever. It has no effect on a regular file. */
const char *file_found(const struct becalm_file *file)
{
    bool is_there = access(file->path, F_OK) == 0 || access(file->written, F_OK) != 0;
    return is_there ? file->path : file->written;
}

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
