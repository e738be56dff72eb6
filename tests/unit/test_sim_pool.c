/* SPDX-License-Identifier: MIT */
/* Connections of calls: made, kept, bounded, and waited for, as the gateway's pool does it. */
#include "sim_lab.h"

/* To make one takes a message each way; then it is kept. */
static void test_sim_pool__a_connection_is_made_once_and_kept(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 20s\nlink: {latency: 10ms}\npool: {maxPerHost: 100}\n"
                            "services: {api: {time: {constant: 5ms}}}\n"
                            "clients: {users: {to: api, loop: {think: 1s}, role: sidecar}}\n",
                            "none");
    check_eq_u64(lab.result.latency.most_us, 45000);
    check_between_u64(world_latency_us(&lab.result.latency, 900000), 25000, 25400);
    check_eq_u64(lab.result.service[0].connected_most, 1);
    check_eq_u64(lab.result.service[0].waited, 0);
    lab_close(&lab);
}

/* A page of 48 calls at once, half a second to the host: the number that reaches it in each second from the second one
 * on. */
static void check_page(const char *role, uint64_t first, uint64_t second, uint64_t third)
{
    struct lab lab;
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 10s\nlink: {latency: 0s}\nlinks: {far: {from: page, to: leaf, latency: 450ms}}\n"
                   "timeout: 30s\npool: {maxPerHost: any}\n"
                   "services: {page: {time: {constant: 0s}, calls: [leaf], fanOut: 48, role: %s}, "
                   "leaf: {time: {constant: 20s}}}\n"
                   "clients: {users: {to: page, rate: 1000/s, calls: 1}}\n",
                   role);
    lab_open(&lab, text, "none");
    lab_run(&lab);
    const struct world_service *leaf = &lab.result.service[1];
    check_eq_u64(leaf->arrivals[1], first);
    check_eq_u64(leaf->arrivals[2], second);
    check_eq_u64(leaf->arrivals[3], third);
    check_eq_u64(leaf->waited, 48 - first);
    lab_close(&lab);
}

static void test_sim_pool__sixteen_are_made_at_once(void **state)
{
    (void)state;
    check_page("gateway", 16, 16, 16);
    check_page("sidecar", 16, 16, 16);
    check_page("library", 48, 0, 0); /* libcurl has no such bound */
}

/* Ten connections of 100 ms carry a hundred calls a second. A call that waits in vain was never sent: that is no
 * timeout of an attempt, and no limit is cut for it. */
static void test_sim_pool__who_waits_in_vain_is_no_evidence_against_the_service(void **state)
{
    (void)state;
    static const char *const role[] = {"sidecar", "gateway"};
    for (unsigned i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 30s\npool: {maxPerHost: 10}\ntimeout: 1s\n"
                       "services: {api: {time: {constant: 98ms}}}\nlink: {latency: 1ms}\n"
                       "clients: {users: {to: api, rate: 200/s, role: %s}}\n",
                       role[i]);
        struct lab lab = lab_of(text, "becalm");
        check_eq_u64(lab.result.service[0].connected_most, 10);
        check_between_u64(good_ppm(&lab, 0, 3, 29), 480000, 540000);
        check_between_u64(lab.result.service[0].ended[BECALM_WHY_NO_CONNECTION], 2000, 3200);
        check_eq_u64(lab.result.service[0].ended[BECALM_WHY_LIMIT] + lab.result.service[0].ended[BECALM_WHY_SHED], 0);
        check_eq_u64(lab.result.service[0].limit[29], i == 0 ? 1000 : 10000);
        check_eq_u64(lab.result.service[0].first,
                     lab.result.service[0].arrivals_fault); /* an attempt that was never sent does not count */
        lab_close(&lab);
    }
}

/* World 5: streams fill the pool of a gateway; as many connections as they need, and no call waits. */
static uint64_t beside_streams(const char *most)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 60s\npool: {maxPerHost: %s}\ntimeout: 1s\n"
                   "services: {feed: {time: {constant: 5ms}, endpoints: {events: {body: {constant: 60s}}}}}\n"
                   "clients: {streams: {to: feed, rate: 100/s, calls: 1100, role: gateway, endpoints: {events: 100%%}},"
                   " short: {to: feed, rate: 20/s, role: gateway}}\n",
                   most);
    struct lab lab = lab_of(text, "becalm");
    uint64_t good = good_ppm(&lab, 0, 0, 60);
    lab_close(&lab);
    return good;
}

