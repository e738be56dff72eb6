/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "check.h"

#include "journal/log.h"
#include "meter/buffer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WALL 1767323045678000000u /* 2026-01-02T03:04:05.678Z */

/* A log that writes into pipes, and its output. */
struct lab {
    int pipe[2];
    int access[2];
    struct log *log;
    char text[1 << 18];
};

static struct lab *lab_make(const struct log_settings *settings)
{
    struct lab *lab = calloc(1, sizeof *lab);
    struct log_settings own = *settings;
    check_true(lab != NULL && pipe2(lab->pipe, O_CLOEXEC) == 0 && pipe2(lab->access, O_CLOEXEC) == 0);
    own.fd = lab->pipe[1];
    own.access_fd = lab->access[1];
    lab->log = log_make(&own, 1);
    check_true(lab->log != NULL);
    return lab;
}

static struct log_source *source_in(struct lab *lab)
{
    return log_source_of(lab->log, 0);
}

/* Everything that is in a pipe whose other end is closed. */
static const char *drain(struct lab *lab, int fd)
{
    size_t length = 0;
    ssize_t more;
    while ((more = read(fd, lab->text + length, sizeof lab->text - 1 - length)) > 0) {
        length += (size_t)more;
    }
    lab->text[length] = '\0';
    return lab->text;
}

/* Ends the log; its last lines are in the pipes then. */
static void lab_end(struct lab *lab)
{
    log_free(lab->log);
    lab->log = NULL;
    close(lab->pipe[1]);
    close(lab->access[1]);
}

static void lab_free(struct lab *lab)
{
    close(lab->pipe[0]);
    close(lab->access[0]);
    free(lab);
}

static unsigned lines_in(const char *text, const char *with)
{
    unsigned lines = 0;
    for (const char *at = text; (at = strstr(at, with)) != NULL; at += strlen(with)) {
        lines++;
    }
    return lines;
}

/* Waits until `lines` lines were dropped: at most ten seconds. */
static bool dropped_at_least(const struct log *log, uint64_t lines)
{
    for (int i = 0; i < 10000 && log_dropped(log) < lines; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return log_dropped(log) >= lines;
}

static const struct log_settings text_settings = {BECALM_LOG_INFO, BECALM_LOG_TEXT, BECALM_ACCESS_OFF, 0, 0};
static const struct log_settings json_settings = {BECALM_LOG_INFO, BECALM_LOG_JSON, BECALM_ACCESS_JSON, 0, 0};

static void test_log__nothing_said_nothing_written(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    lab_end(lab);
    check_eq_str(drain(lab, lab->pipe[0]), "");
    check_eq_str(drain(lab, lab->access[0]), "");
    lab_free(lab);
    log_free(NULL);
}

static void all_types(struct lab *lab)
{
    const struct log_pair pairs[] = {
        {"plain", LOG_TEXT, text_of("10.0.0.1:80"), 0},
        {"spaced", LOG_TEXT, text_of("a b"), 0},
        {"empty", LOG_TEXT, text_of(""), 0},
        {"absent", LOG_TEXT, {0}, 0},
        {"count", LOG_NUMBER, {0}, 42},
        {"took_ms", LOG_MS, {0}, 1234567},
        {"yes", LOG_BOOL, {0}, 1},
    };
    log_line(source_in(lab), BECALM_LOG_WARN, WALL, "something happened", pairs, sizeof pairs / sizeof pairs[0]);
}

static void test_log__a_line_of_text(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    all_types(lab);
    log_line(source_in(lab), BECALM_LOG_ERROR, WALL, "bare", NULL, 0);
    lab_end(lab);
    check_eq_str(drain(lab, lab->pipe[0]),
                 "2026-01-02T03:04:05.678Z warn  something happened plain=10.0.0.1:80 spaced=\"a b\" empty=\"\" "
                 "count=42 took_ms=1.234 yes=true\n"
                 "2026-01-02T03:04:05.678Z error bare\n");
    lab_free(lab);
}

static void test_log__a_line_of_json(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&json_settings);
    all_types(lab);
    lab_end(lab);
    check_eq_str(drain(lab, lab->pipe[0]),
                 "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"message\":\"something happened\","
                 "\"plain\":\"10.0.0.1:80\",\"spaced\":\"a b\",\"empty\":\"\",\"count\":42,\"took_ms\":1.234,"
                 "\"yes\":true}\n");
    lab_free(lab);
}

