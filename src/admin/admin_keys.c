/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "http/text_internal.h"
#include "keys/key_desk.h"
#include "keys/key_words.h"
#include "proxy/gateway_shared.h"

#include <stdio.h>
#include <stdlib.h>

/* Idempotency keys that are held, because it is unknown whether their request was executed: an operator has to find
 * out.
 */

#define LIST_MOST 1000u

static void put_held(struct buffer *page, const struct store_held *held, becalm_ns now)
{
    char id[KEY_HEX];
    key_hex(id, held->id);
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "id", id);
    buffer_json_chars(page, "target", held->where);
    buffer_json_number(page, "ageSeconds", becalm_ns_since(now, held->since) / BECALM_S);
    buffer_json_number(page, "expiresInSeconds", becalm_ns_left(now, held->until) / BECALM_S);
    buffer_json_close(page, '}');
}

void admin_keys(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct gateway *gateway = admin->place.gateway;
    struct store *store = gateway->store;
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
    if (gateway->desk != NULL) {
        count += key_desk_held(gateway->desk, now, list + count, LIST_MOST - count);
    }
    admin_store_count(gateway, &counts);
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

/* If keys are shared, the order goes to the store, and the log has the result. True: they are shared. */
static bool order_desk(const struct gateway *gateway, const unsigned char id[STORE_ID], struct admin_answer *answer)
{
    if (gateway->desk == NULL) {
        return false;
    }
    if (key_desk_release(gateway->desk, id)) {
        answer->status = 202;
        buffer_chars(&answer->page, "{\"ordered\":true}\n");
    } else {
        admin_problem(answer, 503, "The store of idempotency keys does not answer.");
    }
    return true;
}

void admin_key_release(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct loop *loop = admin->place.loop;
    unsigned char id[STORE_ID];
    struct becalm_text name = request->path;
    text_skip(&name, sizeof "/api/keys/" - 1);
    if (!key_hex_read(id, name.at, name.length)) {
        admin_problem(answer, 400, "An id is 32 digits of hexadecimal, as GET /api/keys lists them.");
        return;
    }
    struct log_pair pair = {.key = "id", .type = LOG_TEXT, .text = name};
    switch (store_release(admin->place.gateway->store, id, loop->now)) {
    case STORE_RELEASED:
        log_line(admin->place.log, BECALM_LOG_WARN, loop->wall, "idempotency key released", &pair, 1);
        buffer_chars(&answer->page, "{\"released\":true}\n");
        break;
    case STORE_NOT_FOUND:
        if (order_desk(admin->place.gateway, id, answer)) {
            break;
        }
        admin_problem(answer, 404, "No key with this id is held; GET /api/keys lists them.");
        break;
    case STORE_NOT_HELD:
        admin_problem(answer, 409, "This key is in flight or has its answer; only a key that is held can be released.");
        break;
    }
}
