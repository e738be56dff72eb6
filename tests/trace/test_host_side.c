/* SPDX-License-Identifier: MIT */
/* Exchanges between two fake sides: neither the client nor the host has a socket or a protocol. The events of each side
 * go into one trace, in their order; the clock is the lab's. */
#include "exchange_lab.h"

#include "check.h"
#include "proxy/exchange/exchange.h"
#include "proxy/host/upstream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MS  BECALM_MS
#define TWO "services: {a: {hosts: ['%s', '%s'], match: {prefix: /}}}\n"

#define STREAMS 8

/* Both sides. The host's streams are numbered as they are asked for. */
struct fake {
    struct lab lab;
    struct client_stream asker;
    bool client_blocked;
    struct host_stream *stream[STREAMS]; /* NULL: it is over */
    uint32_t streams;
    bool later;        /* the pool has no connection yet */
    bool host_blocked; /* the host does not read */
    char trace[4096];
    size_t length;
};

static struct fake fake;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(fake.trace + fake.length, sizeof fake.trace - fake.length, format, arguments);
    va_end(arguments);
    check_true(length > 0 && (size_t)length < sizeof fake.trace - fake.length);
    fake.length += (size_t)length;
}

static void note_pieces(const struct stream_part *part)
{
    for (int i = 0; i < part->pieces->count; i++) {
        note(" '%.*s'", (int)part->pieces->piece[i].length, part->pieces->piece[i].at);
    }
    for (uint32_t i = 0; part->trailers != NULL && i < part->trailers->field_count; i++) {
        struct becalm_text name = field_name(part->trailers, &part->trailers->field[i]);
        note(" trailer %.*s", (int)name.length, name.at);
    }
    note(part->ended ? " ended\n" : "\n");
}

/* ---- the client's side ---- */

static bool asker_begin(struct client_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    (void)stream;
    note("client: %u", draft->status);
    note_pieces(part);
    return true;
}

static bool asker_more(struct client_stream *stream, const struct stream_part *part)
{
    (void)stream;
    note("client: more");
    note_pieces(part);
    return true;
}

static bool asker_interim(struct client_stream *stream, const struct draft *draft)
{
    (void)stream;
    note("client: interim %u\n", draft->status);
    return true;
}

static bool asker_blocked(const struct client_stream *stream)
{
    (void)stream;
    return fake.client_blocked;
}

static void asker_nothing(struct client_stream *stream)
{
    (void)stream;
}

static void asker_took(struct client_stream *stream)
{
    (void)stream;
    note("client: took\n");
}

static bool asker_left(const struct client_stream *stream)
{
    (void)stream;
    return false;
}

static void asker_done(struct client_stream *stream, bool keep)
{
    (void)stream;
    note(keep ? "client: done\n" : "client: done, the last\n");
}

static void asker_cut(struct client_stream *stream)
{
    note("client: cut\n");
    if (stream->exchange != NULL) {
        exchange_cancel(stream->exchange);
    }
}

static uint64_t asker_identity(const struct client_stream *stream)
{
    (void)stream;
    return 7;
}

static bool asker_trusted(struct client_stream *stream)
{
    (void)stream;
    return false;
}

static void asker_origin(struct client_stream *stream, struct origin *origin)
{
    (void)stream;
    *origin = (struct origin){0};
}

static struct becalm_text asker_peer(const struct client_stream *stream, char *text, size_t size)
{
    (void)stream, (void)text, (void)size;
    return (struct becalm_text){"192.0.2.1", 9};
}

static struct host_owner asker_owner(struct client_stream *stream)
{
    (void)stream;
    return (struct host_owner){0};
}

static const struct client_stream_ops asker_ops = {
    .begin = asker_begin,
    .more = asker_more,
    .interim = asker_interim,
    .blocked = asker_blocked,
    .moves = asker_nothing,
    .took = asker_took,
    .began = asker_nothing,
    .left = asker_left,
    .done = asker_done,
    .cut = asker_cut,
    .identity = asker_identity,
    .trusted = asker_trusted,
    .origin = asker_origin,
    .peer = asker_peer,
    .owner = asker_owner,
};

/* ---- the host's side ---- */

static uint32_t number_of(const struct host_stream *stream)
{
    uint32_t number = fake.streams;
    while (number > 0 && fake.stream[number - 1] != stream) {
        number--;
    }
    check_true(number > 0);
    return number;
}

