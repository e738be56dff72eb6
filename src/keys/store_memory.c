/* SPDX-License-Identifier: MIT */
#include "store_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_MIN (UINT32_C(1) << 16) /* a reload may allow more entries, and the buckets stay */
#define BUCKETS_MAX (UINT32_C(1) << 20)
#define SWEEP_MAX   8u /* expired entries that one operation removes, so that none takes long */

/* A link of a list with a head; both pointers are NULL while the entry is in no list. */
struct link {
    struct link *before;
    struct link *after;
};

/* The two limits of the store: its number of entries, and the bytes of its answers. */
enum room { ROOM_ENTRIES, ROOM_BYTES, ROOM_KINDS };

/* A holder of entries: a scope, or a peer. It exists as long as it has entries. */
enum holder_kind { HOLDER_SCOPE, HOLDER_PEER, HOLDER_KINDS };

struct holder {
    struct holder *next; /* in its bucket */
    enum holder_kind kind;
    unsigned char id[STORE_HASH];
    struct link by_use[ROOM_KINDS]; /* entries that can be forgotten, the least recently used first */
    uint64_t held[ROOM_KINDS];      /* keys in flight are entries, too */
    uint64_t pinned;                /* entries that can't be forgotten */
};

/* How far a key has come. entry_enter() alone moves it, forwards. */
enum entry_state {
    ENTRY_FLIES,    /* its call is being made */
    ENTRY_ANSWERED, /* the call was answered */
    ENTRY_HELD,     /* `once`: the outcome of its call is unknown */
    ENTRY_LOST      /* `once`: its call was made, and there was no room for the answer, or is none any more */
};

struct entry {
    struct entry *next;       /* in its bucket */
    struct entry *next_guard; /* in the bucket of its guard, if it is `once` */
    struct holder *holder[HOLDER_KINDS];
    struct link by_holder[HOLDER_KINDS][ROOM_KINDS]; /* among the holder's entries that can be forgotten */
    struct link by_age;                              /* among those that expire, the first to do so first */
    struct link by_use[ROOM_KINDS];                  /* among all that can be given up, the least recently used first */
    struct link by_hold;                             /* among those that are held, the oldest first */
    becalm_ns expires_at;
    becalm_ns ended_at;
    uint64_t ticket;
    enum entry_state state;
    uint32_t status; /* of an answer that is lost */
    bool once;
    struct store_answer *answer; /* ENTRY_ANSWERED, else NULL */
    char *where;                 /* ENTRY_HELD; NULL: no memory */
    unsigned char id[STORE_HASH];
    unsigned char guard[STORE_HASH];
    unsigned char fingerprint[STORE_HASH];
};

struct memory {
    struct store store;
    pthread_mutex_t lock; /* guards all below; nothing is copied or hashed under it */
    struct store_settings settings;
    struct entry **buckets;
    uint32_t bucket_count;   /* a power of two; the kernel hands out the pages when they are touched */
    struct entry **guards;   /* as many, by their guard */
    struct holder **holders; /* as many: there are at most two for each entry */
    struct holder *hog[HOLDER_KINDS][ROOM_KINDS]; /* the holder of more than half; NULL: none */
    uint64_t pinned;
    struct link by_age;
    struct link flying; /* those that do not expire: `once`, and in flight */
    struct link by_use[ROOM_KINDS];
    struct link by_hold;
    uint64_t tickets;
    struct store_counts counts;
};

static void list_init(struct link *head)
{
    head->before = head;
    head->after = head;
}

static void list_append(struct link *head, struct link *link)
{
    link->before = head->before;
    link->after = head;
    head->before->after = link;
    head->before = link;
}

static void list_remove(struct link *link)
{
    if (link->after != NULL) {
        link->before->after = link->after;
        link->after->before = link->before;
        *link = (struct link){NULL, NULL};
    }
}

static void list_move_last(struct link *head, struct link *link)
{
    list_remove(link);
    list_append(head, link);
}

#define ENTRY_OF(link, member) ((struct entry *)(void *)((char *)(link)-offsetof(struct entry, member)))

static struct memory *memory_of(struct store *store)
{
    return (struct memory *)(void *)store;
}

