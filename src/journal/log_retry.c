/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "meter/buffer.h"

#define OPERATION_MAX 320u /* a method, and two names of at most 128 */

/* No answer has no status, a path has no port: 0 is left out. */
static struct log_pair number_pair(const char *key, uint32_t number)
{
    return (struct log_pair){.key = key, .type = number == 0 ? LOG_TEXT : LOG_NUMBER, .number = number};
}

/* "POST payment/charge" */
static void put_operation(struct buffer *b, const struct log_retry *r)
{
    buffer_bytes(b, r->method.at, r->method.length);
    buffer_chars(b, " ");
    buffer_bytes(b, r->service.at, r->service.length);
    if (r->endpoint.length > 0) {
        buffer_chars(b, "/");
        buffer_bytes(b, r->endpoint.at, r->endpoint.length);
    }
}

/* "10.0.0.2:9001", "[::1]:80", "unix:/path": OpenTelemetry wants the address and the port apart. 0: no port. */
static struct becalm_text address_of(struct becalm_text host, uint32_t *port)
{
    size_t from = host.length; /* of the port */
    while (from > 0 && host.at[from - 1] != ':') {
        from--;
    }
    *port = 0;
    for (size_t i = from; from > 0 && i < host.length; i++) {
        bool digit = host.at[i] >= '0' && host.at[i] <= '9' && *port <= 6553;
        *port = digit ? *port * 10 + (uint32_t)(host.at[i] - '0') : 0;
        from = digit ? from : 0;
    }
    struct becalm_text address = {host.at, *port > 0 ? from - 1 : host.length};
    if (address.length > 2 && address.at[0] == '[' && address.at[address.length - 1] == ']') {
        address = (struct becalm_text){address.at + 1, address.length - 2};
    }
    return address;
}

void log_retry(struct log_source *source, const struct log_retry *r)
{
    char operation_text[OPERATION_MAX];
    char status_text[20];
    struct buffer operation = {.at = operation_text, .size = sizeof operation_text};
    struct buffer status = {.at = status_text, .size = sizeof status_text};
    struct becalm_text outcome = text_of(becalm_outcome_word(r->outcome));
    bool has_grpc = r->grpc_status != BECALM_GRPC_NONE;
    uint32_t port;
    struct becalm_text address = address_of(r->host, &port);
    if (!log_wants(source, BECALM_LOG_INFO)) {
        return;
    }
    put_operation(&operation, r);
    buffer_number(&status, r->status);
    struct becalm_text code = text_of(has_grpc ? becalm_grpc_word(r->grpc_status) : NULL);
    /* OpenTelemetry: the type of an error is its status, where there is one. */
    struct becalm_text error = has_grpc         ? code
                               : r->status != 0 ? (struct becalm_text){status.at, status.length}
                                                : outcome;
    const struct log_pair pairs[] = {
        {"operation", LOG_TEXT, {operation.at, operation.length}, 0},
        {"retry", LOG_NUMBER, {0}, r->retry},
        {"of", LOG_NUMBER, {0}, r->of},
        {"delay_ms", LOG_MS, {0}, r->wait.delay},
        {"jittered_ms", LOG_MS, {0}, r->wait.jittered},
        {"slept_ms", LOG_MS, {0}, r->slept},
        {"outcome", LOG_TEXT, outcome, 0},
        number_pair("status", r->status),
        {"grpc_status", LOG_TEXT, code, 0},
        {"retry_after", LOG_TEXT, r->retry_after, 0},
        {"request_id", LOG_TEXT, r->request_id, 0},
        {"reason", LOG_TEXT, text_of(becalm_reason_word(r->reason)), 0},
        {"to", LOG_TEXT, r->to, 0},
        {"http.request.resend_count", LOG_NUMBER, {0}, r->retry},
        number_pair("http.response.status_code", r->status),
        {"server.address", LOG_TEXT, address, 0},
        number_pair("server.port", port),
        {"error.type", LOG_TEXT, error, 0},
    };
    log_line(source, BECALM_LOG_INFO, r->wall, "retry", pairs, sizeof pairs / sizeof pairs[0]);
}
