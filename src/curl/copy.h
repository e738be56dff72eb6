/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_COPY_H
#define BECALM_CURL_COPY_H

/* A copy of the caller's handle, with which a hedge is sent. curl_easy_duphandle() copies the options of the handle,
 * but neither its learned cookies nor its shared data. And when the copy is cleaned up, it would write its files over
 * the caller's. */

#include "handle.h"

/* `given` are the cookies that it has got, to be freed by copy_free(). NULL: no memory. */
CURL *copy_make(CURL *easy, const struct handle_options *, struct curl_slist **given);

/* The copy has the answer, so the caller's handle takes over its cookies: new, changed and deleted ones. Cookies that
 * others have changed meanwhile (in a shared list) stay. */
void copy_cookies_take(CURL *easy, CURL *copy, const struct curl_slist *given);

/* The method that the handle begins with, however it goes on after redirections; "": not known. */
#define METHOD_MAX 32u
void copy_method(CURL *easy, char method[METHOD_MAX]);

void copy_free(CURL *, struct curl_slist *given);

#endif
