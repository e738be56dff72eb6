/* SPDX-License-Identifier: MIT */
/* The parts of a world, each by itself, in scenarios small enough to know the result beforehand. */
#include "sim_lab.h"

/* Shares of a fault are of the calls that begin in it, to the instant. */
static void test_sim_world__a_fault_of_half_a_second_has_a_share_of_its_own(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 30s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 0s}}}\n"
                            "clients: {users: {to: api, rate: 1000/s}}\n"
                            "faults: {dead: {at: 10.2s, for: 500ms, service: api, dead: true}}\n",
                            "none");
    check_eq_u64(lab.measure.success_before_ppm, 1000000);
    check_eq_u64(lab.measure.success_in_fault_ppm, 0);
    check_eq_u64(lab.measure.success_after_ppm, 1000000);
    check_between_u64(lab.result.client[0].phase[WORLD_IN_FAULT].begun, 400, 600);
    check_eq_u64(lab.measure.recovered_after_s, 0);
    lab_close(&lab);
}

/* Two faults of which one begins where the other ends count as one; a later third one is separate. */
static void test_sim_world__faults_that_touch_are_one(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 90s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 0s}}}\n"
                            "clients: {users: {to: api, rate: 100/s}}\n"
                            "faults:\n"
                            "  later: {at: 60s, for: 5s, service: api, dead: true}\n"
                            "  second: {at: 20s, for: 10s, service: api, refuse: true}\n"
                            "  first: {at: 10s, for: 10s, service: api, dead: true}\n",
                            "none");
    check_eq_u64(lab.measure.success_before_ppm, 1000000);
    check_eq_u64(lab.measure.success_in_fault_ppm, 0);
    check_eq_u64(lab.measure.recovered_after_s, 0); /* from 30 s on, and not from 20 s */
    check_between_u64(lab.measure.success_after_ppm, 900000, 930000);
    lab_close(&lab);
}

/* Clients. */

static void test_sim_world__a_loop_calls_again_when_it_has_its_answer_and_has_thought(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 10s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 10ms}}}\n"
                            "clients: {users: {to: api, loop: {think: 90ms}, callers: 20}}\n",
                            "none");
    check_eq_u64(lab.measure.calls, 20 * 100); /* one in 100 ms, each from a moment of its own on */
    check_eq_u64(lab.measure.success_ppm, 1000000);
    check_between_u64(begun(&lab, 3, 4), 199, 201);
    check_eq_u64(lab.measure.service[0].offered_milli, 200000);
    lab_close(&lab);
}

static void test_sim_world__a_slow_answer_slows_the_loop_and_not_the_open_client(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 10s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 10ms}}}\n"
                            "clients: {users: {to: api, loop: {think: 90ms}, callers: 20}, "
                            "open: {to: api, rate: 200/s}}\n"
                            "faults: {slow: {at: 5s, for: 5s, service: api, latency: 900ms}}\n",
                            "none");
    check_between_u64(begun(&lab, 2, 4), 398, 402);
    check_between_u64(begun(&lab, 7, 9), 35, 45); /* once a second */
    check_between_u64(lab.result.client[1].begun[8], 150, 250);
    lab_close(&lab);
}

static void test_sim_world__callers_stop_after_their_calls(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 10s\n"
                            "services: {api: {time: {constant: 1ms}}}\n"
                            "clients: {loops: {to: api, loop: {think: {exponential: 10ms}}, callers: 7, calls: 3}, "
                            "open: {to: api, rate: 100/s, callers: 5, calls: 4}}\n",
                            "none");
    check_eq_u64(lab.result.client[0].calls, 21);
    check_eq_u64(lab.result.client[1].calls, 20);
    lab_close(&lab);
}

/* Without a backoff the breaker refuses at once, and the caller calls again at once: no time passes. */
static void test_sim_world__time_that_stands_still_is_noticed(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab,
             "length: 10s\n"
             "services: {api: {time: {constant: 10ms}, errors: 100%}}\n"
             "clients: {users: {to: api, loop: {think: 0s}}}\n",
             "becalm");
    lab.hop.backoff.base = 0;
    lab.options.instant_max = 100000;
    check_eq_u64((uint64_t)world_run(lab.plan, &lab.options, &lab.result), (uint64_t)BECALM_EINVAL);
    check_true(lab.result.stuck_at < 10 * BECALM_S);
    lab_close(&lab);
}

/* Endpoints. */

#define TWO_ENDPOINTS                                                                                 \
    "length: 20s\nlink: {latency: 0s}\nattempts: 4\n"                                                 \
    "services:\n"                                                                                     \
    "  api:\n"                                                                                        \
    "    time: {constant: 10ms}\n"                                                                    \
    "    endpoints: {heavy: {share: 25%, time: {constant: 50ms}}, bad: {share: 25%, errors: 100%}}\n" \
    "clients: {users: {to: api, rate: 1000/s, callers: 10}, picky: {to: api, rate: 10/s, endpoints: {bad: 100%}}}\n"

static void test_sim_world__endpoints_have_their_share_and_their_own_times(void **state)
{
    (void)state;
    struct lab lab = lab_of(TWO_ENDPOINTS, "none");
    check_between_u64(good_ppm(&lab, 0, 0, 20), 740000, 760000);
    check_between_u64(lab.measure.latency_mean_us, 22800, 23800); /* a third of those that succeed are heavy: 23.3 ms */
    check_eq_u64(good_ppm(&lab, 1, 0, 20), 0);
    lab_close(&lab);
}

static void one_token_each(struct becalm_policy *policy)
{
    becalm_budget_defaults(&policy->budget, BECALM_BUDGET_TOKENS);
    policy->budget.capacity = 1;
    policy->budget.refill_per_second = 0;
}

static void test_sim_world__endpoints_share_a_budget_if_the_level_says_so(void **state)
{
    (void)state;
    static const uint64_t retries[] = {
        [BECALM_LEVEL_ENDPOINT] = 22, /* 11 callers; of each the bad endpoint and the heavy one have one */
        [BECALM_LEVEL_SERVICE] = 11,
        [BECALM_LEVEL_BOTH] = 11,
    };
    for (int level = BECALM_LEVEL_ENDPOINT; level <= BECALM_LEVEL_BOTH; level++) {
        struct lab lab;
        lab_open(&lab,
                 "length: 20s\nlink: {latency: 0s}\n"
                 "services: {api: {time: {constant: 1ms}, errors: 100%, endpoints: {heavy: {share: 50%}}}}\n"
                 "clients: {users: {to: api, rate: 1000/s, callers: 11}}\n",
                 "jitter");
        one_token_each(&lab.hop);
        lab.hop.service_budget = lab.hop.budget;
        lab.options.level = (enum becalm_budget_level)level;
        lab_run(&lab);
        check_eq_u64(lab.result.service[0].retries, retries[level]);
        lab_close(&lab);
    }
}

