/* SPDX-License-Identifier: MIT */
#include "destination.h"

#include "http/url.h"

#include <string.h>
#include <strings.h>

static bool text_has(struct becalm_text text, char first, char second)
{
    for (size_t i = 0; i + 1 < text.length; i++) {
        if (text.at[i] == first && text.at[i + 1] == second) {
            return true;
        }
    }
    return false;
}

/* Must libcurl parse the URL, because its host or path is not in plain form? Most URLs are. */
static bool is_odd(struct becalm_text url, bool path_as_is)
{
    struct becalm__url parts = becalm__url_split(url);
    bool host_is_odd = parts.host.length == 0 || parts.host.at[parts.host.length - 1] == ':' ||
                       memchr(parts.host.at, '%', parts.host.length) != NULL;
    return !parts.http || host_is_odd || (!path_as_is && text_has(parts.path, '/', '.'));
}

char *destination_written(struct becalm_text url, bool path_as_is)
{
    char *made = NULL;
    CURLU *parts = url.length > 0 && is_odd(url, path_as_is) ? curl_url() : NULL;
    unsigned flags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME | (path_as_is ? CURLU_PATH_AS_IS : 0);
    if (parts != NULL && curl_url_set(parts, CURLUPART_URL, url.at, flags) == CURLUE_OK) {
        (void)curl_url_get(parts, CURLUPART_URL, &made, 0);
    }
    curl_url_cleanup(parts);
    return made;
}

/* Follows one redirection of the latest transfer. `request` is a number of libcurl's, the first is 0; a request that
 * was answered otherwise, as by a demand for a password, leads nowhere. */
static bool follow(CURL *easy, int request, CURLU *to, long *left)
{
    struct curl_header *location = NULL;
    CURLHcode rc = curl_easy_header(easy, "Location", 0, CURLH_HEADER, request, &location);
    if (rc == CURLHE_OK) {
        (*left)--;
        return curl_url_set(to, CURLUPART_URL, location->value, CURLU_URLENCODE) == CURLUE_OK;
    }
    return rc == CURLHE_MISSING || rc == CURLHE_NOHEADERS;
}

bool destination_led(CURL *easy, const struct handle_route *route, struct becalm_text url)
{
    char *led = NULL;
    long left = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_REDIRECT_COUNT, &left);
    CURLU *to = left > 0 ? curl_url() : NULL;
    if (to == NULL) {
        return false;
    }
    bool known = curl_url_set(to, CURLUPART_URL, route->url, CURLU_GUESS_SCHEME) == CURLUE_OK;
    for (int request = 0; known && left > 0; request++) {
        known = follow(easy, request, to, &left);
    }
    bool same = known && curl_url_get(to, CURLUPART_URL, &led, 0) == CURLUE_OK && strlen(led) == url.length &&
                memcmp(led, url.at, url.length) == 0;
    curl_free(led);
    curl_url_cleanup(to);
    return same;
}

static bool part_same(CURLU *one, CURLU *other, CURLUPart part)
{
    char *a = NULL;
    char *b = NULL;
    bool same = curl_url_get(one, part, &a, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(other, part, &b, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(a, b) == 0;
    curl_free(a);
    curl_free(b);
    return same;
}

static bool origin_same(const char *one, const char *other)
{
    CURLU *a = curl_url();
    CURLU *b = curl_url();
    unsigned flags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME;
    bool same = a != NULL && b != NULL && curl_url_set(a, CURLUPART_URL, one, flags) == CURLUE_OK &&
                curl_url_set(b, CURLUPART_URL, other, flags) == CURLUE_OK && part_same(a, b, CURLUPART_SCHEME) &&
                part_same(a, b, CURLUPART_HOST) && part_same(a, b, CURLUPART_PORT);
    curl_url_cleanup(a);
    curl_url_cleanup(b);
    return same;
}

bool destination_is_strange(CURL *easy, const struct handle *handle)
{
    const struct handle_options *option = &handle->option;
    const char *from = handle->route.target != NULL ? handle->route.url : option->url;
    char *made = NULL;
    char *to = NULL;
    long count = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_REDIRECT_COUNT, &count);
    if (count <= 0) {
        return false;
    }
    if (handle->route.target == NULL && option->curlu != NULL &&
        curl_url_get(option->curlu, CURLUPART_URL, &made, 0) == CURLUE_OK) {
        from = made;
    }
    (void)curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &to);
    bool is_strange = from == NULL || to == NULL || !origin_same(from, to);
    curl_free(made);
    return is_strange;
}
