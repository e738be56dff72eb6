/* SPDX-License-Identifier: MIT */
#include "answer_head.h"

const char *answer_head_via(enum http_version version)
{
    switch (version) {
    case HTTP_1_0:
        return "1.0 becalm";
    case HTTP_1_1:
        return "1.1 becalm";
    case HTTP_2:
        return "2 becalm";
    }
    BECALM_UNREACHABLE();
}

static void add_grpc(struct draft *draft, const struct answer_head *head)
{
    draft_add_number(draft, "grpc-status", head->grpc_status);
    draft_add_chars(draft, "grpc-message", head->reason);
    if (head->mark == BECALM_MARK_OVERLOADED || head->mark == BECALM_MARK_OVERLOADED_HOST) {
        draft_add_chars(draft, "grpc-retry-pushback-ms", "-1");
    }
}

static void add_note(struct draft *draft, const struct answer_head *head)
{
    struct text_sink *values = &draft->values;
    size_t from = values->length;
    switch (head->note) {
    case ANSWER_NOTE_NONE:
        return;
    case ANSWER_NOTE_RECEIVED:
        text_put_chars(values, "becalm; received-status=");
        text_put_number(values, head->received);
        break;
    case ANSWER_NOTE_ERROR:
        text_put_chars(values, "becalm; error=");
        text_put_chars(values, head->error);
        break;
    case ANSWER_NOTE_REPLAYED:
        text_put_chars(values, "becalm");
        break;
    }
    text_put_chars(values, "; details=\"");
    text_put_chars(values, head->reason);
    text_put_chars(values, "\"");
    draft_add_made(draft, "proxy-status", from);
    if (head->note == ANSWER_NOTE_REPLAYED) {
        draft_add(draft, "idempotent-replayed", (struct becalm_text){"true", 4});
    }
}

static void add_mark(struct draft *draft, const struct answer_head *head)
{
    struct text_sink *values = &draft->values;
    size_t from = values->length;
    values->length +=
        becalm_mark_write(head->mark, head->mark_reason, values->at + from, values->size - values->length);
    if (values->length > from) {
        draft_add_made(draft, "becalm-retry", from);
    }
}

void answer_head_add(struct draft *draft, const struct answer_head *head)
{
    if (head->date.at != NULL) {
        draft_add(draft, "date", head->date);
    }
    if (head->passes) {
        draft_add_chars(draft, "via", answer_head_via(head->passed));
    }
    if (head->type != NULL) {
        draft_add_chars(draft, "content-type", head->type);
    }
    if (head->length_known) {
        draft_add_number(draft, "content-length", head->length);
    }
    if (head->grpc) {
        add_grpc(draft, head);
    }
    add_note(draft, head);
    if (head->retry_after > 0) {
        draft_add_number(draft, "retry-after", head->retry_after);
    }
    if (head->mark != BECALM_MARK_NONE) {
        add_mark(draft, head);
    }
    if (head->explain.at != NULL) {
        draft_add(draft, "becalm-explain", head->explain);
    }
}
