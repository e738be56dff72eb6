/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H1_H1_H
#define BECALM_H1_H1_H

/* The HTTP/1 codec: bytes into heads and bodies, strictly. It knows no sockets and allocates nothing. Whatever is
 * ambiguous is refused, never guessed: docs/http1.md lists what, and with which status.
 *
 * A head is parsed whole: h1_head_end() finds where it may end as bytes arrive, each byte looked at once; then
 * h1_parse_request() or h1_parse_answer() takes all of it. So there is no parser state between reads, and an idle
 * connection owns nothing. */

#include <becalm/http.h>

#include <string.h>

/* Fields that somebody here cares about, by name; all others are H1_OTHER. The order is of no importance. */
/* clang-format off */
#define H1_NAMES(X) \
    X(H1_HOST, "host") X(H1_CONNECTION, "connection") X(H1_CONTENT_LENGTH, "content-length") \
    X(H1_TRANSFER_ENCODING, "transfer-encoding") X(H1_TE, "te") X(H1_TRAILER, "trailer") X(H1_UPGRADE, "upgrade") \
    X(H1_EXPECT, "expect") X(H1_KEEP_ALIVE, "keep-alive") X(H1_PROXY_CONNECTION, "proxy-connection") \
    X(H1_PROXY_AUTHORIZATION, "proxy-authorization") X(H1_PROXY_AUTHENTICATE, "proxy-authenticate") \
    X(H1_WWW_AUTHENTICATE, "www-authenticate") \
    X(H1_HTTP2_SETTINGS, "http2-settings") \
    X(H1_VIA, "via") X(H1_DATE, "date") X(H1_AUTHORIZATION, "authorization") X(H1_COOKIE, "cookie") \
    X(H1_CONTENT_TYPE, "content-type") X(H1_USER_AGENT, "user-agent") X(H1_REFERER, "referer") \
    X(H1_ORIGIN, "origin") X(H1_ACCEPT, "accept") \
    X(H1_IDEMPOTENCY_KEY, "idempotency-key") X(H1_REQUEST_ID, "x-request-id") X(H1_TRACEPARENT, "traceparent") \
    X(H1_DEADLINE_MS, "x-request-deadline-ms") X(H1_GRPC_TIMEOUT, "grpc-timeout") \
    X(H1_ENVOY_EXPECTED_MS, "x-envoy-expected-rq-timeout-ms") X(H1_BAGGAGE, "baggage") \
    X(H1_ENVOY_ATTEMPT_COUNT, "x-envoy-attempt-count") X(H1_GRPC_PREVIOUS_ATTEMPTS, "grpc-previous-rpc-attempts") \
    X(H1_RETRY_AFTER, "retry-after") X(H1_GRPC_STATUS, "grpc-status") X(H1_GRPC_PUSHBACK, "grpc-retry-pushback-ms") \
    X(H1_BECALM_RETRY, "becalm-retry") X(H1_ENVOY_OVERLOADED, "x-envoy-overloaded") \
    X(H1_PROXY_STATUS, "proxy-status") X(H1_BECALM_EXPLAIN, "becalm-explain")
/* clang-format on */

enum h1_name {
    H1_OTHER,
#define H1_ENUM(id, text) id,
    H1_NAMES(H1_ENUM)
#undef H1_ENUM
        H1_NAME_COUNT
};

#define H1_BIT(name) (UINT64_C(1) << (name)) /* in a set of names */

/* One field. Offsets are into the head's bytes, so that they survive a copy. */
struct h1_field {
    uint32_t name;
    uint32_t value; /* without blanks around it */
    uint32_t value_length;
    uint16_t name_length;
    uint8_t id; /* enum h1_name */
    bool hop;   /* named in Connection, or hop-by-hop by itself, or of no meaning here: not passed on */
};

enum h1_framing {
    H1_NO_BODY,
    H1_LENGTH,     /* content_length bytes */
    H1_CHUNKED,    /* chunks */
    H1_UNTIL_CLOSE /* answers only */
};

#define H1_FIELDS_MAX         256u /* of an answer */
#define H1_REQUEST_FIELDS_MAX 128u /* of a request, or of trailers */

