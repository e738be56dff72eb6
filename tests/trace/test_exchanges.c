/* SPDX-License-Identifier: MIT */
/* Golden timelines of exchanges: the messages of clients and hosts, with one worker of a gateway between them, in
 * virtual time. docs/exchange.md has the machine that they walk. */
#include "exchange_lab.h"

#include "check.h"
#include "proxy/gateway_shared.h"
#include "proxy/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS BECALM_MS

#define ONE    "services: {a: {hosts: ['%s'], match: {prefix: /}}}\n"
#define GET    "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define HELLO  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define BUSY   "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nsorry"
#define CHARGE "POST /charge HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n5e"
#define KEYS            \
    "idleTimeout: 1s\n" \
    "services: {a: {hosts: ['%s'], match: {prefix: /}, idempotencyKey: required, limit: {kind: fixed, max: 1}}}\n"

#define ENFORCED "services: {a: {hosts: ['%s'], match: {prefix: /}, idempotencyKey: enforced, deadline: 2s}}\n"

static void lab_expect(struct lab *lab, const char *trace)
{
    check_eq_str(lab->trace, trace);
    lab_close(lab);
}

/* A gateway, and a client that has said something. */
static void lab_begin(struct lab *lab, const char *policy, const char *request)
{
    check_true(lab_open(lab, policy));
    lab_client(lab);
    lab_client_says(lab, 1, request);
}

static void test_exchange__a_healthy_request(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_pass(&lab, 40 * MS);
    lab_host_says(&lab, 1, HELLO);
    lab_client_says(&lab, 1, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n"); /* by the same two connections */
    lab_host_says(&lab, 1, "HTTP/1.1 204 No Content\r\n\r\n");
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[ 40ms] host a1 says 200 and 5 bytes\n"
                     "[ 40ms] client 1 hears 200 and 5 bytes\n"
                     "[ 40ms] client 1 says GET /b\n"
                     "[ 40ms] host a1 hears GET /b\n"
                     "[ 40ms] host a1 says 204\n"
                     "[ 40ms] client 1 hears 204\n");
}

static void test_exchange__a_retry(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_pass(&lab, 40 * MS);
    lab_host_says(&lab, 1, BUSY);
    lab_pass(&lab, 500 * MS);
    lab_host_says(&lab, 1, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[ 40ms] host a1 says 503 and 5 bytes\n"
                     "[140ms] host a1 hears GET /a\n"
                     "[540ms] host a1 says 200 and 5 bytes\n"
                     "[540ms] client 1 hears 200 and 5 bytes\n");
}

static void test_exchange__a_hedge_and_its_loser(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab,
              "services: {a: {hosts: ['%s'], match: {prefix: /},"
              " hedge: {enabled: true, delay: 50ms, percent: 100, cap: 100}}}\n",
              GET);
    lab_pass(&lab, 60 * MS);
    lab_host_says(&lab, 2, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[ 50ms] host a2 hears GET /a\n"
                     "[ 60ms] host a2 says 200 and 5 bytes\n"
                     "[ 60ms] client 1 hears 200 and 5 bytes\n"
                     "[ 60ms] host a1 hears the end\n");
}

static void test_exchange__a_failed_answer_is_held_back_and_told_if_no_better_one_comes(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_host_says(&lab, 1, "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nso");
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, "rry");
    lab_pass(&lab, 500 * MS);
    lab_host_goes(&lab, 1); /* a pooled connection that was dead: once more, on a fresh one */
    lab_host_goes(&lab, 2);
    lab_pass(&lab, 500 * MS);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] host a1 says 503 and 2 bytes\n"
                     "[ 10ms] host a1 says 3 bytes\n"
                     "[110ms] host a1 hears GET /a\n"
                     "[510ms] host a1 goes\n"
                     "[510ms] host a2 hears GET /a\n"
                     "[510ms] host a2 goes\n"
                     "[510ms] client 1 hears 503 and 5 bytes\n");
}

