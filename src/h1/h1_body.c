/* SPDX-License-Identifier: MIT */
#include "h1_internal.h"

/* The chunk decoder takes one byte at a time outside of payload and looks neither ahead nor back, so that it can't
 * matter how a body was cut into reads. */

_Static_assert(sizeof(struct h1_body) == 16, "every connection in use has two of these");

enum state {
    SIZE_FIRST, /* at the first digit of a size */
    SIZE,
    SIZE_BLANK, /* of an answer: in blanks behind a size */
    EXTENSION,
    SIZE_LF,
    PAYLOAD,
    PAYLOAD_CR,
    PAYLOAD_LF,
    LAST,         /* behind the line of the last chunk: an empty line, or trailers */
    LAST_LF,      /* no trailers */
    TRAILER_NAME, /* in a line of the trailers, which is not empty */
    TRAILER_LF,
    TRAILER_NEXT, /* at the beginning of a line of the trailers */
    TRAILER_LAST_LF,
};

enum { SIZE_DIGITS_MAX = 16 };

void h1_body_init(struct h1_body *body, const struct head *head)
{
    *body = (struct h1_body){.framing = (uint8_t)head->framing, .state = SIZE_FIRST, .answer = head->status != 0};
    if (head->framing == BODY_LENGTH) {
        body->left = head->content_length;
    }
    body->ended = head->framing == BODY_NONE || (head->framing == BODY_LENGTH && body->left == 0);
}

static struct h1_piece piece_bad(const char *what)
{
    return (struct h1_piece){.kind = H1_PIECE_BAD, .what = what};
}

static struct h1_piece piece_end(struct h1_body *body)
{
    body->ended = true;
    return (struct h1_piece){.kind = H1_PIECE_END};
}

/* At least one byte is there. */
static struct h1_piece piece_data(const char **at, size_t length)
{
    struct h1_piece piece = {.kind = H1_PIECE_DATA, .at = *at, .length = length};
    *at += length;
    return piece;
}

static size_t room(const struct h1_body *body, const char *at, const char *end)
{
    size_t there = (size_t)(end - at);
    return there < body->left ? there : (size_t)body->left;
}

/* ---- chunks ---- */

static int hex_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    c = to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In a size line: sets the next state. NULL, or the error. */
static const char *take_size(struct h1_body *body, char c)
{
    int digit = hex_value(c);
    if (digit >= 0) {
        if (++body->line_bytes > SIZE_DIGITS_MAX || body->left > INT64_MAX >> 4) {
            return "a chunk's size is too long"; /* for 63 bits, as in many other parsers */
        }
        body->left = body->left << 4 | (uint64_t)digit;
        body->state = SIZE;
        return NULL;
    }
    bool blank = body->answer && (c == ' ' || c == '\t');
    if (body->state == SIZE_FIRST || (c != '\r' && c != ';' && !blank)) {
        return "a chunk's size is malformed";
    }
    body->line_bytes = blank;
    body->state = c == '\r' ? SIZE_LF : blank ? SIZE_BLANK : EXTENSION;
    return NULL;
}

/* Blanks count as an extension does. */
static const char *take_blank(struct h1_body *body, char c)
{
    if (c == '\r') {
        body->state = SIZE_LF;
        return NULL;
    }
    if (c == ';') {
        body->state = EXTENSION;
    } else if (c != ' ' && c != '\t') {
        return "a chunk's size is malformed";
    }
    return ++body->line_bytes > H1_EXTENSION_BYTES ? "a chunk's extension is too long" : NULL;
}

static const char *take_extension(struct h1_body *body, char c)
{
    unsigned char u = (unsigned char)c;
    if (c == '\r') {
        body->state = SIZE_LF;
        return NULL;
    }
    if ((u < ' ' && c != '\t') || u == 0x7f) {
        return "a chunk's extension has a forbidden byte";
    }
    return ++body->line_bytes > H1_EXTENSION_BYTES ? "a chunk's extension is too long" : NULL;
}

static const char *take_exactly(struct h1_body *body, char c, char expected, enum state next)
{
    if (c != expected) {
        return "a line of a chunk does not end in CR LF";
    }
    body->state = (uint8_t)next;
    return NULL;
}

