/* SPDX-License-Identifier: MIT */
#include <becalm/base.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void test_error__zero_is_no_error(void **state)
{
    (void)state;
    check_eq_str(becalm_error_sentence(0), "no error");
}

static void test_error__every_code_has_its_own_sentence_without_a_full_stop(void **state)
{
    (void)state;
    static const int codes[] = {
#define CODE(name, number, sentence) name,
        BECALM_ERRORS(CODE)
#undef CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const char *sentence = becalm_error_sentence(codes[i]);
        check_true(codes[i] < 0);
        check_true(strlen(sentence) > 10 && sentence[strlen(sentence) - 1] != '.');
        check_true(strcmp(sentence, becalm_error_sentence(12345)) != 0);
        for (size_t j = 0; j < i; j++) {
            check_true(codes[i] != codes[j]);
            check_true(strcmp(sentence, becalm_error_sentence(codes[j])) != 0);
        }
    }
}

static void test_error__the_numbers_are_part_of_the_interface(void **state)
{
    (void)state;
    assert_int_equal(BECALM_EINVAL, -1);
    assert_int_equal(BECALM_EPARSE, -2);
    assert_int_equal(BECALM_EIO, -3);
    assert_int_equal(BECALM_ENOMEM, -4);
    check_eq_str(becalm_error_sentence(BECALM_EINVAL), "a value is outside its documented range");
}

static void test_error__a_number_that_is_no_code_is_unknown(void **state)
{
    (void)state;
    check_eq_str(becalm_error_sentence(1), "unknown error");
    check_eq_str(becalm_error_sentence(INT32_MAX), "unknown error");
    check_eq_str(becalm_error_sentence(INT32_MIN), "unknown error");
}

/* Runs an assertion in a child; returns the child's exit status and its stderr. */
static int assert_in_child(int number, char *said, size_t said_max)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka's handler would report the abort as a failure of its own */
        dup2(pipes[1], STDERR_FILENO);
        BECALM_ASSERT(number == 1);
        _exit(0);
    }
    close(pipes[1]);
    size_t length = 0;
    ssize_t got;
    while (length < said_max - 1 && (got = read(pipes[0], said + length, said_max - 1 - length)) > 0) {
        length += (size_t)got;
    }
    said[length] = '\0';
    close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_error__an_assertion_that_holds_is_silent(void **state)
{
    (void)state;
    char said[512];
    int status = assert_in_child(1, said, sizeof said);
    check_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_eq_str(said, "");
}

static void test_error__an_assertion_that_fails_prints_its_place_and_aborts(void **state)
{
    (void)state;
    char said[512];
    int status = assert_in_child(2, said, sizeof said);
    check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    check_true(strstr(said, "test_error.c:") != NULL);
    check_true(strstr(said, "number == 1") != NULL);
}

BECALM_TESTS(cmocka_unit_test(test_error__zero_is_no_error),
             cmocka_unit_test(test_error__every_code_has_its_own_sentence_without_a_full_stop),
             cmocka_unit_test(test_error__the_numbers_are_part_of_the_interface),
             cmocka_unit_test(test_error__a_number_that_is_no_code_is_unknown),
             cmocka_unit_test(test_error__an_assertion_that_holds_is_silent),
             cmocka_unit_test(test_error__an_assertion_that_fails_prints_its_place_and_aborts))
