/* SPDX-License-Identifier: MIT */
#include "proxy/h1_internal.h"

#include <llhttp.h>
#include <stddef.h>

/* llhttp finds the fields of a head and refuses bytes that have no place there. What it lets through even so (folded
 * lines, empty names, several spaces in a row, other line ends) is found by one rule: every byte of the head belongs to
 * its first line, to a field as llhttp reported it, to the blanks around a value, or to a CR LF behind one of these. So
 * the next field must begin exactly where the last line ended, and this file needs to know of no loophole by name. */

#if LLHTTP_VERSION_MAJOR < 9 && !LLHTTP_STRICT_MODE
#error "llhttp must be built with LLHTTP_STRICT_MODE=1: without it, three ways to smuggle requests are open"
#endif

struct parse {
    const char *bytes;
    struct h1_head *head;
    struct h1_verdict refused; /* by a function that llhttp called */
    uint64_t repeated;         /* bit n: there is a second field with id n */
    uint32_t at;               /* where the next line has to begin */
    bool open;                 /* a field's name was seen, and its line has not ended */
};

/* ---- the first line ---- */

static bool line_ends(const char *at)
{
    return at[0] == '\r' && at[1] == '\n';
}

/* HTTP/1.0 or HTTP/1.1, and the end of the line. The line feed that ends every head keeps this from reading too far. */
static struct h1_verdict read_version(struct parse *p, const char *at)
{
    if (memcmp(at, "HTTP/", 5) != 0 || !is_digit(at[5]) || at[6] != '.' || !is_digit(at[7])) {
        return h1__bad(400, "the request line is malformed");
    }
    if (at[5] != '1' || at[7] > '1') {
        return h1__bad(505, "the version is neither HTTP/1.1 nor HTTP/1.0");
    }
    p->head->minor = (uint32_t)(at[7] - '0');
    p->at = (uint32_t)(at + 10 - p->bytes);
    return line_ends(at + 8) ? h1__ok() : h1__bad(400, "the request line is malformed");
}

/* method SP target SP version: single spaces. A method that is a token but unknown is left to llhttp. */
static struct h1_verdict read_request_line(struct parse *p, size_t length)
{
    struct h1_head *head = p->head;
    const char *end = p->bytes + length;
    const char *at = p->bytes;
    while (*at != ' ' && is_token_char(*at)) {
        at++;
    }
    head->method_length = (uint32_t)(at - p->bytes);
    if (head->method_length == 0 || *at != ' ') {
        return h1__bad(400, "the request line is malformed");
    }
    at++;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    if (space == NULL || end - space < (ptrdiff_t)sizeof " HTTP/1.1\r\n" - 1) {
        return h1__bad(400, "the request line is malformed");
    }
    head->target = (uint32_t)(at - p->bytes);
    head->target_length = (uint32_t)(space - at);
    return head->target_length == 0 ? h1__bad(400, "the request line is malformed") : read_version(p, space + 1);
}

