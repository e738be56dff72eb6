/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LIMIT_H
#define BECALM_LIMIT_H

/* How many attempts may be in flight to a target: sent, and without the head of an answer. From the head on an attempt
 * is an answer in progress. Answers in progress are counted separately and bounded by `max_answers`: a stream that
 * stays open for hours says nothing about how many requests the service can answer in time, and must not block other
 * calls.
 *
 *   slots   for a gateway that sees all traffic of a service. A queue delays *every* answer; hangs and long tails do
 *           not. So it counts the share of answers that take longer than a quarter of their own timeout. If these are
 *           three quarters of at least 20 answers, the limit is cut to half of the number in flight. It is not cut if a
 *           few answers are quick, or if answers took as long when a quarter as many were in flight: then the service
 *           is slow by nature, and that latency becomes the reference. If two cuts did not shorten the answers (with
 *           few in flight: one cut), they are undone, and the latency becomes the reference as well.
 *   aimd    for a single caller. Five timeouts in a row, with no success for a quarter of the timeout, cut the limit by
 *           half, at most every 500 ms. A timeout does not count if an attempt that was sent later has succeeded. Quick
 *           answers raise the limit by one slot each, up to its value before the cuts. At one slot it paces: it admits
 *           attempts with a probability. The limit is also cut if the service rejects the last attempts of several
 *           bursts, and then it holds for a while.
 *   fixed   `max`, always.
 *   none    counts only.
 *
 * slots and aimd start high and grow only while half of the limit is used. slots judges only the answers of attempts
 * that were sent after its last cut. All arithmetic is in integers. Shared by threads without locks: the number in
 * flight is exact; the statistics may lose or misplace a note when threads collide, and the next twenty notes make up
 * for it. */

#include <becalm/outcome.h>
#include <becalm/rand.h>

BECALM_BEGIN_DECLS

enum becalm_limit_kind { BECALM_LIMIT_SLOTS, BECALM_LIMIT_AIMD, BECALM_LIMIT_FIXED, BECALM_LIMIT_NONE };

struct becalm_limit_policy {
    enum becalm_limit_kind kind;
    uint32_t min; /* 1 */
    uint32_t max; /* 10,000; at most 1,000,000 */
    /* 100,000; at most 1,000,000; 0: no bound. Attempts in flight and answers in progress together: each attempt that
     * is admitted has a place for its answer. Kind none ignores it. */
    uint32_t max_answers;
};

#define BECALM_AMONG 20u /* rows of the table below: the last one is for 2^19 in flight and more */

/* Touch it only through the functions below. `units` are quarters of a slot for slots, twentieths for aimd. The first
 * cache line is written by every attempt or only when something is wrong; the second one is read by every attempt, and
 * not written while the service is healthy. */
struct becalm_limit {
    BECALM_ATOMIC(uint64_t) places; /* attempts in flight; from bit 32 on, answers in progress */
    /* slots: sum of the answered notes' latencies in this epoch, us; aimd: latency of that of ok_sent_at, ns */
    BECALM_ATOMIC(uint64_t) latency;
    BECALM_ATOMIC(uint64_t) last_cut_at;
    BECALM_ATOMIC(uint64_t) previous; /* mean latency before the last cut of a series, us; 0: none */
    /* slots: units before the last cut of a series; aimd: attempts in flight at quick answers lately, about the most */
    BECALM_ATOMIC(uint64_t) undo_one;
    BECALM_ATOMIC(uint64_t) undo_two; /* units before the cut before that */
    BECALM_ATOMIC(uint64_t)
    ok_sent_at;                       /* of all successful attempts, when the one sent latest was sent; as last_ok_at */
    BECALM_ATOMIC(uint64_t) well;     /* aimd: units in use before a series of cuts, and the state of the series */
    BECALM_ATOMIC(uint64_t) units;    /* the limit now */
    BECALM_ATOMIC(uint64_t) evidence; /* epoch, notes, slow notes, timeouts, timeouts in a row, series: one word */
    BECALM_ATOMIC(uint64_t) last_ok_at; /* to 1 ms, or 1/64 of the timeout if that is less */
    /* slots: latency of a service that is simply slow, us; 0: none. aimd: the timeout that lowered the pace last, ns */
    BECALM_ATOMIC(uint64_t) reference;
    BECALM_ATOMIC(uint64_t) pace;     /* probability of admission in ppm, and when it was that */
    BECALM_ATOMIC(uint64_t) quick_at; /* when an answer last was not slow, as exact as last_ok_at */
    BECALM_ATOMIC(uint64_t) ghosts; /* slots: attempts given up since `quick_at`; the service may still work on them */
    BECALM_ATOMIC(uint64_t) hung;   /* aimd: attempts from before the service went away: they hold no slot */
    /* aimd: when it went away, the cut that found that out; slots: the cut before the last one by timeouts */
    BECALM_ATOMIC(uint64_t) away_at;
    BECALM_ATOMIC(uint64_t) away_units; /* aimd: units that may probe whether it is back, at most; 0: it is not away */
    BECALM_ATOMIC(uint64_t) seen_at;    /* when `usual` last took a sample */
    BECALM_ATOMIC(uint64_t) usual;      /* {latency of successes, us:36, share of timeouts (aimd), ppm:20, samples:8} */
    BECALM_ATOMIC(uint64_t) alone_at;   /* slots: when the latest attempt that was alone in flight was sent */
    BECALM_ATOMIC(uint64_t) cut_off_at; /* when an attempt with a written timeout last timed out; 0: none did */
    /* These are words of aimd. Attempts that were sent later than this are noted in `among`, because the service
     * rejected one. */
    BECALM_ATOMIC(uint64_t) bursts_since;
    BECALM_ATOMIC(uint64_t) bursts_from;  /* since when, for the average of the noted successes in flight */
    BECALM_ATOMIC(uint64_t) bursts_took;  /* sum of their latencies, us */
    BECALM_ATOMIC(uint64_t) bursts_notes; /* notes of all rows: {succeeded:32, rejected:32} */
    BECALM_ATOMIC(uint64_t) rejected_at;  /* the latest rejection */
    BECALM_ATOMIC(uint64_t) bursts;       /* noted bursts that were rejected in part, and whether one goes on */
    BECALM_ATOMIC(uint64_t) burst_at;     /* when the last of them was counted */
    BECALM_ATOMIC(uint64_t) burst;        /* about the most in flight at once, also before rejections cut the limit */
    BECALM_ATOMIC(uint64_t) narrowed;     /* how long such a cut still acts, and cuts before it; 0: not at all */
    BECALM_ATOMIC(uint64_t) narrowed_to;  /* the units that the last of these cuts left */
    /* A row for each power of two of the number in flight when an attempt was sent. slots: {sum of latencies, us:48,
     * slow:8, notes:8}; aimd: {succeeded:32, rejected:32}. */
    BECALM_ATOMIC(uint64_t) among[BECALM_AMONG];
};

