/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* cores: see measure.h */

#include "h1/h1.h"
#include "lib/measure.h"

/* The cost of HTTP/1 in the gateway: ns per operation, on one thread. The program asserts nothing about time.
 * docs/http1.md has the results. */

static const struct h1_limits limits = {.head_bytes = 65536};

/* 254 bytes, as a service's client sends them. */
static const char request[] = "GET /api/v1/orders/12345?expand=items HTTP/1.1\r\n"
                              "Host: orders.shop.internal:8080\r\n"
                              "User-Agent: Mozilla/5.0 (X11; Linux x86_64) curl/7.88.1\r\n"
                              "Accept: application/json\r\n"
                              "Accept-Encoding: gzip, deflate\r\n"
                              "X-Request-Id: 7f3a9c1e-55b2-4d\r\n"
                              "Connection: keep-alive\r\n\r\n";
_Static_assert(sizeof request - 1 == 254, "the figure is about this length");

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                             "Content-Type: application/json\r\n"
                             "Content-Length: 200\r\n\r\n";

/* 16 chunks of 1000 bytes. */
enum { CHUNKS = 16, CHUNK = 1000 };

/* The compiler must assume that other code reads or writes the object now. */
static inline void keep(const void *object)
{
    __asm__ volatile("" ::"r"(object) : "memory");
}

static void run_end(void *objects, struct worker *w, uint64_t times)
{
    (void)objects;
    while (times-- > 0) {
        keep(request);
        w->sink += h1_head_end(request, sizeof request - 1, 0);
    }
}

static void run_request(void *objects, struct worker *w, uint64_t times)
{
    struct head head;
    (void)objects;
    while (times-- > 0) {
        keep(request);
        w->sink += h1_parse_request(request, sizeof request - 1, &limits, &head).kind;
        keep(&head);
    }
}

static void run_answer(void *objects, struct worker *w, uint64_t times)
{
    struct head head;
    (void)objects;
    while (times-- > 0) {
        keep(answer);
        w->sink += h1_parse_answer(answer, sizeof answer - 1, &limits, false, false, &head).kind;
        keep(&head);
    }
}

static void run_fields(void *objects, struct worker *w, uint64_t times)
{
    struct head head;
    char bytes[512];
    (void)objects;
    w->sink += h1_parse_request(request, sizeof request - 1, &limits, &head).kind;
    while (times-- > 0) {
        struct text_sink out = {.at = bytes, .size = sizeof bytes};
        keep(&head);
        h1_put_fields(&out, &head, 0);
        keep(bytes);
    }
}

static void *make_chunks(void)
{
    size_t size = CHUNKS * (CHUNK + 16) + 8;
    char *bytes = calloc(1, size);
    if (bytes == NULL) {
        perror("bench");
        exit(1);
    }
    struct text_sink out = {.at = bytes, .size = size};
    for (int i = 0; i < CHUNKS; i++) {
        out.length += h1_chunk_head(bytes + out.length, CHUNK) + CHUNK;
        text_put_chars(&out, "\r\n");
    }
    text_put_chars(&out, "0\r\n\r\n");
    return bytes;
}

static void run_chunks(void *objects, struct worker *w, uint64_t times)
{
    const struct head head = {.framing = BODY_OPEN};
    const char *bytes = objects;
    while (times-- > 0) {
        struct h1_body body;
        struct h1_piece piece;
        const char *at = bytes;
        h1_body_init(&body, &head);
        do {
            piece = h1_body_next(&body, &at, bytes + CHUNKS * (CHUNK + 16));
            w->sink += piece.length;
        } while (piece.kind == H1_PIECE_DATA);
    }
}

static const struct measure_case cases[] = {
    {"find the end of a request of 254 bytes", NULL, run_end, 0, 0},
    {"parse it", NULL, run_request, 600, 0},
    {"write its fields again", NULL, run_fields, 0, 0},
    {"parse an answer's head of 109 bytes", NULL, run_answer, 0, 0},
    {"decode 16 chunks", make_chunks, run_chunks, 0, 0},
};
_Static_assert(sizeof answer - 1 == 109, "the name says so");

#define CASES (sizeof cases / sizeof *cases)

int main(void)
{
    static struct series all[CASES];
    const struct measure_options options = {.rotations = 301, .batch = 200 * BECALM_US};
    for (size_t i = 0; i < CASES; i++) {
        series_init(&all[i], &cases[i], 1, options.rotations);
    }
    measure_all(all, CASES, &options);
    printf("%-50s%10s%10s\n", "HTTP/1, ns per operation", "median", "figure");
    for (size_t i = 0; i < CASES; i++) {
        printf("%-50s%10.0f", cases[i].name, series_quantile(&all[i], 50));
        if (cases[i].figure_one > 0) {
            printf("%10.0f", cases[i].figure_one);
        }
        printf("\n");
    }
    return 0;
}
