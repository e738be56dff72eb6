/* SPDX-License-Identifier: MIT */
#include "metrics_gateway.h"

#include "process.h"

#include <stddef.h>

/* Of keys that gateways share. */
static void write_store_shared(struct metrics_text *w, const struct store_counts *store)
{
    metrics_single(w, "becalm_store_fenced_total", "counter",
                   "Ends of idempotency keys that the store refused, because another gateway had the key by then.",
                   store->fenced);
    metrics_family(w, "becalm_store_begin_seconds", "histogram",
                   "How long calls waited to hear of their idempotency key.");
    metrics_waits_write(w, NULL, &store->waits);
}

static void write_store(struct metrics_text *w, const struct store_counts *store)
{
    const struct {
        const char *result;
        uint64_t count;
    } requests[] = {
        {"begun", store->begun},
        {"answered", store->answered},
        {"in_flight", store->in_flight},
        {"unknown", store->unknown},
        {"answer_lost", store->answer_lost},
        {"mismatch", store->mismatch},
        {"scope", store->other_scope},
        {"full", store->full},
        {"away", store->away},
        {"forgot", store->forgot},
        {"passed", store->passed},
        {"local", store->local},
    };
    const size_t rows = sizeof requests / sizeof requests[0] - (store->shared ? 0 : 4);
    metrics_single(w, "becalm_store_entries", "gauge", "Idempotency keys in the store.", store->entries);
    metrics_single(w, "becalm_store_bytes", "gauge", "Memory of the stored answers.", store->bytes);
    metrics_single(w, "becalm_store_unknown", "gauge",
                   "Idempotency keys that are held, because it is unknown whether their request was executed.",
                   store->held);
    metrics_single(w, "becalm_store_expired_total", "counter", "Keys that were forgotten at the end of their time.",
                   store->expired);
    metrics_family(w, "becalm_store_requests_total", "counter",
                   "Requests with an idempotency key, by the store's verdict.");
    for (size_t i = 0; i < rows; i++) {
        metrics_sample(w, "");
        metrics_label(w, "result", requests[i].result);
        metrics_number(w, requests[i].count);
    }
    if (store->shared) {
        write_store_shared(w, store);
    }
}

static void write_h2_ends(struct metrics_text *w, const struct metrics_gateway *g, const uint64_t ended[METRICS_H2_WHY])
{
    for (size_t i = 0; i < METRICS_H2_WHY; i++) {
        if (g->h2_why[i] != NULL) {
            metrics_sample(w, "");
            metrics_label(w, "why", g->h2_why[i]);
            metrics_number(w, ended[i]);
        }
    }
}

static void write_h2(struct metrics_text *w, const struct metrics_gateway *g)
{
    metrics_family(w, "becalm_h2_goaway_total", "counter",
                   "HTTP/2 connections of clients that the gateway closed with GOAWAY, by reason.");
    write_h2_ends(w, g, g->h2_ended);
    metrics_family(w, "becalm_h2_hosts_ended_total", "counter",
                   "HTTP/2 connections to hosts that were ended because of the host's frames, by reason.");
    write_h2_ends(w, g, g->h2_host_ended);
}

static void write_bounds(struct metrics_text *w, const struct metrics_gateway *g)
{
    static const struct {
        const char *bound;
        const char *action;
    } words[METRICS_BOUNDS] = {
        [METRICS_CONNECTIONS_DISPLACED] = {"maxConnections", "displaced"},
        [METRICS_CONNECTIONS_REFUSED] = {"maxConnections", "refused"},
        [METRICS_CLIENT_DISPLACED] = {"maxConnectionsPerClient", "displaced"},
        [METRICS_CLIENT_REFUSED] = {"maxConnectionsPerClient", "refused"},
        [METRICS_BODY_CUT] = {"bodyTimeout", "cut"},
        [METRICS_BUFFERED_CUT] = {"maxBuffered", "cut"},
        [METRICS_BUFFERED_REFUSED] = {"maxBuffered", "refused"},
        [METRICS_TUNNELS_REFUSED] = {"maxTunnels", "refused"},
        [METRICS_HOST_TUNNELS_REFUSED] = {"maxTunnelsPerHost", "refused"},
    };
    metrics_family(
        w, "becalm_bounds_reached_total", "counter",
        "How often a bound of the gateway refused a new connection, request or tunnel, or ended an old one.");
    for (size_t i = 0; i < METRICS_BOUNDS; i++) {
        metrics_sample(w, "");
        metrics_label(w, "bound", words[i].bound);
        metrics_label(w, "action", words[i].action);
        metrics_number(w, g->bounds[i]);
    }
}

