/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CMD_TOP_H
#define BECALM_CMD_TOP_H

#include "cli/cli.h"
#include "top/view.h"

/* What `becalm top --once --json` prints; docs/top.md promises its names. */
void top_json(const struct view *, FILE *);

#endif
