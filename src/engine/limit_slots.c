/* SPDX-License-Identifier: MIT */
#include "apart_internal.h"
#include "limit_internal.h"

/* The limit of a gateway that sees all traffic of a service: the share of slow answers cuts it, unless they are slow by
 * nature. In a queue an answer takes as long as the queue was long at the send; a service that is slow by nature takes
 * as long for the first as for the four-hundredth. So each attempt remembers how many were in flight when it was sent,
 * and a table knows how long answers took by that.
 *
 * The thread that moves the epoch by one in a compare-and-swap of `evidence` has decided a cut, an undo or that the
 * service is slow by nature, and alone writes the words that go with it. */

#define STANDS_MOST BECALM_S /* a queue stands if nothing was alone for a timeout, or for this */

enum {
    JUDGE_AT = 20,      /* notes that are enough for a cut */
    HALVE_AT = 40,      /* notes after which old ones count half */
    QUICK_PART = 12,    /* of the timeout: while an answer was quick so lately, not all of them queue */
    BRISK_PART = 16,    /* of the timeout: an answer within it leaves room for four times as many */
    ROW_HALVES_AT = 32, /* notes of a row */
    ROWS_APART = 2,     /* a quarter as many in flight, or fewer, tell how long an answer takes without a queue, */
    NATURAL_NOTES = 3,  /* and so many answers are enough */
    FEW_ROW = 3,        /* fewer than 16 were in flight: lower rows may tell nothing; after a cut, the higher ones do */
    FLAT_ROW = 5,       /* fewer than 64 were: half as many must tell, because a quarter of them are too few answers */
    VAIN_NOTES = 8,     /* so many answers with fewer in flight, and with more, can be compared */
    USUAL_KNOWN = 4,    /* samples: with fewer the usual latency is not known, */
    USUAL_SURE = 16     /* and with fewer than these nothing makes it longer */
};

/* `evidence`, unpacked. */
struct evidence {
    uint32_t epoch;
    uint32_t run;    /* timeouts since the last success */
    uint32_t notes;  /* in this epoch, old ones halved away; below HALVE_AT */
    uint32_t slow;   /* of these, timeouts included */
    uint32_t late;   /* of these, timeouts and given up */
    uint32_t series; /* 1: the last judgement was a cut */
    uint32_t row;    /* about the median row of the slow answers among the notes */
};

static struct evidence evidence_unpack(uint64_t word)
{
    struct evidence e = {
        .epoch = (uint32_t)(word & BECALM__EPOCH_MASK),
        .run = becalm__evidence_run(word),
        .notes = (uint32_t)(word >> 32 & 0xff),
        .slow = (uint32_t)(word >> 40 & 0xff),
        .late = (uint32_t)(word >> 48 & 0xff),
        .series = (uint32_t)(word >> 56 & 1),
        .row = (uint32_t)(word >> 57 & 0x1f),
    };
    return e;
}

static uint64_t evidence_pack(const struct evidence *e)
{
    return (uint64_t)e->epoch | (uint64_t)e->run << 16 | (uint64_t)e->notes << 32 | (uint64_t)e->slow << 40 |
           (uint64_t)e->late << 48 | (uint64_t)e->series << 56 | (uint64_t)e->row << 57;
}

static void evidence_restart(struct evidence *e)
{
    e->epoch = (e->epoch + 1) & BECALM__EPOCH_MASK;
    e->notes = 0;
    e->slow = 0;
    e->late = 0;
    e->row = 0;
}

/* One note, with the values that the rules need. */
struct sample {
    enum becalm_evidence kind;
    becalm_ns now;
    becalm_ns sent_at;
    becalm_ns timeout;
    uint64_t latency; /* us */
    uint32_t epoch;
    uint32_t row; /* of the table */
    bool bad;     /* timed out, or took longer than a quarter of its timeout and than usual */
    bool late;    /* timed out or given up: it has no latency */
};

enum ruling { RULING_NONE, RULING_HALVE, RULING_CUT, RULING_UNDO, RULING_NATURAL };

/* The consequence of one note. */
struct judgement {
    enum ruling ruling;
    bool counted;      /* among the notes of its epoch */
    bool series;       /* the judgement before was a cut too */
    bool answers;      /* fewer than half of the notes are late */
    uint64_t mean;     /* latency of the answered notes, this one included, us; 0: none was answered */
    uint32_t answered; /* how many that were */
    uint32_t run;      /* timeouts in a row now */
    uint32_t median;   /* row of the slow answers */
    uint32_t row;      /* that, or the row of this answer if it is higher */
};

