/* SPDX-License-Identifier: MIT */
/* Golden timelines of exchanges with hosts that speak HTTP/2, as test_exchanges.c has them of HTTP/1: cases in which
 * time must pass. The hosts are played by frames; tests/e2e/test_h2_hosts.py has real ones. */
#include "exchange_lab.h"

#include "check.h"

#define MS BECALM_MS
#define S  BECALM_S

#define ONE                                                                                                 \
    "pool: {idle: 300s}\nidleTimeout: 600s\n"                                                               \
    "services: {a: {hosts: ['%s'], match: {prefix: /}, protocol: h2, attemptTimeout: 300s, deadline: none," \
    " retryOn: [5xx, reset, unavailable, unknown], initialDelay: 0}}\n"
#define LONG                                   \
    "pool: {idle: 300s}\nidleTimeout: 2000s\n" \
    "services: {a: {hosts: ['%s'], match: {prefix: /}, protocol: h2, attemptTimeout: 1000s, deadline: none}}\n"
#define GET "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define CALL                                                                                                 \
    "POST /a HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nContent-Type: application/grpc\r\nContent-Length: 5\r\n" \
    "Idempotency-Key: k\r\n\r\n\0\0\0\0\0"

/* Frames: a length of one byte, a kind, flags and a stream of one byte. */
#define FRAME(length, kind, flags, stream) "\0\0" length kind flags "\0\0\0" stream
#define SETTINGS                           FRAME("\0", "\4", "\0", "\0")
#define SETTINGS_ACK                       FRAME("\0", "\4", "\1", "\0")
#define OK_END(stream)                     FRAME("\1", "\1", "\5", stream) "\x88" /* :status 200 */
#define PONG                               FRAME("\10", "\6", "\1", "\0") "becalm!!"
#define OK(stream)                         FRAME("\1", "\1", "\4", stream) "\x88"
#define X(stream)                          FRAME("\1", "\0", "\0", stream) "x"
#define REFUSED(stream)                    FRAME("\4", "\3", "\0", stream) "\0\0\0\7"
#define GONE                               FRAME("\10", "\7", "\0", "\0") "\0\0\0\0\0\0\0\0"
/* :status 200, content-type: application/grpc; then grpc-status in trailers. */
#define GRPC_HEAD(stream)            \
    FRAME("\23", "\1", "\4", stream) \
    "\x88\x5f\x10"                   \
    "application/grpc"
#define GRPC_OK(stream)              \
    FRAME("\17", "\1", "\5", stream) \
    "\x10\x0b"                       \
    "grpc-status\x01"                \
    "0"
#define GRPC_FAILED(stream)          \
    FRAME("\20", "\1", "\5", stream) \
    "\x10\x0b"                       \
    "grpc-status\x02"                \
    "14"

#define SAYS(lab, host, frames) lab_host_says_bytes(lab, host, frames, sizeof(frames) - 1)

static void lab_expect(struct lab *lab, const char *trace)
{
    check_eq_str(lab->trace, trace);
    lab_close(lab);
}

/* A client with a request, and a host that has sent its SETTINGS. */
static void lab_begin(struct lab *lab, const char *policy, const char *request, size_t length)
{
    check_true(lab_open(lab, policy));
    lab_client(lab);
    lab_client_says_bytes(lab, 1, request, length);
    SAYS(lab, 1, SETTINGS SETTINGS_ACK);
}

#define BEGUN                                                        \
    "[  0ms] client 1 says GET /a\n"                                 \
    "[  0ms] host a1 hears SETTINGS, WINDOW_UPDATE, HEADERS 1 end\n" \
    "[  0ms] host a1 says SETTINGS, SETTINGS ack\n"                  \
    "[  0ms] host a1 hears SETTINGS ack\n"

