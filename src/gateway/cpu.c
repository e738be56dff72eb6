/* SPDX-License-Identifier: MIT */
#include "cpu.h"

#include <stdio.h>
#include <string.h>

#define MILLION    1000000u
#define QUOTA_MAX  (UINT64_C(1000000) * MILLION) /* us in each period: beyond a million CPUs there is no limit */
#define PATH_BYTES 256u

static FILE *file_open(const struct cpu *cpu, const char *name)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s%s", cpu->root, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* cgroup v2: what was used, and how much may be. False: no limit is set, or there is no such cgroup. */
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
