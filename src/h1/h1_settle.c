/* SPDX-License-Identifier: MIT */
#include "h1_internal.h"

/* Interprets the fields of a head: the length of its body, whether its connection is kept, and which fields are not
 * passed on. */

/* Fields that Connection can't remove: without them the request would have another host, client, meaning or effect. */
#define END_TO_END                                                                                             \
    (FIELD_BIT(FIELD_HOST) | FIELD_BIT(FIELD_CONTENT_LENGTH) | FIELD_BIT(FIELD_TRANSFER_ENCODING) |            \
     FIELD_BIT(FIELD_TRAILER) | FIELD_BIT(FIELD_EXPECT) | FIELD_BIT(FIELD_CONTENT_TYPE) |                      \
     FIELD_BIT(FIELD_AUTHORIZATION) | FIELD_BIT(FIELD_COOKIE) | FIELD_BIT(FIELD_VIA) | FIELD_BIT(FIELD_DATE) | \
     FIELD_BIT(FIELD_IDEMPOTENCY_KEY))

/* Each option that names a field is compared with all fields, so there is a bound on them. */
#define OPTIONS_MAX 32u

static bool has_bit(uint64_t bits, uint32_t id)
{
    return (bits >> id & 1) != 0;
}

/* ---- Connection ---- */

struct options {
    uint32_t named; /* that may be names of fields */
    bool close;
    bool keep_alive;
    bool upgrade;
};

/* The field goes no further. */
static void drop(struct head *head, struct field *field)
{
    field->hop = true;
    head->as_it_came = false;
}

static void drop_named(struct head *head, struct becalm_text name)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct field *field = &head->field[i];
        if (!has_bit(END_TO_END, field->id) && field_is_named(head, field, name)) {
            drop(head, field);
        }
    }
}

static bool is_option(struct becalm_text option, const char *known)
{
    size_t length = strlen(known);
    return option.length == length && field_same(option.at, known, length);
}

static void read_option(struct head *head, struct becalm_text option, struct options *options)
{
    if (is_option(option, "keep-alive")) {
        options->keep_alive = true;
    } else if (is_option(option, "close")) {
        options->close = true;
    } else if (is_option(option, "upgrade")) {
        options->upgrade = true;
    } else if (!text_ended(option) && ++options->named <= OPTIONS_MAX) {
        head->names_fields = head->names_fields || !has_bit(FIELD_HOP, field_find(option.at, option.length));
        drop_named(head, option);
    }
}

/* The next of a list with commas, which may be empty. */
static struct becalm_text take_member(struct becalm_text *list)
{
    struct becalm_text member = {list->at, 0};
    while (member.length < list->length && list->at[member.length] != ',') {
        member.length++;
    }
    text_skip(list, member.length);
    text_take(list, ',');
    return text_trim(member);
}

static void read_options(struct head *head, struct becalm_text list, struct options *options)
{
    while (!text_ended(list)) {
        read_option(head, take_member(&list), options);
    }
}

/* As a member of one of its lines; other members of TE are about codings that the gateway never sends. */
static bool takes_trailers(const struct head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct becalm_text list = field_value(head, &head->field[i]);
        while (head->field[i].id == FIELD_TE && !text_ended(list)) {
            if (text_is_word(take_member(&list), "trailers")) {
                return true;
            }
        }
    }
    return false;
}

/* One line, and in it a name, maybe with a version: "websocket", "SPDY/3.1". */
static bool is_one_protocol(struct becalm_text value, uint64_t repeated)
{
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] <= ' ' || value.at[i] > '~' || strchr("\"(),;<=>?@[\\]{}", value.at[i]) != NULL) {
            return false;
        }
    }
    return value.length > 0 && !has_bit(repeated, FIELD_UPGRADE);
}

