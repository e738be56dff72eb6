/* SPDX-License-Identifier: MIT */
/* Random bytes as a scenario: it loads, and then a world can be made of it; or it says where it is wrong. */
#include <string.h>

#include "scenario/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t known(const struct scenario *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->service_count; i++) {
        if (strcmp(plan->services[i].name, name) == 0) {
            return 1;
        }
    }
    return 0;
}

static void check_dist(const struct dist *dist)
{
    BECALM_ASSERT(dist->kind != DIST_PARETO || dist->shape > 0);
    BECALM_ASSERT(dist->kind != DIST_SAMPLES); /* the text is no file */
    if (dist->kind == DIST_MIXTURE) {
        BECALM_ASSERT(dist->count > 0 && dist->parts[0].below > 0);
        for (uint32_t i = 0; i < dist->count; i++) {
            BECALM_ASSERT(dist->parts[i].dist.kind != DIST_MIXTURE);
            BECALM_ASSERT(i == 0 || dist->parts[i].below > dist->parts[i - 1].below);
            check_dist(&dist->parts[i].dist);
        }
    }
}

static void check(const struct scenario *plan)
{
    BECALM_ASSERT(plan->name != NULL && plan->about != NULL && plan->length >= BECALM_S);
    BECALM_ASSERT(plan->attempts > 0 && plan->timeout >= BECALM_MS);
    BECALM_ASSERT(plan->service_count > 0 && plan->client_count > 0);
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct scenario_service *service = &plan->services[i];
        BECALM_ASSERT(service->hosts > 0 && service->instances > 0 && service->fan_out > 0);
        check_dist(&service->time);
        for (uint32_t e = 0; e < service->endpoint_count; e++) {
            check_dist(&service->endpoints[e].time);
        }
        for (uint32_t c = 0; service->calls != NULL && service->calls[c] != NULL; c++) {
            BECALM_ASSERT(known(plan, service->calls[c]) == 1);
        }
    }
    for (uint32_t i = 0; i < plan->client_count; i++) {
        const struct scenario_client *client = &plan->clients[i];
        BECALM_ASSERT(known(plan, client->to) == 1 && client->callers > 0);
        BECALM_ASSERT(client->connections == 0 || (client->rate_milli == 0 && client->calls == 0));
        BECALM_ASSERT((uint64_t)client->connections * client->callers <= 1000000);
        check_dist(&client->think);
    }
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        const struct scenario_fault *fault = &plan->faults[i];
        BECALM_ASSERT(known(plan, fault->service) == 1 && fault->at < plan->length && fault->length > 0);
        BECALM_ASSERT((fault->on > 0) == (fault->off > 0) && (fault->kind != FAULT_ROLLING || fault->each > 0));
    }
    for (uint32_t i = 0; i < plan->link_count; i++) {
        BECALM_ASSERT(plan->links[i].from != NULL && known(plan, plan->links[i].to) == 1);
    }
    for (uint32_t i = 0; i < plan->policy_count; i++) {
        struct becalm_complaint complaint;
        BECALM_ASSERT(becalm_policy_check(&plan->policies[i].policy, &complaint) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct becalm_diags diags;
    struct scenario_file *file = NULL;
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    int rc = scenario_parse(&file, "fuzz.yaml", (const char *)data, size, NULL, &diags);
    BECALM_ASSERT(rc == 0 || rc == BECALM_EPARSE);
    BECALM_ASSERT((rc == 0) == (file != NULL) && (rc == 0) == (diags.errors == 0));
    for (uint32_t i = 0; i < diags.count; i++) {
        BECALM_ASSERT(diags.diag[i].line > 0 && diags.diag[i].column > 0 && diags.diag[i].message[0] != '\0');
    }
    if (file != NULL) {
        check(scenario_of(file));
    }
    scenario_free(file);
    return 0;
}
