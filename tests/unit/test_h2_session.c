/* SPDX-License-Identifier: MIT */
/* Frames of one connection, by hand: docs/http2.md has a row for each of these. */
#include "h2_lab.h"

/* ---- streams ---- */

static void test_h2_session__a_request_and_its_answer(void **state)
{
    (void)state;
    for (size_t step = 1; step < 120; step++) {
        struct lab *lab = lab_new(H2_SERVER);
        lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
        lab_head(lab, 1, LAB_END, LAB_GET "user-agent=x|");
        check_true(lab_feed_by(lab, step));
        check_eq_str(lab->up, "request 1 GET /a end; end 1; ");
        check_eq_str(lab->head, "host=a.example|user-agent=x|");
        lab_forget(lab);
        lab_say(lab, 1, 200, false);
        h2_data(lab->stream[0], "hello", 5);
        h2_end(lab->stream[0], NULL);
        lab_flush(lab, NULL);
        check_eq_str(lab->down, "HEADERS:1 DATA:1=5. ");
        check_eq_str(lab->up, "closed 1 0; ");
        check_eq_u64(h2_stream_count(lab->session), 0);
        lab_free(lab);
    }
}

static void test_h2_session__a_body_with_trailers(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    lab->takes = true;
    lab_head(lab, 1, 0, LAB_POST "te=trailers|");
    lab_frame(lab, LAB_DATA, 0, 1, "abcde", 5);
    lab_head(lab, 1, LAB_END, "x-sum=5|grpc-status=0|");
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "request 1 POST /a; data 1 5; trailers 1 x-sum: 5/ grpc-status: 0/ / ; end 1; ");
    check_true(lab->framing == BODY_OPEN);
    lab_free(lab);
}

static void test_h2_session__streams_are_answered_in_any_order(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    for (int32_t id = 1; id <= 5; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    check_true(lab_feed(lab));
    lab_forget(lab);
    lab_say(lab, 5, 204, true);
    lab_say(lab, 1, 204, true);
    lab_flush(lab, NULL);
    check_eq_str(lab->down, "HEADERS:5. HEADERS:1. ");
    check_eq_u64(h2_stream_count(lab->session), 1);
    lab_free(lab);
}

static void test_h2_session__who_opens_more_streams_than_it_may_is_refused(void **state)
{
    struct lab *lab = lab_new(H2_SERVER); /* the peer has not acknowledged our SETTINGS */
    (void)state;
    lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
    for (int32_t id = 1; id <= 23; id += 2) {
        lab_head(lab, id, LAB_END, LAB_GET);
    }
    check_true(lab_feed(lab));
    check_eq_u64(h2_stream_count(lab->session), 10);
    check_true(strstr(lab->down, "RST:21=7 RST:23=7 ") != NULL);
    lab_free(lab);
}

static void test_h2_session__a_stream_that_its_owner_does_not_want_is_refused(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    lab->refuses = true;
    lab_head(lab, 1, LAB_END, LAB_GET);
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "RST:1=7 ");
    check_eq_str(lab->up, "request 1 GET /a end; ");
    check_eq_u64(h2_stream_count(lab->session), 0);
    lab_free(lab);
}

static void test_h2_session__an_answer_before_the_end_of_the_request_ends_the_upload(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    lab_head(lab, 1, 0, LAB_POST);
    check_true(lab_feed(lab));
    lab_forget(lab);
    lab_say(lab, 1, 413, true);
    h2_abandon(lab->stream[0]);
    lab_flush(lab, NULL);
    check_eq_str(lab->down, "HEADERS:1. RST:1=0 ");
    check_eq_str(lab->up, "");
    check_eq_u64(h2_stream_count(lab->session), 0);
    lab_free(lab);
}

static void test_h2_session__a_reset_is_told_once(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    lab_head(lab, 1, 0, LAB_POST);
    lab_reset(lab, 1, H2_CANCEL);
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "request 1 POST /a; closed 1 8; ");
    check_eq_u64(h2_stream_count(lab->session), 0);
    lab_free(lab);
}

/* ---- windows ---- */

