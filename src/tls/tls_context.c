/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tls_context.h"
#include "tls_names.h"

#include "libssl/libssl.h"
#include "policy/file.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define SOON (7 * 24 * 3600) /* a certificate that ends in this time is worth a warning */

/* A name of a certificate. */
struct tls_name {
    char *text;
    uint32_t certificate;
};

/* A file of the policy, read once: the same bytes are compared with the old context and used. */
struct text {
    const struct becalm_file *file;
    char *at; /* NULL: there is none */
    size_t length;
};

struct loading {
    const struct tls_plan *plan;
    EVP_MD_CTX *hash;
    bool failed; /* and said so */
};

static void complain(const struct tls_plan *plan, enum becalm_severity severity, const struct becalm_file *at,
                     const char *code, const char *format, ...) __attribute__((format(printf, 5, 6)));
static void complain(const struct tls_plan *plan, enum becalm_severity severity, const struct becalm_file *at,
                     const char *code, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    bool set = at->line == 0;
    becalm_diag_add(plan->diags, severity, set ? "--set" : plan->policy, set ? 1 : at->line, set ? 1 : at->column, code,
                    "%s", message);
}

/* OpenSSL is loaded with the first policy that has TLS. The machine lacks it, no line of the policy does. */
static bool library_found(const struct tls_plan *plan)
{
    static const struct becalm_file top = {.line = 1, .column = 1};
    const char *why = libssl_find();
    if (why != NULL) {
        complain(plan, BECALM_ERROR, &top, "unreadable", "TLS needs OpenSSL, which can't be loaded: %s", why);
    }
    return why == NULL;
}

/* Files. */

static void text_free(struct text *text)
{
    if (text->at != NULL) {
        OPENSSL_cleanse(text->at, text->length);
        free(text->at);
        text->at = NULL;
    }
}

static void mark_bytes(struct loading *loading, const void *bytes, size_t length)
{
    uint64_t size = length;
    EVP_DigestUpdate(loading->hash, &size, sizeof size);
    EVP_DigestUpdate(loading->hash, bytes, length);
}

static void mark_text(struct loading *loading, const char *text)
{
    mark_bytes(loading, text == NULL ? "" : text, text == NULL ? 0 : strlen(text));
}

static struct text read_file(struct loading *loading, const struct becalm_file *file)
{
    struct text text = {.file = file};
    const char *why;
    mark_text(loading, file->path);
    if (file->path == NULL) {
        return text;
    }
    text.at = file_read_regular(file->path, &text.length, &why);
    if (text.at == NULL) {
        complain(loading->plan, BECALM_ERROR, file, "unreadable", "%s: %s", file->path, why);
        loading->failed = true;
        return text;
    }
    mark_bytes(loading, text.at, text.length);
    return text;
}

/* Never asks for a passphrase at a terminal. */
static int no_passphrase(char *buffer, int size, int writes, void *data)
{
    (void)buffer;
    (void)size;
    (void)writes;
    (void)data;
    return -1;
}

/* Certificates. */

static X509 *next_certificate(BIO *bio)
{
    X509 *certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
    ERR_clear_error(); /* the end of the file is one */
    return certificate;
}

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm parts = {0};
    return ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

