/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "message/own.h"
#include "message/phrase.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/login.h"
#include "proxy/view.h"

#include <string.h>
#include <strings.h>

/* Beginning. */

static struct becalm_queue *queue_of(struct exchange *exchange)
{
    return &exchange->target->state->waiting[exchange->worker->number].queue;
}

static struct becalm_parking *parking_of(struct exchange *exchange)
{
    return &exchange->view->parking[exchange->target - exchange->view->snapshot->target];
}

/* The client's identity by the field that `clientKey` names, if its peer is trusted and sends it. A proxy adds its line
 * after those of its own client, so the last line counts. */
static __attribute__((noinline)) uint64_t client_named(struct exchange *exchange)
{
    struct client_stream *stream = exchange->stream;
    struct becalm_text name = head_find_last(exchange->head, exchange->view->snapshot->client_field);
    return name.length == 0 || !stream->ops->trusted(stream) ? stream->ops->identity(stream)
                                                             : peer_of_name(&exchange->worker->gateway->peer_key, name);
}

/* Reads deadline and attempt count that a caller further up sent with this call, if it is trusted. */
static void read_deadline(struct exchange *exchange, struct becalm_request *request)
{
    const struct head *head = exchange->head;
    const uint64_t said = FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_DEADLINE_MS) |
                          FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) | FIELD_BIT(FIELD_BAGGAGE) |
                          FIELD_BIT(FIELD_ENVOY_ATTEMPT_COUNT) | FIELD_BIT(FIELD_GRPC_PREVIOUS_ATTEMPTS);
    if ((head->seen & said) == 0 || !exchange->stream->ops->trusted(exchange->stream)) {
        return;
    }
    struct becalm_deadline_headers headers = {
        .grpc_timeout = head_find(head, FIELD_GRPC_TIMEOUT),
        .request_deadline_ms = head_find(head, FIELD_DEADLINE_MS),
        .envoy_expected_ms = head_find(head, FIELD_ENVOY_EXPECTED_MS),
        .baggage = head_find(head, FIELD_BAGGAGE),
    };
    becalm_ns left = becalm_deadline_read(&headers, &exchange->dialects);
    if (left != BECALM_NEVER) {
        request->deadline_at = becalm_ns_max(1, becalm_ns_after(exchange->arrived_at, left));
    }
    request->attempt_from_above = exchange_attempt_from_above(exchange) > 0;
    exchange->grpc_previous = exchange->grpc ? exchange_number(exchange, FIELD_GRPC_PREVIOUS_ATTEMPTS) : 0;
    request->retry_from_above = exchange_attempt_from_above(exchange) > 1 || exchange->grpc_previous > 0;
}

/* By which ids it can be followed, and to which request that came in it belongs. */
static void begin_ids(struct exchange *exchange, struct becalm_request *request)
{
    if (exchange->view->snapshot->traces) {
        exchange_trace_begin(exchange);
    } else if (!head_has(exchange->head, FIELD_REQUEST_ID)) {
        struct worker *worker = exchange->worker;
        (void)request_id_make(exchange->request_id, worker->gateway->id, &worker->request_ids);
    }
    if (exchange->view->snapshot->joins) {
        exchange_join_begin(exchange, request);
    }
}

/* The same of a second call for one request: it has its ids, and is entered where it came in. */
static __attribute__((noinline)) void begin_ids_again(struct exchange *exchange, struct becalm_request *request)
{
    if (exchange->span != NULL) {
        exchange_trace_again(exchange);
    }
    if (exchange->join == EXCHANGE_JOIN_OUT) {
        exchange_join_begin(exchange, request);
    }
}

static void begin(struct exchange *exchange)
{
    const struct snapshot_target *target = exchange->target;
    struct client_stream *stream = exchange->stream;
    exchange->login = exchange_login(exchange) != NULL || login_seen(exchange->head, LOGIN_ASKED);
    struct becalm_request request = {
        .deadline_at = BECALM_NEVER,
        .idempotent = becalm_http_idempotent(exchange_method(exchange)),
        .keyed = exchange->keyed,
        .once = exchange->holds_key && exchange->key.once,
        .not_replayable = (exchange->body_streams && !exchange->body_recorded) || exchange->upgrades || exchange->login,
        .streams = exchange->body_streams && exchange->request != REQUEST_WHOLE,
        .queue = queue_of(exchange),
        .parking = parking_of(exchange),
        .flow =
            exchange->view->snapshot->client_field.length == 0 ? stream->ops->identity(stream) : client_named(exchange),
        .owner = exchange,
    };
    read_deadline(exchange, &request);
    if (exchange->fell_from == NULL) {
        begin_ids(exchange, &request);
    } else {
        begin_ids_again(exchange, &request);
    }
    exchange_enter(exchange, EXCHANGE_CALLING);
    stream->ops->began(stream);
    exchange->timer_at = BECALM_NEVER;
    becalm_call_init(&exchange->call, &target->state->policy, &target->state->target, &request);
    meter_begin(exchange->meter, &exchange->steps);
    exchange_event(exchange, BECALM_EVENT_BEGIN, 0, NULL);
    /* The call may have been queued, served at once, and ended already: then the stream has no exchange any more. */
    if (stream->exchange == exchange && stream->ops->left(stream)) {
        exchange_left(exchange);
    }
}

