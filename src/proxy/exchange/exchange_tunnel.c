/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "proxy/gateway_shared.h"
#include "proxy/host/upstream.h"

bool tunnel_place_take(struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    struct gateway *gateway = exchange->worker->gateway;
    uint32_t max = settings->max_tunnels > 0 ? settings->max_tunnels : (settings->max_connections + 1) / 2;
    exchange->tunnel_place = atomic_fetch_add_explicit(&gateway->tunnels, 1, memory_order_relaxed) < max;
    if (!exchange->tunnel_place) {
        atomic_fetch_sub_explicit(&gateway->tunnels, 1, memory_order_relaxed);
        gateway_count_bound(gateway, METRICS_TUNNELS_REFUSED);
    }
    return exchange->tunnel_place;
}

void tunnel_place_give(struct exchange *exchange)
{
    if (exchange->tunnel_place) {
        exchange->tunnel_place = false;
        atomic_fetch_sub_explicit(&exchange->worker->gateway->tunnels, 1, memory_order_relaxed);
    }
}

bool tunnel_host_take(struct attempt *attempt)
{
    const struct exchange *exchange = attempt->exchange;
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    struct gateway *gateway = exchange->worker->gateway;
    const union address_socket *address = &attempt->host->address;
    uint32_t pool = settings->pool_max_per_host > 0 ? settings->pool_max_per_host : UPSTREAM_USUAL;
    uint32_t max = settings->max_tunnels_per_host > 0 ? settings->max_tunnels_per_host : pool;
    uint64_t key = peer_hash(&gateway->peer_key, address, address_length(address));
    if (!tally_take(&gateway->host_tunnels, key, max)) {
        gateway_count_bound(gateway, METRICS_HOST_TUNNELS_REFUSED);
        return false;
    }
    attempt->tunnel_key = key;
    attempt->tunnel_place = true;
    return true;
}

void tunnel_host_give(struct attempt *attempt)
{
    if (attempt->tunnel_place) {
        attempt->tunnel_place = false;
        tally_give(&attempt->exchange->worker->gateway->host_tunnels, attempt->tunnel_key);
    }
}

void exchange_tunnel(struct attempt *attempt, const struct head *head, struct becalm_text behind)
{
    struct exchange *exchange = attempt->exchange;
    struct client_stream *stream = exchange->stream;
    struct becalm_outcome outcome = {.kind = BECALM_OUTCOME_OK, .status = attempt->status};
    struct stream_tunnel plan = {
        .host = &attempt->stream,
        .host_key = attempt->tunnel_key,
        .head = head,
        .behind = behind,
    };
    BECALM_ASSERT(stream->ops->tunnel != NULL); /* no call that outlives its client asks for a tunnel */
    if (stream->ops->tunnel(stream, &plan)) {
        exchange->tunnel_place = attempt->tunnel_place = false; /* both are the tunnel's from now on */
    }
    exchange->status = attempt->status;
    answer_enter(exchange, ANSWER_TUNNEL);
    exchange_attempt_ended(exchange, attempt->slot, &outcome);
}
