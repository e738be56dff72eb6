/* SPDX-License-Identifier: MIT */
/* The frames of RFC 9113 by hand: each of them in each state of a stream, every rule of their form, and the effect of
 * SETTINGS and windows. The answer of this side is written as in h2_lab.h: "" is no answer, so the frame is accepted or
 * ignored. */
#include "h2_lab.h"

#include "h2/h2_session_internal.h"

/* ---- states ---- */

enum state { IDLE, SKIPPED, OPEN, HEARD, RESET_HERE, RESET_THERE, ENDED, STATES };
static const char *const state_names[STATES] = {"idle",        "left out",          "open", "half-closed (remote)",
                                                "reset by us", "reset by the peer", "over"};

/* A server with stream 1 in this state. */
static struct lab *server_in(enum state state)
{
    struct lab *lab = lab_server();
    lab->takes = true;
    if (state == SKIPPED) {
        lab_head(lab, 3, LAB_END, LAB_GET);
        lab_next_id = 3;
    } else if (state != IDLE) {
        lab_head(lab, 1, state == HEARD || state == ENDED ? LAB_END : 0, LAB_POST);
    }
    if (state == RESET_THERE) {
        lab_reset(lab, 1, H2_CANCEL);
    }
    check_true(lab_feed(lab));
    if (state == RESET_HERE) {
        h2_reset(lab->stream[0], H2_CANCEL);
    } else if (state == ENDED) {
        lab_say(lab, 1, 204, true);
    }
    lab_flush(lab, NULL);
    lab_forget(lab);
    return lab;
}

enum frame { DATA, HEADERS, TRAILERS, PRIORITY, RESET, WINDOW, WINDOW_ZERO, WINDOW_MOST, CONTINUATION, PUSH, FRAMES };
static const char *const frame_names[FRAMES] = {"DATA",         "HEADERS",     "HEADERS that end", "PRIORITY",
                                                "RST_STREAM",   "WINDOW",      "WINDOW by none",   "WINDOW by the most",
                                                "CONTINUATION", "PUSH_PROMISE"};

static void make(struct lab *lab, enum frame frame)
{
    switch (frame) {
    case DATA:
        lab_frame(lab, LAB_DATA, 0, 1, "x", 1);
        break;
    case HEADERS:
        lab_head(lab, 1, 0, "x=y|");
        break;
    case TRAILERS:
        lab_head(lab, 1, LAB_END, "x=y|");
        break;
    case PRIORITY:
        lab_frame(lab, LAB_PRIORITY, 0, 1, "\0\0\0\0\1", 5);
        break;
    case RESET:
        lab_reset(lab, 1, H2_CANCEL);
        break;
    case WINDOW:
        lab_window(lab, 1, 1000);
        break;
    case WINDOW_ZERO:
        lab_window(lab, 1, 0);
        break;
    case WINDOW_MOST:
        lab_window(lab, 1, INT32_MAX);
        break;
    case CONTINUATION:
        lab_frame(lab, LAB_CONTINUATION, LAB_END_HEADERS, 1, NULL, 0);
        break;
    case PUSH:
        lab_frame(lab, LAB_PUSH, LAB_END_HEADERS, 1, "\0\0\0\2", 4);
        break;
    case FRAMES:
        break;
    }
}

#define PROTOCOL "GOAWAY=1 "
#define CLOSED   "GOAWAY=5 "

static void test_h2_frames__each_in_each_state(void **state)
{
    static const char *const said[STATES][FRAMES] = {
        [IDLE] = {PROTOCOL, "RST:1=1 ", "RST:1=1 ", "", PROTOCOL, PROTOCOL, PROTOCOL, PROTOCOL, PROTOCOL, PROTOCOL},
        [SKIPPED] = {PROTOCOL, PROTOCOL, PROTOCOL, "", "", "", "", "", PROTOCOL, PROTOCOL},
        [OPEN] = {"", "RST:1=1 ", "", "", "", "", "RST:1=1 ", "RST:1=3 ", PROTOCOL, PROTOCOL},
        [HEARD] = {CLOSED, CLOSED, CLOSED, "", "", "", "RST:1=1 ", "RST:1=3 ", PROTOCOL, PROTOCOL},
        [RESET_HERE] = {"", "", "", "", "", "", "", "", PROTOCOL, PROTOCOL},
        [RESET_THERE] = {CLOSED, CLOSED, CLOSED, "", "", "", "", "", PROTOCOL, PROTOCOL},
        [ENDED] = {CLOSED, CLOSED, CLOSED, "", "", "", "", "", PROTOCOL, PROTOCOL},
    };
    (void)state;
    for (enum state in = 0; in < STATES; in++) {
        for (enum frame frame = 0; frame < FRAMES; frame++) {
            for (size_t step = 1; step < 40; step += 38) {
                struct lab *lab = server_in(in);
                make(lab, frame);
                bool goes_on = lab_feed_by(lab, step);
                if (strcmp(lab->down, said[in][frame]) != 0 || goes_on == (strstr(lab->down, "GOAWAY") != NULL)) {
                    print_error("%s, %s: \"%s\", not \"%s\"\n", state_names[in], frame_names[frame], lab->down,
                                said[in][frame]);
                    fail();
                }
                lab_free(lab);
            }
        }
    }
}

/* Ignored heads are unpacked, too: the heads behind them are still understood. */
static void test_h2_frames__a_head_that_nobody_hears_of_keeps_the_tables_right(void **state)
{
    struct lab *lab = server_in(RESET_HERE);
    static const char enters[] = "\x40\1x\1y";
    char block[512];
    (void)state;
    lab_frame(lab, LAB_HEADERS, LAB_END | LAB_END_HEADERS, 1, enters, sizeof enters - 1);
    size_t length = lab_block(block, LAB_GET);
    block[length++] = (char)0xbe; /* the newest of the table */
    lab_frame(lab, LAB_HEADERS, LAB_END | LAB_END_HEADERS, 3, block, length);
    check_true(lab_feed(lab));
    check_eq_str(lab->head, "host=a.example|x=y|");
    lab_free(lab);
}

/* ---- forms ---- */

struct form {
    const char *what;
    uint8_t type;
    uint8_t flags;
    int32_t id;
    const char *payload;
    size_t length;
    const char *said;
};

static const char padded_head[] = "\3"
                                  "\x82\x86\x84\x41\1a"
                                  "\0\0\0";