static struct h1_verdict settle_connection(struct head *head, uint64_t repeated)
{
    struct options options = {0};
    if (head_has(head, FIELD_CONNECTION)) {
        for (uint32_t i = 0; i < head->field_count; i++) {
            if (head->field[i].id == FIELD_CONNECTION) {
                read_options(head, field_value(head, &head->field[i]), &options);
            }
        }
    }
    if (options.named > OPTIONS_MAX) {
        return h1__bad(400, "Connection names too many fields");
    }
    head->close = options.close;
    head->keep_alive = !options.close && (head->version == HTTP_1_1 || options.keep_alive);
    if (head_has(head, FIELD_TE)) {
        head->te_trailers = head->version == HTTP_1_1 && takes_trailers(head);
    }
    if (head_has(head, FIELD_UPGRADE)) {
        head->upgrades = options.upgrade && head->version == HTTP_1_1;
        struct becalm_text protocol = head_find(head, FIELD_UPGRADE);
        head->one_protocol = head->upgrades && is_one_protocol(protocol, repeated);
        head->websocket = head->one_protocol && text_is_word(protocol, "websocket");
    }
    return h1__ok();
}

/* ---- framing ---- */

/* A tab is as good a blank as a space (RFC 9110, 5.6.3), but not every reader knows it: one takes it for a part of the
 * value, and its opinion of where the message ends is another. */
static bool has_tab_beside(struct becalm_text value)
{
    const char *before = value.at - 1; /* the colon is there, and behind the value its line's end */
    const char *behind = value.at + value.length;
    while (*before == ' ') {
        before--;
    }
    while (*behind == ' ') {
        behind++;
    }
    return *before == '\t' || *behind == '\t';
}

/* Digits and nothing else, and not more than 63 bits hold: with more, a reader with signed numbers goes wrong. */
static bool read_length(struct becalm_text text, uint64_t *length)
{
    return text_take_number(&text, length) > 0 && text_ended(text) && *length <= INT64_MAX;
}

/* "gzip, chunked" is well framed, but the gateway does not decode gzip: 501 (RFC 9112, 6.1). Chunks of chunks are not.
 */
static bool ends_chunked(struct becalm_text coding)
{
    struct becalm_text last = coding;
    if (coding.length < sizeof ",chunked" - 1) {
        return false;
    }
    text_skip(&last, coding.length - (sizeof "chunked" - 1));
    coding.length -= last.length;
    while (!text_ended(coding)) {
        if (text_is_word(take_member(&coding), "chunked")) {
            return false;
        }
    }
    return text_is_word(last, "chunked") && strchr(" \t,", last.at[-1]) != NULL;
}

static __attribute__((noinline)) struct h1_verdict settle_chunked(struct head *head, uint64_t repeated)
{
    struct becalm_text coding = head_find(head, FIELD_TRANSFER_ENCODING);
    if (head_has(head, FIELD_CONTENT_LENGTH)) {
        return h1__bad(400, "Content-Length and Transfer-Encoding exclude each other");
    }
    if (head->version == HTTP_1_0) {
        return h1__bad(400, "HTTP/1.0 has no Transfer-Encoding");
    }
    if (has_bit(repeated, FIELD_TRANSFER_ENCODING)) {
        return h1__bad(400, "Transfer-Encoding is there twice");
    }
    if (has_tab_beside(coding)) {
        return h1__bad(400, "Transfer-Encoding has a tab beside it");
    }
    if (!text_is_word(coding, "chunked")) {
        return h1__bad(ends_chunked(coding) ? 501 : 400, "Transfer-Encoding is not chunked");
    }
    head->framing = BODY_OPEN;
    return h1__ok();
}

/* Some hosts say the length twice. If both say the same, there is one way to read them; only the first is passed on. */
static __attribute__((noinline)) bool length_agrees(struct head *head, struct becalm_text length)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct field *field = &head->field[i];
        struct becalm_text other = field_value(head, field);
        if (field->id != FIELD_CONTENT_LENGTH || other.at == length.at) {
            continue;
        }
        if (other.length != length.length || memcmp(other.at, length.at, length.length) != 0 || has_tab_beside(other)) {
            return false;
        }
        drop(head, field);
    }
    return true;
}

