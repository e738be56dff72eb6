/* SPDX-License-Identifier: MIT */
/* Fields of a request, one behind the other: a byte with the name's length, one with the value's, both texts. An
 * accepted head must be valid HTTP/1 when it is written to a host. */
#include "h2/h2_head.h"

#include <becalm/base.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct h2_limits limits = {.streams = 1, .window = 65536, .head_bytes = 4096};

/* As nghttp2 lets them in: no control bytes, names in lower case. */
static bool clean(const char *at, size_t length, bool name)
{
    for (size_t i = 0; i < length; i++) {
        bool upper = at[i] >= 'A' && at[i] <= 'Z';
        if ((unsigned char)at[i] < ' ' || at[i] == 0x7f || (name && (upper || at[i] == ' '))) {
            return false;
        }
    }
    return length > 0 || !name;
}

static void check_written(const struct head *head)
{
    static char text[16384];
    static struct head again;
    struct text_sink out = {.at = text, .size = sizeof text};
    struct draft draft;
    char room[64];
    struct h1_limits h1 = {.head_bytes = sizeof text};
    draft_begin(&draft, room, sizeof room);
    draft.method = head_method(head);
    draft.path = head_target(head);
    draft.authority = head_find(head, FIELD_HOST);
    draft.passed = head;
    draft.skip = FIELD_BIT(FIELD_HOST);
    h1_put_request(&out, &draft);
    BECALM_ASSERT(!out.full);
    BECALM_ASSERT(h1_parse_request(text, out.length, &h1, &again).kind == H1_OK);
    BECALM_ASSERT(again.framing == BODY_NONE || again.framing == BODY_LENGTH);
    BECALM_ASSERT(again.length == out.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[2 * 4096 + 64];
    static struct h2_scratch scratch = {.bytes = bytes, .size = sizeof bytes};
    struct h2_block block;
    size_t at = 1;
    if (size == 0) {
        return 0;
    }
    h2_block_begin(&block, (data[0] & 1) != 0 ? H2_BLOCK_TRAILERS : H2_BLOCK_REQUEST, &scratch);
    while (at + 2 <= size) {
        size_t name = data[at];
        size_t value = data[at + 1];
        const char *text = (const char *)data + at + 2;
        at += 2 + name + value;
        if (at > size) {
            break;
        }
        if (clean(text, name, true) && clean(text + name, value, false)) {
            struct becalm_text field = {text, name};
            struct becalm_text content = {text + name, value};
            h2_block_field(&block, field, content);
            if ((data[0] & 2) != 0) {
                h2_block_hide(&block, field, content);
            }
        }
    }
    if (block.kind == H2_BLOCK_TRAILERS) {
        struct becalm_text text = h2_block_trailers(&block);
        if (!block.text.full && block.wrong == NULL) {
            (void)h1_parse_trailers(text.at, text.length, &scratch.head);
        }
        return 0;
    }
    if (h2_block_end(&block, &limits, true, false, &scratch.head).kind == H1_OK) {
        BECALM_ASSERT(scratch.head.version == HTTP_2);
        if (head_target(&scratch.head).at[0] == '/') {
            check_written(&scratch.head);
        }
    }
    return 0;
}
