/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "gateway/resolve.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

/* A name server of our own on the loopback, in the same thread: it answers when the test turns the crank. Time is
 * passed to the resolver by hand; only the bytes travel in real time, and nothing waits for a time but for an event. */

#define RECORDS_MAX 8u
#define TURNS_MAX   2000 /* of at most 10 ms each, before a test gives up */
#define TYPE_A      1u
#define TYPE_AAAA   28u
#define TYPE_SRV    33u

struct record {
    const char *ip; /* of either kind */
    uint32_t ttl;
    char of; /* the first letter of the one name that has it; 0: every name has */
};

struct place {
    uint16_t priority, weight, port;
    char host; /* its name is this letter in .test; '.': there is no such service; 0: no record */
    uint32_t ttl;
};

struct lab {
    int fd;
    unsigned questions;
    unsigned rcode;
    bool silent;
    struct record records[RECORDS_MAX];
    struct place places[RECORDS_MAX]; /* of every name of a service */

    struct resolver *resolver;
    becalm_ns now;
    unsigned results; /* how many came, and the last of them */
    bool changed;
    bool failed;
    const char *why;
    becalm_ns wait;
    char addresses[512];
    struct resolve *stop_inside; /* stopped by the callback, if it is not NULL */
};

static void lab_open(struct lab *lab, uint32_t timeout_ms)
{
    union address_socket at = {.v4 = {.sin_family = AF_INET}};
    socklen_t length = sizeof at.v4;
    char servers[32];
    memset(lab, 0, sizeof *lab);
    lab->now = 1000 * BECALM_S;
    at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    lab->fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(lab->fd >= 0);
    assert_int_equal(bind(lab->fd, &at.any, length), 0);
    assert_int_equal(getsockname(lab->fd, &at.any, &length), 0);
    (void)snprintf(servers, sizeof servers, "127.0.0.1:%u", ntohs(at.v4.sin_port));
    lab->resolver = resolver_make(
        &(struct resolver_options){.seed = 1, .servers = servers, .timeout_ms = timeout_ms == 0 ? 5000 : timeout_ms});
    assert_non_null(lab->resolver);
    check_eq_u64(resolver_wake_at(lab->resolver), BECALM_NEVER);
}

static void lab_close(struct lab *lab)
{
    resolver_free(lab->resolver);
    (void)close(lab->fd);
}

static void lab_records(struct lab *lab, uint32_t ttl, const char *first, const char *second, const char *third)
{
    memset(lab->records, 0, sizeof lab->records);
    lab->records[0] = (struct record){first, ttl, 0};
    lab->records[1] = (struct record){second, ttl, 0};
    lab->records[2] = (struct record){third, ttl, 0};
}

static void on_result(const struct resolve_result *result, void *data)
{
    struct lab *lab = data;
    size_t used = 0;
    lab->results++;
    lab->changed = result->changed;
    lab->failed = result->why != NULL;
    lab->why = result->why;
    lab->wait = result->wait;
    lab->addresses[0] = '\0';
    for (uint32_t i = 0; i < result->count; i++) {
        char text[ADDRESS_TEXT_MAX];
        (void)address_write(&result->addresses[i], text, sizeof text);
        used += (size_t)snprintf(lab->addresses + used, sizeof lab->addresses - used, "%s%s", i == 0 ? "" : " ", text);
    }
    if (lab->stop_inside != NULL) {
        resolve_stop(lab->resolver, lab->stop_inside);
        lab->stop_inside = NULL;
    }
}

static struct resolve *lab_start(struct lab *lab, const char *name)
{
    struct resolve_request request = {.name = name, .port = 80, .each = on_result, .data = lab};
    struct resolve *resolve = resolve_start(lab->resolver, &request, lab->now);
    assert_non_null(resolve);
    check_between_u64(resolver_wake_at(lab->resolver), 0, lab->now);
    return resolve;
}

