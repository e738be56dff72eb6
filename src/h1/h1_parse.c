/* SPDX-License-Identifier: MIT */
#include "h1_internal.h"

#include "unfilled.h"

#include <stddef.h>
#if defined __SSE2__
#include <emmintrin.h>
#endif

/* Every byte of a head belongs to its first line, or to a field: name, colon, blanks around a value, CR LF. Nothing is
 * skipped and nothing repaired, so that there are no loopholes. The fuzz targets compare with llhttp: every head that
 * llhttp refuses is refused here, and a head that is accepted here has the same fields there. */

struct parse {
    const char *bytes;
    struct head *head;
    uint64_t repeated; /* bit n: there is a second field with id n */
    uint32_t at;       /* where the next line begins */
    uint32_t fields_max;
};

/* ---- bytes ---- */

/* Where a byte may occur: in a text, which is a value or a phrase; or also in a name (tchar of RFC 9110, 5.6.2). */
#define T 1
#define N 3
/* clang-format off */
static const uint8_t part_of[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, T, 0, 0, 0, 0, 0, 0, /* tab */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    T, N, T, N, N, N, N, N, T, T, N, N, T, N, N, T, /*  !"#$%&'()*+,-./ */
    N, N, N, N, N, N, N, N, N, N, T, T, T, T, T, T, /* 0123456789:;<=>? */
    T, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, /* @ABCDEFGHIJKLMNO */
    N, N, N, N, N, N, N, N, N, N, N, T, T, T, N, N, /* PQRSTUVWXYZ[\]^_ */
    N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, /* `abcdefghijklmno */
    N, N, N, N, N, N, N, N, N, N, N, T, N, T, N, 0, /* pqrstuvwxyz{|}~  */
    T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T,
    T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T,
    T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T,
    T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T,
};
/* clang-format on */

/* Bytes are looked at AT_ONCE together. A look has LOOK_BITS bits for each byte, those of the first are the lowest: one
 * is set for the first byte that is not usual, and may be for others behind it. */

#if defined __SSE2__
enum { AT_ONCE = 16, LOOK_BITS = 1 };
typedef uint32_t look;

static inline __m128i sixteen(const char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Is each byte at least `least`, and at most so much more? */
static inline __m128i is_within(__m128i bytes, char least, char more)
{
    __m128i above = _mm_sub_epi8(bytes, _mm_set1_epi8(least));
    return _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(more)), above);
}

static inline look is_not(__m128i usual)
{
    return (look)_mm_movemask_epi8(usual) ^ 0xffff;
}

/* Letters, digits and hyphens, of which nearly all names are made. */
static inline look look_at_name(const char *at)
{
    __m128i bytes = sixteen(at);
    __m128i letter = is_within(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 25);
    __m128i hyphen = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
    return is_not(_mm_or_si128(letter, _mm_or_si128(is_within(bytes, '0', 9), hyphen)));
}

/* All but those below a space, and 0x7f. */
static inline look look_at_text(const char *at)
{
    __m128i bytes = sixteen(at);
    __m128i printed = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8(' ')), bytes);
    return is_not(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f)), printed));
}

/* Visible ASCII. */
static inline look look_at_target(const char *at)
{
    return is_not(is_within(sixteen(at), '!', '~' - '!'));
}
#else
enum { AT_ONCE = 8, LOOK_BITS = 8 };
typedef uint64_t look;

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))
#define ONE_BY_ONE      EACH_BYTE(0x80)

static inline look look_at_name(const char *at)
{
    (void)at;
    return ONE_BY_ONE;
}

static inline look look_at_text(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    uint64_t delete = word ^ EACH_BYTE(0x7f);
    uint64_t found = (((word - EACH_BYTE(' ')) & ~word) | ((delete - EACH_BYTE(1)) & ~delete)) & EACH_BYTE(0x80);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? found : ONE_BY_ONE;
}

static inline look look_at_target(const char *at)
{
    (void)at;
    return ONE_BY_ONE;
}
#endif

/* The first byte from `at` on that is not usual. `last`: from where AT_ONCE bytes are left, of which the very last is a
 * line feed: it is never usual. The look at the end has bytes in it that were looked at before. */
