/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_H2_LAB_H
#define BECALM_TESTS_H2_LAB_H

/* One session between a peer with handmade frames and an owner that notes its events:
 *
 *   up    "request 1 GET /a end; data 1 5; end 1; closed 1 8; "
 *   down  "SETTINGS HEADERS:1 DATA:1 RST:1=7 GOAWAY=11 "  (acknowledgements have a "+" behind them)
 *
 * A field that is marked as never indexed has a "(" before its name, which no name can have. */

#include "check.h"

#include "h2/h2.h"

#include <stdio.h>

enum {
    LAB_DATA,
    LAB_HEADERS,
    LAB_PRIORITY,
    LAB_RST,
    LAB_SETTINGS,
    LAB_PUSH,
    LAB_PING,
    LAB_GOAWAY,
    LAB_WINDOW,
    LAB_CONTINUATION
};
enum { LAB_END = 1, LAB_ACK = 1, LAB_END_HEADERS = 4 };

struct lab {
    struct h2_session *session;
    struct h2_scratch scratch;
    char room[2 * 8192 + 64];
    char up[16384];
    char down[65536];
    struct h2_stream *stream[256]; /* by (id - 1) / 2 */
    becalm_ns now;
    bool refuses;
    bool takes;      /* bodies are taken as they come */
    char head[8192]; /* the fields of the latest head: "name=value|..." */
    struct h1_verdict verdict;
    enum body_framing framing;
    char in[1u << 20]; /* frames of the peer that were not fed yet */
    size_t in_length;
    uint32_t writes; /* how often the session had something to say when it was last asked for all */
};

/* A stream's owner: its place in `stream`, not NULL. */
struct lab_stream {
    struct lab *lab;
    int32_t id;
};
static struct lab_stream lab_streams[256];

static void lab_note(struct lab *lab, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void lab_note(struct lab *lab, const char *format, ...)
{
    size_t length = strlen(lab->up);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(lab->up + length, sizeof lab->up - length, format, arguments);
    va_end(arguments);
}

static void lab_keep_head(struct lab *lab, const struct head *head)
{
    size_t length = 0;
    lab->head[0] = '\0';
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct becalm_text name = field_name(head, &head->field[i]);
        struct becalm_text value = field_value(head, &head->field[i]);
        length +=
            (size_t)snprintf(lab->head + length, sizeof lab->head - length, "%s%.*s=%.*s|",
                             head->field[i].secret ? "(" : "", (int)name.length, name.at, (int)value.length, value.at);
    }
    lab->framing = head->framing;
}

static void *lab_own(struct lab *lab, struct h2_stream *stream, int32_t id)
{
    struct lab_stream *owner = &lab_streams[(id - 1) / 2];
    *owner = (struct lab_stream){lab, id};
    lab->stream[(id - 1) / 2] = stream;
    return owner;
}

/* The session does not tell ids: they come in order. */
static int32_t lab_next_id;

static void *lab_request(void *owner, struct h2_stream *stream, const struct head *head, bool end)
{
    struct lab *lab = owner;
    struct becalm_text method = head_method(head);
    struct becalm_text target = head_target(head);
    int32_t id = lab_next_id;
    lab_next_id += 2;
    lab_note(lab, "request %d %s%.*s %s%.*s%s; ", id, head->secret_method ? "(" : "", (int)method.length, method.at,
             head->secret_target ? "(" : "", (int)target.length, target.at, end ? " end" : "");
    lab_keep_head(lab, head);
    return lab->refuses ? NULL : lab_own(lab, stream, id);
}

static void *lab_unfit(void *owner, struct h2_stream *stream, struct h1_verdict verdict, bool end)
{
    struct lab *lab = owner;
    int32_t id = lab_next_id;
    lab_next_id += 2;
    lab_note(lab, "unfit %d %u%s; ", id, verdict.status, end ? " end" : "");
    lab->verdict = verdict;
    return lab_own(lab, stream, id);
}

static void lab_answer(void *owner, const struct head *head, bool end)
{
    struct lab_stream *stream = owner;
    lab_note(stream->lab, "answer %d %s%u%s; ", stream->id, head->secret_status ? "(" : "", head->status,
             end ? " end" : "");
    lab_keep_head(stream->lab, head);
}

static void lab_broken(void *owner, const char *rule)
{
    struct lab_stream *stream = owner;
    lab_note(stream->lab, "broken %d (%s); ", stream->id, rule);
}

static void lab_data(void *owner, const char *bytes, size_t length)
{
    struct lab_stream *stream = owner;
    (void)bytes;
    lab_note(stream->lab, "data %d %zu; ", stream->id, length);
    if (stream->lab->takes) {
        h2_took(stream->lab->stream[(stream->id - 1) / 2], length);
    }
}

