/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CMD_TOP_H
#define BECALM_CMD_TOP_H

#include "cli/cli.h"
#include "top/view.h"

/* The output of `becalm top --once --json`; docs/top.md promises its names. */
void top_json(const struct view *, FILE *);

#endif
