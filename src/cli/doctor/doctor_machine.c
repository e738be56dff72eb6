/* SPDX-License-Identifier: MIT */
/* The machine's limits for a gateway. A setting that can't be read has no line: not every kernel has all of them. */
#define _GNU_SOURCE
#include "doctor.h"

#include "gateway/buffered_default.h"
#include "gateway/cpu.h"
#include "loop/listen.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS   10000u /* the default of maxConnections */
#define OWN_FDS       64u    /* logs, wheels, listeners, the admin address */
#define BACKLOG_LEAST 1024u
#define PORTS_LEAST   10000u
#define MEMORY_LEAST  (UINT64_C(64) << 20)
#define NOT_BEFORE    1767225600 /* 2026: this program is newer, so an earlier clock is wrong */

/* Up to `count` numbers of a file of the kernel; how many there were. */
static int numbers_read(const struct doctor *d, const char *path, uint64_t *number, int count)
{
    char whole[512];
    int found = 0;
    int length = snprintf(whole, sizeof whole, "%s%s", d->root, path);
    FILE *file = length > 0 && (size_t)length < sizeof whole ? fopen(whole, "re") : NULL;
    while (file != NULL && found < count && fscanf(file, "%" SCNu64, &number[found]) == 1) {
        found++;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static void descriptors(struct doctor *d)
{
    struct rlimit limit;
    uint64_t connections = d->config == NULL ? CONNECTIONS : becalm_config_settings(d->config)->max_connections;
    uint64_t need = 2 * connections + OWN_FDS; /* a client's and a host's */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need) {
        doctor_say(d, DOCTOR_WARNING, "descriptors",
                   "at most %" PRIu64 " files may be open, and maxConnections %" PRIu64 " may need %" PRIu64
                   "; do: LimitNOFILE=%" PRIu64 " in the unit, ulimit -Hn, or a smaller maxConnections",
                   (uint64_t)limit.rlim_max, connections, need, need);
        return;
    }
    doctor_say(d, DOCTOR_OK, "descriptors", "enough for maxConnections %" PRIu64, connections);
}

static void processors(struct doctor *d)
{
    uint32_t cores = cpu_cores(d->root);
    uint32_t workers = d->config == NULL ? 0 : becalm_config_settings(d->config)->workers;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (workers > cores) {
        doctor_say(
            d, DOCTOR_WARNING, "cpu",
            "workers: %u, and affinity and cgroup quota let %u run at once; do: workers: auto, or a larger quota",
            workers, cores);
        return;
    }
    doctor_say(d, DOCTOR_OK, "cpu", "%u of %ld by affinity and cgroup quota; workers: %u", cores,
               online < 1 ? 1 : online, workers == 0 ? cores : workers);
}

static void memory(struct doctor *d)
{
    uint64_t may = memory_allowed(d->root);
    if (may == UINT64_MAX) {
        doctor_say(d, DOCTOR_OK, "memory", "no cgroup limits it");
    } else if (may < MEMORY_LEAST) {
        doctor_say(d, DOCTOR_WARNING, "memory",
                   "its cgroup allows %" PRIu64 " MiB; do: allow 64 MiB or more, or set maxBuffered and maxConnections",
                   may >> 20);
    } else {
        doctor_say(d, DOCTOR_OK, "memory", "its cgroup allows %" PRIu64 " MiB", may >> 20);
    }
}

static void wall_clock(struct doctor *d)
{
    struct timex clock = {.modes = 0};
    time_t now = time(NULL);
    if (now < NOT_BEFORE) {
        doctor_say(
            d, DOCTOR_FAULT, "clock",
            "this machine's date is before 2026, so no certificate is valid yet; do: set the clock, and run chrony or "
            "systemd-timesyncd");
        return;
    }
    int state = adjtimex(&clock);
    if (state == TIME_ERROR && (clock.status & STA_UNSYNC) != 0) {
        doctor_say(d, DOCTOR_WARNING, "clock",
                   "it is not synchronised, as far as the kernel knows; do: run chrony or systemd-timesyncd, for "
                   "the times of logs, traces and certificates");
        return;
    }
    doctor_say(d, DOCTOR_OK, "clock", "kept in step");
}

static void backlog(struct doctor *d)
{
    uint64_t most;
    if (numbers_read(d, "/proc/sys/net/core/somaxconn", &most, 1) != 1) {
        return;
    }
    if (most < BACKLOG_LEAST) {
        doctor_say(d, DOCTOR_WARNING, "kernel",
                   "net.core.somaxconn is %" PRIu64 ": a burst of connections is dropped; do: sysctl -w "
                   "net.core.somaxconn=%d",
                   most, LISTEN_BACKLOG);
        return;
    }
    doctor_say(d, DOCTOR_OK, "kernel", "net.core.somaxconn is %" PRIu64, most);
}

static void local_ports(struct doctor *d)
{
    uint64_t range[2];
    if (numbers_read(d, "/proc/sys/net/ipv4/ip_local_port_range", range, 2) != 2 || range[1] < range[0]) {
        return;
    }
    uint64_t ports = range[1] - range[0] + 1;
    if (ports < PORTS_LEAST) {
        doctor_say(d, DOCTOR_WARNING, "kernel",
                   "net.ipv4.ip_local_port_range has %" PRIu64
                   " ports: one host can have no more connections than that; do: "
                   "sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
                   ports);
        return;
    }
    doctor_say(d, DOCTOR_OK, "kernel", "net.ipv4.ip_local_port_range has %" PRIu64 " ports", ports);
}

static void connection_tracking(struct doctor *d)
{
    uint64_t used;
    uint64_t most;
    if (numbers_read(d, "/proc/sys/net/netfilter/nf_conntrack_count", &used, 1) != 1 ||
        numbers_read(d, "/proc/sys/net/netfilter/nf_conntrack_max", &most, 1) != 1 || most == 0) {
        return;
    }
    if (used >= most / 10 * 8) {
        doctor_say(
            d, DOCTOR_WARNING, "kernel",
            "connection tracking has %" PRIu64 " of %" PRIu64
            " entries in use: beyond that packets are dropped; do: sysctl -w net.netfilter.nf_conntrack_max=%" PRIu64,
            used, most, most * 4);
        return;
    }
    doctor_say(d, DOCTOR_OK, "kernel", "connection tracking has %" PRIu64 " of %" PRIu64 " entries in use", used, most);
}

void doctor_machine(struct doctor *d)
{
    descriptors(d);
    processors(d);
    memory(d);
    wall_clock(d);
    backlog(d);
    local_ports(d);
    connection_tracking(d);
}
