/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_TOP_CMD_TOP_FLEET_H
#define BECALM_CLI_TOP_CMD_TOP_FLEET_H

/* `becalm top --fleet`: the processes that share a store, as one of them sees it. */

#include "cli/cli.h"
#include "top/watch.h"

/* Prints one table, or one each interval until it is interrupted. */
int top_fleet(const struct cli_command *, const struct watch *, bool once, bool as_json);

#endif