/* Times. */

static void test_sim_world__a_mixture_has_the_mean_of_its_parts(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 60s\nlink: {latency: 0s}\n"
                            "services:\n"
                            "  api: {time: {mixture: {usual: {weight: 9, constant: 10ms}, slow: {weight: 1, "
                            "exponential: 110ms}}}}\n"
                            "clients: {users: {to: api, rate: 1000/s}}\n",
                            "none");
    check_between_u64(lab.measure.latency_mean_us, 19500, 20500);
    check_between_u64(lab.measure.latency_p50_us, 10000, 10160);   /* the upper end of a bucket */
    check_between_u64(lab.measure.latency_p99_us, 240000, 267000); /* 110 ms times ln 10 */
    lab_close(&lab);
}

/* Queues. */

#define OVERLOADED(queue)                                                           \
    "length: 60s\ntimeout: 1s\n"                                                    \
    "services: {api: {workers: 10, queue: " queue ", time: {exponential: 10ms}}}\n" \
    "clients: {users: {to: api, rate: 1500/s}}\n"

static void test_sim_world__in_overload_the_discipline_decides_who_is_served(void **state)
{
    (void)state;
    struct lab fifo = lab_of(OVERLOADED("{}"), "none");
    struct lab lifo = lab_of(OVERLOADED("{order: lifo}"), "none");
    struct lab codel = lab_of(OVERLOADED("{codel: true}"), "none");
    struct lab both = lab_of(OVERLOADED("{codel: true, order: lifo}"), "none");
    struct lab expiry = lab_of(OVERLOADED("{expiry: true}"), "none");
    check_between_u64(good_ppm(&fifo, 0, 10, 60), 0, 1000); /* everything is served, too late */
    check_between_u64(good_ppm(&lifo, 0, 10, 60), 640000, 685000);
    check_between_u64(good_ppm(&codel, 0, 10, 60), 640000, 680000);
    check_between_u64(good_ppm(&both, 0, 10, 60), 640000, 680000);
    check_between_u64(good_ppm(&expiry, 0, 10, 60), 1000, 630000); /* only just in time, or only just not */
    check_between_u64(codel.measure.latency_p99_us, 20000, 120000);
    check_between_u64(codel.result.service[0].queue[50], 1, 100);
    check_between_u64(fifo.result.service[0].queue[50], 20000, 30000);
    lab_close(&fifo);
    lab_close(&lifo);
    lab_close(&codel);
    lab_close(&both);
    lab_close(&expiry);
}

static void test_sim_world__a_queue_with_a_bound_turns_away_what_is_too_much(void **state)
{
    (void)state;
    struct lab lab = lab_of(OVERLOADED("{max: 20}"), "none");
    check_between_u64(good_ppm(&lab, 0, 10, 60), 640000, 680000); /* ten of fifteen */
    for (uint32_t s = 10; s < 60; s++) {
        check_between_u64(lab.result.service[0].queue[s], 1, 20);
    }
    check_between_u64(lab.measure.latency_p99_us, 20000, 100000);
    lab_close(&lab);
}

/* Links. */

static void test_sim_world__each_link_has_its_own_latency_and_loss(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 60s\nlink: {latency: 1ms}\n"
                            "services: {api: {time: {constant: 0s}, calls: [db]}, db: {time: {constant: 0s}}}\n"
                            "clients: {near: {to: api, rate: 500/s}, weak: {to: api, rate: 500/s}}\n"
                            "links: {a: {from: api, to: db, latency: 20ms}, b: {from: weak, to: api, loss: 10%}}\n",
                            "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 60), 1000000);
    check_between_u64(good_ppm(&lab, 1, 0, 60), 800000, 820000); /* both messages must come through */
    check_eq_u64(lab.measure.latency_mean_us, 42000);
    lab_close(&lab);
}

static void test_sim_world__a_lost_message_is_heard_of_only_by_the_timeout(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 10s\ntimeout: 100ms\nattempts: 2\nlink: {latency: 1ms, loss: 50%}\n"
                            "services: {api: {time: {constant: 0s}}}\n"
                            "clients: {users: {to: api, rate: 1000/s}}\n",
                            "naive");
    check_between_u64(lab.measure.success_ppm, 420000, 455000);     /* 1 - 0.75^2 */
    check_between_u64(lab.measure.latency_mean_us, 40000, 46000);   /* 3 of 7 of them after the first timeout */
    check_between_u64(lab.result.service[0].good[5] * 2, 780, 980); /* a quarter of 1750 attempts */
    lab_close(&lab);
}

static void test_sim_world__a_partition_cuts_the_links_that_it_names(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 12s\n"
                            "services: {api: {time: {constant: 1ms}}}\n"
                            "clients: {a: {to: api, rate: 200/s}, b: {to: api, rate: 200/s}}\n"
                            "faults: {split: {at: 4s, for: 4s, service: api, from: b, partition: true}}\n",
                            "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 12), 1000000);
    check_eq_u64(good_ppm(&lab, 1, 0, 3), 1000000);
    check_between_u64(good_ppm(&lab, 1, 4, 8), 0, 2000); /* one may have been on its way */
    check_eq_u64(good_ppm(&lab, 1, 8, 12), 1000000);
    lab_close(&lab);
}

/* Faults. */

static void test_sim_world__a_killed_host_takes_with_it_what_it_has(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 12s\nlink: {latency: 50ms}\ntimeout: 5s\n"
                            "services: {api: {workers: 60, time: {constant: 500ms}}}\n"
                            "clients: {users: {to: api, rate: 100/s}}\n"
                            "faults: {kill: {at: 4s, for: 2s, service: api, killHosts: 1}}\n",
                            "none");
    uint64_t lost = lab.result.client[0].begun[3] - lab.result.client[0].good[3];
    check_eq_u64(good_ppm(&lab, 0, 0, 3), 1000000);
    check_between_u64(lost, 35, 75);                      /* served requests, and those in flight */
    check_between_u64(good_ppm(&lab, 0, 4, 6), 0, 60000); /* the last ones arrive when it is up again */
    check_eq_u64(good_ppm(&lab, 0, 6, 12), 1000000);      /* and its workers are free */
    lab_close(&lab);
}