static __attribute__((noinline)) struct h1_verdict settle_length(struct head *head, uint64_t repeated)
{
    struct becalm_text length = head_find(head, FIELD_CONTENT_LENGTH);
    bool answer = head->status != 0;
    if (has_bit(repeated, FIELD_CONTENT_LENGTH) && !(answer && length_agrees(head, length))) {
        return h1__bad(400, answer ? "Content-Length is there twice, and differs" : "Content-Length is there twice");
    }
    if (!head->as_it_came && has_tab_beside(length)) {
        return h1__bad(400, "Content-Length has a tab beside it");
    }
    if (!read_length(length, &head->content_length)) {
        return h1__bad(400, "Content-Length is not a number");
    }
    head->framing = BODY_LENGTH;
    head->length_once = !has_bit(repeated, FIELD_CONTENT_LENGTH) && (length.at[0] != '0' || length.length == 1);
    return h1__ok();
}

/* Leaves framing alone if the head says nothing about it. */
static struct h1_verdict settle_framing(struct head *head, uint64_t repeated)
{
    if (head_has(head, FIELD_TRANSFER_ENCODING)) {
        return settle_chunked(head, repeated);
    }
    return head_has(head, FIELD_CONTENT_LENGTH) ? settle_length(head, repeated) : h1__ok();
}

/* ---- requests ---- */

static struct h1_verdict settle_host(const struct head *head, uint64_t repeated)
{
    if (has_bit(repeated, FIELD_HOST)) {
        return h1__bad(400, "Host is there twice");
    }
    if (!head_has(head, FIELD_HOST)) {
        return head->version == HTTP_1_0 ? h1__ok() : h1__bad(400, "Host is missing");
    }
    struct becalm_text host = head_find(head, FIELD_HOST);
    if (!text_ended(host) && !h1__authority_valid(host)) { /* empty: RFC 9112, 3.2 wants it so where there is none */
        return h1__bad(400, "Host is not the name of a host");
    }
    return h1__ok();
}

static struct h1_verdict settle_target(const struct head *head)
{
    struct h1_target target;
    struct becalm_text method = head_method(head);
    bool connect = text_is(method, "CONNECT");
    if (!h1_target_split(head_target(head), connect, &target)) {
        return h1__bad(400,
                       connect ? "the target of CONNECT is not host:port" : "the target is no path and no http URL");
    }
    if (text_is(target.path, "*") && !text_is(method, "OPTIONS")) {
        return h1__bad(400, "the target * is for OPTIONS only");
    }
    if (connect && (head->framing == BODY_OPEN || head->content_length > 0)) {
        return h1__bad(400, "CONNECT has no body");
    }
    return h1__ok();
}

struct h1_verdict h1__settle_request(struct head *head, uint64_t repeated)
{
    struct h1_verdict verdict = settle_host(head, repeated);
    if (verdict.kind == H1_OK) {
        verdict = settle_framing(head, repeated);
    }
    if (verdict.kind == H1_OK) {
        verdict = settle_target(head);
    }
    if (verdict.kind == H1_OK) {
        verdict = settle_connection(head, repeated);
    }
    head->expects_continue = head->version == HTTP_1_1 && text_is_word(head_find(head, FIELD_EXPECT), "100-continue");
    return verdict;
}

/* ---- answers ---- */

/* If the fields of an answer that can't have a body announce one, then its sender may send it, too: so nothing more is
 * read from there. */
static void settle_bodiless(struct head *head)
{
    if (head->framing == BODY_OPEN || head->content_length > 0) {
        head->keep_alive = false;
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->field[i].id == FIELD_CONTENT_LENGTH) {
            drop(head, &head->field[i]);
        }
    }
}

struct h1_verdict h1__settle_answer(struct head *head, uint64_t repeated, enum h1__body body)
{
    head->framing = BODY_UNTIL_CLOSE;
    struct h1_verdict verdict = settle_framing(head, repeated);
    if (verdict.kind != H1_OK) {
        return verdict;
    }
    verdict = settle_connection(head, repeated);
    switch (body) {
    case H1__NEVER:
        settle_bodiless(head);
        head->framing = BODY_NONE;
        break;
    case H1__DESCRIBED:
        head->framing = BODY_NONE;
        break;
    case H1__FRAMED:
        head->keep_alive = head->keep_alive && head->framing != BODY_UNTIL_CLOSE;
        break;
    }
    return verdict;
}
