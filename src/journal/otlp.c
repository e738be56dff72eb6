/* SPDX-License-Identifier: MIT */
#include "otlp.h"

#include "origin/hex.h"

#include <becalm/version.h>

/* Numbers of trace.proto. */
enum { KIND_SERVER = 2, KIND_CLIENT = 3, STATUS_ERROR = 2 };
enum { FLAG_HAS_REMOTE = 0x100, FLAG_REMOTE = 0x200 };

#define SCHEMA "https://opentelemetry.io/schemas/1.26.0"

/* ---- values ---- */

/* 64 bits are a text in protobuf's JSON. */
static void put_long(struct buffer *out, const char *key, uint64_t value)
{
    char text[24];
    struct buffer digits = {.at = text, .size = sizeof text};
    buffer_number(&digits, value);
    buffer_json_string(out, key, (struct becalm_text){digits.at, digits.length});
}

static void attribute_open(struct buffer *out, const char *key)
{
    buffer_json_open(out, NULL, '{');
    buffer_json_chars(out, "key", key);
    buffer_json_open(out, "value", '{');
}

static void attribute_close(struct buffer *out)
{
    buffer_json_close(out, '}');
    buffer_json_close(out, '}');
}

/* An absent text is no attribute. */
static void put_text(struct buffer *out, const char *key, struct becalm_text value)
{
    if (value.length > 0) {
        attribute_open(out, key);
        buffer_json_string(out, "stringValue", value);
        attribute_close(out);
    }
}

static void put_chars(struct buffer *out, const char *key, const char *value)
{
    put_text(out, key, text_of(value));
}

static void put_int(struct buffer *out, const char *key, uint64_t value)
{
    attribute_open(out, key);
    put_long(out, "intValue", value);
    attribute_close(out);
}

static void put_true(struct buffer *out, const char *key)
{
    attribute_open(out, key);
    buffer_json_bool(out, "boolValue", true);
    attribute_close(out);
}

static void put_ms(struct buffer *out, const char *key, becalm_ns value)
{
    attribute_open(out, key);
    buffer_json_decimal(out, "doubleValue", value / BECALM_US, 3);
    attribute_close(out);
}

static void put_id(struct buffer *out, const char *key, uint64_t span)
{
    char text[SPAN_ID_LENGTH];
    hex_put(text, span);
    buffer_json_string(out, key, (struct becalm_text){text, sizeof text});
}

/* ---- the common parts of calls and attempts ---- */

static bool is_known(struct becalm_text method)
{
    static const char *const known[] = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (method.length == strlen(known[i]) && memcmp(method.at, known[i], method.length) == 0) {
            return true;
        }
    }
    return false;
}

static void put_method(struct buffer *out, const struct span_note *note)
{
    struct becalm_text method = span_text(note, SPAN_METHOD);
    if (is_known(method)) {
        put_text(out, "http.request.method", method);
    } else {
        put_chars(out, "http.request.method", "_OTHER");
        put_text(out, "http.request.method_original", method);
    }
}

/* "10.0.0.1:80", "[::1]:80", "shop.test"; a Unix socket has a path alone. */
static void put_address(struct buffer *out, struct becalm_text text)
{
    uint64_t port = 0;
    size_t end = text.length;
    size_t digits = 0;
    while (digits < end && text.at[end - digits - 1] >= '0' && text.at[end - digits - 1] <= '9') {
        digits++;
    }
    if (digits > 0 && digits <= 5 && digits < end && text.at[end - digits - 1] == ':') {
        for (size_t i = end - digits; i < end; i++) {
            port = port * 10 + (uint64_t)(text.at[i] - '0');
        }
        text.length = end - digits - 1;
    }
    if (text.length > 2 && text.at[0] == '[' && text.at[text.length - 1] == ']') {
        text = (struct becalm_text){text.at + 1, text.length - 2};
    }
    put_text(out, "server.address", text);
    if (port > 0) {
        put_int(out, "server.port", port);
    }
}

/* "/package.Service/Method". */
static void put_rpc(struct buffer *out, const struct span_note *note, uint32_t status)
{
    struct becalm_text path = span_text(note, SPAN_PATH);
    const char *slash = path.length < 2 ? NULL : memchr(path.at + 1, '/', path.length - 1);
    put_chars(out, "rpc.system", "grpc");
    if (slash != NULL) {
        put_text(out, "rpc.service", (struct becalm_text){path.at + 1, (size_t)(slash - path.at) - 1});
        put_text(out, "rpc.method", (struct becalm_text){slash + 1, path.length - (size_t)(slash + 1 - path.at)});
    }
    if (status != BECALM_GRPC_NONE) {
        put_int(out, "rpc.grpc.status_code", status);
    }
}