static const char ranked_head[] = "\0\0\0\0\1"
                                  "\x82\x86\x84\x41\1a";
static const char self_ranked[] = "\0\0\0\3\1"
                                  "\x82\x86\x84\x41\1a";
static const char zeroes[16400];

#define PADDED 8
#define RANKED 0x20
#define SIZE   "GOAWAY=6 "

/* Stream 1 is open. */
static const struct form forms[] = {
    {"padding", LAB_DATA, PADDED, 1, "\2x\0\0", 4, ""},
    {"nothing but padding", LAB_DATA, PADDED, 1, "\3\0\0\0", 4, ""},
    {"padding that is too long", LAB_DATA, PADDED, 1, "\4x\0\0", 4, PROTOCOL},
    {"padding without its length", LAB_DATA, PADDED, 1, NULL, 0, SIZE},
    {"DATA without a stream", LAB_DATA, 0, 0, "x", 1, PROTOCOL},
    {"DATA of an even stream", LAB_DATA, 0, 2, "x", 1, PROTOCOL},
    {"the longest frame", LAB_DATA, 0, 1, zeroes, 16384, ""},
    {"a frame that is too long", LAB_DATA, 0, 1, zeroes, 16385, SIZE},
    {"a padded head", LAB_HEADERS, PADDED | LAB_END | LAB_END_HEADERS, 3, padded_head, sizeof padded_head - 1, ""},
    {"padding of a head that is too long", LAB_HEADERS, PADDED | LAB_END_HEADERS, 3, "\x20\x82", 2, PROTOCOL},
    {"a head with a priority", LAB_HEADERS, RANKED | LAB_END | LAB_END_HEADERS, 3, ranked_head, sizeof ranked_head - 1,
     ""},
    {"a head that depends on itself", LAB_HEADERS, RANKED | LAB_END | LAB_END_HEADERS, 3, self_ranked,
     sizeof self_ranked - 1, PROTOCOL},
    {"a priority that is too short", LAB_HEADERS, RANKED | LAB_END_HEADERS, 3, "\0\0\0", 3, SIZE},
    {"a head without a stream", LAB_HEADERS, LAB_END_HEADERS, 0, "\x82", 1, PROTOCOL},
    {"a head of an even stream", LAB_HEADERS, LAB_END_HEADERS, 2, "\x82", 1, PROTOCOL},
    {"a head that can't be unpacked", LAB_HEADERS, LAB_END_HEADERS, 3, "\xff\xff\xff\xff\xff\xff", 6, "GOAWAY=9 "},
    {"a head that ends in a field", LAB_HEADERS, LAB_END_HEADERS, 3, "\x82\x40\5x", 4, "GOAWAY=9 "},
    {"an empty head", LAB_HEADERS, LAB_END | LAB_END_HEADERS, 3, NULL, 0, "RST:3=1 "},
    {"PRIORITY without a stream", LAB_PRIORITY, 0, 0, "\0\0\0\0\1", 5, PROTOCOL},
    {"PRIORITY of itself", LAB_PRIORITY, 0, 9, "\0\0\0\x09\1", 5, PROTOCOL},
    {"PRIORITY that is too short", LAB_PRIORITY, 0, 1, "\0\0\0\0", 4, SIZE},
    {"RST_STREAM without a stream", LAB_RST, 0, 0, "\0\0\0\0", 4, PROTOCOL},
    {"RST_STREAM that is too short", LAB_RST, 0, 1, "\0\0\0", 3, SIZE},
    {"SETTINGS of a stream", LAB_SETTINGS, 0, 1, NULL, 0, PROTOCOL},
    {"SETTINGS that are cut", LAB_SETTINGS, 0, 0, "\0\0\0", 3, SIZE},
    {"an acknowledgement with a payload", LAB_SETTINGS, LAB_ACK, 0, "\0\1\0\0\0\0", 6, SIZE},
    {"an acknowledgement of nothing", LAB_SETTINGS, LAB_ACK, 0, NULL, 0, PROTOCOL},
    {"unknown SETTINGS", LAB_SETTINGS, 0, 0, "\x0b\xad\1\2\3\4", 6, "SETTINGS+ "},
    {"a table of any size", LAB_SETTINGS, 0, 0, "\0\1\xff\xff\xff\xff", 6, "SETTINGS+ "},
    {"ENABLE_PUSH 2", LAB_SETTINGS, 0, 0, "\0\2\0\0\0\2", 6, PROTOCOL},
    {"ENABLE_PUSH 1 of a client", LAB_SETTINGS, 0, 0, "\0\2\0\0\0\1", 6, "SETTINGS+ "},
    {"a first window that is too large", LAB_SETTINGS, 0, 0, "\0\4\x80\0\0\0", 6, "GOAWAY=3 "},
    {"the largest first window", LAB_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff", 6, "SETTINGS+ "},
    {"frames that are too small", LAB_SETTINGS, 0, 0, "\0\5\0\0\x3f\xff", 6, PROTOCOL},
    {"frames that are too large", LAB_SETTINGS, 0, 0, "\0\5\1\0\0\0", 6, PROTOCOL},
    {"frames as large as can be", LAB_SETTINGS, 0, 0, "\0\5\0\xff\xff\xff", 6, "SETTINGS+ "},
    {"ENABLE_CONNECT_PROTOCOL 2", LAB_SETTINGS, 0, 0, "\0\x08\0\0\0\2", 6, PROTOCOL},
    {"NO_RFC7540_PRIORITIES 2", LAB_SETTINGS, 0, 0, "\0\x09\0\0\0\2", 6, PROTOCOL},
    {"more SETTINGS than anybody has", LAB_SETTINGS, 0, 0, zeroes, 33 * 6, "GOAWAY=11 "},
    {"PING of a stream", LAB_PING, 0, 1, "12345678", 8, PROTOCOL},
    {"PING that is too short", LAB_PING, 0, 0, "1234567", 7, SIZE},
    {"PING", LAB_PING, 0, 0, "12345678", 8, "PING+ "},
    {"an answer to no PING", LAB_PING, LAB_ACK, 0, "12345678", 8, ""},
    {"GOAWAY of a stream", LAB_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0", 8, PROTOCOL},
    {"GOAWAY that is too short", LAB_GOAWAY, 0, 0, "\0\0\0\0\0\0\0", 7, SIZE},
    {"GOAWAY with words", LAB_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0bye", 11, ""},
    {"WINDOW_UPDATE that is too short", LAB_WINDOW, 0, 0, "\0\0\1", 3, SIZE},
    {"WINDOW_UPDATE by none", LAB_WINDOW, 0, 0, "\0\0\0\0", 4, PROTOCOL},
    {"WINDOW_UPDATE beyond the largest", LAB_WINDOW, 0, 0, "\x7f\xff\xff\xff", 4, "GOAWAY=3 "},
    {"WINDOW_UPDATE whose first bit means nothing", LAB_WINDOW, 0, 1, "\x80\0\1\0", 4, ""},
    {"CONTINUATION of nothing", LAB_CONTINUATION, LAB_END_HEADERS, 1, NULL, 0, PROTOCOL},
    {"a frame that nobody knows", 0xbe, 0xff, 7, "x", 1, ""},
    {"one without a payload", 0x10, 0, 0, NULL, 0, ""},
};

static void test_h2_frames__of_every_form_cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *form = &forms[i];
        size_t most = form->length > 100 ? 3 : form->length + 11;
        for (size_t step = 1; step <= most; step++) {
            struct lab *lab = server_in(OPEN);
            lab_frame(lab, form->type, form->flags, form->id, form->payload, form->length);
            lab_feed_by(lab, form->length > 100 ? step * 6000 : step);
            if (strcmp(lab->down, form->said) != 0) {
                print_error("%s, by %zu: \"%s\", not \"%s\"\n", form->what, step, lab->down, form->said);
                fail();
            }
            lab_free(lab);
        }
    }
}

static void test_h2_frames__a_head_stands_together(void **state)
{
    char block[512];
    size_t length = lab_block(block, LAB_GET);
    (void)state;
    for (uint8_t type = LAB_DATA; type <= LAB_CONTINUATION + 1; type++) {
        for (int32_t id = 1; id <= 3; id += 2) {
            struct lab *lab = server_in(OPEN);
            lab_frame(lab, LAB_HEADERS, LAB_END, 3, block, 5);
            lab_frame(lab, type, LAB_END_HEADERS, id, block + 5, length - 5);
            bool right = type == LAB_CONTINUATION && id == 3;
            lab_next_id = 3;
            check_true(lab_feed(lab) == right);
            check_eq_str(lab->down, right ? "" : PROTOCOL);
            check_eq_str(lab->up, right ? "request 3 GET /a end; end 3; " : "");
            lab_free(lab);
        }
    }
}

static void test_h2_frames__settings_come_first(void **state)
{
    (void)state;
    for (int client = 0; client < 2; client++) {
        struct lab *lab = lab_new(client ? H2_CLIENT : H2_SERVER);
        if (!client) {
            lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        }
        lab_frame(lab, LAB_PING, 0, 0, "12345678", 8);
        check_true(!lab_feed(lab));
        check_true(strstr(lab->down, PROTOCOL) != NULL);
        lab_free(lab);
    }
    struct lab *lab = lab_new(H2_SERVER);
    lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r", 23);
    lab_bytes(lab, "x", 1);
    check_true(!lab_feed_by(lab, 1));
    check_true(strstr(lab->down, PROTOCOL) != NULL);
    lab_free(lab);
}

/* ---- a client's side ---- */

static struct draft *draft_to_b(struct draft *draft, char room[256])
{
    draft_begin(draft, room, 256);
    draft->method = (struct becalm_text){"POST", 4};
    draft->path = (struct becalm_text){"/b", 2};
    draft->authority = (struct becalm_text){"b.example", 9};
    return draft;
}

static struct lab *client_with(int32_t streams)
{
    struct lab *lab = lab_new(H2_CLIENT);
    char room[256];
    struct draft draft;
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
    lab_frame(lab, LAB_SETTINGS, LAB_ACK, 0, NULL, 0);
    check_true(lab_feed(lab));
    draft_to_b(&draft, room);
    for (int32_t i = 0; i < streams; i++) {
        lab_streams[i] = (struct lab_stream){lab, 2 * i + 1};
        lab->stream[i] = h2_request(lab->session, &draft, false, &lab_streams[i]);
    }
    lab_flush(lab, NULL);
    lab_forget(lab);
    return lab;
}

static void test_h2_frames__of_a_host(void **state)
{
    static const struct form rows[] = {
        {"DATA before the answer", LAB_DATA, 0, 1, "x", 1, "RST:1=1 "},
        {"an answer", LAB_HEADERS, LAB_END_HEADERS, 1, "\x88", 1, ""},
        {"an answer that ends", LAB_HEADERS, LAB_END_HEADERS | LAB_END, 1, "\x88", 1, ""},
        {"an answer without a status", LAB_HEADERS, LAB_END_HEADERS, 1, "\0\1x\1y", 5, "RST:1=1 "},
        {"an answer with a path", LAB_HEADERS, LAB_END_HEADERS, 1, "\x88\x84", 2, "RST:1=1 "},
        {"two statuses", LAB_HEADERS, LAB_END_HEADERS, 1, "\x88\x88", 2, "RST:1=1 "},
        {"100 that ends", LAB_HEADERS, LAB_END_HEADERS | LAB_END, 1,
         "\x08\3"
         "100",
         5, "RST:1=1 "},
        {"101", LAB_HEADERS, LAB_END_HEADERS, 1,
         "\x08\3"
         "101",
         5, "RST:1=1 "},
        {"a request", LAB_HEADERS, LAB_END_HEADERS, 2, "\x82", 1, PROTOCOL},
        {"a stream that is not asked for", LAB_HEADERS, LAB_END_HEADERS, 3, "\x88", 1, PROTOCOL},
        {"a push", LAB_PUSH, LAB_END_HEADERS, 1, "\0\0\0\2\x82", 5, PROTOCOL},
        {"ENABLE_PUSH 1", LAB_SETTINGS, 0, 0, "\0\2\0\0\0\1", 6, PROTOCOL},
        {"a reset of nothing", LAB_RST, 0, 3, "\0\0\0\0", 4, PROTOCOL},
        {"a window of nothing", LAB_WINDOW, 0, 3, "\0\0\1\0", 4, PROTOCOL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = client_with(1);
        lab_frame(lab, rows[i].type, rows[i].flags, rows[i].id, rows[i].payload, rows[i].length);
        lab_feed_by(lab, 1);
        if (strcmp(lab->down, rows[i].said) != 0) {
            print_error("%s: \"%s\", not \"%s\"\n", rows[i].what, lab->down, rows[i].said);
            fail();
        }
        lab_free(lab);
    }
}

/* An answer without a body has none, whatever its length says; other answers have the length that they say. */
static void test_h2_frames__answers_are_as_long_as_they_say(void **state)
{
    static const struct {
        const char *head;
        size_t body;
        const char *up;
        const char *said;
    } rows[] = {
        {":status=200|content-length=3|", 3, "answer 1 200; data 1 3; end 1; ", ""},
        {":status=200|content-length=3|", 2, "answer 1 200; data 1 2; closed 1 1; ", "RST:1=1 "},
        {":status=200|content-length=3|", 4, "answer 1 200; closed 1 1; ", "RST:1=1 "},
        {":status=304|content-length=3|", 0, "answer 1 304; end 1; ", ""},
        {":status=304|content-length=3|", 3, "answer 1 304; closed 1 1; ", "RST:1=1 "},
        {":status=204|", 1, "answer 1 204; closed 1 1; ", "RST:1=1 "},
        {":status=204|content-length=1|", 0, "closed 1 1; ", "RST:1=1 "},
        {":status=103|content-length=1|", 0, "closed 1 1; ", "RST:1=1 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = client_with(1);
        lab->takes = true;
        lab_head(lab, 1, 0, rows[i].head);
        lab_frame(lab, LAB_DATA, LAB_END, 1, "abcd", rows[i].body);
        check_true(lab_feed(lab));
        check_eq_str(lab->up, rows[i].up);
        check_eq_str(lab->down, rows[i].said);
        lab_free(lab);
    }
}

/* Requests that wait when the host goes away leave the queue, and the tables behind them are those that the host has:
 * trailers that follow are read there. */
static void test_h2_frames__what_was_never_sent_leaves_no_trace(void **state)
{
    struct lab *client = lab_new(H2_CLIENT);
    struct lab *server = lab_new(H2_SERVER);
    char room[256];
    struct draft draft;
    static const char trailers[] = "x-sum: 5\r\nx-word: waits\r\n\r\n";
    static struct head head;
    (void)state;
    server->takes = true;
    for (int i = 0; i < 4; i++) {
        lab_flush(client, server);
        lab_flush(server, client);
    }
    draft_to_b(&draft, room);
    draft_add_chars(&draft, "x-word", "goes");
    lab_streams[100] = (struct lab_stream){client, 1};
    struct h2_stream *first = h2_request(client->session, &draft, false, &lab_streams[100]);
    lab_flush(client, server);
    draft.count = 0;
    draft_add_chars(&draft, "x-word", "waits");
    lab_streams[101] = (struct lab_stream){client, 3};
    struct h2_stream *second = h2_request(client->session, &draft, true, &lab_streams[101]);
    h2_ping(client->session);
    lab_streams[102] = (struct lab_stream){client, 5};
    check_true(h2_request(client->session, &draft, true, &lab_streams[102]) != NULL);
    check_true(h2_sent(first) && !h2_sent(second));
    lab_forget(client);
    lab_forget(server);
    h2_going(server->session);
    lab_flush(server, client);
    check_eq_str(client->up, "closed 5 7; closed 3 7; goaway 0; ");
    check_true(h1_parse_trailers(trailers, sizeof trailers - 1, &head).kind == H1_OK);
    h2_end(first, &head);
    lab_flush(client, server);
    check_eq_str(client->down, "PING PING+ HEADERS:1. ");
    check_eq_str(server->up, "trailers 1 x-sum: 5/ x-word: waits/ / ; end 1; ");
    check_true(h2_request(client->session, &draft, true, &lab_streams[102]) == NULL);
    lab_free(client);
    lab_free(server);
}

/* Which fields a host is told never to remember, and which enter the table of a connection: neither secrets, nor values
 * that are new in each message, however they are written. */
static void test_h2_frames__secrets_enter_no_table(void **state)
{
    static const char request[] =
        "POST / HTTP/1.1\r\nHost: b\r\nAuthorization: s\r\nCookie: s\r\nIdempotency-Key: s\r\n"
        "X-Request-Id: s\r\nTraceparent: s\r\nX-Request-Deadline-Ms: 1\r\n"
        "Grpc-Timeout: 1S\r\nX-Envoy-Expected-Rq-Timeout-Ms: 1\r\nBecalm-Explain: s\r\n"
        "Age: n\r\nETag: n\r\nlocation: n\r\nSet-Cookie: n\r\nIf-None-Match: n\r\n"
        "If-Modified-Since: n\r\nContent-Length: 7\r\nX-Own: r\r\nUser-Agent: r\r\n\r\n";
    static const struct h1_limits limits = {.head_bytes = 8192};
    static struct head head;
    static char out[H2_WRITE_MIN];
    struct lab *lab = client_with(0);
    struct draft draft;
    char room[256];
    char secrets[512] = "";
    (void)state;
    check_true(h1_parse_request(request, sizeof request - 1, &limits, &head).kind == H1_OK);
    draft_to_b(&draft, room);
    draft.passed = &head;
    draft.skip = FIELD_BIT(FIELD_HOST);
    draft_add_chars(&draft, "proxy-authorization", "s");
    check_true(h2_request(lab->session, &draft, true, &lab_streams[0]) != NULL);
    size_t left = h2_write(lab->session, out, sizeof out) - 9;
    const uint8_t *at = (const uint8_t *)out + 9;
    nghttp2_hd_inflater *peer;
    check_true(nghttp2_hd_inflate_new(&peer) == 0);
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
        nghttp2_nv field;
        flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(peer, &field, &flags, at, left, 1);
        check_true(used >= 0);
        at += used;
        left -= (size_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 && (field.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0) {
            strncat(secrets, (const char *)field.name, field.namelen);
            strcat(secrets, " ");
        }
    }
    check_eq_str(secrets, "authorization cookie idempotency-key x-request-id traceparent x-request-deadline-ms "
                          "grpc-timeout x-envoy-expected-rq-timeout-ms becalm-explain proxy-authorization ");
    check_eq_u64(nghttp2_hd_inflate_get_num_table_entries(peer), 61 + 3); /* :authority, x-own, user-agent */
    nghttp2_hd_inflate_del(peer);
    lab_free(lab);
}

/* The beginning of the next head that a server says. */
static void check_head_begins(struct lab *lab, int32_t id, const char *hex)
{
    char out[H2_WRITE_MIN];
    char begins[16] = "";
    lab_say(lab, id, 200, true);
    check_true(h2_write(lab->session, out, sizeof out) > 9 + strlen(hex) / 2);
    for (size_t i = 0; i < strlen(hex) / 2; i++) {
        snprintf(begins + 2 * i, 3, "%02x", (unsigned char)out[9 + i]);
    }
    check_eq_str(begins, hex);
}

/* The table of HPACK is as large as SETTINGS say, at most 4096, from the head on that follows their acknowledgement:
 * before, the peer may not take a larger one. */
static void test_h2_frames__a_table_is_resized_when_that_is_acknowledged(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\1\0\0\0\0", 6);
    check_true(lab_feed(lab));
    check_head_begins(lab, 1, "2088"); /* 0, and then :status 200 */
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\1\0\0\0\100\0\1\0\1\0\0", 12);
    lab->in_length -= 6;
    check_true(lab_feed(lab));
    check_head_begins(lab, 3, "88");
    lab_bytes(lab, "\0\1\0\1\0\0", 6);
    check_true(lab_feed(lab));
    check_head_begins(lab, 5, "3f213fe11f88"); /* 64, the least of them, and 4096 */
    lab_free(lab);
}

/* A stream whose head waits is idle for the host: a frame of the host on it can't be an answer. */
static void test_h2_frames__nothing_comes_for_what_was_never_sent(void **state)
{
    static const enum frame frames[] = {DATA, HEADERS, RESET, WINDOW};
    (void)state;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        struct lab *lab = client_with(0);
        char room[256];
        struct draft draft;
        lab_streams[0] = (struct lab_stream){lab, 1};
        lab->stream[0] = h2_request(lab->session, draft_to_b(&draft, room), true, &lab_streams[0]);
        make(lab, frames[i]);
        check_true(!lab_feed(lab));
        check_eq_str(lab->up, "");
        check_eq_str(lab->down, "HEADERS:1. " PROTOCOL);
        lab_free(lab);
    }
}

/* A request that was cancelled before it was written stands in the queue with its reset. When the host goes away it
 * leaves with those before it, whose fields it may name by their place in the table. */
static void test_h2_frames__what_was_cancelled_and_never_sent_leaves_no_trace_either(void **state)
{
    struct lab *client = lab_new(H2_CLIENT);
    struct lab *server = lab_new(H2_SERVER);
    char room[256];
    struct draft draft;
    (void)state;
    server->takes = true;
    for (int i = 0; i < 4; i++) {
        lab_flush(client, server);
        lab_flush(server, client);
    }
    lab_streams[100] = (struct lab_stream){client, 1};
    lab_streams[101] = (struct lab_stream){client, 3};
    lab_streams[102] = (struct lab_stream){client, 5};
    struct h2_stream *first = h2_request(client->session, draft_to_b(&draft, room), false, &lab_streams[100]);
    lab_flush(client, server);
    draft_add_chars(&draft, "x-word", "waits");
    check_true(h2_request(client->session, &draft, true, &lab_streams[101]) != NULL);
    h2_reset(h2_request(client->session, &draft, true, &lab_streams[102]), H2_CANCEL);
    h2_ping(client->session);
    lab_forget(client);
    lab_forget(server);
    h2_going(server->session);
    lab_flush(server, client);
    check_eq_str(client->up, "closed 3 7; goaway 0; ");
    h2_end(first, NULL);
    lab_flush(client, server);
    check_eq_str(client->down, "PING PING+ DATA:1=0. ");
    check_eq_str(server->up, "end 1; ");
    check_true(h2_ended(server->session) == H2_END_NONE);
    lab_free(client);
    lab_free(server);
}

/* HTTP/1 has names in any case, HTTP/2 in lower case alone. */
static void test_h2_frames__names_go_in_lower_case(void **state)
{
    struct lab *client = lab_new(H2_CLIENT);
    struct lab *server = lab_new(H2_SERVER);
    static const char passed[] =
        "GET / HTTP/1.1\r\nHost: a\r\nX-Upper: Value\r\nx-lower: a\r\nACCEPT: b\r\nX-UPPER: c\r\n\r\n";
    static struct head head;
    struct h1_limits h1 = {.head_bytes = 4096};
    char room[256];
    struct draft draft;
    (void)state;
    check_true(h1_parse_request(passed, sizeof passed - 1, &h1, &head).kind == H1_OK);
    draft_begin(&draft, room, sizeof room);
    draft.method = (struct becalm_text){"GET", 3};
    draft.path = (struct becalm_text){"/b", 2};
    draft.authority = (struct becalm_text){"b.example", 9};
    draft.passed = &head;
    draft.skip = FIELD_BIT(FIELD_HOST);
    lab_flush(client, server);
    lab_flush(server, client);
    lab_streams[100] = (struct lab_stream){client, 1};
    check_true(h2_request(client->session, &draft, true, &lab_streams[100]) != NULL);
    lab_flush(client, server);
    check_eq_str(server->head, "host=b.example|x-upper=Value|x-lower=a|accept=b|x-upper=c|");
    lab_free(client);
    lab_free(server);
}

/* ---- windows ---- */

static void test_h2_frames__the_first_window_changes_for_open_streams_too(void **state)
{
    struct lab *lab = server_in(HEARD);
    static char body[100000];
    (void)state;
    lab_say(lab, 1, 200, false);
    check_true(h2_data(lab->stream[0], body, sizeof body));
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\4\0\0\0\x0a", 6); /* 10 bytes */
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "HEADERS:1 SETTINGS+ DATA:1=10 ");
    lab_forget(lab);
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\4\0\0\0\5", 6); /* it has sent more than that: -5 */
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "SETTINGS+ ");
    lab_forget(lab);
    lab_window(lab, 1, 5); /* 0 */
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "");
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\4\0\0\0\x08", 6);
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "SETTINGS+ DATA:1=3 ");
    lab_forget(lab);
    lab_window(lab, 1, INT32_MAX);
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\4\0\0\0\x09", 6); /* now it goes too far */
    check_true(!lab_feed(lab));
    check_true(strstr(lab->down, "GOAWAY=3 ") != NULL);
    lab_free(lab);
}

