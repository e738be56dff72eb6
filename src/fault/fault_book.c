/* SPDX-License-Identifier: MIT */
#include "fault_book.h"

#include <becalm/rand.h>

#include <stdio.h>
#include <string.h>

void fault_book_init(struct fault_book *book)
{
    memset(book, 0, sizeof *book);
    pthread_mutex_init(&book->lock, NULL);
}

void fault_book_free(struct fault_book *book)
{
    uint32_t count = atomic_load_explicit(&book->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        fault_free((struct fault *)(uintptr_t)book->entry[i].fault);
    }
    pthread_mutex_destroy(&book->lock);
}

/* ---- which calls are hit ---- */

static bool is_over(const struct fault_entry *entry, becalm_ns now)
{
    return becalm_ns_since(now, entry->at) >= entry->fault->length || entry->hits >= entry->fault->cap;
}

/* A fault may come and go. */
static bool is_on(const struct fault_entry *entry, becalm_ns now)
{
    const struct fault *fault = entry->fault;
    return !is_over(entry, now) &&
           (fault->on == 0 || becalm_ns_since(now, entry->at) % (fault->on + fault->off) < fault->on);
}

static bool has_header(const struct head *head, const char *wanted)
{
    const char *colon = strchr(wanted, ':');
    struct becalm_text name = {wanted, colon == NULL ? strlen(wanted) : (size_t)(colon - wanted)};
    if (colon == NULL) {
        return head_find_other(head, name).at != NULL;
    }
    const char *value = colon + 1 + strspn(colon + 1, " ");
    return head_has_value(head, name, (struct becalm_text){value, strlen(value)});
}

static bool means(const struct fault *fault, const struct fault_call *call)
{
    const char *endpoint = call->endpoint == NULL ? "default" : call->endpoint;
    return fault->to_clients == call->to_clients && strcmp(fault->service, call->service) == 0 &&
           (fault->endpoint == NULL || strcmp(fault->endpoint, endpoint) == 0);
}

static bool names(const struct fault *fault, const struct fault_call *call)
{
    for (uint32_t i = 0; fault->headers != NULL && fault->headers[i] != NULL; i++) {
        if (!has_header(call->head, fault->headers[i])) {
            return false;
        }
    }
    union address_socket peer;
    if (fault->trust != NULL) {
        origin_ip_socket(call->ip, &peer);
    }
    return fault->trust == NULL || trust_has(fault->trust, &peer.any);
}

/* Hosts are hit in turn, or the first of them, or all. */
static bool hits_host(const struct fault_entry *entry, const struct fault_call *call)
{
    const struct fault *fault = entry->fault;
    if (fault->each > 0 && call->host_count > 0) {
        return becalm_ns_since(call->now, entry->at) / fault->each % call->host_count == call->host;
    }
    return fault->hosts == 0 || call->host < fault->hosts;
}

static bool hits(const struct fault_entry *entry, const struct fault_call *call, uint32_t index)
{
    const struct fault *fault = entry->fault;
    uint64_t random = call->random;
    for (uint32_t i = 0; i <= index; i++) { /* each fault draws for itself */
        random = becalm_rand_next(&random);
    }
    return is_on(entry, call->now) && means(fault, call) && hits_host(entry, call) && names(fault, call) &&
           call->caller % FAULT_ALL < fault->callers &&
           (fault->share == FAULT_ALL || becalm_rand_chance(random, fault->share));
}

/* A fault that fails calls at once is stronger than a fault that delays them. */
static const struct fault_entry *strongest(struct fault_book *book, const struct fault_call *call)
{
    const struct fault_entry *found = NULL;
    uint32_t count = atomic_load_explicit(&book->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct fault_entry *entry = &book->entry[i];
        if (hits(entry, call, i) && (found == NULL || entry->fault->act < found->fault->act)) {
            found = entry;
        }
    }
    return found;
}