/* Appends the record as an answer about the question's name, which is at byte 12. */
static size_t record_write(unsigned char *at, const struct record *record, unsigned type)
{
    const unsigned char head[] = {0xc0,
                                  12,
                                  0,
                                  (unsigned char)type,
                                  0,
                                  1,
                                  (unsigned char)(record->ttl >> 24),
                                  (unsigned char)(record->ttl >> 16),
                                  (unsigned char)(record->ttl >> 8),
                                  (unsigned char)record->ttl,
                                  0,
                                  type == TYPE_A ? 4 : 16};
    memcpy(at, head, sizeof head);
    assert_int_equal(inet_pton(type == TYPE_A ? AF_INET : AF_INET6, record->ip, at + sizeof head), 1);
    return sizeof head + head[11];
}

static size_t place_write(unsigned char *at, const struct place *place)
{
    const unsigned char name[] = {1, (unsigned char)place->host, 4, 't', 'e', 's', 't', 0};
    bool nowhere = place->host == '.';
    const unsigned char head[] = {0xc0,
                                  12,
                                  0,
                                  TYPE_SRV,
                                  0,
                                  1,
                                  (unsigned char)(place->ttl >> 24),
                                  (unsigned char)(place->ttl >> 16),
                                  (unsigned char)(place->ttl >> 8),
                                  (unsigned char)place->ttl,
                                  0,
                                  nowhere ? 7 : 6 + sizeof name,
                                  (unsigned char)(place->priority >> 8),
                                  (unsigned char)place->priority,
                                  (unsigned char)(place->weight >> 8),
                                  (unsigned char)place->weight,
                                  (unsigned char)(place->port >> 8),
                                  (unsigned char)place->port};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, nowhere ? name + sizeof name - 1 : name, nowhere ? 1 : sizeof name);
    return sizeof head + (nowhere ? 1 : sizeof name);
}

static size_t lab_answer(const struct lab *lab, unsigned char *packet, size_t length)
{
    size_t end = 12;
    while (end < length && packet[end] != 0) {
        end += (size_t)packet[end] + 1;
    }
    end += 5; /* the last label, type, class */
    assert_true(end <= length);
    unsigned type = packet[end - 3];
    packet[2] |= 0x84; /* an answer, of authority */
    packet[3] = (unsigned char)lab->rcode;
    memset(packet + 6, 0, 6);
    for (unsigned i = 0; lab->rcode == 0 && i < RECORDS_MAX && lab->records[i].ip != NULL; i++) {
        bool is_v6 = strchr(lab->records[i].ip, ':') != NULL;
        bool its = lab->records[i].of == 0 || (unsigned char)lab->records[i].of == packet[13];
        if (its && (type == TYPE_A || type == TYPE_AAAA) && is_v6 == (type == TYPE_AAAA)) {
            end += record_write(packet + end, &lab->records[i], type);
            packet[7]++;
        }
    }
    for (unsigned i = 0; type == TYPE_SRV && lab->rcode == 0 && i < RECORDS_MAX && lab->places[i].host != 0; i++) {
        end += place_write(packet + end, &lab->places[i]);
        packet[7]++;
    }
    return end;
}

static void lab_serve(struct lab *lab)
{
    unsigned char packet[1024];
    union address_socket from;
    socklen_t from_length = sizeof from;
    ssize_t length = recvfrom(lab->fd, packet, 512, 0, &from.any, &from_length);
    assert_true(length > 12);
    lab->questions++;
    if (!lab->silent) {
        size_t bytes = lab_answer(lab, packet, (size_t)length);
        assert_int_equal(sendto(lab->fd, packet, bytes, 0, &from.any, from_length), (ssize_t)bytes);
    }
}

/* One turn: all ready events are handled. */
static void lab_turn(struct lab *lab)
{
    struct pollfd fds[] = {{.fd = lab->fd, .events = POLLIN}, {.fd = resolver_fd(lab->resolver), .events = POLLIN}};
    assert_true(poll(fds, 2, 10) >= 0);
    if (fds[0].revents != 0) {
        lab_serve(lab);
    }
    resolver_run(lab->resolver, lab->now);
}

static void lab_await(struct lab *lab, unsigned results)
{
    for (int turn = 0; lab->results < results; turn++) {
        if (turn == TURNS_MAX) {
            fail_msg("no answer came");
        }
        lab_turn(lab);
    }
}

