/* SPDX-License-Identifier: MIT */
#include "h2_fields.h"
#include "h2_session_internal.h"

#include "http/text_internal.h"
#include "message/packed.h"
#include "unfilled.h"

#include <string.h>

/* ---- heads ---- */

/* Splits the packed bytes after the first frame's head into frames of the size that every peer accepts. There is room
 * for their heads. Returns the total length. */
static uint32_t split_head(char *to, uint32_t length, struct h2_frame frame)
{
    uint32_t rest = length == 0 ? 0 : (length - 1) / H2_FRAME_MAX; /* frames behind the first */
    for (uint32_t i = rest; i > 0; i--) {                          /* from the last one, which has the farthest to go */
        uint32_t size = i == rest ? length - rest * H2_FRAME_MAX : H2_FRAME_MAX;
        char *piece = to + H2_FRAME_HEAD + i * H2_FRAME_MAX;
        memmove(piece + i * H2_FRAME_HEAD, piece, size);
        h2_frame_put(piece + (i - 1) * H2_FRAME_HEAD, (struct h2_frame){.type = H2_CONTINUATION,
                                                                        .id = frame.id,
                                                                        .length = size,
                                                                        .flags = i == rest ? H2_FLAG_END_HEADERS : 0});
    }
    frame.flags |= rest == 0 ? H2_FLAG_END_HEADERS : 0;
    frame.length = rest == 0 ? length : H2_FRAME_MAX;
    h2_frame_put(to, frame);
    return length + (rest + 1) * H2_FRAME_HEAD;
}

bool h2_queue_head(struct h2_session *session, int32_t id, struct h2_fields *fields, bool end)
{
    size_t bound = h2_pack_bound(fields->count, fields->bytes);
    size_t frames = (bound / H2_FRAME_MAX + 1) * H2_FRAME_HEAD;
    char *to = h2_queue_room(session, frames + bound + fields->upper);
    if (to == NULL) {
        return false;
    }
    h2_fields_lower(fields, to + frames + bound);
    size_t packed = h2_pack(&session->packer, fields->field, fields->count, to + H2_FRAME_HEAD);
    struct h2_frame frame = {.type = H2_HEADERS, .id = id, .flags = end ? H2_FLAG_END_STREAM : 0};
    h2_queue_used(session, split_head(to, (uint32_t)packed, frame));
    return true;
}

/* Queues a head of a stream. Its body has its turn when the head is written. */
static void say_head(struct h2_stream *stream, struct h2_fields *fields, bool end)
{
    struct h2_session *session = stream->session;
    if (session->end != H2_END_NONE) {
        return; /* the peer would not read it */
    }
    stream->failed |= !h2_queue_head(session, stream->id, fields, end);
    if (end) {
        h2_stream_end_queued(stream);
    } else if (stream->failed) {
        h2_stream_queue(stream);
    }
}

static struct becalm_text status_text(char text[3], uint32_t status)
{
    text[0] = (char)('0' + status / 100 % 10);
    text[1] = (char)('0' + status / 10 % 10);
    text[2] = (char)('0' + status % 10);
    return (struct becalm_text){text, 3};
}

/* The parts of the first line stand as in add_request(). */
static __attribute__((noinline)) void hide_request(struct h2_fields *fields, const struct draft *draft)
{
    const struct head *head = draft->passed;
    const bool secret[] = {head->secret_method, false, head_has_secret(head, FIELD_HOST), head->secret_target};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
        if (secret[i]) {
            h2_fields_hide(fields, i);
        }
    }
    h2_fields_hide_draft(fields, draft, sizeof secret / sizeof *secret);
}

static void add_request(struct h2_fields *fields, const struct h2_session *session, const struct draft *draft)
{
    const struct head *head = draft->passed;
    h2_fields_begin(fields);
    h2_fields_add(fields, ":method", draft->method);
    h2_fields_add(fields, ":scheme",
                  session->limits.secure ? (struct becalm_text){"https", 5} : (struct becalm_text){"http", 4});
    h2_fields_add(fields, ":authority", draft->authority);
    h2_fields_add(fields, ":path", draft->path);
    h2_fields_add_draft(fields, draft);
    if (head != NULL && head->secret) {
        hide_request(fields, draft);
    }
    if (draft->te_trailers) {
        h2_fields_add(fields, "te", (struct becalm_text){"trailers", 8});
    }
}

