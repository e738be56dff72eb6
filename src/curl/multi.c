/* SPDX-License-Identifier: MIT */
#include "multi.h"

#include <becalm/run.h>

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- transfers by handle ---- */

static uint32_t place_find(const struct becalm_curl_multi *multi, const CURL *easy)
{
    uint64_t hash = (uint64_t)(uintptr_t)easy * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & (multi->place_count - 1);
    while (multi->place[at].easy != NULL && multi->place[at].easy != easy) {
        at = (at + 1) & (multi->place_count - 1);
    }
    return at;
}

static bool places_grow(struct becalm_curl_multi *multi)
{
    struct becalm_curl_multi larger = {.place_count = multi->place_count == 0 ? 16 : 2 * multi->place_count};
    if (multi->place_count > 2 * (multi->easy_count + 1)) {
        return true;
    }
    larger.place = calloc(larger.place_count, sizeof *larger.place);
    if (larger.place == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < multi->place_count; i++) {
        if (multi->place[i].easy != NULL) {
            larger.place[place_find(&larger, multi->place[i].easy)] = multi->place[i];
        }
    }
    free(multi->place);
    multi->place = larger.place;
    multi->place_count = larger.place_count;
    return true;
}

bool multi_know(struct becalm_curl_multi *multi, CURL *easy, struct transfer *transfer)
{
    if (!places_grow(multi)) {
        return false;
    }
    multi->place[place_find(multi, easy)] = (struct multi_place){easy, transfer};
    multi->easy_count++;
    return true;
}

void multi_unknow(struct becalm_curl_multi *multi, CURL *easy)
{
    uint32_t mask = multi->place_count - 1;
    uint32_t at = place_find(multi, easy);
    multi->place[at].easy = NULL;
    multi->easy_count--;
    for (uint32_t i = (at + 1) & mask; multi->place[i].easy != NULL; i = (i + 1) & mask) {
        struct multi_place moved = multi->place[i];
        multi->place[i].easy = NULL;
        multi->place[place_find(multi, moved.easy)] = moved;
    }
}

/* The transfer of a handle, or NULL. */
static struct transfer *multi_find(const struct becalm_curl_multi *multi, CURL *easy)
{
    if (multi == NULL) {
        return NULL;
    }
    if (multi->only != NULL) {
        return multi->only->easy == easy ? multi->only : NULL;
    }
    const struct multi_place *place = multi->place_count == 0 ? NULL : &multi->place[place_find(multi, easy)];
    return place == NULL || place->easy == NULL ? NULL : place->transfer;
}

struct transfer *multi_call_of(const struct handle *handle)
{
    /* relaxed: it is this thread that has set it */
    bool busy = atomic_load_explicit(&handle->busy, memory_order_relaxed);
    struct transfer *transfer = multi_find(busy ? handle->multi : handle->in, handle->easy);
    return transfer == NULL || transfer->over ? NULL : transfer;
}

/* ---- timers: a heap; a transfer that waits for nothing is not in it ---- */

#define NO_TIMER UINT32_MAX

static void timer_put(struct becalm_curl_multi *multi, uint32_t at, struct transfer *transfer)
{
    multi->timers[at] = transfer;
    transfer->timer = at;
}

