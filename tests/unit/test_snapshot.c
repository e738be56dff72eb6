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

#define NAMES                                  \
    "services:\n"                              \
    "  a:\n"                                   \
    "    hosts: [\"name.test:2\"]\n"           \
    "    outlier: {consecutive5xxErrors: 1}\n" \
    "    endpoints:\n"                         \
    "      shares: {match: {path: /s}}\n"      \
    "      own: {match: {path: /o}, limit: {kind: fixed, max: 3}}\n"

/* The name has these addresses from now on, as last bytes of 10.0.0.0/24. */
static void resolves_to(uint32_t count, const uint8_t *last)
{
    memset(addresses, 0, sizeof addresses);
    for (uint32_t i = 0; i < count; i++) {
        addresses[i].v4 = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(2), .sin_addr.s_addr = htonl(0x0a000000u + last[i])};
    }
    address_count = count;
}

static void eject(const struct snapshot *snapshot, uint32_t host)
{
    struct state *state = snapshot->target[0].state;
    struct becalm_moment at = {.now = BECALM_S};
    becalm_hosts_sent(state->target.hosts, host, at.now);
    becalm_hosts_note(state->target.hosts, &state->policy.outlier, &at, host,
                      &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED});
    assert_true(becalm_host_ejected(state->target.hosts, host, at.now));
}

/* A bit for each host that is ejected. */
static uint64_t ejected(const struct snapshot *snapshot)
{
    const struct becalm_hosts *hosts = snapshot->target[0].state->target.hosts;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < hosts->count; i++) {
        bits |= (uint64_t)becalm_host_ejected(hosts, i, BECALM_S) << i;
    }
    return bits;
}

static void test_snapshot__an_ejection_moves_with_its_address(void **state)
{
    (void)state;
    resolves_to(3, (const uint8_t[]){1, 2, 3});
    struct snapshot *first = make(NAMES, NULL);
    eject(first, 1);
    resolves_to(3, (const uint8_t[]){2, 3, 4});
    struct snapshot *second = make(NAMES, first);
    check_eq_u64(ejected(second), 1 << 0);
    assert_ptr_equal(second->target[1].state->target.hosts, second->target[0].state->target.hosts);
    resolves_to(2, (const uint8_t[]){1, 2});
    struct snapshot *third = make(NAMES, second);
    check_eq_u64(ejected(third), 1 << 1);
    struct snapshot *changed = make(NAMES "    maxRetries: 1\n", second); /* the policy and the hosts */
    check_eq_u64(ejected(changed), 1 << 1);
    resolves_to(2, (const uint8_t[]){5, 6});
    struct snapshot *others = make(NAMES, third);
    check_eq_u64(ejected(others), 0);
    snapshot_drop(first);
    snapshot_drop(second);
    snapshot_drop(third);
    snapshot_drop(changed);
    snapshot_drop(others);
}

static void test_snapshot__failed_lookups_are_not_held_against_the_first_address(void **state)
{
    (void)state;
    address_count = 0;
    static const char text[] =
        "services: {a: {hosts: [\"name.test:2\", \"127.0.0.1:1\"], outlier: {consecutive5xxErrors: 1}}}\n";
    struct snapshot *unknown = make(text, NULL);
    eject(unknown, 0);
    resolves_to(1, (const uint8_t[]){1});
    struct snapshot *known = make(text, unknown);
    check_eq_u64(ejected(known), 0);
    snapshot_drop(unknown);
    snapshot_drop(known);
}

static void test_snapshot__with_other_hosts_it_counts_the_same_calls(void **state)
{
    (void)state;
    resolves_to(1, (const uint8_t[]){1});
    struct snapshot *before = make(NAMES, NULL);
    resolves_to(2, (const uint8_t[]){1, 2});
    struct snapshot *between = make(NAMES, before);
    resolves_to(2, (const uint8_t[]){2, 3});
    struct snapshot *after = make(NAMES, between);
    for (uint32_t i = 0; i < after->target_count; i++) {
        const struct state *old = before->target[i].state;
        const struct state *new = after->target[i].state;
        assert_ptr_not_equal(new->target.hosts, old->target.hosts);
        assert_ptr_not_equal(new->target.restart, old->target.restart);
        assert_ptr_equal(new->target.limit, old->target.limit);
        assert_ptr_equal(new->target.gate, old->target.gate);
        assert_ptr_equal(new->target.budget, old->target.budget);
        assert_ptr_equal(new->target.breaker, old->target.breaker);
        assert_ptr_equal(new->waiting, old->waiting);
    }
    assert_ptr_equal(after->target[1].state->target.limit, after->target[0].state->target.limit);
    assert_ptr_not_equal(after->target[2].state->target.limit, after->target[0].state->target.limit);
    snapshot_drop(before); /* borrowed objects stay */
    snapshot_drop(between);
    struct state *guarded = after->target[0].state;
    struct becalm_moment at = {.now = BECALM_S};
    becalm_breaker_force(guarded->target.breaker, &guarded->policy.breaker, &at, BECALM_BREAKER_FORCED_OPEN);
    assert_int_equal(becalm_breaker_state(guarded->target.breaker), BECALM_BREAKER_FORCED_OPEN);
    check_eq_u64(guarded->target.hosts->count, 2);
    snapshot_drop(after);
}

BECALM_TESTS(cmocka_unit_test(test_snapshot__an_ejection_moves_with_its_address),
             cmocka_unit_test(test_snapshot__failed_lookups_are_not_held_against_the_first_address),
             cmocka_unit_test(test_snapshot__with_other_hosts_it_counts_the_same_calls),
             cmocka_unit_test(test_snapshot__srv_records_become_hosts_with_ports_of_their_own),
             cmocka_unit_test(test_snapshot__endpoints_share_what_their_service_guards),
             cmocka_unit_test(test_snapshot__a_name_is_as_many_hosts_as_it_has_addresses),
             cmocka_unit_test(test_snapshot__what_did_not_change_keeps_its_state_and_what_did_goes_on_from_there))