static void date_text(int64_t seconds, char text[32])
{
    struct tm parts;
    time_t time = (time_t)seconds;
    text[0] = '\0';
    if (gmtime_r(&time, &parts) != NULL) {
        strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
}

/* Is it valid now? `known`: it is in force already, or all there is, so that it stops nothing. */
static void time_check(struct loading *loading, const struct tls_expiry *expiry, const struct becalm_file *file,
                       int64_t not_before, bool known)
{
    int64_t now = (int64_t)time(NULL);
    char date[32];
    enum becalm_severity severity = known ? BECALM_WARNING : BECALM_ERROR;
    if (expiry->at <= now) {
        date_text(expiry->at, date);
        complain(loading->plan, severity, file, "expired", "%s: the certificate expired at %s; renew it", file->path,
                 date);
        loading->failed |= !known;
    } else if (not_before > now) {
        date_text(not_before, date);
        complain(loading->plan, severity, file, "expired",
                 "%s: the certificate is valid only from %s on; set the clock, or wait", file->path, date);
        loading->failed |= !known;
    } else if (expiry->at - now < SOON) {
        date_text(expiry->at, date);
        complain(loading->plan, BECALM_WARNING, file, "expires", "%s: the certificate expires at %s; renew it",
                 file->path, date);
    }
}

/* Where the names of a certificate go. */
struct naming {
    struct tls_context *context;
    uint32_t certificate;
    bool failed; /* no memory */
};

static bool name_add(void *data, enum tls_name_kind kind, struct becalm_text name)
{
    struct naming *naming = data;
    struct tls_context *context = naming->context;
    if (kind == TLS_NAME_URI) {
        return false; /* no client can ask for a server by this name */
    }
    struct tls_name *larger = realloc(context->name, (context->name_count + 1) * sizeof *larger);
    context->name = larger == NULL ? context->name : larger;
    char *text = larger == NULL ? NULL : strndup(name.at, name.length);
    if (text == NULL) {
        naming->failed = true;
        return true;
    }
    context->name[context->name_count++] = (struct tls_name){text, naming->certificate};
    return false;
}

/* The DNS names that a certificate is for: its alternative names, or its common name if it has none. */
static bool names_add(struct tls_context *context, const X509 *x509, uint32_t certificate)
{
    struct naming naming = {context, certificate, false};
    tls_names_find(x509, 1u << TLS_NAME_DNS, name_add, &naming);
    return !naming.failed;
}

/* The certificates of a file: first the gateway's own, then the chain to its CA. */
static bool use_chain(struct loading *loading, SSL_CTX *ctx, const struct text *text, X509 **own)
{
    BIO *bio = BIO_new_mem_buf(text->at, (int)text->length);
    X509 *first = bio == NULL ? NULL : next_certificate(bio);
    if (first == NULL) {
        complain(loading->plan, BECALM_ERROR, text->file, "bad-certificate",
                 "%s: there is no certificate in it; write a file in PEM, with -----BEGIN CERTIFICATE-----",
                 text->file->path);
        loading->failed = true;
        BIO_free(bio);
        return false;
    }
    bool fine = SSL_CTX_use_certificate(ctx, first) == 1;
    if (!fine) {
        complain(loading->plan, BECALM_ERROR, text->file, "bad-certificate",
                 "%s: the certificate is too weak or can't be used: %s", text->file->path,
                 ERR_reason_error_string(ERR_peek_last_error()));
        loading->failed = true;
    }
    for (X509 *next = next_certificate(bio); fine && next != NULL; next = next_certificate(bio)) {
        fine = SSL_CTX_add0_chain_cert(ctx, next) == 1;
        if (!fine) {
            X509_free(next);
        }
    }
    BIO_free(bio);
    *own = first;
    return fine;
}

static bool use_key(struct loading *loading, SSL_CTX *ctx, const struct text *cert, const struct text *text)
{
    BIO *bio = BIO_new_mem_buf(text->at, (int)text->length);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    BIO_free(bio);
    if (key == NULL) {
        complain(loading->plan, BECALM_ERROR, text->file, "bad-certificate",
                 "%s: there is no private key in it that can be read; write one in PEM, without a passphrase",
                 text->file->path);
        loading->failed = true;
        ERR_clear_error();
        return false;
    }
    bool fine = SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    if (!fine) {
        complain(loading->plan, BECALM_ERROR, text->file, "key-mismatch",
                 "%s is not the key of the certificate in %s; write the two that belong together", text->file->path,
                 cert->file->path);
        loading->failed = true;
        ERR_clear_error();
    }
    return fine;
}

/* A certificate and its key. False: said so, or no memory. */
static bool use_certificate(struct loading *loading, struct tls_context *context, uint32_t number,
                            const struct text *cert, const struct text *key)
{
    SSL_CTX *ctx = context->ssl_ctx[number];
    X509 *own = NULL;
    bool fine = use_chain(loading, ctx, cert, &own) && use_key(loading, ctx, cert, key);
    if (own != NULL) {
        struct tls_expiry *expiry = &context->expiry[context->expiry_count];
        expiry->at = seconds_of(X509_get0_notAfter(own));
        expiry->file = strdup(cert->file->path);
        context->expiry_count += expiry->file != NULL;
        time_check(loading, expiry, cert->file, seconds_of(X509_get0_notBefore(own)), loading->plan->starts);
        fine = fine && expiry->file != NULL && (!context->server || names_add(context, own, number));
        X509_free(own);
    }
    return fine && !loading->failed;
}

/* The CAs to trust. NULL: an error, which is reported, or no memory. */
static X509_STORE *store_of(struct loading *loading, const struct text *text, STACK_OF(X509_NAME) * names)
{
    X509_STORE *store = X509_STORE_new();
    BIO *bio = BIO_new_mem_buf(text->at, (int)text->length);
    uint32_t count = 0;
    bool fine = store != NULL && bio != NULL;
    for (X509 *next = fine ? next_certificate(bio) : NULL; next != NULL; next = next_certificate(bio)) {
        fine = fine && X509_STORE_add_cert(store, next) == 1;
        X509_NAME *name = names == NULL ? NULL : X509_NAME_dup(X509_get_subject_name(next));
        if (name != NULL && sk_X509_NAME_push(names, name) == 0) {
            X509_NAME_free(name);
        }
        X509_free(next);
        count++;
    }
    BIO_free(bio);
    if (fine && count == 0) {
        complain(loading->plan, BECALM_ERROR, text->file, "bad-certificate",
                 "%s: there is no certificate in it; write a file in PEM with those of the authorities",
                 text->file->path);
        loading->failed = true;
        fine = false;
    }
    if (!fine) {
        X509_STORE_free(store);
        return NULL;
    }
    return store;
}

/* Making. */

static struct tls_context *context_make(uint32_t certificates)
{
    struct tls_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    atomic_init(&context->users, 1);
    context->ssl_ctx = calloc(certificates, sizeof(SSL_CTX *));
    context->expiry = calloc(certificates, sizeof *context->expiry);
    context->count = context->ssl_ctx == NULL ? 0 : certificates;
    if (context->ssl_ctx == NULL || context->expiry == NULL) {
        tls_context_drop(context);
        return NULL;
    }
    return context;
}

struct tls_context *tls_context_use(struct tls_context *context)
{
    atomic_fetch_add_explicit(&context->users, 1, memory_order_relaxed); /* the caller has one already */
    return context;
}

void tls_context_drop(struct tls_context *context)
{
    if (context == NULL || atomic_fetch_sub_explicit(&context->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < context->count; i++) {
        SSL_CTX_free(context->ssl_ctx[i]);
    }
    for (uint32_t i = 0; i < context->expiry_count; i++) {
        free((char *)(uintptr_t)context->expiry[i].file);
    }
    for (uint32_t i = 0; i < context->name_count; i++) {
        free(context->name[i].text);
    }
    tls_tickets_drop(context->tickets);
    free(context->ssl_ctx);
    free(context->expiry);
    free(context->name);
    free(context);
}

/* The settings of both sides. TLS 1.2 with forward secrecy and authenticated encryption only; no renegotiation, no
 * compression; early data is off unless a caller switches it on. */
static SSL_CTX *ssl_ctx_make(const SSL_METHOD *method, enum becalm_tls_version least)
{
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (ctx == NULL) {
        return NULL;
    }
    SSL_CTX_set_min_proto_version(ctx, least == BECALM_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* an idle connection has no buffers */
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);    /* the reader counts records without data */
    SSL_CTX_set_read_ahead(ctx, 0);
    return ctx;
}

/* The same context if nothing has changed, its certificates being looked at again. */
static struct tls_context *unchanged(struct loading *loading, const unsigned char *mark, const struct text *cert)
{
    struct tls_context *before = loading->plan->before;
    if (loading->failed || before == NULL || memcmp(before->mark, mark, sizeof before->mark) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < before->expiry_count; i++) {
        time_check(loading, &before->expiry[i], cert[i].file, 0, true);
    }
    return tls_context_use(before);
}

/* Listeners. */

static bool is_equal(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

/* A name without the dot of its root, "orders.internal.": no certificate has it, and TLS's own extension neither (RFC
 * 6066, 3). */
static const char *rootless(const char *name, char room[256])
{
    size_t length = strlen(name);
    if (length < 2 || length > 255 || name[length - 1] != '.') {
        return name;
    }
    memcpy(room, name, length - 1);
    room[length - 1] = '\0';
    return room;
}

/* The certificate for a name: the exact name, then "*." and the text after its first dot; NO_CERTIFICATE: none has it.
 */
#define NO_CERTIFICATE UINT32_MAX
static uint32_t certificate_for(const struct tls_context *context, const char *name)
{
    const char *dot = strchr(name, '.');
    for (uint32_t i = 0; i < context->name_count; i++) {
        if (is_equal(context->name[i].text, name)) {
            return context->name[i].certificate;
        }
    }
    for (uint32_t i = 0; dot != NULL && dot > name && i < context->name_count; i++) {
        const char *text = context->name[i].text;
        if (text[0] == '*' && text[1] == '.' && is_equal(text + 1, dot)) {
            return context->name[i].certificate;
        }
    }
    return NO_CERTIFICATE;
}

static int choose_certificate(SSL *ssl, int *alert, void *data)
{
    const struct tls_context *context = data;
    char room[256];
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    uint32_t number = name == NULL ? NO_CERTIFICATE : certificate_for(context, rootless(name, room));
    if (number == NO_CERTIFICATE && context->strict_sni) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    if (number != NO_CERTIFICATE && number > 0) { /* else it has the first */
        SSL_set_SSL_CTX(ssl, context->ssl_ctx[number]);
    }
    return SSL_TLSEXT_ERR_OK;
}

/* A client whose ALPN protocols do not include one of the listener's gets an alert. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *length, const unsigned char *offered,
                           unsigned offered_length, void *data)
{
    const struct tls_context *context = data;
    unsigned char *chosen;
    (void)ssl;
    if (SSL_select_next_proto(&chosen, length, context->alpn, context->alpn_length, offered, offered_length) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static int ticket_key(SSL *ssl, unsigned char name[16], unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                      int seals)
{
    const struct tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    return tls_tickets_key(context->tickets, name, iv, cipher, mac, seals != 0);
}

static bool use_client_ca(struct loading *loading, struct tls_context *context, SSL_CTX *ctx, const struct text *ca,
                          enum becalm_client_auth auth)
{
    if (auth == BECALM_CLIENT_AUTH_NONE) {
        return true;
    }
    STACK_OF(X509_NAME) *names = sk_X509_NAME_new_null();
    X509_STORE *store = names == NULL ? NULL : store_of(loading, ca, names);
    if (store == NULL) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return false;
    }
    context->verifies = true;
    SSL_CTX_set_cert_store(ctx, store);
    SSL_CTX_set_client_CA_list(ctx, names);
    int must = auth == BECALM_CLIENT_AUTH_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | must, NULL);
    return true;
}

/* The files of a listener. */
struct listener_files {
    struct text *cert; /* by certificate */
    struct text *key;
    struct text client_ca;
    struct text ticket_keys;
};

static void listener_files_free(struct listener_files *files, uint32_t count)
{
    for (uint32_t i = 0; files->cert != NULL && files->key != NULL && i < count; i++) {
        text_free(&files->cert[i]);
        text_free(&files->key[i]);
    }
    text_free(&files->client_ca);
    text_free(&files->ticket_keys);
    free(files->cert);
    free(files->key);
}

static bool listener_files_read(struct loading *loading, const struct becalm_listener *listener,
                                struct listener_files *files)
{
    files->cert = calloc(listener->certificate_count, sizeof *files->cert);
    files->key = calloc(listener->certificate_count, sizeof *files->key);
    if (files->cert == NULL || files->key == NULL) {
        return false;
    }
    mark_text(loading, "server");
    mark_bytes(loading, &listener->client_auth, sizeof listener->client_auth);
    mark_bytes(loading, &listener->min_version, sizeof listener->min_version);
    mark_bytes(loading, &listener->strict_sni, sizeof listener->strict_sni);
    mark_bytes(loading, &listener->h1, sizeof listener->h1);
    mark_bytes(loading, &listener->h2, sizeof listener->h2);
    for (uint32_t i = 0; i < listener->certificate_count; i++) {
        files->cert[i] = read_file(loading, &listener->certificates[i].cert);
        files->key[i] = read_file(loading, &listener->certificates[i].key);
    }
    files->client_ca = read_file(loading, &listener->client_ca);
    files->ticket_keys = read_file(loading, &listener->ticket_keys);
    return true;
}

static bool use_tickets(struct loading *loading, struct tls_context *context, const struct text *keys)
{
    const char *why = NULL;
    if (keys->at != NULL) {
        context->tickets = tls_tickets_parse(keys->at, keys->length, &why);
        if (why != NULL) {
            complain(loading->plan, BECALM_ERROR, keys->file, "bad-ticket-keys", "%s: %s", keys->file->path, why);
            loading->failed = true;
        }
    } else if (loading->plan->tickets != NULL) {
        context->tickets = tls_tickets_use(loading->plan->tickets);
    } else {
        context->tickets = tls_tickets_random();
    }
    return context->tickets != NULL;
}

/* A ticket is good where clients are let in by the same rules and authorities, and nowhere else. */
static void session_scope(SSL_CTX *ctx, const struct becalm_listener *listener, const struct text *ca)
{
    unsigned char scope[32];
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    if (hash == NULL || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(hash);
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        return;
    }
    EVP_DigestUpdate(hash, &listener->client_auth, sizeof listener->client_auth);
    EVP_DigestUpdate(hash, ca->at == NULL ? "" : ca->at, ca->length);
    EVP_DigestFinal_ex(hash, scope, NULL);
    EVP_MD_CTX_free(hash);
    SSL_CTX_set_session_id_context(ctx, scope, sizeof scope);
}

static bool listener_ctx_make(struct loading *loading, struct tls_context *context, uint32_t number,
                              const struct becalm_listener *listener, const struct listener_files *files)
{
    SSL_CTX *ctx = ssl_ctx_make(TLS_server_method(), listener->min_version);
    context->ssl_ctx[number] = ctx;
    if (ctx == NULL) {
        return false;
    }
    SSL_CTX_set_app_data(ctx, context);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* the tickets have it all */
    SSL_CTX_set_timeout(ctx, TLS_TICKET_LIFE);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, ticket_key);
    SSL_CTX_set_tlsext_servername_callback(ctx, choose_certificate);
    SSL_CTX_set_tlsext_servername_arg(ctx, context);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, context);
    session_scope(ctx, listener, &files->client_ca);
    return use_certificate(loading, context, number, &files->cert[number], &files->key[number]) &&
           use_client_ca(loading, context, ctx, &files->client_ca, listener->client_auth);
}

static struct tls_context *server_make(struct loading *loading, const struct becalm_listener *listener,
                                       const struct listener_files *files, const unsigned char *mark)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    size_t from = listener->h2 ? 0 : 3;
    size_t until = listener->h1 ? sizeof both - 1 : 3;
    struct tls_context *context = context_make(listener->certificate_count);
    if (context == NULL) {
        return NULL;
    }
    memcpy(context->mark, mark, sizeof context->mark);
    context->alpn_length = (unsigned)(until - from);
    memcpy(context->alpn, both + from, context->alpn_length);
    context->server = true;
    context->strict_sni = listener->strict_sni;
    bool fine = use_tickets(loading, context, &files->ticket_keys);
    for (uint32_t i = 0; i < listener->certificate_count && (fine || loading->failed); i++) {
        fine = listener_ctx_make(loading, context, i, listener, files) && fine; /* all that is wrong in one go */
    }
    if (!fine) {
        tls_context_drop(context);
        return NULL;
    }
    return context;
}