static void write_tls(struct metrics_text *w, const struct metrics_gateway *g)
{
    metrics_family(w, "becalm_tls_handshakes_total", "counter", "TLS handshakes, by result.");
    for (uint32_t i = 0; i < g->handshakes_count; i++) {
        metrics_sample(w, "");
        metrics_label(w, "side", g->handshakes[i].side);
        metrics_label(w, "result", g->handshakes[i].result);
        metrics_number(w, g->handshakes[i].count);
    }
    if (g->certificate_count > 0) {
        metrics_family(w, "becalm_tls_certificate_expires_seconds", "gauge",
                       "When the certificate in force expires, in seconds since 1970.");
    }
    for (uint32_t i = 0; i < g->certificate_count; i++) {
        metrics_sample(w, "");
        metrics_label(w, "certificate", g->certificate[i].file);
        metrics_number(w, g->certificate[i].expires);
    }
}

static void write_spans(struct metrics_text *w, const struct metrics_spans *spans)
{
    const struct {
        const char *reason;
        uint64_t count;
    } dropped[] = {{"no_room", spans->no_room}, {"failed", spans->failed}, {"refused", spans->refused}};
    metrics_single(w, "becalm_spans_exported_total", "counter", "Spans that the collector accepted.", spans->exported);
    metrics_family(w, "becalm_spans_dropped_total", "counter", "Spans that were not exported, by reason.");
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        metrics_sample(w, "");
        metrics_label(w, "reason", dropped[i].reason);
        metrics_number(w, dropped[i].count);
    }
}

static void write_joins(struct metrics_text *w, const struct metrics_joins *joins)
{
    const struct {
        const char *word;
        uint64_t count;
    } rows[] = {{"joined", joins->joined},
                {"unknown", joins->unknown},
                {"no_id", joins->no_id},
                {"strange", joins->strange},
                {"expired", joins->expired}};
    metrics_family(w, "becalm_join_calls_total", "counter",
                   "Outgoing calls of the program, by whether the sidecar found their incoming request.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        metrics_sample(w, "");
        metrics_label(w, "result", rows[i].word);
        metrics_number(w, rows[i].count);
    }
    metrics_single(w, "becalm_join_pushed_out_total", "counter",
                   "Requests in progress that newer requests displaced from the full table.", joins->pushed_out);
}

void metrics_gateway_write(struct metrics_text *w, const struct metrics_gateway *g)
{
    metrics_single(w, "becalm_workers", "gauge", "Worker threads.", g->workers);
    metrics_single(w, "becalm_config_last_reload_successful", "gauge", "1 if the latest load of the policy went well.",
                   g->reload_ok);
    metrics_single(w, "becalm_config_last_reload_success_timestamp_seconds", "gauge",
                   "When a policy was last loaded, in seconds since 1970.", g->reload_at);
    metrics_single(w, "becalm_connections", "gauge", "Connections of clients that are open.", g->connections);
    metrics_single(w, "becalm_connections_accepted_total", "counter", "Connections that clients have opened.",
                   g->accepted);
    write_bounds(w, g);
    write_h2(w, g);
    metrics_single(w, "becalm_tunnels", "gauge", "Tunnels that are open or being opened.", g->tunnels);
    metrics_single(w, "becalm_buffered_bytes", "gauge", "Memory of bytes that wait for slow readers and slow hosts.",
                   g->buffered);
    metrics_single(w, "becalm_buffered_max_bytes", "gauge", "The bound of that.", g->buffered_max);
    metrics_single(w, "becalm_passed_requests_total", "counter",
                   "Requests that were passed on to hosts that no service names.", g->passed);
    metrics_single(w, "becalm_log_dropped_total", "counter", "Log lines that could not be written.", g->log_dropped);
    if (g->joins != NULL) {
        write_joins(w, g->joins);
    }
    if (g->spans != NULL) {
        write_spans(w, g->spans);
    }
    if (g->handshakes_count > 0) {
        write_tls(w, g);
    }
    if (g->store != NULL) {
        write_store(w, g->store);
    }
}

void metrics_process_write(struct metrics_text *w)
{
    struct process_figures process;
    if (!process_read(&process)) {
        return;
    }
    metrics_family(w, "process_cpu_seconds_total", "counter", "CPU time used, user and system.");
    metrics_sample(w, "");
    metrics_decimal(w, process.cpu / BECALM_MS, 3);
    metrics_single(w, "process_resident_memory_bytes", "gauge", "Memory in use.", process.resident_bytes);
    metrics_single(w, "process_open_fds", "gauge", "Open file descriptors.", process.open_fds);
    metrics_family(w, "process_max_fds", "gauge", "File descriptors that may be open.");
    metrics_sample(w, "");
    if (process.max_fds == UINT64_MAX) {
        metrics_infinity(w);
    } else {
        metrics_number(w, process.max_fds);
    }
    metrics_family(w, "process_start_time_seconds", "gauge", "When the process began, in seconds since 1970.");
    metrics_sample(w, "");
    metrics_decimal(w, process.started_at / (10 * BECALM_MS), 2);
}