static inline __attribute__((always_inline)) const char *unusual(look look_at(const char *), const char *at,
                                                                 const char *last)
{
    for (;;) {
        const char *from = at < last ? at : last;
        look found = look_at(from) >> LOOK_BITS * (at - from);
        if (found != 0) {
            return at + (LOOK_BITS == 1 ? __builtin_ctz((unsigned)found) : __builtin_ctzll(found) / LOOK_BITS);
        }
        at = from + AT_ONCE;
    }
}

/* One by one, from a byte on that is seldom there: a name's dot or a value's tab. Both functions stop at every line
 * feed. */

static __attribute__((noinline)) const char *name_end(const char *at)
{
    while (part_of[(unsigned char)*at] == N) {
        at++;
    }
    return at;
}

static __attribute__((noinline)) const char *text_end(const char *at)
{
    while (part_of[(unsigned char)*at] != 0) {
        at++;
    }
    return at;
}

static __attribute__((noinline)) const char *target_end(const char *at)
{
    while (*at > ' ' && *at <= '~') {
        at++;
    }
    return at;
}

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
    p->head->version = at[7] == '0' ? HTTP_1_0 : HTTP_1_1;
    p->at = (uint32_t)(at + 10 - p->bytes);
    return line_ends(at + 8) ? h1__ok() : h1__bad(400, "the request line is malformed");
}

