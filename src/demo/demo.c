/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "demo.h"

#include "container.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void arm_in(struct demo *demo, struct timer *timer, becalm_ns wait)
{
    wheel_arm(&demo->loop.wheel, timer, becalm_ns_after(demo->loop.now, wait));
}

/* ---- hurting and healing ---- */

/* Requests for each call are counted from the fault on; in a lane that is still down, from the fault that brought it
 * there, for it is still at the calls of that time. */
static void change(struct demo *demo, enum service_fault fault)
{
    demo->change[demo->changes++ % DEMO_CHANGES_MAX] = (struct demo_change){demo->ticks, demo->loop.now, fault};
    demo->fault = fault;
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        struct lane *lane = &demo->lane[i];
        service_hurt(&lane->service[LANE_LAST], fault);
        if (fault != SERVICE_HEALTHY) {
            if (demo->storm.hurt == STORM_NOT_YET || demo->storm.lane[i].recovered != STORM_NOT_YET) {
                lane_factor_anew(lane);
            }
            lane_refusals_anew(lane);
            demo->peak_milli[i] = 0;
        }
    }
    if (fault == SERVICE_HEALTHY) {
        storm_heal(&demo->storm, demo->ticks);
    } else {
        storm_hurt(&demo->storm, demo->ticks);
        pace_anew(&demo->pace);
    }
}

void demo_hurt(struct demo *demo, enum service_fault fault)
{
    demo->scripted = false;
    timer_disarm(&demo->script);
    if (fault != demo->fault) {
        change(demo, fault);
    }
}

/* ---- a pause: operators stop all traffic to end a storm that does not end by itself ---- */

static void pause_set(struct demo *demo, bool paused)
{
    demo->paused = paused;
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        load_pause(&demo->lane[i].load, paused);
    }
}

uint32_t demo_holds(const struct demo *demo)
{
    uint32_t holds = 0;
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        holds += lane_holds(&demo->lane[i]);
    }
    return holds;
}

void demo_pause(struct demo *demo)
{
    if (!demo->paused) {
        pause_set(demo, true);
        storm_stop(&demo->storm, demo->ticks);
        demo->quiet_at = BECALM_NEVER;
        demo->pause[demo->pauses++ % DEMO_PAUSES_MAX] = (struct demo_pause_time){demo->loop.now, BECALM_NEVER};
    }
}

/* Retries outlive their users: those of the outermost hop are still to come when the innermost ones have ended. So it
 * is over when nothing is left of them, in either lane. */
static void pause_look(struct demo *demo)
{
    struct demo_pause_time *pause = &demo->pause[(demo->pauses - 1) % DEMO_PAUSES_MAX];
    becalm_ns now = demo->loop.now;
    if (demo_holds(demo) > 0) {
        demo->quiet_at = BECALM_NEVER;
    } else if (demo->quiet_at == BECALM_NEVER) {
        demo->quiet_at = now;
    }
    if (now >= becalm_ns_after(demo->quiet_at, DEMO_QUIET) || now >= becalm_ns_after(pause->at, DEMO_PAUSE_MAX)) {
        pause->end = now;
        pause_set(demo, false);
        storm_resume(&demo->storm, demo->ticks);
    }
}

/* ---- the script: hurt, heal, and before the next fault stop the users, for not every lane is back by then ---- */

static void script_go_on(struct timer *timer)
{
    struct demo *demo = CONTAINER_OF(timer, struct demo, script);
    const struct demo_script *script = &demo->options.script;
    if (demo->paused) { /* the pause lasts longer than usual: a fault without users would show nothing */
        arm_in(demo, timer, BECALM_S);
        return;
    }
    uint32_t step = demo->step++;
    if (step == 3 * script->count - 1) {
        demo->scripted = false;
        demo->loop.stop = demo->options.ends_with_script;
    } else if (step % 3 == 0) {
        change(demo, script->fault[step / 3]);
        arm_in(demo, timer, script->hurt_for);
    } else if (step % 3 == 1) {
        change(demo, SERVICE_HEALTHY);
        arm_in(demo, timer, script->healed_for);
    } else {
        demo_pause(demo);
        arm_in(demo, timer, DEMO_REST);
    }
}

bool demo_next(const struct demo *demo, enum service_fault *fault, becalm_ns *wait)
{
    uint32_t kind = demo->step % 3;
    bool known = demo->scripted && timer_armed(&demo->script) && kind != 2;
    if (known) {
        *fault = kind == 0 ? demo->options.script.fault[demo->step / 3] : SERVICE_HEALTHY;
        *wait = becalm_ns_left(demo->loop.now, demo->script.at);
    }
    return known;
}

/* ---- ticks ---- */

