/* SPDX-License-Identifier: MIT */
/* The files by which the kernel says how much memory and CPU time there is, with any bytes in them: maxBuffered is in
 * its bounds, and a share of the CPU at most the whole. The input is the files' contents with zeros between them. */
#define _GNU_SOURCE
#include "gateway/buffered_default.h"
#include "gateway/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = {"/proc",   "/proc/self",     "/sys",
                                      "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/memory"};
static const char *const files[] = {
    "/proc/self/cgroup",      "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu.stat",   "/proc/stat"};
static char root[] = "/tmp/becalm-fuzz-cgroup-XXXXXX";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    return path;
}

static void clean_up(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlink(path_of(files[i]));
    }
    for (size_t i = sizeof folders / sizeof folders[0]; i > 0; i--) {
        rmdir(path_of(folders[i - 1]));
    }
    rmdir(root);
}

static void set_up(void)
{
    BECALM_ASSERT(mkdtemp(root) != NULL);
    atexit(clean_up);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        BECALM_ASSERT(mkdir(path_of(folders[i]), 0700) == 0);
    }
}

static void files_write(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const uint8_t *end = size == 0 ? NULL : memchr(data, '\0', size);
        size_t length = end == NULL ? size : (size_t)(end - data);
        FILE *file = fopen(path_of(files[i]), "we");
        BECALM_ASSERT(file != NULL);
        BECALM_ASSERT(length == 0 || fwrite(data, 1, length, file) == length);
        BECALM_ASSERT(fclose(file) == 0);
        size_t used = end == NULL ? size : length + 1;
        data += used;
        size -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    struct cpu cpu;
    uint32_t ppm = 0;
    if (!ready) {
        set_up();
        ready = true;
    }
    files_write(data, size);
    uint64_t bytes = buffered_default(root);
    BECALM_ASSERT(bytes >= UINT64_C(1) << 20 && bytes <= UINT64_C(1) << 58);
    cpu_init(&cpu, root);
    BECALM_ASSERT(!cpu_share(&cpu, BECALM_S, &ppm));
    BECALM_ASSERT(!cpu_share(&cpu, 2 * BECALM_S, &ppm) || ppm <= 1000000);
    return 0;
}
