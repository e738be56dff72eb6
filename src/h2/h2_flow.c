/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

/* The peer is told when half of a window is open again, not for each frame. */
static bool is_worth_telling(uint32_t untold, int32_t whole)
{
    return untold > 0 && untold >= (uint32_t)whole / 2;
}

/* A stream with a slow owner must not stop other streams: the connection's window is as large as those of all streams,
 * and opens again as bytes arrive. */
static void tell_connection(struct h2_session *session, uint32_t length)
{
    session->untold += length;
    if (is_worth_telling(session->untold, session->whole_window)) {
        h2_queue_number(session, H2_WINDOW_UPDATE, 0, session->untold);
        session->peers_window += (int32_t)session->untold;
        session->untold = 0;
    }
}

uint32_t h2_flow_came(struct h2_session *session, struct h2_stream *stream, uint32_t length, bool *whole)
{
    *whole = (int64_t)length > session->peers_window;
    if (*whole) {
        return H2_FLOW_CONTROL_ERROR;
    }
    session->peers_window -= (int32_t)length;
    tell_connection(session, length);
    if (stream == NULL) {
        return H2_NO_ERROR;
    }
    if (length > 0 && (int64_t)length > stream->peers_window) { /* an end needs no window, and SETTINGS can shut it */
        return H2_FLOW_CONTROL_ERROR;
    }
    stream->peers_window -= (int32_t)length;
    return H2_NO_ERROR;
}

void h2_flow_taken(struct h2_stream *stream, uint32_t length)
{
    stream->untold += length;
    bool more = stream->state == H2_STATE_OPEN || stream->state == H2_STATE_SAID; /* else nothing follows */
    if (more && !stream->left && is_worth_telling(stream->untold, stream->session->peers_stream_window)) {
        h2_queue_number(stream->session, H2_WINDOW_UPDATE, stream->id, stream->untold);
        stream->peers_window += (int32_t)stream->untold;
        stream->untold = 0;
    }
}

bool h2_flow_opened(int32_t *window, uint32_t more)
{
    int64_t sum = (int64_t)*window + more;
    if (sum > H2_WINDOW_MAX) {
        return false;
    }
    *window = (int32_t)sum;
    return true;
}

bool h2_flow_all(struct h2_session *session, int64_t change)
{
    for (struct h2_stream *stream = session->streams; stream != NULL; stream = stream->next) {
        int64_t sum = stream->window + change;
        if (sum > H2_WINDOW_MAX || sum < -(int64_t)H2_WINDOW_MAX) {
            return false;
        }
        stream->window = (int32_t)sum;
        if (bytes_left(&stream->out) > 0 && stream->window > 0) {
            h2_stream_queue(stream);
        }
    }
    return true;
}
