/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_HOST_H2_ROOM_H
#define BECALM_PROXY_HOST_H2_ROOM_H

/* Memory that all HTTP/2 connections of one worker share, to clients and to hosts. */

#include "h2/h2.h"

#define H2_ROOM_OUT (64u * 1024) /* bytes are written at once */

struct worker;

struct h2_room {
    struct h2_scratch scratch;
    becalm_ns told_at; /* when the log was told of a connection that was ended */
    char out[H2_ROOM_OUT];
    char heads[];
};

/* Makes it when the first connection needs it. NULL: no memory. */
struct h2_room *h2_room(struct worker *);

#endif
