/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wire/wire.h"

#include "allocator.h"
#include "check.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if BECALM_OWN_ALLOCATOR
static bool no_memory;

BECALM_VISIBLE void *realloc(void *memory, size_t size)
{
    return no_memory ? NULL : __libc_realloc(memory, size);
}

static bool old_kernel; /* one whose struct tcp_info ends before the bytes that the peer has taken */

BECALM_VISIBLE int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict length)
{
    socklen_t known = offsetof(struct tcp_info, tcpi_bytes_acked);
    if (old_kernel && level == IPPROTO_TCP && option == TCP_INFO && *length > known) {
        *length = known;
    }
    return (int)syscall(SYS_getsockopt, fd, level, option, value, length);
}
#endif

#define LARGE (4u * 1024 * 1024) /* more than a socket takes */

/* One end is a wire, the other end is the peer's descriptor. */
struct pair {
    struct wire wire;
    int peer;
};

static struct pair pair_make(void)
{
    int fd[2];
    check_true(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
    return (struct pair){.wire = {.source = {.fd = fd[0], .readable = true}}, .peer = fd[1]};
}

static void pair_free(struct pair *pair)
{
    close(pair->wire.source.fd);
    if (pair->peer >= 0) {
        close(pair->peer);
    }
    bytes_free(&pair->wire.out);
}

static void peer_says(const struct pair *pair, const char *text)
{
    check_eq_u64((uint64_t)write(pair->peer, text, strlen(text)), strlen(text));
}

static bool reads(struct wire *wire, size_t size, ssize_t expected)
{
    char into[64];
    return wire_read(wire, into, size) == expected;
}

static struct iovec part_of(const char *at, size_t length)
{
    return (struct iovec){(char *)(uintptr_t)at, length};
}

static void test_wire__nothing_to_read_means_later(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    check_true(reads(&pair.wire, 64, WIRE_LATER));
    check_true(!wire_readable(&pair.wire));
    check_true(!wire_ended(&pair.wire));
    pair_free(&pair);
}

static void test_wire__a_short_read_has_emptied_the_socket(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    peer_says(&pair, "hello");
    check_true(reads(&pair.wire, 64, 5));
    check_true(!wire_readable(&pair.wire));
    wire_again(&pair.wire);
    check_true(wire_readable(&pair.wire));
    wire_wait(&pair.wire);
    check_true(!wire_readable(&pair.wire));
    pair_free(&pair);
}

static void test_wire__a_full_read_leaves_it_readable(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    peer_says(&pair, "hello");
    check_true(reads(&pair.wire, 5, 5));
    check_true(wire_readable(&pair.wire));
    pair_free(&pair);
}

static void test_wire__what_was_sent_before_the_end_is_read_first(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    peer_says(&pair, "bye");
    check_true(shutdown(pair.peer, SHUT_WR) == 0);
    wire_note(&pair.wire, EPOLLIN | EPOLLRDHUP);
    check_true(wire_ended(&pair.wire));
    check_true(reads(&pair.wire, 64, 3));
    check_true(wire_readable(&pair.wire)); /* the end was told already, and no event will tell it again */
    check_true(!wire_over(&pair.wire));
    check_true(reads(&pair.wire, 64, WIRE_END));
    check_true(wire_over(&pair.wire));
    pair_free(&pair);
}

static void test_wire__an_end_that_no_event_told_is_noted_by_reading(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    check_true(shutdown(pair.peer, SHUT_WR) == 0);
    check_true(reads(&pair.wire, 64, WIRE_END));
    check_true(wire_over(&pair.wire));
    pair_free(&pair);
}

static void test_wire__a_gone_peer_breaks_it_for_writing(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    close(pair.peer);
    pair.peer = -1;
    struct iovec part = part_of("hello", 5);
    check_true(wire_write(&pair.wire, &part, 1) == WIRE_BROKEN);
    check_true(!wire_blocked(&pair.wire));
    pair_free(&pair);
}

static void test_wire__a_reset_breaks_it_for_reading(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    struct iovec part = part_of("hello", 5);
    check_true(wire_write(&pair.wire, &part, 1) == 5);
    close(pair.peer); /* with bytes unread: a Unix socket says so as TCP does */
    pair.peer = -1;
    check_true(reads(&pair.wire, 64, WIRE_BROKEN));
    pair_free(&pair);
}

/* Reads all that the peer's socket has, and compares it with the expected bytes. */
static size_t peer_reads(const struct pair *pair, const char *expected, size_t at)
{
    static char into[LARGE];
    ssize_t got;
    while ((got = read(pair->peer, into, sizeof into)) > 0) {
        check_true(memcmp(into, expected + at, (size_t)got) == 0);
        at += (size_t)got;
    }
    return at;
}

static void test_wire__what_the_socket_does_not_take_waits_and_goes_in_order(void **state)
{
    (void)state;
    static char text[2 * LARGE + 3];
    struct pair pair = pair_make();
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)(i * 7 + i / 251);
    }
    struct iovec part[4] = {part_of(text, 3), part_of(text + 3, 0), part_of(text + 3, LARGE - 7),
                            part_of(text + LARGE - 4, 7)};
    ssize_t sent = wire_write(&pair.wire, part, 4);
    check_true(sent > 0 && (size_t)sent < LARGE);
    check_true(wire_blocked(&pair.wire));
    check_eq_u64(bytes_left(&pair.wire.out), LARGE + 3 - (uint64_t)sent);
    check_true(wire_write(&pair.wire, NULL, 0) == 0); /* the peer still does not read */
    struct iovec more = part_of(text + 3 + LARGE, LARGE);
    check_true(wire_write(&pair.wire, &more, 1) == 0);
    check_eq_u64(bytes_left(&pair.wire.out), 2 * LARGE + 3 - (uint64_t)sent);
    size_t came = 0;
    while (wire_blocked(&pair.wire)) {
        came = peer_reads(&pair, text, came);
        check_true(wire_write(&pair.wire, NULL, 0) > 0);
    }
    check_eq_u64(peer_reads(&pair, text, came), sizeof text);
    check_eq_u64(pair.wire.out.size, 0); /* nothing waits, so it owns nothing */
    pair_free(&pair);
}