/* An id is a hash already: any of its bytes will do. */
static uint32_t bucket_number(const struct memory *memory, const unsigned char id[STORE_ID])
{
    uint32_t number;
    memcpy(&number, id, sizeof number);
    return number & (memory->bucket_count - 1);
}

static struct entry **bucket_of(const struct memory *memory, const unsigned char id[STORE_ID])
{
    return &memory->buckets[bucket_number(memory, id)];
}

static struct entry *guard_find(const struct memory *memory, const unsigned char guard[STORE_HASH])
{
    struct entry *entry = memory->guards[bucket_number(memory, guard)];
    while (entry != NULL && memcmp(entry->guard, guard, STORE_HASH) != 0) {
        entry = entry->next_guard;
    }
    return entry;
}

static struct entry *entry_find(const struct memory *memory, const unsigned char id[STORE_HASH])
{
    struct entry *entry = *bucket_of(memory, id);
    while (entry != NULL && memcmp(entry->id, id, STORE_HASH) != 0) {
        entry = entry->next;
    }
    return entry;
}

/* ---- how much each holder has ---- */

static struct holder **holder_bucket(const struct memory *memory, const unsigned char id[STORE_HASH])
{
    return &memory->holders[bucket_number(memory, id)];
}

/* Makes it if it is not there. NULL: no memory. */
static struct holder *holder_get(struct memory *memory, enum holder_kind kind, const unsigned char id[STORE_HASH])
{
    struct holder **bucket = holder_bucket(memory, id);
    struct holder *holder = *bucket;
    while (holder != NULL && (holder->kind != kind || memcmp(holder->id, id, STORE_HASH) != 0)) {
        holder = holder->next;
    }
    if (holder == NULL && (holder = calloc(1, sizeof *holder)) != NULL) {
        holder->kind = kind;
        memcpy(holder->id, id, STORE_HASH);
        list_init(&holder->by_use[ROOM_ENTRIES]);
        list_init(&holder->by_use[ROOM_BYTES]);
        holder->next = *bucket;
        *bucket = holder;
    }
    return holder;
}

static void holder_drop_if_empty(struct memory *memory, struct holder *holder)
{
    if (holder == NULL || holder->held[ROOM_ENTRIES] > 0) {
        return;
    }
    struct holder **place = holder_bucket(memory, holder->id);
    while (*place != holder) {
        place = &(*place)->next;
    }
    *place = holder->next;
    free(holder);
}

static uint64_t half_of(const struct memory *memory, enum room room)
{
    uint64_t all = room == ROOM_ENTRIES ? memory->settings.max_entries : memory->settings.max_bytes;
    return all / 2 + all % 2;
}

/* Only one holder of a kind can have more than half, so it is enough to check the holder that has just changed. */
static void hog_note(struct memory *memory, struct holder *holder, enum room room)
{
    struct holder **hog = &memory->hog[holder->kind][room];
    if (holder->held[room] > half_of(memory, room)) {
        *hog = holder;
    } else if (*hog == holder) {
        *hog = NULL;
    }
}

/* Of both holders of an entry. */
static void holders_add(struct memory *memory, const struct entry *entry, enum room room, uint64_t more)
{
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        entry->holder[kind]->held[room] += more;
        hog_note(memory, entry->holder[kind], room);
    }
}

static void holders_pin(struct memory *memory, const struct entry *entry, uint64_t more)
{
    memory->pinned += more;
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        entry->holder[kind]->pinned += more;
    }
}

/* ---- the state of an entry ---- */

/* An entry that is `once` can lose its answer, but is never forgotten itself. */
static bool gives_up(const struct entry *entry, enum room room)
{
    return entry->state == ENTRY_ANSWERED && (room == ROOM_BYTES || !entry->once);
}

static bool is_pinned(const struct entry *entry)
{
    return entry->state == ENTRY_FLIES || entry->once;
}

