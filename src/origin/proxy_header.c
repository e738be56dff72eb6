/* SPDX-License-Identifier: MIT */
#include "proxy_header.h"

#include "http/text_internal.h"

#include <arpa/inet.h>
#include <stdio.h>

#define V1_MAX   107u /* with CR LF */
#define V2_FIXED 16u

static const char v2_signature[] = "\r\n\r\n\0\r\nQUIT\n";
enum { V2_SIGNATURE = sizeof v2_signature - 1 };

/* ---- version 1: "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n" ---- */

static bool take_part(struct becalm_text *line, struct becalm_text *part)
{
    const char *blank = line->length == 0 ? NULL : memchr(line->at, ' ', line->length);
    size_t length = blank == NULL ? line->length : (size_t)(blank - line->at);
    *part = (struct becalm_text){line->at, length};
    text_skip(line, length + (blank != NULL));
    return length > 0;
}

static bool read_address(int family, struct becalm_text text, union address_socket *address)
{
    char chars[INET6_ADDRSTRLEN];
    if (text.length >= sizeof chars) {
        return false;
    }
    memcpy(chars, text.at, text.length);
    chars[text.length] = '\0';
    *address = (union address_socket){.any.sa_family = (sa_family_t)family};
    void *to = family == AF_INET ? (void *)&address->v4.sin_addr : (void *)&address->v6.sin6_addr;
    return inet_pton(family, chars, to) == 1;
}

static bool read_port(struct becalm_text text, uint16_t *port)
{
    uint64_t number;
    if (text.length > 5 || text_take_number(&text, &number) == 0 || !text_ended(text) || number > UINT16_MAX) {
        return false;
    }
    *port = htons((uint16_t)number);
    return true;
}

static bool v1_line(struct becalm_text line, union address_socket *peer)
{
    struct becalm_text part[4];
    struct becalm_text kind;
    union address_socket from;
    union address_socket to;
    uint16_t port[2];
    if (!take_part(&line, &kind)) {
        return false;
    }
    if (text_is(kind, "UNKNOWN")) {
        return true; /* the rest of the line is ignored */
    }
    int family = text_is(kind, "TCP4") ? AF_INET : text_is(kind, "TCP6") ? AF_INET6 : AF_UNSPEC;
    for (uint32_t i = 0; i < 4; i++) {
        if (!take_part(&line, &part[i])) {
            return false;
        }
    }
    if (family == AF_UNSPEC || !text_ended(line) || !read_address(family, part[0], &from) ||
        !read_address(family, part[1], &to) || !read_port(part[2], &port[0]) || !read_port(part[3], &port[1])) {
        return false;
    }
    if (family == AF_INET) {
        from.v4.sin_port = port[0];
    } else {
        from.v6.sin6_port = port[0];
    }
    *peer = from;
    return true;
}

static enum proxy_header_result v1_read(const char *bytes, size_t count, size_t *length, union address_socket *peer)
{
    static const char begin[] = "PROXY ";
    enum { BEGIN = sizeof begin - 1 };
    size_t most = count < V1_MAX ? count : V1_MAX;
    if (memcmp(bytes, begin, count < BEGIN ? count : BEGIN) != 0) {
        return PROXY_HEADER_BAD;
    }
    const char *end = memchr(bytes, '\n', most);
    if (end == NULL) {
        return count < V1_MAX ? PROXY_HEADER_MORE : PROXY_HEADER_BAD;
    }
    if (end - bytes < BEGIN + 1 || end[-1] != '\r' ||
        !v1_line((struct becalm_text){bytes + BEGIN, (size_t)(end - bytes) - BEGIN - 1}, peer)) {
        return PROXY_HEADER_BAD;
    }
    *length = (size_t)(end - bytes) + 1;
    return PROXY_HEADER_DONE;
}

/* ---- version 2: a signature, command and family, and addresses ---- */

enum {
    V2_LOCAL = 0x20,
    V2_PROXY = 0x21,
    V2_UNKNOWN = 0,
    V2_TCP4 = 0x11,
    V2_TCP6 = 0x21,
    V2_TCP4_BYTES = 12,
    V2_TCP6_BYTES = 36
};

static bool v2_addresses(const unsigned char *head, size_t count, union address_socket *peer)
{
    const unsigned char *addresses = head + V2_FIXED;
    union address_socket from = {0};
    if (head[13] == V2_TCP4 && count >= V2_TCP4_BYTES) {
        from.v4.sin_family = AF_INET;
        memcpy(&from.v4.sin_addr, addresses, 4);
        memcpy(&from.v4.sin_port, addresses + 8, 2);
    } else if (head[13] == V2_TCP6 && count >= V2_TCP6_BYTES) {
        from.v6.sin6_family = AF_INET6;
        memcpy(&from.v6.sin6_addr, addresses, 16);
        memcpy(&from.v6.sin6_port, addresses + 32, 2);
    } else { /* Unix sockets and unknown families name no client; a truncated address is no address */
        return head[13] != V2_TCP4 && head[13] != V2_TCP6;
    }
    *peer = from;
    return true;
}

