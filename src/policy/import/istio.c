/* SPDX-License-Identifier: MIT */
/* Istio: a VirtualService says how requests to a host are retried, a DestinationRule how many go there at once and
 * which of its hosts are left out. Both become one service. */
#include "istio.h"
#include "listeners.h"
#include "mesh.h"
#include "route.h"

#include <stdio.h>
#include <string.h>

#define BUCKETS          32768u
#define SHARES_MAX       64u
#define RETRY_ON_DEFAULT "connect-failure, refused-stream, unavailable, cancelled"

/* ---- which service a host is ---- */

/* A host by which a service is known. Kubernetes has short and long names for the same one. */
struct known {
    struct known *next;
    struct emit_target *service;
    const char *host;
    const char *space; /* the namespace of the object that named it; "" if not said */
    const char *file;
    struct from from;
};

/* The document's object; every reader below gets it. */
struct istio {
    struct source *s;
    struct known *known[BUCKETS]; /* by the first word of the host, which is the same in short and long names */
    const char *name;             /* metadata.name, or "" */
    const char *space;            /* metadata.namespace, or "" */
    unsigned pass; /* 0 reads VirtualServices, 1 the rest: a DestinationRule may be about hosts that they name */
};

/* One service, once as "reviews" and once as "reviews.shop.svc.cluster.local"? */
static bool is_short_for(const char *brief, const char *space, const char *full)
{
    size_t length = strlen(brief);
    if (strchr(brief, '.') != NULL || strncmp(brief, full, length) != 0 || full[length] != '.') {
        return false;
    }
    const char *rest = full + length + 1; /* shop.svc.cluster.local */
    size_t word = strcspn(rest, ".");
    bool cluster =
        rest[word] == '\0' || strcmp(rest + word, ".svc") == 0 || strcmp(rest + word, ".svc.cluster.local") == 0;
    bool same_space = space[0] == '\0' || (strlen(space) == word && strncmp(space, rest, word) == 0);
    return cluster && same_space;
}

static bool same_host(const struct known *k, const char *host, const char *space)
{
    if (strcmp(k->host, host) == 0) {
        bool two_spaces = k->space[0] != '\0' && space[0] != '\0' && strcmp(k->space, space) != 0;
        return strchr(host, '.') != NULL || !two_spaces;
    }
    return is_short_for(k->host, k->space, host) || is_short_for(host, space, k->host);
}

static struct known **bucket_of(struct istio *in, const char *host)
{
    uint32_t hash = 2166136261u;
    for (; *host != '\0' && *host != '.'; host++) {
        hash = (hash ^ (unsigned char)*host) * 16777619u;
    }
    return &in->known[(hash ^ hash >> 16) % BUCKETS];
}

static struct emit_target *known_find(struct istio *in, const char *host)
{
    const struct known *k = *bucket_of(in, host);
    while (k != NULL && !same_host(k, host, in->space)) {
        k = k->next;
    }
    return k == NULL ? NULL : k->service;
}

static void known_add(struct istio *in, const char *host, struct emit_target *service, const struct from *from)
{
    struct known *k = emit_take(in->s->emit, sizeof *k);
    if (k != NULL) {
        struct known **bucket = bucket_of(in, host);
        *k = (struct known){*bucket, service, host, in->space, in->s->file, *from};
        *bucket = k;
    }
}

static struct emit_target *service_of(struct istio *in, const char *host, const struct from *from)
{
    struct emit_target *service = known_find(in, host);
    if (service == NULL) {
        bool taken = in->space[0] != '\0' && strchr(host, '.') == NULL;
        for (const struct known *k = *bucket_of(in, host); taken && k != NULL; k = k->next) {
            if (strcmp(k->host, host) == 0) { /* the same short name in another namespace: tell them apart */
                host = emit_text(in->s->emit, "%s.%s", host, in->space);
                break;
            }
        }
        service = emit_service(in->s->emit, host, source_where(in->s, from));
        known_add(in, host, service, from);
    }
    return service;
}

/* ---- retries ---- */

