/* SPDX-License-Identifier: MIT */
#include "multi.h"

#include "line.h"

#include <becalm/run.h>

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

struct transfer *multi_call_of(const struct handle *handle)
{
    /* relaxed: it is this thread that has set it */
    bool busy = atomic_load_explicit(&handle->busy, memory_order_relaxed);
    struct transfer *transfer = multi_find(busy ? handle->multi : handle->in, handle->easy);
    return transfer == NULL || transfer->state == TRANSFER_OVER ? NULL : transfer;
}

long multi_ms_until(becalm_ns now, becalm_ns at)
{
    becalm_ns left = becalm_ns_left(now, at);
    return left / BECALM_MS >= INT_MAX ? INT_MAX : (long)((left + BECALM_MS - 1) / BECALM_MS);
}

/* ---- the caller's timer is the earlier of libcurl's and ours ---- */

static void rearm(struct becalm_curl_multi *multi)
{
    if (multi->timer == NULL) {
        return;
    }
    becalm_ns at = becalm_ns_min(multi->curl_at, multi_next_at(multi));
    if (at == multi->armed_at) {
        return;
    }
    multi->armed_at = at;
    (void)multi->timer(multi->curl, at == BECALM_NEVER ? -1 : multi_ms_until(becalm_run_now(), at), multi->timer_data);
}

static int on_curl_timer(CURLM *curl, long ms, void *data)
{
    struct becalm_curl_multi *multi = data;
    (void)curl;
    multi->curl_at = ms < 0 ? BECALM_NEVER : becalm_ns_after(becalm_run_now(), (becalm_ns)ms * BECALM_MS);
    rearm(multi);
    return 0;
}

CURLMcode becalm_curl_multi_setopt(struct becalm_curl_multi *multi, CURLMoption option, ...)
{
    va_list arguments;
    CURLMcode rc = CURLM_OK;
    if (multi == NULL) {
        return CURLM_BAD_HANDLE;
    }
    va_start(arguments, option);
    if (option == CURLMOPT_TIMERFUNCTION) {
        multi->timer = va_arg(arguments, curl_multi_timer_callback);
        multi->curl_at = BECALM_NEVER;
        multi->armed_at = BECALM_NEVER;
        rc = curl_multi_setopt(multi->curl, CURLMOPT_TIMERDATA, multi);
        rc = rc == CURLM_OK
                 ? curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, multi->timer == NULL ? NULL : on_curl_timer)
                 : rc;
    } else if (option == CURLMOPT_TIMERDATA) {
        multi->timer_data = va_arg(arguments, void *);
    } else if ((int)option >= CURLOPTTYPE_OFF_T) {
        rc = curl_multi_setopt(multi->curl, option, va_arg(arguments, curl_off_t));
    } else if ((int)option >= CURLOPTTYPE_FUNCTIONPOINT) {
        rc = curl_multi_setopt(multi->curl, option, va_arg(arguments, void (*)(void)));
    } else if ((int)option >= CURLOPTTYPE_OBJECTPOINT) {
        rc = curl_multi_setopt(multi->curl, option, va_arg(arguments, void *));
    } else {
        rc = curl_multi_setopt(multi->curl, option, va_arg(arguments, long));
    }
    va_end(arguments);
    return rc;
}

/* ---- work that steps have marked ---- */

bool multi_called_run(struct becalm_curl_multi *multi)
{
    struct transfer *transfer = line_take_called(multi);
    bool any = transfer != NULL;
    while (transfer != NULL) {
        struct transfer *next = transfer->next_called;
        transfer_called(transfer);
        transfer = next;
    }
    return any;
}

bool multi_settle_one(struct transfer *transfer)
{
    transfer->dirty = false;
    if (!transfer_settle(transfer)) {
        return false;
    }
    transfer->state = TRANSFER_OVER;
    transfer_detach(transfer);
    if (transfer->lined_once) {
        line_end(transfer);
        (void)multi_called_run(transfer->multi);
    }
    return true;
}

static void settle(struct becalm_curl_multi *multi)
{
    while (multi->dirty != NULL) {
        struct transfer *transfer = multi->dirty;
        multi->dirty = transfer->next;
        if (multi_settle_one(transfer)) {
            multi->active--;
            /* relaxed: only the flag itself matters, to a thread that would cancel the call */
            atomic_store_explicit(&transfer->handle->over, true, memory_order_relaxed);
            multi_message_add(
                multi, &(CURLMsg){.msg = CURLMSG_DONE, .easy_handle = transfer->easy, .data.result = transfer->code});
        }
    }
}