bool fault_book_draw(struct fault_book *book, const struct fault_call *call, struct fault_hit *hit)
{
    pthread_mutex_lock(&book->lock);
    struct fault_entry *entry = (struct fault_entry *)(uintptr_t)strongest(book, call);
    if (entry != NULL) {
        const struct fault *fault = entry->fault;
        becalm_ns end = becalm_ns_after(entry->at, fault->length);
        entry->hits++;
        *hit = (struct fault_hit){
            .act = fault->act,
            .word = fault->word,
            .status = fault->status,
            .until = fault->act == FAULT_ACT_DELAY ? becalm_ns_after(call->now, fault->latency) : end,
            .number = entry->number,
        };
        memcpy(hit->name, fault->name, sizeof hit->name);
    }
    pthread_mutex_unlock(&book->lock);
    return entry != NULL;
}

bool fault_book_has(struct fault_book *book, uint64_t number, becalm_ns now)
{
    bool found = false;
    pthread_mutex_lock(&book->lock);
    uint32_t count = atomic_load_explicit(&book->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        /* One that has hit as many as it may still holds those. */
        found |=
            book->entry[i].number == number && becalm_ns_since(now, book->entry[i].at) < book->entry[i].fault->length;
    }
    pthread_mutex_unlock(&book->lock);
    return found;
}

/* ---- orders ---- */

static bool is_named(const struct fault_book *book, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(book->entry[i].fault->name, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *fault_book_add(struct fault_book *book, struct fault *fault, becalm_ns now)
{
    uint32_t count = atomic_load_explicit(&book->count, memory_order_relaxed);
    if (count == FAULTS_IN_FORCE) {
        return "The most faults that a gateway accepts are in force: clear one.";
    }
    if (fault->name[0] != '\0' && is_named(book, count, fault->name)) {
        return "A fault of that name is in force: clear it, or give this one another name.";
    }
    pthread_mutex_lock(&book->lock);
    uint64_t number = ++book->numbers;
    while (fault->name[0] == '\0' || is_named(book, count, fault->name)) {
        snprintf(fault->name, sizeof fault->name, "%s-%llu", fault_word(fault->word), (unsigned long long)number++);
    }
    book->entry[count] = (struct fault_entry){.fault = fault, .number = book->numbers, .at = now};
    atomic_store_explicit(&book->count, count + 1, memory_order_relaxed); /* the entries are the lock's */
    pthread_mutex_unlock(&book->lock);
    return NULL;
}

static bool ends(const struct fault_entry *entry, const char *name, becalm_ns now, enum fault_end *why)
{
    *why = becalm_ns_since(now, entry->at) >= entry->fault->length ? FAULT_EXPIRED
           : entry->hits >= entry->fault->cap                      ? FAULT_SPENT
                                                                   : FAULT_CLEARED;
    return *why != FAULT_CLEARED || (name != NULL && (name[0] == '\0' || strcmp(name, entry->fault->name) == 0));
}

uint32_t fault_book_end(struct fault_book *book, const char *name, becalm_ns now, fault_told_fn *told, void *data)
{
    uint32_t count = atomic_load_explicit(&book->count, memory_order_relaxed);
    uint32_t kept = 0;
    uint32_t gone = 0;
    struct fault_entry over[FAULTS_IN_FORCE];
    enum fault_end why[FAULTS_IN_FORCE];
    pthread_mutex_lock(&book->lock);
    for (uint32_t i = 0; i < count; i++) {
        if (ends(&book->entry[i], name, now, &why[gone])) {
            over[gone++] = book->entry[i];
        } else {
            book->entry[kept++] = book->entry[i];
        }
    }
    atomic_store_explicit(&book->count, kept, memory_order_relaxed);
    pthread_mutex_unlock(&book->lock);
    for (uint32_t i = 0; i < gone; i++) {
        told(data, &over[i], why[i]);
        fault_free((struct fault *)(uintptr_t)over[i].fault);
    }
    return gone;
}

uint32_t fault_book_read(struct fault_book *book, struct fault_entry entry[FAULTS_IN_FORCE])
{
    pthread_mutex_lock(&book->lock);
    uint32_t count = atomic_load_explicit(&book->count, memory_order_relaxed);
    memcpy(entry, book->entry, count * sizeof *entry);
    pthread_mutex_unlock(&book->lock);
    return count;
}
