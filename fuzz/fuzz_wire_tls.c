/* SPDX-License-Identifier: MIT */
/* Records of a hostile peer, over a real socket, with real OpenSSL on both sides of it. The first byte says whether the
 * wire is a server or a client, and whether its peer is raw bytes or OpenSSL itself, whose records are cut, changed,
 * repeated and mixed with others as the bytes say. For all inputs: the wire reads the bytes that the peer has sealed,
 * from the beginning and in order, and none behind the first changed byte. */
#define _GNU_SOURCE
#include "wire/wire_tls.h"

#include <becalm/base.h>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define STEPS 600u /* bytes of them, of one run */

static struct tls_context *as_server;
static struct tls_context *as_client;
static SSL_CTX *peer_client;
static SSL_CTX *peer_server;
static EVP_PKEY *key;
static X509 *certificate;

/* ---- made once ---- */

static X509 *sign(void)
{
    X509 *made = X509_new();
    X509_NAME *name = X509_get_subject_name(made);
    BECALM_ASSERT(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0));
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 86400);
    BECALM_ASSERT(X509_set_issuer_name(made, name) && X509_set_pubkey(made, key));
    BECALM_ASSERT(X509_sign(made, key, EVP_sha256()) > 0);
    return made;
}

static void keep(const char *path, bool is_key)
{
    FILE *file = fopen(path, "w");
    BECALM_ASSERT(file != NULL);
    BECALM_ASSERT(is_key ? PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL)
                         : PEM_write_X509(file, certificate));
    BECALM_ASSERT(fclose(file) == 0);
}

