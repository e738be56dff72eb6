/* SPDX-License-Identifier: MIT */
/* Two sessions of HTTP/2 that talk with each other, while each of their allocations fails in turn. Either the session
 * that had no memory is over, or the streams that it had none for are, and their owners are told: no stream waits for
 * ever, no part of a body is lost between two others, and no memory is left behind. */
#include "allocator.h"
#include "check.h"

#include "h2/h2.h"

static bool failed;
#if BECALM_OWN_ALLOCATOR
static bool counts; /* allocations count for the sessions from here on */
static uint32_t before_failure;
static int64_t alive;

static bool refuse(void)
{
    if (!counts || before_failure == 0 || --before_failure > 0) {
        return false;
    }
    failed = true;
    return true;
}

static void *count(void *memory)
{
    alive += counts && memory != NULL;
    return memory;
}

BECALM_VISIBLE void *malloc(size_t size)
{
    return refuse() ? NULL : count(__libc_malloc(size));
}

BECALM_VISIBLE void *calloc(size_t number, size_t size)
{
    return refuse() ? NULL : count(__libc_calloc(number, size));
}

BECALM_VISIBLE void *realloc(void *memory, size_t size)
{
    if (refuse()) {
        return NULL;
    }
    return memory == NULL ? count(__libc_malloc(size)) : __libc_realloc(memory, size);
}

BECALM_VISIBLE void free(void *memory)
{
    alive -= counts && memory != NULL;
    __libc_free(memory);
}
#endif

enum { WITH_TRAILERS, BODILESS, LARGE_HEAD, GOES_ON, WAITS, CALLS };
#define BODY  40000u
#define PIECE 33u /* bytes that are fed at once: heads come in parts */

/* A request, as both sides know it. */
struct call {
    struct h2_stream *client; /* NULL: it is over there */
    struct h2_stream *server;
    size_t came; /* of the body, at the server */
    size_t got;  /* of the answer's */
    bool asked;
    bool trailers; /* those of the answer have come */
    bool ended;    /* all of the answer has */
    bool lost;     /* its owner knows that it has none */
};
static struct call calls[CALLS];
static char body[BODY];
static struct head trailers;

static struct draft *draft_of(struct draft *draft, char room[256], uint32_t number)
{
    static const char *const paths[CALLS] = {"/0", "/1", "/2", "/3", "/4"};
    static char value[5000];
    memset(value, 'v', sizeof value);
    draft_begin(draft, room, 256);
    draft->method = (struct becalm_text){"POST", 4};
    draft->path = (struct becalm_text){paths[number], 2};
    draft->authority = (struct becalm_text){"b.example", 9};
    draft->status = 200;
    draft_add(draft, "x-a", (struct becalm_text){value, number == LARGE_HEAD ? sizeof value : 10});
    return draft;
}

/* ---- the server ---- */

static void *on_request(void *owner, struct h2_stream *stream, const struct head *head, bool end)
{
    struct call *call = &calls[head_target(head).at[1] - '0'];
    (void)owner;
    (void)end;
    call->server = stream;
    return call;
}

static void *on_unfit(void *owner, struct h2_stream *stream, struct h1_verdict verdict, bool end)
{
    (void)owner;
    (void)stream;
    (void)verdict;
    (void)end;
    fail();
    return NULL;
}

static void on_asked(void *owner, const char *bytes, size_t length)
{
    struct call *call = owner;
    (void)bytes;
    call->came += length;
    h2_took(call->server, length);
}

static void on_request_trailers(void *owner, const char *bytes, size_t length)
{
    (void)owner;
    (void)bytes;
    check_true(length > 2);
}

static void say(struct h2_stream **stream, const struct head *behind)
{
    if (h2_data(*stream, body, BODY)) {
        h2_end(*stream, behind);
    } else {
        h2_reset(*stream, H2_INTERNAL_ERROR);
        *stream = NULL;
    }
}

static void on_request_end(void *owner)
{
    struct call *call = owner;
    uint32_t number = (uint32_t)(call - calls);
    char room[256];
    struct draft draft;
    check_true(number == BODILESS || call->came == BODY);
    draft_of(&draft, room, number)->status = 103;
    h2_interim(call->server, &draft);
    h2_answer(call->server, draft_of(&draft, room, number), number == BODILESS);
    if (number != BODILESS) {
        say(&call->server, number == WITH_TRAILERS ? &trailers : NULL);
    }
}

static void on_server_closed(void *owner, uint32_t code)
{
    struct call *call = owner;
    (void)code;
    call->server = NULL;
}

/* ---- the client ---- */

static void on_answer(void *owner, const struct head *head, bool end)
{
    struct call *call = owner;
    (void)end;
    check_true(!call->lost && (head->status == 103 || head->status == 200));
}

static void on_broken(void *owner, const char *rule)
{
    (void)owner;
    (void)rule;
    fail();
}

static void on_data(void *owner, const char *bytes, size_t length)
{
    struct call *call = owner;
    (void)bytes;
    check_true(!call->lost);
    call->got += length;
    h2_took(call->client, length);
}

static void on_trailers(void *owner, const char *bytes, size_t length)
{
    struct call *call = owner;
    check_true(length > 2 && memcmp(bytes, "x-sum: 5\r\n", 10) == 0);
    call->trailers = true;
}