static void test_exchange__an_answer_that_comes_in_pieces(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, "0\r\n\r\n");
    lab_client_says(&lab, 1, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n"); /* it has ended, and both connections go on */
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] host a1 says 200 and 10 bytes\n"
                     "[  0ms] client 1 hears 200 and 10 bytes\n"
                     "[ 10ms] host a1 says 5 bytes\n"
                     "[ 10ms] client 1 hears 5 bytes\n"
                     "[ 10ms] client 1 says GET /b\n"
                     "[ 10ms] host a1 hears GET /b\n");
}

static void test_exchange__an_answer_that_is_cut_is_cut_for_the_client(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhell");
    lab_host_goes(&lab, 1);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] host a1 says 200 and 4 bytes\n"
                     "[  0ms] client 1 hears 200 and 4 bytes\n"
                     "[  0ms] host a1 goes\n"
                     "[  0ms] client 1 hears the end\n");
}

static void test_exchange__a_silent_answer_is_cut_after_idle_timeout(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "idleTimeout: 1s\n" ONE, GET);
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhell");
    lab_pass(&lab, 3 * BECALM_S);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] host a1 says 200 and 4 bytes\n"
                     "[  0ms] client 1 hears 200 and 4 bytes\n"
                     "[1000ms] client 1 hears the end\n"
                     "[1000ms] host a1 hears the end\n");
}

static void test_exchange__a_host_that_hangs_is_given_up(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "services: {a: {hosts: ['%s'], match: {prefix: /}, attemptTimeout: 100ms}}\n", GET);
    lab_pass(&lab, BECALM_S);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[100ms] host a1 hears the end\n"
                     "[200ms] host a2 hears GET /a\n"
                     "[300ms] client 1 hears 504 and 150 bytes\n"
                     "[300ms] host a2 hears the end\n");
}

/* The first call's timer is still armed when the second one has begun: still, each call has its own time. */
static void test_exchange__a_call_is_not_given_up_at_the_time_of_the_one_before_it(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "services: {a: {hosts: ['%s'], match: {prefix: /}, attemptTimeout: 200ms, maxRetries: 0}}\n", GET);
    lab_host_says(&lab, 1, HELLO);
    lab_pass(&lab, 150 * MS);
    lab_client_says(&lab, 1, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    lab_pass(&lab, 1000 * MS);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] host a1 says 200 and 5 bytes\n"
                     "[  0ms] client 1 hears 200 and 5 bytes\n"
                     "[150ms] client 1 says GET /b\n"
                     "[150ms] host a1 hears GET /b\n"
                     "[350ms] client 1 hears 504 and 124 bytes\n"
                     "[350ms] host a1 hears the end\n");
}

/* One that is small goes behind its head, a larger one beside it: the client can't tell. */
static void test_exchange__answers_of_every_size_are_whole(void **state)
{
    static const int sizes[] = {0, 1, 2047, 2048, 2049, 9000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct lab lab;
        char answer[9100];
        char trace[512];
        char heard[64] = "200";
        int head = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", sizes[i]);
        memset(answer + head, 'x', (size_t)sizes[i]);
        lab_begin(&lab, ONE, GET);
        lab_host_says_bytes(&lab, 1, answer, (size_t)(head + sizes[i]));
        if (sizes[i] > 0) {
            snprintf(heard, sizeof heard, "200 and %d bytes", sizes[i]);
        }
        snprintf(trace, sizeof trace,
                 "[  0ms] client 1 says GET /a\n[  0ms] host a1 hears GET /a\n[  0ms] host a1 says %s\n"
                 "[  0ms] client 1 hears %s\n",
                 heard, heard);
        lab_expect(&lab, trace);
    }
}

static void test_exchange__an_upload_that_streams(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "services: {a: {hosts: ['%s'], match: {prefix: /}, replay: false}}\n",
              "POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello");
    lab_pass(&lab, 10 * MS);
    lab_client_says(&lab, 1, "world");
    lab_host_says(&lab, 1, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says POST /up and 5 bytes\n"
                     "[  0ms] host a1 hears POST /up and 5 bytes\n"
                     "[ 10ms] client 1 says 5 bytes\n"
                     "[ 10ms] host a1 hears 5 bytes\n"
                     "[ 10ms] host a1 says 200 and 5 bytes\n"
                     "[ 10ms] client 1 hears 200 and 5 bytes\n");
}