static void test_sim_pool__streams_take_connections_and_short_bounds_refuse_them(void **state)
{
    (void)state;
    check_eq_u64(beside_streams("any"), 1000000);
    check_between_u64(beside_streams("1024"), 900000, 960000); /* 76 of 1100 */
}

/* Connections to a listener that swallows hang, sixteen at once; those that are kept are served. */
static void test_sim_pool__kept_connections_survive_a_listener_that_swallows(void **state)
{
    (void)state;
    static const char world[] = "length: 30s\ntimeout: 2s\n%s"
                                "services: {api: {time: {constant: 20ms}}}\n"
                                "clients: {users: {to: api, rate: 50/s, role: gateway}}\n"
                                "faults: {full: {at: 10s, for: 5s, service: api, swallow: true}}\n";
    char text[512];
    (void)snprintf(text, sizeof text, world, "");
    struct lab lab = lab_of(text, "becalm");
    /* Calls of the last half second wait for the next probe, which may be answered: a tenth of the fault at most. */
    check_between_u64(lab.measure.success_in_fault_ppm, 0, 100000);
    lab_close(&lab);
    (void)snprintf(text, sizeof text, world, "pool: {maxPerHost: any}\n");
    lab = lab_of(text, "becalm");
    check_between_u64(lab.measure.success_in_fault_ppm, 950000, 1000000);
    check_between_u64(lab.measure.recovered_after_s, 0, 1);
    lab_close(&lab);
}

/* A host that is killed takes its connections with it; callers and gates wait it out, as without a pool. */
static void test_sim_pool__a_restart_is_waited_out(void **state)
{
    (void)state;
    static const char *const gate[] = {"false", "true"};
    for (unsigned i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 20s\npool: {maxPerHost: 50}\n"
                       "services: {api: {time: {constant: 5ms}, gate: %s}}\n"
                       "clients: {users: {to: api, rate: 200/s, role: sidecar}}\n"
                       "faults: {again: {at: 10s, for: 600ms, service: api, refuse: true}}\n",
                       gate[i]);
        struct lab lab = lab_of(text, "becalm");
        check_eq_u64(lab.measure.success_ppm, 1000000);
        check_between_u64(lab.result.service[0].refused[10], 4, 30); /* probes, and calls that were connecting */
        check_between_u64(lab.result.service[0].connected_most, 2, 110);
        lab_close(&lab);
    }
}

/* An attempt that is lost on its way holds its connection until it is given up, and closes it then. */
static void test_sim_pool__what_vanishes_holds_its_connection_until_it_is_given_up(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 40s\ntimeout: 1s\npool: {maxPerHost: 20}\n"
                            "services: {api: {time: {constant: 100ms}}}\n"
                            "clients: {users: {to: api, rate: 130/s, role: sidecar, retries: false}}\n"
                            "faults: {split: {at: 10s, for: 5s, service: api, partition: true}}\n",
                            "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 9), 1000000);
    check_between_u64(lab.result.service[0].waited, 400, 1800); /* all twenty are held, by the dead and the dialling */
    check_eq_u64(good_ppm(&lab, 0, 18, 40), 1000000);
    lab_close(&lab);
}

/* Ten calls a second of two seconds each are twenty at once: on one connection, or on as many as their streams need.
 * The second waits until the first is made. */
static void check_shared(const char *pool, uint64_t connections, uint64_t least, uint64_t most)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 20s\nprotocol: h2\n%stimeout: 10s\nlink: {latency: 10ms}\n"
                   "services: {api: {time: {constant: 2s}}}\n"
                   "clients: {users: {to: api, rate: 10/s, role: gateway}}\n",
                   pool);
    struct lab lab = lab_of(text, "none");
    check_eq_u64(lab.result.service[0].connected_most, connections);
    check_between_u64(lab.result.service[0].waited, least, most);
    lab_close(&lab);
}

