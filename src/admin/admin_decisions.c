/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "http/text_internal.h"
#include "journal/explain_header.h"
#include "meter/metrics.h"
#include "proxy/gateway_shared.h"

#include <stdlib.h>

#define LIMIT 100u /* unless told otherwise */

struct ask {
    char service[ADMIN_NAME_MAX]; /* "": all */
    uint64_t limit;
};

/* False: the answer has the error. */
static bool ask_read(const struct admin_request *request, struct ask *ask, struct admin_answer *answer)
{
    char text[24];
    ask->limit = LIMIT;
    if (!admin_name(request, "service", ask->service, answer)) {
        return false;
    }
    if (admin_query(request->query, "limit", text, sizeof text) == ADMIN_ABSENT) {
        return true;
    }
    struct becalm_text number = text_of(text);
    bool is_number = text_take_number(&number, &ask->limit) > 0 && number.length == 0 && ask->limit > 0;
    if (!is_number) {
        admin_problem(answer, 400, "limit is a number from 1.");
    }
    return is_number;
}

static int newer_first(const void *a, const void *b)
{
    const struct decision *x = a;
    const struct decision *y = b;
    return x->wall < y->wall ? 1 : x->wall > y->wall ? -1 : 0;
}

/* All that the workers remember; the latest first. NULL: no memory. */
static struct decision *collect(struct gateway *gateway, size_t *count)
{
    struct decision *list = calloc(gateway->worker_count * (size_t)DECISIONS, sizeof *list);
    *count = 0;
    for (uint32_t i = 0; list != NULL && i < gateway->worker_count; i++) {
        *count += decisions_read(&gateway->worker[i].decisions, list + *count, DECISIONS);
    }
    if (list != NULL) {
        qsort(list, *count, sizeof *list, newer_first);
    }
    return list;
}

/* The names of hosts, by service, written when they are first needed. */
struct host_names {
    const struct snapshot *snapshot;
    char ***of;
};

/* Of the decision's service, if the snapshot is the one that numbered the record's hosts; else none. */
static char **names_of(const struct host_names *names, const struct decision *decision, uint32_t *count)
{
    const struct snapshot *snapshot = names->snapshot;
    *count = 0;
    for (uint32_t i = 0; snapshot->number == decision->snapshot && i < snapshot->service_count; i++) {
        if (strcmp(snapshot->service[i].service->name, decision->service) == 0) {
            names->of[i] = names->of[i] == NULL ? admin_host_names(&snapshot->service[i]) : names->of[i];
            *count = names->of[i] == NULL ? 0 : snapshot->service[i].host_count;
            return names->of[i];
        }
    }
    return NULL;
}

static void put(struct buffer *page, const struct host_names *names, const struct decision *decision)
{
    uint32_t host_count;
    char **hosts = names_of(names, decision, &host_count);
    record_json(page, NULL,
                &(struct explain){
                    .record = &decision->record,
                    .hosts = (const char *const *)hosts,
                    .host_count = host_count,
                    .wall = decision->wall,
                    .service = text_of(decision->service),
                    .endpoint = text_of(decision->endpoint[0] == '\0' ? METRICS_DEFAULT : decision->endpoint),
                    .method = text_of(decision->method),
                    .target = text_of(decision->path),
                    .request_id = text_of(decision->request_id[0] == '\0' ? NULL : decision->request_id),
                    .asked = text_of(decision->asked[0] == '\0' ? NULL : decision->asked),
                    .fallback = text_of(decision->fallback[0] == '\0' ? NULL : decision->fallback),
                    .fault = text_of(decision->fault[0] == '\0' ? NULL : decision->fault),
                    .status = decision->status,
                });
}

static void put_all(struct buffer *page, const struct host_names *names, const struct ask *ask,
                    const struct decision *list, size_t count)
{
    uint64_t left = ask->limit;
    buffer_json_open(page, NULL, '{');
    buffer_json_open(page, "decisions", '[');
    for (size_t i = 0; i < count && left > 0; i++) {
        if (ask->service[0] == '\0' || strcmp(ask->service, list[i].service) == 0) {
            put(page, names, &list[i]);
            left--;
        }
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
}

void admin_decisions(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct gateway *gateway = admin->place.gateway;
    struct ask ask;
    size_t count;
    if (!ask_read(request, &ask, answer)) {
        return;
    }
    struct snapshot *snapshot = gateway_snapshot(gateway);
    struct host_names names = {snapshot, calloc(snapshot->service_count + 1, sizeof *names.of)};
    struct decision *list = collect(gateway, &count);
    if (list == NULL || names.of == NULL) {
        answer->page.full = true;
    } else {
        put_all(&answer->page, &names, &ask, list, count);
    }
    for (uint32_t i = 0; names.of != NULL && i < snapshot->service_count; i++) {
        free(names.of[i]);
    }
    free(names.of);
    free(list);
    snapshot_drop(snapshot);
}