static void test_sim_world__a_killed_host_leaves_the_calls_that_it_made(void **state)
{
    (void)state;
    struct lab lab =
        lab_of("length: 12s\nlink: {latency: 0s}\ntimeout: 5s\n"
               "services: {api: {time: {constant: 1ms}, calls: [db], fanOut: 3}, "
               "db: {time: {constant: 500ms}}}\n"
               "clients: {users: {to: api, rate: 100/s}}\n"
               "faults: {kill: {at: 4s, for: 2s, service: api, killHosts: 1, flap: {on: 300ms, off: 100ms}}}\n",
               "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 1), 1000000);
    check_eq_u64(good_ppm(&lab, 0, 7, 12), 1000000);
    uint64_t reached = 0;
    for (uint32_t s = 0; s < 12; s++) {
        reached += lab.result.service[1].arrivals[s];
    }
    check_true(reached % 3 == 0 && lab.result.service[1].ended[BECALM_WHY_OK] == reached); /* all three, each time */
    lab_close(&lab);
}

static void test_sim_world__a_rolling_restart_loses_nothing_with_retries(void **state)
{
    (void)state;
    static const char text[] = "length: 20s\n"
                               "services: {api: {hosts: 5, time: {constant: 10ms}}}\n"
                               "clients: {users: {to: api, rate: 500/s, callers: 10}}\n"
                               "faults: {deploy: {at: 5s, for: 10s, service: api, rolling: 2s}}\n";
    struct lab none = lab_of(text, "none");
    struct lab ours = lab_of(text, "becalm");
    check_between_u64(good_ppm(&none, 0, 5, 15), 700000, 850000); /* a dead host looks idle, and is asked more often */
    check_between_u64(good_ppm(&ours, 0, 5, 15), 999500, 1000000);
    check_eq_u64(good_ppm(&ours, 0, 15, 20), 1000000);
    lab_close(&none);
    lab_close(&ours);
}

static void test_sim_world__a_service_that_refuses_answers_at_once(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 10s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 500ms}}}\n"
                            "clients: {users: {to: api, rate: 100/s}}\n"
                            "faults: {closed: {at: 4s, for: 2s, service: api, refuse: true}}\n",
                            "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 4), 1000000); /* requests in flight go on */
    check_eq_u64(good_ppm(&lab, 0, 4, 6), 0);
    check_eq_u64(lab.result.service[0].failed[4], lab.result.client[0].begun[4]);
    check_eq_u64(good_ppm(&lab, 0, 6, 10), 1000000);
    lab_close(&lab);
}

/* A refused connection is no request: no host did any work. It is counted apart, for every caller. */
static void test_sim_world__a_refused_connection_is_no_load(void **state)
{
    (void)state;
    static const char *const policies[] = {"none", "naive", "becalm"};
    static const char *const harm[] = {"refuse: true", "killHosts: 2"};
    for (unsigned i = 0; i < 6; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 20s\ntimeout: 1s\nservices: {api: {time: {constant: 5ms}, hosts: 2}}\n"
                       "clients: {users: {to: api, rate: 200/s, callers: 10}}\n"
                       "faults: {closed: {at: 5s, for: 4s, service: api, %s}}\n",
                       harm[i % 2]);
        struct lab lab = lab_of(text, policies[i / 2]);
        const struct world_service *api = &lab.result.service[0];
        for (uint32_t s = 6; s < 9; s++) {
            check_eq_u64(api->arrivals[s], 0);
            assert_true(api->refused[s] > 0);
        }
        check_eq_u64(api->refused[4] + api->refused[10], 0);
        check_between_u64(api->arrivals_fault, 0, 5); /* of the last moment before it is over */
        check_between_u64(lab.measure.service[0].mean_ppm, 0, 10000);
        if (i < 2) { /* without a policy every call tries once */
            check_between_u64(lab.measure.service[0].refused_ppm, 990000, 1000000);
        }
        lab_close(&lab);
    }
}

static void test_sim_world__a_flapping_fault_comes_and_goes(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 14s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 0s}}}\n"
                            "clients: {users: {to: api, rate: 100/s}}\n"
                            "faults: {flaps: {at: 2s, for: 8s, service: api, dead: true, flap: {on: 1s, off: 2s}}}\n",
                            "none");
    for (uint32_t s = 0; s < 14; s++) {
        check_eq_u64(good_ppm(&lab, 0, s, s + 1), s == 2 || s == 5 || s == 8 ? 0 : 1000000);
    }
    lab_close(&lab);
}

static void test_sim_world__a_surge_makes_so_many_times_as_many_calls(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 30s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 0s}}}\n"
                            "clients: {open: {to: api, rate: 1000/s}, "
                            "loops: {to: api, loop: {think: 100ms}, callers: 100}}\n"
                            "faults: {a: {at: 10s, for: 10s, client: open, surge: 3}, "
                            "b: {at: 10s, for: 10s, client: loops, surge: 0.5}}\n",
                            "none");
    check_between_u64(begun(&lab, 0, 10), 9700, 10300);
    check_between_u64(begun(&lab, 10, 20), 29400, 30600);
    check_between_u64(begun(&lab, 20, 30), 9700, 10300);
    check_between_u64(lab.result.client[1].begun[5], 990, 1010);
    check_between_u64(lab.result.client[1].begun[15], 490, 510);
    check_between_u64(lab.result.client[1].begun[25], 990, 1010);
    lab_close(&lab);
}

/* The gate. */

static void test_sim_world__the_gate_chooses_the_host_and_not_its_callers(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 30s\n"
                            "services: {api: {hosts: 4, gate: true, time: {constant: 5ms}}}\n"
                            "clients: {users: {to: api, rate: 400/s, callers: 20}}\n"
                            "faults: {bad: {at: 10s, for: 20s, service: api, badHosts: 1}}\n",
                            "becalm");
    /* A quarter would fail without a choice, two thousand calls. The gate puts the host out. */
    check_between_u64(good_ppm(&lab, 0, 10, 30), 990000, 1000000);
    check_between_u64(lab.result.service[0].retries, 1, 100);
    lab_close(&lab);
}

/* The answers to callers, without those of the gate. */
static void note_answers(void *self, const struct world_trace *trace)
{
    uint64_t *count = self;
    if (!trace->is_gate && trace->event->kind == BECALM_EVENT_DONE) {
        count[trace->event->outcome.kind]++;
    }
}

static void check_answers(const char *service, enum becalm_outcome_kind kind)
{
    struct lab lab;
    char text[512];
    uint64_t count[BECALM_OUTCOME_COUNT] = {0};
    (void)snprintf(text, sizeof text,
                   "length: 10s\nservices: {api: {gate: true, time: {constant: 5ms}, %s}}\n"
                   "clients: {users: {to: api, rate: 200/s, callers: 10}}\n",
                   service);
    lab_open(&lab, text, "none");
    lab.options.trace = note_answers;
    lab.options.trace_self = count;
    lab_run(&lab);
    check_between_u64(count[kind], 40, lab.measure.calls); /* the gate retries the most */
    check_eq_u64(count[BECALM_OUTCOME_OK] + count[kind], lab.measure.calls);
    lab_close(&lab);
}

