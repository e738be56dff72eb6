/* SPDX-License-Identifier: MIT */
#include "lease_internal.h"

#include <string.h>

#define LINE      64u
#define TOTAL_MAX (UINT64_C(1) << 53) /* of what is counted, so that doubles count the same */

/* The steps are those of a script: walk over the records once, take what the request tells, give what there is. */

static size_t header_bytes(void)
{
    return (sizeof(struct becalm_lease_store) + LINE - 1) / LINE * LINE;
}

static struct becalm_lease_record *records_of(struct becalm_lease_store *store)
{
    return (struct becalm_lease_record *)((uintptr_t)store + header_bytes());
}

size_t becalm_lease_store_bytes(uint32_t instances)
{
    BECALM_ASSERT(instances <= BECALM_LEASE_INSTANCES_MAX);
    size_t records = (instances * sizeof(struct becalm_lease_record) + LINE - 1) / LINE * LINE;
    return header_bytes() + records;
}

struct becalm_lease_store *becalm_lease_store_init(void *memory, uint32_t instances)
{
    struct becalm_lease_store *store = memory;
    memset(store, 0, becalm_lease_store_bytes(instances));
    store->size = instances;
    return store;
}

/* A lease that would last longer than any does is from before the clock was set back. */
static bool is_live(const struct becalm_lease_record *record, becalm_ns now)
{
    return record->instance != 0 && record->live_until > now && record->live_until - now <= BECALM_LEASE_TTL;
}

/* What a walk over the records finds. */
struct census {
    struct becalm_lease_record *mine;  /* NULL: it is not known */
    struct becalm_lease_record *place; /* for one that is not; NULL: all are live */
    uint64_t live;                     /* others */
    uint64_t hungry;                   /* of these */
};

static struct census census_take(struct becalm_lease_store *store, becalm_ns now, uint64_t instance)
{
    struct census census = {NULL, NULL, 0, 0};
    for (uint32_t i = 0; i < store->size; i++) {
        struct becalm_lease_record *record = &records_of(store)[i];
        if (record->instance == instance) {
            census.mine = record;
        } else if (is_live(record, now)) {
            census.live++;
            census.hungry += record->hungry;
        } else if (census.place == NULL || record->live_until < census.place->live_until) {
            census.place = record; /* a place that was never used comes first: it lived until 0 */
        }
    }
    return census;
}

/* Who is not known begins with what it says of itself, and earns nothing for what was before: the store may have been
 * emptied, and what it had counted then is gone with what it had given. */
static void record_begin(struct becalm_lease_record *record, const struct becalm_lease_request *request)
{
    *record = (struct becalm_lease_record){
        .instance = request->instance,
        .first = request->first,
        .granted = request->granted,
        .spent = request->spent,
        .returned = request->returned,
    };
}

/* A total only grows, and by no more than it may. */
static uint64_t total_move(uint64_t *total, uint64_t told, uint64_t most)
{
    uint64_t grown = told > *total ? told - *total : 0;
    grown = grown < most ? grown : most;
    *total += grown;
    return grown;
}

/* What was granted and is neither spent nor returned, as far as the store has heard. */
static uint64_t outstanding(const struct becalm_lease_record *record)
{
    uint64_t gone = record->spent + record->returned;
    return record->granted > gone ? record->granted - gone : 0;
}

/* No more than an even part of what is there among those who want more than they got; but one retry that is there is
 * given to who asks for it. */
static uint64_t grant(const struct becalm_lease_store *store, const struct becalm_lease_record *record,
                      const struct becalm_lease_request *request, uint64_t hungry)
{
    uint64_t level = request->level < BECALM_LEASE_LEVEL_MAX ? request->level : BECALM_LEASE_LEVEL_MAX;
    uint64_t held = outstanding(record);
    uint64_t want = level > held ? level - held : 0;
    uint64_t there = becalm__lease_pot_whole(&store->pot);
    uint64_t part = (there + hungry) / (hungry + 1);
    return want < part ? want : part;
}

static bool is_sane(const struct becalm_lease_request *request)
{
    return request->instance != 0 && request->number > 0 && request->number <= TOTAL_MAX &&
           request->first <= TOTAL_MAX && request->granted <= TOTAL_MAX && request->spent <= request->granted &&
           request->returned <= request->granted - request->spent;
}

/* A request that was not seen before: counts what it tells, and grants. */
static void settle(struct becalm_lease_store *store, const struct becalm_lease_policy *policy, becalm_ns now,
                   const struct becalm_lease_request *request, const struct census *census)
{
    struct becalm_lease_record *record = census->mine;
    uint64_t first = total_move(&record->first, request->first, UINT64_MAX);
    (void)total_move(&record->spent, request->spent, outstanding(record));
    uint64_t returned = total_move(&record->returned, request->returned, outstanding(record));
    becalm__lease_pot_give(&store->pot, policy->share_ppm, now, returned);
    becalm__lease_pot_earn(&store->pot, policy->share_ppm, policy->floor, now, first);
    uint64_t granted = grant(store, record, request, census->hungry);
    becalm__lease_pot_draw(&store->pot, granted);
    record->granted += granted;
    record->hungry = outstanding(record) < request->level;
    record->number = request->number;
    record->live_until = request->leaving ? now : becalm_ns_after(now, BECALM_LEASE_TTL);
}

bool becalm_lease_store_exchange(struct becalm_lease_store *store, const struct becalm_lease_policy *policy,
                                 becalm_ns now, const struct becalm_lease_request *request,
                                 struct becalm_lease_answer *answer)
{
    if (!is_sane(request)) {
        return false;
    }
    struct census census = census_take(store, now, request->instance);
    if (census.mine == NULL) {
        if (census.place == NULL) {
            return false;
        }
        census.mine = census.place;
        record_begin(census.mine, request);
    }
    if (request->number > census.mine->number) { /* else it was doubled, or overtaken, and is answered without effect */
        settle(store, policy, now, request, &census);
    }
    *answer = (struct becalm_lease_answer){
        .number = request->number,
        .granted = census.mine->granted,
        .live = census.live + 1,
        .ttl = BECALM_LEASE_TTL,
    };
    return true;
}
