/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

/* The cost of libbecalm-curl over curl_easy_perform(): the same request to the same server over a connection that is
 * kept. A healthy service, the default policy.
 *
 * The figure is the CPU time of the calling thread, user and system, and a neighbour must not be in it. So: short
 * batches of each case by turns, in a new random order in each rotation; a rotation counts only if no other process
 * took the core from any of its batches; the program prints the median of the ratios within a rotation. It asserts
 * nothing about time; the allocations of a call are counted, those of libcurl too.
 *
 *   bench_curl [server] [nosignal] [ROTATIONS]
 *   bench_curl [server] [nosignal] alone CASE CALLS
 *
 * `server`: another process answers, on another core, instead of the thread itself. `nosignal`: handles with
 * CURLOPT_NOSIGNAL, as in programs with threads; without it libcurl asks the kernel about SIGPIPE again and again, and
 * here less often than in curl_easy_perform(). `alone`: one case, to count its instructions (callgrind) or system calls
 * (strace). */

#include <becalm/curl.h>
#include <becalm/rand.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 20, ROTATIONS = 2000, ROTATIONS_MAX = 20000, CASES = 4, PLAIN = 2, WARM_UP = 2000 };

/* ---- allocations are counted: glibc's own functions have another name ---- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
BECALM_API void *malloc(size_t); /* shown, so that libcurl finds them too */
BECALM_API void *calloc(size_t, size_t);
BECALM_API void *realloc(void *, size_t);

static uint64_t allocations; /* there is one thread, but for the server */

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}

/* ---- the server ---- */

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
                             "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
                             "890123456789";

static int listen_at(uint16_t *port)
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
    return listener;
}

/* The calling thread itself, out of libcurl's callbacks, once the request has been sent and libcurl has looked in vain
 * for an answer: so libcurl has to wait as for a real server, but no thread has to wake up. This cost is in the figures
 * of all cases; a real wait costs more. */
struct peer {
    int listener;
    int socket; /* -1: not connected */
    int looks;  /* of libcurl's until there is an answer: it must have looked once in vain, so that it waits */
};

