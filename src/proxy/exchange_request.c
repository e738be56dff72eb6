/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exchange.h"
#include "gateway_shared.h"

#include "http/text_internal.h"
#include "unfilled.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Never passed on as they came: what we write ourselves, and what only a trusted peer may say. */
#define OURS                                                                                                     \
    (H1_BIT(H1_HOST) | H1_BIT(H1_CONTENT_LENGTH) | H1_BIT(H1_EXPECT) | H1_BIT(H1_VIA) | H1_BIT(H1_DEADLINE_MS) | \
     H1_BIT(H1_GRPC_TIMEOUT) | H1_BIT(H1_ENVOY_EXPECTED_MS) | H1_BIT(H1_ENVOY_ATTEMPT_COUNT) |                   \
     H1_BIT(H1_GRPC_PREVIOUS_ATTEMPTS) | H1_BIT(H1_BECALM_RETRY) | H1_BIT(H1_BECALM_EXPLAIN) | H1_BIT(H1_BAGGAGE))

struct becalm_text exchange_method(const struct exchange *exchange)
{
    return (struct becalm_text){exchange->bytes + exchange->head->method, exchange->head->method_length};
}

/* The head's bytes and its fields, in the exchange itself if they fit. */
bool exchange_copy_request(struct exchange *exchange, const char *bytes, const struct h1_head *head)
{
    size_t fields = offsetof(struct h1_head, field) + head->field_count * sizeof head->field[0];
    size_t total = fields + head->length;
    size_t room = EXCHANGE_BYTES - offsetof(struct exchange, space);
    char *at = exchange->space;
    at += (size_t)(-(uintptr_t)at % _Alignof(struct h1_head));
    if (total + (size_t)(at - exchange->space) > room) {
        at = exchange->large = malloc(total);
        if (at == NULL) {
            return false;
        }
    }
    exchange->head = memcpy(at, head, fields);
    exchange->bytes = memcpy(at + fields, bytes, head->length);
    exchange->is_head = text_is(exchange_method(exchange), "HEAD");
    exchange->is_connect = text_is(exchange_method(exchange), "CONNECT");
    return true;
}

/* Is the service found by its host? Without a match it is: by its name. */
static bool names_host(const struct becalm_match *match)
{
    return match->host != NULL ||
           (match->prefix == NULL && match->path == NULL && match->method == NULL && match->header_name == NULL);
}

static bool has_header(const void *headers, const char *name, struct becalm_text value)
{
    const struct exchange *exchange = headers;
    return h1_has_value(exchange->bytes, exchange->head, (struct becalm_text){name, strlen(name)}, value);
}

bool exchange_route(struct exchange *exchange, struct route *route)
{
    const struct h1_head *head = exchange->head;
    struct becalm_text target = {exchange->bytes + head->target, head->target_length};
    struct h1_target parts = {.path = target}; /* as most are */
    if (target.at[0] != '/' && !h1_target_split(target, exchange->is_connect, &parts)) {
        return false;
    }
    exchange->path = parts.path;
    exchange->host_name = parts.authority.at != NULL ? parts.authority : h1_find(exchange->bytes, head, H1_HOST);
    *route = route_find(exchange->view->snapshot->routes, &(struct route_request){
                                                              .host = exchange->host_name,
                                                              .path = exchange->path,
                                                              .method = exchange_method(exchange),
                                                              .has_header = has_header,
                                                              .headers = exchange,
                                                          });
    /* A tunnel goes where its authority says, or nowhere: a service that takes every path is not meant. */
    if (exchange->is_connect && route->service != ROUTE_NONE &&
        !names_host(&exchange->view->snapshot->service[route->service].service->match)) {
        route->service = ROUTE_NONE;
    }
    return !route->bad_path;
}

/* What is behind the last colon, but not inside of [::1]; 0: nothing. No number of a port is 0 here. */
static uint32_t port_of(struct becalm_text address)
{
    uint32_t port = 0;
    size_t at = address.length;
    while (at > 0 && address.at[at - 1] >= '0' && address.at[at - 1] <= '9') {
        at--;
    }
    if (at == 0 || address.at[at - 1] != ':' || address.length - at > 5) {
        return 0;
    }
    for (; at < address.length; at++) {
        port = port * 10 + (uint32_t)(address.at[at] - '0');
    }
    return port;
}

/* A service that is found by its host alone has the ports of its hosts. A URL with a port of its own must mean all of
 * them, or it would be answered by somebody whom it does not name. Who wants another port to lead there writes
 * match.host with that port, which the route has compared then. Without a port a name is what it is said to be. */