static void test_exchange__an_upload_that_is_collected(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, "POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello");
    lab_pass(&lab, 10 * MS);
    lab_client_says(&lab, 1, "world");
    lab_host_says(&lab, 1, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says POST /up and 5 bytes\n"
                     "[ 10ms] client 1 says 5 bytes\n"
                     "[ 10ms] host a1 hears POST /up and 10 bytes\n"
                     "[ 10ms] host a1 says 200 and 5 bytes\n"
                     "[ 10ms] client 1 hears 200 and 5 bytes\n");
}

static void test_exchange__an_answer_before_the_upload_has_ended(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "services: {a: {hosts: ['%s'], match: {prefix: /}, replay: false}}\n",
              "POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello");
    lab_host_says(&lab, 1, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    lab_client_says(&lab, 1, "world");
    lab_client_goes(&lab, 1);
    lab_expect(&lab, "[  0ms] client 1 says POST /up and 5 bytes\n"
                     "[  0ms] host a1 hears POST /up and 5 bytes\n"
                     "[  0ms] host a1 says 413\n"
                     "[  0ms] client 1 hears 413\n"
                     "[  0ms] client 1 hears the end\n"
                     "[  0ms] host a1 hears the end\n"
                     "[  0ms] client 1 says 5 bytes\n"
                     "[  0ms] client 1 goes\n");
}

static void test_exchange__without_a_key_the_call_ends_with_its_client(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_client_goes(&lab, 1);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] client 1 goes\n"
                     "[  0ms] host a1 hears the end\n");
}

static void test_exchange__a_client_that_has_left_gets_its_answer_but_no_retry(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_client_leaves(&lab, 1);
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, BUSY);
    lab_pass(&lab, 500 * MS);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] client 1 ends\n"
                     "[ 10ms] host a1 says 503 and 5 bytes\n"
                     "[ 10ms] client 1 hears 503 and 5 bytes\n"
                     "[ 10ms] client 1 hears the end\n");
}

static void test_exchange__with_a_key_the_call_goes_on_and_its_answer_is_replayed(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, KEYS, CHARGE);
    lab_client_goes(&lab, 1);
    lab_client(&lab);
    lab_client_says(&lab, 2, CHARGE); /* while the first is in flight */
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, HELLO);
    lab_client_says(&lab, 2, CHARGE);
    lab_expect(&lab, "[  0ms] client 1 says POST /charge and 2 bytes\n"
                     "[  0ms] host a1 hears POST /charge and 2 bytes\n"
                     "[  0ms] client 1 goes\n"
                     "[  0ms] client 2 says POST /charge and 2 bytes\n"
                     "[  0ms] client 2 hears 409 and 176 bytes\n"
                     "[ 10ms] host a1 says 200 and 5 bytes\n"
                     "[ 10ms] client 2 says POST /charge and 2 bytes\n"
                     "[ 10ms] client 2 hears 200 and 5 bytes\n");
}

static void test_exchange__a_key_and_its_slot_are_free_again_when_the_host_falls_silent(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, KEYS, CHARGE);
    lab_client_goes(&lab, 1);
    lab_host_says(&lab, 1, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhell");
    lab_pass(&lab, 1500 * MS);
    lab_client(&lab);
    lab_client_says(&lab, 2, CHARGE);
    lab_host_says(&lab, 2, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says POST /charge and 2 bytes\n"
                     "[  0ms] host a1 hears POST /charge and 2 bytes\n"
                     "[  0ms] client 1 goes\n"
                     "[  0ms] host a1 says 200 and 4 bytes\n"
                     "[1000ms] host a1 hears the end\n"
                     "[1500ms] client 2 says POST /charge and 2 bytes\n"
                     "[1500ms] host a2 hears POST /charge and 2 bytes\n"
                     "[1500ms] host a2 says 200 and 5 bytes\n"
                     "[1500ms] client 2 hears 200 and 5 bytes\n");
}

