/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "export.h"

#include "otlp.h"

#include "libcurl/libcurl.h"

#include <becalm/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH       "/v1/traces"
#define ANSWER_MAX 4096u /* of the collector's answer this much is looked at */
#define LONGEST    INT32_C(60000)

struct export
{
    struct libcurl curl;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    bool going;
    size_t answer_length;
    char answer[ANSWER_MAX];
};

/* ---- where to ---- */

static char *copy(const char *text, bool *fine)
{
    char *made = text == NULL ? NULL : strdup(text);
    *fine = *fine && (text == NULL || made != NULL);
    return made;
}

/* The endpoint is a base, as OTEL_EXPORTER_OTLP_ENDPOINT is, unless all of the path is written. */
static char *url_of(const char *endpoint, bool *fine)
{
    size_t length = strlen(endpoint);
    size_t path = strlen(PATH);
    bool whole = length > path && strcmp(endpoint + length - path, PATH) == 0;
    while (!whole && length > 0 && endpoint[length - 1] == '/') {
        length--;
    }
    char *url = malloc(length + sizeof PATH);
    if (url == NULL) {
        *fine = false;
        return NULL;
    }
    memcpy(url, endpoint, length);
    memcpy(url + length, whole ? "" : PATH, whole ? 1 : sizeof PATH);
    return url;
}

bool export_place_make(struct export_place *place, const struct becalm_tracing *tracing)
{
    bool fine = true;
    size_t count = 0;
    while (tracing->headers[count] != NULL) {
        count++;
    }
    *place = (struct export_place){
        .url = url_of(tracing->endpoint, &fine),
        .headers = calloc(count + 1, sizeof *place->headers),
        .ca = copy(tracing->tls.ca.path, &fine),
        .cert = copy(tracing->tls.cert.path, &fine),
        .key = copy(tracing->tls.key.path, &fine),
        .verify = tracing->tls.verify == BECALM_TLS_VERIFY_FULL,
        .timeout = tracing->timeout,
    };
    for (size_t i = 0; place->headers != NULL && i < count; i++) {
        place->headers[i] = copy(tracing->headers[i], &fine);
    }
    if (!fine || place->headers == NULL) {
        export_place_free(place);
        return false;
    }
    return true;
}

void export_place_free(struct export_place *place)
{
    for (char **header = place->headers; header != NULL && *header != NULL; header++) {
        free(*header);
    }
    free(place->headers);
    free(place->url);
    free(place->ca);
    free(place->cert);
    free(place->key);
    *place = (struct export_place){0};
}

/* ---- one export ---- */

struct export *export_make(const char **why)
{
    struct export *export = calloc(1, sizeof *export);
    *why = "no memory";
    if (export == NULL) {
        return NULL;
    }
    *why = libcurl_find(&export->curl);
    if (*why == NULL) {
        export->multi = export->curl.multi_init();
        export->easy = export->curl.easy_init();
        *why = export->multi == NULL || export->easy == NULL ? "no memory" : NULL;
    }
    if (*why != NULL) {
        export_free(export);
        return NULL;
    }
    return export;
}

void export_cancel(struct export *export)
{
    if (export->going) {
        export->curl.multi_remove_handle(export->multi, export->easy);
        export->curl.slist_free_all(export->headers);
        export->headers = NULL;
        export->going = false;
    }
}

void export_free(struct export *export)
{
    if (export == NULL) {
        return;
    }
    export_cancel(export);
    if (export->easy != NULL) {
        export->curl.easy_cleanup(export->easy);
    }
    if (export->multi != NULL) {
        export->curl.multi_cleanup(export->multi);
    }
    free(export);
}

static size_t collect(char *bytes, size_t size, size_t count, void *data)
{
    struct export *export = data;
    size_t room = sizeof export->answer - export->answer_length;
    size_t length = size * count;
    size_t kept = length < room ? length : room;
    memcpy(export->answer + export->answer_length, bytes, kept);
    export->answer_length += kept;
    return length;
}

