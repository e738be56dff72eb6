/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "lint_internal.h"
#include "policy/routing/match.h"

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
           same_text(a->start, b->start) && same_text(a->method, b->method) &&
           same_name(a->header_name, b->header_name) && same_text(a->header_value, b->header_value);
}

/* Is each of the matches in the second list as well? */
static bool all_stand_in(const struct becalm_match *first, const struct becalm_match *list)
{
    const struct becalm_match *match = first;
    for (; match != NULL; match = match->next) {
        const struct becalm_match *other = list;
        while (other != NULL && !same_match(match, other)) {
            other = other->next;
        }
        if (other == NULL) {
            return false;
        }
    }
    return true;
}

/* The service or endpoint that takes the requests instead: of equals the first in the file. NULL: none. */
static const char *hidden_by(const struct lint_target *target)
{
    const struct becalm_service *service = target->service;
    for (uint32_t i = 0; target->endpoint == NULL && becalm_config_service(target->config, i) != service; i++) {
        const struct becalm_service *before = becalm_config_service(target->config, i);
        if (all_stand_in(&service->match, &before->match)) {
            return before->name;
        }
    }
    for (uint32_t i = 0; target->endpoint != NULL && &service->endpoints[i] != target->endpoint; i++) {
        if (all_stand_in(&target->endpoint->match, &service->endpoints[i].match)) {
            return service->endpoints[i].name;
        }
    }
    return NULL;
}

void lint_same_match(struct lint *l, const struct lint_target *target)
{
    struct lint_finding *finding = NULL;
    if (target->service == NULL || (target->endpoint != NULL && match_is_empty(&target->endpoint->match))) {
        return;
    }
    const char *first = hidden_by(target);
    if (first == NULL || (finding = lint_find(l, target, NULL)) == NULL) {
        return;
    }
    bool endpoint = target->endpoint != NULL;
    lint_say(finding, "%s has the same match as %s, which is first in the file: no request reaches this one",
             endpoint ? target->endpoint->name : target->service->name, first);
    lint_remedy(finding, "write another `match` for one of them, or remove one");
}

/* Can a request of the service fit the endpoint? */
static bool reachable(const struct becalm_service *service, const struct becalm_endpoint *endpoint)
{
    for (const struct becalm_match *match = &endpoint->match; match != NULL; match = match->next) {
        for (const struct becalm_match *outer = &service->match; outer != NULL; outer = outer->next) {
            if (match_meets(match, outer)) {
                return true;
            }
        }
    }
    return false;
}

void lint_unreachable(struct lint *l, const struct lint_target *target)
{
    struct lint_finding *finding = NULL;
    char service[128];
    char endpoint[128];
    if (target->endpoint == NULL || match_is_empty(&target->endpoint->match) ||
        reachable(target->service, target->endpoint) || (finding = lint_find(l, target, NULL)) == NULL) {
        return;
    }
    match_write(&target->service->match, service, sizeof service);
    match_write(&target->endpoint->match, endpoint, sizeof endpoint);
    lint_say(finding, "no request reaches %s: %s gets requests for %s%s, and %s is for %s", target->endpoint->name,
             target->service->name, service, target->service->match.next == NULL ? "" : " and others",
             target->endpoint->name, endpoint);
    lint_remedy(finding, "an endpoint gets only requests of its service: widen the `match` of %s, or change this one",
                target->service->name);
}