static void lab_trailers(void *owner, const char *bytes, size_t length)
{
    struct lab_stream *stream = owner;
    lab_note(stream->lab, "trailers %d ", stream->id);
    for (size_t i = 0; i < length; i++) {
        lab_note(stream->lab, "%c", bytes[i] == '\r' ? '/' : bytes[i] == '\n' ? ' ' : bytes[i]);
    }
    lab_note(stream->lab, "; ");
}

static void lab_end(void *owner)
{
    struct lab_stream *stream = owner;
    lab_note(stream->lab, "end %d; ", stream->id);
}

static void lab_drained(void *owner)
{
    struct lab_stream *stream = owner;
    lab_note(stream->lab, "drained %d; ", stream->id);
}

static void lab_closed(void *owner, uint32_t code)
{
    struct lab_stream *stream = owner;
    lab_note(stream->lab, "closed %d %u; ", stream->id, code);
    stream->lab->stream[(stream->id - 1) / 2] = NULL;
}

static void lab_goaway(void *owner, uint32_t code)
{
    lab_note(owner, "goaway %u; ", code);
}

static const struct h2_calls lab_calls = {
    .request = lab_request,
    .unfit = lab_unfit,
    .answer = lab_answer,
    .broken = lab_broken,
    .data = lab_data,
    .trailers = lab_trailers,
    .end = lab_end,
    .drained = lab_drained,
    .closed = lab_closed,
    .goaway = lab_goaway,
};

static const struct h2_limits lab_limits = {.streams = 10, .window = 65536, .head_bytes = 8192};

/* ---- frames of the peer ---- */

static void lab_bytes(struct lab *lab, const char *bytes, size_t length)
{
    check_true(length <= sizeof lab->in - lab->in_length);
    memcpy(lab->in + lab->in_length, bytes, length);
    lab->in_length += length;
}

static void lab_frame(struct lab *lab, uint8_t type, uint8_t flags, int32_t id, const char *payload, size_t length)
{
    const char head[9] = {(char)(length >> 16), (char)(length >> 8), (char)length,    (char)type, (char)flags,
                          (char)(id >> 24),     (char)(id >> 16),    (char)(id >> 8), (char)id};
    lab_bytes(lab, head, sizeof head);
    if (length > 0) {
        lab_bytes(lab, payload, length);
    }
}

/* A head: "name=value|(name=value|", each without indexing and without Huffman. Returns the length of the block. */
static size_t lab_block(char *to, const char *fields)
{
    size_t length = 0;
    while (*fields != '\0') {
        to[length++] = *fields == '(' ? 0x10 : 0;
        fields += *fields == '(';
        const char *equals = strchr(fields + 1, '=');
        const char *bar = strchr(equals, '|');
        size_t name = (size_t)(equals - fields);
        size_t value = (size_t)(bar - equals - 1);
        check_true(name < 127);
        to[length++] = (char)name;
        memcpy(to + length, fields, name);
        length += name;
        if (value < 127) {
            to[length++] = (char)value;
        } else {
            size_t rest = value - 127;
            to[length++] = 127;
            for (; rest >= 128; rest /= 128) {
                to[length++] = (char)(rest % 128 + 128);
            }
            to[length++] = (char)rest;
        }
        memcpy(to + length, equals + 1, value);
        length += value;
        fields = bar + 1;
    }
    return length;
}

static void lab_head(struct lab *lab, int32_t id, uint8_t flags, const char *fields)
{
    char block[32768];
    lab_frame(lab, LAB_HEADERS, flags | LAB_END_HEADERS, id, block, lab_block(block, fields));
}

#define LAB_GET  ":method=GET|:scheme=http|:authority=a.example|:path=/a|"
#define LAB_POST ":method=POST|:scheme=http|:authority=a.example|:path=/a|"

static __attribute__((unused)) void lab_window(struct lab *lab, int32_t id, uint32_t more)
{
    char payload[4] = {(char)(more >> 24), (char)(more >> 16), (char)(more >> 8), (char)more};
    lab_frame(lab, LAB_WINDOW, 0, id, payload, 4);
}

static __attribute__((unused)) void lab_reset(struct lab *lab, int32_t id, uint8_t code)
{
    char payload[4] = {0, 0, 0, (char)code};
    lab_frame(lab, LAB_RST, 0, id, payload, 4);
}

/* ---- frames of the session ---- */

