/* SPDX-License-Identifier: MIT */
#include "demo.h"

#include "admin/admin_internal.h"

#include <becalm/version.h>

#include <stdlib.h>

/* /api/demo and the page's orders. docs/demo.md has the names. */

static struct demo *demo_of(const struct admin *admin)
{
    return admin->place.self;
}

/* ---- /api/demo ---- */

struct range {
    uint32_t from, to;
};

/* One column of the samples, from a field at this offset. */
static void put_column(struct buffer *page, const char *key, const struct lane *lane, struct range range,
                       uint32_t (*value)(const struct lane_sample *, uint32_t service), uint32_t service)
{
    buffer_json_open(page, key, '[');
    for (uint32_t tick = range.from; tick < range.to; tick++) {
        uint32_t number = value(lane_at(lane, tick), service);
        if (number == UINT32_MAX) {
            buffer_chars(page, tick == range.from ? "null" : ",null");
        } else {
            buffer_json_number(page, NULL, number);
        }
    }
    buffer_json_close(page, ']');
}

#define LANE_COLUMN(field)                                                            \
    static uint32_t column_##field(const struct lane_sample *sample, uint32_t unused) \
    {                                                                                 \
        (void)unused;                                                                 \
        return sample->field;                                                         \
    }
#define SERVICE_COLUMN(field)                                                           \
    static uint32_t service_##field(const struct lane_sample *sample, uint32_t service) \
    {                                                                                   \
        return (uint32_t)sample->service[service].field;                                \
    }
LANE_COLUMN(begun)
LANE_COLUMN(good)
LANE_COLUMN(failed)
SERVICE_COLUMN(arrivals)
SERVICE_COLUMN(retries)
SERVICE_COLUMN(refused)
SERVICE_COLUMN(shed)
SERVICE_COLUMN(queue)
SERVICE_COLUMN(gate)
SERVICE_COLUMN(in_flight)
SERVICE_COLUMN(limit)
SERVICE_COLUMN(budget_left)
SERVICE_COLUMN(breaker)

static void put_service(struct buffer *page, const struct lane *lane, uint32_t index, struct range range)
{
    static const struct {
        const char *key;
        uint32_t (*value)(const struct lane_sample *, uint32_t);
    } columns[] = {
        {"arrivals", service_arrivals},  {"retries", service_retries}, {"refused", service_refused},
        {"shed", service_shed},          {"queue", service_queue},     {"gate", service_gate},
        {"inFlight", service_in_flight}, {"limit", service_limit},     {"budgetMilli", service_budget_left},
        {"breaker", service_breaker},
    };
    const struct service *service = &lane->service[index];
    const struct lane_sample *now = lane->ticks == 0 ? NULL : lane_at(lane, lane->ticks - 1);
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "name", service->plan->name);
    buffer_json_number(page, "arrivalsTotal", service->arrivals);
    buffer_json_number(page, "goodTotal", service->good);
    buffer_json_number(page, "uselessTotal", service->useless);
    if (now != NULL && now->service[index].has_breaker) {
        buffer_json_chars(page, "breakerState", becalm_breaker_word(now->service[index].breaker));
    }
    buffer_json_open(page, "refusedBy", '{'); /* since the latest fault began */
    for (unsigned why = 0; why < BECALM_REASON_COUNT; why++) {
        uint32_t count = lane_refusals(lane, index, (enum becalm_reason)why);
        if (count > 0) {
            buffer_json_number(page, becalm_reason_word((enum becalm_reason)why), count);
        }
    }
    buffer_json_close(page, '}');
    buffer_json_open(page, "samples", '{');
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        put_column(page, columns[i].key, lane, range, columns[i].value, index);
    }
    buffer_json_close(page, '}');
    buffer_json_close(page, '}');
}

/* An unknown value is written as null. */
static void put_known(struct buffer *page, const char *key, uint32_t value, unsigned decimals)
{
    if (value == LANE_UNKNOWN) {
        buffer_json_null(page, key);
    } else {
        buffer_json_decimal(page, key, value, decimals);
    }
}

static void put_tick(struct buffer *page, const char *key, uint32_t tick)
{
    if (tick != UINT32_MAX) {
        buffer_json_number(page, key, tick);
    }
}

