/* SPDX-License-Identifier: MIT */
#include "address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/value.h"

static uint16_t port_of(const char *text)
{
    return (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
}

bool address_parse(const char *text, struct address *address)
{
    memset(address, 0, sizeof *address);
    if (value_srv(text)) {
        address->kind = ADDRESS_NAME;
        memcpy(address->name, text + strlen("srv://"), strlen(text) - strlen("srv://"));
        return true;
    }
    if (!value_address(text)) { /* so that no copy below can be too long, and every port is one */
        return false;
    }
    if (strncmp(text, "unix:/", 6) == 0) {
        address->kind = ADDRESS_LOCAL;
        address->socket.local.sun_family = AF_UNIX;
        memcpy(address->socket.local.sun_path, text + 5, strlen(text + 5));
        return true;
    }
    address->port = port_of(text);
    size_t length = (size_t)(strrchr(text, ':') - text);
    bool bracketed = text[0] == '[';
    memcpy(address->name, text + bracketed, length - 2 * (size_t)bracketed);
    if (bracketed && inet_pton(AF_INET6, address->name, &address->socket.v6.sin6_addr) == 1) {
        address->socket.v6.sin6_family = AF_INET6;
        address->socket.v6.sin6_port = htons(address->port);
    } else if (inet_pton(AF_INET, address->name, &address->socket.v4.sin_addr) == 1) {
        address->socket.v4.sin_family = AF_INET;
        address->socket.v4.sin_port = htons(address->port);
    } else {
        address->kind = ADDRESS_NAME;
        return true;
    }
    memset(address->name, 0, sizeof address->name);
    return true;
}

socklen_t address_length(const union address_socket *socket)
{
    if (socket->any.sa_family == AF_INET) {
        return sizeof socket->v4;
    }
    return socket->any.sa_family == AF_INET6 ? sizeof socket->v6 : sizeof socket->local;
}

bool address_equal(const union address_socket *a, const union address_socket *b)
{
    return a->any.sa_family == b->any.sa_family && memcmp(a, b, address_length(a)) == 0;
}

static size_t written(int length, size_t size)
{
    return length < 0 || size == 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

size_t address_write_ip(const union address_socket *socket, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "";
    if (socket->any.sa_family == AF_UNIX) {
        const struct sockaddr_un *local = &socket->local;
        return written(snprintf(text, size, "unix:%.*s", (int)sizeof local->sun_path, local->sun_path), size);
    }
    if (socket->any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &socket->v4.sin_addr, ip, sizeof ip);
    } else if (IN6_IS_ADDR_V4MAPPED(&socket->v6.sin6_addr)) {
        (void)inet_ntop(AF_INET, socket->v6.sin6_addr.s6_addr + 12, ip, sizeof ip);
    } else {
        (void)inet_ntop(AF_INET6, &socket->v6.sin6_addr, ip, sizeof ip);
    }
    return written(snprintf(text, size, "%s", ip), size);
}

size_t address_write(const union address_socket *socket, char *text, size_t size)
{
    char ip[ADDRESS_TEXT_MAX];
    (void)address_write_ip(socket, ip, sizeof ip);
    if (socket->any.sa_family == AF_UNIX) {
        return written(snprintf(text, size, "%s", ip), size);
    }
    bool v6 = strchr(ip, ':') != NULL;
    unsigned port = ntohs(socket->any.sa_family == AF_INET ? socket->v4.sin_port : socket->v6.sin6_port);
    return written(snprintf(text, size, "%s%s%s:%u", v6 ? "[" : "", ip, v6 ? "]" : "", port), size);
}