/* One byte between payloads. NULL, or the error. */
static const char *take_frame(struct h1_body *body, char c)
{
    switch ((enum state)body->state) {
    case SIZE_FIRST:
    case SIZE:
        return take_size(body, c);
    case SIZE_BLANK:
        return take_blank(body, c);
    case EXTENSION:
        return take_extension(body, c);
    case SIZE_LF:
        body->line_bytes = 0;
        return take_exactly(body, c, '\n', body->left == 0 ? LAST : PAYLOAD);
    case PAYLOAD_CR:
        return take_exactly(body, c, '\r', PAYLOAD_LF);
    case PAYLOAD_LF:
        return take_exactly(body, c, '\n', SIZE_FIRST);
    case PAYLOAD:
    case LAST:
    case LAST_LF:
    case TRAILER_NAME:
    case TRAILER_LF:
    case TRAILER_NEXT:
    case TRAILER_LAST_LF:
        break;
    }
    BECALM_UNREACHABLE();
}

/* ---- trailers ---- */

/* One byte of the trailers; only their lines matter here. False: a CR or LF alone. */
static bool take_trailer(struct h1_body *body, char c)
{
    switch ((enum state)body->state) {
    case TRAILER_NAME:
        body->state = c == '\r' ? TRAILER_LF : TRAILER_NAME;
        return c != '\n';
    case TRAILER_NEXT:
        body->state = c == '\r' ? TRAILER_LAST_LF : TRAILER_NAME;
        return c != '\n';
    case TRAILER_LF:
        body->state = TRAILER_NEXT;
        return c == '\n';
    case TRAILER_LAST_LF:
        body->ended = true;
        return c == '\n';
    case SIZE_FIRST:
    case SIZE:
    case SIZE_BLANK:
    case EXTENSION:
    case SIZE_LF:
    case PAYLOAD:
    case PAYLOAD_CR:
    case PAYLOAD_LF:
    case LAST:
    case LAST_LF:
        break;
    }
    BECALM_UNREACHABLE();
}

/* All bytes of the trailers that are there and well formed; an error is reported when its byte comes first. */
static struct h1_piece next_trailer(struct h1_body *body, const char **at, const char *end)
{
    struct h1_piece piece = {.kind = H1_PIECE_TRAILER, .at = *at};
    while (*at < end && !body->ended) {
        struct h1_body before = *body;
        const char *what = !take_trailer(body, **at)               ? "a line of the trailers does not end in CR LF"
                           : ++body->line_bytes > H1_TRAILER_BYTES ? "the trailers are too large"
                                                                   : NULL;
        if (what != NULL) {
            *body = before;
            if (*at == piece.at) {
                return piece_bad(what);
            }
            break;
        }
        ++*at;
    }
    piece.length = (size_t)(*at - piece.at);
    return piece;
}

static struct h1_piece next_last(struct h1_body *body, const char **at, const char *end)
{
    if (body->state == LAST && **at != '\r') {
        body->state = TRAILER_NEXT;
        return next_trailer(body, at, end);
    }
    if (body->state == LAST) {
        body->state = LAST_LF;
        ++*at;
    }
    if (*at == end) {
        return (struct h1_piece){.kind = H1_PIECE_NONE};
    }
    if (**at != '\n') {
        return piece_bad("the last chunk does not end in CR LF");
    }
    ++*at;
    return piece_end(body);
}

/* ---- all of it ---- */

static struct h1_piece next_payload(struct h1_body *body, const char **at, const char *end)
{
    size_t length = room(body, *at, end);
    body->left -= length;
    body->state = body->left == 0 ? PAYLOAD_CR : PAYLOAD;
    return piece_data(at, length);
}

static struct h1_piece next_chunked(struct h1_body *body, const char **at, const char *end)
{
    while (*at < end) {
        if (body->state == PAYLOAD) {
            return next_payload(body, at, end);
        }
        if (body->state == LAST || body->state == LAST_LF) {
            return next_last(body, at, end);
        }
        if (body->state > LAST_LF) {
            return next_trailer(body, at, end);
        }
        const char *what = take_frame(body, **at);
        if (what != NULL) {
            return piece_bad(what);
        }
        ++*at;
    }
    return (struct h1_piece){.kind = H1_PIECE_NONE};
}

struct h1_piece h1_body_next(struct h1_body *body, const char **at, const char *end)
{
    if (body->ended) {
        return piece_end(body);
    }
    if (*at == end) {
        return (struct h1_piece){.kind = H1_PIECE_NONE};
    }
    switch ((enum body_framing)body->framing) {
    case BODY_NONE:
        return piece_end(body);
    case BODY_UNTIL_CLOSE:
        return piece_data(at, (size_t)(end - *at));
    case BODY_OPEN:
        return next_chunked(body, at, end);
    case BODY_LENGTH: {
        size_t length = room(body, *at, end);
        body->left -= length;
        body->ended = body->left == 0;
        return piece_data(at, length);
    }
    }
    BECALM_UNREACHABLE();
}

bool h1_body_closed(struct h1_body *body)
{
    body->ended = body->ended || body->framing == BODY_UNTIL_CLOSE;
    return body->ended;
}