static void test_exchange__an_enforced_key_is_held_when_nobody_knows_what_became_of_it(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ENFORCED, CHARGE);
    lab_pass(&lab, 10 * MS);
    lab_host_goes(&lab, 1);
    lab_pass(&lab, 100 * MS); /* in which a retry would come */
    lab_client(&lab);
    lab_client_says(&lab, 2, CHARGE);
    lab_expect(&lab, "[  0ms] client 1 says POST /charge and 2 bytes\n"
                     "[  0ms] host a1 hears POST /charge and 2 bytes\n"
                     "[ 10ms] host a1 goes\n"
                     "[ 10ms] client 1 hears 502 and 169 bytes\n"
                     "[110ms] client 2 says POST /charge and 2 bytes\n"
                     "[110ms] client 2 hears 409 and 296 bytes\n");
}

static void test_exchange__an_error_of_an_enforced_key_is_replayed_and_not_retried(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ENFORCED, CHARGE);
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, BUSY);
    lab_pass(&lab, 500 * MS);
    lab_client_says(&lab, 1, CHARGE);
    lab_expect(&lab, "[  0ms] client 1 says POST /charge and 2 bytes\n"
                     "[  0ms] host a1 hears POST /charge and 2 bytes\n"
                     "[ 10ms] host a1 says 503 and 5 bytes\n"
                     "[ 10ms] client 1 hears 503 and 5 bytes\n"
                     "[510ms] client 1 says POST /charge and 2 bytes\n"
                     "[510ms] client 1 hears 503 and 5 bytes\n");
}

static void test_exchange__an_upgrade_with_a_key_ends_with_its_client(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, KEYS,
              "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Idempotency-Key: k\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n"
              "Sec-WebSocket-Version: 13\r\n\r\n");
    lab_client_goes(&lab, 1);
    lab_host_says(&lab, 1, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    lab_expect(&lab, "[  0ms] client 1 says GET /chat\n"
                     "[  0ms] host a1 hears GET /chat\n"
                     "[  0ms] client 1 goes\n"
                     "[  0ms] host a1 hears the end\n"
                     "[  0ms] host a1 says 101\n");
}

static void test_exchange__a_connect_with_a_key_holds_no_key(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "connect: on\nservices: {x: {hosts: ['%s'], idempotencyKey: required}}\n",
              "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\nIdempotency-Key: k\r\n\r\n");
    lab_client_goes(&lab, 1);
    lab_client(&lab);
    lab_client_says(&lab, 2, "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\nIdempotency-Key: k\r\n\r\n");
    lab_host_says(&lab, 2, "hello");
    lab_host_goes(&lab, 2);
    lab_expect(&lab, "[  0ms] client 1 says CONNECT x:80\n"
                     "[  0ms] client 1 hears 200\n"
                     "[  0ms] client 1 goes\n"
                     "[  0ms] host a1 hears the end\n"
                     "[  0ms] client 2 says CONNECT x:80\n"
                     "[  0ms] client 2 hears 200\n"
                     "[  0ms] host a2 says 5 bytes\n"
                     "[  0ms] client 2 hears 5 bytes\n"
                     "[  0ms] host a2 goes\n"
                     "[  0ms] client 2 hears the end\n");
}

static void test_exchange__a_tunnel(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE,
              "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\nSec-WebSocket-Version: 13\r\n\r\n");
    lab_host_says(&lab, 1, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    lab_client_says(&lab, 1, "to the host");
    lab_host_says(&lab, 1, "back");
    lab_client_leaves(&lab, 1);
    lab_host_says(&lab, 1, "bye");
    lab_host_leaves(&lab, 1);
    lab_expect(&lab, "[  0ms] client 1 says GET /chat\n"
                     "[  0ms] host a1 hears GET /chat\n"
                     "[  0ms] host a1 says 101\n"
                     "[  0ms] client 1 hears 101\n"
                     "[  0ms] client 1 says 11 bytes\n"
                     "[  0ms] host a1 hears 11 bytes\n"
                     "[  0ms] host a1 says 4 bytes\n"
                     "[  0ms] client 1 hears 4 bytes\n"
                     "[  0ms] client 1 ends\n"
                     "[  0ms] host a1 hears the end\n"
                     "[  0ms] host a1 says 3 bytes\n"
                     "[  0ms] client 1 hears 3 bytes\n"
                     "[  0ms] host a1 ends\n"
                     "[  0ms] client 1 hears the end\n");
}

