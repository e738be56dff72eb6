/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_MULTI_TABLE_H
#define BECALM_CURL_MULTI_TABLE_H

/* The transfers of a multi, by handle and by timer; those that have something to be done; its messages. */

#include "multi_state.h"

struct transfer *multi_find(const struct becalm_curl_multi *, const CURL *); /* of this handle; NULL: none */

#define MULTI_NO_TIMER UINT32_MAX
void multi_wake_at(struct becalm_curl_multi *, struct transfer *, becalm_ns);
becalm_ns multi_next_at(const struct becalm_curl_multi *); /* when the first of them wants to be woken */

/* Room for the timers and the messages of so many; false: no memory. */
bool multi_room_make(struct becalm_curl_multi *, uint32_t transfers);
void multi_message_add(struct becalm_curl_multi *, const CURLMsg *);
void multi_message_drop(struct becalm_curl_multi *, const CURL *); /* of a handle that goes away */

/* A step of this call has marked something to be done, outside of libcurl's callbacks. */
void multi_dirty(struct becalm_curl_multi *, struct transfer *);

#endif
