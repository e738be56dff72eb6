/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "admin_internal.h"

#include "http/text_internal.h"

#include <arpa/inet.h>

/* Access control. A browser on this machine can reach loopback for any page that it shows. So a page of another site
 * must neither read nor write here, under any name for 127.0.0.1. Programs send neither Origin nor Sec-Fetch-Site. */

/* ---- the token ---- */

/* Takes as long for a wrong token as for the right one. */
static bool same_secret(struct becalm_text said, const char *token)
{
    size_t length = strlen(token);
    unsigned differs = said.length != length;
    for (size_t i = 0; i < said.length; i++) {
        differs |= (unsigned char)said.at[i] ^ (unsigned char)token[i % length];
    }
    return differs == 0;
}

static bool has_token(const struct admin *admin, const struct admin_request *request)
{
    struct becalm_text value = head_find(request->head, FIELD_AUTHORIZATION);
    if (admin->token == NULL) {
        return true;
    }
    if (value.at == NULL || !text_take_word(&value, "bearer") || !text_take(&value, ' ')) {
        return false;
    }
    return same_secret(text_trim(value), admin->token);
}

/* ---- Host ---- */

static bool any_address(const union address_socket *socket, struct in6_addr *any)
{
    if (socket->any.sa_family == AF_INET6) {
        *any = socket->v6.sin6_addr;
        return true;
    }
    memset(any, 0, sizeof *any);
    any->s6_addr[10] = any->s6_addr[11] = 0xff;
    memcpy(any->s6_addr + 12, &socket->v4.sin_addr, 4);
    return socket->any.sa_family == AF_INET;
}

static bool parse_literal(struct becalm_text host, struct in6_addr *address)
{
    char text[INET6_ADDRSTRLEN];
    union address_socket v4 = {.v4 = {.sin_family = AF_INET}};
    bool bracketed = host.length > 2 && host.at[0] == '[' && host.at[host.length - 1] == ']';
    size_t length = bracketed ? host.length - 2 : host.length;
    if (length >= sizeof text) {
        return false;
    }
    memcpy(text, host.at + bracketed, length);
    text[length] = '\0';
    if (bracketed) {
        return inet_pton(AF_INET6, text, address) == 1;
    }
    return inet_pton(AF_INET, text, &v4.v4.sin_addr) == 1 && any_address(&v4, address);
}

static bool is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* A name can be made to mean any address, a literal can't. The port is of no interest: it may be forwarded. */
static bool is_our_name(const struct admin_request *request)
{
    struct becalm_text host = h1_authority(request->head);
    struct in6_addr named;
    struct in6_addr local;
    if (host.length == 0 || request->local->any.sa_family == AF_UNIX) { /* no browser is silent, or asks there */
        return true;
    }
    const char *colon = memrchr(host.at, ':', host.length);
    if (colon != NULL && host.at[host.length - 1] != ']') {
        host.length = (size_t)(colon - host.at);
    }
    if (text_is_word(host, "localhost")) {
        return true;
    }
    return parse_literal(host, &named) &&
           (is_loopback(&named) || (any_address(request->local, &local) && memcmp(&named, &local, sizeof local) == 0));
}

/* ---- Origin and Sec-Fetch-Site ---- */

static bool is_same_origin(const struct admin_request *request)
{
    struct becalm_text origin = head_find(request->head, FIELD_ORIGIN);
    struct becalm_text host = h1_authority(request->head);
    if (origin.at == NULL) {
        return true;
    }
    if (!text_take_word(&origin, "http://") && !text_take_word(&origin, "https://")) {
        return false;
    }
    if (origin.length != host.length || host.length == 0) {
        return false;
    }
    for (size_t i = 0; i < host.length; i++) {
        if (to_lower(origin.at[i]) != to_lower(host.at[i])) {
            return false;
        }
    }
    return true;
}

static bool writes_from_here(const struct admin_request *request, struct admin_answer *answer)
{
    struct becalm_text site = head_find_other(request->head, text_of("sec-fetch-site"));
    if (site.at != NULL && !text_is_word(site, "same-origin") && !text_is_word(site, "none")) {
        admin_problem(answer, 403, "Pages of other sites may not write here.");
        return false;
    }
    if (head_has(request->head, FIELD_ORIGIN) &&
        !text_is_media_type(head_find(request->head, FIELD_CONTENT_TYPE), "application/json")) {
        admin_problem(answer, 415, "A page in a browser sends Content-Type: application/json.");
        return false;
    }
    return true;
}

bool admin_guard(const struct admin *admin, const struct admin_request *request, bool is_open,
                 struct admin_answer *answer)
{
    bool reads = text_is(request->method, "GET") || text_is(request->method, "HEAD");
    /* If a token is required, a page of another site learns nothing without it: then any host name is allowed. */
    if (admin->token == NULL && !is_our_name(request)) {
        admin_problem(answer, 403,
                      "Host is neither localhost, nor a loopback address, nor the address that this came in by.");
        return false;
    }
    if (!is_same_origin(request)) {
        admin_problem(answer, 403, "Origin is another site.");
        return false;
    }
    if (!is_open && !has_token(admin, request)) {
        admin_problem(answer, 401, "Send Authorization: Bearer and the token of adminTokenFile.");
        answer->ask_token = true;
        return false;
    }
    return reads || writes_from_here(request, answer);
}