static void put_place(struct buffer *out, const struct span_note *note)
{
    put_text(out, "becalm.service", span_text(note, SPAN_SERVICE));
    put_text(out, "becalm.endpoint", span_text(note, SPAN_ENDPOINT));
}

/* `type`: NULL: it went well. */
static void put_status(struct buffer *out, const char *type)
{
    buffer_json_open(out, "status", '{');
    if (type != NULL) {
        buffer_json_number(out, "code", STATUS_ERROR);
    }
    buffer_json_close(out, '}');
}

/* Of error.type: a status as text, else the word. NULL: no error. */
static const char *error_type(char room[12], uint32_t status, uint32_t least, const char *word)
{
    struct buffer text = {.at = room, .size = 11};
    if (status == 0) {
        return word;
    }
    if (status < least) {
        return NULL;
    }
    buffer_number(&text, status);
    room[text.length] = '\0';
    return room;
}

/* gRPC's codes that are an error of the server's, by its conventions. */
static bool is_server_fault(uint32_t status)
{
    return status == 2 || status == 4 || status == 12 || status == 13 || status == 14 || status == 15;
}

static const char *grpc_error(uint32_t status, bool server)
{
    bool wrong = status != BECALM_GRPC_NONE && (server ? is_server_fault(status) : status != 0);
    return wrong ? becalm_grpc_word(status) : NULL;
}

/* For gRPC the conventions want the method, which is the path without its slash; else the route, if there is one. */
static void put_name(struct buffer *out, const struct span_note *note, bool server)
{
    char text[2 * SPAN_TEXT_MAX];
    struct buffer name = {.at = text, .size = sizeof text};
    struct becalm_text method = span_text(note, SPAN_METHOD);
    struct becalm_text path = span_text(note, SPAN_PATH);
    struct becalm_text route = span_text(note, SPAN_ROUTE);
    if (note->grpc && path.length > 1) {
        buffer_bytes(&name, path.at + 1, path.length - 1);
    } else {
        buffer_bytes(&name, is_known(method) ? method.at : "HTTP", is_known(method) ? method.length : 4);
        if (server && route.length > 0) {
            buffer_chars(&name, " ");
            buffer_bytes(&name, route.at, route.length);
        }
    }
    buffer_json_string(out, "name", (struct becalm_text){name.at, name.length});
}

/* Ids, name, kind and times. */
struct outline {
    uint64_t span;
    unsigned flags;
    unsigned kind;
    uint64_t from;
    uint64_t to;
};

static void span_open(struct buffer *out, const struct span_note *note, const struct outline *outline)
{
    buffer_json_open(out, NULL, '{');
    buffer_json_string(out, "traceId", (struct becalm_text){note->trace_id, TRACE_ID_LENGTH});
    put_id(out, "spanId", outline->span);
    if (outline->kind == KIND_CLIENT) {
        put_id(out, "parentSpanId", note->span);
    } else if (note->from_what == SPAN_CHILD) {
        buffer_json_string(out, "parentSpanId", (struct becalm_text){note->from.span_id, SPAN_ID_LENGTH});
    }
    buffer_json_string(out, "traceState", span_text(note, SPAN_TRACE_STATE));
    buffer_json_number(out, "flags", outline->flags);
    put_name(out, note, outline->kind == KIND_SERVER);
    buffer_json_number(out, "kind", outline->kind);
    put_long(out, "startTimeUnixNano", outline->from);
    put_long(out, "endTimeUnixNano", outline->to);
}

/* ---- a call ---- */

/* A client at a Unix socket has no address. */
static void put_client(struct buffer *out, const struct origin_ip *ip)
{
    char text[ADDRESS_TEXT_MAX];
    union address_socket address;
    origin_ip_socket(ip, &address);
    if (address.any.sa_family != AF_UNIX) {
        put_text(out, "client.address", (struct becalm_text){text, address_write_ip(&address, text, sizeof text)});
    }
}

