/* SPDX-License-Identifier: MIT */
#include "attempt.h"

#include "copy.h"
#include "multi_state.h"
#include "note.h"
#include "request.h"

#include "engine/apart_internal.h"
#include "http/text_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD_MAX  (1024u * 1024) /* more than libcurl accepts */
#define BODY_KEPT (16u * 1024)   /* of a failed answer; then the rest waits in the socket */

/* ---- data for the caller's callbacks ---- */

static size_t give_body(const struct transfer *transfer, char *at, size_t length)
{
    const struct handle_options *option = &transfer->handle->option;
    if (option->write == NULL) {
        return fwrite(at, 1, length, option->write_data == NULL ? stdout : (FILE *)option->write_data);
    }
    return option->write(at, 1, length, option->write_data);
}

/* libcurl's rule: without a function the data is for the write function; without either headers are not wanted. */
static bool wants_lines(const struct handle_options *option)
{
    return option->header != NULL || option->header_data != NULL;
}

static size_t give_line(const struct transfer *transfer, char *at, size_t length)
{
    const struct handle_options *option = &transfer->handle->option;
    if (option->header != NULL) {
        return option->header(at, 1, length, option->header_data);
    }
    if (!wants_lines(option)) {
        return length;
    }
    if (option->write == NULL) {
        return fwrite(at, 1, length, (FILE *)option->header_data);
    }
    return option->write(at, 1, length, option->header_data);
}

/* The lines that were kept back, up to here, each by itself, as libcurl gives them. */
static bool give_lines(struct attempt *attempt, size_t until)
{
    struct buffer *head = &attempt->head;
    while (attempt->head_given < until) {
        char *at = head->at + attempt->head_given;
        const char *end = memchr(at, '\n', until - attempt->head_given);
        size_t length = end == NULL ? until - attempt->head_given : (size_t)(end - at) + 1;
        if (give_line(attempt->transfer, at, length) != length) {
            return false;
        }
        attempt->head_given += length;
    }
    return true;
}

/* Passes on the kept body, and the trailers after it. False: the caller has paused (then `held`) or has refused the
 * data (then `refused`). */
static bool give_kept(struct attempt *attempt)
{
    struct buffer *body = &attempt->body;
    size_t taken = body->length == 0 ? 0 : give_body(attempt->transfer, body->at, body->length);
    attempt->held = taken == CURL_WRITEFUNC_PAUSE;
    attempt->refused = !attempt->held && taken != body->length;
    if (taken == body->length) {
        body->length = 0;
        attempt->refused = !give_lines(attempt, attempt->head.length);
    }
    return body->length == 0 && !attempt->refused;
}

/* ---- data from libcurl ---- */

static bool is_blank(const char *at, size_t length)
{
    return length <= 2 && length > 0 && (at[0] == '\r' || at[0] == '\n');
}

/* A head that libcurl will not follow further: not an interim answer, a redirection or a demand for a password. The
 * engine hears of those with their first byte of body, if it ever reaches the caller. */
static bool head_is_final(const struct attempt *attempt)
{
    long status = 0;
    (void)curl_easy_getinfo(attempt->easy, CURLINFO_RESPONSE_CODE, &status);
    return (status >= 200 && status < 300) || (status >= 400 && status != 401 && status != 407);
}

static size_t on_header(char *at, size_t size, size_t count, void *data)
{
    struct attempt *attempt = data;
    size_t length = size * count;
    if (attempt->state == ATTEMPT_PASSED && attempt->body.length == 0) {
        return give_line(attempt->transfer, at, length);
    }
    if (wants_lines(&attempt->transfer->handle->option)) {
        buffer_bytes(&attempt->head, at, length);
    }
    if (attempt->head.full) {
        return 0;
    }
    if (attempt->state == ATTEMPT_FLYING && is_blank(at, length) && head_is_final(attempt)) {
        attempt->transfer->headed(attempt);
    }
    return attempt->refused ? 0 : length;
}

static size_t on_body(char *at, size_t size, size_t count, void *data)
{
    struct attempt *attempt = data;
    size_t length = size * count;
    if (attempt->state == ATTEMPT_FLYING) {
        attempt->transfer->headed(attempt);
    }
    if (attempt->refused) {
        return 0;
    }
    switch (attempt->state) {
    case ATTEMPT_PASSED:
        if (attempt->body.length > 0 && !give_kept(attempt)) { /* the caller has paused before it took that */
            return attempt->held ? CURL_WRITEFUNC_PAUSE : 0;
        }
        return give_body(attempt->transfer, at, length);
    case ATTEMPT_KEPT:
        if (attempt->body.length + length > BODY_KEPT) {
            attempt->paused = true;
            return CURL_WRITEFUNC_PAUSE;
        }
        attempt->head_end = attempt->body.length == 0 ? attempt->head.length : attempt->head_end;
        buffer_bytes(&attempt->body, at, length);
        return attempt->body.full ? 0 : length;
    case ATTEMPT_FREE:
    case ATTEMPT_FLYING:
    case ATTEMPT_GONE:
        return length; /* the attempt was dropped, and is removed in a moment */
    }
    BECALM_UNREACHABLE();
}

