/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "meter/buffer.h"

#define OPERATION_MAX 320u /* a method, and two names of at most 128 */

/* No answer has no status: 0 is left out. */
static struct log_pair status_pair(const char *key, uint32_t status)
{
    return (struct log_pair){.key = key, .type = status == 0 ? LOG_TEXT : LOG_NUMBER, .number = status};
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

void log_retry(struct log_source *source, const struct log_retry *r)
{
    char operation_text[OPERATION_MAX];
    char status_text[20];
    struct buffer operation = {.at = operation_text, .size = sizeof operation_text};
    struct buffer status = {.at = status_text, .size = sizeof status_text};
    struct becalm_text outcome = text_of(becalm_outcome_word(r->outcome));
    bool has_grpc = r->grpc_status != BECALM_GRPC_NONE;
    if (!log_wants(source, BECALM_LOG_INFO)) {
        return;
    }
    put_operation(&operation, r);
    buffer_number(&status, r->status);
    /* OpenTelemetry: the type of an error is its status, where there is one. */
    struct becalm_text error = r->status != 0 ? (struct becalm_text){status.at, status.length} : outcome;
    const struct log_pair pairs[] = {
        {"operation", LOG_TEXT, {operation.at, operation.length}, 0},
        {"retry", LOG_NUMBER, {0}, r->retry},
        {"of", LOG_NUMBER, {0}, r->of},
        {"delay_ms", LOG_MS, {0}, r->wait.delay},
        {"jittered_ms", LOG_MS, {0}, r->wait.jittered},
        {"slept_ms", LOG_MS, {0}, r->slept},
        {"outcome", LOG_TEXT, outcome, 0},
        status_pair("status", r->status),
        {"grpc_status", LOG_TEXT, has_grpc ? text_of(becalm_grpc_word(r->grpc_status)) : (struct becalm_text){0}, 0},
        {"retry_after", LOG_TEXT, r->retry_after, 0},
        {"request_id", LOG_TEXT, r->request_id, 0},
        {"reason", LOG_TEXT, text_of(becalm_reason_word(r->reason)), 0},
        {"http.request.resend_count", LOG_NUMBER, {0}, r->retry},
        status_pair("http.response.status_code", r->status),
        {"server.address", LOG_TEXT, r->host, 0},
        {"error.type", LOG_TEXT, error, 0},
    };
    log_line(source, BECALM_LOG_INFO, r->wall, "retry", pairs, sizeof pairs / sizeof pairs[0]);
}
