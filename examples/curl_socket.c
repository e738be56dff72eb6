/* SPDX-License-Identifier: MIT */
/* Fetches many URLs at once with the rules of a policy, in the program's own event loop: curl_socket POLICY URL...
 *
 *   cc curl_socket.c $(pkg-config --cflags --libs libbecalm-curl) */
#include <becalm/becalm.h>
#include <becalm/curl.h>

#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 64

struct loop {
    int epoll;
    becalm_ns timer_at; /* BECALM_NEVER: none */
    struct becalm_client *client;
    struct becalm_curl_multi *multi;
};

/* libcurl names a socket that it waits for, and the events. */
static int on_socket(CURL *easy, curl_socket_t socket, int what, void *data, void *own)
{
    const struct loop *loop = data;
    uint32_t in = (what & CURL_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0;
    uint32_t out = (what & CURL_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0;
    struct epoll_event event = {.events = in | out, .data.fd = socket};
    (void)easy;
    (void)own;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket, NULL);
    } else if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, socket, &event) != 0) {
        (void)epoll_ctl(loop->epoll, EPOLL_CTL_ADD, socket, &event);
    }
    return 0;
}

/* One timer for libcurl's waits and the policy's. */
static int on_timer(CURLM *curl, long ms, void *data)
{
    struct loop *loop = data;
    (void)curl;
    loop->timer_at = ms < 0 ? BECALM_NEVER : becalm_ns_after(becalm_run_now(), (becalm_ns)ms * BECALM_MS);
    return 0;
}

/* The time to sleep. The timer keeps its instant when a socket wakes the loop before. */
static int sleep_ms(const struct loop *loop)
{
    becalm_ns left = becalm_ns_left(becalm_run_now(), loop->timer_at);
    if (left == BECALM_NEVER) {
        return -1;
    }
    return left / BECALM_MS >= INT_MAX ? INT_MAX : (int)((left + BECALM_MS - 1) / BECALM_MS);
}

static size_t ignore(char *at, size_t size, size_t count, void *data)
{
    (void)at;
    (void)data;
    return size * count;
}

static void add(struct loop *loop, const char *url)
{
    CURL *easy = curl_easy_init();
    (void)becalm_curl_setopt(easy, loop->client, CURLOPT_URL, url);
    (void)becalm_curl_setopt(easy, loop->client, CURLOPT_HTTPGET, 1L);
    (void)becalm_curl_setopt(easy, loop->client, CURLOPT_WRITEFUNCTION, ignore);
    (void)becalm_curl_setopt(easy, loop->client, CURLOPT_WRITEDATA, NULL);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, url);
    (void)becalm_curl_multi_add_handle(loop->multi, easy);
}

/* Prints the results of calls that have ended, and frees their handles. Returns the number of failed calls. */
static int finish(struct loop *loop)
{
    int failed = 0;
    int left;
    CURLMsg *message;
    while ((message = becalm_curl_multi_info_read(loop->multi, &left)) != NULL) {
        CURL *easy = message->easy_handle;
        const struct becalm_record *record = becalm_curl_multi_record(loop->multi, easy);
        char *url = NULL;
        long status = 0;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &url);
        (void)curl_easy_getinfo(becalm_curl_multi_answered(loop->multi, easy), CURLINFO_RESPONSE_CODE, &status);
        (void)printf("%s: %ld after %u attempts: %s\n", url, status, record->attempts,
                     becalm_reason_sentence(record->reason));
        failed += message->data.result != CURLE_OK;
        becalm_curl_cleanup(easy, loop->client); /* also removes the handle from the multi */
    }
    return failed;
}

/* Runs until no call is left. A program may have its own sockets in the same loop. */
static int run(struct loop *loop)
{
    struct epoll_event events[EVENTS_MAX];
    int failed = 0;
    int running = 0;
    (void)becalm_curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    while (running > 0) {
        int count = epoll_wait(loop->epoll, events, EVENTS_MAX, sleep_ms(loop));
        if (count == 0) {
            loop->timer_at = BECALM_NEVER;
            (void)becalm_curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        for (int i = 0; i < count; i++) {
            int in = (events[i].events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0;
            int out = (events[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0;
            int error = (events[i].events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0;
            (void)becalm_curl_multi_socket_action(loop->multi, events[i].data.fd, in | out | error, &running);
        }
        failed += finish(loop);
    }
    return failed + finish(loop);
}

int main(int argc, char **argv)
{
    struct loop loop = {.timer_at = BECALM_NEVER};
    if (argc < 3) {
        (void)fprintf(stderr, "usage: curl_socket POLICY URL...\n");
        return 2;
    }
    loop.client = becalm_client_load(argv[1], NULL, NULL); /* prints errors of the policy on stderr */
    if (loop.client == NULL) {
        return 1;
    }
    CURLM *curl = curl_multi_init();
    loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    loop.multi = becalm_curl_multi_new(curl, loop.client);
    (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_SOCKETDATA, &loop);
    (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_TIMERDATA, &loop);
    (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    for (int i = 2; i < argc; i++) {
        add(&loop, argv[i]);
    }
    int failed = run(&loop);
    becalm_curl_multi_free(loop.multi);
    (void)curl_multi_cleanup(curl);
    becalm_client_free(loop.client);
    (void)close(loop.epoll);
    return failed == 0 ? 0 : 1;
}
