/* SPDX-License-Identifier: MIT */
/* A client's bytes: head and body. The first byte says how they are cut. */
#include "lib/h1_cut.h"
#include "lib/h1_llhttp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The line as it came, then the fields that are passed on: every parser must read the same request. */
static void check_rebuilt(const struct head *head)
{
    static struct head copy;
    size_t length;
    size_t line_length = head->target + head->target_length + sizeof " HTTP/1.1\r\n" - 1;
    char *line = malloc(line_length + 1);
    BECALM_ASSERT(line != NULL);
    memcpy(line, head->bytes, line_length);
    line[line_length] = '\0';
    char *again = rebuild(line, head, &length);
    const struct h1_limits twice = {.head_bytes = 2 * HEAD_BYTES + 64};
    struct h1_verdict verdict = h1_parse_request(again, length, &twice, &copy);
    BECALM_ASSERT(verdict.kind == H1_OK);
    check_same_fields(head, &copy);
    BECALM_ASSERT(copy.framing == head->framing && copy.content_length == head->content_length);
    BECALM_ASSERT(copy.version == head->version);
    BECALM_ASSERT(same_text(head_method(&copy), head_method(head)));
    BECALM_ASSERT(same_text(h1_authority(&copy), h1_authority(head)));
    free(again);
    free(line);
}

/* llhttp knows a list of methods, and here any token is one. Everything else is shown to it with another method, and it
 * must find the same fields. */
static void check_with_known_method(const struct head *head)
{
    static struct head copy;
    size_t length = head->length - head->method_length + 3;
    char *again = malloc(length);
    BECALM_ASSERT(again != NULL);
    memcpy(again, "PUT", 3);
    memcpy(again + 3, head->bytes + head->method_length, length - 3);
    BECALM_ASSERT(h1_parse_request(again, length, &limits, &copy).kind == H1_OK);
    BECALM_ASSERT(check_opinion(HTTP_REQUEST, &copy));
    BECALM_ASSERT(copy.field_count == head->field_count && copy.framing == head->framing);
    for (uint32_t i = 0; i < head->field_count; i++) {
        BECALM_ASSERT(same_text(field_name(head, &head->field[i]), field_name(&copy, &copy.field[i])));
        BECALM_ASSERT(same_text(field_value(head, &head->field[i]), field_value(&copy, &copy.field[i])));
    }
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head head;
    if (size == 0) {
        return 0;
    }
    const char *bytes = (const char *)data + 1;
    size_t length = size - 1;
    size_t blank = h1_leading_blank(bytes, length);
    bytes += blank;
    length -= blank;
    size_t end = head_end(bytes, length, data[0]);
    char *copy = bytes_copy(bytes, end);
    struct h1_verdict verdict = h1_parse_request(copy, end, &limits, &head);
    if (verdict.kind == H1_OK) {
        check_head(copy, end, &head);
        if (!check_opinion(HTTP_REQUEST, &head)) {
            check_with_known_method(&head);
        }
        BECALM_ASSERT(head.framing != BODY_UNTIL_CLOSE);
        check_rebuilt(&head);
        check_body(&head, bytes + end, length - end, data[0]);
    } else {
        BECALM_ASSERT(verdict.what != NULL && verdict.status >= 400 && verdict.status <= 505);
    }
    free(copy);
    return 0;
}
