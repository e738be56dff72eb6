/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_EXEC_CMD_EXEC_H
#define BECALM_CLI_EXEC_CMD_EXEC_H

/* The parts of `becalm exec`: from options to a policy, and the messages about a run. */

#include "cli/cli.h"
#include "exec/exec.h"

#define EXEC_DELAYS_MAX 64
#define EXEC_NAME_MAX   256

/* Waits that were written out one by one; the last one stays. */
struct exec_delays {
    becalm_ns wait[EXEC_DELAYS_MAX];
    uint32_t count;
    uint32_t next;
};

/* The rules from the options and the policy file. */
struct exec_rules {
    struct becalm_config *config;
    struct becalm_policy policy;
    struct exec_delays delays;
    bool retries_timeouts;              /* the policy's retryOn has `timeout` */
    char budget[EXEC_NAME_MAX];         /* the names under which they are shared; empty: not at all */
    char service_budget[EXEC_NAME_MAX]; /* the second level */
    char breaker[EXEC_NAME_MAX];
    char lease[EXEC_NAME_MAX]; /* the machine's part of a budget of many; empty: there is none */
    struct redis_site site;    /* its Redis */
    const char *fleet;         /* its name there: of the policy */
    const char *lease_service;
    const char *lease_endpoint;
};

/* 0, or an exit code after printing the error. `rules` must not move afterwards. */
int exec_rules_load(struct exec_rules *, const struct cli_command *, const struct cli_args *);
void exec_rules_free(struct exec_rules *);

/* The messages about a run: lines on stderr, and a report in JSON. */
struct exec_voice {
    const char *name; /* of the command, in lines */
    bool earned;      /* successful runs pay for its retries */
    bool quiet;       /* no line per retry, nor about a failure that the command can tell of itself */
    bool json;        /* nor any other: the report on standard error says it all */
};

void exec_say_retry(const struct exec_retry *, void *voice);
void exec_say_lost(const struct shared *, void *voice);
void exec_say_end(const struct exec_voice *, const struct exec_report *);
/* For the textfile collector of Prometheus' node_exporter; `wall` is seconds since 1970. */
void exec_write_textfile(FILE *, const struct exec_voice *, const struct exec_report *, uint64_t wall);
void exec_write_json(FILE *, const struct exec_voice *, const struct exec_report *);

/* Prints the shared objects of this directory; NULL: the default one. Returns the exit code. */
int exec_list(const char *named, bool as_json);

#endif