static void test_log__dates_at_the_ends_of_months_and_in_leap_years(void **state)
{
    (void)state;
    static const struct {
        uint64_t seconds;
        const char *expected;
    } row[] = {
        {0, "1970-01-01T00:00:00.000Z"},          {951782399, "2000-02-28T23:59:59.000Z"},
        {951782400, "2000-02-29T00:00:00.000Z"},  {1709164800, "2024-02-29T00:00:00.000Z"},
        {1735689599, "2024-12-31T23:59:59.000Z"}, {4107542400, "2100-03-01T00:00:00.000Z"},
    };
    struct lab *lab = lab_make(&text_settings);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        log_line(source_in(lab), BECALM_LOG_INFO, row[i].seconds * BECALM_S, "x", NULL, 0);
    }
    lab_end(lab);
    const char *at = drain(lab, lab->pipe[0]);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        check_true(strncmp(at, row[i].expected, 24) == 0);
        at = strchr(at, '\n') + 1;
    }
    lab_free(lab);
}

static void test_log__levels_that_nobody_wants_are_not_written_and_settings_may_change(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    struct log_settings changed = {BECALM_LOG_DEBUG, BECALM_LOG_JSON, BECALM_ACCESS_JSON, lab->access[1], lab->pipe[1]};
    check_true(log_wants(source_in(lab), BECALM_LOG_INFO) && !log_wants(source_in(lab), BECALM_LOG_DEBUG));
    check_true(!log_wants_access(source_in(lab)));
    log_line(source_in(lab), BECALM_LOG_DEBUG, WALL, "unwanted", NULL, 0);
    log_access_line(source_in(lab), &(struct log_access){.wall = WALL});
    log_change(lab->log, &changed);
    check_true(log_wants(source_in(lab), BECALM_LOG_DEBUG) && log_wants_access(source_in(lab)));
    log_line(source_in(lab), BECALM_LOG_DEBUG, WALL, "wanted", NULL, 0);
    lab_end(lab);
    check_eq_str(drain(lab, lab->pipe[0]), "");
    check_eq_str(drain(lab, lab->access[0]),
                 "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"debug\",\"message\":\"wanted\"}\n");
    lab_free(lab);
}

/* For every request, the log has one line, and each value stays one value. */
static void test_log__nobody_can_forge_a_line(void **state)
{
    (void)state;
    static const char evil[] = "x\" status=200\n2026-01-02T03:04:05.678Z error forged\r\n\x1b[2J\xe2\x80\xa8\xff\\";
    struct becalm_text text = {evil, sizeof evil - 1};
    struct log_access access = {.wall = WALL, .peer = text, .method = text, .target = text, .user_agent = text};
    for (int format = 0; format < 2; format++) {
        struct log_settings settings = format == 0 ? text_settings : json_settings;
        settings.access = format == 0 ? BECALM_ACCESS_COMBINED : BECALM_ACCESS_JSON;
        struct lab *lab = lab_make(&settings);
        log_line(source_in(lab), BECALM_LOG_INFO, WALL, "said", &(struct log_pair){"by", LOG_TEXT, text, 0}, 1);
        log_access_line(source_in(lab), &access);
        lab_end(lab);
        const char *out = drain(lab, lab->pipe[0]);
        check_eq_u64(lines_in(out, "\n"), 1);
        check_true(strstr(out, "\\\" status=200\\n2026-01-02T03:04:05.678Z error forged\\r\\n\\u001b[2J\\u2028\\ufffd"
                               "\\\\\"") != NULL);
        out = drain(lab, lab->access[0]);
        check_eq_u64(lines_in(out, "\n"), 1);
        check_true(strchr(out, '\x1b') == NULL && strchr(out, '\r') == NULL && strchr(out, '\xff') == NULL);
        lab_free(lab);
    }
}