static void test_sim_world__the_gate_passes_on_what_it_was_answered(void **state)
{
    (void)state;
    check_answers("errors: 30%", BECALM_OUTCOME_BROKEN);
    check_answers("row: true", BECALM_OUTCOME_CONFLICT);
}

struct queued {
    bool seen[1000]; /* by the client's call: its first attempt has come to the gate */
    uint64_t firsts; /* that had to wait */
    uint64_t retries;
};

static void note_queued(void *self, const struct world_trace *trace)
{
    struct queued *queued = self;
    if (!trace->is_gate || trace->event->kind != BECALM_EVENT_BEGIN) {
        return;
    }
    bool *seen = &queued->seen[trace->call];
    bool waits = (trace->action->flags & (BECALM_DO_SEND | BECALM_DO_FINISH)) == 0;
    queued->firsts += waits && !*seen;
    queued->retries += waits && *seen;
    *seen = true;
}

/* One request at a time where two are wanted; a call that has given up is retried. */
static void test_sim_world__a_retry_never_waits_in_the_gate(void **state)
{
    (void)state;
    struct lab lab;
    struct queued queued = {.firsts = 0};
    lab_open(&lab,
             "length: 20s\ntimeout: 150ms\nattempts: 2\n"
             "services: {api: {gate: true, time: {constant: 100ms}}}\n"
             "clients: {users: {to: api, rate: 20/s}}\n",
             "naive");
    becalm_limit_defaults(&lab.gate.limit, BECALM_LIMIT_FIXED);
    lab.gate.limit.max = 1;
    lab.options.trace = note_queued;
    lab.options.trace_self = &queued;
    lab_run(&lab);
    check_between_u64(lab.result.service[0].retries, 50, 500);
    check_between_u64(queued.firsts, 50, 500);
    check_eq_u64(queued.retries, 0);
    lab_close(&lab);
}

static void test_sim_world__deadlines_are_carried_down_the_graph(void **state)
{
    (void)state;
    for (int carried = 0; carried < 2; carried++) {
        struct lab lab;
        lab_open(&lab,
                 "length: 10s\ntimeout: 100ms\n"
                 "services: {front: {time: {constant: 90ms}, calls: [back]}, back: {time: {constant: 50ms}}}\n"
                 "clients: {users: {to: front, rate: 100/s}}\n",
                 "none");
        lab.options.carries_deadlines = carried == 1;
        lab_run(&lab);
        const struct world_service *back = &lab.result.service[1];
        check_eq_u64(back->ended[BECALM_WHY_OK], carried == 1 ? 0 : lab.measure.calls);
        check_eq_u64(back->ended[BECALM_WHY_DEADLINE], carried == 1 ? lab.measure.calls : 0);
        lab_close(&lab);
    }
}

/* One timeout for all hops: deadlines on the wire are cut to milliseconds, and a service passes a shorter deadline to
 * its sidecar than it got itself. So the lower hop gives up first, and its service answers for it. A library knows the
 * instant, and the message to it took a moment: there the upper hop is the first. */
static uint64_t answered_in_vain(const char *role, bool carried)
{
    struct lab lab;
    char text[512];
    uint64_t count[BECALM_OUTCOME_COUNT] = {0};
    (void)snprintf(text, sizeof text,
                   "length: 10s\ntimeout: 100ms\nlink: {latency: 0.1ms}\n"
                   "services: {front: {role: %s, time: {constant: 1ms}, calls: [back]}, back: {time: {constant: "
                   "10s}}}\n"
                   "clients: {users: {to: front, rate: 1000/s, calls: 100}}\n",
                   role);
    lab_open(&lab, text, "none");
    lab.options.carries_deadlines = carried;
    lab.options.trace = note_answers;
    lab.options.trace_self = count;
    lab_run(&lab);
    lab_close(&lab);
    return count[BECALM_OUTCOME_REJECTED];
}

static void test_sim_world__the_lowest_hop_gives_up_first(void **state)
{
    (void)state;
    check_eq_u64(answered_in_vain("sidecar", true), 100);
    check_eq_u64(answered_in_vain("gateway", true), 100);
    check_eq_u64(answered_in_vain("library", true), 0);
    check_eq_u64(answered_in_vain("sidecar", false), 0);
}

/* The results as an observer sees them. */

static void test_sim_world__the_series_show_budget_breaker_limit_and_queue(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 30s\n"
                            "services: {api: {time: {constant: 5ms}}}\n"
                            "clients: {users: {to: api, rate: 1000/s, callers: 10}}\n"
                            "faults: {dead: {at: 10s, for: 15s, service: api, dead: true}}\n",
                            "becalm");
    const struct world_service *api = &lab.result.service[0];
    check_between_u64(api->budget_ppm[9], 900000, 1000000);
    check_between_u64(api->budget_ppm[15], 0, 100000);
    check_eq_u64(api->breaker_open_ppm[9], 0);
    check_between_u64(api->breaker_open_ppm[24], 500000, 1000000);
    check_eq_u64(api->breaker_open_ppm[29], 0);
    check_eq_u64(api->limit[9], 1000);
    check_eq_u64(api->queue[9], 0);
    check_between_u64(api->good[5], 850, 1150);
    check_eq_u64(api->failed[5], 0);
    check_true(api->good[15] == 0 && api->failed[15] > 0);
    lab_close(&lab);
}

/* More callers than the simulator looks at. */
static void test_sim_world__the_series_look_at_every_endpoint(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab,
             "length: 10s\n"
             "services: {api: {time: {constant: 1ms}, endpoints: {bad: {share: 50%, errors: 100%}}}}\n"
             "clients: {users: {to: api, rate: 2000/s, callers: 1024}}\n",
             "jitter");
    one_token_each(&lab.hop);
    lab.options.level = BECALM_LEVEL_ENDPOINT;
    lab_run(&lab);
    check_between_u64(lab.result.service[0].budget_ppm[9], 480000, 520000); /* all of one endpoint are empty */
    lab_close(&lab);
}

struct notebook {
    uint64_t steps;
    uint64_t calls;
    uint64_t finished;
    uint64_t seconds;
    becalm_ns last;
};

static void note_trace(void *self, const struct world_trace *trace)
{
    struct notebook *notebook = self;
    notebook->steps++;
    check_true(trace->event->at.now >= notebook->last);
    notebook->last = trace->event->at.now;
    if (trace->event->kind == BECALM_EVENT_BEGIN) {
        check_eq_u64(trace->part, notebook->calls + 1);
        check_eq_u64(trace->call, notebook->calls / 2 + 1); /* each call of the client makes one more */
        check_eq_str(trace->from, notebook->calls % 2 == 0 ? "users" : "front");
        check_eq_str(trace->to, notebook->calls % 2 == 0 ? "front" : "back");
        notebook->calls++;
    }
    notebook->finished += (trace->action->flags & BECALM_DO_FINISH) != 0;
}