/* One attempt's place. Ends with exactly one give. Zeroed: not held. */
struct becalm_slot {
    bool held;
    bool noted;
    bool answers;  /* the answer has begun: the place is one of an answer in progress */
    bool waited;   /* its call waited in line for more than an eighth of its timeout */
    uint8_t among; /* log2 of how many were in flight when it was sent, with itself and those given up */
    uint16_t epoch;
    uint16_t beside; /* aimd: attempts that were in flight when it was admitted, without it; 65535: or more */
    becalm_ns sent_at;
    becalm_ns timeout; /* how long this attempt may take; BECALM_NEVER: for ever, then no answer is slow */
};

BECALM_API void becalm_limit_defaults(struct becalm_limit_policy *, enum becalm_limit_kind);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_limit_check(const struct becalm_limit_policy *, const char **why);

BECALM_API void becalm_limit_init(struct becalm_limit *, const struct becalm_limit_policy *);

/* A reload: gives `to`, fresh from init, the limit, reference, pace and times of `from`. Attempts in flight stay with
 * `from`: a slot is given back to the object that handed it out. */
BECALM_API void becalm_limit_carry(struct becalm_limit *to, const struct becalm_limit_policy *to_policy,
                                   const struct becalm_limit *from, const struct becalm_limit_policy *from_policy);

/* Takes a place for an attempt that may take `timeout`. False: the limit is reached, too many answers are in progress,
 * or pacing says no. */
BECALM_API bool becalm_limit_admit(struct becalm_limit *, const struct becalm_limit_policy *,
                                   const struct becalm_moment *, becalm_ns timeout, struct becalm_slot *);

/* The same for a call that is the probe of a breaker: it is not paced. The breaker lets few enough calls through, and
 * pacing would only delay its probes. */
BECALM_API bool becalm_limit_probe(struct becalm_limit *, const struct becalm_limit_policy *,
                                   const struct becalm_moment *, becalm_ns timeout, struct becalm_slot *);

/* The attempt was sent now, later than it was admitted (it waited for a rate or a connection). */
BECALM_API void becalm_limit_sent(struct becalm_limit *, struct becalm_slot *, becalm_ns now);

/* The attempt is answered or has timed out: judge it by the time since it was sent. Before its give. A second note of
 * the same slot, a slot that is not held, and EVIDENCE_NONE do nothing. */
BECALM_API void becalm_limit_note(struct becalm_limit *, const struct becalm_limit_policy *,
                                  const struct becalm_moment *, struct becalm_slot *, enum becalm_evidence);

/* A layer further down refused the attempt at once (becalm_mark_unasked()): that layer paces already, and does not
 * hang. Ends the pacing here: if each layer of a chain paced, only the product of all their probabilities would reach
 * the last service. */
BECALM_API void becalm_limit_turned_away(struct becalm_limit *);

/* The head of the answer has come, and its body has not ended: from now on the attempt is an answer in progress, and
 * its place in flight is free. After its note. A slot that is not held, or answers already, is left alone. */
BECALM_API void becalm_limit_answer(struct becalm_limit *, struct becalm_slot *);

/* The attempt is over: frees the place. A slot that is not held is left alone. */
BECALM_API void becalm_limit_give(struct becalm_limit *, struct becalm_slot *);

/* Attempts that may be in flight now (UINT32_MAX for kind none), and those that are; while threads collide at a full
 * limit, the second may read a few too many for an instant. */
BECALM_API uint32_t becalm_limit_now(const struct becalm_limit *, const struct becalm_limit_policy *);
BECALM_API uint32_t becalm_limit_in_flight(const struct becalm_limit *);

/* Was the limit not cut for a minute, and for four times `timeout`? Then there is no sign that the service is
 * overloaded. A limit that does not adapt is always calm. */
BECALM_API bool becalm_limit_calm(const struct becalm_limit *, becalm_ns timeout, becalm_ns now);

/* Answers in progress; and whether they, with the attempts in flight, have reached `max_answers`. */
BECALM_API uint32_t becalm_limit_answers(const struct becalm_limit *);
BECALM_API bool becalm_limit_answers_full(const struct becalm_limit *, const struct becalm_limit_policy *);

BECALM_END_DECLS

#endif