static __attribute__((noinline)) void hide_answer(struct h2_fields *fields, const struct draft *draft)
{
    if (draft->passed->secret_status) {
        h2_fields_hide(fields, 0);
    }
    h2_fields_hide_draft(fields, draft, 1);
}

static void add_answer(struct h2_fields *fields, const struct draft *draft, char status[3])
{
    const struct head *head = draft->passed;
    h2_fields_begin(fields);
    h2_fields_add(fields, ":status", status_text(status, draft->status));
    h2_fields_add_draft(fields, draft);
    if (head != NULL && head->secret) {
        hide_answer(fields, draft);
    }
}

struct h2_stream *h2_request(struct h2_session *session, const struct draft *draft, bool end, void *owner)
{
    UNFILLED struct h2_fields fields;
    bool taken = session->end == H2_END_NONE && !session->gone && session->next_id > 0;
    struct h2_stream *stream = taken ? h2_stream_new(session, session->next_id) : NULL;
    if (stream == NULL) {
        return NULL;
    }
    stream->head_at = h2_queue_end(session);
    add_request(&fields, session, draft);
    if (!h2_queue_head(session, stream->id, &fields, end)) {
        h2_stream_enter(stream, H2_STATE_CLOSED);
        return NULL;
    }
    session->next_id = session->next_id > H2_ID_MAX - 2 ? 0 : session->next_id + 2;
    stream->owner = owner;
    stream->to_head = text_is(draft->method, "HEAD");
    stream->said = true;
    stream->out_ended = end;
    if (end) {
        h2_stream_end_queued(stream);
    }
    return stream;
}

void h2_interim(struct h2_stream *stream, const struct draft *draft)
{
    UNFILLED struct h2_fields fields;
    char status[3];
    add_answer(&fields, draft, status);
    if (stream->session->end == H2_END_NONE) { /* hints promise nothing: without memory there are none */
        (void)h2_queue_head(stream->session, stream->id, &fields, false);
    }
}

void h2_answer(struct h2_stream *stream, const struct draft *draft, bool end)
{
    UNFILLED struct h2_fields fields;
    char status[3];
    add_answer(&fields, draft, status);
    stream->said = true;
    stream->out_ended = end;
    say_head(stream, &fields, end);
}

/* ---- bodies ---- */

bool h2_data(struct h2_stream *stream, const char *bytes, size_t length)
{
    if (length == 0) {
        return true;
    }
    if (!bytes_add_from(&stream->out, stream->session->scratch->blocks, bytes, length)) {
        return false;
    }
    stream->session->held += length;
    stream->full = bytes_left(&stream->out) > H2_DRAINED;
    if (stream->window > 0) {
        h2_stream_queue(stream);
    }
    return true;
}

static bool pack_trailers(struct h2_stream *stream, const struct head *trailers)
{
    size_t size = 0;
    for (uint32_t i = 0; i < trailers->field_count; i++) {
        size += 2 * sizeof(uint32_t) + trailers->field[i].name_length + trailers->field[i].value_length;
    }
    size_t all = (size / BLOCKS_STEP + 1) * BLOCKS_STEP;
    char *room = blocks_take(stream->session->scratch->blocks, all);
    struct text_sink out = {.at = room, .size = size};
    for (uint32_t i = 0; room != NULL && i < trailers->field_count; i++) {
        packed_put(&out, packed_of(trailers, &trailers->field[i]));
    }
    stream->trailers = (struct bytes){.at = room, .length = (uint32_t)out.length, .size = (uint32_t)all};
    return room != NULL;
}

void h2_end(struct h2_stream *stream, const struct head *trailers)
{
    if (trailers != NULL && trailers->field_count > 0 && !pack_trailers(stream, trailers)) {
        stream->trailers = (struct bytes){0};
        stream->failed = true;
    }
    stream->out_ended = true;
    if (stream->failed || bytes_left(&stream->out) == 0 || stream->window > 0) {
        h2_stream_queue(stream);
    }
}
