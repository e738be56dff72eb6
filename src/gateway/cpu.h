/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_CPU_H
#define BECALM_GATEWAY_CPU_H

/* The share of CPU time in use, for the gate's cpuThreshold: of the cgroup where one has a limit, else of the machine.
 */

#include <becalm/ns.h>

struct cpu {
    const char *root;
    becalm_ns read_at;
    uint64_t busy; /* at that time, us */
    uint64_t whole;
};

/* `root` is put before all paths, for tests; "" otherwise. */
void cpu_init(struct cpu *, const char *root);

/* Since the call before: parts per million. False: not known (yet). */
bool cpu_share(struct cpu *, becalm_ns now, uint32_t *ppm);

/* How many threads can have a CPU of their own: the CPUs that the process may run on, at most the quota of its cgroups,
 * rounded up. At least 1. */
uint32_t cpu_cores(const char *root);

#endif
