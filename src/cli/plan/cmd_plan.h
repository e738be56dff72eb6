/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CMD_PLAN_H
#define BECALM_CMD_PLAN_H

/* The common parts of the subcommands of `becalm plan`: options as numbers, the figures of a Prometheus, notes and
 * YAML. */

#include "cli/cli.h"
#include "cli/json.h"

#include "plan/figure.h"
#include "plan/prometheus.h"

int plan_run_amplification(const struct cli_command *, const struct cli_args *);
int plan_run_budget(const struct cli_command *, const struct cli_args *);
int plan_run_tune(const struct cli_command *, const struct cli_args *);
int plan_run_contention(const struct cli_command *, const struct cli_args *);

/* Reads options one after the other. The first error is reported and sets `rc`; later errors are silent, so that a
 * command reads all options and checks `rc` once. */
struct plan_reader {
    const struct cli_command *command;
    const struct cli_args *args;
    int rc; /* 0, or the exit code */
};

bool plan_has(const struct plan_reader *, const char *option);
uint64_t plan_read_integer(struct plan_reader *, const char *option, uint64_t low, uint64_t high, uint64_t otherwise);
double plan_read_decimal(struct plan_reader *, const char *option, double low, double high, double otherwise);
becalm_ns plan_read_duration(struct plan_reader *, const char *option, becalm_ns low, becalm_ns high,
                             becalm_ns otherwise);
uint32_t plan_read_percent(struct plan_reader *, const char *option, uint32_t otherwise); /* in ppm, above 0 */

/* --prometheus, --service, --window, --rate and --timeout; options that only make sense with a URL need one. */
void plan_read_prometheus(struct plan_reader *, struct prometheus *);

/* Text that grows, for YAML and notes; text that does not fit is cut. */
struct plan_text {
    char bytes[2048];
    size_t length;
};

void plan_text_add(struct plan_text *, const char *format, ...) CLI_PRINTF(2, 3);

/* Opens the mapping that the keys to paste belong to: `defaults:`, or the service's. Returns their indentation. */
int plan_text_target(struct plan_text *, const char *service);

/* Sentences on the result. */
#define PLAN_NOTES_MAX 8
struct plan_notes {
    uint32_t count;
    char note[PLAN_NOTES_MAX][512];
};

void plan_note(struct plan_notes *, const char *format, ...) CLI_PRINTF(2, 3);
void plan_print_notes(const struct plan_notes *); /* wrapped, an empty line before each */
void plan_json_notes(struct json *, const struct plan_notes *);
void plan_print_yaml(const struct plan_text *); /* under a heading */
void plan_print_heading(const char *format, ...) CLI_PRINTF(1, 2);
void plan_print_sentence(const char *format, ...) CLI_PRINTF(1, 2); /* wrapped at 80 columns */

#endif