/* As the most recently used of those that can be given up. */
static void entry_used(struct memory *memory, struct entry *entry)
{
    for (unsigned room = 0; room < ROOM_KINDS; room++) {
        list_remove(&entry->by_use[room]);
        if (gives_up(entry, (enum room)room)) {
            list_append(&memory->by_use[room], &entry->by_use[room]);
        }
        for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
            list_remove(&entry->by_holder[kind][room]);
            if (gives_up(entry, (enum room)room)) {
                list_append(&entry->holder[kind]->by_use[room], &entry->by_holder[kind][room]);
            }
        }
    }
}

static void answer_drop(struct memory *memory, struct entry *entry)
{
    holders_add(memory, entry, ROOM_BYTES, 0 - store_answer_bytes(entry->answer));
    memory->counts.bytes -= store_answer_bytes(entry->answer);
    store_answer_free(entry->answer);
    entry->answer = NULL;
}

/* The one writer of its state. */
static void entry_enter(struct memory *memory, struct entry *entry, enum entry_state state)
{
    bool was_pinned = is_pinned(entry);
    BECALM_ASSERT(state > entry->state && (state == ENTRY_ANSWERED || entry->once));
    entry->state = state;
    if (was_pinned && !is_pinned(entry)) {
        holders_pin(memory, entry, UINT64_MAX);
    }
    entry_used(memory, entry);
    switch (state) {
    case ENTRY_FLIES:
    case ENTRY_ANSWERED:
        break;
    case ENTRY_HELD:
        list_append(&memory->by_hold, &entry->by_hold);
        memory->counts.held++;
        break;
    case ENTRY_LOST:
        memory->counts.too_large++;
        break;
    }
}

/* Its call has ended: it lives for the store's time from now on. */
static void entry_ended(struct memory *memory, struct entry *entry, becalm_ns now)
{
    entry->ended_at = now;
    entry->expires_at = becalm_ns_after(now, memory->settings.ttl);
    list_move_last(&memory->by_age, &entry->by_age);
}

/* To make room for others: it keeps its time. */
static void entry_lose_answer(struct memory *memory, struct entry *entry)
{
    entry->status = entry->answer->status;
    answer_drop(memory, entry);
    entry_enter(memory, entry, ENTRY_LOST);
}

static void guard_remove(const struct memory *memory, const struct entry *entry)
{
    struct entry **place = &memory->guards[bucket_number(memory, entry->guard)];
    while (*place != entry) {
        place = &(*place)->next_guard;
    }
    *place = entry->next_guard;
}

static void entry_forget(struct memory *memory, struct entry *entry)
{
    struct entry **place = bucket_of(memory, entry->id);
    while (*place != entry) {
        place = &(*place)->next;
    }
    *place = entry->next;
    if (entry->once) {
        guard_remove(memory, entry);
    }
    list_remove(&entry->by_age);
    list_remove(&entry->by_hold);
    if (is_pinned(entry)) {
        holders_pin(memory, entry, UINT64_MAX);
    }
    holders_add(memory, entry, ROOM_ENTRIES, UINT64_MAX);
    answer_drop(memory, entry);
    for (unsigned room = 0; room < ROOM_KINDS; room++) {
        list_remove(&entry->by_use[room]);
        list_remove(&entry->by_holder[HOLDER_SCOPE][room]);
        list_remove(&entry->by_holder[HOLDER_PEER][room]);
    }
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        holder_drop_if_empty(memory, entry->holder[kind]);
    }
    memory->counts.entries--;
    memory->counts.held -= entry->state == ENTRY_HELD;
    free(entry->where);
    free(entry);
}

/* A few of those that have expired. */
static void memory_sweep(struct memory *memory, becalm_ns now)
{
    for (unsigned i = 0; i < SWEEP_MAX && memory->by_age.after != &memory->by_age; i++) {
        struct entry *oldest = ENTRY_OF(memory->by_age.after, by_age);
        if (oldest->expires_at > now) {
            return;
        }
        entry_forget(memory, oldest);
        memory->counts.expired++;
    }
}

/* The holder's least recently used entry that can be forgotten; NULL: none. */
static struct entry *oldest_of(const struct holder *holder, enum room room)
{
    if (holder == NULL || holder->by_use[room].after == &holder->by_use[room]) {
        return NULL;
    }
    struct link *first = holder->by_use[room].after;
    size_t place = (size_t)holder->kind * ROOM_KINDS + room; /* of the link among the entry's */
    return ENTRY_OF(first - place, by_holder);
}

