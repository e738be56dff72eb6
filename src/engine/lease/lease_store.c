/* SPDX-License-Identifier: MIT */
#include "lease_internal.h"

#include <string.h>

#define LINE   64u
#define WINDOW 2000u  /* milliseconds, in which each instance that asks is counted once */
#define SILENT 10000u /* after so many milliseconds of silence an instance's record may be reused */

/* The steps are those of src/redis/store.lua, which must answer the same: tests/unit/test_store_script.c. */

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

/* The record of an instance, or a free one for it: never used, or that of the instance that was silent for the
 * longest time, and longer than any lease. NULL: there is none. This is memory management and no part of the rules. */
static struct becalm_lease_record *record_find(struct becalm_lease_store *store, uint64_t instance, uint64_t now_ms)
{
    struct becalm_lease_record *place = NULL;
    for (uint32_t i = 0; i < store->size; i++) {
        struct becalm_lease_record *record = &records_of(store)[i];
        if (record->instance == instance) {
            return record;
        }
        bool free = record->instance == 0 || record->seen_at > now_ms || now_ms - record->seen_at > SILENT;
        if (free && (place == NULL || record->seen_at < place->seen_at)) {
            place = record;
        }
    }
    if (place != NULL) {
        *place = (struct becalm_lease_record){.instance = 0};
    }
    return place;
}

/* A total only grows, and by no more than it may. */
static uint64_t total_move(uint64_t *total, uint64_t told, uint64_t may)
{
    uint64_t grown = told > *total ? told - *total : 0;
    grown = grown < may ? grown : may;
    *total += grown;
    return grown;
}

/* Retries that were granted and are neither spent nor returned, as far as the store knows. */
static uint64_t outstanding(const struct becalm_lease_record *record)
{
    uint64_t gone = record->spent + record->returned;
    return record->granted > gone ? record->granted - gone : 0;
}

static bool is_sane(const struct becalm_lease_request *request)
{
    return request->instance != 0 && request->number > 0 && request->number <= BECALM__LEASE_MOST &&
           request->answered < request->number && request->first <= BECALM__LEASE_MOST &&
           request->granted <= BECALM__LEASE_MOST && request->spent <= request->granted &&
           request->returned <= request->granted - request->spent && request->era <= BECALM__LEASE_MOST;
}

/* ------------------------------------------------------------------------------------------------------- the rules */

/* Rule 1. The instance has had answers that the store does not know: the store was emptied, or is an older copy of
 * itself. The instance's totals are taken over and earn nothing; the retries in the pot may have been granted already,
 * so it is emptied. The loss begins an era: if the last answer to another instance was of an older era, it reports a
 * loss for which the pot was emptied already. */
static void record_settle(struct becalm_lease_store *store, struct becalm_lease_record *record,
                          const struct becalm_lease_request *request)
{
    bool lost = request->answered > record->number || request->granted > record->granted;
    if (record->instance == 0 || lost) {
        *record = (struct becalm_lease_record){
            .instance = request->instance,
            .first = request->first,
            .granted = request->granted,
            .spent = request->spent,
            .returned = request->returned,
        };
    }
    if (request->era > store->era || (lost && request->era == store->era)) {
        store->pot.stock = 0;
        store->era = request->era + 1;
    }
}

/* Rule 2. Windows follow each other; after a gap, or when the clock was set back by more than one, counting begins
 * anew. */
static void census_move(struct becalm_lease_census *census, uint64_t window)
{
    if (window <= census->window && census->window - window <= 1) {
        return;
    }
    bool follows = window == census->window + 1;
    *census = (struct becalm_lease_census){
        .window = window,
        .live_before = follows ? census->live : 0,
        .hungry_before = follows ? census->hungry : 0,
    };
}

/* Rule 3. No more than an equal part of the pot among the hungry instances; but if one whole retry is there, an
 * instance that asks gets it. */