static void test_wire__says_when_there_is_no_memory_for_the_rest(void **state)
{
    (void)state;
#if BECALM_OWN_ALLOCATOR
    static char text[LARGE];
    struct pair pair = pair_make();
    struct iovec part = part_of(text, sizeof text);
    no_memory = true;
    ssize_t sent = wire_write(&pair.wire, &part, 1);
    no_memory = false;
    check_true(sent == WIRE_FULL);
    pair_free(&pair);
#else
    skip();
#endif
}

static void test_wire__writing_nothing_sends_what_waits(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    check_true(wire_write(&pair.wire, NULL, 0) == 0);
    check_true(bytes_add(&pair.wire.out, "hello", 5));
    check_true(wire_write(&pair.wire, NULL, 0) == 5);
    check_true(!wire_blocked(&pair.wire));
    pair_free(&pair);
}

static void test_wire__a_look_reads_nothing(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    check_true(wire_peek(&pair.wire) == WIRE_QUIET);
    peer_says(&pair, "x");
    check_true(wire_peek(&pair.wire) == WIRE_SPEAKS);
    check_true(reads(&pair.wire, 64, 1));
    close(pair.peer);
    pair.peer = -1;
    check_true(wire_peek(&pair.wire) == WIRE_GONE);
    pair_free(&pair);
}

static void test_wire__a_look_sees_a_reset(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    struct iovec part = part_of("hello", 5);
    check_true(wire_write(&pair.wire, &part, 1) == 5);
    close(pair.peer);
    pair.peer = -1;
    check_true(wire_peek(&pair.wire) == WIRE_GONE);
    pair_free(&pair);
}

static void test_wire__a_shut_wire_still_reads(void **state)
{
    (void)state;
    struct pair pair = pair_make();
    char byte;
    wire_shut(&pair.wire);
    check_true(read(pair.peer, &byte, 1) == 0);
    peer_says(&pair, "x");
    check_true(reads(&pair.wire, 64, 1));
    pair_free(&pair);
}

/* The same over TCP. */
static struct pair pair_make_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check_true(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    check_true(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    check_true(connect(peer, (struct sockaddr *)&address, length) == 0);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    check_true(fd >= 0);
    close(listener);
    return (struct pair){.wire = {.source = {.fd = fd, .readable = true}}, .peer = peer};
}

static void test_wire__counts_what_the_peer_has_taken_where_the_kernel_does(void **state)
{
    (void)state;
    uint32_t bytes = 0;
    struct pair local = pair_make();
    check_true(!wire_taken(&local.wire, &bytes)); /* no TCP */
    pair_free(&local);
    struct pair pair = pair_make_tcp();
    check_true(!wire_taken(&pair.wire, &bytes)); /* nothing yet, or never */
    struct iovec part = part_of("hello", 5);
    check_true(wire_write(&pair.wire, &part, 1) == 5);
    for (int i = 0; i < 60000 && !wire_taken(&pair.wire, &bytes); i++) {
        poll(NULL, 0, 1); /* its kernel's word is on its way */
    }
    check_eq_u64(bytes, 5);
#if BECALM_OWN_ALLOCATOR
    old_kernel = true;
    check_true(!wire_taken(&pair.wire, &bytes));
    old_kernel = false;
#endif
    check_true(wire_taken(&pair.wire, &bytes));
    pair_free(&pair);
}

BECALM_TESTS(cmocka_unit_test(test_wire__nothing_to_read_means_later),
             cmocka_unit_test(test_wire__a_short_read_has_emptied_the_socket),
             cmocka_unit_test(test_wire__a_full_read_leaves_it_readable),
             cmocka_unit_test(test_wire__what_was_sent_before_the_end_is_read_first),
             cmocka_unit_test(test_wire__an_end_that_no_event_told_is_noted_by_reading),
             cmocka_unit_test(test_wire__a_gone_peer_breaks_it_for_writing),
             cmocka_unit_test(test_wire__a_reset_breaks_it_for_reading),
             cmocka_unit_test(test_wire__what_the_socket_does_not_take_waits_and_goes_in_order),
             cmocka_unit_test(test_wire__says_when_there_is_no_memory_for_the_rest),
             cmocka_unit_test(test_wire__writing_nothing_sends_what_waits),
             cmocka_unit_test(test_wire__a_look_reads_nothing), cmocka_unit_test(test_wire__a_look_sees_a_reset),
             cmocka_unit_test(test_wire__a_shut_wire_still_reads),
             cmocka_unit_test(test_wire__counts_what_the_peer_has_taken_where_the_kernel_does))
