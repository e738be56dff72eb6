/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_TRAEFIK_RULE_H
#define BECALM_IMPORT_TRAEFIK_RULE_H

/* The rules of Traefik's routers: Host(`a`) && (PathPrefix(`/x`) || Method(`POST`)). */

#include "policy/import/route.h"

#define TRAEFIK_CHOICES_MAX 64u

/* The matches of a rule: a request fits the rule if it fits any of these. */
struct traefik_rule {
    struct route_match match[TRAEFIK_CHOICES_MAX];
    uint32_t count;
    const char *why; /* why no match can express the rule; else NULL */
};

void traefik_rule_read(struct source *, const char *text, struct traefik_rule *out);

#endif
