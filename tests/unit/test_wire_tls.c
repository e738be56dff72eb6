/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wire/wire_tls.h"

#include "check.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tls_context *as_server;
static struct tls_context *as_client;
static struct tls_counts counts;
static struct wire_room room = {.counts = &counts}; /* of all wires here, as of those of a worker */

static X509 *certificate_of(EVP_PKEY *key)
{
    X509 *made = X509_new();
    X509_NAME *name = X509_get_subject_name(made);
    check_true(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0));
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 86400);
    check_true(X509_set_issuer_name(made, name) && X509_set_pubkey(made, key));
    check_true(X509_sign(made, key, EVP_sha256()) > 0);
    return made;
}

static int contexts_make(void **state)
{
    char path[] = "/tmp/test_wire_tls.XXXXXX";
    static struct becalm_diags diags;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certificate_of(key);
    FILE *file = fdopen(mkstemp(path), "w"); /* both in one file */
    (void)state;
    check_true(file != NULL && PEM_write_X509(file, certificate) == 1);
    check_true(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
    struct becalm_certificate shown = {.cert = {.path = path}, .key = {.path = path}};
    struct becalm_listener listener = {.tls = true, .certificates = &shown, .certificate_count = 1, .h1 = true};
    struct becalm_service service = {.name = "a",
                                     .tls = {.enabled = true, .ca = {.path = path}, .verify = BECALM_TLS_VERIFY_NONE}};
    struct tls_tickets *tickets = tls_tickets_random();
    struct tls_plan plan = {.policy = "p", .tickets = tickets, .starts = true, .diags = &diags};
    as_server = tls_context_server(&plan, &listener);
    as_client = tls_context_client(&plan, &service);
    check_true(as_server != NULL && as_client != NULL && unlink(path) == 0);
    tls_tickets_drop(tickets);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return 0;
}

static int contexts_drop(void **state)
{
    (void)state;
    wire_room_free(&room);
    tls_context_drop(as_server);
    tls_context_drop(as_client);
    return 0;
}

/* Both ends of a connection, after the handshake. */
struct pair {
    struct wire server;
    struct wire client;
    struct wire_host *host;
};

static struct pair pair_make(void)
{
    int fd[2];
    check_true(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
    struct pair pair = {
        .server = {.source = {.fd = fd[0]}},
        .client = {.source = {.fd = fd[1]}},
        .host = wire_host_make(as_client, "localhost"),
    };
    check_true(wire_tls_accept(&pair.server, as_server, &room));
    check_true(wire_tls_connect(&pair.client, pair.host, WIRE_OFFERS_H1, &room));
    for (int i = 0; i < 10 && (wire_shakes(&pair.server) || wire_shakes(&pair.client)); i++) {
        wire_again(&pair.client);
        (void)wire_shake(&pair.client);
        wire_again(&pair.server);
        (void)wire_shake(&pair.server);
    }
    check_true(!wire_shakes(&pair.server) && !wire_shakes(&pair.client));
    return pair;
}

static void pair_free(struct pair *pair)
{
    wire_free(&pair->server);
    wire_free(&pair->client);
    close(pair->server.source.fd);
    if (pair->client.source.fd >= 0) {
        close(pair->client.source.fd);
    }
    bytes_free(&pair->server.out);
    bytes_free(&pair->client.out);
    wire_host_drop(pair->host);
}

static void test_wire_tls__a_write_that_fails_leaves_no_bytes_for_other_wires(void **state)
{
    (void)state;
    static char much[300 * 1000]; /* several sends of the socket */
    char into[100];
    struct pair broken = pair_make();
    struct pair other = pair_make();
    close(broken.client.source.fd);
    broken.client.source.fd = -1;
    struct iovec part = {much, sizeof much};
    check_true(wire_write(&broken.server, &part, 1) == WIRE_BROKEN);
    struct iovec hello = {(char *)(uintptr_t) "hello", 5};
    check_true(wire_write(&other.server, &hello, 1) > 5);
    wire_again(&other.client);
    assert_int_equal(wire_read(&other.client, into, sizeof into), 5);
    assert_memory_equal(into, "hello", 5);
    pair_free(&broken);
    pair_free(&other);
}

/* Gives the server what the client has sent, byte by byte. True: its handshake went on with the last byte and no other.
 */
static bool passes_by_bytes(int from, int to, struct wire *server)
{
    static char bytes[16 * 1024];
    uint32_t before = wire_shake_steps(server);
    ssize_t got = read(from, bytes, sizeof bytes);
    size_t quiet = 0;
    check_true(got > 1);
    for (ssize_t i = 0; i < got; i++) {
        quiet += wire_shake_steps(server) == before;
        check_true(write(to, &bytes[i], 1) == 1);
        wire_again(server);
        (void)wire_shake(server);
    }
    return quiet == (size_t)got && wire_shake_steps(server) == before + 1;
}

static void test_wire_tls__a_handshake_goes_on_with_whole_flights_and_not_with_some_bytes(void **state)
{
    (void)state;
    static char bytes[16 * 1024];
    int near[2];
    int far[2];
    check_true(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, near) == 0);
    check_true(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, far) == 0);
    struct pair pair = {
        .server = {.source = {.fd = far[0]}},
        .client = {.source = {.fd = near[0]}},
        .host = wire_host_make(as_client, "localhost"),
    };
    check_eq_u64(wire_shake_steps(&pair.server), 0); /* it has no TLS yet */
    check_true(wire_tls_accept(&pair.server, as_server, &room));
    check_true(wire_tls_connect(&pair.client, pair.host, WIRE_OFFERS_H1, &room));
    (void)wire_shake(&pair.client);
    check_true(passes_by_bytes(near[1], far[1], &pair.server)); /* the hello */
    ssize_t flight = read(far[1], bytes, sizeof bytes);
    check_true(flight > 0 && write(near[1], bytes, (size_t)flight) == flight);
    wire_again(&pair.client);
    check_true(wire_shake(&pair.client) == WIRE_SHAKEN);
    check_true(passes_by_bytes(near[1], far[1], &pair.server));
    check_true(!wire_shakes(&pair.server));
    pair_free(&pair);
    close(near[1]);
    close(far[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_tls__a_write_that_fails_leaves_no_bytes_for_other_wires),
        cmocka_unit_test(test_wire_tls__a_handshake_goes_on_with_whole_flights_and_not_with_some_bytes),
    };
    return cmocka_run_group_tests(tests, contexts_make, contexts_drop);
}
