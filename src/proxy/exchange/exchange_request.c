/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exchange.h"

#include "http/text_internal.h"
#include "message/answer_head.h"
#include "origin/forwarded.h"
#include "proxy/gateway_shared.h"
#include "unfilled.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Fields that are never passed on unchanged: those that the gateway writes itself, and those that only a trusted peer
 * may send. */
#define OURS                                                                                                          \
    (FIELD_BIT(FIELD_HOST) | FIELD_BIT(FIELD_CONTENT_LENGTH) | FIELD_BIT(FIELD_EXPECT) | FIELD_BIT(FIELD_VIA) |       \
     FIELD_BIT(FIELD_DEADLINE_MS) | FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) |              \
     FIELD_BIT(FIELD_ENVOY_ATTEMPT_COUNT) | FIELD_BIT(FIELD_GRPC_PREVIOUS_ATTEMPTS) | FIELD_BIT(FIELD_BECALM_RETRY) | \
     FIELD_BIT(FIELD_BECALM_EXPLAIN) | FIELD_BIT(FIELD_BAGGAGE) | FIELD_BIT(FIELD_KEY_FENCE))

struct becalm_text exchange_method(const struct exchange *exchange)
{
    return head_method(exchange->head);
}

/* The head's bytes and its fields, in the exchange itself if they fit. */
bool exchange_copy_request(struct exchange *exchange, const struct head *head)
{
    size_t total = head_copy_size(head);
    size_t room = EXCHANGE_BYTES - offsetof(struct exchange, space);
    char *at = exchange->space;
    at += (size_t)(-(uintptr_t)at % _Alignof(struct head));
    if (total + (size_t)(at - exchange->space) > room) {
        at = exchange->large = malloc(total);
        if (at == NULL) {
            return false;
        }
    }
    exchange->head = head_copy(at, head);
    exchange->is_head = text_is(exchange_method(exchange), "HEAD");
    exchange->is_connect = text_is(exchange_method(exchange), "CONNECT");
    return true;
}

/* Is the service found by its host? Without a match it is: by its name. */
static bool names_host(const struct becalm_match *match)
{
    return match->host != NULL || (match->prefix == NULL && match->start == NULL && match->path == NULL &&
                                   match->method == NULL && match->header_name == NULL);
}

static bool has_header(const void *headers, const char *name, struct becalm_text value)
{
    const struct exchange *exchange = headers;
    return head_has_value(exchange->head, (struct becalm_text){name, strlen(name)}, value);
}

/* `at`: among the endpoints of this service alone. */
static struct route find_route(struct exchange *exchange, bool at, uint32_t service)
{
    return route_find(exchange->view->snapshot->routes, &(struct route_request){
                                                            .host = exchange->host_name,
                                                            .path = exchange->path,
                                                            .method = exchange_method(exchange),
                                                            .has_header = has_header,
                                                            .headers = exchange,
                                                            .by_listener = at,
                                                            .service = service,
                                                        });
}

bool exchange_route_at(struct exchange *exchange, uint32_t service, struct route *route)
{
    *route = find_route(exchange, true, service);
    return !route->bad_path && !route->ambiguous && route->service == service;
}

bool exchange_route(struct exchange *exchange, struct route *route)
{
    const struct head *head = exchange->head;
    struct becalm_text target = head_target(head);
    struct h1_target parts = {.path = target}; /* as most are */
    if (target.at[0] != '/' && !h1_target_split(target, exchange->is_connect, &parts)) {
        return false;
    }
    exchange->path = parts.path;
    exchange->host_name = parts.authority.at != NULL ? parts.authority : head_find(head, FIELD_HOST);
    const struct snapshot_door *door = &exchange->view->snapshot->door[exchange->origin.door];
    if (door->name != NULL && door->service == ROUTE_NONE) { /* the service of this listener is gone */
        *route = (struct route){.service = ROUTE_NONE, .endpoint = ROUTE_NONE};
        return true;
    }
    *route = find_route(exchange, door->name != NULL, door->service);
    /* A tunnel goes where its authority says, or nowhere: a service that takes every path is not meant. */
    if (exchange->is_connect && route->service != ROUTE_NONE && !names_host(route->match)) {
        route->service = ROUTE_NONE;
    }
    return !route->bad_path;
}

/* A character of a path, which may be an escape, is one of the rule that it fits: however either is spelled, they are
 * equally many. */
