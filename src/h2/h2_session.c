/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include "h2_memory.h"

#include <stdlib.h>
#include <string.h>

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE (sizeof preface - 1)

const char *h2_end_word(enum h2_end end)
{
    static const char *const word[H2_END_COUNT] = {
        [H2_END_NONE] = "none",
        [H2_END_GOAWAY] = "goaway",
        [H2_END_PROTOCOL] = "protocol",
        [H2_END_MEMORY] = "memory",
        [H2_END_RESETS] = "resets",
        [H2_END_FAULTS] = "faults",
        [H2_END_HEADS] = "heads",
        [H2_END_CONTINUATIONS] = "continuations",
        [H2_END_SETTINGS] = "settings",
        [H2_END_PINGS] = "pings",
        [H2_END_PRIORITIES] = "priorities",
        [H2_END_EMPTY] = "empty_data",
        [H2_END_WINDOWS] = "windows",
        [H2_END_UNKNOWN] = "unknown_frames",
        [H2_END_ACKS] = "acks",
        [H2_END_UNACKNOWLEDGED] = "settings_timeout",
    };
    return word[end];
}

void h2_end_session(struct h2_session *session, enum h2_end end, uint32_t code)
{
    if (session->end == H2_END_NONE) {
        session->end = end; /* first, since without memory it ends all the same */
        h2_queue_goaway(session, session->last_taken, code);
    }
}

void h2_flood(struct h2_session *session, enum h2_end end)
{
    h2_end_session(session, end, H2_ENHANCE_YOUR_CALM);
}

void h2_wrong(struct h2_session *session, uint32_t code)
{
    h2_end_session(session, H2_END_PROTOCOL, code);
}

void h2_out_of_memory(struct h2_session *session)
{
    session->end = session->end == H2_END_NONE ? H2_END_MEMORY : session->end;
    session->dead = true;
}

/* ---- beginning and end ---- */

static bool make_tables(struct h2_session *session)
{
    session->memory = h2_memory(session->scratch->blocks);
    h2_packer_init(&session->packer, session->scratch->blocks, H2_TABLE_BYTES);
    return nghttp2_hd_inflate_new2(&session->inflater, &session->memory) == 0;
}

static void say_preface(struct h2_session *session)
{
    char *to = h2_queue_room(session, PREFACE);
    if (to == NULL) {
        h2_out_of_memory(session);
        return;
    }
    memcpy(to, preface, PREFACE);
    h2_queue_used(session, PREFACE);
}

struct h2_session *h2_session_new(enum h2_role role, const struct h2_limits *limits, const struct h2_calls *calls,
                                  void *owner, struct h2_scratch *scratch)
{
    struct h2_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->role = role;
    session->limits = *limits;
    session->calls = calls;
    session->owner = owner;
    session->scratch = scratch;
    session->reader.reading = role == H2_SERVER ? H2_READS_PREFACE : H2_READS_HEAD;
    session->last = &session->first;
    session->next_id = role == H2_SERVER ? 0 : 1;
    session->last_said = session->last_told = H2_ID_MAX;
    session->window = session->peers_window = H2_WINDOW_FIRST;
    session->stream_window = session->peers_stream_window = H2_WINDOW_FIRST;
    session->streams_max = UINT32_MAX;
    h2_guard_init(&session->guard);
    if (make_tables(session)) {
        if (role == H2_CLIENT) {
            say_preface(session);
        }
        h2_settings_say(session);
    }
    if (session->inflater == NULL || session->dead) {
        h2_session_free(session);
        return NULL;
    }
    return session;
}

void h2_session_free(struct h2_session *session)
{
    session->doomed = true;
    if (session->busy) {
        return;
    }
    while (session->streams != NULL) {
        h2_stream_enter(session->streams, H2_STATE_CLOSED);
    }
    bytes_free(&session->part);
    bytes_give(&session->queue, session->scratch->blocks);
    if (session->inflater != NULL) {
        nghttp2_hd_inflate_del(session->inflater);
    }
    h2_packer_free(&session->packer);
    free(session);
}

bool h2_idle_again(struct h2_session *session)
{
    session->busy = false;
    h2_streams_bury(session);
    if (session->doomed) {
        h2_session_free(session);
        return false;
    }
    return true;
}

/* ---- bytes that come ---- */

/* The head that is being received is in memory that sessions share. Saves the part that has arrived, and puts it back
 * later. */
static void keep_part(struct h2_session *session)
{
    const struct h2_block *block = &session->block;
    bytes_free(&session->part);
    if (session->heading == H2_HEADING_TAKEN && !bytes_add(&session->part, block->text.at, block->text.length)) {
        h2_out_of_memory(session);
    }
}

static void restore_part(struct h2_session *session)
{
    struct h2_block *block = &session->block;
    if (bytes_left(&session->part) > 0) {
        memcpy(session->scratch->bytes, bytes_at(&session->part), bytes_left(&session->part));
        block->text.at = session->scratch->bytes;
    }
}

bool h2_feed(struct h2_session *session, const char *bytes, size_t length, becalm_ns now)
{
    session->now = now;
    h2_guard_time(&session->guard, now);
    if (session->end != H2_END_NONE) {
        return false;
    }
    restore_part(session);
    session->busy = true;
    h2_receive(session, (const uint8_t *)bytes, length);
    if (!h2_idle_again(session)) {
        return false;
    }
    keep_part(session);
    return session->end == H2_END_NONE;
}

/* ---- the state of a session ---- */

bool h2_over(const struct h2_session *session)
{
    bool ended = session->end != H2_END_NONE || (session->gone && session->stream_count == 0);
    return session->dead || (ended && !h2_wants_write(session));
}

enum h2_end h2_ended(const struct h2_session *session)
{
    return session->end;
}

uint32_t h2_stream_count(const struct h2_session *session)
{
    return session->stream_count;
}

uint32_t h2_streams_max(const struct h2_session *session)
{
    return session->has_settings ? session->streams_max : 0;
}

size_t h2_held(const struct h2_session *session)
{
    return session->held;
}

/* ---- going away ---- */

void h2_going(struct h2_session *session)
{
    if (!session->going && session->end == H2_END_NONE) {
        session->going = true;
        h2_queue_goaway(session, H2_ID_MAX, H2_NO_ERROR);
        h2_ping(session);
    }
}

void h2_goaway(struct h2_session *session, uint32_t code)
{
    if (session->last_said == H2_ID_MAX && session->end == H2_END_NONE) {
        session->gone = true;
        session->last_said = session->last_taken;
        h2_queue_goaway(session, session->last_said, code);
    }
}

void h2_terminate(struct h2_session *session, uint32_t code)
{
    h2_end_session(session, H2_END_GOAWAY, code);
}

void h2_unacknowledged(struct h2_session *session)
{
    h2_end_session(session, H2_END_UNACKNOWLEDGED, H2_SETTINGS_TIMEOUT);
}

void h2_ping(struct h2_session *session)
{
    if (session->end == H2_END_NONE) {
        h2_queue_frame(session, (struct h2_frame){.type = H2_PING, .length = 8}, "\0\0\0\0\0\0\0");
    }
}

bool h2_preface(const char *bytes, size_t length)
{
    return memcmp(bytes, preface, length < PREFACE ? length : PREFACE) == 0;
}