static void test_resolve__a_resolver_without_names_sleeps_for_ever(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    resolver_run(lab.resolver, lab.now);
    check_eq_u64(resolver_wake_at(lab.resolver), BECALM_NEVER);
    lab_close(&lab);
    resolver_free(NULL);
}

static void test_resolve__gives_each_address_once_with_its_port(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 30, "127.0.0.2", "127.0.0.1", "127.0.0.2");
    lab_start(&lab, "pay.test");
    lab_await(&lab, 1);
    check_eq_str(lab.addresses, "127.0.0.1:80 127.0.0.2:80");
    check_true(lab.changed && !lab.failed);
    check_eq_u64(lab.wait, 30 * BECALM_S);
    check_eq_u64(lab.questions, 2); /* A and AAAA */
    check_eq_u64(resolver_wake_at(lab.resolver), lab.now + 30 * BECALM_S);
    lab_close(&lab);
}

static void test_resolve__ipv6_alone_is_kept_even_without_a_route(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 30, "2001:db8::2", "2001:db8::1", NULL);
    lab_start(&lab, "six.test");
    lab_await(&lab, 1);
    check_eq_str(lab.addresses, "[2001:db8::1]:80 [2001:db8::2]:80");
    lab_close(&lab);
}

static void test_resolve__ipv4_is_there_whatever_becomes_of_ipv6(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 30, "2001:db8::1", "127.0.0.1", NULL);
    lab_start(&lab, "both.test");
    lab_await(&lab, 1);
    check_true(strcmp(lab.addresses, "127.0.0.1:80") == 0 ||
               strcmp(lab.addresses, "127.0.0.1:80 [2001:db8::1]:80") == 0);
    lab_close(&lab);
}

static void test_resolve__asks_again_when_the_records_expire(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 30, "127.0.0.1", "127.0.0.2", NULL);
    lab_start(&lab, "pay.test");
    lab_await(&lab, 1);
    lab.now += 30 * BECALM_S - 1;
    resolver_run(lab.resolver, lab.now);
    check_eq_u64(lab.questions, 2);
    check_eq_u64(resolver_wake_at(lab.resolver), lab.now + 1);
    lab.now += 1;
    lab_records(&lab, 30, "127.0.0.2", "127.0.0.1", NULL); /* the list was turned: no change */
    lab_await(&lab, 2);
    check_eq_u64(lab.questions, 4);
    check_true(!lab.changed);
    lab.now += 30 * BECALM_S;
    lab_records(&lab, 30, "127.0.0.3", "127.0.0.1", NULL);
    lab_await(&lab, 3);
    check_true(lab.changed);
    check_eq_str(lab.addresses, "127.0.0.1:80 127.0.0.3:80");
    lab_close(&lab);
}

static void test_resolve__times_to_live_have_bounds_and_the_shortest_counts(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 0, "127.0.0.1", NULL, NULL);
    lab_start(&lab, "pay.test");
    lab_await(&lab, 1);
    check_eq_u64(lab.wait, RESOLVE_TTL_MIN);
    lab.now += lab.wait;
    lab_records(&lab, 86400, "127.0.0.1", NULL, NULL);
    lab_await(&lab, 2);
    check_eq_u64(lab.wait, RESOLVE_TTL_MAX);
    lab.now += lab.wait;
    lab_records(&lab, 60, "127.0.0.1", "127.0.0.2", NULL);
    lab.records[1].ttl = 7;
    lab_await(&lab, 3);
    check_eq_u64(lab.wait, 7 * BECALM_S);
    lab_close(&lab);
}

