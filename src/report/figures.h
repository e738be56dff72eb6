/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_FIGURES_H
#define BECALM_SIM_FIGURES_H

/* The figures of a run by which policies are compared, and the columns of every table that compares them. */

#include "sim/measure.h"

/* Those of a load are of the service that figures_focus() names. */
struct figures {
    uint64_t mean_ppm;
    uint64_t peak_5s_ppm;
    uint64_t peak_1s_ppm;
    uint64_t success_ppm;
    uint64_t before_ppm;
    uint64_t in_fault_ppm;
    uint64_t after_ppm;
    uint32_t recovered_after_s; /* or MEASURE_NEVER, MEASURE_TOO_SHORT */
    uint64_t attempts;
    uint64_t completed_us; /* or MEASURE_NEVER_US */
    uint64_t falls;
    uint64_t worst_100ms;
    uint64_t executed;    /* executions of operations that must happen once, at all services */
    uint64_t repeated;    /* operations executed more than once */
    uint64_t retried_ppm; /* retries per first attempt, and those of the endpoint with the most */
    uint64_t endpoint_ppm;
    uint64_t latency_mean_us; /* of calls that succeeded */
    uint64_t latency_p99_us;
    uint64_t latency_p999_us;
};

void figures_take(const struct scenario *, const struct measure *, struct figures *);

/* The service where the trouble is: that of the earliest fault, or else the last. */
uint32_t figures_focus(const struct scenario *);

/* A sentence on which of several faults are "the fault" of all figures, and when. False: there is one, or none. */
#define FIGURES_FAULT_MAX 2048u
bool figures_fault_text(const struct scenario *, char *text, size_t size);

/* Is there any time before the fault, or after it? */
bool figures_has_before(const struct scenario *);
bool figures_has_after(const struct scenario *);

/* Do clients keep connections; must something not be done twice; is there an offered load to compare with? */
bool figures_has_connections(const struct scenario *);
bool figures_has_effects(const struct scenario *);
bool figures_has_load(const struct scenario *);

/* Is there room for latencies: where nothing is faulty and no endpoint is looked at? */
bool figures_has_latency(const struct scenario *);

enum figures_kind {
    FIGURES_LOAD,
    FIGURES_COUNT,
    FIGURES_TIME,
    FIGURES_SUCCESS,
    FIGURES_RECOVERY,
    FIGURES_RETRIES, /* a share of first attempts */
    FIGURES_LATENCY, /* in milliseconds, which its heading says */
    FIGURES_KINDS
};

struct figures_column {
    const char *title;
    int width; /* in a table of 80 columns */
    enum figures_kind kind;
    size_t offset;
    bool (*known)(const struct scenario *);
};

/* The columns that a scenario has, in order; NULL after the last. */
const struct figures_column *figures_column(const struct scenario *, uint32_t index);

/* A cell over the runs of several seeds. */
enum figures_spread { FIGURES_MEAN, FIGURES_LOWEST, FIGURES_HIGHEST };
void figures_text(const struct figures_column *, const struct figures *, uint32_t count, enum figures_spread,
                  char *text, size_t size);

/* Was a call refused, or a retry that was due? Else none was due: all attempts were made, or the policy never retries
 * that. */
bool figures_is_refusal(enum becalm_reason);

/* "limit 12,345, attempts_spent 20": how calls ended that did not succeed; "none". */
#define FIGURES_REASONS_MAX (BECALM_REASON_COUNT * 64u)
void figures_reasons(const uint64_t *ended, char *text, size_t size);

#endif
