/* SPDX-License-Identifier: MIT */
/* The folders that a killed process leaves in /tmp. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "exchange_lab.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char policy[] = "services: {a: {hosts: [%s], match: {prefix: /}}}\n";

/* In a process of its own: opens a lab, tells where its folder is, and closes it or is killed. */
static void open_in_child(bool killed, char folder[64])
{
    int ends[2];
    int status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        static struct lab lab;
        bool opened = lab_open(&lab, policy);
        bool told = opened && write(ends[1], lab.folder, sizeof lab.folder) == (ssize_t)sizeof lab.folder;
        if (killed) {
            (void)raise(SIGKILL);
        }
        lab_close(&lab);
        _exit(told ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], folder, 64), 64);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_lab_folders__the_next_process_takes_away_what_a_killed_one_has_left(void **state)
{
    (void)state;
    char left[64];
    char closed[64];
    open_in_child(true, left); /* another program that runs beside this one may be the next */
    open_in_child(false, closed);
    assert_int_not_equal(access(left, F_OK), 0);
    assert_int_not_equal(access(closed, F_OK), 0);
}

static void test_lab_folders__one_that_is_in_use_stays(void **state)
{
    (void)state;
    static struct lab lab;
    char other[64];
    assert_true(lab_open(&lab, policy));
    open_in_child(false, other);
    assert_int_equal(access(lab.folder, F_OK), 0);
    lab_close(&lab);
    assert_int_not_equal(access(lab.folder, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lab_folders__the_next_process_takes_away_what_a_killed_one_has_left),
        cmocka_unit_test(test_lab_folders__one_that_is_in_use_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
