/* SPDX-License-Identifier: MIT */
/* The client of the race: connections to all targets, opened up front and kept, in closed loop: each sends its next
 * request when its answer is complete. It reads commands from standard input, one per line, and prints each result as
 * one line:
 *
 *   slice TARGET SIZE MILLISECONDS   all connections of the target (0 is the first) ask for /SIZE during this time
 *   each TARGET SIZE                 every connection asks once, one after the other
 *
 *   REQUESTS MEDIAN P99              requests answered, and how long an answer took, in nanoseconds
 *
 * All requests have their answers when the line is printed, so the cost of a target until then is the cost of these
 * requests. An answer must be a 200 with SIZE bytes; any other, a closed connection or silence ends the program. */
#define _GNU_SOURCE

#include <becalm/ns.h>
#include <strings.h>
#include <time.h>

#include "sockets.h"

enum { BUFFER_BYTES = 262144, HEAD_BYTES_MAX = 2048, SAMPLES_MAX = 1000000, SILENCE_MS = 10000, TARGETS_MAX = 16 };

struct connection {
    int fd;
    becalm_ns sent_at;
    uint64_t left; /* bytes of the body still to come; 0: the head is */
    size_t head_length;
    char head[HEAD_BYTES_MAX]; /* the received part of an incomplete head */
};

struct target {
    const char *name;
    int poll;
    struct connection *connection;
};

struct load {
    size_t connections; /* per target */
    size_t targets;
    struct target target[TARGETS_MAX];
    uint32_t *sample; /* latencies of this slice in nanoseconds */
    size_t samples;
    uint64_t answered;
    char buffer[BUFFER_BYTES + 1]; /* and a 0 behind */
};

/* The present command and its target. */
struct job {
    struct load *load;
    const struct target *target;
    unsigned size;
    char request[256];
    size_t request_length;
};

static becalm_ns clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (becalm_ns)t.tv_sec * BECALM_S + (becalm_ns)t.tv_nsec;
}

/* The race is over: a figure with a wrong answer in it is none. */
static void give_up(const struct job *job, const char *what)
{
    fprintf(stderr, "load: %s asked for /%u %s\n", job->target->name, job->size, what);
    exit(1);
}

static void target_open(struct target *target, const char *address, size_t connections)
{
    struct sockaddr_in to = address_parse(address);
    target->name = address;
    target->poll = epoll_create1(EPOLL_CLOEXEC);
    must(target->poll >= 0, "epoll_create1");
    target->connection = must_calloc(connections, sizeof *target->connection);
    for (size_t i = 0; i < connections; i++) {
        int fd = socket_connect(&to);
        errno = fd < 0 ? -fd : 0;
        must(fd >= 0, address);
        target->connection[i].fd = fd;
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &target->connection[i]}};
        must(epoll_ctl(target->poll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    }
}

static void request_send(const struct job *job, struct connection *c)
{
    c->sent_at = clock_now();
    ssize_t sent = socket_send(c->fd, job->request, job->request_length);
    if (sent != (ssize_t)job->request_length) { /* the socket is empty, so a small request fits */
        give_up(job, "takes no request");
    }
}

/* How long the body is, from the head that ends at `end`. */
static uint64_t head_read(const struct job *job, char *head, char *end)
{
    *end = '\0';
    const char *length = strcasestr(head, "\r\nContent-Length:");
    if (strncmp(head, "HTTP/1.1 200", 12) != 0 || length == NULL) {
        fprintf(stderr, "%s\n", head);
        give_up(job, "answers with the head above, which is no 200 with a length");
    }
    uint64_t bytes = strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
    if (bytes != job->size) {
        give_up(job, "answers with another length");
    }
    return bytes;
}

