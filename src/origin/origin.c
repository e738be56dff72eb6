/* SPDX-License-Identifier: MIT */
#include "origin.h"

#include <string.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

void origin_ip_set(struct origin_ip *ip, const union address_socket *socket)
{
    if (socket->any.sa_family == AF_INET) {
        memcpy(ip->bytes, mapped, sizeof mapped);
        memcpy(ip->bytes + sizeof mapped, &socket->v4.sin_addr, 4);
    } else if (socket->any.sa_family == AF_INET6) {
        memcpy(ip->bytes, socket->v6.sin6_addr.s6_addr, sizeof ip->bytes);
    } else {
        memset(ip->bytes, 0, sizeof ip->bytes);
    }
}

void origin_ip_socket(const struct origin_ip *ip, union address_socket *socket)
{
    static const struct origin_ip none;
    memset(socket, 0, sizeof *socket);
    if (memcmp(ip, &none, sizeof none) == 0) {
        socket->any.sa_family = AF_UNIX;
    } else {
        socket->v6.sin6_family = AF_INET6;
        memcpy(socket->v6.sin6_addr.s6_addr, ip->bytes, sizeof ip->bytes);
    }
}
