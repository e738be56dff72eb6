/* SPDX-License-Identifier: MIT */
/* Istio's Gateway says where clients come in, and with which certificates: `listen`. */
#include "istio.h"
#include "listeners.h"

#include <string.h>

#define EVERYWHERE "0.0.0.0"

bool istio_gateway_is(const struct object *object)
{
    return strcmp(object->kind, "Gateway") == 0 && (strcmp(object->group, "networking.istio.io") == 0 ||
                                                    source_get(source_get(object->node, "spec"), "servers") != NULL);
}

static const struct field tls_fields[] = {
    {"mode", NULL},
    {"serverCertificate", NULL},
    {"privateKey", NULL},
    {"caCertificates", NULL},
    {"credentialName", NULL},
    {"minProtocolVersion", NULL},
    {"httpsRedirect", NULL},
    {"maxProtocolVersion", NOTE "TLS 1.3 is always spoken"},
    {"cipherSuites", NOTE "ciphers are those of TLS 1.3, and ECDHE with AES-GCM or ChaCha20 of 1.2"},
    {"subjectAltNames", "clients with any certificate of clientCa can connect; trust says which of them are trusted"},
    {"verifyCertificateSpki", "clients with any certificate of clientCa can connect"},
    {"verifyCertificateHash", "clients with any certificate of clientCa can connect"},
    {"caCrl", "certificates that were revoked are not known here"},
    {NULL, NULL}};

