/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "http/text_internal.h"
#include "meter/metrics.h"
#include "policy/yaml.h"
#include "proxy/gateway_shared.h"

#include <stdlib.h>

/* Faults that an operator injects. Every order needs a token, even where no other page does. */

static const char *towards(const struct fault *fault)
{
    return fault->to_clients ? "clients" : "hosts";
}

/* ---- the faults in force ---- */

static void put_list(struct buffer *page, const char *key, const char *const *list)
{
    if (list == NULL) {
        return;
    }
    buffer_json_open(page, key, '[');
    for (uint32_t i = 0; list[i] != NULL; i++) {
        buffer_json_chars(page, NULL, list[i]);
    }
    buffer_json_close(page, ']');
}

static void put_fault(struct buffer *page, const struct fault_entry *entry, becalm_ns now)
{
    const struct fault *fault = entry->fault;
    becalm_ns age = becalm_ns_since(now, entry->at);
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "name", fault->name);
    buffer_json_chars(page, "service", fault->service);
    buffer_json_chars(page, "endpoint", fault->endpoint);
    buffer_json_chars(page, "fault", fault_word(fault->word));
    buffer_json_chars(page, "towards", towards(fault));
    if (fault->word == FAULT_CUT_CALLERS) {
        buffer_json_decimal(page, "callers", fault->callers, 6);
    }
    buffer_json_decimal(page, "share", fault->share, 6);
    if (fault->act == FAULT_ACT_STATUS) {
        buffer_json_number(page, "status", fault->status);
    }
    if (fault->act == FAULT_ACT_DELAY) {
        buffer_json_decimal(page, "latencyMs", fault->latency / 1000, 3);
    }
    if (fault->hosts > 0) {
        buffer_json_number(page, "hosts", fault->hosts);
    }
    put_list(page, "clients", fault->clients);
    put_list(page, "headers", fault->headers);
    buffer_json_decimal(page, "endsInMs", (fault->length > age ? fault->length - age : 0) / 1000, 3);
    buffer_json_number(page, "hits", entry->hits);
    buffer_json_number(page, "cap", fault->cap);
    buffer_json_close(page, '}');
}

void admin_put_faults(struct buffer *page, struct gateway *gateway, becalm_ns now)
{
    struct fault_entry entry[FAULTS_IN_FORCE];
    uint32_t count = fault_book_read(&gateway->faults, entry);
    buffer_json_open(page, "faults", '[');
    for (uint32_t i = 0; i < count; i++) {
        put_fault(page, &entry[i], now);
    }
    buffer_json_close(page, ']');
}

/* A fault whose time was over before the request is not listed. */
static void put_page(struct admin *admin, struct buffer *page)
{
    admin_faults_expire(admin);
    buffer_json_open(page, NULL, '{');
    admin_put_faults(page, admin->place.gateway, admin->place.loop->now);
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
}

void admin_faults(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    put_page(admin, &answer->page);
}

/* ---- the log ---- */

static const char *end_word(enum fault_end why)
{
    switch (why) {
    case FAULT_EXPIRED:
        return "expired";
    case FAULT_CLEARED:
        return "cleared";
    case FAULT_SPENT:
        return "cap";
    }
    return "";
}

static void tell(struct admin *admin, const char *message, const struct fault_entry *entry, const char *why)
{
    const struct fault *fault = entry->fault;
    const struct log_pair pairs[] = {
        {.key = "fault", .type = LOG_TEXT, .text = text_of(fault->name)},
        {.key = "service", .type = LOG_TEXT, .text = text_of(fault->service)},
        {.key = "endpoint", .type = LOG_TEXT, .text = text_of(fault->endpoint)},
        {.key = "what", .type = LOG_TEXT, .text = text_of(fault_word(fault->word))},
        {.key = "towards", .type = LOG_TEXT, .text = text_of(towards(fault))},
        {.key = "for_ms", .type = LOG_MS, .number = fault->length},
        {.key = "why", .type = LOG_TEXT, .text = text_of(why)},
        {.key = "hits", .type = LOG_NUMBER, .number = entry->hits},
    };
    log_line(admin->place.log, BECALM_LOG_WARN, admin->place.loop->wall, message, pairs,
             sizeof pairs / sizeof pairs[0]);
}

