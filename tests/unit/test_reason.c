/* SPDX-License-Identifier: MIT */
#include <becalm/reason.h>

#include "check.h"

static bool is_label(const char *word)
{
    for (const char *c = word; *c != '\0'; c++) {
        if ((*c < 'a' || *c > 'z') && *c != '_') {
            return false;
        }
    }
    return word[0] != '\0';
}

static void test_reason__every_reason_has_a_word_of_its_own_that_fits_a_metric_label(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BECALM_REASON_COUNT; i++) {
        const char *word = becalm_reason_word((enum becalm_reason)i);
        check_true(is_label(word));
        for (unsigned j = 0; j < i; j++) {
            check_true(strcmp(word, becalm_reason_word((enum becalm_reason)j)) != 0);
        }
    }
}

static void test_reason__every_reason_has_a_sentence_without_a_full_stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BECALM_REASON_COUNT; i++) {
        const char *sentence = becalm_reason_sentence((enum becalm_reason)i);
        check_true(strlen(sentence) > 10);
        check_true(sentence[strlen(sentence) - 1] != '.');
    }
}

static void test_reason__the_promised_words_are_there(void **state)
{
    (void)state;
    check_eq_str(becalm_reason_word(BECALM_WHY_OK), "ok");
    check_eq_str(becalm_reason_word(BECALM_WHY_ATTEMPTS_SPENT), "attempts_spent");
    check_eq_str(becalm_reason_word(BECALM_WHY_BUDGET_EMPTY), "budget_empty");
    check_eq_str(becalm_reason_word(BECALM_WHY_BREAKER_OPEN), "breaker_open");
    check_eq_str(becalm_reason_word(BECALM_WHY_DEADLINE), "deadline");
    check_eq_str(becalm_reason_word(BECALM_WHY_NOT_IDEMPOTENT), "not_idempotent");
    check_eq_str(becalm_reason_word(BECALM_WHY_NOT_REPLAYABLE), "not_replayable");
    check_eq_str(becalm_reason_word(BECALM_WHY_PERMANENT), "permanent");
    check_eq_str(becalm_reason_word(BECALM_WHY_THROTTLED), "throttled");
    check_eq_str(becalm_reason_word(BECALM_WHY_SHED), "shed");
    check_eq_str(becalm_reason_word(BECALM_WHY_LIMIT), "limit");
    check_eq_str(becalm_reason_word(BECALM_WHY_STOPPED), "stopped");
    check_eq_str(becalm_reason_word(BECALM_WHY_CANCELLED), "cancelled");
    check_eq_str(becalm_reason_word((enum becalm_reason)BECALM_REASON_COUNT), "unknown");
    check_eq_str(becalm_reason_sentence((enum becalm_reason)BECALM_REASON_COUNT), "no such reason");
}

BECALM_TESTS(cmocka_unit_test(test_reason__every_reason_has_a_word_of_its_own_that_fits_a_metric_label),
             cmocka_unit_test(test_reason__every_reason_has_a_sentence_without_a_full_stop),
             cmocka_unit_test(test_reason__the_promised_words_are_there))