bool attempt_deliver(struct attempt *attempt)
{
    bool given = give_kept(attempt);
    if (given && attempt->paused) {
        attempt->paused = false;
        (void)curl_easy_pause(attempt->easy, CURLPAUSE_CONT);
    }
    return given;
}

void attempt_release(struct attempt *attempt)
{
    attempt->state = ATTEMPT_PASSED;
    if (give_lines(attempt, attempt->body.length == 0 ? attempt->head.length : attempt->head_end)) {
        (void)attempt_deliver(attempt);
    } else {
        attempt->refused = true;
    }
}

/* ---- sending ---- */

static bool line_is(const struct curl_slist *line, const char *name)
{
    struct becalm_text text = {line->data, strlen(line->data)};
    return text_take_word(&text, name) && (text_peek(text) == ':' || text_peek(text) == ';');
}

static bool list_has(const struct curl_slist *list, const char *name)
{
    while (list != NULL && !line_is(list, name)) {
        list = list->next;
    }
    return list != NULL;
}

/* The caller's list without the fields that the library sends itself. The lines up to the last of these fields are
 * copied, the rest is the caller's own list. */
static struct curl_slist *list_without(struct attempt *attempt, struct curl_slist *list, const char *name)
{
    size_t count = 0;
    size_t before = 0; /* lines up to the last one to be left out */
    for (const struct curl_slist *line = list; line != NULL; line = line->next) {
        count++;
        before = line_is(line, name) ? count : before;
    }
    if (before > attempt->copy_max) {
        struct curl_slist *copy = realloc(attempt->copy, before * sizeof *copy);
        if (copy == NULL) {
            return list; /* said twice is better than not sent */
        }
        attempt->copy = copy;
        attempt->copy_max = before;
    }
    struct curl_slist *copied = NULL;
    struct curl_slist **next = &copied;
    for (size_t i = 0; i < before; i++, list = list->next) {
        if (!line_is(list, name)) {
            attempt->copy[i] = (struct curl_slist){.data = list->data};
            *next = &attempt->copy[i];
            next = &attempt->copy[i].next;
        }
    }
    *next = list;
    return copied;
}

static void left_write(char *text, const char *name, enum becalm_deadline_dialect dialect, becalm_ns left)
{
    size_t length = strlen(name);
    memcpy(text, name, length);
    (void)becalm_deadline_write(dialect, left, text + length, HEADER_BYTES - length);
}

static void number_write(char *text, const char *name, uint64_t number)
{
    struct buffer line = {.at = text, .size = HEADER_BYTES};
    buffer_chars(&line, name);
    buffer_number(&line, number);
    buffer_bytes(&line, "", 1);
}

static void deadline_say(struct attempt *attempt, becalm_ns left)
{
    char *text = attempt->text[HEADER_DEADLINE];
    if (text[0] == '\0' || left != attempt->said_left) {
        left_write(text, "X-Request-Deadline-Ms: ", BECALM_DEADLINE_REQUEST, left);
        attempt->said_left = left;
    }
}

static void number_say(struct attempt *attempt)
{
    char *text = attempt->text[HEADER_NUMBER];
    if (text[0] == '\0' || attempt->number != attempt->said_number) {
        number_write(text, "x-envoy-attempt-count: ", (uint64_t)attempt->number + 1);
        attempt->said_number = attempt->number;
    }
}

static struct curl_slist *line_before(struct attempt *attempt, enum attempt_header which, struct curl_slist *next)
{
    attempt->line[which] = (struct curl_slist){.data = attempt->text[which], .next = next};
    return &attempt->line[which];
}

/* gRPC has words of its own for the time that is left and for the number. */
static struct curl_slist *grpc_before(struct attempt *attempt, struct curl_slist *list, becalm_ns left)
{
    if (attempt->number > 0 && !list_has(list, "grpc-previous-rpc-attempts")) {
        number_write(attempt->text[HEADER_GRPC_NUMBER], "grpc-previous-rpc-attempts: ", attempt->number);
        list = line_before(attempt, HEADER_GRPC_NUMBER, list);
    }
    if (left != BECALM_NEVER) {
        list = list_without(attempt, list, "grpc-timeout");
        left_write(attempt->text[HEADER_GRPC_TIMEOUT], "grpc-timeout: ", BECALM_DEADLINE_GRPC, left);
        list = line_before(attempt, HEADER_GRPC_TIMEOUT, list);
    }
    return list;
}

/* The library's fields, in front of the caller's own list, which is not changed. A field that the caller sets is not
 * sent twice. */