static void on_end(void *owner)
{
    struct call *call = owner;
    uint32_t number = (uint32_t)(call - calls);
    check_eq_u64(call->got, number == BODILESS ? 0 : BODY); /* a message that is reported as complete is complete */
    check_true(call->trailers == (number == WITH_TRAILERS));
    call->ended = true;
}

static void on_closed(void *owner, uint32_t code)
{
    struct call *call = owner;
    check_true(!call->lost && call->client != NULL);
    call->client = NULL;
    call->lost = code != H2_NO_ERROR;
    check_true(call->lost || call->ended);
}

static void on_drained(void *owner)
{
    (void)owner;
}

static const struct h2_calls server_calls = {
    .request = on_request,
    .unfit = on_unfit,
    .data = on_asked,
    .trailers = on_request_trailers,
    .end = on_request_end,
    .drained = on_drained,
    .closed = on_server_closed,
};
static const struct h2_calls client_calls = {
    .answer = on_answer,
    .broken = on_broken,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .drained = on_drained,
    .closed = on_closed,
};

/* ---- both ---- */

static char heads[2 * 8192 + 64];
static struct h2_scratch scratch = {.bytes = heads, .size = sizeof heads};
static struct h2_session *client;
static struct h2_session *server;

/* Passes the output of one session to the other. False: there is none, or one session is over. */
static bool pass(struct h2_session *from, struct h2_session *to)
{
    static char out[H2_WRITE_MIN];
    size_t length = h2_write(from, out, sizeof out);
    bool goes_on = length > 0;
    for (size_t at = 0; goes_on && at < length; at += PIECE) {
        goes_on = h2_feed(to, out + at, length - at < PIECE ? length - at : PIECE, BECALM_S);
    }
    return goes_on;
}

static void talk(void)
{
    bool more = true;
    while (more) {
        more = pass(client, server);
        more |= pass(server, client);
    }
}

static void ask(uint32_t number, const struct head *behind, bool ends)
{
    struct call *call = &calls[number];
    char room[256];
    struct draft draft;
    call->asked = true;
    call->client = h2_request(client, draft_of(&draft, room, number), number == BODILESS, call);
    call->lost = call->client == NULL;
    if (!call->lost && number != BODILESS && ends) {
        say(&call->client, behind);
        call->lost = call->client == NULL;
    }
}

/* All kinds of calls, and a host that goes away while one goes on and another waits. */
static void converse(void)
{
    talk();
    ask(WITH_TRAILERS, &trailers, true);
    ask(BODILESS, NULL, true);
    talk();
    ask(LARGE_HEAD, NULL, true);
    ask(GOES_ON, NULL, false);
    talk();
    h2_ping(client);
    ask(WAITS, NULL, true);
    h2_going(server);
    (void)pass(server, client);
    if (calls[GOES_ON].client != NULL) {
        say(&calls[GOES_ON].client, &trailers);
        calls[GOES_ON].lost = calls[GOES_ON].client == NULL;
    }
    talk();
    h2_goaway(server, H2_NO_ERROR);
    talk();
}

/* A session that goes on has forgotten no stream. */
static void check_calls(void)
{
    bool over = h2_ended(client) != H2_END_NONE || h2_ended(server) != H2_END_NONE;
    for (uint32_t i = 0; i < CALLS; i++) {
        check_true(calls[i].asked && !(calls[i].ended && calls[i].lost));
        check_true(over || calls[i].ended || calls[i].lost);
        check_true(failed || calls[i].ended == (i != WAITS)); /* with memory all but the last are answered */
    }
    check_true(over || h2_held(client) + h2_held(server) == 0);
    check_true(failed || (h2_over(client) && h2_over(server)));
}

static void run(void)
{
    static const struct h2_limits limits = {.streams = 10, .window = 65536, .head_bytes = 8192};
    memset(calls, 0, sizeof calls);
    client = h2_session_new(H2_CLIENT, &limits, &client_calls, NULL, &scratch);
    server = h2_session_new(H2_SERVER, &limits, &server_calls, NULL, &scratch);
    if (client != NULL && server != NULL) {
        converse();
        check_calls();
    } else {
        check_true(failed);
    }
    if (client != NULL) {
        h2_session_free(client);
    }
    if (server != NULL) {
        h2_session_free(server);
    }
}

static void test_h2_memory__any_allocation_may_fail(void **state)
{
    static const char text[] = "x-sum: 5\r\n\r\n";
    (void)state;
    check_true(h1_parse_trailers(text, sizeof text - 1, &trailers).kind == H1_OK);
    memset(body, 'b', sizeof body);
#if BECALM_OWN_ALLOCATOR
    uint32_t failures = 0;
    do {
        failed = false;
        alive = 0;
        before_failure = failures + 1;
        counts = true;
        run();
        counts = false;
        check_eq_u64((uint64_t)alive, 0);
        failures += failed;
    } while (failed);
    check_between_u64(failures, 50, 5000); /* it has tried something */
#else
    run(); /* at least the sanitizers look on */
#endif
}

BECALM_TESTS(cmocka_unit_test(test_h2_memory__any_allocation_may_fail))