static void test_h2_session__a_body_that_nobody_takes_shuts_its_stream_and_no_other(void **state)
{
    struct lab *lab = lab_server();
    static char body[16384];
    (void)state;
    lab_head(lab, 1, 0, LAB_POST);
    lab_head(lab, 3, 0, LAB_POST);
    for (int i = 0; i < 4; i++) {
        lab_frame(lab, LAB_DATA, 0, 1, body, sizeof body);
    }
    check_true(lab_feed(lab));
    check_true(strstr(lab->down, "WINDOW:1=") == NULL); /* 64 KiB are all that it was given */
    lab_forget(lab);
    lab->takes = true;
    for (int i = 0; i < 4; i++) {
        lab_frame(lab, LAB_DATA, 0, 3, body, sizeof body);
    }
    check_true(lab_feed(lab));
    check_true(strstr(lab->down, "WINDOW:3=") != NULL);
    check_true(strstr(lab->down, "WINDOW:1=") == NULL);
    lab_forget(lab);
    h2_took(lab->stream[0], 65536);
    lab_flush(lab, NULL);
    check_eq_str(lab->down, "WINDOW:1=65536 ");
    lab_free(lab);
}

static void test_h2_session__more_than_the_window_is_the_peers_fault(void **state)
{
    struct lab *lab = lab_server();
    static char body[16384];
    (void)state;
    lab_head(lab, 1, 0, LAB_POST);
    for (int i = 0; i < 5; i++) {
        lab_frame(lab, LAB_DATA, 0, 1, body, sizeof body);
    }
    lab_feed(lab);
    check_true(strstr(lab->down, "RST:1=3 ") != NULL || strstr(lab->down, "GOAWAY=3 ") != NULL);
    lab_free(lab);
}

static void test_h2_session__an_answer_waits_for_the_peers_window_and_blocks_no_other(void **state)
{
    struct lab *lab = lab_server();
    static char body[100000];
    (void)state;
    lab_window(lab, 0, 1u << 20);
    lab_head(lab, 1, LAB_END, LAB_GET);
    lab_head(lab, 3, LAB_END, LAB_GET);
    check_true(lab_feed(lab));
    lab_say(lab, 1, 200, false);
    check_true(h2_data(lab->stream[0], body, sizeof body));
    lab_say(lab, 3, 200, false);
    check_true(h2_data(lab->stream[1], body, 3));
    h2_end(lab->stream[1], NULL);
    lab_forget(lab);
    lab_flush(lab, NULL);
    check_true(strstr(lab->down, "DATA:3=3. ") != NULL);
    check_eq_u64(h2_stream_held(lab->stream[0]), sizeof body - 65535);
    check_true(h2_blocked(lab->stream[0]));
    lab_forget(lab);
    lab_window(lab, 1, 1u << 20);
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "drained 1; ");
    check_true(!h2_blocked(lab->stream[0]));
    check_eq_u64(h2_held(lab->session), 0);
    lab_free(lab);
}

/* ---- going away ---- */

static void test_h2_session__goes_away_in_two_steps(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    lab_head(lab, 1, LAB_END, LAB_GET);
    check_true(lab_feed(lab));
    lab_forget(lab);
    h2_going(lab->session);
    lab_head(lab, 3, 0, LAB_POST); /* it was on its way */
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "GOAWAY=0 PING ");
    h2_goaway(lab->session, H2_NO_ERROR);
    lab_forget(lab);
    lab_frame(lab, LAB_DATA, LAB_END, 3, "x", 1);
    lab_head(lab, 5, LAB_END, LAB_GET); /* and this one did not hear */
    check_true(lab_feed(lab));
    check_eq_str(lab->down, "GOAWAY=0 ");
    check_eq_str(lab->up, "data 3 1; end 3; ");
    lab_say(lab, 1, 204, true);
    lab_say(lab, 3, 204, true);
    lab_flush(lab, NULL);
    check_true(h2_over(lab->session));
    lab_free(lab);
}

/* ---- floods ---- */

/* Feeds the same frames until the session has enough; says how often. */
static uint32_t until_enough(struct lab *lab, void (*make)(struct lab *, uint32_t), uint32_t most)
{
    for (uint32_t i = 0; i < most; i++) {
        lab_forget(lab);
        lab_next_id = 1;
        make(lab, i);
        if (!lab_feed(lab) || h2_ended(lab->session) != H2_END_NONE) {
            check_true(strstr(lab->down, "GOAWAY=11 ") != NULL);
            return i;
        }
    }
    return most;
}