static void put_lane(struct buffer *page, const struct demo *demo, uint32_t kind, struct range range)
{
    const struct lane *lane = &demo->lane[kind];
    const struct storm_lane *storm = &demo->storm.lane[kind];
    uint32_t recent = demo->ticks > STORM_STEADY ? demo->ticks - STORM_STEADY : 0;
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "name", lane_name(lane->kind));
    buffer_json_chars(page, "admin", lane->admin);
    buffer_json_number(page, "begunTotal", lane->load.begun);
    buffer_json_number(page, "goodTotal", lane->load.good);
    buffer_json_number(page, "failedTotal", lane->load.failed);
    buffer_json_number(page, "waiting", lane->load.waiting);
    buffer_json_number(page, "holds", lane_holds(lane));
    buffer_json_number(page, "reach", lane_reach(lane, recent, demo->ticks));
    put_known(page, "factor", lane_factor_milli(lane), 3);
    put_known(page, "success", lane_success_now(lane), 6);
    buffer_json_decimal(page, "peakFactor", demo->peak_milli[kind], 3);
    buffer_json_chars(page, "state", storm_word(storm_state(&demo->storm, kind, demo->ticks)));
    put_tick(page, "recoveredTick", storm->recovered);
    buffer_json_bool(page, "afterStop", storm_was_stopped(&demo->storm, kind));
    buffer_json_open(page, "samples", '{');
    put_column(page, "begun", lane, range, column_begun, 0);
    put_column(page, "good", lane, range, column_good, 0);
    put_column(page, "failed", lane, range, column_failed, 0);
    buffer_json_close(page, '}');
    buffer_json_open(page, "services", '[');
    for (uint32_t i = 0; i < LANE_SERVICES; i++) {
        put_service(page, lane, i, range);
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

static void put_changes(struct buffer *page, const struct demo *demo)
{
    uint32_t first = demo->changes > DEMO_CHANGES_MAX ? demo->changes - DEMO_CHANGES_MAX : 0;
    buffer_json_open(page, "changes", '[');
    for (uint32_t i = first; i < demo->changes; i++) {
        const struct demo_change *change = &demo->change[i % DEMO_CHANGES_MAX];
        buffer_json_open(page, NULL, '{');
        buffer_json_number(page, "tick", change->tick);
        buffer_json_chars(page, "fault", service_fault_word(change->fault));
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

static void put_seconds(struct buffer *page, const char *key, const uint32_t *value, uint32_t count)
{
    buffer_json_open(page, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        buffer_json_number(page, NULL, value[i]);
    }
    buffer_json_close(page, ']');
}

static void put_rehearsal(struct buffer *page, const struct demo *demo)
{
    if (demo->rehearsal == NULL) {
        return;
    }
    bool done = rehearsal_done(demo->rehearsal);
    const struct rehearsal_result *result = rehearsal_result(demo->rehearsal);
    buffer_json_open(page, "simulation", '{');
    buffer_json_bool(page, "done", done);
    buffer_json_number(page, "fromTick", demo->rehearsed_from);
    if (done) {
        buffer_json_bool(page, "failed", result->rc != 0);
        buffer_json_number(page, "seconds", result->seconds);
        buffer_json_number(page, "events", result->events);
        buffer_json_decimal(page, "tookMs", result->took / BECALM_US, 3);
        buffer_json_open(page, "lanes", '[');
        for (uint32_t i = 0; i < LANE_COUNT; i++) {
            buffer_json_open(page, NULL, '{');
            put_seconds(page, "arrivals", result->lane[i].arrivals, result->seconds);
            put_seconds(page, "begun", result->lane[i].begun, result->seconds);
            put_seconds(page, "good", result->lane[i].good, result->seconds);
            buffer_json_close(page, '}');
        }
        buffer_json_close(page, ']');
    }
    buffer_json_close(page, '}');
}

/* Samples from tick `since` on: a page that has the earlier ones asks for no more than is new. */
static void state(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    const struct demo *demo = demo_of(admin);
    struct buffer *page = &answer->page;
    char text[16];
    struct range range = {demo->ticks > LANE_TICKS ? demo->ticks - LANE_TICKS : 0, demo->ticks};
    if (admin_query(request->query, "since", text, sizeof text) == ADMIN_GIVEN) {
        unsigned long since = strtoul(text, NULL, 10);
        range.from = since < range.from ? range.from : since > range.to ? range.to : (uint32_t)since;
    }
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "version", becalm_version());
    buffer_json_number(page, "tickMs", LANE_TICK / BECALM_MS);
    buffer_json_number(page, "steadyTicks", STORM_STEADY); /* the ticks over which "now" and "back" are measured */
    buffer_json_number(page, "ticks", demo->ticks);
    buffer_json_number(page, "from", range.from);
    buffer_json_number(page, "startedMs", (demo->loop.wall - (demo->loop.now - demo->begun_at)) / BECALM_MS);
    buffer_json_number(page, "offered", LANE_RATE);
    buffer_json_chars(page, "fault", service_fault_word(demo->fault));
    buffer_json_bool(page, "scripted", demo->scripted);
    enum service_fault next;
    becalm_ns wait;
    if (demo_next(demo, &next, &wait)) {
        buffer_json_chars(page, "next", service_fault_word(next));
        buffer_json_number(page, "nextMs", wait / BECALM_MS);
    }
    buffer_json_bool(page, "paused", demo->paused);
    const struct pace_span *pace = &demo->pace.storm;
    buffer_json_decimal(page, "lateMs", pace->worst / BECALM_US, 3);
    buffer_json_bool(page, "slow", pace_is_slow(pace));
    buffer_json_number(page, "slowTicks", pace->slow);
    buffer_json_number(page, "paceTicks", pace->ticks);
    put_tick(page, "hurtTick", demo->storm.hurt);
    put_tick(page, "healedTick", demo->storm.healed);
    put_changes(page, demo);
    buffer_json_open(page, "lanes", '[');
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        put_lane(page, demo, i, range);
    }
    buffer_json_close(page, ']');
    put_rehearsal(page, demo);
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
}

/* ---- orders ---- */

static void put_done(struct admin_answer *answer, const char *what)
{
    buffer_json_open(&answer->page, NULL, '{');
    buffer_json_chars(&answer->page, "done", what);
    buffer_json_close(&answer->page, '}');
    buffer_chars(&answer->page, "\n");
}

static void fault(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct becalm_text word = request->path;
    enum service_fault found;
    size_t before = strlen("/api/fault/");
    word.at += before;
    word.length -= before;
    if (!service_fault_find(word, &found)) {
        admin_problem(answer, 404, "A fault is healthy, slow, errors, dead or flapping.");
        return;
    }
    demo_hurt(demo_of(admin), found);
    put_done(answer, service_fault_word(found));
}

static void pause_load(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    demo_pause(demo_of(admin));
    put_done(answer, "paused");
}

static void simulate(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    const char *why_not = demo_rehearse(demo_of(admin));
    if (why_not != NULL) {
        admin_problem(answer, 409, why_not);
        return;
    }
    put_done(answer, "simulating");
}

/* The policy of one lane, as its gateway has it. */
static void policy(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    size_t before = strlen("/api/policy/");
    struct becalm_text word = {request->path.at + before, request->path.length - before};
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const char *name = lane_name((enum lane_kind)i);
        if (word.length == strlen(name) && memcmp(word.at, name, word.length) == 0) {
            buffer_chars(&answer->page, demo_of(admin)->lane[i].policy);
            return;
        }
    }
    admin_problem(answer, 404, "A lane is naive or becalm.");
}

static void front(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)admin;
    admin_file(text_of("demo.html"), request, answer);
}

static const struct admin_route routes[] = {
    {"/", NULL, true, NULL, front}, /* says its type itself */
    {"/assets/*", NULL, true, NULL, admin_asset},
    {"/api/demo", NULL, false, "application/json", state},
    {"/api/fault/*", "POST", false, "application/json", fault},
    {"/api/pause", "POST", false, "application/json", pause_load},
    {"/api/simulation", "POST", false, "application/json", simulate},
    {"/api/policy/*", NULL, false, "text/plain; charset=utf-8", policy},
    {NULL, NULL, false, NULL, NULL},
};

const struct admin_route *demo_routes(void)
{
    return routes;
}
