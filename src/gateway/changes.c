/* SPDX-License-Identifier: MIT */
#include "changes.h"

#include "meter/buffer.h"
#include "meter/meter.h"

#include <stdlib.h>
#include <string.h>

#define HOLD   (5 * BECALM_S) /* a problem not seen for this long is over; so a flickering one is logged once */
#define MINUTE (60 * BECALM_S)

/* ---- one change ---- */

enum change_step change_note(struct change *change, enum change_seen seen, uint64_t more, becalm_ns now)
{
    if (!change->on) {
        if (seen != CHANGE_IS) {
            return CHANGE_NONE;
        }
        *change = (struct change){.on = true,
                                  .since = now,
                                  .seen_at = now,
                                  .tell_at = becalm_ns_after(now, MINUTE),
                                  .step = MINUTE,
                                  .count = more};
        return CHANGE_BEGINS;
    }
    change->count += more;
    if (seen == CHANGE_IS) {
        change->seen_at = now;
    } else if (seen == CHANGE_IS_NOT && becalm_ns_since(now, change->seen_at) >= HOLD) {
        change->on = false;
        return CHANGE_ENDS;
    }
    if (now < change->tell_at) {
        return CHANGE_NONE;
    }
    change->step = change->step == MINUTE ? 10 * MINUTE : 60 * MINUTE;
    change->tell_at = becalm_ns_after(now, change->step);
    return CHANGE_LASTS;
}

/* ---- the problems that are watched ---- */

enum subject { SUBJECT_FAILS, SUBJECT_BREAKER, SUBJECT_SHEDS, SUBJECT_BUDGET, SUBJECT_COUNT };

struct words {
    const char *message[CHANGE_ENDS + 1]; /* by step */
    const char *counted;                  /* the key of the count */
};

static const struct words words[SUBJECT_COUNT] = {
    [SUBJECT_FAILS] = {{NULL, "calls fail", "calls still fail", "calls succeed again"}, "failed"},
    [SUBJECT_BREAKER] = {{NULL, "breaker opened", "breaker is still open", "breaker closed"}, "refused"},
    [SUBJECT_SHEDS] = {{NULL, "calls are shed", "calls are still shed", "no call is shed any more"}, "shed"},
    [SUBJECT_BUDGET] = {{NULL, "retry budget is empty", "retry budget is still empty", "retry budget pays again"},
                        "refused"},
};
static const struct words ejected = {{NULL, "host ejected", "host is still ejected", "host gets calls again"}, NULL};

/* The counts of a target since its beginning. */
struct counts {
    uint64_t ended;
    uint64_t failed; /* without calls that the caller ended, and without requests for something that does not exist */
    uint64_t refused_by_breaker;
    uint64_t shed;
    uint64_t without_budget;
    uint64_t opened;
};

struct entry {
    struct meters *meters; /* of the snapshot that is held: only to compare */
    struct counts before;
    struct change change[SUBJECT_COUNT];
};

/* A host that is out, or was a moment ago. */
struct outcast {
    struct outcast *next;
    char service[129];
    union address_socket address;
    struct change change;
    bool seen;
};

struct changes {
    struct snapshot *snapshot; /* that the entries belong to; held, so that no new meters have an old one's address */
    struct entry *entry;
    uint32_t entry_count;
    struct outcast *outcasts;
};

static uint64_t total(const struct meters *meters, size_t offset)
{
    return meter_total((const struct meter *const *)meters->meter, meters->count, offset);
}

static bool is_own_fault(enum becalm_reason reason)
{
    return reason != BECALM_WHY_OK && reason != BECALM_WHY_PERMANENT && reason != BECALM_WHY_CANCELLED;
}

static bool is_breakers(enum becalm_reason reason)
{
    return reason == BECALM_WHY_BREAKER_OPEN || reason == BECALM_WHY_PROBE_FAILED;
}

