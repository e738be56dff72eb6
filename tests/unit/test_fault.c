/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "fault/fault_book.h"
#include "h1/h1.h"

#include <becalm/rand.h>

#include <stdio.h>

/* ---- orders ---- */

static struct becalm_diags diags;

static struct fault *read_order(const char *text)
{
    memset(&diags, 0, sizeof diags);
    struct yaml_tree *tree = yaml_parse("body", text, strlen(text), &diags);
    struct fault *fault = tree == NULL ? NULL : fault_read(tree, &diags);
    yaml_free(tree);
    return fault;
}

static void check_refused(const char *text, const char *why)
{
    struct fault *fault = read_order(text);
    check_true(fault == NULL);
    check_true(diags.count > 0);
    if (strstr(diags.diag[0].message, why) == NULL) {
        fail_msg("%s: %s", text, diags.diag[0].message);
    }
    fault_free(fault);
}

static void test_fault__an_order_names_a_service_an_end_and_one_thing(void **state)
{
    (void)state;
    check_refused("", "");
    check_refused("null", "");
    check_refused("text", "");
    check_refused("{}", "does one thing");
    check_refused("[]", "");
    check_refused("{service: a, for: 1s}", "does one thing");
    check_refused("{service: a, for: 1s, errors: 10%, dead: true}", "does one thing");
    check_refused("{for: 1s, errors: 10%}", "the fault needs a service");
    check_refused("{service: a, errors: 10%}", "the fault needs an end");
    check_refused("{service: a, errors: 10%, for: 2h}", "for");
    check_refused("{service: a, errors: 10%, for: 0s}", "for");
    check_refused("{service: a, errors: 10%, for: 1s, wat: 1}", "wat");
}

static void test_fault__what_is_no_fault_or_of_no_gateway_is_refused(void **state)
{
    (void)state;
    check_refused("{service: a, for: 1s, dead: false}", "is no fault");
    check_refused("{service: a, for: 1s, errors: 0%}", "is no fault");
    check_refused("{service: a, for: 1s, capacity: 0.5}", "simulator");
    check_refused("{service: a, for: 1s, surge: 3}", "simulator");
    check_refused("{service: a, for: 1s, store: away}", "simulator");
    check_refused("{service: a, for: 1s, killStore: empty}", "simulator");
    check_refused("{service: a, for: 1s, hangStore: true}", "simulator");
    check_refused("{service: a, for: 1s, emptyStore: true}", "simulator");
    check_refused("{service: a, for: 1s, errors: 10%, share: 10%}", "has its own share");
    check_refused("{service: a, for: 1s, latency: 1s, status: 503}", "status belongs");
    check_refused("{service: a, for: 1s, dead: true, status: 200}", "status");
    check_refused("{service: a, for: 1s, dead: true, silent: true}", "silent belongs");
    check_refused("{service: a, for: 1s, dead: true, flap: {on: 1s}}", "flap has on and off");
    check_refused("{service: a, for: 1s, killHosts: 1, towards: clients}", "single hosts");
    check_refused("{service: a, for: 1s, dead: true, towards: nobody}", "towards");
    check_refused("{service: a, for: 1s, dead: true, name: 'a b'}", "name has up to");
    check_refused("{service: a, for: 1s, dead: true, name: x23456789012345678901234567890123}", "name has up to");
    check_refused("{service: a, for: 1s, dead: true, clients: [nowhere]}", "network");
    check_refused("{service: a, for: 1s, dead: true, cap: 0}", "cap");
}

static void check_act(const char *text, enum fault_act act, uint32_t share)
{
    struct fault *fault = read_order(text);
    check_true(fault != NULL);
    check_eq_u64(fault->act, act);
    check_eq_u64(fault->share, share);
    fault_free(fault);
}

