/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "gateway.h"

#include "control.h"
#include "cpu.h"

#include "proxy/listener.h"
#include "proxy/listening.h"
#include "proxy/worker_thread.h"

#include "run/entropy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 64u /* as many as gates can tell apart */
_Static_assert(WORKERS_MAX <= BECALM_FLOWS, "each worker has a bit of a gate's");

/* Orders to the control thread. */

uint64_t gateway_order_reload(struct gateway *gateway)
{
    uint64_t number = atomic_fetch_add_explicit(&gateway->reload_orders, 1, memory_order_relaxed) + 1;
    control_order(gateway->control, CONTROL_RELOAD); /* its release publishes the number */
    return number;
}

void gateway_order_drain(struct gateway *gateway)
{
    control_order(gateway->control, CONTROL_DRAIN);
}

void gateway_order_stop(struct gateway *gateway)
{
    control_order(gateway->control, CONTROL_STOP);
}

void gateway_wait(struct gateway *gateway)
{
    control_wait(gateway->control);
}

int gateway_end_fd(const struct gateway *gateway)
{
    return control_end_fd(gateway->control);
}

int gateway_reload_fd(const struct gateway *gateway)
{
    return control_reload_fd(gateway->control);
}

uint64_t gateway_reload_told(struct gateway *gateway, char *text, size_t size)
{
    uint64_t count;
    ssize_t got = read(gateway_reload_fd(gateway), &count, sizeof count);
    (void)got; /* if nothing was read, the text below is true all the same */
    pthread_mutex_lock(&gateway->lock);
    if (gateway->reload.successful) {
        snprintf(text, size, "policy in force: %s", gateway->path);
    } else {
        snprintf(text, size, "policy refused, the one before stays: %s", gateway->reload.why);
    }
    uint64_t ordered = gateway->reload.ordered;
    pthread_mutex_unlock(&gateway->lock);
    return ordered;
}

bool gateway_moves(struct gateway *gateway)
{
    bool all = control_moves(gateway->control);
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        all = loop_moves(&gateway->worker[i].loop) && all; /* each is asked */
    }
    return all;
}

/* Beginning and end. */

static uint64_t wall_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * BECALM_S + (uint64_t)time.tv_nsec;
}

static uint32_t workers_of(const struct becalm_settings *settings)
{
    uint32_t count = settings->workers > 0 ? settings->workers : cpu_cores("");
    return count < WORKERS_MAX ? count : WORKERS_MAX;
}

static char **copy_list(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(list[i]);
    }
    return copy;
}

static void free_list(char **list)
{
    for (char **item = list; item != NULL && *item != NULL; item++) {
        free(*item);
    }
    free(list);
}

static int set_up(struct gateway *gateway, struct becalm_diags *diags)
{
    struct becalm_config *config = NULL;
    int rc = reload_load(gateway, &config, diags);
    if (rc != 0) {
        return rc;
    }
    struct shared_config *shared = shared_config_make(config);
    if (shared == NULL) {
        return BECALM_ENOMEM;
    }
    const struct becalm_settings *settings = becalm_config_settings(config);
    struct log_settings log = reload_log_settings(gateway, settings);
    struct store_settings store = reload_store_settings(settings);
    gateway->worker_count = workers_of(settings);
    reload_max_buffered(gateway, settings);
    gateway->log = log_make(&log, gateway->worker_count + 2); /* one for the control thread, one for traces */
    gateway->exporter = gateway->log == NULL ? NULL
                                             : exporter_make(gateway->worker_count, gateway->id,
                                                             log_source_of(gateway->log, gateway->worker_count + 1));
    gateway->store =
        entropy_fill(&gateway->store_secret, sizeof gateway->store_secret) ? store_memory_make(&store) : NULL;
    gateway->control = gateway->log == NULL ? NULL : control_make(gateway);
    gateway->tickets = tls_tickets_random();
    bool made = gateway->store != NULL && gateway->control != NULL && gateway->tickets != NULL &&
                gateway->exporter != NULL && exporter_change(gateway->exporter, &settings->tracing);
    rc = made ? reload_first(control_place(gateway->control), shared, diags) : BECALM_ENOMEM;
    shared_config_drop(shared);
    return rc;
}

