/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "meter/metrics.h"
#include "policy/schema.h"
#include "proxy/gateway_shared.h"

/* /api/policy: every target's rules as `becalm check --explain` prints them, and their effective values in this role.
 */

struct telling {
    struct buffer *page;
    const struct becalm_config *config;
    const struct becalm_service *service;
};

static void tell_value(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                       void *data)
{
    const struct telling *telling = data;
    struct buffer *page = telling->page;
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "key", key);
    buffer_json_chars(page, "value", value);
    buffer_json_chars(page, "from", becalm_origin_word(origin.level));
    if (origin.line > 0) {
        buffer_json_chars(page, "file", becalm_service_file(telling->config, telling->service, origin));
        buffer_json_number(page, "line", origin.line);
        buffer_json_number(page, "column", origin.column);
    }
    buffer_json_chars(page, "sentence", sentence);
    buffer_json_close(page, '}');
}

/* The effective rules differ from the written ones where gatewayRetries is false, and where limit.kind is auto. */
static void tell_in_force(struct buffer *page, const struct becalm_policy *policy)
{
    buffer_json_open(page, "inForce", '{');
    buffer_json_number(page, "maxRetries", policy->max_retries);
    buffer_json_bool(page, "hedge", policy->hedge.enabled);
    buffer_json_chars(page, "limit", schema_limit_kinds[policy->limit.kind + 1]);
    buffer_json_chars(page, "mode", policy->shadow ? "shadow" : "enforce");
    buffer_json_close(page, '}');
}

static void tell_target(struct buffer *page, const struct becalm_config *config, const struct snapshot_target *target)
{
    struct telling telling = {page, config, target->service};
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "service", target->service->name);
    buffer_json_chars(page, "endpoint", target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name);
    buffer_json_number(page, "line", target->endpoint == NULL ? target->service->line : target->endpoint->line);
    tell_in_force(page, &target->state->policy);
    buffer_json_open(page, "values", '[');
    becalm_rules_explain(target->rules, tell_value, &telling);
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

/* All services, or the one that is asked for. */
void admin_policy(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    char wanted[ADMIN_NAME_MAX];
    bool all = admin_query(request->query, "service", wanted, sizeof wanted) == ADMIN_ABSENT;
    if (!admin_name(request, "service", wanted, answer)) {
        return;
    }
    struct snapshot *snapshot = gateway_snapshot(admin->place.gateway);
    const struct becalm_settings *settings = snapshot->settings;
    const char *file = becalm_config_name(snapshot->config);
    struct buffer *page = &answer->page;
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "file", file);
    buffer_json_chars(page, "role", settings->role == BECALM_ROLE_SIDECAR ? "sidecar" : "gateway");
    buffer_json_bool(page, "gatewayRetries", settings->gateway_retries);
    buffer_json_open(page, "targets", '[');
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        if (all || strcmp(snapshot->target[i].service->name, wanted) == 0) {
            tell_target(page, snapshot->config, &snapshot->target[i]);
        }
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
    snapshot_drop(snapshot);
}
