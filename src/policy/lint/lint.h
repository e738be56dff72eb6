/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_LINT_H
#define BECALM_POLICY_LINT_H

/* Finds policies that the schema allows and that will still do harm. There is one table of rules; each rule has a
 * stable code and a severity, and reports the place, the problem and the correction. docs/lint.md has a section for
 * every rule.
 */

#include "policy/graph.h"

struct lint;
struct lint_target;

struct lint_rule {
    const char *code; /* NULL ends the table */
    enum becalm_severity severity;
    const char *title;
    void (*target)(struct lint *, const struct lint_target *); /* judges one set of rules; or NULL */
    void (*graph)(struct lint *);                              /* judges the whole; or NULL */
};

extern const struct lint_rule lint_rules[];

struct lint_finding {
    const char *code;
    enum becalm_severity severity;
    bool silenced;  /* by the file's `lint: {ignore: ...}` */
    uint32_t order; /* which of the files, for sorting */
    uint32_t line;
    uint32_t column;
    char file[256];
    char message[512];
    char remedy[512]; /* may be empty */
    bool loading;     /* an error of the loader, which has the problem and the correction in one line */
};

#define LINT_FINDINGS_MAX 500u  /* that are not silenced */
#define LINT_SILENCED_MAX 5000u /* that are */

/* Zero it before the first use. */
struct lint_report {
    struct lint_finding *findings;
    uint32_t count;
    uint32_t room;
    uint32_t silenced; /* of them */
    bool no_memory;    /* some findings were lost */
    bool cut;          /* there are more: not everything was judged, so it must not be called fine */
};

/* Judges all files by all rules; findings of rules that a file silences are marked. The report is sorted by file and
 * position. 0 or BECALM_ENOMEM. */
int lint_run(struct lint_report *, const struct becalm_config *const *configs, uint32_t count, const struct graph *);

/* Adds an error for each service at which one client request can become more than `most` attempts (parts per million),
 * budgets included. */
void lint_amplification(struct lint_report *, const struct becalm_config *const *configs, uint32_t count,
                        const struct graph *, uint64_t most);

/* One more finding, with text still empty; NULL if there is no room for it. Valid until the next one. */
struct lint_finding *lint_append(struct lint_report *);

void lint_sort(struct lint_report *);
void lint_free(struct lint_report *);

/* Short texts of values: "9.261" for parts per million, three decimals at most; "1.5s". */
struct lint_text {
    char text[32];
};
struct lint_text lint_amount(uint64_t ppm);
struct lint_text lint_duration(becalm_ns);

#endif