static bool host_send(struct host_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    note("host %u: %.*s %.*s", number_of(stream), (int)draft->method.length, draft->method.at, (int)draft->path.length,
         draft->path.at);
    note_pieces(part);
    return true;
}

static bool host_more(struct host_stream *stream, const struct stream_part *part)
{
    note("host %u: more", number_of(stream));
    note_pieces(part);
    return true;
}

static bool host_blocked(const struct host_stream *stream)
{
    (void)stream;
    return fake.host_blocked;
}

static size_t host_held(const struct host_stream *stream)
{
    (void)stream;
    return 0;
}

static void host_resume(struct host_stream *stream)
{
    note("host %u: resume\n", number_of(stream));
}

static void host_drop(struct host_stream *stream)
{
    note("host %u: dropped\n", number_of(stream));
    fake.stream[number_of(stream) - 1] = NULL;
    host_stream_over(stream);
}

static const struct host_stream_ops host_ops = {
    .send = host_send,
    .more = host_more,
    .blocked = host_blocked,
    .held = host_held,
    .resume = host_resume,
    .drop = host_drop,
};

static enum upstream_result host_get(struct upstream_host *host, struct host_stream *stream)
{
    check_true(fake.streams < STREAMS);
    fake.stream[fake.streams++] = stream;
    stream->host = host;
    stream->ops = &host_ops;
    return fake.later ? UPSTREAM_LATER : UPSTREAM_READY;
}

/* The next message of the host ends the stream. */
static struct host_stream *host_over(uint32_t number)
{
    struct host_stream *stream = fake.stream[number - 1];
    check_true(stream != NULL);
    fake.stream[number - 1] = NULL;
    host_stream_over(stream);
    return stream;
}

static void host_says(uint32_t number, uint32_t status, const char *body, bool ended)
{
    static struct head head;
    struct host_stream *stream = ended ? host_over(number) : fake.stream[number - 1];
    struct pieces pieces = {.count = *body != '\0', .bytes = strlen(body)};
    pieces.piece[0] = (struct becalm_text){body, pieces.bytes};
    if (status == 0) {
        stream->calls->body(stream, &pieces, ended);
    } else {
        head = (struct head){.bytes = "", .status = status, .version = HTTP_2, .framing = BODY_OPEN};
        stream->calls->head(stream, &head, &pieces, ended);
    }
    lab_settle(&fake.lab);
}

static void host_fails(uint32_t number, struct host_failure failure)
{
    struct host_stream *stream = host_over(number);
    stream->calls->failed(stream, &failure);
    lab_settle(&fake.lab);
}

/* ---- both ---- */

static void begin(const char *policy)
{
    memset(&fake, 0, sizeof fake);
    check_true(lab_open(&fake.lab, policy));
    const struct view *view = fake.lab.worker->view;
    view->host[0]->get = view->host[1]->get = host_get;
    fake.asker.ops = &asker_ops;
}

static void end(const char *trace)
{
    lab_settle(&fake.lab);
    check_eq_str(fake.trace, trace);
    check_eq_u64(fake.lab.worker->exchange_count, 0);
    for (uint32_t i = 0; i < fake.streams; i++) {
        check_true(fake.stream[i] == NULL);
    }
    lab_close(&fake.lab);
}

static void asks(const char *method, enum body_framing framing)
{
    static struct head head;
    static char bytes[32];
    int length = snprintf(bytes, sizeof bytes, "%s/a", method);
    head = (struct head){.bytes = bytes, .length = (uint32_t)length, .version = HTTP_2, .keep_alive = true};
    head.method_length = head.target = (uint32_t)length - 2;
    head.target_length = 2;
    head.framing = framing;
    exchange_open(fake.lab.worker, &fake.asker, &head);
    lab_settle(&fake.lab);
}

static void body(const char *text, bool ended)
{
    check_true(exchange_body(fake.asker.exchange, (struct becalm_text){text, strlen(text)}));
    exchange_body_came(fake.asker.exchange, ended);
    lab_settle(&fake.lab);
}

static void test_host_side__a_healthy_request(void **state)
{
    (void)state;
    begin(TWO);
    asks("GET", BODY_NONE);
    host_says(1, 200, "hello", true);
    end("host 1: GET /a ended\n"
        "client: 200 'hello' ended\n"
        "client: done\n");
}

