/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_PICTURE_H
#define BECALM_SIM_PICTURE_H

/* Success over time of each run, side by side, as one SVG file: for a README or a slide. It looks right on light and
 * on dark ground. */

#include "report.h"

void picture_write(FILE *, const struct scenario *, const struct report_run *, uint32_t count);

#endif