static void put_call(struct buffer *out, const struct span_note *note, const char *error)
{
    static const char *const version[] = {[HTTP_1_0] = "1.0", [HTTP_1_1] = "1.1", [HTTP_2] = "2"};
    buffer_json_open(out, "attributes", '[');
    put_method(out, note);
    put_text(out, "url.path", span_text(note, SPAN_PATH));
    put_text(out, "url.query", span_text(note, SPAN_QUERY));
    put_chars(out, "url.scheme", note->tls ? "https" : "http");
    put_text(out, "http.route", span_text(note, SPAN_ROUTE));
    put_address(out, span_text(note, SPAN_AUTHORITY));
    put_client(out, &note->client);
    put_text(out, "user_agent.original", span_text(note, SPAN_USER_AGENT));
    put_chars(out, "network.protocol.name", "http");
    put_chars(out, "network.protocol.version", version[note->version]);
    if (note->status > 0) {
        put_int(out, "http.response.status_code", note->status);
    }
    if (note->grpc) {
        put_rpc(out, note, note->grpc_status);
    }
    put_chars(out, "error.type", error);
    put_place(out, note);
    put_chars(out, "becalm.reason", becalm_reason_word(note->reason));
    put_int(out, "becalm.attempts", note->attempts);
    put_text(out, "becalm.request_id", span_text(note, SPAN_REQUEST_ID));
    buffer_json_close(out, ']');
}

static void put_wait(struct buffer *out, const char *name, uint64_t at, becalm_ns wait)
{
    buffer_json_open(out, NULL, '{');
    put_long(out, "timeUnixNano", at);
    buffer_json_chars(out, "name", name);
    buffer_json_open(out, "attributes", '[');
    put_ms(out, "becalm.wait_ms", wait);
    buffer_json_close(out, ']');
    buffer_json_close(out, '}');
}

/* Waits before the first attempt, each at its end. */
static void put_waits(struct buffer *out, const struct span_note *note)
{
    if (note->gated == 0 && note->parked == 0) {
        return;
    }
    buffer_json_open(out, "events", '[');
    if (note->gated > 0) {
        put_wait(out, "becalm.gate", note->wall + note->gated, note->gated);
    }
    if (note->parked > 0) {
        put_wait(out, "becalm.parked", note->wall + note->gated + note->parked, note->parked);
    }
    buffer_json_close(out, ']');
}

static void put_link(struct buffer *out, const struct trace_parent *from)
{
    buffer_json_open(out, "links", '[');
    buffer_json_open(out, NULL, '{');
    buffer_json_string(out, "traceId", (struct becalm_text){from->trace_id, TRACE_ID_LENGTH});
    buffer_json_string(out, "spanId", (struct becalm_text){from->span_id, SPAN_ID_LENGTH});
    buffer_json_number(out, "flags", from->flags | FLAG_HAS_REMOTE | FLAG_REMOTE);
    buffer_json_close(out, '}');
    buffer_json_close(out, ']');
}

static void span_of_call(struct buffer *out, const struct span_note *note)
{
    char room[12];
    const char *grpc = note->grpc ? grpc_error(note->grpc_status, true) : NULL;
    const char *error = grpc != NULL ? grpc : error_type(room, note->status, 500, becalm_reason_word(note->reason));
    bool remote = note->from_what == SPAN_CHILD;
    span_open(out, note,
              &(struct outline){note->span, note->flags | FLAG_HAS_REMOTE | (remote ? FLAG_REMOTE : 0), KIND_SERVER,
                                note->wall, note->wall + note->took});
    put_call(out, note, error);
    put_waits(out, note);
    if (note->from_what == SPAN_LINKED) {
        put_link(out, &note->from);
    }
    put_status(out, error);
    buffer_json_close(out, '}');
}

/* ---- an attempt ---- */

static void put_url(struct buffer *out, const struct span_note *note, struct becalm_text host)
{
    char text[2 * SPAN_TEXT_MAX + 16];
    struct buffer url = {.at = text, .size = sizeof text};
    struct becalm_text path = span_text(note, SPAN_PATH);
    if (host.length > 5 && memcmp(host.at, "unix:", 5) == 0) {
        host = (struct becalm_text){"localhost", 9};
    }
    buffer_chars(&url, note->host_tls ? "https://" : "http://");
    buffer_bytes(&url, host.at, host.length);
    buffer_bytes(&url, path.at, path.length);
    put_text(out, "url.full", (struct becalm_text){url.at, url.length});
}