static void test_log__an_access_line_is_apache_s_combined(void **state)
{
    (void)state;
    struct log_settings settings = text_settings;
    settings.access = BECALM_ACCESS_COMBINED;
    struct lab *lab = lab_make(&settings);
    struct log_access access = {.wall = WALL,
                                .peer = text_of("127.0.0.1"),
                                .method = text_of("GET"),
                                .target = text_of("/a?b=\"c\"\\\t\xc3\xbc"),
                                .referer = text_of("http://example.com/"),
                                .user_agent = text_of("curl/8"),
                                .version = 1,
                                .status = 200,
                                .body_bytes = 2326};
    log_access_line(source_in(lab), &access);
    log_access_line(source_in(lab), &(struct log_access){.wall = 971211336 * BECALM_S, .status = 408});
    lab_end(lab);
    check_eq_str(drain(lab, lab->access[0]),
                 "127.0.0.1 - - [02/Jan/2026:03:04:05 +0000] \"GET /a?b=\\\"c\\\"\\\\\\t\\xc3\\xbc HTTP/1.1\" 200 2326 "
                 "\"http://example.com/\" \"curl/8\"\n"
                 "- - - [10/Oct/2000:20:55:36 +0000] \"  HTTP/1.0\" 408 - \"-\" \"-\"\n");
    lab_free(lab);
}

static void test_log__an_access_line_in_json(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&json_settings);
    struct log_access access = {.wall = WALL,
                                .peer = text_of("::1"),
                                .method = text_of("POST"),
                                .target = text_of("/pay"),
                                .host = text_of("payment.local"),
                                .request_id = text_of("r-1"),
                                .trace_id = text_of("t-1"),
                                .service = text_of("payment"),
                                .endpoint = text_of("charge"),
                                .version = 1,
                                .status = 503,
                                .body_bytes = 10,
                                .took = 95120000,
                                .attempts = 2,
                                .reason = "budget_empty"};
    log_access_line(source_in(lab), &access);
    log_access_line(
        source_in(lab),
        &(struct log_access){
            .wall = WALL, .method = text_of("POST"), .version = 2, .status = 200, .grpc_status = "UNAVAILABLE"});
    lab_end(lab);
    check_eq_str(
        drain(lab, lab->access[0]),
        "{\"time\":\"2026-01-02T03:04:05.678Z\",\"peer\":\"::1\",\"method\":\"POST\",\"protocol\":\"HTTP/1.1\","
        "\"status\":503,\"bytes\":10,\"took_ms\":95.120,\"service\":\"payment\",\"endpoint\":\"charge\","
        "\"attempts\":2,\"reason\":\"budget_empty\",\"request_id\":\"r-1\",\"trace_id\":\"t-1\",\"host\":\"payment."
        "local\","
        "\"target\":\"/pay\"}\n"
        "{\"time\":\"2026-01-02T03:04:05.678Z\",\"method\":\"POST\",\"protocol\":\"HTTP/2.0\",\"status\":200,"
        "\"grpc_status\":\"UNAVAILABLE\",\"bytes\":0,\"took_ms\":0.000,\"attempts\":0}\n");
    lab_free(lab);
}