static int on_request(void *data, char *to, char *from, int to_port, int from_port)
{
    struct peer *peer = data;
    (void)to, (void)from, (void)to_port, (void)from_port;
    peer->socket = peer->socket < 0 ? accept(peer->listener, NULL, NULL) : peer->socket;
    peer->looks = 3;
    return peer->socket < 0 ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static int on_progress(void *data, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct peer *peer = data;
    char request[4096];
    (void)a, (void)b, (void)c, (void)d;
    if (peer->looks == 0 || --peer->looks > 0) {
        return 0;
    }
    return recv(peer->socket, request, sizeof request, 0) <= 0 ||
           send(peer->socket, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0;
}

/* Another process, as in life: the call has to wait. */
static void *serve_one(void *data)
{
    int peer = (int)(intptr_t)data;
    char request[4096];
    while (recv(peer, request, sizeof request, 0) > 0) { /* a request comes in one piece on loopback */
        if (send(peer, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    (void)close(peer);
    return NULL;
}

/* Client and server on different cores, if there are two: else it is luck whether an answer must wait for the caller to
 * go to sleep. */
static void stay_on(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)core, &cores);
    (void)sched_setaffinity(0, sizeof cores, &cores);
}

static void serve(int listener)
{
    pid_t child = fork();
    stay_on(child != 0 ? 0 : 1);
    if (child != 0) {
        return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (;;) {
        pthread_t thread;
        int peer = accept(listener, NULL, NULL);
        if (peer < 0 || pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)peer) != 0) {
            _exit(1);
        }
        (void)pthread_detach(thread);
    }
}

/* ---- the cases ---- */

struct lap {
    double us;  /* of a call, by the clock */
    double cpu; /* and of CPU time */
    bool disturbed;
};

struct bench {
    bool server; /* another process answers */
    bool nosignal;
    struct becalm_client *client;
    CURL *easy[CASES];
    struct peer peer[CASES];
    struct curl_slist *headers;
    struct lap lap[ROTATIONS_MAX][CASES];
    int rotations; /* that count */
    int disturbed;
    uint64_t allocated[CASES]; /* by the latest batch */
};

/* The first two cases are libcurl alone; a recorded handle is compared with a plain one that sends two headers and
 * reads those of the answer, too. */
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

static double clock_us(clockid_t which)
{
    struct timespec now;
    (void)clock_gettime(which, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* How often the kernel gave this thread's core to another one although this thread had work to do. */
static long taken_away(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static struct lap batch(struct bench *bench, int which)
{
    uint64_t before = allocations;
    long taken = taken_away();
    double began = clock_us(CLOCK_MONOTONIC);
    double cpu = clock_us(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < BATCH; i++) {
        call(bench, which);
    }
    cpu = clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu;
    double ended = clock_us(CLOCK_MONOTONIC);
    bench->allocated[which] = allocations - before;
    return (struct lap){(ended - began) / BATCH, cpu / BATCH, taken_away() != taken};
}

static void rotation(struct bench *bench, uint64_t *random)
{
    struct lap *lap = bench->lap[bench->rotations];
    int order[CASES];
    bool disturbed = false;           /* a server that wakes up on this core takes it away: there it means nothing */
    for (int i = 0; i < CASES; i++) { /* shuffled as it is filled */
        int other = (int)becalm_rand_below(becalm_rand_next(random), (uint64_t)i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (int i = 0; i < CASES; i++) {
        lap[order[i]] = batch(bench, order[i]);
        disturbed = disturbed || (!bench->server && lap[order[i]].disturbed);
    }
    bench->rotations += !disturbed;
    bench->disturbed += disturbed;
}

/* ---- the report ---- */

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a;
    double other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The value that `percent` of the rotations do not exceed. */
static double quantile(double *values, int count, int percent)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[(count - 1) * percent / 100];
}

static void report(const struct bench *bench)
{
    static double us[ROTATIONS_MAX];
    static double cpu[ROTATIONS_MAX];
    static double over[ROTATIONS_MAX];
    int count = bench->rotations;
    (void)printf("%s\n%d rotations of %d calls each count, %d were disturbed; server on loopback, answers of 100 B\n"
                 "%s; %s\n\n",
                 curl_version(), count, BATCH, bench->disturbed,
                 bench->server ? "another process answers" : "the thread answers itself",
                 bench->nosignal ? "CURLOPT_NOSIGNAL" : "options as libcurl has them");
    (void)printf("%-42s %7s %7s %8s %18s %12s\n", "a call over a kept connection", "us", "CPU us", "over", "quartiles",
                 "allocations");
    for (int i = 0; i < CASES && count > 0; i++) {
        for (int k = 0; k < count; k++) { /* each by the plain call of the same rotation: a neighbour disturbs both */
            us[k] = bench->lap[k][i].us;
            cpu[k] = bench->lap[k][i].cpu;
            over[k] = (cpu[k] / bench->lap[k][cases[i].against].cpu - 1) * 100;
        }
        (void)printf("%-42s %7.2f %7.2f %+7.1f%% %+8.1f%% %+7.1f%% %12.2f\n", cases[i].name, quantile(us, count, 50),
                     quantile(cpu, count, 50), quantile(over, count, 50), quantile(over, count, 25),
                     quantile(over, count, 75), (double)bench->allocated[i] / BATCH);
    }
}

static void bench_make(struct bench *bench)
{
    char url[64];
    uint16_t port;
    int listener = listen_at(&port);
    if (bench->server) {
        serve(listener);
    }
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
        (void)curl_easy_setopt(bench->easy[i], CURLOPT_NOSIGNAL, bench->nosignal ? 1L : 0L);
        (void)curl_easy_setopt(bench->easy[i], CURLOPT_URL, url);
        (void)curl_easy_setopt(bench->easy[i], CURLOPT_WRITEFUNCTION, ignore);
        if (!bench->server) {
            bench->peer[i] = (struct peer){listener, -1, 0};
            (void)curl_easy_setopt(bench->easy[i], CURLOPT_PREREQFUNCTION, on_request);
            (void)curl_easy_setopt(bench->easy[i], CURLOPT_PREREQDATA, &bench->peer[i]);
            (void)curl_easy_setopt(bench->easy[i], CURLOPT_XFERINFOFUNCTION, on_progress);
            (void)curl_easy_setopt(bench->easy[i], CURLOPT_XFERINFODATA, &bench->peer[i]);
            (void)curl_easy_setopt(bench->easy[i], CURLOPT_NOPROGRESS, 0L);
        }
    }
    (void)curl_easy_setopt(bench->easy[1], CURLOPT_HTTPHEADER, bench->headers);
    (void)curl_easy_setopt(bench->easy[1], CURLOPT_HEADERFUNCTION, ignore);
    (void)becalm_curl_setopt(bench->easy[3], bench->client, CURLOPT_URL, url);
    (void)becalm_curl_setopt(bench->easy[3], bench->client, CURLOPT_WRITEFUNCTION, ignore);
    (void)becalm_curl_setopt(bench->easy[3], bench->client, CURLOPT_WRITEDATA, NULL);
    (void)becalm_curl_setopt(bench->easy[3], bench->client, CURLOPT_HTTPHEADER, NULL); /* none but ours */
}

static void measure(struct bench *bench, int rotations)
{
    uint64_t random = 42;
    for (int i = 0; i < WARM_UP; i++) {
        call(bench, i % CASES);
    }
    for (int i = 0; i < rotations; i++) {
        rotation(bench, &random);
    }
}

static bool take_word(int *argc, char ***argv, const char *word)
{
    bool there = *argc > 1 && strcmp((*argv)[1], word) == 0;
    *argc -= there;
    *argv += there;
    return there;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.server = take_word(&argc, &argv, "server");
    bench.nosignal = take_word(&argc, &argv, "nosignal");
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    bench_make(&bench);
    if (argc == 4 && strcmp(argv[1], "alone") == 0) {
        for (int i = 0; i < atoi(argv[3]); i++) {
            call(&bench, atoi(argv[2]));
        }
    } else {
        int rotations = argc > 1 ? atoi(argv[1]) : ROTATIONS;
        measure(&bench, rotations < 1 || rotations > ROTATIONS_MAX ? ROTATIONS : rotations);
        report(&bench);
    }
    for (int i = 0; i < CASES; i++) {
        becalm_curl_cleanup(bench.easy[i], bench.client);
    }
    curl_slist_free_all(bench.headers);
    becalm_client_free(bench.client);
    return 0;
}
