/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FAULT_FAULT_BOOK_H
#define BECALM_FAULT_FAULT_BOOK_H

/* The faults in force. One thread orders them; workers ask whether a call or attempt is hit. Without faults that is one
 * read of a counter; with faults it takes a lock, a cost that only game days have. */

#include "fault.h"

#include "message/head.h"
#include "origin/origin.h"

#include <pthread.h>

#define FAULTS_IN_FORCE 16u

/* A call or attempt that may be hit. */
struct fault_call {
    const char *service;
    const char *endpoint; /* NULL: the service's own rules */
    bool to_clients;
    uint32_t host; /* which of the service's, of how many */
    uint32_t host_count;
    uint64_t caller; /* a number that identifies the caller */
    const struct origin_ip *ip;
    const struct head *head;
    becalm_ns now;
    uint64_t random;
};

/* The fault that hits it. */
struct fault_hit {
    enum fault_act act;
    enum fault_kind word;
    uint32_t status;
    becalm_ns until; /* DELAY, HANG */
    uint64_t number; /* of the fault */
    char name[FAULT_NAME_MAX];
};

enum fault_end { FAULT_EXPIRED, FAULT_CLEARED, FAULT_SPENT };

/* A fault in force. */
struct fault_entry {
    const struct fault *fault;
    uint64_t number;
    uint64_t hits;
    becalm_ns at;
};

struct fault_book {
    BECALM_ATOMIC(uint32_t) count;
    pthread_mutex_t lock;
    struct fault_entry entry[FAULTS_IN_FORCE]; /* `count` of them, the earliest first */
    uint64_t numbers;                          /* ever */
};

void fault_book_init(struct fault_book *);
void fault_book_free(struct fault_book *);

static inline bool fault_book_any(const struct fault_book *book)
{
    return atomic_load_explicit(&((struct fault_book *)(uintptr_t)book)->count, memory_order_relaxed) != 0;
}

/* From any worker. */
bool fault_book_draw(struct fault_book *, const struct fault_call *, struct fault_hit *);
bool fault_book_has(struct fault_book *, uint64_t number, becalm_ns now); /* is it still in force? */

/* Call it from the one thread that orders. Takes ownership of the fault, and names it if it has no name. NULL: the
 * fault is in force. Else the reason why not; then the caller still owns the fault. */
const char *fault_book_add(struct fault_book *, struct fault *, becalm_ns now);

/* Ends the faults whose time is over, and the fault `name` (NULL: none, "": all), and reports each. Returns how many.
 */
typedef void fault_told_fn(void *data, const struct fault_entry *, enum fault_end);
uint32_t fault_book_end(struct fault_book *, const char *name, becalm_ns now, fault_told_fn *, void *data);

/* Copies the faults in force; their pointers are valid on that thread until the next order. Returns how many. */
uint32_t fault_book_read(struct fault_book *, struct fault_entry entry[FAULTS_IN_FORCE]);

#endif