static bool mark_begin(struct loading *loading)
{
    loading->hash = EVP_MD_CTX_new();
    return loading->hash != NULL && EVP_DigestInit_ex(loading->hash, EVP_sha256(), NULL) == 1;
}

struct tls_context *tls_context_server(const struct tls_plan *plan, const struct becalm_listener *listener)
{
    struct loading loading = {.plan = plan};
    struct listener_files files = {0};
    struct tls_context *context = NULL;
    unsigned char mark[32];
    if (!library_found(plan)) {
        return NULL;
    }
    if (mark_begin(&loading) && listener_files_read(&loading, listener, &files) && !loading.failed) {
        EVP_DigestFinal_ex(loading.hash, mark, NULL);
        context = unchanged(&loading, mark, files.cert);
        if (context == NULL) {
            context = server_make(&loading, listener, &files, mark);
        }
    }
    listener_files_free(&files, listener->certificate_count);
    EVP_MD_CTX_free(loading.hash);
    return context;
}

SSL *tls_context_accept(struct tls_context *context)
{
    SSL *ssl = SSL_new(context->ssl_ctx[0]);
    if (ssl != NULL) {
        SSL_set_accept_state(ssl);
    }
    return ssl;
}

/* Hosts. */

/* The authorities that the system trusts, in one file: a folder of them would be read while calls are made. */
static bool use_system_ca(struct loading *loading, SSL_CTX *ctx, const struct becalm_host_tls *tls)
{
    const char *const files[] = {
        getenv("SSL_CERT_FILE"),
        X509_get_default_cert_file(),
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i] != NULL && access(files[i], R_OK) == 0 && SSL_CTX_load_verify_file(ctx, files[i]) == 1) {
            return true;
        }
    }
    ERR_clear_error();
    struct becalm_file at = {.line = tls->line, .column = tls->column};
    complain(loading->plan, BECALM_ERROR, &at, "missing",
             "the system has no file of authorities that it trusts; write ca: FILE, or install ca-certificates");
    loading->failed = true;
    return false;
}