struct h1_head {
    uint32_t length; /* of the head, the empty line included */
    uint32_t method; /* requests: offsets and lengths */
    uint32_t method_length;
    uint32_t target;
    uint32_t target_length;
    uint32_t status; /* answers: it, and its phrase, which may be empty */
    uint32_t phrase;
    uint32_t phrase_length;
    uint32_t minor;  /* HTTP/1.minor: 0 or 1 */
    bool keep_alive; /* as its version and Connection say */
    bool close;      /* Connection: close was said */
    bool expects_continue;
    bool upgrades;     /* Connection: upgrade and an Upgrade field */
    bool websocket;    /* and it is exactly websocket */
    bool one_protocol; /* or at least one protocol and no list: h1_find(H1_UPGRADE) */
    bool te_trailers;  /* TE: trailers: its sender reads them */
    bool names_fields; /* Connection names fields that go no further, and maybe trailers */
    enum h1_framing framing;
    uint64_t content_length;
    uint64_t seen; /* bit n: a field with id n is there */
    uint32_t field_count;
    struct h1_field field[H1_FIELDS_MAX];
};

struct h1_limits {
    uint32_t head_bytes; /* more: 431, or 414 while it is still the request line */
};

/* What came of parsing. `status` is what a client is told (400, 414, 431, 501, 505); a host's bad answer is 502
 * whatever it says. `what` is a constant sentence for the problem document and the log. */
struct h1_verdict {
    enum { H1_OK, H1_MORE, H1_BAD } kind;
    uint32_t status;
    const char *what;
};

/* Where a head ends, or may end if it is badly formed ("\n\n" counts too: the parser will refuse it at once rather than
 * wait for more): the length with the empty line, 0: not yet. Looks only at bytes from `seen` on, and a few before. */
size_t h1_head_end(const char *bytes, size_t length, size_t seen);

/* Empty lines before a request are allowed (RFC 9112, 2.2): how many bytes of them, at most four, to leave out. */
size_t h1_leading_blank(const char *bytes, size_t length);

/* What to say when the bytes have reached the limit and there is no end of a head: 414 or 431. */
struct h1_verdict h1_too_large(const char *bytes, size_t length);

/* `length` is what h1_head_end() said. H1_OK or H1_BAD. The answer's framing depends on the request's method. Only what
 * is said to be filled for H1_OK may be read, and of the fields only the first field_count. */
struct h1_verdict h1_parse_request(const char *bytes, size_t length, const struct h1_limits *, struct h1_head *);
struct h1_verdict h1_parse_answer(const char *bytes, size_t length, const struct h1_limits *, bool to_head,
                                  bool to_connect, struct h1_head *);

/* Of a head at `bytes`: a field's name and value; the first with this id, or an absent text. */
struct becalm_text h1_name(const char *bytes, const struct h1_field *);
struct becalm_text h1_value(const char *bytes, const struct h1_field *);
struct becalm_text h1_find(const char *bytes, const struct h1_head *, enum h1_name);
struct becalm_text h1_find_other(const char *bytes, const struct h1_head *, struct becalm_text name);
struct becalm_text h1_find_last(const char *bytes, const struct h1_head *, struct becalm_text name);

/* Is there a field of this name, in any case, with exactly this value? Either will do, if there are two of the name. */
bool h1_has_value(const char *bytes, const struct h1_head *, struct becalm_text name, struct becalm_text value);

static inline bool h1_has(const struct h1_head *head, enum h1_name name)
{
    return (head->seen >> name & 1) != 0;
}

struct becalm_text h1_method(const char *bytes, const struct h1_head *);

/* The request's target in parts. Origin form: path. Absolute form (http://host/path): authority and path. Authority
 * form (CONNECT): authority. Asterisk: path "*". False: none of these, another scheme than http, a fragment, or an
 * authority that is not host[:port]; never for the target of a request that h1_parse_request() took. */
struct h1_target {
    struct becalm_text authority; /* host[:port]; absent in origin form */
    struct becalm_text path;      /* "/" if there is none in absolute form; with the query */
};
bool h1_target_split(struct becalm_text target, bool connect, struct h1_target *);

/* Who is asked: the target's authority, which wins (RFC 9112, 3.2.2) and has to replace Host in what is passed on; else
 * Host, which may be empty; absent only on HTTP/1.0. */
struct becalm_text h1_authority(const char *bytes, const struct h1_head *);

