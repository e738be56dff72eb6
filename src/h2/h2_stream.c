/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include <string.h>

struct h2_stream *h2_stream_new(struct h2_session *session, int32_t id)
{
    struct h2_stream *stream = blocks_take(session->scratch->blocks, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    memset(stream, 0, sizeof *stream);
    stream->session = session;
    stream->id = id;
    stream->opened_at = session->now;
    stream->next = session->streams;
    stream->link = &session->streams;
    if (stream->next != NULL) {
        stream->next->link = &stream->next;
    }
    session->streams = stream;
    session->stream_count++;
    return stream;
}

void h2_stream_free(struct h2_stream *stream)
{
    struct blocks *blocks = stream->session->scratch->blocks;
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    }
    if (stream->session->latest == stream) {
        stream->session->latest = NULL;
    }
    stream->session->stream_count--;
    stream->session->held -= bytes_left(&stream->out);
    bytes_give(&stream->out, blocks);
    bytes_give(&stream->trailers, blocks);
    blocks_give(blocks, stream, sizeof *stream);
}

bool h2_sent(const struct h2_stream *stream)
{
    return stream->sent;
}

bool h2_blocked(const struct h2_stream *stream)
{
    return stream->full;
}

size_t h2_stream_held(const struct h2_stream *stream)
{
    return bytes_left(&stream->out);
}

void h2_took(struct h2_stream *stream, size_t length)
{
    size_t taken = length < stream->untaken ? length : stream->untaken;
    stream->untaken -= (uint32_t)taken;
    (void)nghttp2_session_consume_stream(stream->session->http2, stream->id, taken);
}

void h2_reset(struct h2_stream *stream, uint32_t code)
{
    stream->owner = NULL;
    (void)nghttp2_submit_rst_stream(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, code);
}

void h2_abandon(struct h2_stream *stream)
{
    stream->owner = NULL;
}

void h2_leave(struct h2_stream *stream)
{
    stream->owner = NULL;
    stream->left = true;
}

bool h2_said_all(const struct h2_stream *stream)
{
    return stream->out_ended && bytes_left(&stream->out) == 0;
}
