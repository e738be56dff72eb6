/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "proxy/gateway_shared.h"

#include <string.h>

/* Faults on order towards clients: calls that are hit before they begin. The engine never hears of them. */

/* Without an answer: the connection is cut, or closed. */
static void end_silently(struct exchange *exchange, bool cut)
{
    exchange->client_broke = cut;
    exchange->wants_close = true;
    exchange_log(exchange, "fault");
    exchange_discard(exchange, false);
}

static void acts(struct exchange *exchange, const struct fault_hit *hit)
{
    switch (hit->act) {
    case FAULT_ACT_STATUS:
        exchange_refuse(exchange, hit->status, "proxy_internal_error", "fault", exchange->fault);
        break;
    case FAULT_ACT_RESET:
        end_silently(exchange, true);
        break;
    case FAULT_ACT_REFUSE:
        end_silently(exchange, false);
        break;
    case FAULT_ACT_SWALLOW:
    case FAULT_ACT_HANG:
    case FAULT_ACT_DELAY:
        exchange_begin(exchange);
        break;
    }
}

static void goes_on(struct fault_hold *hold)
{
    struct exchange *exchange = hold->data;
    exchange_fault_end(exchange);
    exchange_begin(exchange);
}

/* A call that was held is in that phase, and is hit once. */
bool exchange_fault(struct exchange *exchange)
{
    struct fault_hit hit;
    if (exchange->phase == EXCHANGE_HELD || !fault_hits(exchange, true, 0, &hit)) {
        return false;
    }
    if (hit.act < FAULT_ACT_SWALLOW) {
        acts(exchange, &hit);
        return true;
    }
    exchange->hold = fault_hold(exchange->worker, &hit, hit.until, goes_on, exchange);
    if (exchange->hold == NULL) {
        return false;
    }
    exchange_enter(exchange, EXCHANGE_HELD);
    exchange->stream->ops->began(exchange->stream);
    return true;
}

void exchange_fault_end(struct exchange *exchange)
{
    if (exchange->hold != NULL) {
        fault_hold_free(exchange->hold);
        exchange->hold = NULL;
    }
}
