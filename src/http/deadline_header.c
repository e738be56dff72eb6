/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "text_internal.h"

#define GRPC_DIGITS 8u
#define GRPC_MOST   UINT64_C(99999999)

static const struct {
    char letter;
    becalm_ns length;
} units[] = {
    {'n', 1}, {'u', BECALM_US}, {'m', BECALM_MS}, {'S', BECALM_S}, {'M', 60 * BECALM_S}, {'H', 3600 * BECALM_S},
};

enum { UNITS = sizeof units / sizeof *units };

static becalm_ns times(uint64_t count, becalm_ns unit)
{
    return count <= BECALM_NEVER / unit ? count * unit : BECALM_NEVER;
}

static bool read_grpc(struct becalm_text text, becalm_ns *left)
{
    uint64_t count;
    text = text_trim(text);
    size_t digits = text_take_number(&text, &count);
    if (digits < 1 || digits > GRPC_DIGITS || text.length != 1) {
        return false;
    }
    for (size_t i = 0; i < UNITS; i++) {
        if (text.at[0] == units[i].letter) {
            *left = times(count, units[i].length);
            return true;
        }
    }
    return false;
}

static bool read_milliseconds(struct becalm_text text, becalm_ns *left)
{
    uint64_t count;
    text = text_trim(text);
    if (text_take_number(&text, &count) == 0 || !text_ended(text)) {
        return false;
    }
    *left = times(count, BECALM_MS);
    return true;
}

/* Up to the separator, which is eaten too; everything if there is none. */
static struct becalm_text take_until(struct becalm_text *text, char separator)
{
    struct becalm_text part = {text->at, 0};
    while (!text_ended(*text)) {
        if (text_take(text, separator)) {
            return part;
        }
        text_skip(text, 1);
        part.length++;
    }
    return part;
}

/* key=value;property, key=value. Nothing in it is quoted, so commas and semicolons always separate. */
static bool read_baggage(struct becalm_text text, becalm_ns *left)
{
    bool found = false;
    while (!text_ended(text)) {
        struct becalm_text member = take_until(&text, ',');
        struct becalm_text value = take_until(&member, ';');
        struct becalm_text key = text_trim(take_until(&value, '='));
        becalm_ns candidate;
        if (text_is(key, "deadline-ms") && read_milliseconds(value, &candidate)) {
            *left = found ? becalm_ns_min(*left, candidate) : candidate;
            found = true;
        }
    }
    return found;
}

becalm_ns becalm_deadline_read(const struct becalm_deadline_headers *headers, unsigned *dialects)
{
    const struct {
        bool (*read)(struct becalm_text, becalm_ns *);
        struct becalm_text text;
        enum becalm_deadline_dialect dialect;
    } all[] = {
        {read_grpc, headers->grpc_timeout, BECALM_DEADLINE_GRPC},
        {read_milliseconds, headers->request_deadline_ms, BECALM_DEADLINE_REQUEST},
        {read_milliseconds, headers->envoy_expected_ms, BECALM_DEADLINE_ENVOY},
        {read_baggage, headers->baggage, BECALM_DEADLINE_BAGGAGE},
    };
    becalm_ns least = BECALM_NEVER;
    *dialects = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        becalm_ns left;
        if (all[i].read(all[i].text, &left)) {
            least = becalm_ns_min(least, left);
            *dialects |= (unsigned)all[i].dialect;
        }
    }
    return least;
}

/* The finest unit whose number has eight digits at most. NEVER has seven in hours, so there always is one. */
static void write_grpc(struct text_out *out, becalm_ns left)
{
    size_t i = 0;
    while (left / units[i].length > GRPC_MOST) {
        i++;
        BECALM_ASSERT(i < UNITS);
    }
    const char letter[] = {units[i].letter, '\0'};
    out_add_number(out, left / units[i].length);
    out_add(out, letter);
}

size_t becalm_deadline_write(enum becalm_deadline_dialect dialect, becalm_ns left, char *text, size_t size)
{
    struct text_out out = {text, size, 0};
    BECALM_ASSERT(size >= 24);
    switch (dialect) {
    case BECALM_DEADLINE_GRPC:
        write_grpc(&out, left);
        return out.length;
    case BECALM_DEADLINE_REQUEST:
    case BECALM_DEADLINE_ENVOY:
    case BECALM_DEADLINE_BAGGAGE:
        out_add_number(&out, left > 0 && left < BECALM_MS ? 1 : left / BECALM_MS);
        return out.length;
    }
    BECALM_UNREACHABLE();
}
