/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H1_H1_H
#define BECALM_H1_H1_H

/* The HTTP/1 codec: bytes into heads and bodies, strictly. It knows no sockets and allocates nothing. Whatever is
 * ambiguous is refused, never guessed: docs/http1.md lists what, and with which status.
 *
 * A head is parsed whole: h1_head_end() finds where it may end as bytes arrive, each byte looked at once; then
 * h1_parse_request() or h1_parse_answer() takes all of it. So there is no parser state between reads, and an idle
 * connection owns nothing. */

#include "message/draft.h"
#include "message/head.h"
#include "message/text_sink.h"

#include <string.h>

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
struct h1_verdict h1_parse_request(const char *bytes, size_t length, const struct h1_limits *, struct head *);
struct h1_verdict h1_parse_answer(const char *bytes, size_t length, const struct h1_limits *, bool to_head,
                                  bool to_connect, struct head *);

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
struct becalm_text h1_authority(const struct head *);

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

void h1_body_init(struct h1_body *, const struct head *);

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
 * H1_PIECE_BAD nothing more may be taken. With BODY_UNTIL_CLOSE the end never comes from here. */
struct h1_piece h1_body_next(struct h1_body *, const char **at, const char *end);

/* The end of the connection: is the body whole by that? Only BODY_UNTIL_CLOSE, or one that had ended. */
bool h1_body_closed(struct h1_body *);

/* Checks a whole trailer section (ends with an empty line) and keeps the fields that may be passed on: never those of
 * framing, routing, credentials or one connection. H1_BAD if it is malformed or has framing fields. */
struct h1_verdict h1_parse_trailers(const char *bytes, size_t length, struct head *);
/* The same for gRPC, whose trailers are metadata like any: all are kept but fields for one connection, and what only we
 * may say. */
struct h1_verdict h1_parse_metadata(const char *bytes, size_t length, struct head *);
/* NULL: there are none, or they are well formed; else which rule they break. A message with bad trailers was not meant
 * as it was read. */
const char *h1__trailers_wrong(const char *bytes, size_t length);
static inline const char *h1_trailers_wrong(const char *bytes, size_t length)
{
    return length == 0 ? NULL : h1__trailers_wrong(bytes, length);
}

/* ---- writing ---- */

void h1_put_line(struct text_sink *, struct becalm_text name, struct becalm_text value); /* "name: value\r\n" */
void h1_put_number_line(struct text_sink *, struct becalm_text name, uint64_t number);   /* "name: 42\r\n" */

/* The same with zero-terminated names; here, so that the length of a constant is one. */
static inline void h1_put_field(struct text_sink *out, const char *name, struct becalm_text value)
{
    h1_put_line(out, (struct becalm_text){name, strlen(name)}, value);
}

static inline void h1_put_number_field(struct text_sink *out, const char *name, uint64_t number)
{
    h1_put_number_line(out, (struct becalm_text){name, strlen(name)}, number);
}

/* "HTTP/1.1 200 OK\r\n": with the registered phrase, or with that of an answer that came. */
void h1_put_status(struct text_sink *, uint32_t status);
void h1_put_status_line(struct text_sink *, uint32_t status, struct becalm_text phrase);

/* Every field of the head that is not hop-by-hop and whose id is not in `skip` (bit n: id n), rebuilt. */
void h1_put_fields(struct text_sink *, const struct head *, uint64_t skip);

/* A whole head, with the empty line behind it. An answer is for a client that speaks this version: HTTP/1.0 knows no
 * chunks and no trailers, and is told that its connection goes on. */
void h1_put_request(struct text_sink *, const struct draft *);
void h1_put_answer(struct text_sink *, const struct draft *, enum http_version to);

/* "1f4\r\n" before a chunk of this length (not 0); the chunk is followed by "\r\n", the last one is "0\r\n\r\n" or has
 * trailers in between. `text` has room for 20 bytes. Returns the length. */
size_t h1_chunk_head(char *text, size_t length);

#endif