static bool note_progress(void *self, becalm_ns now)
{
    struct notebook *notebook = self;
    notebook->seconds++;
    check_eq_u64(now, notebook->seconds * BECALM_S);
    return true;
}

static void test_sim_world__every_step_is_told_and_every_second(void **state)
{
    (void)state;
    struct lab lab;
    struct notebook notebook = {0, 0, 0, 0, 0};
    lab_open(&lab,
             "length: 10s\nlink: {latency: 0s}\n"
             "services: {front: {time: {constant: 0s}, calls: [back]}, back: {time: {constant: 1us}}}\n"
             "clients: {users: {to: front, loop: {think: 1ms}}}\n",
             "none");
    lab.options.trace = note_trace;
    lab.options.trace_self = &notebook;
    lab.options.progress = note_progress;
    lab.options.progress_self = &notebook;
    lab_run(&lab);
    check_eq_u64(notebook.calls, 2 * lab.measure.calls);
    check_eq_u64(notebook.finished, notebook.calls);
    check_eq_u64(notebook.steps, 2 * notebook.calls); /* BEGIN and DONE of each */
    check_eq_u64(notebook.seconds, 10);
    lab_close(&lab);
}

static void test_sim_world__a_gate_serves_callers_in_turn(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 70s\ntimeout: 1s\n"
                            "services: {api: {time: {exponential: 10ms}, workers: 10, gate: true}}\n"
                            "clients: {big: {to: api, rate: 300/s}, small: {to: api, rate: 200/s, callers: 40}}\n"
                            "faults: {surge: {at: 20s, for: 30s, client: big, surge: 10}}\n",
                            "becalm");
    check_between_u64(good_ppm(&lab, 1, 21, 50), 999000, 1000000); /* .32, first come, first served */
    check_between_u64(good_ppm(&lab, 1, 20, 21), 600000, 1000000); /* until the limit has learned */
    check_between_u64(good_ppm(&lab, 0, 20, 50), 250000, 300000);  /* the rest: 800 of 3000 a second */
    check_between_u64(good_ppm(&lab, 1, 55, 70), 995000, 1000000);
    lab_close(&lab);
}

/* Callers have the queue of the host that they are. */

/* A page of `calls` calls at once, over a limit of one, to a service of 10 ms; returns the number that arrives. */
static uint64_t arrivals_of_a_page(const char *role, const char *gate, const char *timeout, unsigned calls)
{
    struct lab lab;
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 4s\nlink: {latency: 0s}\ntimeout: %s\n"
                   "policies: {one: {maxRetries: 0, limit: {kind: fixed, max: 1}, gate: {%s}}}\n"
                   "services: {page: {time: {constant: 0s}, calls: [leaf], fanOut: %u, role: %s}, "
                   "leaf: {time: {constant: 10ms}}}\n"
                   "clients: {users: {to: page, rate: 1000/s, calls: 1, retries: false}}\n",
                   timeout, gate, calls, role);
    lab_open(&lab, text, "one");
    lab.options.carries_deadlines = false; /* that of the page would end all waiting */
    lab_run(&lab);
    const struct world_service *leaf = &lab.result.service[1];
    uint64_t arrived = leaf->arrivals[0] + leaf->arrivals[1] + leaf->arrivals[2] + leaf->arrivals[3];
    check_eq_u64(leaf->ended[strcmp(role, "gateway") == 0 ? BECALM_WHY_SHED : BECALM_WHY_LIMIT], calls - arrived);
    lab_close(&lab);
    return arrived;
}

static void test_sim_world__callers_queue_first_attempts(void **state)
{
    (void)state;
    static const char *const role[] = {"library", "sidecar"};
    for (unsigned i = 0; i < 2; i++) {
        check_eq_u64(arrivals_of_a_page(role[i], "", "1s", 200), 200); /* in calm the last one waits for 1.99 s */
        /* 0, 10, ... 240 ms: at 250 ms it is over. */
        check_eq_u64(arrivals_of_a_page(role[i], "maxQueueTime: 250ms", "1s", 29), 25);
        check_eq_u64(arrivals_of_a_page(role[i], "maxQueue: 7", "1s", 29),
                     8); /* one at once, and as many as may wait */
        check_eq_u64(arrivals_of_a_page(role[i], "maxQueue: 0", "1s", 29), 1);
    }
}

/* A gateway's queue is a gate: patience of half of the timeout; and CoDel, which after 750 ms lets those go that find
 * 30 or more in line. */
static void test_sim_world__a_caller_in_role_gateway_has_a_gate(void **state)
{
    (void)state;
    check_eq_u64(arrivals_of_a_page("gateway", "minQueue: 1000", "1s", 70), 50);
    check_eq_u64(arrivals_of_a_page("gateway", "minQueue: 1000", "20s", 200), 200);
    check_eq_u64(arrivals_of_a_page("gateway", "", "20s", 200), 76 + 29);
}

/* No timeout is written, and 1 % of the attempts hang. The part of the calls that succeed after ten seconds, in which
 * callers learn that the service takes 5 ms: of `users` or of `direct`, the smaller one. `retries`: the attempts at the
 * service that are not first ones. */
static uint64_t good_beside_hangs(const char *client, const char *front, const char *gate, const char *defaults,
                                  uint64_t *retries)
{
    struct lab lab;
    char text[640];
    char file[128];
    (void)snprintf(text, sizeof text,
                   "length: 60s\n"
                   "services: {front: {role: %s, time: {constant: 1ms}, calls: [back]}, "
                   "back: {gate: %s, time: {exponential: 5ms}, hangs: {percent: 1%%, time: 600s}}}\n"
                   "clients: {users: {to: front, role: %s, rate: 50/s, retries: false}, "
                   "direct: {to: back, role: %s, rate: 50/s}}\n",
                   front, gate, client, client);
    (void)snprintf(file, sizeof file, "role: sidecar\ndefaults: {%s}\nservices: {front: {}, back: {}}\n", defaults);
    lab_open_own(&lab, text, file);
    lab_run(&lab);
    const struct world_service *back = &lab.result.service[1];
    *retries = back->retries;
    uint64_t users = good_ppm(&lab, 0, 10, 60);
    uint64_t direct = good_ppm(&lab, 1, 10, 60);
    lab_close(&lab);
    return users < direct ? users : direct;
}

