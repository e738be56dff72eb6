/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include "join/join.h"

/* Applications that pass on only a trace id. Each host has a sidecar that sees the application's incoming requests and
 * its outgoing calls, and joins them with the gateway's own table. The trace of a request is the client's call that it
 * is part of. Callers are trusted, as sidecars are by other sidecars. Clients are not trusted, and no two clients have
 * the same trace. */

static bool passes_all(const struct world *w, const struct attempt *attempt)
{
    return w->service[attempt->service].plan->passes == PASSES_ALL;
}

static struct join_table *table_of(const struct world *w, const struct attempt *attempt)
{
    return attempt->joined ? w->service[attempt->service].host[attempt->host].join : NULL;
}

static struct join_keys keys_of(const struct attempt *attempt)
{
    uint64_t state = attempt->root;
    return (struct join_keys){.count = 1, .key = {becalm_rand_next(&state) | 1}};
}

bool joined_make(const struct world *w, struct service *service)
{
    const struct scenario_service *plan = service->plan;
    bool joins = plan->passes == PASSES_TRACE && plan->role == ROLE_SIDECAR && w->options->joins;
    for (uint32_t i = 0; joins && i < plan->hosts; i++) {
        service->host[i].join = join_table_make();
        if (service->host[i].join == NULL) {
            return false;
        }
    }
    return true;
}

void joined_free(struct service *service)
{
    for (uint32_t i = 0; service->host != NULL && i < service->plan->hosts; i++) {
        join_table_free(service->host[i].join);
    }
}

void joined_enter(const struct world *w, struct attempt *attempt)
{
    struct join_keys keys = keys_of(attempt);
    attempt->joined = w->service[attempt->service].host[attempt->host].join != NULL;
    if (attempt->joined) {
        join_enter(table_of(w, attempt), &keys,
                   &(struct join_request){
                       .peer = ((uint64_t)attempt->hop << 32 | attempt->caller) + 1,
                       .trusted = attempt->hop >= w->plan->client_count,
                       .deadline_at = w->options->carries_deadlines ? attempt->deadline_at : BECALM_NEVER,
                   },
                   w->clock.now);
    }
}

void joined_leave(const struct world *w, struct attempt *attempt)
{
    if (attempt->joined) {
        struct join_keys keys = keys_of(attempt);
        join_leave(table_of(w, attempt), &keys);
        attempt->joined = false;
    }
}

/* By its trace, which finds another request of the same one too, also when its own is not there any more. */
becalm_ns joined_deadline(const struct world *w, const struct attempt *attempt)
{
    struct join_keys keys = keys_of(attempt);
    struct join_table *table = w->service[attempt->service].host[attempt->host].join;
    return table == NULL ? BECALM_NEVER : join_deadline(table, &keys, w->clock.now);
}

void joined_note(const struct world *w, struct attempt *attempt, enum becalm_mark_kind mark)
{
    struct join_table *table = w->service[attempt->service].host[attempt->host].join;
    if (passes_all(w, attempt)) {
        attempt->mark = mark;
    } else if (table != NULL && mark != BECALM_MARK_NONE) {
        struct join_keys keys = keys_of(attempt);
        bool unasked = becalm_mark_unasked(mark);
        join_note(table, &keys, (struct join_mark){unasked ? BECALM_MARK_UNASKED : BECALM_MARK_SPENT, BECALM_WHY_OK},
                  w->clock.now);
    }
}

enum becalm_mark_kind joined_mark(const struct world *w, const struct attempt *attempt)
{
    struct join_keys keys = keys_of(attempt);
    struct join_table *table = table_of(w, attempt);
    if (passes_all(w, attempt)) {
        return attempt->mark;
    }
    return table == NULL ? BECALM_MARK_NONE : join_mark(table, &keys, w->clock.now).kind;
}