/* Is this lane itself again, and how bad was it? Of the first few calls of a storm nothing is to be said yet. */
static void storm_look(struct demo *demo, uint32_t kind)
{
    struct lane *lane = &demo->lane[kind];
    uint32_t from = demo->ticks > STORM_STEADY ? demo->ticks - STORM_STEADY : 0;
    bool was_back = demo->storm.lane[kind].recovered != STORM_NOT_YET;
    storm_note(&demo->storm, kind, demo->ticks, lane_success_ppm(lane, from, demo->ticks));
    bool is_back = demo->storm.lane[kind].recovered != STORM_NOT_YET;
    if (is_back && !was_back) {
        lane_factor_anew(lane);
    }
    uint32_t factor = lane_factor_milli(lane);
    if (!is_back && demo->storm.hurt != STORM_NOT_YET && from >= demo->storm.hurt && factor != LANE_UNKNOWN &&
        factor > demo->peak_milli[kind]) {
        demo->peak_milli[kind] = factor;
    }
}

/* Beats that were missed are not made up for: how late this one is tells of them. */
static void beat(struct timer *timer)
{
    struct demo *demo = CONTAINER_OF(timer, struct demo, beat);
    pace_beat(&demo->pace, becalm_ns_since(demo->loop.now, timer->at));
    arm_in(demo, timer, PACE_BEAT);
}

static void tick(struct timer *timer)
{
    struct demo *demo = CONTAINER_OF(timer, struct demo, tick);
    demo->ticks++;
    pace_tick(&demo->pace);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        lane_tick(&demo->lane[i]);
        storm_look(demo, i);
    }
    if (demo->paused) {
        pause_look(demo);
    }
    becalm_ns next = demo->begun_at + (demo->ticks + 1) * LANE_TICK;
    wheel_arm(&demo->loop.wheel, timer, next);
    if (demo->options.ticked != NULL && !demo->options.ticked(demo->options.self, demo)) {
        demo->loop.stop = true;
    }
}

/* ---- the rehearsal ---- */

/* The first change whose fault was still there in this tick, or the oldest that is known. */
static uint32_t first_change(const struct demo *demo, becalm_ns from)
{
    uint32_t at = demo->changes > DEMO_CHANGES_MAX ? demo->changes - DEMO_CHANGES_MAX : 0;
    while (at + 1 < demo->changes && demo->change[(at + 1) % DEMO_CHANGES_MAX].at <= from) {
        at++;
    }
    return at;
}

static void plan_faults(const struct demo *demo, becalm_ns from, struct rehearsal_plan *plan)
{
    for (uint32_t i = first_change(demo, from); i < demo->changes && plan->fault_count < REHEARSAL_FAULTS_MAX; i++) {
        const struct demo_change *one = &demo->change[i % DEMO_CHANGES_MAX];
        becalm_ns end = i + 1 < demo->changes ? demo->change[(i + 1) % DEMO_CHANGES_MAX].at : BECALM_NEVER;
        becalm_ns last = from + plan->seconds * BECALM_S;
        struct rehearsal_fault fault = {.fault = one->fault, .at = becalm_ns_since(one->at, from)};
        fault.length = becalm_ns_since(becalm_ns_min(end, last), from + fault.at);
        plan->fault[plan->fault_count++] = fault;
    }
}

static void plan_pauses(const struct demo *demo, becalm_ns from, struct rehearsal_plan *plan)
{
    becalm_ns last = from + plan->seconds * BECALM_S;
    uint32_t first = demo->pauses > DEMO_PAUSES_MAX ? demo->pauses - DEMO_PAUSES_MAX : 0;
    for (uint32_t i = first; i < demo->pauses && plan->pause_count < REHEARSAL_PAUSES_MAX; i++) {
        const struct demo_pause_time *one = &demo->pause[i % DEMO_PAUSES_MAX];
        struct rehearsal_pause pause = {.at = becalm_ns_since(one->at, from)};
        pause.length = becalm_ns_since(becalm_ns_min(one->end, last), from + pause.at);
        if (pause.length > 0) {
            plan->pause[plan->pause_count++] = pause;
        }
    }
}

static bool was_healthy(const struct demo *demo, uint32_t tick)
{
    const struct demo_change *at =
        &demo->change[first_change(demo, demo->begun_at + tick * LANE_TICK) % DEMO_CHANGES_MAX];
    return demo->changes == 0 || at->tick > tick || at->fault == SERVICE_HEALTHY;
}

/* A simulated lane begins well, so a real one must have been so then: the start, or any time at which back was healthy
 * and both lanes answered. */
static bool was_well(const struct demo *demo, uint32_t tick)
{
    bool well = tick == 0 || was_healthy(demo, tick);
    for (uint32_t i = 0; i < LANE_COUNT && well && tick > 0; i++) {
        uint32_t from = tick < STORM_STEADY ? 0 : tick - STORM_STEADY;
        uint32_t success = lane_success_ppm(&demo->lane[i], from, tick);
        well = success != LANE_UNKNOWN && success >= STORM_BACK_PPM;
    }
    return well;
}

bool demo_first_well(const struct demo *demo, uint32_t *tick)
{
    uint32_t most = (uint32_t)(REHEARSAL_SECONDS_MAX * BECALM_S / LANE_TICK);
    for (*tick = demo->ticks > most ? demo->ticks - most : 0; *tick < demo->ticks; ++*tick) {
        if (was_well(demo, *tick)) {
            return true;
        }
    }
    return false;
}