static void test_resolve__a_failure_keeps_the_addresses_and_backs_off(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 5, "127.0.0.1", NULL, NULL);
    lab_start(&lab, "pay.test.");
    lab_await(&lab, 1);
    lab.rcode = 3; /* no such name */
    becalm_ns cap = 500 * BECALM_MS;
    becalm_ns longest = 0;
    for (unsigned i = 0; i < 12; i++) {
        lab.now += lab.wait;
        lab_await(&lab, 2 + i);
        check_true(lab.failed && !lab.changed);
        check_eq_str(lab.addresses, "127.0.0.1:80");
        check_between_u64(lab.wait, 0, cap);
        longest = becalm_ns_max(longest, lab.wait);
        cap = becalm_ns_min(2 * cap, 30 * BECALM_S);
    }
    check_between_u64(longest, 2 * BECALM_S, 30 * BECALM_S); /* it has grown */
    lab.rcode = 0;
    lab.now += lab.wait;
    lab_await(&lab, 14);
    check_true(!lab.failed && !lab.changed);
    lab.rcode = 3;
    lab.now += lab.wait;
    lab_await(&lab, 15);
    check_between_u64(lab.wait, 0, 500 * BECALM_MS); /* from the beginning */
    lab_close(&lab);
}

/* How many descriptors this process may have. Returns how many it could have before. */
static rlim_t descriptors(rlim_t most)
{
    struct rlimit limit;
    check_true(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    check_true(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    return before;
}

static void test_resolve__where_the_list_of_name_servers_can_t_be_opened_it_is_read_later(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 60, "127.0.0.1", NULL, NULL);
    rlim_t before = descriptors(3); /* those that are open stay, and no more can be opened */
    resolver_prepare(lab.resolver);
    lab_start(&lab, "pay.test.");
    becalm_ns cap = 500 * BECALM_MS;
    for (unsigned i = 0; i < 4; i++) {
        lab_await(&lab, 1 + i);
        check_true(lab.failed);
        check_eq_str(lab.why, RESOLVE_NO_CHANNEL);
        check_between_u64(lab.wait, 0, cap);
        check_eq_u64(resolver_wake_at(lab.resolver), lab.now + lab.wait);
        lab.now += lab.wait;
        cap *= 2;
    }
    (void)descriptors(before);
    lab_await(&lab, 5);
    check_true(!lab.failed && lab.changed);
    check_eq_str(lab.addresses, "127.0.0.1:80");
    lab_close(&lab);
}

static void test_resolve__a_name_that_never_was_has_no_addresses(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_start(&lab, "nothing.test."); /* the name is there, and has no records */
    lab_await(&lab, 1);
    check_true(lab.failed && !lab.changed);
    check_eq_str(lab.addresses, "");
    lab_close(&lab);
}

static void test_resolve__a_silent_server_is_a_failure_in_the_end(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 20);
    lab.silent = true;
    lab_start(&lab, "pay.test.");
    resolver_run(lab.resolver, lab.now);
    check_between_u64(resolver_wake_at(lab.resolver), lab.now, lab.now + BECALM_S); /* for c-ares' own timeout */
    lab_await(&lab, 1);
    check_true(lab.failed);
    check_between_u64(lab.questions, 2, 100);
    lab_close(&lab);
}

static void test_resolve__localhost_needs_no_server(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab.rcode = 2; /* in trouble */
    lab_start(&lab, "localhost");
    lab_await(&lab, 1);
    check_true(!lab.failed);
    check_true(strncmp(lab.addresses, "127.0.0.1:80", 12) == 0);
    check_eq_u64(lab.questions, 0);
    lab_close(&lab);
}

