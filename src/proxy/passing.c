/* SPDX-License-Identifier: MIT */
#include "passing.h"

#include "http/text_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define HTTP_PORT 80u

/* ---- names ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

/* ":8080" to the end; nothing, or a colon alone, is 80. */
static bool port_read(struct becalm_text text, uint16_t *port)
{
    uint64_t number = HTTP_PORT;
    if (text.length > 1 && (text.at[0] != ':' || text.length > 6)) {
        return false;
    }
    if (text.length > 1) {
        text_skip(&text, 1);
        if (!text_take_number(&text, &number) || !text_ended(text)) {
            return false;
        }
    }
    *port = (uint16_t)number;
    return number > 0 && number <= UINT16_MAX;
}

bool passing_name_read(struct becalm_text authority, struct passing_name *name)
{
    struct becalm_text host = authority;
    bool bracket = text_peek(authority) == '[';
    const char *end = authority.length == 0 ? NULL : memchr(authority.at, bracket ? ']' : ':', authority.length);
    if (bracket && end == NULL) {
        return false;
    }
    host.length = end == NULL ? authority.length : (size_t)(end - authority.at);
    struct becalm_text rest = authority;
    text_skip(&rest, host.length + bracket);
    if (bracket) {
        text_skip(&host, 1);
    } else if (host.length > 1 && host.at[host.length - 1] == '.') {
        host.length--;
    }
    *name = (struct passing_name){0};
    if (host.length == 0 || host.length > ADDRESS_NAME_MAX || !port_read(rest, &name->port)) {
        return false;
    }
    for (size_t i = 0; i < host.length; i++) {
        name->text[i] = to_lower(host.at[i]);
        if (!is_name_char(name->text[i]) && !(bracket && name->text[i] == ':')) {
            return false;
        }
    }
    return true;
}

/* ---- addresses ---- */

/* Services of clouds for their own machines, with credentials in their answers, at addresses that are no link's. */
static bool is_metadata_v4(uint32_t address)
{
    return address == 0x646464c8 || /* 100.100.100.200, of Alibaba */
           address == 0xa83f8110 || /* 168.63.129.16, of Azure */
           address == 0xc00000c0;   /* 192.0.0.192, of Oracle */
}

static bool guards_v4(uint32_t address)
{
    return address >> 24 == 0 ||      /* this network */
           address >> 24 == 127 ||    /* this machine */
           address >> 16 == 0xa9fe || /* a link's: 169.254.0.0/16 */
           address >> 28 >= 0xe ||    /* many hosts, reserved, and all of a link */
           is_metadata_v4(address);
}

static uint32_t v4_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* IPv6 has several ways to write an IPv4 address: mapped, compatible, by NAT64 and by 6to4. */
static bool guards_v6(const uint8_t bytes[16])
{
    static const uint8_t zeroes[12];
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t aws[16] = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54};
    static const uint8_t google[16] = {0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54};
    if (memcmp(bytes, zeroes, 12) == 0 || memcmp(bytes, mapped, 12) == 0 || memcmp(bytes, nat64, 12) == 0) {
        return guards_v4(v4_at(bytes + 12)); /* :: and ::1 are in 0.0.0.0/8 */
    }
    if (bytes[0] == 0x20 && bytes[1] == 0x02) {
        return guards_v4(v4_at(bytes + 2));
    }
    return (bytes[0] == 0xfe && bytes[1] >= 0x80) || /* a link's, and the sites of old */
           bytes[0] == 0xff || memcmp(bytes, aws, sizeof aws) == 0 || memcmp(bytes, google, sizeof google) == 0;
}

bool passing_guards(const union address_socket *address)
{
    if (address->any.sa_family == AF_INET) {
        return guards_v4(ntohl(address->v4.sin_addr.s_addr));
    }
    return address->any.sa_family != AF_INET6 || guards_v6(address->v6.sin6_addr.s6_addr);
}

bool passing_literal(const struct passing_name *name, union address_socket *to)
{
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, name->text, &to->v4.sin_addr) == 1) {
        to->any.sa_family = AF_INET;
        to->v4.sin_port = htons(name->port);
        return true;
    }
    if (inet_pton(AF_INET6, name->text, &to->v6.sin6_addr) == 1) {
        to->any.sa_family = AF_INET6;
        to->v6.sin6_port = htons(name->port);
        return true;
    }
    return false;
}

