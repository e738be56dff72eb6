/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "gateway.h"

#include "control.h"
#include "cpu.h"
#include "fleet.h"

#include "admin/admin.h"
#include "policy/file.h"
#include "proxy/buffered.h"
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
    (void)got; /* nothing: what is told is true all the same */
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

bool gateway_in_force(const struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        uint64_t number = atomic_load_explicit(&gateway->worker[i].snapshot_number, memory_order_relaxed);
        if (number < gateway->snapshot->number) {
            return false;
        }
    }
    return true;
}

void gateway_reload_over(struct gateway *gateway, uint64_t ordered)
{
    pthread_mutex_lock(&gateway->lock);
    gateway->reload.ordered = ordered;
    pthread_mutex_unlock(&gateway->lock);
}

/* Snapshots. */

static uint64_t wall_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * BECALM_S + (uint64_t)time.tv_nsec;
}

static int load_text(const struct gateway *gateway, struct becalm_config **config, struct becalm_diags *diags)
{
    struct becalm_load_options options = {
        .shared_budgets = true,
        .substitute = true,
        .allow_unknown = gateway->allow_unknown,
        .set = (const char *const *)gateway->set,
        .parts = (const char *const *)gateway->parts,
    };
    if (gateway->text != NULL) {
        return becalm_config_parse(config, gateway->path, gateway->text, strlen(gateway->text), &options, diags);
    }
    size_t length;
    const char *why;
    char *text = file_read_regular(gateway->path, &length, &why); /* orders wait behind this: it must not wait itself */
    if (text == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, gateway->path, 1, 1, "unreadable", "%s", why);
        return BECALM_EIO;
    }
    int rc = becalm_config_parse(config, gateway->path, text, length, &options, diags);
    free(text);
    return rc;
}

/* Where one can't listen is told at the address in the file, if it stands there. */
static int listeners_open(struct gateway *gateway, const struct becalm_settings *settings, struct becalm_diags *diags)
{
    char why[512];
    uint32_t which = 0;
    int rc = listening_open(gateway, settings->listen, &which, why, sizeof why);
    if (rc != 0) {
        const struct becalm_listener *listener = &settings->listeners[which];
        bool written = listener->line > 0;
        becalm_diag_add(diags, BECALM_ERROR, gateway->path, written ? listener->line : 1,
                        written ? listener->column : 1, "listen", "%s", why);
    }
    return rc;
}

static int load(const struct gateway *gateway, struct becalm_config **config, struct becalm_diags *diags)
{
    int rc = load_text(gateway, config, diags);
    if (rc == 0 && !fleet_check(*config, diags)) {
        becalm_config_free(*config);
        *config = NULL;
        rc = BECALM_EINVAL;
    }
    return rc;
}

static void publish(struct gateway *gateway, struct snapshot *snapshot)
{
    pthread_mutex_lock(&gateway->lock);
    struct snapshot *old = gateway->snapshot;
    gateway->snapshot = snapshot;
    pthread_mutex_unlock(&gateway->lock);
    control_follow(gateway->control, snapshot);
    snapshot_drop(old);
    gateway_order_all(gateway, WORKER_SNAPSHOT);
}

/* Auto is asked for each time: a cgroup's limit may be changed. */
static void set_max_buffered(struct gateway *gateway, const struct becalm_settings *settings)
{
    uint64_t max = settings->max_buffered == 0 ? buffered_default("") : settings->max_buffered;
    atomic_store_explicit(&gateway->max_buffered, max, memory_order_relaxed);
}

static struct store_settings store_settings_of(const struct becalm_settings *settings)
{
    return (struct store_settings){
        .ttl = settings->store_ttl,
        .max_entries = settings->store_max_entries,
        .max_bytes = settings->store_max_bytes,
    };
}

static struct log_settings log_settings_of(const struct gateway *gateway, const struct becalm_settings *settings)
{
    return (struct log_settings){
        .level = settings->log_level,
        .format = settings->log_format,
        .access = settings->log_access,
        .fd = gateway->log_fd,
        .access_fd = gateway->access_fd,
    };
}

static int snapshot_of(struct gateway *gateway, struct shared_config *config, struct tls_set *tls,
                       struct snapshot *before, becalm_ns now, struct snapshot **snapshot)
{
    *snapshot = snapshot_make(&(struct snapshot_plan){
        .config = config,
        .before = before,
        .names = control_names(gateway->control),
        .tls = tls,
        .workers = gateway->worker_count,
        .now = now,
    });
    return *snapshot == NULL ? BECALM_ENOMEM : 0;
}

/* The certificates of a policy. What has not changed since `before` is the same as there. */
static int tls_load(const struct gateway *gateway, const struct becalm_config *config, const struct tls_set *before,
                    struct tls_set **tls, struct becalm_diags *diags)
{
    struct tls_set_plan plan = {
        .config = config,
        .before = before,
        .tickets = gateway->tickets,
        .starts = before == NULL,
    };
    return tls_set_make(tls, &plan, diags);
}