/* A request for room: for a new entry, or for the bytes of an answer. */
struct wish {
    struct holder *holder[HOLDER_KINDS]; /* NULL: a reload has made the store smaller */
    enum room room;
    uint64_t more;
};

static bool wants_more_than_half(const struct memory *memory, const struct wish *wish, enum holder_kind kind)
{
    const struct holder *holder = wish->holder[kind];
    return holder != NULL && holder->held[wish->room] + wish->more > half_of(memory, wish->room);
}

/* Instead of another's answer one of his own, if he has more than its owner, or as much. */
static struct entry *fair(struct entry *entry, const struct wish *wish)
{
    enum holder_kind kind = HOLDER_PEER;
    if (entry == NULL || wish->holder[HOLDER_PEER] == NULL) {
        return entry;
    }
    if (entry->holder[HOLDER_PEER] == wish->holder[HOLDER_PEER]) {
        kind = HOLDER_SCOPE;
    }
    struct entry *own = oldest_of(wish->holder[kind], wish->room);
    return own != NULL && wish->holder[kind]->held[wish->room] > entry->holder[kind]->held[wish->room] ? own : entry;
}

/* The entry that makes room: see store_memory_make(). NULL: none. */
static struct entry *victim_find(const struct memory *memory, const struct wish *wish)
{
    struct entry *victim;
    if (wants_more_than_half(memory, wish, HOLDER_SCOPE)) {
        return oldest_of(wish->holder[HOLDER_SCOPE], wish->room);
    }
    if ((victim = oldest_of(memory->hog[HOLDER_SCOPE][wish->room], wish->room)) != NULL) {
        return victim;
    }
    if (wants_more_than_half(memory, wish, HOLDER_PEER)) {
        return fair(oldest_of(wish->holder[HOLDER_PEER], wish->room), wish);
    }
    if ((victim = oldest_of(memory->hog[HOLDER_PEER][wish->room], wish->room)) != NULL) {
        return victim;
    }
    const struct link *all = &memory->by_use[wish->room];
    return all->after == all ? NULL : fair(ENTRY_OF(all->after - wish->room, by_use), wish);
}

/* Forgets answers until there is room for a wish. False: all remaining entries are in flight, or must not be forgotten
 * for this holder. */
static bool memory_make_room(struct memory *memory, const struct wish *wish)
{
    bool entries = wish->room == ROOM_ENTRIES;
    for (;;) {
        uint64_t used = entries ? memory->counts.entries : memory->counts.bytes;
        uint64_t all = entries ? memory->settings.max_entries : memory->settings.max_bytes;
        if (used + wish->more <= all) {
            return true;
        }
        struct entry *victim = victim_find(memory, wish);
        if (victim == NULL) {
            return false;
        }
        if (victim->once) {
            entry_lose_answer(memory, victim);
        } else {
            entry_forget(memory, victim);
        }
        memory->counts.evicted++;
    }
}

/* May this holder begin a key? Pinned entries can't be forgotten. */
static bool may_pin(const struct memory *memory, const struct holder *holder)
{
    uint64_t all = memory->settings.max_entries;
    return memory->pinned < all && (holder->pinned == 0 || holder->pinned < all - memory->pinned);
}

/* Finds room and the holders for an entry. The holders stay meanwhile, even if they lose all their entries. */
static bool memory_admit(struct memory *memory, struct entry *entry, const struct store_key *key)
{
    unsigned char peer[STORE_HASH] = {0};
    memcpy(peer, &key->peer, sizeof key->peer);
    struct wish wish = {.room = ROOM_ENTRIES, .more = 0}; /* the entry is counted below, before room is made for it */
    const unsigned char *id[HOLDER_KINDS] = {[HOLDER_SCOPE] = key->scope, [HOLDER_PEER] = peer};
    bool fine = true;
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        wish.holder[kind] = holder_get(memory, (enum holder_kind)kind, id[kind]);
        fine = fine && wish.holder[kind] != NULL && may_pin(memory, wish.holder[kind]);
        if (wish.holder[kind] != NULL) {
            wish.holder[kind]->held[ROOM_ENTRIES]++; /* so that it stays */
        }
    }
    memory->counts.entries++;
    fine = fine && memory_make_room(memory, &wish);
    memory->counts.entries--;
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        if (wish.holder[kind] == NULL) {
            continue;
        }
        wish.holder[kind]->held[ROOM_ENTRIES]--;
        hog_note(memory, wish.holder[kind], ROOM_ENTRIES);
        entry->holder[kind] = wish.holder[kind];
        if (!fine) {
            holder_drop_if_empty(memory, wish.holder[kind]);
        }
    }
    return fine;
}

