/* SPDX-License-Identifier: MIT */
#include "own.h"

#include <becalm/rand.h>

#define USUAL_RETRY_AFTER (1 * BECALM_S)
#define BODY_MAX          1024u

/* Constants of ours need no escaping but for quotes that a detail may have. */
static void put_member(struct h1_out *out, const char *name, const char *value)
{
    h1_put_chars(out, "\"");
    h1_put_chars(out, name);
    h1_put_chars(out, "\":\"");
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\') {
            h1_put_chars(out, "\\");
        }
        h1_put(out, (struct becalm_text){.at = value, .length = 1});
    }
    h1_put_chars(out, "\",");
}

static void put_document(struct h1_out *out, const struct own *own)
{
    h1_put_chars(out, "{\"type\":\"tag:becalm,2026:");
    h1_put_chars(out, own->reason);
    h1_put_chars(out, "\",");
    put_member(out, "title", own->title);
    if (own->detail != NULL) {
        put_member(out, "detail", own->detail);
    }
    put_member(out, "reason", own->reason);
    if (own->last_status != 0) {
        h1_put_chars(out, "\"lastStatus\":");
        h1_put_number(out, own->last_status);
        h1_put_chars(out, ",");
    }
    h1_put_chars(out, "\"attempts\":");
    h1_put_number(out, own->attempts);
    h1_put_chars(out, ",\"status\":");
    h1_put_number(out, own->status);
    h1_put_chars(out, "}\n");
}

/* Whole seconds, spread over half as much again, so that those who were turned away together do not come back so. */
static void put_retry_after(struct h1_out *out, const struct own *own)
{
    becalm_ns wait = own->retry_after == BECALM_NEVER || own->retry_after == 0 ? USUAL_RETRY_AFTER : own->retry_after;
    uint64_t low = (wait + BECALM_S - 1) / BECALM_S;
    h1_put_number_field(out, "retry-after", becalm_rand_between(own->random, low, low + (low + 1) / 2));
}

static void put_mark(struct h1_out *out, const struct own *own)
{
    char value[96];
    size_t length = becalm_mark_write(own->mark, own->mark_reason, value, sizeof value);
    if (length > 0) {
        h1_put_field(out, "becalm-retry", (struct becalm_text){value, length});
    }
}

static void put_proxy_status(struct h1_out *out, const struct own *own)
{
    h1_put_chars(out, "proxy-status: becalm; error=");
    h1_put_chars(out, own->error);
    h1_put_chars(out, "; details=\"");
    h1_put_chars(out, own->reason);
    h1_put_chars(out, "\"\r\n");
}

static void put_grpc(struct h1_out *out, const struct own *own)
{
    h1_put_chars(out, "content-type: application/grpc\r\ncontent-length: 0\r\ngrpc-status: ");
    h1_put_number(out, own->grpc_status);
    h1_put_chars(out, "\r\ngrpc-message: ");
    h1_put_chars(out, own->reason);
    h1_put_chars(out, "\r\n");
    if (own->mark == BECALM_MARK_OVERLOADED || own->mark == BECALM_MARK_OVERLOADED_HOST) {
        h1_put_chars(out, "grpc-retry-pushback-ms: -1\r\n");
    }
}

size_t own_write(struct h1_out *out, const struct own *own)
{
    bool grpc = own->grpc_status != BECALM_GRPC_NONE;
    char document[BODY_MAX];
    struct h1_out body = {.at = document, .size = sizeof document};
    put_document(&body, own);
    h1_put_status(out, grpc ? 200 : own->status);
    h1_put_field(out, "date", own->date);
    if (grpc) {
        put_grpc(out, own);
    } else {
        h1_put_chars(out, "content-type: application/problem+json\r\ncontent-length: ");
        h1_put_number(out, body.length);
        h1_put_chars(out, "\r\n");
    }
    put_proxy_status(out, own);
    if (own->status == 503 || own->status == 429) {
        put_retry_after(out, own);
    }
    put_mark(out, own);
    if (own->explain.at != NULL) {
        h1_put_field(out, "becalm-explain", own->explain);
    }
    h1_put_chars(out, own->close ? "connection: close\r\n\r\n" : "\r\n");
    size_t length = own->head_only || grpc ? 0 : body.length;
    h1_put(out, (struct becalm_text){document, length});
    return length;
}