/* Streams have their turns: none waits until another has no more window. */
static void test_h2_frames__streams_take_turns(void **state)
{
    struct lab *lab = lab_server();
    static char body[40000];
    (void)state;
    lab_window(lab, 0, 1u << 20);
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    check_true(lab_feed(lab));
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_say(lab, id, 200, false);
        check_true(h2_data(lab->stream[id / 2], body, id == 3 ? 100 : sizeof body));
        h2_end(lab->stream[id / 2], NULL);
    }
    lab_forget(lab);
    lab_flush(lab, NULL);
    check_eq_str(lab->down, "HEADERS:1 HEADERS:3 HEADERS:5 DATA:1=16384 DATA:3=100. DATA:5=16384 DATA:1=16384 "
                            "DATA:5=16384 DATA:1=7232. DATA:5=7232. ");
    lab_free(lab);
}

/* When the connection's window is shut, all wait; a head and an end need none. */
static void test_h2_frames__the_connections_window_holds_bodies_back_and_nothing_else(void **state)
{
    struct lab *lab = lab_server();
    static char body[65535];
    (void)state;
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    check_true(lab_feed(lab));
    lab_say(lab, 1, 200, false);
    check_true(h2_data(lab->stream[0], body, sizeof body));
    lab_flush(lab, NULL);
    lab_forget(lab);
    lab_say(lab, 3, 200, false);
    check_true(h2_data(lab->stream[1], body, 7));
    lab_say(lab, 5, 200, false);
    h2_end(lab->stream[2], NULL);
    h2_end(lab->stream[0], NULL);
    lab_flush(lab, NULL);
    check_eq_str(lab->down, "HEADERS:3 HEADERS:5 DATA:5=0. DATA:1=0. ");
    check_eq_u64(lab->writes, 1); /* a stream without a window keeps no other stream waiting */
    lab_forget(lab);
    lab_window(lab, 0, 7);
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "DATA:3=7 ");
    lab_free(lab);
}