static void entry_begin(struct memory *memory, struct entry *entry, struct store_key *key, becalm_ns now)
{
    memcpy(entry->id, key->id, STORE_HASH);
    memcpy(entry->fingerprint, key->fingerprint, STORE_HASH);
    key->ticket = ++memory->tickets;
    entry->ticket = key->ticket;
    entry->once = key->once;
    entry->expires_at = key->once ? BECALM_NEVER : becalm_ns_after(now, memory->settings.ttl);
    struct entry **bucket = bucket_of(memory, entry->id);
    entry->next = *bucket;
    *bucket = entry;
    if (entry->once) {
        memcpy(entry->guard, key->guard, STORE_HASH);
        bucket = &memory->guards[bucket_number(memory, entry->guard)];
        entry->next_guard = *bucket;
        *bucket = entry;
    }
    list_append(key->once ? &memory->flying : &memory->by_age, &entry->by_age);
    holders_add(memory, entry, ROOM_ENTRIES, 1);
    holders_pin(memory, entry, 1);
    memory->counts.entries++;
    memory->counts.begun++;
}

static void entry_answer(struct memory *memory, struct entry *entry, struct store_ask *ask)
{
    entry_used(memory, entry);
    (void)atomic_fetch_add_explicit(&entry->answer->holders, 1, memory_order_relaxed); /* the entry holds one */
    ask->answer = entry->answer;
    memory->counts.answered++;
}

/* The verdict for a request whose key has an entry that has not expired. */
static enum store_verdict entry_ask(struct memory *memory, struct entry *entry, const struct store_key *key,
                                    struct store_ask *ask)
{
    if (memcmp(entry->fingerprint, key->fingerprint, STORE_HASH) != 0) {
        memory->counts.mismatch++;
        return STORE_MISMATCH;
    }
    switch (entry->state) {
    case ENTRY_FLIES:
        memory->counts.in_flight++;
        return STORE_IN_FLIGHT;
    case ENTRY_ANSWERED:
        entry_answer(memory, entry, ask);
        return STORE_ANSWERED;
    case ENTRY_HELD:
        memory->counts.unknown++;
        return STORE_HELD;
    case ENTRY_LOST:
        ask->status = entry->status;
        memory->counts.answer_lost++;
        return STORE_ANSWER_LOST;
    }
    return STORE_IN_FLIGHT;
}

/* NULL: there is none, or its time is over. */
static struct entry *entry_live(struct memory *memory, struct entry *entry, becalm_ns now)
{
    if (entry != NULL && entry->expires_at <= now) {
        entry_forget(memory, entry);
        memory->counts.expired++;
        return NULL;
    }
    return entry;
}

static enum store_verdict memory_begin(struct store *store, struct store_key *key, becalm_ns now, struct store_ask *ask)
{
    struct memory *memory = memory_of(store);
    struct entry *fresh = calloc(1, sizeof *fresh); /* before the lock; mostly it is needed */
    enum store_verdict verdict = STORE_FULL;
    pthread_mutex_lock(&memory->lock);
    memory_sweep(memory, now);
    struct entry *entry = entry_live(memory, entry_find(memory, key->id), now);
    if (entry != NULL) {
        verdict = entry_ask(memory, entry, key, ask);
    } else if (key->once && entry_live(memory, guard_find(memory, key->guard), now) != NULL) {
        memory->counts.other_scope++;
        verdict = STORE_OTHER_SCOPE;
    } else if (fresh != NULL && memory_admit(memory, fresh, key)) {
        entry_begin(memory, fresh, key, now);
        fresh = NULL;
        verdict = STORE_BEGUN;
    } else {
        memory->counts.full++;
    }
    pthread_mutex_unlock(&memory->lock);
    free(fresh);
    return verdict;
}

