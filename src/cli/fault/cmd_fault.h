/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_FAULT_CMD_FAULT_H
#define BECALM_CLI_FAULT_CMD_FAULT_H

/* The common part of the commands of becalm fault: the gateway that gets the orders. */

#include "cli/cli.h"

#include "meter/buffer.h"
#include "top/link.h"

#define FAULT_BODY_MAX (64u * 1024)

struct fault_desk {
    const struct cli_command *self;
    struct link_place place;
    struct link *link;
    const char *token_file; /* NULL: none */
};

/* False: *code is the exit code. Else link_free() it. */
bool fault_desk_open(struct fault_desk *, const struct cli_command *, const struct cli_args *, int *code);

/* To /api/faults, or the fault of that name. 0: done, and link_text() is the answer. Else it was said why not, and that
 * is the exit code. */
int fault_desk_order(struct fault_desk *, const char *method, const char *name, const char *body);

/* becalm fault play; an exit code. */
int fault_play(const struct cli_command *, const struct cli_args *);

#define FAULT_DESK_OPTIONS                                                                                         \
    {.name = "admin", .argument = "ADMIN", .help = "the gateway's admin address: 127.0.0.1:9900, or unix:/path"},  \
    {                                                                                                              \
        .name = "token-file", .argument = "FILE", .help = "a file with the token of the gateway's adminTokenFile", \
        .complete = CLI_FILE                                                                                       \
    }

#endif
