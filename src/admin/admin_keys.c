/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "http/text_internal.h"
#include "proxy/gateway_shared.h"

#include <stdio.h>
#include <stdlib.h>

/* Idempotency keys that are held, because nobody knows what became of their request: somebody has to look. */

#define LIST_MOST 1000u

static void put_held(struct buffer *page, const struct store_held *held, becalm_ns now)
{
    char id[2 * STORE_ID + 1];
    for (unsigned i = 0; i < STORE_ID; i++) {
        (void)snprintf(id + (size_t)2 * i, 3, "%02x", held->id[i]);
    }
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "id", id);
    buffer_json_chars(page, "target", held->where);
    buffer_json_number(page, "ageSeconds", becalm_ns_since(now, held->since) / BECALM_S);
    buffer_json_number(page, "expiresInSeconds", becalm_ns_left(now, held->until) / BECALM_S);
    buffer_json_close(page, '}');
}

void admin_keys(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct store *store = admin->place.gateway->store;
    struct store_held *list = calloc(LIST_MOST, sizeof *list);
    struct store_counts counts;
    struct buffer *page = &answer->page;
    becalm_ns now = admin->place.loop->now;
    (void)request;
    if (list == NULL) {
        page->full = true;
        return;
    }
    uint32_t count = store_held(store, now, list, LIST_MOST);
    store_count(store, &counts);
    buffer_json_open(page, NULL, '{');
    buffer_json_number(page, "entries", counts.entries);
    buffer_json_number(page, "bytes", counts.bytes);
    buffer_json_number(page, "unknown", counts.held);
    buffer_json_open(page, "held", '[');
    for (uint32_t i = 0; i < count; i++) {
        put_held(page, &list[i], now);
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
    free(list);
}

static bool id_read(struct becalm_text text, unsigned char id[STORE_ID])
{
    static const char digits[] = "0123456789abcdef";
    text_skip(&text, sizeof "/api/keys/" - 1);
    if (text.length != (size_t)2 * STORE_ID) {
        return false;
    }
    for (size_t i = 0; i < text.length; i++) {
        const char *digit = memchr(digits, to_lower(text.at[i]), 16);
        if (digit == NULL) {
            return false;
        }
        unsigned value = (unsigned)(digit - digits);
        id[i / 2] = (unsigned char)(i % 2 == 0 ? value << 4 : id[i / 2] | value);
    }
    return true;
}

void admin_key_release(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct loop *loop = admin->place.loop;
    unsigned char id[STORE_ID];
    if (!id_read(request->path, id)) {
        admin_problem(answer, 400, "An id is 32 digits of hexadecimal, as GET /api/keys lists them.");
        return;
    }
    struct becalm_text name = request->path;
    text_skip(&name, sizeof "/api/keys/" - 1);
    struct log_pair pair = {.key = "id", .type = LOG_TEXT, .text = name};
    switch (store_release(admin->place.gateway->store, id, loop->now)) {
    case STORE_RELEASED:
        log_line(admin->place.log, BECALM_LOG_WARN, loop->wall, "idempotency key released", &pair, 1);
        buffer_chars(&answer->page, "{\"released\":true}\n");
        break;
    case STORE_NOT_FOUND:
        admin_problem(answer, 404, "No such key is held; GET /api/keys lists them.");
        break;
    case STORE_NOT_HELD:
        admin_problem(answer, 409, "This key is in flight or has its answer: only one that is held can be released.");
        break;
    }
}
