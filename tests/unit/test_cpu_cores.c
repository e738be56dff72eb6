/* SPDX-License-Identifier: MIT */
/* How many workers `auto` is: by affinity, and by the quota of the cgroups, of both versions. */
#define _GNU_SOURCE
#include "gateway/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"

static char root[64];

static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    check_true(file != NULL);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "test_cpu_cores.XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    char command[80];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static uint32_t allowed(void)
{
    cpu_set_t set;
    check_true(sched_getaffinity(0, sizeof set, &set) == 0);
    return (uint32_t)CPU_COUNT(&set);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void test_cpu_cores__without_a_limit_is_what_the_process_may_run_on(void **state)
{
    (void)state;
    check_eq_u64(cpu_cores(root), allowed());
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    check_eq_u64(cpu_cores(root), allowed());
}

static void test_cpu_cores__follows_the_affinity(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    check_true(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    check_true(sched_setaffinity(0, sizeof one, &one) == 0);
    check_eq_u64(cpu_cores(root), 1);
    check_true(sched_setaffinity(0, sizeof before, &before) == 0);
}

static void test_cpu_cores__a_quota_counts_rounded_up_and_the_least_of_all_around(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/pods/one\n");
    put("/sys/fs/cgroup/pods/one/cpu.max", "10000 100000\n"); /* a tenth */
    check_eq_u64(cpu_cores(root), 1);
    put("/sys/fs/cgroup/pods/one/cpu.max", "150000 100000\n");
    check_eq_u64(cpu_cores(root), least(2, allowed()));
    put("/sys/fs/cgroup/pods/one/cpu.max", "6400000 100000\n");
    check_eq_u64(cpu_cores(root), least(64, allowed()));
    put("/sys/fs/cgroup/pods/cpu.max", "100000 100000\n");
    check_eq_u64(cpu_cores(root), 1);
}

static void test_cpu_cores__version_1_too(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/docker/abc\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    check_eq_u64(cpu_cores(root), allowed());
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n");
    check_eq_u64(cpu_cores(root), 1);
}

static void test_cpu_cores__the_mount_itself_counts_where_the_path_is_the_host_s(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "3:cpuacct,cpu:/kubepods/pod1/abc\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    check_eq_u64(cpu_cores(root), 1);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

BECALM_TESTS(IN_ROOT(test_cpu_cores__without_a_limit_is_what_the_process_may_run_on),
             IN_ROOT(test_cpu_cores__follows_the_affinity),
             IN_ROOT(test_cpu_cores__a_quota_counts_rounded_up_and_the_least_of_all_around),
             IN_ROOT(test_cpu_cores__version_1_too),
             IN_ROOT(test_cpu_cores__the_mount_itself_counts_where_the_path_is_the_host_s))
