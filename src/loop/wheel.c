/* SPDX-License-Identifier: MIT */
#include "wheel.h"

#include <string.h>

#define TICK BECALM_MS
#define BITS 6u /* of WHEEL_SLOTS */

_Static_assert(1u << BITS == WHEEL_SLOTS, "slots are counted by bits");

/* Beyond the wheel's horizon (12 days) a timer waits in the last slot and is put in again from there. */
#define HORIZON ((UINT64_C(1) << (BITS * WHEEL_LEVELS)) - 1)

void wheel_init(struct wheel *wheel, becalm_ns now)
{
    memset(wheel, 0, sizeof *wheel);
    wheel->tick = now / TICK;
}

void timer_disarm(struct timer *timer)
{
    if (timer->link != NULL) {
        *timer->link = timer->next;
        if (timer->next != NULL) {
            timer->next->link = timer->link;
        }
        timer->link = NULL;
    }
}

/* The level is the highest digit (of 6 bits) in which the time differs from now. */
static void put(struct wheel *wheel, struct timer *timer)
{
    uint64_t tick = timer->at / TICK + (timer->at % TICK != 0);
    tick = tick > wheel->tick ? tick : wheel->tick;
    uint64_t far = tick - wheel->tick;
    tick = far > HORIZON ? wheel->tick + HORIZON : tick;
    uint64_t differs = tick ^ wheel->tick;
    unsigned level = differs == 0 ? 0 : (63u - (unsigned)__builtin_clzll(differs)) / BITS;
    level = level < WHEEL_LEVELS ? level : WHEEL_LEVELS - 1;
    unsigned slot = (unsigned)(tick >> (level * BITS)) % WHEEL_SLOTS;
    struct timer **head = &wheel->slot[level][slot];
    wheel->used[level] |= UINT64_C(1) << slot;
    timer->next = *head;
    timer->link = head;
    if (timer->next != NULL) {
        timer->next->link = &timer->next;
    }
    *head = timer;
}

void wheel_arm(struct wheel *wheel, struct timer *timer, becalm_ns at)
{
    timer_disarm(timer);
    timer->at = at;
    if (at != BECALM_NEVER) {
        put(wheel, timer);
    }
}

/* The first slot at or after `from` on this level that holds a timer; WHEEL_SLOTS: none. Bits of slots that were
 * emptied by disarming are cleared on the way. */
static unsigned first_used(struct wheel *wheel, unsigned level, unsigned from)
{
    for (uint64_t bits; (bits = wheel->used[level] >> from) != 0;) {
        unsigned slot = from + (unsigned)__builtin_ctzll(bits);
        if (wheel->slot[level][slot] != NULL) {
            return slot;
        }
        wheel->used[level] &= ~(UINT64_C(1) << slot);
    }
    return WHEEL_SLOTS;
}

becalm_ns wheel_next(struct wheel *wheel)
{
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        unsigned shift = level * BITS;
        unsigned slot = first_used(wheel, level, (unsigned)(wheel->tick >> shift) % WHEEL_SLOTS);
        if (slot < WHEEL_SLOTS) {
            uint64_t base = wheel->tick >> (shift + BITS) << (shift + BITS);
            uint64_t tick = base + ((uint64_t)slot << shift);
            return (tick > wheel->tick ? tick : wheel->tick) * TICK;
        }
    }
    /* The last level turns round: timers that are still there are due after its end. */
    if (wheel->used[WHEEL_LEVELS - 1] != 0 && first_used(wheel, WHEEL_LEVELS - 1, 0) < WHEEL_SLOTS) {
        return ((wheel->tick | HORIZON) + 1) * TICK;
    }
    return BECALM_NEVER;
}

/* A level's slot has come up: its timers go to finer levels. */
static void cascade(struct wheel *wheel)
{
    for (unsigned level = 1; level < WHEEL_LEVELS; level++) {
        unsigned slot = (unsigned)(wheel->tick >> (level * BITS)) % WHEEL_SLOTS;
        struct timer *timers = wheel->slot[level][slot];
        wheel->slot[level][slot] = NULL;
        wheel->used[level] &= ~(UINT64_C(1) << slot);
        while (timers != NULL) {
            struct timer *timer = timers;
            timers = timer->next;
            put(wheel, timer);
        }
        if (slot != 0) {
            break;
        }
    }
}

static void fire_slot(struct wheel *wheel, unsigned slot)
{
    struct timer *due = wheel->slot[0][slot];
    wheel->slot[0][slot] = NULL;
    wheel->used[0] &= ~(UINT64_C(1) << slot);
    if (due != NULL) {
        due->link = &due; /* a timer that fires may disarm other timers that are due */
    }
    while (due != NULL) {
        struct timer *timer = due;
        timer_disarm(timer);
        timer->fire(timer);
    }
}

void wheel_run(struct wheel *wheel, becalm_ns now)
{
    uint64_t until = now / TICK;
    while (wheel->tick <= until) {
        unsigned slot = (unsigned)(wheel->tick % WHEEL_SLOTS);
        unsigned next = first_used(wheel, 0, slot);
        uint64_t turn = wheel->tick - slot + WHEEL_SLOTS; /* where the next coarser slot comes up */
        uint64_t tick = wheel->tick - slot + next;        /* none used: the same */
        if (tick > until) {
            wheel->tick = until + 1;
        } else if (next == WHEEL_SLOTS) {
            wheel->tick = turn;
        } else {
            wheel->tick = tick + 1; /* timers that are armed from now on fire later */
            fire_slot(wheel, next);
        }
        if (wheel->tick == turn) {
            cascade(wheel);
        }
    }
}
