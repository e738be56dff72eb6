/* SPDX-License-Identifier: MIT */
#include "top_lab.h"

static void test_state__reads_what_the_gateway_says(void **unused)
{
    struct lab_service service = {"pay", .first = 90, .after = 6, .failed = 4, .retries = 12, .shed = 3, .unpaid = 2};
    struct state *state = lab_state(7, "t0", &service, 1);
    (void)unused;
    check_eq_str(state->version, "0.1.0");
    check_eq_u64(state->uptime, 7);
    check_eq_u64(state->connections, 3);
    check_true(!state->reload_failed);
    check_eq_u64(state->service_count, 1);
    const struct state_endpoint *endpoint = &state->service[0].endpoint[0];
    check_eq_str(endpoint->name, "default");
    check_eq_u64(endpoint->count[STATE_ARRIVALS], 100);
    check_eq_u64(endpoint->count[STATE_FIRST_ATTEMPT], 90);
    check_eq_u64(endpoint->count[STATE_AFTER_RETRY], 6);
    check_eq_u64(endpoint->count[STATE_FAILED], 4);
    check_eq_u64(endpoint->count[STATE_RETRIES], 12);
    check_eq_u64(endpoint->count[STATE_REFUSED + BECALM_WHY_BREAKER_OPEN], 3);
    check_eq_u64(endpoint->count[STATE_NOT_RETRIED + BECALM_WHY_BUDGET_EMPTY], 2);
    check_eq_u64(endpoint->budget.left, 9500000);
    check_eq_u64(endpoint->budget.cap, 10000000);
    check_eq_u64(endpoint->service_budget.left, STATE_NONE);
    check_eq_u64(endpoint->breaker.retest, STATE_NONE);
    check_eq_u64(endpoint->breaker.failed, 3);
    check_eq_u64(endpoint->limit.now, 100);
    check_eq_u64(endpoint->gate.waiting, 4);
    check_eq_u64(endpoint->latency.p99, 120000);
    check_eq_u64(state->service[0].host[0].ejected_for, 1500000);
    check_true(state->service[0].host[0].usable);
    state_free(state);
}

static void test_state__reads_what_is_spoken(void **unused)
{
    static const char text[] =
        "{\"version\": \"9\", \"time\": \"2026-01-02T00:00:10.5Z\", "
        "\"http2\": {\"clientsEnded\": {\"pings\": 2, \"protocol\": 1}, \"hostsEnded\": {\"faults\": 3}}, "
        "\"tls\": {\"handshakes\": [{\"side\": \"clients\", \"result\": \"full\", \"count\": 5}, "
        "{\"side\": \"clients\", \"result\": \"timeout\", \"count\": 0}, "
        "{\"side\": \"clients\", \"result\": \"alert\", \"count\": 4}, "
        "{\"side\": \"hosts\", \"result\": \"resumed\", \"count\": 6}], "
        "\"certificates\": [{\"file\": \"late.pem\", \"expires\": 1767312100}, "
        "{\"file\": \"soon.pem\", \"expires\": 1767312050}, {\"file\": \"x.pem\", \"expires\": 1767312051}]}, "
        "\"services\": [{\"name\": \"a\", \"endpoints\": [{\"protocols\": {\"hosts\": {\"h1\": 1, \"h2\": 2, \"grpc\": "
        "3, "
        "\"h3\": 9}, \"clients\": {\"h1\": 4, \"h2\": 5, \"grpc\": 6}}}]}]}";
    struct state *state = state_read(text, strlen(text));
    (void)unused;
    assert_non_null(state);
    const uint64_t *count = state->service[0].endpoint[0].count;
    for (uint32_t i = 0; i < STATE_PROTOCOLS; i++) {
        check_eq_u64(count[STATE_CLIENTS + i], 4 + i);
        check_eq_u64(count[STATE_HOSTS + i], 1 + i);
    }
    check_true(state->tls);
    check_eq_u64(state->clients.full, 5);
    check_eq_u64(state->clients.failed.words, 1);
    check_eq_str(state->clients.failed.word[0], "alert");
    check_eq_u64(state->clients.failed.count[0], 4);
    check_eq_u64(state->hosts.resumed, 6);
    check_eq_u64(state->clients_ended.words, 2);
    check_eq_u64(state->hosts_ended.count[0], 3);
    check_eq_str(state->certificate, "soon.pem");
    check_eq_u64((uint64_t)state->expires_in, 40);
    state_free(state);
}

