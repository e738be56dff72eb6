/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_TRAEFIK_RULE_H
#define BECALM_IMPORT_TRAEFIK_RULE_H

/* The rules of Traefik's routers: Host(`a`) && (PathPrefix(`/x`) || Method(`POST`)). */

#include "policy/import/route.h"

#define TRAEFIK_CHOICES_MAX 64u

/* Any of these matches fits what the rule fits. */
struct traefik_rule {
    struct route_match match[TRAEFIK_CHOICES_MAX];
    uint32_t count;
    const char *why; /* it can't be said, and this is why; else NULL */
};

void traefik_rule_read(struct source *, const char *text, struct traefik_rule *out);

#endif
