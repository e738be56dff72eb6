/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "peer.h"

#include "run/entropy.h"

#include <string.h>

/* The kind of identity, hashed as the first byte, so that two kinds never have the same bytes. */
enum kind { KIND_V4 = 1, KIND_V6, KIND_USER, KIND_NAME };

#define V6_NETWORK 8u /* bytes of a /64 */

void peer_key_draw(struct peer_key *key)
{
    if (!entropy_fill(key, sizeof *key)) {
        uint64_t state = entropy_seed();
        key->half[0] = becalm_rand_next(&state);
        key->half[1] = becalm_rand_next(&state);
    }
}

static inline uint64_t rotate(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static void rounds(uint64_t v[4], unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

/* Up to eight bytes, the first one lowest. */
static uint64_t word_of(const unsigned char *at, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)at[i] << 8 * i;
    }
    return word;
}

uint64_t peer_hash(const struct peer_key *key, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t v[4] = {
        key->half[0] ^ UINT64_C(0x736f6d6570736575), /* "somepseudorandomlygeneratedbytes" */
        key->half[1] ^ UINT64_C(0x646f72616e646f6d),
        key->half[0] ^ UINT64_C(0x6c7967656e657261),
        key->half[1] ^ UINT64_C(0x7465646279746573),
    };
    for (size_t from = 0; from <= length; from += 8) { /* the last word has the rest, also if that is nothing */
        bool last = length - from < 8;
        uint64_t word = last ? word_of(at + from, length - from) | (uint64_t)length << 56 : word_of(at + from, 8);
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* At most 32 bytes, after a byte for their kind. */
static uint64_t identity(const struct peer_key *key, enum kind kind, const void *bytes, size_t length)
{
    unsigned char all[33] = {(unsigned char)kind};
    BECALM_ASSERT(length < sizeof all);
    if (length > 0) {
        memcpy(all + 1, bytes, length);
    }
    uint64_t hash = peer_hash(key, all, length + 1);
    return hash == PEER_NOBODY ? 1 : hash;
}

static uint64_t user_of(const struct peer_key *key, int fd)
{
#ifdef SO_PEERCRED
    struct ucred who;
    socklen_t length = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && length == sizeof who) {
        return identity(key, KIND_USER, &who.uid, sizeof who.uid);
    }
#else
    (void)fd;
#endif
    return identity(key, KIND_USER, NULL, 0);
}

uint64_t peer_of_socket(const struct peer_key *key, int fd, const union address_socket *peer)
{
    if (peer->any.sa_family == AF_INET) {
        return identity(key, KIND_V4, &peer->v4.sin_addr, sizeof peer->v4.sin_addr);
    }
    if (peer->any.sa_family != AF_INET6) {
        return user_of(key, fd);
    }
    const struct in6_addr *v6 = &peer->v6.sin6_addr;
    return IN6_IS_ADDR_V4MAPPED(v6) ? identity(key, KIND_V4, v6->s6_addr + 12, 4)
                                    : identity(key, KIND_V6, v6->s6_addr, V6_NETWORK);
}

uint64_t peer_of_name(const struct peer_key *key, struct becalm_text name)
{
    uint64_t hash = peer_hash(key, name.length == 0 ? "" : name.at, name.length);
    return identity(key, KIND_NAME, &hash, sizeof hash);
}