bool exchange_port_fits(const struct exchange *exchange, const struct becalm_service *service)
{
    const char *host = service->match.host == NULL ? service->name : service->match.host;
    uint32_t port = port_of(exchange->host_name);
    if (exchange->bytes[exchange->head->target] == '/' || exchange->is_connect || port == 0 || port == 80 ||
        !names_host(&service->match) || strcmp(host, "*") == 0 ||
        port_of((struct becalm_text){host, strlen(host)}) != 0) {
        return true;
    }
    for (uint32_t i = 0; i < service->host_count; i++) {
        struct becalm_text address = {service->hosts[i], strlen(service->hosts[i])};
        if (strncmp(address.at, "unix:", 5) != 0 && port_of(address) != port) {
            return false;
        }
    }
    return true;
}

bool exchange_may_repeat(const struct exchange *exchange)
{
    const struct becalm_request *request = &exchange->call.request;
    return !exchange->body_streams && !exchange->login &&
           (request->idempotent || request->keyed || exchange->target->state->policy.idempotent);
}

uint32_t exchange_attempt_from_above(const struct exchange *exchange)
{
    struct becalm_text value = h1_find(exchange->bytes, exchange->head, H1_ENVOY_ATTEMPT_COUNT);
    uint32_t count = 0;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9' || count > 100000) {
            return 0;
        }
        count = count * 10 + (uint32_t)(value.at[i] - '0');
    }
    return count;
}

/* Our own mark in Via is "1.1 becalm (id)". */
bool exchange_loops(const struct exchange *exchange)
{
    const char *id = exchange->worker->gateway->id;
    if (!h1_has(exchange->head, H1_VIA)) {
        return false;
    }
    for (uint32_t i = 0; i < exchange->head->field_count; i++) {
        const struct h1_field *field = &exchange->head->field[i];
        struct becalm_text value = h1_value(exchange->bytes, field);
        if (field->id == H1_VIA && memmem(value.at, value.length, id, strlen(id)) != NULL) {
            return true;
        }
    }
    return false;
}

static void put_via(struct h1_out *out, const struct exchange *exchange)
{
    const struct h1_head *head = exchange->head;
    h1_put_chars(out, "via: ");
    for (uint32_t i = 0; h1_has(head, H1_VIA) && i < head->field_count; i++) {
        if (head->field[i].id == H1_VIA) {
            h1_put(out, h1_value(exchange->bytes, &head->field[i]));
            h1_put_chars(out, ", ");
        }
    }
    h1_put_chars(out, head->minor == 0 ? "1.0 becalm (" : "1.1 becalm (");
    h1_put_chars(out, exchange->worker->gateway->id);
    h1_put_chars(out, ")\r\n");
}

static void put_deadline(struct h1_out *out, const char *name, enum becalm_deadline_dialect dialect, becalm_ns left)
{
    UNFILLED char value[24];
    h1_put_field(out, name, (struct becalm_text){value, becalm_deadline_write(dialect, left, value, sizeof value)});
}

/* The members of baggage as they came, with the deadline made anew if there was one. */
static void put_baggage(struct h1_out *out, const struct exchange *exchange, becalm_ns left)
{
    const struct h1_head *head = exchange->head;
    static const char member[] = "deadline-ms";
    for (uint32_t i = 0; h1_has(head, H1_BAGGAGE) && i < head->field_count; i++) {
        if (head->field[i].id != H1_BAGGAGE) {
            continue;
        }
        struct becalm_text value = h1_value(exchange->bytes, &head->field[i]);
        const char *at = value.at;
        const char *end = value.at + value.length;
        bool any = false;
        while (at < end) {
            const char *comma = memchr(at, ',', (size_t)(end - at));
            const char *stop = comma == NULL ? end : comma;
            const char *name = at;
            while (name < stop && (*name == ' ' || *name == '\t')) {
                name++;
            }
            size_t length = (size_t)(stop - name);
            bool deadline = length >= sizeof member - 1 && memcmp(name, member, sizeof member - 1) == 0 &&
                            (length == sizeof member - 1 || memchr("= \t;", name[sizeof member - 1], 4) != NULL);
            if (!deadline && length > 0) {
                h1_put_chars(out, any ? "," : "baggage: ");
                h1_put(out, (struct becalm_text){name, length});
                any = true;
            }
            at = comma == NULL ? end : comma + 1;
        }
        if ((exchange->dialects & BECALM_DEADLINE_BAGGAGE) != 0) {
            char text[24];
            size_t length = becalm_deadline_write(BECALM_DEADLINE_BAGGAGE, left, text, sizeof text);
            h1_put_chars(out, any ? ",deadline-ms=" : "baggage: deadline-ms=");
            h1_put(out, (struct becalm_text){text, length});
            any = true;
        }
        if (any) {
            h1_put_chars(out, "\r\n");
        }
    }
}

