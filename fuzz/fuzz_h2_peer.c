/* SPDX-License-Identifier: MIT */
/* A second opinion on HTTP/2: nghttp2, as llhttp is one on HTTP/1. The first byte chooses one of two modes.
 *
 * Even: frames of a client, cut as the second byte says, go to our server and to nghttp2's server, neither of which
 * answers. nghttp2 must report every request that ours reports, and ours no byte of a body more; and ours must not
 * ignore frames for which nghttp2 ends its session.
 *
 * Odd: our client and nghttp2's server, or nghttp2's client and our server, talk to each other as the bytes say: heads
 * with fields of all lengths, bodies, trailers, windows, PINGs, resets. All that one side sends arrives unchanged at
 * the other side. */
#include "h2/h2.h"

#include <becalm/base.h>
#include <nghttp2/nghttp2.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD_BYTES 4096u
static char room[2 * HEAD_BYTES + 64];
static struct h2_scratch scratch = {.bytes = room, .size = sizeof room};

/* The messages that one side received, as sums. They must equal the sums of the messages that the other side sent. */
struct heard {
    uint32_t heads;
    uint32_t unfit;
    uint32_t trailers;
    uint32_t ends;
    uint64_t bytes;   /* of bodies */
    uint64_t sum;     /* over names and values of heads */
    uint64_t secret;  /* over those of fields that are marked as never indexed */
    uint32_t secrets; /* how many these are */
    uint64_t content; /* over bodies */
    bool refused;
    char why[128]; /* nghttp2's */
};

static uint64_t sum_of(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

/* The order of the fields is not looked at, so that cookies and Host may move. */
static void hear_field(struct heard *heard, const void *name, size_t name_length, const void *value,
                       size_t value_length)
{
    heard->sum += sum_of(name, name_length) * 31 + sum_of(value, value_length);
}

static void hear_secret(struct heard *heard, const void *name, size_t name_length, const void *value,
                        size_t value_length)
{
    heard->secret += sum_of(name, name_length) * 31 + sum_of(value, value_length);
    heard->secrets++;
}

/* Bytes are the same in whichever pieces they come, and whichever stream has its turn. */
static void hear_body(struct heard *heard, const char *bytes, size_t length)
{
    heard->bytes += length;
    for (size_t i = 0; i < length; i++) {
        heard->content += (uint8_t)bytes[i];
    }
}

/* ---- our side ---- */

struct ours {
    struct h2_session *session;
    struct heard heard;
    struct h2_stream *stream[64];
    uint32_t count;
};

struct place {
    struct ours *ours;
    uint32_t number;
};
static struct place places[64];

static void hear_head(struct heard *heard, const struct head *head)
{
    heard->heads++;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        struct becalm_text name = field_name(head, field);
        struct becalm_text value = field_value(head, field);
        hear_field(heard, name.at, name.length, value.at, value.length);
        if (field->secret) {
            hear_secret(heard, name.at, name.length, value.at, value.length);
        }
    }
}

static void *keep(struct ours *ours, struct h2_stream *stream)
{
    uint32_t number = ours->count++ % 64;
    ours->stream[number] = stream;
    places[number] = (struct place){ours, number};
    return &places[number];
}

static void *on_request(void *owner, struct h2_stream *stream, const struct head *head, bool end)
{
    struct ours *ours = owner;
    (void)end;
    hear_head(&ours->heard, head);
    return ours->count < 64 ? keep(ours, stream) : NULL;
}

static void *on_unfit(void *owner, struct h2_stream *stream, struct h1_verdict verdict, bool end)
{
    struct ours *ours = owner;
    (void)verdict;
    (void)end;
    ours->heard.unfit++;
    return ours->count < 64 ? keep(ours, stream) : NULL;
}

static void on_answer(void *owner, const struct head *head, bool end)
{
    struct place *place = owner;
    (void)end;
    hear_head(&place->ours->heard, head);
}

static void on_broken(void *owner, const char *rule)
{
    struct place *place = owner;
    (void)rule;
    place->ours->heard.refused = true;
    place->ours->stream[place->number] = NULL;
}

static void on_data(void *owner, const char *bytes, size_t length)
{
    struct place *place = owner;
    hear_body(&place->ours->heard, bytes, length);
    h2_took(place->ours->stream[place->number], length);
}

