/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_CHAOS_H
#define BECALM_TESTS_CHAOS_H

/* Reads bytes as a policy and then as events for up to sixteen calls on one target, in any order a host could and could
 * not produce, and asserts the rules that hold for all inputs:
 *   - a call ends exactly once, and sends nothing after its end;
 *   - it never sends more attempts than the policy allows, none after its deadline, none into a slot in use;
 *   - it cancels only attempts in flight; all that it took is given back when all calls have ended: places in the
 * limit, at the hosts and in the queue, calls and retries in progress in the budget. The random tests feed it random
 * bytes, the fuzzer bytes of its own. */

#include <stddef.h>
#include <stdint.h>

struct chaos_counts {
    size_t events;
    size_t sends;
    size_t retries; /* and hedges: sends but the first of each call */
    size_t hedges;
    size_t gated;
    size_t parked;
    size_t probes;    /* sends that ask whether a host is back */
    size_t ended[64]; /* calls, by reason */
};

/* Adds the events of this run to *counts. */
void chaos_run(const uint8_t *data, size_t size, struct chaos_counts *counts);

#endif
