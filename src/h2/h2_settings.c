/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#define SETTING 6u /* bytes of one parameter */

static size_t put_setting(char *to, enum h2_setting what, uint32_t value)
{
    to[0] = 0;
    to[1] = (char)what;
    h2_put_number(to + 2, value);
    return SETTING;
}

/* Sends SETTINGS that promise no more than this side can hold. */
void h2_settings_say(struct h2_session *session)
{
    const struct h2_limits *limits = &session->limits;
    char payload[4 * SETTING];
    size_t length = put_setting(payload, H2_SET_INITIAL_WINDOW_SIZE, limits->window);
    length += put_setting(payload + length, H2_SET_MAX_HEADER_LIST_SIZE, limits->head_bytes);
    length += put_setting(payload + length, H2_SET_NO_RFC7540_PRIORITIES, 1);
    length += session->role == H2_SERVER ? put_setting(payload + length, H2_SET_MAX_CONCURRENT_STREAMS, limits->streams)
                                         : put_setting(payload + length, H2_SET_ENABLE_PUSH, 0);
    h2_queue_frame(session, (struct h2_frame){.type = H2_SETTINGS, .length = (uint32_t)length}, payload);
    uint64_t all = (uint64_t)limits->window * limits->streams;
    session->whole_window = all > H2_WINDOW_MAX     ? H2_WINDOW_MAX
                            : all > H2_WINDOW_FIRST ? (int32_t)all
                                                    : H2_WINDOW_FIRST;
    session->untold = (uint32_t)(session->whole_window - H2_WINDOW_FIRST);
    if (session->untold > 0) {
        h2_queue_number(session, H2_WINDOW_UPDATE, 0, session->untold);
        session->peers_window = session->whole_window;
        session->untold = 0;
    }
}

static uint32_t take_window(struct h2_session *session, uint32_t value)
{
    if (value > H2_WINDOW_MAX || !h2_flow_all(session, (int64_t)value - session->stream_window)) {
        return H2_FLOW_CONTROL_ERROR;
    }
    session->stream_window = (int32_t)value;
    return H2_NO_ERROR;
}

/* A server never pushes: it must not even say that it would take that. */
static uint32_t take_push(const struct h2_session *session, uint32_t value)
{
    return value > (session->role == H2_SERVER ? 1u : 0u) ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
}

/* The new size counts when the whole frame has arrived. Until it is acknowledged the peer's table has its old size, and
 * a head that is sent before must not announce a larger one. */
static uint32_t take_table(struct h2_session *session, uint32_t value)
{
    uint32_t bytes = value < H2_TABLE_BYTES ? value : H2_TABLE_BYTES;
    session->table_least = session->table_said && session->table_least < bytes ? session->table_least : bytes;
    session->table_bytes = bytes;
    session->table_said = true;
    return H2_NO_ERROR;
}

void h2_settings_taken(struct h2_session *session)
{
    if (session->table_said) {
        h2_packer_limit(&session->packer, session->table_least);
        h2_packer_limit(&session->packer, session->table_bytes);
        session->table_said = false;
    }
}

uint32_t h2_settings_take(struct h2_session *session, uint16_t what, uint32_t value)
{
    switch (what) {
    case H2_SET_HEADER_TABLE_SIZE:
        return take_table(session, value);
    case H2_SET_ENABLE_PUSH:
        return take_push(session, value);
    case H2_SET_MAX_CONCURRENT_STREAMS:
        session->streams_max = value;
        return H2_NO_ERROR;
    case H2_SET_INITIAL_WINDOW_SIZE:
        return take_window(session, value);
    case H2_SET_MAX_FRAME_SIZE: /* our frames are never larger than the minimum that every peer accepts */
        return value < H2_FRAME_MAX || value > 0xffffff ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    case H2_SET_ENABLE_CONNECT_PROTOCOL:
    case H2_SET_NO_RFC7540_PRIORITIES:
        return value > 1 ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    default: /* MAX_HEADER_LIST_SIZE is advice; other parameters are unknown */
        return H2_NO_ERROR;
    }
}

bool h2_settings_acknowledged(struct h2_session *session)
{
    int32_t window = session->limits.window > H2_WINDOW_MAX ? H2_WINDOW_MAX : (int32_t)session->limits.window;
    int64_t change = (int64_t)window - session->peers_stream_window;
    if (session->acknowledged) {
        return false; /* we have said SETTINGS once */
    }
    session->acknowledged = true;
    session->peers_stream_window = window;
    for (struct h2_stream *stream = session->streams; stream != NULL; stream = stream->next) {
        stream->peers_window = (int32_t)(stream->peers_window + change);
    }
    return true;
}