/* A library has one handle for the answer, a command one output; a proxy has room for two answers. */
static void test_sim_world__a_proxy_sends_an_attempt_beside_an_overdue_one_and_a_library_does_not(void **state)
{
    (void)state;
    uint64_t retries;
    check_between_u64(good_beside_hangs("library", "library", "false", "", &retries), 980000, 995000);
    check_eq_u64(retries, 0);
    check_between_u64(good_beside_hangs("sidecar", "sidecar", "false", "", &retries), 999000, 1000000);
    check_between_u64(retries, 40, 80);
    check_between_u64(good_beside_hangs("gateway", "gateway", "false", "", &retries), 999000, 1000000);
    check_between_u64(retries, 40, 80);
    check_between_u64(good_beside_hangs("sidecar", "library", "false", "", &retries), 980000, 995000); /* of users */
    check_between_u64(retries, 20, 40);                                                                /* of direct */
    check_between_u64(good_beside_hangs("library", "library", "true", "", &retries), 999000, 1000000);
    check_between_u64(good_beside_hangs("library", "library", "false", "hedge: {enabled: true, delay: p99}", &retries),
                      999000, 1000000);
}

/* The limit without a written kind: a gateway has slots, which begin at their maximum; a caller has aimd. */
static void test_sim_world__the_role_settles_the_limit(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 5s\n"
                            "services: {a: {time: {constant: 1ms}}, b: {time: {constant: 1ms}}, c: {time: {constant: "
                            "1ms}}}\n"
                            "clients: {x: {to: a, rate: 10/s}, y: {to: b, rate: 10/s, role: sidecar}, "
                            "z: {to: c, rate: 10/s, role: gateway}}\n",
                            "becalm");
    check_eq_u64(lab.result.service[0].limit[4], 1000);
    check_eq_u64(lab.result.service[1].limit[4], 1000);
    check_eq_u64(lab.result.service[2].limit[4], 10000);
    lab_close(&lab);
}

/* Pages of 30 calls, one every 5 s or so, and the leaf is unreachable for 30 s. After a cut, the limit does not hold a
 * whole page; calls that find no slot wait for one. Without a queue no page was complete for minutes. */
static void test_sim_world__pages_are_whole_again_soon_after_a_hang(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 200s\n"
                            "services: {page: {time: {constant: 1ms}, fanOut: 30, calls: [leaf]}, "
                            "leaf: {time: {exponential: 20ms}}}\n"
                            "clients: {users: {to: page, rate: 12/m, retries: false}}\n"
                            "faults: {cut: {at: 60s, for: 30s, service: leaf, partition: true}}\n",
                            "becalm");
    check_between_u64(lab.measure.recovered_after_s, 0, 20);
    lab_close(&lab);
}

/* Clients that differ. */

static void test_sim_world__a_client_may_have_a_timeout_of_its_own(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 10s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 500ms}}}\n"
                            "clients: {hasty: {to: api, rate: 50/s, timeout: 100ms}, calm: {to: api, rate: 100/s}}\n",
                            "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 10), 0);
    check_eq_u64(good_ppm(&lab, 1, 0, 10), 1000000);
    const struct world_client *calm = &lab.result.client[1];
    check_eq_u64(lab.result.client[0].latency.count, 0);
    check_eq_u64(calm->latency.count, calm->calls);
    check_eq_u64(world_latency_us(&calm->latency, 500000), 500000);
    check_eq_u64(calm->sent.first, calm->calls);
    check_eq_u64(calm->sent.retries, 0);
    lab_close(&lab);
}

/* Two callers want 200 calls a second each and a third one 20; a queue without room behind one worker of 10 ms gives
 * them a hundred. Fair are 40, 40 and 20; by chance each gets 100/420 of its demand. */
static void test_sim_world__fairness_is_the_part_that_a_fair_division_would_give(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 100s\nlink: {latency: 0s}\n"
                            "services: {api: {time: {constant: 10ms}, workers: 1, queue: {max: 0}}}\n"
                            "clients: {big: {to: api, rate: 400/s, callers: 2}, small: {to: api, rate: 20/s}}\n",
                            "none");
    uint64_t all = lab.result.client[0].phase[WORLD_BEFORE].good + lab.result.client[1].phase[WORLD_BEFORE].good;
    uint64_t small = lab.result.client[1].phase[WORLD_BEFORE].good;
    uint64_t fair = all - lab.result.client[1].phase[WORLD_BEFORE].begun; /* the fair part of the big callers */
    check_between_u64(lab.measure.fairness_ppm, (fair + small) * 1000000 / all - 1, (fair + small) * 1000000 / all + 1);
    check_between_u64(lab.measure.fairness_ppm, 780000, 840000);
    lab_close(&lab);
    lab = lab_of("length: 10s\nservices: {api: {time: {constant: 10ms}}}\n"
                 "clients: {big: {to: api, rate: 400/s, callers: 2}, small: {to: api, rate: 20/s}}\n",
                 "none");
    check_eq_u64(lab.measure.fairness_ppm, 1000000); /* all have all that they want */
    lab_close(&lab);
}

/* A host that restarts. */

/* One process refuses connections for this time, from 10.1 s on. */
static void restart_run(struct lab *lab, const char *length, const char *more, const char *policy)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 20s\nservices: {api: {time: {constant: 5ms}%s}}\n"
                   "clients: {users: {to: api, rate: 200/s}}\n"
                   "faults: {restart: {at: 10.1s, for: %s, service: api, refuse: true}}\n",
                   more, length);
    *lab = lab_of(text, policy);
}

static uint64_t failed_calls(const struct lab *lab)
{
    uint64_t all = 0;
    for (uint32_t s = 0; s < 20; s++) {
        all += lab->result.client[0].begun[s] - lab->result.client[0].good[s];
    }
    return all;
}

static void test_sim_world__callers_wait_out_a_restart(void **state)
{
    (void)state;
    struct lab lab;
    for (unsigned gate = 0; gate < 2; gate++) {
        restart_run(&lab, "600ms", gate == 1 ? ", gate: true" : "", "becalm");
        check_eq_u64(failed_calls(&lab), 0);
        check_eq_u64(lab.result.service[0].first, lab.measure.calls); /* a refused connection is no attempt */
        check_eq_u64(lab.result.service[0].retries, 0);
        check_eq_u64(lab.result.service[0].arrivals[10], lab.result.client[0].begun[10]);
        check_between_u64(lab.result.service[0].refused[10], 5, 10); /* the first one, and a probe each 100 ms */
        lab_close(&lab);
    }
    restart_run(&lab, "600ms", "", "none"); /* no other call waits */
    check_between_u64(failed_calls(&lab), 90, 150);
    lab_close(&lab);
}

