/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CMD_SIM_H
#define BECALM_CMD_SIM_H

/* Types and functions that the files of `becalm sim` share. */

#include "cli/cli.h"
#include "cli/json.h"

#include "report/report.h"
#include "sim/file_policies.h"

#define SIM_SEED_MAX     ((UINT64_C(1) << 53) - 1) /* the largest number that every reader of JSON keeps exactly */
#define SIM_SEEDS_MAX    1000u
#define SIM_POLICIES_MAX 64u

/* A policy that the scenario is run with. */
struct choice {
    const char *name;
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct file_policies policies; /* a policy file's */
    struct world_options options;  /* points at the fields above, so a choice must not move */
};

struct sim {
    const struct cli_command *command;
    const struct cli_args *args;
    struct becalm_diags *diags;
    const char *const *set;    /* as typed; of these: */
    const char **scenario_set; /* all end with NULL */
    const char **policy_set;
    struct scenario_file *file;
    const struct scenario *plan;
    char *compare; /* the names of --compare, cut at the commas */
    struct choice *choices;
    uint32_t choice_count;
    uint64_t seed;
    uint32_t seeds;
    uint32_t trace_calls; /* that --trace tells of, from an instant on */
    becalm_ns trace_from; /* BECALM_NEVER: the fault's start, or that of the run */
};

bool sim_has(const struct sim *, const char *option);
int sim_no_memory(const struct sim *);
struct report_style sim_style(void);

/* Runs all that was asked for, and shows it; returns the exit code. */
int sim_runs(struct sim *);

/* --graph: the scenario of a policy's own call graph, which the caller frees. An exit code. */
int sim_graph_write(const struct sim *, const struct becalm_config *, const char *path, char **text, size_t *length);

/* One run as an object. */
void sim_json_run(struct json *, const struct scenario *, const struct report_run *, bool series);

#endif