static bool use_ca(struct loading *loading, struct tls_context *context, const struct becalm_host_tls *tls,
                   const struct text *ca)
{
    SSL_CTX *ctx = context->ssl_ctx[0];
    switch (tls->verify) {
    case BECALM_TLS_VERIFY_NONE:
        SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL); /* the policy says so, and the loader has warned of it */
        return true;
    case BECALM_TLS_VERIFY_FULL:
        break;
    }
    context->verifies = true;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (ca->at == NULL) {
        return use_system_ca(loading, ctx, tls);
    }
    X509_STORE *store = store_of(loading, ca, NULL);
    if (store != NULL) {
        SSL_CTX_set_cert_store(ctx, store);
    }
    return store != NULL;
}

static int new_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_link *link = SSL_get_app_data(ssl);
    link->session(link, session);
    return 1;
}

static struct tls_context *client_make(struct loading *loading, const struct becalm_host_tls *tls,
                                       const struct text *ca, const struct text *cert, const struct text *key,
                                       const unsigned char *mark)
{
    struct tls_context *context = context_make(1);
    if (context == NULL) {
        return NULL;
    }
    memcpy(context->mark, mark, sizeof context->mark);
    SSL_CTX *ctx = context->ssl_ctx[0] = ssl_ctx_make(TLS_client_method(), BECALM_TLS_1_2);
    bool fine = ctx != NULL;
    if (fine) {
        /* The code that makes the connections keeps the latest session. */
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(ctx, new_session);
        fine = use_ca(loading, context, tls, ca);
    }
    if (cert->at != NULL && key->at != NULL && (fine || loading->failed)) {
        fine = use_certificate(loading, context, 0, cert, key) && fine;
    }
    if (!fine) {
        tls_context_drop(context);
        return NULL;
    }
    return context;
}

