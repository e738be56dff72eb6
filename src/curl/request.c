/* SPDX-License-Identifier: MIT */
#include "request.h"

#include "copy.h"
#include "multi_state.h"

#include "engine/apart_internal.h"
#include "http/grpc_text.h"
#include "http/key.h"
#include "http/text_internal.h"
#include "run/entropy.h"

#include <becalm/run.h>

#include <stdio.h>

/* The record of the handle; NULL: its method and body were not recorded. */
static const struct handle_options *recorded_options(const struct transfer *transfer)
{
    return transfer->handle->option.method == NULL ? NULL : &transfer->handle->option;
}

bool request_knows_method(const struct transfer *transfer)
{
    return transfer->handle->option.method != NULL || transfer->handle->option.custom != NULL;
}

/* Two attempts at once need a request that may be sent twice, a body that both can read, and answers that wait until
 * one is chosen. If its method was not recorded the first two are unknown before it is sent. And the second attempt
 * has a copy of the caller's handle, which may get the answer: a program that uses hedges asks a multi for that
 * copy, but all other programs, and those that call becalm_curl_perform(), use their own handle. */
static bool goes_alone(const struct transfer *transfer)
{
    const struct handle_options *recorded = recorded_options(transfer);
    bool asks_for_two = transfer->target->policy.hedge.enabled && transfer->multi->only == NULL;
    return !asks_for_two || !transfer->takes_body || recorded == NULL || body_is_read(recorded);
}

static struct becalm_text text_from(const char *text)
{
    return (struct becalm_text){text, text == NULL ? 0 : strlen(text)};
}

/* The method that was recorded; else the one that libcurl reports, which is certain only while it is sending. */
struct becalm_text request_method(const struct transfer *transfer)
{
    const struct handle_options *option = &transfer->handle->option;
    char *method = NULL;
    if (option->custom != NULL) {
        return text_from(option->custom);
    }
    if (option->method != NULL) {
        return text_from(option->method);
    }
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_METHOD, &method);
    return text_from(method == NULL ? "GET" : method);
}

/* `made` is to be freed with curl_free(). */
struct becalm_text request_url(const struct transfer *transfer, char **made)
{
    const struct handle_options *option = &transfer->handle->option;
    char *url = NULL;
    *made = NULL;
    if (option->curlu != NULL && curl_url_get(option->curlu, CURLUPART_URL, made, 0) == CURLUE_OK) {
        return text_from(*made);
    }
    if (option->url != NULL) {
        return text_from(option->url);
    }
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_EFFECTIVE_URL, &url);
    return text_from(url == NULL ? "" : url);
}

/* The value of a header that was recorded; absent: none. */
struct becalm_text request_header(const struct transfer *transfer, const char *name)
{
    const struct curl_slist *line = transfer->takes_headers ? transfer->handle->option.headers : NULL;
    for (; line != NULL; line = line->next) {
        struct becalm_text text = text_from(line->data);
        if (text_take_word(&text, name) && text_take(&text, ':')) {
            return text_trim(text);
        }
    }
    return (struct becalm_text){0};
}

static bool key_draw(struct transfer *transfer)
{
    unsigned char random[BECALM__KEY_RANDOM];
    char key[BECALM__KEY_TEXT];
    if (!entropy_fill(random, sizeof random)) {
        return false; /* no key is better than one that another call has */
    }
    becalm__key_write(random, key);
    (void)snprintf(transfer->key, sizeof transfer->key, "Idempotency-Key: \"%s\"", key);
    return true;
}

static bool text_begins(struct becalm_text text, struct becalm_text with)
{
    return text.length >= with.length && memcmp(text.at, with.at, with.length) == 0;
}

/* The caller's own deadline; NEVER: it has none. The grpc-timeout of a gRPC call counts here, too. */
static becalm_ns deadline_of(struct transfer *transfer)
{
    becalm_ns at = transfer->handle->deadline_at == 0 ? BECALM_NEVER : transfer->handle->deadline_at;
    unsigned dialects;
    transfer->handle->deadline_at = 0;
    transfer->grpc = transfer->takes_headers && becalm__grpc_is_type(request_header(transfer, "Content-Type"));
    if (transfer->grpc) {
        struct becalm_deadline_headers headers = {.grpc_timeout = request_header(transfer, "grpc-timeout")};
        becalm_ns left = becalm_deadline_read(&headers, &dialects);
        at = left == BECALM_NEVER ? at : becalm_ns_min(at, becalm_ns_after(becalm_run_now(), left));
    }
    return at;
}

struct becalm_request request_make(struct transfer *transfer, struct becalm_text method)
{
    struct handle *handle = transfer->handle;
    struct becalm_text key;
    struct becalm_request request = {.idempotent = method.length > 0 && becalm_http_idempotent(method)};
    transfer->key[0] = '\0';
    transfer->must_end_at = deadline_of(transfer);
    request.deadline_at = transfer->must_end_at;
    if (transfer->takes_headers) { /* no other kind of call can have a key */
        bool has_key = becalm_key_parse(request_header(transfer, "Idempotency-Key"), &key);
        if (handle->keyed && !has_key) {
            has_key = key_draw(transfer);
        }
        request.keyed = has_key && transfer->target->keys_count;
    }
    request.alone = goes_alone(transfer);
    request.not_replayable = !body_begin(&transfer->body, &handle->option);
    return request;
}

/* The method of the attempt's first request. libcurl says the latest: after a redirection a POST is a GET. */
static struct becalm_text method_sent(CURL *easy, char memory[METHOD_MAX])
{
    long redirects = 0;
    char *method = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_REDIRECT_COUNT, &redirects);
    if (redirects > 0) {
        copy_method(easy, memory);
        return text_from(memory);
    }
    (void)curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_METHOD, &method);
    return text_from(method == NULL ? "" : method);
}

static bool text_equal(struct becalm_text a, struct becalm_text b)
{
    return a.length == b.length && text_begins(a, b);
}

/* The recorded options may have been changed with libcurl alone. So the library asks libcurl for the request that was
 * sent, and the stricter of the two counts. A body that was not recorded may be impossible to send again. Whether there
 * was a body is known only afterwards; until then it is assumed for methods that may have one. */
BECALM__COLD void request_learn(struct transfer *transfer, CURL *easy)
{
    struct becalm_request *request = &transfer->call.request;
    const struct handle_options *recorded = recorded_options(transfer);
    char memory[METHOD_MAX];
    struct becalm_text sent = method_sent(easy, memory);
    struct becalm_text known = request_knows_method(transfer) ? request_method(transfer) : sent;
    request->idempotent = becalm_http_idempotent(sent) && becalm_http_idempotent(known);
    bool sent_body = outcome_sent_body(easy);
    if (recorded == NULL || !text_equal(sent, known) || (recorded->body == BODY_NONE && sent_body)) {
        request->not_replayable = sent_body || sent.length == 0 || text_begins(sent, text_from("POST")) ||
                                  text_begins(sent, text_from("PUT"));
    }
}

void request_body_read(const struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    if (body_is_read(&transfer->handle->option)) {
        transfer->body.read = transfer->body.read || outcome_connected(attempt->easy);
    }
}

/* An attempt has failed. May its request be repeated, and can it? A body that can't go back is found out now, while the
 * answer is there to be given. */
void request_learn_failed(struct transfer *transfer, const struct attempt *attempt)
{
    request_learn(transfer, attempt->easy);
    request_body_read(attempt);
    if (transfer->body.read && !transfer->call.request.not_replayable &&
        !body_rewind(&transfer->body, &transfer->handle->option)) {
        becalm_call_not_replayable(&transfer->call);
    }
}
