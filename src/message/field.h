/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_FIELD_H
#define BECALM_MESSAGE_FIELD_H

/* Header fields, independent of the protocol. */

#include <becalm/http.h>

/* Fields that the gateway reads, by name; all others are FIELD_OTHER. The order is of no importance. */
/* clang-format off */
#define FIELD_NAMES(X) \
    X(FIELD_HOST, "host") X(FIELD_CONNECTION, "connection") X(FIELD_CONTENT_LENGTH, "content-length") \
    X(FIELD_TRANSFER_ENCODING, "transfer-encoding") X(FIELD_TE, "te") X(FIELD_TRAILER, "trailer") X(FIELD_UPGRADE, "upgrade") \
    X(FIELD_EXPECT, "expect") X(FIELD_KEEP_ALIVE, "keep-alive") X(FIELD_PROXY_CONNECTION, "proxy-connection") \
    X(FIELD_PROXY_AUTHORIZATION, "proxy-authorization") X(FIELD_PROXY_AUTHENTICATE, "proxy-authenticate") \
    X(FIELD_WWW_AUTHENTICATE, "www-authenticate") \
    X(FIELD_HTTP2_SETTINGS, "http2-settings") \
    X(FIELD_VIA, "via") X(FIELD_DATE, "date") X(FIELD_AUTHORIZATION, "authorization") X(FIELD_COOKIE, "cookie") \
    X(FIELD_CONTENT_TYPE, "content-type") X(FIELD_USER_AGENT, "user-agent") X(FIELD_REFERER, "referer") \
    X(FIELD_ORIGIN, "origin") X(FIELD_ACCEPT, "accept") \
    X(FIELD_IDEMPOTENCY_KEY, "idempotency-key") X(FIELD_REQUEST_ID, "x-request-id") X(FIELD_TRACEPARENT, "traceparent") \
    X(FIELD_DEADLINE_MS, "x-request-deadline-ms") X(FIELD_GRPC_TIMEOUT, "grpc-timeout") \
    X(FIELD_ENVOY_EXPECTED_MS, "x-envoy-expected-rq-timeout-ms") X(FIELD_BAGGAGE, "baggage") \
    X(FIELD_ENVOY_ATTEMPT_COUNT, "x-envoy-attempt-count") X(FIELD_GRPC_PREVIOUS_ATTEMPTS, "grpc-previous-rpc-attempts") \
    X(FIELD_RETRY_AFTER, "retry-after") X(FIELD_GRPC_STATUS, "grpc-status") X(FIELD_GRPC_PUSHBACK, "grpc-retry-pushback-ms") \
    X(FIELD_BECALM_RETRY, "becalm-retry") X(FIELD_ENVOY_OVERLOADED, "x-envoy-overloaded") \
    X(FIELD_PROXY_STATUS, "proxy-status") X(FIELD_BECALM_EXPLAIN, "becalm-explain") X(FIELD_KEY_FENCE, "becalm-key-fence") \
    X(FIELD_CLIENT_CERT, "x-forwarded-client-cert") X(FIELD_FORWARDED_FOR, "x-forwarded-for") \
    X(FIELD_FORWARDED_PROTO, "x-forwarded-proto") X(FIELD_FORWARDED_HOST, "x-forwarded-host") X(FIELD_FORWARDED, "forwarded") X(FIELD_FORWARDED_PREFIX, "x-forwarded-prefix") \
    X(FIELD_TRACESTATE, "tracestate") X(FIELD_B3, "b3") X(FIELD_B3_TRACE, "x-b3-traceid") X(FIELD_B3_SPAN, "x-b3-spanid") \
    X(FIELD_B3_PARENT, "x-b3-parentspanid") X(FIELD_B3_SAMPLED, "x-b3-sampled") X(FIELD_B3_FLAGS, "x-b3-flags") \
    X(FIELD_CLOUD_TRACE, "x-cloud-trace-context")
/* clang-format on */

enum field_id {
    FIELD_OTHER,
#define FIELD_ENUM(id, text) id,
    FIELD_NAMES(FIELD_ENUM)
#undef FIELD_ENUM
        FIELD_COUNT
};

#define FIELD_BIT(id) (UINT64_C(1) << (id)) /* in a set of ids */

/* For one connection only (RFC 9110, 7.6.1), and the credentials for a proxy, which a service must not see. */
#define FIELD_HOP                                                                                    \
    (FIELD_BIT(FIELD_CONNECTION) | FIELD_BIT(FIELD_KEEP_ALIVE) | FIELD_BIT(FIELD_PROXY_CONNECTION) | \
     FIELD_BIT(FIELD_TE) | FIELD_BIT(FIELD_UPGRADE) | FIELD_BIT(FIELD_TRANSFER_ENCODING) |           \
     FIELD_BIT(FIELD_HTTP2_SETTINGS) | FIELD_BIT(FIELD_PROXY_AUTHORIZATION) | FIELD_BIT(FIELD_PROXY_AUTHENTICATE))

/* Fields that carry a trace context. */
#define FIELD_TRACE                                                                                                    \
    (FIELD_BIT(FIELD_TRACEPARENT) | FIELD_BIT(FIELD_TRACESTATE) | FIELD_BIT(FIELD_BAGGAGE) | FIELD_BIT(FIELD_B3) |     \
     FIELD_BIT(FIELD_B3_TRACE) | FIELD_BIT(FIELD_B3_SPAN) | FIELD_BIT(FIELD_B3_PARENT) | FIELD_BIT(FIELD_B3_SAMPLED) | \
     FIELD_BIT(FIELD_B3_FLAGS) | FIELD_BIT(FIELD_CLOUD_TRACE))

/* One field. Offsets are into the head's bytes, so that they survive a copy. */
struct field {
    uint32_t name;
    uint32_t value; /* without blanks around it */
    uint32_t value_length;
    uint16_t name_length;
    uint8_t id;      /* enum field_id */
    bool hop : 1;    /* for one connection, or of no meaning here: not passed on */
    bool secret : 1; /* HTTP/2: its sender has marked it as never indexed, and every proxy must keep the mark */
};

/* The id of a field by its name, which must be a token; FIELD_OTHER if the gateway does not read that field. */
enum field_id field_find(const char *name, size_t length);

/* The name of a field that is known, in lower case, for ever. */
struct becalm_text field_text(enum field_id);

/* Of equal length: is the text this word of letters, digits and hyphens, in upper or lower case? The text has no
 * control bytes. */
bool field_same(const char *text, const char *known, size_t length);

#endif
