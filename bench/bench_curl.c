/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

/* What libbecalm-curl costs over curl_easy_perform(): the same request to the same server over a connection that is
 * kept, by turns and in a new random order each time. A healthy service, the default policy. It asserts nothing about
 * time; the allocations of a call are counted, those of libcurl too, and those have to be the same.
 *
 *   bench_curl [rotations] */

#include <becalm/curl.h>
#include <becalm/rand.h>
#include <becalm/run.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 200, ROTATIONS = 150, CASES = 4, PLAIN = 2, WARM_UP = 2000 };

/* ---- allocations are counted: glibc's own functions have another name ---- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
BECALM_API void *malloc(size_t); /* shown, so that libcurl finds them too */
BECALM_API void *calloc(size_t, size_t);
BECALM_API void *realloc(void *, size_t);

static _Atomic(uint64_t) allocations;

void *malloc(size_t size)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_realloc(memory, size);
}

/* ---- a server that does nothing but answer ---- */

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
                             "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
                             "890123456789";

static void *serve_one(void *data)
{
    int peer = (int)(intptr_t)data;
    char request[4096];
    ssize_t got;
    while ((got = recv(peer, request, sizeof request, 0)) > 0) { /* a request comes in one piece on loopback */
        if (send(peer, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    (void)close(peer);
    return NULL;
}

static pid_t server_start(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("bench_curl");
        exit(1);
    }
    *port = ntohs(address.sin_port);
    pid_t child = fork();
    while (child == 0) {
        pthread_t thread;
        int peer = accept(listener, NULL, NULL);
        if (peer < 0 || pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)peer) != 0) {
            _exit(1);
        }
        (void)pthread_detach(thread);
    }
    (void)close(listener);
    return child;
}

/* ---- the cases ---- */

struct bench {
    struct becalm_client *client;
    CURL *easy[CASES];
    struct curl_slist *headers;
    double ns[CASES][4096]; /* of a call, one value per rotation */
    double cpu[CASES][4096];
    uint64_t allocated[CASES]; /* in the last rotation */
};

/* The first two are libcurl alone; what a recorded handle does is compared with who sends two headers and looks at the
 * answer's, too. */
static const struct {
    const char *name;
    int against;
} cases[CASES] = {
    {"curl_easy_perform", 0},
    {"the same, with two headers and a callback", 1},
    {"becalm_curl_perform, plain handle", 0},
    {"becalm_curl_perform, recorded handle", 1},
};

static size_t ignore(char *at, size_t size, size_t count, void *data)
{
    (void)at;
    (void)data;
    return size * count;
}

static void call(struct bench *bench, int which)
{
    CURLcode code =
        which < PLAIN ? curl_easy_perform(bench->easy[which]) : becalm_curl_perform(bench->easy[which], bench->client);
    if (code != CURLE_OK) {
        (void)fprintf(stderr, "bench_curl: %s\n", curl_easy_strerror(code));
        exit(1);
    }
}

static double cpu_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void batch(struct bench *bench, int which, int rotation)
{
    uint64_t before = atomic_load_explicit(&allocations, memory_order_relaxed);
    double cpu = cpu_now();
    becalm_ns began_at = becalm_run_now();
    for (int i = 0; i < BATCH; i++) {
        call(bench, which);
    }
    bench->ns[which][rotation] = (double)(becalm_run_now() - began_at) / BATCH;
    bench->cpu[which][rotation] = (cpu_now() - cpu) / BATCH;
    bench->allocated[which] = atomic_load_explicit(&allocations, memory_order_relaxed) - before;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a;
    double other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* Each rotation's cost over the plain function in the same rotation: a neighbour disturbs both. */
static double median_over(double (*values)[4096], int which, int count)
{
    double over[4096];
    for (int i = 0; i < count; i++) {
        over[i] = values[which][i] / values[cases[which].against][i];
    }
    return median(over, count);
}

static void report(struct bench *bench, int rotations)
{
    double wall_over[CASES];
    double cpu_over[CASES];
    for (int i = 0; i < CASES; i++) { /* before the medians put the batches in order */
        wall_over[i] = median_over(bench->ns, i, rotations);
        cpu_over[i] = median_over(bench->cpu, i, rotations);
    }
    (void)printf("%-42s %7s %8s %7s %8s %12s\n", "a call over a kept connection", "us", "over", "CPU us", "over",
                 "allocations");
    for (int i = 0; i < CASES; i++) {
        (void)printf("%-42s %7.2f %+7.1f%% %7.2f %+7.1f%% %12.2f\n", cases[i].name,
                     median(bench->ns[i], rotations) / 1e3, (wall_over[i] - 1) * 100,
                     median(bench->cpu[i], rotations) / 1e3, (cpu_over[i] - 1) * 100,
                     (double)bench->allocated[i] / BATCH);
    }
}

static void bench_make(struct bench *bench, uint16_t port)
{
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/orders/12345", (unsigned)port);
    bench->client = becalm_client_parse("services: {s: {match: {prefix: /}}}", 35, NULL, NULL);
    if (bench->client == NULL) {
        (void)fprintf(stderr, "bench_curl: no client\n");
        exit(1);
    }
    bench->headers = curl_slist_append(NULL, "X-Request-Deadline-Ms: 4999");
    bench->headers = curl_slist_append(bench->headers, "x-envoy-attempt-count: 1");
    for (int i = 0; i < CASES; i++) {
        bench->easy[i] = curl_easy_init();
        (void)curl_easy_setopt(bench->easy[i], CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(bench->easy[i], CURLOPT_URL, url);
        (void)curl_easy_setopt(bench->easy[i], CURLOPT_WRITEFUNCTION, ignore);
    }
    (void)curl_easy_setopt(bench->easy[1], CURLOPT_HTTPHEADER, bench->headers);
    (void)curl_easy_setopt(bench->easy[1], CURLOPT_HEADERFUNCTION, ignore);
    (void)becalm_curl_setopt(bench->easy[3], bench->client, CURLOPT_URL, url);
    (void)becalm_curl_setopt(bench->easy[3], bench->client, CURLOPT_WRITEFUNCTION, ignore);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    int rotations = argc > 1 ? atoi(argv[1]) : ROTATIONS;
    uint16_t port;
    uint64_t random = 42;
    rotations = rotations < 1 || rotations > 4096 ? ROTATIONS : rotations;
    pid_t server = server_start(&port);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    bench_make(&bench, port);
    for (int i = 0; i < WARM_UP; i++) {
        call(&bench, i % CASES);
    }
    for (int rotation = 0; rotation < rotations; rotation++) {
        int first = (int)becalm_rand_below(becalm_rand_next(&random), CASES);
        for (int i = 0; i < CASES; i++) {
            batch(&bench, (first + i) % CASES, rotation);
        }
    }
    (void)printf("%s, %d batches of %d calls each, by turns; server on loopback, answers of 100 B\n", curl_version(),
                 rotations, BATCH);
    report(&bench, rotations);
    for (int i = 0; i < CASES; i++) {
        becalm_curl_cleanup(bench.easy[i], bench.client);
    }
    curl_slist_free_all(bench.headers);
    becalm_client_free(bench.client);
    (void)kill(server, SIGTERM);
    (void)waitpid(server, NULL, 0);
    return 0;
}
