/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys and answers ---- */

/* A text with its length in front, so that no two lists of texts are the same bytes; 0 is for an absent one. */
static bool hash_text(EVP_MD_CTX *context, struct becalm_text text)
{
    uint64_t length = text.at == NULL ? 0 : (uint64_t)text.length + 1;
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> (8 * i));
    }
    return EVP_DigestUpdate(context, bytes, sizeof bytes) == 1 &&
           (text.length == 0 || EVP_DigestUpdate(context, text.at, text.length) == 1);
}

static bool hash_texts(const struct becalm_text *texts, size_t count, unsigned char hash[STORE_HASH])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool fine = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; fine && i < count; i++) {
        fine = hash_text(context, texts[i]);
    }
    fine = fine && EVP_DigestFinal_ex(context, hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    return fine;
}

bool store_key_make(struct store_key *key, const struct store_request *request)
{
    const struct becalm_text id[] = {
        request->service, request->endpoint, request->key, {(const char *)key->scope, sizeof key->scope}};
    const struct becalm_text fingerprint[] = {request->method, request->path, request->body};
    key->ticket = 0;
    key->peer = request->peer;
    return hash_texts(request->scope, request->scope_count, key->scope) &&
           hash_texts(id, sizeof id / sizeof *id, key->id) &&
           hash_texts(fingerprint, sizeof fingerprint / sizeof *fingerprint, key->fingerprint);
}

static size_t result_bytes(const struct store_result *result)
{
    return sizeof(struct store_answer) + result->fields.length + result->body.length;
}

static struct store_answer *answer_make(const struct store_result *result)
{
    struct store_answer *answer = malloc(result_bytes(result));
    if (answer == NULL) {
        return NULL;
    }
    atomic_init(&answer->holders, 1);
    answer->status = result->status;
    answer->fields_length = result->fields.length;
    answer->body_length = result->body.length;
    if (result->fields.length > 0) {
        memcpy(answer->bytes, result->fields.at, result->fields.length);
    }
    if (result->body.length > 0) {
        memcpy(answer->bytes + result->fields.length, result->body.at, result->body.length);
    }
    return answer;
}

static uint64_t answer_bytes(const struct store_answer *answer)
{
    return answer == NULL ? 0 : sizeof *answer + answer->fields_length + answer->body_length;
}

void store_answer_free(struct store_answer *answer)
{
    /* Release, so that a holder's reads come before; acquire, so that the free comes after everybody's. */
    if (answer != NULL && atomic_fetch_sub_explicit(&answer->holders, 1, memory_order_acq_rel) == 1) {
        free(answer);
    }
}

/* ---- the store in memory ---- */

#define BUCKETS_MIN (UINT32_C(1) << 16) /* a reload may allow more entries, and the buckets stay */
#define BUCKETS_MAX (UINT32_C(1) << 20)
#define SWEEP_MAX   8u /* expired entries that one operation removes, so that none takes long */

/* A place in a list with a head; who is in no list points to nobody. */
struct link {
    struct link *before;
    struct link *after;
};

/* What the room is made of. */
enum room { ROOM_ENTRIES, ROOM_BYTES, ROOM_KINDS };

/* Who holds entries: a scope, or a peer. It is there as long as it has any. */
enum holder_kind { HOLDER_SCOPE, HOLDER_PEER, HOLDER_KINDS };

struct holder {
    struct holder *next; /* in its bucket */
    enum holder_kind kind;
    unsigned char id[STORE_HASH];
    struct link by_use;        /* its answers, the least recently used first */
    uint64_t held[ROOM_KINDS]; /* keys in flight are entries, too */
    uint64_t in_flight;
};

struct entry {
    struct entry *next; /* in its bucket */
    struct holder *holder[HOLDER_KINDS];
    struct link by_holder[HOLDER_KINDS]; /* among the holder's answers */
    struct link by_age;                  /* of all, the first to expire first */
    struct link by_use;                  /* of those with an answer, the least recently used first */
    becalm_ns expires_at;
    uint64_t ticket;
    struct store_answer *answer; /* NULL: in flight */
    unsigned char id[STORE_HASH];
    unsigned char fingerprint[STORE_HASH];
};

