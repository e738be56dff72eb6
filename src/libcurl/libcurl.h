/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LIBCURL_LIBCURL_H
#define BECALM_LIBCURL_LIBCURL_H

/* libcurl for the command, loaded when it is first needed: it brings thirty libraries and four megabytes along, while a
 * gateway that exports no traces, a simulation or a wrapped command makes no HTTP requests with it. */

#include <curl/curl.h>

/* clang-format off */
#define LIBCURL_FUNCTIONS(X) \
    X(easy_init) X(easy_setopt) X(easy_perform) X(easy_getinfo) X(easy_escape) X(easy_strerror) X(easy_cleanup) \
    X(multi_init) X(multi_add_handle) X(multi_perform) X(multi_poll) X(multi_info_read) X(multi_remove_handle) \
    X(multi_cleanup) \
    X(slist_append) X(slist_free_all) X(free)
/* clang-format on */

/* Each function as the header declares it, by its name without "curl_". */
struct libcurl {
#define LIBCURL_MEMBER(name) __typeof__(&curl_##name) name;
    LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
#undef LIBCURL_MEMBER
};

/* NULL, or why there is none. */
const char *libcurl_find(struct libcurl *);

/* Where there is no libcurl, the program ends with a sentence and 127: as if it had been linked. */
void libcurl_load(struct libcurl *);

#endif
