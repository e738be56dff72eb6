/* SPDX-License-Identifier: MIT */
#include "field.h"

#include <string.h>

_Static_assert(FIELD_COUNT <= 64, "head.seen has a bit per name");

struct name_text {
    const char *at;
    size_t length;
};

static const struct name_text names[FIELD_COUNT] = {
#define NAME_TEXT(id, text) [id] = {text, sizeof(text) - 1},
    FIELD_NAMES(NAME_TEXT)
#undef NAME_TEXT
};

/* A bit that tells upper from lower case in letters, and is set in digits and the hyphen anyway. */
#define CASE_BIT UINT64_C(0x2020202020202020)

static bool same_eight(const char *a, const char *b)
{
    uint64_t one;
    uint64_t other;
    memcpy(&one, a, sizeof one);
    memcpy(&other, b, sizeof other);
    return ((one ^ other) & ~CASE_BIT) == 0;
}

static bool same_four(const char *a, const char *b)
{
    uint32_t one;
    uint32_t other;
    memcpy(&one, a, sizeof one);
    memcpy(&other, b, sizeof other);
    return ((one ^ other) & (uint32_t)~CASE_BIT) == 0;
}

/* Nothing but control bytes becomes a letter, a digit or a hyphen by the bit, and those were refused before. The last
 * four or eight bytes may have been compared in part. */
bool field_same(const char *text, const char *known, size_t length)
{
    if (length >= 8) {
        for (size_t at = 0; at + 8 < length; at += 8) {
            if (!same_eight(text + at, known + at)) {
                return false;
            }
        }
        return same_eight(text + length - 8, known + length - 8);
    }
    if (length >= 4) {
        return same_four(text, known) && same_four(text + length - 4, known + length - 4);
    }
    for (size_t at = 0; at < length; at++) {
        if ((text[at] | 0x20) != (known[at] | 0x20)) {
            return false;
        }
    }
    return true;
}

/* The one name of this length that begins like this. The test of this file finds a name that is missing here. */
static enum field_id candidate(const char *name, size_t length)
{
    char first = (char)(name[0] | 0x20);
    switch (length) {
    case 2:
        return first == 't' ? FIELD_TE : FIELD_B3;
    case 3:
        return FIELD_VIA;
    case 4:
        return first == 'h' ? FIELD_HOST : FIELD_DATE;
    case 6:
        return first == 'a' ? FIELD_ACCEPT : first == 'c' ? FIELD_COOKIE : first == 'e' ? FIELD_EXPECT : FIELD_ORIGIN;
    case 7:
        return first == 't'   ? FIELD_TRAILER
               : first == 'u' ? FIELD_UPGRADE
               : first == 'r' ? FIELD_REFERER
                              : FIELD_BAGGAGE;
    case 9:
        return FIELD_FORWARDED;
    case 10:
        return first == 'c'   ? FIELD_CONNECTION
               : first == 'u' ? FIELD_USER_AGENT
               : first == 't' ? FIELD_TRACESTATE
               : first == 'x' ? FIELD_B3_FLAGS
                              : FIELD_KEEP_ALIVE;
    case 11:
        return first == 't'   ? FIELD_TRACEPARENT
               : first == 'r' ? FIELD_RETRY_AFTER
               : first == 'x' ? FIELD_B3_SPAN
                              : FIELD_GRPC_STATUS;
    case 12:
        return first == 'c'   ? FIELD_CONTENT_TYPE
               : first == 'x' ? ((name[2] | 0x20) == 'r'   ? FIELD_REQUEST_ID
                                 : (name[5] | 0x20) == 't' ? FIELD_B3_TRACE
                                                           : FIELD_B3_SAMPLED)
               : first == 'g' ? FIELD_GRPC_TIMEOUT
               : first == 'b' ? FIELD_BECALM_RETRY
                              : FIELD_PROXY_STATUS;
    case 13:
        return FIELD_AUTHORIZATION;
    case 14:
        return first == 'c' ? FIELD_CONTENT_LENGTH : first == 'b' ? FIELD_BECALM_EXPLAIN : FIELD_HTTP2_SETTINGS;
    case 15:
        return first == 'i' ? FIELD_IDEMPOTENCY_KEY : FIELD_FORWARDED_FOR;
    case 16:
        return first == 'p'   ? FIELD_PROXY_CONNECTION
               : first == 'w' ? FIELD_WWW_AUTHENTICATE
               : first == 'b' ? FIELD_KEY_FENCE
                              : FIELD_FORWARDED_HOST;
    case 17:
        return first == 't'              ? FIELD_TRANSFER_ENCODING
               : (name[2] | 0x20) == 'f' ? FIELD_FORWARDED_PROTO
                                         : FIELD_B3_PARENT;
    case 18:
        return first == 'p'              ? FIELD_PROXY_AUTHENTICATE
               : (name[2] | 0x20) == 'f' ? FIELD_FORWARDED_PREFIX
                                         : FIELD_ENVOY_OVERLOADED;
    case 19:
        return FIELD_PROXY_AUTHORIZATION;
    case 21:
        return (name[2] | 0x20) == 'r'   ? FIELD_DEADLINE_MS
               : (name[2] | 0x20) == 'e' ? FIELD_ENVOY_ATTEMPT_COUNT
                                         : FIELD_CLOUD_TRACE;
    case 22:
        return FIELD_GRPC_PUSHBACK;
    case 23:
        return FIELD_CLIENT_CERT;
    case 26:
        return FIELD_GRPC_PREVIOUS_ATTEMPTS;
    case 30:
        return FIELD_ENVOY_EXPECTED_MS;
    default:
        return FIELD_OTHER;
    }
}

struct becalm_text field_text(enum field_id id)
{
    return (struct becalm_text){names[id].at, names[id].length};
}

enum field_id field_find(const char *name, size_t length)
{
    if (length == 0) {
        return FIELD_OTHER;
    }
    enum field_id id = candidate(name, length);
    return id != FIELD_OTHER && names[id].length == length && field_same(name, names[id].at, length) ? id : FIELD_OTHER;
}
