/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "h1/h1.h"
#include "h2/h2.h"
#include "http/grpc_text.h"
#include "message/text_sink.h"
#include "unfilled.h"

/* gRPC: its answers are 200, and tell in their trailers how they went. So a head is not the end of the decision. */

bool grpc_is_call(const struct head *head)
{
    return becalm__grpc_is_type(head_find(head, FIELD_CONTENT_TYPE));
}

void grpc_classify(struct attempt *attempt, const struct head *head, struct becalm_outcome *outcome)
{
    struct exchange *exchange = attempt->exchange;
    const struct bytes *came = &attempt->stream.trailers;
    UNFILLED struct head trailers;
    if (bytes_left(came) > 0 && h1_parse_metadata(came->at, bytes_left(came), &trailers).kind == H1_OK) {
        head = &trailers;
    }
    if (head != NULL && head_has(head, FIELD_GRPC_STATUS)) {
        answer_classify(attempt, head, outcome);
        return;
    }
    /* The answer ends without a gRPC status: gRPC clients read that as UNKNOWN. */
    exchange->grpc_status = BECALM_GRPC_UNKNOWN;
    struct becalm_http_answer nothing = {.status = attempt->status, .grpc_status = BECALM_GRPC_UNKNOWN};
    becalm_http_classify(&exchange->target->rules->retry_on, &nothing, outcome);
}

/* Maps codes as gRPC clients do. REFUSED_STREAM comes here only behind the beginning of an answer: else the request was
 * never processed. */
void grpc_classify_reset(struct exchange *exchange, uint32_t code, struct becalm_outcome *outcome)
{
    exchange->grpc_status = code == H2_ENHANCE_YOUR_CALM ? BECALM_GRPC_RESOURCE_EXHAUSTED
                            : code == H2_CANCEL          ? BECALM_GRPC_CANCELLED
                                                         : BECALM_GRPC_INTERNAL;
    struct becalm_http_answer answer = {.status = 200, .grpc_status = exchange->grpc_status};
    becalm_http_classify(&exchange->target->rules->retry_on, &answer, outcome);
    outcome->status = 0; /* no HTTP status arrived */
    if (code != H2_ENHANCE_YOUR_CALM) {
        outcome->kind = BECALM_OUTCOME_BROKEN; /* even if the gRPC code would mean something else in an answer */
    }
}

/* As gRPC's clients translate HTTP statuses, where they have a code for the status. */
static uint32_t code_of(uint32_t status)
{
    switch (status) {
    case 400:
    case 411:
        return BECALM_GRPC_INTERNAL;
    case 401:
        return BECALM_GRPC_UNAUTHENTICATED;
    case 403:
        return BECALM_GRPC_PERMISSION_DENIED;
    case 404:
    case 405:
        return BECALM_GRPC_UNIMPLEMENTED;
    case 408:
        return BECALM_GRPC_DEADLINE_EXCEEDED;
    case 409:
        return BECALM_GRPC_ABORTED;
    case 413:
    case 431:
        return BECALM_GRPC_RESOURCE_EXHAUSTED;
    case 422:
        return BECALM_GRPC_INVALID_ARGUMENT;
    case 429:
    case 502:
    case 503:
    case 504:
        return BECALM_GRPC_UNAVAILABLE;
    default:
        return BECALM_GRPC_UNKNOWN;
    }
}

/* A code as the status of HTTP that says the same of whether something was done, for keys: 4xx is an answer like any,
 * 401 and 403 are nothing done, 5xx may be done or not. ABORTED asks for another try. RESOURCE_EXHAUSTED comes from
 * servers that have done it, too: their answer was too large. */
uint32_t grpc_as_http(uint32_t code)
{
    switch (code) {
    case BECALM_GRPC_OK:
        return 200;
    case BECALM_GRPC_UNAUTHENTICATED:
        return 401;
    case BECALM_GRPC_PERMISSION_DENIED:
        return 403;
    case BECALM_GRPC_NOT_FOUND:
        return 404;
    case BECALM_GRPC_ALREADY_EXISTS:
        return 409;
    case BECALM_GRPC_INVALID_ARGUMENT:
    case BECALM_GRPC_FAILED_PRECONDITION:
    case BECALM_GRPC_OUT_OF_RANGE:
        return 400;
    default:
        return 500;
    }
}

uint32_t grpc_refusal(struct exchange *exchange, uint32_t status)
{
    if (exchange->grpc) {
        exchange->grpc_status = code_of(status);
    }
    return exchange->grpc_status;
}

void grpc_end(struct exchange *exchange, const struct becalm_action *action)
{
    static const struct pieces no_pieces;
    struct client_stream *stream = exchange->stream;
    char text[256];
    struct text_sink out = {.at = text, .size = sizeof text};
    UNFILLED struct head head;
    exchange->grpc_status = becalm_grpc_status_for(action->why);
    text_put_chars(&out, "grpc-status: ");
    text_put_number(&out, exchange->grpc_status);
    text_put_chars(&out, "\r\ngrpc-message: ");
    text_put_chars(&out, becalm_reason_word(action->why));
    text_put_chars(&out, "\r\n\r\n");
    BECALM_ASSERT(h1_parse_metadata(out.at, out.length, &head).kind == H1_OK);
    answer_enter(exchange, ANSWER_ENDED);
    exchange->client_broke =
        !stream->ops->more(stream, &(struct stream_part){.pieces = &no_pieces, .trailers = &head, .ended = true});
}
