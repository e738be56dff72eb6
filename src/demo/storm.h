/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_STORM_H
#define BECALM_DEMO_STORM_H

/* The effect of the latest fault on each lane, and whether the lane has recovered. Only calls that ended while there
 * were users count. Time is in ticks. */

#include <stdbool.h>
#include <stdint.h>

#define STORM_LANES_MAX 2u
#define STORM_STEADY    4u      /* ticks that are looked at together */
#define STORM_BACK_PPM  950000u /* of the calls that ended in them ended well: a lane is itself */
#define STORM_DOWN_PPM  500000u /* fewer: it is down, or down again */
#define STORM_UNKNOWN   UINT32_MAX
#define STORM_NOT_YET   UINT32_MAX

#define STORM_STATES(X)                      \
    X(STORM_CALM, "calm")                    \
    X(STORM_HURT, "hurt")                    \
    X(STORM_HEALED, "healed") /* just now */ \
    X(STORM_STOPPED, "stopped")              \
    X(STORM_DOWN, "down")                    \
    X(STORM_RECOVERING, "recovering")        \
    X(STORM_BACK, "back")                    \
    X(STORM_UNHARMED, "unharmed")

enum storm_state {
#define STORM_ENUM(id, word) id,
    STORM_STATES(STORM_ENUM)
#undef STORM_ENUM
};

const char *storm_word(enum storm_state);

struct storm_lane {
    bool struck;        /* since the fault began, success was below STORM_BACK_PPM */
    uint32_t success;   /* ppm, as last seen; STORM_UNKNOWN: no call ended */
    uint32_t recovered; /* the first of the STORM_STEADY good ticks after which the lane counts as recovered */
};

struct storm {
    uint32_t hurt;
    uint32_t healed;
    uint32_t stopped; /* users were, at or after healing, for the first time */
    uint32_t resumed; /* users came back from their latest stop, or were there from the start: 0 */
    bool has_users;
    struct storm_lane lane[STORM_LANES_MAX];
};

void storm_init(struct storm *);
void storm_hurt(struct storm *, uint32_t tick);
void storm_heal(struct storm *, uint32_t tick);
void storm_stop(struct storm *, uint32_t tick); /* all users */
void storm_resume(struct storm *, uint32_t tick);

/* How a lane was in the STORM_STEADY ticks before this one. */
void storm_note(struct storm *, uint32_t lane, uint32_t tick, uint32_t success_ppm);

enum storm_state storm_state(const struct storm *, uint32_t lane, uint32_t tick);
/* Is it back only since all users were stopped? */
bool storm_was_stopped(const struct storm *, uint32_t lane);

#endif
