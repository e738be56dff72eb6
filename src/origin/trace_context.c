/* SPDX-License-Identifier: MIT */
#include "trace_context.h"

#include "http/text_internal.h"

#include <becalm/rand.h>

#define VERSION_AT 0u
#define TRACE_AT   3u
#define SPAN_AT    36u
#define FLAGS_AT   53u
#define PPM        1000000u

/* Upper case is not allowed. 16: no digit. */
static unsigned digit(char c)
{
    return is_digit(c) ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

static bool are_digits(const char *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (digit(at[i]) == 16) {
            return false;
        }
    }
    return true;
}

static bool are_zeroes(const char *at, size_t count)
{
    size_t i = 0;
    while (i < count && at[i] == '0') {
        i++;
    }
    return i == count;
}

/* Version 00 has this length. A later one may have more, behind another hyphen; ff is forbidden. */
static bool is_shaped(struct becalm_text value)
{
    if (value.length < TRACEPARENT_LENGTH || !are_digits(value.at + VERSION_AT, 2) ||
        memcmp(value.at + VERSION_AT, "ff", 2) == 0) {
        return false;
    }
    bool known = memcmp(value.at + VERSION_AT, "00", 2) == 0;
    bool longer = value.length > TRACEPARENT_LENGTH;
    return value.at[TRACE_AT - 1] == '-' && value.at[SPAN_AT - 1] == '-' && value.at[FLAGS_AT - 1] == '-' &&
           (!longer || (!known && value.at[TRACEPARENT_LENGTH] == '-'));
}

bool trace_parent_read(struct becalm_text value, struct trace_parent *parent)
{
    if (!is_shaped(value) || !are_digits(value.at + TRACE_AT, TRACE_ID_LENGTH) ||
        !are_digits(value.at + SPAN_AT, SPAN_ID_LENGTH) || !are_digits(value.at + FLAGS_AT, 2) ||
        are_zeroes(value.at + TRACE_AT, TRACE_ID_LENGTH) || are_zeroes(value.at + SPAN_AT, SPAN_ID_LENGTH)) {
        return false;
    }
    memcpy(parent->trace_id, value.at + TRACE_AT, TRACE_ID_LENGTH);
    memcpy(parent->span_id, value.at + SPAN_AT, SPAN_ID_LENGTH);
    parent->flags = digit(value.at[FLAGS_AT + 1]) & TRACE_FLAGS;
    return true;
}

bool trace_parent_find(const struct head *head, struct trace_parent *parent)
{
    const struct field *found = NULL;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (field->id == FIELD_TRACEPARENT && !field->hop) {
            if (found != NULL) {
                return false;
            }
            found = field;
        }
    }
    return found != NULL && trace_parent_read(field_value(head, found), parent);
}

uint64_t trace_span(uint64_t seed, uint32_t n)
{
    uint64_t state =
        seed + n * UINT64_C(0x9e3779b97f4a7c15); /* the same steps as those of the generator: no two alike */
    uint64_t id = becalm_rand_next(&state);
    return id == 0 ? 1 : id;
}

uint64_t trace_least(uint32_t share_ppm)
{
    uint64_t all = UINT64_C(1) << TRACE_RANDOM_BITS;
    uint64_t part = all / PPM * share_ppm + all % PPM * share_ppm / PPM;
    return all - part;
}
