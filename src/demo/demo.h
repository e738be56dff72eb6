/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_H
#define BECALM_DEMO_H

/* The demonstration: two lanes side by side, a script that hurts the last service of both at the same instant, and a
 * page to watch the lanes and to hurt the service by hand. One loop, on the caller's thread, has all services, users
 * and the page; the gateways have threads of their own, as always. Everything is on loopback. */

#include "lane.h"
#include "pace.h"
#include "rehearsal.h"

#include "admin/admin.h"

#define DEMO_CHANGES_MAX 256u
#define DEMO_PAUSES_MAX  64u
#define DEMO_QUIET       (2 * BECALM_S)  /* nothing is on its way any more, for so long: users come back */
#define DEMO_PAUSE_MAX   (60 * BECALM_S) /* or after so long */
#define DEMO_REST        (15 * BECALM_S) /* between two faults of a script: a pause, and some calls */

/* The last service changed. */
struct demo_change {
    uint32_t tick; /* the first one that has it */
    becalm_ns at;
    enum service_fault fault;
};

/* All users were stopped, and came back. */
struct demo_pause_time {
    becalm_ns at;
    becalm_ns end; /* BECALM_NEVER: not yet */
};

/* The faults that are played until the viewer uses the buttons. */
struct demo_script {
    const enum service_fault *fault; /* one after the other, with time to recover between them */
    uint32_t count;
    becalm_ns healthy_for; /* before the first */
    becalm_ns hurt_for;
    becalm_ns healed_for; /* after each */
};

struct demo;

struct demo_options {
    uint16_t port; /* of the page; 0: any that is free */
    struct demo_script script;
    becalm_ns length;      /* the demonstration ends after this time; BECALM_NEVER: it does not end by itself */
    bool ends_with_script; /* likewise */
    int stop_fd;           /* becomes readable: it ends */
    bool (*ticked)(void *self, const struct demo *); /* every LANE_TICK; false: the demonstration ends */
    void *self;
};

struct demo {
    struct loop loop; /* first */
    struct demo_options options;
    struct lane lane[LANE_COUNT];
    struct admin *admin;
    char page[ADDRESS_TEXT_MAX]; /* the page's address */
    int page_fd;                 /* bound to it */
    struct handed handed;
    struct source stop;
    struct timer tick;
    struct timer beat;   /* of the pace */
    struct timer script; /* its next step */
    struct timer end;
    uint32_t step;      /* of the script: 0 is before the first fault */
    bool scripted;      /* the script is being played */
    bool paused;        /* users make no calls, until all calls and requests have ended */
    becalm_ns quiet_at; /* paused: since when no call or request is in progress; BECALM_NEVER: some are */
    becalm_ns begun_at;
    uint32_t ticks;
    enum service_fault fault;
    struct storm storm;
    struct pace pace;
    uint32_t peak_milli[LANE_COUNT];               /* the most that lane_factor_milli() was in it */
    struct demo_change change[DEMO_CHANGES_MAX];   /* a ring */
    uint32_t changes;                              /* ever */
    struct demo_pause_time pause[DEMO_PAUSES_MAX]; /* likewise */
    uint32_t pauses;
    struct rehearsal *rehearsal; /* the latest; NULL: none */
    uint32_t rehearsed_from;     /* the tick that it begins with */
};

/* Opens everything. 0, BECALM_EIO with errno or a diagnostic, BECALM_EPARSE, or BECALM_ENOMEM. */
int demo_make(struct demo **, const struct demo_options *, struct becalm_diags *);
void demo_run(struct demo *); /* until its end */
void demo_free(struct demo *);

/* The actions of the page's buttons. The first use of hurt or heal ends the script. */
void demo_hurt(struct demo *, enum service_fault);
void demo_pause(struct demo *); /* all users stop, until all calls and requests have ended */
/* The calls and requests in progress, in both lanes. */
uint32_t demo_holds(const struct demo *);
/* The script's next fault of the last service, and when it comes. False: there is none, or not soon. */
bool demo_next(const struct demo *, enum service_fault *, becalm_ns *wait);

/* The earliest tick at which both lanes were well, of those that a simulation is long enough for. False: none. */
bool demo_first_well(const struct demo *, uint32_t *tick);
/* Begins there. NULL, or why not. */
const char *demo_rehearse(struct demo *);

/* The pages: demo_page.c. */
const struct admin_route *demo_routes(void);

#endif
