/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_VERDICT_H
#define BECALM_SIM_VERDICT_H

/* The results of one or more runs of a scenario, in a few sentences. */

#include "report.h"

/* The sentences, as text of an XML or HTML element. */
void verdict_write(FILE *, const struct scenario *, const struct report_run *, uint32_t count);

/* The result of one run in three or four words: "recovers after 1 s". False: the run did not recover. */
bool verdict_short(const struct scenario *, const struct measure *, char *text, size_t size);

#endif