static void test_fault__each_word_of_a_scenario_means_something_here(void **state)
{
    (void)state;
    check_act("{service: a, for: 1s, errors: 10%}", FAULT_ACT_STATUS, 100000);
    check_act("{service: a, for: 1s, dead: true}", FAULT_ACT_STATUS, FAULT_ALL);
    check_act("{service: a, for: 1s, dead: true, share: 5%}", FAULT_ACT_STATUS, 50000);
    check_act("{service: a, for: 1s, latency: 50ms}", FAULT_ACT_DELAY, FAULT_ALL);
    check_act("{service: a, for: 1s, hangs: 30%}", FAULT_ACT_HANG, 300000);
    check_act("{service: a, for: 1s, badHosts: 2}", FAULT_ACT_STATUS, FAULT_ALL);
    check_act("{service: a, for: 1s, cutCallers: 10%}", FAULT_ACT_REFUSE, FAULT_ALL);
    check_act("{service: a, for: 1s, cutCallers: 10%, silent: true}", FAULT_ACT_HANG, FAULT_ALL);
    check_act("{service: a, for: 1s, refuse: true}", FAULT_ACT_REFUSE, FAULT_ALL);
    check_act("{service: a, for: 1s, killHosts: 1}", FAULT_ACT_REFUSE, FAULT_ALL);
    check_act("{service: a, for: 1s, rolling: 5s}", FAULT_ACT_REFUSE, FAULT_ALL);
    check_act("{service: a, for: 1s, partition: true}", FAULT_ACT_HANG, FAULT_ALL);
    check_act("{service: a, for: 1s, swallow: true}", FAULT_ACT_SWALLOW, FAULT_ALL);
    check_act("{service: a, for: 1s, reset: 25%}", FAULT_ACT_RESET, 250000);
}

/* ---- calls that are hit ---- */

#define START (100 * BECALM_S)

static struct head head;
static const char request[] = "GET / HTTP/1.1\r\nhost: a\r\nx-game: day\r\nx-empty:\r\n\r\n";
static struct origin_ip ip;
static uint64_t random_state = 7;

static struct fault_call call_at(becalm_ns now)
{
    check_eq_u64(h1_parse_request(request, sizeof request - 1, &(struct h1_limits){.head_bytes = 4096}, &head).kind,
                 H1_OK);
    return (struct fault_call){.service = "a",
                               .host_count = 4,
                               .ip = &ip,
                               .head = &head,
                               .now = now,
                               .random = becalm_rand_next(&random_state)};
}

static void order(struct fault_book *book, const char *text)
{
    struct fault *fault = read_order(text);
    check_true(fault != NULL);
    check_true(fault_book_add(book, fault, START) == NULL);
}

static bool draw(struct fault_book *book, struct fault_call call)
{
    struct fault_hit hit;
    return fault_book_draw(book, &call, &hit);
}

static uint32_t told;
static enum fault_end told_why;

static void note_end(void *data, const struct fault_entry *entry, enum fault_end why)
{
    (void)data;
    (void)entry;
    told++;
    told_why = why;
}

static void test_fault__an_empty_book_hits_nobody(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    check_true(!fault_book_any(&book));
    check_true(!draw(&book, call_at(START)));
    check_eq_u64(fault_book_end(&book, "", START, note_end, NULL), 0);
    fault_book_free(&book);
}

static void test_fault__hits_its_service_and_endpoint_until_its_end(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    order(&book, "{service: a, endpoint: pay, for: 10s, dead: true}");
    check_true(fault_book_any(&book));
    struct fault_call call = call_at(START);
    check_true(!draw(&book, call));
    call.endpoint = "pay";
    check_true(draw(&book, call));
    call.to_clients = true;
    check_true(!draw(&book, call));
    call.to_clients = false;
    call.service = "b";
    check_true(!draw(&book, call));
    call.service = "a";
    call.now = START + 10 * BECALM_S - 1;
    check_true(draw(&book, call));
    call.now = START + 10 * BECALM_S;
    check_true(!draw(&book, call));
    told = 0;
    check_eq_u64(fault_book_end(&book, NULL, call.now - 1, note_end, NULL), 0);
    check_eq_u64(fault_book_end(&book, NULL, call.now, note_end, NULL), 1);
    check_eq_u64(told, 1);
    check_eq_u64(told_why, FAULT_EXPIRED);
    check_true(!fault_book_any(&book));
    fault_book_free(&book);
}

static void test_fault__default_is_the_services_own_rules(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    order(&book, "{service: a, endpoint: default, for: 10s, dead: true}");
    struct fault_call call = call_at(START);
    check_true(draw(&book, call));
    call.endpoint = "pay";
    check_true(!draw(&book, call));
    fault_book_free(&book);
}

