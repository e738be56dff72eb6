/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H1_H1_H
#define BECALM_H1_H1_H

/* The HTTP/1 codec: parses bytes into heads and bodies, strictly. It knows no sockets and allocates nothing. Ambiguous
 * input is refused, never guessed: docs/http1.md lists the rules and the status of each.
 *
 * A head is parsed as a whole: h1_head_end() finds its end as bytes arrive, and examines each byte once; then
 * h1_parse_request() or h1_parse_answer() parses all of it. So there is no parser state between reads, and an idle
 * connection has no memory for one. */

#include "message/draft.h"
#include "message/head.h"
#include "message/text_sink.h"

#include <string.h>

struct h1_limits {
    uint32_t head_bytes; /* more: 431, or 414 while it is still the request line */
};

/* The result of parsing. `status` is the answer to a client (400, 414, 431, 501, 505); for a host's bad answer the
 * client gets 502 instead. `what` is a constant sentence for the problem document and the log. */
struct h1_verdict {
    enum { H1_OK, H1_MORE, H1_BAD } kind;
    uint32_t status;
    const char *what;
};

/* The length of a head with its empty line; 0: its end is not there yet. "\n\n" counts as an end, too: the parser will
 * refuse this head at once instead of waiting for more. Examines only bytes from `seen` on, and a few before. */
size_t h1_head_end(const char *bytes, size_t length, size_t seen);

/* Empty lines before a request are allowed (RFC 9112, 2.2): returns how many bytes of them to skip, at most four. */
size_t h1_leading_blank(const char *bytes, size_t length);

/* The verdict when the bytes have reached the limit without the end of a head: 414 or 431. */
struct h1_verdict h1_too_large(const char *bytes, size_t length);

/* `length` comes from h1_head_end(). H1_OK or H1_BAD. The answer's framing depends on the request's method. Read the
 * head only after H1_OK, and of the fields only the first field_count. */
struct h1_verdict h1_parse_request(const char *bytes, size_t length, const struct h1_limits *, struct head *);
struct h1_verdict h1_parse_answer(const char *bytes, size_t length, const struct h1_limits *, bool to_head,
                                  bool to_connect, struct head *);

/* The request's target in parts. Origin form: path. Absolute form (http://host/path): authority and path. Authority
 * form (CONNECT): authority. Asterisk: path "*". False: none of these, another scheme than http, a fragment, or an
 * authority that is not host[:port]. Always true for the target of a request that h1_parse_request() accepted. */
struct h1_target {
    struct becalm_text authority; /* host[:port]; absent in origin form */
    struct becalm_text path;      /* "/" if there is none in absolute form; with the query */
};
bool h1_target_split(struct becalm_text target, bool connect, struct h1_target *);

/* The authority of the request: that of the target, which wins (RFC 9112, 3.2.2) and has to replace Host in the request
 * to a host; else Host, which may be empty; absent only on HTTP/1.0. */
struct becalm_text h1_authority(const struct head *);

/* A body as it arrives: 16 bytes, filled by h1_body_init(). */
struct h1_body {
    uint64_t left;       /* LENGTH, CHUNKED: payload bytes missing of the body or the chunk */
    uint16_t line_bytes; /* CHUNKED: of the present size, extension or trailers, which have limits */
    uint8_t framing;
    uint8_t state; /* of the chunk decoder; private */
    bool ended;
    bool answer; /* hosts may put blanks after a chunk's size, clients may not */
};

#define H1_TRAILER_BYTES   8192u
#define H1_EXTENSION_BYTES 256u

void h1_body_init(struct h1_body *, const struct head *);

/* The next piece of a body. */
enum h1_piece_kind {
    H1_PIECE_NONE,    /* all input used: more is needed */
    H1_PIECE_DATA,    /* payload */
    H1_PIECE_TRAILER, /* bytes of the trailers, as they came, with the empty line: collect H1_TRAILER_BYTES */
    H1_PIECE_END,     /* the message is over; the rest of the input belongs to the next message */
    H1_PIECE_BAD      /* malformed; `what` has the error */
};

