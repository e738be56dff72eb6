/* SPDX-License-Identifier: MIT */
/* A host's bytes: head and body. The first byte says which request was sent, and how the bytes are cut. */
#include "lib/h1_cut.h"
#include "lib/h1_llhttp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rebuilt(const struct head *head, bool to_head, bool to_connect)
{
    static struct head copy;
    size_t length;
    static char line[HEAD_BYTES + 1];
    struct text_sink out = {.at = line, .size = sizeof line - 1};
    h1_put_status_line(&out, head->status, head_phrase(head));
    BECALM_ASSERT(!out.full);
    line[out.length] = '\0';
    char *again = rebuild(line, head, &length);
    const struct h1_limits twice = {.head_bytes = 2 * HEAD_BYTES + 128};
    struct h1_verdict verdict = h1_parse_answer(again, length, &twice, to_head, to_connect, &copy);
    BECALM_ASSERT(verdict.kind == H1_OK);
    BECALM_ASSERT(check_opinion(HTTP_RESPONSE, &copy));
    check_same_fields(head, &copy);
    BECALM_ASSERT(copy.framing == head->framing && copy.status == head->status);
    free(again);
}

/* Our parser accepts repeated lengths that agree, and llhttp refuses them. The head that is passed on has one length,
 * and llhttp gets that head. */
static bool has_two_lengths(const struct head *head)
{
    uint32_t lengths = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        lengths += head->field[i].id == FIELD_CONTENT_LENGTH;
    }
    return lengths > 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head head;
    if (size == 0) {
        return 0;
    }
    const char *bytes = (const char *)data + 1;
    size_t length = size - 1;
    bool to_head = (data[0] & 1) != 0;
    bool to_connect = (data[0] & 2) != 0;
    size_t end = head_end(bytes, length, data[0]);
    char *copy = bytes_copy(bytes, end);
    struct h1_verdict verdict = h1_parse_answer(copy, end, &limits, to_head, to_connect, &head);
    if (verdict.kind == H1_OK) {
        check_head(copy, end, &head);
        if (!has_two_lengths(&head)) {
            BECALM_ASSERT(check_opinion(HTTP_RESPONSE, &head));
        }
        BECALM_ASSERT(head.status >= 100 && head.status <= 999);
        BECALM_ASSERT(head.framing != BODY_UNTIL_CLOSE || !head.keep_alive);
        check_rebuilt(&head, to_head, to_connect);
        check_body(&head, bytes + end, length - end, data[0]);
    } else {
        BECALM_ASSERT(verdict.what != NULL && verdict.status == 502);
    }
    free(copy);
    return 0;
}