static void test_log__a_retry_says_what_was_waited_for_and_why(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    struct log_retry retry = {.wall = WALL,
                              .method = text_of("POST"),
                              .service = text_of("payment"),
                              .endpoint = text_of("charge"),
                              .host = text_of("10.0.0.2:9001"),
                              .to = text_of("10.0.0.3:9001"),
                              .retry = 1,
                              .of = 2,
                              .wait = {.delay = 100 * BECALM_MS, .jittered = 61 * BECALM_MS, .wait = 1200 * BECALM_MS},
                              .slept = 1201500 * BECALM_US,
                              .outcome = BECALM_OUTCOME_REJECTED,
                              .status = 503,
                              .grpc_status = BECALM_GRPC_NONE,
                              .retry_after = text_of("1"),
                              .request_id = text_of("r-1"),
                              .reason = BECALM_WHY_HINT};
    log_retry(source_in(lab), &retry);
    retry.outcome = BECALM_OUTCOME_TIMED_OUT;
    retry.status = 0;
    retry.grpc_status = 14;
    retry.retry_after = (struct becalm_text){0};
    retry.reason = BECALM_WHY_BACKOFF;
    log_retry(source_in(lab), &retry);
    lab_end(lab);
    check_eq_str(
        drain(lab, lab->pipe[0]),
        "2026-01-02T03:04:05.678Z info  retry operation=\"POST payment/charge\" retry=1 of=2 "
        "delay_ms=100.000 jittered_ms=61.000 slept_ms=1201.500 outcome=rejected status=503 retry_after=1 "
        "request_id=r-1 reason=hint to=10.0.0.3:9001 http.request.resend_count=1 http.response.status_code=503 "
        "server.address=10.0.0.2 server.port=9001 error.type=503\n"
        "2026-01-02T03:04:05.678Z info  retry operation=\"POST payment/charge\" retry=1 of=2 "
        "delay_ms=100.000 jittered_ms=61.000 slept_ms=1201.500 outcome=timed_out grpc_status=UNAVAILABLE "
        "request_id=r-1 reason=backoff to=10.0.0.3:9001 http.request.resend_count=1 server.address=10.0.0.2 "
        "server.port=9001 error.type=UNAVAILABLE\n");
    lab_free(lab);
}

static void test_log__the_port_of_a_host_stands_apart_from_its_address(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        const char *expected;
    } rows[] = {
        {"[2001:db8::1]:80", " server.address=2001:db8::1 server.port=80 "},
        {"shop.test", " server.address=shop.test error"},
        {"unix:/run/shop", " server.address=unix:/run/shop error"},
        {"shop.test:8x", " server.address=shop.test:8x error"},
        {":", " server.address=: error"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lab *lab = lab_make(&text_settings);
        log_retry(source_in(lab), &(struct log_retry){.host = text_of(rows[i].host), .grpc_status = BECALM_GRPC_NONE});
        lab_end(lab);
        assert_non_null(strstr(drain(lab, lab->pipe[0]), rows[i].expected));
        lab_free(lab);
    }
}

/* The longest values there are, of bytes that grow most: still one line, within its bound, and well closed. */
static void test_log__long_values_are_cut(void **state)
{
    (void)state;
    static char byte[2] = {'a', '\xff'};
    static char huge[20000];
    for (unsigned i = 0; i < 4; i++) {
        memset(huge, byte[i % 2], sizeof huge);
        struct becalm_text text = {huge, sizeof huge};
        struct log_settings settings = i < 2 ? json_settings : text_settings;
        settings.access = i < 2 ? BECALM_ACCESS_JSON : BECALM_ACCESS_COMBINED;
        struct lab *lab = lab_make(&settings);
        const struct log_pair pairs[] = {{"a", LOG_TEXT, text, 0}, {"b", LOG_TEXT, text, 0}, {"c", LOG_TEXT, text, 0},
                                         {"d", LOG_TEXT, text, 0}, {"e", LOG_TEXT, text, 0}, {"f", LOG_TEXT, text, 0},
                                         {"n", LOG_NUMBER, {0}, 1}};
        struct log_access access = {.wall = WALL,
                                    .peer = text,
                                    .method = text,
                                    .target = text,
                                    .host = text,
                                    .referer = text,
                                    .user_agent = text,
                                    .request_id = text,
                                    .service = text,
                                    .endpoint = text,
                                    .status = UINT32_MAX,
                                    .body_bytes = UINT64_MAX,
                                    .took = UINT64_MAX};
        log_line(source_in(lab), BECALM_LOG_INFO, WALL, "long", pairs, sizeof pairs / sizeof pairs[0]);
        log_access_line(source_in(lab), &access);
        lab_end(lab);
        const char *end = i < 2 ? "...\"}\n" : "...\"\n";
        for (unsigned stream = 0; stream < 2; stream++) {
            const char *out = drain(lab, stream == 0 ? lab->pipe[0] : lab->access[0]);
            check_between_u64(strlen(out), 3000, LOG_LINE_MAX);
            check_eq_u64(lines_in(out, "\n"), 1);
            check_eq_str(out + strlen(out) - strlen(end), end);
            check_true(stream == 1 || strstr(out, i < 2 ? ",\"c\":" : " c=") != NULL); /* one leaves room for others */
        }
        lab_free(lab);
    }
}

