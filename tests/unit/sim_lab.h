/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_SIM_LAB_H
#define BECALM_TESTS_SIM_LAB_H

/* The common part of the simulator's tests: a scenario, its results, and short names for the results. */

#include "sim/file_policies.h"
#include "sim/measure.h"
#include "sim/reference.h"

#include <stdio.h>

#include "check.h"

static struct becalm_diags diags;

/* One scenario and its results, until lab_close(). */
struct lab {
    struct scenario_file *file;
    const struct scenario *plan;
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct world_options options;
    struct file_policies policies;
    struct world_result result;
    struct measure measure;
};

static inline void lab_open(struct lab *lab, const char *text, const char *policy)
{
    memset(lab, 0, sizeof *lab);
    memset(&diags, 0, sizeof diags);
    if (scenario_parse(&lab->file, "lab.yaml", text, strlen(text), NULL, &diags) != 0) {
        print_error("%" PRIu32 ":%" PRIu32 ": %s\n", diags.diag[0].line, diags.diag[0].column, diags.diag[0].message);
        fail();
    }
    lab->plan = scenario_of(lab->file);
    lab->options.seed = 1;
    check_true(reference_options(policy, lab->plan, &lab->hop, &lab->gate, &lab->options));
}

static inline void lab_run(struct lab *lab)
{
    check_true(world_run(lab->plan, &lab->options, &lab->result) == 0);
    check_true(measure_take(lab->plan, &lab->result, &lab->measure) == 0);
}

static inline void lab_close(struct lab *lab)
{
    measure_free(&lab->measure);
    world_result_free(lab->plan, &lab->result);
    file_policies_free(&lab->policies);
    scenario_free(lab->file);
}

static inline struct lab lab_of(const char *text, const char *policy)
{
    struct lab lab;
    lab_open(&lab, text, policy);
    lab_run(&lab);
    return lab;
}

/* The same with a policy file. */
static inline void lab_open_own(struct lab *lab, const char *text, const char *file)
{
    struct becalm_config *config = NULL;
    lab_open(lab, text, "none");
    if (becalm_config_parse(&config, "p.yaml", file, strlen(file), NULL, &diags) != 0) {
        print_error("%s\n", diags.diag[0].message);
        fail();
    }
    check_true(file_policies_make(&lab->policies, config, lab->plan, &lab->options) == 0);
    becalm_config_free(config); /* nothing points into it */
}

/* Client calls in the seconds [from, to), and how many of a million went well. */
static inline uint64_t begun(const struct lab *lab, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t s = from; s < to; s++) {
        sum += lab->result.client[0].begun[s];
    }
    return sum;
}

static inline uint64_t good_ppm(const struct lab *lab, uint32_t client, uint32_t from, uint32_t to)
{
    uint64_t all = 0;
    uint64_t good = 0;
    for (uint32_t s = from; s < to; s++) {
        all += lab->result.client[client].begun[s];
        good += lab->result.client[client].good[s];
    }
    return all == 0 ? 0 : good * 1000000 / all;
}

#endif
