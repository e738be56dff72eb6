/* SPDX-License-Identifier: MIT */
#include "storm.h"

const char *storm_word(enum storm_state state)
{
    static const char *const words[] = {
#define STORM_ROW(id, word) word,
        STORM_STATES(STORM_ROW)
#undef STORM_ROW
    };
    return words[state];
}

void storm_init(struct storm *storm)
{
    *storm =
        (struct storm){.hurt = STORM_NOT_YET, .healed = STORM_NOT_YET, .stopped = STORM_NOT_YET, .has_users = true};
    for (uint32_t i = 0; i < STORM_LANES_MAX; i++) {
        storm->lane[i] = (struct storm_lane){.success = STORM_UNKNOWN, .recovered = STORM_NOT_YET};
    }
}

void storm_hurt(struct storm *storm, uint32_t tick)
{
    uint32_t resumed = storm->resumed;
    bool has_users = storm->has_users;
    storm_init(storm);
    storm->hurt = tick;
    storm->resumed = resumed;
    storm->has_users = has_users;
}

void storm_heal(struct storm *storm, uint32_t tick)
{
    if (storm->hurt != STORM_NOT_YET) {
        storm->healed = tick;
        storm->stopped = storm->has_users ? STORM_NOT_YET : tick;
    }
}

void storm_stop(struct storm *storm, uint32_t tick)
{
    storm->has_users = false;
    if (storm->healed != STORM_NOT_YET && storm->stopped == STORM_NOT_YET) {
        storm->stopped = tick;
    }
}

void storm_resume(struct storm *storm, uint32_t tick)
{
    storm->has_users = true;
    storm->resumed = tick;
}

/* Did all users call since then, without a pause? Calls that ended around a pause prove nothing. */
static bool has_users_since(const struct storm *storm, uint32_t tick)
{
    return storm->has_users && tick >= storm->resumed;
}

/* With users there, a lane in which no call ends is one in which all of them wait. */
void storm_note(struct storm *storm, uint32_t index, uint32_t tick, uint32_t success_ppm)
{
    struct storm_lane *lane = &storm->lane[index];
    uint32_t from = tick < STORM_STEADY ? 0 : tick - STORM_STEADY;
    lane->success = success_ppm;
    if (storm->hurt == STORM_NOT_YET || from < storm->hurt || !has_users_since(storm, from)) {
        return;
    }
    uint32_t success = success_ppm == STORM_UNKNOWN ? 0 : success_ppm;
    if (lane->recovered != STORM_NOT_YET) {
        if (success < STORM_DOWN_PPM) {
            lane->struck = true;
            lane->recovered = STORM_NOT_YET;
        }
    } else if (success < STORM_BACK_PPM) {
        lane->struck = true;
    } else if (storm->healed != STORM_NOT_YET && from >= storm->healed) {
        lane->recovered = from;
    }
}

enum storm_state storm_state(const struct storm *storm, uint32_t index, uint32_t tick)
{
    const struct storm_lane *lane = &storm->lane[index];
    if (storm->hurt == STORM_NOT_YET) {
        return STORM_CALM;
    }
    if (storm->healed == STORM_NOT_YET) {
        return STORM_HURT;
    }
    if (lane->recovered != STORM_NOT_YET) {
        return lane->struck ? STORM_BACK : STORM_UNHARMED;
    }
    uint32_t since = storm->resumed > storm->healed ? storm->resumed : storm->healed;
    if (!storm->has_users) {
        return STORM_STOPPED;
    }
    if (tick < since + STORM_STEADY) {
        return STORM_HEALED;
    }
    return lane->success != STORM_UNKNOWN && lane->success >= STORM_DOWN_PPM ? STORM_RECOVERING : STORM_DOWN;
}

bool storm_was_stopped(const struct storm *storm, uint32_t index)
{
    return storm->stopped != STORM_NOT_YET && storm->lane[index].recovered != STORM_NOT_YET &&
           storm->lane[index].recovered >= storm->stopped;
}