static void put_time_left(struct h1_out *out, const struct exchange *exchange, const struct attempt *attempt)
{
    becalm_ns left = becalm_ns_left(exchange->worker->loop.now, attempt->timeout_at);
    if (left != BECALM_NEVER) {
        put_deadline(out, "x-request-deadline-ms", BECALM_DEADLINE_REQUEST, left);
        if ((exchange->dialects & BECALM_DEADLINE_GRPC) != 0) {
            put_deadline(out, "grpc-timeout", BECALM_DEADLINE_GRPC, left);
        }
        if ((exchange->dialects & BECALM_DEADLINE_ENVOY) != 0) {
            put_deadline(out, "x-envoy-expected-rq-timeout-ms", BECALM_DEADLINE_ENVOY, left);
        }
    }
    put_baggage(out, exchange, left);
}

/* A length that is not known beforehand, and trailers, need chunks. */
bool exchange_sends_chunks(const struct exchange *exchange)
{
    return exchange->head->framing == H1_CHUNKED && (exchange->body_streams || bytes_left(&exchange->trailers) > 0);
}

const char *exchange_switch_wrong(const struct exchange *exchange, const char *bytes, const struct h1_head *head)
{
    struct becalm_text asked = h1_find(exchange->bytes, exchange->head, H1_UPGRADE);
    struct becalm_text given = h1_find(bytes, head, H1_UPGRADE);
    if (!exchange->upgrades || !head->one_protocol || asked.length != given.length ||
        strncasecmp(asked.at, given.at, asked.length) != 0) {
        return "101 without a request for this upgrade";
    }
    return exchange->body_in.ended ? NULL : "101 before the request has ended"; /* its rest is not the tunnel's */
}

/* Most messages have none: only those that do pay for a head on the stack. */
__attribute__((noinline)) const char *exchange_trailers_wrong(const struct bytes *trailers)
{
    UNFILLED struct h1_head head;
    return h1_parse_trailers(trailers->at, bytes_left(trailers), &head).what;
}

void exchange_put_trailers(struct h1_out *out, const struct bytes *trailers, bool names_fields)
{
    struct h1_head head;
    size_t length = bytes_left(trailers);
    if (length > 0 && !names_fields && h1_parse_trailers(trailers->at, length, &head).kind == H1_OK) {
        h1_put_fields(out, trailers->at, &head, 0);
    }
}

/* How long the body is. One that was collected is sent with its length, however it came, unless trailers follow it. */
static void put_framing(struct h1_out *out, const struct exchange *exchange)
{
    const struct h1_head *head = exchange->head;
    if (head->framing == H1_NO_BODY) {
        if (h1_has(head, H1_CONTENT_LENGTH)) {
            h1_put_chars(out, "content-length: 0\r\n");
        }
    } else if (exchange_sends_chunks(exchange)) {
        h1_put_chars(out, "transfer-encoding: chunked\r\n");
    } else {
        h1_put_number_field(out, "content-length",
                            exchange->body_streams ? head->content_length : bytes_left(&exchange->body));
    }
}

/* What is for the connection to the host alone, and the head's end. Our own TE says what the client's did: trailers
 * pass through here. */
static void put_connection(struct h1_out *out, const struct exchange *exchange)
{
    bool trailers = exchange->head->te_trailers;
    if (exchange->upgrades) {
        h1_put_chars(out, trailers ? "te: trailers\r\nconnection: te, upgrade\r\n" : "connection: upgrade\r\n");
        h1_put_field(out, "upgrade", h1_find(exchange->bytes, exchange->head, H1_UPGRADE));
    } else if (trailers) {
        h1_put_chars(out, "te: trailers\r\nconnection: te\r\n");
    }
    h1_put_chars(out, "\r\n");
}

void exchange_write_request(struct exchange *exchange, const struct attempt *attempt, struct h1_out *out)
{
    const struct h1_head *head = exchange->head;
    h1_put(out, exchange_method(exchange));
    h1_put_chars(out, " ");
    h1_put(out, exchange->path);
    h1_put_chars(out, " HTTP/1.1\r\nhost: ");
    if (exchange->host_name.length > 0) {
        h1_put(out, exchange->host_name);
    } else {
        h1_put_chars(out, exchange->target->service->name);
    }
    h1_put_chars(out, "\r\n");
    h1_put_fields(out, exchange->bytes, head, OURS);
    put_framing(out, exchange);
    if (exchange->expect != NULL) {
        h1_put_chars(out, "expect: 100-continue\r\n");
    }
    put_via(out, exchange);
    put_time_left(out, exchange, attempt);
    h1_put_number_field(out, "x-envoy-attempt-count", attempt->number + 1);
    if (attempt->number > 0 && (exchange->dialects & BECALM_DEADLINE_GRPC) != 0) {
        h1_put_number_field(out, "grpc-previous-rpc-attempts", attempt->number);
    }
    put_connection(out, exchange);
}