/* A row of the table, unpacked: answers of attempts that were sent when about so many were in flight. */
struct row {
    uint64_t sum; /* of their latencies, us */
    uint32_t notes;
    uint32_t slow;
};

static struct row row_unpack(uint64_t word)
{
    return (struct row){.sum = word >> 16, .slow = (uint32_t)(word >> 8 & 0xff), .notes = (uint32_t)(word & 0xff)};
}

static uint64_t row_pack(const struct row *row)
{
    uint64_t most = UINT64_MAX >> 16;
    return (row->sum < most ? row->sum : most) << 16 | (uint64_t)row->slow << 8 | row->notes;
}

/* A quick answer changes nothing in a row without notes, nor in one that is full of quick ones. */
static inline bool row_rests(uint64_t word)
{
    return (word & 0xffff) == 0 || (word & 0xffff) == ROW_HALVES_AT - 1;
}

static void row_note(struct becalm_limit *limit, const struct sample *s)
{
    _Atomic(uint64_t) *at = &limit->among[s->row];
    uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
    uint64_t next;
    do {
        struct row row = row_unpack(word);
        row.sum += s->latency;
        row.notes += 1;
        row.slow += s->bad;
        if (row.notes >= ROW_HALVES_AT) {
            row = (struct row){.sum = row.sum / 2, .notes = row.notes / 2, .slow = row.slow / 2};
        }
        next = row_pack(&row);
    } while (!atomic_compare_exchange_weak_explicit(at, &word, next, memory_order_relaxed, memory_order_relaxed));
}

static void rows_clear(struct becalm_limit *limit)
{
    for (uint32_t i = 0; i < BECALM_AMONG; i++) {
        atomic_store_explicit(&limit->among[i], 0, memory_order_relaxed);
    }
}

static void row_sum(struct row *all, const struct row *row)
{
    all->sum += row->sum;
    all->notes += row->notes;
    all->slow += row->slow;
}

/* Did answers take about as long when far fewer were in flight? The answer that is judged last may be one that was sent
 * when few were in flight, so the row of most slow answers says what "far fewer" is. */
static bool is_as_slow_with_far_fewer(const struct becalm_limit *limit, const struct judgement *j)
{
    struct row all = {.sum = 0};
    for (uint32_t i = 0; i + ROWS_APART <= j->row; i++) {
        struct row row = row_unpack(atomic_load_explicit(&limit->among[i], memory_order_relaxed));
        row_sum(&all, &row);
    }
    return all.notes >= NATURAL_NOTES && 2 * all.slow >= all.notes && 3 * (all.sum / all.notes) >= 2 * j->mean;
}

static bool row_is_slow(const struct row *all, uint32_t notes)
{
    return all->notes >= notes && 4 * all->slow >= 3 * all->notes;
}

/* Do the rows below this one, and the others, each have so many answers, mostly slow, and did the lower ones take as
 * long as the higher ones? In a queue they would take half as long with half as many. Rows go by the number in flight
 * at the send, so a queue that grew since is no excuse. */
static bool rows_are_flat(const struct becalm_limit *limit, uint32_t from, uint32_t notes)
{
    struct row fewer = {.sum = 0};
    struct row more = {.sum = 0};
    for (uint32_t i = 0; i < BECALM_AMONG; i++) {
        struct row row = row_unpack(atomic_load_explicit(&limit->among[i], memory_order_relaxed));
        row_sum(i < from ? &fewer : &more, &row);
    }
    return row_is_slow(&fewer, notes) && row_is_slow(&more, notes) &&
           6 * (fewer.sum / fewer.notes) >= 5 * (more.sum / more.notes);
}

/* A service that a few clients call for the first time has hardly any answers with a quarter as many in flight. Once
 * the usual latency is known, longer answers are a change, and in a series the cut has to be taken back as well, which
 * cut_was_in_vain() decides. */
static bool is_natural(const struct becalm_limit *limit, const struct judgement *j)
{
    bool begins = !j->series && j->row <= FLAT_ROW && becalm__usual(limit).samples < USUAL_KNOWN;
    return is_as_slow_with_far_fewer(limit, j) || (begins && rows_are_flat(limit, j->median, NATURAL_NOTES));
}

/* After a cut fewer are in flight. Did answers take as long as with more? */
static bool cut_was_in_vain(const struct becalm_limit *limit, const struct judgement *j)
{
    return rows_are_flat(limit, j->median + 1, VAIN_NOTES);
}