static void lab_note_frame(struct lab *lab, const unsigned char *at)
{
    static const char *const names[] = {"DATA", "HEADERS", "PRIORITY", "RST",    "SETTINGS",
                                        "PUSH", "PING",    "GOAWAY",   "WINDOW", "CONTINUATION"};
    size_t length = strlen(lab->down);
    char *to = lab->down + length;
    size_t room = sizeof lab->down - length;
    unsigned id = (unsigned)at[5] << 24 | (unsigned)at[6] << 16 | (unsigned)at[7] << 8 | at[8];
    unsigned size = (unsigned)at[0] << 16 | (unsigned)at[1] << 8 | at[2];
    const unsigned char *payload = at + 9;
    unsigned type = at[3];
    unsigned code = type == LAB_GOAWAY ? payload[7] : type == LAB_RST ? payload[3] : 0;
    if (type == LAB_GOAWAY) {
        snprintf(to, room, "GOAWAY=%u ", code);
    } else if (type == LAB_RST) {
        snprintf(to, room, "RST:%u=%u ", id, code);
    } else if (type == LAB_WINDOW) {
        unsigned more =
            (unsigned)payload[0] << 24 | (unsigned)payload[1] << 16 | (unsigned)payload[2] << 8 | payload[3];
        snprintf(to, room, "WINDOW:%u=%u ", id, more);
    } else if (type == LAB_DATA) {
        snprintf(to, room, "DATA:%u=%u%s ", id, size, (at[4] & LAB_END) != 0 ? "." : "");
    } else if (type == LAB_HEADERS) {
        snprintf(to, room, "HEADERS:%u%s ", id, (at[4] & LAB_END) != 0 ? "." : "");
    } else {
        snprintf(to, room, "%s%s ", names[type], (at[4] & LAB_ACK) != 0 ? "+" : "");
    }
}

/* Notes the frames of these bytes. */
static void lab_note_frames(struct lab *lab, const char *bytes, size_t length)
{
    size_t at = length > 24 && h2_preface(bytes, 24) ? 24 : 0;
    while (at < length) {
        const unsigned char *frame = (const unsigned char *)bytes + at;
        lab_note_frame(lab, frame);
        at += 9 + ((size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2]);
    }
}

/* Asks for all bytes; the frames are noted, and the bytes fed to `peer`, if there is one. */
static void lab_flush(struct lab *lab, struct lab *peer)
{
    static char out[1u << 18];
    size_t length;
    lab->writes = 0;
    while ((length = h2_write(lab->session, out, sizeof out)) > 0) {
        lab->writes++;
        lab_note_frames(lab, out, length);
        if (peer != NULL) {
            h2_feed(peer->session, out, length, peer->now);
        }
    }
}

/* Feeds the waiting frames, in pieces of this size, and takes the frames of the session. */
static bool lab_feed_by(struct lab *lab, size_t step)
{
    bool goes_on = true;
    for (size_t at = 0; at < lab->in_length && goes_on; at += step) {
        size_t left = lab->in_length - at;
        char *copy = malloc(left < step ? left : step); /* so that a read beyond its end is seen */
        memcpy(copy, lab->in + at, left < step ? left : step);
        goes_on = h2_feed(lab->session, copy, left < step ? left : step, lab->now);
        free(copy);
    }
    lab->in_length = 0;
    lab_flush(lab, NULL);
    return goes_on;
}

static bool lab_feed(struct lab *lab)
{
    return lab_feed_by(lab, lab->in_length == 0 ? 1 : lab->in_length);
}

static void lab_forget(struct lab *lab)
{
    lab->up[0] = lab->down[0] = '\0';
}

static struct lab *lab_new(enum h2_role role)
{
    struct lab *lab = calloc(1, sizeof *lab);
    lab->scratch.bytes = lab->room;
    lab->scratch.size = sizeof lab->room;
    lab->now = BECALM_S;
    lab_next_id = 1;
    lab->session = h2_session_new(role, &lab_limits, &lab_calls, lab, &lab->scratch);
    check_true(lab->session != NULL);
    return lab;
}

/* A server whose client has said its preface and SETTINGS, which were answered. */
static struct lab *lab_server(void)
{
    struct lab *lab = lab_new(H2_SERVER);
    lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
    lab_frame(lab, LAB_SETTINGS, LAB_ACK, 0, NULL, 0);
    check_true(lab_feed(lab));
    lab_forget(lab);
    return lab;
}

static void lab_free(struct lab *lab)
{
    h2_session_free(lab->session);
    free(lab);
}

static __attribute__((unused)) void lab_say(struct lab *lab, int32_t id, uint32_t status, bool end)
{
    char room[256];
    struct draft draft;
    draft_begin(&draft, room, sizeof room);
    draft.status = status;
    draft_add_chars(&draft, "x-a", "b");
    h2_answer(lab->stream[(id - 1) / 2], &draft, end);
}

#endif