/* The answer becomes the entry's. False: there is no room for it. */
static bool entry_store(struct memory *memory, struct entry *entry, becalm_ns now, struct store_answer *answer)
{
    struct wish wish = {.holder = {entry->holder[HOLDER_SCOPE], entry->holder[HOLDER_PEER]},
                        .room = ROOM_BYTES,
                        .more = store_answer_bytes(answer)};
    if (answer == NULL || wish.more > memory->settings.max_bytes || !memory_make_room(memory, &wish)) {
        return false;
    }
    entry->answer = answer;
    holders_add(memory, entry, ROOM_BYTES, wish.more);
    memory->counts.bytes += wish.more;
    memory->counts.stored++;
    entry_ended(memory, entry, now);
    entry_enter(memory, entry, ENTRY_ANSWERED);
    return true;
}

static void entry_release(struct memory *memory, struct entry *entry)
{
    entry_forget(memory, entry);
    memory->counts.released++;
}

static void entry_lose(struct memory *memory, struct entry *entry, becalm_ns now, uint32_t status)
{
    entry->status = status;
    entry_ended(memory, entry, now);
    entry_enter(memory, entry, ENTRY_LOST);
}

/* "service/endpoint". NULL: no memory. */
static char *where_make(const struct store_key *key)
{
    char *where = malloc(STORE_WHERE);
    if (where != NULL) {
        (void)snprintf(where, STORE_WHERE, "%.*s%s%.*s", (int)key->service.length, key->service.at,
                       key->endpoint.at == NULL ? "" : "/", (int)key->endpoint.length,
                       key->endpoint.at == NULL ? "" : key->endpoint.at);
    }
    return where;
}

static void memory_end(struct store *store, const struct store_key *key, becalm_ns now, const struct store_end *end)
{
    struct memory *memory = memory_of(store);
    struct store_answer *answer = end->kind == STORE_END_ANSWER ? store_answer_make(&end->result) : NULL;
    char *where = end->kind == STORE_END_UNKNOWN ? where_make(key) : NULL;
    pthread_mutex_lock(&memory->lock);
    struct entry *entry = entry_find(memory, key->id);
    if (entry == NULL || entry->ticket != key->ticket) { /* expired; the key may belong to another call by now */
        goto out;
    }
    BECALM_ASSERT(entry->state == ENTRY_FLIES); /* a key ends once */
    switch (end->kind) {
    case STORE_END_ANSWER:
        if (entry_store(memory, entry, now, answer)) {
            answer = NULL;
        } else if (entry->once) {
            entry_lose(memory, entry, now, end->result.status);
        } else {
            memory->counts.too_large++;
            entry_release(memory, entry);
        }
        break;
    case STORE_END_RELEASE:
        entry_release(memory, entry);
        break;
    case STORE_END_LOST:
        entry_lose(memory, entry, now, end->result.status);
        break;
    case STORE_END_UNKNOWN:
        entry->where = where;
        where = NULL;
        entry_ended(memory, entry, now);
        entry_enter(memory, entry, ENTRY_HELD);
        break;
    }
out:
    pthread_mutex_unlock(&memory->lock);
    store_answer_free(answer);
    free(where);
}

/* ---- for operators: listing and releasing held keys ---- */

static uint32_t memory_held(struct store *store, becalm_ns now, struct store_held *list, uint32_t most)
{
    struct memory *memory = memory_of(store);
    uint32_t count = 0;
    pthread_mutex_lock(&memory->lock);
    for (struct link *at = memory->by_hold.after; at != &memory->by_hold && count < most; at = at->after) {
        const struct entry *entry = ENTRY_OF(at, by_hold);
        if (entry->expires_at <= now) {
            continue;
        }
        struct store_held *held = &list[count++];
        *held = (struct store_held){.since = entry->ended_at, .until = entry->expires_at};
        memcpy(held->id, entry->id, STORE_ID);
        memcpy(held->where, entry->where == NULL ? "" : entry->where, entry->where == NULL ? 1 : STORE_WHERE);
    }
    pthread_mutex_unlock(&memory->lock);
    return count;
}

