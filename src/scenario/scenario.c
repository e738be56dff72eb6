/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <string.h>

bool scenario_streams(const struct scenario_service *service)
{
    bool streams = !dist_is_zero(&service->body);
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        streams |= !dist_is_zero(&service->endpoints[i].body);
    }
    return streams;
}

uint32_t scenario_find(const struct scenario *plan, const char *service)
{
    for (uint32_t i = 0; i < plan->service_count; i++) {
        if (strcmp(plan->services[i].name, service) == 0) {
            return i;
        }
    }
    return SCENARIO_NONE;
}

bool fault_span_has(const struct fault_span *span, const struct scenario_fault *fault)
{
    return fault->at <= span->over_at && becalm_ns_after(fault->at, fault->length) >= span->at;
}

bool scenario_fault_span(const struct scenario *plan, struct fault_span *span)
{
    *span = (struct fault_span){.first = 0};
    for (uint32_t i = 1; i < plan->fault_count; i++) {
        span->first = plan->faults[i].at < plan->faults[span->first].at ? i : span->first;
    }
    if (plan->fault_count == 0) {
        return false;
    }
    span->at = plan->faults[span->first].at;
    span->over_at = becalm_ns_after(span->at, plan->faults[span->first].length);
    for (uint32_t before = 0; span->count > before || span->count == 0;) { /* one that is added may reach others */
        before = span->count;
        span->count = 0;
        for (uint32_t i = 0; i < plan->fault_count; i++) {
            const struct scenario_fault *fault = &plan->faults[i];
            if (fault_span_has(span, fault)) {
                span->over_at = becalm_ns_max(span->over_at, becalm_ns_after(fault->at, fault->length));
                span->count++;
            }
        }
    }
    return true;
}