/* A name of this machine's /etc/hosts, other than localhost, which c-ares knows by itself. */
static bool hosts_file_name(char name[64])
{
    char line[256];
    FILE *file = fopen("/etc/hosts", "r");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char ip[64];
        struct in_addr v4;
        found = sscanf(line, "%63s %63s", ip, name) == 2 && inet_pton(AF_INET, ip, &v4) == 1 &&
                strcmp(name, "localhost") != 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

static void test_resolve__the_hosts_file_comes_before_the_server(void **state)
{
    (void)state;
    struct lab lab;
    char name[64];
    if (!hosts_file_name(name)) {
        skip(); /* nothing is in it here */
    }
    lab_open(&lab, 0);
    lab_start(&lab, name);
    lab_await(&lab, 1);
    check_true(!lab.failed);
    check_eq_u64(lab.questions, 0);
    check_eq_u64(lab.wait, RESOLVE_TTL_MIN); /* the file may change */
    lab_close(&lab);
}

static void test_resolve__who_was_stopped_hears_nothing_more(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_records(&lab, 5, "127.0.0.1", NULL, NULL);
    resolve_stop(lab.resolver, lab_start(&lab, "never-asked.test")); /* before its question */
    resolver_run(lab.resolver, lab.now);
    check_eq_u64(resolver_wake_at(lab.resolver), BECALM_NEVER);
    struct resolve *asked = lab_start(&lab, "asked.test"); /* while it is in flight */
    resolver_run(lab.resolver, lab.now);
    resolve_stop(lab.resolver, asked);
    resolver_run(lab.resolver, lab.now);
    check_true(resolver_wake_at(lab.resolver) > lab.now); /* it does not spin until the answer comes */
    lab.stop_inside = lab_start(&lab, "inside.test");     /* and from its own callback */
    lab_await(&lab, 1);
    for (unsigned i = 0; i < 3; i++) {
        lab.now += 10 * BECALM_S;
        lab_turn(&lab);
    }
    check_eq_u64(lab.results, 1);
    lab_close(&lab);
}

static struct resolve *lab_start_srv(struct lab *lab)
{
    struct resolve_request request = {
        .name = "_http._tcp.shop.test", .port = RESOLVE_SRV, .each = on_result, .data = lab};
    struct resolve *resolve = resolve_start(lab->resolver, &request, lab->now);
    assert_non_null(resolve);
    return resolve;
}

static void test_resolve__srv_records_say_where_and_at_which_port(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab.records[0] = (struct record){"127.0.0.1", 60, 'a'};
    lab.records[1] = (struct record){"127.0.0.2", 60, 'b'};
    lab.records[2] = (struct record){"127.0.0.3", 60, 'b'};
    lab.places[0] = (struct place){1, 10, 9001, 'b', 20};
    lab.places[1] = (struct place){1, 90, 9000, 'a', 40};
    lab.places[2] = (struct place){1, 90, 9002, 'a', 40};
    lab_start_srv(&lab);
    lab_await(&lab, 1);
    check_eq_str(lab.addresses, "127.0.0.1:9000 127.0.0.2:9001 127.0.0.3:9001 127.0.0.1:9002");
    check_true(lab.changed && !lab.failed);
    check_eq_u64(lab.wait, 20 * BECALM_S); /* the shortest of the SRV records */
    lab.now += 20 * BECALM_S;
    lab.records[0].ttl = 5;
    lab.places[0].host = 0; /* all are gone */
    lab.places[1].host = 0;
    lab_await(&lab, 2);
    check_true(lab.failed && !lab.changed);
    check_eq_str(lab.addresses, "127.0.0.1:9000 127.0.0.2:9001 127.0.0.3:9001 127.0.0.1:9002");
    lab.now += lab.wait;
    lab.places[0] = (struct place){1, 1, 9009, 'a', 40};
    lab_await(&lab, 3);
    check_true(lab.changed && !lab.failed);
    check_eq_str(lab.addresses, "127.0.0.1:9009");
    check_eq_u64(lab.wait, 5 * BECALM_S); /* the host's own is shorter */
    lab.now += lab.wait;
    lab.records[0].ttl = 60;
    lab.places[0].ttl = UINT32_C(0x80000000); /* above 2^31 it is 0 (RFC 2181) */
    lab_await(&lab, 4);
    check_eq_u64(lab.wait, RESOLVE_TTL_MIN);
    lab_close(&lab);
}

static void test_resolve__of_srv_records_the_best_priority_that_has_addresses_counts(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab.records[0] = (struct record){"127.0.0.1", 30, 'a'};
    lab.records[1] = (struct record){"127.0.0.2", 30, 'b'};
    lab.records[2] = (struct record){"127.0.0.3", 30, 'c'};
    lab.places[0] = (struct place){20, 1, 9000, 'c', 30};
    lab.places[1] = (struct place){10, 0, 9000, 'b', 30}; /* weight 0 beside another one */
    lab.places[2] = (struct place){10, 5, 9000, 'a', 30};
    lab.places[3] = (struct place){5, 5, 9000, 'x', 30}; /* whose host has no addresses */
    lab.places[4] = (struct place){1, 5, 0, 'c', 30};    /* no port */
    lab.places[5] = (struct place){1, 5, 1, '.', 30};
    lab_start_srv(&lab);
    lab_await(&lab, 1);
    check_eq_str(lab.addresses, "127.0.0.1:9000");
    lab.now += lab.wait;
    lab.places[2].weight = 0; /* now both have the same chance */
    lab_await(&lab, 2);
    check_eq_str(lab.addresses, "127.0.0.1:9000 127.0.0.2:9000");
    lab.now += lab.wait;
    lab.records[0].of = lab.records[1].of = 'z';
    lab_await(&lab, 3);
    check_eq_str(lab.addresses, "127.0.0.3:9000"); /* the last resort */
    lab.now += lab.wait;
    memset(lab.places, 0, sizeof lab.places);
    lab.places[0] = (struct place){1, 1, 1, '.', 30};
    lab_await(&lab, 4);
    check_true(lab.failed);
    check_eq_str(lab.addresses, "127.0.0.3:9000");
    lab_close(&lab);
}

static void test_resolve__who_asked_for_srv_records_may_stop_at_any_moment(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 6; turns++) { /* before, between and behind its questions */
        for (int freed = 0; freed < 2; freed++) {
            struct lab lab;
            lab_open(&lab, 0);
            lab.records[0] = (struct record){"127.0.0.1", 30, 'a'};
            lab.places[0] = (struct place){1, 1, 9000, 'a', 30};
            lab.places[1] = (struct place){1, 1, 9001, 'b', 30};
            struct resolve *resolve = lab_start_srv(&lab);
            for (unsigned i = 0; i < turns; i++) {
                lab_turn(&lab);
            }
            unsigned results = lab.results;
            if (freed == 0) {
                resolve_stop(lab.resolver, resolve);
                for (unsigned i = 0; i < 6; i++) {
                    lab_turn(&lab);
                }
            }
            lab_close(&lab);
            check_eq_u64(lab.results, results);
        }
    }
}