static void test_fault__hits_only_whom_it_names(void **state)
{
    (void)state;
    struct fault_book book;
    union address_socket peer = {.v4 = {.sin_family = AF_INET}};
    memcpy(&peer.v4.sin_addr, (unsigned char[]){10, 1, 2, 3}, 4);
    fault_book_init(&book);
    order(&book, "{service: a, for: 10s, dead: true, clients: [10.0.0.0/8], headers: ['X-Game: day', x-empty]}");
    memset(&ip, 0, sizeof ip);
    check_true(!draw(&book, call_at(START)));
    origin_ip_set(&ip, &peer);
    check_true(draw(&book, call_at(START)));
    memcpy(&peer.v4.sin_addr, (unsigned char[]){11, 1, 2, 3}, 4);
    origin_ip_set(&ip, &peer);
    check_true(!draw(&book, call_at(START)));
    fault_book_free(&book);
    static const char *const other[] = {"x-game: night", "x-other", "x-empty: x"};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "{service: a, for: 10s, dead: true, headers: ['%s']}", other[i]);
        fault_book_init(&book);
        order(&book, text);
        check_true(!draw(&book, call_at(START)));
        fault_book_free(&book);
    }
}

static void test_fault__hits_a_share_of_calls_and_the_same_share_of_callers(void **state)
{
    (void)state;
    struct fault_book book;
    uint32_t hit = 0;
    fault_book_init(&book);
    order(&book, "{service: a, for: 10s, errors: 30%, name: errors}");
    for (uint32_t i = 0; i < 10000; i++) {
        hit += draw(&book, call_at(START));
    }
    check_true(hit > 2800 && hit < 3200);
    check_eq_u64(fault_book_end(&book, "errors", START, note_end, NULL), 1);
    check_eq_u64(told_why, FAULT_CLEARED);
    order(&book, "{service: a, for: 10s, cutCallers: 30%}");
    for (uint32_t i = 0; i < 100; i++) {
        struct fault_call call = call_at(START);
        call.caller = i * 10000;
        check_eq_u64(draw(&book, call), i < 30);
    }
    fault_book_free(&book);
}

static void test_fault__each_of_several_draws_for_itself(void **state)
{
    (void)state;
    struct fault_book book;
    uint32_t hit = 0;
    fault_book_init(&book);
    order(&book, "{service: a, for: 10s, errors: 50%}");
    order(&book, "{service: a, for: 10s, errors: 50%}");
    for (uint32_t i = 0; i < 10000; i++) {
        hit += draw(&book, call_at(START));
    }
    check_between_u64(hit, 7200, 7800); /* one of them, or both: not always the same calls */
    fault_book_free(&book);
}

static void test_fault__hits_the_first_hosts_or_one_after_the_other(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    order(&book, "{service: a, for: 60s, badHosts: 2}");
    for (uint32_t host = 0; host < 4; host++) {
        struct fault_call call = call_at(START);
        call.host = host;
        check_eq_u64(draw(&book, call), host < 2);
    }
    check_eq_u64(fault_book_end(&book, "", START, note_end, NULL), 1);
    order(&book, "{service: a, for: 60s, rolling: 5s}");
    for (uint32_t i = 0; i < 12; i++) {
        struct fault_call call = call_at(START + i * 5 * BECALM_S);
        call.host = 1;
        check_eq_u64(draw(&book, call), i % 4 == 1);
    }
    fault_book_free(&book);
}

static void test_fault__comes_and_goes(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    order(&book, "{service: a, for: 60s, dead: true, flap: {on: 1s, off: 2s}}");
    for (uint32_t i = 0; i < 12; i++) {
        check_eq_u64(draw(&book, call_at(START + i * BECALM_S)), i % 3 == 0);
    }
    fault_book_free(&book);
}

