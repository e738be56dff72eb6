/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_STORE_H
#define BECALM_KEYS_STORE_H

/* Answers by idempotency key, for endpoints with `idempotencyKey: required` or `enforced`. Shared by all workers.
 *
 * A key is (endpoint, key, scope), where the scope is the requested host and the client's credentials (key_scope.h).
 * Its fingerprint is (method, path, body). The first call with a key begins it, and ends it in one of the ways of enum
 * store_ending.
 *
 * A key that is `once` (enforced) is a promise: its request is executed at most once, until its time is over. So it is
 * never forgotten to make room. The same key and payload in another scope may be the same client with a new token, so
 * that request is refused: the key is also found by its guard, which is (endpoint, host, key, fingerprint).
 *
 * `struct store` is the interface. The store in memory answers at once; the store that several gateways share asks over
 * a network, so its answer may come later. */

#include "key_hash.h"

#include "meter/metrics.h"

#define STORE_WHERE 96u
#define STORE_ID    16u /* the first bytes of a key's id, which make the name that people see */

struct store_hold;

struct store_key {
    unsigned char id[STORE_HASH];          /* of endpoint, key, scope */
    unsigned char guard[STORE_HASH];       /* of endpoint, host, key, fingerprint, not of the client */
    unsigned char fingerprint[STORE_HASH]; /* of method, path, body */
    unsigned char scope[STORE_HASH];       /* the owner of the key: see key_scope.h */
    uint64_t peer;                         /* the client: see peer.h */
    uint64_t ticket;                       /* the store's own: which beginning of the key this is */
    struct store_hold *hold; /* the store's own, of a store over a network; NULL: the store in memory has the key */
    const struct store_key *older; /* the same by the previous secret; only begin() reads it. NULL: none */
    struct becalm_text service;    /* these two are for display only; they live as long as the key is held */
    struct becalm_text endpoint;
    bool once; /* enforced */
};

/* The parts of a key. Texts may be absent, which is not the same as empty. */
struct store_request {
    struct key_hash *hash; /* by the secret */
    struct becalm_text service;
    struct becalm_text endpoint; /* absent: the service's own rules */
    struct becalm_text host;     /* the requested host */
    struct becalm_text key;
    const struct becalm_text *scope; /* a list that differs for every other client */
    size_t scope_count;
    uint64_t peer;
    struct becalm_text method;
    struct becalm_text path; /* with its query */
    struct becalm_text body;
    bool once;
};

/* False: no memory. */
bool store_key_make(struct store_key *, const struct store_request *);

/* Is an answer of the service stored? Not 401, 403 and 429: nothing was executed, and clients that invent credentials
 * must take no room. A failed request may be repeated only where the service itself knows keys. */
static inline bool store_keeps(uint32_t status, bool once)
{
    return (status < 500 || once) && status != 429 && status != 401 && status != 403;
}

/* An answer: its status, its fields as message/packed.h has them, its body. */
struct store_result {
    uint32_t status;
    struct becalm_text fields;
    struct becalm_text body;
};

/* A stored answer, shared by all requests that ask for it; one block of memory. */
struct store_answer {
    BECALM_ATOMIC(uint32_t) holders;
    uint32_t status;
    size_t fields_length;
    size_t body_length;
    char bytes[]; /* fields, then body */
};

/* Gives it back; the last one frees it. Takes NULL. */
void store_answer_free(struct store_answer *);

enum store_verdict {
    STORE_BEGUN,       /* the key is new: make the call, then store_end() it exactly once */
    STORE_ANSWERED,    /* the stored answer is in ask->answer: store_answer_free() it */
    STORE_IN_FLIGHT,   /* 409 */
    STORE_HELD,        /* the request was sent and its outcome is unknown: 409 */
    STORE_ANSWER_LOST, /* the request was answered, but the answer was too large to be kept; ask->status is its status:
                          409 */
    STORE_MISMATCH,    /* another payload: 422 */
    STORE_OTHER_SCOPE, /* `once`: the same payload, but under another scope: 422 */
    STORE_FULL,        /* no room: 503, rather than a promise that can't be kept */
    STORE_AWAY,        /* the store does not answer: 503 */
    STORE_FORGOT, /* `once`: the store may have forgotten the key; ask->wait says for how long that is in doubt: 503 */
    STORE_PASSED, /* the store does not answer, and the policy lets the call pass; there is nothing to end */
    STORE_LATER   /* ask->then() will come, unless store_cancel() is called */
};
#define STORE_VERDICTS (STORE_LATER + 1u)

/* How a key that has begun ends. */
enum store_ending {
    STORE_END_ANSWER,  /* with an answer, which is kept; one that is too large is lost, or released if not `once` */
    STORE_END_RELEASE, /* the key is forgotten, as if it had never begun */
    STORE_END_LOST,    /* `once`: the request was answered, and its answer can't be kept */
    STORE_END_UNKNOWN  /* `once`: the request was sent, and its outcome is unknown: the key is held until it expires */
};

