/* SPDX-License-Identifier: MIT */
#include "client.h"

#include "proxy/exchange/exchange.h"
#include "tunnel.h"

#include "container.h"
#include "unfilled.h"

struct gather {
    struct iovec part[3 * PIECES_MAX + 4];
    int count;
    char chunk[PIECES_MAX][20];
};

static void gather_add(struct gather *gather, const char *at, size_t length)
{
    if (length > 0) {
        gather->part[gather->count++] = (struct iovec){(char *)(uintptr_t)at, length};
    }
}

static void gather_pieces(struct gather *gather, const struct pieces *pieces, bool chunks)
{
    for (int i = 0; i < pieces->count; i++) {
        const struct becalm_text *piece = &pieces->piece[i];
        if (chunks) {
            gather_add(gather, gather->chunk[i], h1_chunk_head(gather->chunk[i], piece->length));
        }
        gather_add(gather, piece->at, piece->length);
        if (chunks) {
            gather_add(gather, "\r\n", 2);
        }
    }
}

static __attribute__((noinline)) void gather_trailers(struct gather *gather, struct worker *worker,
                                                      const struct head *trailers)
{
    struct text_sink out = {.at = worker->out + WORKER_TRAILERS, .size = WORKER_OUT - WORKER_TRAILERS};
    h1_put_fields(&out, trailers, 0);
    gather_add(gather, out.at, out.length);
}

/* The pieces and, behind the last one, the trailers and the last empty line. */
static void gather_part(struct gather *gather, struct client *client, const struct stream_part *part)
{
    gather_pieces(gather, part->pieces, client->chunks);
    if (part->ended && client->chunks) {
        gather_add(gather, "0\r\n", 3);
        if (part->trailers != NULL) {
            gather_trailers(gather, client->worker, part->trailers);
        }
        gather_add(gather, "\r\n", 2);
    }
}

#define JOINED_MAX 2048u /* to copy so few bytes costs less than to let the kernel read a list of two pieces */

/* A small body that needs no chunks goes behind its head. False: it does not. */
static bool joins(struct text_sink *out, const struct client *client, const struct stream_part *part)
{
    if (client->chunks || part->pieces->bytes > JOINED_MAX || part->pieces->bytes > out->size - out->length) {
        return false;
    }
    for (int i = 0; i < part->pieces->count; i++) {
        text_put(out, part->pieces->piece[i]);
    }
    return true;
}

static bool stream_begin(struct client_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    struct client *client = CONTAINER_OF(stream, struct client, stream);
    struct text_sink out = {.at = client->worker->out, .size = WORKER_TRAILERS};
    UNFILLED struct gather gather;
    gather.count = 0;
    h1_put_answer(&out, draft, client->http_1_0 ? HTTP_1_0 : HTTP_1_1);
    client->chunks = draft->framing == BODY_OPEN && !client->http_1_0;
    client->read_at = 0;
    if (joins(&out, client, part)) {
        return !out.full && client_write(client, &(struct iovec){out.at, out.length}, 1);
    }
    gather_add(&gather, out.at, out.length);
    gather_part(&gather, client, part);
    return !out.full && client_write(client, gather.part, gather.count);
}

static bool stream_more(struct client_stream *stream, const struct stream_part *part)
{
    struct client *client = CONTAINER_OF(stream, struct client, stream);
    UNFILLED struct gather gather;
    gather.count = 0;
    gather_part(&gather, client, part);
    return gather.count == 0 || client_write(client, gather.part, gather.count);
}

static bool stream_interim(struct client_stream *stream, const struct draft *draft)
{
    return client_answer(CONTAINER_OF(stream, struct client, stream), draft, (struct becalm_text){0});
}

static bool stream_blocked(const struct client_stream *stream)
{
    return client_blocked(CONTAINER_OF(stream, struct client, stream));
}

static void stream_moves(struct client_stream *stream)
{
    client_moves(CONTAINER_OF(stream, struct client, stream));
}

static void stream_began(struct client_stream *stream)
{
    client_enter(CONTAINER_OF(stream, struct client, stream), CLIENT_BUSY);
}

static bool stream_left(const struct client_stream *stream)
{
    return wire_ended(&CONTAINER_OF(stream, struct client, stream)->wire);
}

static void stream_cut(struct client_stream *stream)
{
    client_abort(CONTAINER_OF(stream, struct client, stream));
}

static uint64_t stream_identity(const struct client_stream *stream)
{
    return client_caller(CONTAINER_OF(stream, struct client, stream));
}

static bool stream_trusted(struct client_stream *stream)
{
    return client_trusted(CONTAINER_OF(stream, struct client, stream));
}

static void stream_origin(struct client_stream *stream, struct origin *origin)
{
    client_origin(CONTAINER_OF(stream, struct client, stream), origin);
}

static struct becalm_text stream_peer(const struct client_stream *stream, char *text, size_t size)
{
    return client_peer(CONTAINER_OF(stream, struct client, stream), text, size);
}

static struct host_owner stream_owner(struct client_stream *stream)
{
    struct client *client = CONTAINER_OF(stream, struct client, stream);
    return (struct host_owner){&client->own, &client->member.group->logins};
}

static bool stream_ends(const struct client_stream *stream, union address_socket *from, union address_socket *to)
{
    client_ends(CONTAINER_OF(stream, struct client, stream), from, to);
    return true;
}

static bool stream_tunnel(struct client_stream *stream, const struct stream_tunnel *plan)
{
    return tunnel_open(CONTAINER_OF(stream, struct client, stream), plan);
}

static void stream_done(struct client_stream *stream, bool keep)
{
    struct client *client = CONTAINER_OF(stream, struct client, stream);
    if (client->state == CLIENT_TUNNEL && client->taker != NULL) {
        client->taker->ops->begin(client->taker);
    } else if (client->state == CLIENT_TUNNEL) {
        client_close(client);
    } else {
        client_answered(client, keep);
    }
}

static void stream_took(struct client_stream *stream)
{
    struct client *client = CONTAINER_OF(stream, struct client, stream);
    exchange_body_resumes(stream->exchange);
    if (wire_readable(&client->wire) || bytes_left(&client->in) > 0) {
        wire_again(&client->wire);
        loop_later(&client->worker->loop, &client->task);
    }
}

const struct client_stream_ops client_h1_ops = {
    .begin = stream_begin,
    .more = stream_more,
    .interim = stream_interim,
    .blocked = stream_blocked,
    .moves = stream_moves,
    .took = stream_took,
    .began = stream_began,
    .left = stream_left,
    .done = stream_done,
    .cut = stream_cut,
    .identity = stream_identity,
    .trusted = stream_trusted,
    .origin = stream_origin,
    .peer = stream_peer,
    .owner = stream_owner,
    .ends = stream_ends,
    .tunnel = stream_tunnel,
};
