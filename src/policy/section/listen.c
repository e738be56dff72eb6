/* SPDX-License-Identifier: MIT */
#include "listen.h"

#include <stdio.h>
#include <string.h>

#include "policy/apply.h"
#include "policy/config_data.h"
#include "policy/service/unlisted.h"
#include "policy/value.h"

/* A name can be called, but one listens on an address. */
static bool address_is_fine(struct loader *l, const char *key, const struct yaml_node *node, const char *address)
{
    if (!value_address(address)) {
        loader_error(l, node->line, node->column, "wrong-type",
                     "%s: \"%.64s\" is not an address; write host:port, [ipv6]:port or unix:/path", key,
                     yaml_shown(node));
        return false;
    }
    if (value_address_is_name(address)) {
        loader_error(l, node->line, node->column, "wrong-type",
                     "%s: %.64s is a name; write an address to listen on, like 127.0.0.1:8080 or unix:/path", key,
                     yaml_shown(node));
        return false;
    }
    return true;
}

/* Checks keys of a listener's `tls` that need each other. */
static void tls_check(struct loader *l, struct becalm_listener *listener, const struct yaml_node *tls)
{
    bool mapping = tls->kind == YAML_MAPPING;
    const struct yaml_node *auth = mapping ? yaml_get(tls, "clientAuth") : NULL;
    if (listener->certificate_count == 0 && (!mapping || yaml_get(tls, "certificates") == NULL)) {
        loader_error(l, tls->line, tls->column, "missing",
                     "tls needs a certificate; write tls: {certificates: [{cert: FILE, key: FILE}]}");
    }
    if (listener->client_auth != BECALM_CLIENT_AUTH_NONE && listener->client_ca.path == NULL) {
        loader_error(l, auth->line, auth->column, "conflict",
                     "clientAuth needs the CA that signs the certificates of clients; write clientCa: FILE");
    }
    if (auth == NULL && listener->client_ca.path != NULL) {
        listener->client_auth = BECALM_CLIENT_AUTH_REQUIRED;
    }
}

/* One item: an address, or a mapping. */
static bool item_load(struct loader *l, struct becalm_listener *listener, const char *key, const struct yaml_node *node)
{
    *listener = (struct becalm_listener){.address = "",
                                         .file = l->name,
                                         .line = node->line,
                                         .column = node->column,
                                         .service = BECALM_LISTENER_SHARED,
                                         .h1 = true};
    if (node->kind == YAML_SCALAR) {
        listener->address = arena_text(l->arena, node->text);
        return listener->address == NULL ? loader_no_memory(l) : address_is_fine(l, key, node, node->text);
    }
    if (node->kind != YAML_MAPPING) {
        loader_error(l, node->line, node->column, "wrong-type",
                     "%s: a list is not an address; write host:port or {address: host:port, tls: {...}}", key);
        return false;
    }
    struct space spaces[] = {{&schema_listener, listener, NULL}};
    struct place place = {.spaces = spaces, .space_count = 1, .level = BECALM_FROM_DEFAULTS, .what = "a listener"};
    const struct yaml_node *address = yaml_get(node, "address");
    const struct yaml_node *tls = yaml_get(node, "tls");
    bool fine = apply_mapping(l, &place, node);
    if (l->no_memory) {
        return false;
    }
    if (address == NULL) {
        loader_error(l, node->line, node->column, "missing",
                     "%s: a listener has an address; write {address: host:port, tls: {...}}", key);
        return false;
    }
    uint32_t errors = loader_errors(l);
    if (tls != NULL) {
        listener->tls = true;
        listener->line = tls->line;
        listener->column = tls->column;
        tls_check(l, listener, tls);
    }
    return fine && address_is_fine(l, key, address, listener->address) && loader_errors(l) == errors;
}

/* Port 0 is another one each time. */
static bool is_same_address(const char *a, const char *b)
{
    size_t length = strlen(a);
    bool any_port = length >= 2 && strcmp(a + length - 2, ":0") == 0 && strncmp(a, "unix:", 5) != 0;
    return !any_port && strcmp(a, b) == 0;
}

/* One address is spoken to in one way: of two listeners there the system would choose for each client anew. */
static bool twice_check(struct loader *l, const struct becalm_listener *listeners, uint32_t i,
                        const struct yaml_node *node)
{
    for (uint32_t k = 0; k < i; k++) {
        if (is_same_address(listeners[k].address, listeners[i].address)) {
            loader_error(l, node->line, node->column, "conflict",
                         "listen: %.64s is there twice; write each address once", listeners[i].address);
            return false;
        }
    }
    return true;
}

/* All of a list, or the one that stands there alone. */
struct listeners {
    const char **addresses;
    struct becalm_listener *list;
    uint32_t count;
};