static enum proxy_header_result v2_read(const char *bytes, size_t count, size_t *length, union address_socket *peer)
{
    const unsigned char *head = (const unsigned char *)bytes;
    if (count < V2_FIXED) {
        return PROXY_HEADER_MORE;
    }
    size_t more = (size_t)head[14] << 8 | head[15];
    if ((head[12] != V2_LOCAL && head[12] != V2_PROXY) || V2_FIXED + more > PROXY_HEADER_MAX) {
        return PROXY_HEADER_BAD;
    }
    if (count < V2_FIXED + more) {
        return PROXY_HEADER_MORE;
    }
    if (head[12] == V2_PROXY && !v2_addresses(head, more, peer)) {
        return PROXY_HEADER_BAD;
    }
    *length = V2_FIXED + more;
    return PROXY_HEADER_DONE;
}

enum proxy_header_result proxy_header_read(const char *bytes, size_t count, size_t *length, union address_socket *peer)
{
    if (count == 0) {
        return PROXY_HEADER_MORE;
    }
    if (bytes[0] != v2_signature[0]) {
        return v1_read(bytes, count, length, peer);
    }
    if (memcmp(bytes, v2_signature, count < V2_SIGNATURE ? count : V2_SIGNATURE) != 0) {
        return PROXY_HEADER_BAD;
    }
    return v2_read(bytes, count, length, peer);
}

/* ---- writing ---- */

/* Both ends of a connection, in one family. */
struct ends {
    int family; /* AF_UNSPEC: not known */
    struct in6_addr ip[2];
    in_port_t port[2];
};

static void end_set(struct ends *ends, uint32_t at, const union address_socket *address)
{
    struct in6_addr *ip = &ends->ip[at];
    memset(ip, 0, sizeof *ip);
    if (address->any.sa_family == AF_INET) {
        ip->s6_addr[10] = ip->s6_addr[11] = 0xff;
        memcpy(ip->s6_addr + 12, &address->v4.sin_addr, 4);
    } else if (address->any.sa_family == AF_INET6) {
        *ip = address->v6.sin6_addr;
    }
    ends->port[at] = address_port(address);
}

static bool is_v4(const struct in6_addr *ip)
{
    return IN6_IS_ADDR_V4MAPPED(ip);
}

/* IPv4 if both are; an IPv4 address beside an IPv6 one is written as IPv6 has it. */
static struct ends ends_of(const union address_socket *from, const union address_socket *to)
{
    struct ends ends = {.family = AF_UNSPEC};
    if (from->any.sa_family != AF_INET && from->any.sa_family != AF_INET6) {
        return ends;
    }
    end_set(&ends, 0, from);
    end_set(&ends, 1, to);
    bool no_to = to->any.sa_family != AF_INET && to->any.sa_family != AF_INET6;
    ends.family = is_v4(&ends.ip[0]) && (no_to || is_v4(&ends.ip[1])) ? AF_INET : AF_INET6;
    return ends;
}

static const void *bytes_of(const struct ends *ends, uint32_t at)
{
    return ends->family == AF_INET ? ends->ip[at].s6_addr + 12 : ends->ip[at].s6_addr;
}

static size_t v1_write(const struct ends *ends, char header[PROXY_HEADER_WRITTEN])
{
    char text[2][INET6_ADDRSTRLEN];
    int length;
    if (ends->family == AF_UNSPEC) {
        length = snprintf(header, PROXY_HEADER_WRITTEN, "PROXY UNKNOWN\r\n");
    } else {
        (void)inet_ntop(ends->family, bytes_of(ends, 0), text[0], sizeof text[0]);
        (void)inet_ntop(ends->family, bytes_of(ends, 1), text[1], sizeof text[1]);
        length =
            snprintf(header, PROXY_HEADER_WRITTEN, "PROXY TCP%c %s %s %u %u\r\n", ends->family == AF_INET ? '4' : '6',
                     text[0], text[1], ntohs(ends->port[0]), ntohs(ends->port[1]));
    }
    return (size_t)length;
}

static size_t v2_write(char command, const struct ends *ends, char header[PROXY_HEADER_WRITTEN])
{
    size_t ip = ends->family == AF_UNSPEC ? 0 : ends->family == AF_INET ? 4 : 16;
    size_t length = ip == 0 ? 0 : 2 * (ip + sizeof(in_port_t));
    memcpy(header, v2_signature, V2_SIGNATURE);
    header[12] = command;
    header[13] = ip == 0 ? V2_UNKNOWN : ip == 4 ? V2_TCP4 : V2_TCP6;
    header[14] = 0;
    header[15] = (char)length;
    if (ip > 0) {
        memcpy(header + V2_FIXED, bytes_of(ends, 0), ip);
        memcpy(header + V2_FIXED + ip, bytes_of(ends, 1), ip);
        memcpy(header + V2_FIXED + 2 * ip, ends->port, sizeof ends->port);
    }
    return V2_FIXED + length;
}

size_t proxy_header_write(uint32_t version, const union address_socket *from, const union address_socket *to,
                          char header[PROXY_HEADER_WRITTEN])
{
    struct ends ends = ends_of(from, to);
    return version == 1 ? v1_write(&ends, header) : v2_write(V2_PROXY, &ends, header);
}

size_t proxy_header_write_local(uint32_t version, char header[PROXY_HEADER_WRITTEN])
{
    struct ends nobody = {.family = AF_UNSPEC};
    return version == 1 ? v1_write(&nobody, header) : v2_write(V2_LOCAL, &nobody, header);
}