/* ---- bodies that are passed on without a copy ---- */

/* Passes it on, notes the frames, and looks whether the bytes are those that were meant, at their own place. */
static size_t pass(struct lab *lab, int32_t id, struct becalm_text text, bool end)
{
    static char all[1u << 18];
    struct h2_pass pass;
    size_t at = 0;
    size_t length = h2_data_pass(lab->stream[id / 2], text, end, &pass);
    for (int i = 0; length > 0 && i < pass.count; i++) {
        const char *part = pass.part[i].iov_base;
        check_true(pass.part[i].iov_len > 0 && pass.part[i].iov_len <= sizeof all - at);
        check_true(pass.part[i].iov_len < 1000 || (part >= text.at && part < text.at + text.length));
        memcpy(all + at, part, pass.part[i].iov_len);
        at += pass.part[i].iov_len;
    }
    lab_note_frames(lab, all, at);
    return length;
}

static void test_h2_frames__a_body_is_passed_on_without_a_copy(void **state)
{
    struct lab *lab = server_in(HEARD);
    static char body[100000];
    struct becalm_text text = {body, sizeof body};
    (void)state;
    lab_say(lab, 1, 200, false);
    h2_ping(lab->session);
    check_eq_u64(pass(lab, 1, text, true), 65535); /* the window; the rest waits for it */
    check_eq_str(lab->down, "HEADERS:1 PING DATA:1=16384 DATA:1=16384 DATA:1=16384 DATA:1=16383 ");
    lab_forget(lab);
    check_eq_u64(pass(lab, 1, text, true), 0);
    lab_window(lab, 1, 20000);
    check_true(lab_feed(lab));
    check_eq_u64(pass(lab, 1, text, true), 0); /* the connection has none */
    lab_window(lab, 0, 40000);
    check_true(lab_feed(lab));
    check_eq_u64(pass(lab, 1, (struct becalm_text){body, 25000}, true), 20000);
    check_eq_str(lab->down, "DATA:1=16384 DATA:1=3616 ");
    lab_forget(lab);
    lab_window(lab, 1, 20000);
    check_true(lab_feed(lab));
    check_eq_u64(pass(lab, 1, (struct becalm_text){body, 20000}, true), 20000);
    check_eq_str(lab->down, "DATA:1=16384 DATA:1=3616. ");
    check_eq_str(lab->up, ""); /* no owner gets an event before the session is asked for bytes */
    lab_flush(lab, NULL);
    check_eq_str(lab->down, "DATA:1=16384 DATA:1=3616. ");
    check_eq_str(lab->up, "closed 1 0; ");
    check_eq_u64(h2_stream_count(lab->session), 0);
    lab_free(lab);
}

