/* SPDX-License-Identifier: MIT */
/* Clients that take their answers slowly, or not at all, over real TCP and in virtual time: which of them may be closed
 * for another client. tests/e2e/test_crowds_slow.py shows that they are. */
#define _GNU_SOURCE
#include "exchange_lab.h"

#include "proxy/client/client.h"
#include "proxy/crowd.h"
#include "wire/wire.h"

#include "check.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ONE                                   \
    "pool: {idle: 300s}\nidleTimeout: 600s\n" \
    "services: {a: {hosts: ['%s'], match: {prefix: /}, attemptTimeout: 1000s, deadline: none}}\n"
#define GET    "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define GUARD  60000 /* looks, a millisecond apart */
#define BUFFER 2304  /* bytes: the least that a kernel takes */
#define STEP   128   /* bytes of a segment: the kernel opens its window by as many */

/* A client that the gateway has accepted, and the client's own end of it. */
struct reader {
    struct lab lab;
    struct client *client;
    int fd;
};

static void set_small(int fd, int level, int option, int value)
{
    check_true(setsockopt(fd, level, option, &value, sizeof value) == 0);
}

/* Both kernels hold little, so a short answer fills them. */
static void reader_connect(struct reader *reader)
{
    union address_socket peer = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof peer.v4;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check_true(bind(listener, &peer.any, length) == 0 && listen(listener, 1) == 0);
    check_true(getsockname(listener, &peer.any, &length) == 0);
    reader->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_small(reader->fd, SOL_SOCKET, SO_RCVBUF, BUFFER);
    set_small(reader->fd, IPPROTO_TCP, TCP_MAXSEG, STEP);
    check_true(connect(reader->fd, &peer.any, length) == 0);
    int accepted = accept4(listener, &peer.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    check_true(accepted >= 0);
    set_small(accepted, SOL_SOCKET, SO_SNDBUF, BUFFER);
    close(listener);
    client_accept(reader->lab.worker, accepted, &peer, &(struct client_door){.h1 = true, .h2 = true});
    reader->client = reader->lab.worker->clients; /* the latest is the first */
}

static void reader_says(struct reader *reader, const char *bytes, size_t length)
{
    check_true(send(reader->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
    size_t before = reader->lab.length;
    for (int i = 0; i < GUARD && reader->lab.length == before; i++) { /* until a host hears it */
        lab_settle(&reader->lab);
        poll(NULL, 0, reader->lab.length == before);
    }
    check_true(reader->lab.length > before);
}

/* The same in the middle of something: until the gateway has read it. */
static void reader_adds(struct reader *reader, const char *bytes, size_t length)
{
    int left = 1;
    check_true(send(reader->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
    for (int i = 0; i < GUARD && left > 0; i++) {
        check_true(ioctl(reader->fd, SIOCOUTQ, &left) == 0);
        poll(NULL, 0, left > 0);
    }
    lab_settle(&reader->lab);
}

static void host_answers(struct lab *lab, size_t length)
{
    static char answer[128 * 1024];
    int head = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
    memset(answer + head, 'x', length);
    lab_host_says_bytes(lab, 1, answer, (size_t)head + length);
}

static void reader_open(struct reader *reader)
{
    check_true(lab_open(&reader->lab, ONE));
    reader_connect(reader);
}

static void reader_asks(struct reader *reader, size_t length)
{
    reader_says(reader, GET, strlen(GET));
    host_answers(&reader->lab, length);
    check_true(client_blocked(reader->client));
}

static void reader_close(struct reader *reader)
{
    close(reader->fd);
    lab_settle(&reader->lab);
    lab_close(&reader->lab);
}

static enum price price_of(struct client *client)
{
    becalm_ns since;
    return client_price(&client->member, &since);
}

/* Reads at least so many bytes. */
static void reader_reads(struct reader *reader, size_t least)
{
    char text[STEP];
    size_t all = 0;
    int looks = GUARD;
    while (all < least) {
        ssize_t got = recv(reader->fd, text, sizeof text, MSG_DONTWAIT);
        if (got > 0) {
            all += (size_t)got;
        } else {
            check_true(got < 0 && looks-- > 0);
            lab_settle(&reader->lab);
            poll(NULL, 0, 1); /* there is more */
        }
    }
    lab_settle(&reader->lab);
}

static uint32_t taken(const struct reader *reader)
{
    uint32_t bytes = 0;
    check_true(wire_taken(&reader->client->wire, &bytes));
    return bytes;
}

/* A fifth of the slowest line. Each step comes before the client would count as stuck, if its kernel takes a segment in
 * each; where the kernel is late, it is the slower. */
static void reader_drips(struct reader *reader)
{
    for (uint32_t i = 0; i < 12; i++) {
        lab_pass(&reader->lab, 4 * BECALM_S);
        uint32_t before = taken(reader);
        reader_reads(reader, 2 * STEP);
        for (int looks = 0; looks < 100 && taken(reader) == before; looks++) {
            poll(NULL, 0, 1);
        }
        lab_settle(&reader->lab);
        (void)price_of(reader->client);
    }
}

static void test_reader__a_slow_line_by_http1_is_left_alone(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader);
    reader_asks(&reader, 100000);
    for (uint32_t i = 0; i < 20; i++) {
        check_eq_u64(price_of(reader.client), PRICE_BUSY);
        lab_pass(&reader.lab, 4 * BECALM_S);
        reader_reads(&reader, 4000);
    }
    reader_close(&reader);
}

/* Its pace is measured anew with each READ_STEP, so what it did before does not count for ever. */
static void test_reader__drips_behind_a_fast_beginning_are_slow(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader);
    reader_asks(&reader, 100000);
    check_eq_u64(price_of(reader.client), PRICE_BUSY);
    reader_reads(&reader, 50000);
    check_eq_u64(price_of(reader.client), PRICE_BUSY);
    reader_drips(&reader);
    check_eq_u64(price_of(reader.client), PRICE_SLOW);
    reader_close(&reader);
}

/* It is examined in its first answer, and then in the first moments of its next. */
static void test_reader__a_pause_between_two_answers_by_http1_is_not_slow(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader);
    reader_asks(&reader, 12000);
    check_eq_u64(price_of(reader.client), PRICE_BUSY);
    reader_reads(&reader, 12000);
    for (int i = 0; i < GUARD && reader.client->state != CLIENT_IDLE; i++) {
        char rest[256];
        (void)recv(reader.fd, rest, sizeof rest, MSG_DONTWAIT);
        lab_settle(&reader.lab);
        poll(NULL, 0, 1);
    }
    check_eq_u64(price_of(reader.client), PRICE_IDLE);
    lab_pass(&reader.lab, 58 * BECALM_S);
    reader_asks(&reader, 12000);
    check_eq_u64(price_of(reader.client), PRICE_BUSY);
    reader_close(&reader);
}

#define PREFACE          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS(window) "\0\0\6\4\0\0\0\0\0\0\4" window "\0\0\0\4\1\0\0\0\0"
#define ASKS(stream)     "\0\0\6\1\5\0\0\0" stream "\x82\x86\x84\x41\1x" /* GET */
#define UPLOADS          "\0\0\6\1\4\0\0\0\1\x83\x86\x84\x41\1x"         /* POST */
#define OPENS(stream)    "\0\0\4\x8\0\0\0\0" stream "\0\0\3\xe8"         /* by 1000 bytes */
#define DATA             "\0\3\xe8\0\0\0\0\0\1"                          /* 1000 bytes */

#define SAYS(reader, bytes) reader_says(reader, bytes, sizeof(bytes) - 1)
#define ADDS(reader, bytes) reader_adds(reader, bytes, sizeof(bytes) - 1)

#define NARROW "\0\0\0\x64"    /* 100 bytes */
#define WIDE   "\0\xf\xff\xff" /* only the kernels' buffers stop an answer */

/* A client with a narrow window, and the answer's first bytes. */
static void reader_asks_by_h2(struct reader *reader, size_t length)
{
    SAYS(reader, PREFACE SETTINGS(NARROW) ASKS("\1"));
    host_answers(&reader->lab, length);
    reader_reads(reader, 100);
    check_eq_u64(price_of(reader->client), PRICE_BUSY);
}

static void test_reader__a_slow_line_by_http2_is_left_alone(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader);
    reader_asks_by_h2(&reader, 50000);
    for (uint32_t i = 0; i < 40; i++) {
        lab_pass(&reader.lab, BECALM_S);
        ADDS(&reader, OPENS("\1"));
        reader_reads(&reader, 1000);
        check_eq_u64(price_of(reader.client), PRICE_BUSY);
    }
    reader_close(&reader);
}

static void test_reader__drips_by_http2_are_slow(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader);
    reader_asks_by_h2(&reader, 50000);
    lab_pass(&reader.lab, 4 * BECALM_S);
    ADDS(&reader, OPENS("\1"));
    reader_reads(&reader, 1000);
    check_eq_u64(price_of(reader.client), PRICE_BUSY);
    lab_pass(&reader.lab, 4 * BECALM_S);
    check_eq_u64(price_of(reader.client), PRICE_SLOW);
    reader_close(&reader);
}

