/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <string.h>

static bool scheme_has_tls(const char *scheme)
{
    return strcmp(scheme, "https") == 0 || strcmp(scheme, "grpcs") == 0 || strcmp(scheme, "wss") == 0;
}

static bool scheme_is_h2(const char *scheme)
{
    return strcmp(scheme, "h2c") == 0 || strcmp(scheme, "grpc") == 0 || strcmp(scheme, "grpcs") == 0;
}

bool place_of(struct source *s, const char *scheme, const char *host, uint64_t port, struct host_place *out)
{
    bool bare_v6 = strchr(host, ':') != NULL && host[0] != '[';
    *out = (struct host_place){.path = "", .tls = scheme_has_tls(scheme), .h2 = scheme_is_h2(scheme)};
    const char *address = emit_text(s->emit, "%s%s%s:%llu", bare_v6 ? "[" : "", host, bare_v6 ? "]" : "",
                                    (unsigned long long)(port != 0  ? port
                                                         : out->tls ? 443
                                                                    : 80));
    if (!value_address_of_host(address)) {
        return false;
    }
    out->address = out->tls ? emit_text(s->emit, "https://%s", address) : address;
    return true;
}

bool place_read(struct source *s, const char *text, struct host_place *out)
{
    const char *colon = strstr(text, "://");
    const char *scheme = colon == NULL ? "http" : emit_text(s->emit, "%.*s", (int)(colon - text), text);
    const char *rest = colon == NULL ? text : colon + 3;
    size_t length = strcspn(rest, "/?#");
    const char *name = emit_text(s->emit, "%.*s", (int)length, rest);
    const char *bracket = strrchr(name, ']');
    const char *behind = strrchr(bracket == NULL ? name : bracket, ':');
    uint64_t port = 0;
    if (behind != NULL && (!value_integer(behind + 1, &port) || port == 0 || port > 65535)) {
        return false;
    }
    const char *host = behind == NULL ? name : emit_text(s->emit, "%.*s", (int)(behind - name), name);
    bool fine = place_of(s, scheme, host, port, out);
    out->path = emit_text(s->emit, "%s", rest + length);
    return fine;
}