size_t exchange_prefix(const struct exchange *exchange, const struct route *route)
{
    const struct becalm_service *service = exchange->view->snapshot->service[route->service].service;
    const char *rule = route->match->prefix;
    size_t at = 0;
    if (service->replace_prefix == NULL || rule == NULL || text_peek(exchange->path) != '/') {
        return 0;
    }
    for (; *rule != '\0' && at < exchange->path.length; rule += *rule == '%' ? 3 : 1) {
        at += exchange->path.at[at] == '%' ? 3 : 1;
    }
    return at;
}

/* The path with the service's own prefix in place of the one that it was found by. */
static __attribute__((noinline)) struct becalm_text replaced_path(struct text_sink *values,
                                                                  const struct exchange *exchange)
{
    struct becalm_text prefix = text_of(exchange->target->service->replace_prefix);
    struct becalm_text rest = {exchange->path.at + exchange->prefix, exchange->path.length - exchange->prefix};
    size_t from = values->length;
    bool ends = rest.length == 0 || rest.at[0] == '?';
    if (!ends && prefix.at[prefix.length - 1] == '/') {
        prefix.length--;
    }
    text_put(values, prefix);
    if (!ends && rest.at[0] != '/') {
        text_put_chars(values, "/");
    }
    text_put(values, rest);
    return (struct becalm_text){values->at + from, values->length - from};
}

/* The port after the last colon, but not inside of [::1]; 0: none. Port 0 itself is not valid here. */
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

/* A service that is found by its host alone has the ports of its hosts. If a URL has a port, all hosts of the service
 * must have that port; otherwise a service would answer that the URL does not name. To route another port to the
 * service, write match.host with that port; the route has compared it then. A URL without a port needs no check. */
bool exchange_port_fits(const struct exchange *exchange, const struct route *route)
{
    const struct becalm_service *service = exchange->view->snapshot->service[route->service].service;
    const char *host = route->match->host == NULL ? service->name : route->match->host;
    uint32_t port = port_of(exchange->host_name);
    if (head_target(exchange->head).at[0] == '/' || exchange->is_connect || port == 0 || port == 80 ||
        !names_host(route->match) || service->unlisted || strcmp(host, "*") == 0 ||
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
    return (!exchange->body_streams || exchange->body_recorded) && !exchange->login && !request->once &&
           (request->idempotent || request->keyed || exchange->target->state->policy.idempotent);
}

uint32_t exchange_number(const struct exchange *exchange, enum field_id id)
{
    struct becalm_text value = head_find(exchange->head, id);
    uint32_t count = 0;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9' || count > 100000) {
            return 0;
        }
        count = count * 10 + (uint32_t)(value.at[i] - '0');
    }
    return count;
}

uint32_t exchange_attempt_from_above(const struct exchange *exchange)
{
    return exchange_number(exchange, FIELD_ENVOY_ATTEMPT_COUNT);
}

/* Our own mark in Via is "1.1 becalm (id)". */
bool exchange_loops(const struct exchange *exchange)
{
    const char *id = exchange->worker->gateway->id;
    if (!head_has(exchange->head, FIELD_VIA)) {
        return false;
    }
    for (uint32_t i = 0; i < exchange->head->field_count; i++) {
        const struct field *field = &exchange->head->field[i];
        struct becalm_text value = field_value(exchange->head, field);
        if (field->id == FIELD_VIA && memmem(value.at, value.length, id, strlen(id)) != NULL) {
            return true;
        }
    }
    return false;
}

static void add_via(struct draft *draft, const struct exchange *exchange)
{
    const struct head *head = exchange->head;
    if (!head_has(head, FIELD_VIA) && head->version == HTTP_1_1) {
        const struct gateway *gateway = exchange->worker->gateway;
        draft_add(draft, "via", (struct becalm_text){gateway->via, gateway->via_length});
        return;
    }
    struct text_sink *values = &draft->values;
    size_t from = values->length;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->field[i].id == FIELD_VIA) {
            text_put(values, field_value(head, &head->field[i]));
            text_put_chars(values, ", ");
        }
    }
    text_put_chars(values, answer_head_via(head->version));
    text_put_chars(values, " (");
    text_put_chars(values, exchange->worker->gateway->id);
    text_put_chars(values, ")");
    draft_add_made(draft, "via", from);
}

enum { DEADLINE_TEXT_MAX = 24 }; /* the room that becalm_deadline_write() asks for */