/* Reads the available bytes. True: the answer is complete. */
static bool answer_read(const struct job *job, struct connection *c)
{
    char *buffer = job->load->buffer;
    memcpy(buffer, c->head, c->head_length);
    ssize_t got = recv(c->fd, buffer + c->head_length, BUFFER_BYTES - c->head_length, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return false;
    }
    if (got <= 0) {
        give_up(job, "closes a connection");
    }
    size_t have = c->head_length + (size_t)got;
    if (c->left == 0) {
        char *end = memmem(buffer, have, "\r\n\r\n", 4);
        if (end == NULL) {
            if (have > HEAD_BYTES_MAX) {
                give_up(job, "answers with a very long head");
            }
            memcpy(c->head, buffer, have);
            c->head_length = have;
            return false;
        }
        c->left = head_read(job, buffer, end);
        c->head_length = 0;
        have -= (size_t)(end - buffer) + 4;
    }
    if (have > c->left) {
        give_up(job, "sends more than it said");
    }
    c->left -= have;
    return c->left == 0;
}

static void answer_note(struct load *load, becalm_ns took)
{
    load->answered++;
    if (load->samples < SAMPLES_MAX) {
        load->sample[load->samples++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    }
}

/* Waits for some answers and sends the next requests until `until`; how many connections became idle. */
static size_t answers_take(const struct job *job, becalm_ns until)
{
    struct epoll_event events[EVENTS_MAX];
    size_t idle = 0;
    int count = poll_wait(job->target->poll, events, SILENCE_MS);
    if (count == 0) {
        give_up(job, "is silent");
    }
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        if (!answer_read(job, c)) {
            continue;
        }
        becalm_ns now = clock_now();
        answer_note(job->load, becalm_ns_since(now, c->sent_at));
        if (now < until) {
            request_send(job, c);
        } else {
            idle++;
        }
    }
    return idle;
}

static void slice_run(const struct job *job, becalm_ns length)
{
    becalm_ns until = becalm_ns_after(clock_now(), length);
    size_t busy = job->load->connections;
    for (size_t i = 0; i < busy; i++) {
        request_send(job, &job->target->connection[i]);
    }
    while (busy > 0) {
        busy -= answers_take(job, until);
    }
}

static void each_run(const struct job *job)
{
    for (size_t i = 0; i < job->load->connections; i++) {
        request_send(job, &job->target->connection[i]);
        while (answers_take(job, 0) == 0) {
        }
    }
}

static int sample_order(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void result_print(struct load *load)
{
    size_t n = load->samples;
    qsort(load->sample, n, sizeof *load->sample, sample_order);
    printf("%llu %u %u\n", (unsigned long long)load->answered, load->sample[n / 2], load->sample[n - 1 - n / 100]);
    fflush(stdout);
    load->samples = 0;
    load->answered = 0;
}

/* One line of standard input. False: it is not one of ours. */
static bool line_run(struct load *load, const char *line)
{
    struct job job = {.load = load};
    char verb[16] = "";
    unsigned target = 0;
    unsigned milliseconds = 0;
    int fields = sscanf(line, "%15s %u %u %u", verb, &target, &job.size, &milliseconds);
    if (fields < 3 || target >= load->targets) {
        return false;
    }
    job.target = &load->target[target];
    job.request_length = (size_t)snprintf(job.request, sizeof job.request,
                                          "GET /%u HTTP/1.1\r\n"
                                          "Host: backend\r\n"
                                          "User-Agent: load\r\n"
                                          "Accept: */*\r\n\r\n",
                                          job.size);
    if (strcmp(verb, "each") == 0 && fields == 3) {
        each_run(&job);
    } else if (strcmp(verb, "slice") == 0 && fields == 4) {
        slice_run(&job, milliseconds * BECALM_MS);
    } else {
        return false;
    }
    result_print(load);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc - 2 > TARGETS_MAX || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: load CONNECTIONS ADDRESS...\n"
                        "  opens as many connections to each address, then does what it reads:\n"
                        "  slice TARGET SIZE MILLISECONDS, or each TARGET SIZE\n");
        return 2;
    }
    struct load *load = must_calloc(1, sizeof *load);
    char line[128];
    (void)descriptors_raise();
    load->sample = must_calloc(SAMPLES_MAX, sizeof *load->sample);
    load->connections = (size_t)atoi(argv[1]);
    load->targets = (size_t)argc - 2;
    for (size_t i = 0; i < load->targets; i++) {
        target_open(&load->target[i], argv[i + 2], load->connections);
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (!line_run(load, line)) {
            fprintf(stderr, "load: don't understand: %s", line);
            return 2;
        }
    }
    return 0;
}
