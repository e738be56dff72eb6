/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CMD_SIM_H
#define BECALM_CMD_SIM_H

/* What the files of `becalm sim` share. */

#include "json.h"

#include "sim/report.h"

/* One run as an object. */
void sim_json_run(struct json *, const struct scenario *, const struct report_run *, bool series);

#endif
