/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tls_tickets.h"

#include "libssl/libssl.h"
#include "run/entropy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEYS_MAX    16u
#define GENERATIONS 3u
#define LIFE        (3600 * BECALM_S)
#define KEY_BYTES   80u

struct key {
    unsigned char name[16];
    unsigned char cipher[32];
    unsigned char mac[32];
};
_Static_assert(sizeof(struct key) == KEY_BYTES, "a key is a line of the file");

struct tls_tickets {
    BECALM_ATOMIC(uint32_t) users;
    pthread_mutex_t lock;
    bool random;       /* there is a new key every hour */
    becalm_ns made_at; /* the first one */
    becalm_ns ahead;   /* of the clock, in tests */
    uint32_t count;
    struct key key[KEYS_MAX]; /* the first seals */
};

static becalm_ns clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (becalm_ns)time.tv_sec * BECALM_S + (becalm_ns)time.tv_nsec;
}

/* From the system, not from OpenSSL: that would set itself up for it, which is 2 MB in a gateway without TLS. */
static bool key_draw(struct key *key)
{
    return entropy_fill(key, sizeof *key);
}

static struct tls_tickets *make(void)
{
    struct tls_tickets *tickets = calloc(1, sizeof *tickets);
    if (tickets != NULL) {
        atomic_init(&tickets->users, 1);
        pthread_mutex_init(&tickets->lock, NULL);
    }
    return tickets;
}

struct tls_tickets *tls_tickets_random(void)
{
    struct tls_tickets *tickets = make();
    if (tickets == NULL) {
        return NULL;
    }
    tickets->random = true;
    tickets->count = 1;
    tickets->made_at = clock_now();
    if (!key_draw(&tickets->key[0])) {
        tls_tickets_drop(tickets);
        return NULL;
    }
    return tickets;
}

/* One line. False: not 80 bytes in base64. */
static bool key_parse(const char *line, size_t length, struct key *key)
{
    unsigned char text[KEY_BYTES / 3 * 4 + 4];
    unsigned char bytes[sizeof text];
    if (length != 108) { /* 80 bytes are 26 groups of three and one of two */
        return false;
    }
    memcpy(text, line, length);
    bool fine = EVP_DecodeBlock(bytes, text, 108) == 81 && text[107] == '=';
    memcpy(key, bytes, KEY_BYTES);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(text, sizeof text);
    return fine;
}

struct tls_tickets *tls_tickets_parse(const char *text, size_t length, const char **why)
{
    struct tls_tickets *tickets = make();
    const char *end = text + length;
    *why = NULL;
    while (tickets != NULL && *why == NULL && text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        line_end = line_end == NULL ? end : line_end;
        size_t bytes = (size_t)(line_end - text);
        bytes -= bytes > 0 && text[bytes - 1] == '\r';
        if (bytes > 0 && tickets->count == KEYS_MAX) {
            *why = "it has more than 16 keys; take the last ones out";
        } else if (bytes > 0 && !key_parse(text, bytes, &tickets->key[tickets->count++])) {
            *why =
                "a line is not a key; write 80 random bytes in base64, as openssl rand -base64 80 | tr -d '\\n' does";
        }
        text = line_end + 1;
    }
    if (tickets != NULL && *why == NULL && tickets->count == 0) {
        *why = "it has no key; write 80 random bytes in base64, as openssl rand -base64 80 | tr -d '\\n' does";
    }
    if (*why != NULL) {
        tls_tickets_drop(tickets);
        return NULL;
    }
    return tickets;
}

struct tls_tickets *tls_tickets_use(struct tls_tickets *tickets)
{
    atomic_fetch_add_explicit(&tickets->users, 1, memory_order_relaxed); /* the caller has one already */
    return tickets;
}

void tls_tickets_drop(struct tls_tickets *tickets)
{
    if (tickets != NULL && atomic_fetch_sub_explicit(&tickets->users, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_destroy(&tickets->lock);
        explicit_bzero(tickets->key, sizeof tickets->key);
        free(tickets);
    }
}

void tls_tickets_age(struct tls_tickets *tickets, becalm_ns time)
{
    pthread_mutex_lock(&tickets->lock);
    tickets->ahead += time;
    pthread_mutex_unlock(&tickets->lock);
}

/* A new first key for each hour that has passed; without randomness the old one goes on. */
static void rotate(struct tls_tickets *tickets)
{
    becalm_ns now = becalm_ns_after(clock_now(), tickets->ahead);
    for (uint32_t i = 0; i < GENERATIONS && becalm_ns_since(now, tickets->made_at) >= LIFE; i++) {
        struct key fresh;
        if (!key_draw(&fresh)) {
            return;
        }
        memmove(&tickets->key[1], &tickets->key[0], (GENERATIONS - 1) * sizeof fresh);
        tickets->key[0] = fresh;
        tickets->count = tickets->count < GENERATIONS ? tickets->count + 1 : GENERATIONS;
        tickets->made_at = i + 1 < GENERATIONS ? tickets->made_at + LIFE : now;
        explicit_bzero(&fresh, sizeof fresh);
    }
}

/* A copy of the key: the lock is not held while OpenSSL works. Returns its place, or KEYS_MAX. */
static uint32_t find(struct tls_tickets *tickets, const unsigned char *name, struct key *key)
{
    uint32_t found = KEYS_MAX;
    pthread_mutex_lock(&tickets->lock);
    if (tickets->random) {
        rotate(tickets);
    }
    for (uint32_t i = 0; i < tickets->count && found == KEYS_MAX; i++) {
        if (name == NULL || memcmp(tickets->key[i].name, name, sizeof key->name) == 0) {
            *key = tickets->key[i];
            found = i;
        }
    }
    pthread_mutex_unlock(&tickets->lock);
    return found;
}

static bool set_up(const struct key *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool seals)
{
    unsigned char mac_key[sizeof key->mac];
    char digest[] = "SHA256";
    memcpy(mac_key, key->mac, sizeof mac_key);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, mac_key, sizeof mac_key),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    bool fine = EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv, seals) == 1 &&
                EVP_MAC_CTX_set_params(mac, params) == 1;
    explicit_bzero(mac_key, sizeof mac_key);
    return fine;
}

int tls_tickets_key(struct tls_tickets *tickets, unsigned char name[16], unsigned char *iv, EVP_CIPHER_CTX *cipher,
                    EVP_MAC_CTX *mac, bool seals)
{
    struct key key;
    uint32_t place = find(tickets, seals ? NULL : name, &key);
    if (place == KEYS_MAX) {
        return 0; /* not one of ours, or too old: a full handshake */
    }
    int rc = -1;
    if (seals && RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1) {
        memcpy(name, key.name, sizeof key.name);
        rc = set_up(&key, iv, cipher, mac, true) ? 1 : -1;
    } else if (!seals) {
        rc = !set_up(&key, iv, cipher, mac, false) ? -1 : place == 0 ? 1 : 2; /* 2: give the client a new one */
    }
    explicit_bzero(&key, sizeof key);
    return rc;
}
