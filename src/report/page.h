/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_PAGE_H
#define BECALM_SIM_PAGE_H

/* The results of one or more runs of a scenario, as one HTML page without network or scripts. Several policies are
 * shown side by side, at the service with the fault; one policy is shown at every service. It is well-formed XML as
 * well, and the same runs give the same bytes. */

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
