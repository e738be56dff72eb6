/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "http/text_internal.h"
#include "meter/metrics.h"
#include "policy/diag.h"
#include "policy/yaml.h"
#include "proxy/gateway_shared.h"

#include <stdlib.h>

/* Orders of an operator: a reload, and the state of breakers. */

/* ---- reload ---- */

static void put_diags(struct buffer *page, const struct becalm_diags *diags)
{
    buffer_json_open(page, "diagnostics", '[');
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct becalm_diag *diag = &diags->diag[i];
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "severity", diag_severity_word(diag->severity));
        buffer_json_chars(page, "file", diag->file);
        buffer_json_number(page, "line", diag->line);
        buffer_json_number(page, "column", diag->column);
        buffer_json_chars(page, "code", diag->code);
        buffer_json_chars(page, "message", diag->message);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

void admin_reload(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    int rc = diags == NULL ? BECALM_ENOMEM : admin->place.reload(admin->place.control, diags);
    (void)request;
    if (rc == BECALM_ENOMEM) {
        admin_problem(answer, 500, "There is no memory for the new policy; the earlier policy stays in force.");
    } else {
        answer->status = rc == 0 ? 200 : 422;
        buffer_json_open(&answer->page, NULL, '{');
        buffer_json_bool(&answer->page, "reloaded", rc == 0);
        put_diags(&answer->page, diags);
        buffer_json_close(&answer->page, '}');
        buffer_chars(&answer->page, "\n");
    }
    free(diags);
}

/* ---- breakers ---- */

/* "reset" is no state: it means the state with which the policy begins, -1. */
static const struct {
    const char *word;
    int state;
} orders[] = {
    {"forced_open", BECALM_BREAKER_FORCED_OPEN},
    {"disabled", BECALM_BREAKER_DISABLED},
    {"metrics_only", BECALM_BREAKER_METRICS_ONLY},
    {"closed", BECALM_BREAKER_CLOSED},
    {"reset", -1},
};

struct breaker_order {
    char service[ADMIN_NAME_MAX];
    const char *endpoint; /* NULL: all of the service; METRICS_DEFAULT: its own rules alone */
    int state;
};

static const struct yaml_node *scalar_of(const struct yaml_node *body, const char *key)
{
    const struct yaml_node *node = body == NULL || body->kind != YAML_MAPPING ? NULL : yaml_get(body, key);
    return node != NULL && node->kind == YAML_SCALAR ? node : NULL;
}

/* NULL: the order was read. Else the error. The texts point into the tree. */
static const char *order_read(const struct yaml_node *body, struct breaker_order *order)
{
    const struct yaml_node *state = scalar_of(body, "state");
    const struct yaml_node *endpoint = scalar_of(body, "endpoint");
    uint32_t known = (uint32_t)(state != NULL) + (uint32_t)(endpoint != NULL);
    bool found = false;
    for (size_t i = 0; state != NULL && i < sizeof orders / sizeof orders[0]; i++) {
        if (text_is_word((struct becalm_text){state->text, state->length}, orders[i].word)) {
            order->state = orders[i].state;
            found = true;
        }
    }
    order->endpoint = endpoint == NULL ? NULL : endpoint->text;
    if (!found) {
        return "Send {\"state\": \"forced_open\"}, or disabled, metrics_only, closed, reset.";
    }
    return body->count == known ? NULL : "The only keys are \"state\" and \"endpoint\", which is a name.";
}

/* The service's name in /api/services/NAME/breaker. */
static bool service_read(struct becalm_text path, char *text, size_t size)
{
    text_skip(&path, sizeof "/api/services/" - 1);
    path.length -= sizeof "/breaker" - 1;
    return admin_unescape(path, text, size);
}

static bool is_meant(const struct snapshot_target *target, const struct breaker_order *order)
{
    const char *endpoint = target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name;
    return strcmp(target->service->name, order->service) == 0 &&
           (order->endpoint == NULL || strcmp(order->endpoint, endpoint) == 0);
}

static void obey(struct admin *admin, const struct snapshot_target *target, int wanted, struct buffer *page)
{
    struct loop *loop = admin->place.loop;
    const struct becalm_breaker_policy *policy = &target->state->policy.breaker;
    struct becalm_moment at = {.now = loop->now, .random = becalm_rand_next(&loop->random)};
    enum becalm_breaker_state to = wanted >= 0       ? (enum becalm_breaker_state)wanted
                                   : policy->enabled ? BECALM_BREAKER_CLOSED
                                                     : BECALM_BREAKER_DISABLED;
    enum becalm_breaker_state from = becalm_breaker_force(target->state->target.breaker, policy, &at, to);
    const char *endpoint = target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name;
    struct log_pair pairs[] = {
        {.key = "service", .type = LOG_TEXT, .text = text_of(target->service->name)},
        {.key = "endpoint", .type = LOG_TEXT, .text = text_of(endpoint)},
        {.key = "from", .type = LOG_TEXT, .text = text_of(becalm_breaker_word(from))},
        {.key = "to", .type = LOG_TEXT, .text = text_of(becalm_breaker_word(to))},
    };
    log_line(admin->place.log, BECALM_LOG_WARN, loop->wall, "breaker ordered", pairs, sizeof pairs / sizeof pairs[0]);
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "endpoint", endpoint);
    buffer_json_chars(page, "from", becalm_breaker_word(from));
    buffer_json_chars(page, "to", becalm_breaker_word(to));
    buffer_json_close(page, '}');
}

static void obey_all(struct admin *admin, const struct breaker_order *order, struct admin_answer *answer)
{
    struct snapshot *snapshot = gateway_snapshot(admin->place.gateway);
    struct buffer *page = &answer->page;
    uint32_t count = 0;
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "service", order->service);
    buffer_json_open(page, "breakers", '[');
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        if (is_meant(&snapshot->target[i], order)) {
            obey(admin, &snapshot->target[i], order->state, page);
            count++;
        }
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
    if (count == 0) {
        page->length = 0;
        admin_problem(answer, 404, "The policy has no service or endpoint of this name.");
    }
    snapshot_drop(snapshot);
}

void admin_breaker(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct breaker_order order = {0};
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    struct yaml_tree *tree = diags == NULL ? NULL : yaml_parse("body", request->body.at, request->body.length, diags);
    const char *wrong = NULL;
    if (diags == NULL) {
        answer->page.full = true;
        return;
    }
    if (tree == NULL || diags->errors > 0) {
        wrong = diags->diag[0].message;
    } else {
        wrong = order_read(tree->root, &order);
    }
    if (wrong == NULL && !service_read(request->path, order.service, sizeof order.service)) {
        wrong = "The service's name is badly escaped.";
    }
    if (wrong != NULL) {
        admin_problem(answer, 400, wrong);
    } else {
        obey_all(admin, &order, answer);
    }
    yaml_free(tree);
    free(diags);
}
