/* SPDX-License-Identifier: MIT */
/* Frames of a hostile host, behind its SETTINGS, cut as the first byte says. Requests are open, with bodies that wait
 * for its window, and others follow when they are over; some are reset, some left to end by themselves. For all inputs:
 * each stream gets one answer, its body behind that and in its window (that of the protocol until our SETTINGS are
 * acknowledged), one end, and no event after it is closed. */
#include "h2/h2.h"

#include <becalm/base.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STREAMS 6u
#define ALL     24u /* requests of one run */
#define WINDOW  1000u
#define FIRST   65535u /* the window of a stream that the protocol begins with */

struct mine {
    struct h2_stream *stream; /* NULL: it is over */
    struct owner *owner;
    uint32_t number;
    uint32_t held; /* bytes that came and were not taken, */
    uint32_t most; /* and how many these may be */
    bool answered;
    bool ended;
    bool broken;
};

struct owner {
    struct h2_session *session;
    struct mine mine[ALL];
    uint32_t count;
    bool acknowledged;
    bool gone;
};

static void ask(struct owner *owner)
{
    char room[256];
    struct draft draft;
    struct mine *mine = &owner->mine[owner->count];
    bool body = owner->count % 2 == 1;
    if (owner->gone || owner->count == ALL) {
        return;
    }
    draft_begin(&draft, room, sizeof room);
    draft.method = body ? (struct becalm_text){"POST", 4} : (struct becalm_text){"GET", 3};
    draft.path = (struct becalm_text){"/", 1};
    draft.authority = (struct becalm_text){"a", 1};
    *mine = (struct mine){.owner = owner, .number = owner->count, .most = owner->acknowledged ? WINDOW : FIRST};
    mine->stream = h2_request(owner->session, &draft, !body, mine);
    if (mine->stream == NULL) {
        return;
    }
    owner->count++;
    if (body) {
        BECALM_ASSERT(h2_data(mine->stream, "0123456789", 10));
        h2_end(mine->stream, NULL);
    }
}

static void answer(void *context, const struct head *head, bool end)
{
    struct mine *mine = context;
    BECALM_ASSERT(mine->stream != NULL && !mine->answered && !mine->broken);
    BECALM_ASSERT(head->status >= 100 && head->status <= 999 && head->field_count <= HEAD_FIELDS_MAX);
    BECALM_ASSERT(head->status >= 200 || !end);
    mine->answered = head->status >= 200;
    mine->ended = end;
}

static void broken(void *context, const char *rule)
{
    struct mine *mine = context;
    BECALM_ASSERT(mine->stream != NULL && !mine->broken && rule != NULL);
    mine->broken = true;
    mine->stream = NULL;
}

static void data_came(void *context, const char *bytes, size_t length)
{
    struct mine *mine = context;
    volatile char last = bytes[length - 1];
    (void)last;
    BECALM_ASSERT(mine->stream != NULL && mine->answered && !mine->ended && length > 0);
    mine->held += (uint32_t)length;
    BECALM_ASSERT(mine->held <= mine->most);
    if (mine->number % 3 != 2) { /* the others are never read */
        h2_took(mine->stream, length);
        mine->held = 0;
    } else if (mine->number % 6 == 5) {
        h2_reset(mine->stream, H2_CANCEL);
        mine->stream = NULL;
    }
}

static void trailers(void *context, const char *bytes, size_t length)
{
    struct mine *mine = context;
    (void)bytes;
    BECALM_ASSERT(mine->stream != NULL && mine->answered && (!mine->ended || length == 0));
}

static void ended(void *context)
{
    struct mine *mine = context;
    BECALM_ASSERT(mine->stream != NULL && mine->answered);
    mine->ended = true;
}

static void drained(void *context)
{
    struct mine *mine = context;
    BECALM_ASSERT(mine->stream != NULL);
}

static void closed(void *context, uint32_t code)
{
    struct mine *mine = context;
    (void)code;
    BECALM_ASSERT(mine->stream != NULL);
    mine->stream = NULL;
}

static void nothing(void *context)
{
    (void)context;
}

static void goaway(void *context, uint32_t code)
{
    struct owner *owner = context;
    (void)code;
    owner->gone = true;
}

static void acknowledged(void *context)
{
    struct owner *owner = context;
    BECALM_ASSERT(!owner->acknowledged);
    owner->acknowledged = true;
    for (uint32_t i = 0; i < owner->count; i++) {
        struct mine *mine = &owner->mine[i];
        mine->most = mine->held > WINDOW ? mine->held : WINDOW;
    }
}

static const struct h2_calls calls = {.answer = answer,
                                      .broken = broken,
                                      .data = data_came,
                                      .trailers = trailers,
                                      .end = ended,
                                      .drained = drained,
                                      .closed = closed,
                                      .settings = nothing,
                                      .acknowledged = acknowledged,
                                      .goaway = goaway,
                                      .pong = nothing};

static void write_all(struct owner *owner)
{
    static char out[3 * H2_WRITE_MIN];
    while (h2_write(owner->session, out, sizeof out) > 0) {
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[2 * 4096 + 64];
    static struct h2_scratch scratch = {.bytes = bytes, .size = sizeof bytes};
    static const struct h2_limits limits = {.streams = STREAMS, .window = WINDOW, .head_bytes = 4096};
    struct owner *owner = calloc(1, sizeof *owner);
    if (size == 0 || owner == NULL) {
        free(owner);
        return 0;
    }
    owner->session = h2_session_new(H2_CLIENT, &limits, &calls, owner, &scratch);
    BECALM_ASSERT(owner->session != NULL);
    write_all(owner);
    bool more = h2_feed(owner->session, "\0\0\0\4\0\0\0\0\0", 9, 1);
    size_t step = data[0] == 0 ? size : data[0];
    for (size_t at = 1; more && at < size; at += step) {
        while (!owner->gone && owner->count < ALL && h2_stream_count(owner->session) < STREAMS) {
            uint32_t before = owner->count;
            ask(owner);
            if (owner->count == before) {
                break;
            }
        }
        write_all(owner);
        more = h2_feed(owner->session, (const char *)data + at, size - at < step ? size - at : step, at * BECALM_MS);
        write_all(owner);
    }
    for (uint32_t i = 0; i < owner->count; i++) {
        struct mine *mine = &owner->mine[i];
        if (mine->stream != NULL && i % 4 == 0) {
            h2_leave(mine->stream);
            mine->stream = NULL;
        }
    }
    h2_terminate(owner->session, H2_NO_ERROR);
    write_all(owner);
    h2_session_free(owner->session);
    free(owner);
    return 0;
}