/* The request is here, or as much of it as is needed: the call begins. */
void exchange_begin(struct exchange *exchange)
{
    if (!exchange_faults(exchange) || !exchange_fault(exchange)) {
        begin(exchange);
    }
}

void exchange_begin_again(struct exchange *exchange)
{
    begin(exchange);
}

void exchange_refuse_as(struct exchange *exchange, const struct refusal *refusal)
{
    struct worker *worker = exchange->worker;
    struct draft draft;
    char room[OWN_ROOM];
    bool keep = !exchange->wants_close && exchange->request == REQUEST_WHOLE;
    struct becalm_text body =
        own_draft(&draft,
                  &(struct own){
                      .status = refusal->status,
                      .error = refusal->error,
                      .reason = refusal->reason,
                      .title = status_phrase(refusal->status),
                      .detail = refusal->detail,
                      .last_status = refusal->last_status,
                      .retry_after = refusal->retry_after == 0 ? BECALM_NEVER : refusal->retry_after,
                      .random = becalm_rand_next(&worker->loop.random),
                      .grpc_status = grpc_refusal(exchange, refusal->status),
                      .bare = grpc_has_trailers(exchange),
                      .date = worker_date(worker),
                  },
                  room);
    draft.close = !keep;
    if (exchange->meter != NULL) {
        meter_code(exchange->meter, refusal->status);
    } else {
        gateway_count_refusal(worker->gateway, refusal->status);
    }
    exchange_answer(exchange, &draft, body);
    exchange->status = refusal->status;
    exchange->rule = refusal->detail;
    exchange_log(exchange, refusal->reason);
    exchange_discard(exchange, keep);
}

void exchange_refuse(struct exchange *exchange, uint32_t status, const char *error, const char *reason,
                     const char *detail)
{
    exchange_refuse_as(exchange,
                       &(struct refusal){.status = status, .error = error, .reason = reason, .detail = detail});
}

/* A request that may become a tunnel ends with its client's connection, and has no answer to be stored. */
static bool wants_tunnel(const struct exchange *exchange)
{
    return exchange->is_connect || exchange->upgrades;
}

/* The body is here in full: then a key can be looked up, too. */
void exchange_asked(struct exchange *exchange)
{
    if (key_guards(exchange->target->rules) && !wants_tunnel(exchange) && !key_begin(exchange)) {
        return;
    }
    exchange_begin(exchange);
}

/* Checks a request by its head alone. True: go on. */
static bool check_request(struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    const struct head *head = exchange->head;
    if (exchange->is_connect && (!settings->connect || exchange->stream->ops->tunnel == NULL)) {
        exchange_refuse(exchange, 405, "http_request_denied", "connect_off", "CONNECT is not allowed here");
        return false;
    }
    if (wants_tunnel(exchange) && exchange->target->service->protocol == BECALM_PROTOCOL_H2) {
        exchange_refuse(
            exchange, 501, "http_request_denied", "tunnel_over_h2",
            "this service speaks HTTP/2 alone with its hosts, which carries no tunnels here (protocol: h2)");
        return false;
    }
    if (wants_tunnel(exchange) && !tunnel_place_take(exchange)) {
        exchange_refuse(exchange, 503, "connection_limit_reached", "tunnels", "too many tunnels are open (maxTunnels)");
        return false;
    }
    if (exchange_loops(exchange)) {
        exchange_refuse(exchange, 508, "proxy_loop_detected", "loop", "this request has passed here before");
        return false;
    }
    if (head_has(head, FIELD_EXPECT) && !head->expects_continue &&
        head->version > HTTP_1_0) { /* HTTP/1.0 does not know it */
        exchange->wants_close = true;
        exchange_refuse(exchange, 417, "http_request_denied", "expectation", "only Expect: 100-continue is understood");
        return false;
    }
    if (head->framing == BODY_LENGTH && head->content_length > settings->max_body) {
        exchange->wants_close = true;
        exchange_refuse_body(exchange);
        return false;
    }
    if (exchange->target->rules->key != BECALM_KEY_OFF && head_has(head, FIELD_IDEMPOTENCY_KEY)) {
        struct becalm_text key;
        exchange->keyed = becalm_key_parse(head_find(head, FIELD_IDEMPOTENCY_KEY), &key);
    }
    if (key_guards(exchange->target->rules) && !exchange->keyed && !becalm_http_idempotent(exchange_method(exchange))) {
        exchange_refuse(exchange, 400, "http_request_denied", "key_required",
                        head_has(head, FIELD_IDEMPOTENCY_KEY)
                            ? "an Idempotency-Key has 1 to 255 visible characters, and quotes if it has spaces"
                            : "this endpoint requires an Idempotency-Key");
        return false;
    }
    if (key_guards(exchange->target->rules) && exchange->upgrades &&
        !becalm_http_idempotent(exchange_method(exchange))) {
        exchange_refuse(exchange, 400, "http_request_denied", "key_on_upgrade",
                        "an upgrade has no answer that could be stored with its Idempotency-Key");
        return false;
    }
    return true;
}

