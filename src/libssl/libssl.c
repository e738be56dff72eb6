/* SPDX-License-Identifier: MIT */
#include "libssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(number)  #number
#define FILE_OF(version) "libssl.so." TEXT_OF(version)
#define FILE_NAME        FILE_OF(OPENSSL_SHLIB_VERSION) /* of the headers, as a linker would note it */

BECALM_ATOMIC(const struct libssl *) libssl_loaded;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct libssl table; /* written with the mutex held, before libssl_loaded points to it */

/* NULL, or why not. libssl brings libcrypto along, so that the functions of both are found in it. */
static const char *table_fill(void)
{
    static const char *const names[] = {
#define NAME(name) #name,
        LIBSSL_FUNCTIONS(NAME)
#undef NAME
    };
    _Static_assert(sizeof table == sizeof names / sizeof *names * sizeof(void *),
                   "one pointer for each, in this order");
    void *library = dlopen(FILE_NAME, RTLD_NOW); /* never closed: OpenSSL's own state lasts until the end */
    if (library == NULL) {
        return dlerror();
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(library, names[i]);
        if (function == NULL) {
            return dlerror();
        }
        memcpy((char *)&table + i * sizeof function, &function, sizeof function);
    }
    return NULL;
}

const char *libssl_find(void)
{
    const char *why = NULL;
    pthread_mutex_lock(&loading);
    if (atomic_load_explicit(&libssl_loaded, memory_order_relaxed) == NULL) {
        why = table_fill();
        if (why == NULL) {
            /* Release: who sees the table sees it filled. */
            atomic_store_explicit(&libssl_loaded, &table, memory_order_release);
        }
    }
    pthread_mutex_unlock(&loading);
    return why;
}

const struct libssl *libssl_load(void)
{
    const char *why = libssl_find();
    if (why != NULL) {
        fprintf(stderr, "becalm: error while loading a library: %s\n", why);
        exit(127);
    }
    return &table;
}
