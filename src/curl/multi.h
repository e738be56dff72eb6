/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_MULTI_H
#define BECALM_CURL_MULTI_H

/* A multi handle and its transfers, by handle and by timer. Belongs to one thread at a time. */

#include "map.h"
#include "transfer.h"

struct becalm_curl_multi {
    struct becalm_client *client;
    CURLM *curl;
    /* becalm_curl_perform(): the one there is, by turns; it never hedges. NULL: a program's multi. */
    struct transfer *only;
    BECALM_ATOMIC(bool) cancelled; /* becalm_curl_cancel(): who is in it, or some who are in the list */
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
    becalm_ns armed_at;                      /* what the caller's timer was set to */
};

/* ---- multi_table.c ---- */

struct transfer *multi_find(const struct becalm_curl_multi *, const CURL *); /* of this handle; NULL: none */

#define MULTI_NO_TIMER UINT32_MAX
void multi_wake_at(struct becalm_curl_multi *, struct transfer *, becalm_ns);
becalm_ns multi_next_at(const struct becalm_curl_multi *); /* when the first of them wants to be woken */

/* Room for the timers and the messages of so many; false: no memory. */
bool multi_room_make(struct becalm_curl_multi *, uint32_t transfers);
void multi_message_add(struct becalm_curl_multi *, const CURLMsg *);
void multi_message_drop(struct becalm_curl_multi *, const CURL *); /* of a handle that goes away */

/* ---- multi.c ---- */

/* Begins a call in memory that is new, or that another call has left. */
void multi_begin(struct becalm_curl_multi *, struct transfer *, CURL *, struct handle *);

/* A step has marked something to be done; and does it. True: the call is over by this. */
void multi_dirty(struct becalm_curl_multi *, struct transfer *);
bool multi_settle_one(struct transfer *);

/* Rounded up, so that nobody wakes up before the time and finds nothing to do. */
long multi_ms_until(becalm_ns now, becalm_ns at);

/* For easy.c, with the client's mutex: a handle in this multi is to be cancelled by whoever drives it. */
void multi_cancel_later(struct becalm_curl_multi *, struct handle *);

/* For easy.c, in the thread of the call: the one that this handle is in and that has not ended; NULL: none. */
struct transfer *multi_call_of(const struct handle *);

/* For easy.c: pauses whoever has the call's answer, or goes on with it. */
CURLcode multi_pause(struct transfer *, int bitmask);

/* ---- multi_only.c ---- */

/* For easy.c: with memory for one transfer at a time, and nothing of what it takes to have more. NULL: no memory. */
struct becalm_curl_multi *multi_only_new(CURLM *, struct becalm_client *);

/* The whole call of this handle, of which everything that was recorded is in `handle`. */
CURLcode multi_only_perform(struct becalm_curl_multi *, CURL *, struct handle *);

#endif
