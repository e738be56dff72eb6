/* SPDX-License-Identifier: MIT */
#include "trust.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "loop/address.h"

#define MAPPED_BITS 96u /* of ::ffff:0:0/96 */

/* A bare IP address. */
struct ip {
    bool v4;
    unsigned char bytes[16]; /* 4 of IPv4 */
};

struct network {
    struct ip ip;
    unsigned bits;
};

struct trust {
    bool unix_sockets;
    size_t count;
    struct network network[];
};

static void ip_from_v6(struct ip *ip, const struct in6_addr *from)
{
    ip->v4 = IN6_IS_ADDR_V4MAPPED(from);
    memcpy(ip->bytes, from->s6_addr + (ip->v4 ? 12 : 0), ip->v4 ? 4 : 16);
}

static bool network_parse(const char *text, struct network *network)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    size_t length = strcspn(text, "/");
    if (length >= sizeof address) {
        return false;
    }
    memcpy(address, text, length);
    address[length] = '\0';
    bool has_bits = text[length] == '/';
    unsigned bits = has_bits ? (unsigned)strtoul(text + length + 1, NULL, 10) : 128;
    if (inet_pton(AF_INET, address, network->ip.bytes) == 1) {
        network->ip.v4 = true;
        network->bits = has_bits ? bits : 32;
        return network->bits <= 32;
    }
    if (bits > 128 || inet_pton(AF_INET6, address, &v6) != 1) {
        return false;
    }
    if (IN6_IS_ADDR_V4MAPPED(&v6) && bits < MAPPED_BITS) { /* wider than all of IPv4: a network of IPv6 */
        memcpy(network->ip.bytes, v6.s6_addr, 16);
        network->bits = bits;
        return true;
    }
    ip_from_v6(&network->ip, &v6);
    network->bits = network->ip.v4 ? bits - MAPPED_BITS : bits;
    return true;
}

struct trust *trust_make(const char *const *networks)
{
    size_t count = 0;
    while (networks[count] != NULL) {
        count++;
    }
    struct trust *trust = calloc(1, sizeof *trust + count * sizeof trust->network[0]);
    if (trust == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(networks[i], "unix") == 0) {
            trust->unix_sockets = true;
            continue;
        }
        bool fine = network_parse(networks[i], &trust->network[trust->count++]);
        BECALM_ASSERT(fine); /* the loader took it */
    }
    return trust;
}

void trust_free(struct trust *trust)
{
    free(trust);
}

static bool network_has(const struct network *network, const struct ip *ip)
{
    unsigned whole = network->bits / 8;
    unsigned rest = network->bits % 8;
    if (network->ip.v4 != ip->v4 || memcmp(network->ip.bytes, ip->bytes, whole) != 0) {
        return false;
    }
    return rest == 0 || (network->ip.bytes[whole] ^ ip->bytes[whole]) >> (8 - rest) == 0;
}

bool trust_has(const struct trust *trust, const struct sockaddr *peer)
{
    struct ip ip = {0};
    union address_socket socket;
    if (peer->sa_family == AF_INET) {
        memcpy(&socket.v4, peer, sizeof socket.v4);
        ip.v4 = true;
        memcpy(ip.bytes, &socket.v4.sin_addr, 4);
    } else if (peer->sa_family == AF_INET6) {
        memcpy(&socket.v6, peer, sizeof socket.v6);
        ip_from_v6(&ip, &socket.v6.sin6_addr);
    } else {
        return peer->sa_family == AF_UNIX && trust->unix_sockets;
    }
    for (size_t i = 0; i < trust->count; i++) {
        if (network_has(&trust->network[i], &ip)) {
            return true;
        }
    }
    return false;
}