static void test_host_side__a_failed_answer_is_retried_elsewhere_and_the_good_one_passes(void **state)
{
    (void)state;
    begin(TWO);
    asks("GET", BODY_NONE);
    host_says(1, 503, "down", true);
    lab_pass(&fake.lab, 5 * BECALM_S);
    host_says(2, 200, "up", false);
    host_says(2, 0, "!", true);
    end("host 1: GET /a ended\n"
        "host 2: GET /a ended\n"
        "client: 200 'up'\n"
        "client: more '!' ended\n"
        "client: done\n");
}

static void test_host_side__a_stale_connection_is_redone_at_once(void **state)
{
    (void)state;
    begin(TWO);
    asks("POST", BODY_NONE);
    host_fails(1, (struct host_failure){.failure = BECALM_HTTP_RESET_BEFORE_REQUEST, .unsent = true, .stale = true});
    check_true(fake.stream[1]->fresh);
    host_says(2, 204, "", true);
    end("host 1: POST /a ended\n"
        "host 2: POST /a ended\n"
        "client: 204 ended\n"
        "client: done\n");
}

static void test_host_side__a_body_that_streamed_is_not_sent_again_though_the_host_never_saw_it(void **state)
{
    (void)state;
    begin("replay: {perRequest: 1}\n" TWO);
    asks("PUT", BODY_OPEN);
    body("abc", false);
    host_fails(1, (struct host_failure){.failure = BECALM_HTTP_REFUSED_STREAM, .unsent = true, .stale = true});
    end("host 1: PUT /a 'abc'\n"
        "client: took\n"
        "client: 502 '{\"type\":\"tag:becalm,2026:not_replayable\",\"title\":\"the request's body can't be sent "
        "again\","
        "\"reason\":\"not_replayable\",\"attempts\":1,\"status\":502}\n' ended\n"
        "client: done, the last\n");
}

static void test_host_side__an_upload_waits_for_its_host_and_the_answer_for_its_client(void **state)
{
    (void)state;
    begin("replay: {perRequest: 1}\n" TWO);
    asks("PUT", BODY_OPEN);
    fake.host_blocked = true;
    body("abc", false);
    check_true(!exchange_wants_body(fake.asker.exchange));
    fake.host_blocked = false;
    fake.stream[0]->calls->drained(fake.stream[0]);
    body("de", true);
    host_says(1, 200, "x", false);
    fake.client_blocked = true;
    check_true(fake.stream[0]->calls->full(fake.stream[0]));
    fake.client_blocked = false;
    exchange_unblocked(fake.asker.exchange);
    host_says(1, 0, "y", true);
    end("host 1: PUT /a 'abc'\n"
        "client: took\n"
        "host 1: more 'de' ended\n"
        "client: 200 'x'\n"
        "host 1: resume\n"
        "client: more 'y' ended\n"
        "client: done\n");
}

static void test_host_side__what_nobody_waits_for_is_dropped(void **state)
{
    (void)state;
    begin(TWO);
    fake.later = true;
    asks("GET", BODY_NONE);
    exchange_cancel(fake.asker.exchange);
    fake.later = false;
    asks("GET", BODY_NONE);
    exchange_cancel(fake.asker.exchange);
    end("host 1: dropped\n"
        "host 2: GET /a ended\n"
        "host 2: dropped\n");
}

static void test_host_side__a_cut_answer_is_cut_for_the_client(void **state)
{
    (void)state;
    begin(TWO);
    asks("GET", BODY_NONE);
    host_says(1, 200, "he", false);
    host_fails(1, (struct host_failure){.failure = BECALM_HTTP_CUT});
    end("host 1: GET /a ended\n"
        "client: 200 'he'\n"
        "client: cut\n");
}

BECALM_TESTS(cmocka_unit_test(test_host_side__a_healthy_request),
             cmocka_unit_test(test_host_side__a_failed_answer_is_retried_elsewhere_and_the_good_one_passes),
             cmocka_unit_test(test_host_side__a_stale_connection_is_redone_at_once),
             cmocka_unit_test(test_host_side__a_body_that_streamed_is_not_sent_again_though_the_host_never_saw_it),
             cmocka_unit_test(test_host_side__an_upload_waits_for_its_host_and_the_answer_for_its_client),
             cmocka_unit_test(test_host_side__what_nobody_waits_for_is_dropped),
             cmocka_unit_test(test_host_side__a_cut_answer_is_cut_for_the_client))
