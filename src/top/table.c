/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <stdlib.h>
#include <string.h>

const struct state *table_latest(const struct table *table)
{
    return table->state_count == 0 ? NULL : table->state[table->state_count - 1];
}

becalm_ns table_window(const struct table *table)
{
    return table->state_count < 2 ? 0 : becalm_ns_since(table_latest(table)->at, table->state[0]->at);
}

enum trouble table_worst(const struct table_row *row)
{
    uint32_t trouble = 0;
    while (trouble < TROUBLE_COUNT && (row->troubles >> trouble & 1) == 0) {
        trouble++;
    }
    return (enum trouble)trouble;
}

/* ---- the previous state ---- */

/* A service nearly always has the same index as before. */
static const struct state_service *find_service(const struct state *state, const char *name, size_t hint)
{
    if (hint < state->service_count && strcmp(state->service[hint].name, name) == 0) {
        return &state->service[hint];
    }
    for (uint32_t i = 0; i < state->service_count; i++) {
        if (strcmp(state->service[i].name, name) == 0) {
            return &state->service[i];
        }
    }
    return NULL;
}

static const struct state_endpoint *find_endpoint(const struct state_service *service, const char *name, size_t hint)
{
    if (hint < service->endpoint_count && strcmp(service->endpoint[hint].name, name) == 0) {
        return &service->endpoint[hint];
    }
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        if (strcmp(service->endpoint[i].name, name) == 0) {
            return &service->endpoint[i];
        }
    }
    return NULL;
}

/* ---- rates ---- */

static uint64_t per_second(uint64_t count, becalm_ns window)
{
    uint64_t ms = window / BECALM_MS;
    if (ms == 0 || count > UINT64_MAX / 1000000) {
        return 0;
    }
    return (count * 1000000 + ms / 2) / ms;
}

uint64_t table_unrouted(const struct table *table)
{
    uint64_t before = table->state_count == 0 ? 0 : table->state[0]->unrouted;
    uint64_t now = table->state_count == 0 ? 0 : table_latest(table)->unrouted;
    return now > before ? per_second(now - before, table_window(table)) : 0;
}

/* Adds the growth of an endpoint's counts between two states; `from` may not have the endpoint. */
static void add_growth(const struct state *from, const struct state *to, size_t service, size_t endpoint,
                       uint64_t grown[STATE_COUNTS])
{
    const struct state_service *now = &to->service[service];
    const struct state_service *before = find_service(from, now->name, service);
    const struct state_endpoint *new = &now->endpoint[endpoint];
    const struct state_endpoint *old = before == NULL ? NULL : find_endpoint(before, new->name, endpoint);
    for (uint32_t i = 0; i < STATE_COUNTS; i++) {
        uint64_t base = old == NULL ? 0 : old->count[i];
        grown[i] += new->count[i] > base ? new->count[i] - base : 0;
    }
}

static uint64_t share(uint64_t part, uint64_t whole)
{
    if (whole == 0) {
        return STATE_NONE;
    }
    return part > UINT64_MAX / 1000000 ? STATE_NONE : part * 1000000 / whole;
}

static void derive(const uint64_t grown[STATE_COUNTS], becalm_ns window, struct table_figures *figures)
{
    uint64_t calls = grown[STATE_FIRST_ATTEMPT] + grown[STATE_AFTER_RETRY] + grown[STATE_FAILED];
    uint64_t refused = 0;
    uint64_t not_retried = 0;
    for (uint32_t i = 0; i < STATE_REASONS; i++) {
        refused += grown[STATE_REFUSED + i];
        not_retried += grown[STATE_NOT_RETRIED + i];
    }
    for (uint32_t i = 0; i < STATE_COUNTS; i++) {
        figures->rate[i] = per_second(grown[i], window);
    }
    figures->refused = per_second(refused, window);
    figures->not_retried = per_second(not_retried, window);
    figures->success_first = share(grown[STATE_FIRST_ATTEMPT], calls);
    figures->success = share(grown[STATE_FIRST_ATTEMPT] + grown[STATE_AFTER_RETRY], calls);
    uint64_t more = share(grown[STATE_RETRIES] + grown[STATE_HEDGES], calls > refused ? calls - refused : 0);
    figures->amplification = more == STATE_NONE ? STATE_NONE : 1000000 + more;
}

static void service_growth(const struct state *from, const struct state *to, size_t service,
                           uint64_t grown[STATE_COUNTS])
{
    memset(grown, 0, STATE_COUNTS * sizeof *grown);
    for (uint32_t i = 0; from != to && i < to->service[service].endpoint_count; i++) {
        add_growth(from, to, service, i, grown);
    }
}

