/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "check.h"
#include "gateway/changes.h"
#include "meter/meter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECOND BECALM_S
#define MINUTE (60 * BECALM_S)

/* ---- one change ---- */

static void test_change__what_was_never_so_is_not_told(void **state)
{
    (void)state;
    struct change change = {0};
    check_eq_u64(change_note(&change, CHANGE_UNKNOWN, 0, SECOND), CHANGE_NONE);
    check_eq_u64(change_note(&change, CHANGE_IS_NOT, 0, MINUTE), CHANGE_NONE);
}

static void test_change__it_is_told_once_then_ever_more_seldom(void **state)
{
    (void)state;
    struct change change = {0};
    uint32_t told[CHANGE_ENDS + 1] = {0};
    for (becalm_ns at = SECOND; at <= 3 * 60 * MINUTE; at += SECOND) {
        told[change_note(&change, CHANGE_IS, 2, at)]++;
    }
    check_eq_u64(told[CHANGE_BEGINS], 1);
    check_eq_u64(told[CHANGE_LASTS], 4); /* after 1, 11, 71 and 131 minutes */
    check_eq_u64(told[CHANGE_ENDS], 0);
    check_eq_u64(change.count, 2 * 3 * 3600);
}

static void test_change__it_ends_when_it_was_not_so_for_a_while_and_what_flickers_is_one(void **state)
{
    (void)state;
    struct change change = {0};
    becalm_ns at = SECOND;
    check_eq_u64(change_note(&change, CHANGE_IS, 1, at), CHANGE_BEGINS);
    for (uint32_t i = 0; i < 10; i++) { /* four seconds of rest are none */
        for (uint32_t k = 0; k < 4; k++) {
            check_eq_u64(change_note(&change, CHANGE_IS_NOT, 0, at += SECOND), CHANGE_NONE);
        }
        check_eq_u64(change_note(&change, CHANGE_IS, 1, at += SECOND), CHANGE_NONE);
    }
    for (uint32_t i = 0; i < 20; i++) { /* silence proves nothing */
        (void)change_note(&change, CHANGE_UNKNOWN, 0, at += SECOND);
        assert_true(change.on);
    }
    check_eq_u64(change_note(&change, CHANGE_IS_NOT, 0, at += SECOND), CHANGE_ENDS);
    check_eq_u64(change.count, 11);
    check_eq_u64(change_note(&change, CHANGE_IS_NOT, 0, at += SECOND), CHANGE_NONE);
    check_eq_u64(change_note(&change, CHANGE_IS, 3, at += SECOND), CHANGE_BEGINS);
    check_eq_u64(change.count, 3);
}

/* ---- a gateway's ---- */

struct lab {
    int fd;
    struct log *log;
    struct changes *changes;
    struct snapshot *snapshot;
    becalm_ns now;
    char text[8192];
};

static uint32_t no_name(void *self, const char *name, uint16_t port, const union address_socket **list)
{
    (void)self;
    (void)name;
    (void)port;
    *list = NULL;
    return 0;
}

static struct snapshot *snapshot_of(const char *text, const struct snapshot *before)
{
    struct becalm_config *config = NULL;
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    assert_int_equal(becalm_config_parse(&config, "test.yaml", text, strlen(text), NULL, diags), 0);
    free(diags);
    struct shared_config *shared = shared_config_make(config);
    struct snapshot *snapshot = snapshot_make(&(struct snapshot_plan){
        .config = shared, .before = before, .names = {.find = no_name}, .workers = 2, .now = SECOND});
    shared_config_drop(shared);
    assert_non_null(snapshot);
    return snapshot;
}

static const char policy[] = "services:\n  a:\n    hosts: [\"127.0.0.1:1\", \"127.0.0.1:2\", \"127.0.0.1:3\"]\n"
                             "    endpoints: {e: {match: {path: /e}}}\n";

static struct lab *lab_make(void)
{
    struct lab *lab = calloc(1, sizeof *lab);
    lab->fd = memfd_create("log", MFD_CLOEXEC);
    lab->log = log_make(&(struct log_settings){.level = BECALM_LOG_INFO, .fd = lab->fd, .access_fd = lab->fd}, 1);
    lab->changes = changes_make();
    lab->snapshot = snapshot_of(policy, NULL);
    lab->now = SECOND;
    return lab;
}

static struct meter *meter_of(struct lab *lab, uint32_t target, uint32_t worker)
{
    return lab->snapshot->target[target].meters->meter[worker];
}

static void seconds(struct lab *lab, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        lab->now += SECOND;
        changes_note(lab->changes, lab->snapshot, log_source_of(lab->log, 0), lab->now, lab->now);
    }
}