static void add_deadline(struct draft *draft, const char *name, enum becalm_deadline_dialect dialect, becalm_ns left)
{
    struct text_sink *values = &draft->values;
    size_t from = values->length;
    if (values->size - from < DEADLINE_TEXT_MAX) {
        values->full = true;
        return;
    }
    values->length += becalm_deadline_write(dialect, left, values->at + from, DEADLINE_TEXT_MAX);
    draft_add_made(draft, name, from);
}

/* Is this member of baggage the deadline, which is made anew? */
static bool is_deadline_member(struct becalm_text member)
{
    return text_take_word(&member, "deadline-ms") && (text_ended(member) || memchr("= \t;", member.at[0], 4) != NULL);
}

/* The members of one line as they came, but for the deadline. */
static void put_members(struct text_sink *values, size_t from, struct becalm_text list)
{
    while (!text_ended(list)) {
        const char *comma = memchr(list.at, ',', list.length);
        struct becalm_text member = {list.at, comma == NULL ? list.length : (size_t)(comma - list.at)};
        text_skip(&list, member.length);
        text_take(&list, ',');
        text_skip_blanks(&member);
        if (!text_ended(member) && !is_deadline_member(member)) {
            text_put_chars(values, values->length > from ? "," : "");
            text_put(values, member);
        }
    }
}

/* The members of baggage as they came, with the deadline made anew if there was one. */
static __attribute__((noinline)) void add_baggage(struct draft *draft, const struct exchange *exchange, becalm_ns left)
{
    const struct head *head = exchange->head;
    struct text_sink *values = &draft->values;
    size_t from = values->length;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->field[i].id == FIELD_BAGGAGE) {
            put_members(values, from, field_value(head, &head->field[i]));
        }
    }
    if ((exchange->dialects & BECALM_DEADLINE_BAGGAGE) != 0 && left != BECALM_NEVER) {
        char text[DEADLINE_TEXT_MAX];
        size_t length = becalm_deadline_write(BECALM_DEADLINE_BAGGAGE, left, text, sizeof text);
        text_put_chars(values, values->length > from ? ",deadline-ms=" : "deadline-ms=");
        text_put(values, (struct becalm_text){text, length});
    }
    if (values->length > from) {
        draft_add_made(draft, "baggage", from);
    }
}

/* gRPC's deadline covers the whole call, with all messages of its answer. So it is the caller's own deadline, and not
 * the attempt's timeout, which ends when the answer begins. */
static becalm_ns grpc_ends_at(const struct exchange *exchange)
{
    becalm_ns at = exchange->call.request.deadline_at;
    return at == 0 ? BECALM_NEVER : at;
}

static becalm_ns time_left(const struct exchange *exchange, const struct attempt *attempt, uint32_t send)
{
    becalm_ns ends_at = exchange->grpc ? grpc_ends_at(exchange) : attempt->timeout_at;
    return (send & BECALM_SEND_DEADLINE) == 0 ? BECALM_NEVER : becalm_ns_left(exchange->worker->loop.now, ends_at);
}

static void add_time_left(struct draft *draft, const struct exchange *exchange, becalm_ns left, uint32_t send)
{
    if (left != BECALM_NEVER) {
        add_deadline(draft, "x-request-deadline-ms", BECALM_DEADLINE_REQUEST, left);
        if ((exchange->dialects & BECALM_DEADLINE_GRPC) != 0) {
            add_deadline(draft, "grpc-timeout", BECALM_DEADLINE_GRPC, left);
        }
        if ((exchange->dialects & BECALM_DEADLINE_ENVOY) != 0) {
            add_deadline(draft, "x-envoy-expected-rq-timeout-ms", BECALM_DEADLINE_ENVOY, left);
        }
    }
    if (head_has(exchange->head, FIELD_BAGGAGE) && (send & BECALM_SEND_TRACE) != 0) {
        add_baggage(draft, exchange, left);
    }
}

/* A length that is not known beforehand, and trailers, need chunks. gRPC's messages have lengths of their own. */
bool exchange_sends_chunks(const struct exchange *exchange)
{
    return exchange->head->framing == BODY_OPEN &&
           (exchange->body_streams || exchange->grpc || bytes_left(&exchange->trailers) > 0);
}

const char *exchange_switch_wrong(const struct exchange *exchange, const struct head *head)
{
    struct becalm_text asked = head_find(exchange->head, FIELD_UPGRADE);
    struct becalm_text given = head_find(head, FIELD_UPGRADE);
    if (!exchange->upgrades || !head->one_protocol || asked.length != given.length ||
        strncasecmp(asked.at, given.at, asked.length) != 0) {
        return "101 without a request for this upgrade";
    }
    return exchange->request == REQUEST_WHOLE ? NULL
                                              : "101 before the request has ended"; /* its rest is not the tunnel's */
}

