/* SPDX-License-Identifier: MIT */
#include <becalm/restart.h>

#include <string.h>

#define LINE      64u
#define WORD_BITS 64u

/* All words are relaxed unless a comment says otherwise: none guards other memory. A thread that decides by an old
 * value parks a call that need not wait, or sends one that will be refused; the next probe corrects both. */
static uint64_t word_get(const BECALM_ATOMIC(uint64_t) * word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void word_set(BECALM_ATOMIC(uint64_t) * word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static bool word_swap(BECALM_ATOMIC(uint64_t) * word, uint64_t old, uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(word, &old, value, memory_order_relaxed, memory_order_relaxed);
}

void becalm_restart_defaults(struct becalm_restart_policy *policy)
{
    *policy = (struct becalm_restart_policy){.enabled = true};
}

static size_t words(uint32_t hosts)
{
    return hosts == 0 ? 1 : (hosts + WORD_BITS - 1) / WORD_BITS;
}

size_t becalm_restart_bytes(uint32_t hosts)
{
    return LINE + words(hosts) * sizeof(uint64_t);
}

struct becalm_restart *becalm_restart_init(void *memory, uint32_t hosts)
{
    _Static_assert(sizeof(struct becalm_restart) <= LINE, "the bits of the hosts begin in the next cache line");
    BECALM_ASSERT((uintptr_t)memory % LINE == 0);
    memset(memory, 0, becalm_restart_bytes(hosts));
    struct becalm_restart *restart = memory;
    restart->hosts = hosts == 0 ? 1 : hosts;
    restart->refusing = (void *)((char *)memory + LINE);
    return restart;
}

void becalm_restart_carry(struct becalm_restart *to, const struct becalm_restart *from)
{
    if (to->hosts != from->hosts) {
        return;
    }
    for (size_t i = 0; i < words(to->hosts); i++) {
        word_set(&to->refusing[i], word_get(&from->refusing[i]));
    }
    word_set(&to->probe_at, word_get(&from->probe_at));
    word_set(&to->down_since, word_get(&from->down_since));
}

/* How long a service may refuse until it is gone. */
static becalm_ns patience(becalm_ns timeout)
{
    return becalm_ns_max(BECALM_RESTART_LEAST, becalm_ns_min(timeout, BECALM_RESTART_MOST));
}

enum becalm_restart_state becalm_restart_peek(const struct becalm_restart *restart, becalm_ns timeout, becalm_ns now)
{
    uint64_t since = word_get(&restart->down_since);
    if (since == 0) {
        return BECALM_RESTART_UP;
    }
    return becalm_ns_since(now, since) < patience(timeout) ? BECALM_RESTART_DOWN : BECALM_RESTART_GONE;
}

static uint64_t bit_of(uint32_t host)
{
    return UINT64_C(1) << host % WORD_BITS;
}

/* A target without hosts of its own is its own only host. */
static uint32_t number_of(const struct becalm_restart *restart, uint32_t host)
{
    BECALM_ASSERT(host == BECALM_NO_HOST || host < restart->hosts);
    return host == BECALM_NO_HOST ? 0 : host;
}

static bool is_refusing(const struct becalm_restart *restart, uint32_t host)
{
    return (word_get(&restart->refusing[host / WORD_BITS]) & bit_of(host)) != 0;
}

/* May attempts be sent to this host at all, or would they be but that it refuses? */
static bool is_asked(const struct becalm_restart *restart, const struct becalm_hosts *hosts,
                     const struct becalm_outlier_policy *policy, uint32_t host, becalm_ns now)
{
    return hosts == NULL || is_refusing(restart, host) || becalm_host_usable(hosts, policy, host, now);
}

void becalm_restart_refused(struct becalm_restart *restart, const struct becalm_hosts *hosts,
                            const struct becalm_outlier_policy *policy, uint32_t host, becalm_ns now)
{
    uint32_t number = number_of(restart, host);
    if (!is_refusing(restart, number)) {
        atomic_fetch_or_explicit(&restart->refusing[number / WORD_BITS], bit_of(number), memory_order_relaxed);
    }
    if (word_get(&restart->down_since) != 0) {
        return;
    }
    for (uint32_t i = 0; i < restart->hosts; i++) {
        if (!is_refusing(restart, i) && is_asked(restart, hosts, policy, i, now)) {
            return;
        }
    }
    /* This host has refused just now. The refusals of other hosts are older, and one of them may be back: they are
     * probed at once, beginning with the next in the list. */
    word_set(&restart->turn, (uint64_t)number + 1);
    word_set(&restart->probe_at, restart->hosts > 1 ? now : becalm_ns_after(now, BECALM_RESTART_PROBE));
    word_swap(&restart->down_since, 0, becalm_ns_max(1, now));
}

bool becalm_restart_accepted(struct becalm_restart *restart, uint32_t host)
{
    uint32_t number = number_of(restart, host);
    if (is_refusing(restart, number)) {
        atomic_fetch_and_explicit(&restart->refusing[number / WORD_BITS], ~bit_of(number), memory_order_relaxed);
    }
    return word_get(&restart->down_since) != 0 &&
           atomic_exchange_explicit(&restart->down_since, 0, memory_order_relaxed) != 0;
}

uint32_t becalm_restart_turn(struct becalm_restart *restart, const struct becalm_hosts *hosts,
                             const struct becalm_outlier_policy *policy, becalm_ns now)
{
    if (hosts == NULL || hosts->count == 0) {
        return BECALM_NO_HOST;
    }
    uint64_t turn = atomic_fetch_add_explicit(&restart->turn, 1, memory_order_relaxed);
    uint32_t first = (uint32_t)(turn % restart->hosts);
    for (uint32_t i = 0; i < restart->hosts; i++) {
        uint32_t host = (first + i) % restart->hosts;
        if (is_asked(restart, hosts, policy, host, now)) {
            return host;
        }
    }
    return first;
}

uint64_t becalm_restart_parked(const struct becalm_restart *restart)
{
    return word_get(&restart->parked);
}

/* Lines. */

void becalm_parking_init(struct becalm_parking *line, struct becalm_restart *restart)
{
    *line = (struct becalm_parking){.restart = restart};
}

/* Behind `before`, or in front of all if that is NULL. */
static void berth_link(struct becalm_parking *line, struct becalm_berth *berth, struct becalm_berth *before)
{
    struct becalm_berth *after = before == NULL ? line->first : before->next;
    berth->parking = line;
    berth->previous = before;
    berth->next = after;
    *(before == NULL ? &line->first : &before->next) = berth;
    *(after == NULL ? &line->last : &after->previous) = berth;
}

static void berth_unlink(struct becalm_berth *berth)
{
    struct becalm_parking *line = berth->parking;
    *(berth->previous == NULL ? &line->first : &berth->previous->next) = berth->next;
    *(berth->next == NULL ? &line->last : &berth->next->previous) = berth->previous;
    berth->parking = NULL;
    berth->next = berth->previous = NULL;
    uint64_t had = atomic_fetch_sub_explicit(&line->restart->parked, 1, memory_order_relaxed);
    BECALM_ASSERT(had > 0);
}

bool becalm_parking_enter(struct becalm_parking *line, uint64_t room, becalm_ns now, struct becalm_berth *berth)
{
    BECALM_ASSERT(berth->parking == NULL);
    bool again = berth->parked_at != 0;
    uint64_t others = word_get(&line->restart->parked);
    do { /* counted only if there is room: a call that is refused takes no room from another */
        if (others >= room && !again) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&line->restart->parked, &others, others + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    berth->verdict = BECALM_BERTH_WAITS;
    berth->parked_at = becalm_ns_max(1, now);
    /* From the end: new calls belong there, and calls that were refused again come back in the order in which they were
     * let go. */
    struct becalm_berth *before = line->last;
    while (before != NULL && before->entered_at > berth->entered_at) {
        before = before->previous;
    }
    berth_link(line, berth, before);
    return true;
}

static enum becalm_berth_verdict line_verdict(struct becalm_restart *restart, becalm_ns timeout, becalm_ns now)
{
    switch (becalm_restart_peek(restart, timeout, now)) {
    case BECALM_RESTART_UP:
        return BECALM_BERTH_GO;
    case BECALM_RESTART_DOWN: {
        uint64_t due = word_get(&restart->probe_at); /* one thread wins the swap, and its first in line asks */
        bool asks = now >= due && word_swap(&restart->probe_at, due, becalm_ns_after(now, BECALM_RESTART_PROBE));
        return asks ? BECALM_BERTH_PROBE : BECALM_BERTH_WAITS;
    }
    case BECALM_RESTART_GONE:
        return BECALM_BERTH_END;
    }
    BECALM_UNREACHABLE();
}

struct becalm_berth *becalm_parking_next(struct becalm_parking *line, becalm_ns timeout, becalm_ns now)
{
    struct becalm_berth *berth = line->first;
    if (berth == NULL) {
        return NULL;
    }
    berth->verdict = line_verdict(line->restart, timeout, now);
    if (berth->verdict == BECALM_BERTH_WAITS) {
        return NULL;
    }
    berth_unlink(berth);
    return berth;
}

becalm_ns becalm_parking_wake_at(const struct becalm_parking *line, becalm_ns timeout, becalm_ns now)
{
    if (line->first == NULL) {
        return BECALM_NEVER;
    }
    uint64_t since = word_get(&line->restart->down_since);
    if (since == 0) {
        return now;
    }
    return becalm_ns_min(word_get(&line->restart->probe_at), becalm_ns_after(since, patience(timeout)));
}

void becalm_parking_leave(struct becalm_berth *berth)
{
    if (berth->parking != NULL) {
        berth_unlink(berth);
    }
}