/* The log lines, without their times. */
static void lab_end(struct lab *lab, const char *expected)
{
    char told[8192] = "";
    log_free(lab->log);
    ssize_t length = pread(lab->fd, lab->text, sizeof lab->text - 1, 0);
    assert_true(length >= 0);
    for (char *line = strtok(lab->text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *level = strchr(line, ' ') + 1;
        strcat(strcat(told, level), "\n");
    }
    check_eq_str(told, expected);
    changes_free(lab->changes);
    snapshot_drop(lab->snapshot);
    close(lab->fd);
    free(lab);
}

static void test_changes__a_quiet_gateway_says_nothing(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    meter_add(&meter_of(lab, 0, 0)->calls[METER_FIRST_ATTEMPT][BECALM_WHY_OK], 100);
    meter_add(&meter_of(lab, 0, 1)->calls[METER_FAILED][BECALM_WHY_PERMANENT], 300); /* its callers ask for nonsense */
    meter_add(&meter_of(lab, 0, 1)->calls[METER_FAILED][BECALM_WHY_CANCELLED], 300);
    seconds(lab, 3);
    lab_end(lab, "");
}

static void test_changes__calls_that_fail_have_a_line_when_they_begin_and_one_when_they_end(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    for (uint32_t i = 0; i < 8; i++) {
        meter_add(&meter_of(lab, 1, i % 2)->calls[METER_FAILED][BECALM_WHY_ATTEMPTS_SPENT], 6);
        meter_add(&meter_of(lab, 1, i % 2)->calls[METER_FIRST_ATTEMPT][BECALM_WHY_OK], 4);
        seconds(lab, 1);
    }
    struct snapshot *next = snapshot_of(policy, lab->snapshot); /* a reload forgets nothing */
    snapshot_drop(lab->snapshot);
    lab->snapshot = next;
    for (uint32_t i = 0; i < 8; i++) {
        meter_add(&meter_of(lab, 1, 0)->calls[METER_FAILED][BECALM_WHY_ATTEMPTS_SPENT], 1);
        meter_add(&meter_of(lab, 1, 0)->calls[METER_AFTER_RETRY][BECALM_WHY_OK], 9);
        seconds(lab, 1);
    }
    lab_end(lab, "warn  calls fail service=a endpoint=e failed=6\n"
                 "info  calls succeed again service=a endpoint=e lasted_ms=7000.000 failed=53\n");
}

static void test_changes__a_breaker_that_opens_between_two_looks_is_told_too(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    meter_breaker(meter_of(lab, 0, 1), BECALM_BREAKER_CLOSED, BECALM_BREAKER_OPEN);
    meter_add(&meter_of(lab, 0, 1)->shed[BECALM_WHY_BREAKER_OPEN], 5);
    seconds(lab, 2);
    meter_breaker(meter_of(lab, 0, 1), BECALM_BREAKER_HALF_OPEN, BECALM_BREAKER_OPEN);
    meter_add(&meter_of(lab, 0, 1)->shed[BECALM_WHY_BREAKER_OPEN], 5);
    seconds(lab, 8);
    lab_end(lab, "warn  breaker opened service=a refused=5\n"
                 "info  breaker closed service=a lasted_ms=2000.000 refused=10\n");
}

static void test_changes__calls_that_are_shed_and_retries_without_a_budget_are_counted(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    meter_add(&meter_of(lab, 0, 0)->shed[BECALM_WHY_SHED], 7);
    seconds(lab, 1);
    meter_add(&meter_of(lab, 0, 0)->shed[BECALM_WHY_LIMIT], 1);
    meter_add(&meter_of(lab, 1, 0)->overflow[BECALM_WHY_BUDGET_EMPTY], 2);
    seconds(lab, 6);
    lab_end(lab, "warn  calls are shed service=a shed=7\n"
                 "warn  retry budget is empty service=a endpoint=e refused=2\n"
                 "info  no call is shed any more service=a lasted_ms=1000.000 shed=8\n"
                 "info  retry budget pays again service=a endpoint=e lasted_ms=0.000 refused=2\n");
}

static void test_changes__a_host_is_told_when_it_is_ejected_and_when_it_is_back(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    struct becalm_hosts *hosts = lab->snapshot->target[0].state->target.hosts;
    atomic_store(&hosts->host[1].ejected_until, lab->now + 4 * SECOND);
    atomic_store(&hosts->out, 1);
    seconds(lab, 1);
    seconds(lab, 2);
    atomic_store(&hosts->host[1].ejected_until, 0);
    atomic_store(&hosts->out, 0);
    seconds(lab, 9);
    lab_end(lab, "warn  host ejected service=a host=127.0.0.1:2\n"
                 "info  host gets calls again service=a host=127.0.0.1:2 lasted_ms=2000.000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change__what_was_never_so_is_not_told),
        cmocka_unit_test(test_change__it_is_told_once_then_ever_more_seldom),
        cmocka_unit_test(test_change__it_ends_when_it_was_not_so_for_a_while_and_what_flickers_is_one),
        cmocka_unit_test(test_changes__a_quiet_gateway_says_nothing),
        cmocka_unit_test(test_changes__calls_that_fail_have_a_line_when_they_begin_and_one_when_they_end),
        cmocka_unit_test(test_changes__a_breaker_that_opens_between_two_looks_is_told_too),
        cmocka_unit_test(test_changes__calls_that_are_shed_and_retries_without_a_budget_are_counted),
        cmocka_unit_test(test_changes__a_host_is_told_when_it_is_ejected_and_when_it_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
