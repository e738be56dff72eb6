/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RUN_ENTROPY_H
#define BECALM_RUN_ENTROPY_H

/* Random bytes from the system, for hosts: the engine has none of its own. Inline, because it is no part of libbecalm's
 * interface and libbecalm-curl needs it, too. */

#include <becalm/run.h>

#include <unistd.h>

#ifdef __linux__
#include <sys/random.h>
#else
extern int getentropy(void *bytes, size_t count); /* from headers that differ; POSIX has it since 2024 */
#endif

/* At most 256 bytes. On a machine that has just been started it may wait for a second. False: the system gives none,
 * for example because of a seccomp filter. */
static inline bool entropy_fill(void *bytes, size_t count)
{
#ifdef __linux__
    return getrandom(bytes, count, 0) == (ssize_t)count;
#else
    return getentropy(bytes, count) == 0;
#endif
}

/* The same without waiting: false while the kernel has no random numbers yet. */
static inline bool entropy_fill_now(void *bytes, size_t count)
{
#ifdef __linux__
    return getrandom(bytes, count, GRND_NONBLOCK) == (ssize_t)count;
#else
    return entropy_fill(bytes, count);
#endif
}

/* The seed of random numbers for jitter. It need not be secret, so any value that differs between processes will do. */
static inline uint64_t entropy_seed(void)
{
    uint64_t seed;
    return entropy_fill_now(&seed, sizeof seed) ? seed : becalm_run_now() ^ (uint64_t)getpid() << 32;
}

#endif