static bool listeners_take(struct loader *l, struct listeners *listeners, uint32_t count)
{
    listeners->count = count;
    listeners->list = arena_take(l->arena, (count + 1) * sizeof *listeners->list);
    listeners->addresses = arena_take(l->arena, (count + 1) * sizeof *listeners->addresses);
    return (listeners->list != NULL && listeners->addresses != NULL) || loader_no_memory(l);
}

static bool listeners_load(struct loader *l, struct listeners *listeners, const struct yaml_node *node)
{
    bool list = node->kind == YAML_SEQUENCE;
    bool fine = true;
    if (!listeners_take(l, listeners, list ? node->count : 1)) {
        return false;
    }
    for (uint32_t i = 0; i < listeners->count; i++) {
        const struct yaml_node *item = list ? node->item[i] : node;
        fine = item_load(l, &listeners->list[i], "listen", item) && twice_check(l, listeners->list, i, item) && fine;
        if (l->no_memory) {
            return false;
        }
        listeners->addresses[i] = listeners->list[i].address;
    }
    return fine;
}

static bool load(struct loader *l, struct becalm_settings *settings, const struct yaml_node *node)
{
    struct listeners listeners;
    bool fine = listeners_load(l, &listeners, node);
    if (l->no_memory) {
        return false;
    }
    settings->listen = listeners.addresses;
    settings->listeners = listeners.list;
    settings->listener_count = listeners.count;
    return fine;
}

static bool load_own(struct loader *l, struct becalm_service *service, const struct yaml_node *node)
{
    struct listeners listeners;
    bool fine = listeners_load(l, &listeners, node);
    if (l->no_memory) {
        return false;
    }
    service->listen = listeners.addresses;
    service->listeners = listeners.list;
    service->listener_count = listeners.count;
    return fine;
}

/* ---- all of a policy ---- */

static enum becalm_role role_of(const struct becalm_listener *listener, const struct becalm_settings *settings)
{
    switch (listener->role_written) {
    case BECALM_LISTENER_ROLE_AUTO:
        return settings->role;
    case BECALM_LISTENER_ROLE_GATEWAY:
        return BECALM_ROLE_GATEWAY;
    case BECALM_LISTENER_ROLE_SIDECAR:
        return BECALM_ROLE_SIDECAR;
    }
    BECALM_UNREACHABLE();
}

enum becalm_role listen_service_role(struct loader *l, const struct becalm_service *service)
{
    const struct becalm_settings *settings = &l->config->settings;
    enum becalm_role role = service->listener_count == 0 ? settings->role : role_of(&service->listeners[0], settings);
    for (uint32_t i = 1; i < service->listener_count; i++) {
        const struct becalm_listener *other = &service->listeners[i];
        if (role_of(other, settings) != role) {
            loader_error(l, other->line, other->column, "conflict",
                         "%s: its listeners have different roles, but a service has only one limit; write two services",
                         service->name);
            break;
        }
    }
    return role;
}

/* One address leads to one place. */
static void door_check(struct loader *l, const struct listeners *all, uint32_t i)
{
    const struct becalm_listener *listener = &all->list[i];
    for (uint32_t k = 0; k < i; k++) {
        if (all->list[k].service != listener->service && is_same_address(all->list[k].address, listener->address)) {
            l->name = listener->file;
            loader_error(l, listener->line, listener->column, "conflict",
                         "listen: %.64s already leads to another service; write another address", listener->address);
            return;
        }
    }
}

/* Nor does the admin address lead to services. */
static void admin_door_check(struct loader *l, const struct becalm_listener *listener)
{
    const char *admin = l->config->settings.admin;
    if (admin != NULL && is_same_address(admin, listener->address)) {
        const char *usual = strcmp(admin, BECALM_ADMIN_DEFAULT) == 0 ? " (its default)" : "";
        l->name = listener->file;
        loader_error(l, listener->line, listener->column, "conflict",
                     "listen: %.64s is also the address of admin%s; change one of them, or write admin: none",
                     listener->address, usual);
    }
}

