/* SPDX-License-Identifier: MIT */
/* becalm_curl_perform(): a multi handle with one call at a time, driven here until it is over. */
#include "multi.h"

#include "engine/apart_internal.h"

#include <becalm/run.h>

struct becalm_curl_multi *multi_only_new(CURLM *curl, struct becalm_client *client)
{
    struct becalm_curl_multi *multi = becalm_curl_multi_new(curl, client);
    if (multi == NULL) {
        return NULL;
    }
    multi->only = transfer_make();
    if (multi->only == NULL || !multi_room_make(multi, 1)) {
        becalm_curl_multi_free(multi);
        return NULL;
    }
    return multi;
}

static BECALM__OUTLINE void settle_only(struct transfer *only)
{
    while (only->dirty) {
        (void)multi_settle_one(only);
    }
}

static BECALM__COLD void cancel_only(struct transfer *only)
{
    transfer_cancel(only);
    settle_only(only);
}

/* Most answers arrive soon. If nothing is due for long, the first wait of a call is short, and so it needs neither the
 * clock nor the descriptor by which becalm_curl_cancel() wakes it up: the call looks again soon. */
#define GLANCE (20 * BECALM_MS)

static bool first_is_glance(const struct transfer *only)
{
    return becalm_ns_left(only->call.record.began_at, only->wake_at) > 2 * GLANCE;
}

/* libcurl runs at least this often, so that its progress function is called while nothing moves: many programs abort or
 * unpause transfers there. */
#define TURN_MS 1000

/* There is one handle in it at most, and its one message is its end. */
static void message_take(struct becalm_curl_multi *multi)
{
    int left;
    const CURLMsg *message = curl_multi_info_read(multi->curl, &left);
    if (message != NULL) {
        transfer_done(multi->only, message->easy_handle, message->data.result);
    }
}

/* Waits until libcurl has something to do, or we have. */
static BECALM__COLD CURLMcode wait_long(struct becalm_curl_multi *multi)
{
    struct transfer *only = multi->only;
    becalm_ns now = becalm_run_now();
    if (multi_called_run(multi)) {
        settle_only(only);
        return CURLM_OK;
    }
    if (only->wake_at <= now) {
        transfer_timer(only);
        settle_only(only);
        return CURLM_OK;
    }
    if (multi->flying == 0 && !handle_goes_on(only->handle)) {
        cancel_only(only);
        return CURLM_OK;
    }
    const struct client_store *store = multi->client->store;
    long ms =
        multi_ms_until(now, store == NULL ? only->wake_at : becalm_ns_min(only->wake_at, client_store_due(store)));
    return curl_multi_poll(multi->curl, NULL, 0, ms < TURN_MS ? (int)ms : TURN_MS, NULL);
}

/* Lets libcurl work, and waits until there is more to do. Most calls have two turns: one that sends, and one that has
 * the answer. */
static CURLMcode turn(struct becalm_curl_multi *multi, bool first)
{
    struct transfer *only = multi->only;
    int inside = 0;
    if (multi->client->store != NULL) {
        client_store_turn(multi->client->store);
    }
    CURLMcode rc = curl_multi_perform(multi->curl, &inside);
    if (inside == 0) { /* else it has nothing to say */
        message_take(multi);
    }
    transfer_tell(only);
    if (only->dirty) {
        settle_only(only);
    }
    if (rc != CURLM_OK || only->state == TRANSFER_OVER) {
        return rc;
    }
    /* relaxed: only the flag itself matters, and the wake-up comes after it */
    if (atomic_load_explicit(&multi->cancelled, memory_order_relaxed)) {
        cancel_only(only);
        return rc;
    }
    if (first && !only->lined && first_is_glance(only)) {
        return curl_multi_wait(multi->curl, NULL, 0, GLANCE / BECALM_MS, NULL);
    }
    return wait_long(multi);
}

CURLcode multi_only_perform(struct becalm_curl_multi *multi, CURL *easy, struct handle *handle)
{
    struct transfer *transfer = multi->only;
    CURLMcode rc = CURLM_OK;
    multi_begin(multi, transfer, easy, handle);
    settle_only(transfer);
    for (bool first = true; rc == CURLM_OK && transfer->state != TRANSFER_OVER; first = false) {
        rc = turn(multi, first);
    }
    if (rc == CURLM_OK) {
        return transfer->code;
    }
    cancel_only(transfer);
    return rc == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_BAD_FUNCTION_ARGUMENT;
}
