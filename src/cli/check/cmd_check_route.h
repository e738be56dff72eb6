/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CMD_CHECK_ROUTE_H
#define BECALM_CMD_CHECK_ROUTE_H

/* check --route 'POST /pay': which service and endpoint a request comes to, and why. */

#include <becalm/config.h>

#include "cli/cli.h"

/* Tells it for each of the configs. Returns the exit code: 1 if the request has no route in any of them. */
int check_route(const struct cli_command *, const struct cli_args *, struct becalm_config *const *configs,
                uint32_t count);

#endif
