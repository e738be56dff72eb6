/* SPDX-License-Identifier: MIT */
#include "unlisted.h"

#include "policy/config_data.h"
#include "policy/value.h"

bool unlisted_is(const struct yaml_node *node)
{
    const struct yaml_node *written = loader_inside(node, "unlisted");
    return written != NULL && written->kind == YAML_SCALAR && yaml_is(written, "pass");
}

void unlisted_rules(struct becalm_rules *rules)
{
    static const char *const settled[] = {"maxRetries",       "breaker.enabled", "limit.kind",
                                          "throttle.enabled", "hedge.enabled",   "outlier.enabled",
                                          "restart.enabled",  "rate.enabled",    "gate.maxQueue"};
    struct becalm_origins *origins = (struct becalm_origins *)(uintptr_t)rules->origins; /* still being filled */
    rules->policy.max_retries = 0;
    rules->policy.breaker.enabled = false;
    rules->policy.limit.kind = BECALM_LIMIT_NONE;
    rules->auto_limit = false;
    rules->policy.throttle.enabled = false;
    rules->policy.hedge.enabled = false;
    rules->policy.outlier.enabled = false;
    rules->policy.restart.enabled = false;
    rules->policy.rate.enabled = false;
    for (size_t i = 0; i < sizeof settled / sizeof *settled; i++) {
        const struct schema_key *key = schema_find(&schema_rules, settled[i]);
        if (key != NULL) {
            origins->key[key - schema_rules.keys] = (struct becalm_origin){0};
        }
    }
}

void unlisted_settle(struct loader *l, struct becalm_service *service, const struct yaml_node *key,
                     const struct yaml_node *node)
{
    static const char *const any[] = {"*", NULL};
    static const char *const others[] = {"hosts",         "listen",      "tls",           "protocol",
                                         "proxyProtocol", "healthCheck", "replacePrefix", NULL};
    for (size_t i = 0; others[i] != NULL; i++) {
        const struct yaml_node *other = loader_inside(node, others[i]);
        if (other != NULL) {
            loader_error(l, other->line, other->column, "conflict",
                         "%s: %s is for services with hosts, and unlisted: pass goes to the host that a request names; "
                         "remove one of them",
                         key->text, others[i]);
        }
    }
    service->hosts = any;
    if (service->match.host == NULL && service->match.next == NULL && loader_inside(node, "match") == NULL) {
        service->match.host = any[0];
    }
    for (const struct becalm_match *match = &service->match; match != NULL; match = match->next) {
        if (match->host == NULL) {
            loader_error(l, key->line, key->column, "conflict",
                         "%s: unlisted: pass lets hosts in by their names; write match: {host: [...]}, or no match at "
                         "all",
                         key->text);
            break;
        }
    }
}

bool unlisted_passes(const struct becalm_listener *listener)
{
    switch (listener->unlisted_written) {
    case BECALM_UNLISTED_AUTO:
        return listener->service == BECALM_LISTENER_SHARED && listener->role == BECALM_ROLE_SIDECAR &&
               value_address_is_loopback(listener->address);
    case BECALM_UNLISTED_PASS:
        return true;
    case BECALM_UNLISTED_REFUSE:
        return false;
    }
    BECALM_UNREACHABLE();
}

void unlisted_check(struct loader *l)
{
    const struct becalm_settings *settings = &l->config->settings;
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        if (settings->listeners[i].passes_unlisted) {
            return;
        }
    }
    for (uint32_t i = 0; i < l->config->service_count; i++) {
        const struct becalm_service *service = &l->config->services[i];
        if (service->unlisted) {
            becalm_diag_add(l->diags, BECALM_WARNING, service->file, service->line, service->column,
                            "unlisted-unreached",
                            "%s: no listener passes hosts that no service names; write role: sidecar with an address "
                            "on loopback, or listen: [{address: ..., unlisted: pass}]",
                            service->name);
        }
    }
}