/* Would this note change nothing that matters? The state is that of a healthy service, and this note is one more of the
 * same. Such a state stays one note below HALVE_AT; 41 slow answers make a cut from there, 40 after a halving. */
static inline bool sample_is_calm(const struct becalm_limit *limit, const struct sample *s)
{
    if (s->bad) {
        return false;
    }
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    const struct evidence rest = {.epoch = s->epoch, .notes = HALVE_AT - 1};
    if (word == evidence_pack(&rest)) {
        return atomic_load_explicit(&limit->reference, memory_order_relaxed) == 0;
    }
    struct evidence e = evidence_unpack(word);
    return (e.run == 0 || s->kind == BECALM_EVIDENCE_ANSWER) && e.epoch != s->epoch;
}

/* Nothing was in flight, and so nothing in line, when this attempt was sent: no queue stood then. With a limit of one
 * slot each attempt is alone, and others may wait for that slot. */
static void alone_note(struct becalm_limit *limit, const struct becalm_slot *slot)
{
    if (slot->beside == 0 && slot->sent_at > atomic_load_explicit(&limit->alone_at, memory_order_relaxed) &&
        atomic_load_explicit(&limit->units, memory_order_relaxed) >= 2 * becalm__units_per_slot(BECALM_LIMIT_SLOTS)) {
        atomic_store_explicit(&limit->alone_at, slot->sent_at, memory_order_relaxed);
    }
}

/* A burst makes a queue, too, but one that goes by itself. */
static bool queue_stands(const struct becalm_limit *limit, const struct sample *s)
{
    return becalm_ns_since(s->now, atomic_load_explicit(&limit->alone_at, memory_order_relaxed)) >
           becalm_ns_min(s->timeout, STANDS_MOST);
}

/* Three quarters are slow. */
static enum ruling slow_rule(const struct becalm_limit *limit, const struct sample *s, const struct judgement *j)
{
    becalm_ns quick_at = atomic_load_explicit(&limit->quick_at, memory_order_relaxed);
    if (j->answers && becalm_ns_since(s->now, quick_at) <= s->timeout / QUICK_PART) {
        return RULING_NONE; /* a queue would have delayed that one, too */
    }
    if (j->answers && is_natural(limit, j)) {
        return RULING_NATURAL;
    }
    if (j->answers && !queue_stands(limit, s)) {
        return RULING_NONE;
    }
    if (j->answers && j->series && j->median <= FEW_ROW && cut_was_in_vain(limit, j)) {
        return RULING_UNDO;
    }
    uint64_t previous = atomic_load_explicit(&limit->previous, memory_order_relaxed);
    return j->answers && previous > 0 && 4 * j->mean > 3 * previous ? RULING_UNDO : RULING_CUT;
}

/* The median row, near enough: one step towards the row of each slow answer. A late one has no latency, and ghosts
 * count in its row. */
static uint32_t evidence_row(const struct evidence *e, const struct sample *s)
{
    if (!s->bad || s->late) {
        return e->row;
    }
    return e->slow == 1 ? s->row : e->row + (s->row > e->row) - (s->row < e->row);
}

/* Adds the sample to `e` and rules on the notes of the epoch. Writes nothing shared: it is retried until it fits. */
static void evidence_judge(const struct becalm_limit *limit, const struct sample *s, struct evidence *e,
                           struct judgement *j)
{
    e->notes += 1;
    e->slow += s->bad;
    e->late += s->late;
    e->row = evidence_row(e, s);
    j->median = e->row;
    j->row = s->row > e->row ? s->row : e->row;
    j->counted = true;
    j->series = e->series != 0;
    j->answered = e->notes - e->late;
    j->answers = 2 * e->late < e->notes;
    uint64_t sum = atomic_load_explicit(&limit->latency, memory_order_relaxed) + s->latency;
    j->mean = j->answered > 0 ? sum / j->answered : 0;
    if (e->notes >= JUDGE_AT && 4 * e->slow >= 3 * e->notes) {
        j->ruling = slow_rule(limit, s, j);
    }
    if (j->ruling != RULING_NONE) {
        e->series = j->ruling == RULING_CUT;
        evidence_restart(e);
    } else if (e->notes >= HALVE_AT) {
        j->ruling = RULING_HALVE;
        e->series = 0;
        e->notes /= 2;
        e->slow /= 2;
        e->late /= 2;
        e->row = e->slow > 0 ? e->row : 0; /* so that a healthy service comes to rest */
    }
}