static void test_exchange_h2__a_silent_connection_is_asked_after_10s_and_lost_5s_later(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET, sizeof GET - 1);
    lab_pass(&lab, 20 * S);
    SAYS(&lab, 2, SETTINGS SETTINGS_ACK OK_END("\1"));
    lab_expect(&lab, BEGUN "[10000ms] host a1 hears PING\n"
                           "[15000ms] host a1 hears the end\n"
                           "[15000ms] host a2 hears SETTINGS, WINDOW_UPDATE, HEADERS 1 end\n"
                           "[20000ms] host a2 says SETTINGS, SETTINGS ack, HEADERS 1 end\n"
                           "[20000ms] client 1 hears 200\n"
                           "[20000ms] host a2 hears SETTINGS ack\n");
}

/* Once in five minutes: servers of gRPC end a connection by too_many_pings that asks much more often. */
static void test_exchange_h2__a_host_that_answers_a_ping_may_take_its_time(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, LONG, GET, sizeof GET - 1);
    lab_pass(&lab, 12 * S);
    SAYS(&lab, 1, PONG);
    lab_pass(&lab, 313 * S);
    SAYS(&lab, 1, PONG);
    lab_pass(&lab, 30 * S);
    SAYS(&lab, 1, OK_END("\1"));
    lab_expect(&lab, BEGUN "[10000ms] host a1 hears PING\n"
                           "[12000ms] host a1 says PING ack\n"
                           "[322000ms] host a1 hears PING\n"
                           "[325000ms] host a1 says PING ack\n"
                           "[355000ms] host a1 says HEADERS 1 end\n"
                           "[355000ms] client 1 hears 200\n");
}

/* At most three times, however many requests come: two are too early for gRPC, and a third would end the connection. */
static void test_exchange_h2__a_host_that_answers_pings_alone_is_asked_again_for_new_requests(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, LONG, GET, sizeof GET - 1);
    lab_pass(&lab, 11 * S);
    for (uint32_t i = 2; i <= 4; i++) {
        SAYS(&lab, 1, PONG);
        lab_pass(&lab, S);
        lab_client(&lab);
        lab_client_says(&lab, i, GET);
        lab_pass(&lab, i < 4 ? 20 * S : 60 * S);
    }
    SAYS(&lab, 1, OK_END("\1")); /* which restarts it, for the three that wait */
    lab_pass(&lab, 11 * S);
    SAYS(&lab, 1, PONG);
    lab_expect(&lab, BEGUN "[10000ms] host a1 hears PING\n"
                           "[11000ms] host a1 says PING ack\n"
                           "[12000ms] client 2 says GET /a\n"
                           "[12000ms] host a1 hears HEADERS 3 end\n"
                           "[31000ms] host a1 hears PING\n"
                           "[32000ms] host a1 says PING ack\n"
                           "[33000ms] client 3 says GET /a\n"
                           "[33000ms] host a1 hears HEADERS 5 end\n"
                           "[52000ms] host a1 hears PING\n"
                           "[53000ms] host a1 says PING ack\n"
                           "[54000ms] client 4 says GET /a\n"
                           "[54000ms] host a1 hears HEADERS 7 end\n"
                           "[114000ms] host a1 says HEADERS 1 end\n"
                           "[114000ms] client 1 hears 200\n"
                           "[124000ms] host a1 hears PING\n"
                           "[125000ms] host a1 says PING ack\n");
}

static void test_exchange_h2__whatever_a_host_says_shows_that_it_lives(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET, sizeof GET - 1);
    for (int i = 0; i < 3; i++) {
        lab_pass(&lab, 9 * S);
        SAYS(&lab, 1, SETTINGS);
    }
    SAYS(&lab, 1, OK_END("\1"));
    lab_expect(&lab, BEGUN "[9000ms] host a1 says SETTINGS\n"
                           "[9000ms] host a1 hears SETTINGS ack\n"
                           "[18000ms] host a1 says SETTINGS\n"
                           "[18000ms] host a1 hears SETTINGS ack\n"
                           "[27000ms] host a1 says SETTINGS\n"
                           "[27000ms] host a1 hears SETTINGS ack\n"
                           "[27000ms] host a1 says HEADERS 1 end\n"
                           "[27000ms] client 1 hears 200\n");
}

