/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_DOCTOR_DOCTOR_H
#define BECALM_CLI_DOCTOR_DOCTOR_H

/* The parts of `becalm doctor`: each checks one subject, and reports its state and a remedy. */

#include "cli/cli.h"

#include <becalm/config.h>

enum doctor_grade { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAULT };

/* One line: the subject, its state, and the remedy, which is empty if there is nothing to do. */
struct doctor_line {
    enum doctor_grade grade;
    const char *topic; /* a constant */
    char text[640];
    char remedy[512];
};

struct doctor {
    const char *root;                   /* put before the paths of /proc and /sys; "": none */
    const struct becalm_config *config; /* NULL: none was given, or it can't be loaded */
    becalm_ns timeout;                  /* for one host */
    bool gateway_answers;               /* one runs at the admin address */
    struct doctor_line *line;
    uint32_t count;
    uint32_t room;
    bool no_memory;
};

/* Adds a line; the remedy follows the first "; do: " of the text. printf-like. */
void doctor_say(struct doctor *, enum doctor_grade, const char *topic, const char *format, ...) CLI_PRINTF(4, 5);

/* doctor_machine.c: descriptors, CPUs, memory, clock, kernel. */
void doctor_machine(struct doctor *);

/* doctor_ports.c: the addresses that the policy listens on, and the processes that have them. */
void doctor_ports(struct doctor *);

/* doctor_hosts.c: the names and hosts of services. */
void doctor_hosts(struct doctor *);

/* doctor_gateway.c: the one that runs. `admin` NULL: the policy's, or the default. */
void doctor_gateway(struct doctor *, const char *admin, const char *token_file);

#endif