/* method SP target SP version: single spaces. A method is any token: whether it is known is for the host to say. */
static struct h1_verdict read_request_line(struct parse *p, size_t length)
{
    struct head *head = p->head;
    const char *end = p->bytes + length;
    const char *last = end - AT_ONCE;
    const char *at = unusual(look_at_name, p->bytes, last);
    at = *at == ' ' ? at : name_end(at);
    head->method_length = (uint32_t)(at - p->bytes);
    if (head->method_length == 0 || *at != ' ') {
        return h1__bad(400, "the request line is malformed");
    }
    at++;
    const char *space = unusual(look_at_target, at, last);
    space = *space == ' ' ? space : target_end(space);
    bool proper = *space == ' ';
    space = proper ? space : memchr(space, ' ', (size_t)(end - space));
    if (space == NULL || end - space < (ptrdiff_t)sizeof " HTTP/1.1\r\n" - 1) {
        return h1__bad(400, "the request line is malformed");
    }
    head->target = (uint32_t)(at - p->bytes);
    head->target_length = (uint32_t)(space - at);
    if (head->target_length == 0) {
        return h1__bad(400, "the request line is malformed");
    }
    struct h1_verdict verdict = read_version(p, space + 1);
    if (verdict.kind != H1_OK) {
        return verdict;
    }
    return proper ? h1__ok() : h1__bad(400, "the target is malformed");
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
    if (!is_digit(at[9]) || !is_digit(at[10]) || !is_digit(at[11]) || at[9] == '0') {
        return h1__bad(502, "the status is not a number from 100 to 999");
    }
    struct becalm_text phrase = {at + 12, line - 13};
    if (!text_ended(phrase) && (!text_take(&phrase, ' ') || text_end(phrase.at) != at + line - 1)) {
        return h1__bad(502, "the status line is malformed");
    }
    p->head->phrase = (uint32_t)(phrase.at - at);
    p->head->phrase_length = (uint32_t)phrase.length;
    p->head->status = (uint32_t)((at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0'));
    p->head->version = at[7] == '0' ? HTTP_1_0 : HTTP_1_1;
    p->at = (uint32_t)line + 1;
    return h1__ok();
}

/* ---- fields ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The progress of read_fields(). No other pointer refers to it, so that it stays in registers. */
struct lines {
    const char *bytes;
    struct field *field;
    uint64_t seen;
    uint64_t repeated;
    uint32_t count;
    uint32_t max;
    bool plain; /* each has one space before its value, and none behind it */
};

/* Nearly every value has one space before it and none behind it. This function is for the rare other values. */

static __attribute__((noinline)) const char *behind_blanks(const char *at)
{
    while (is_blank(*at)) {
        at++;
    }
    return at;
}

static __attribute__((noinline)) const char *before_blanks(const char *value, const char *end)
{
    while (end > value && is_blank(end[-1])) {
        end--;
    }
    return end;
}

/* A line that begins with a blank goes on with the one before it (obs-fold), and has no name either. */
static __attribute__((noinline)) struct h1_verdict bad_name(const char *name, const char *name_ends)
{
    if (*name_ends == ':' && name_ends > name) {
        return h1__bad(431, "a field's name is too long");
    }
    return h1__bad(400, is_blank(*name) ? "a field goes over several lines" : "a field has no proper name");
}

/* One line: name, colon, value with blanks around it. Returns where the next one begins; NULL: *wrong says why not. */
static inline __attribute__((always_inline)) const char *read_field(struct lines *lines, const char *name,
                                                                    const char *last, struct h1_verdict *wrong)
{
    const char *colon = unusual(look_at_name, name, last);
    colon = *colon == ':' ? colon : name_end(colon);
    size_t name_length = (size_t)(colon - name);
    if (*colon != ':' || name_length - 1 >= UINT16_MAX) {
        *wrong = bad_name(name, colon);
        return NULL;
    }
    bool plain = colon[1] == ' ' && (unsigned char)colon[2] > ' ';
    const char *value = plain ? colon + 2 : behind_blanks(colon + 1);
    const char *line_end = unusual(look_at_text, value, last);
    line_end = *line_end == '\r' ? line_end : text_end(line_end);
    if (!line_ends(line_end)) {
        *wrong = h1__bad(400, "a field has forbidden bytes");
        return NULL;
    }
    const char *value_end = line_end;
    if ((unsigned char)value_end[-1] <= ' ') {
        value_end = before_blanks(value, line_end);
        plain = false;
    }
    if (lines->count == lines->max) {
        *wrong = h1__bad(431, "there are too many fields");
        return NULL;
    }
    enum field_id id = field_find(name, name_length);
    lines->field[lines->count++] = (struct field){
        .name = (uint32_t)(name - lines->bytes),
        .name_length = (uint16_t)name_length,
        .value = (uint32_t)(value - lines->bytes),
        .value_length = (uint32_t)(value_end - value),
        .id = (uint8_t)id,
        .hop = (FIELD_HOP & FIELD_BIT(id)) != 0,
    };
    lines->repeated |= lines->seen & FIELD_BIT(id);
    lines->seen |= FIELD_BIT(id);
    lines->plain &= plain;
    return line_end + 2;
}

/* All lines up to the empty one, which must be the last; there are AT_ONCE bytes at least. Without a call inside of the
 * loop its constants stay in registers. */
__attribute__((flatten)) static struct h1_verdict read_lines(struct parse *p, const char *bytes, size_t length)
{
    struct lines lines = {.bytes = bytes, .field = p->head->field, .max = p->fields_max, .plain = true};
    struct h1_verdict verdict = h1__ok();
    const char *at = bytes + p->at;
    const char *end = bytes + length;
    while (at != NULL && at < end && !line_ends(at)) {
        at = read_field(&lines, at, end - AT_ONCE, &verdict);
    }
    p->head->field_count = lines.count;
    p->head->seen = lines.seen;
    p->head->as_it_came = lines.plain && (lines.seen & FIELD_HOP) == 0;
    p->repeated = lines.repeated;
    if (at != NULL && at + 2 != end) {
        return h1__bad(400, "the fields do not end in an empty line");
    }
    return verdict;
}

/* The same of any number of bytes: trailers may have fewer. */
static struct h1_verdict read_fields(struct parse *p, size_t length)
{
    char few[AT_ONCE];
    if (length >= AT_ONCE) {
        return read_lines(p, p->bytes, length);
    }
    return read_lines(p, memcpy(few + AT_ONCE - length, p->bytes, length), length);
}

/* ---- a whole head ---- */

static void begin(struct parse *p, const char *bytes, struct head *head, uint32_t fields_max)
{
    memset(head, 0, offsetof(struct head, field)); /* not the fields: they are 4 KiB */
    head->bytes = bytes;
    *p = (struct parse){.bytes = bytes, .head = head, .fields_max = fields_max};
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

struct h1_verdict h1_parse_request(const char *bytes, size_t length, const struct h1_limits *limits, struct head *head)
{
    struct parse p;
    if (length > limits->head_bytes) {
        return h1_too_large(bytes, limits->head_bytes);
    }
    begin(&p, bytes, head, HEAD_REQUEST_FIELDS_MAX);
    if (length < AT_ONCE || !ends_in_line_feed(bytes, length)) { /* "G / HTTP/1.1" and two ends of lines have so many */
        return h1__bad(400, "the request line is malformed");
    }
    struct h1_verdict verdict = read_request_line(&p, length);
    if (verdict.kind == H1_OK) {
        verdict = read_fields(&p, length);
    }
    if (verdict.kind == H1_OK) {
        head->length = (uint32_t)length;
        verdict = h1__settle_request(head, p.repeated);
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
                                  bool to_connect, struct head *head)
{
    struct parse p;
    if (length > limits->head_bytes) {
        return h1__bad(502, "the answer's head is too large");
    }
    begin(&p, bytes, head, HEAD_FIELDS_MAX);
    if (!ends_in_line_feed(bytes, length)) {
        return h1__bad(502, "the status line is malformed");
    }
    struct h1_verdict verdict = read_status_line(&p, length);
    if (verdict.kind == H1_OK) {
        verdict = read_fields(&p, length);
    }
    if (verdict.kind == H1_OK) {
        head->length = (uint32_t)length;
        verdict = h1__settle_answer(head, p.repeated, body_of(head->status, to_head, to_connect));
    }
    if (verdict.kind == H1_BAD) {
        verdict.status = 502; /* 502 instead of the status for clients: the host broke the rule */
    }
    return verdict;
}

/* ---- trailers ---- */

/* Trailers that could mislead a receiver which merges trailers into the head: fields for one connection, routing,
 * credentials, how a body is read, and fields that only the gateway or a trusted peer may set. Framing and Host are
 * refused. */
#define NEVER_TRAILS                                                                                             \
    (FIELD_HOP | FIELD_BIT(FIELD_EXPECT) | FIELD_BIT(FIELD_VIA) | FIELD_BIT(FIELD_AUTHORIZATION) |               \
     FIELD_BIT(FIELD_COOKIE) | FIELD_BIT(FIELD_CONTENT_TYPE) | FIELD_BIT(FIELD_IDEMPOTENCY_KEY) |                \
     FIELD_BIT(FIELD_DEADLINE_MS) | FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) |         \
     FIELD_BIT(FIELD_BAGGAGE) | FIELD_BIT(FIELD_ENVOY_ATTEMPT_COUNT) | FIELD_BIT(FIELD_GRPC_PREVIOUS_ATTEMPTS) | \
     FIELD_BIT(FIELD_BECALM_RETRY) | FIELD_BIT(FIELD_ENVOY_OVERLOADED) | FIELD_BIT(FIELD_BECALM_EXPLAIN))

void h1_read_secrets(struct head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct field *field = &head->field[i];
        field->secret = field->value == field->name + field->name_length + sizeof ":  " - 1;
        head->secret |= field->secret;
    }
}

static bool may_trail(const struct field *field, struct becalm_text name)
{
    static const char *const never[] = {
        "set-cookie",    "set-cookie2",      "www-authenticate",     "proxy-authentication-info",
        "x-api-key",     "x-auth-token",     "x-amz-security-token", "content-encoding",
        "content-range", "content-location", "max-forwards",         "forwarded",
        "x-real-ip",
    };
    if ((NEVER_TRAILS >> field->id & 1) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        if (text_is_word(name, never[i])) {
            return false;
        }
    }
    return !text_take_word(&name, "x-forwarded-");
}

static bool is_metadata(const struct field *field, struct becalm_text name)
{
    const uint64_t never = FIELD_HOP | FIELD_BIT(FIELD_BECALM_RETRY) | FIELD_BIT(FIELD_BECALM_EXPLAIN);
    (void)name;
    return (never >> field->id & 1) == 0;
}

static void keep_trailing(struct head *head, bool (*keeps)(const struct field *, struct becalm_text name))
{
    uint32_t kept = 0;
    head->seen = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (keeps(&head->field[i], field_name(head, &head->field[i]))) {
            head->seen |= FIELD_BIT(head->field[i].id);
            head->field[kept++] = head->field[i];
        }
    }
    head->field_count = kept;
}

static struct h1_verdict parse_trailers(const char *bytes, size_t length, struct head *head)
{
    struct parse p;
    begin(&p, bytes, head, HEAD_REQUEST_FIELDS_MAX);
    if (!ends_in_line_feed(bytes, length) || length > H1_TRAILER_BYTES) {
        return h1__bad(400, "the trailers are malformed or too large");
    }
    struct h1_verdict verdict = read_fields(&p, length);
    if (verdict.kind != H1_OK) {
        return verdict;
    }
    if (head_has(head, FIELD_CONTENT_LENGTH) || head_has(head, FIELD_TRANSFER_ENCODING) ||
        head_has(head, FIELD_TRAILER) || head_has(head, FIELD_HOST)) {
        return h1__bad(400, "the trailers have a field of framing or routing");
    }
    head->length = (uint32_t)length;
    if (!head->as_it_came) {
        h1_read_secrets(head);
    }
    return h1__ok();
}

struct h1_verdict h1_parse_trailers(const char *bytes, size_t length, struct head *head)
{
    struct h1_verdict verdict = parse_trailers(bytes, length, head);
    if (verdict.kind == H1_OK) {
        keep_trailing(head, may_trail);
    }
    return verdict;
}

struct h1_verdict h1_parse_metadata(const char *bytes, size_t length, struct head *head)
{
    struct h1_verdict verdict = parse_trailers(bytes, length, head);
    if (verdict.kind == H1_OK) {
        keep_trailing(head, is_metadata);
    }
    return verdict;
}

/* Most messages have none: only those that do pay for a head on the stack. */
__attribute__((noinline)) const char *h1__trailers_wrong(const char *bytes, size_t length)
{
    UNFILLED struct head head;
    return h1_parse_trailers(bytes, length, &head).what;
}

/* ---- where a head begins and ends ---- */

/* Behind a line feed: the end of an empty line, or NULL. */
static inline const char *empty_line_end(const char *at, const char *end)
{
    const char *feed = at + (at < end && at[0] == '\r'); /* an empty line may have one */
    return feed < end && *feed == '\n' ? feed + 1 : NULL;
}

static const char *head_end_by_line(const char *at, const char *end)
{
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        const char *found = empty_line_end(++at, end);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

#if defined __SSE2__
/* Bit n: byte n of the first sixteen is a line feed, and a byte follows that begins no field of ASCII: CR or below. */
static inline unsigned feeds_before_no_field(const char *seventeen)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)seventeen);
    __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(seventeen + 1));
    __m128i low = _mm_cmpgt_epi8(_mm_set1_epi8('\r' + 1), next);
    return (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')), low));
}