static void test_exchange_h2__whatever_comes_behind_a_ping_answers_it(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET, sizeof GET - 1);
    lab_pass(&lab, 12 * S);
    SAYS(&lab, 1, SETTINGS);
    lab_pass(&lab, 4 * S);
    SAYS(&lab, 1, OK_END("\1"));
    lab_expect(&lab, BEGUN "[10000ms] host a1 hears PING\n"
                           "[12000ms] host a1 says SETTINGS\n"
                           "[12000ms] host a1 hears SETTINGS ack\n"
                           "[16000ms] host a1 says HEADERS 1 end\n"
                           "[16000ms] client 1 hears 200\n");
}

static void test_exchange_h2__an_idle_connection_is_not_asked_and_says_goodbye_in_the_end(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET, sizeof GET - 1);
    SAYS(&lab, 1, OK_END("\1"));
    lab_pass(&lab, 301 * S);
    lab_expect(&lab, BEGUN "[  0ms] host a1 says HEADERS 1 end\n"
                           "[  0ms] client 1 hears 200\n"
                           "[300000ms] host a1 hears GOAWAY\n"
                           "[300000ms] host a1 hears the end\n");
}

/* A stream after a long pause: the silence before it says nothing about the host. */
static void test_exchange_h2__a_stream_after_a_pause_has_its_own_10s(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET, sizeof GET - 1);
    SAYS(&lab, 1, OK_END("\1"));
    lab_pass(&lab, 60 * S);
    lab_client_says(&lab, 1, GET);
    lab_pass(&lab, 11 * S);
    SAYS(&lab, 1, OK_END("\3"));
    lab_expect(&lab, BEGUN "[  0ms] host a1 says HEADERS 1 end\n"
                           "[  0ms] client 1 hears 200\n"
                           "[60000ms] client 1 says GET /a\n"
                           "[60000ms] host a1 hears HEADERS 3 end\n"
                           "[70000ms] host a1 hears PING\n"
                           "[71000ms] host a1 says HEADERS 3 end\n"
                           "[71000ms] client 1 hears 200\n");
}

#define CALLED                                                               \
    "[  0ms] client 1 says POST /a and 5 bytes\n"                            \
    "[  0ms] host a1 hears SETTINGS, WINDOW_UPDATE, HEADERS 1, DATA 1 end\n" \
    "[  0ms] host a1 says SETTINGS, SETTINGS ack\n"                          \
    "[  0ms] host a1 hears SETTINGS ack\n"

/* The head of gRPC's answer tells nothing: for 5 ms it waits for the trailers, which may ask for another attempt. */
static void test_exchange_h2__a_head_of_grpc_waits_for_its_trailers_a_moment(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, CALL, sizeof CALL - 1);
    SAYS(&lab, 1, GRPC_HEAD("\1"));
    lab_pass(&lab, 4 * MS);
    SAYS(&lab, 1, GRPC_FAILED("\1"));
    lab_pass(&lab, MS);
    SAYS(&lab, 1, GRPC_HEAD("\3"));
    SAYS(&lab, 1, GRPC_OK("\3"));
    lab_expect(&lab, CALLED "[  0ms] host a1 says HEADERS 1\n"
                            "[  4ms] host a1 says HEADERS 1 end\n"
                            "[  4ms] host a1 hears HEADERS 3, DATA 3 end\n"
                            "[  5ms] host a1 says HEADERS 3\n"
                            "[  5ms] host a1 says HEADERS 3 end\n"
                            "[  5ms] client 1 hears 200 and 21 bytes\n");
}