struct h1_piece {
    enum h1_piece_kind kind;
    const char *at; /* DATA, TRAILER */
    size_t length;
    const char *what; /* BAD */
};

/* Takes the next piece from *at .. end and moves *at after it. A body without trailers has no H1_PIECE_TRAILER. Do not
 * call it again after H1_PIECE_BAD. With BODY_UNTIL_CLOSE it never returns H1_PIECE_END. */
struct h1_piece h1_body_next(struct h1_body *, const char **at, const char *end);

/* The connection has ended: is the body complete? Only with BODY_UNTIL_CLOSE, or if it had ended before. */
bool h1_body_closed(struct h1_body *);

/* Checks a whole trailer section (it ends with an empty line) and keeps the fields that may be passed on: never fields
 * of framing, routing, credentials or one connection. H1_BAD if it is malformed or has framing fields. */
struct h1_verdict h1_parse_trailers(const char *bytes, size_t length, struct head *);
/* The same for gRPC, whose trailers are ordinary metadata: all are kept except fields for one connection, and fields
 * that only the gateway may set. */
struct h1_verdict h1_parse_metadata(const char *bytes, size_t length, struct head *);
/* NULL: there are no trailers, or they are well formed; else the rule that they break. A message with bad trailers may
 * have been framed differently by its sender, so it is refused. */
const char *h1__trailers_wrong(const char *bytes, size_t length);
static inline const char *h1_trailers_wrong(const char *bytes, size_t length)
{
    return length == 0 ? NULL : h1__trailers_wrong(bytes, length);
}

/* ---- writing ---- */

void h1_put_line(struct text_sink *, struct becalm_text name, struct becalm_text value); /* "name: value\r\n" */
/* Turns the last line into that of a field which HTTP/2 has marked as never indexed: two blanks stand before its value.
 * HTTP/1 takes them for one, and nothing here writes them to a peer. So the mark outlives each copy of a head's text,
 * and of trailers that wait. h1_read_secrets() finds these lines in a parsed head, and trailers are always searched for
 * them. If an HTTP/1 peer writes a line with two blanks there, its field is only compressed less well. */
void h1_hide_line(struct text_sink *, size_t value_length);
void h1_read_secrets(struct head *);
void h1_put_number_line(struct text_sink *, struct becalm_text name, uint64_t number); /* "name: 42\r\n" */

/* The same with zero-terminated names; inline, so that the compiler knows the length of a constant. */
static inline void h1_put_field(struct text_sink *out, const char *name, struct becalm_text value)
{
    h1_put_line(out, (struct becalm_text){name, strlen(name)}, value);
}

static inline void h1_put_number_field(struct text_sink *out, const char *name, uint64_t number)
{
    h1_put_number_line(out, (struct becalm_text){name, strlen(name)}, number);
}

/* "HTTP/1.1 200 OK\r\n": with the registered phrase, or with the given one of a host's answer. */
void h1_put_status(struct text_sink *, uint32_t status);
void h1_put_status_line(struct text_sink *, uint32_t status, struct becalm_text phrase);

/* Every field of the head that is not hop-by-hop and whose id is not in `skip` (bit n: id n), rebuilt. */
void h1_put_fields(struct text_sink *, const struct head *, uint64_t skip);

/* A whole head, with the empty line after it. `to` is the client's version: HTTP/1.0 has no chunks and no trailers, and
 * needs Connection: keep-alive if the connection is kept. */
void h1_put_request(struct text_sink *, const struct draft *);
void h1_put_answer(struct text_sink *, const struct draft *, enum http_version to);

/* "1f4\r\n" before a chunk of this length (not 0); the chunk is followed by "\r\n", the last one is "0\r\n\r\n" or has
 * trailers in between. `text` has room for 20 bytes. Returns the length. */
size_t h1_chunk_head(char *text, size_t length);

#endif