/* A transfer that ends frees a slot, and the one that is called for it may end at once as well. */
static void settle_all(struct becalm_curl_multi *multi)
{
    do {
        settle(multi);
    } while (multi_called_run(multi));
    if (multi->lined > 0) {
        multi->looked_at = becalm_run_now();
    }
}

/* Messages of libcurl go to their transfers; messages about other handles of the program go to the caller. */
static void messages_take(struct becalm_curl_multi *multi)
{
    CURLMsg *message;
    int left = 1;
    while (left > 0 && (message = curl_multi_info_read(multi->curl, &left)) != NULL) {
        struct transfer *transfer = multi_find(multi, message->easy_handle);
        if (transfer != NULL && message->msg == CURLMSG_DONE) {
            transfer_done(transfer, message->easy_handle, message->data.result);
        } else if (multi_room_make(multi, multi->transfers.count + multi->message_count + 1)) {
            multi_message_add(multi, message);
        }
    }
}

static void timers_run(struct becalm_curl_multi *multi, becalm_ns now)
{
    while (multi->timer_count > 0 && multi->timers[0]->wake_at <= now) {
        struct transfer *transfer = multi->timers[0];
        becalm_ns before = transfer->wake_at;
        transfer_timer(transfer);
        if (transfer->timer == 0 && transfer->wake_at == before) {
            break; /* this transfer needs another turn: the other transfers come first */
        }
    }
}

/* ---- cancelled from elsewhere ---- */

void multi_cancel_later(struct becalm_curl_multi *multi, struct handle *handle)
{
    if (!handle->cancel) {
        handle->cancel = true;
        handle->next_cancel = multi->cancels;
        multi->cancels = handle;
    }
    atomic_store_explicit(&multi->cancelled, true, memory_order_relaxed); /* the mutex orders the list */
    (void)curl_multi_wakeup(multi->curl);
}

