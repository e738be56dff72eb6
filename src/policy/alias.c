/* SPDX-License-Identifier: MIT */
#include "alias.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_data.h"

#define LABELS_MAX 4u /* of a name that are separated: name, namespace, svc, and the rest */

/* A name that a service or an endpoint has, or could have. */
struct name {
    const char *text;
    struct becalm_match *first;       /* the first match of the service or endpoint that has the name */
    const struct becalm_match *match; /* the match whose other conditions apply to the name, too */
    const char *full;                 /* the name that this is short for; NULL: the policy has this name itself */
};

struct names {
    struct loader *l;
    struct name *list;
    size_t count;
    size_t size;
};

static bool names_put(struct names *names, struct name name)
{
    if (names->count == names->size) {
        size_t size = names->size == 0 ? 64 : 2 * names->size;
        struct name *list = realloc(names->list, size * sizeof *list);
        if (list == NULL) {
            return loader_no_memory(names->l);
        }
        names->list = list;
        names->size = size;
    }
    names->list[names->count++] = name;
    return true;
}

/* Finds the ends of the labels of name.namespace.svc, and of the name itself; `port` and the text after it do not
 * count. False: the text has another form. */
static bool labels_end(const char *host, size_t length, size_t end[LABELS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i <= length && count < LABELS_MAX - 1; i++) {
        if (i == length || host[i] == '.') {
            end[count++] = i;
        }
    }
    end[LABELS_MAX - 1] = length;
    return count == LABELS_MAX - 1 && end[0] > 0 && memchr(host, '*', length) == NULL && end[2] - end[1] == 4 &&
           strncasecmp(host + end[1], ".svc", 4) == 0;
}

/* Adds all names of a Kubernetes host; for a host that is written as a match, all except the written one. */
static bool host_names(struct names *names, struct becalm_match *first, const struct becalm_match *match,
                       const char *host, bool with_port)
{
    size_t end[LABELS_MAX];
    size_t length = strcspn(host, ":");
    const char *port = with_port ? host + length : "";
    if (!labels_end(host, length, end)) {
        return true;
    }
    for (size_t i = 0; i < LABELS_MAX; i++) {
        size_t bytes = end[i] + strlen(port) + 1;
        char *text = arena_take(names->l->arena, bytes);
        if (text == NULL) {
            return loader_no_memory(names->l);
        }
        memcpy(text, host, end[i]);
        memcpy(text + end[i], port, strlen(port) + 1);
        if ((i > 0 && end[i] == end[i - 1]) || !names_put(names, (struct name){text, first, match, host})) {
            return !names->l->no_memory;
        }
    }
    return true;
}

static bool match_names(struct names *names, struct becalm_match *first)
{
    for (const struct becalm_match *match = first; match != NULL; match = match->next) {
        if (match->host != NULL && (!names_put(names, (struct name){match->host, first, match, NULL}) ||
                                    !host_names(names, first, match, match->host, true))) {
            return false;
        }
    }
    return true;
}

static bool service_names(struct names *names, struct becalm_service *service)
{
    bool by_name = service->match.host == service->name; /* no match is written */
    if (!match_names(names, &service->match)) {
        return false;
    }
    for (uint32_t i = 0; by_name && i < service->host_count; i++) {
        if (!host_names(names, &service->match, &service->match, service->hosts[i], false)) {
            return false;
        }
    }
    return true;
}

static int name_compare(const void *one, const void *other)
{
    const struct name *a = one;
    const struct name *b = other;
    int order = strcasecmp(a->text, b->text);
    return order != 0 ? order : (a->match > b->match) - (a->match < b->match);
}

/* Is a short name free, that is, in no match of the file and short for one name only? */
static bool is_free(const struct name *name, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (name[i].full == NULL || strcspn(name[i].full, ":") != strcspn(name[0].full, ":") ||
            strncasecmp(name[i].full, name[0].full, strcspn(name[0].full, ":")) != 0) {
            return false;
        }
    }
    return true;
}

static bool alias_add(struct loader *l, const struct name *name)
{
    struct becalm_match *match = arena_take(l->arena, sizeof *match);
    if (match == NULL) {
        return loader_no_memory(l);
    }
    *match = *name->match;
    match->host = name->text;
    match->alias = true;
    match->next = name->first->next;
    name->first->next = match;
    return true;
}

/* Is it the same match twice, as two hosts of a service can produce it? */
static bool is_again(const struct name *name, size_t at)
{
    return at > 0 && name[at].match == name[at - 1].match;
}

/* Gives each free short name to the service or endpoint that could have it. */
static bool names_settle(struct names *names)
{
    bool fine = true;
    if (names->count > 1) {
        qsort(names->list, names->count, sizeof *names->list, name_compare);
    }
    for (size_t i = 0, next; fine && i < names->count; i = next) {
        next = i + 1;
        while (next < names->count && strcasecmp(names->list[i].text, names->list[next].text) == 0) {
            next++;
        }
        for (size_t k = 0; is_free(&names->list[i], next - i) && k < next - i && fine; k++) {
            fine = is_again(&names->list[i], k) || alias_add(names->l, &names->list[i + k]);
        }
    }
    names->count = 0;
    return fine;
}

/* Short names of endpoints need to be unique only among the endpoints of one service. */
static bool endpoint_names(struct names *names, const struct becalm_service *service)
{
    bool fine = true;
    for (uint32_t i = 0; fine && i < service->endpoint_count; i++) {
        fine = match_names(names, (struct becalm_match *)(uintptr_t)&service->endpoints[i].match);
    }
    return fine;
}

bool aliases_add(struct loader *l)
{
    struct names names = {.l = l};
    bool fine = true;
    for (uint32_t i = 0; fine && i < l->config->service_count; i++) {
        fine = service_names(&names, &l->config->services[i]);
    }
    fine = fine && names_settle(&names);
    for (uint32_t i = 0; fine && i < l->config->service_count; i++) {
        fine = endpoint_names(&names, &l->config->services[i]) && names_settle(&names);
    }
    free(names.list);
    return fine;
}