static void test_exchange__an_interim_answer_is_passed_on(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    lab_host_says(&lab, 1, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] host a1 says 103\n"
                     "[  0ms] client 1 hears 103\n"
                     "[ 10ms] host a1 says 200 and 5 bytes\n"
                     "[ 10ms] client 1 hears 200 and 5 bytes\n");
}

static void test_exchange__a_gateway_that_drains_closes_after_the_answer(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, ONE, GET);
    gateway_order_all(lab.gateway, WORKER_DRAIN);
    lab_pass(&lab, 10 * MS);
    lab_host_says(&lab, 1, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[ 10ms] host a1 says 200 and 5 bytes\n"
                     "[ 10ms] client 1 hears 200 and 5 bytes\n"
                     "[ 10ms] client 1 hears the end\n");
}

static void test_exchange__a_reload_in_flight(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab, "services: {a: {hosts: ['%s'], match: {prefix: /}}, b: {hosts: ['%s'], match: {prefix: /b}}}\n",
              GET);
    check_true(lab_reload(
        &lab, "services: {b: {hosts: ['%s'], match: {prefix: /b}}, a: {hosts: ['%s'], match: {prefix: /}}}\n"));
    lab_host_says(&lab, 1, BUSY); /* its retry still goes where the policy of its beginning says */
    lab_pass(&lab, 500 * MS);
    check_true(lab.worker->view->next != NULL);
    lab_host_says(&lab, 1, HELLO);
    check_true(lab.worker->view->next == NULL); /* the policy of before is freed with its last call */
    lab_client_says(&lab, 1, GET);
    lab_host_says(&lab, 2, HELLO);
    lab_expect(&lab, "[  0ms] client 1 says GET /a\n"
                     "[  0ms] host a1 hears GET /a\n"
                     "[  0ms] reload works\n"
                     "[  0ms] host a1 says 503 and 5 bytes\n"
                     "[100ms] host a1 hears GET /a\n"
                     "[500ms] host a1 says 200 and 5 bytes\n"
                     "[500ms] client 1 hears 200 and 5 bytes\n"
                     "[500ms] client 1 says GET /a\n"
                     "[500ms] host b2 hears GET /a\n"
                     "[500ms] host b2 says 200 and 5 bytes\n"
                     "[500ms] client 1 hears 200 and 5 bytes\n");
}

