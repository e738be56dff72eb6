/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lookup.h"

#include <becalm/rand.h>

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES 8u

struct lookup_job {
    BECALM_ATOMIC(uint32_t) holders; /* the thread, and the caller that has asked: the last one frees it */
    BECALM_ATOMIC(bool) done;        /* release: the result is complete; acquire: it may be read */
    char name[256];
    char port[8];
    union address_socket list[ADDRESSES];
    uint32_t count;
};

static void job_drop(struct lookup_job *job)
{
    if (atomic_fetch_sub_explicit(&job->holders, 1, memory_order_acq_rel) == 1) { /* all other holders have finished */
        free(job);
    }
}

static void *job_run(void *data)
{
    struct lookup_job *job = data;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    if (getaddrinfo(job->name, job->port, &hints, &found) != 0) {
        found = NULL;
    }
    for (const struct addrinfo *at = found; at != NULL && job->count < ADDRESSES; at = at->ai_next) {
        if (at->ai_addrlen <= sizeof job->list[0]) {
            memcpy(&job->list[job->count++], at->ai_addr, at->ai_addrlen);
        }
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    atomic_store_explicit(&job->done, true, memory_order_release);
    job_drop(job);
    return NULL;
}

/* The thread hears no signal: they are for those of the program. */
static bool thread_start(struct lookup_job *job)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, job_run, job) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return started;
}

/* NULL: no memory, or no thread. */
static struct lookup_job *job_start(const char *name, uint16_t port)
{
    struct lookup_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    snprintf(job->name, sizeof job->name, "%s", name);
    snprintf(job->port, sizeof job->port, "%u", port);
    atomic_init(&job->holders, 2);
    if (!thread_start(job)) {
        free(job);
        return NULL;
    }
    return job;
}

static bool job_is(const struct lookup_job *job, const struct address *address)
{
    return strcmp(job->name, address->name) == 0 && strtoul(job->port, NULL, 10) == address->port;
}

/* The place of this name, or a free one; NULL: there is none. */
static struct lookup_job **place_find(struct lookup *lookup, const struct address *address)
{
    struct lookup_job **place = NULL;
    for (uint32_t i = 0; i < LOOKUP_NAMES; i++) {
        struct lookup_job **at = &lookup->job[i];
        if (*at != NULL && job_is(*at, address)) {
            return at;
        }
        place = place == NULL && *at == NULL ? at : place;
    }
    return place;
}

bool lookup_find(struct lookup *lookup, const char *host, union address_socket *socket)
{
    struct address address;
    if (!address_parse(host, &address)) {
        return false;
    }
    if (address.kind != ADDRESS_NAME) {
        *socket = address.socket;
        return true;
    }
    struct lookup_job **place = place_find(lookup, &address);
    struct lookup_job *job = place == NULL ? NULL : *place;
    if (job == NULL) {
        if (place != NULL) {
            *place = job_start(address.name, address.port);
        }
        return false;
    }
    if (!atomic_load_explicit(&job->done, memory_order_acquire)) {
        return false;
    }
    bool found = job->count > 0;
    if (found) {
        *socket = job->list[becalm_rand_below(becalm_rand_next(&lookup->random), job->count)];
    }
    *place = NULL;
    job_drop(job);
    return found;
}

void lookup_clear(struct lookup *lookup)
{
    for (uint32_t i = 0; i < LOOKUP_NAMES; i++) {
        if (lookup->job[i] != NULL) {
            job_drop(lookup->job[i]);
        }
    }
    memset(lookup, 0, sizeof *lookup);
}
