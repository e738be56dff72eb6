/* SPDX-License-Identifier: MIT */
#include "stream.h"

static bool begin(struct client_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    (void)stream, (void)draft, (void)part;
    return true;
}

static bool more(struct client_stream *stream, const struct stream_part *part)
{
    (void)stream, (void)part;
    return true;
}

static bool interim(struct client_stream *stream, const struct draft *draft)
{
    (void)stream, (void)draft;
    return true;
}

static bool no(const struct client_stream *stream)
{
    (void)stream;
    return false;
}

static void nothing(struct client_stream *stream)
{
    (void)stream;
}

static void done(struct client_stream *stream, bool keep)
{
    (void)stream, (void)keep;
}

static uint64_t identity(const struct client_stream *stream)
{
    (void)stream;
    return 0;
}

static bool trusted(struct client_stream *stream)
{
    (void)stream;
    return false;
}

static void origin(struct client_stream *stream, struct origin *origin)
{
    (void)stream;
    *origin = (struct origin){0};
}

static struct becalm_text peer(const struct client_stream *stream, char *text, size_t size)
{
    (void)stream, (void)text, (void)size;
    return (struct becalm_text){0};
}

static struct host_owner owner(struct client_stream *stream)
{
    (void)stream;
    return (struct host_owner){0};
}

static bool ends(const struct client_stream *stream, union address_socket *from, union address_socket *to)
{
    (void)stream, (void)from, (void)to;
    return false;
}

static const struct client_stream_ops ops = {
    .begin = begin,
    .more = more,
    .interim = interim,
    .blocked = no,
    .moves = nothing,
    .took = nothing,
    .began = nothing,
    .left = no,
    .done = done,
    .cut = nothing,
    .identity = identity,
    .trusted = trusted,
    .origin = origin,
    .peer = peer,
    .owner = owner,
    .ends = ends,
};

struct client_stream stream_nobody = {.ops = &ops};
