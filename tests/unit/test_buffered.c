/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "gateway/buffered_default.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define MIB (UINT64_C(1) << 20)

/* A machine's files in a directory of the test's own. */
static char root[64];

static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    check_true(file != NULL);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "test_buffered.XXXXXX");
    return mkdtemp(root) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void test_buffered__is_256_mib_where_there_is_no_limit(void **state)
{
    (void)state;
    check_eq_u64(buffered_default(root), 256 * MIB); /* no such files at all */
    put("/proc/self/cgroup", "0::/user.slice/a\n");
    check_eq_u64(buffered_default(root), 256 * MIB);
    put("/sys/fs/cgroup/user.slice/a/memory.max", "max\n");
    check_eq_u64(buffered_default(root), 256 * MIB);
    put("/sys/fs/cgroup/user.slice/a/memory.max", "");
    check_eq_u64(buffered_default(root), 256 * MIB);
}

static void test_buffered__is_a_quarter_of_a_cgroups_limit(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n"); /* in a container with a namespace of its own */
    put("/sys/fs/cgroup/memory.max", "268435456\n");
    check_eq_u64(buffered_default(root), 64 * MIB);
    put("/sys/fs/cgroup/memory.max", "1000\n");
    check_eq_u64(buffered_default(root), MIB);
}

static void test_buffered__the_narrowest_of_nested_cgroups_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/pods/one/gateway\n");
    put("/sys/fs/cgroup/pods/one/gateway/memory.max", "max\n");
    put("/sys/fs/cgroup/pods/one/memory.max", "1073741824\n");
    check_eq_u64(buffered_default(root), 256 * MIB);
    put("/sys/fs/cgroup/pods/memory.max", "134217728\n");
    check_eq_u64(buffered_default(root), 32 * MIB);
    put("/sys/fs/cgroup/pods/one/gateway/memory.max", "67108864\n");
    check_eq_u64(buffered_default(root), 16 * MIB);
}

static void test_buffered__knows_version_1_and_both_at_once(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/system.slice\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    check_eq_u64(buffered_default(root), 256 * MIB);
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "536870912\n");
    check_eq_u64(buffered_default(root), 128 * MIB);
    put("/sys/fs/cgroup/unified/system.slice/memory.max", "268435456\n");
    check_eq_u64(buffered_default(root), 64 * MIB);
}

static void test_buffered__a_path_of_the_host_ends_at_the_mount(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/kubepods/burstable/pod1/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
    check_eq_u64(buffered_default(root), 64 * MIB);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

BECALM_TESTS(IN_ROOT(test_buffered__is_256_mib_where_there_is_no_limit),
             IN_ROOT(test_buffered__is_a_quarter_of_a_cgroups_limit),
             IN_ROOT(test_buffered__the_narrowest_of_nested_cgroups_counts),
             IN_ROOT(test_buffered__knows_version_1_and_both_at_once),
             IN_ROOT(test_buffered__a_path_of_the_host_ends_at_the_mount))
