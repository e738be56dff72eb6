/* SPDX-License-Identifier: MIT */
#include <becalm/losses.h>

#include "flow_internal.h"

#include <string.h>

#define EPOCH_BITS 33u /* 2^33 ns: 8.6 s */
#define EPOCH_MASK UINT64_C(0xffffff)
#define COUNT_MASK UINT64_C(0xfffff)
#define FEW        3u /* losses that say nothing yet */

struct counts {
    uint64_t asked;
    uint64_t lost;
};

/* Older ones count half for each epoch; those of a clock that is ahead as they are. */
static struct counts counts_of(uint64_t word, becalm_ns now)
{
    uint64_t since = ((now >> EPOCH_BITS) - (word >> 40)) & EPOCH_MASK;
    uint64_t halves = since > EPOCH_MASK / 2 ? 0 : since;
    struct counts counts = {word >> 20 & COUNT_MASK, word & COUNT_MASK};
    counts.asked = halves < 20 ? counts.asked >> halves : 0;
    counts.lost = halves < 20 ? counts.lost >> halves : 0;
    return counts;
}

static bool is_idle(uint64_t word, becalm_ns now)
{
    struct counts counts = counts_of(word, now);
    return counts.asked == 0 && counts.lost == 0;
}

static uint64_t plus(uint64_t count, int more)
{
    if (more < 0) {
        return count > 0 ? count - 1 : 0;
    }
    return count + (uint64_t)more < COUNT_MASK ? count + (uint64_t)more : COUNT_MASK;
}

/* Relaxed: each word stands for itself. */
static void count(struct becalm_losses *losses, uint64_t flow, becalm_ns now, int asked, int lost)
{
    struct becalm_flow *place = &losses->flow[becalm__flow_claim(losses->flow, flow, now, is_idle)];
    uint64_t word = atomic_load_explicit(&place->word, memory_order_relaxed);
    uint64_t next;
    do {
        struct counts counts = counts_of(word, now);
        next = (now >> EPOCH_BITS & EPOCH_MASK) << 40 | plus(counts.asked, asked) << 20 | plus(counts.lost, lost);
    } while (
        !atomic_compare_exchange_weak_explicit(&place->word, &word, next, memory_order_relaxed, memory_order_relaxed));
}

void becalm_losses_init(struct becalm_losses *losses)
{
    memset(losses, 0, sizeof *losses);
}

/* Have other clients asked for retries, and is this one of the clients that lost most? */
static bool lost_most(const struct becalm_losses *losses, uint64_t flow, becalm_ns now)
{
    uint32_t place = becalm__flow_find(losses->flow, flow, now, is_idle);
    uint64_t mine = 0;
    uint64_t all = 0;
    uint64_t more = 0;
    bool others = false;
    if (place < BECALM_FLOWS) {
        mine = counts_of(atomic_load_explicit(&losses->flow[place].word, memory_order_relaxed), now).lost;
    }
    for (uint32_t i = 0; i < BECALM_FLOWS; i++) {
        struct counts counts = counts_of(atomic_load_explicit(&losses->flow[i].word, memory_order_relaxed), now);
        others |= i != place && counts.asked > 0;
        all += counts.lost;
        more += counts.lost > mine ? counts.lost : 0;
    }
    return others && mine >= FEW && 2 * more < all;
}

bool becalm_losses_admit(struct becalm_losses *losses, uint64_t flow, becalm_ns now, uint64_t left, uint64_t cap,
                         uint64_t price)
{
    count(losses, flow, now, 1, 0);
    bool upper_half = left >= price && left - price >= cap / 2;
    return upper_half || !lost_most(losses, flow, now);
}

void becalm_losses_take(struct becalm_losses *losses, uint64_t flow, becalm_ns now)
{
    count(losses, flow, now, 0, 1);
}

void becalm_losses_give(struct becalm_losses *losses, uint64_t flow, becalm_ns now)
{
    count(losses, flow, now, 0, -1);
}