static bool header_add(struct export *export, const char *header)
{
    struct curl_slist *list = export->curl.slist_append(export->headers, header);
    export->headers = list == NULL ? export->headers : list;
    return list != NULL;
}

static bool headers_make(struct export *export, char *const *own)
{
    bool fine = header_add(export, "Content-Type: application/json") && header_add(export, "Expect:");
    for (; fine && *own != NULL; own++) {
        fine = header_add(export, *own);
    }
    return fine;
}

bool export_begin(struct export *export, const struct export_place *place, struct becalm_text body)
{
    CURL *easy = export->easy;
    BECALM_ASSERT(!export->going);
    if (!headers_make(export, place->headers)) {
        export->curl.slist_free_all(export->headers);
        export->headers = NULL;
        return false;
    }
    export->answer_length = 0;
    export->curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    export->curl.easy_setopt(easy, CURLOPT_NOPROXY, "*"); /* http_proxy may be this very gateway */
    export->curl.easy_setopt(easy, CURLOPT_USERAGENT, "becalm/" BECALM_VERSION);
    export->curl.easy_setopt(easy, CURLOPT_URL, place->url);
    export->curl.easy_setopt(easy, CURLOPT_HTTPHEADER, export->headers);
    export->curl.easy_setopt(easy, CURLOPT_POSTFIELDS, body.at);
    export->curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.length);
    export->curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(place->timeout / BECALM_MS));
    export->curl.easy_setopt(easy, CURLOPT_CAINFO, place->ca);
    export->curl.easy_setopt(easy, CURLOPT_SSLCERT, place->cert);
    export->curl.easy_setopt(easy, CURLOPT_SSLKEY, place->key);
    export->curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, place->verify ? 1L : 0L);
    export->curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, place->verify ? 2L : 0L);
    export->curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    export->curl.easy_setopt(easy, CURLOPT_WRITEDATA, export);
    export->going = export->curl.multi_add_handle(export->multi, easy) == CURLM_OK;
    return export->going;
}

static enum export_end end_of(uint32_t status)
{
    if (status >= 200 && status < 300) {
        return EXPORT_TAKEN;
    }
    return status == 429 || status == 502 || status == 503 || status == 504 ? EXPORT_AGAIN : EXPORT_REFUSED;
}

static void tell(struct export *export, CURLcode code, struct export_news *news)
{
    long status = 0;
    curl_off_t seconds = 0;
    if (code != CURLE_OK) {
        news->end = EXPORT_AGAIN;
        snprintf(news->why, sizeof news->why, "%s", export->curl.easy_strerror(code));
        return;
    }
    export->curl.easy_getinfo(export->easy, CURLINFO_RESPONSE_CODE, &status);
    export->curl.easy_getinfo(export->easy, CURLINFO_RETRY_AFTER, &seconds);
    news->status = (uint32_t)status;
    news->end = end_of(news->status);
    news->retry_after = seconds > 0 && seconds < 86400 ? (becalm_ns)seconds * BECALM_S : 0;
    news->rejected = otlp_rejected((struct becalm_text){export->answer, export->answer_length});
    snprintf(news->why, sizeof news->why, "the collector answers %ld", status);
}

void export_move(struct export *export, int wake_fd, becalm_ns most, struct export_news *news)
{
    struct curl_waitfd wake = {.fd = wake_fd, .events = CURL_WAIT_POLLIN};
    int left = 0;
    int running = 0;
    int ms = most > LONGEST * BECALM_MS ? LONGEST : (int)((most + BECALM_MS - 1) / BECALM_MS);
    *news = (struct export_news){.end = EXPORT_NONE};
    (void)export->curl.multi_poll(export->multi, &wake, 1, ms, NULL);
    (void)export->curl.multi_perform(export->multi, &running);
    const CURLMsg *message = export->curl.multi_info_read(export->multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE) {
        tell(export, message->data.result, news);
        export_cancel(export);
    }
}
