/* SPDX-License-Identifier: MIT */
/* Envoy's TLS: of clusters, which is `tls` of a service, and of listeners, which is `tls` in `listen`. */
#include "envoy.h"

#include "policy/import/listeners.h"

#include <string.h>

#define ELSEWHERE "certificates come from elsewhere (SDS): write "

/* Both sides have these. */
struct tls {
    const struct yaml_node *config; /* UpstreamTlsContext, DownstreamTlsContext */
    const struct yaml_node *common;
    const struct yaml_node *validation;
    const struct yaml_node *ca;
    const struct yaml_node *certificates;
    bool elsewhere; /* some of its files come by SDS */
};

static struct tls tls_of(const struct yaml_node *socket)
{
    const struct yaml_node *config = envoy_config_of(socket);
    struct tls tls = {.config = config != NULL ? config : socket};
    tls.common = source_get(tls.config, "common_tls_context");
    const struct yaml_node *combined = source_get(tls.common, "combined_validation_context");
    tls.validation = source_get(combined != NULL ? combined : tls.common,
                                combined != NULL ? "default_validation_context" : "validation_context");
    tls.ca = source_get(tls.validation, "trusted_ca");
    tls.certificates = source_get(tls.common, "tls_certificates");
    tls.elsewhere =
        source_get(tls.common, "tls_certificate_sds_secret_configs") != NULL ||
        source_get(combined != NULL ? combined : tls.common, "validation_context_sds_secret_config") != NULL;
    return tls;
}

static bool is_plain(const struct yaml_node *socket)
{
    const struct yaml_node *name = source_get(socket, "name");
    return name != NULL && name->kind == YAML_SCALAR && strstr(name->text, "raw_buffer") != NULL;
}

/* ---- hosts ---- */

/* The name of a file, of a DataSource. */
static struct from file_taken(struct source *s, struct emit_target *target, const char *key,
                              const struct yaml_node *data, const char *path)
{
    const struct from file = {source_get(data, "filename"), path, NULL};
    if (data != NULL && (file.node == NULL || source_text(s, &file) == NULL)) {
        source_no_equal(s, target, &(struct from){data, path, NULL},
                        emit_text(s->emit, "it is in no file: write %s", key));
        return (struct from){NULL, path, NULL};
    }
    return file;
}

/* Envoy verifies a name only where it is told which; here it is always verified. */
static void name_read(struct source *s, struct emit_target *target, const struct tls *tls)
{
    static const char *const keys[] = {"match_typed_subject_alt_names", "match_subject_alt_names",
                                       "verify_subject_alt_name", NULL};
    const struct from sni = {source_get(tls->config, "sni"), "transport_socket.sni", NULL};
    struct from names = {0};
    for (unsigned i = 0; keys[i] != NULL && names.node == NULL; i++) {
        names = (struct from){source_get(tls->validation, keys[i]), keys[i], NULL};
    }
    hosts_name_put(s, target, &sni, &names);
    if (source_get(tls->ca, "filename") == NULL || names.node != NULL) {
        return;
    }
    const struct from ca = {tls->ca, "validation_context.trusted_ca", NULL};
    if (sni.node != NULL) {
        source_aside(s, target, &ca, "Envoy verifies no name; here a certificate must have the one of tls.serverName");
    } else {
        source_no_equal(
            s, target, &ca,
            "Envoy verifies no name; here a certificate must have the host's own, or that of tls.serverName");
    }
}

void envoy_host_tls_read(struct source *s, struct emit_target *target, const struct from *socket)
{
    const struct tls tls = tls_of(socket->node);
    if (is_plain(socket->node)) {
        return;
    }
    if (tls.common == NULL) {
        source_no_equal(s, target, socket, "of transport sockets only TLS is read; hosts are called without it");
        return;
    }
    if (tls.elsewhere) {
        source_no_equal(s, target, socket, ELSEWHERE "tls.cert, tls.key and tls.ca");
    }
    if (tls.ca == NULL && !tls.elsewhere) {
        const struct from unverified = {socket->node, socket->path, "without a trusted_ca Envoy verifies nothing"};
        source_put_word(s, target, "tls.verify", "none", &unverified);
    }
    name_read(s, target, &tls);
    const struct from ca = file_taken(s, target, "tls.ca", tls.ca, "validation_context.trusted_ca");
    if (ca.node != NULL) {
        source_put_text(s, target, "tls.ca", ca.node->text, &ca);
    }
    if (tls.certificates != NULL && tls.certificates->kind == YAML_SEQUENCE && tls.certificates->count > 0) {
        const struct yaml_node *first = tls.certificates->item[0];
        const struct from cert = file_taken(s, target, "tls.cert", source_get(first, "certificate_chain"),
                                            "tls_certificates.certificate_chain");
        const struct from key =
            file_taken(s, target, "tls.key", source_get(first, "private_key"), "tls_certificates.private_key");
        source_put_certificate(s, target, &cert, &key);
    }
}

/* ---- clients ---- */

static const struct field client_fields[] = {
    {"@type", NULL},
    {"common_tls_context", NULL},
    {"require_client_certificate", NULL},
    {"require_sni", NOTE "strictSni refuses clients that name none of the certificates"},
    {"session_ticket_keys", NOTE "ticketKeysFile has other files: lines of 80 bytes in base64"},
    {"session_ticket_keys_sds_secret_config", NOTE "ticketKeysFile has the keys of all replicas"},
    {"session_timeout", NOTE "a ticket opens for three hours"},
    {"disable_stateless_session_resumption", NOTE "sessions are resumed by tickets"},
    {"disable_stateful_session_resumption", NULL},
    {"ocsp_staple_policy", NOTE "certificates are not stapled"},
    {NULL, NULL}};
