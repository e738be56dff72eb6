/* SPDX-License-Identifier: MIT */
#include "multi.h"

#include "http/text_internal.h"

#include <stdio.h>

#define HEAD_MAX  (1024u * 1024) /* more than libcurl takes */
#define BODY_KEPT (16u * 1024)   /* of a failed answer; then the rest waits in the socket */

/* ---- what the caller's callbacks get ---- */

static size_t give_body(const struct transfer *transfer, char *at, size_t length)
{
    const struct handle_options *option = &transfer->handle->option;
    if (option->write == NULL) {
        return fwrite(at, 1, length, option->write_data == NULL ? stdout : (FILE *)option->write_data);
    }
    return option->write(at, 1, length, option->write_data);
}

/* libcurl's rule: without a function the data is for the write function; without either nobody wants headers. */
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

/* All lines that were kept back, each by itself, as libcurl gives them. */
static bool give_head(struct attempt *attempt)
{
    size_t from = 0;
    while (from < attempt->head.length) {
        const char *end = memchr(attempt->head.at + from, '\n', attempt->head.length - from);
        size_t length = end == NULL ? attempt->head.length - from : (size_t)(end - attempt->head.at) + 1 - from;
        if (give_line(attempt->transfer, attempt->head.at + from, length) != length) {
            return false;
        }
        from += length;
    }
    attempt->head.length = 0;
    return true;
}

/* ---- what libcurl gives us ---- */

/* The blank line behind a head that libcurl will not follow further: not an interim answer, a redirection or a demand
 * for a password. Those are judged by their first byte of body, if it ever comes to the caller. */
static bool head_is_final(const struct attempt *attempt, const char *at, size_t length)
{
    long status = 0;
    bool blank = length <= 2 && length > 0 && (at[0] == '\r' || at[0] == '\n');
    if (!blank || curl_easy_getinfo(attempt->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK) {
        return false;
    }
    return (status >= 200 && status < 300) || (status >= 400 && status != 401 && status != 407);
}

static size_t on_header(char *at, size_t size, size_t count, void *data)
{
    struct attempt *attempt = data;
    size_t length = size * count;
    if (attempt->state == ATTEMPT_PASSED) {
        return give_line(attempt->transfer, at, length);
    }
    if (wants_lines(&attempt->transfer->handle->option)) {
        buffer_bytes(&attempt->head, at, length);
    }
    if (attempt->head.full) {
        return 0;
    }
    if (attempt->state == ATTEMPT_FLYING && head_is_final(attempt, at, length)) {
        transfer_judge(attempt);
    }
    return attempt->refused ? 0 : length;
}

static size_t on_body(char *at, size_t size, size_t count, void *data)
{
    struct attempt *attempt = data;
    size_t length = size * count;
    if (attempt->state == ATTEMPT_FLYING) {
        transfer_judge(attempt);
    }
    if (attempt->refused) {
        return 0;
    }
    switch (attempt->state) {
    case ATTEMPT_PASSED:
        return give_body(attempt->transfer, at, length);
    case ATTEMPT_KEPT:
        if (attempt->body.length + length > BODY_KEPT) {
            attempt->paused = true;
            return CURL_WRITEFUNC_PAUSE;
        }
        buffer_bytes(&attempt->body, at, length);
        return attempt->body.full ? 0 : length;
    case ATTEMPT_FREE:
    case ATTEMPT_FLYING:
    case ATTEMPT_GONE:
        return length; /* nobody wants it, and it is removed in a moment */
    }
    BECALM_UNREACHABLE();
}

void attempt_release(struct attempt *attempt)
{
    attempt->state = ATTEMPT_PASSED;
    if (attempt->transfer->handle == NULL || !attempt->transfer->handle->recorded) {
        return;
    }
    struct buffer *body = &attempt->body;
    attempt->refused = !give_head(attempt) ||
                       (body->length > 0 && give_body(attempt->transfer, body->at, body->length) != body->length);
    if (!attempt->refused && attempt->paused) {
        attempt->paused = false;
        (void)curl_easy_pause(attempt->easy, CURLPAUSE_CONT);
    }
}

/* ---- sending ---- */

static bool list_has(const struct curl_slist *list, const char *name)
{
    for (; list != NULL; list = list->next) {
        struct becalm_text text = {list->data, strlen(list->data)};
        if (text_take_word(&text, name) && (text_peek(text) == ':' || text_peek(text) == ';')) {
            return true;
        }
    }
    return false;
}

static void deadline_say(struct attempt *attempt, becalm_ns left)
{
    static const char name[] = "X-Request-Deadline-Ms: ";
    char *text = attempt->text[HEADER_DEADLINE];
    if (text[0] == '\0' || left != attempt->said_left) {
        memcpy(text, name, sizeof name);
        (void)becalm_deadline_write(BECALM_DEADLINE_REQUEST, left, text + sizeof name - 1,
                                    sizeof attempt->text[0] - sizeof name + 1);
        attempt->said_left = left;
    }
}

static void number_say(struct attempt *attempt)
{
    struct buffer text = {.at = attempt->text[HEADER_NUMBER], .size = sizeof attempt->text[0]};
    if (text.at[0] == '\0' || attempt->number != attempt->said_number) {
        buffer_chars(&text, "x-envoy-attempt-count: ");
        buffer_number(&text, (uint64_t)attempt->number + 1);
        buffer_bytes(&text, "", 1);
        attempt->said_number = attempt->number;
    }
}

static struct curl_slist *line_before(struct attempt *attempt, enum attempt_header which, struct curl_slist *next)
{
    attempt->line[which] = (struct curl_slist){.data = attempt->text[which], .next = next};
    return &attempt->line[which];
}

/* In front of the caller's own list, which stays as it is. What the caller says himself is not said again. */
static struct curl_slist *headers_of(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    struct curl_slist *list = transfer->handle->option.headers;
    struct curl_slist *first = list;
    if (transfer->key[0] != '\0') {
        memcpy(attempt->text[HEADER_KEY], transfer->key, sizeof transfer->key);
        first = line_before(attempt, HEADER_KEY, first);
    }
    if (!list_has(list, "x-envoy-attempt-count")) {
        number_say(attempt);
        first = line_before(attempt, HEADER_NUMBER, first);
    }
    if (attempt->timeout_at != BECALM_NEVER && !list_has(list, "X-Request-Deadline-Ms")) {
        deadline_say(attempt, becalm_ns_left(attempt->due_at, attempt->timeout_at));
        first = line_before(attempt, HEADER_DEADLINE, first);
    }
    return first;
}

static bool has_callback_body(const struct transfer *transfer)
{
    const struct handle_options *option = transfer->handle == NULL ? NULL : &transfer->handle->option;
    return option != NULL && option->sends_body && !option->body_in_memory;
}

/* Back to the body's beginning, as libcurl itself would go there. */
static bool body_rewind(const struct handle_options *option)
{
    if (option->seek != NULL) {
        return option->seek(option->seek_data, 0, SEEK_SET) == CURL_SEEKFUNC_OK;
    }
    return option->read == NULL &&
           fseek(option->read_data == NULL ? stdin : (FILE *)option->read_data, 0, SEEK_SET) == 0;
}

static bool options_set(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    struct handle_options *option = &transfer->handle->option;
    if (transfer->body_read && !body_rewind(option)) {
        attempt->code = CURLE_SEND_FAIL_REWIND;
        return false;
    }
    CURL *easy = attempt->easy;
    long connect_ms = (long)((transfer->target->connect_timeout + BECALM_MS - 1) / BECALM_MS);
    attempt->head.bytes_max = HEAD_MAX;
    attempt->body.bytes_max = BODY_KEPT;
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_of(attempt));
    if (!option->headers_in_body) {
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, attempt);
    }
    if (!option->connect_timeout && option->connect_ms != connect_ms) { /* it stays, for the next call */
        (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
        option->connect_ms = attempt->copied ? option->connect_ms : connect_ms;
    }
    return true;
}