/* How long the body is. One that was collected is sent with its length, however it came, unless trailers follow it. */
static void add_framing(struct draft *draft, const struct exchange *exchange)
{
    const struct head *head = exchange->head;
    if (head->framing == BODY_NONE) {
        if (head_has(head, FIELD_CONTENT_LENGTH)) {
            draft_add_chars(draft, "content-length", "0");
        }
    } else if (exchange_sends_chunks(exchange)) {
        draft->framing = BODY_OPEN;
    } else {
        draft->framing = BODY_LENGTH;
        draft_add_number(draft, "content-length",
                         exchange->body_streams ? head->content_length : bytes_left(&exchange->body));
    }
}

/* Only a proxy that has verified the client's certificate may send the client's name from it. */
static uint64_t forged(const struct exchange *exchange)
{
    bool said = head_has(exchange->head, FIELD_CLIENT_CERT);
    return said && !exchange->origin.trusted ? FIELD_BIT(FIELD_CLIENT_CERT) : 0;
}

static enum becalm_forwarded forwarded_fields(const struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    if (settings->forwarded != BECALM_FORWARDED_AUTO) {
        return settings->forwarded;
    }
    return exchange_role(exchange) == BECALM_ROLE_SIDECAR ? BECALM_FORWARDED_OFF : BECALM_FORWARDED_ALL;
}

/* By which ids the request can be followed. To a host with HTTP/1 they go as lines that are written at once. */
static void add_ids(struct draft *draft, const struct exchange *exchange, const struct attempt *attempt, uint32_t send)
{
    static const char id_line[] = "x-request-id: 00000000000000000000000000000000\r\n";
    static const char trace_line[] = "traceparent: 00-00000000000000000000000000000000-0000000000000000-00\r\n";
    enum { ID = sizeof id_line - 1, TRACE = sizeof trace_line - 1, ID_AT = 14, TRACE_AT = 13 };
    bool id = (send & BECALM_SEND_REQUEST_ID) != 0 && !head_has(exchange->head, FIELD_REQUEST_ID);
    bool trace = (send & BECALM_SEND_TRACE) != 0 && exchange->trace != EXCHANGE_TRACE_PASSES;
    struct text_sink *values = &draft->values;
    if ((send & BECALM_SEND_REQUEST_ID) == 0) {
        draft->skip |= FIELD_BIT(FIELD_REQUEST_ID);
    }
    if ((send & BECALM_SEND_TRACE) == 0) {
        draft->skip |= FIELD_TRACE;
    }
    if ((id || trace) && values->size - values->length < ID + TRACE) {
        values->full = true;
        return;
    }
    char *from = values->at + values->length;
    char *at = from;
    if (id) {
        memcpy(at, id_line, ID);
        memcpy(at + ID_AT, exchange->request_id, sizeof exchange->request_id);
        at += ID;
    }
    if (trace) {
        memcpy(at, trace_line, TRACE);
        exchange_trace_write(draft, at + TRACE_AT, exchange, attempt);
        at += TRACE;
    }
    values->length += (size_t)(at - from);
    if (attempt->stream.ops == &host_h1_ops) {
        draft->lines[1] = (struct becalm_text){from, (size_t)(at - from)};
        return;
    }
    if (id) {
        draft_add(draft, "x-request-id", (struct becalm_text){from + ID_AT, sizeof exchange->request_id});
    }
    if (trace) {
        draft_add(draft, "traceparent", (struct becalm_text){at - TRACE + TRACE_AT, TRACEPARENT_LENGTH});
    }
}

/* Where the request came from, and by which id it can be followed. */
static void add_origin(struct draft *draft, const struct exchange *exchange, const struct attempt *attempt,
                       uint32_t send)
{
    bool by_h1 = attempt->stream.ops == &host_h1_ops;
    if ((send & BECALM_SEND_FORWARDED) == 0) {
        draft->skip |= FORWARDED_FIELDS;
    } else {
        enum becalm_forwarded which = forwarded_fields(exchange);
        if (by_h1) {
            forwarded_add_kept(draft, &exchange->worker->forwarded, &exchange->origin, which, exchange->host_name);
        } else {
            forwarded_add(draft, &exchange->origin, which, exchange->host_name);
        }
        if (exchange->prefix > 1) {
            forwarded_add_prefix(draft, &exchange->origin, which,
                                 (struct becalm_text){exchange->path.at, exchange->prefix});
        }
    }
    add_ids(draft, exchange, attempt, send);
}

