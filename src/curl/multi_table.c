/* SPDX-License-Identifier: MIT */
/* The tables of a multi handle: its transfers by handle and by timer, and messages that the program has not read yet.
 */
#include "multi_table.h"

#include <stdlib.h>

/* ---- transfers by handle ---- */

struct transfer *multi_find(const struct becalm_curl_multi *multi, const CURL *easy)
{
    if (multi == NULL) {
        return NULL;
    }
    if (multi->only != NULL) {
        return multi->only->easy == easy ? multi->only : NULL;
    }
    return map_find(&multi->transfers, easy);
}

/* ---- timers: a heap; a transfer that waits for nothing is not in it ---- */

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
    transfer->timer = MULTI_NO_TIMER;
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
        if (transfer->timer != MULTI_NO_TIMER) {
            timer_remove(multi, transfer);
        }
    } else if (transfer->timer == MULTI_NO_TIMER) {
        timer_put(multi, multi->timer_count++, transfer); /* add_handle made room for all */
        timer_up(multi, transfer->timer);
    } else if (at < before) {
        timer_up(multi, transfer->timer);
    } else {
        timer_down(multi, transfer->timer);
    }
}

#define LOOK_EVERY (20 * BECALM_MS)

becalm_ns multi_next_at(const struct becalm_curl_multi *multi)
{
    if (multi->unheard && multi->message_count > 0) {
        return 0;
    }
    if (atomic_load_explicit(&multi->called, memory_order_relaxed) != NULL) { /* relaxed: see line_called_run() */
        return 0;
    }
    becalm_ns at = multi->timer_count == 0 ? BECALM_NEVER : multi->timers[0]->wake_at;
    if (multi->active > 0 && multi->client->store != NULL) {
        at = becalm_ns_min(at, client_store_due(multi->client->store));
    }
    /* The loop of a program can't be woken by another thread that has called a transfer of this multi: so the loop
     * polls. */
    bool must_look = multi->lined > 0 && multi->timer != NULL;
    return must_look ? becalm_ns_min(at, becalm_ns_after(multi->looked_at, LOOK_EVERY)) : at;
}

/* ---- messages ---- */

void multi_message_add(struct becalm_curl_multi *multi, const CURLMsg *message)
{
    BECALM_ASSERT(multi->message_count < multi->messages_max); /* there is room for every handle */
    uint32_t at = (multi->message_first + multi->message_count++) & (multi->messages_max - 1);
    multi->messages[at] = *message;
    multi->unheard = true;
}

bool multi_room_make(struct becalm_curl_multi *multi, uint32_t transfers)
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

void multi_message_drop(struct becalm_curl_multi *multi, const CURL *easy)
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

void multi_dirty(struct becalm_curl_multi *multi, struct transfer *transfer)
{
    if (!transfer->dirty && multi->only == NULL) {
        transfer->next = multi->dirty;
        multi->dirty = transfer;
    }
    transfer->dirty = true;
}