static void test_fault__is_over_when_it_has_hit_as_many_as_it_may(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    order(&book, "{service: a, for: 60s, hangs: 100%, cap: 2}");
    check_true(draw(&book, call_at(START)));
    check_true(draw(&book, call_at(START)));
    check_true(!draw(&book, call_at(START)));
    check_true(fault_book_has(&book, 1, START)); /* calls that it holds stay held */
    check_true(!fault_book_has(&book, 1, START + 60 * BECALM_S));
    check_eq_u64(fault_book_end(&book, NULL, START, note_end, NULL), 1);
    check_eq_u64(told_why, FAULT_SPENT);
    check_true(!fault_book_has(&book, 1, START));
    fault_book_free(&book);
}

static void test_fault__of_two_that_hit_the_one_that_fails_acts(void **state)
{
    (void)state;
    struct fault_book book;
    struct fault_hit hit;
    fault_book_init(&book);
    order(&book, "{service: a, for: 60s, latency: 2s, name: slow}");
    struct fault_call call = call_at(START);
    check_true(fault_book_draw(&book, &call, &hit));
    check_eq_u64(hit.act, FAULT_ACT_DELAY);
    check_eq_u64(hit.until, START + 2 * BECALM_S);
    order(&book, "{service: a, for: 60s, errors: 100%, status: 429}");
    check_true(fault_book_draw(&book, &call, &hit));
    check_eq_u64(hit.act, FAULT_ACT_STATUS);
    check_eq_u64(hit.status, 429);
    check_true(strcmp(hit.name, "errors-2") == 0);
    struct fault_entry entry[FAULTS_IN_FORCE];
    check_eq_u64(fault_book_read(&book, entry), 2);
    check_eq_u64(entry[0].hits, 1); /* only the fault that acts counts a hit */
    fault_book_free(&book);
}

static void test_fault__names_are_of_one_each_and_there_is_room_for_sixteen(void **state)
{
    (void)state;
    struct fault_book book;
    fault_book_init(&book);
    order(&book, "{service: a, for: 60s, dead: true, name: dead-2}");
    struct fault *again = read_order("{service: a, for: 60s, dead: true, name: dead-2}");
    check_true(strstr(fault_book_add(&book, again, START), "of that name") != NULL);
    fault_free(again);
    order(&book, "{service: a, for: 60s, dead: true}"); /* gets another name than the one that is taken */
    struct fault_entry entry[FAULTS_IN_FORCE];
    check_eq_u64(fault_book_read(&book, entry), 2);
    check_true(strcmp(entry[0].fault->name, entry[1].fault->name) != 0);
    while (fault_book_read(&book, entry) < FAULTS_IN_FORCE) {
        order(&book, "{service: a, for: 60s, dead: true}");
    }
    struct fault *more = read_order("{service: a, for: 60s, dead: true}");
    check_true(strstr(fault_book_add(&book, more, START), "The most faults") != NULL);
    fault_free(more);
    check_eq_u64(fault_book_end(&book, "dead-2", START, note_end, NULL), 1);
    check_eq_u64(fault_book_end(&book, "dead-2", START, note_end, NULL), 0);
    check_eq_u64(fault_book_end(&book, "", START, note_end, NULL), FAULTS_IN_FORCE - 1);
    fault_book_free(&book);
}

BECALM_TESTS(cmocka_unit_test(test_fault__an_order_names_a_service_an_end_and_one_thing),
             cmocka_unit_test(test_fault__what_is_no_fault_or_of_no_gateway_is_refused),
             cmocka_unit_test(test_fault__each_word_of_a_scenario_means_something_here),
             cmocka_unit_test(test_fault__an_empty_book_hits_nobody),
             cmocka_unit_test(test_fault__hits_its_service_and_endpoint_until_its_end),
             cmocka_unit_test(test_fault__default_is_the_services_own_rules),
             cmocka_unit_test(test_fault__hits_only_whom_it_names),
             cmocka_unit_test(test_fault__hits_a_share_of_calls_and_the_same_share_of_callers),
             cmocka_unit_test(test_fault__each_of_several_draws_for_itself),
             cmocka_unit_test(test_fault__hits_the_first_hosts_or_one_after_the_other),
             cmocka_unit_test(test_fault__comes_and_goes),
             cmocka_unit_test(test_fault__is_over_when_it_has_hit_as_many_as_it_may),
             cmocka_unit_test(test_fault__of_two_that_hit_the_one_that_fails_acts),
             cmocka_unit_test(test_fault__names_are_of_one_each_and_there_is_room_for_sixteen))