static void add_attempts(struct draft *draft, const struct exchange *exchange, const struct attempt *attempt)
{
    draft_add_number(draft, "x-envoy-attempt-count", attempt->number + 1);
    uint32_t before = attempt->number + exchange->grpc_previous;
    if (before > 0 && (exchange->grpc || (exchange->dialects & BECALM_DEADLINE_GRPC) != 0)) {
        draft_add_number(draft, "grpc-previous-rpc-attempts", before);
    }
}

/* Via, the time left, and the number of the attempt. */
static void add_told(struct draft *draft, const struct exchange *exchange, const struct attempt *attempt,
                     becalm_ns left)
{
    uint32_t send = exchange->target->service->send;
    if ((send & BECALM_SEND_VIA) != 0) {
        add_via(draft, exchange);
    }
    add_time_left(draft, exchange, left, send);
    if ((send & BECALM_SEND_ATTEMPTS) != 0) {
        add_attempts(draft, exchange, attempt);
    }
}

/* Writes them down, in place of others. */
static __attribute__((noinline)) void told_make(struct told_lines *told, struct draft *draft,
                                                const struct exchange *exchange, const struct attempt *attempt,
                                                becalm_ns left)
{
    uint32_t first = draft->count;
    struct text_sink out = {.at = told->text, .size = sizeof told->text};
    add_told(draft, exchange, attempt, left);
    for (uint32_t i = first; i < draft->count; i++) {
        h1_put_line(&out, draft->added[i].name, draft->added[i].value);
    }
    BECALM_ASSERT(!out.full);
    draft->count = first;
    told->left_ms = left / BECALM_MS;
    told->send = exchange->target->service->send;
    told->length = (uint32_t)out.length;
}

/* The same for nearly all requests: a first attempt by HTTP/1, of a client that said nothing of this itself. */
static void add_told_kept(struct draft *draft, const struct exchange *exchange, const struct attempt *attempt)
{
    const uint64_t said = FIELD_BIT(FIELD_VIA) | FIELD_BIT(FIELD_BAGGAGE);
    const struct head *head = exchange->head;
    uint32_t send = exchange->target->service->send;
    becalm_ns left = time_left(exchange, attempt, send);
    if (attempt->stream.ops != &host_h1_ops || attempt->number > 0 || exchange->grpc || exchange->dialects != 0 ||
        (head->seen & said) != 0 || head->version != HTTP_1_1 || left < BECALM_MS) {
        add_told(draft, exchange, attempt, left);
        return;
    }
    uint64_t left_ms = left / BECALM_MS;
    struct told_lines *told = &exchange->worker->told[left_ms % WORKER_TOLD];
    if (told->left_ms != left_ms || told->send != send || told->length == 0) {
        told_make(told, draft, exchange, attempt, left);
    }
    draft->lines[2] = (struct becalm_text){told->text, told->length};
}

void exchange_draft_request(struct exchange *exchange, const struct attempt *attempt, struct draft *draft)
{
    const struct head *head = exchange->head;
    draft_begin(draft, exchange->worker->out + WORKER_VALUES, WORKER_TRAILERS - WORKER_VALUES);
    draft->method = exchange_method(exchange);
    draft->path = exchange->prefix == 0 ? exchange->path : replaced_path(&draft->values, exchange);
    draft->authority = exchange->host_name.length > 0 ? exchange->host_name : text_of(exchange->target->service->name);
    draft->passed = head;
    draft->skip = OURS | forged(exchange);
    draft->te_trailers = head->te_trailers; /* our own TE replaces the client's: trailers are passed on */
    if (exchange->upgrades) {
        draft->upgrade = head_find(head, FIELD_UPGRADE);
    }
    add_framing(draft, exchange);
    if (exchange->expect != NULL || attempt->ask != NULL) {
        draft_add_chars(draft, "expect", "100-continue");
    }
    if (exchange->holds_key && exchange->ask.fence != 0 && exchange->view->snapshot->settings->keys.fence) {
        draft_add_number(draft, "becalm-key-fence", exchange->ask.fence);
    }
    add_origin(draft, exchange, attempt, exchange->target->service->send);
    add_told_kept(draft, exchange, attempt);
}