static void counts_read(const struct meters *meters, struct counts *counts)
{
    memset(counts, 0, sizeof *counts);
    for (uint32_t i = 0; i < BECALM_REASON_COUNT; i++) {
        enum becalm_reason reason = (enum becalm_reason)i;
        for (uint32_t result = 0; result < METER_RESULT_COUNT; result++) {
            uint64_t calls = total(meters, offsetof(struct meter, calls[result][i]));
            counts->ended += calls;
            counts->failed += result == METER_FAILED && is_own_fault(reason) ? calls : 0;
        }
        uint64_t shed = total(meters, offsetof(struct meter, shed[i]));
        counts->refused_by_breaker += is_breakers(reason) ? shed : 0;
        counts->shed += is_breakers(reason) || reason == BECALM_WHY_DEADLINE ? 0 : shed;
    }
    counts->without_budget = total(meters, offsetof(struct meter, overflow[BECALM_WHY_BUDGET_EMPTY]));
    for (uint32_t from = 0; from < METER_STATES; from++) {
        counts->opened += total(meters, offsetof(struct meter, transitions[from][BECALM_BREAKER_OPEN]));
    }
}

/* ---- telling ---- */

struct telling {
    struct log_source *log;
    becalm_ns now;
    uint64_t wall;
};

struct whose {
    const char *service;
    const char *endpoint;    /* NULL: none */
    struct becalm_text host; /* absent: it is not about a host */
};

static void tell(const struct telling *t, const struct words *w, const struct change *change, enum change_step step,
                 const struct whose *whose)
{
    if (step == CHANGE_NONE) {
        return;
    }
    struct log_pair pairs[5] = {
        {"service", LOG_TEXT, text_of(whose->service), 0},
        {"endpoint", LOG_TEXT, text_of(whose->endpoint), 0},
        {"host", LOG_TEXT, whose->host, 0},
    };
    size_t count = 3;
    if (step != CHANGE_BEGINS) {
        pairs[count++] = (struct log_pair){"lasted_ms", LOG_MS, {0}, becalm_ns_since(change->seen_at, change->since)};
    }
    if (w->counted != NULL) {
        pairs[count++] = (struct log_pair){w->counted, LOG_NUMBER, {0}, change->count};
    }
    log_line(t->log, step == CHANGE_ENDS ? BECALM_LOG_INFO : BECALM_LOG_WARN, t->wall, w->message[step], pairs, count);
}

static enum change_seen seen_if(bool is)
{
    return is ? CHANGE_IS : CHANGE_IS_NOT;
}

/* More than half of the calls that ended in this second failed. A quiet second says nothing. */
static enum change_seen sees_failing(uint64_t ended, uint64_t failed)
{
    return ended == 0 ? CHANGE_UNKNOWN : seen_if(failed > ended / 2);
}

static void target_note(const struct telling *t, struct entry *entry, const struct snapshot_target *target)
{
    struct counts now;
    const struct counts *before = &entry->before;
    struct whose whose = {target->service->name, target->endpoint == NULL ? NULL : target->endpoint->name, {0}};
    counts_read(target->meters, &now);
    uint64_t failed = now.failed - before->failed;
    uint64_t shed = now.shed - before->shed;
    uint64_t poor = now.without_budget - before->without_budget;
    enum becalm_breaker_state state = becalm_breaker_state(target->state->target.breaker);
    bool open = state == BECALM_BREAKER_OPEN || state == BECALM_BREAKER_HALF_OPEN || now.opened > before->opened;
    const struct {
        enum change_seen seen;
        uint64_t more;
    } facts[SUBJECT_COUNT] = {
        [SUBJECT_FAILS] = {sees_failing(now.ended - before->ended, failed), failed},
        [SUBJECT_BREAKER] = {seen_if(open), now.refused_by_breaker - before->refused_by_breaker},
        [SUBJECT_SHEDS] = {seen_if(shed > 0), shed},
        [SUBJECT_BUDGET] = {seen_if(poor > 0), poor},
    };
    for (uint32_t i = 0; i < SUBJECT_COUNT; i++) {
        struct change *change = &entry->change[i];
        tell(t, &words[i], change, change_note(change, facts[i].seen, facts[i].more, t->now), &whose);
    }
    entry->before = now;
}