static void make_settings(struct lab *lab, uint32_t i)
{
    (void)i;
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
}

static void make_ping(struct lab *lab, uint32_t i)
{
    (void)i;
    lab_frame(lab, LAB_PING, 0, 0, "12345678", 8);
}

static void make_priority(struct lab *lab, uint32_t i)
{
    lab_frame(lab, LAB_PRIORITY, 0, (int32_t)(2 * i + 1), "\0\0\0\0\1", 5);
}

static void make_unknown(struct lab *lab, uint32_t i)
{
    (void)i;
    lab_frame(lab, 0xbe, 0, 0, "x", 1);
}

static void make_window(struct lab *lab, uint32_t i)
{
    (void)i;
    lab_window(lab, 0, 1);
}

static void make_empty(struct lab *lab, uint32_t i)
{
    if (i == 0) {
        lab_head(lab, 1, 0, LAB_POST);
    }
    lab_frame(lab, LAB_DATA, 0, 1, NULL, 0);
}

static void make_reset(struct lab *lab, uint32_t i)
{
    lab_head(lab, (int32_t)(2 * i + 1), LAB_END, LAB_GET);
    lab_reset(lab, (int32_t)(2 * i + 1), H2_CANCEL);
}

/* A window that opens too far makes the server reset the stream: "made you reset". */
static void make_fault(struct lab *lab, uint32_t i)
{
    lab_head(lab, (int32_t)(2 * i + 1), LAB_END, LAB_GET);
    lab_window(lab, (int32_t)(2 * i + 1), INT32_MAX);
}

