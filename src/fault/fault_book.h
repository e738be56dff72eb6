/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FAULT_FAULT_BOOK_H
#define BECALM_FAULT_FAULT_BOOK_H

/* The faults that are in force. One thread orders them; workers ask whether somebody is hit. While there are none, that
 * is one look at a count; else a lock, which only game days pay for. */

#include "fault.h"

#include "message/head.h"
#include "origin/origin.h"

#include <pthread.h>

#define FAULTS_IN_FORCE 16u

/* Who may be hit. */
struct fault_call {
    const char *service;
    const char *endpoint; /* NULL: the service's own rules */
    bool to_clients;
    uint32_t host; /* which of the service's, of how many */
    uint32_t host_count;
    uint64_t caller; /* a number that others do not have */
    const struct origin_ip *ip;
    const struct head *head;
    becalm_ns now;
    uint64_t random;
};

/* What hits it. */
struct fault_hit {
    enum fault_act act;
    enum fault_kind word;
    uint32_t status;
    becalm_ns until; /* DELAY, HANG */
    uint64_t number; /* of the fault */
    char name[FAULT_NAME_MAX];
};

enum fault_end { FAULT_EXPIRED, FAULT_CLEARED, FAULT_SPENT };

/* One in force, as it is told. */
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

/* From the one thread that orders. Takes the fault over, and names it if nobody did. NULL: in force. Else why not, and
 * it is not taken over. */
const char *fault_book_add(struct fault_book *, struct fault *, becalm_ns now);

/* Ends those that are over, and what `name` means (NULL: none, "": all), and tells of each. Returns how many. */
typedef void fault_told_fn(void *data, const struct fault_entry *, enum fault_end);
uint32_t fault_book_end(struct fault_book *, const char *name, becalm_ns now, fault_told_fn *, void *data);

/* Copies what is in force; what it points to is valid on that thread until the next order. Returns how many. */
uint32_t fault_book_read(struct fault_book *, struct fault_entry entry[FAULTS_IN_FORCE]);

#endif