static void evidence_add(struct becalm_limit *limit, const struct sample *s, struct judgement *j)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    uint64_t next;
    do {
        struct evidence e = evidence_unpack(word);
        *j = (struct judgement){.ruling = RULING_NONE};
        e.run = becalm__run_after(e.run, s->kind);
        j->run = e.run;
        if (e.epoch == s->epoch) {
            evidence_judge(limit, s, &e, j);
        }
        next = evidence_pack(&e);
    } while (!atomic_compare_exchange_weak_explicit(&limit->evidence, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* The sum goes down with the notes. By compare-and-swap, because a subtraction could take more than a cut has left. */
static void latency_halve(struct becalm_limit *limit, uint64_t latency)
{
    uint64_t sum = atomic_load_explicit(&limit->latency, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&limit->latency, &sum, (sum + latency) / 2, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* How many slots were in use: by the number in flight now, and by the number when the slow attempt was sent, in whole
 * rows. If callers have stopped since, only the longest answers are left, and their small number says nothing. Late
 * answers have left ghosts, which a row counts: then only the number in flight now is reliable. */
static uint64_t slots_used(const struct becalm_limit *limit, const struct sample *s, const struct judgement *j)
{
    uint64_t now = becalm__in_flight_with(limit);
    uint64_t sent = UINT64_C(1) << s->row;
    return j->answers && sent > now ? sent : now;
}

/* The first cut of a series has nothing to compare with, so the latency is kept from the second one on, together with
 * the limit of two cuts ago, to which an undo goes back. */
static void cut_in_series(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s,
                          const struct judgement *j)
{
    uint64_t per = becalm__units_per_slot(policy->kind);
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t slots = slots_used(limit, s, j);
    uint64_t used = per * slots;
    uint64_t previous = j->series ? j->mean : 0;
    uint64_t one = atomic_load_explicit(&limit->undo_one, memory_order_relaxed);
    atomic_store_explicit(&limit->previous, previous, memory_order_relaxed);
    atomic_store_explicit(&limit->undo_two, previous > 0 ? one : 0, memory_order_relaxed);
    atomic_store_explicit(&limit->undo_one, units < used ? units : used, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->last_cut_at, s->now, memory_order_relaxed);
    becalm__units_cut(limit, policy, slots);
}

/* One or two cuts did not shorten the answers: they are not late because they queue. */
static void undo_cuts(struct becalm_limit *limit, const struct judgement *j)
{
    bool two = atomic_load_explicit(&limit->previous, memory_order_relaxed) > 0;
    const _Atomic(uint64_t) *before = two ? &limit->undo_two : &limit->undo_one;
    atomic_store_explicit(&limit->units, atomic_load_explicit(before, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&limit->reference, j->mean, memory_order_relaxed);
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
}

/* Answers took as long with a quarter as many in flight: nothing queues, and the limit is right as it is. */
static void natural_note(struct becalm_limit *limit, const struct judgement *j)
{
    rows_clear(limit);
    atomic_store_explicit(&limit->reference, j->mean, memory_order_relaxed);
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
}

/* Too few answers were slow: a series of cuts, if there was one, is over. */
static void halve_notes(struct becalm_limit *limit, const struct sample *s, const struct judgement *j)
{
    uint64_t reference = atomic_load_explicit(&limit->reference, memory_order_relaxed);
    if (j->answered > 0 && 2 * j->mean < reference) {
        atomic_store_explicit(&limit->reference, 0, memory_order_relaxed); /* the service is not slow any more */
    }
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    latency_halve(limit, s->latency);
}

static void judgement_do(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s,
                         const struct judgement *j)
{
    switch (j->ruling) {
    case RULING_NONE:
        if (j->counted && s->latency > 0) {
            atomic_fetch_add_explicit(&limit->latency, s->latency, memory_order_relaxed);
        }
        return;
    case RULING_HALVE:
        halve_notes(limit, s, j);
        return;
    case RULING_CUT:
        cut_in_series(limit, policy, s, j);
        return;
    case RULING_UNDO:
        undo_cuts(limit, j);
        return;
    case RULING_NATURAL:
        natural_note(limit, j);
        return;
    }
    BECALM_UNREACHABLE();
}

static void evidence_drop(struct becalm_limit *limit)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    uint64_t next;
    do {
        struct evidence e = evidence_unpack(word);
        e.series = 0;
        evidence_restart(&e);
        next = evidence_pack(&e);
    } while (!atomic_compare_exchange_weak_explicit(&limit->evidence, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
}

/* Was it sent before the last two cuts? These were for everything in flight, and its timeout is no news: with a long
 * timeout, the attempts left over from one hang would cut to one slot, twice a second, when all is well again. */
static bool is_of_a_cut_flight(const struct becalm_limit *limit, const struct sample *s)
{
    return s->sent_at <= atomic_load_explicit(&limit->away_at, memory_order_relaxed);
}

static void timeout_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s,
                         uint32_t run)
{
    if (!becalm__run_tells(limit, s->now, s->timeout, run) || becalm__is_overtaken(limit, s->sent_at) ||
        is_of_a_cut_flight(limit, s)) {
        return;
    }
    uint64_t cut_at = atomic_load_explicit(&limit->last_cut_at, memory_order_relaxed);
    if (becalm__cut_is_ours(limit, s->now)) {
        atomic_store_explicit(&limit->away_at, cut_at, memory_order_relaxed);
        evidence_drop(limit);
        becalm__units_cut(limit, policy, becalm__in_flight_with(limit));
    }
}

static bool is_brisk(const struct sample *s)
{
    return s->latency <= s->timeout / BRISK_PART / BECALM_US;
}

static void success_stamp(struct becalm_limit *limit, becalm_ns now, becalm_ns timeout, becalm_ns sent_at)
{
    becalm__success_stamp(limit, now, timeout);
    if (!becalm__is_overtaken(limit, sent_at)) {
        atomic_store_explicit(&limit->ok_sent_at, sent_at, memory_order_relaxed);
    }
}

static void success_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s)
{
    success_stamp(limit, s->now, s->timeout, s->sent_at);
    if (!s->bad) {
        becalm__units_grow(limit, policy, is_brisk(s));
    }
}

/* A quick answer: in a service that works in the order of arrival nothing that was given up is ahead of it any more. */
static void quick_note(struct becalm_limit *limit, const struct sample *s)
{
    if (becalm__is_news(&limit->quick_at, s->now, s->timeout)) {
        atomic_store_explicit(&limit->quick_at, s->now, memory_order_relaxed);
    }
    if (atomic_load_explicit(&limit->ghosts, memory_order_relaxed) != 0) {
        atomic_store_explicit(&limit->ghosts, 0, memory_order_relaxed);
    }
}

/* Quick answers are counted only where there were slow ones: a healthy service writes nothing. */
static void answer_note(struct becalm_limit *limit, const struct sample *s)
{
    uint64_t word = atomic_load_explicit(&limit->among[s->row], memory_order_relaxed);
    bool slow_lately = evidence_unpack(atomic_load_explicit(&limit->evidence, memory_order_relaxed)).slow > 0;
    if (s->bad || !row_rests(word) || (word == 0 && slow_lately)) {
        row_note(limit, s);
    }
    if (!s->bad) {
        quick_note(limit, s);
    }
}

/* With few attempts in flight there is no lower row of the table to compare with, so that a service which is slow by
 * nature is known by its usual latency only. While half of the limit is used, the limit itself may keep answers short,
 * so nothing is learned then. And none of the first samples raises the usual latency, since a service that is
 * overloaded from the first call on takes longer and longer. Each later one raises it by a 64th, however few there
 * were: an overload must be over, or be seen, before its latency is the usual one. */
static void usual_note(struct becalm_limit *limit, const struct sample *s)
{
    if (!becalm__is_half_used(limit, BECALM_LIMIT_SLOTS, atomic_load_explicit(&limit->units, memory_order_relaxed))) {
        const struct becalm__usual usual = becalm__usual(limit);
        struct becalm__ended ended = {.took = becalm_ns_since(s->now, s->sent_at), .timeout = s->timeout};
        const becalm_ns known = usual.latency * BECALM_US;
        if (usual.samples > 0 && ended.took > known) {
            uint64_t part = usual.samples < USUAL_SURE ? 0 : usual.samples;
            ended.took = known + (ended.took - known) / BECALM__USUAL_SAMPLES * part;
        }
        (void)becalm__usual_note(limit, s->now, &ended);
    }
}

/* Is a latency, in us, more than twice the usual one? */
static bool is_unusual(const struct becalm_limit *limit, uint64_t latency)
{
    const struct becalm__usual usual = becalm__usual(limit);
    return usual.samples < USUAL_KNOWN || latency > 2 * usual.latency;
}

static inline struct sample sample_make(const struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot,
                                        enum becalm_evidence evidence)
{
    becalm_ns took = becalm_ns_since(now, slot->sent_at);
    struct sample s = {
        .kind = evidence == BECALM_EVIDENCE_REJECTED ? BECALM_EVIDENCE_ANSWER : evidence,
        .now = now,
        .sent_at = slot->sent_at,
        .timeout = slot->timeout,
        .latency = took / BECALM_US,
        .epoch = slot->epoch,
        .row = slot->among < BECALM_AMONG ? slot->among : BECALM_AMONG - 1,
    };
    s.bad = took > slot->timeout / 4 && s.latency > 2 * atomic_load_explicit(&limit->reference, memory_order_relaxed) &&
            is_unusual(limit, s.latency);
    return s;
}

/* Makes the sample again, because handing it over would have it stored for every attempt. */
BECALM__COLD static void note_weigh(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                                    const struct becalm_slot *slot, enum becalm_evidence evidence)
{
    struct sample s = sample_make(limit, now, slot, evidence);
    bool timed_out = evidence == BECALM_EVIDENCE_TIMEOUT || evidence == BECALM_EVIDENCE_OVERDUE;
    if (evidence == BECALM_EVIDENCE_TIMEOUT) {
        becalm__cut_off_note(limit, now);
    }
    s.late = timed_out || evidence == BECALM_EVIDENCE_GIVEN_UP;
    s.bad |= timed_out;
    if (s.late && !s.bad) {
        return; /* given up so soon that a healthy service may not have answered yet either */
    }
    if (s.late) {
        s.latency = 0;
        atomic_fetch_add_explicit(&limit->ghosts, 1, memory_order_relaxed);
    } else {
        answer_note(limit, &s);
    }
    alone_note(limit, slot);
    struct judgement j = {.ruling = RULING_NONE};
    if (!sample_is_calm(limit, &s)) {
        evidence_add(limit, &s, &j);
        judgement_do(limit, policy, &s, &j);
    }
    if (evidence == BECALM_EVIDENCE_SUCCESS) {
        usual_note(limit, &s);
        success_note(limit, policy, &s);
    } else if (timed_out) {
        timeout_note(limit, policy, &s, j.run);
    }
}

/* An attempt that left a ghost has been answered: the service works on it no more. */
static void ghost_end(struct becalm_limit *limit)
{
    uint64_t ghosts = atomic_load_explicit(&limit->ghosts, memory_order_relaxed);
    while (ghosts > 0 && !atomic_compare_exchange_weak_explicit(&limit->ghosts, &ghosts, ghosts - 1,
                                                                memory_order_relaxed, memory_order_relaxed)) {
    }
}

BECALM__COLD void becalm__slots_late(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                     becalm_ns now, const struct becalm_slot *slot)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&limit->evidence, &word, becalm__evidence_with_run(word, 0),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    evidence_drop(limit);
    success_stamp(limit, now, slot->timeout, slot->sent_at);
    ghost_end(limit);
    becalm__units_restart(limit, policy);
}

/* A success like those before it: weighing it would change nothing. A quick one moves last_ok_at with quick_at, so that
 * this is not the older of the two. */
static inline bool note_is_routine(const struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                   becalm_ns now, const struct becalm_slot *slot, enum becalm_evidence evidence)
{
    if (evidence != BECALM_EVIDENCE_SUCCESS || becalm__is_news(&limit->quick_at, now, slot->timeout) ||
        becalm__units_can_grow(limit, BECALM_LIMIT_SLOTS, policy->max,
                               atomic_load_explicit(&limit->units, memory_order_relaxed)) ||
        atomic_load_explicit(&limit->ghosts, memory_order_relaxed) != 0) {
        return false;
    }
    const struct sample s = sample_make(limit, now, slot, evidence);
    return sample_is_calm(limit, &s) && row_rests(atomic_load_explicit(&limit->among[s.row], memory_order_relaxed));
}

void becalm__slots_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                        const struct becalm_moment *at, struct becalm_slot *slot, enum becalm_evidence evidence)
{
    if (slot->noted || evidence == BECALM_EVIDENCE_NONE) {
        return;
    }
    slot->noted = true;
    if (!note_is_routine(limit, policy, at->now, slot, evidence)) {
        note_weigh(limit, policy, at->now, slot, evidence);
    }
}