static int workers_make(struct gateway *gateway)
{
    uint32_t count = gateway->worker_count;
    gateway->worker = calloc(count, sizeof *gateway->worker);
    if (gateway->worker == NULL) {
        gateway->worker_count = 0;
        return BECALM_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) { /* one that fails leaves nothing of those behind it to be closed */
        gateway->worker[i].loop.epoll_fd = gateway->worker[i].loop.wake.fd = -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        int rc = worker_init(&gateway->worker[i], gateway, i, log_source_of(gateway->log, i));
        if (rc != 0) {
            return rc;
        }
        listeners_update(&gateway->worker[i]);
    }
    return 0;
}

int gateway_make(struct gateway **made, const struct gateway_options *options, struct becalm_diags *diags)
{
    unsigned char random[GATEWAY_ID_BYTES] = {0};
    struct gateway *gateway = calloc(1, sizeof *gateway);
    *made = NULL;
    if (gateway == NULL) {
        return BECALM_ENOMEM;
    }
    pthread_mutex_init(&gateway->lock, NULL);
    pthread_mutex_init(&gateway->accepting, NULL);
    fault_book_init(&gateway->faults);
    peer_key_draw(&gateway->peer_key);
    tally_init(&gateway->clients);
    gateway->join = join_table_make(); /* without memory nothing is joined */
    strangers_init(&gateway->strangers);
    strangers_init(&gateway->passed_hosts);
    passing_init(&gateway->passing);
    tally_init(&gateway->host_tunnels);
    gateway->path = strdup(options->path);
    gateway->set = copy_list(options->load == NULL ? NULL : options->load->set);
    gateway->parts = copy_list(options->load == NULL ? NULL : options->load->parts);
    gateway->allow_unknown = options->load != NULL && options->load->allow_unknown;
    gateway->log_fd = options->log_fd;
    gateway->access_fd = options->access_fd;
    gateway->text = options->text == NULL ? NULL : strdup(options->text);
    gateway->handed_fd = malloc((options->handed.count + 1) * sizeof *gateway->handed_fd);
    gateway->started_wall = gateway->reload.wall = gateway->reload.good_wall = wall_now();
    gateway->reload.successful = true;
    bool copied = gateway->path != NULL && gateway->set != NULL && gateway->parts != NULL &&
                  gateway->handed_fd != NULL && (options->text == NULL) == (gateway->text == NULL);
    int rc = copied ? 0 : BECALM_ENOMEM;
    if (rc == 0) {
        for (uint32_t i = 0; i < options->handed.count; i++) {
            gateway->handed_fd[i] = options->handed.fd[i];
        }
        gateway->handed = (struct handed){gateway->handed_fd, options->handed.count};
        if (!entropy_fill(random, sizeof random)) {
            memcpy(random, &gateway->started_wall, sizeof random);
        }
        gateway_name(gateway, random);
        rc = set_up(gateway, diags);
    }
    if (rc == 0) {
        rc = workers_make(gateway);
    }
    if (rc != 0) {
        int cause = errno; /* gateway_free() must not overwrite errno */
        gateway_free(gateway);
        errno = cause;
        return rc;
    }
    *made = gateway;
    return 0;
}

int gateway_start(struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        if (worker_start(&gateway->worker[i]) != 0) {
            return BECALM_EIO;
        }
    }
    return control_start(gateway->control);
}

void gateway_free(struct gateway *gateway)
{
    if (gateway == NULL) {
        return;
    }
    control_free(gateway->control); /* first: it orders the workers about */
    if (gateway->worker != NULL) {
        gateway_order_all(gateway, WORKER_STOP);
        for (uint32_t i = 0; i < gateway->worker_count; i++) {
            worker_join(&gateway->worker[i]);
        }
        for (uint32_t i = 0; i < gateway->worker_count; i++) {
            worker_free(&gateway->worker[i]);
        }
    }
    if (gateway->listening != NULL) {
        listening_free(gateway);
    }
    free(gateway->worker);
    snapshot_drop(gateway->snapshot);
    tls_tickets_drop(gateway->tickets);
    store_free(gateway->store);
    exporter_free(gateway->exporter);
    log_free(gateway->log);
    free_list(gateway->set);
    free_list(gateway->parts);
    free(gateway->handed_fd);
    free(gateway->text);
    free(gateway->path);
    tally_free(&gateway->clients);
    join_table_free(gateway->join);
    strangers_free(&gateway->strangers);
    strangers_free(&gateway->passed_hosts);
    passing_free(&gateway->passing);
    tally_free(&gateway->host_tunnels);
    fault_book_free(&gateway->faults);
    pthread_mutex_destroy(&gateway->accepting);
    pthread_mutex_destroy(&gateway->lock);
    free(gateway);
}