static void test_exchange_h2__a_head_of_grpc_is_passed_on_after_5ms(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, CALL, sizeof CALL - 1);
    SAYS(&lab, 1, GRPC_HEAD("\1"));
    lab_pass(&lab, 6 * MS);
    SAYS(&lab, 1, GRPC_FAILED("\1"));
    lab_pass(&lab, MS);
    lab_expect(&lab, CALLED "[  0ms] host a1 says HEADERS 1\n"
                            "[  5ms] client 1 hears 200\n"
                            "[  6ms] host a1 says HEADERS 1 end\n"
                            "[  6ms] client 1 hears 22 bytes\n");
}

static void test_exchange_h2__an_end_of_grpc_that_says_nothing_is_a_failure(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, CALL, sizeof CALL - 1);
    SAYS(&lab, 1,
         FRAME("\23", "\1", "\5", "\1") "\x88\x5f\x10"
                                        "application/grpc"); /* without grpc-status: UNKNOWN */
    lab_pass(&lab, MS);
    SAYS(&lab, 1, GRPC_HEAD("\3") GRPC_OK("\3"));
    lab_expect(&lab, CALLED "[  0ms] host a1 says HEADERS 1 end\n"
                            "[  0ms] host a1 hears HEADERS 3, DATA 3 end\n"
                            "[  1ms] host a1 says HEADERS 3, HEADERS 3 end\n"
                            "[  1ms] client 1 hears 200 and 21 bytes\n");
}

/* RST_STREAM with CANCEL is CANCELLED to a client of gRPC, which says nothing bad of a host that has answered it. */
static void test_exchange_h2__a_call_of_grpc_that_is_reset_is_held_against_the_host(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab,
              "services: {a: {hosts: ['%s'], match: {prefix: /}, protocol: h2, maxRetries: 0,"
              " breaker: {enabled: true, mode: consecutive, failureThreshold: 2, waitDurationInOpenState: 60s}}}\n",
              CALL, sizeof CALL - 1);
    SAYS(&lab, 1, FRAME("\4", "\3", "\0", "\1") "\0\0\0\10");
    lab_client_says_bytes(&lab, 1, CALL, sizeof CALL - 1);
    SAYS(&lab, 1, FRAME("\4", "\3", "\0", "\3") "\0\0\0\10");
    lab_client_says_bytes(&lab, 1, CALL, sizeof CALL - 1); /* the breaker is open */
    lab_expect(&lab, CALLED "[  0ms] host a1 says RST_STREAM 1\n"
                            "[  0ms] client 1 hears 200\n"
                            "[  0ms] client 1 says POST /a and 5 bytes\n"
                            "[  0ms] host a1 hears HEADERS 3, DATA 3 end\n"
                            "[  0ms] host a1 says RST_STREAM 3\n"
                            "[  0ms] client 1 hears 200\n"
                            "[  0ms] client 1 says POST /a and 5 bytes\n"
                            "[  0ms] client 1 hears 200\n");
}

/* :status 200, content-type: application/grpc and grpc-status: 14, which belongs into trailers. */
#define GRPC_HEAD_FAILED(stream)     \
    FRAME("\43", "\1", "\4", stream) \
    "\x88\x5f\x10"                   \
    "application/grpc\x10\x0b"       \
    "grpc-status\x02"                \
    "14"

#define AGAIN                                                 \
    "[  0ms] host a1 hears HEADERS 3, DATA 3 end\n"           \
    "[  0ms] host a1 says HEADERS 3, DATA 3, HEADERS 3 end\n" \
    "[  0ms] client 1 hears 200 and 27 bytes\n"

/* A failure in the head counts, whether the trailers that say otherwise come with it or later. */
static void test_exchange_h2__a_failure_in_the_head_of_grpc_counts_however_it_comes(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        struct lab lab;
        lab_begin(&lab, ONE, CALL, sizeof CALL - 1);
        if (later == 0) {
            SAYS(&lab, 1, GRPC_HEAD_FAILED("\1") X("\1") GRPC_OK("\1"));
        } else {
            SAYS(&lab, 1, GRPC_HEAD_FAILED("\1"));
            SAYS(&lab, 1, X("\1") GRPC_OK("\1"));
        }
        SAYS(&lab, 1, GRPC_HEAD("\3") X("\3") GRPC_OK("\3"));
        lab_expect(&lab, later == 0 ? CALLED "[  0ms] host a1 says HEADERS 1, DATA 1, HEADERS 1 end\n" AGAIN
                                    : CALLED "[  0ms] host a1 says HEADERS 1\n"
                                             "[  0ms] host a1 says DATA 1, HEADERS 1 end\n" AGAIN);
    }
}

