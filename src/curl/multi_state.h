/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_MULTI_STATE_H
#define BECALM_CURL_MULTI_STATE_H

/* A multi handle and its transfers, by handle and by timer. Belongs to one thread at a time. */

#include "map.h"
#include "transfer_state.h"

struct becalm_curl_multi {
    struct becalm_client *client;
    CURLM *curl;
    /* becalm_curl_perform(): the one transfer, reused for each call; it never hedges. NULL: a program's multi. */
    struct transfer *only;
    BECALM_ATOMIC(bool) cancelled; /* becalm_curl_cancel(): the call in it, or those in the list */
    struct handle *cancels;        /* that list, with the client's mutex */
    bool inside;                   /* one of our functions is at work, perhaps in a callback of the caller's */
    struct map transfers;          /* by handle: callers' and copies */
    struct transfer **timers;      /* a binary heap, the earliest first */
    uint32_t timer_count;
    uint32_t timers_max;
    uint32_t active; /* calls that have not ended */
    uint32_t flying; /* handles of ours that libcurl is busy with */
    struct transfer *dirty;
    struct transfer *spare; /* memory of transfers that are over */
    CURLMsg *messages;      /* a ring */
    uint32_t messages_max;  /* a power of two, or 0 */
    uint32_t message_first;
    uint32_t message_count;
    bool unheard;    /* a message came while the caller was not driving, and so has no reason to look for one */
    CURLMsg message; /* the one that was read last */
    curl_multi_timer_callback timer;
    void *timer_data;
    BECALM_ATOMIC(struct transfer *) called; /* a stack: those that a line has called, from any thread */
    uint32_t lined;                          /* how many wait in lines */
    becalm_ns looked_at;                     /* when it was last driven while some did */
    becalm_ns curl_at;                       /* when libcurl's own timer is due */
    becalm_ns armed_at;                      /* the time that the caller's timer was set to */
};

#endif