/* Bodies that wait have their turn first. */
static void test_h2_frames__nothing_is_passed_on_before_what_waits(void **state)
{
    struct lab *lab = lab_server();
    static char body[20000];
    struct becalm_text text = {body, sizeof body};
    (void)state;
    lab_head(lab, 1, LAB_END, LAB_GET);
    lab_head(lab, 3, LAB_END, LAB_GET);
    check_true(lab_feed(lab));
    lab_say(lab, 1, 200, false);
    lab_say(lab, 3, 200, false);
    check_true(h2_data(lab->stream[1], body, 7));
    check_eq_u64(pass(lab, 1, text, false), 0);
    lab_flush(lab, NULL);
    check_eq_u64(pass(lab, 1, text, false), sizeof body);
    h2_terminate(lab->session, H2_NO_ERROR);
    check_eq_u64(pass(lab, 1, text, false), 0); /* and after a GOAWAY the frame is not read */
    lab_free(lab);
}

/* A request whose head goes out with its body has been sent. */
static void test_h2_frames__what_is_passed_on_was_sent(void **state)
{
    struct lab *lab = client_with(0);
    static char body[20000];
    char room[256];
    struct draft draft;
    (void)state;
    draft_to_b(&draft, room);
    lab_streams[0] = (struct lab_stream){lab, 1};
    lab->stream[0] = h2_request(lab->session, &draft, false, &lab_streams[0]);
    check_true(!h2_sent(lab->stream[0]));
    check_eq_u64(pass(lab, 1, (struct becalm_text){body, sizeof body}, true), sizeof body);
    check_true(h2_sent(lab->stream[0]) && h2_said_all(lab->stream[0]));
    check_eq_str(lab->down, "HEADERS:1 DATA:1=16384 DATA:1=3616. ");
    lab_flush(lab, NULL);
    check_eq_u64(h2_stream_count(lab->session), 1); /* its answer is to come */
    lab_free(lab);
}

