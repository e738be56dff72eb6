/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "proxy/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define POLICY                                        \
    "services:\n"                                     \
    "  a:\n"                                          \
    "    hosts: [\"127.0.0.1:1\", \"name.test:2\"]\n" \
    "    endpoints:\n"                                \
    "      shares: {match: {path: /s}}\n"             \
    "      own: {match: {path: /o}, limit: {kind: fixed, max: 3}}\n"

static union address_socket addresses[3];
static uint32_t address_count;

static uint32_t find(void *self, const char *name, uint16_t port, const union address_socket **list)
{
    (void)self;
    bool srv = name[0] == '_';
    check_eq_str(name, srv ? "_http._tcp.name.test" : "name.test");
    check_eq_u64(port, srv ? 0 : 2);
    *list = addresses;
    return address_count;
}

static struct snapshot *make(const char *text, const struct snapshot *before)
{
    struct becalm_config *config = NULL;
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    assert_int_equal(becalm_config_parse(&config, "test.yaml", text, strlen(text), NULL, diags), 0);
    free(diags);
    struct shared_config *shared = shared_config_make(config);
    struct snapshot *snapshot = snapshot_make(&(struct snapshot_plan){
        .config = shared, .before = before, .names = {.find = find}, .workers = 2, .now = BECALM_S});
    shared_config_drop(shared);
    assert_non_null(snapshot);
    return snapshot;
}

static void test_snapshot__srv_records_become_hosts_with_ports_of_their_own(void **state)
{
    (void)state;
    static const char text[] = "services: {a: {hosts: [\"srv://_http._tcp.name.test\"]}}\n";
    char name[256];
    memset(addresses, 0, sizeof addresses);
    addresses[0].v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(9000)};
    addresses[1].v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(9001)};
    address_count = 2;
    struct snapshot *snapshot = make(text, NULL);
    const struct snapshot_service *service = &snapshot->service[0];
    check_eq_u64(service->host_count, 2);
    check_eq_u64(ntohs(service->host[1].address.v4.sin_port), 9001);
    check_eq_str(service->host_name[1], "srv://_http._tcp.name.test");
    check_eq_str(snapshot_server_name(service->service, service->host_name[0], name), "name.test");
    address_count = 0;
    snapshot_drop(snapshot);
}

static void test_snapshot__endpoints_share_what_their_service_guards(void **state)
{
    (void)state;
    address_count = 0;
    struct snapshot *snapshot = make(POLICY, NULL);
    check_eq_u64(snapshot->target_count, 3);
    const struct becalm_target *service = &snapshot->target[0].state->target;
    const struct becalm_target *shares = &snapshot->target[1].state->target;
    const struct becalm_target *own = &snapshot->target[2].state->target;
    assert_ptr_equal(shares->hosts, service->hosts);
    assert_ptr_equal(own->hosts, service->hosts);
    assert_ptr_equal(shares->limit, service->limit);
    assert_ptr_equal(shares->gate, service->gate);
    assert_ptr_not_equal(own->limit, service->limit);
    assert_ptr_not_equal(own->gate, service->gate);
    assert_ptr_not_equal(shares->budget, service->budget);
    assert_ptr_not_equal(shares->breaker, service->breaker);
    snapshot_drop(snapshot);
}

static void test_snapshot__a_name_is_as_many_hosts_as_it_has_addresses(void **state)
{
    (void)state;
    address_count = 0;
    struct snapshot *before = make(POLICY, NULL);
    check_eq_u64(before->service[0].host_count, 2);
    assert_true(before->service[0].host[0].known);
    assert_false(before->service[0].host[1].known);
    address_count = 3;
    struct snapshot *after = make(POLICY, before);
    check_eq_u64(after->service[0].host_count, 4);
    assert_true(after->service[0].host[3].known);
    check_eq_str(after->service[0].host_name[3], "name.test:2");
    snapshot_drop(before);
    snapshot_drop(after);
}

static void test_snapshot__what_did_not_change_keeps_its_state_and_what_did_goes_on_from_there(void **state)
{
    (void)state;
    address_count = 1;
    struct snapshot *before = make(POLICY, NULL);
    struct snapshot *same = make(POLICY, before);
    for (uint32_t i = 0; i < same->target_count; i++) {
        assert_ptr_equal(same->target[i].state, before->target[i].state);
        assert_ptr_equal(same->target[i].meters, before->target[i].meters);
    }
    struct state *guarded = before->target[0].state;
    struct becalm_moment at = {.now = BECALM_S};
    becalm_breaker_force(guarded->target.breaker, &guarded->policy.breaker, &at, BECALM_BREAKER_FORCED_OPEN);
    const struct meters *meters = before->target[0].meters;
    struct snapshot *changed = make(POLICY "    maxRetries: 1\n", same);
    snapshot_drop(before);
    snapshot_drop(same);
    assert_ptr_equal(changed->target[0].meters, meters);
    assert_int_equal(becalm_breaker_state(changed->target[0].state->target.breaker), BECALM_BREAKER_FORCED_OPEN);
    check_eq_u64(changed->target[0].state->policy.max_retries, 1);
    check_eq_u64(changed->number, 3);
    snapshot_drop(changed);
}

BECALM_TESTS(cmocka_unit_test(test_snapshot__srv_records_become_hosts_with_ports_of_their_own),
             cmocka_unit_test(test_snapshot__endpoints_share_what_their_service_guards),
             cmocka_unit_test(test_snapshot__a_name_is_as_many_hosts_as_it_has_addresses),
             cmocka_unit_test(test_snapshot__what_did_not_change_keeps_its_state_and_what_did_goes_on_from_there))
