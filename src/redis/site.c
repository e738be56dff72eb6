/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "site.h"

#include "policy/diag.h"
#include "policy/file.h"
#include "tls/tls_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line is the password. */
static const char *password_take(char *text, struct redis_place *place)
{
    text[strcspn(text, "\r\n")] = 0;
    if (text[0] == 0 || strlen(text) >= sizeof place->password) {
        return "it is empty, or longer than 255 bytes";
    }
    memset(place->password, 0, sizeof place->password);
    memcpy(place->password, text, strlen(text));
    return NULL;
}

static const char *password_read(const char *path, struct redis_place *place)
{
    size_t length;
    const char *why = NULL;
    char *text = file_read_regular(path, &length, &why); /* only regular files, because the caller must not block */
    if (text != NULL) {
        why = password_take(text, place);
        explicit_bzero(text, length);
    }
    free(text);
    return why;
}

static const char *password_get(const char *name, struct redis_place *place)
{
    char copy[sizeof place->password + 1];
    const char *value = getenv(name);
    if (value == NULL) {
        return "it is not set";
    }
    snprintf(copy, sizeof copy, "%s", value);
    const char *why = password_take(copy, place);
    explicit_bzero(copy, sizeof copy);
    return why;
}

const char *redis_site_login(const struct redis_site *site, struct redis_place *place)
{
    if (site->user != NULL) {
        snprintf(place->user, sizeof place->user, "%s", site->user);
    }
    if (site->password_file != NULL) {
        return password_read(site->password_file, place);
    }
    return site->password_env != NULL ? password_get(site->password_env, place) : NULL;
}

static bool copied(char **to, const char *from)
{
    *to = from == NULL ? NULL : strdup(from);
    return from == NULL || *to != NULL;
}

/* Where a sentence about it points at. */
struct pointing {
    const struct becalm_config *config;
    struct becalm_diags *diags;
    struct becalm_origin at;
    const char *key;
};

static bool refuse(const struct pointing *p, const char *key, const struct becalm_file *file, const char *why)
{
    struct becalm_origin at = p->at;
    if (file != NULL && file->line > 0) {
        at.line = file->line;
        at.column = file->column;
    }
    becalm_diag_add(p->diags, BECALM_ERROR, becalm_config_name(p->config), at.line, at.column, "store", "%s: %s", key,
                    why);
    return false;
}

static bool tls_open(struct redis_site *site, const struct becalm_store *store, const struct pointing *p)
{
    /* Certificates are loaded for services; this is one of a name that no policy has. */
    struct becalm_service service = {.name = "store", .line = p->at.line, .column = p->at.column};
    struct tls_plan plan = {.policy = becalm_config_name(p->config), .diags = p->diags};
    if (store != NULL) {
        service.tls = store->tls;
    } else {
        service.tls = (struct becalm_host_tls){.enabled = true, .line = p->at.line, .column = p->at.column};
    }
    site->tls = tls_context_client(&plan, &service);
    return site->tls != NULL;
}

static bool store_open(struct redis_site *site, const struct becalm_store *store, const struct pointing *p)
{
    if (!copied(&site->user, store->user) || !copied(&site->password_file, store->password_file.path) ||
        !copied(&site->password_env, store->password_env) || !copied(&site->server_name, store->tls.server_name)) {
        return false;
    }
    site->timeout = store->timeout;
    const char *why = redis_site_login(site, &site->place);
    if (why == NULL && site->user != NULL && strlen(site->user) >= sizeof site->place.user) {
        return refuse(p, "store.user", NULL, "it is longer than 63 bytes");
    }
    const char *key = store->password_file.path != NULL ? "store.passwordFile" : "store.passwordEnv";
    return why == NULL || refuse(p, key, &store->password_file, why);
}

bool redis_site_open(struct redis_site *site, const struct becalm_config *config, const char *url,
                     struct becalm_origin at, struct becalm_diags *diags)
{
    const struct becalm_store *store = &becalm_config_settings(config)->store;
    bool of_store = store->redis != NULL && strcmp(store->redis, url) == 0;
    struct pointing p = {.config = config, .diags = diags, .at = at};
    const char *why = redis_place_parse(url, &site->place);
    struct redis_place place = site->place;
    memset(site, 0, sizeof *site);
    site->place = place;
    if (of_store) {
        p.at.line = store->line;
        p.at.column = store->column;
    }
    bool fine = why == NULL || refuse(&p, of_store ? "store.redis" : "budget.shared.redis", NULL, why);
    fine = fine && copied(&site->url, url) && (!of_store || store_open(site, store, &p)) &&
           (!site->place.tls || tls_open(site, of_store ? store : NULL, &p));
    if (!fine) {
        redis_site_close(site);
    }
    return fine;
}

void redis_site_close(struct redis_site *site)
{
    free(site->url);
    free(site->server_name);
    free(site->user);
    free(site->password_file);
    free(site->password_env);
    if (site->tls != NULL) {
        tls_context_drop(site->tls);
    }
    explicit_bzero(site, sizeof *site);
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL || b == NULL) ? a == b : strcmp(a, b) == 0;
}

bool redis_site_same(const struct redis_site *a, const struct redis_site *b)
{
    return same_text(a->url, b->url) && memcmp(&a->place, &b->place, sizeof a->place) == 0 &&
           same_text(a->server_name, b->server_name) && same_text(a->password_file, b->password_file) &&
           same_text(a->password_env, b->password_env) && a->timeout == b->timeout &&
           (a->tls == NULL || b->tls == NULL ? a->tls == b->tls
                                             : memcmp(a->tls->mark, b->tls->mark, sizeof a->tls->mark) == 0);
}

static void login(const void *self, struct redis_place *place)
{
    (void)redis_site_login(self, place); /* without a login the server itself reports the error */
}

void redis_site_use(const struct redis_site *site, struct redis_options *options)
{
    options->place = site->place;
    options->tls = site->tls;
    options->server_name = site->server_name;
    options->timeout = site->timeout;
    options->login = login;
    options->login_self = site;
}
