/* SPDX-License-Identifier: MIT */
#include "tracing.h"

#include "http/text_internal.h"
#include "http/url.h"

#include <string.h>

static bool has_only(struct becalm_text text, bool (*fits)(char))
{
    for (size_t i = 0; i < text.length; i++) {
        if (!fits(text.at[i])) {
            return false;
        }
    }
    return true;
}

static bool is_visible(char c)
{
    return c > ' ' && c < 0x7f;
}

static bool is_written(char c) /* in a field's value: no control byte may begin another line */
{
    return (unsigned char)c >= ' ' && c != 0x7f;
}

/* http:// or https:// with a host, and no part that an export does not use. Credentials belong into headers, which are
 * never shown. */
static bool endpoint_is_fine(const char *endpoint)
{
    struct becalm_text text = {endpoint, strlen(endpoint)};
    struct becalm__url url = becalm__url_split(text);
    bool web = strncmp(endpoint, "http://", 7) == 0 || strncmp(endpoint, "https://", 8) == 0;
    return web && url.host.length > 0 && url.host.at[0] != ':' && has_only(text, is_visible) &&
           strpbrk(endpoint, "@?#") == NULL;
}

/* "name: value". */
static bool header_is_fine(const char *header)
{
    const char *colon = strchr(header, ':');
    struct becalm_text name = {header, colon == NULL ? 0 : (size_t)(colon - header)};
    struct becalm_text value = {header, strlen(header)};
    return name.length > 0 && has_only(name, is_token_char) && has_only(value, is_written);
}

static void headers_check(struct loader *l, const struct becalm_tracing *tracing, const struct yaml_node *node)
{
    for (size_t i = 0; node != NULL && tracing->headers[i] != NULL; i++) {
        if (!header_is_fine(tracing->headers[i])) { /* without the text: it may be a secret */
            loader_error(l, node->line, node->column, "wrong-type",
                         "tracing.headers: item %zu is no field; write \"name: value\"", i + 1);
        }
    }
}

static void tls_check(struct loader *l, const struct becalm_tracing *tracing, const struct yaml_node *node)
{
    static const char *const keys[] = {"ca", "cert", "key", "verify"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct yaml_node *at = loader_inside(node, keys[i]);
        if (at != NULL && tracing->endpoint != NULL && !tracing->tls.enabled) {
            loader_error(l, at->line, at->column, "conflict",
                         "tracing.%s is for TLS; write endpoint: https://host:4318", keys[i]);
        }
    }
    loader_needs(l, loader_inside(node, "cert"), tracing->tls.key.path != NULL,
                 "tracing.cert needs its private key; write key: FILE");
    loader_needs(l, loader_inside(node, "key"), tracing->tls.cert.path != NULL,
                 "tracing.key needs its certificate; write cert: FILE");
}

void tracing_check(struct loader *l, struct becalm_tracing *tracing, const struct yaml_node *root)
{
    const struct yaml_node *node = loader_inside(root, "tracing");
    const struct yaml_node *endpoint = loader_inside(node, "endpoint");
    tracing->line = endpoint == NULL ? 0 : endpoint->line;
    tracing->column = endpoint == NULL ? 0 : endpoint->column;
    tracing->tls.enabled = tracing->endpoint != NULL && strncmp(tracing->endpoint, "https://", 8) == 0;
    if (node != NULL && node->kind == YAML_MAPPING && node->count > 0 && endpoint == NULL) {
        loader_error(l, node->line, node->column, "missing",
                     "tracing has no endpoint; write endpoint: http://collector:4318, or none");
    }
    if (tracing->endpoint != NULL && !endpoint_is_fine(tracing->endpoint)) {
        loader_error(l, tracing->line, tracing->column, "wrong-type",
                     "tracing.endpoint is not the URL of a collector; write http://collector:4318 or https://, without "
                     "user and query, or none");
    }
    headers_check(l, tracing, loader_inside(node, "headers"));
    tls_check(l, tracing, node);
}
