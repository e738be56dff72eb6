/* SPDX-License-Identifier: MIT */
#include "own.h"

#include "answer_head.h"

#include <becalm/rand.h>

#define USUAL_RETRY_AFTER (1 * BECALM_S)
#define BODY_MAX          1024u

/* Constants of ours need no escaping but for quotes that a detail may have. */
static void put_member(struct text_sink *out, const char *name, const char *value)
{
    text_put_chars(out, "\"");
    text_put_chars(out, name);
    text_put_chars(out, "\":\"");
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\') {
            text_put_chars(out, "\\");
        }
        text_put(out, (struct becalm_text){.at = value, .length = 1});
    }
    text_put_chars(out, "\",");
}

static void put_document(struct text_sink *out, const struct own *own)
{
    text_put_chars(out, "{\"type\":\"tag:becalm,2026:");
    text_put_chars(out, own->reason);
    text_put_chars(out, "\",");
    put_member(out, "title", own->title);
    if (own->detail != NULL) {
        put_member(out, "detail", own->detail);
    }
    put_member(out, "reason", own->reason);
    if (own->last_status != 0) {
        text_put_chars(out, "\"lastStatus\":");
        text_put_number(out, own->last_status);
        text_put_chars(out, ",");
    }
    text_put_chars(out, "\"attempts\":");
    text_put_number(out, own->attempts);
    text_put_chars(out, ",\"status\":");
    text_put_number(out, own->status);
    text_put_chars(out, "}\n");
}

/* Whole seconds, spread over half as much again, so that clients that were refused together do not return together. */
static uint64_t retry_after(const struct own *own)
{
    becalm_ns wait = own->retry_after == BECALM_NEVER || own->retry_after == 0 ? USUAL_RETRY_AFTER : own->retry_after;
    uint64_t low = (wait + BECALM_S - 1) / BECALM_S;
    return becalm_rand_between(own->random, low, low + (low + 1) / 2);
}

/* A conflict ends by itself only sometimes: then the refusal says when. */
static bool says_when(const struct own *own)
{
    return own->status == 503 || own->status == 429 || (own->status == 409 && own->retry_after != BECALM_NEVER);
}

struct becalm_text own_draft(struct draft *draft, const struct own *own, char *room)
{
    bool grpc = own->grpc_status != BECALM_GRPC_NONE;
    struct text_sink body = {.at = room, .size = BODY_MAX};
    draft_begin(draft, room + BODY_MAX, OWN_ROOM - BODY_MAX);
    if (!grpc) {
        put_document(&body, own);
    }
    draft->status = grpc ? 200 : own->status;
    answer_head_add(draft, &(struct answer_head){
                               .date = own->date,
                               .type = grpc ? "application/grpc" : "application/problem+json",
                               .length_known = !own->bare,
                               .length = body.length,
                               .grpc = grpc,
                               .grpc_status = own->grpc_status,
                               .note = ANSWER_NOTE_ERROR,
                               .error = own->error,
                               .reason = own->reason,
                               .retry_after = says_when(own) ? retry_after(own) : 0,
                               .mark = own->mark,
                               .mark_reason = own->mark_reason,
                               .explain = own->explain,
                           });
    return (struct becalm_text){body.at, body.length};
}
