/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_ADDRESS_H
#define BECALM_LOOP_ADDRESS_H

/* Addresses of listeners and hosts: "127.0.0.1:80", "[::1]:80", "name:80", "unix:/path", "srv://_http._tcp.name". */

#include <becalm/base.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A socket address. Pass `any` to system calls. */
union address_socket {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

enum address_kind {
    ADDRESS_IP,
    ADDRESS_LOCAL, /* a Unix socket */
    ADDRESS_NAME   /* a DNS name, which resolve.h turns into sockets */
};

#define ADDRESS_NAME_MAX 253u
#define ADDRESS_TEXT_MAX 128u /* of an address_write(), with its zero */

struct address {
    enum address_kind kind;
    uint16_t port;                   /* IP, NAME */
    union address_socket socket;     /* IP, LOCAL */
    char name[ADDRESS_NAME_MAX + 1]; /* NAME */
};

/* Accepts the same texts as the policy loader (value_address() and value_srv()); false for anything else. Of
 * srv://_http._tcp.name the name is kept, and the port is 0: the resolver finds the ports. */
bool address_parse(const char *text, struct address *);

/* The length of the address, for system calls. */
socklen_t address_length(const union address_socket *);

/* The port in network byte order; 0 for a Unix socket. */
static inline in_port_t address_port(const union address_socket *address)
{
    return address->any.sa_family == AF_INET    ? address->v4.sin_port
           : address->any.sa_family == AF_INET6 ? address->v6.sin6_port
                                                : 0;
}

/* Both must have been zeroed before they were filled, so that equal addresses have equal bytes. */
bool address_equal(const union address_socket *, const union address_socket *);

/* Writes the text that address_parse() accepts. An IPv4 address inside of an IPv6 one (::ffff:10.0.0.1) is written as
 * IPv4. A Unix socket without a path, as clients have, is "unix:" alone: zero the memory before accept() fills a part
 * of it. Cut at `size`; returns the length. */
size_t address_write(const union address_socket *, char *text, size_t size);

/* The IP address alone, without brackets and port, as access logs have it. */
size_t address_write_ip(const union address_socket *, char *text, size_t size);

#endif