/* Half of the callers are refused for a moment, by their way to the service or to its gate: to them it restarts. */
static void test_sim_world__callers_that_are_cut_off_wait_as_in_a_restart(void **state)
{
    (void)state;
    static const char *const gate[] = {"false", "true"};
    for (unsigned i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 20s\nservices: {api: {time: {constant: 5ms}, gate: %s}}\n"
                       "clients: {users: {to: api, rate: 200/s, callers: 2}}\n"
                       "faults: {cut: {at: 10s, for: 600ms, service: api, cutCallers: 50%%}}\n",
                       gate[i]);
        struct lab lab = lab_of(text, "becalm");
        check_eq_u64(failed_calls(&lab), 0);
        check_eq_u64(lab.result.service[0].retries, 0);
        check_between_u64(world_latency_us(&lab.result.latency, 999000), 300000, 610000); /* they waited */
        lab_close(&lab);
    }
}

/* Refused for longer than the timeout it does not restart: it is gone. Parked calls fail, and others fail, too. */
static void test_sim_world__a_service_that_is_gone_is_not_waited_for(void **state)
{
    (void)state;
    struct lab lab;
    restart_run(&lab, "4s", "", "becalm");
    check_between_u64(lab.result.service[0].ended[BECALM_WHY_NO_HOST], 100, 300);
    check_between_u64(good_ppm(&lab, 0, 11, 14), 0, 60000);
    check_eq_u64(good_ppm(&lab, 0, 16, 20), 1000000);
    lab_close(&lab);
}

/* With several hosts an attempt goes to another one, and no call waits. */
static void test_sim_world__one_host_of_two_that_restarts_parks_nobody(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 20s\nservices: {api: {time: {constant: 5ms}, hosts: 2}}\n"
                            "clients: {users: {to: api, rate: 200/s}}\n"
                            "faults: {restart: {at: 10.1s, for: 600ms, service: api, killHosts: 1}}\n",
                            "becalm");
    check_eq_u64(failed_calls(&lab), 0);
    check_between_u64(world_latency_us(&lab.result.latency, 999000), 6000, 9000);
    lab_close(&lab);
}

/* A listener that swallows connections: new callers get no answer, and requests in progress get theirs. */
static void test_sim_world__a_listener_that_swallows_is_heard_of_only_by_the_timeout(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 20s\nlink: {latency: 0s}\nservices: {api: {time: {constant: 2s}}}\ntimeout: 3s\n"
                            "clients: {users: {to: api, rate: 100/s}}\n"
                            "faults: {full: {at: 10s, for: 4s, service: api, swallow: true}}\n",
                            "none");
    check_eq_u64(good_ppm(&lab, 0, 0, 10), 1000000); /* also those that were there when it began */
    check_eq_u64(good_ppm(&lab, 0, 10, 14), 0);
    check_eq_u64(good_ppm(&lab, 0, 14, 20), 1000000);
    check_eq_u64(lab.result.service[0].failed[12], 0); /* no answer at all */
    lab_close(&lab);
}

/* A gate retries as a gateway does. */

#define UNPAID                                                                                               \
    "version: 1\ndefaults: {maxRetries: 2, initialDelay: 10ms, jitter: none, attemptTimeout: 1s, deadline: " \
    "none, budget: {kind: none}, breaker: {enabled: false}, limit: {kind: none}}\n"

/* Attempts that reach a service of such errors for 1000 calls, and how many of a million calls succeed. Where all fail,
 * each call goes the same way, and a tenth of them is enough. */
static uint64_t load_behind_a_gate(const char *policy, const char *gate, const char *errors, const char *retries,
                                   uint64_t *good)
{
    struct lab lab;
    char text[512];
    (void)snprintf(text, sizeof text,
                   "length: 60s\nservices: {api: {time: {constant: 1ms}, errors: %s, gate: true, gateRetries: %s}}\n"
                   "clients: {users: {to: api, rate: %s, retries: %s}}\n",
                   errors, gate, strcmp(errors, "100%") == 0 ? "50/s" : "500/s", retries);
    lab_open_own(&lab, text, policy);
    lab.options.carries_marks = false; /* else callers would be told that all was tried */
    lab_run(&lab);
    *good = lab.measure.success_ppm;
    uint64_t load = lab.result.service[0].arrivals_fault * 1000 / lab.measure.calls;
    lab_close(&lab);
    return load;
}

static void test_sim_world__a_gate_retries_as_a_gateway_does(void **state)
{
    (void)state;
    uint64_t good;
    /* Failure f, n attempts: 1 - f^n succeed, at a load of (1 - f^n) / (1 - f). */
    check_between_u64(load_behind_a_gate(UNPAID, "true", "30%", "false", &good), 1380, 1400);
    check_between_u64(good, 971000, 975000);
    check_eq_u64(load_behind_a_gate(UNPAID, "false", "30%", "false", &good), 1000);
    check_between_u64(good, 695000, 705000);
    check_eq_u64(load_behind_a_gate(UNPAID "gatewayRetries: false\n", "true", "30%", "false", &good), 1000);
    check_between_u64(good, 695000, 705000);
    /* Callers may retry on top: 3 x 3. */
    check_eq_u64(load_behind_a_gate(UNPAID, "true", "100%", "true", &good), 9000);
    /* More attempts than a record keeps. */
    check_eq_u64(load_behind_a_gate("version: 1\ndefaults: {maxRetries: 11, initialDelay: 1ms, jitter: none, budget: "
                                    "{kind: none}, breaker: {enabled: false}, limit: {kind: none}}\n",
                                    "true", "100%", "false", &good),
                 12000);
    check_eq_u64(good, 0);
}

/* A caller that gives up closes the connection: the gate begins no retry for it. Deadlines are not carried here. */
static void test_sim_world__a_gate_does_not_retry_for_a_caller_that_has_left(void **state)
{
    (void)state;
    struct lab lab;
    lab_open_own(&lab,
                 "length: 20s\nservices: {api: {time: {constant: 10s}, gate: true}}\n"
                 "clients: {users: {to: api, rate: 100/s, retries: false}}\n",
                 UNPAID);
    lab.options.carries_deadlines = false;
    lab_run(&lab);
    check_eq_u64(lab.result.service[0].arrivals_fault * 1000 / lab.measure.calls, 1000);
    check_eq_u64(lab.measure.success_ppm, 0);
    lab_close(&lab);
}

/* Endpoints share the limit of their service, unless they write their own: here one slot, so that 10 ms allow a hundred
 * attempts a second for all endpoints together. */
