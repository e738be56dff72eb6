/* SPDX-License-Identifier: MIT */
/* Frames of a peer, behind a preface, cut as the first byte says. The owner answers at once, by turns with a body, with
 * trailers, with a reset. For all inputs: the owner gets no event of a closed stream, and no memory of the stream is
 * left. */
#include "h2/h2.h"

#include <becalm/base.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct owner {
    struct h2_session *session;
    struct mine *all;
    uint32_t open;
    uint32_t count;
};

struct mine {
    struct mine *next;
    struct mine **link;
    struct owner *owner;
    struct h2_stream *stream;
    bool ended;
};

static void speak(struct mine *mine)
{
    char room[256];
    struct draft draft;
    draft_begin(&draft, room, sizeof room);
    draft.status = 200;
    draft_add_chars(&draft, "content-type", "text/plain");
    h2_answer(mine->stream, &draft, false);
    BECALM_ASSERT(h2_data(mine->stream, "0123456789", 10));
    h2_end(mine->stream, NULL);
}

static void *request(void *context, struct h2_stream *stream, const struct head *head, bool end)
{
    struct owner *owner = context;
    BECALM_ASSERT(head->field_count <= HEAD_REQUEST_FIELDS_MAX && head->version == HTTP_2);
    (void)end;
    if (++owner->count % 7 == 0) {
        return NULL;
    }
    struct mine *mine = calloc(1, sizeof *mine);
    BECALM_ASSERT(mine != NULL);
    *mine = (struct mine){.next = owner->all, .link = &owner->all, .owner = owner, .stream = stream};
    if (mine->next != NULL) {
        mine->next->link = &mine->next;
    }
    owner->all = mine;
    owner->open++;
    if (owner->count % 3 == 0) {
        speak(mine);
    }
    return mine;
}

static void *unfit(void *context, struct h2_stream *stream, struct h1_verdict verdict, bool end)
{
    (void)context;
    (void)stream;
    (void)end;
    BECALM_ASSERT(verdict.status >= 400 && verdict.what != NULL);
    return NULL;
}

static void data_came(void *context, const char *bytes, size_t length)
{
    struct mine *mine = context;
    volatile char last = bytes[length - 1];
    (void)last;
    BECALM_ASSERT(!mine->ended && length > 0);
    h2_took(mine->stream, length);
}

static void trailers(void *context, const char *bytes, size_t length)
{
    struct mine *mine = context;
    (void)bytes;
    BECALM_ASSERT(!mine->ended || length == 0);
}

static void ended(void *context)
{
    struct mine *mine = context;
    BECALM_ASSERT(!mine->ended);
    mine->ended = true;
}

static void drained(void *context)
{
    (void)context;
}

static void closed(void *context, uint32_t code)
{
    struct mine *mine = context;
    (void)code;
    mine->owner->open--;
    *mine->link = mine->next;
    if (mine->next != NULL) {
        mine->next->link = mine->link;
    }
    free(mine);
}

static const struct h2_calls calls = {.request = request,
                                      .unfit = unfit,
                                      .data = data_came,
                                      .trailers = trailers,
                                      .end = ended,
                                      .drained = drained,
                                      .closed = closed};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[2 * 4096 + 64];
    static struct h2_scratch scratch = {.bytes = bytes, .size = sizeof bytes};
    static char out[3 * H2_WRITE_MIN];
    static const struct h2_limits limits = {.streams = 5, .window = 1000, .head_bytes = 4096};
    struct owner owner = {0};
    if (size == 0) {
        return 0;
    }
    owner.session = h2_session_new(H2_SERVER, &limits, &calls, &owner, &scratch);
    BECALM_ASSERT(owner.session != NULL);
    bool more = h2_feed(owner.session, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33, 1);
    size_t step = data[0] == 0 ? size : data[0];
    for (size_t at = 1; more && at < size; at += step) {
        more = h2_feed(owner.session, (const char *)data + at, size - at < step ? size - at : step, at * BECALM_MS);
        while (h2_write(owner.session, out, sizeof out) > 0) {
        }
        BECALM_ASSERT(owner.open <= h2_stream_count(owner.session));
    }
    while (h2_write(owner.session, out, sizeof out) > 0) {
    }
    h2_terminate(owner.session, H2_NO_ERROR);
    while (h2_write(owner.session, out, sizeof out) > 0) {
    }
    h2_session_free(owner.session); /* streams that are left are not told */
    while (owner.all != NULL) {
        closed(owner.all, 0);
    }
    return 0;
}
