/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_PAGE_H
#define BECALM_SIM_PAGE_H

/* What one or more runs of a scenario showed, as one HTML page that needs nothing else: no network, no script. Several
 * policies stand side by side, with the service where the trouble is; one policy is shown at every service. It is
 * well-formed XML as well, and the same runs give the same bytes. */

#include "report.h"

#define PAGE_SERVICES_MAX 24u /* of one run; with more the page would be no help */

/* `run` has one run per policy, that of the first seed. */
struct page {
    const struct scenario *plan;
    const struct report_table *table;
    const struct report_run *run;
};

void page_write(FILE *, const struct page *);

#endif