static void test_h2_session__floods_are_told_to_calm_down(void **state)
{
    static const struct {
        void (*make)(struct lab *, uint32_t);
        uint32_t enough;
        enum h2_end end;
    } rows[] = {
        {make_settings, 998, H2_END_SETTINGS},   {make_ping, 998, H2_END_PINGS},
        {make_priority, 998, H2_END_PRIORITIES}, {make_unknown, 998, H2_END_UNKNOWN},
        {make_window, 998, H2_END_WINDOWS},      {make_empty, 1000, H2_END_EMPTY},
        {make_reset, 200, H2_END_RESETS},        {make_fault, 200, H2_END_FAULTS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = lab_server(); /* whose two SETTINGS are counted, too */
        uint32_t enough = until_enough(lab, rows[i].make, 2000);
        check_eq_u64(enough, rows[i].enough);
        check_eq_str(h2_end_word(h2_ended(lab->session)), h2_end_word(rows[i].end));
        lab_free(lab);
    }
}

static void test_h2_session__acknowledgements_that_nobody_reads_are_bounded(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    for (int i = 0; i < 900; i++) {
        make_ping(lab, 0);
    }
    check_true(h2_feed(lab->session, lab->in, lab->in_length, lab->now));
    lab->now += 1000 * BECALM_S; /* the guard has forgotten, but nothing was read */
    check_true(!h2_feed(lab->session, lab->in, lab->in_length, lab->now));
    check_eq_str(h2_end_word(h2_ended(lab->session)), "acks");
    lab->in_length = 0;
    lab_free(lab);
}

/* A caller whose calls time out resets all of them; a client that pings as often as it is sent something is at work. */
static void test_h2_session__what_peers_do_is_no_flood(void **state)
{
    struct lab *lab = lab_server();
    (void)state;
    for (uint32_t i = 0; i < 1500; i++) {
        int32_t id = (int32_t)(2 * i + 1);
        lab_next_id = 1;
        lab_head(lab, id, LAB_END, LAB_GET);
        check_true(lab_feed(lab));
        lab->now += 150 * BECALM_MS;
        lab_reset(lab, id, H2_CANCEL);
        check_true(lab_feed(lab));
        lab_forget(lab);
    }
    for (uint32_t i = 1500; i < 3000; i++) {
        int32_t id = (int32_t)(2 * i + 1);
        lab_next_id = 1;
        lab_head(lab, id, LAB_END, LAB_GET);
        make_ping(lab, 0);
        lab_window(lab, 0, 3);
        lab_frame(lab, LAB_PRIORITY, 0, id, "\0\0\0\0\1", 5);
        check_true(lab_feed(lab));
        lab_say(lab, 1, 200, false);
        h2_data(lab->stream[0], "abc", 3);
        h2_end(lab->stream[0], NULL);
        lab_flush(lab, NULL);
        lab_forget(lab);
    }
    lab->takes = true;
    for (uint32_t i = 0; i < 5000; i++) { /* a ping every ten seconds for half a day */
        lab->now += 10 * BECALM_S;
        make_ping(lab, 0);
        check_true(lab_feed(lab));
        lab_forget(lab);
    }
    lab_free(lab);
}

static void test_h2_session__a_head_in_too_many_frames(void **state)
{
    struct lab *lab = lab_server();
    char block[512];
    size_t length = lab_block(block, LAB_GET);
    (void)state;
    lab_frame(lab, LAB_HEADERS, LAB_END, 1, block, length);
    length = lab_block(block, "x-a=b|");
    for (int i = 0; i < 20; i++) {
        lab_frame(lab, LAB_CONTINUATION, 0, 1, block, length);
    }
    check_true(!lab_feed(lab));
    check_eq_str(lab->down, "GOAWAY=11 ");
    check_eq_str(h2_end_word(h2_ended(lab->session)), "continuations");
    check_eq_str(lab->up, "");
    lab_free(lab);
}

/* One entry of the table is large, and each byte behind it stands for it again. */
static void test_h2_session__a_head_that_unpacks_to_much_more_than_it_may(void **state)
{
    struct lab *lab = lab_server();
    static char block[8000];
    size_t length = lab_block(block, LAB_GET);
    (void)state;
    block[length++] = 0x40; /* enters the table */
    block[length++] = 3;
    memcpy(block + length, "x-a", 3);
    length += 3;
    block[length++] = 127;
    block[length++] = (char)(((3000 - 127) % 128) + 128);
    block[length++] = (3000 - 127) / 128;
    memset(block + length, 'x', 3000);
    length += 3000;
    memset(block + length, (char)0xbe, 4000); /* 62, the newest */
    length += 4000;
    lab_frame(lab, LAB_HEADERS, LAB_END | LAB_END_HEADERS, 1, block, length);
    check_true(!lab_feed(lab));
    check_eq_str(lab->down, "GOAWAY=11 ");
    check_eq_str(h2_end_word(h2_ended(lab->session)), "heads");
    lab_free(lab);
}

/* ---- a client's side ---- */

static struct h2_stream *ask(struct lab *lab, int32_t id, bool end)
{
    char room[256];
    struct draft draft;
    draft_begin(&draft, room, sizeof room);
    draft.method = (struct becalm_text){"POST", 4};
    draft.path = (struct becalm_text){"/b", 2};
    draft.authority = (struct becalm_text){"b.example", 9};
    draft_add_chars(&draft, "x-request-id", "7");
    struct lab_stream *owner = &lab_streams[100 + (id - 1) / 2];
    *owner = (struct lab_stream){lab, id};
    lab->stream[(id - 1) / 2] = h2_request(lab->session, &draft, end, owner);
    return lab->stream[(id - 1) / 2];
}

/* Until neither has anything to say. */
static void talk(struct lab *client, struct lab *server)
{
    for (int i = 0; i < 8; i++) {
        lab_flush(client, server);
        lab_flush(server, client);
    }
}

static void test_h2_session__both_sides_understand_each_other(void **state)
{
    struct lab *server = lab_new(H2_SERVER);
    struct lab *client = lab_new(H2_CLIENT);
    static char body[200000];
    (void)state;
    server->takes = client->takes = true;
    talk(client, server);
    check_eq_u64(h2_streams_max(client->session), 10);
    lab_forget(client);
    lab_forget(server);
    struct h2_stream *stream = ask(client, 1, false);
    check_true(h2_data(stream, body, sizeof body));
    h2_end(stream, NULL);
    talk(client, server);
    check_true(strstr(server->up, "request 1 POST /b; data 1 ") != NULL);
    check_true(strstr(server->up, "end 1; ") != NULL);
    check_eq_str(server->head, "host=b.example|(x-request-id=7|");
    static const char trailers[] = "grpc-status: 14\r\nx-why: b c\r\n\r\n";
    static struct head head;
    check_true(h1_parse_trailers(trailers, sizeof trailers - 1, &head).kind == H1_OK);
    lab_say(server, 1, 200, false);
    h2_data(server->stream[0], body, 5);
    h2_end(server->stream[0], &head);
    talk(client, server);
    check_eq_str(client->up,
                 "drained 1; answer 1 200; data 1 5; trailers 1 grpc-status: 14/ x-why: b c/ / ; end 1; closed 1 0; ");
    check_eq_u64(h2_stream_count(client->session) + h2_stream_count(server->session), 0);
    lab_free(client);
    lab_free(server);
}

/* ---- the mark that a field is never indexed ---- */

/* The fields of a head pass, with their marks, and a field that this side writes itself. */
static void draft_of(struct draft *draft, char room[64], const struct head *head)
{
    draft_begin(draft, room, 64);
    draft->method = head_method(head);
    draft->path = head_target(head);
    draft->authority = head_find(head, FIELD_HOST);
    draft->status = head->status;
    draft->passed = head;
    draft->skip = FIELD_BIT(FIELD_HOST) | FIELD_BIT(FIELD_FORWARDED_FOR);
    if (head_has(head, FIELD_FORWARDED_FOR)) {
        draft_add_chars(draft, "x-forwarded-for", "1, 2");
        draft_add_chars(draft, "x-own", "3");
    }
}

/* A head as a session of this role tells it. */
static struct head *head_told(struct lab *lab)
{
    const struct head *head = &lab->scratch.head;
    return head_copy(malloc(head_copy_size(head)), head);
}

static void test_h2_session__a_request_passes_with_its_marks(void **state)
{
    static const struct {
        const char *came;
        const char *up;
        const char *passed;
    } rows[] = {
        {LAB_GET "x=1|", "GET /a", "host=a.example|x=1|"},
        {LAB_GET "(x=1|y=2|", "GET /a", "host=a.example|(x=1|y=2|"},
        {LAB_GET "x=1|(x=1|x=1|", "GET /a", "host=a.example|x=1|(x=1|x=1|"},
        {LAB_GET "(x-empty=|y=|", "GET /a", "host=a.example|(x-empty=|y=|"},
        {LAB_GET "(accept=a|", "GET /a", "host=a.example|(accept=a|"},
        {LAB_GET "(x-forwarded-for=1|y=2|", "GET /a", "host=a.example|y=2|(x-forwarded-for=1, 2|x-own=3|"},
        {LAB_GET "x-forwarded-for=1|(y=2|", "GET /a", "host=a.example|(y=2|x-forwarded-for=1, 2|x-own=3|"},
        {LAB_GET "authorization=a|cookie=b|", "GET /a", "host=a.example|(authorization=a|(cookie=b|"},
        {LAB_GET "(cookie=b|x=1|(cookie=c|(y=2|", "GET /a", "host=a.example|(cookie=b; c|x=1|(y=2|"},
        {LAB_GET "x=1|(host=a.example|y=2|", "GET /a", "host=a.example|x=1|y=2|"},
        {":method=GET|:scheme=http|:path=/a|(host=a.example|y=2|", "GET /a", "(host=a.example|y=2|"},
        {LAB_GET "x-host=a.example|(host=a.example|", "GET /a", "host=a.example|x-host=a.example|"},
        {":method=GET|:scheme=http|:authority=a.example|(:path=/a|x=1|", "GET (/a", "host=a.example|x=1|"},
        {":method=GET|:scheme=http|(:authority=a.example|:path=/a|x=1|", "GET /a", "(host=a.example|x=1|"},
        {"(:method=GET|:scheme=http|:authority=a.example|:path=/|x=1|", "(GET /", "host=a.example|x=1|"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *ours = lab_server();
        struct lab *client = lab_new(H2_CLIENT);
        struct lab *host = lab_new(H2_SERVER);
        char room[64];
        char up[64];
        talk(client, host);
        lab_head(ours, 1, LAB_END, rows[i].came);
        lab_feed(ours);
        struct head *head = head_told(ours);
        for (int32_t id = 1; id < 6; id += 2) { /* the second and the third time others are in the table */
            struct draft draft;
            draft_of(&draft, room, head);
            struct lab_stream *owner = &lab_streams[100 + id];
            *owner = (struct lab_stream){client, id};
            lab_forget(host);
            lab_next_id = id;
            check_true(h2_request(client->session, &draft, true, owner) != NULL);
            talk(client, host);
            snprintf(up, sizeof up, "request %d %s end; end %d; ", id, rows[i].up, id);
            check_eq_str(host->up, up);
            check_eq_str(host->head, rows[i].passed);
        }
        free(head);
        lab_free(ours);
        lab_free(client);
        lab_free(host);
    }
}

/* A 1xx, the answer and its trailers. */
static void test_h2_session__an_answer_passes_with_its_marks(void **state)
{
    struct lab *host = lab_new(H2_CLIENT); /* this side's, and its peer is made by hand */
    struct lab *server = lab_new(H2_SERVER);
    struct lab *client = lab_new(H2_CLIENT);
    char room[64];
    struct draft draft;
    (void)state;
    talk(client, server);
    lab_frame(host, LAB_SETTINGS, 0, 0, NULL, 0);
    lab_feed(host);
    ask(client, 1, true);
    talk(client, server);
    lab_forget(client);
    ask(host, 1, true);
    lab_flush(host, NULL);
    lab_forget(host);
    static const char *const heads[] = {":status=103|(link=a|x=1|", "(:status=200|(x=1|y=|(grpc-status=0|"};
    static const char *const told[] = {"answer 1 103; ", "answer 1 (200; "};
    static const char *const passed[] = {"(link=a|x=1|", "(x=1|y=|(grpc-status=0|"};
    for (size_t i = 0; i < 2; i++) {
        struct lab_stream *owner = &lab_streams[100]; /* of the latest that has asked */
        *owner = (struct lab_stream){host, 1};
        lab_head(host, 1, 0, heads[i]);
        lab_feed(host);
        check_eq_str(host->up, told[i]);
        check_eq_str(host->head, passed[i]);
        lab_forget(host);
        draft_of(&draft, room, &host->scratch.head);
        *owner = (struct lab_stream){client, 1};
        (i == 0 ? h2_interim(server->stream[0], &draft) : h2_answer(server->stream[0], &draft, false));
        talk(client, server);
        check_eq_str(client->up, told[i]);
        check_eq_str(client->head, passed[i]);
        lab_forget(client);
    }
    static const char trailers[] = "x-key:  1\r\nx:1\r\ny: 2\r\nz:\t 3\r\nx-empty:  \r\nX-Upper:  4\r\n\r\n";
    static struct head head;
    check_true(h1_parse_trailers(trailers, sizeof trailers - 1, &head).kind == H1_OK);
    h2_end(server->stream[0], &head);
    talk(client, server);
    check_eq_str(client->up,
                 "trailers 1 x-key:  1/ x: 1/ y: 2/ z:  3/ x-empty:  / x-upper:  4/ / ; end 1; closed 1 0; ");
    lab_free(host);
    lab_free(server);
    lab_free(client);
}

static void test_h2_session__what_the_peer_will_not_look_at_is_refused(void **state)
{
    struct lab *client = lab_new(H2_CLIENT);
    (void)state;
    lab_frame(client, LAB_SETTINGS, 0, 0, NULL, 0);
    check_true(lab_feed(client));
    for (int32_t id = 1; id <= 5; id += 2) {
        ask(client, id, true);
    }
    lab_flush(client, NULL);
    lab_forget(client);
    lab_frame(client, LAB_GOAWAY, 0, 0, "\0\0\0\3\0\0\0\0", 8); /* 3 was the last that it will look at */
    check_true(lab_feed(client));
    check_true(strstr(client->up, "closed 5 7; ") != NULL);
    check_true(strstr(client->up, "closed 3") == NULL);
    check_true(strstr(client->up, "goaway 0; ") != NULL);
    lab_free(client);
}

static void test_h2_session__a_request_that_waits_when_the_peer_goes_away_was_never_sent(void **state)
{
    struct lab *client = lab_new(H2_CLIENT);
    (void)state;
    lab_frame(client, LAB_SETTINGS, 0, 0, NULL, 0);
    check_true(lab_feed(client));
    lab_flush(client, NULL);
    struct h2_stream *stream = ask(client, 1, true);
    check_true(!h2_sent(stream)); /* it is not written yet */
    lab_forget(client);
    lab_frame(client, LAB_GOAWAY, 0, 0, "\x7f\xff\xff\xff\0\0\0\0", 8);
    check_true(lab_feed(client));
    lab_flush(client, NULL);
    check_true(strstr(client->up, "closed 1 7; ") != NULL);
    check_eq_u64(h2_stream_count(client->session), 0);
    lab_free(client);
}

static void test_h2_session__a_stream_that_is_left_gets_no_window(void **state)
{
    struct lab *server = lab_new(H2_SERVER);
    struct lab *client = lab_new(H2_CLIENT);
    static char body[200000];
    (void)state;
    talk(client, server);
    struct h2_stream *stream = ask(client, 1, true);
    talk(client, server);
    check_true(h2_sent(stream) && h2_said_all(stream));
    h2_leave(stream);
    lab_say(server, 1, 200, false);
    check_true(h2_data(server->stream[0], body, sizeof body));
    h2_end(server->stream[0], NULL);
    talk(client, server);
    check_eq_u64(h2_stream_held(server->stream[0]), sizeof body - 65536);
    check_eq_u64(h2_stream_count(client->session), 1); /* and keeps its place */
    lab_free(client);
    lab_free(server);
}

/* ---- its memory ---- */

static struct h2_calls freeing;
static void *free_at_request(void *owner, struct h2_stream *stream, const struct head *head, bool end)
{
    struct lab *lab = owner;
    (void)stream;
    (void)head;
    (void)end;
    h2_session_free(lab->session);
    lab->session = NULL;
    return NULL;
}

static void test_h2_session__may_be_freed_by_what_it_tells(void **state)
{
    struct lab *lab = calloc(1, sizeof *lab);
    (void)state;
    freeing = lab_calls;
    freeing.request = free_at_request;
    lab->scratch.bytes = lab->room;
    lab->scratch.size = sizeof lab->room;
    lab->session = h2_session_new(H2_SERVER, &lab_limits, &freeing, lab, &lab->scratch);
    lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
    lab_head(lab, 1, LAB_END, LAB_GET);
    lab_head(lab, 3, LAB_END, LAB_GET);
    check_true(!h2_feed(lab->session, lab->in, lab->in_length, BECALM_S));
    check_true(lab->session == NULL);
    free(lab);
}

BECALM_TESTS(cmocka_unit_test(test_h2_session__a_request_and_its_answer),
             cmocka_unit_test(test_h2_session__a_body_with_trailers),
             cmocka_unit_test(test_h2_session__streams_are_answered_in_any_order),
             cmocka_unit_test(test_h2_session__who_opens_more_streams_than_it_may_is_refused),
             cmocka_unit_test(test_h2_session__a_stream_that_its_owner_does_not_want_is_refused),
             cmocka_unit_test(test_h2_session__an_answer_before_the_end_of_the_request_ends_the_upload),
             cmocka_unit_test(test_h2_session__a_reset_is_told_once),
             cmocka_unit_test(test_h2_session__a_body_that_nobody_takes_shuts_its_stream_and_no_other),
             cmocka_unit_test(test_h2_session__more_than_the_window_is_the_peers_fault),
             cmocka_unit_test(test_h2_session__an_answer_waits_for_the_peers_window_and_blocks_no_other),
             cmocka_unit_test(test_h2_session__goes_away_in_two_steps),
             cmocka_unit_test(test_h2_session__floods_are_told_to_calm_down),
             cmocka_unit_test(test_h2_session__acknowledgements_that_nobody_reads_are_bounded),
             cmocka_unit_test(test_h2_session__what_peers_do_is_no_flood),
             cmocka_unit_test(test_h2_session__a_head_in_too_many_frames),
             cmocka_unit_test(test_h2_session__a_head_that_unpacks_to_much_more_than_it_may),
             cmocka_unit_test(test_h2_session__both_sides_understand_each_other),
             cmocka_unit_test(test_h2_session__a_request_passes_with_its_marks),
             cmocka_unit_test(test_h2_session__an_answer_passes_with_its_marks),
             cmocka_unit_test(test_h2_session__what_the_peer_will_not_look_at_is_refused),
             cmocka_unit_test(test_h2_session__a_request_that_waits_when_the_peer_goes_away_was_never_sent),
             cmocka_unit_test(test_h2_session__a_stream_that_is_left_gets_no_window),
             cmocka_unit_test(test_h2_session__may_be_freed_by_what_it_tells))
