/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_THREAD_H
#define BECALM_JOURNAL_THREAD_H

/* Shared by the threads of the journal. Define the POSIX feature macro before including it. */

#include <becalm/ns.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>

static inline becalm_ns thread_clock(clockid_t clock)
{
    struct timespec now;
    BECALM_ASSERT(clock_gettime(clock, &now) == 0);
    return (becalm_ns)now.tv_sec * BECALM_S + (becalm_ns)now.tv_nsec;
}

/* Starts a thread with all signals blocked: other threads handle them, and here a closed pipe is an error (EPIPE). 0,
 * or an errno. */
static inline int thread_start(pthread_t *thread, void *(*run)(void *), void *data)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc == 0) {
        rc = pthread_create(thread, NULL, run, data);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return rc;
}

#endif