void attempt_restore(struct transfer *transfer)
{
    const struct handle_options *option = &transfer->handle->option;
    CURL *easy = transfer->easy;
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, option->headers);
    if (!option->headers_in_body) {
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, option->write);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, option->write_data == NULL ? stdout : option->write_data);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, option->header);
        (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, option->header_data);
    }
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
    attempt->easy = used ? curl_easy_duphandle(transfer->easy) : transfer->easy;
    if (used && attempt->easy != NULL && !multi_know(transfer->multi, attempt->easy, transfer)) {
        curl_easy_cleanup(attempt->easy);
        attempt->easy = NULL;
    }
    return attempt->easy != NULL;
}

bool attempt_send(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    attempt->state = ATTEMPT_FLYING;
    attempt->judged = false;
    attempt->ended = false;
    attempt->status = 0;
    attempt->paused = false;
    attempt->refused = false;
    attempt->head.length = 0;
    attempt->body.length = 0;
    attempt->code = CURLE_FAILED_INIT;
    if (!easy_choose(attempt)) {
        return false;
    }
    if (transfer->handle != NULL && transfer->handle->recorded && !options_set(attempt)) {
        return false;
    }
    if (curl_multi_add_handle(transfer->multi->curl, attempt->easy) != CURLM_OK) {
        return false;
    }
    attempt->added = true;
    attempt->busy = true;
    transfer->multi->flying++;
    transfer_note_sent(attempt);
    return true;
}

void attempt_remove(struct attempt *attempt)
{
    struct becalm_curl_multi *multi = attempt->transfer->multi;
    transfer_note_end(attempt);
    if (attempt->added) {
        (void)curl_multi_remove_handle(multi->curl, attempt->easy);
        attempt->added = false;
        if (has_callback_body(attempt->transfer)) {
            attempt->transfer->body_read = attempt->transfer->body_read || outcome_connected(attempt->easy);
        }
        multi->flying -= attempt->busy;
        attempt->busy = false;
    }
    /* A copy that has the answer stays until the end, to be asked about it. */
    if (attempt->copied && attempt->easy != attempt->transfer->answered) {
        multi_unknow(multi, attempt->easy);
        curl_easy_cleanup(attempt->easy);
        attempt->copied = false;
        attempt->easy = NULL;
    }
    attempt->state = ATTEMPT_FREE;
}
