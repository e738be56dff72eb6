/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_HEAD_H
#define BECALM_MESSAGE_HEAD_H

/* The parsed head of a request or an answer, independent of the protocol. A codec fills it: h1_parse_request() for
 * HTTP/1. The texts of its fields are in `bytes`, in any order: HTTP/1 leaves them where they arrived, and a codec that
 * decompresses them may put them one after the other. Members that a protocol does not have stay 0. */

#include "field.h"

enum http_version { HTTP_1_0, HTTP_1_1, HTTP_2 };

/* How the end of a body is known. */
enum body_framing {
    BODY_NONE,
    BODY_LENGTH,     /* content_length bytes */
    BODY_OPEN,       /* its length is not known beforehand, and its end is marked: a last chunk, END_STREAM */
    BODY_UNTIL_CLOSE /* answers of HTTP/1 only: it ends with the connection */
};

#define HEAD_FIELDS_MAX         256u /* of an answer */
#define HEAD_REQUEST_FIELDS_MAX 128u /* of a request, or of trailers */

struct head {
    const char *bytes; /* all offsets are into these: a copy of them moves this pointer */
    uint32_t length;   /* of the bytes */
    uint32_t method;   /* requests: offsets and lengths */
    uint32_t method_length;
    uint32_t target; /* a path with its query; HTTP/1 has other forms, see h1_target_split(). Host has the authority */
    uint32_t target_length;
    uint32_t status; /* answers: it, and its phrase, which may be empty */
    uint32_t phrase;
    uint32_t phrase_length;
    enum http_version version;
    bool keep_alive; /* another message may follow on its connection */
    bool close;      /* HTTP/1: it has Connection: close */
    bool expects_continue;
    bool upgrades;     /* HTTP/1: Connection: upgrade and an Upgrade field */
    bool websocket;    /* and it is exactly websocket */
    bool one_protocol; /* or at least one protocol and no list: head_find(FIELD_UPGRADE) */
    bool te_trailers;  /* its sender reads trailers */
    bool names_fields; /* HTTP/1: Connection names fields, and maybe trailers, that must not be passed on */
    enum body_framing framing;
    uint64_t content_length;
    bool as_it_came;  /* HTTP/1: each field is passed on, and its line has the form that HTTP/1 writes here: "name:
                         value" */
    bool length_once; /* exactly one Content-Length, in plain digits: that field may be passed on unchanged */
    bool secret;      /* HTTP/2: a field is, or one of these: */
    bool secret_method;
    bool secret_target;
    bool secret_status;
    uint64_t seen; /* bit n: a field with id n is there */
    uint32_t field_count;
    struct field field[HEAD_FIELDS_MAX];
};

/* A field's name and value. */
static inline struct becalm_text field_name(const struct head *head, const struct field *field)
{
    return (struct becalm_text){head->bytes + field->name, field->name_length};
}

static inline struct becalm_text field_value(const struct head *head, const struct field *field)
{
    return (struct becalm_text){head->bytes + field->value, field->value_length};
}

/* Is this its name, in upper or lower case? */
bool field_is_named(const struct head *, const struct field *, struct becalm_text name);

static inline bool head_has(const struct head *head, enum field_id id)
{
    return (head->seen >> id & 1) != 0;
}

/* Has a field with this id the mark of HTTP/2 that it is never indexed? */
bool head_has_secret(const struct head *, enum field_id);

/* The value of the first field with this id or name, or of the last; absent: there is none. */
struct becalm_text head_find(const struct head *, enum field_id);
struct becalm_text head_find_other(const struct head *, struct becalm_text name);
struct becalm_text head_find_last(const struct head *, struct becalm_text name);

/* The gRPC status in a head or in trailers; BECALM_GRPC_NONE: there is none. */
uint32_t head_grpc_status(const struct head *);

/* Is there a field of this name, in upper or lower case, with exactly this value? Any field of the name may have it. */
bool head_has_value(const struct head *, struct becalm_text name, struct becalm_text value);

static inline struct becalm_text head_method(const struct head *head)
{
    return (struct becalm_text){head->bytes + head->method, head->method_length};
}

static inline struct becalm_text head_target(const struct head *head)
{
    return (struct becalm_text){head->bytes + head->target, head->target_length};
}

static inline struct becalm_text head_phrase(const struct head *head)
{
    return (struct becalm_text){head->bytes + head->phrase, head->phrase_length};
}

/* The size of a copy, which has no more room for fields than it needs; and a function that makes it at `to`. */
static inline size_t head_copy_size(const struct head *head)
{
    return offsetof(struct head, field) + head->field_count * sizeof head->field[0] + head->length;
}
struct head *head_copy(void *to, const struct head *);

#endif
