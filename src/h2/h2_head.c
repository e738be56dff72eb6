/* SPDX-License-Identifier: MIT */
#include "h2_head.h"

#include "h2_field_rules.h"

#include "http/text_internal.h"

/* Fields of a head as they come: cookies are counted one by one, since each is a field here. */
#define FIELDS_MAX (4 * HEAD_REQUEST_FIELDS_MAX)

/* The most bytes that are moved to join cookie crumbs. Usually crumbs come one after the other, and nothing moves. An
 * attacker who puts a large field, as one HPACK index, between crumbs could have megabytes moved for some hundred
 * bytes. */
#define MOVED_MAX (1u << 20)

void h2_block_begin(struct h2_block *block, enum h2_block_kind kind, const struct h2_scratch *scratch)
{
    *block = (struct h2_block){.kind = kind, .text = {.at = scratch->bytes, .size = scratch->size}, .length = -1};
}

static struct becalm_text text_at(const struct h2_block *block, struct h2_span span)
{
    return (struct becalm_text){block->text.at + span.at, span.length};
}

/* The place for the value of a pseudo field; NULL: a head of this kind may not have it. */
static struct h2_span *pseudo_of(struct h2_block *block, struct becalm_text name, struct becalm_text value, bool *right)
{
    bool request = block->kind == H2_BLOCK_REQUEST;
    if (block->kind == H2_BLOCK_ANSWER && text_is(name, ":status")) {
        *right = h2_is_status(value);
        return &block->status;
    }
    if (request && text_is(name, ":method")) {
        *right = h2_is_method(value);
        return &block->method;
    }
    if (request && text_is(name, ":path")) {
        *right = h2_is_path(value);
        return &block->path;
    }
    if (request && text_is(name, ":authority")) {
        *right = h2_is_authority(value);
        return &block->authority;
    }
    if (request && text_is(name, ":scheme")) {
        *right = h2_is_scheme(value);
        return &block->scheme;
    }
    return NULL;
}