#define POST "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"

/* A host that has begun to answer has acted on the request, whatever it says behind that. */
static void test_exchange_h2__a_post_that_is_refused_behind_its_answer_is_not_sent_again(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, POST, sizeof POST - 1);
    SAYS(&lab, 1, OK("\1") X("\1") REFUSED("\1"));
    lab_client_says_bytes(&lab, 1, POST, sizeof POST - 1);
    SAYS(&lab, 1, OK("\3") X("\3") GONE);
    lab_pass(&lab, S);
    lab_expect(&lab, CALLED "[  0ms] host a1 says HEADERS 1, DATA 1, RST_STREAM 1\n"
                            "[  0ms] client 1 hears 502 and 169 bytes\n"
                            "[  0ms] client 1 says POST /a and 5 bytes\n"
                            "[  0ms] host a1 hears HEADERS 3, DATA 3 end\n"
                            "[  0ms] host a1 says HEADERS 3, DATA 3, GOAWAY\n"
                            "[  0ms] client 1 hears 502 and 169 bytes\n"
                            "[  0ms] host a1 hears GOAWAY\n"
                            "[  0ms] host a1 hears the end\n");
}

/* One that has not is asked again. */
static void test_exchange_h2__a_post_that_is_refused_is_sent_again(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, POST, sizeof POST - 1);
    SAYS(&lab, 1, REFUSED("\1"));
    lab_pass(&lab, MS);
    SAYS(&lab, 1, OK_END("\3"));
    lab_expect(&lab, CALLED "[  0ms] host a1 says RST_STREAM 1\n"
                            "[  0ms] host a1 hears HEADERS 3, DATA 3 end\n"
                            "[  1ms] host a1 says HEADERS 3 end\n"
                            "[  1ms] client 1 hears 200\n");
}

BECALM_TESTS(cmocka_unit_test(test_exchange_h2__a_post_that_is_refused_behind_its_answer_is_not_sent_again),
             cmocka_unit_test(test_exchange_h2__a_post_that_is_refused_is_sent_again),
             cmocka_unit_test(test_exchange_h2__a_failure_in_the_head_of_grpc_counts_however_it_comes),
             cmocka_unit_test(test_exchange_h2__a_silent_connection_is_asked_after_10s_and_lost_5s_later),
             cmocka_unit_test(test_exchange_h2__a_host_that_answers_a_ping_may_take_its_time),
             cmocka_unit_test(test_exchange_h2__a_host_that_answers_pings_alone_is_asked_again_for_new_requests),
             cmocka_unit_test(test_exchange_h2__whatever_a_host_says_shows_that_it_lives),
             cmocka_unit_test(test_exchange_h2__whatever_comes_behind_a_ping_answers_it),
             cmocka_unit_test(test_exchange_h2__an_idle_connection_is_not_asked_and_says_goodbye_in_the_end),
             cmocka_unit_test(test_exchange_h2__a_stream_after_a_pause_has_its_own_10s),
             cmocka_unit_test(test_exchange_h2__a_head_of_grpc_waits_for_its_trailers_a_moment),
             cmocka_unit_test(test_exchange_h2__a_head_of_grpc_is_passed_on_after_5ms),
             cmocka_unit_test(test_exchange_h2__an_end_of_grpc_that_says_nothing_is_a_failure),
             cmocka_unit_test(test_exchange_h2__a_call_of_grpc_that_is_reset_is_held_against_the_host))
