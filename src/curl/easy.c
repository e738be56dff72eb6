/* SPDX-License-Identifier: MIT */
/* The blocking interface: a multi handle for each easy handle, which keeps its connections, as libcurl does itself. How
 * becalm_curl_perform() drives that one is in multi_only.c. */
#include "attempt.h"
#include "multi.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

static void lock(struct becalm_client *client)
{
    (void)pthread_mutex_lock(&client->mutex);
}

static void unlock(struct becalm_client *client)
{
    (void)pthread_mutex_unlock(&client->mutex);
}

/* acquire: pairs with the release at the end of the call */
static bool is_busy(const struct handle *handle)
{
    return atomic_load_explicit(&handle->busy, memory_order_acquire);
}

/* ---- the record of a handle ---- */

/* The handle, which is remembered from now on; NULL: no memory. With the mutex. */
static struct handle *handle_keep(struct becalm_client *client, CURL *easy)
{
    struct handle *handle = client_handle(client, easy);
    if (handle != NULL) {
        handles_keep(&client->handles, handle);
    }
    return handle;
}

/* If the policy could not be read there is no client, and the option is only passed to libcurl: see
 * becalm_curl_perform(). */
static CURLcode record(CURL *easy, struct becalm_client *client, CURLoption option, const void *value)
{
    if (client == NULL) {
        return CURLE_OK;
    }
    lock(client);
    struct handle *handle = handle_keep(client, easy);
    bool recorded = handle != NULL && handle_record(handle, option, value);
    unlock(client);
    return recorded ? CURLE_OK : CURLE_OUT_OF_MEMORY;
}

/* The call that the handle is in; NULL: none. */
static struct transfer *call_of(CURL *easy, struct becalm_client *client)
{
    if (client == NULL) {
        return NULL;
    }
    lock(client);
    const struct handle *handle = handles_find(&client->handles, easy);
    struct transfer *transfer = handle == NULL ? NULL : multi_call_of(handle);
    unlock(client);
    return transfer;
}

/* During a call, often in one of its callbacks, libcurl keeps the library's value instead of the caller's option: a new
 * value of the caller is only recorded, and the library's callbacks read it. NULL: the option goes to libcurl. */
static struct transfer *taker(CURL *easy, struct becalm_client *client, CURLoption option)
{
    struct transfer *transfer = call_of(easy, client);
    return transfer != NULL && transfer_takes(transfer, option) ? transfer : NULL;
}

CURLcode becalm_curl_setopt(CURL *easy, struct becalm_client *client, CURLoption option, ...)
{
    CURLcode rc;
    struct transfer *taken = taker(easy, client, option);
    va_list arguments;
    va_start(arguments, option);
    if ((int)option >= CURLOPTTYPE_BLOB) {
        struct curl_blob *blob = va_arg(arguments, struct curl_blob *);
        rc = curl_easy_setopt(easy, option, blob);
        rc = rc == CURLE_OK ? record(easy, client, option, &blob) : rc;
    } else if ((int)option >= CURLOPTTYPE_OFF_T) {
        curl_off_t size = va_arg(arguments, curl_off_t);
        rc = curl_easy_setopt(easy, option, size);
        rc = rc == CURLE_OK ? record(easy, client, option, &size) : rc;
    } else if ((int)option >= CURLOPTTYPE_FUNCTIONPOINT) {
        void (*function)(void) = va_arg(arguments, void (*)(void));
        rc = taken == NULL ? curl_easy_setopt(easy, option, function) : CURLE_OK;
        rc = rc == CURLE_OK ? record(easy, client, option, &function) : rc;
    } else if ((int)option >= CURLOPTTYPE_OBJECTPOINT) {
        void *pointer = va_arg(arguments, void *);
        rc = taken == NULL ? curl_easy_setopt(easy, option, pointer) : CURLE_OK;
        rc = rc == CURLE_OK ? record(easy, client, option, &pointer) : rc;
        if (taken != NULL && option == CURLOPT_HTTPHEADER) {
            attempt_headers_again(taken);
        }
    } else {
        long number = va_arg(arguments, long);
        bool refused =
            option == CURLOPT_CONNECT_ONLY && number != 0; /* the program could not use the connection afterwards */
        rc = refused ? CURLE_BAD_FUNCTION_ARGUMENT : curl_easy_setopt(easy, option, number);
        rc = rc == CURLE_OK ? record(easy, client, option, &number) : rc;
    }
    va_end(arguments);
    return rc;
}

CURLcode becalm_curl_idempotency_key(CURL *easy, struct becalm_client *client)
{
    if (client == NULL) {
        return CURLE_BAD_FUNCTION_ARGUMENT;
    }
    lock(client);
    struct handle *handle = handles_find(&client->handles, easy);
    bool knows_headers = handle != NULL && handle_recorded(&handle->option, RECORDED_HEADERS);
    if (knows_headers) {
        handle->keyed = true;
    }
    unlock(client);
    return knows_headers ? CURLE_OK : CURLE_BAD_FUNCTION_ARGUMENT;
}