/* A pseudo field comes before all regular fields, and once. */
static void keep_pseudo(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    bool right = false;
    struct h2_span *span = pseudo_of(block, name, value, &right);
    if (span == NULL || !right || span->at != 0 || block->begin != 0) {
        block->malformed = true;
        return;
    }
    struct h2_span kept = {(uint32_t)block->text.length, (uint32_t)value.length};
    text_put(&block->text, value);
    if (!block->text.full) { /* else there is nothing to look at */
        *span = kept;
    }
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
        if (block->secret_authority) {
            h1_hide_line(out, authority.length);
        }
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
    size_t behind = out->length - block->cookie;
    block->moved += (uint32_t)behind;
    if (more > out->size - out->length || block->moved > MOVED_MAX) {
        out->full = true;
        return;
    }
    char *end = out->at + block->cookie;
    memmove(end + more, end, behind);
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

/* Content-Length must be a number and occur once; an answer without a body has none. */
static bool keep_length(struct h2_block *block, struct becalm_text value)
{
    struct becalm_text status = text_at(block, block->status);
    bool interim = status.length > 0 && status.at[0] == '1';
    bool fits = block->length < 0 && block->kind != H2_BLOCK_TRAILERS && !interim;
    block->length = fits ? h2_length_of(value) : -1;
    return text_is(status, "204") ? block->length == 0 : block->length >= 0;
}

/* The rules of HTTP/2 for regular fields (RFC 9113, 8.2). */
static bool is_right(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    if (!h2_is_name(name) || !h2_is_value(value)) {
        return false;
    }
    switch (h2_field_kind(name)) {
    case H2_FIELD_HOP:
        return false;
    case H2_FIELD_TE:
        return text_is_word(value, "trailers");
    case H2_FIELD_LENGTH:
        return keep_length(block, value);
    case H2_FIELD_HOST:
        if (block->kind != H2_BLOCK_REQUEST) {
            return true;
        }
        if (block->host || !h2_is_authority(value)) {
            return false;
        }
        block->host = true;
        return true;
    case H2_FIELD_ANY:
        return true;
    }
    return true;
}

void h2_block_count(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    block->bytes += name.length + value.length;
    block->fields++;
}

void h2_block_field(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    struct text_sink *out = &block->text;
    h2_block_count(block, name, value);
    if (block->malformed) {
        return;
    }
    if (out->length == 0) {
        text_put_chars(out, "\n"); /* so that no offset is 0 */
    }
    if (name.length > 0 && name.at[0] == ':') {
        keep_pseudo(block, name, value);
        return;
    }
    if (!is_right(block, name, value)) {
        block->malformed = true;
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

/* Is this field's line the last one? A Host that :authority has said before has none of its own, and a crumb has none
 * if it is not the first; then it needs no mark, since Cookie is a secret anyway. */
static bool is_last_line(const struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    const struct text_sink *out = &block->text;
    size_t line = name.length + value.length + sizeof ": \r\n" - 1;
    const char *at = out->at + out->length - line;
    return line < out->length && at[-1] == '\n' && memcmp(at, name.at, name.length) == 0;
}

void h2_block_hide(struct h2_block *block, struct becalm_text name, struct becalm_text value)
{
    block->secret = true;
    block->secret_method |= text_is(name, ":method");
    block->secret_authority |= text_is(name, ":authority");
    block->secret_path |= text_is(name, ":path");
    block->secret_status |= text_is(name, ":status");
    if (!block->malformed && block->begin != 0 && is_last_line(block, name, value)) {
        h1_hide_line(&block->text, value.length);
        block->cookie += text_is(name, "cookie") && block->cookie != 0;
    }
}

/* A path begins with a slash, or is the asterisk of OPTIONS; other schemes may have other forms. */
static bool has_path(const struct h2_block *block)
{
    struct becalm_text path = text_at(block, block->path);
    struct becalm_text scheme = text_at(block, block->scheme);
    bool ours = text_is_word(scheme, "http") || text_is_word(scheme, "https");
    return path.at[0] == '/' || !ours || (text_is(path, "*") && text_is(text_at(block, block->method), "OPTIONS"));
}

static bool is_whole_request(const struct h2_block *block)
{
    if (block->method.at == 0) {
        return false;
    }
    if (text_is(text_at(block, block->method), "CONNECT")) {
        return block->authority.at != 0 && block->scheme.at == 0 && block->path.at == 0;
    }
    bool named = block->authority.at != 0 || block->host;
    return block->scheme.at != 0 && block->path.at != 0 && named && has_path(block);
}

bool h2_block_is_whole(const struct h2_block *block)
{
    if (block->malformed) {
        return false;
    }
    switch (block->kind) {
    case H2_BLOCK_REQUEST: /* a head that is too large to be kept is answered with 431 */
        return block->text.full || is_whole_request(block);
    case H2_BLOCK_ANSWER:
        return block->status.at != 0;
    case H2_BLOCK_TRAILERS:
        return true;
    }
    return true;
}

bool h2_block_bomb(const struct h2_block *block, const struct h2_limits *limits)
{
    return block->fields > FIELDS_MAX || block->bytes > 4 * (uint64_t)limits->head_bytes;
}

static struct h1_verdict bad(uint32_t status, const char *what)
{
    return (struct h1_verdict){.kind = H1_BAD, .status = status, .what = what};
}

/* HTTP/1 knows the end of a body by its fields alone; here END_STREAM tells, and is held against a length. */
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

static __attribute__((noinline)) void settle_secrets(struct head *head, const struct h2_block *block)
{
    h1_read_secrets(head);
    head->secret = true;
    head->secret_method = block->secret_method;
    head->secret_target = block->secret_path;
    head->secret_status = block->secret_status;
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
        if (block->secret) {
            settle_secrets(head, block);
        }
    }
    return verdict;
}

struct becalm_text h2_block_trailers(struct h2_block *block)
{
    put_first_line(block);
    text_put_chars(&block->text, "\r\n");
    return (struct becalm_text){block->text.at + block->begin, block->text.length - block->begin};
}