void table_endpoint(const struct table *table, const struct table_row *row, const struct state_endpoint *endpoint,
                    struct table_figures *figures)
{
    const struct state *to = table_latest(table);
    uint64_t grown[STATE_COUNTS] = {0};
    if (table->state_count > 1) {
        add_growth(table->state[0], to, (size_t)(row->service - to->service),
                   (size_t)(endpoint - row->service->endpoint), grown);
    }
    derive(grown, table_window(table), figures);
}

/* ---- rows ---- */

static const struct table_row *find_row(const struct table *table, const char *name)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (strcmp(table->row[i].name, name) == 0) {
            return &table->row[i];
        }
    }
    return NULL;
}

/* One more value at the right, from the latest two states. */
static void trend_add(struct table_trend *trend, const uint64_t grown[STATE_COUNTS], becalm_ns window)
{
    if (trend->count == TABLE_TREND_MAX) {
        memmove(trend->requests, trend->requests + 1, (TABLE_TREND_MAX - 1) * sizeof trend->requests[0]);
        memmove(trend->retries, trend->retries + 1, (TABLE_TREND_MAX - 1) * sizeof trend->retries[0]);
        trend->count--;
    }
    trend->requests[trend->count] = per_second(grown[STATE_ARRIVALS], window);
    trend->retries[trend->count] = per_second(grown[STATE_RETRIES], window);
    trend->count++;
}

static void fill_row(const struct table *table, size_t service, const struct table_row *before, struct table_row *row)
{
    const struct state *to = table_latest(table);
    uint64_t grown[STATE_COUNTS];
    row->service = &to->service[service];
    memcpy(row->name, row->service->name, sizeof row->name);
    if (before != NULL) {
        row->trend = before->trend;
    }
    if (table->state_count > 1) {
        const struct state *previous = table->state[table->state_count - 2];
        service_growth(previous, to, service, grown);
        trend_add(&row->trend, grown, becalm_ns_since(to->at, previous->at));
    }
    service_growth(table->state[0], to, service, grown);
    derive(grown, table_window(table), &row->figures);
    row->troubles = trouble_find(row->service, grown);
    enum trouble worst = table_worst(row);
    row->weight = worst == TROUBLE_COUNT ? TROUBLE_FINE : trouble_weight(worst);
}

/* The worst first; of equals the one with more failed calls, then by name, so that quiet services stay where they
 * are. */
static int compare_rows(const void *a, const void *b)
{
    const struct table_row *x = a;
    const struct table_row *y = b;
    const uint64_t key[][2] = {
        {y->weight, x->weight},
        {table_worst(x), table_worst(y)},
        {y->figures.rate[STATE_FAILED], x->figures.rate[STATE_FAILED]},
    };
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
        if (key[i][0] != key[i][1]) {
            return key[i][0] < key[i][1] ? -1 : 1;
        }
    }
    return strcmp(x->name, y->name);
}

/* ---- states ---- */

static void drop_oldest(struct table *table)
{
    state_free(table->state[0]);
    table->state_count--;
    memmove(&table->state[0], &table->state[1], table->state_count * sizeof table->state[0]);
}

/* As many as make the window, and the one at its left edge. */
static void push_state(struct table *table, struct state *state)
{
    while (table->state_count == TABLE_STATES_MAX) {
        drop_oldest(table);
    }
    table->state[table->state_count++] = state;
    while (table->state_count > 2 && becalm_ns_since(state->at, table->state[1]->at) >= TABLE_WINDOW) {
        drop_oldest(table);
    }
}

static bool is_another_run(const struct state *a, const struct state *b)
{
    return strcmp(a->id, b->id) != 0 || strcmp(a->started, b->started) != 0;
}

bool table_add(struct table *table, struct state *state)
{
    struct table_row *row = calloc(state->service_count + 1u, sizeof *row);
    if (row == NULL) {
        state_free(state);
        table_free(table);
        return false;
    }
    if (table->broken || (table->state_count > 0 && is_another_run(table_latest(table), state))) {
        while (table->state_count > 0) {
            drop_oldest(table);
        }
    }
    table->broken = false;
    push_state(table, state);
    for (uint32_t i = 0; i < state->service_count; i++) {
        fill_row(table, i, find_row(table, state->service[i].name), &row[i]);
    }
    free(table->row);
    table->row = row;
    table->row_count = state->service_count;
    qsort(row, table->row_count, sizeof *row, compare_rows);
    return true;
}

void table_break(struct table *table)
{
    table->broken = true;
}

void table_free(struct table *table)
{
    while (table->state_count > 0) {
        drop_oldest(table);
    }
    free(table->row);
    *table = (struct table){.row = NULL};
}