static void test_sim_pool__attempts_share_connections_up_to_their_streams(void **state)
{
    (void)state;
    check_shared("", 1, 0, 5);
    check_shared("pool: {maxPerHost: any, streams: 100}\n", 1, 0, 5);
    check_shared("pool: {maxPerHost: any, streams: 29}\n", 1, 0, 5);
    check_shared("pool: {maxPerHost: 2, streams: 5}\n", 2, 100, 200); /* ten at once, and there are twenty */
}

/* All calls of an instant are on one connection when it is lost. Their host goes on; its answers reach no caller. */
static void check_lost(const char *protocol, uint64_t lost)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 20s\nprotocol: %s\npool: {maxPerHost: any}\ntimeout: 10s\nlink: {latency: 0s}\n"
                   "services: {api: {time: {constant: 3s}}}\n"
                   "clients: {users: {to: api, rate: 1000/s, calls: 40, role: sidecar}}\n"
                   "faults: {lost: {at: 1s, for: 1s, service: api, loseConnections: 1}}\n",
                   protocol);
    struct lab lab = lab_of(text, "none");
    check_eq_u64(lab.measure.calls, 40);
    check_eq_u64(lab.result.service[0].failed[1], 0); /* by its own count it answers all of them, later */
    check_eq_u64(good_ppm(&lab, 0, 0, 20), 1000000 * (40 - lost) / 40);
    lab_close(&lab);
    lab = lab_of(text, "becalm"); /* a retry gets another connection */
    check_eq_u64(lab.measure.calls, 40);
    check_between_u64(good_ppm(&lab, 0, 0, 20), 1000000 * (40 - lost) / 40, 1000000);
    lab_close(&lab);
}

static void test_sim_pool__a_lost_connection_fails_all_of_its_streams_and_no_other(void **state)
{
    (void)state;
    check_lost("h2", 40);
    check_lost("h1", 1);
}

/* A host that is killed takes shared connections with it; refused callers open no further ones; all calls succeed
 * afterwards.
 */
static void test_sim_pool__shared_connections_end_with_their_host(void **state)
{
    (void)state;
    static const char *const faults[] = {"killHosts: 1", "refuse: true", "loseConnections: 5"};
    for (unsigned i = 0; i < 3; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 30s\nprotocol: h2\npool: {maxPerHost: 4, streams: 3}\n"
                       "services: {api: {time: {constant: 20ms}}}\n"
                       "clients: {users: {to: api, rate: 200/s, role: sidecar}}\n"
                       "faults: {again: {at: 10s, for: 600ms, service: api, %s}}\n",
                       faults[i]);
        struct lab lab = lab_of(text, "becalm");
        check_eq_u64(good_ppm(&lab, 0, 0, 9), 1000000);
        check_between_u64(good_ppm(&lab, 0, 9, 11), 900000, 1000000);
        check_eq_u64(good_ppm(&lab, 0, 12, 30), 1000000);
        check_between_u64(lab.result.service[0].connected_most, 2, 4);
        lab_close(&lab);
    }
}

BECALM_TESTS(cmocka_unit_test(test_sim_pool__attempts_share_connections_up_to_their_streams),
             cmocka_unit_test(test_sim_pool__a_lost_connection_fails_all_of_its_streams_and_no_other),
             cmocka_unit_test(test_sim_pool__shared_connections_end_with_their_host),
             cmocka_unit_test(test_sim_pool__a_connection_is_made_once_and_kept),
             cmocka_unit_test(test_sim_pool__sixteen_are_made_at_once),
             cmocka_unit_test(test_sim_pool__who_waits_in_vain_is_no_evidence_against_the_service),
             cmocka_unit_test(test_sim_pool__streams_take_connections_and_short_bounds_refuse_them),
             cmocka_unit_test(test_sim_pool__kept_connections_survive_a_listener_that_swallows),
             cmocka_unit_test(test_sim_pool__a_restart_is_waited_out),
             cmocka_unit_test(test_sim_pool__what_vanishes_holds_its_connection_until_it_is_given_up))