static uint64_t grant(const struct becalm_lease_store *store, const struct becalm_lease_record *record, uint64_t level)
{
    const struct becalm_lease_census *census = &store->census;
    uint64_t hungry = census->hungry > census->hungry_before ? census->hungry : census->hungry_before;
    uint64_t others = hungry > 0 && record->hungry ? hungry - 1 : hungry;
    uint64_t held = outstanding(record);
    uint64_t want = level > held ? level - held : 0;
    uint64_t part = (becalm__lease_pot_whole(&store->pot) + others) / (others + 1);
    return want < part ? want : part;
}

/* Rule 4. An instance is counted once in a window, and as hungry if it is hungry now. One that leaves is taken out
 * again. */
static void census_count(struct becalm_lease_census *census, struct becalm_lease_record *record, bool hungry,
                         bool leaving)
{
    bool counted = record->window == census->window + 1;
    if (counted) {
        census->live -= census->live > 0;
        census->hungry -= record->hungry && census->hungry > 0;
    }
    if (!leaving) {
        census->live++;
        census->hungry += hungry;
    }
    record->window = leaving ? 0 : census->window + 1;
    record->hungry = hungry && !leaving;
}

/* A new request: counts its totals, and grants. Returns the number of new first attempts. */
static uint64_t settle(struct becalm_lease_store *store, const struct becalm__lease_terms *terms, uint64_t now_ms,
                       const struct becalm_lease_request *request, struct becalm_lease_record *record)
{
    uint64_t level = request->level < BECALM_LEASE_LEVEL_MAX ? request->level : BECALM_LEASE_LEVEL_MAX;
    uint64_t first = total_move(&record->first, request->first, BECALM__LEASE_MOST);
    (void)total_move(&record->spent, request->spent, outstanding(record));
    uint64_t returned = total_move(&record->returned, request->returned, outstanding(record));
    becalm__lease_pot_earn(&store->pot, terms, now_ms, first, returned);
    uint64_t granted = grant(store, record, level);
    becalm__lease_pot_draw(&store->pot, granted);
    record->granted += granted;
    record->number = request->number;
    record->seen_at = now_ms;
    census_count(&store->census, record, outstanding(record) < level, request->leaving);
    return first;
}

/* Rule 5. The more there are, the less often each of them asks. A lease lasts for three requests, and twice as long
 * for an instance that has nothing to report. */
static void answer_fill(const struct becalm_lease_store *store, const struct becalm__lease_terms *terms, bool idle,
                        struct becalm_lease_answer *answer)
{
    const struct becalm_lease_census *census = &store->census;
    uint64_t live = census->live > census->live_before ? census->live : census->live_before;
    live = live < 1 ? 1 : live < BECALM_LEASE_LIVE_MAX ? live : BECALM_LEASE_LIVE_MAX;
    becalm_ns next = live / 2 * BECALM_MS;
    next = becalm_ns_min(becalm_ns_max(next, BECALM_LEASE_NEXT), BECALM_LEASE_NEXT_MAX);
    answer->live = live;
    answer->room = becalm__lease_pot_cap(&store->pot, terms) / BECALM__LEASE_TOKEN;
    answer->next = next;
    answer->era = store->era;
    answer->ttl = becalm_ns_max(3 * next, BECALM_LEASE_TTL) * (idle ? 2 : 1);
}

bool becalm_lease_store_exchange(struct becalm_lease_store *store, const struct becalm_lease_policy *policy,
                                 becalm_ns now, const struct becalm_lease_request *request,
                                 struct becalm_lease_answer *answer)
{
    struct becalm__lease_terms terms = {.share_ppm = policy->share_ppm, .floor = policy->floor};
    uint64_t now_ms = now / BECALM_MS;
    uint64_t first = 0;
    if (!is_sane(request)) {
        return false;
    }
    struct becalm_lease_record *record = record_find(store, request->instance, now_ms);
    if (record == NULL) {
        return false;
    }
    record_settle(store, record, request);
    census_move(&store->census, now_ms / WINDOW);
    if (request->number > record->number) { /* else it was doubled, or overtaken, and is answered without effect */
        first = settle(store, &terms, now_ms, request, record);
    }
    answer->number = request->number;
    answer->granted = record->granted;
    answer_fill(store, &terms, first == 0 && request->level <= 1, answer);
    return true;
}