/* ---- hosts ---- */

static struct outcast *outcast_of(struct changes *changes, const char *service, const union address_socket *address)
{
    struct outcast *outcast = changes->outcasts;
    while (outcast != NULL && (strcmp(outcast->service, service) != 0 || !address_equal(&outcast->address, address))) {
        outcast = outcast->next;
    }
    return outcast;
}

static struct outcast *outcast_add(struct changes *changes, const char *service, const union address_socket *address)
{
    struct outcast *outcast = calloc(1, sizeof *outcast);
    if (outcast != NULL) {
        strncpy(outcast->service, service, sizeof outcast->service - 1);
        outcast->address = *address;
        outcast->next = changes->outcasts;
        changes->outcasts = outcast;
    }
    return outcast;
}

static void hosts_note(const struct telling *t, struct changes *changes, const struct snapshot_service *service,
                       const struct becalm_hosts *hosts)
{
    for (uint32_t i = 0; i < service->host_count; i++) {
        const struct snapshot_host *host = &service->host[i];
        bool out = host->known && atomic_load_explicit(&hosts->host[i].ejected_until, memory_order_relaxed) != 0;
        struct outcast *outcast = NULL;
        if (out || changes->outcasts != NULL) {
            outcast = outcast_of(changes, service->service->name, &host->address);
        }
        if (outcast == NULL && out) {
            outcast = outcast_add(changes, service->service->name, &host->address);
        }
        if (outcast != NULL) {
            char text[ADDRESS_TEXT_MAX];
            struct whose whose = {
                service->service->name, NULL, {text, address_write(&host->address, text, sizeof text)}};
            outcast->seen = true;
            enum change_step step = change_note(&outcast->change, seen_if(out), 0, t->now);
            tell(t, &ejected, &outcast->change, step, &whose);
        }
    }
}

/* Forgets hosts that get calls again, and hosts that no service has any more. */
static void outcasts_forget(struct changes *changes)
{
    for (struct outcast **link = &changes->outcasts; *link != NULL;) {
        struct outcast *outcast = *link;
        if (outcast->seen && outcast->change.on) {
            outcast->seen = false;
            link = &outcast->next;
        } else {
            *link = outcast->next;
            free(outcast);
        }
    }
}

/* ---- all of them ---- */

/* Carries the problems of each target over to a new snapshot. False: out of memory, and nothing has changed. */
static bool entries_follow(struct changes *changes, struct snapshot *snapshot)
{
    struct entry *entry = calloc(snapshot->target_count + 1, sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        entry[i].meters = snapshot->target[i].meters;
        for (uint32_t k = 0; k < changes->entry_count; k++) {
            if (changes->entry[k].meters == entry[i].meters) {
                entry[i] = changes->entry[k];
                break;
            }
        }
    }
    free(changes->entry);
    changes->entry = entry;
    changes->entry_count = snapshot->target_count;
    snapshot_use(snapshot);
    snapshot_drop(changes->snapshot);
    changes->snapshot = snapshot;
    return true;
}

void changes_note(struct changes *changes, struct snapshot *snapshot, struct log_source *log, becalm_ns now,
                  uint64_t wall)
{
    const struct telling t = {.log = log, .now = now, .wall = wall};
    if (changes->snapshot != snapshot && !entries_follow(changes, snapshot)) {
        return;
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        target_note(&t, &changes->entry[i], &snapshot->target[i]);
    }
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        const struct snapshot_service *service = &snapshot->service[i];
        hosts_note(&t, changes, service, snapshot->target[service->first_target].state->target.hosts);
    }
    outcasts_forget(changes);
}

struct changes *changes_make(void)
{
    return calloc(1, sizeof(struct changes));
}

void changes_free(struct changes *changes)
{
    if (changes == NULL) {
        return;
    }
    while (changes->outcasts != NULL) {
        struct outcast *outcast = changes->outcasts;
        changes->outcasts = outcast->next;
        free(outcast);
    }
    snapshot_drop(changes->snapshot);
    free(changes->entry);
    free(changes);
}
