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
    unsigned char scope[STORE_HASH];
    const struct becalm_text id[] = {
        request->service, request->endpoint, request->key, {(const char *)scope, sizeof scope}};
    const struct becalm_text fingerprint[] = {request->method, request->path, request->body};
    key->ticket = 0;
    return hash_texts(request->scope, request->scope_count, scope) && hash_texts(id, sizeof id / sizeof *id, key->id) &&
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

struct entry {
    struct entry *next; /* in its bucket */
    struct link by_age; /* of all, the first to expire first */
    struct link by_use; /* of those with an answer, the least recently used first */
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
    uint32_t bucket_count; /* a power of two; the kernel hands out the pages when they are touched */
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

static void entry_forget(struct memory *memory, struct entry *entry)
{
    struct entry **place = bucket_of(memory, entry->id);
    while (*place != entry) {
        place = &(*place)->next;
    }
    *place = entry->next;
    list_remove(&entry->by_age);
    list_remove(&entry->by_use);
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

/* Forgets answers until there are no more entries and bytes than this. False: what is left is in flight. */
static bool memory_make_room(struct memory *memory, uint64_t entries, uint64_t bytes)
{
    while (memory->counts.entries > entries || memory->counts.bytes > bytes) {
        if (memory->by_use.after == &memory->by_use) {
            return false;
        }
        entry_forget(memory, ENTRY_OF(memory->by_use.after, by_use));
        memory->counts.evicted++;
    }
    return true;
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
    } else if (fresh != NULL && memory_make_room(memory, memory->settings.max_entries - 1, UINT64_MAX)) {
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
    if (bytes > memory->settings.max_bytes) {
        memory->counts.too_large++;
    } else if (answer != NULL && memory_make_room(memory, UINT64_MAX, memory->settings.max_bytes - bytes)) {
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
    (void)memory_make_room(memory, settings->max_entries, settings->max_bytes); /* those in flight go when they end */
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
    if (memory->buckets == NULL || pthread_mutex_init(&memory->lock, NULL) != 0) {
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