/* The log has no reader: the ring fills, lines are dropped and counted, and the worker is not held up. When the reader
 * is back, one line says how many are missing. */
static void test_log__a_full_pipe_holds_nobody_up(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    char value[512];
    memset(value, 'v', sizeof value);
    struct log_pair pair = {"value", LOG_TEXT, {value, sizeof value}, 0};
    for (int i = 0; i < 1000; i++) { /* 570 KB: more than the pipe's 64 KiB and the ring's */
        log_line(source_in(lab), BECALM_LOG_INFO, WALL, "many", &pair, 1);
    }
    uint64_t dropped = log_dropped(lab->log);
    check_between_u64(dropped, 700, 999);
    size_t length = 0;
    while (strstr(lab->text, "log lines were dropped") == NULL) { /* read until it tells */
        struct pollfd ready = {.fd = lab->pipe[0], .events = POLLIN};
        check_true(poll(&ready, 1, 10000) == 1);
        ssize_t more = read(lab->pipe[0], lab->text + length, sizeof lab->text - 1 - length);
        check_true(more > 0);
        length += (size_t)more;
        lab->text[length] = '\0';
    }
    check_eq_u64(lines_in(lab->text, " info  many value=vvv"), 1000 - dropped);
    char told[64];
    (void)snprintf(told, sizeof told, " warn  log lines were dropped lines=%" PRIu64 "\n", dropped);
    check_eq_u64(lines_in(lab->text, told), 1);
    check_eq_u64(lines_in(lab->text, "\n"), 1001 - dropped);
    lab_end(lab);
    lab_free(lab);
}

static void test_log__a_reader_that_never_reads_does_not_stop_the_end(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    char value[512];
    memset(value, 'v', sizeof value);
    struct log_pair pair = {"value", LOG_TEXT, {value, sizeof value}, 0};
    for (int i = 0; i < 1000; i++) {
        log_line(source_in(lab), BECALM_LOG_INFO, WALL, "many", &pair, 1);
    }
    lab_end(lab); /* returns: that is the claim */
    lab_free(lab);
}

static void test_log__a_closed_pipe_is_counted_and_survived(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&text_settings);
    int other[2];
    check_true(pipe2(other, O_CLOEXEC) == 0);
    close(lab->pipe[0]); /* SIGPIPE would end the test */
    for (uint64_t i = 1; i <= 3; i++) {
        log_line(source_in(lab), BECALM_LOG_INFO, WALL, "lost", NULL, 0);
        check_true(dropped_at_least(lab->log, i));
    }
    check_eq_u64(log_dropped(lab->log), 3);
    lab->pipe[0] = other[0];
    struct log_settings settings = text_settings;
    settings.fd = other[1];
    log_change(lab->log, &settings);
    log_line(source_in(lab), BECALM_LOG_INFO, WALL, "found", NULL, 0);
    log_free(lab->log);
    close(other[1]);
    const char *out = drain(lab, other[0]);
    check_eq_u64(lines_in(out, "lost"), 0);
    check_true(strncmp(out, "2026-01-02T03:04:05.678Z info  found\n", 37) == 0);
    check_eq_u64(lines_in(out, " warn  log lines were dropped lines=3\n"), 1);
    close(lab->pipe[1]);
    close(lab->access[1]);
    lab_free(lab);
}

