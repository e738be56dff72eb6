/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis.h"

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

/* What stands before the @: a password alone is `:password@`. */
static bool login_parse(const char *text, size_t length, struct redis_place *place)
{
    const char *colon = memchr(text, ':', length);
    size_t user = colon == NULL ? length : (size_t)(colon - text);
    return decode(place->user, sizeof place->user, text, user) &&
           (colon == NULL || decode(place->password, sizeof place->password, colon + 1, length - user - 1));
}

static const char *host_parse(const char *text, struct redis_place *place)
{
    struct address address;
    size_t length = strcspn(text, "/?#");
    char *end = NULL;
    const char *colon = memrchr(text, ':', length);
    const char *bracket = memrchr(text, ']', length);
    bool port = colon != NULL && (bracket == NULL || colon > bracket);
    int written = snprintf(place->host, sizeof place->host, "%.*s%s", (int)length, text, port ? "" : ":6379");
    if (length == 0 || written < 0 || (size_t)written >= sizeof place->host || !address_parse(place->host, &address)) {
        return "it has no host";
    }
    if (text[length] == '/' && text[length + 1] != 0) {
        place->database = (uint32_t)strtoul(text + length + 1, &end, 10);
        if (*end != 0 || place->database > 65535) {
            return "what follows the host is the number of a database";
        }
    } else if (text[length] != 0 && text[length] != '/') {
        return "nothing may follow the database";
    }
    return NULL;
}

const char *redis_place_parse(const char *url, struct redis_place *place)
{
    static const char local[] = "redis+unix://";
    static const char plain[] = "redis://";
    memset(place, 0, sizeof *place);
    if (strncmp(url, "rediss://", 9) == 0) {
        return "TLS to Redis is not there yet; write redis://, on a network that you trust";
    }
    if (strncmp(url, local, sizeof local - 1) == 0) {
        struct address address;
        int written = snprintf(place->host, sizeof place->host, "unix:%s", url + sizeof local - 1);
        bool right = written > 0 && (size_t)written < sizeof place->host && address_parse(place->host, &address);
        return right ? NULL : "it has no path of a socket";
    }
    if (strncmp(url, plain, sizeof plain - 1) != 0) {
        return "it begins with redis:// or redis+unix://";
    }
    const char *text = url + sizeof plain - 1;
    const char *at = memrchr(text, '@', strcspn(text, "/?#"));
    if (at != NULL && !login_parse(text, (size_t)(at - text), place)) {
        return "user or password is too long, or has a % without two hex digits behind it";
    }
    return host_parse(at == NULL ? text : at + 1, place);
}