const char *demo_rehearse(struct demo *demo)
{
    struct rehearsal_plan plan = {.seconds = 0};
    uint32_t from;
    if (demo->rehearsal != NULL && !rehearsal_done(demo->rehearsal)) {
        return "A simulation is running.";
    }
    if (!demo_first_well(demo, &from)) {
        return "A simulation begins while both lanes are healthy, and they were not within the last ten minutes. Heal "
               "back and stop all users.";
    }
    plan.seconds = (uint32_t)((demo->ticks - from) * LANE_TICK / BECALM_S);
    if (plan.seconds == 0) {
        return "There is nothing to simulate yet.";
    }
    plan_faults(demo, demo->begun_at + from * LANE_TICK, &plan);
    plan_pauses(demo, demo->begun_at + from * LANE_TICK, &plan);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        plan.policy[i] = demo->lane[i].policy;
    }
    rehearsal_free(demo->rehearsal);
    demo->rehearsed_from = from;
    demo->rehearsal = rehearsal_begin(&plan, &demo->loop);
    return demo->rehearsal == NULL ? "There is no memory, or no thread, for a simulation." : NULL;
}

/* ---- beginning and end ---- */

static void woken(struct loop *loop)
{
    (void)loop; /* a rehearsal is done: the next request for the page shows it */
}

static void stop_now(struct source *source, uint32_t events)
{
    struct demo *demo = CONTAINER_OF(source, struct demo, stop);
    (void)events;
    demo->loop.stop = true;
}

static void end_now(struct timer *timer)
{
    struct demo *demo = CONTAINER_OF(timer, struct demo, end);
    demo->loop.stop = true;
}

/* The page's socket is bound here, so that its port may be any; the admin address finds it among those handed over. */
static int page_open(struct demo *demo, struct becalm_diags *diags)
{
    union address_socket address = {.v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    socklen_t length = sizeof address;
    address.v4.sin_port = htons(demo->options.port);
    demo->page_fd = listen_on(&address, false);
    demo->handed = (struct handed){&demo->page_fd, 1};
    if (demo->page_fd < 0 || getsockname(demo->page_fd, &address.any, &length) != 0) {
        return BECALM_EIO;
    }
    address_write(&address, demo->page, sizeof demo->page);
    demo->admin = admin_make(&(struct admin_place){
        .loop = &demo->loop,
        .name = "demo",
        .handed = &demo->handed,
        .routes = demo_routes(),
        .self = demo,
    });
    if (demo->admin == NULL) {
        return BECALM_ENOMEM;
    }
    int rc = admin_prepare(demo->admin, &(struct becalm_settings){.admin = demo->page}, diags);
    admin_settle(demo->admin, rc == 0);
    return rc;
}

static int open_all(struct demo *demo, struct becalm_diags *diags)
{
    int rc = page_open(demo, diags);
    for (uint32_t i = 0; i < LANE_COUNT && rc == 0; i++) {
        rc = lane_open(&demo->lane[i], (enum lane_kind)i, &demo->loop, diags);
    }
    if (rc == 0 && demo->stop.fd >= 0) {
        rc = loop_watch_level(&demo->loop, &demo->stop, false);
    }
    return rc;
}

int demo_make(struct demo **made, const struct demo_options *options, struct becalm_diags *diags)
{
    struct demo *demo = calloc(1, sizeof *demo);
    *made = NULL;
    if (demo == NULL) {
        return BECALM_ENOMEM;
    }
    demo->options = *options;
    demo->page_fd = -1;
    storm_init(&demo->storm);
    demo->stop = (struct source){.ready = stop_now, .fd = options->stop_fd};
    demo->tick.fire = tick;
    demo->beat.fire = beat;
    demo->script.fire = script_go_on;
    demo->end.fire = end_now;
    int rc = loop_init(&demo->loop, woken);
    rc = rc == 0 ? open_all(demo, diags) : rc;
    if (rc != 0) {
        demo_free(demo);
        return rc;
    }
    demo->begun_at = demo->loop.now;
    demo->scripted = options->script.count > 0;
    arm_in(demo, &demo->tick, LANE_TICK);
    arm_in(demo, &demo->beat, PACE_BEAT);
    arm_in(demo, &demo->end, options->length);
    if (demo->scripted) {
        arm_in(demo, &demo->script, options->script.healthy_for);
    }
    *made = demo;
    return 0;
}

void demo_run(struct demo *demo)
{
    loop_run(&demo->loop);
}

void demo_free(struct demo *demo)
{
    if (demo == NULL) {
        return;
    }
    rehearsal_free(demo->rehearsal);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        lane_close(&demo->lane[i]);
    }
    admin_free(demo->admin);
    if (demo->page_fd >= 0) {
        close(demo->page_fd);
    }
    demo->loop.stop = true;
    loop_run(&demo->loop); /* frees the buried sources */
    loop_close(&demo->loop);
    free(demo);
}