struct memory {
    struct store store;
    pthread_mutex_t lock; /* guards all below; nothing is copied or hashed under it */
    struct store_settings settings;
    struct entry **buckets;
    uint32_t bucket_count;   /* a power of two; the kernel hands out the pages when they are touched */
    struct holder **holders; /* as many buckets as of entries: there are at most two for each */
    struct holder *hog[HOLDER_KINDS][ROOM_KINDS]; /* who has more than half; NULL: nobody */
    uint64_t in_flight;
    struct link by_age;
    struct link by_use;
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
static struct entry **bucket_of(const struct memory *memory, const unsigned char id[STORE_HASH])
{
    uint32_t number;
    memcpy(&number, id, sizeof number);
    return &memory->buckets[number & (memory->bucket_count - 1)];
}

static struct entry *entry_find(const struct memory *memory, const unsigned char id[STORE_HASH])
{
    struct entry *entry = *bucket_of(memory, id);
    while (entry != NULL && memcmp(entry->id, id, STORE_HASH) != 0) {
        entry = entry->next;
    }
    return entry;
}

/* ---- who has how much of the room ---- */

static struct holder **holder_bucket(const struct memory *memory, const unsigned char id[STORE_HASH])
{
    uint32_t number;
    memcpy(&number, id, sizeof number);
    return &memory->holders[number & (memory->bucket_count - 1)];
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
        list_init(&holder->by_use);
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

/* Only one of a kind can have more than half, so that it is enough to look at who has just changed. */
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

static void holders_fly(struct memory *memory, const struct entry *entry, uint64_t more)
{
    memory->in_flight += more;
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        entry->holder[kind]->in_flight += more;
    }
}

static void entry_forget(struct memory *memory, struct entry *entry)
{
    struct entry **place = bucket_of(memory, entry->id);
    while (*place != entry) {
        place = &(*place)->next;
    }
    *place = entry->next;
    list_remove(&entry->by_age);
    list_remove(&entry->by_use);
    if (entry->answer == NULL) {
        holders_fly(memory, entry, UINT64_MAX);
    }
    holders_add(memory, entry, ROOM_ENTRIES, UINT64_MAX);
    holders_add(memory, entry, ROOM_BYTES, 0 - answer_bytes(entry->answer));
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        list_remove(&entry->by_holder[kind]);
        holder_drop_if_empty(memory, entry->holder[kind]);
    }
    memory->counts.entries--;
    memory->counts.bytes -= answer_bytes(entry->answer);
    store_answer_free(entry->answer);
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

/* The answer of a holder that was not asked for the longest; NULL: it has none. */
static struct entry *oldest_of(const struct holder *holder)
{
    if (holder == NULL || holder->by_use.after == &holder->by_use) {
        return NULL;
    }
    return holder->kind == HOLDER_SCOPE ? ENTRY_OF(holder->by_use.after, by_holder[HOLDER_SCOPE])
                                        : ENTRY_OF(holder->by_use.after, by_holder[HOLDER_PEER]);
}

/* Who wants room: for a new entry, or for the bytes of an answer. */
struct wish {
    struct holder *holder[HOLDER_KINDS]; /* NULL: nobody, the room itself has become smaller */
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
    struct entry *own = oldest_of(wish->holder[kind]);
    return own != NULL && wish->holder[kind]->held[wish->room] > entry->holder[kind]->held[wish->room] ? own : entry;
}

/* Whose answer makes room: see store_memory_make(). NULL: nobody's. */
static struct entry *victim_find(const struct memory *memory, const struct wish *wish)
{
    struct entry *victim;
    if (wants_more_than_half(memory, wish, HOLDER_SCOPE)) {
        return oldest_of(wish->holder[HOLDER_SCOPE]);
    }
    if ((victim = oldest_of(memory->hog[HOLDER_SCOPE][wish->room])) != NULL) {
        return victim;
    }
    if (wants_more_than_half(memory, wish, HOLDER_PEER)) {
        return fair(oldest_of(wish->holder[HOLDER_PEER]), wish);
    }
    if ((victim = oldest_of(memory->hog[HOLDER_PEER][wish->room])) != NULL) {
        return victim;
    }
    return memory->by_use.after == &memory->by_use ? NULL : fair(ENTRY_OF(memory->by_use.after, by_use), wish);
}

/* Forgets answers until there is room for a wish. False: what is left is in flight, or not to be had for this one. */
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
        entry_forget(memory, victim);
        memory->counts.evicted++;
    }
}

/* May it begin a key? Those in flight can't be taken back. */
static bool may_fly(const struct memory *memory, const struct holder *holder)
{
    uint64_t all = memory->settings.max_entries;
    return memory->in_flight < all && (holder->in_flight == 0 || holder->in_flight < all - memory->in_flight);
}

/* Finds room for an entry, and who will hold it. The holders are not forgotten meanwhile, even if they lose all. */
static bool memory_admit(struct memory *memory, struct entry *entry, const struct store_key *key)
{
    unsigned char peer[STORE_HASH] = {0};
    memcpy(peer, &key->peer, sizeof key->peer);
    struct wish wish = {.room = ROOM_ENTRIES, .more = 0}; /* it is counted below before room is made for it */
    const unsigned char *id[HOLDER_KINDS] = {[HOLDER_SCOPE] = key->scope, [HOLDER_PEER] = peer};
    bool fine = true;
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        wish.holder[kind] = holder_get(memory, (enum holder_kind)kind, id[kind]);
        fine = fine && wish.holder[kind] != NULL && may_fly(memory, wish.holder[kind]);
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
    entry->expires_at = becalm_ns_after(now, memory->settings.ttl);
    struct entry **bucket = bucket_of(memory, entry->id);
    entry->next = *bucket;
    *bucket = entry;
    list_append(&memory->by_age, &entry->by_age);
    holders_add(memory, entry, ROOM_ENTRIES, 1);
    holders_fly(memory, entry, 1);
    memory->counts.entries++;
    memory->counts.begun++;
}