static struct curl_slist *headers_of(struct attempt *attempt)
{
    const struct transfer *transfer = attempt->transfer;
    struct curl_slist *list = transfer->handle->option.headers;
    becalm_ns left = becalm_ns_left(attempt->due_at, attempt->timeout_at); /* NEVER stays NEVER */
    struct curl_slist *first = transfer->grpc ? grpc_before(attempt, list, left) : list;
    if (transfer->key[0] != '\0') {
        memcpy(attempt->text[HEADER_KEY], transfer->key, sizeof transfer->key);
        first = line_before(attempt, HEADER_KEY, first);
    }
    if (!list_has(list, "x-envoy-attempt-count")) {
        number_say(attempt);
        first = line_before(attempt, HEADER_NUMBER, first);
    }
    if (left != BECALM_NEVER && !list_has(list, "X-Request-Deadline-Ms")) {
        deadline_say(attempt, left);
        first = line_before(attempt, HEADER_DEADLINE, first);
    }
    return first;
}

/* Replaces only the options that the call has to replace: an option that was set with libcurl alone can't be restored.
 */
static BECALM__OUTLINE bool options_set(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    CURL *easy = attempt->easy;
    struct handle_options *option = &transfer->handle->option;
    long connect_ms = (long)((transfer->target->connect_timeout + BECALM_MS - 1) / BECALM_MS);
    if (transfer->body.read && !body_rewind(&transfer->body, option)) {
        attempt->code = CURLE_SEND_FAIL_REWIND;
        return false;
    }
    if (transfer->takes_headers) {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_of(attempt));
    }
    if (transfer->takes_body) {
        attempt->body.bytes_max = BODY_KEPT;
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
    }
    if (transfer->takes_head) {
        attempt->head.bytes_max = HEAD_MAX;
        (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, attempt);
    }
    if (transfer->takes_connect && option->connect_ms != connect_ms) {
        (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
        option->connect_ms = attempt->copied ? option->connect_ms : connect_ms;
    }
    return true;
}

void attempt_headers_again(struct transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->top; i++) {
        struct attempt *attempt = &transfer->attempt[i];
        if (attempt->added) {
            (void)curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, headers_of(attempt));
        }
    }
}

void attempt_restore(struct transfer *transfer)
{
    CURL *easy = transfer->easy;
    struct handle_options *option = &transfer->handle->option;
    if (transfer->takes_headers) {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, option->headers);
    }
    if (option->connect_ms != 0) {
        (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 0L);
        option->connect_ms = 0;
    }
    if (transfer->takes_body) {
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, option->write);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA,
                               option->write == NULL && option->write_data == NULL ? stdout : option->write_data);
    }
    if (transfer->takes_head) {
        (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, option->header);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, option->header_data);
    }
}

/* NULL: no memory. */
static BECALM__COLD CURL *easy_copy(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    CURL *easy = copy_make(transfer->easy, &transfer->handle->option, &attempt->cookies);
    if (easy != NULL && !map_add(&transfer->multi->transfers, easy, transfer)) {
        copy_free(easy, attempt->cookies);
        return NULL;
    }
    return easy;
}

/* The caller's handle, unless an attempt of this call is using it. */
static bool easy_choose(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    bool used = false;
    for (uint32_t i = 0; i < transfer->top; i++) {
        const struct attempt *other = &transfer->attempt[i];
        used = used || (other->added && other->easy == transfer->easy);
    }
    attempt->copied = used;
    attempt->easy = used ? easy_copy(attempt) : transfer->easy;
    return attempt->easy != NULL;
}

bool attempt_dispatch(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    attempt->state = ATTEMPT_FLYING;
    attempt->judged = false;
    attempt->unsent = false;
    attempt->ended = false;
    attempt->uploaded = 0;
    attempt->status = 0;
    attempt->paused = false;
    attempt->refused = false;
    attempt->held = false;
    attempt->head.length = 0;
    attempt->head_given = 0;
    attempt->body.length = 0;
    attempt->code = CURLE_FAILED_INIT;
    if (!easy_choose(attempt)) {
        return false;
    }
    if (transfer->recorded && !options_set(attempt)) {
        return false;
    }
    if (curl_multi_add_handle(transfer->multi->curl, attempt->easy) != CURLM_OK) {
        return false;
    }
    attempt->added = true;
    attempt->busy = true;
    transfer->multi->flying++;
    note_sent(attempt);
    return true;
}

void attempt_remove(struct attempt *attempt)
{
    struct becalm_curl_multi *multi = attempt->transfer->multi;
    note_end(attempt);
    if (attempt->added) {
        (void)curl_multi_remove_handle(multi->curl, attempt->easy);
        attempt->added = false;
        request_body_read(attempt);
        multi->flying -= attempt->busy;
        attempt->busy = false;
    }
    /* A copy that has the answer stays until the end, because the program may ask it about the answer. */
    if (attempt->copied && attempt->easy != attempt->transfer->answered) {
        map_remove(&multi->transfers, attempt->easy);
        copy_free(attempt->easy, attempt->cookies);
        attempt->copied = false;
        attempt->easy = NULL;
    }
    attempt->state = ATTEMPT_FREE;
}
