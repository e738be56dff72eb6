/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_EXEC_H
#define BECALM_EXEC_EXEC_H

/* The driver of one call whose attempts are runs of a command: exit codes become outcomes, and actions of the engine
 * become processes, signals and waits. One thread, which sleeps in poll() and nowhere else. */

#include "codes.h"
#include "exec_store.h"
#include "output.h"
#include "shared.h"

#include <becalm/call.h>

#define EXEC_SHARED_MAX 4 /* two budgets, a breaker and a lease */

/* How an attempt ended. */
struct exec_end {
    int code;        /* as a shell sees it; -1: there was no attempt */
    int killed_by;   /* the signal that it died of; 0: none, for any code: ssh(1) exits with 255 by itself */
    bool by_output;  /* the exit code is a success, but the output matches --fail-if */
    bool timed_out;  /* the attempt was stopped at its timeout, or at the deadline */
    int start_error; /* the errno of a command that could not be started; 0: it could */
};

/* The values in the message about a retry. */
struct exec_retry {
    uint32_t retry;       /* 1 is the first */
    uint32_t of;          /* how many retries are allowed; EXEC_UNLIMITED */
    becalm_ns wait;       /* drawn, and waited */
    struct exec_end last; /* of the attempt before it */
};

#define EXEC_UNLIMITED (UINT32_MAX - 1)

struct exec_options {
    char *const *argv;           /* ends with NULL */
    struct becalm_policy policy; /* EXEC_UNLIMITED retries and a timeout of NEVER are fine here */
    struct becalm_target target; /* budgets, breaker and lease, as they are in `shared`; the rest NULL */
    struct shared *shared;       /* those that are open, EXEC_SHARED_MAX at most */
    uint32_t shared_count;       /* of them */
    struct exec_store *store;    /* the store of the lease; NULL: there is none */
    becalm_ns deadline_at;       /* from above; BECALM_NEVER: none */
    becalm_ns kill_after;        /* from SIGTERM to SIGKILL, when time is up */
    becalm_ns leave_after;       /* from a signal that was passed on to SIGKILL; BECALM_NEVER: no SIGKILL */
    struct codes success;        /* exit codes that are a success */
    struct codes retry;          /* these failures are retried */
    bool retry_given;            /* the codes were given by number: then a pattern only adds to them */
    const struct patterns *patterns;
    bool no_input; /* the command gets /dev/null */
    size_t input_max;
    enum output_show show;
    size_t output_max;
    void (*on_retry)(const struct exec_retry *, void *data); /* NULL: retries are not reported */
    void (*on_lost)(const struct shared *, void *data); /* its file was damaged under it; there are no retries now */
    void *data;
};

struct exec_report {
    struct becalm_record record;
    int code;                               /* the exit code of becalm */
    struct exec_end last;                   /* how the last attempt ended */
    int signal;                             /* SIGINT or the like ended it; 0: none did */
    bool between;                           /* while no attempt was running */
    bool terminal;                          /* and it came from the keyboard */
    int output_error;                       /* the errno of a failed write of its output; 0: none */
    enum becalm_breaker_state breaker_from; /* the last change that this call made; equal: none */
    enum becalm_breaker_state breaker_to;
};

/* Runs it. 0, or BECALM_EIO with errno: then nothing was started. */
int exec_run(const struct exec_options *, struct exec_report *);

/* The clock of this host: CLOCK_MONOTONIC, which all processes of a boot share. */
becalm_ns exec_now(void);

#endif