static void on_trailers(void *owner, const char *bytes, size_t length)
{
    struct place *place = owner;
    static struct head head;
    place->ours->heard.trailers++;
    if (h1_parse_metadata(bytes, length, &head).kind == H1_OK) {
        place->ours->heard.heads--;
        hear_head(&place->ours->heard, &head);
    }
}

static void on_end(void *owner)
{
    struct place *place = owner;
    place->ours->heard.ends++;
}

static void on_drained(void *owner)
{
    (void)owner;
}

static void on_closed(void *owner, uint32_t code)
{
    struct place *place = owner;
    place->ours->heard.refused |= code != H2_NO_ERROR;
    place->ours->stream[place->number] = NULL;
}

static const struct h2_calls our_calls = {.request = on_request,
                                          .unfit = on_unfit,
                                          .answer = on_answer,
                                          .broken = on_broken,
                                          .data = on_data,
                                          .trailers = on_trailers,
                                          .end = on_end,
                                          .drained = on_drained,
                                          .closed = on_closed};

static const struct h2_limits limits = {.streams = 32, .window = 70000, .head_bytes = HEAD_BYTES};

static void our_begin(struct ours *ours, enum h2_role role)
{
    *ours = (struct ours){0};
    ours->session = h2_session_new(role, &limits, &our_calls, ours, &scratch);
    BECALM_ASSERT(ours->session != NULL);
}

/* ---- nghttp2's ---- */

struct theirs {
    nghttp2_session *session;
    struct heard heard;
    bool over; /* it has ended the connection for a fault */
};

static int their_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                        const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    struct theirs *theirs = user;
    (void)session;
    (void)frame;
    if (name[0] != ':') {
        hear_field(&theirs->heard, name, name_length, value, value_length);
    }
    if ((flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0) {
        hear_secret(&theirs->heard, name, name_length, value, value_length);
    }
    return 0;
}

/* As our decoder: an invalid field is an error of its stream, and is not ignored. */
static int their_invalid(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                         const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    (void)session;
    (void)frame;
    (void)name;
    (void)name_length;
    (void)value;
    (void)value_length;
    (void)flags;
    (void)user;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int their_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct theirs *theirs = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS) {
        bool head = frame->headers.cat != NGHTTP2_HCAT_HEADERS;
        theirs->heard.heads += head;
        theirs->heard.trailers += !head;
    }
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        theirs->heard.refused = true;
    }
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        theirs->heard.ends++;
    }
    return 0;
}

static int their_said(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct theirs *theirs = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
        theirs->over = true;
        snprintf(theirs->heard.why, sizeof theirs->heard.why, "%u %.*s", frame->goaway.error_code,
                 (int)frame->goaway.opaque_data_len, (const char *)frame->goaway.opaque_data);
    }
    return 0;
}

static int their_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t length,
                      void *user)
{
    struct theirs *theirs = user;
    (void)session;
    (void)flags;
    (void)id;
    hear_body(&theirs->heard, (const char *)bytes, length);
    return 0;
}

