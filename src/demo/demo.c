/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "demo.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_YET UINT32_MAX

static void arm_in(struct demo *demo, struct timer *timer, becalm_ns wait)
{
    wheel_arm(&demo->loop.wheel, timer, becalm_ns_after(demo->loop.now, wait));
}

/* ---- hurting and healing ---- */

static void change(struct demo *demo, enum service_fault fault)
{
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        service_hurt(&demo->lane[i].service[LANE_LAST], fault);
    }
    demo->change[demo->changes++ % DEMO_CHANGES_MAX] = (struct demo_change){demo->ticks, demo->loop.now, fault};
    if (fault == SERVICE_HEALTHY) {
        demo->storm.healed = demo->storm.hurt == NOT_YET ? NOT_YET : demo->ticks;
    } else {
        demo->storm = (struct demo_storm){demo->ticks, NOT_YET, {NOT_YET, NOT_YET}, {0, 0}};
    }
    demo->fault = fault;
}

void demo_hurt(struct demo *demo, enum service_fault fault)
{
    demo->scripted = false;
    timer_disarm(&demo->script);
    if (fault != demo->fault) {
        change(demo, fault);
    }
}

/* ---- a pause, which is how operators end what does not end by itself ---- */

static void pause_set(struct demo *demo, bool paused)
{
    demo->paused = paused;
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        load_pause(&demo->lane[i].load, paused);
    }
}

static void pause_over(struct timer *timer)
{
    pause_set((struct demo *)((char *)timer - offsetof(struct demo, pause)), false);
}

void demo_pause(struct demo *demo)
{
    pause_set(demo, true);
    arm_in(demo, &demo->pause, DEMO_PAUSE);
}

/* ---- the script: hurt, heal, and before the next fault stop the users, for not every lane is back by then ---- */

static void script_go_on(struct timer *timer)
{
    struct demo *demo = (struct demo *)((char *)timer - offsetof(struct demo, script));
    const struct demo_script *script = &demo->options.script;
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
        arm_in(demo, timer, 2 * DEMO_PAUSE);
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

/* Is this lane itself again, and how bad was it? */
static void storm_note(struct demo *demo, uint32_t kind)
{
    struct demo_storm *storm = &demo->storm;
    const struct lane *lane = &demo->lane[kind];
    if (storm->hurt == NOT_YET || demo->ticks < storm->hurt + DEMO_STEADY) {
        return;
    }
    uint32_t from = demo->ticks - DEMO_STEADY;
    uint64_t factor = lane_factor_milli(lane, from, demo->ticks);
    storm->peak_milli[kind] = factor > storm->peak_milli[kind] ? factor : storm->peak_milli[kind];
    if (storm->healed != NOT_YET && storm->recovered[kind] == NOT_YET && from >= storm->healed &&
        lane_success_ppm(lane, from, demo->ticks) >= DEMO_RECOVERED) {
        storm->recovered[kind] = from;
    }
}

static void tick(struct timer *timer)
{
    struct demo *demo = (struct demo *)((char *)timer - offsetof(struct demo, tick));
    demo->ticks++;
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        lane_tick(&demo->lane[i]);
        storm_note(demo, i);
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

bool demo_rehearse(struct demo *demo)
{
    struct rehearsal_plan plan = {.seconds = (uint32_t)(demo->ticks * LANE_TICK / BECALM_S)};
    bool running = demo->rehearsal != NULL && !rehearsal_done(demo->rehearsal);
    if (running || plan.seconds == 0) {
        return false;
    }
    plan.seconds = plan.seconds < REHEARSAL_SECONDS_MAX ? plan.seconds : REHEARSAL_SECONDS_MAX;
    demo->rehearsed_from = demo->ticks - (uint32_t)(plan.seconds * BECALM_S / LANE_TICK);
    plan_faults(demo, demo->begun_at + demo->rehearsed_from * LANE_TICK, &plan);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        plan.policy[i] = demo->lane[i].policy;
    }
    rehearsal_free(demo->rehearsal);
    demo->rehearsal = rehearsal_begin(&plan, &demo->loop);
    return demo->rehearsal != NULL;
}

/* ---- beginning and end ---- */

static void woken(struct loop *loop)
{
    (void)loop; /* a rehearsal is done: whoever asks next will see it */
}

static void stop_now(struct source *source, uint32_t events)
{
    struct demo *demo = (struct demo *)((char *)source - offsetof(struct demo, stop));
    (void)events;
    demo->loop.stop = true;
}

static void end_now(struct timer *timer)
{
    struct demo *demo = (struct demo *)((char *)timer - offsetof(struct demo, end));
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
    demo->storm.hurt = demo->storm.healed = NOT_YET;
    demo->stop = (struct source){.ready = stop_now, .fd = options->stop_fd};
    demo->tick.fire = tick;
    demo->script.fire = script_go_on;
    demo->pause.fire = pause_over;
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
    loop_run(&demo->loop); /* frees what is buried */
    loop_close(&demo->loop);
    free(demo);
}
