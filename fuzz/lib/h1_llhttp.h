/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FUZZ_H1_LLHTTP_H
#define BECALM_FUZZ_H1_LLHTTP_H

/* A second opinion on heads: llhttp, the parser of Node.js, in its strict mode. It takes some that are refused here
 * (folded lines, empty names, several spaces), so it is asked only about those that were taken: it must take them, too,
 * and find the same fields. */

#include <llhttp.h>

#include "h1/h1.h"

#if LLHTTP_VERSION_MAJOR < 9 && !LLHTTP_STRICT_MODE
#error "llhttp must be built with LLHTTP_STRICT_MODE=1: without it, its opinion is worth little"
#endif

struct opinion {
    const struct head *head;
    uint32_t names;  /* fields whose names were compared */
    uint32_t values; /* and those with values; empty ones are not reported by every version */
};

static int opinion_name(llhttp_t *parser, const char *at, size_t length)
{
    struct opinion *o = parser->data;
    BECALM_ASSERT(o->names < o->head->field_count);
    struct becalm_text name = field_name(o->head, &o->head->field[o->names++]);
    BECALM_ASSERT(name.at == at && name.length == length);
    return 0;
}

static int opinion_value(llhttp_t *parser, const char *at, size_t length)
{
    struct opinion *o = parser->data;
    BECALM_ASSERT(o->names > 0);
    struct becalm_text value = field_value(o->head, &o->head->field[o->names - 1]);
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t')) { /* it leaves those behind it */
        length--;
    }
    BECALM_ASSERT(value.length == length && (length == 0 || value.at == at));
    o->values += length > 0;
    return 0;
}

/* The body is none of its business. */
static int opinion_end(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

/* False: it knows no such method, which is all that it may have against a head that was taken. */
static bool check_opinion(llhttp_type_t type, const struct head *head)
{
    static const llhttp_settings_t settings = {
        .on_header_field = opinion_name,
        .on_header_value = opinion_value,
        .on_headers_complete = opinion_end,
    };
    struct opinion opinion = {.head = head};
    llhttp_t parser;
    uint32_t with_value = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        with_value += head->field[i].value_length > 0;
    }
    llhttp_init(&parser, type, &settings);
    parser.data = &opinion;
    llhttp_errno_t said = llhttp_execute(&parser, head->bytes, head->length);
    if (type == HTTP_REQUEST && said == HPE_INVALID_METHOD) {
        return false;
    }
    BECALM_ASSERT(said == HPE_PAUSED);
    BECALM_ASSERT(opinion.names == head->field_count && opinion.values == with_value);
    return true;
}

#endif
