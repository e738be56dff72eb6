/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "confine.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#define HAS_LANDLOCK 1
#endif
#endif

#ifdef HAS_LANDLOCK
/* Rights that no rule allows, so the process loses them. Making and removing sockets stays allowed: a policy may name
 * any path for them, now or after a reload. */
#define REFUSED                                                                                   \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |   \
     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* All these rights are in the first version of Landlock, so every kernel with Landlock accepts them. */
static void refuse_files(void)
{
    struct landlock_ruleset_attr rules = {.handled_access_fs = REFUSED};
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0);
    if (fd >= 0) {
        syscall(SYS_landlock_restrict_self, fd, 0);
        close(fd);
    }
}
#else
static void refuse_files(void)
{
}
#endif

void confine(bool dumpable)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!dumpable) {
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        refuse_files(); /* without this, no core dump could be written */
    }
}
