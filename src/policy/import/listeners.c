/* SPDX-License-Identifier: MIT */
#include "listeners.h"

#include "policy/value.h"

#include <string.h>

#define CERTIFICATES_MAX 64u

struct listener {
    struct listener *next;
    const char *address;
    const char *file;
    struct from from;
    struct emit_target *keys;
    struct source_list certificates; /* each "{cert: a.pem, key: a.key}" */
    const char *certificate_from;
    bool spoilt;
    bool h1;
    bool h2;
    bool every_name;
    bool some_names;
};

struct listener *listener_at(struct source *s, const char *host, uint64_t port, const struct from *from)
{
    bool v6 = strchr(host, ':') != NULL;
    const char *address =
        emit_text(s->emit, "%s%s%s:%llu", v6 ? "[" : "", host, v6 ? "]" : "", (unsigned long long)port);
    if (!value_address(address) || value_address_is_name(address) || port == 0) {
        source_no_equal(s, NULL, from, emit_text(s->emit, "\"%.64s\" is no address to listen on", address));
        return NULL;
    }
    struct listener *l = s->listeners;
    while (l != NULL && strcmp(l->address, address) != 0) {
        l = l->next;
    }
    if (l == NULL && (l = emit_take(s->emit, sizeof *l)) != NULL) {
        *l = (struct listener){.address = address, .file = s->file, .from = *from, .certificates = {.emit = s->emit}};
        l->keys = emit_listener(s->emit, address, source_where(s, from));
        struct listener **end = &s->listeners;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = l;
    }
    return l;
}

void listener_certificate(struct source *s, struct listener *l, const char *cert, const char *key,
                          const struct from *from)
{
    if (l == NULL) {
        return;
    }
    if (l->certificates.count == CERTIFICATES_MAX) {
        source_no_equal(s, NULL, from, "an address has at most 64 certificates");
        return;
    }
    if (l->certificate_from == NULL) {
        l->certificate_from = source_where(s, from);
    }
    source_list_add(&l->certificates,
                    emit_text(s->emit, "{cert: %s, key: %s}", emit_quote(s->emit, cert), emit_quote(s->emit, key)));
}

void listener_spoil(struct listener *l)
{
    if (l != NULL) {
        l->spoilt = true;
    }
}

struct emit_target *listener_keys(struct listener *l)
{
    return l == NULL ? NULL : l->keys;
}

void listener_speaks(struct listener *l, bool h1, bool h2)
{
    if (l != NULL) {
        l->h1 = l->h1 || h1;
        l->h2 = l->h2 || h2;
    }
}

void listener_names(struct listener *l, bool all)
{
    if (l != NULL) {
        l->every_name = l->every_name || all;
        l->some_names = l->some_names || !all;
    }
}

void listener_oldest(struct source *s, struct listener *l, const struct from *from)
{
    if (l == NULL || from->node == NULL || source_text(s, from) == NULL || yaml_is(from->node, "TLS_AUTO")) {
        return;
    }
    if (source_same(from->node->text, "TLSv13")) {
        source_put_text(s, l->keys, "tls.minVersion", "1.3", from);
    } else if (source_same(from->node->text, "TLSv12")) {
        source_put_text(s, l->keys, "tls.minVersion", "1.2", from);
    } else {
        source_no_equal(s, l->keys, from, "TLS 1.2 is the oldest version that Becalm accepts");
    }
}

static const char *joined(struct source *s, const struct source_list *list)
{
    const char *text = "[";
    for (const struct source_item *item = list->first; item != NULL; item = item->next) {
        text = emit_text(s->emit, "%s%s%s", text, item == list->first ? "" : ", ", item->text);
    }
    return emit_text(s->emit, "%s]", text);
}

void listeners_write(struct source *s)
{
    bool any = false;
    for (const struct listener *l = s->listeners; l != NULL; l = l->next) {
        any = any || (l->certificates.count > 0 && !l->spoilt);
    }
    for (struct listener *l = s->listeners; !any && l != NULL; l = l->next) {
        s->file = l->file;
        source_aside(s, NULL, &l->from, "`listen` sets the addresses that Becalm listens on");
    }
    for (struct listener *l = s->listeners; any && l != NULL; l = l->next) {
        bool h1 = l->h1 || !l->h2;
        if (l->spoilt) {
            continue;
        }
        if (l->certificates.count > 0) {
            emit_put(l->keys, "tls.certificates", joined(s, &l->certificates), l->certificate_from);
        }
        if (l->certificates.count > 0 && l->some_names && !l->every_name) {
            emit_put(l->keys, "tls.strictSni", "true", "clients come in by the names that are listed");
        }
        emit_put(l->keys, "protocols", h1 && l->h2 ? "[h2, h1]" : h1 ? "[h1]" : "[h2]", NULL);
        emit_listen(l->keys);
    }
}

/* The text of a name, or of a matcher that asks for exactly one; NULL: it asks for something else. */
static const char *exact_name(const struct yaml_node *node)
{
    const struct yaml_node *matcher = source_get(node, "matcher");
    const struct yaml_node *type = source_get(node, "san_type");
    const struct yaml_node *exact = source_get(matcher != NULL ? matcher : node, "exact");
    bool dns = type == NULL || yaml_is(type, "DNS");
    node = node->kind == YAML_SCALAR ? node : exact;
    bool fine = dns && node != NULL && node->kind == YAML_SCALAR && strchr(node->text, '/') == NULL;
    return fine ? node->text : NULL;
}

void hosts_name_put(struct source *s, struct emit_target *service, const struct from *sni, const struct from *names)
{
    const char *asked = sni->node == NULL ? NULL : source_text(s, sni);
    if (asked != NULL && asked[0] != '\0') {
        source_put_text(s, service, "tls.serverName", asked, sni);
    }
    if (names->node == NULL || !source_is(s, names, YAML_SEQUENCE) || names->node->count == 0) {
        return;
    }
    bool same = false;
    const char *first = exact_name(names->node->item[0]);
    for (uint32_t i = 0; i < names->node->count; i++) {
        const char *name = exact_name(names->node->item[i]);
        same = same || (name != NULL && asked != NULL && strcmp(name, asked) == 0);
    }
    if (asked == NULL && first != NULL) {
        source_put_text(s, service, "tls.serverName", first, names);
    }
    if ((asked != NULL && !same) || (asked == NULL && first == NULL)) {
        source_no_equal(s, service, names, "a certificate must have the name that is asked for: tls.serverName");
    } else if (names->node->count > 1) {
        source_no_equal(s, service, names, "a certificate must have one name, tls.serverName");
    }
}
