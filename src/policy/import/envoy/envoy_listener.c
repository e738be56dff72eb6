/* SPDX-License-Identifier: MIT */
#include "envoy.h"

#include "policy/import/listeners.h"

#include <string.h>

void envoy_http2_read(struct source *s, const struct from *options, const char *streams)
{
    static const struct field fields[] = {
        {"max_concurrent_streams", NULL},
        {"initial_stream_window_size", NULL},
        {"initial_connection_window_size", NOTE "a connection's window is that of all its streams together"},
        {"hpack_table_size", NOTE "tables of fields have 4096 bytes"},
        {"connection_keepalive", NOTE "a silent connection with streams is asked by PING after 10s"},
        {"allow_connect", "tunnels are not made over HTTP/2"},
        {NULL, NULL}};
    if (options->node == NULL || options->node->kind != YAML_MAPPING) {
        return;
    }
    struct emit_target *settings = emit_settings(s->emit);
    source_rest(s, settings, options->node, "http2_protocol_options", fields);
    source_take_integer(s, settings, streams,
                        &(struct from){source_get(options->node, "max_concurrent_streams"),
                                       "http2_protocol_options.max_concurrent_streams", NULL});
    source_take_integer(s, settings, "http2.window",
                        &(struct from){source_get(options->node, "initial_stream_window_size"),
                                       "http2_protocol_options.initial_stream_window_size", NULL});
}

/* The protocols of the connection manager in a chain of filters. */
struct spoken {
    bool h1;
    bool h2;
};

static struct spoken manager_read(struct source *s, const struct yaml_node *chain)
{
    const struct yaml_node *filters = source_get(chain, "filters");
    struct spoken spoken = {.h1 = true, .h2 = true};
    for (uint32_t i = 0; filters != NULL && filters->kind == YAML_SEQUENCE && i < filters->count; i++) {
        const struct yaml_node *config = envoy_config_of(filters->item[i]);
        const struct from codec = {source_get(config, "codec_type"), "codec_type", NULL};
        const struct from options = {source_get(config, "http2_protocol_options"), "http2_protocol_options", NULL};
        spoken.h1 = spoken.h1 && !yaml_is(codec.node, "HTTP2");
        spoken.h2 = spoken.h2 && !yaml_is(codec.node, "HTTP1");
        if (yaml_is(codec.node, "HTTP3")) {
            source_no_equal(s, NULL, &codec, "HTTP/3 is not spoken");
        }
        envoy_http2_read(s, &options, "http2.streams");
    }
    return spoken;
}

static void chain_read(struct source *s, struct listener *l, const struct yaml_node *chain)
{
    static const struct field fields[] = {
        {"server_names", NULL},
        {"transport_protocol", NULL},
        {"application_protocols", NOTE "the protocol follows from `protocols`"},
        {"destination_port", "all clients of an address get the same set of certificates"},
        {"prefix_ranges", "all clients of an address get the same set of certificates"},
        {"source_prefix_ranges", "all clients of an address get the same set of certificates"},
        {"source_type", "all clients of an address get the same set of certificates"},
        {NULL, NULL}};
    const struct yaml_node *match = source_get(chain, "filter_chain_match");
    const struct yaml_node *names = source_get(match, "server_names");
    const struct yaml_node *socket = source_get(chain, "transport_socket");
    const struct yaml_node *older = source_get(chain, "tls_context");
    const struct from from = {socket != NULL ? socket : older, socket != NULL ? "transport_socket" : "tls_context",
                              NULL};
    struct spoken spoken = manager_read(s, chain);
    bool offers_h2 = false;
    if (from.node == NULL || !envoy_client_tls_read(s, l, &from, &offers_h2)) {
        listener_speaks(l, spoken.h1, spoken.h2);
        return;
    }
    source_rest(s, listener_keys(l), match, "filter_chain_match", fields);
    listener_names(l, names == NULL || names->kind != YAML_SEQUENCE || names->count == 0);
    listener_speaks(l, spoken.h1, spoken.h2 && (offers_h2 || !spoken.h1));
}

void envoy_listener_read(struct source *s, const struct yaml_node *node)
{
    const struct from address = {source_get(node, "address"), "address", NULL};
    const struct yaml_node *socket = source_get(address.node, "socket_address");
    const struct from host = {source_get(socket, "address"), "address.socket_address.address", NULL};
    const struct from port = {source_get(socket, "port_value"), "address.socket_address.port_value", NULL};
    const struct from chains = {source_get(node, "filter_chains"), "filter_chains", NULL};
    const struct yaml_node *last = source_get(node, "default_filter_chain");
    bool datagrams = yaml_is(source_get(socket, "protocol"), "UDP");
    const char *text = datagrams || host.node == NULL ? NULL : source_text(s, &host);
    uint64_t number = 0;
    struct listener *l =
        text == NULL || !source_integer(s, &port, &number) ? NULL : listener_at(s, text, number, &address);
    for (uint32_t i = 0; l != NULL && source_is(s, &chains, YAML_SEQUENCE) && i < chains.node->count; i++) {
        chain_read(s, l, chains.node->item[i]);
    }
    if (l != NULL && last != NULL) {
        chain_read(s, l, last);
    }
    if (l == NULL) {
        source_aside(s, NULL, &address, "`listen` sets the addresses that Becalm listens on");
    }
}
