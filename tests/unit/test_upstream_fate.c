/* SPDX-License-Identifier: MIT */
#include "proxy/host/upstream.h"

#include "check.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUEST 77u

/* One connection, ours and the host's, on which a request was answered before. */
struct lab {
    int host;
    struct upstream_host address;
    struct upstream upstream;
};

static void say(int from, int to, size_t length)
{
    char bytes[REQUEST] = {0};
    check_eq_u64((uint64_t)write(from, bytes, length), length);
    check_eq_u64((uint64_t)recv(to, bytes, length, MSG_WAITALL), length);
}

static void lab_make(struct lab *lab)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    *lab = (struct lab){.upstream.wire.source.fd = socket(AF_INET, SOCK_STREAM, 0)};
    lab->address.address.any.sa_family = AF_INET;
    lab->upstream.host = &lab->address;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(connect(lab->upstream.wire.source.fd, (struct sockaddr *)&at, sizeof at), 0);
    lab->host = accept(listener, NULL, NULL);
    assert_true(lab->host >= 0);
    close(listener);
    say(lab->upstream.wire.source.fd, lab->host, 50);
    say(lab->host, lab->upstream.wire.source.fd, 60);
}

static void lab_free(struct lab *lab)
{
    if (lab->host >= 0) {
        close(lab->host);
    }
    close(lab->upstream.wire.source.fd);
}

static void host_close(struct lab *lab, bool abort)
{
    struct linger now = {.l_onoff = abort};
    assert_int_equal(setsockopt(lab->host, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(lab->host);
    lab->host = -1;
}

static void ask(struct lab *lab)
{
    char bytes[REQUEST] = {0};
    check_eq_u64((uint64_t)send(lab->upstream.wire.source.fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
}

static void host_reads(struct lab *lab)
{
    char bytes[REQUEST];
    check_eq_u64((uint64_t)recv(lab->host, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
}

/* The first event of the gateway, and its verdict, which comes later if the fate is still open at first. */
static void check_fate(struct lab *lab, ssize_t read, enum upstream_fate fate)
{
    char byte;
    struct pollfd wait = {lab->upstream.wire.source.fd, POLLIN, 0};
    assert_int_equal(poll(&wait, 1, 10000), 1);
    assert_int_equal(recv(lab->upstream.wire.source.fd, &byte, 1, 0), read);
    enum upstream_fate found = upstream_fate(&lab->upstream, REQUEST);
    for (int i = 0; i < 500 && found != fate; i++) {
        assert_int_equal(found, UPSTREAM_FATE_OPEN); /* never the wrong one in between */
        (void)poll(NULL, 0, 20);
        found = upstream_fate(&lab->upstream, REQUEST);
    }
    assert_int_equal(found, fate);
    lab_free(lab);
}

static void test_fate__what_came_after_the_close_was_read_by_nobody(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    host_close(&lab, false);
    ask(&lab);
    check_fate(&lab, 0, UPSTREAM_FATE_UNREAD);
}

static void test_fate__what_was_read_before_the_close_is_not_unread(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    ask(&lab);
    host_reads(&lab);
    host_close(&lab, false);
    check_fate(&lab, 0, UPSTREAM_FATE_UNKNOWN);
}

static void test_fate__a_host_that_closed_one_side_may_read_the_request(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_int_equal(shutdown(lab.host, SHUT_WR), 0);
    ask(&lab); /* which its system acknowledges when it likes */
    check_fate(&lab, 0, UPSTREAM_FATE_UNKNOWN);
}

static void test_fate__also_if_it_read_and_closed_before_anything_was_acknowledged(void **state)
{
    (void)state;
    struct lab lab;
    lab_make(&lab);
    assert_int_equal(shutdown(lab.host, SHUT_WR), 0);
    ask(&lab);
    host_reads(&lab);
    host_close(&lab, false);
    check_fate(&lab, 0, UPSTREAM_FATE_UNKNOWN);
}

static void test_fate__a_request_that_is_partly_acknowledged_is_not_unread(void **state)
{
    (void)state;
    struct lab lab;
    char bytes[10] = {0};
    lab_make(&lab);
    say(lab.upstream.wire.source.fd, lab.host, 10);
    say(lab.host, lab.upstream.wire.source.fd, 1); /* and acknowledges the ten */
    host_close(&lab, false);
    check_eq_u64((uint64_t)send(lab.upstream.wire.source.fd, bytes, REQUEST - 67, MSG_NOSIGNAL), 10);
    check_fate(&lab, 0, UPSTREAM_FATE_UNKNOWN);
}

static void test_fate__of_a_unix_socket_is_unknown(void **state)
{
    (void)state;
    struct lab lab = {.address.address.any.sa_family = AF_UNIX};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    lab.upstream.wire.source.fd = pair[0];
    lab.upstream.host = &lab.address;
    lab.host = pair[1];
    assert_int_equal(shutdown(lab.host, SHUT_WR), 0);
    check_fate(&lab, 0, UPSTREAM_FATE_UNKNOWN);
}

BECALM_TESTS(cmocka_unit_test(test_fate__what_came_after_the_close_was_read_by_nobody),
             cmocka_unit_test(test_fate__what_was_read_before_the_close_is_not_unread),
             cmocka_unit_test(test_fate__a_host_that_closed_one_side_may_read_the_request),
             cmocka_unit_test(test_fate__also_if_it_read_and_closed_before_anything_was_acknowledged),
             cmocka_unit_test(test_fate__a_request_that_is_partly_acknowledged_is_not_unread),
             cmocka_unit_test(test_fate__of_a_unix_socket_is_unknown))