/* A body as it arrives: 16 bytes, filled by h1_body_init(). */
struct h1_body {
    uint64_t left;       /* LENGTH, CHUNKED: payload bytes missing of the body or the chunk */
    uint16_t line_bytes; /* CHUNKED: of the present size, extension or trailers, which have limits */
    uint8_t framing;
    uint8_t state; /* of the chunk decoder; its own */
    bool ended;
    bool answer; /* hosts may put blanks behind a chunk's size, clients may not */
};

#define H1_TRAILER_BYTES   8192u
#define H1_EXTENSION_BYTES 256u

void h1_body_init(struct h1_body *, const struct h1_head *);

/* What came next in a body. */
enum h1_piece_kind {
    H1_PIECE_NONE,    /* all input used: more is needed */
    H1_PIECE_DATA,    /* payload */
    H1_PIECE_TRAILER, /* bytes of the trailers, as they came, with the empty line: collect H1_TRAILER_BYTES */
    H1_PIECE_END,     /* the message is over; what is left of the input belongs to the next one */
    H1_PIECE_BAD      /* malformed; `what` says how */
};

struct h1_piece {
    enum h1_piece_kind kind;
    const char *at; /* DATA, TRAILER */
    size_t length;
    const char *what; /* BAD */
};

/* Takes the next piece from *at .. end and moves *at behind it. A body without trailers has no H1_PIECE_TRAILER. Behind
 * H1_PIECE_BAD nothing more may be taken. With H1_UNTIL_CLOSE the end never comes from here. */
struct h1_piece h1_body_next(struct h1_body *, const char **at, const char *end);

/* The end of the connection: is the body whole by that? Only H1_UNTIL_CLOSE, or one that had ended. */
bool h1_body_closed(struct h1_body *);

/* Checks a whole trailer section (ends with an empty line) and keeps the fields that may be passed on: never those of
 * framing, routing, credentials or one connection. H1_BAD if it is malformed or has framing fields. */
struct h1_verdict h1_parse_trailers(const char *bytes, size_t length, struct h1_head *);

/* ---- writing ---- */

/* Text that grows in a buffer of fixed size; what does not fit sets `full` and is left out. */
struct h1_out {
    char *at;
    size_t length;
    size_t size;
    bool full;
};

void h1_put(struct h1_out *, struct becalm_text);
void h1_put_number(struct h1_out *, uint64_t);
void h1_put_line(struct h1_out *, struct becalm_text name, struct becalm_text value); /* "name: value\r\n" */
void h1_put_number_line(struct h1_out *, struct becalm_text name, uint64_t number);   /* "name: 42\r\n" */

/* The same with zero-terminated names; here, so that the length of a constant is one. */
static inline void h1_put_chars(struct h1_out *out, const char *text)
{
    h1_put(out, (struct becalm_text){text, strlen(text)});
}

static inline void h1_put_field(struct h1_out *out, const char *name, struct becalm_text value)
{
    h1_put_line(out, (struct becalm_text){name, strlen(name)}, value);
}

static inline void h1_put_number_field(struct h1_out *out, const char *name, uint64_t number)
{
    h1_put_number_line(out, (struct becalm_text){name, strlen(name)}, number);
}

/* "HTTP/1.1 200 OK\r\n": with the registered phrase, or with that of an answer that came. */
void h1_put_status(struct h1_out *, uint32_t status);
void h1_put_status_line(struct h1_out *, uint32_t status, struct becalm_text phrase);
void h1_put_status_begin(struct h1_out *, uint32_t status); /* "HTTP/1.1 200 " */
struct becalm_text h1_phrase(const char *bytes, const struct h1_head *);
const char *h1_status_phrase(uint32_t status); /* "" for unknown ones */

/* Every field of the head that is not hop-by-hop and whose id is not in `skip` (bit n: id n), rebuilt. */
void h1_put_fields(struct h1_out *, const char *bytes, const struct h1_head *, uint64_t skip);

/* "1f4\r\n" before a chunk of this length (not 0); the chunk is followed by "\r\n", the last one is "0\r\n\r\n" or has
 * trailers in between. `text` has room for 20 bytes. Returns the length. */
size_t h1_chunk_head(char *text, size_t length);

/* "Sun, 06 Nov 1994 08:49:37 GMT", 29 bytes and a zero. */
void h1_date(char text[30], int64_t seconds);

#endif