static const struct field common_fields[] = {{"tls_params", NULL},
                                             {"tls_certificates", NULL},
                                             {"validation_context", NULL},
                                             {"combined_validation_context", NULL},
                                             {"alpn_protocols", NULL},
                                             {"tls_certificate_sds_secret_configs", NULL},
                                             {"validation_context_sds_secret_config", NULL},
                                             {"key_log", NOTE "keys are not written anywhere"},
                                             {NULL, NULL}};
static const struct field params_fields[] = {
    {"tls_minimum_protocol_version", NULL},
    {"tls_maximum_protocol_version", NOTE "TLS 1.3 is always spoken"},
    {"cipher_suites", NOTE "ciphers are those of TLS 1.3, and ECDHE with AES-GCM or ChaCha20 of 1.2"},
    {"ecdh_curves", NOTE "curves are those of OpenSSL"},
    {NULL, NULL}};
static const struct field validation_fields[] = {
    {"trusted_ca", NULL},
    {"crl", "certificates that were revoked are not known here"},
    {"match_typed_subject_alt_names", "clients with any certificate of clientCa can connect"},
    {"match_subject_alt_names", "clients with any certificate of clientCa can connect"},
    {"verify_subject_alt_name", "clients with any certificate of clientCa can connect"},
    {"verify_certificate_spki", "clients with any certificate of clientCa can connect"},
    {"verify_certificate_hash", "clients with any certificate of clientCa can connect"},
    {NULL, NULL}};

static void spoil(struct source *s, struct listener *l, const struct from *from, const char *why)
{
    source_no_equal(s, NULL, from, emit_text(s->emit, "%s; its address is left out", why));
    listener_spoil(l);
}

static const char *file_of(const struct yaml_node *data)
{
    const struct yaml_node *file = source_get(data, "filename");
    return file != NULL && file->kind == YAML_SCALAR && file->text[0] != '\0' ? file->text : NULL;
}

static void certificates_read(struct source *s, struct listener *l, const struct tls *tls, const struct from *socket)
{
    const struct from list = {tls->certificates, "tls_certificates", NULL};
    if (tls->elsewhere) {
        spoil(s, l, socket, ELSEWHERE "tls in listen");
        return;
    }
    if (list.node == NULL || list.node->kind != YAML_SEQUENCE || list.node->count == 0) {
        spoil(s, l, socket, "it has no certificate");
        return;
    }
    for (uint32_t i = 0; i < list.node->count; i++) {
        const struct from from = {list.node->item[i], list.path, NULL};
        const char *cert = file_of(source_get(from.node, "certificate_chain"));
        const char *key = file_of(source_get(from.node, "private_key"));
        if (cert == NULL || key == NULL) {
            spoil(s, l, &from, "a certificate or its key is in no file");
            return;
        }
        listener_certificate(s, l, cert, key, &from);
    }
}

/* Whether clients may or must show a certificate. */
static void clients_read(struct source *s, struct listener *l, const struct tls *tls)
{
    const struct from require = {source_get(tls->config, "require_client_certificate"), "require_client_certificate",
                                 NULL};
    const struct from ca = {tls->ca, "validation_context.trusted_ca", NULL};
    bool required = false;
    required = source_boolean(s, &require, &required) && required;
    if (file_of(tls->ca) != NULL) {
        source_put_text(s, listener_keys(l), "tls.clientCa", file_of(tls->ca), &ca);
        source_put_word(s, listener_keys(l), "tls.clientAuth", required ? "required" : "optional",
                        required ? &require : &ca);
    } else if (ca.node != NULL) {
        spoil(s, l, &ca, "it is in no file, and without it every client could connect");
    } else if (required && !tls->elsewhere) {
        spoil(s, l, &require, "without a trusted_ca no certificate of a client can be verified");
    }
}

bool envoy_client_tls_read(struct source *s, struct listener *l, const struct from *socket, bool *offers_h2)
{
    const struct tls tls = tls_of(socket->node);
    const struct yaml_node *params = source_get(tls.common, "tls_params");
    const struct yaml_node *alpn = source_get(tls.common, "alpn_protocols");
    *offers_h2 = false;
    if (is_plain(socket->node)) {
        return false;
    }
    if (tls.common == NULL) {
        spoil(s, l, socket, "of transport sockets only TLS is read");
        return true;
    }
    source_rest(s, listener_keys(l), tls.config, "transport_socket", client_fields);
    source_rest(s, listener_keys(l), tls.common, "common_tls_context", common_fields);
    source_rest(s, listener_keys(l), params, "tls_params", params_fields);
    source_rest(s, listener_keys(l), tls.validation, "validation_context", validation_fields);
    certificates_read(s, l, &tls, socket);
    clients_read(s, l, &tls);
    listener_oldest(s, l,
                    &(struct from){source_get(params, "tls_minimum_protocol_version"),
                                   "tls_params.tls_minimum_protocol_version", NULL});
    for (uint32_t i = 0; alpn != NULL && alpn->kind == YAML_SEQUENCE && i < alpn->count; i++) {
        *offers_h2 = *offers_h2 || yaml_is(alpn->item[i], "h2");
    }
    return true;
}
