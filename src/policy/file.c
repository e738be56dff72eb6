/* SPDX-License-Identifier: MIT */
#include "file.h"

#include "yaml.h"

#include <errno.h>
#include <stdlib.h>

char *file_read_open(FILE *file, size_t *length)
{
    char *text = malloc(YAML_BYTES_MAX + 1);
    *length = 0;
    if (text == NULL) {
        return NULL;
    }
    errno = 0;
    *length = fread(text, 1, YAML_BYTES_MAX + 1, file);
    if (ferror(file) != 0) {
        int saved = errno == 0 ? EIO : errno;
        free(text);
        errno = saved;
        return NULL;
    }
    return text;
}

char *file_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
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