static void timer_up(struct becalm_curl_multi *multi, uint32_t at)
{
    struct transfer *transfer = multi->timers[at];
    while (at > 0 && multi->timers[(at - 1) / 2]->wake_at > transfer->wake_at) {
        timer_put(multi, at, multi->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    timer_put(multi, at, transfer);
}

static void timer_down(struct becalm_curl_multi *multi, uint32_t at)
{
    struct transfer *transfer = multi->timers[at];
    for (uint32_t child = 2 * at + 1; child < multi->timer_count; child = 2 * at + 1) {
        if (child + 1 < multi->timer_count && multi->timers[child + 1]->wake_at < multi->timers[child]->wake_at) {
            child++;
        }
        if (multi->timers[child]->wake_at >= transfer->wake_at) {
            break;
        }
        timer_put(multi, at, multi->timers[child]);
        at = child;
    }
    timer_put(multi, at, transfer);
}

static void timer_remove(struct becalm_curl_multi *multi, struct transfer *transfer)
{
    uint32_t at = transfer->timer;
    struct transfer *last = multi->timers[--multi->timer_count];
    transfer->timer = NO_TIMER;
    if (last != transfer) {
        timer_put(multi, at, last);
        timer_up(multi, at);
        timer_down(multi, last->timer);
    }
}

void multi_wake_at(struct becalm_curl_multi *multi, struct transfer *transfer, becalm_ns at)
{
    becalm_ns before = transfer->wake_at;
    transfer->wake_at = at;
    if (multi->only != NULL) {
        return; /* the earliest of one */
    }
    if (at == BECALM_NEVER) {
        if (transfer->timer != NO_TIMER) {
            timer_remove(multi, transfer);
        }
    } else if (transfer->timer == NO_TIMER) {
        timer_put(multi, multi->timer_count++, transfer); /* add_handle made room for all */
        timer_up(multi, transfer->timer);
    } else if (at < before) {
        timer_up(multi, transfer->timer);
    } else {
        timer_down(multi, transfer->timer);
    }
}

static becalm_ns next_at(const struct becalm_curl_multi *multi)
{
    if (multi->unheard && multi->message_count > 0) {
        return 0;
    }
    return multi->timer_count == 0 ? BECALM_NEVER : multi->timers[0]->wake_at;
}

/* Rounded up, so that nobody wakes up before the time and finds nothing to do. */
static long ms_until(becalm_ns now, becalm_ns at)
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
    becalm_ns at = becalm_ns_min(multi->curl_at, next_at(multi));
    if (at == multi->armed_at) {
        return;
    }
    multi->armed_at = at;
    (void)multi->timer(multi->curl, at == BECALM_NEVER ? -1 : ms_until(becalm_run_now(), at), multi->timer_data);
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

/* ---- messages ---- */

static void message_add(struct becalm_curl_multi *multi, const CURLMsg *message)
{
    BECALM_ASSERT(multi->message_count < multi->messages_max); /* there is room for every handle */
    uint32_t at = (multi->message_first + multi->message_count++) & (multi->messages_max - 1);
    multi->messages[at] = *message;
    multi->unheard = true;
}

/* Room for the timer and the message of one transfer more. */
static bool room_make(struct becalm_curl_multi *multi, uint32_t transfers)
{
    if (transfers < multi->timers_max) {
        return true;
    }
    uint32_t count = multi->timers_max == 0 ? 4 : 2 * multi->timers_max;
    CURLMsg *messages = calloc(count, sizeof *messages);
    struct transfer **timers = realloc(multi->timers, count * sizeof *timers);
    if (timers != NULL) {
        multi->timers = timers;
    }
    if (messages == NULL || timers == NULL) {
        free(messages);
        return false;
    }
    for (uint32_t i = 0; i < multi->message_count; i++) {
        messages[i] = multi->messages[(multi->message_first + i) & (multi->messages_max - 1)];
    }
    free(multi->messages);
    multi->messages = messages;
    multi->message_first = 0;
    multi->messages_max = count;
    multi->timers_max = count;
    return true;
}

CURLMsg *becalm_curl_multi_info_read(struct becalm_curl_multi *multi, int *left)
{
    if (multi == NULL || multi->message_count == 0) {
        *left = 0;
        return NULL;
    }
    multi->message = multi->messages[multi->message_first];
    multi->message_first = (multi->message_first + 1) & (multi->messages_max - 1);
    *left = (int)--multi->message_count;
    return &multi->message;
}

/* ---- what steps have marked ---- */

void multi_dirty(struct becalm_curl_multi *multi, struct transfer *transfer)
{
    if (!transfer->dirty && multi->only == NULL) {
        transfer->next = multi->dirty;
        multi->dirty = transfer;
    }
    transfer->dirty = true;
}

/* True: it is over by this. */
static bool settle_one(struct transfer *transfer)
{
    transfer->dirty = false;
    if (!transfer_settle(transfer) || transfer->over) {
        return false;
    }
    transfer->over = true;
    transfer_detach(transfer);
    return true;
}

static void settle(struct becalm_curl_multi *multi)
{
    while (multi->dirty != NULL) {
        struct transfer *transfer = multi->dirty;
        multi->dirty = transfer->next;
        if (settle_one(transfer)) {
            multi->active--;
            message_add(multi,
                        &(CURLMsg){.msg = CURLMSG_DONE, .easy_handle = transfer->easy, .data.result = transfer->code});
        }
    }
}

static void settle_only(struct transfer *only)
{
    while (only->dirty) {
        (void)settle_one(only);
    }
}

/* What libcurl has to say goes to the transfers; about handles that are not ours, to the caller. */
static void messages_take(struct becalm_curl_multi *multi)
{
    CURLMsg *message;
    int left = 1;
    while (left > 0 && (message = curl_multi_info_read(multi->curl, &left)) != NULL) {
        struct transfer *transfer = multi_find(multi, message->easy_handle);
        if (transfer != NULL && message->msg == CURLMSG_DONE) {
            transfer_done(transfer, message->easy_handle, message->data.result);
        } else if (room_make(multi, multi->easy_count + multi->message_count + 1)) {
            message_add(multi, message);
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
            break; /* it wants to be woken again at once: let the others have their turn */
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

/* The next of the list; NULL: there is none. Only this thread removes handles, so that it stays what it is. */
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
    /* relaxed: whoever set it has woken us up afterwards, and the list has a mutex */
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

static CURLMcode drive(struct becalm_curl_multi *multi, CURLMcode rc, int inside, int *running)
{
    if (rc == CURLM_RECURSIVE_API_CALL) { /* see is_inside() */
        multi->inside = false;
        return rc;
    }
    messages_take(multi);
    int others = inside - (int)multi->flying; /* while both speak of the same moment */
    cancels_run(multi);
    timers_run(multi, multi->timer_count == 0 ? 0 : becalm_run_now());
    settle(multi);
    *running = (int)multi->active + (others > 0 ? others : 0);
    multi->unheard = false; /* it looks now, or leaves them there until it has the time */
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
        multi->armed_at = BECALM_NEVER; /* it has fired */
    }
    CURLMcode rc = curl_multi_socket_action(multi->curl, socket, events, &inside);
    return drive(multi, rc, inside, running);
}

CURLMcode becalm_curl_multi_timeout(struct becalm_curl_multi *multi, long *timeout_ms)
{
    if (multi == NULL) {
        return CURLM_BAD_HANDLE;
    }
    CURLMcode rc = curl_multi_timeout(multi->curl, timeout_ms);
    becalm_ns at = next_at(multi);
    if (rc == CURLM_OK && at != BECALM_NEVER) {
        long own = ms_until(becalm_run_now(), at);
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
    becalm_ns at = next_at(multi);
    if (at != BECALM_NEVER) {
        int own = (int)ms_until(becalm_run_now(), at);
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

struct becalm_curl_multi *multi_new_for_one(CURLM *curl, struct becalm_client *client)
{
    struct becalm_curl_multi *multi = becalm_curl_multi_new(curl, client);
    if (multi == NULL) {
        return NULL;
    }
    multi->only = calloc(1, sizeof *multi->only);
    if (multi->only == NULL || !room_make(multi, 1)) {
        becalm_curl_multi_free(multi);
        return NULL;
    }
    return multi;
}

static struct transfer *transfer_take(struct becalm_curl_multi *multi)
{
    struct transfer *transfer = multi->spare;
    if (transfer == NULL) {
        return calloc(1, sizeof *transfer);
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

/* The handle is in this multi from now on, if nobody else has it. */
static CURLMcode handle_join(struct becalm_curl_multi *multi, CURL *easy, struct handle **joined)
{
    CURLMcode rc = CURLM_OK;
    (void)pthread_mutex_lock(&multi->client->mutex);
    struct handle *handle = handles_get(&multi->client->handles, easy);
    if (handle == NULL) {
        rc = CURLM_OUT_OF_MEMORY;
    } else if (handle->in != NULL || atomic_load_explicit(&handle->busy, memory_order_acquire)) {
        rc = CURLM_ADDED_ALREADY; /* acquire: pairs with the release at the end of a becalm_curl_perform() */
    } else {
        handle->in = multi;
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
    if (!handle->told && handle->multi == NULL) { /* there is nothing to remember */
        handles_forget(&multi->client->handles, handle);
    }
    (void)pthread_mutex_unlock(&multi->client->mutex);
}

static void transfer_start(struct becalm_curl_multi *multi, struct transfer *transfer, CURL *easy,
                           struct handle *handle)
{
    transfer->multi = multi;
    transfer->client = multi->client;
    transfer->easy = easy;
    transfer->handle = handle;
    transfer->timer = NO_TIMER;
    transfer->wake_at = BECALM_NEVER;
    transfer->over = false;
    transfer_begin(transfer);
}

/* Memory for all that a transfer needs; NULL: there is none. */
static struct transfer *transfer_new(struct becalm_curl_multi *multi, CURL *easy)
{
    struct transfer *transfer = transfer_take(multi);
    if (transfer == NULL) {
        return NULL;
    }
    if (!room_make(multi, multi->easy_count + multi->message_count + 1) || !multi_know(multi, easy, transfer)) {
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
    transfer_start(multi, transfer, easy, handle);
    settle(multi);
    rearm(multi);
    multi->inside = false;
    return CURLM_OK;
}

/* The message of a handle that goes away goes with it. */
static void message_drop(struct becalm_curl_multi *multi, const CURL *easy)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < multi->message_count; i++) {
        CURLMsg message = multi->messages[(multi->message_first + i) & (multi->messages_max - 1)];
        if (message.easy_handle != easy) {
            multi->messages[(multi->message_first + kept++) & (multi->messages_max - 1)] = message;
        }
    }
    multi->message_count = kept;
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
    if (!transfer->over) {
        transfer_cancel(transfer);
        settle(multi);
    }
    transfer_forget(transfer);
    message_drop(multi, easy);
    multi_unknow(multi, easy);
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
    multi->message_count = 0; /* nobody will read them */
    for (uint32_t i = 0; multi->easy_count > 0; i = (i + 1) & (multi->place_count - 1)) {
        const struct multi_place *place = &multi->place[i];
        while (place->easy != NULL && place->easy == place->transfer->easy) { /* another may move to where it was */
            (void)becalm_curl_multi_remove_handle(multi, place->easy);
        }
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
    free(multi->place);
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

/* ---- one at a time ---- */

/* Most answers come soon. The first wait of a call, if nothing is due for long, is a short one, and so it can do
 * without the clock and without the descriptor that a becalm_curl_cancel() wakes it up by: there is another look soon.
 */
#define GLANCE (20 * BECALM_MS)

static bool first_is_glance(const struct transfer *only)
{
    return becalm_ns_left(only->call.record.began_at, only->wake_at) > 2 * GLANCE;
}

/* libcurl turns at least so often, and so its progress function is called while nothing moves: many programs give up,
 * or go on with what they have paused, in there. */
#define TURN_MS 1000

/* Lets libcurl work, and waits until there is more to do. Most calls have two turns: one that sends, and one that has
 * the answer. */
static CURLMcode turn(struct becalm_curl_multi *multi, bool first)
{
    struct transfer *only = multi->only;
    int inside = 0;
    CURLMcode rc = curl_multi_perform(multi->curl, &inside);
    if (inside == 0) { /* else it has nothing to say */
        messages_take(multi);
    }
    settle_only(only);
    if (rc != CURLM_OK || only->over) {
        return rc;
    }
    /* relaxed: only the flag itself matters, and the wake-up comes after it */
    if (atomic_load_explicit(&multi->cancelled, memory_order_relaxed)) {
        transfer_cancel(only);
        settle_only(only);
        return rc;
    }
    if (first && first_is_glance(only)) {
        return curl_multi_wait(multi->curl, NULL, 0, GLANCE / BECALM_MS, NULL);
    }
    becalm_ns now = becalm_run_now();
    if (only->wake_at <= now) {
        transfer_timer(only);
        settle_only(only);
        return rc;
    }
    if (multi->flying == 0 && !handle_goes_on(only->handle)) {
        transfer_cancel(only);
        settle_only(only);
        return rc;
    }
    long ms = ms_until(now, only->wake_at);
    return curl_multi_poll(multi->curl, NULL, 0, ms < TURN_MS ? (int)ms : TURN_MS, NULL);
}

CURLcode multi_perform_one(struct becalm_curl_multi *multi, CURL *easy, struct handle *handle)
{
    struct transfer *transfer = multi->only;
    CURLMcode rc = CURLM_OK;
    transfer_start(multi, transfer, easy, handle);
    settle_only(transfer);
    for (bool first = true; rc == CURLM_OK && !transfer->over; first = false) {
        rc = turn(multi, first);
    }
    if (rc == CURLM_OK) {
        return transfer->code;
    }
    transfer_cancel(transfer);
    settle_only(transfer);
    return rc == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_BAD_FUNCTION_ARGUMENT;
}
