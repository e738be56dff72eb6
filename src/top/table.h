/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_TABLE_H
#define BECALM_TOP_TABLE_H

/* A row per service, worst trouble first: the growth of its counts in the last seconds, and the trend. Made from each
 * state that comes in. */

#include "trouble.h"

#define TABLE_WINDOW     (10 * BECALM_S) /* rates are means over this long, if the gateway was watched for so long */
#define TABLE_STATES_MAX 12u             /* that are kept for it */
#define TABLE_TREND_MAX  120u            /* values of a sparkline */

/* Per second, in thousandths; shares and factors in ppm, STATE_NONE if there was nothing to divide by. */
struct table_figures {
    uint64_t rate[STATE_COUNTS];
    uint64_t refused; /* the sums of those by reason */
    uint64_t not_retried;
    uint64_t success_first;
    uint64_t success; /* after retries */
    uint64_t amplification;
};

struct table_trend {
    uint64_t requests[TABLE_TREND_MAX]; /* thousandths per second; the oldest first */
    uint64_t retries[TABLE_TREND_MAX];
    uint32_t count;
};

struct table_row {
    char name[STATE_NAME_MAX];
    const struct state_service *service; /* of the latest state */
    struct table_figures figures;
    struct table_trend trend;
    uint32_t troubles; /* trouble.h */
    enum trouble_weight weight;
};

struct table {
    struct state *state[TABLE_STATES_MAX]; /* the oldest first */
    uint32_t state_count;
    bool broken; /* rates begin anew with the next state */
    struct table_row *row;
    uint32_t row_count;
};

/* Begins as {0}. Takes the state over. False: no memory; the table is then empty. The states of a gateway that has been
 * restarted since say nothing about this one, and are dropped. */
bool table_add(struct table *, struct state *);

/* Rates begin anew with the next state: after a pause, say. The present figures and trends stay until then. */
void table_break(struct table *);
void table_free(struct table *);

/* NULL: none yet. */
const struct state *table_latest(const struct table *);

/* Over how long the figures are means; 0: there is one state only, and they are all 0. */
becalm_ns table_window(const struct table *);

/* Requests for no service at all, in thousandths per second. */
uint64_t table_unrouted(const struct table *);

/* The same figures for one endpoint of a row. */
void table_endpoint(const struct table *, const struct table_row *, const struct state_endpoint *,
                    struct table_figures *);

/* The worst of a row; TROUBLE_COUNT if there is none. */
enum trouble table_worst(const struct table_row *);

#endif
