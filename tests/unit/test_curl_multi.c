/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "curl/client.h"

#include "check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A client, a multi, and a server that accepts connections and sends nothing. tests/curl has answers of hosts. */
struct world {
    int listener;
    char url[64];
    struct becalm_client *client;
    CURLM *curl;
    struct becalm_curl_multi *multi;
};

static int world_make(void **state)
{
    static struct world world;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    world.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(world.listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(world.listener, 64), 0);
    assert_int_equal(getsockname(world.listener, (struct sockaddr *)&address, &length), 0);
    (void)snprintf(world.url, sizeof world.url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    world.client = becalm_client_new("silent", NULL, NULL, NULL);
    world.curl = curl_multi_init();
    world.multi = becalm_curl_multi_new(world.curl, world.client);
    *state = &world;
    return world.multi == NULL;
}

static int world_end(void **state)
{
    struct world *world = *state;
    becalm_curl_multi_free(world->multi);
    (void)curl_multi_cleanup(world->curl);
    becalm_client_free(world->client);
    return close(world->listener);
}

static CURL *handle_add(struct world *world, bool recorded)
{
    CURL *easy = curl_easy_init();
    if (recorded) {
        (void)becalm_curl_setopt(easy, world->client, CURLOPT_URL, world->url);
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_URL, world->url);
    }
    assert_int_equal(becalm_curl_multi_add_handle(world->multi, easy), CURLM_OK);
    return easy;
}

static int perform(struct world *world)
{
    int running = -1;
    assert_int_equal(becalm_curl_multi_perform(world->multi, &running), CURLM_OK);
    return running;
}

struct inside {
    struct world *world;
    CURL *self;
    CURL *other;
    unsigned calls;
};

static int on_request(void *data, char *to, char *from, int to_port, int from_port)
{
    struct inside *inside = data;
    struct becalm_curl_multi *multi = inside->world->multi;
    int running;
    (void)to, (void)from, (void)to_port, (void)from_port;
    assert_int_equal(becalm_curl_multi_add_handle(multi, inside->other), CURLM_RECURSIVE_API_CALL);
    assert_int_equal(becalm_curl_multi_remove_handle(multi, inside->self), CURLM_RECURSIVE_API_CALL);
    assert_int_equal(becalm_curl_multi_perform(multi, &running), CURLM_RECURSIVE_API_CALL);
    assert_int_equal(becalm_curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running),
                     CURLM_RECURSIVE_API_CALL);
    inside->calls++;
    return CURL_PREREQFUNC_ABORT;
}

static void test_multi__whoever_calls_from_a_callback_is_refused(void **state)
{
    struct inside inside = {.world = *state, .self = curl_easy_init(), .other = curl_easy_init()};
    (void)curl_easy_setopt(inside.self, CURLOPT_URL, inside.world->url);
    (void)curl_easy_setopt(inside.self, CURLOPT_PREREQFUNCTION, on_request);
    (void)curl_easy_setopt(inside.self, CURLOPT_PREREQDATA, &inside);
    assert_int_equal(becalm_curl_multi_add_handle(inside.world->multi, inside.self), CURLM_OK);
    while (perform(inside.world) > 0) {
        (void)becalm_curl_multi_poll(inside.world->multi, NULL, 0, 1000, NULL);
    }
    check_eq_u64(inside.calls, 1);
    assert_int_equal(becalm_curl_multi_add_handle(inside.world->multi, inside.other),
                     CURLM_OK); /* and afterwards not */
    assert_int_equal(becalm_curl_multi_remove_handle(inside.world->multi, inside.other), CURLM_OK);
    assert_int_equal(becalm_curl_multi_remove_handle(inside.world->multi, inside.self), CURLM_OK);
    curl_easy_cleanup(inside.self);
    curl_easy_cleanup(inside.other);
}

static void test_multi__a_handle_that_is_cleaned_up_or_reset_is_taken_out(void **state)
{
    struct world *world = *state;
    CURL *plain = handle_add(world, false);
    CURL *recorded = handle_add(world, true);
    CURL *reset = handle_add(world, true);
    CURL *last = handle_add(world, true);
    check_eq_u64((uint64_t)perform(world), 4);
    becalm_curl_cleanup(plain, world->client);
    becalm_curl_cleanup(recorded, world->client);
    becalm_curl_reset(reset, world->client);
    check_eq_u64((uint64_t)perform(world), 1);
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, reset), CURLM_BAD_EASY_HANDLE);
    curl_easy_cleanup(reset);
    becalm_curl_multi_free(world->multi); /* takes out the last */
    world->multi = NULL;
    becalm_curl_cleanup(last, world->client);
    check_eq_u64(world->client->handles.by_address.count, 0);
}

static void test_multi__a_handle_is_in_one_place_at_a_time(void **state)
{
    struct world *world = *state;
    CURLM *curl = curl_multi_init();
    struct becalm_curl_multi *other = becalm_curl_multi_new(curl, world->client);
    CURL *easy = handle_add(world, false);
    assert_int_equal(becalm_curl_multi_add_handle(world->multi, easy), CURLM_ADDED_ALREADY);
    assert_int_equal(becalm_curl_multi_add_handle(other, easy), CURLM_ADDED_ALREADY);
    check_eq_u64(becalm_curl_perform(easy, world->client), CURLE_FAILED_INIT);
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, easy), CURLM_OK);
    assert_int_equal(becalm_curl_multi_add_handle(other, easy), CURLM_OK);
    becalm_curl_multi_free(other);
    (void)curl_multi_cleanup(curl);
    curl_easy_cleanup(easy);
    check_eq_u64(world->client->handles.by_address.count, 0); /* it was plain */
}

struct elsewhere {
    struct world *world;
    CURL *easy;
};