static void test_sim_world__endpoints_share_the_limit_of_their_service(void **state)
{
    (void)state;
    for (unsigned gate = 0; gate < 2; gate++) {
        struct lab lab;
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 10s\nlink: {latency: 0s}\n"
                       "services: {api: {time: {constant: 10ms}, gate: %s, endpoints: {a: {share: 50%%}, b: {share: "
                       "50%%}}}}\n"
                       "clients: {users: {to: api, rate: 1000/s, retries: false}}\n",
                       gate == 1 ? "true" : "false");
        lab_open_own(&lab, text,
                     "version: 1\ndefaults: {maxRetries: 0, breaker: {enabled: false}, limit: {kind: fixed, max: 1}, "
                     "gate: {maxQueue: 0}}\nservices: {api: {endpoints: {a: {match: {path: /a}}}}}\n");
        lab_run(&lab);
        check_between_u64(lab.result.service[0].arrivals[5], 85, 100);
        lab_close(&lab);
    }
}

/* A policy file. */

static void test_sim_world__a_policy_file_has_rules_for_services_endpoints_and_gates(void **state)
{
    (void)state;
    static const char file[] = "version: 1\n"
                               "defaults: {maxRetries: 0, budget: {kind: none}, breaker: {enabled: false}}\n"
                               "services:\n"
                               "  api: {endpoints: {twice: {match: {path: /twice}, maxRetries: 1}}}\n"
                               "  slow: {limit: {kind: fixed, max: 3}, gate: {maxQueue: 2}}\n";
    struct lab lab;
    lab_open_own(
        &lab,
        "length: 20s\nlink: {latency: 0s}\n"
        "services: {api: {time: {constant: 1ms}, errors: 100%, endpoints: {twice: {share: 50%}, other: {share: "
        "20%}}}, slow: {gate: true, time: {constant: 1s}}}\n"
        "clients: {users: {to: api, rate: 100/s}, more: {to: slow, rate: 10/s, callers: 10}}\n",
        file);
    lab_run(&lab);
    check_between_u64(lab.result.service[0].retries * 1000 / lab.result.service[0].first, 450, 550);
    check_between_u64(good_ppm(&lab, 1, 2, 18), 250000, 400000); /* three a second of about ten */
    for (uint32_t s = 2; s < 20; s++) {
        check_between_u64(lab.result.service[1].arrivals[s], 2, 4);
        check_eq_u64(lab.result.service[1].limit[s], 3);
        check_between_u64(lab.result.service[1].queue[s], 0, 2);
    }
    lab_close(&lab);
}

BECALM_TESTS(cmocka_unit_test(test_sim_world__a_fault_of_half_a_second_has_a_share_of_its_own),
             cmocka_unit_test(test_sim_world__faults_that_touch_are_one),
             cmocka_unit_test(test_sim_world__time_that_stands_still_is_noticed),
             cmocka_unit_test(test_sim_world__a_loop_calls_again_when_it_has_its_answer_and_has_thought),
             cmocka_unit_test(test_sim_world__a_slow_answer_slows_the_loop_and_not_the_open_client),
             cmocka_unit_test(test_sim_world__callers_stop_after_their_calls),
             cmocka_unit_test(test_sim_world__endpoints_have_their_share_and_their_own_times),
             cmocka_unit_test(test_sim_world__endpoints_share_a_budget_if_the_level_says_so),
             cmocka_unit_test(test_sim_world__a_mixture_has_the_mean_of_its_parts),
             cmocka_unit_test(test_sim_world__in_overload_the_discipline_decides_who_is_served),
             cmocka_unit_test(test_sim_world__each_link_has_its_own_latency_and_loss),
             cmocka_unit_test(test_sim_world__a_lost_message_is_heard_of_only_by_the_timeout),
             cmocka_unit_test(test_sim_world__a_partition_cuts_the_links_that_it_names),
             cmocka_unit_test(test_sim_world__a_killed_host_takes_with_it_what_it_has),
             cmocka_unit_test(test_sim_world__a_killed_host_leaves_the_calls_that_it_made),
             cmocka_unit_test(test_sim_world__a_rolling_restart_loses_nothing_with_retries),
             cmocka_unit_test(test_sim_world__a_service_that_refuses_answers_at_once),
             cmocka_unit_test(test_sim_world__a_refused_connection_is_no_load),
             cmocka_unit_test(test_sim_world__a_flapping_fault_comes_and_goes),
             cmocka_unit_test(test_sim_world__a_surge_makes_so_many_times_as_many_calls),
             cmocka_unit_test(test_sim_world__the_gate_chooses_the_host_and_not_its_callers),
             cmocka_unit_test(test_sim_world__the_gate_passes_on_what_it_was_answered),
             cmocka_unit_test(test_sim_world__a_retry_never_waits_in_the_gate),
             cmocka_unit_test(test_sim_world__deadlines_are_carried_down_the_graph),
             cmocka_unit_test(test_sim_world__the_lowest_hop_gives_up_first),
             cmocka_unit_test(test_sim_world__a_queue_with_a_bound_turns_away_what_is_too_much),
             cmocka_unit_test(test_sim_world__the_series_show_budget_breaker_limit_and_queue),
             cmocka_unit_test(test_sim_world__the_series_look_at_every_endpoint),
             cmocka_unit_test(test_sim_world__every_step_is_told_and_every_second),
             cmocka_unit_test(test_sim_world__a_gate_serves_callers_in_turn),
             cmocka_unit_test(test_sim_world__callers_queue_first_attempts),
             cmocka_unit_test(test_sim_world__a_caller_in_role_gateway_has_a_gate),
             cmocka_unit_test(test_sim_world__a_proxy_sends_an_attempt_beside_an_overdue_one_and_a_library_does_not),
             cmocka_unit_test(test_sim_world__the_role_settles_the_limit),
             cmocka_unit_test(test_sim_world__pages_are_whole_again_soon_after_a_hang),
             cmocka_unit_test(test_sim_world__a_client_may_have_a_timeout_of_its_own),
             cmocka_unit_test(test_sim_world__fairness_is_the_part_that_a_fair_division_would_give),
             cmocka_unit_test(test_sim_world__callers_wait_out_a_restart),
             cmocka_unit_test(test_sim_world__callers_that_are_cut_off_wait_as_in_a_restart),
             cmocka_unit_test(test_sim_world__a_service_that_is_gone_is_not_waited_for),
             cmocka_unit_test(test_sim_world__one_host_of_two_that_restarts_parks_nobody),
             cmocka_unit_test(test_sim_world__a_listener_that_swallows_is_heard_of_only_by_the_timeout),
             cmocka_unit_test(test_sim_world__a_gate_retries_as_a_gateway_does),
             cmocka_unit_test(test_sim_world__a_gate_does_not_retry_for_a_caller_that_has_left),
             cmocka_unit_test(test_sim_world__endpoints_share_the_limit_of_their_service),
             cmocka_unit_test(test_sim_world__a_policy_file_has_rules_for_services_endpoints_and_gates))
