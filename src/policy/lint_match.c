/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "lint_internal.h"

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Of hosts and of the names of fields. */
static bool same_name(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcasecmp(a, b) == 0;
}

static bool same_match(const struct becalm_match *a, const struct becalm_match *b)
{
    return same_name(a->host, b->host) && same_text(a->prefix, b->prefix) && same_text(a->path, b->path) &&
           same_text(a->method, b->method) && same_name(a->header_name, b->header_name) &&
           same_text(a->header_value, b->header_value);
}

/* An endpoint without a match is one that only other commands know by its name. */
static bool is_empty(const struct becalm_match *match)
{
    return same_match(match, &(struct becalm_match){.host = NULL});
}

/* Who takes the requests instead: of equals the one that stands first in the file. NULL: nobody. */
static const char *hidden_by(const struct lint_target *target)
{
    const struct becalm_service *service = target->service;
    for (uint32_t i = 0; target->endpoint == NULL && becalm_config_service(target->config, i) != service; i++) {
        const struct becalm_service *before = becalm_config_service(target->config, i);
        if (same_match(&before->match, &service->match)) {
            return before->name;
        }
    }
    for (uint32_t i = 0; target->endpoint != NULL && &service->endpoints[i] != target->endpoint; i++) {
        if (same_match(&service->endpoints[i].match, &target->endpoint->match)) {
            return service->endpoints[i].name;
        }
    }
    return NULL;
}

void lint_same_match(struct lint *l, const struct lint_target *target)
{
    struct lint_finding *finding = NULL;
    if (target->service == NULL || (target->endpoint != NULL && is_empty(&target->endpoint->match))) {
        return;
    }
    const char *first = hidden_by(target);
    if (first == NULL || (finding = lint_find(l, target, NULL)) == NULL) {
        return;
    }
    bool endpoint = target->endpoint != NULL;
    lint_say(finding, "%s has the same match as %s, which stands first: no request comes here",
             endpoint ? target->endpoint->name : target->service->name, first);
    lint_remedy(finding, "write another `match` for one of them, or take one out");
}