static bool is_text(struct becalm_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* HTTP/1.x SP status [SP phrase]. The space before an empty phrase is often forgotten, and says nothing. */
static struct h1_verdict read_status_line(struct parse *p, size_t length)
{
    const char *at = p->bytes;
    const char *lf = memchr(at, '\n', length);
    size_t line = lf == NULL ? 0 : (size_t)(lf - at); /* with its CR */
    if (line < sizeof "HTTP/1.1 200\r" - 1 || memcmp(at, "HTTP/1.", 7) != 0 || (at[7] != '0' && at[7] != '1') ||
        at[8] != ' ' || at[line - 1] != '\r') {
        return h1__bad(502, "the status line is malformed");
    }
    if (!is_digit(at[9]) || !is_digit(at[10]) || !is_digit(at[11]) || at[9] < '1' || at[9] > '5') {
        return h1__bad(502, "the status is not a number from 100 to 599");
    }
    struct becalm_text phrase = {at + 12, line - 13};
    if (!text_ended(phrase) && (!text_take(&phrase, ' ') || !is_text(phrase))) {
        return h1__bad(502, "the status line is malformed");
    }
    p->head->status = (uint32_t)((at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0'));
    p->head->minor = (uint32_t)(at[7] - '0');
    p->at = (uint32_t)line + 1;
    return h1__ok();
}

/* ---- fields, as llhttp reports them ---- */

static int refuse(struct parse *p, uint32_t status, const char *what)
{
    p->refused = h1__bad(status, what);
    return HPE_USER;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Behind the last field: blanks and CR LF. Moves `at` behind them. */
static bool close_field(struct parse *p)
{
    if (!p->open) {
        return true;
    }
    const struct h1_field *field = &p->head->field[p->head->field_count - 1];
    const char *at = p->bytes + field->value + field->value_length;
    while (is_blank(*at)) {
        at++;
    }
    p->open = false;
    p->at = (uint32_t)(at + 2 - p->bytes);
    return line_ends(at);
}

static int on_name(llhttp_t *parser, const char *at, size_t length)
{
    struct parse *p = parser->data;
    struct h1_head *head = p->head;
    uint32_t offset = (uint32_t)(at - p->bytes);
    if (!close_field(p) || offset != p->at || at[length] != ':') {
        return refuse(p, 400, "a field is malformed or goes over several lines");
    }
    if (length == 0) {
        return refuse(p, 400, "a field has no name");
    }
    if (head->field_count == H1_FIELDS_MAX || length > UINT16_MAX) {
        return refuse(p, 431, length > UINT16_MAX ? "a field's name is too long" : "there are too many fields");
    }
    enum h1_name id = h1__name_find(at, length);
    uint64_t bit = UINT64_C(1) << id;
    p->repeated |= head->seen & bit;
    head->seen |= bit;
    head->field[head->field_count++] = (struct h1_field){
        .name = offset,
        .name_length = (uint16_t)length,
        .value = offset + (uint32_t)length + 1, /* empty, unless one is reported */
        .id = (uint8_t)id,
    };
    p->open = true;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
    struct parse *p = parser->data;
    if (length == 0) {
        return 0;
    }
    if (!p->open) {
        return refuse(p, 400, "a field is malformed or goes over several lines");
    }
    struct h1_field *field = &p->head->field[p->head->field_count - 1];
    /* From the colon on; if this is the rest of a folded value, from its first byte on, which is no blank. */
    for (const char *c = p->bytes + field->value; c < at; c++) {
        if (!is_blank(*c)) {
            return refuse(p, 400, "a field is malformed or goes over several lines");
        }
    }
    while (length > 0 && is_blank(at[length - 1])) {
        length--;
    }
    field->value = (uint32_t)(at - p->bytes);
    field->value_length = (uint32_t)length;
    return 0;
}

/* The body is none of its business. */
static int on_end(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_end,
};

/* ---- a whole head ---- */

static const char *field_error(llhttp_errno_t error)
{
    switch ((int)error) {
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return "Content-Length is there twice, or with Transfer-Encoding";
    case HPE_INVALID_CONTENT_LENGTH:
        return "Content-Length is not a number";
    case HPE_INVALID_TRANSFER_ENCODING:
        return "Transfer-Encoding is not chunked, or is there with Content-Length";
    case HPE_INVALID_URL:
        return "the target is malformed";
    default:
        return "a field is malformed or has forbidden bytes";
    }
}

/* llhttp takes all bytes and finds the end of the fields at the last one. */
static struct h1_verdict read_fields(struct parse *p, llhttp_t *parser, size_t length)
{
    llhttp_errno_t error = llhttp_execute(parser, p->bytes, length);
    if (error == HPE_USER) {
        return p->refused;
    }
    /* The line itself was read before, so its version is no more in question: llhttp minds it only behind PRI. */
    if (p->head->field_count == 0 &&
        (error == HPE_INVALID_METHOD || error == HPE_INVALID_CONSTANT || error == HPE_INVALID_VERSION)) {
        return h1__bad(501, "the method is unknown");
    }
    if (error != HPE_PAUSED) {
        return h1__bad(400, field_error(error));
    }
    if (!close_field(p) || p->at + 2 != length || !line_ends(p->bytes + p->at)) {
        return h1__bad(400, "a field is malformed or goes over several lines");
    }
    return h1__ok();
}

static void begin(struct parse *p, llhttp_t *parser, const char *bytes, struct h1_head *head)
{
    memset(head, 0, offsetof(struct h1_head, field)); /* not the fields: they are 2 KiB */
    *p = (struct parse){.bytes = bytes, .head = head};
    parser->data = p;
}

/* Every function here may read up to the last line feed. */
static bool ends_in_line_feed(const char *bytes, size_t length)
{
    return length >= 2 && bytes[length - 1] == '\n';
}

struct h1_verdict h1_too_large(const char *bytes, size_t length)
{
    return memchr(bytes, '\n', length) == NULL ? h1__bad(414, "the request line is too long")
                                               : h1__bad(431, "the head is too large");
}

struct h1_verdict h1_parse_request(const char *bytes, size_t length, const struct h1_limits *limits,
                                   struct h1_head *head)
{
    struct parse p;
    llhttp_t parser;
    if (length > limits->head_bytes) {
        return h1_too_large(bytes, limits->head_bytes);
    }
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    begin(&p, &parser, bytes, head);
    if (!ends_in_line_feed(bytes, length)) {
        return h1__bad(400, "the request line is malformed");
    }
    struct h1_verdict verdict = read_request_line(&p, length);
    if (verdict.kind == H1_OK) {
        verdict = read_fields(&p, &parser, length);
    }
    if (verdict.kind == H1_OK) {
        head->length = (uint32_t)length;
        verdict = h1__settle_request(bytes, head, p.repeated);
    }
    return verdict;
}

static enum h1__body body_of(uint32_t status, bool to_head, bool to_connect)
{
    if (status < 200 || status == 204 || (to_connect && status < 300)) {
        return H1__NEVER;
    }
    return to_head || status == 304 ? H1__DESCRIBED : H1__FRAMED;
}

struct h1_verdict h1_parse_answer(const char *bytes, size_t length, const struct h1_limits *limits, bool to_head,
                                  bool to_connect, struct h1_head *head)
{
    struct parse p;
    llhttp_t parser;
    if (length > limits->head_bytes) {
        return h1__bad(502, "the answer's head is too large");
    }
    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    begin(&p, &parser, bytes, head);
    if (!ends_in_line_feed(bytes, length)) {
        return h1__bad(502, "the status line is malformed");
    }
    struct h1_verdict verdict = read_status_line(&p, length);
    if (verdict.kind == H1_OK) {
        verdict = read_fields(&p, &parser, length);
    }
    if (verdict.kind == H1_OK) {
        head->length = (uint32_t)length;
        verdict = h1__settle_answer(bytes, head, p.repeated, body_of(head->status, to_head, to_connect));
    }
    if (verdict.kind == H1_BAD) {
        verdict.status = 502; /* whatever a client would have been told: it is the host's fault */
    }
    return verdict;
}

/* ---- trailers ---- */

/* Fields that are of use at the end: about the body, or the outcome of the call. Everything else might be taken for a
 * field of the head by somebody further on. */
static bool may_trail(struct becalm_text name)
{
    static const char *const allowed[] = {
        "grpc-status",   "grpc-message",    "grpc-status-details-bin",
        "server-timing", "content-digest",  "repr-digest",
        "digest",        "content-md5",     "etag",
        "signature",     "signature-input", "x-amz-trailer-signature",
    };
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (text_is_word(name, allowed[i])) {
            return true;
        }
    }
    return text_take_word(&name, "x-amz-checksum-");
}

static void keep_allowed(const char *bytes, struct h1_head *head)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (may_trail(h1_name(bytes, &head->field[i]))) {
            head->field[kept++] = head->field[i];
        }
    }
    head->field_count = kept;
    head->seen &= UINT64_C(1) << H1_OTHER | UINT64_C(1) << H1_GRPC_STATUS;
}

struct h1_verdict h1_parse_trailers(const char *bytes, size_t length, struct h1_head *head)
{
    static const char before[] = "HTTP/1.1 200 OK\r\n"; /* makes the rest the fields of a head */
    struct parse p;
    llhttp_t parser;
    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    begin(&p, &parser, bytes, head);
    if (!ends_in_line_feed(bytes, length) || length > H1_TRAILER_BYTES) {
        return h1__bad(400, "the trailers are malformed or too large");
    }
    if (llhttp_execute(&parser, before, sizeof before - 1) != HPE_OK) {
        return h1__bad(400, "the trailers can't be read");
    }
    struct h1_verdict verdict = read_fields(&p, &parser, length);
    if (verdict.kind != H1_OK) {
        return verdict;
    }
    if (h1_has(head, H1_CONTENT_LENGTH) || h1_has(head, H1_TRANSFER_ENCODING) || h1_has(head, H1_TRAILER) ||
        h1_has(head, H1_HOST)) {
        return h1__bad(400, "the trailers have a field of framing or routing");
    }
    head->length = (uint32_t)length;
    keep_allowed(bytes, head);
    return h1__ok();
}

/* ---- where a head begins and ends ---- */

size_t h1_head_end(const char *bytes, size_t length, size_t seen)
{
    const char *end = bytes + length;
    const char *at = bytes + (seen < 2 ? 0 : seen - 2); /* a line feed there may have waited for what came now */
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        if (end - at >= 1 && at[0] == '\n') {
            return (size_t)(at + 1 - bytes);
        }
        if (end - at >= 2 && line_ends(at)) {
            return (size_t)(at + 2 - bytes);
        }
    }
    return 0;
}

size_t h1_leading_blank(const char *bytes, size_t length)
{
    size_t blank = 0;
    while (blank < 4 && length - blank >= 2 && line_ends(bytes + blank)) {
        blank += 2;
    }
    return blank;
}