/* A client that has as many streams as it may have opens the next as soon as it has read the end of an answer, also of
 * an answer that was sent beside passed-on bytes. */
static void test_h2_frames__whoever_has_an_answer_may_ask_again_at_once(void **state)
{
    struct lab *lab = lab_server();
    static char body[20000];
    (void)state;
    for (int32_t id = 1; id < 20; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    check_true(lab_feed(lab));
    lab_say(lab, 1, 204, true);
    lab_say(lab, 3, 200, false);
    check_eq_u64(pass(lab, 3, (struct becalm_text){body, sizeof body}, true), sizeof body);
    lab_say(lab, 5, 204, true); /* which the peer has not read */
    lab_forget(lab);
    lab_head(lab, 21, LAB_END, LAB_GET);
    lab_head(lab, 23, LAB_END, LAB_GET);
    check_true(h2_feed(lab->session, lab->in, lab->in_length, lab->now));
    check_eq_str(lab->up, "request 21 GET /a end; end 21; request 23 GET /a end; end 23; ");
    lab->in_length = 0;
    lab_head(lab, 25, LAB_END, LAB_GET);
    check_true(!lab_feed(lab));
    check_eq_str(lab->down, "HEADERS:5. " PROTOCOL);
    lab_free(lab);
}

/* Bytes for a stream that is over count against the connection's window, which opens again. */
static void test_h2_frames__what_is_thrown_away_opens_the_connections_window(void **state)
{
    struct lab *lab = server_in(RESET_HERE);
    (void)state;
    for (int i = 0; i < 20; i++) {
        lab_frame(lab, LAB_DATA, 0, 1, zeroes, 16384);
    }
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "WINDOW:0=327680 ");
    for (int i = 0; i < 20; i++) {
        lab_frame(lab, LAB_DATA, 0, 1, zeroes, 16384);
    }
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "WINDOW:0=327680 WINDOW:0=327680 ");
    lab_free(lab);
}