/* ---- the table ---- */

void passing_init(struct passing *passing)
{
    memset(passing, 0, sizeof *passing);
    pthread_mutex_init(&passing->lock, NULL);
}

void passing_free(struct passing *passing)
{
    while (passing->hosts != NULL) {
        struct passing_host *next = passing->hosts->next;
        free(passing->hosts);
        passing->hosts = next;
    }
    pthread_mutex_destroy(&passing->lock);
}

static bool is_name(const struct passing_name *a, const struct passing_name *b)
{
    return a->port == b->port && a->written == b->written && strcmp(a->text, b->text) == 0;
}

/* The one in use comes to the front: most look-ups end there. */
static struct passing_host *find(struct passing *passing, const struct passing_name *name)
{
    for (struct passing_host **link = &passing->hosts; *link != NULL; link = &(*link)->next) {
        struct passing_host *host = *link;
        if (is_name(&host->name, name)) {
            *link = host->next;
            host->next = passing->hosts;
            passing->hosts = host;
            return host;
        }
    }
    return NULL;
}

static struct passing_host *add(struct passing *passing, const struct passing_name *name)
{
    struct passing_host *host =
        passing->count == PASSING_NAMES || passing->ask == NULL ? NULL : calloc(1, sizeof *host);
    if (host != NULL) {
        host->name = *name;
        host->next = passing->hosts;
        passing->hosts = host;
        passing->count++;
        passing->ask(passing->asker);
    }
    return host;
}

static enum passing_found look(struct passing *passing, const struct passing_name *name, becalm_ns now, uint64_t random,
                               union address_socket *to)
{
    struct passing_host *host = find(passing, name);
    host = host == NULL ? add(passing, name) : host;
    if (host == NULL) {
        return PASSING_FULL;
    }
    host->used_at = now;
    if (host->count > 0) {
        *to = host->address[random % host->count];
        return PASSING_READY;
    }
    return !host->ended ? PASSING_LATER : host->guarded ? PASSING_GUARDED : PASSING_NONE;
}

enum passing_found passing_find(struct passing *passing, const struct passing_name *name, becalm_ns now,
                                uint64_t random, union address_socket *to)
{
    if (passing_literal(name, to)) {
        return name->written || !passing_guards(to) ? PASSING_READY : PASSING_GUARDED;
    }
    pthread_mutex_lock(&passing->lock);
    enum passing_found found = look(passing, name, now, random, to);
    pthread_mutex_unlock(&passing->lock);
    return found;
}

/* ---- the control thread's side ---- */

void passing_resolve_by(struct passing *passing, void (*ask)(void *asker), void *asker)
{
    pthread_mutex_lock(&passing->lock);
    passing->ask = ask;
    passing->asker = asker;
    pthread_mutex_unlock(&passing->lock);
}

struct passing_host *passing_next(struct passing *passing)
{
    pthread_mutex_lock(&passing->lock);
    struct passing_host *host = passing->hosts;
    while (host != NULL && host->asked) {
        host = host->next;
    }
    if (host != NULL) {
        host->asked = true;
    }
    pthread_mutex_unlock(&passing->lock);
    return host;
}

void passing_answer(struct passing *passing, struct passing_host *host, const union address_socket *list,
                    uint32_t count)
{
    pthread_mutex_lock(&passing->lock);
    host->ended = true;
    host->guarded = false;
    host->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool guarded = !host->name.written && passing_guards(&list[i]);
        host->guarded |= guarded;
        if (!guarded && host->count < PASSING_ADDRESSES) {
            host->address[host->count++] = list[i];
        }
    }
    pthread_mutex_unlock(&passing->lock);
}

struct passing_host *passing_unused(struct passing *passing, becalm_ns now)
{
    pthread_mutex_lock(&passing->lock);
    struct passing_host **link = &passing->hosts;
    while (*link != NULL && (!(*link)->asked || becalm_ns_since(now, (*link)->used_at) < PASSING_UNUSED)) {
        link = &(*link)->next;
    }
    struct passing_host *host = *link;
    if (host != NULL) {
        *link = host->next;
        passing->count--;
    }
    pthread_mutex_unlock(&passing->lock);
    return host;
}