static void test_reader__an_upload_by_a_slow_line_is_left_alone(void **state)
{
    (void)state;
    struct reader reader;
    static const char bytes[1009] = DATA;
    reader_open(&reader);
    ADDS(&reader, PREFACE SETTINGS(NARROW) UPLOADS);
    for (uint32_t i = 0; i < 40; i++) {
        reader_adds(&reader, bytes, sizeof bytes);
        check_eq_u64(price_of(reader.client), PRICE_BUSY);
        lab_pass(&reader.lab, BECALM_S);
    }
    lab_pass(&reader.lab, 20 * BECALM_S); /* and this is none */
    check_eq_u64(price_of(reader.client), PRICE_SLOW);
    reader_close(&reader);
}

static void test_reader__a_pause_between_two_answers_by_http2_is_not_slow(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader);
    reader_asks_by_h2(&reader, 1000);
    ADDS(&reader, OPENS("\1"));
    reader_reads(&reader, 900);
    check_eq_u64(price_of(reader.client), PRICE_IDLE);
    lab_pass(&reader.lab, 20 * BECALM_S);
    SAYS(&reader, ASKS("\3"));
    host_answers(&reader.lab, 1000);
    reader_reads(&reader, 100);
    check_eq_u64(price_of(reader.client), PRICE_BUSY);
    reader_close(&reader);
}