static void test_state__a_reason_that_is_not_known_is_other(void **unused)
{
    static const char text[] = "{\"version\": \"9\", \"services\": [{\"name\": \"a\", \"endpoints\": "
                               "[{\"shed\": {\"moon\": 3, \"tides\": 4}}]}]}";
    struct state *state = state_read(text, strlen(text));
    (void)unused;
    assert_non_null(state);
    check_eq_u64(state->service[0].endpoint[0].count[STATE_REFUSED + BECALM_REASON_COUNT], 7);
    check_eq_str(state_reason_word(BECALM_REASON_COUNT), "other");
    state_free(state);
}

static void test_state__other_pages_are_none(void **unused)
{
    static const char *const pages[] = {
        "",
        "becalm 0.1.0\n",
        "{}",
        "[]",
        "{\"version\": 3}",
        "{\"version\": \"1\", \"services\": {}}",
        "{\"version\": \"1\", \"services\": [{\"name\": \"a\", \"hosts\": [{\"name\"",
        "{\"version\": \"1\"} more",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        check_true_at(state_read(pages[i], strlen(pages[i])) == NULL, pages[i], __FILE__, __LINE__);
    }
}

static void test_state__reads_the_latest_decisions(void **unused)
{
    static const char text[] =
        "{\"decisions\": [{\"time\": \"2026-01-02T03:04:05.678Z\", \"service\": \"a\", \"method\": \"GET\", "
        "\"target\": "
        "\"/x\", \"status\": 503, \"reason\": \"budget_empty\", \"change\": \"Successes fill it.\", \"tookMs\": 12.5, "
        "\"attempts\": 2, \"attempt\": [{\"number\": 0}]}, {\"reason\": \"ok\"}]}";
    struct state_decision decision[STATE_DECISIONS_MAX];
    (void)unused;
    assert_int_equal(state_read_decisions(text, strlen(text), decision), 2);
    check_eq_str(decision[0].reason, "budget_empty");
    check_eq_str(decision[0].target, "/x");
    check_eq_u64(decision[0].status, 503);
    check_eq_u64(decision[0].attempts, 2);
    check_eq_u64(decision[0].took, 12500);
    check_eq_u64(decision[1].status, 0);
    assert_int_equal(state_read_decisions("{", 1, decision), -1);
}

static void test_state__no_more_decisions_than_there_is_room_for(void **unused)
{
    struct state_decision decision[STATE_DECISIONS_MAX];
    char text[STATE_DECISIONS_MAX * 4 + 64] = "{\"decisions\": [{}";
    (void)unused;
    for (uint32_t i = 0; i < STATE_DECISIONS_MAX; i++) {
        strcat(text, ",{}");
    }
    strcat(text, "]}");
    assert_int_equal(state_read_decisions(text, strlen(text), decision), STATE_DECISIONS_MAX);
}

static void test_state__a_name_of_128_characters_is_whole(void **unused)
{
    (void)unused;
    char name[129];
    memset(name, 'n', 128);
    name[128] = '\0';
    const struct lab_service service = {.name = name};
    struct state *state = lab_state(7, "t0", &service, 1);
    check_eq_str(state->service[0].name, name);
    state_free(state);
}

BECALM_TESTS(cmocka_unit_test(test_state__reads_what_the_gateway_says),
             cmocka_unit_test(test_state__a_name_of_128_characters_is_whole),
             cmocka_unit_test(test_state__reads_what_is_spoken),
             cmocka_unit_test(test_state__a_reason_that_is_not_known_is_other),
             cmocka_unit_test(test_state__other_pages_are_none),
             cmocka_unit_test(test_state__reads_the_latest_decisions),
             cmocka_unit_test(test_state__no_more_decisions_than_there_is_room_for))