static enum store_order memory_release(struct store *store, const unsigned char id[STORE_ID], becalm_ns now)
{
    struct memory *memory = memory_of(store);
    enum store_order order = STORE_NOT_FOUND;
    pthread_mutex_lock(&memory->lock);
    struct entry *entry = *bucket_of(memory, id);
    while (entry != NULL && memcmp(entry->id, id, STORE_ID) != 0) {
        entry = entry->next;
    }
    entry = entry_live(memory, entry, now);
    if (entry != NULL && entry->state == ENTRY_HELD) {
        entry_release(memory, entry);
        order = STORE_RELEASED;
    } else if (entry != NULL) {
        order = STORE_NOT_HELD;
    }
    pthread_mutex_unlock(&memory->lock);
    return order;
}

static void memory_resize(struct store *store, const struct store_settings *settings)
{
    struct memory *memory = memory_of(store);
    BECALM_ASSERT(settings->max_entries > 0);
    pthread_mutex_lock(&memory->lock);
    memory->settings = *settings;
    for (uint32_t i = 0; i < memory->bucket_count; i++) {
        for (struct holder *holder = memory->holders[i]; holder != NULL; holder = holder->next) {
            hog_note(memory, holder, ROOM_ENTRIES);
            hog_note(memory, holder, ROOM_BYTES);
        }
    }
    (void)memory_make_room(memory, &(struct wish){.room = ROOM_ENTRIES}); /* those in flight go when they end */
    (void)memory_make_room(memory, &(struct wish){.room = ROOM_BYTES});
    pthread_mutex_unlock(&memory->lock);
}

static void memory_count(struct store *store, struct store_counts *counts)
{
    struct memory *memory = memory_of(store);
    pthread_mutex_lock(&memory->lock);
    *counts = memory->counts;
    pthread_mutex_unlock(&memory->lock);
}

static void memory_drop(struct memory *memory)
{
    free(memory->holders);
    free(memory->guards);
    free(memory->buckets);
    free(memory);
}

static void memory_free(struct store *store)
{
    struct memory *memory = memory_of(store);
    struct link *lists[] = {&memory->by_age, &memory->flying};
    for (unsigned i = 0; i < sizeof lists / sizeof *lists; i++) {
        while (lists[i]->after != lists[i]) {
            entry_forget(memory, ENTRY_OF(lists[i]->after, by_age));
        }
    }
    pthread_mutex_destroy(&memory->lock);
    memory_drop(memory);
}

struct store *store_memory_make(const struct store_settings *settings)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return NULL;
    }
    BECALM_ASSERT(settings->max_entries > 0);
    memory->bucket_count = BUCKETS_MIN;
    while (memory->bucket_count < settings->max_entries && memory->bucket_count < BUCKETS_MAX) {
        memory->bucket_count *= 2;
    }
    memory->buckets = calloc(memory->bucket_count, sizeof(struct entry *));
    memory->holders = calloc(memory->bucket_count, sizeof(struct holder *));
    memory->guards = calloc(memory->bucket_count, sizeof(struct entry *));
    if (memory->buckets == NULL || memory->guards == NULL || memory->holders == NULL ||
        pthread_mutex_init(&memory->lock, NULL) != 0) {
        memory_drop(memory);
        return NULL;
    }
    memory->store = (struct store){.begin = memory_begin,
                                   .end = memory_end,
                                   .held = memory_held,
                                   .release = memory_release,
                                   .resize = memory_resize,
                                   .count = memory_count,
                                   .free = memory_free};
    memory->settings = *settings;
    list_init(&memory->by_age);
    list_init(&memory->flying);
    list_init(&memory->by_use[ROOM_ENTRIES]);
    list_init(&memory->by_use[ROOM_BYTES]);
    list_init(&memory->by_hold);
    return &memory->store;
}