static void test_exchange__two_endpoints_of_one_gate_are_served_in_turn(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, "services: {a: {hosts: ['%s'], match: {prefix: /}, limit: {kind: fixed, max: 1},"
                              " gate: {targetQueueTime: 10s, maxQueueTime: 60s},"
                              " endpoints: {x: {match: {path: /x}}, y: {match: {path: /y}}}}}\n"));
    for (uint32_t i = 1; i <= 6; i++) {
        lab_client(&lab);
        lab_client_says(&lab, i,
                        i % 2 == 1 ? "GET /x HTTP/1.1\r\nHost: x\r\n\r\n" : "GET /y HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (uint32_t i = 1; i <= 6; i++) {
        lab_pass(&lab, 10 * MS);
        lab_host_says(&lab, 1, HELLO);
    }
    lab_expect(&lab, "[  0ms] client 1 says GET /x\n"
                     "[  0ms] host a1 hears GET /x\n"
                     "[  0ms] client 2 says GET /y\n"
                     "[  0ms] client 3 says GET /x\n"
                     "[  0ms] client 4 says GET /y\n"
                     "[  0ms] client 5 says GET /x\n"
                     "[  0ms] client 6 says GET /y\n"
                     "[ 10ms] host a1 says 200 and 5 bytes\n"
                     "[ 10ms] client 1 hears 200 and 5 bytes\n"
                     "[ 10ms] host a1 hears GET /y\n"
                     "[ 20ms] host a1 says 200 and 5 bytes\n"
                     "[ 20ms] host a1 hears GET /x\n"
                     "[ 20ms] client 2 hears 200 and 5 bytes\n"
                     "[ 30ms] host a1 says 200 and 5 bytes\n"
                     "[ 30ms] host a1 hears GET /y\n"
                     "[ 30ms] client 3 hears 200 and 5 bytes\n"
                     "[ 40ms] host a1 says 200 and 5 bytes\n"
                     "[ 40ms] host a1 hears GET /x\n"
                     "[ 40ms] client 4 hears 200 and 5 bytes\n"
                     "[ 50ms] host a1 says 200 and 5 bytes\n"
                     "[ 50ms] host a1 hears GET /y\n"
                     "[ 50ms] client 5 hears 200 and 5 bytes\n"
                     "[ 60ms] host a1 says 200 and 5 bytes\n"
                     "[ 60ms] client 6 hears 200 and 5 bytes\n");
}

static struct rlimit allowed; /* before a test; all 0: not known yet */

/* Also behind a test that has failed, so that the tests behind it fail only for their own reasons. */
static int descriptors_again(void **state)
{
    (void)state;
    return allowed.rlim_max == 0 ? 0 : setrlimit(RLIMIT_NOFILE, &allowed);
}

/* From now on this process opens nothing more. Returns the bound of before. */
static struct rlimit no_more_descriptors(void)
{
    struct rlimit before;
    check_true(getrlimit(RLIMIT_NOFILE, &before) == 0);
    allowed = before;
    int next = fcntl(STDIN_FILENO, F_DUPFD, 0);
    check_true(next >= 0);
    close(next);
    check_true(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, before.rlim_max}) == 0);
    return before;
}

#define CALLS 20u

/* All ask at the same moment, so none is idle and could be closed for the others. */
static void all_ask(struct lab *lab)
{
    for (uint32_t i = 0; i < CALLS; i++) {
        check_true(send(lab->end[i].fd, GET, strlen(GET), MSG_NOSIGNAL) == (ssize_t)strlen(GET));
    }
    lab_settle(lab);
}

static uint32_t count_of(const char *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static void test_exchange__calls_are_refused_together_when_no_descriptor_is_to_be_had(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, ONE));
    for (uint32_t i = 0; i < CALLS; i++) {
        lab_client(&lab);
    }
    struct rlimit before = no_more_descriptors();
    all_ask(&lab);
    lab_pass(&lab, MS);
    check_eq_u64(count_of(lab.trace, "hears 503"), CALLS);
    lab_pass(&lab, 10 * MS);
    all_ask(&lab);
    check_eq_u64(count_of(lab.trace, "[ 11ms] client"), CALLS); /* it is known: none waits at all */
    check_eq_u64(count_of(lab.trace, "hears 503"), 2 * CALLS);
    setrlimit(RLIMIT_NOFILE, &before);
    lab_client_says(&lab, 1, GET);
    lab_host_says(&lab, 1, HELLO);
    check_eq_u64(count_of(lab.trace, "[ 11ms] client 1 hears 200 and 5 bytes"), 1);
    lab_close(&lab);
}

static uint32_t squeezes;

static enum worker_squeeze another_gives_up_soon(struct worker *worker)
{
    (void)worker;
    squeezes++;
    return SQUEEZE_SOON;
}

static void test_exchange__a_descriptor_of_another_worker_is_asked_for_once(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, ONE));
    lab_client(&lab);
    lab.worker->squeeze = another_gives_up_soon;
    squeezes = 0;
    struct rlimit before = no_more_descriptors();
    lab_client_says(&lab, 1, GET);
    lab_pass(&lab, 2 * MS);
    setrlimit(RLIMIT_NOFILE, &before); /* it has given up one */
    lab_pass(&lab, 20 * MS);
    check_eq_u64(squeezes, 1);
    check_eq_u64(count_of(lab.trace, "host a1 hears GET /a"), 1);
    lab_close(&lab);
}

