/* SPDX-License-Identifier: MIT */
#include <becalm/gate.h>

#include "gate_internal.h"

#include <string.h>

enum {
    FULL_PPM = 1000000,
    SHED_AT_FULL_CPU_PPM = 900000, /* a tenth still passes, so that the gate notices when it gets better */
    SHED_WEIGHT = 100,             /* one decision moves the share by a hundredth of the way */
    OVERLOADED_PPM = 100000
};

#define MAX_QUEUE  1000u
#define WAIT_LEAST BECALM_US
#define WAIT_MOST  (3600 * BECALM_S)

void becalm_gate_defaults(struct becalm_gate_policy *policy)
{
    memset(policy, 0, sizeof *policy); /* policies are compared as bytes */
    policy->target_wait = BECALM__GATE_TARGET_WAIT;
    policy->interval = 100 * BECALM_MS;
    policy->max_interval = 750 * BECALM_MS;
    policy->max_wait = BECALM__GATE_MAX_WAIT;
    policy->min_queue = 30;
    policy->max_queue = MAX_QUEUE;
    policy->retry_after = 5 * BECALM_S;
}

void becalm_gate_for_caller(struct becalm_gate_policy *policy)
{
    policy->caller = true;
    policy->calm_queue = policy->max_queue == MAX_QUEUE ? BECALM_QUEUE_MAX : policy->max_queue;
    policy->calm_wait = policy->max_wait == BECALM__GATE_MAX_WAIT ? BECALM_NEVER : policy->max_wait;
}

static bool wait_is_sane(becalm_ns wait)
{
    return wait >= WAIT_LEAST && wait <= WAIT_MOST;
}

int becalm_gate_check(const struct becalm_gate_policy *policy, const char **why)
{
    const char *sentence = NULL;
    if (!wait_is_sane(policy->target_wait)) {
        sentence = "target_wait must be 1 us to 1 h";
    } else if (!wait_is_sane(policy->interval)) {
        sentence = "interval must be 1 us to 1 h";
    } else if (!wait_is_sane(policy->max_interval) || policy->max_interval < policy->interval) {
        sentence = "max_interval must be interval to 1 h";
    } else if (!wait_is_sane(policy->max_wait)) {
        sentence = "max_wait must be 1 us to 1 h";
    } else if (policy->min_queue > BECALM_QUEUE_MAX) {
        sentence = "min_queue must be at most 1000000";
    } else if (policy->max_queue > BECALM_QUEUE_MAX) {
        sentence = "max_queue must be at most 1000000";
    } else if (policy->cpu_threshold_ppm > FULL_PPM) {
        sentence = "cpu_threshold_ppm must be at most 1000000";
    } else if (policy->retry_after > WAIT_MOST) {
        sentence = "retry_after must be at most 1 h";
    }
    if (why != NULL) {
        *why = sentence;
    }
    return sentence == NULL ? 0 : BECALM_EINVAL;
}

void becalm_gate_init(struct becalm_gate *gate)
{
    memset(gate, 0, sizeof *gate);
}

void becalm_gate_carry(struct becalm_gate *to, const struct becalm_gate *from)
{
    /* Relaxed: figures that stand for themselves. Waiting calls go on waiting at the old gate. */
    atomic_store_explicit(&to->shed_ppm, atomic_load_explicit(&from->shed_ppm, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->cpu_ppm, atomic_load_explicit(&from->cpu_ppm, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Relaxed, as everything about the CPU and the shed share: single numbers that guard nothing. */
void becalm_gate_note_cpu(struct becalm_gate *gate, uint32_t cpu_ppm)
{
    atomic_store_explicit(&gate->cpu_ppm, cpu_ppm < FULL_PPM ? cpu_ppm : FULL_PPM, memory_order_relaxed);
}

bool becalm_gate_admit(struct becalm_gate *gate, const struct becalm_gate_policy *policy,
                       const struct becalm_moment *at, bool retry)
{
    uint64_t threshold = policy->cpu_threshold_ppm;
    if (threshold == 0) {
        return true;
    }
    uint64_t cpu = atomic_load_explicit(&gate->cpu_ppm, memory_order_relaxed);
    if (cpu <= threshold) {
        return true;
    }
    if (retry) {
        return false;
    }
    /* cpu is at most FULL_PPM and above the threshold, so the divisor is not 0. */
    uint64_t chance = SHED_AT_FULL_CPU_PPM * (cpu - threshold) / (FULL_PPM - threshold);
    return !becalm_rand_chance(becalm_rand_lane(at->random, BECALM_LANE_SHED), (uint32_t)chance);
}

void becalm_gate_note(struct becalm_gate *gate, bool shed)
{
    uint64_t share = atomic_load_explicit(&gate->shed_ppm, memory_order_relaxed);
    uint64_t next;
    do {
        if (share == 0 && !shed) {
            return;
        }
        /* Down is rounded up, so that the share comes to rest at 0 and not at the first value below SHED_WEIGHT. */
        next = shed ? share + (FULL_PPM - share) / SHED_WEIGHT : share - (share + SHED_WEIGHT - 1) / SHED_WEIGHT;
    } while (!atomic_compare_exchange_weak_explicit(&gate->shed_ppm, &share, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}

uint64_t becalm_gate_waiting(const struct becalm_gate *gate)
{
    return atomic_load_explicit(&gate->waiting, memory_order_relaxed);
}

uint32_t becalm_gate_shed_ppm(const struct becalm_gate *gate)
{
    return (uint32_t)atomic_load_explicit(&gate->shed_ppm, memory_order_relaxed);
}

bool becalm_gate_overloaded(const struct becalm_gate *gate)
{
    return becalm_gate_shed_ppm(gate) > OVERLOADED_PPM;
}