struct store_end {
    enum store_ending kind;
    struct store_result result; /* ANSWER; of one that is LOST the status alone */
};

/* A question to the store, and its answer. The memory must stay valid until the answer is there. */
struct store_ask {
    enum store_verdict verdict;
    struct store_answer *answer; /* STORE_ANSWERED; else NULL */
    uint32_t status;             /* STORE_ANSWER_LOST */
    becalm_ns wait;              /* STORE_FORGOT */
    uint64_t fence; /* STORE_BEGUN: higher than that of each beginning before; 0: this store does not count */
    void (*then)(struct store_ask *); /* after STORE_LATER: called once, on the thread that asked */
    void *data;                       /* the asker's own */
};

struct store_settings {
    becalm_ns ttl;
    uint32_t max_entries;
    uint64_t max_bytes; /* of answers */
};

/* A held key as operators see it: never the key itself. */
struct store_held {
    unsigned char id[STORE_ID];
    becalm_ns since;
    becalm_ns until;
    char where[STORE_WHERE]; /* "service/endpoint", cut if it is longer */
};

/* The result of an order to release a held key. */
enum store_order { STORE_RELEASED, STORE_NOT_FOUND, STORE_NOT_HELD };

/* The functions of a store; struct store is its first member. */
struct store {
    enum store_verdict (*begin)(struct store *, struct store_key *, becalm_ns now, struct store_ask *);
    void (*end)(struct store *, const struct store_key *, becalm_ns now, const struct store_end *);
    void (*cancel)(struct store *, const struct store_key *); /* NULL: it never says STORE_LATER */
    uint32_t (*held)(struct store *, becalm_ns now, struct store_held *, uint32_t most);
    enum store_order (*release)(struct store *, const unsigned char id[STORE_ID], becalm_ns now);
    void (*resize)(struct store *, const struct store_settings *);
    void (*count)(struct store *, struct store_counts *);
    void (*free)(struct store *);
};

/* Begins a key, or says why not; fills key->ticket and key->hold. `now` is monotonic. After STORE_LATER key and ask
 * stay where they are until ask->then(). */
static inline enum store_verdict store_begin(struct store *store, struct store_key *key, becalm_ns now,
                                             struct store_ask *ask)
{
    ask->answer = NULL;
    key->hold = NULL;
    ask->verdict = store->begin(store, key, now, ask);
    return ask->verdict;
}

/* After STORE_BEGUN. */
static inline void store_end(struct store *store, const struct store_key *key, becalm_ns now,
                             const struct store_end *end)
{
    store->end(store, key, now, end);
}

/* After STORE_LATER, and before ask->then(): the caller no longer wants the answer. */
static inline void store_cancel(struct store *store, const struct store_key *key)
{
    store->cancel(store, key);
}

/* Keys that are held, the oldest first; returns how many were written to the list. */
static inline uint32_t store_held(struct store *store, becalm_ns now, struct store_held *list, uint32_t most)
{
    return store->held(store, now, list, most);
}

/* An operator knows whether the request was executed, and allows it to be made again. */
static inline enum store_order store_release(struct store *store, const unsigned char id[STORE_ID], becalm_ns now)
{
    return store->release(store, id, now);
}

/* A reload: keeps the entries, and forgets the oldest beyond the new bounds. */
static inline void store_resize(struct store *store, const struct store_settings *settings)
{
    store->resize(store, settings);
}

static inline void store_count(struct store *store, struct store_counts *counts)
{
    store->count(store, counts);
}

static inline void store_free(struct store *store)
{
    if (store != NULL) {
        store->free(store);
    }
}

/* The store in memory, safe from any thread. An entry lives for `ttl` after its beginning, and again after its end; so
 * a call that never ends does not hold its key for ever. One that is `once` has no end before that of its call. Over a
 * bound, answers are forgotten; keys in flight, and keys that are `once`, never are: these lose the answer alone.
 *
 * Which answers are forgotten, by entries and by bytes alike. An owner is a scope or a peer. No owner has more than
 * half of the room while others want it, and no owner evicts an answer of another that has less. So when room is
 * needed, the first of these rules decides: an owner that would have more than half loses its own answers; then an
 * owner that has more than half; then the least recently used answer, or one of the asking owner's if it has more than
 * that answer's owner. Among answers of one owner, the least recently used is forgotten. An owner begins no further key
 * while it has as many unforgettable keys as there is room left for others: then it gets STORE_FULL. So a single owner
 * can have half, and of n owners that want everything each has one part in n + 1.
 *
 * NULL: no memory. */
struct store *store_memory_make(const struct store_settings *);

#endif
