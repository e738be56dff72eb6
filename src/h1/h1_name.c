/* SPDX-License-Identifier: MIT */
#include "h1_internal.h"

#include <string.h>

_Static_assert(H1_NAME_COUNT <= 64, "h1_head.seen has a bit per name");

struct name_text {
    const char *at;
    size_t length;
};

static const struct name_text names[H1_NAME_COUNT] = {
#define NAME_TEXT(id, text) [id] = {text, sizeof(text) - 1},
    H1_NAMES(NAME_TEXT)
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
bool h1__is_known(const char *text, const char *known, size_t length)
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
static enum h1_name candidate(const char *name, size_t length)
{
    char first = (char)(name[0] | 0x20);
    switch (length) {
    case 2:
        return H1_TE;
    case 3:
        return H1_VIA;
    case 4:
        return first == 'h' ? H1_HOST : H1_DATE;
    case 6:
        return first == 'a' ? H1_ACCEPT : first == 'c' ? H1_COOKIE : first == 'e' ? H1_EXPECT : H1_ORIGIN;
    case 7:
        return first == 't' ? H1_TRAILER : first == 'u' ? H1_UPGRADE : first == 'r' ? H1_REFERER : H1_BAGGAGE;
    case 10:
        return first == 'c' ? H1_CONNECTION : first == 'u' ? H1_USER_AGENT : H1_KEEP_ALIVE;
    case 11:
        return first == 't' ? H1_TRACEPARENT : first == 'r' ? H1_RETRY_AFTER : H1_GRPC_STATUS;
    case 12:
        return first == 'c'   ? H1_CONTENT_TYPE
               : first == 'x' ? H1_REQUEST_ID
               : first == 'g' ? H1_GRPC_TIMEOUT
               : first == 'b' ? H1_BECALM_RETRY
                              : H1_PROXY_STATUS;
    case 13:
        return H1_AUTHORIZATION;
    case 14:
        return first == 'c' ? H1_CONTENT_LENGTH : first == 'b' ? H1_BECALM_EXPLAIN : H1_HTTP2_SETTINGS;
    case 15:
        return H1_IDEMPOTENCY_KEY;
    case 16:
        return first == 'p' ? H1_PROXY_CONNECTION : H1_WWW_AUTHENTICATE;
    case 17:
        return H1_TRANSFER_ENCODING;
    case 18:
        return first == 'p' ? H1_PROXY_AUTHENTICATE : H1_ENVOY_OVERLOADED;
    case 19:
        return H1_PROXY_AUTHORIZATION;
    case 21:
        return (name[2] | 0x20) == 'r' ? H1_DEADLINE_MS : H1_ENVOY_ATTEMPT_COUNT;
    case 22:
        return H1_GRPC_PUSHBACK;
    case 26:
        return H1_GRPC_PREVIOUS_ATTEMPTS;
    case 30:
        return H1_ENVOY_EXPECTED_MS;
    default:
        return H1_OTHER;
    }
}

enum h1_name h1__name_find(const char *name, size_t length)
{
    if (length == 0) {
        return H1_OTHER;
    }
    enum h1_name id = candidate(name, length);
    return id != H1_OTHER && names[id].length == length && h1__is_known(name, names[id].at, length) ? id : H1_OTHER;
}

struct becalm_text h1_name(const char *bytes, const struct h1_field *field)
{
    return (struct becalm_text){bytes + field->name, field->name_length};
}

struct becalm_text h1_value(const char *bytes, const struct h1_field *field)
{
    return (struct becalm_text){bytes + field->value, field->value_length};
}

bool h1__has_name(const char *bytes, const struct h1_field *field, struct becalm_text name)
{
    if (field->name_length != name.length) {
        return false;
    }
    for (size_t i = 0; i < name.length; i++) {
        if (to_lower(bytes[field->name + i]) != to_lower(name.at[i])) {
            return false;
        }
    }
    return true;
}

struct becalm_text h1_find(const char *bytes, const struct h1_head *head, enum h1_name name)
{
    if (h1_has(head, name)) {
        for (uint32_t i = 0; i < head->field_count; i++) {
            if (head->field[i].id == name) {
                return h1_value(bytes, &head->field[i]);
            }
        }
    }
    return (struct becalm_text){0};
}

struct becalm_text h1_find_other(const char *bytes, const struct h1_head *head, struct becalm_text name)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (h1__has_name(bytes, &head->field[i], name)) {
            return h1_value(bytes, &head->field[i]);
        }
    }
    return (struct becalm_text){0};
}

struct becalm_text h1_find_last(const char *bytes, const struct h1_head *head, struct becalm_text name)
{
    for (uint32_t i = head->field_count; i > 0; i--) {
        if (h1__has_name(bytes, &head->field[i - 1], name)) {
            return h1_value(bytes, &head->field[i - 1]);
        }
    }
    return (struct becalm_text){0};
}

bool h1_has_value(const char *bytes, const struct h1_head *head, struct becalm_text name, struct becalm_text value)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct becalm_text found = h1_value(bytes, &head->field[i]);
        if (found.length == value.length && memcmp(found.at, value.at, value.length) == 0 &&
            h1__has_name(bytes, &head->field[i], name)) {
            return true;
        }
    }
    return false;
}