static void put_attempt(struct buffer *out, const struct span_note *note, uint32_t i, const char *error)
{
    const struct span_attempt *attempt = &note->attempt[i];
    struct becalm_text host = span_host(note, i);
    buffer_json_open(out, "attributes", '[');
    put_method(out, note);
    if (host.length > 0) {
        put_url(out, note, host);
    }
    put_address(out, host);
    if (attempt->status > 0) {
        put_int(out, "http.response.status_code", attempt->status);
    }
    if (note->grpc) {
        put_rpc(out, note, attempt->grpc_status);
    }
    if (attempt->number > 0) {
        put_int(out, "http.request.resend_count", attempt->number);
    }
    put_chars(out, "error.type", error);
    put_place(out, note);
    put_chars(out, "becalm.outcome", becalm_outcome_word(attempt->outcome));
    if (attempt->hedge) {
        put_true(out, "becalm.hedge");
    }
    if (attempt->waited > 0) {
        put_ms(out, "becalm.wait_ms", attempt->waited);
    }
    buffer_json_close(out, ']');
}

static void span_of_attempt(struct buffer *out, const struct span_note *note, uint32_t i)
{
    char room[12];
    const struct span_attempt *attempt = &note->attempt[i];
    bool good = attempt->outcome == BECALM_OUTCOME_OK || attempt->outcome == BECALM_OUTCOME_PERMANENT ||
                attempt->outcome == BECALM_OUTCOME_CANCELLED; /* an attempt that was no longer needed has not failed */
    const char *grpc = note->grpc ? grpc_error(attempt->grpc_status, false) : NULL;
    const char *word = becalm_outcome_word(attempt->outcome);
    const char *error = error_type(room, attempt->status, 400, good ? NULL : word);
    error = grpc != NULL ? grpc : error == NULL && !good ? word : error;
    span_open(out, note,
              &(struct outline){attempt->span, note->flags | FLAG_HAS_REMOTE, KIND_CLIENT, note->wall + attempt->sent,
                                note->wall + attempt->sent + attempt->took});
    put_attempt(out, note, i, error);
    put_status(out, error);
    buffer_json_close(out, '}');
}

/* ---- an export ---- */

void otlp_begin(struct buffer *out, const struct otlp_resource *resource)
{
    buffer_json_open(out, NULL, '{');
    buffer_json_open(out, "resourceSpans", '[');
    buffer_json_open(out, NULL, '{');
    buffer_json_open(out, "resource", '{');
    buffer_json_open(out, "attributes", '[');
    put_chars(out, "service.name", resource->service);
    put_chars(out, "service.instance.id", resource->instance);
    put_chars(out, "service.version", BECALM_VERSION);
    buffer_json_close(out, ']');
    buffer_json_close(out, '}');
    buffer_json_chars(out, "schemaUrl", SCHEMA);
    buffer_json_open(out, "scopeSpans", '[');
    buffer_json_open(out, NULL, '{');
    buffer_json_open(out, "scope", '{');
    buffer_json_chars(out, "name", "becalm");
    buffer_json_chars(out, "version", BECALM_VERSION);
    buffer_json_close(out, '}');
    buffer_json_open(out, "spans", '[');
}

void otlp_note(struct buffer *out, const struct span_note *note)
{
    span_of_call(out, note);
    for (uint32_t i = 0; i + 1 < note->spans; i++) {
        span_of_attempt(out, note, i);
    }
}

void otlp_end(struct buffer *out)
{
    static const char brackets[] = "]}]}]}";
    for (size_t i = 0; brackets[i] != '\0'; i++) {
        buffer_json_close(out, brackets[i]);
    }
}

uint64_t otlp_rejected(struct becalm_text answer)
{
    static const char key[] = "\"rejectedSpans\"";
    uint64_t count = 0;
    size_t at = 0;
    while (at + sizeof key - 1 <= answer.length && memcmp(answer.at + at, key, sizeof key - 1) != 0) {
        at++;
    }
    at += sizeof key - 1;
    while (at < answer.length && strchr(": \"", answer.at[at]) != NULL) {
        at++;
    }
    for (; at < answer.length && answer.at[at] >= '0' && answer.at[at] <= '9' && count < UINT32_MAX; at++) {
        count = count * 10 + (uint64_t)(answer.at[at] - '0');
    }
    return count;
}