static SSL_CTX *peer_make(bool server)
{
    SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    BECALM_ASSERT(ctx != NULL);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    if (server) {
        BECALM_ASSERT(SSL_CTX_use_certificate(ctx, certificate) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
    }
    return ctx;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char folder[] = "/tmp/fuzz_wire_tls.XXXXXX";
    char cert_path[64];
    char key_path[64];
    static struct becalm_diags diags;
    (void)argc;
    (void)argv;
    key = EVP_EC_gen("P-256");
    BECALM_ASSERT(key != NULL && mkdtemp(folder) != NULL);
    certificate = sign();
    (void)snprintf(cert_path, sizeof cert_path, "%s/cert.pem", folder);
    (void)snprintf(key_path, sizeof key_path, "%s/key.pem", folder);
    keep(cert_path, false);
    keep(key_path, true);
    struct becalm_certificate shown = {.cert = {.path = cert_path}, .key = {.path = key_path}};
    struct becalm_listener listener = {
        .tls = true, .certificates = &shown, .certificate_count = 1, .h1 = true, .h2 = true};
    struct becalm_service service = {
        .name = "a", .tls = {.enabled = true, .ca = {.path = cert_path}, .verify = BECALM_TLS_VERIFY_NONE}};
    struct tls_plan plan = {.policy = "p", .tickets = tls_tickets_random(), .starts = true, .diags = &diags};
    as_server = tls_context_server(&plan, &listener);
    as_client = tls_context_client(&plan, &service);
    BECALM_ASSERT(as_server != NULL && as_client != NULL);
    peer_client = peer_make(false);
    peer_server = peer_make(true);
    BECALM_ASSERT(unlink(cert_path) == 0 && unlink(key_path) == 0 && rmdir(folder) == 0);
    return 0;
}

/* ---- the two sides ---- */

struct side {
    struct wire wire;
    int peer;
    SSL *ssl;      /* the peer's; NULL: it is bytes alone */
    BIO *in, *out; /* its input, its output */
    uint64_t said; /* bytes that it has sealed: the n-th is n % 251 */
    uint64_t read; /* of them, by the wire */
    bool changed;  /* its output was changed on the way */
    bool over;
};

static struct tls_counts counts;
static struct wire_room room = {.counts = &counts};

/* The wire reads the available bytes, and goes on with its handshake. */
static void wire_goes_on(struct side *side)
{
    char into[300];
    ssize_t got = 0;
    wire_again(&side->wire);
    if (!side->over && wire_shakes(&side->wire)) {
        enum wire_shake shake = wire_shake(&side->wire);
        side->over = shake == WIRE_UNSHAKEN || shake == WIRE_LOST;
    }
    while (!side->over && !wire_shakes(&side->wire) && (got = wire_read(&side->wire, into, sizeof into)) > 0) {
        for (ssize_t i = 0; i < got; i++, side->read++) {
            /* Raw bytes without a key never become plaintext; from a peer with a key, the wire reads exactly the bytes
             * that the peer wrote. */
            BECALM_ASSERT(side->ssl != NULL && side->read < side->said);
            BECALM_ASSERT((unsigned char)into[i] == side->read % 251);
        }
    }
    side->over |= got == WIRE_BROKEN || got == WIRE_FULL || got == WIRE_ALIEN;
}

static void tell(struct side *side, const unsigned char *bytes, size_t length)
{
    ssize_t sent = send(side->peer, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    side->changed |= sent != (ssize_t)length; /* a full socket: the rest is missing */
    wire_goes_on(side);
}

/* Passes the output of the wire to the peer. */
static void peer_hears(struct side *side)
{
    char bytes[4096];
    ssize_t got;
    while ((got = recv(side->peer, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        if (side->in != NULL) {
            (void)BIO_write(side->in, bytes, (int)got);
        }
    }
    if (side->ssl != NULL && !SSL_is_init_finished(side->ssl)) {
        (void)SSL_do_handshake(side->ssl);
        ERR_clear_error();
    }
}

/* Passes the output of the peer to the wire, in pieces of `step`, with one byte changed if `at` is in it. */
static void peer_speaks(struct side *side, size_t step, size_t at, bool again)
{
    unsigned char bytes[20000];
    int got = side->out == NULL ? 0 : BIO_read(side->out, bytes, sizeof bytes);
    if (got <= 0) {
        return;
    }
    if (at < (size_t)got) {
        bytes[at] ^= 0x40;
        side->changed = true;
    }
    for (size_t from = 0; from < (size_t)got; from += step) {
        size_t length = (size_t)got - from < step ? (size_t)got - from : step;
        tell(side, bytes + from, length);
    }
    if (again) { /* a record that came before */
        tell(side, bytes, (size_t)got);
        side->changed = true;
    }
}

static void peer_seals(struct side *side, size_t length)
{
    unsigned char bytes[600];
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)((side->said + i) % 251);
    }
    if (length > 0 && SSL_is_init_finished(side->ssl) && SSL_write(side->ssl, bytes, (int)length) > 0) {
        side->said += length;
    }
    ERR_clear_error();
}

/* Each step is two bytes: the action, and its amount. */
static void play(struct side *side, const uint8_t *data, size_t size)
{
    size = size < STEPS ? size : STEPS;
    for (size_t i = 0; i + 1 < size && !side->over; i += 2) {
        size_t amount = data[i + 1];
        peer_hears(side);
        switch (data[i] % 9) {
        case 0:
        case 1:
            peer_speaks(side, 65536, SIZE_MAX, false);
            break;
        case 2: /* record by record, byte by byte */
            peer_speaks(side, amount + 1, SIZE_MAX, false);
            break;
        case 3:
            peer_seals(side, amount * 2);
            break;
        case 4:
            peer_speaks(side, 65536, amount, false);
            break;
        case 5:
            peer_speaks(side, 65536, SIZE_MAX, true);
            break;
        case 6: /* bytes of its own, between records */
            tell(side, data + i, size - i < amount ? size - i : amount);
            side->changed = side->changed || amount > 0;
            break;
        case 7:
            (void)SSL_key_update(side->ssl, amount % 2 == 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
            ERR_clear_error();
            break;
        case 8: {
            char text[64] = "an answer";
            (void)wire_write(&side->wire, &(struct iovec){text, 1 + amount % sizeof text}, 1);
            break;
        }
        }
    }
}

static void bytes_alone(struct side *side, const uint8_t *data, size_t size)
{
    size_t step = size > 0 && data[0] > 0 ? data[0] : size;
    for (size_t at = 1; at < size && !side->over; at += step) {
        tell(side, data + at, size - at < step ? size - at : step);
        peer_hears(side);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd[2];
    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0) {
        return 0;
    }
    bool server = (data[0] & 1) == 0;
    struct side side = {.wire = {.source = {.fd = fd[0], .readable = true}}, .peer = fd[1]};
    struct wire_host *host = wire_host_make(as_client, "localhost");
    BECALM_ASSERT(host != NULL);
    BECALM_ASSERT(server ? wire_tls_accept(&side.wire, as_server, &room)
                         : wire_tls_connect(&side.wire, host, WIRE_OFFERS_BOTH, &room));
    if ((data[0] & 2) == 0) {
        bytes_alone(&side, data + 1, size - 1);
    } else {
        side.ssl = SSL_new(server ? peer_client : peer_server);
        side.in = BIO_new(BIO_s_mem());
        side.out = BIO_new(BIO_s_mem());
        BECALM_ASSERT(side.ssl != NULL && side.in != NULL && side.out != NULL);
        if ((data[0] & 4) != 0) {
            SSL_set_max_proto_version(side.ssl, TLS1_2_VERSION);
        }
        SSL_set_bio(side.ssl, side.in, side.out);
        (server ? SSL_set_connect_state : SSL_set_accept_state)(side.ssl);
        wire_goes_on(&side);
        for (int i = 0; (data[0] & 8) != 0 && i < 4; i++) { /* the handshake goes as it should */
            peer_hears(&side);
            peer_speaks(&side, 65536, SIZE_MAX, false);
        }
        BECALM_ASSERT((data[0] & 8) == 0 || (SSL_is_init_finished(side.ssl) && !wire_shakes(&side.wire)));
        play(&side, data + 1, size - 1);
    }
    (void)shutdown(side.peer, SHUT_WR);
    wire_goes_on(&side);
    BECALM_ASSERT(side.changed || side.over || side.ssl == NULL || side.read <= side.said);
    wire_free(&side.wire);
    bytes_free(&side.wire.out);
    wire_host_drop(host);
    SSL_free(side.ssl); /* and its BIOs */
    close(fd[0]);
    close(fd[1]);
    ERR_clear_error();
    return 0;
}