static bool allows_upgrade(const struct becalm_settings *settings, const struct head *head)
{
    struct becalm_text protocol = head_find(head, FIELD_UPGRADE);
    for (uint32_t i = 0; settings->upgrades[i] != NULL; i++) {
        if (strlen(settings->upgrades[i]) == protocol.length &&
            strncasecmp(settings->upgrades[i], protocol.at, protocol.length) == 0) {
            return true;
        }
    }
    return false;
}

/* The body is not collected before the call begins: the endpoint says so, or the client waits for a 100 from the host
 * before it sends a body that is too large to be kept, or may be. */
static bool streams_at_once(struct exchange *exchange)
{
    const struct becalm_rules *rules = exchange->target->rules;
    const struct head *head = exchange->head;
    uint64_t kept = rules->replay ? exchange->view->snapshot->settings->replay_per_request : 0;
    if (key_guards(rules)) {
        return false; /* its key is looked up by the body */
    }
    if (!head->expects_continue) {
        return !rules->replay;
    }
    return (head->framing == BODY_OPEN || head->content_length > kept) && expect_begin(exchange);
}

static __attribute__((noinline)) void tell_unrouted(const struct exchange *exchange)
{
    char peer[ADDRESS_TEXT_MAX];
    gateway_unrouted(exchange->worker, exchange->host_name,
                     exchange->stream->ops->peer(exchange->stream, peer, sizeof peer));
}

/* Its service has no hosts of its own. False: it is refused. */
static __attribute__((noinline)) bool open_unlisted(struct exchange *exchange, const struct route *route)
{
    const char *why = exchange_passing(exchange, route);
    if (why != NULL) {
        tell_unrouted(exchange);
        exchange_refuse(exchange, 404, "destination_not_found", "not_passed", why);
        return false;
    }
    char peer[ADDRESS_TEXT_MAX];
    gateway_passed(exchange->worker, exchange->host_name,
                   exchange->stream->ops->peer(exchange->stream, peer, sizeof peer));
    return true;
}

void exchange_open(struct worker *worker, struct client_stream *stream, const struct head *head)
{
    struct exchange *exchange = exchange_make(worker, stream);
    if (exchange == NULL || !exchange_copy_request(exchange, head)) {
        if (exchange != NULL) {
            exchange_free(exchange);
        }
        stream->exchange = NULL;
        stream->ops->cut(stream);
        return;
    }
    stream->ops->origin(stream, &exchange->origin);
    exchange->grpc = head_has(head, FIELD_CONTENT_TYPE) && grpc_is_call(head);
    exchange->view = worker->view;
    view_enter(exchange->view);
    if (head->framing == BODY_NONE || (head->framing == BODY_LENGTH && head->content_length == 0)) {
        exchange_request_whole(exchange);
    }
    /* After a CONNECT the client may send bytes for the tunnel before there is one; if the CONNECT is refused, these
     * bytes are no request. */
    exchange->wants_close = !head->keep_alive || worker->draining || exchange->is_connect;
    exchange->upgrades =
        head->one_protocol && stream->ops->tunnel != NULL && allows_upgrade(exchange->view->snapshot->settings, head);
    struct route route;
    if (!exchange_route(exchange, &route)) {
        exchange_refuse(exchange, 400, "http_request_error", "bad_path", "the request's target is not a proper path");
        return;
    }
    if (route.ambiguous) {
        exchange_refuse(exchange, 400, "http_request_denied", "ambiguous_path",
                        "this path, and the path that a service may read it as, fall under different rules");
        return;
    }
    if (route.service == ROUTE_NONE) {
        tell_unrouted(exchange);
        exchange_refuse(exchange, 404, "destination_not_found", "no_route", "no service matches this request");
        return;
    }
    if (head_target(head).at[0] != '/' && !exchange_port_fits(exchange, &route)) {
        tell_unrouted(exchange);
        exchange_refuse(exchange, 404, "destination_not_found", "other_port",
                        "the hosts of this service have another port");
        return;
    }
    if (exchange->view->snapshot->service[route.service].service->unlisted && !open_unlisted(exchange, &route)) {
        return;
    }
    exchange->prefix = exchange_prefix(exchange, &route);
    exchange->target = &exchange->view->snapshot->target[snapshot_target_of(exchange->view->snapshot, &route)];
    exchange->meter = exchange->target->meters->meter[worker->number];
    meter_add(&exchange->meter->arrivals[exchange_protocol(exchange, head->version == HTTP_2)], 1);
    if (!check_request(exchange)) {
        return;
    }
    if (exchange->request == REQUEST_WHOLE) {
        exchange_asked(exchange);
    } else if (streams_at_once(exchange)) {
        exchange->body_streams = true;
        exchange_begin(exchange);
    } else {
        expect_answer(exchange);
        exchange_body_resumes(exchange);
    }
}