static void *cancel(void *data)
{
    const struct elsewhere *elsewhere = data;
    return becalm_curl_cancel(elsewhere->easy, elsewhere->world->client) ? data : NULL;
}

static void test_multi__a_call_is_cancelled_from_another_thread(void **state)
{
    struct world *world = *state;
    CURL *stays = handle_add(world, true);
    CURL *goes = handle_add(world, false);
    struct elsewhere elsewhere = {world, goes};
    pthread_t thread;
    void *found;
    int left;
    check_eq_u64((uint64_t)perform(world), 2);
    assert_int_equal(pthread_create(&thread, NULL, cancel, &elsewhere), 0);
    while (perform(world) == 2) {
        (void)becalm_curl_multi_poll(world->multi, NULL, 0, 20000, NULL);
    }
    assert_int_equal(pthread_join(thread, &found), 0);
    assert_ptr_equal(found, &elsewhere);
    const CURLMsg *message = becalm_curl_multi_info_read(world->multi, &left);
    assert_non_null(message);
    assert_ptr_equal(message->easy_handle, goes);
    check_eq_u64(message->data.result, CURLE_ABORTED_BY_CALLBACK);
    check_eq_u64(becalm_curl_multi_record(world->multi, goes)->reason, BECALM_WHY_CANCELLED);
    assert_null(becalm_curl_multi_info_read(world->multi, &left));
    check_true(becalm_curl_cancel(stays, world->client)); /* and removed before its message is read */
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, stays), CURLM_OK);
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, goes), CURLM_OK);
    check_true(!becalm_curl_cancel(goes, world->client));
    becalm_curl_cleanup(stays, world->client);
    curl_easy_cleanup(goes);
    check_eq_u64((uint64_t)perform(world), 0);
}

static size_t on_body(char *at, size_t size, size_t count, void *data)
{
    (void)at;
    *(size_t *)data += size * count;
    return size * count;
}

/* When there was time to look how far it is, too: it is over, and its handle is free for the next. */
static void test_multi__a_call_that_is_cancelled_in_its_answer_is_over(void **state)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
    struct world *world = *state;
    size_t taken = 0;
    CURL *easy = curl_easy_init();
    (void)becalm_curl_setopt(easy, world->client, CURLOPT_URL, world->url);
    (void)becalm_curl_setopt(easy, world->client, CURLOPT_WRITEFUNCTION, on_body);
    (void)becalm_curl_setopt(easy, world->client, CURLOPT_WRITEDATA, &taken);
    assert_int_equal(becalm_curl_multi_add_handle(world->multi, easy), CURLM_OK);
    check_eq_u64((uint64_t)perform(world), 1);
    int peer = accept(world->listener, NULL, NULL);
    (void)poll(NULL, 0, 1000); /* more than an eighth of an attempt's time: see LOOKS in transfer.c */
    assert_int_equal(send(peer, answer, sizeof answer - 1, 0), sizeof answer - 1);
    while (taken == 0) {
        check_eq_u64((uint64_t)perform(world), 1);
        (void)becalm_curl_multi_poll(world->multi, NULL, 0, 10, NULL);
    }
    check_true(becalm_curl_cancel(easy, world->client));
    check_eq_u64((uint64_t)perform(world), 0);
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, easy), CURLM_OK);
    assert_int_equal(becalm_curl_multi_add_handle(world->multi, easy), CURLM_OK);
    check_eq_u64((uint64_t)perform(world), 1);
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, easy), CURLM_OK);
    becalm_curl_cleanup(easy, world->client);
    (void)close(peer);
}

static int on_timer(CURLM *curl, long ms, void *data)
{
    (void)curl;
    *(long *)data = ms;
    return 0;
}

/* A call that is refused at once ends in becalm_curl_multi_add_handle(): the program is woken for that. A program that
 * reads its messages when all calls are over, as examples of libcurl do, is not woken again and again until then. */
static void test_multi__a_message_wakes_the_program_once(void **state)
{
    struct world *world = *state;
    long ms = -2;
    long timer_ms = -2;
    int left;
    (void)becalm_curl_multi_setopt(world->multi, CURLMOPT_TIMERDATA, &timer_ms);
    (void)becalm_curl_multi_setopt(world->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    CURL *easy = curl_easy_init();
    (void)curl_easy_setopt(easy, CURLOPT_URL, world->url);
    (void)becalm_curl_deadline(easy, world->client, 1); /* long ago */
    assert_int_equal(becalm_curl_multi_add_handle(world->multi, easy), CURLM_OK);
    assert_int_equal(becalm_curl_multi_timeout(world->multi, &ms), CURLM_OK);
    check_true(ms == 0 && timer_ms == 0);
    check_eq_u64((uint64_t)perform(world), 0);
    assert_int_equal(becalm_curl_multi_timeout(world->multi, &ms), CURLM_OK);
    check_true(ms == -1 && timer_ms == -1);
    const CURLMsg *message = becalm_curl_multi_info_read(world->multi, &left);
    assert_non_null(message);
    check_eq_u64(message->data.result, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(becalm_curl_multi_remove_handle(world->multi, easy), CURLM_OK);
    becalm_curl_cleanup(easy, world->client);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_make, world_end)

BECALM_TESTS(WORLD_TEST(test_multi__whoever_calls_from_a_callback_is_refused),
             WORLD_TEST(test_multi__a_handle_that_is_cleaned_up_or_reset_is_taken_out),
             WORLD_TEST(test_multi__a_handle_is_in_one_place_at_a_time),
             WORLD_TEST(test_multi__a_call_is_cancelled_from_another_thread),
             WORLD_TEST(test_multi__a_call_that_is_cancelled_in_its_answer_is_over),
             WORLD_TEST(test_multi__a_message_wakes_the_program_once))
