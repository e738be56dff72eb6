/* SPDX-License-Identifier: MIT */
#include "trust.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* A name of a certificate. */
struct name {
    enum tls_name_kind kind;
    bool open; /* the text is the end of a DNS name, with its dot, or the beginning of a URI, with its slash */
    struct becalm_text text;
};

struct trust {
    bool unix_sockets;
    size_t count;
    size_t name_count;
    struct name *name;
    char *texts; /* of all names */
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

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static struct name name_of(const char *text)
{
    bool dns = begins(text, "dns:");
    bool common = begins(text, "cn:");
    const char *at = text + (dns ? 4 : common ? 3 : 0);
    size_t length = strlen(at);
    struct name name = {.kind = dns ? TLS_NAME_DNS : common ? TLS_NAME_COMMON : TLS_NAME_URI};
    name.open = (dns && at[0] == '*') || (name.kind == TLS_NAME_URI && at[length - 1] == '*');
    size_t star = name.open ? 1 : 0;
    name.text = (struct becalm_text){at + (dns ? star : 0), length - star};
    return name;
}

struct trust *trust_make(const char *const *list)
{
    size_t count = 0;
    size_t bytes = 0;
    for (; list[count] != NULL; count++) {
        bytes += strlen(list[count]) + 1;
    }
    struct trust *trust = calloc(1, sizeof *trust + count * sizeof trust->network[0]);
    if (trust == NULL) {
        return NULL;
    }
    trust->name = calloc(count + 1, sizeof *trust->name);
    trust->texts = malloc(bytes + 1);
    if (trust->name == NULL || trust->texts == NULL) {
        trust_free(trust);
        return NULL;
    }
    char *text = trust->texts;
    for (size_t i = 0; i < count; i++) {
        bool unix_sockets = strcmp(list[i], "unix") == 0;
        trust->unix_sockets |= unix_sockets;
        if (!unix_sockets && !network_parse(list[i], &trust->network[trust->count++])) {
            trust->count--; /* the loader took it, so it is a name */
            size_t size = strlen(list[i]) + 1;
            memcpy(text, list[i], size);
            trust->name[trust->name_count++] = name_of(text);
            text += size;
        }
    }
    return trust;
}

void trust_free(struct trust *trust)
{
    if (trust != NULL) {
        free(trust->name);
        free(trust->texts);
        free(trust);
    }
}

bool trust_names_any(const struct trust *trust)
{
    return trust->name_count > 0;
}

/* "*." stands for one label, as in certificates. */
static bool dns_fits(const struct name *name, struct becalm_text text)
{
    const char *dot = name->open && text.length > 0 ? memchr(text.at, '.', text.length) : text.at;
    if (dot == NULL || (name->open && dot == text.at)) {
        return false;
    }
    size_t length = text.length - (size_t)(dot - text.at);
    return length == name->text.length && strncasecmp(dot, name->text.at, length) == 0;
}

static bool name_fits(const struct name *name, struct becalm_text text)
{
    if (name->kind == TLS_NAME_DNS) {
        return dns_fits(name, text);
    }
    size_t length = name->text.length;
    bool long_enough = name->open ? text.length > length : text.length == length;
    return long_enough && memcmp(text.at, name->text.at, length) == 0;
}

bool trust_names(const struct trust *trust, enum tls_name_kind kind, struct becalm_text text)
{
    for (size_t i = 0; i < trust->name_count; i++) {
        if (trust->name[i].kind == kind && name_fits(&trust->name[i], text)) {
            return true;
        }
    }
    return false;
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