static void test_resolve__can_be_freed_with_questions_in_flight(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, 0);
    lab_start(&lab, "a.test");
    lab_start(&lab, "b.test");
    resolver_run(lab.resolver, lab.now);
    resolve_stop(lab.resolver, lab_start(&lab, "c.test"));
    lab_close(&lab);
    check_eq_u64(lab.results, 0);
}

BECALM_TESTS(cmocka_unit_test(test_resolve__a_resolver_without_names_sleeps_for_ever),
             cmocka_unit_test(test_resolve__gives_each_address_once_with_its_port),
             cmocka_unit_test(test_resolve__ipv6_alone_is_kept_even_without_a_route),
             cmocka_unit_test(test_resolve__ipv4_is_there_whatever_becomes_of_ipv6),
             cmocka_unit_test(test_resolve__asks_again_when_the_records_expire),
             cmocka_unit_test(test_resolve__times_to_live_have_bounds_and_the_shortest_counts),
             cmocka_unit_test(test_resolve__a_failure_keeps_the_addresses_and_backs_off),
             cmocka_unit_test(test_resolve__where_the_list_of_name_servers_can_t_be_opened_it_is_read_later),
             cmocka_unit_test(test_resolve__a_name_that_never_was_has_no_addresses),
             cmocka_unit_test(test_resolve__a_silent_server_is_a_failure_in_the_end),
             cmocka_unit_test(test_resolve__localhost_needs_no_server),
             cmocka_unit_test(test_resolve__the_hosts_file_comes_before_the_server),
             cmocka_unit_test(test_resolve__who_was_stopped_hears_nothing_more),
             cmocka_unit_test(test_resolve__srv_records_say_where_and_at_which_port),
             cmocka_unit_test(test_resolve__of_srv_records_the_best_priority_that_has_addresses_counts),
             cmocka_unit_test(test_resolve__who_asked_for_srv_records_may_stop_at_any_moment),
             cmocka_unit_test(test_resolve__can_be_freed_with_questions_in_flight))
