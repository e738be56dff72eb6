/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "reload.h"

#include "buffered_default.h"

#include "policy/file.h"
#include "proxy/listening.h"
#include "redis/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool reload_in_force(const struct gateway *gateway)
{
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        uint64_t number = atomic_load_explicit(&gateway->worker[i].snapshot_number, memory_order_relaxed);
        if (number < gateway->snapshot->number) {
            return false;
        }
    }
    return true;
}

void reload_over(struct gateway *gateway, uint64_t ordered)
{
    pthread_mutex_lock(&gateway->lock);
    gateway->reload.ordered = ordered;
    pthread_mutex_unlock(&gateway->lock);
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

static int listeners_open(struct gateway *gateway, const struct becalm_settings *settings, struct becalm_diags *diags)
{
    char why[512];
    uint32_t which = 0;
    int rc = listening_open(gateway, settings->listen, &which, why, sizeof why);
    if (rc != 0) {
        listening_complain(diags, gateway->path, &settings->listeners[which],
                           &(struct listening_complaint){"listen", why});
    }
    return rc;
}

int reload_load(const struct gateway *gateway, struct becalm_config **config, struct becalm_diags *diags)
{
    int rc = load_text(gateway, config, diags);
    if (rc == 0 && !redis_stores_check(*config, diags)) {
        becalm_config_free(*config);
        *config = NULL;
        rc = BECALM_EINVAL;
    }
    return rc;
}

static void follow(const struct reload_place *place, struct snapshot *snapshot)
{
    fleet_follow(place->fleet, snapshot);
    place->gateway->desk = fleet_desk(place->fleet);
}

static void publish(const struct reload_place *place, struct snapshot *snapshot)
{
    struct gateway *gateway = place->gateway;
    health_follow(place->health, snapshot);
    pthread_mutex_lock(&gateway->lock);
    struct snapshot *old = gateway->snapshot;
    gateway->snapshot = snapshot;
    pthread_mutex_unlock(&gateway->lock);
    follow(place, snapshot);
    snapshot_drop(old);
    gateway_order_all(gateway, WORKER_SNAPSHOT);
}

/* Auto is asked for each time: a cgroup's limit may be changed. */
void reload_max_buffered(struct gateway *gateway, const struct becalm_settings *settings)
{
    uint64_t max = settings->max_buffered == 0 ? buffered_default("") : settings->max_buffered;
    atomic_store_explicit(&gateway->max_buffered, max, memory_order_relaxed);
}

struct store_settings reload_store_settings(const struct becalm_settings *settings)
{
    return (struct store_settings){
        .ttl = settings->store_ttl,
        .max_entries = settings->store_max_entries,
        .max_bytes = settings->store_max_bytes,
    };
}

struct log_settings reload_log_settings(const struct gateway *gateway, const struct becalm_settings *settings)
{
    return (struct log_settings){
        .level = settings->log_level,
        .format = settings->log_format,
        .access = settings->log_access,
        .fd = gateway->log_fd,
        .access_fd = gateway->access_fd,
    };
}

/* Files that are loaded in addition to the policy. */
struct loaded {
    struct tls_set *tls;
    struct keyring *keyring;
};

static int snapshot_once(const struct reload_place *place, struct shared_config *config, const struct loaded *loaded,
                         struct snapshot *before, becalm_ns now, struct snapshot **snapshot)
{
    *snapshot = snapshot_make(&(struct snapshot_plan){
        .config = config,
        .before = before,
        .names = place->names,
        .tls = loaded->tls,
        .keyring = loaded->keyring,
        .workers = place->gateway->worker_count,
        .now = now,
    });
    return *snapshot == NULL ? BECALM_ENOMEM : 0;
}

/* Making a snapshot also starts resolving its names. Its first calls must not fail only because a name is still being
 * resolved. */
static int snapshot_of(const struct reload_place *place, struct shared_config *config, const struct loaded *loaded,
                       struct snapshot *before, becalm_ns now, struct snapshot **snapshot)
{
    int rc = snapshot_once(place, config, loaded, before, now, snapshot);
    if (rc == 0 && place->names_await(place->names.self, (*snapshot)->settings)) {
        snapshot_drop(*snapshot);
        rc = snapshot_once(place, config, loaded, before, now, snapshot);
    }
    return rc;
}

/* The certificates and secrets of a policy. Files that have not changed since `before` are not loaded again: the
 * objects of `before` are used. */
static int files_load(const struct gateway *gateway, const struct becalm_config *config, const struct loaded *before,
                      struct loaded *loaded, struct becalm_diags *diags)
{
    struct tls_set_plan plan = {
        .config = config,
        .before = before->tls,
        .tickets = gateway->tickets,
        .starts = before->tls == NULL,
    };
    int rc = tls_set_make(&loaded->tls, &plan, diags);
    return rc != 0 ? rc : keyring_make(&loaded->keyring, config, before->keyring, diags);
}

static struct loaded loaded_of(const struct snapshot *snapshot)
{
    return (struct loaded){snapshot->tls, snapshot->keyring};
}

static void loaded_drop(const struct loaded *loaded)
{
    tls_set_drop(loaded->tls);
    keyring_drop(loaded->keyring);
}

/* The steps of a reload that can fail come first; then the new snapshot is published. */
static int reload(const struct reload_place *place, struct becalm_diags *diags, becalm_ns now)
{
    struct gateway *gateway = place->gateway;
    struct becalm_config *config = NULL;
    struct snapshot *snapshot = NULL;
    struct loaded loaded = {NULL, NULL};
    int rc = reload_load(gateway, &config, diags);
    if (rc != 0) {
        return rc;
    }
    const struct becalm_settings *settings = becalm_config_settings(config);
    struct shared_config *shared = shared_config_make(config);
    if (shared == NULL) {
        return BECALM_ENOMEM;
    }
    const struct loaded before = loaded_of(gateway->snapshot);
    rc = files_load(gateway, config, &before, &loaded, diags);
    if (rc == 0) {
        rc = listeners_open(gateway, settings, diags);
    }
    if (rc == 0) {
        rc = admin_prepare(place->admin, settings, diags);
    }
    if (rc == 0) {
        rc = snapshot_of(place, shared, &loaded, gateway->snapshot, now, &snapshot);
    }
    admin_settle(place->admin, rc == 0);
    if (rc == 0) {
        struct store_settings store = reload_store_settings(settings);
        struct log_settings log = reload_log_settings(gateway, settings);
        store_resize(gateway->store, &store);
        reload_max_buffered(gateway, settings);
        log_change(gateway->log, &log);
        if (!exporter_change(gateway->exporter, &settings->tracing)) {
            becalm_diag_add(diags, BECALM_WARNING, gateway->path, settings->tracing.line, settings->tracing.column,
                            "tracing", "no memory: traces go on as before");
        }
        atomic_store_explicit(&gateway->told, 0, memory_order_relaxed);
        strangers_forget(&gateway->strangers);
        strangers_forget(&gateway->passed_hosts);
        publish(place, snapshot);
    }
    loaded_drop(&loaded);
    listening_forget(gateway, gateway->snapshot->settings->listen);
    shared_config_drop(shared);
    return rc;
}

int reload_now(const struct reload_place *place, struct becalm_diags *diags, becalm_ns now, uint64_t wall)
{
    struct gateway *gateway = place->gateway;
    int rc = reload(place, diags, now);
    pthread_mutex_lock(&gateway->lock);
    gateway->reload.successful = rc == 0;
    gateway->reload.wall = wall;
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

int reload_readdress(const struct reload_place *place, becalm_ns now)
{
    struct snapshot *snapshot;
    struct snapshot *before = place->gateway->snapshot;
    const struct loaded loaded = loaded_of(before);
    int rc = snapshot_once(place, before->shared, &loaded, before, now, &snapshot);
    if (rc == 0) {
        publish(place, snapshot);
    }
    return rc;
}

int reload_first(const struct reload_place *place, struct shared_config *shared, struct becalm_diags *diags)
{
    struct gateway *gateway = place->gateway;
    const struct becalm_settings *settings = becalm_config_settings(shared->config);
    struct loaded loaded = {NULL, NULL};
    int rc = files_load(gateway, shared->config, &(struct loaded){NULL, NULL}, &loaded, diags);
    if (rc == 0) {
        rc = snapshot_of(place, shared, &loaded, NULL, 0, &gateway->snapshot);
    }
    if (rc == 0) {
        health_follow(place->health, gateway->snapshot);
        follow(place, gateway->snapshot);
    }
    if (rc == 0) { /* before the listeners: a program that can connect to a listener may ask the admin address for the
                      state at once */
        rc = admin_prepare(place->admin, settings, diags);
        admin_settle(place->admin, rc == 0);
    }
    if (rc == 0) {
        rc = listeners_open(gateway, settings, diags);
    }
    loaded_drop(&loaded);
    return rc;
}