static void their_begin(struct theirs *theirs, bool server)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    *theirs = (struct theirs){0};
    BECALM_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, their_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, their_invalid);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, their_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, their_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, their_said);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
    BECALM_ASSERT((server ? nghttp2_session_server_new2 : nghttp2_session_client_new2)(&theirs->session, callbacks,
                                                                                       theirs, option) == 0);
    nghttp2_settings_entry entry[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.window},
                                      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams}};
    BECALM_ASSERT(nghttp2_submit_settings(theirs->session, NGHTTP2_FLAG_NONE, entry, 2) == 0);
    BECALM_ASSERT(nghttp2_session_set_local_window_size(theirs->session, NGHTTP2_FLAG_NONE, 0,
                                                        (int32_t)(limits.window * limits.streams)) == 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

/* ---- the same frames for both ---- */

/* Errors for which nghttp2 ends a session, where RFC 9113 leaves the choice to us or asks only for a reset of the
 * stream. */
static bool is_a_matter_of_taste(const char *why)
{
    static const char *const words[] = {
        "GOAWAY: invalid last_stream_id", /* clients know no streams of ours */
        "SETTINGS: SETTINGS_NO_RFC7540_PRIORITIES cannot be changed",
        "SETTINGS: server attempted to change", /* not of a client */
        "WINDOW_UPDATE: window_size_increment == 0",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(why, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void compare(const uint8_t *data, size_t size)
{
    static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    static char out[3 * H2_WRITE_MIN];
    struct ours ours;
    struct theirs theirs;
    size_t step = size == 0 || data[0] == 0 ? size : data[0];
    our_begin(&ours, H2_SERVER);
    their_begin(&theirs, true);
    bool more = h2_feed(ours.session, begin, sizeof begin - 1, 1);
    BECALM_ASSERT(nghttp2_session_mem_recv(theirs.session, (const uint8_t *)begin, sizeof begin - 1) > 0);
    for (size_t at = 1; more && at < size; at += step) {
        size_t length = size - at < step ? size - at : step;
        const uint8_t *bytes;
        more = h2_feed(ours.session, (const char *)data + at, length, 1);
        ssize_t used = nghttp2_session_mem_recv(theirs.session, data + at, length);
        while (h2_write(ours.session, out, sizeof out) > 0) {
        }
        while (nghttp2_session_mem_send(theirs.session, &bytes) > 0) {
        }
        BECALM_ASSERT(ours.heard.heads + ours.heard.unfit <= theirs.heard.heads);
        BECALM_ASSERT(ours.heard.trailers <= theirs.heard.trailers);
        BECALM_ASSERT(ours.heard.bytes <= theirs.heard.bytes);
        BECALM_ASSERT(ours.heard.ends <= theirs.heard.ends);
        BECALM_ASSERT(ours.heard.secrets <= theirs.heard.secrets);
        bool over = used < 0 || theirs.over;
        if (over && !is_a_matter_of_taste(theirs.heard.why)) {
            if (more) {
                fprintf(stderr, "nghttp2 has ended it: %s\n", theirs.heard.why);
            }
            BECALM_ASSERT(!more);
        }
        more = more && !over && nghttp2_session_want_read(theirs.session) != 0;
    }
    h2_session_free(ours.session);
    nghttp2_session_del(theirs.session);
}

/* ---- a conversation ---- */

struct talk {
    struct ours ours;
    struct theirs theirs;
    struct heard said;  /* by us */
    struct heard asked; /* by nghttp2 */
    const uint8_t *at;
    const uint8_t *end;
    uint32_t id_count; /* answers of theirs */
};

static uint8_t next(struct talk *talk)
{
    return talk->at < talk->end ? *talk->at++ : 0;
}

static const char *const words[] = {"accept",     "x-a",          "x-trace-id",   "content-type",
                                    "user-agent", "X-Upper-Case", "grpc-timeout", "authorization"};
static char text[4096];

static struct becalm_text value_of(struct talk *talk)
{
    size_t from = next(talk);
    size_t length = next(talk) % 64;
    return (struct becalm_text){text + from, length};
}

static void add_fields(struct talk *talk, struct draft *draft)
{
    for (uint8_t i = next(talk) % 8; i > 0; i--) {
        const char *name = words[next(talk) % 5];
        struct becalm_text value = value_of(talk);
        draft_add(draft, name, value);
        hear_field(&talk->said, name, strlen(name), value.at, value.length);
    }
}

static void we_say_body(struct talk *talk, struct h2_stream *stream)
{
    static const char trailers[] = "X-Sum:  1\r\ngrpc-status: 0\r\n\r\n";
    static struct head head;
    size_t length = (size_t)next(talk) * 16;
    bool trailing = next(talk) % 2 == 1;
    length = length < sizeof text ? length : sizeof text;
    BECALM_ASSERT(h2_data(stream, text, length));
    hear_body(&talk->said, text, length);
    if (trailing) {
        BECALM_ASSERT(h1_parse_metadata(trailers, sizeof trailers - 1, &head).kind == H1_OK);
        hear_field(&talk->said, "x-sum", 5, "1", 1);
        hear_secret(&talk->said, "x-sum", 5, "1", 1);
        hear_field(&talk->said, "grpc-status", 11, "0", 1);
        talk->said.trailers++;
    }
    h2_end(stream, trailing ? &head : NULL);
    talk->said.ends++;
}

static void we_ask(struct talk *talk)
{
    static const char passed[] = "GET / HTTP/1.1\r\nHost: a\r\nX-Upper-Case:  Value\r\nAccept: */*\r\n\r\n";
    static struct head head;
    char values[64];
    struct draft draft;
    uint32_t number = talk->ours.count % 64;
    bool end = next(talk) % 2 == 1;
    if (talk->ours.count >= 30) {
        return;
    }
    draft_begin(&draft, values, sizeof values);
    draft.method = (struct becalm_text){"POST", 4};
    draft.path = (struct becalm_text){"/path", 5};
    draft.authority = (struct becalm_text){"a.example", 9};
    if (next(talk) % 2 == 1) {
        struct h1_limits h1 = {.head_bytes = 4096};
        BECALM_ASSERT(h1_parse_request(passed, sizeof passed - 1, &h1, &head).kind == H1_OK);
        h1_read_secrets(&head);
        draft.passed = &head;
        draft.skip = FIELD_BIT(FIELD_HOST);
        hear_field(&talk->said, "x-upper-case", 12, "Value", 5);
        hear_secret(&talk->said, "x-upper-case", 12, "Value", 5);
        hear_field(&talk->said, "accept", 6, "*/*", 3);
    }
    add_fields(talk, &draft);
    places[number] = (struct place){&talk->ours, number};
    struct h2_stream *stream = h2_request(talk->ours.session, &draft, end, &places[number]);
    BECALM_ASSERT(stream != NULL);
    talk->ours.stream[number] = stream;
    talk->ours.count++;
    talk->said.heads++;
    if (end) {
        talk->said.ends++;
    } else {
        we_say_body(talk, stream);
    }
}

static void we_answer(struct talk *talk)
{
    char values[64];
    struct draft draft;
    struct h2_stream **at = &talk->ours.stream[next(talk) % 64];
    struct h2_stream *stream = *at;
    if (stream == NULL) {
        return;
    }
    draft_begin(&draft, values, sizeof values);
    draft.status = 200;
    add_fields(talk, &draft);
    talk->said.heads++;
    h2_answer(stream, &draft, false);
    we_say_body(talk, stream);
    h2_abandon(stream);
    *at = NULL;
}

static ssize_t their_source(nghttp2_session *session, int32_t id, uint8_t *to, size_t size, uint32_t *flags,
                            nghttp2_data_source *source, void *user)
{
    static const char name[] = "x-sum", value[] = "2";
    bool trailing = (source->fd & 1) != 0;
    size_t left = (size_t)source->fd >> 1;
    size_t length = left < size ? left : size;
    (void)user;
    memcpy(to, text + left - length, length); /* from its end on: only `left` is known */
    source->fd = (int)((left - length) << 1) | trailing;
    if (length == left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (trailing) {
            nghttp2_nv field = {(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, 5, 1,
                                NGHTTP2_NV_FLAG_NO_INDEX};
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            BECALM_ASSERT(nghttp2_submit_trailer(session, id, &field, 1) == 0);
        }
    }
    return (ssize_t)length;
}

static nghttp2_data_provider their_body(struct talk *talk)
{
    size_t length = (size_t)next(talk) * 16;
    bool trailing = next(talk) % 2 == 1;
    length = length < sizeof text ? length : sizeof text;
    hear_body(&talk->asked, text, length);
    if (trailing) {
        hear_field(&talk->asked, "x-sum", 5, "2", 1);
        hear_secret(&talk->asked, "x-sum", 5, "2", 1);
        talk->asked.trailers++;
    }
    talk->asked.ends++;
    return (nghttp2_data_provider){.source.fd = (int)(length << 1) | trailing, .read_callback = their_source};
}

static size_t their_fields(struct talk *talk, nghttp2_nv *field)
{
    size_t count = next(talk) % 8;
    for (size_t i = 0; i < count; i++) {
        const char *name = words[next(talk) % 5];
        struct becalm_text value = value_of(talk);
        field[i] = (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value.at, strlen(name), value.length,
                                next(talk) % 3 == 0 ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
        hear_field(&talk->asked, name, strlen(name), value.at, value.length);
        if (field[i].flags == NGHTTP2_NV_FLAG_NO_INDEX) {
            hear_secret(&talk->asked, name, strlen(name), value.at, value.length);
        }
    }
    return count;
}

static nghttp2_nv own_field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void they_ask(struct talk *talk)
{
    nghttp2_nv field[16] = {own_field(":method", "POST"), own_field(":scheme", "http"), own_field(":authority", "a.b"),
                            own_field(":path", "/x")};
    if (talk->asked.heads >= 30) {
        return;
    }
    size_t count = 4 + their_fields(talk, field + 4);
    nghttp2_data_provider body = their_body(talk);
    talk->asked.heads++;
    hear_field(&talk->asked, "host", 4, "a.b", 3);
    BECALM_ASSERT(nghttp2_submit_request(talk->theirs.session, NULL, field, count, &body, NULL) > 0);
}

static void they_answer(struct talk *talk)
{
    nghttp2_nv field[16] = {own_field(":status", "200")};
    int32_t id = 2 * (int32_t)talk->id_count + 1;
    if (nghttp2_session_find_stream(talk->theirs.session, id) == NULL ||
        nghttp2_session_get_stream_remote_close(talk->theirs.session, id) != 1) {
        return;
    }
    talk->id_count++;
    size_t count = 1 + their_fields(talk, field + 1);
    nghttp2_data_provider body = their_body(talk);
    talk->asked.heads++;
    BECALM_ASSERT(nghttp2_submit_response(talk->theirs.session, id, field, count, &body) == 0);
}

/* Passes all output of one side to the other side, in pieces. */
static void pass(struct talk *talk, size_t step)
{
    static char out[3 * H2_WRITE_MIN];
    const uint8_t *bytes;
    size_t length;
    ssize_t got;
    while ((length = h2_write(talk->ours.session, out, H2_WRITE_MIN)) > 0) {
        for (size_t at = 0; at < length; at += step) {
            size_t piece = length - at < step ? length - at : step;
            BECALM_ASSERT(nghttp2_session_mem_recv(talk->theirs.session, (const uint8_t *)out + at, piece) ==
                          (ssize_t)piece);
        }
    }
    while ((got = nghttp2_session_mem_send(talk->theirs.session, &bytes)) > 0) {
        for (size_t at = 0; at < (size_t)got; at += step) {
            size_t piece = (size_t)got - at < step ? (size_t)got - at : step;
            BECALM_ASSERT(h2_feed(talk->ours.session, (const char *)bytes + at, piece, 1));
        }
    }
}

static void act(struct talk *talk, bool server)
{
    switch (next(talk) % 6) {
    case 0:
    case 1:
        (server ? they_ask : we_ask)(talk);
        break;
    case 2:
    case 3:
        (server ? we_answer : they_answer)(talk);
        break;
    case 4:
        h2_ping(talk->ours.session);
        BECALM_ASSERT(nghttp2_submit_ping(talk->theirs.session, NGHTTP2_FLAG_NONE, NULL) == 0);
        break;
    case 5: {
        uint32_t kind = next(talk) % 2;
        nghttp2_settings_entry entry = {kind == 0 ? NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE
                                                  : NGHTTP2_SETTINGS_HEADER_TABLE_SIZE,
                                        (uint32_t)next(talk) * 64};
        BECALM_ASSERT(nghttp2_submit_settings(talk->theirs.session, NGHTTP2_FLAG_NONE, &entry, 1) == 0);
        break;
    }
    }
}

/* The received messages equal the sent ones. */
static void same(const struct heard *said, const struct heard *heard)
{
    BECALM_ASSERT(said->heads == heard->heads && heard->unfit == 0 && !heard->refused);
    BECALM_ASSERT(said->trailers == heard->trailers && said->ends == heard->ends);
    BECALM_ASSERT(said->bytes == heard->bytes && said->content == heard->content && said->sum == heard->sum);
    BECALM_ASSERT(said->secrets == heard->secrets && said->secret == heard->secret);
}

static void converse(const uint8_t *data, size_t size, bool server)
{
    static struct talk talk;
    memset(&talk, 0, sizeof talk);
    talk.at = data;
    talk.end = data + size;
    our_begin(&talk.ours, server ? H2_SERVER : H2_CLIENT);
    their_begin(&talk.theirs, !server);
    size_t step = (size_t)next(&talk) + 1;
    pass(&talk, step);
    pass(&talk, step);
    for (int i = 0; i < 200 && talk.at < talk.end; i++) {
        act(&talk, server);
        if (next(&talk) % 4 != 0) {
            pass(&talk, step);
        }
    }
    nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1u << 20}; /* waiting bytes may be sent */
    BECALM_ASSERT(nghttp2_submit_settings(talk.theirs.session, NGHTTP2_FLAG_NONE, &entry, 1) == 0);
    for (int i = 0; i < 8; i++) {
        pass(&talk, step);
    }
    same(&talk.said, &talk.theirs.heard);
    same(&talk.asked, &talk.ours.heard);
    BECALM_ASSERT(h2_held(talk.ours.session) == 0);
    h2_session_free(talk.ours.session);
    nghttp2_session_del(talk.theirs.session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + (i * 7 + i / 26) % 26);
    }
    if (size < 2) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        compare(data + 1, size - 1);
    } else {
        converse(data + 1, size - 1, data[0] % 4 == 1);
    }
    return 0;
}