static enum worker_squeeze others_take_it(struct worker *worker)
{
    (void)worker;
    squeezes++;
    return SQUEEZE_DONE;
}

/* On a busy machine others are often faster; but not for ever. */
static void test_exchange__a_descriptor_that_others_take_is_asked_for_64_times(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, ONE));
    lab_client(&lab);
    lab.worker->squeeze = others_take_it;
    squeezes = 0;
    struct rlimit before = no_more_descriptors();
    lab_client_says(&lab, 1, GET);
    for (uint32_t i = 0; i < 9000 && count_of(lab.trace, "client 1 hears") == 0; i++) {
        lab_pass(&lab, MS);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    check_eq_u64(squeezes, 64);
    check_eq_u64(count_of(lab.trace, "client 1 hears 503"), 1);
    lab_close(&lab);
}

#define TWO_WORKERS "workers: 2\nlisten: ['127.0.0.1:0']\n" ONE

/* Each worker has a port of its own. */
static int connect_to(const struct worker *worker)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check_true(getsockname(worker->listeners->source.fd, (struct sockaddr *)&address, &length) == 0);
    check_true(connect(fd, (struct sockaddr *)&address, length) == 0);
    return fd;
}

#define TWO_BALANCED "workers: 2\nlisten: [{address: '127.0.0.1:0', proxyProtocol: true}]\n" ONE

/* The second worker has nothing but a connection that says nothing. */
static void test_exchange__a_connection_without_its_proxy_header_goes_for_a_call_of_another_worker(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, TWO_BALANCED));
    struct worker *other = &lab.gateway->worker[1];
    int silent = connect_to(other);
    loop_turn(&other->loop, false);
    check_eq_u64(other->greeting_count, 1);
    other->loop.stands = true;
    other->loop.now += BECALM_S;
    lab_client(&lab);
    struct rlimit before = no_more_descriptors();
    lab_client_says(&lab, 1, GET);
    lab_pass(&lab, MS);
    loop_turn(&other->loop, false);
    check_eq_u64(other->greeting_count, 0);
    lab_pass(&lab, 10 * MS);
    setrlimit(RLIMIT_NOFILE, &before); /* for the host's end of the connection */
    lab_settle(&lab);
    check_eq_u64(count_of(lab.trace, "[ 11ms] host a1 hears GET /a"), 1);
    lab_close(&lab);
    close(silent);
}

/* The second worker has a client in its backlog and no descriptor for it, and the first one is gone. */
static void test_exchange__a_gateway_ends_without_a_descriptor_for_the_clients_that_wait(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, TWO_WORKERS));
    int fd = connect_to(&lab.gateway->worker[1]);
    struct rlimit before = no_more_descriptors();
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1, before.rlim_max}); /* also when some are closed */
    lab_close(&lab);
    setrlimit(RLIMIT_NOFILE, &before);
    close(fd);
}

#define ONE_WORKER "workers: 1\nlisten: ['127.0.0.1:0']\n" ONE
#define PART       "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"

/* A client is in the backlog when the gateway closes its listeners. Uploads that hardly move would be closed for it at
 * other times. */
static void test_exchange__a_gateway_that_ends_closes_none_for_the_clients_that_wait(void **state)
{
    (void)state;
    struct lab lab;
    check_true(lab_open(&lab, ONE_WORKER));
    for (uint32_t i = 1; i <= 8; i++) {
        lab_client_says(&lab, lab_client(&lab), PART);
    }
    lab_pass(&lab, BECALM_S);
    int fd = connect_to(lab.worker);
    struct rlimit before = no_more_descriptors();
    lab.worker->closing = true; /* as WORKER_CLOSE does, but before a turn in which the client would be accepted */
    listeners_close(lab.worker);
    setrlimit(RLIMIT_NOFILE, &before);
    for (uint32_t i = 1; i <= 8; i++) {
        lab_client_says(&lab, i, "xxxxxxxx");
    }
    check_eq_u64(count_of(lab.trace, "hears POST /a"), 8);
    lab_close(&lab);
    close(fd);
}

