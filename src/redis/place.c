/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* False: it is too long, or a % has no two digits. */
static bool decode(char *to, size_t size, const char *from, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (c == '%') {
            if (length - i < 3 || hex(from[i + 1]) < 0 || hex(from[i + 2]) < 0) {
                return false;
            }
            c = (char)(hex(from[i + 1]) * 16 + hex(from[i + 2]));
            i += 2;
        }
        if (n + 1 >= size || c == 0) {
            return false;
        }
        to[n++] = c;
    }
    to[n] = 0;
    return true;
}

/* Parses the part before the @: a password alone is `:password@`. */
static bool login_parse(const char *text, size_t length, struct redis_place *place)
{
    const char *colon = memchr(text, ':', length);
    size_t user = colon == NULL ? length : (size_t)(colon - text);
    return decode(place->user, sizeof place->user, text, user) &&
           (colon == NULL || decode(place->password, sizeof place->password, colon + 1, length - user - 1));
}

static bool host_add(struct redis_place *place, const char *text, size_t length)
{
    struct address address;
    const char *colon = memrchr(text, ':', length);
    const char *bracket = memrchr(text, ']', length);
    bool port = colon != NULL && (bracket == NULL || colon > bracket);
    const char *usual = port ? "" : place->master[0] != 0 ? ":26379" : ":6379";
    if (length == 0 || place->host_count == REDIS_HOSTS_MAX) {
        return false;
    }
    char *host = place->host[place->host_count++];
    int written = snprintf(host, REDIS_HOST_MAX, "%.*s%s", (int)length, text, usual);
    return written > 0 && (size_t)written < REDIS_HOST_MAX && address_parse(host, &address);
}

static bool hosts_parse(const char *text, size_t length, struct redis_place *place)
{
    for (;;) {
        const char *comma = memchr(text, ',', length);
        size_t one = comma == NULL ? length : (size_t)(comma - text);
        if (!host_add(place, text, one)) {
            return false;
        }
        if (comma == NULL) {
            return true;
        }
        text += one + 1;
        length -= one + 1;
    }
}

/* Parses the part after the hosts. */
static const char *rest_parse(const char *text, struct redis_place *place)
{
    static const char sentinel[] = "?sentinel=";
    size_t path = strcspn(text, "?#");
    char *end = NULL;
    if (path > 1) {
        unsigned long database = text[1] >= '0' && text[1] <= '9' ? strtoul(text + 1, &end, 10) : 65536;
        if (database > 65535 || end != text + path) {
            return "what follows the host is the number of a database";
        }
        place->database = (uint32_t)database;
    }
    text += path;
    if (*text == 0) {
        return NULL;
    }
    size_t length = sizeof sentinel - 1;
    if (strncmp(text, sentinel, length) != 0 || text[length] == 0 ||
        !decode(place->master, sizeof place->master, text + length, strlen(text + length))) {
        return "nothing may follow the database but ?sentinel=NAME";
    }
    return NULL;
}

static const char *local_parse(const char *path, struct redis_place *place)
{
    struct address address;
    int written = snprintf(place->host[0], sizeof place->host[0], "unix:%s", path);
    bool right = written > 0 && (size_t)written < sizeof place->host[0] && address_parse(place->host[0], &address);
    place->host_count = 1;
    return right ? NULL : "it has no path of a socket";
}

const char *redis_place_parse(const char *url, struct redis_place *place)
{
    static const char local[] = "redis+unix://";
    static const char plain[] = "redis://";
    static const char sealed[] = "rediss://";
    memset(place, 0, sizeof *place);
    if (strncmp(url, local, sizeof local - 1) == 0) {
        return local_parse(url + sizeof local - 1, place);
    }
    place->tls = strncmp(url, sealed, sizeof sealed - 1) == 0;
    if (!place->tls && strncmp(url, plain, sizeof plain - 1) != 0) {
        return "it begins with redis://, rediss:// or redis+unix://";
    }
    const char *text = url + (place->tls ? sizeof sealed : sizeof plain) - 1;
    const char *at = memrchr(text, '@', strcspn(text, "/?#"));
    if (at != NULL && !login_parse(text, (size_t)(at - text), place)) {
        return "user or password is too long, or has a % without two hex digits behind it";
    }
    text = at == NULL ? text : at + 1;
    size_t hosts = strcspn(text, "/?#");
    const char *why = rest_parse(text + hosts, place); /* first: it decides which port is the usual one */
    return why != NULL ? why : hosts_parse(text, hosts, place) ? NULL : "it has no host, or more than eight";
}