static const char *first_empty_line(const char *from, unsigned feeds, const char *end)
{
    const char *found = NULL;
    for (; feeds != 0 && found == NULL; feeds &= feeds - 1) {
        found = empty_line_end(from + __builtin_ctz(feeds) + 1, end);
    }
    return found;
}

/* The same for at least seventeen bytes. The last ones may be examined twice, with the same result. */
static const char *head_end_by_sixteen(const char *at, const char *end)
{
    const char *last = end - 17;
    for (; at < last; at += 16) {
        unsigned feeds = feeds_before_no_field(at);
        const char *found = feeds == 0 ? NULL : first_empty_line(at, feeds, end);
        if (found != NULL) {
            return found;
        }
    }
    return first_empty_line(last, feeds_before_no_field(last), end);
}
#endif

size_t h1_head_end(const char *bytes, size_t length, size_t seen)
{
    const char *end = bytes + length;
    const char *at =
        bytes + (seen < 2 ? 0 : seen - 2); /* a line feed there may have waited for the bytes that came now */
#if defined __SSE2__
    const char *found = end - at >= 17 ? head_end_by_sixteen(at, end) : head_end_by_line(at, end);
#else
    const char *found = head_end_by_line(at, end);
#endif
    return found == NULL ? 0 : (size_t)(found - bytes);
}

size_t h1_leading_blank(const char *bytes, size_t length)
{
    size_t blank = 0;
    while (blank < 4 && length - blank >= 2 && line_ends(bytes + blank)) {
        blank += 2;
    }
    return blank;
}
