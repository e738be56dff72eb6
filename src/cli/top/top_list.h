/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_TOP_TOP_LIST_H
#define BECALM_CLI_TOP_TOP_LIST_H

/* `becalm top` of several gateways: a line each, worst first. */

#include "cli/cli.h"
#include "top/watch.h"

#define TOP_LIST_MAX 1000u

/* The options: the addresses as typed; `all`: each address of a name is a gateway of its own. */
struct top_list_options {
    const char *const *admin;
    uint32_t count;
    bool all;
    bool once;
    bool as_json;
};

/* Prints one table, or one each interval until it is interrupted. `watch` says how; its place is not looked at. */
int top_list(const struct cli_command *, const struct watch *, const struct top_list_options *);

#endif