static void tell_end(void *data, const struct fault_entry *entry, enum fault_end why)
{
    tell(data, "fault over", entry, end_word(why));
}

/* ---- orders ---- */

static uint32_t end_faults(struct admin *admin, const char *name)
{
    struct gateway *gateway = admin->place.gateway;
    uint32_t count = fault_book_end(&gateway->faults, name, admin->place.loop->now, tell_end, admin);
    if (count > 0) {
        gateway_order_all(gateway, WORKER_FAULTS);
    }
    return count;
}

void admin_faults_expire(struct admin *admin)
{
    struct gateway *gateway = admin->place.gateway;
    if (gateway != NULL && fault_book_any(&gateway->faults)) {
        (void)end_faults(admin, NULL);
    }
}

/* Access to loopback alone is no permission to order faults. */
static bool may_order(const struct admin *admin, struct admin_answer *answer)
{
    if (admin->token == NULL) {
        admin_problem(answer, 403, "Faults are ordered with a token: name an adminTokenFile in the policy.");
    }
    return admin->token != NULL;
}

static bool is_known(struct gateway *gateway, const struct fault *fault)
{
    struct snapshot *snapshot = gateway_snapshot(gateway);
    bool found = false;
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        const struct snapshot_target *target = &snapshot->target[i];
        const char *endpoint = target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name;
        found |= strcmp(target->service->name, fault->service) == 0 &&
                 (fault->endpoint == NULL || strcmp(fault->endpoint, endpoint) == 0);
    }
    snapshot_drop(snapshot);
    return found;
}

static void inject(struct admin *admin, struct fault *fault, struct admin_answer *answer)
{
    struct gateway *gateway = admin->place.gateway;
    becalm_ns now = admin->place.loop->now;
    admin_faults_expire(admin);
    if (!is_known(gateway, fault)) {
        admin_problem(answer, 404, "The policy has no service or endpoint of this name.");
        fault_free(fault);
        return;
    }
    const char *why = fault_book_add(&gateway->faults, fault, now);
    if (why != NULL) {
        admin_problem(answer, 409, why);
        fault_free(fault);
        return;
    }
    struct fault_entry entry[FAULTS_IN_FORCE];
    uint32_t count = fault_book_read(&gateway->faults, entry);
    tell(admin, "fault ordered", &entry[count - 1], NULL);
    put_fault(&answer->page, &entry[count - 1], now);
    buffer_chars(&answer->page, "\n");
}

void admin_fault_inject(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    if (diags == NULL) {
        answer->page.full = true;
        return;
    }
    if (may_order(admin, answer)) {
        struct yaml_tree *tree = yaml_parse("body", request->body.at, request->body.length, diags);
        struct fault *fault = tree == NULL || diags->errors > 0 ? NULL : fault_read(tree, diags);
        if (fault != NULL) {
            inject(admin, fault, answer);
        } else if (diags->count > 0) {
            admin_problem(answer, 400, diags->diag[0].message);
        } else {
            answer->page.full = true;
        }
        yaml_free(tree);
    }
    free(diags);
}

void admin_fault_clear(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    char name[ADMIN_NAME_MAX] = "";
    struct becalm_text path = request->path;
    bool one = path.length > sizeof "/api/faults";
    if (!may_order(admin, answer)) {
        return;
    }
    if (one) {
        text_skip(&path, sizeof "/api/faults");
    }
    if (one && !admin_unescape(path, name, sizeof name)) {
        admin_problem(answer, 400, "The fault's name is badly escaped.");
        return;
    }
    admin_faults_expire(admin); /* faults whose time is over must not count as ended by this order */
    uint32_t count = end_faults(admin, name);
    if (one && count == 0) {
        admin_problem(answer, 404, "No fault of that name is in force.");
        return;
    }
    buffer_json_open(&answer->page, NULL, '{');
    buffer_json_number(&answer->page, "cleared", count);
    buffer_json_close(&answer->page, '}');
    buffer_chars(&answer->page, "\n");
}