/* What an entry that is there, and has not expired, means to who asks. */
static enum store_verdict entry_ask(struct memory *memory, struct entry *entry, const struct store_key *key,
                                    struct store_ask *ask)
{
    if (memcmp(entry->fingerprint, key->fingerprint, STORE_HASH) != 0) {
        memory->counts.mismatch++;
        return STORE_MISMATCH;
    }
    if (entry->answer == NULL) {
        memory->counts.in_flight++;
        return STORE_IN_FLIGHT;
    }
    list_move_last(&memory->by_use, &entry->by_use);
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        list_move_last(&entry->holder[kind]->by_use, &entry->by_holder[kind]);
    }
    (void)atomic_fetch_add_explicit(&entry->answer->holders, 1, memory_order_relaxed); /* the entry holds one */
    ask->answer = entry->answer;
    memory->counts.answered++;
    return STORE_ANSWERED;
}

static enum store_verdict memory_begin(struct store *store, struct store_key *key, becalm_ns now, struct store_ask *ask)
{
    struct memory *memory = memory_of(store);
    struct entry *fresh = calloc(1, sizeof *fresh); /* before the lock; mostly it is needed */
    enum store_verdict verdict = STORE_FULL;
    pthread_mutex_lock(&memory->lock);
    memory_sweep(memory, now);
    struct entry *entry = entry_find(memory, key->id);
    if (entry != NULL && entry->expires_at <= now) {
        entry_forget(memory, entry);
        memory->counts.expired++;
        entry = NULL;
    }
    if (entry != NULL) {
        verdict = entry_ask(memory, entry, key, ask);
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

/* The answer becomes the entry's. */
static void entry_store(struct memory *memory, struct entry *entry, becalm_ns now, struct store_answer *answer)
{
    entry->answer = answer;
    holders_fly(memory, entry, UINT64_MAX);
    holders_add(memory, entry, ROOM_BYTES, answer_bytes(answer));
    for (unsigned kind = 0; kind < HOLDER_KINDS; kind++) {
        list_append(&entry->holder[kind]->by_use, &entry->by_holder[kind]);
    }
    entry->expires_at = becalm_ns_after(now, memory->settings.ttl);
    list_move_last(&memory->by_age, &entry->by_age);
    list_append(&memory->by_use, &entry->by_use);
    memory->counts.bytes += answer_bytes(answer);
    memory->counts.stored++;
}

static void memory_end(struct store *store, const struct store_key *key, becalm_ns now,
                       const struct store_result *result)
{
    struct memory *memory = memory_of(store);
    struct store_answer *answer = result == NULL ? NULL : answer_make(result);
    pthread_mutex_lock(&memory->lock);
    struct entry *entry = entry_find(memory, key->id);
    if (entry == NULL || entry->ticket != key->ticket) { /* it has expired, and may be somebody else's by now */
        goto out;
    }
    BECALM_ASSERT(entry->answer == NULL); /* a key ends once */
    uint64_t bytes = answer_bytes(answer);
    struct wish wish = {
        .holder = {entry->holder[HOLDER_SCOPE], entry->holder[HOLDER_PEER]}, .room = ROOM_BYTES, .more = bytes};
    if (bytes > memory->settings.max_bytes) {
        memory->counts.too_large++;
    } else if (answer != NULL && memory_make_room(memory, &wish)) {
        entry_store(memory, entry, now, answer);
        answer = NULL;
        goto out;
    }
    entry_forget(memory, entry);
    memory->counts.released++;
out:
    pthread_mutex_unlock(&memory->lock);
    store_answer_free(answer);
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

static void memory_free(struct store *store)
{
    struct memory *memory = memory_of(store);
    while (memory->by_age.after != &memory->by_age) {
        entry_forget(memory, ENTRY_OF(memory->by_age.after, by_age));
    }
    pthread_mutex_destroy(&memory->lock);
    free(memory->holders);
    free(memory->buckets);
    free(memory);
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
    if (memory->buckets == NULL || memory->holders == NULL || pthread_mutex_init(&memory->lock, NULL) != 0) {
        free(memory->holders);
        free(memory->buckets);
        free(memory);
        return NULL;
    }
    memory->store = (struct store){memory_begin, memory_end, memory_resize, memory_count, memory_free};
    memory->settings = *settings;
    list_init(&memory->by_age);
    list_init(&memory->by_use);
    return &memory->store;
}
