/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* sysconf, getrlimit, opendir */
#include "process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct stat_figures {
    uint64_t user_ticks, system_ticks, start_ticks, resident_pages;
};

/* proc(5): the second field is the program's name in parentheses, which may have blanks and parentheses itself. */
static bool stat_read(struct stat_figures *figures)
{
    char text[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL) {
        return false;
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *behind = strrchr(text, ')');
    return behind != NULL &&
           sscanf(behind + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                  " %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %" SCNu64,
                  &figures->user_ticks, &figures->system_ticks, &figures->start_ticks, &figures->resident_pages) == 4;
}

/* When the machine was started, in seconds since 1970. */
static bool boot_read(uint64_t *seconds)
{
    char line[256];
    bool found = false;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = sscanf(line, "btime %" SCNu64, seconds) == 1;
    }
    fclose(file);
    return found;
}

static bool fds_count(uint64_t *count)
{
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return false;
    }
    *count = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        *count += entry->d_name[0] != '.';
    }
    *count -= *count > 0; /* the folder's own */
    closedir(folder);
    return true;
}

bool process_read(struct process_figures *figures)
{
    struct stat_figures stat;
    struct rlimit fds;
    uint64_t boot;
    long hertz = sysconf(_SC_CLK_TCK);
    long page = sysconf(_SC_PAGESIZE);
    if (hertz <= 0 || page <= 0 || !stat_read(&stat) || !boot_read(&boot) || !fds_count(&figures->open_fds) ||
        getrlimit(RLIMIT_NOFILE, &fds) != 0) {
        return false;
    }
    becalm_ns tick = BECALM_S / (uint64_t)hertz;
    figures->cpu = (stat.user_ticks + stat.system_ticks) * tick;
    figures->resident_bytes = stat.resident_pages * (uint64_t)page;
    figures->max_fds = fds.rlim_cur == RLIM_INFINITY ? UINT64_MAX : fds.rlim_cur;
    figures->started_at = boot * BECALM_S + stat.start_ticks * tick;
    return true;
}
