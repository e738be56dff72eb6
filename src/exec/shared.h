/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_SHARED_H
#define BECALM_EXEC_SHARED_H

/* A budget or a breaker that all processes of one user share: the engine's own object in a small file that each of them
 * maps. It is lock-free, so a process that is killed in the middle of anything leaves it usable; a lock is needed only
 * to put a new file in the place of none, of one from before the last boot, or of one that was made for other numbers.
 *
 * The file is never trusted: it must be a plain file of ours alone, of the right size, with a head that we know and an
 * object that the engine finds sound. Anything else is left as it is, and said. */

#include <becalm/breaker.h>
#include <becalm/budget.h>

#define SHARED_PATH_MAX 1024
#define SHARED_NAME_MAX 80 /* a file name has room for it even if each byte takes three */

/* What to share: `name` and one of the two policies. */
struct shared_want {
    const char *name; /* 1 to SHARED_NAME_MAX bytes */
    const struct becalm_budget_policy *budget;
    const struct becalm_breaker_policy *breaker;
};

enum shared_news {
    SHARED_FOUND,
    SHARED_MADE,   /* there was none, or it was from before the last boot */
    SHARED_CHANGED /* it was made for other numbers; its fill or state was kept */
};

/* One that is open. Zeroed: none. */
struct shared {
    struct shared_want want; /* its policies outlive this */
    char path[SHARED_PATH_MAX];
    int fd;
    unsigned char *memory; /* NULL: not open */
    size_t bytes;
    enum shared_news news;
};

/* Opens it in `directory`, a descriptor, whose path is for the messages. 0, or BECALM_EIO and why. */
int shared_open(struct shared *, const struct shared_want *, int directory, const char *directory_path, becalm_ns now,
                char *why, size_t size);

struct becalm_budget *shared_budget(const struct shared *);
struct becalm_breaker *shared_breaker(const struct shared *);

/* Touching memory whose file was cut short would kill us, so ask before. False, once: the file is gone under it. From
 * then on there is private memory in its place, as after init. */
bool shared_hold(struct shared *);

/* NULL and one that is not open are fine. */
void shared_close(struct shared *);

#endif
