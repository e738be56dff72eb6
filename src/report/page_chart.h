/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_PAGE_CHART_H
#define BECALM_SIM_PAGE_CHART_H

/* The charts of a page: each has a section with an explanation, and a panel per policy or per service, all with the
 * same scale. */

#include "plot.h"
#include "report.h"

#define PAGE_PANELS_MAX 64u

struct page_panel {
    const char *label;
    const struct report_run *run;
    uint32_t service;
};

struct page_panels {
    const struct scenario *plan;
    bool by_policy; /* or else by service */
    uint32_t count;
    struct page_panel panel[PAGE_PANELS_MAX];
};

enum page_chart {
    PAGE_SUCCESS,
    PAGE_LOAD,
    PAGE_ATTEMPTS, /* in its place where nothing is offered by plan: clients in a loop, or with connections */
    PAGE_QUEUE,
    PAGE_BUDGET,
    PAGE_BREAKER,
    PAGE_AMPLIFICATION,
    PAGE_CHARTS, /* how many there are */
};

/* Writes nothing where there is nothing to see: budgets of policies that have none, load where none is offered. */
void page_chart(FILE *, const struct page_panels *, enum page_chart);

#endif