static void retries_read(struct source *s, struct emit_target *target, const struct from *from)
{
    static const struct field fields[] = {{"attempts", NULL},
                                          {"perTryTimeout", NULL},
                                          {"retryOn", NULL},
                                          {"backoff", NULL},
                                          {"retryIgnorePreviousHosts", NULL},
                                          {"retryRemoteLocalities", NOTE "hosts are picked by load, not by locality"},
                                          {NULL, NULL}};
    const struct yaml_node *node = from->node;
    if (!source_is(s, from, YAML_MAPPING)) {
        return;
    }
    source_rest(s, target, node, "retries", fields);
    uint64_t attempts = 0;
    const struct from count = {source_get(node, "attempts"), "retries.attempts", "these are retries"};
    bool ignore = true;
    const struct from previous = {source_get(node, "retryIgnorePreviousHosts"), "retries.retryIgnorePreviousHosts",
                                  NULL};
    if (source_boolean(s, &previous, &ignore) && !ignore) {
        source_no_equal(s, target, &previous, "a retry always avoids the hosts that were tried");
    }
    if (count.node != NULL && !source_integer(s, &count, &attempts)) {
        return;
    }
    if (attempts == 0) {
        const struct from off = {count.node == NULL ? node : count.node, "retries.attempts", "0: retries are off"};
        source_put_integer(s, target, "maxRetries", 0, &off);
        return;
    }
    source_put_integer(s, target, "maxRetries", attempts, &count);
    mesh_attempt_timeout(s, target, &(struct from){source_get(node, "perTryTimeout"), "retries.perTryTimeout", NULL});
    mesh_backoff(s, target, &(struct from){source_get(node, "backoff"), "retries.backoff", NULL}, &(struct from){0},
                 from);
    mesh_retry_on(s, target, &(struct from){source_get(node, "retryOn"), "retries.retryOn", NULL}, &(struct from){0},
                  from, RETRY_ON_DEFAULT);
}

/* A route's rules for calls, for all its destinations. */
static void call_rules(struct source *s, struct emit_target *target, const struct yaml_node *route)
{
    const struct from retries = {source_get(route, "retries"), "retries", NULL};
    if (retries.node != NULL) {
        retries_read(s, target, &retries);
    }
    mesh_deadline(s, target, &(struct from){source_get(route, "timeout"), "timeout", NULL});
}

/* ---- matches ---- */

/* A StringMatch: we can do `exact`, and `prefix` where there is a place for it. */
static void string_match(struct istio *in, struct emit_target *service, const struct from *from, const char **exact,
                         const char **prefix, struct route_match *m)
{
    if (!source_is(in->s, from, YAML_MAPPING)) {
        m->impossible = m->impossible || from->node != NULL;
        return;
    }
    const struct yaml_node *node = from->node;
    const struct from exact_from = {source_get(node, "exact"), from->path, NULL};
    const struct from prefix_from = {source_get(node, "prefix"), from->path, NULL};
    if (exact_from.node != NULL && node->count == 1) {
        *exact = source_text(in->s, &exact_from);
    } else if (prefix_from.node != NULL && node->count == 1 && prefix != NULL) {
        *prefix = source_text(in->s, &prefix_from);
    } else {
        source_no_equal(in->s, service, from, "only exact values match, and prefixes of paths; the route is left out");
        m->impossible = true;
    }
}

static void headers_match(struct istio *in, struct emit_target *service, const struct from *from, struct route_match *m)
{
    if (!source_is(in->s, from, YAML_MAPPING)) {
        return;
    }
    if (from->node->count != 1) {
        source_no_equal(in->s, service, from, "an endpoint matches one header; the route is left out");
        m->impossible = true;
        return;
    }
    m->header = from->node->key[0]->text;
    m->value = "";
    string_match(in, service, &(struct from){from->node->item[0], "match.headers", NULL}, &m->value, NULL, m);
}

