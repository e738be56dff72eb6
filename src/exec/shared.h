/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_SHARED_H
#define BECALM_EXEC_SHARED_H

/* A budget, a breaker or a lease that processes share: the engine's own object in a small file that each of them maps.
 * It is lock-free, so a process that is killed in the middle of anything leaves it usable. A lock of the directory
 * guards only the choice of the file. All processes hold it together while they use the file. One process alone holds
 * it to put a new file in place: if there is none, or if the old one is from before the last boot, of an older version,
 * or made for other numbers. So no process spends from a file that has been replaced. The kernel frees the lock of a
 * process that dies.
 *
 * The file is never trusted: it must be a plain file of ours alone, or of the directory's group, of the right size,
 * with a head that we know and an object that the engine finds sound. Anything else is left as it is, and said. */

#include "directory.h"

#include <becalm/breaker.h>
#include <becalm/budget.h>
#include <becalm/lease.h>

#define SHARED_NAME_MAX 80                         /* a file name has room for it even if each byte takes three */
#define SHARED_FILE_MAX (3 * SHARED_NAME_MAX + 16) /* of that name */
#define SHARED_PATH_MAX (DIRECTORY_PATH_MAX + SHARED_FILE_MAX)
#define SHARED_HEAD     256u /* bytes of the file before the object */

/* The object to share: `name` and one of the three policies. */
struct shared_want {
    const char *name; /* 1 to SHARED_NAME_MAX bytes */
    const struct becalm_budget_policy *budget;
    const struct becalm_breaker_policy *breaker;
    const struct becalm_lease_policy *lease;
};

enum shared_news {
    SHARED_FOUND,
    SHARED_MADE,    /* there was no file, or it was from before the last boot */
    SHARED_RENEWED, /* the file was of an older version of becalm, with another format; it was made anew */
    SHARED_CHANGED  /* the file was made for other numbers; its fill or state was kept */
};

/* An open shared file. Zeroed: none. The struct must not move. */
struct shared {
    struct shared_want want; /* its policies are those below */
    /* In force: other processes may come with other numbers, and the latest count. */
    struct becalm_budget_policy budget;
    struct becalm_breaker_policy breaker;
    struct becalm_lease_policy lease;
    const struct directory *directory; /* outlives this */
    char file[SHARED_FILE_MAX];
    char path[SHARED_PATH_MAX]; /* for messages */
    int fd;
    unsigned char *memory; /* NULL: not open */
    size_t bytes;
    unsigned char head[SHARED_HEAD]; /* as it was when it was opened; no process may change it */
    enum shared_news news;
    char lost[128]; /* why it can't be used any more; empty: it can */
};

/* Opens it. 0, or BECALM_EIO and why. */
int shared_open(struct shared *, const struct shared_want *, const struct directory *, becalm_ns now, char *why,
                size_t size);

/* For a reader: opens an existing file, and makes and changes nothing; the numbers of the policy do not matter.
 * BECALM_EIO and why: the file can't be used, or would be made anew. */
int shared_see(struct shared *, const struct shared_want *, const struct directory *, becalm_ns now, char *why,
               size_t size);

/* Turns the name of a shared file, "pay%2Fcharge.budget", into the name in the options, "pay/charge". Returns its kind:
 * "budget", "breaker", "lease". NULL: it is no shared file. */
const char *shared_name_read(const char *file, char name[SHARED_NAME_MAX + 1]);

struct becalm_budget *shared_budget(const struct shared *);
struct becalm_breaker *shared_breaker(const struct shared *);
struct becalm_lease *shared_lease(const struct shared *);

/* Call this before each use of shared files of one directory. It makes sure that they are the files that other
 * processes use, and that they stay so until shared_release(). If a file was removed or replaced, the new one is mapped
 * at the same address, because a call keeps that address; `budget` and `breaker` may have changed then. Returns the
 * files that were lost, once each, bit n for shared[n]: from then on private memory is in their place, as after init,
 * and `lost` has the reason. */
uint32_t shared_hold(struct shared *shared, uint32_t count, becalm_ns now);
void shared_release(const struct shared *shared, uint32_t count);

/* NULL and one that is not open are fine. */
void shared_close(struct shared *);

#endif