CURLcode becalm_curl_operation(CURL *easy, struct becalm_client *client, const char *operation)
{
    if (easy == NULL || client == NULL) {
        return CURLE_BAD_FUNCTION_ARGUMENT;
    }
    lock(client);
    struct handle *handle = handle_keep(client, easy);
    if (handle != NULL) {
        handle->operation = operation == NULL ? NULL : client_operation(client, operation);
    }
    unlock(client);
    return handle == NULL ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

CURLcode becalm_curl_deadline(CURL *easy, struct becalm_client *client, becalm_ns deadline_at)
{
    if (easy == NULL || client == NULL) {
        return CURLE_BAD_FUNCTION_ARGUMENT;
    }
    lock(client);
    struct handle *handle = handle_keep(client, easy);
    if (handle != NULL) {
        handle->deadline_at = deadline_at;
    }
    unlock(client);
    return handle == NULL ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

/* Removes the handle from its multi, which would look for it; then, if it is in no call, drops its record. */
static void let_go(CURL *easy, struct becalm_client *client, void (*how)(struct handles *, struct handle *))
{
    if (client == NULL) {
        return;
    }
    lock(client);
    struct handle *handle = handles_find(&client->handles, easy);
    struct becalm_curl_multi *in = handle == NULL ? NULL : handle->in;
    unlock(client);
    if (in != NULL) {
        (void)becalm_curl_multi_remove_handle(in, easy);
    }
    lock(client);
    handle = handles_find(&client->handles, easy);
    if (handle != NULL && handle->in == NULL && !is_busy(handle)) {
        how(&client->handles, handle);
    }
    unlock(client);
}

void becalm_curl_reset(CURL *easy, struct becalm_client *client)
{
    let_go(easy, client, handles_reset);
    curl_easy_reset(easy);
}

void becalm_curl_cleanup(CURL *easy, struct becalm_client *client)
{
    let_go(easy, client, handles_forget);
    curl_easy_cleanup(easy);
}

/* ---- a call ---- */

static bool multi_ready(struct handle *handle, struct becalm_client *client)
{
    if (handle->multi == NULL) {
        handle->own = handle->own == NULL ? curl_multi_init() : handle->own;
        handle->multi = handle->own == NULL ? NULL : multi_only_new(handle->own, client);
    }
    if (handle->multi != NULL && handle->option.connections > 0) { /* libcurl does the same with its own multi handle */
        (void)curl_multi_setopt(handle->own, CURLMOPT_MAXCONNECTS, handle->option.connections);
    }
    return handle->multi != NULL;
}

/* The handle with a multi handle of its own that no other call uses; NULL: no memory, or another call is in it. */
static struct handle *handle_enter(CURL *easy, struct becalm_client *client)
{
    lock(client);
    struct handle *handle = client_handle(client, easy);
    if (handle != NULL) {
        handles_use(&client->handles, handle);
    }
    if (handle == NULL || handle->in != NULL || is_busy(handle) || !multi_ready(handle, client)) {
        unlock(client);
        return NULL;
    }
    atomic_store_explicit(&handle->busy, true, memory_order_relaxed); /* the mutex orders both */
    atomic_store_explicit(&handle->multi->cancelled, false, memory_order_relaxed);
    unlock(client);
    return handle;
}

CURLcode becalm_curl_perform(CURL *easy, struct becalm_client *client)
{
    if (easy == NULL || client == NULL) {
        return CURLE_BAD_FUNCTION_ARGUMENT;
    }
    struct handle *handle = handle_enter(easy, client);
    if (handle == NULL) {
        return CURLE_FAILED_INIT;
    }
    CURLcode code = multi_only_perform(handle->multi, easy, handle);
    handle->called_at = handle->multi->only->call.record.began_at;
    atomic_store_explicit(&handle->busy, false, memory_order_release); /* a thread that sees it sees the record, too */
    return code;
}

bool becalm_curl_cancel(CURL *easy, struct becalm_client *client)
{
    if (client == NULL) {
        return false;
    }
    lock(client);
    struct handle *handle = handles_find(&client->handles, easy);
    bool busy = handle != NULL && is_busy(handle);
    /* relaxed: a call that ends right now may be found either way */
    bool in_multi = handle != NULL && handle->in != NULL && !atomic_load_explicit(&handle->over, memory_order_relaxed);
    if (busy) {
        atomic_store_explicit(&handle->multi->cancelled, true, memory_order_relaxed);
        (void)curl_multi_wakeup(handle->own);
    } else if (in_multi) {
        multi_cancel_later(handle->in, handle);
    }
    unlock(client);
    return busy || in_multi;
}

CURLcode becalm_curl_pause(CURL *easy, struct becalm_client *client, int bitmask)
{
    struct transfer *transfer = call_of(easy, client);
    return transfer == NULL ? curl_easy_pause(easy, bitmask) : multi_pause(transfer, bitmask);
}

/* The latest call of a handle that is over. NULL: there is none. With the mutex. */
static const struct transfer *latest(struct becalm_client *client, CURL *easy)
{
    const struct handle *handle = handles_find(&client->handles, easy);
    return handle != NULL && !is_busy(handle) && handle->called_at != 0 ? handle->multi->only : NULL;
}

bool becalm_curl_record(CURL *easy, struct becalm_client *client, struct becalm_record *record)
{
    if (client == NULL) {
        return false;
    }
    lock(client);
    const struct transfer *transfer = latest(client, easy);
    if (transfer != NULL) {
        *record = transfer->call.record;
    }
    unlock(client);
    return transfer != NULL;
}

const char *becalm_curl_service(CURL *easy, struct becalm_client *client)
{
    if (client == NULL) {
        return NULL;
    }
    lock(client);
    const struct transfer *transfer = latest(client, easy);
    const char *service =
        transfer == NULL || client_is_unrouted(client, transfer->target) ? NULL : transfer->target->service;
    unlock(client);
    return service;
}
