/* SPDX-License-Identifier: MIT */
#include "h2_head.h"

#include "http/text_internal.h"

/* Fields of a head as they come: cookies are counted one by one, since each is a field here. */
#define FIELDS_MAX (4 * HEAD_REQUEST_FIELDS_MAX)

void h2_block_begin(struct h2_block *block, enum h2_block_kind kind, const struct h2_scratch *scratch)
{
    *block = (struct h2_block){.kind = kind, .text = {.at = scratch->bytes, .size = scratch->size}};
}

static struct becalm_text text_at(const struct h2_block *block, struct h2_span span)
{
    return (struct becalm_text){block->text.at + span.at, span.length};
}

/* One that is there has a length, or it is no value that could stand in a first line. */
static void keep_pseudo(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    struct h2_span *span = text_is(name, ":method")      ? &block->method
                           : text_is(name, ":scheme")    ? &block->scheme
                           : text_is(name, ":authority") ? &block->authority
                           : text_is(name, ":path")      ? &block->path
                           : text_is(name, ":status")    ? &block->status
                                                         : NULL;
    if (span == NULL) {
        block->wrong = "a pseudo field is not known";
        return;
    }
    *span = (struct h2_span){(uint32_t)block->text.length, (uint32_t)value.length};
    text_put(&block->text, value);
}

/* "GET /path HTTP/1.1" and Host. A path that is no path could be read as a URL, with an authority of its own. */
static void put_request_line(struct h2_block *block)
{
    struct text_sink *out = &block->text;
    struct becalm_text scheme = text_at(block, block->scheme);
    struct becalm_text authority = text_at(block, block->authority);
    struct becalm_text method = text_at(block, block->method);
    struct becalm_text path = text_at(block, block->path);
    bool connect = text_is(method, "CONNECT");
    if (connect) {
        path = authority;
    } else if (path.length == 0 || (path.at[0] != '/' && !text_is(path, "*"))) {
        block->wrong = "the target is no path";
    } else if (!text_is(scheme, "http") && !text_is(scheme, "https")) {
        block->wrong = "the scheme is neither http nor https";
    }
    text_put(out, method);
    text_put_chars(out, " ");
    text_put(out, path);
    text_put_chars(out, " HTTP/1.1\r\n");
    if (block->authority.at != 0 || connect) {
        h1_put_field(out, "host", authority);
    }
}

/* Behind the last pseudo field. A text of nothing but pseudo fields is never empty. */
static void put_first_line(struct h2_block *block)
{
    struct text_sink *out = &block->text;
    if (block->begin != 0) {
        return;
    }
    block->begin = (uint32_t)out->length;
    switch (block->kind) {
    case H2_BLOCK_REQUEST:
        put_request_line(block);
        break;
    case H2_BLOCK_ANSWER:
        text_put_chars(out, "HTTP/1.1 ");
        text_put(out, text_at(block, block->status));
        text_put_chars(out, " \r\n");
        break;
    case H2_BLOCK_TRAILERS:
        break;
    }
}

/* The crumbs of a cookie become one field again (RFC 9113, 8.2.3), where the first of them stood. */
static void add_crumb(struct h2_block *block, struct becalm_text value)
{
    struct text_sink *out = &block->text;
    size_t more = value.length + 2;
    if (more > out->size - out->length) {
        out->full = true;
        return;
    }
    char *end = out->at + block->cookie;
    memmove(end + more, end, out->length - block->cookie);
    memcpy(end, "; ", 2);
    memcpy(end + 2, value.at, value.length);
    out->length += more;
    block->cookie += (uint32_t)more;
}

static bool same_authority(struct becalm_text a, struct becalm_text b)
{
    bool same = a.length == b.length;
    for (size_t i = 0; same && i < a.length; i++) {
        same = to_lower(a.at[i]) == to_lower(b.at[i]);
    }
    return same;
}

/* Two names for whom is asked are one too many, unless they are the same. */
static bool host_said(struct h2_block *block, struct becalm_text value)
{
    if (block->authority.at == 0) {
        return false;
    }
    if (!same_authority(value, text_at(block, block->authority))) {
        block->wrong = "Host is another than the authority";
    }
    return true;
}

void h2_block_field(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    struct text_sink *out = &block->text;
    block->bytes += name.length + value.length;
    block->fields++;
    if (out->length == 0) {
        text_put_chars(out, "\n"); /* so that no offset is 0 */
    }
    if (name.at[0] == ':') {
        keep_pseudo(block, name, value);
        return;
    }
    put_first_line(block);
    if (block->kind == H2_BLOCK_REQUEST && text_is(name, "host") && host_said(block, value)) {
        return;
    }
    bool crumb = block->kind == H2_BLOCK_REQUEST && text_is(name, "cookie");
    if (crumb && block->cookie != 0) {
        add_crumb(block, value);
        return;
    }
    h1_put_line(out, name, value);
    if (crumb && !out->full) {
        block->cookie = (uint32_t)out->length - 2;
    }
}

bool h2_block_bomb(const struct h2_block *block, const struct h2_limits *limits)
{
    return block->fields > FIELDS_MAX || block->bytes > 4 * (uint64_t)limits->head_bytes;
}

static struct h1_verdict bad(uint32_t status, const char *what)
{
    return (struct h1_verdict){.kind = H1_BAD, .status = status, .what = what};
}

/* HTTP/1 knows the end of a body by its fields alone; here END_STREAM tells, and nghttp2 holds it against a length. */
static void settle_body(struct head *head, bool end, bool answer)
{
    bool none = answer && head->framing == BODY_NONE; /* its status says so, or the request's method */
    if (end && head->framing != BODY_LENGTH) {
        head->framing = BODY_NONE;
    } else if (!end && !none && head->framing != BODY_LENGTH) {
        head->framing = BODY_OPEN;
    }
    head->version = HTTP_2;
    head->keep_alive = true;
}

struct h1_verdict h2_block_end(struct h2_block *block, const struct h2_limits *limits, bool end, bool to_head,
                               struct head *head)
{
    struct h1_limits h1 = {.head_bytes = limits->head_bytes};
    bool answer = block->kind == H2_BLOCK_ANSWER;
    put_first_line(block);
    text_put_chars(&block->text, "\r\n");
    const char *bytes = block->text.at + block->begin;
    size_t length = block->text.length - block->begin;
    if (block->text.full || length > limits->head_bytes) {
        return bad(431, "the head is too large");
    }
    if (block->wrong != NULL) {
        return bad(400, block->wrong);
    }
    struct h1_verdict verdict =
        answer ? h1_parse_answer(bytes, length, &h1, to_head, false, head) : h1_parse_request(bytes, length, &h1, head);
    if (verdict.kind == H1_OK) {
        settle_body(head, end, answer);
    }
    return verdict;
}

struct becalm_text h2_block_trailers(struct h2_block *block)
{
    put_first_line(block);
    text_put_chars(&block->text, "\r\n");
    return (struct becalm_text){block->text.at + block->begin, block->text.length - block->begin};
}