/* However much of an answer the kernels hold: while bytes of it wait here, the client is at work. */
static void test_reader__a_client_of_http2_that_has_not_taken_its_last_bytes_is_not_idle(void **state)
{
    (void)state;
    uint32_t seen = 0;
    for (size_t length = 1000; length < 40000; length += 3000) {
        struct reader reader;
        reader_open(&reader);
        SAYS(&reader, PREFACE SETTINGS(WIDE) "\0\0\4\x8\0\0\0\0\0" WIDE ASKS("\1"));
        host_answers(&reader.lab, length);
        if (client_blocked(reader.client)) {
            seen += client_h2_busy(reader.client) == 0; /* it has no stream any more */
            check_eq_u64(price_of(reader.client), PRICE_BUSY);
        }
        reader_close(&reader);
    }
    check_true(seen > 0);
}

BECALM_TESTS(cmocka_unit_test(test_reader__a_slow_line_by_http1_is_left_alone),
             cmocka_unit_test(test_reader__drips_behind_a_fast_beginning_are_slow),
             cmocka_unit_test(test_reader__a_pause_between_two_answers_by_http1_is_not_slow),
             cmocka_unit_test(test_reader__a_slow_line_by_http2_is_left_alone),
             cmocka_unit_test(test_reader__drips_by_http2_are_slow),
             cmocka_unit_test(test_reader__an_upload_by_a_slow_line_is_left_alone),
             cmocka_unit_test(test_reader__a_pause_between_two_answers_by_http2_is_not_slow),
             cmocka_unit_test(test_reader__a_client_of_http2_that_has_not_taken_its_last_bytes_is_not_idle))