/* Before the peer knows our SETTINGS it has the default window; then ours, also for streams that are open.
 */
static void test_h2_frames__our_windows_count_from_their_acknowledgement_on(void **state)
{
    (void)state;
    for (int acknowledged = 0; acknowledged < 2; acknowledged++) {
        struct lab *lab = lab_new(H2_SERVER);
        lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
        lab_head(lab, 1, 0, LAB_POST);
        if (acknowledged) {
            lab_frame(lab, LAB_SETTINGS, LAB_ACK, 0, NULL, 0);
        }
        for (int i = 0; i < 4; i++) {
            lab_frame(lab, LAB_DATA, 0, 1, zeroes, 16384); /* 65,536 in all, one more than the first window */
        }
        check_true(lab_feed(lab));
        check_true((strstr(lab->down, "RST:1=3 ") == NULL) == (acknowledged == 1));
        lab_free(lab);
    }
}

/* SETTINGS can take back a window that has been used: an end needs none. */
static void test_h2_frames__an_end_needs_no_window(void **state)
{
    struct lab *lab = lab_new(H2_SERVER);
    struct h2_limits limits = lab_limits;
    (void)state;
    limits.window = 1024;
    h2_session_free(lab->session);
    lab->session = h2_session_new(H2_SERVER, &limits, &lab_calls, lab, &lab->scratch);
    lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
    lab_head(lab, 1, 0, LAB_POST);
    lab_frame(lab, LAB_DATA, 0, 1, zeroes, 16384);
    lab_frame(lab, LAB_SETTINGS, LAB_ACK, 0, NULL, 0);
    lab_frame(lab, LAB_DATA, LAB_END, 1, NULL, 0);
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "request 1 POST /a; data 1 16384; end 1; ");
    lab_free(lab);
}

/* The first stream may be the last that there is. */
static void test_h2_frames__the_first_stream_may_have_the_highest_number(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    lab_head(lab, INT32_MAX, LAB_END, LAB_GET);
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "request 1 GET /a end; end 1; ");
    lab_frame(lab, LAB_DATA, 0, INT32_MAX - 2, "x", 1);
    check_true(!lab_feed(lab));
    check_eq_str(lab->down, PROTOCOL);
    lab_free(lab);
}

/* A peer that reads, but never all, must not make us keep the bytes that it has read. */
static void test_h2_frames__what_was_read_is_not_kept(void **state)
{
    struct lab *lab = server_in(HEARD);
    static char out[H2_WRITE_MIN];
    static char body[40000];
    (void)state;
    lab_say(lab, 1, 200, false);
    for (int i = 0; i < 3000; i++) {
        h2_ping(lab->session);
    }
    for (int turn = 0; turn < 1000; turn++) {
        size_t length = h2_write(lab->session, out, sizeof out);
        for (size_t i = 0; i < length / 17; i++) {
            h2_ping(lab->session);
        }
    }
    check_true(lab->session->queue.size < 300000);
    lab_flush(lab, NULL);
    for (int turn = 0; turn < 1000; turn++) {
        check_true(h2_blocked(lab->stream[0]) || h2_data(lab->stream[0], body, sizeof body));
        lab->in_length = 0;
        lab_window(lab, 0, 10001);
        lab_window(lab, 1, 10001);
        check_true(h2_feed(lab->session, lab->in, lab->in_length, lab->now));
        check_true(h2_write(lab->session, out, sizeof out) > 0);
    }
    check_true(lab->stream[0]->out.size < 300000);
    lab_free(lab);
}

