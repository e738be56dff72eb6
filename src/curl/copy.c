/* SPDX-License-Identifier: MIT */
#include "copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cookies: lines of fields with tabs between them, as in Netscape's file ---- */

enum cookie_field { COOKIE_DOMAIN, COOKIE_PATH = 2, COOKIE_EXPIRES = 4, COOKIE_NAME = 5 };

static struct curl_slist *cookies_of(CURL *easy)
{
    struct curl_slist *cookies = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &cookies);
    return cookies;
}

static struct becalm_text field_of(const char *line, enum cookie_field field)
{
    for (int i = 0; i < (int)field; i++) {
        line += strcspn(line, "\t");
        line += *line == '\t';
    }
    return (struct becalm_text){line, strcspn(line, "\t")};
}

static bool field_same(const char *line, const char *other, enum cookie_field field)
{
    struct becalm_text a = field_of(line, field);
    struct becalm_text b = field_of(other, field);
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* The same cookie, perhaps with another value. */
static bool has_cookie(const struct curl_slist *list, const char *line)
{
    while (list != NULL && !(field_same(list->data, line, COOKIE_NAME) && field_same(list->data, line, COOKIE_DOMAIN) &&
                             field_same(list->data, line, COOKIE_PATH))) {
        list = list->next;
    }
    return list != NULL;
}

static bool has_line(const struct curl_slist *list, const char *line)
{
    while (list != NULL && strcmp(list->data, line) != 0) {
        list = list->next;
    }
    return list != NULL;
}

/* libcurl has no other way to remove a single cookie: it expired in 1970, and is removed when the next one is set. */
static void cookie_expire(CURL *easy, const char *line)
{
    struct becalm_text expires = field_of(line, COOKIE_EXPIRES);
    int before = (int)(expires.at - line);
    size_t size = strlen(line) + 2;
    char *over = malloc(size);
    if (over != NULL) {
        (void)snprintf(over, size, "%.*s1%s", before, line, expires.at + expires.length);
        (void)curl_easy_setopt(easy, CURLOPT_COOKIELIST, over);
    }
    free(over);
}

void copy_cookies_take(CURL *easy, CURL *copy, const struct curl_slist *given)
{
    struct curl_slist *now = cookies_of(copy);
    struct curl_slist *own = cookies_of(easy);
    for (const struct curl_slist *cookie = given; cookie != NULL; cookie = cookie->next) {
        if (!has_cookie(now, cookie->data) && has_line(own, cookie->data)) {
            cookie_expire(easy, cookie->data);
        }
    }
    for (const struct curl_slist *cookie = now; cookie != NULL; cookie = cookie->next) {
        if (!has_line(given, cookie->data) && !has_line(own, cookie->data)) {
            (void)curl_easy_setopt(easy, CURLOPT_COOKIELIST, cookie->data);
        }
    }
    curl_slist_free_all(now);
    curl_slist_free_all(own);
}

/* ---- a copy's life ---- */

CURL *copy_make(CURL *easy, const struct handle_options *option, struct curl_slist **given)
{
    CURL *copy = curl_easy_duphandle(easy);
    if (copy == NULL) {
        return NULL;
    }
    if (option->share != NULL) {
        (void)curl_easy_setopt(copy, CURLOPT_SHARE, option->share);
    }
    struct curl_slist *own = cookies_of(copy); /* from the caller's file, or shared with it */
    *given = cookies_of(easy);
    for (const struct curl_slist *cookie = *given; cookie != NULL; cookie = cookie->next) {
        if (!has_line(own, cookie->data)) {
            (void)curl_easy_setopt(copy, CURLOPT_COOKIELIST, cookie->data);
        }
    }
    curl_slist_free_all(own);
    return copy;
}

void copy_free(CURL *copy, struct curl_slist *given)
{
    /* Only the caller's own handle writes its files, and calls its function for HSTS. The share is detached first:
     * otherwise the settings below would remove data that other handles share. */
    (void)curl_easy_setopt(copy, CURLOPT_SHARE, NULL);
    (void)curl_easy_setopt(copy, CURLOPT_COOKIEJAR, NULL);
    (void)curl_easy_setopt(copy, CURLOPT_HSTS_CTRL, 0L);
    (void)curl_easy_setopt(copy, CURLOPT_ALTSVC_CTRL, (long)CURLALTSVC_READONLYFILE);
    curl_easy_cleanup(copy);
    curl_slist_free_all(given);
}

/* libcurl says the method of a handle that has begun, so the copy begins: with a URL that leads nowhere, and nothing of
 * the caller's to be called or read. */
void copy_method(CURL *easy, char method[METHOD_MAX])
{
    CURL *copy = curl_easy_duphandle(easy);
    char *said = NULL;
    method[0] = '\0';
    if (copy == NULL) {
        return;
    }
    (void)curl_easy_setopt(copy, CURLOPT_CURLU, NULL);
    (void)curl_easy_setopt(copy, CURLOPT_URL, "http://[");
    (void)curl_easy_setopt(copy, CURLOPT_COOKIEFILE, NULL);
    (void)curl_easy_setopt(copy, CURLOPT_HSTSREADFUNCTION, NULL);
    (void)curl_easy_setopt(copy, CURLOPT_ERRORBUFFER, NULL);
    (void)curl_easy_setopt(copy, CURLOPT_NOPROGRESS, 1L);
    (void)curl_easy_setopt(copy, CURLOPT_VERBOSE, 0L);
    bool begun = curl_easy_perform(copy) == CURLE_URL_MALFORMAT;
    (void)curl_easy_getinfo(copy, CURLINFO_EFFECTIVE_METHOD, &said);
    if (begun && said != NULL && strlen(said) < METHOD_MAX) {
        (void)snprintf(method, METHOD_MAX, "%s", said);
    }
    copy_free(copy, NULL);
}