static struct route_match match_read(struct istio *in, struct emit_target *service, const struct yaml_node *node)
{
    static const struct field fields[] = {{"name", NULL},
                                          {"statPrefix", NULL},
                                          {"uri", NULL},
                                          {"method", NULL},
                                          {"authority", NULL},
                                          {"headers", NULL},
                                          {"ignoreUriCase", "Becalm compares paths with their case"},
                                          {"scheme", source_narrows},
                                          {"port", NOTE "`listen` sets the port that Becalm listens on"},
                                          {"sourceLabels", source_narrows},
                                          {"sourceNamespace", source_narrows},
                                          {"gateways", source_narrows},
                                          {"queryParams", source_narrows},
                                          {"withoutHeaders", source_narrows},
                                          {NULL, NULL}};
    struct route_match m = {0};
    const struct from from = {node, "match", NULL};
    if (!source_is(in->s, &from, YAML_MAPPING)) {
        m.impossible = true;
        return m;
    }
    m.impossible = source_rest(in->s, service, node, "match", fields);
    const struct from uri = {source_get(node, "uri"), "match.uri", NULL};
    const char *prefix = NULL;
    string_match(in, service, &uri, &m.path, &prefix, &m);
    match_begins_with(&m, prefix);
    string_match(in, service, &(struct from){source_get(node, "method"), "match.method", NULL}, &m.method, NULL, &m);
    string_match(in, service, &(struct from){source_get(node, "authority"), "match.authority", NULL}, &m.host, NULL,
                 &m);
    headers_match(in, service, &(struct from){source_get(node, "headers"), "match.headers", NULL}, &m);
    return m;
}

/* ---- VirtualService ---- */

static void address_put(struct istio *in, struct emit_target *service, const struct from *name, const struct from *port)
{
    struct source *s = in->s;
    const char *to = name->node->text;
    uint64_t number = 80;
    bool ported = source_integer(s, port, &number);
    if (!ported && strcmp(emit_name(service), to) == 0) {
        return; /* its own name, port 80: the default of a service without hosts */
    }
    const char *address = emit_text(s->emit, "%s:%llu", to, (unsigned long long)number);
    if (!value_address_of_host(address)) {
        source_no_equal(s, service, name, emit_text(s->emit, "\"%.64s\" is not an address", address));
        return;
    }
    struct source_list hosts = {.emit = s->emit};
    source_list_add(&hosts, address);
    source_put_list(s, service, "hosts", &hosts, name);
}

/* The service of one destination; NULL if it names none. */
static struct emit_target *destination_read(struct istio *in, const struct yaml_node *item)
{
    static const struct field fields[] = {
        {"destination", NULL}, {"weight", NULL}, {"headers", "requests are passed on unchanged"}, {NULL, NULL}};
    struct source *s = in->s;
    const struct yaml_node *destination = source_get(item, "destination");
    const struct from name = {source_get(destination, "host"), "route.destination.host", NULL};
    const struct from subset = {source_get(destination, "subset"), "route.destination.subset", NULL};
    const struct from port = {source_get(source_get(destination, "port"), "number"), "route.destination.port", NULL};
    const char *to = source_text(s, &name);
    if (to == NULL || to[0] == '\0') {
        return NULL;
    }
    struct emit_target *service = service_of(in, to, &name);
    source_rest(s, service, item, "route", fields);
    const char *part = source_text(s, &subset);
    if (part != NULL) {
        source_no_equal(s, service, &subset,
                        emit_text(s->emit, "requests go to all hosts of %s, not to its subset %s alone", to, part));
    }
    address_put(in, service, &name, &port);
    return service;
}

/* Where a route's requests go: its heaviest destination, or the service that the object names, if it has none. */
static struct emit_target *destination_of(struct istio *in, struct emit_target *named, const struct yaml_node *route)
{
    struct source *s = in->s;
    const struct from list = {source_get(route, "route"), "route", NULL};
    struct share share[SHARES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; source_is(s, &list, YAML_SEQUENCE) && i < list.node->count && count < SHARES_MAX; i++) {
        const struct yaml_node *item = list.node->item[i];
        const struct from weight = {source_get(item, "weight"), "route.weight", NULL};
        struct emit_target *service = destination_read(in, item);
        if (service != NULL) {
            share[count] = (struct share){service, emit_name(service), list.node->count == 1 ? 100 : 0};
            (void)source_integer(s, &weight, &share[count].weight);
            count++;
        }
    }
    struct emit_target *most = shares_pick(s, share, count, &list);
    return most == NULL ? named : most;
}

