/* SPDX-License-Identifier: MIT */
#include "libcurl.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "libcurl.so.4" /* since 2006 */

const char *libcurl_find(struct libcurl *libcurl)
{
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {
#define FUNCTION(name) {"curl_" #name, offsetof(struct libcurl, name)},
        LIBCURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    void *library = dlopen(FILE_NAME, RTLD_NOW); /* never closed: libcurl's global state lasts until the process ends */
    if (library == NULL) {
        return dlerror();
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (function == NULL) {
            return dlerror();
        }
        memcpy((char *)libcurl + functions[i].at, &function, sizeof function);
    }
    return NULL;
}

void libcurl_load(struct libcurl *libcurl)
{
    const char *why = libcurl_find(libcurl);
    if (why != NULL) {
        fprintf(stderr, "becalm: error while loading a library: %s\n", why);
        exit(127);
    }
}