/* /dev/full is a disk without room. */
static void test_log__a_full_disk_under_the_access_log_is_told_in_the_other(void **state)
{
    (void)state;
    struct lab *lab = lab_make(&json_settings);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    check_true(full >= 0);
    struct log_settings settings = json_settings;
    settings.fd = lab->pipe[1];
    settings.access_fd = full;
    log_change(lab->log, &settings);
    for (uint64_t i = 1; i <= 2; i++) {
        log_access_line(source_in(lab), &(struct log_access){.wall = WALL, .status = 200});
        check_true(dropped_at_least(lab->log, i));
    }
    settings.access_fd = lab->access[1];
    log_change(lab->log, &settings);
    log_access_line(source_in(lab), &(struct log_access){.wall = WALL, .status = 201});
    lab_end(lab);
    const char *out = drain(lab, lab->pipe[0]);
    check_eq_u64(
        lines_in(out, "\"message\":\"the access log can't be written\",\"error\":\"No space left on device\"}"), 1);
    check_eq_u64(lines_in(out, "\"message\":\"access log lines were dropped\",\"lines\":2}"), 1);
    check_eq_u64(lines_in(drain(lab, lab->access[0]), "\"status\":201"), 1);
    close(full);
    lab_free(lab);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    check_true(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    check_true(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* A disk that fills up takes half a line, and no more: files may not grow beyond 1000 bytes. When they may again, the
 * rest of that line comes first; lines of another worker meanwhile are lost and counted. */
static void test_log__half_a_line_is_finished_before_any_other(void **state)
{
    (void)state;
    char value[700];
    memset(value, 'v', sizeof value);
    struct log_pair pair = {"value", LOG_TEXT, {value, sizeof value}, 0};
    FILE *file = tmpfile();
    check_true(file != NULL);
    struct log_settings settings = text_settings;
    settings.fd = fileno(file);
    struct log *log = log_make(&settings, 2);
    check_true(log != NULL);
    limit_files(1000);
    for (int i = 0; i < 3; i++) {
        log_line(log_source_of(log, 0), BECALM_LOG_INFO, WALL, "half", &pair, 1);
    }
    for (int i = 0; i < 10000 && lseek(settings.fd, 0, SEEK_CUR) < 1000; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    log_line(log_source_of(log, 1), BECALM_LOG_INFO, WALL, "lost", NULL, 0);
    check_true(dropped_at_least(log, 1));
    limit_files(RLIM_INFINITY);
    log_line(log_source_of(log, 1), BECALM_LOG_INFO, WALL, "later", NULL, 0);
    log_free(log);
    static char text[16384];
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    check_eq_u64(lines_in(text, "v\n2026-01-02T03:04:05.678Z info  half value=v"), 2);
    check_eq_u64(lines_in(text, "v\n2026-01-02T03:04:05.678Z info  later\n"), 1);
    check_eq_u64(lines_in(text, " warn  log lines were dropped lines=1\n"), 1);
    check_eq_u64(lines_in(text, "\n"), 5);
}

BECALM_TESTS(cmocka_unit_test(test_log__nothing_said_nothing_written), cmocka_unit_test(test_log__a_line_of_text),
             cmocka_unit_test(test_log__a_line_of_json),
             cmocka_unit_test(test_log__dates_at_the_ends_of_months_and_in_leap_years),
             cmocka_unit_test(test_log__levels_that_nobody_wants_are_not_written_and_settings_may_change),
             cmocka_unit_test(test_log__nobody_can_forge_a_line),
             cmocka_unit_test(test_log__an_access_line_is_apache_s_combined),
             cmocka_unit_test(test_log__an_access_line_in_json),
             cmocka_unit_test(test_log__a_retry_says_what_was_waited_for_and_why),
             cmocka_unit_test(test_log__the_port_of_a_host_stands_apart_from_its_address),
             cmocka_unit_test(test_log__long_values_are_cut), cmocka_unit_test(test_log__a_full_pipe_holds_nobody_up),
             cmocka_unit_test(test_log__a_reader_that_never_reads_does_not_stop_the_end),
             cmocka_unit_test(test_log__a_closed_pipe_is_counted_and_survived),
             cmocka_unit_test(test_log__a_full_disk_under_the_access_log_is_told_in_the_other),
             cmocka_unit_test(test_log__half_a_line_is_finished_before_any_other))
