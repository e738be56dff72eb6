/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_COPY_H
#define BECALM_CURL_COPY_H

/* A copy of the caller's handle, that a hedge is sent with. curl_easy_duphandle() copies what the handle was told, but
 * not what it has learned, its cookies, nor what it shares with others; and it would write its files over the caller's
 * when it is cleaned up. */

#include "handle.h"

/* `given` are the cookies that it has got, to be freed by copy_free(). NULL: no memory. */
CURL *copy_make(CURL *easy, const struct handle_options *, struct curl_slist **given);

/* It has the answer, so that the caller's handle learns what it has: new cookies, changed ones, and those that are no
 * more. What others have changed meanwhile (in a shared list) stays. */
void copy_cookies_take(CURL *easy, CURL *copy, const struct curl_slist *given);

/* The method that the handle begins with, however it goes on after redirections; "": not known. */
#define METHOD_MAX 32u
void copy_method(CURL *easy, char method[METHOD_MAX]);

void copy_free(CURL *, struct curl_slist *given);

#endif