struct tls_context *tls_context_client(const struct tls_plan *plan, const struct becalm_service *service)
{
    const struct becalm_host_tls *tls = &service->tls;
    struct loading loading = {.plan = plan};
    struct tls_context *context = NULL;
    unsigned char mark[32];
    if (!library_found(plan)) {
        return NULL;
    }
    if (mark_begin(&loading)) {
        mark_text(&loading, "client");
        mark_bytes(&loading, &tls->verify, sizeof tls->verify);
        struct text ca = read_file(&loading, &tls->ca);
        struct text cert = read_file(&loading, &tls->cert);
        struct text key = read_file(&loading, &tls->key);
        if (!loading.failed) {
            EVP_DigestFinal_ex(loading.hash, mark, NULL);
            context = unchanged(&loading, mark, &cert);
        }
        if (!loading.failed && context == NULL) {
            context = client_make(&loading, tls, &ca, &cert, &key, mark);
        }
        text_free(&ca);
        text_free(&cert);
        text_free(&key);
    }
    EVP_MD_CTX_free(loading.hash);
    return context;
}

SSL *tls_context_connect(struct tls_context *context, const char *name)
{
    struct in6_addr ip;
    char room[256];
    SSL *ssl = SSL_new(context->ssl_ctx[0]);
    if (ssl == NULL) {
        return NULL;
    }
    name = rootless(name, room);
    bool is_ip = inet_pton(AF_INET, name, &ip) == 1 || inet_pton(AF_INET6, name, &ip) == 1;
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    bool fine = is_ip || SSL_set_tlsext_host_name(ssl, name) == 1;
    if (context->verifies) {
        X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        fine = fine &&
               (is_ip ? X509_VERIFY_PARAM_set1_ip_asc(param, name) : X509_VERIFY_PARAM_set1_host(param, name, 0)) == 1;
    }
    if (!fine) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}
