/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "cpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

#define MILLION    1000000u
#define QUOTA_MAX  (UINT64_C(1000000) * MILLION) /* us in each period: beyond a million CPUs there is no limit */
#define PATH_BYTES 256u

static FILE *file_open(const struct cpu *cpu, const char *name)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s%s", cpu->root, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* cgroup v2: the CPU time used, and the CPU time allowed. False: no limit is set, or the cgroup does not exist. */
static bool cgroup_read(const struct cpu *cpu, uint64_t *used_us, uint64_t *per_second_us)
{
    unsigned long long quota, period, used = 0;
    FILE *file = file_open(cpu, "/sys/fs/cgroup/cpu.max");
    if (file == NULL) {
        return false;
    }
    bool limited = fscanf(file, "%llu %llu", &quota, &period) == 2 && period > 0 &&
                   quota <= QUOTA_MAX; /* "max 100000": no limit */
    fclose(file);
    file = limited ? file_open(cpu, "/sys/fs/cgroup/cpu.stat") : NULL;
    if (file == NULL) {
        return false;
    }
    bool known = fscanf(file, "usage_usec %llu", &used) == 1;
    fclose(file);
    *used_us = used;
    *per_second_us = quota * MILLION / period;
    return known;
}

/* The machine's, in ticks of its own. */
static bool machine_read(const struct cpu *cpu, uint64_t *busy, uint64_t *whole)
{
    unsigned long long tick[8] = {0};
    FILE *file = file_open(cpu, "/proc/stat");
    if (file == NULL) {
        return false;
    }
    int count = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &tick[0], &tick[1], &tick[2], &tick[3],
                       &tick[4], &tick[5], &tick[6], &tick[7]);
    fclose(file);
    *whole = 0;
    for (int i = 0; i < 8; i++) {
        *whole += tick[i];
    }
    *busy = *whole - tick[3] - tick[4]; /* idle, and waiting for a disk */
    return count >= 5;
}

void cpu_init(struct cpu *cpu, const char *root)
{
    *cpu = (struct cpu){.root = root};
}

bool cpu_share(struct cpu *cpu, becalm_ns now, uint32_t *ppm)
{
    struct cpu read = {.root = cpu->root, .read_at = now};
    uint64_t per_second = 0;
    if (cgroup_read(cpu, &read.busy, &per_second)) {
        read.whole = (uint64_t)((double)now / (double)BECALM_S * (double)per_second);
    } else if (!machine_read(cpu, &read.busy, &read.whole)) {
        return false;
    }
    struct cpu before = *cpu;
    *cpu = read;
    if (before.read_at == 0 || read.whole <= before.whole || read.busy < before.busy) {
        return false;
    }
    uint64_t share = (read.busy - before.busy) * MILLION / (read.whole - before.whole);
    *ppm = (uint32_t)(share < MILLION ? share : MILLION);
    return true;
}

static long long number_of(const char *folder, const char *name)
{
    char path[4096];
    long long number = -1;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    if (file != NULL) {
        number = fscanf(file, "%lld", &number) == 1 ? number : -1;
        fclose(file);
    }
    return number;
}

/* Version 2: "200000 100000", or "max 100000". */
static bool quota_of(const char *folder, long long *quota, long long *period)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    bool known = file != NULL && fscanf(file, "%lld %lld", quota, period) == 2;
    if (file != NULL) {
        fclose(file);
    }
    return known;
}

/* Whole CPUs, rounded up. */
static uint64_t cpu_limit(const char *folder, int version)
{
    long long quota = -1;
    long long period = -1;
    if (version == 1) {
        quota = number_of(folder, "cpu.cfs_quota_us");
        period = number_of(folder, "cpu.cfs_period_us");
    } else if (!quota_of(folder, &quota, &period)) {
        return UINT64_MAX;
    }
    return quota <= 0 || period <= 0 ? UINT64_MAX
                                     : (uint64_t)quota / (uint64_t)period + ((uint64_t)quota % (uint64_t)period != 0);
}

uint32_t cpu_cores(const char *root)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t cores = online > 0 ? (uint64_t)online : 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) { /* fails with more than 1024 of them */
        cores = (uint64_t)CPU_COUNT(&set);
    }
    uint64_t quota = cgroup_least(root, "cpu", cpu_limit);
    cores = quota < cores ? quota : cores;
    return cores == 0 ? 1 : (uint32_t)cores;
}