/* Whichever part of it is the first that gets none. */
static void test_exchange__a_gateway_that_lacks_descriptors_closes_none_of_others(void **state)
{
    (void)state;
    struct lab lab;
    struct rlimit before = no_more_descriptors();
    struct rlimit now;
    check_true(getrlimit(RLIMIT_NOFILE, &now) == 0);
    check_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    bool opened = false;
    for (uint32_t more = 0; more < 100 && !opened; more++) {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){now.rlim_cur + more, before.rlim_max});
        opened = lab_open(&lab, TWO_WORKERS);
        check_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    check_true(opened);
    lab_close(&lab);
}

#define LACKING(test) cmocka_unit_test_teardown(test, descriptors_again)

BECALM_TESTS(cmocka_unit_test(test_exchange__a_healthy_request), cmocka_unit_test(test_exchange__a_retry),
             cmocka_unit_test(test_exchange__a_hedge_and_its_loser),
             cmocka_unit_test(test_exchange__a_failed_answer_is_held_back_and_told_if_no_better_one_comes),
             cmocka_unit_test(test_exchange__an_answer_that_comes_in_pieces),
             cmocka_unit_test(test_exchange__an_answer_that_is_cut_is_cut_for_the_client),
             cmocka_unit_test(test_exchange__a_silent_answer_is_cut_after_idle_timeout),
             cmocka_unit_test(test_exchange__a_host_that_hangs_is_given_up),
             cmocka_unit_test(test_exchange__a_call_is_not_given_up_at_the_time_of_the_one_before_it),
             cmocka_unit_test(test_exchange__answers_of_every_size_are_whole),
             cmocka_unit_test(test_exchange__an_upload_that_streams),
             cmocka_unit_test(test_exchange__an_upload_that_is_collected),
             cmocka_unit_test(test_exchange__an_answer_before_the_upload_has_ended),
             cmocka_unit_test(test_exchange__without_a_key_the_call_ends_with_its_client),
             cmocka_unit_test(test_exchange__a_client_that_has_left_gets_its_answer_but_no_retry),
             cmocka_unit_test(test_exchange__with_a_key_the_call_goes_on_and_its_answer_is_replayed),
             cmocka_unit_test(test_exchange__a_key_and_its_slot_are_free_again_when_the_host_falls_silent),
             cmocka_unit_test(test_exchange__an_enforced_key_is_held_when_nobody_knows_what_became_of_it),
             cmocka_unit_test(test_exchange__an_error_of_an_enforced_key_is_replayed_and_not_retried),
             cmocka_unit_test(test_exchange__an_upgrade_with_a_key_ends_with_its_client),
             cmocka_unit_test(test_exchange__a_connect_with_a_key_holds_no_key),
             cmocka_unit_test(test_exchange__a_tunnel), cmocka_unit_test(test_exchange__an_interim_answer_is_passed_on),
             cmocka_unit_test(test_exchange__a_gateway_that_drains_closes_after_the_answer),
             cmocka_unit_test(test_exchange__a_reload_in_flight),
             LACKING(test_exchange__a_connection_without_its_proxy_header_goes_for_a_call_of_another_worker),
             LACKING(test_exchange__a_gateway_that_ends_closes_none_for_the_clients_that_wait),
             LACKING(test_exchange__a_gateway_ends_without_a_descriptor_for_the_clients_that_wait),
             LACKING(test_exchange__a_gateway_that_lacks_descriptors_closes_none_of_others),
             LACKING(test_exchange__a_descriptor_of_another_worker_is_asked_for_once),
             LACKING(test_exchange__a_descriptor_that_others_take_is_asked_for_64_times),
             LACKING(test_exchange__calls_are_refused_together_when_no_descriptor_is_to_be_had),
             cmocka_unit_test(test_exchange__two_endpoints_of_one_gate_are_served_in_turn))