bool listen_gather(struct loader *l, const struct yaml_node *written)
{
    struct becalm_settings *settings = &l->config->settings;
    const char *name = l->name;
    struct listeners all;
    uint32_t count = settings->listener_count;
    for (uint32_t i = 0; i < l->config->service_count; i++) {
        count += l->config->services[i].listener_count;
    }
    if (count == 0) {
        loader_error(l, written->line, written->column, "conflict",
                     "listen: the list is empty, and no service has a listener; write [host:port]");
        return true;
    }
    if (!listeners_take(l, &all, count)) {
        return false;
    }
    memcpy(all.list, settings->listeners, settings->listener_count * sizeof *all.list);
    all.count = settings->listener_count;
    for (uint32_t i = 0; i < l->config->service_count; i++) {
        const struct becalm_service *service = &l->config->services[i];
        for (uint32_t k = 0; k < service->listener_count; k++) {
            all.list[all.count] = service->listeners[k];
            all.list[all.count].service = i;
            door_check(l, &all, all.count++);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        admin_door_check(l, &all.list[i]);
        all.addresses[i] = all.list[i].address;
        all.list[i].role = role_of(&all.list[i], settings);
        all.list[i].passes_unlisted = unlisted_passes(&all.list[i]);
    }
    l->name = name;
    settings->listen = all.addresses;
    settings->listeners = all.list;
    settings->listener_count = count;
    return true;
}

static bool load_admin(struct loader *l, struct becalm_settings *settings, const struct yaml_node *node)
{
    bool fine = item_load(l, &settings->admin_tls, "admin", node);
    settings->admin = settings->admin_tls.address;
    if (settings->admin_tls.proxy_protocol) {
        const struct yaml_node *written = yaml_get(node, "proxyProtocol");
        loader_error(l, written->line, written->column, "conflict",
                     "admin: proxyProtocol: clients connect to the admin address directly; remove the key");
        return false;
    }
    if (settings->admin_tls.role_written != BECALM_LISTENER_ROLE_AUTO) {
        const struct yaml_node *role = yaml_get(node, "role");
        loader_error(l, role->line, role->column, "conflict",
                     "admin: role: the admin address accepts no requests for services; remove the key");
        return false;
    }
    if (settings->admin_tls.unlisted_written != BECALM_UNLISTED_AUTO) {
        const struct yaml_node *unlisted = yaml_get(node, "unlisted");
        loader_error(l, unlisted->line, unlisted->column, "conflict",
                     "admin: unlisted: the admin address accepts no requests for services; remove the key");
        return false;
    }
    if (settings->admin_tls.h2) {
        const struct yaml_node *protocols = yaml_get(node, "protocols");
        loader_error(l, protocols->line, protocols->column, "conflict",
                     "admin: protocols: the admin address speaks only HTTP/1.1; remove the key");
        return false;
    }
    return fine;
}

/* One certificate and its key. */
static bool certificate_load(struct loader *l, struct becalm_certificate *certificate, const struct yaml_node *node)
{
    struct space spaces[] = {{&schema_certificate, certificate, NULL}};
    struct place place = {.spaces = spaces, .space_count = 1, .level = BECALM_FROM_DEFAULTS, .what = "a certificate"};
    uint32_t errors = loader_errors(l);
    if (!apply_mapping(l, &place, node)) {
        return false;
    }
    if (certificate->cert.path == NULL || certificate->key.path == NULL) {
        loader_error(l, node->line, node->column, "missing",
                     "a certificate has two files, which may be the same; write {cert: FILE, key: FILE}");
    }
    return loader_errors(l) == errors;
}

static bool load_certificates(struct loader *l, struct becalm_listener *listener, const struct yaml_node *node)
{
    bool list = node->kind == YAML_SEQUENCE;
    uint32_t count = list ? node->count : 1;
    struct becalm_certificate *certificates = arena_take(l->arena, (count + 1) * sizeof *certificates);
    if (certificates == NULL) {
        return loader_no_memory(l);
    }
    if (count == 0) {
        loader_error(l, node->line, node->column, "missing",
                     "certificates: the list is empty; write [{cert: FILE, key: FILE}]");
        return false;
    }
    bool fine = true;
    for (uint32_t i = 0; i < count; i++) {
        fine = certificate_load(l, &certificates[i], list ? node->item[i] : node) && fine;
    }
    listener->certificates = certificates;
    listener->certificate_count = count;
    return fine && !l->no_memory;
}

static bool load_protocols(struct loader *l, struct becalm_listener *listener, const struct yaml_node *node)
{
    bool list = node->kind == YAML_SEQUENCE;
    bool fine = true;
    listener->h1 = false;
    for (uint32_t i = 0; i < (list ? node->count : 1); i++) {
        const struct yaml_node *item = list ? node->item[i] : node;
        bool scalar = item->kind == YAML_SCALAR;
        if (scalar && yaml_is(item, "h1")) {
            listener->h1 = true;
        } else if (scalar && yaml_is(item, "h2")) {
            listener->h2 = true;
        } else {
            loader_error(l, item->line, item->column, "wrong-type",
                         "protocols: \"%.64s\" is not known here; write h1 or h2", scalar ? yaml_shown(item) : "{...}");
            fine = false;
        }
    }
    if (fine && !listener->h1 && !listener->h2) {
        loader_error(l, node->line, node->column, "wrong-type",
                     "protocols: the list is empty; write [h1], [h2, h1] or [h2]");
        fine = false;
    }
    return fine;
}

bool listen_load_nested(struct loader *l, const struct schema_key *key, void *base, const struct yaml_node *node)
{
    BECALM_ASSERT(key->type == TYPE_LISTEN || key->type == TYPE_LISTEN_OWN || key->type == TYPE_ADMIN ||
                  key->type == TYPE_CERTIFICATES || key->type == TYPE_PROTOCOLS);
    return key->type == TYPE_LISTEN         ? load(l, base, node)
           : key->type == TYPE_LISTEN_OWN   ? load_own(l, base, node)
           : key->type == TYPE_ADMIN        ? load_admin(l, base, node)
           : key->type == TYPE_CERTIFICATES ? load_certificates(l, base, node)
                                            : load_protocols(l, base, node);
}

/* Hosts. */

/* "host" or "host:port" behind https:// becomes "host:port". NULL: no memory. */
static const char *host_of_url(struct loader *l, const char *url)
{
    const char *host = url + strlen("https://");
    bool has_port = host[0] == '[' ? strstr(host, "]:") != NULL : strchr(host, ':') != NULL;
    size_t bytes = strlen(host) + sizeof ":443";
    char *text = arena_take(l->arena, bytes);
    if (text != NULL) {
        (void)snprintf(text, bytes, "%s%s", host, has_port ? "" : ":443");
    }
    return text;
}

static bool hosts_strip(struct loader *l, struct becalm_service *service, const struct yaml_node *hosts, uint32_t *urls)
{
    uint32_t count = 0;
    while (service->hosts != NULL && service->hosts[count] != NULL) {
        count++;
    }
    const char **list = arena_take(l->arena, (count + 1) * sizeof *list);
    if (list == NULL) {
        return loader_no_memory(l);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool url = value_https(service->hosts[i]);
        list[i] = url ? host_of_url(l, service->hosts[i]) : service->hosts[i];
        if (list[i] == NULL) {
            return loader_no_memory(l);
        }
        if (url && *urls == 0 && !service->tls.enabled) {
            const struct yaml_node *item = hosts->kind == YAML_SEQUENCE ? hosts->item[i] : hosts;
            service->tls.line = item->line;
            service->tls.column = item->column;
        }
        *urls += url;
    }
    service->hosts = *urls > 0 ? list : service->hosts;
    return true;
}

static void host_tls_check(struct loader *l, const struct becalm_service *service)
{
    const struct becalm_host_tls *tls = &service->tls;
    if ((tls->cert.path == NULL) != (tls->key.path == NULL)) {
        const struct becalm_file *file = tls->cert.path != NULL ? &tls->cert : &tls->key;
        loader_error(l, file->line, file->column, "missing",
                     "%s: tls.cert and tls.key belong together; write both, or none", service->name);
    }
    if (tls->server_name != NULL && (!value_match_host(tls->server_name) || strchr(tls->server_name, '*') != NULL ||
                                     value_address(tls->server_name))) {
        loader_error(l, tls->line, tls->column, "wrong-type",
                     "%s: tls.serverName: \"%.64s\" is not a name; write the one in the hosts' certificate, without a "
                     "port",
                     service->name, tls->server_name);
    }
    if (tls->verify == BECALM_TLS_VERIFY_NONE) {
        becalm_diag_add(
            l->diags, BECALM_WARNING, tls->line == 0 ? "--set" : l->name, tls->line == 0 ? 1 : tls->line,
            tls->column == 0 ? 1 : tls->column, "tls-unverified",
            "%s: verify: none accepts every server that answers at the hosts' addresses; write ca: FILE with "
            "the CA of their certificates",
            service->name);
    }
}

bool listen_settle_hosts(struct loader *l, struct becalm_service *service, const struct yaml_node *node)
{
    bool mapping = node->kind == YAML_MAPPING;
    const struct yaml_node *tls = mapping ? yaml_get(node, "tls") : NULL;
    const struct yaml_node *hosts = mapping ? yaml_get(node, "hosts") : NULL;
    uint32_t urls = 0;
    if (tls != NULL) {
        service->tls.enabled = true;
        service->tls.line = tls->line;
        service->tls.column = tls->column;
    }
    if (!hosts_strip(l, service, hosts, &urls)) {
        return false;
    }
    for (uint32_t i = 0; urls > 0 && tls == NULL && service->hosts[i] != NULL; i++) {
        const struct yaml_node *item = hosts->kind == YAML_SEQUENCE ? hosts->item[i] : hosts;
        if (item->kind == YAML_SCALAR && !value_https(item->text)) {
            loader_error(l, item->line, item->column, "conflict",
                         "hosts: \"%.64s\" is without TLS and other hosts of %s use TLS; write https:// before all, or "
                         "make two services",
                         item->text, service->name);
        }
    }
    service->tls.enabled |= urls > 0;
    if (service->tls.enabled) {
        host_tls_check(l, service);
    }
    return true;
}
