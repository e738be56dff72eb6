/* SPDX-License-Identifier: MIT */
#include "cmd_top.h"

#include "cli/json.h"

/* Names are those of /api/state, where it has them; STATE_NONE is left out. */

static void put(struct json *json, const char *key, uint64_t value, double unit, int decimals)
{
    if (value != STATE_NONE) {
        json_number(json, key, (double)value / unit, decimals);
    }
}

static void put_reasons(struct json *json, const char *key, const uint64_t rate[STATE_REASONS])
{
    json_object(json, key);
    for (uint32_t i = 0; i < STATE_REASONS; i++) {
        if (rate[i] > 0) {
            put(json, state_reason_word(i), rate[i], 1e3, 3);
        }
    }
    json_object_end(json);
}

static void put_spoken(struct json *json, const char *side, const uint64_t rate[STATE_PROTOCOLS])
{
    static const char *const words[STATE_PROTOCOLS] = {"h1", "h2", "grpc"};
    json_object(json, side);
    for (uint32_t i = 0; i < STATE_PROTOCOLS; i++) {
        put(json, words[i], rate[i], 1e3, 3);
    }
    json_object_end(json);
}

static void put_words(struct json *json, const char *key, const struct state_words *words)
{
    json_object(json, key);
    for (uint32_t i = 0; i < words->words; i++) {
        json_integer(json, words->word[i], words->count[i]);
    }
    json_object_end(json);
}

static void put_handshakes(struct json *json, const char *side, const struct state_handshakes *handshakes)
{
    json_object(json, side);
    json_integer(json, "full", handshakes->full);
    json_integer(json, "resumed", handshakes->resumed);
    put_words(json, "failed", &handshakes->failed);
    json_object_end(json);
}

/* The protocols of connections, counted since the start. */
static void put_wire(struct json *json, const struct state *state)
{
    json_object(json, "http2");
    put_words(json, "clientsEnded", &state->clients_ended);
    put_words(json, "hostsEnded", &state->hosts_ended);
    json_object_end(json);
    if (!state->tls) {
        return;
    }
    json_object(json, "handshakes");
    put_handshakes(json, "clients", &state->clients);
    put_handshakes(json, "hosts", &state->hosts);
    json_object_end(json);
    if (state->certificate[0] != '\0') {
        json_object(json, "certificate");
        json_text(json, "file", state->certificate);
        json_number(json, "expiresInSeconds", (double)state->expires_in, 0);
        json_object_end(json);
    }
}

static void put_figures(struct json *json, const struct table_figures *figures)
{
    put(json, "requestsPerSecond", figures->rate[STATE_ARRIVALS], 1e3, 3);
    put(json, "retriesPerSecond", figures->rate[STATE_RETRIES], 1e3, 3);
    put(json, "successFirst", figures->success_first, 1e6, 6);
    put(json, "success", figures->success, 1e6, 6);
    put(json, "amplification", figures->amplification, 1e6, 6);
    json_object(json, "protocolsPerSecond");
    put_spoken(json, "clients", &figures->rate[STATE_CLIENTS]);
    put_spoken(json, "hosts", &figures->rate[STATE_HOSTS]);
    json_object_end(json);
    put_reasons(json, "refusedPerSecond", &figures->rate[STATE_REFUSED]);
    put_reasons(json, "notRetriedPerSecond", &figures->rate[STATE_NOT_RETRIED]);
}

static void put_endpoint(struct json *json, const struct view *view, const struct table_row *row,
                         const struct state_endpoint *endpoint)
{
    struct table_figures figures;
    table_endpoint(&view->table, row, endpoint, &figures);
    json_object(json, NULL);
    json_text(json, "name", endpoint->name);
    put_figures(json, &figures);
    json_text(json, "breaker", endpoint->breaker.state);
    put(json, "budgetLeft", endpoint->budget.left, 1e6, 6);
    put(json, "limit", endpoint->limit.now, 1, 0);
    put(json, "inFlight", endpoint->limit.in_flight, 1, 0);
    put(json, "waiting", endpoint->gate.waiting, 1, 0);
    put(json, "p50Ms", endpoint->latency.p50, 1e3, 3);
    put(json, "p99Ms", endpoint->latency.p99, 1e3, 3);
    json_object_end(json);
}

static void put_hosts(struct json *json, const struct state_service *service)
{
    json_array(json, "hosts");
    for (uint32_t i = 0; i < service->host_count; i++) {
        json_object(json, NULL);
        json_text(json, "name", service->host[i].name);
        json_boolean(json, "usable", service->host[i].usable);
        json_boolean(json, "ejected", service->host[i].ejected);
        json_boolean(json, "unhealthy", service->host[i].unhealthy);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_row(struct json *json, const struct view *view, const struct table_row *row)
{
    json_object(json, NULL);
    json_text(json, "name", row->name);
    json_text(json, "severity", trouble_weight_word(row->weight));
    json_array(json, "troubles");
    for (uint32_t i = 0; i < TROUBLE_COUNT; i++) {
        if ((row->troubles >> i & 1) != 0) {
            json_text(json, NULL, trouble_word((enum trouble)i));
        }
    }
    json_array_end(json);
    put_figures(json, &row->figures);
    put_hosts(json, row->service);
    json_array(json, "endpoints");
    for (uint32_t i = 0; i < row->service->endpoint_count; i++) {
        put_endpoint(json, view, row, &row->service->endpoint[i]);
    }
    json_array_end(json);
    json_object_end(json);
}

void top_json(const struct view *view, FILE *out)
{
    struct json json;
    const struct state *state = table_latest(&view->table);
    json_begin(&json, out);
    json_object(&json, NULL);
    json_text(&json, "admin", view->admin);
    json_text(&json, "time", state->time);
    json_text(&json, "version", state->version);
    json_text(&json, "id", state->id);
    json_text(&json, "role", state->role);
    json_integer(&json, "uptimeSeconds", state->uptime);
    json_boolean(&json, "draining", state->draining);
    json_boolean(&json, "reloadFailed", state->reload_failed);
    put_wire(&json, state);
    put(&json, "windowSeconds", table_window(&view->table), 1e9, 3);
    json_array(&json, "services");
    for (uint32_t i = 0; i < view->table.row_count; i++) {
        put_row(&json, view, &view->table.row[i]);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_end(&json);
}