static const char *text_at(struct source *s, const struct yaml_node *tls, const char *name, struct from *from)
{
    *from = (struct from){source_get(tls, name), emit_text(s->emit, "servers.tls.%s", name), NULL};
    const char *text = from->node == NULL ? NULL : source_text(s, from);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* The files of a Secret of Kubernetes have fixed names, wherever they are mounted. */
static void secret_read(struct source *s, struct listener *l, const char *name, bool asks, const struct from *from)
{
    source_no_equal(
        s, listener_keys(l), from,
        emit_text(s->emit, "it is a Secret of Kubernetes: mount it as the folder %s beside the policy", name));
    listener_certificate(s, l, emit_text(s->emit, "%s/tls.crt", name), emit_text(s->emit, "%s/tls.key", name), from);
    if (asks) {
        source_put_text(s, listener_keys(l), "tls.clientCa", emit_text(s->emit, "%s/ca.crt", name), from);
    }
}

/* TLS of clients: the server's certificate, and whether clients show one of their own. */
static void certificates_read(struct source *s, struct listener *l, const struct yaml_node *tls,
                              const struct from *mode)
{
    bool optional = yaml_is(mode->node, "OPTIONAL_MUTUAL");
    bool asks = optional || yaml_is(mode->node, "MUTUAL");
    struct from cert, key, ca, secret;
    const char *cert_file = text_at(s, tls, "serverCertificate", &cert);
    const char *key_file = text_at(s, tls, "privateKey", &key);
    const char *ca_file = text_at(s, tls, "caCertificates", &ca);
    const char *name = text_at(s, tls, "credentialName", &secret);
    if (name != NULL) {
        secret_read(s, l, name, asks, &secret);
    } else if (cert_file != NULL && key_file != NULL && (ca_file != NULL || !asks)) {
        listener_certificate(s, l, cert_file, key_file, &cert);
    } else {
        source_no_equal(s, NULL, mode, "it names no files of its certificates; its port is left out");
        listener_spoil(l);
        return;
    }
    if (asks && name == NULL) {
        source_put_text(s, listener_keys(l), "tls.clientCa", ca_file, &ca);
    }
    if (asks) {
        source_put_word(s, listener_keys(l), "tls.clientAuth", optional ? "optional" : "required", mode);
    }
}

static void tls_read(struct source *s, struct listener *l, const struct yaml_node *tls)
{
    const struct from mode = {source_get(tls, "mode"), "servers.tls.mode", NULL};
    const struct from redirect = {source_get(tls, "httpsRedirect"), "servers.tls.httpsRedirect", NULL};
    bool redirects = false;
    source_rest(s, listener_keys(l), tls, "servers.tls", tls_fields);
    if (source_boolean(s, &redirect, &redirects) && redirects) {
        source_no_equal(s, NULL, &redirect, "Becalm does not redirect: requests without TLS are passed on");
    }
    if (yaml_is(mode.node, "SIMPLE") || yaml_is(mode.node, "MUTUAL") || yaml_is(mode.node, "OPTIONAL_MUTUAL")) {
        certificates_read(s, l, tls, &mode);
        listener_oldest(s, l,
                        &(struct from){source_get(tls, "minProtocolVersion"), "servers.tls.minProtocolVersion", NULL});
    } else if (mode.node != NULL) {
        source_no_equal(s, NULL, &mode,
                        yaml_is(mode.node, "ISTIO_MUTUAL")
                            ? "the certificates of the mesh are not known here; its port is left out"
                            : "TLS is not passed through; its port is left out");
        listener_spoil(l);
    }
}

/* A host may have a namespace and a slash before it, which says nothing about clients. */
static bool takes_every_name(const struct yaml_node *hosts)
{
    bool all = hosts == NULL || hosts->kind != YAML_SEQUENCE || hosts->count == 0;
    for (uint32_t i = 0; !all && i < hosts->count; i++) {
        const char *text = hosts->item[i]->kind == YAML_SCALAR ? hosts->item[i]->text : "*";
        const char *slash = strchr(text, '/');
        all = strcmp(slash == NULL ? text : slash + 1, "*") == 0;
    }
    return all;
}

static void server_read(struct source *s, const struct yaml_node *server)
{
    static const struct field fields[] = {{"port", NULL}, {"hosts", NULL}, {"bind", NULL},
                                          {"tls", NULL},  {"name", NULL},  {NULL, NULL}};
    static const char *const spoken[] = {"HTTP", "HTTPS", "HTTP2", "GRPC", "GRPC-WEB", NULL};
    const struct from whole = {server, "servers", NULL};
    const struct from port = {source_get(server, "port"), "servers.port", NULL};
    if (!source_is(s, &whole, YAML_MAPPING) || port.node == NULL || !source_is(s, &port, YAML_MAPPING)) {
        return;
    }
    const struct from number = {source_get(port.node, "number"), "servers.port.number", NULL};
    const struct from protocol = {source_get(port.node, "protocol"), "servers.port.protocol", NULL};
    const struct from bind = {source_get(server, "bind"), "servers.bind", NULL};
    const struct from tls = {source_get(server, "tls"), "servers.tls", NULL};
    const char *host = bind.node == NULL ? EVERYWHERE : source_text(s, &bind);
    uint64_t value = 0;
    unsigned i = 0;
    source_rest(s, NULL, server, "servers", fields);
    while (protocol.node != NULL && spoken[i] != NULL && !yaml_is(protocol.node, spoken[i])) {
        i++;
    }
    if (spoken[i] == NULL) {
        source_aside(s, NULL, &protocol, "only HTTP is retried; the port is left out");
        return;
    }
    if (!source_integer(s, &number, &value) || host == NULL) {
        return;
    }
    struct listener *l = listener_at(s, host, value, &number);
    listener_speaks(l, true, true);
    if (tls.node != NULL && source_is(s, &tls, YAML_MAPPING)) {
        listener_names(l, takes_every_name(source_get(server, "hosts")));
        tls_read(s, l, tls.node);
    }
}

void istio_gateway_read(struct source *s, const struct yaml_node *spec)
{
    static const struct field fields[] = {
        {"servers", NULL}, {"selector", NOTE "a policy holds where Becalm runs"}, {NULL, NULL}};
    const struct from servers = {source_get(spec, "servers"), "servers", NULL};
    source_rest(s, NULL, spec, "", fields);
    for (uint32_t i = 0; source_is(s, &servers, YAML_SEQUENCE) && i < servers.node->count; i++) {
        server_read(s, servers.node->item[i]);
    }
}
