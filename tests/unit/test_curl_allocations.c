/* SPDX-License-Identifier: MIT */
/* The allocations of a call, libcurl's part included: as many as those of curl_easy_perform() alone, once its handle
 * has made a few calls. The thread itself answers from libcurl's callbacks, so no other code runs meanwhile. */
#include <becalm/curl.h>

#include "check.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARM_UP = 5, CALLS = 50 };

/* ---- libcurl's allocations are counted by its own means; all others by name, where no sanitizer has them ---- */

static uint64_t of_curl;
static uint64_t of_all;

static void *count_malloc(size_t size)
{
    of_curl++;
    return malloc(size);
}

static void *count_calloc(size_t count, size_t size)
{
    of_curl++;
    return calloc(count, size);
}

static void *count_realloc(void *memory, size_t size)
{
    of_curl++;
    return realloc(memory, size);
}

static char *count_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = count_malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

#ifndef __has_feature /* gcc says it by macros, clang by features */
#define __has_feature(x) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

BECALM_API void *malloc(size_t size)
{
    of_all++;
    return __libc_malloc(size);
}

BECALM_API void *calloc(size_t count, size_t size)
{
    of_all++;
    return __libc_calloc(count, size);
}

BECALM_API void *realloc(void *memory, size_t size)
{
    of_all++;
    return __libc_realloc(memory, size);
}
#endif

/* ---- the server ---- */

struct peer {
    int listener;
    int socket; /* -1: not connected */
};

static int peer_listen(struct peer *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *peer = (struct peer){socket(AF_INET, SOCK_STREAM, 0), -1};
    assert_true(peer->listener >= 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(peer->listener, 1), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin_port);
}

/* There is a connection, and the request comes next: its answer is there before it. */
static int on_request(void *data, char *to, char *from, int to_port, int from_port)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    struct peer *peer = data;
    char request[4096];
    (void)to, (void)from, (void)to_port, (void)from_port;
    if (peer->socket < 0) {
        peer->socket = accept(peer->listener, NULL, NULL);
    } else {
        (void)recv(peer->socket, request, sizeof request, MSG_DONTWAIT); /* of the call before */
    }
    return send(peer->socket, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0 ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static size_t ignore(char *at, size_t size, size_t count, void *data)
{
    (void)at, (void)data;
    return size * count;
}

/* ---- the claim ---- */

struct counts {
    uint64_t curl;
    uint64_t all;
};

/* The allocations of one call of this handle, after some calls. `client` may be NULL: by libcurl alone. */
static struct counts counts_of(struct becalm_client *client, bool recorded)
{
    struct peer peer;
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/orders", peer_listen(&peer));
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "X-Request-Deadline-Ms: 5000");
    headers = curl_slist_append(headers, "x-envoy-attempt-count: 1");
    if (client != NULL && recorded) {
        (void)becalm_curl_setopt(easy, client, CURLOPT_WRITEFUNCTION, ignore);
        (void)becalm_curl_setopt(easy, client, CURLOPT_WRITEDATA, NULL);
        (void)becalm_curl_setopt(easy, client, CURLOPT_HTTPHEADER, NULL); /* there are none but ours */
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, recorded ? headers : NULL);
    }
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, &peer);
    struct counts before = {0};
    for (int i = 0; i < WARM_UP + CALLS; i++) {
        if (i == WARM_UP) {
            before = (struct counts){of_curl, of_all};
        }
        assert_int_equal(client == NULL ? curl_easy_perform(easy) : becalm_curl_perform(easy, client), CURLE_OK);
    }
    struct counts counts = {of_curl - before.curl, of_all - before.all};
    if (client == NULL) {
        curl_easy_cleanup(easy);
    } else {
        becalm_curl_cleanup(easy, client);
    }
    curl_slist_free_all(headers);
    (void)close(peer.socket);
    (void)close(peer.listener);
    return counts;
}

static void test_curl__a_call_allocates_no_more_than_libcurl_alone(void **state)
{
    (void)state;
    struct becalm_client *client = becalm_client_new("orders", NULL, NULL, NULL);
    assert_non_null(client);
    for (int recorded = 0; recorded < 2; recorded++) {
        struct counts alone = counts_of(NULL, recorded);
        struct counts with = counts_of(client, recorded);
        check_true(alone.curl > 0);
        check_eq_u64(with.curl, alone.curl);
        check_eq_u64(with.all, alone.all);
    }
    becalm_client_free(client);
}

static int test_curl__setup(void **state)
{
    (void)state;
    CURLcode code =
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, count_malloc, free, count_realloc, count_strdup, count_calloc);
    return code == CURLE_OK ? 0 : -1;
}

BECALM_TESTS(cmocka_unit_test_setup(test_curl__a_call_allocates_no_more_than_libcurl_alone, test_curl__setup))