/* The steps of a reload that can fail come first; then it is published. */
static int reload(struct gateway *gateway, struct becalm_diags *diags, becalm_ns now)
{
    struct becalm_config *config = NULL;
    struct snapshot *snapshot = NULL;
    struct tls_set *tls = NULL;
    struct admin *admin = control_admin(gateway->control);
    int rc = load(gateway, &config, diags);
    if (rc != 0) {
        return rc;
    }
    const struct becalm_settings *settings = becalm_config_settings(config);
    struct shared_config *shared = shared_config_make(config);
    if (shared == NULL) {
        return BECALM_ENOMEM;
    }
    rc = tls_load(gateway, config, gateway->snapshot->tls, &tls, diags);
    if (rc == 0) {
        rc = listeners_open(gateway, settings, diags);
    }
    if (rc == 0) {
        rc = admin_prepare(admin, settings, diags);
    }
    if (rc == 0) {
        rc = snapshot_of(gateway, shared, tls, gateway->snapshot, now, &snapshot);
    }
    admin_settle(admin, rc == 0);
    if (rc == 0) {
        struct store_settings store = store_settings_of(settings);
        struct log_settings log = log_settings_of(gateway, settings);
        store_resize(gateway->store, &store);
        set_max_buffered(gateway, settings);
        log_change(gateway->log, &log);
        atomic_store_explicit(&gateway->told, 0, memory_order_relaxed);
        strangers_forget(&gateway->strangers);
        publish(gateway, snapshot);
    }
    tls_set_drop(tls);
    listening_forget(gateway, gateway->snapshot->settings->listen);
    shared_config_drop(shared);
    return rc;
}

int gateway_reload_now(struct gateway *gateway, struct becalm_diags *diags, becalm_ns now)
{
    int rc = reload(gateway, diags, now);
    pthread_mutex_lock(&gateway->lock);
    gateway->reload.successful = rc == 0;
    gateway->reload.wall = wall_now();
    gateway->reload.good_wall = rc == 0 ? gateway->reload.wall : gateway->reload.good_wall;
    gateway->reload.count++;
    gateway->reload.why[0] = '\0';
    for (uint32_t i = 0; rc != 0 && i < diags->count; i++) {
        if (diags->diag[i].severity == BECALM_ERROR) {
            becalm_diag_write(&diags->diag[i], gateway->reload.why, sizeof gateway->reload.why);
            break;
        }
    }
    if (rc == BECALM_ENOMEM) {
        snprintf(gateway->reload.why, sizeof gateway->reload.why, "%s: no memory", gateway->path);
    }
    pthread_mutex_unlock(&gateway->lock);
    return rc;
}

int gateway_readdress(struct gateway *gateway, becalm_ns now)
{
    struct snapshot *snapshot;
    struct snapshot *before = gateway->snapshot;
    int rc = snapshot_of(gateway, before->shared, before->tls, before, now, &snapshot);
    if (rc == 0) {
        publish(gateway, snapshot);
    }
    return rc;
}

/* Beginning and end. */

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
    struct tls_set *tls = NULL;
    int rc = load(gateway, &config, diags);
    if (rc != 0) {
        return rc;
    }
    struct shared_config *shared = shared_config_make(config);
    if (shared == NULL) {
        return BECALM_ENOMEM;
    }
    const struct becalm_settings *settings = becalm_config_settings(config);
    struct log_settings log = log_settings_of(gateway, settings);
    struct store_settings store = store_settings_of(settings);
    gateway->worker_count = workers_of(settings);
    set_max_buffered(gateway, settings);
    gateway->log = log_make(&log, gateway->worker_count + 1);
    gateway->store =
        entropy_fill(&gateway->store_secret, sizeof gateway->store_secret) ? store_memory_make(&store) : NULL;
    gateway->control = gateway->log == NULL ? NULL : control_make(gateway);
    gateway->tickets = tls_tickets_random();
    bool made = gateway->store != NULL && gateway->control != NULL && gateway->tickets != NULL;
    rc = made ? tls_load(gateway, config, NULL, &tls, diags) : BECALM_ENOMEM;
    if (rc == 0) {
        rc = snapshot_of(gateway, shared, tls, NULL, 0, &gateway->snapshot);
    }
    if (rc == 0) {
        control_follow(gateway->control, gateway->snapshot);
    }
    if (rc == 0) { /* before the listeners: who finds those open may ask here whether all is well */
        rc = admin_prepare(control_admin(gateway->control), settings, diags);
        admin_settle(control_admin(gateway->control), rc == 0);
    }
    if (rc == 0) {
        rc = listeners_open(gateway, settings, diags);
    }
    tls_set_drop(tls);
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
    peer_key_draw(&gateway->peer_key);
    tally_init(&gateway->clients);
    strangers_init(&gateway->strangers);
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
        gateway_free(gateway);
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
    log_free(gateway->log);
    free_list(gateway->set);
    free_list(gateway->parts);
    free(gateway->handed_fd);
    free(gateway->text);
    free(gateway->path);
    tally_free(&gateway->clients);
    strangers_free(&gateway->strangers);
    tally_free(&gateway->host_tunnels);
    pthread_mutex_destroy(&gateway->lock);
    free(gateway);
}