/* The next of the list; NULL: there is none. Only this thread removes handles, so the result stays valid. */
static struct handle *cancel_take(struct becalm_curl_multi *multi)
{
    (void)pthread_mutex_lock(&multi->client->mutex);
    struct handle *handle = multi->cancels;
    if (handle != NULL) {
        multi->cancels = handle->next_cancel;
        handle->cancel = false;
    } else {
        atomic_store_explicit(&multi->cancelled, false, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&multi->client->mutex);
    return handle;
}

static void cancels_run(struct becalm_curl_multi *multi)
{
    /* relaxed: the thread that set it has woken us up afterwards, and the list has a mutex */
    if (!atomic_load_explicit(&multi->cancelled, memory_order_relaxed)) {
        return;
    }
    for (struct handle *handle = cancel_take(multi); handle != NULL; handle = cancel_take(multi)) {
        transfer_cancel(multi_find(multi, handle->easy));
    }
}

/* ---- driving ---- */

/* One of our functions is at work, or libcurl is, in a callback: also one that a curl_easy_pause() of the program's own
 * has called, of which only libcurl knows. */
static bool is_inside(const struct becalm_curl_multi *multi)
{
    long ms;
    return multi->inside || curl_multi_timeout(multi->curl, &ms) == CURLM_RECURSIVE_API_CALL;
}

CURLcode multi_pause(struct transfer *transfer, int bitmask)
{
    struct becalm_curl_multi *multi = transfer->multi;
    bool inside = multi->inside;
    multi->inside = true;
    CURLcode rc = curl_easy_pause(transfer->answered, bitmask);
    multi->inside = inside;
    return rc;
}

static void store_turn(const struct becalm_curl_multi *multi)
{
    if (multi->client->store != NULL) {
        client_store_turn(multi->client->store);
    }
}

static CURLMcode drive(struct becalm_curl_multi *multi, CURLMcode rc, int inside, int *running)
{
    if (rc == CURLM_RECURSIVE_API_CALL) { /* see is_inside() */
        multi->inside = false;
        return rc;
    }
    messages_take(multi);
    int others = inside - (int)multi->flying; /* both counts are of the same moment */
    cancels_run(multi);
    timers_run(multi, multi->timer_count == 0 ? 0 : becalm_run_now());
    settle_all(multi);
    *running = (int)multi->active + (others > 0 ? others : 0);
    multi->unheard = false; /* the program reads the messages now, or when it has the time */
    rearm(multi);
    multi->inside = false;
    return rc;
}

CURLMcode becalm_curl_multi_perform(struct becalm_curl_multi *multi, int *running)
{
    int inside = 0;
    if (multi == NULL) {
        *running = 0; /* so that a loop ends that looks at nothing else */
        return CURLM_BAD_HANDLE;
    }
    if (multi->inside) {
        return CURLM_RECURSIVE_API_CALL;
    }
    multi->inside = true;
    store_turn(multi);
    CURLMcode rc = curl_multi_perform(multi->curl, &inside);
    return drive(multi, rc, inside, running);
}

CURLMcode becalm_curl_multi_socket_action(struct becalm_curl_multi *multi, curl_socket_t socket, int events,
                                          int *running)
{
    int inside = 0;
    if (multi == NULL) {
        *running = 0; /* so that a loop ends that looks at nothing else */
        return CURLM_BAD_HANDLE;
    }
    if (multi->inside) {
        return CURLM_RECURSIVE_API_CALL;
    }
    multi->inside = true;
    if (socket == CURL_SOCKET_TIMEOUT) {
        multi->armed_at = BECALM_NEVER; /* the timer has fired */
    }
    store_turn(multi);
    CURLMcode rc = curl_multi_socket_action(multi->curl, socket, events, &inside);
    return drive(multi, rc, inside, running);
}

CURLMcode becalm_curl_multi_timeout(struct becalm_curl_multi *multi, long *timeout_ms)
{
    if (multi == NULL) {
        return CURLM_BAD_HANDLE;
    }
    CURLMcode rc = curl_multi_timeout(multi->curl, timeout_ms);
    becalm_ns at = multi_next_at(multi);
    if (rc == CURLM_OK && at != BECALM_NEVER) {
        long own = multi_ms_until(becalm_run_now(), at);
        *timeout_ms = *timeout_ms < 0 || own < *timeout_ms ? own : *timeout_ms;
    }
    return rc;
}

CURLMcode becalm_curl_multi_poll(struct becalm_curl_multi *multi, struct curl_waitfd *extra, unsigned extra_count,
                                 int timeout_ms, int *ready)
{
    if (multi == NULL) {
        return CURLM_BAD_HANDLE;
    }
    becalm_ns at = multi_next_at(multi);
    if (at != BECALM_NEVER) {
        int own = (int)multi_ms_until(becalm_run_now(), at);
        timeout_ms = own < timeout_ms ? own : timeout_ms;
    }
    return curl_multi_poll(multi->curl, extra, extra_count, timeout_ms, ready);
}

/* ---- life ---- */

struct becalm_curl_multi *becalm_curl_multi_new(CURLM *curl, struct becalm_client *client)
{
    struct becalm_curl_multi *multi = curl == NULL || client == NULL ? NULL : calloc(1, sizeof *multi);
    if (multi != NULL) {
        multi->client = client;
        multi->curl = curl;
        multi->curl_at = BECALM_NEVER;
        multi->armed_at = BECALM_NEVER;
    }
    return multi;
}

static struct transfer *transfer_take(struct becalm_curl_multi *multi)
{
    struct transfer *transfer = multi->spare;
    if (transfer == NULL) {
        return transfer_make();
    }
    multi->spare = transfer->next;
    transfer->next = NULL;
    return transfer;
}

static void transfer_spare(struct becalm_curl_multi *multi, struct transfer *transfer)
{
    transfer->next = multi->spare;
    multi->spare = transfer;
}

/* The handle is in this multi from now on, if no other multi has it. */
static CURLMcode handle_join(struct becalm_curl_multi *multi, CURL *easy, struct handle **joined)
{
    CURLMcode rc = CURLM_OK;
    (void)pthread_mutex_lock(&multi->client->mutex);
    struct handle *handle = client_handle(multi->client, easy);
    if (handle == NULL) {
        rc = CURLM_OUT_OF_MEMORY;
    } else if (handle->in != NULL || atomic_load_explicit(&handle->busy, memory_order_acquire)) {
        rc = CURLM_ADDED_ALREADY; /* acquire: pairs with the release at the end of a becalm_curl_perform() */
    } else {
        handle->in = multi;
        atomic_store_explicit(&handle->over, false, memory_order_relaxed); /* the mutex orders it */
        *joined = handle;
    }
    (void)pthread_mutex_unlock(&multi->client->mutex);
    return rc;
}

static void handle_part(struct becalm_curl_multi *multi, struct handle *handle)
{
    (void)pthread_mutex_lock(&multi->client->mutex);
    for (struct handle **at = &multi->cancels; handle->cancel && *at != NULL; at = &(*at)->next_cancel) {
        if (*at == handle) {
            *at = handle->next_cancel;
            handle->cancel = false;
            break;
        }
    }
    handle->in = NULL;
    if (!handle->recorded && handle->multi == NULL) { /* there is nothing to remember */
        handles_forget(&multi->client->handles, handle);
    }
    (void)pthread_mutex_unlock(&multi->client->mutex);
}

void multi_begin(struct becalm_curl_multi *multi, struct transfer *transfer, CURL *easy, struct handle *handle)
{
    transfer->multi = multi;
    transfer->client = multi->client;
    transfer->easy = easy;
    transfer->handle = handle;
    transfer->timer = MULTI_NO_TIMER;
    transfer->wake_at = BECALM_NEVER;
    transfer_begin(transfer);
}

/* Memory for all that a transfer needs; NULL: there is none. */
static struct transfer *transfer_new(struct becalm_curl_multi *multi, CURL *easy)
{
    struct transfer *transfer = transfer_take(multi);
    if (transfer == NULL) {
        return NULL;
    }
    if (!multi_room_make(multi, multi->transfers.count + multi->message_count + 1) ||
        !map_add(&multi->transfers, easy, transfer)) {
        transfer_spare(multi, transfer);
        return NULL;
    }
    return transfer;
}

CURLMcode becalm_curl_multi_add_handle(struct becalm_curl_multi *multi, CURL *easy)
{
    if (multi == NULL) {
        return CURLM_BAD_HANDLE;
    }
    if (easy == NULL) {
        return CURLM_BAD_EASY_HANDLE;
    }
    if (is_inside(multi)) {
        return CURLM_RECURSIVE_API_CALL;
    }
    if (multi_find(multi, easy) != NULL) {
        return CURLM_ADDED_ALREADY;
    }
    struct handle *handle;
    CURLMcode rc = handle_join(multi, easy, &handle);
    if (rc != CURLM_OK) {
        return rc;
    }
    struct transfer *transfer = transfer_new(multi, easy);
    if (transfer == NULL) {
        handle_part(multi, handle);
        return CURLM_OUT_OF_MEMORY;
    }
    multi->inside = true;
    multi->active++;
    multi_begin(multi, transfer, easy, handle);
    settle_all(multi);
    rearm(multi);
    multi->inside = false;
    return CURLM_OK;
}

CURLMcode becalm_curl_multi_remove_handle(struct becalm_curl_multi *multi, CURL *easy)
{
    if (multi == NULL) {
        return CURLM_BAD_HANDLE;
    }
    struct transfer *transfer = multi_find(multi, easy);
    if (transfer == NULL || transfer->easy != easy) {
        return CURLM_BAD_EASY_HANDLE;
    }
    if (is_inside(multi)) {
        return CURLM_RECURSIVE_API_CALL;
    }
    multi->inside = true;
    if (transfer->state != TRANSFER_OVER) {
        transfer_cancel(transfer);
        settle_all(multi);
    }
    transfer_forget(transfer);
    multi_message_drop(multi, easy);
    map_remove(&multi->transfers, easy);
    handle_part(multi, transfer->handle);
    transfer_spare(multi, transfer);
    rearm(multi);
    multi->inside = false;
    return CURLM_OK;
}

void becalm_curl_multi_free(struct becalm_curl_multi *multi)
{
    if (multi == NULL) {
        return;
    }
    multi->message_count = 0; /* the program will not read them */
    uint32_t at = 0;
    for (const struct transfer *transfer; (transfer = map_left(&multi->transfers, &at)) != NULL;) {
        (void)becalm_curl_multi_remove_handle(multi, transfer->easy); /* and its copies with it */
    }
    if (multi->only != NULL) {
        transfer_free(multi->only);
    }
    while (multi->spare != NULL) {
        struct transfer *next = multi->spare->next;
        transfer_free(multi->spare);
        multi->spare = next;
    }
    if (multi->timer != NULL) {
        (void)curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, NULL);
    }
    map_free(&multi->transfers);
    free(multi->timers);
    free(multi->messages);
    free(multi);
}

const struct becalm_record *becalm_curl_multi_record(const struct becalm_curl_multi *multi, CURL *easy)
{
    const struct transfer *transfer = multi_find(multi, easy);
    return transfer == NULL ? NULL : &transfer->call.record;
}

CURL *becalm_curl_multi_answered(const struct becalm_curl_multi *multi, CURL *easy)
{
    const struct transfer *transfer = multi_find(multi, easy);
    return transfer == NULL ? NULL : transfer->answered;
}