static void http_route(struct istio *in, struct emit_target *named, const struct from *hosts,
                       const struct yaml_node *route)
{
    static const struct field fields[] = {{"name", NULL},
                                          {"match", NULL},
                                          {"route", NULL},
                                          {"retries", NULL},
                                          {"timeout", NULL},
                                          {"fault", "Becalm injects no faults"},
                                          {"mirror", "requests are not copied"},
                                          {"mirrors", "requests are not copied"},
                                          {"rewrite", "requests are passed on unchanged"},
                                          {"headers", "requests are passed on unchanged"},
                                          {"redirect", "Becalm sends neither redirects nor fixed answers"},
                                          {"directResponse", "Becalm sends neither redirects nor fixed answers"},
                                          {"delegate", "give the delegate's file as well"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    if (!source_is(s, &(struct from){route, "http", NULL}, YAML_MAPPING)) {
        return;
    }
    struct emit_target *service = destination_of(in, named, route);
    source_rest(s, service, route, "http", fields);
    const struct from matches = {source_get(route, "match"), "match", NULL};
    const struct yaml_node *name = source_get(route, "name");
    struct route *out = route_add(s, service, name != NULL && name->kind == YAML_SCALAR ? name->text : NULL,
                                  &(struct from){route, "http", NULL});
    for (uint32_t i = 0; hosts->node != NULL && i < hosts->node->count; i++) {
        const struct from host = {hosts->node->item[i], "hosts", NULL};
        route_add_host(s, out, source_text(s, &host), &host);
    }
    for (uint32_t i = 0; source_is(s, &matches, YAML_SEQUENCE) && i < matches.node->count; i++) {
        const struct from from = {matches.node->item[i], "match", NULL};
        const struct route_match m = match_read(in, service, from.node);
        route_add_match(s, out, &m, &from);
    }
    call_rules(s, route_rules(out), route);
}

/* The hosts of a service are where its first route goes. */
/* The service that the object is named after, for routes that lead nowhere; a fragment holds for every service. */
static struct emit_target *named_of(struct istio *in, const struct from *hosts)
{
    struct source *s = in->s;
    if (!source_is(s, hosts, YAML_SEQUENCE) || hosts->node->count == 0) {
        return emit_defaults(s->emit);
    }
    const struct from first = {hosts->node->item[0], "hosts", NULL};
    const char *text = source_text(s, &first);
    if (text == NULL) {
        return emit_defaults(s->emit);
    }
    return service_of(in, text[0] != '*' ? text : in->name[0] != '\0' ? in->name : "any-host", &first);
}

static bool leads_somewhere(const struct yaml_node *route)
{
    const struct yaml_node *list = source_get(route, "route");
    return list != NULL && list->kind == YAML_SEQUENCE && list->count > 0 &&
           source_get(source_get(list->item[0], "destination"), "host") != NULL;
}

static void virtual_service(struct istio *in, const struct yaml_node *spec)
{
    static const struct field fields[] = {{"hosts", NULL},
                                          {"http", NULL},
                                          {"gateways", NOTE "a policy holds where Becalm runs"},
                                          {"exportTo", NOTE "a policy holds where Becalm runs"},
                                          {"tcp", NOTE "only HTTP is retried"},
                                          {"tls", NOTE "only HTTP is retried"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const struct from hosts = {source_get(spec, "hosts"), "hosts", NULL};
    const struct from http = {source_get(spec, "http"), "http", NULL};
    source_rest(s, NULL, spec, "", fields);
    if (!source_is(s, &http, YAML_SEQUENCE)) {
        return;
    }
    const struct from known = hosts.node != NULL && hosts.node->kind == YAML_SEQUENCE ? hosts : (struct from){0};
    for (uint32_t i = 0; i < http.node->count; i++) {
        http_route(in, leads_somewhere(http.node->item[i]) ? NULL : named_of(in, &hosts), &known, http.node->item[i]);
    }
}

/* ---- DestinationRule ---- */

static void pool_rest(struct source *s, struct emit_target *target, const struct yaml_node *pool)
{
    static const struct field fields[] = {{"tcp", NULL}, {"http", NULL}, {NULL, NULL}};
    static const struct field tcp[] = {
        {"connectTimeout", NULL},
        {"maxConnections", NOTE "connections are pooled for all services: pool.maxPerHost"},
        {"idleTimeout", NOTE "connections are pooled for all services: pool.idle"},
        {NULL, NULL}};
    static const struct field http[] = {
        {"http1MaxPendingRequests", NULL},
        {"http2MaxRequests", NULL},
        {"h2UpgradePolicy", NULL},
        {"maxConcurrentStreams", NULL},
        {"useClientProtocol", "calls to hosts do not follow the client's protocol: write `protocol`"},
        {"maxRetries", NULL},
        {"idleTimeout", NOTE "connections are pooled for all services: pool.idle"},
        {"maxRequestsPerConnection", NOTE "connections are used as long as they last"},
        {NULL, NULL}};
    source_rest(s, target, pool, "connectionPool", fields);
    source_rest(s, target, source_get(pool, "tcp"), "connectionPool.tcp", tcp);
    source_rest(s, target, source_get(pool, "http"), "connectionPool.http", http);
}

static void outlier_read(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {{"consecutive5xxErrors", NULL},
                                          {"consecutiveErrors", NULL},
                                          {"interval", NULL},
                                          {"baseEjectionTime", NULL},
                                          {"maxEjectionPercent", NULL},
                                          {"consecutiveGatewayErrors", NULL},
                                          {"consecutiveLocalOriginFailures", "failures to connect count like 5xx"},
                                          {"splitExternalLocalOriginErrors", "failures to connect count like 5xx"},
                                          {"minHealthPercent", "maxEjectionPercent bounds how many are out"},
                                          {NULL, NULL}};
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    const struct yaml_node *node = block->node;
    const struct yaml_node *consecutive = source_get(node, "consecutive5xxErrors");
    struct mesh_outlier o = {
        .block = *block,
        .consecutive = {consecutive, "outlierDetection.consecutive5xxErrors", NULL},
        .gateway = {source_get(node, "consecutiveGatewayErrors"), "outlierDetection.consecutiveGatewayErrors", NULL},
        .interval = {source_get(node, "interval"), "outlierDetection.interval", NULL},
        .ejection = {source_get(node, "baseEjectionTime"), "outlierDetection.baseEjectionTime", NULL},
        .percent = {source_get(node, "maxEjectionPercent"), "outlierDetection.maxEjectionPercent", NULL}};
    if (consecutive == NULL) {
        o.consecutive = (struct from){source_get(node, "consecutiveErrors"), "outlierDetection.consecutiveErrors",
                                      "the old name of consecutive5xxErrors"};
    }
    source_rest(s, target, node, "outlierDetection", fields);
    mesh_outlier(s, target, &o);
}

static void protocol_read(struct source *s, struct emit_target *target, const struct yaml_node *http)
{
    const struct from upgrade = {source_get(http, "h2UpgradePolicy"), "connectionPool.http.h2UpgradePolicy", NULL};
    const struct from streams = {source_get(http, "maxConcurrentStreams"), "connectionPool.http.maxConcurrentStreams",
                                 NULL};
    bool h2 = yaml_is(upgrade.node, "UPGRADE");
    bool h1 = yaml_is(upgrade.node, "DO_NOT_UPGRADE");
    if ((h1 || h2) && target == emit_defaults(s->emit)) {
        source_no_equal(s, target, &upgrade, "only a service has a protocol: write it there");
    } else if (h2) {
        source_put_h2(s, target, &upgrade);
    } else if (h1) {
        source_put_word(s, target, "protocol", "h1", &upgrade);
    }
    source_take_integer(s, emit_settings(s->emit), "pool.streams", &streams);
}

/* connectionPool, outlierDetection and retryBudget. */
static void traffic_rules(struct source *s, struct emit_target *target, const struct yaml_node *policy)
{
    static const struct field budget_fields[] = {
        {"percent", NULL}, {"minRetryConcurrency", NULL}, {"budgetInterval", NULL}, {NULL, NULL}};
    const struct from pool = {source_get(policy, "connectionPool"), "connectionPool", NULL};
    const struct from outlier = {source_get(policy, "outlierDetection"), "outlierDetection", NULL};
    const struct yaml_node *http = source_get(pool.node, "http");
    const struct yaml_node *budget = source_get(policy, "retryBudget");
    if (pool.node != NULL && source_is(s, &pool, YAML_MAPPING)) {
        pool_rest(s, target, pool.node);
    }
    source_rest(s, target, budget, "retryBudget", budget_fields);
    source_take_duration(s, target, "connectTimeout",
                         &(struct from){source_get(source_get(pool.node, "tcp"), "connectTimeout"),
                                        "connectionPool.tcp.connectTimeout", NULL});
    mesh_limits(s, target,
                &(struct mesh_limits){
                    .budget = {budget, "retryBudget", NULL},
                    .percent = {source_get(budget, "percent"), "retryBudget.percent", NULL},
                    .minimum = {source_get(budget, "minRetryConcurrency"), "retryBudget.minRetryConcurrency", NULL},
                    .interval = {source_get(budget, "budgetInterval"), "retryBudget.budgetInterval", NULL},
                    .retries = {source_get(http, "maxRetries"), "connectionPool.http.maxRetries", NULL},
                    .requests = {source_get(http, "http2MaxRequests"), "connectionPool.http.http2MaxRequests", NULL},
                    .pending = {source_get(http, "http1MaxPendingRequests"),
                                "connectionPool.http.http1MaxPendingRequests", NULL}});
    if (outlier.node != NULL) {
        outlier_read(s, target, &outlier);
    }
    protocol_read(s, target, http);
}

static void tls_text(struct source *s, struct emit_target *target, const struct yaml_node *tls, const char *name,
                     const char *key)
{
    const struct from from = {source_get(tls, name), emit_text(s->emit, "tls.%s", name), NULL};
    if (from.node != NULL && source_text(s, &from) != NULL) {
        source_put_text(s, target, key, from.node->text, &from);
    }
}

/* SIMPLE and MUTUAL are TLS to the hosts; ISTIO_MUTUAL is the TLS between sidecars. */
static void tls_read(struct source *s, struct emit_target *target, const struct from *tls)
{
    static const struct field fields[] = {{"mode", NULL},
                                          {"insecureSkipVerify", NULL},
                                          {"credentialName", NULL},
                                          {"sni", NULL},
                                          {"subjectAltNames", NULL},
                                          {"caCertificates", NULL},
                                          {"clientCertificate", NULL},
                                          {"privateKey", NULL},
                                          {"caCrl", "certificates that were revoked are not known here"},
                                          {NULL, NULL}};
    const struct from mode = {source_get(tls->node, "mode"), "tls.mode", NULL};
    const struct from skip = {source_get(tls->node, "insecureSkipVerify"), "tls.insecureSkipVerify", NULL};
    const struct from secret = {source_get(tls->node, "credentialName"), "tls.credentialName", NULL};
    bool skipped = false;
    if (mode.node == NULL || yaml_is(mode.node, "DISABLE")) {
        return;
    }
    if (yaml_is(mode.node, "ISTIO_MUTUAL")) {
        source_no_equal(s, target, &mode,
                        "the certificates of the mesh are not known here; hosts are called without TLS");
        return;
    }
    source_rest(s, target, tls->node, "tls", fields);
    skipped = source_boolean(s, &skip, &skipped) && skipped;
    source_put_word(s, target, "tls.verify", skipped ? "none" : "full", skipped ? &skip : &mode);
    hosts_name_put(s, target, &(struct from){source_get(tls->node, "sni"), "tls.sni", NULL},
                   &(struct from){source_get(tls->node, "subjectAltNames"), "tls.subjectAltNames", NULL});
    tls_text(s, target, tls->node, "caCertificates", "tls.ca");
    source_put_certificate(s, target,
                           &(struct from){source_get(tls->node, "clientCertificate"), "tls.clientCertificate", NULL},
                           &(struct from){source_get(tls->node, "privateKey"), "tls.privateKey", NULL});
    if (secret.node != NULL) {
        source_no_equal(s, target, &secret,
                        "it is a Secret of Kubernetes: write tls.ca, tls.cert and tls.key, which are files");
    }
}

static void traffic_policy(struct source *s, struct emit_target *target, const struct from *from)
{
    static const struct field fields[] = {
        {"connectionPool", NULL},
        {"outlierDetection", NULL},
        {"retryBudget", NULL},
        {"loadBalancer", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"tls", NULL},
        {"portLevelSettings", "a service has one set of rules for all its ports"},
        {NULL, NULL}};
    if (source_is(s, from, YAML_MAPPING)) {
        const struct from tls = {source_get(from->node, "tls"), "trafficPolicy.tls", NULL};
        source_rest(s, target, from->node, "trafficPolicy", fields);
        traffic_rules(s, target, from->node);
        if (tls.node != NULL && target == emit_defaults(s->emit)) {
            source_no_equal(s, target, &tls, SOURCE_TLS_OF_NONE);
        } else if (tls.node != NULL && source_is(s, &tls, YAML_MAPPING)) {
            tls_read(s, target, &tls);
        }
    }
}

static void destination_rule(struct istio *in, const struct yaml_node *spec)
{
    static const struct field fields[] = {{"host", NULL},
                                          {"trafficPolicy", NULL},
                                          {"subsets", NOTE "a service has hosts, not subsets of them"},
                                          {"exportTo", NOTE "a policy holds where Becalm runs"},
                                          {"workloadSelector", NOTE "a policy holds where Becalm runs"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const struct from host = {source_get(spec, "host"), "host", NULL};
    const char *name = source_text(s, &host);
    struct emit_target *target = name == NULL || name[0] == '\0' ? emit_defaults(s->emit) : service_of(in, name, &host);
    source_rest(s, target, spec, "", fields);
    traffic_policy(s, target, &(struct from){source_get(spec, "trafficPolicy"), "trafficPolicy", NULL});
}

/* ---- documents ---- */

/* A piece of either, without the resource around it: it holds for every service. */
static void fragment(struct istio *in, const struct yaml_node *node)
{
    static const struct field fields[] = {{"apiVersion", NULL},  {"metadata", NULL},       {"retries", NULL},
                                          {"timeout", NULL},     {"connectionPool", NULL}, {"outlierDetection", NULL},
                                          {"retryBudget", NULL}, {"trafficPolicy", NULL},  {"spec", NULL},
                                          {NULL, NULL}};
    struct emit_target *defaults = emit_defaults(in->s->emit);
    source_rest(in->s, defaults, node, "", fields);
    if (source_get(node, "retries") != NULL || source_get(node, "timeout") != NULL) {
        call_rules(in->s, defaults, node);
    }
    traffic_rules(in->s, defaults, node);
    traffic_policy(in->s, defaults, &(struct from){source_get(node, "trafficPolicy"), "trafficPolicy", NULL});
}

enum piece { VIRTUAL_SERVICE, DESTINATION_RULE, GATEWAY, FRAGMENT, OTHER };

static enum piece object_kind(const struct object *from, const struct yaml_node *spec)
{
    const struct yaml_node *object = from->node;
    const char *kind = from->kind;
    if (istio_gateway_is(from)) {
        return GATEWAY;
    }
    if (strcmp(kind, "VirtualService") == 0 || (kind[0] == '\0' && source_get(spec, "http") != NULL)) {
        return VIRTUAL_SERVICE;
    }
    bool rule = source_get(spec, "host") != NULL || (spec != object && source_get(spec, "trafficPolicy") != NULL);
    if (strcmp(kind, "DestinationRule") == 0 || (kind[0] == '\0' && rule)) {
        return DESTINATION_RULE;
    }
    return kind[0] == '\0' ? FRAGMENT : OTHER;
}

static void object_read(struct istio *in, const struct object *from)
{
    struct source *s = in->s;
    const struct yaml_node *object = from->node;
    const char *kind = from->kind;
    const struct from written = {source_get(object, "spec"), "spec", NULL};
    const struct yaml_node *spec = written.node == NULL && kind[0] == '\0' ? object : written.node;
    const struct yaml_node *metadata = source_get(object, "metadata");
    const struct yaml_node *name = source_get(metadata, "name");
    const struct yaml_node *space = source_get(metadata, "namespace");
    const enum piece what = object_kind(from, spec);
    in->name = name != NULL && name->kind == YAML_SCALAR ? name->text : "";
    in->space = space != NULL && space->kind == YAML_SCALAR ? space->text : "";
    if ((what == VIRTUAL_SERVICE) != (in->pass == 0) ||
        (written.node != NULL && !source_is(s, &written, YAML_MAPPING))) {
        return;
    }
    switch (what) {
    case VIRTUAL_SERVICE:
        virtual_service(in, spec);
        break;
    case DESTINATION_RULE:
        destination_rule(in, spec);
        break;
    case GATEWAY:
        istio_gateway_read(s, spec);
        break;
    case FRAGMENT:
        fragment(in, spec);
        break;
    case OTHER:
        source_no_equal(s, NULL,
                        &(struct from){source_get(object, "kind"), emit_text(s->emit, "kind \"%s\"", kind), NULL},
                        "only VirtualService, DestinationRule and Gateway are read");
        break;
    }
}

static const struct unwritten unwritten[] = {{"maxRetries", "2", "Istio's default"},
                                             {"initialDelay", "25ms", "Istio's default"},
                                             {"maxDelay", "250ms", "Istio's default"},
                                             {"retryOn", "[" RETRY_ON_DEFAULT "]", "Istio's default"},
                                             {"attemptTimeout", "none", "Istio has none"},
                                             {"deadline", "none", "Istio's default"},
                                             {NULL, NULL, NULL}};

/* Services without a VirtualService are called as well, by their name and with Istio's defaults. */
static void rest_add(struct istio *in)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct known *k = in->known[i]; k != NULL; k = k->next) {
            if (k->service != NULL && !route_leads_to(k->service)) {
                struct route *route = route_add(in->s, k->service, NULL, &k->from);
                in->s->file = k->file;
                route_add_host(in->s, route, emit_name(k->service), &k->from);
            }
        }
    }
}

/* A block of a trafficPolicy without its surroundings. Envoy's outlier_detection is the same word in another spelling:
 * Istio's spelling means Istio's block, unless it stands in a cluster of Envoy, which has a name. */
static bool is_traffic_block(const struct yaml_node *node)
{
    bool found = false;
    for (uint32_t i = 0; node->kind == YAML_MAPPING && i < node->count; i++) {
        const char *key = node->key[i]->text;
        found = found || strcmp(key, "outlierDetection") == 0 || strcmp(key, "trafficPolicy") == 0;
    }
    return found && source_get(node, "name") == NULL;
}

static bool istio_recognises(const struct object *object)
{
    if (object->kind[0] == '\0') {
        return is_traffic_block(object->node);
    }
    return strcmp(object->kind, "VirtualService") == 0 || strcmp(object->kind, "DestinationRule") == 0 ||
           istio_gateway_is(object);
}

static void istio_read(struct source *s, const struct objects *objects)
{
    struct istio *in = emit_take(s->emit, sizeof *in);
    mesh_preface(s);
    if (in == NULL) {
        return;
    }
    in->s = s;
    for (in->pass = 0; in->pass < 2; in->pass++) {
        for (uint32_t i = 0; i < objects->count; i++) {
            s->file = objects->at[i].file;
            if (source_is(s, &(struct from){objects->at[i].node, "the document", NULL}, YAML_MAPPING)) {
                object_read(in, &objects->at[i]);
            }
        }
    }
    rest_add(in);
}

const struct dialect dialect_istio = {.word = "istio",
                                      .product = "Istio",
                                      .unwritten = unwritten,
                                      .order = ORDER_FIRST,
                                      .host_decides = true,
                                      .recognises = istio_recognises,
                                      .read = istio_read};