/* Streams that are over are still known when others have been opened. */
static void test_h2_frames__streams_that_are_over_are_remembered(void **state)
{
    static const struct {
        int32_t id;
        const char *said;
    } rows[] = {{1, CLOSED}, {3, ""}, {5, CLOSED}, {7, PROTOCOL}, {2, PROTOCOL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = server_in(ENDED);
        lab_head(lab, 3, 0, LAB_POST);
        lab_head(lab, 5, 0, LAB_POST);
        lab_reset(lab, 5, H2_CANCEL);
        lab_head(lab, 9, 0, LAB_POST);
        check_true(lab_feed(lab));
        h2_reset(lab->stream[1], H2_CANCEL);
        lab_flush(lab, NULL);
        lab_forget(lab);
        lab_frame(lab, LAB_DATA, 0, rows[i].id, "x", 1);
        lab_feed(lab);
        check_eq_str(lab->down, rows[i].said);
        lab_free(lab);
    }
}

static void test_h2_frames__a_first_window_that_is_too_large_needs_no_stream(void **state)
{
    struct lab *lab = server_in(IDLE);
    (void)state;
    lab_frame(lab, LAB_SETTINGS, 0, 0, "\0\4\x80\0\0\0", 6);
    check_true(!lab_feed(lab));
    check_eq_str(lab->down, "GOAWAY=3 ");
    lab_free(lab);
}

/* Two streams that were full have room again by one write: both owners are told, and the bytes of a third stream are
 * dropped with it.
 */
static void test_h2_frames__all_that_have_room_again_are_told(void **state)
{
    struct lab *lab = lab_server();
    static char body[20000];
    (void)state;
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    check_true(lab_feed(lab));
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_say(lab, id, 200, false);
        check_true(h2_data(lab->stream[id / 2], body, sizeof body));
    }
    check_eq_u64(h2_held(lab->session), 3 * sizeof body);
    h2_reset(lab->stream[2], H2_CANCEL);
    check_eq_u64(h2_held(lab->session), 2 * sizeof body);
    lab_forget(lab);
    lab_flush(lab, NULL);
    check_eq_str(lab->up, "drained 3; drained 1; ");
    check_eq_u64(h2_held(lab->session), 0);
    lab_free(lab);
}

static void test_h2_frames__padding_is_taken_by_itself(void **state)
{
    struct lab *lab = server_in(OPEN);
    static char padded[256] = "\xff";
    (void)state;
    for (int i = 0; i < 127; i++) {
        lab_frame(lab, LAB_DATA, PADDED, 1, padded, sizeof padded);
    }
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "");
    check_eq_str(lab->down, "");
    lab_frame(lab, LAB_DATA, PADDED, 1, padded, sizeof padded);
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "WINDOW:1=32768 ");
    lab_free(lab);
}

/* A head that is longer than a frame goes in several, and is read again. */
static void test_h2_frames__a_long_head_goes_in_several_frames(void **state)
{
    struct lab *client = lab_new(H2_CLIENT);
    struct lab *server = lab_new(H2_SERVER);
    static char value[60000];
    char room[256];
    struct draft draft;
    (void)state;
    memset(value, '~', sizeof value); /* which Huffman makes longer */
    for (int i = 0; i < 4; i++) {
        lab_flush(client, server);
        lab_flush(server, client);
    }
    draft_begin(&draft, room, sizeof room);
    draft.method = (struct becalm_text){"GET", 3};
    draft.path = (struct becalm_text){"/b", 2};
    draft.authority = (struct becalm_text){"b.example", 9};
    draft_add(&draft, "x-a", (struct becalm_text){value, 16000});
    draft_add(&draft, "x-b", (struct becalm_text){value, 9000});
    draft_add(&draft, "x-c", (struct becalm_text){value, 1000});
    lab_streams[100] = (struct lab_stream){client, 1};
    lab_forget(client);
    check_true(h2_request(client->session, &draft, true, &lab_streams[100]) != NULL);
    lab_flush(client, server);
    check_eq_str(client->down, "HEADERS:1. CONTINUATION ");
    check_eq_str(server->up, "unfit 1 431 end; end 1; "); /* more than a head may have, but the whole head was read */
    lab_free(client);
    lab_free(server);
}

BECALM_TESTS(cmocka_unit_test(test_h2_frames__each_in_each_state),
             cmocka_unit_test(test_h2_frames__a_head_that_nobody_hears_of_keeps_the_tables_right),
             cmocka_unit_test(test_h2_frames__of_every_form_cut_at_every_byte),
             cmocka_unit_test(test_h2_frames__a_head_stands_together),
             cmocka_unit_test(test_h2_frames__settings_come_first), cmocka_unit_test(test_h2_frames__of_a_host),
             cmocka_unit_test(test_h2_frames__answers_are_as_long_as_they_say),
             cmocka_unit_test(test_h2_frames__what_was_never_sent_leaves_no_trace),
             cmocka_unit_test(test_h2_frames__the_first_window_changes_for_open_streams_too),
             cmocka_unit_test(test_h2_frames__streams_take_turns),
             cmocka_unit_test(test_h2_frames__the_connections_window_holds_bodies_back_and_nothing_else),
             cmocka_unit_test(test_h2_frames__what_is_thrown_away_opens_the_connections_window),
             cmocka_unit_test(test_h2_frames__our_windows_count_from_their_acknowledgement_on),
             cmocka_unit_test(test_h2_frames__streams_that_are_over_are_remembered),
             cmocka_unit_test(test_h2_frames__a_first_window_that_is_too_large_needs_no_stream),
             cmocka_unit_test(test_h2_frames__all_that_have_room_again_are_told),
             cmocka_unit_test(test_h2_frames__secrets_enter_no_table),
             cmocka_unit_test(test_h2_frames__a_table_is_resized_when_that_is_acknowledged),
             cmocka_unit_test(test_h2_frames__nothing_comes_for_what_was_never_sent),
             cmocka_unit_test(test_h2_frames__what_was_cancelled_and_never_sent_leaves_no_trace_either),
             cmocka_unit_test(test_h2_frames__whoever_has_an_answer_may_ask_again_at_once),
             cmocka_unit_test(test_h2_frames__an_end_needs_no_window),
             cmocka_unit_test(test_h2_frames__the_first_stream_may_have_the_highest_number),
             cmocka_unit_test(test_h2_frames__what_was_read_is_not_kept),
             cmocka_unit_test(test_h2_frames__names_go_in_lower_case),
             cmocka_unit_test(test_h2_frames__a_body_is_passed_on_without_a_copy),
             cmocka_unit_test(test_h2_frames__nothing_is_passed_on_before_what_waits),
             cmocka_unit_test(test_h2_frames__what_is_passed_on_was_sent),
             cmocka_unit_test(test_h2_frames__padding_is_taken_by_itself),
             cmocka_unit_test(test_h2_frames__a_long_head_goes_in_several_frames))
