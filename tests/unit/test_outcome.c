/* SPDX-License-Identifier: MIT */
#include <becalm/outcome.h>

#include "check.h"

/* The table of docs/outcome.md, written a second time by hand, so that no cell changes by accident. */
static const struct {
    enum becalm_outcome_kind kind;
    const char *word;
    bool listed;
    enum becalm_retry_rule retry;
    bool earns;
    enum becalm_verdict verdict;
    enum becalm_evidence evidence;
    enum becalm_health health;
    enum becalm_acceptance acceptance;
} table[] = {
    {BECALM_OUTCOME_OK, "ok", false, BECALM_RETRY_NEVER, true, BECALM_VERDICT_OK, BECALM_EVIDENCE_SUCCESS,
     BECALM_HEALTH_OK, BECALM_ACCEPTANCE_YES},
    {BECALM_OUTCOME_PERMANENT, "permanent", false, BECALM_RETRY_NEVER, true, BECALM_VERDICT_OK, BECALM_EVIDENCE_SUCCESS,
     BECALM_HEALTH_OK, BECALM_ACCEPTANCE_YES},
    {BECALM_OUTCOME_FAILED, "failed", false, BECALM_RETRY_ONCE, false, BECALM_VERDICT_FAILED, BECALM_EVIDENCE_ANSWER,
     BECALM_HEALTH_FAILED, BECALM_ACCEPTANCE_YES},
    {BECALM_OUTCOME_BROKEN, "broken", true, BECALM_RETRY_IDEMPOTENT, false, BECALM_VERDICT_FAILED,
     BECALM_EVIDENCE_ANSWER, BECALM_HEALTH_FAILED, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_LATE, "late", true, BECALM_RETRY_IF_TIME, false, BECALM_VERDICT_FAILED, BECALM_EVIDENCE_ANSWER,
     BECALM_HEALTH_FAILED, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_REJECTED, "rejected", true, BECALM_RETRY_IDEMPOTENT, false, BECALM_VERDICT_FAILED,
     BECALM_EVIDENCE_REJECTED, BECALM_HEALTH_REJECTED, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_RATE_LIMITED, "rate_limited", true, BECALM_RETRY_IDEMPOTENT, false, BECALM_VERDICT_NEUTRAL,
     BECALM_EVIDENCE_ANSWER, BECALM_HEALTH_NONE, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_CONFLICT, "conflict", false, BECALM_RETRY_WITH_KEY, false, BECALM_VERDICT_NEUTRAL,
     BECALM_EVIDENCE_ANSWER, BECALM_HEALTH_NONE, BECALM_ACCEPTANCE_YES},
    {BECALM_OUTCOME_REFUSED, "refused", true, BECALM_RETRY_ANY, false, BECALM_VERDICT_FAILED, BECALM_EVIDENCE_NONE,
     BECALM_HEALTH_FAILED, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_TLS, "tls", false, BECALM_RETRY_NEVER, false, BECALM_VERDICT_FAILED, BECALM_EVIDENCE_NONE,
     BECALM_HEALTH_FAILED, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_TIMED_OUT, "timed_out", true, BECALM_RETRY_IDEMPOTENT, false, BECALM_VERDICT_FAILED,
     BECALM_EVIDENCE_TIMEOUT, BECALM_HEALTH_FAILED, BECALM_ACCEPTANCE_NO},
    {BECALM_OUTCOME_CANCELLED, "cancelled", false, BECALM_RETRY_NEVER, false, BECALM_VERDICT_NEUTRAL,
     BECALM_EVIDENCE_NONE, BECALM_HEALTH_NONE, BECALM_ACCEPTANCE_NONE},
};

static void test_outcome__every_cell_of_the_table_is_as_documented(void **state)
{
    (void)state;
    check_eq_u64(sizeof table / sizeof *table, BECALM_OUTCOME_COUNT);
    for (size_t i = 0; i < BECALM_OUTCOME_COUNT; i++) {
        const struct becalm_outcome_traits *traits = becalm_outcome_traits(table[i].kind);
        check_eq_u64(table[i].kind, i);
        check_eq_str(traits->word, table[i].word);
        check_eq_str(becalm_outcome_word(table[i].kind), table[i].word);
        check_true(traits->sentence != NULL && traits->sentence[0] != '\0');
        check_eq_u64(traits->listed, table[i].listed);
        check_eq_u64(traits->retry, table[i].retry);
        check_eq_u64(traits->earns, table[i].earns);
        check_eq_u64(traits->verdict, table[i].verdict);
        check_eq_u64(traits->evidence, table[i].evidence);
        check_eq_u64(traits->health, table[i].health);
        check_eq_u64(traits->acceptance, table[i].acceptance);
    }
}

static void test_outcome__zeroed_memory_is_a_plain_success(void **state)
{
    (void)state;
    struct becalm_outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    check_eq_u64(outcome.kind, BECALM_OUTCOME_OK);
    check_eq_u64(outcome.mark, BECALM_MARK_NONE);
    check_eq_u64(outcome.listed, BECALM_LISTED_BY_KIND);
}

static void test_outcome__a_number_that_is_none_has_a_word_all_the_same(void **state)
{
    (void)state;
    check_eq_str(becalm_outcome_word((enum becalm_outcome_kind)BECALM_OUTCOME_COUNT), "unknown");
}

BECALM_TESTS(cmocka_unit_test(test_outcome__every_cell_of_the_table_is_as_documented),
             cmocka_unit_test(test_outcome__zeroed_memory_is_a_plain_success),
             cmocka_unit_test(test_outcome__a_number_that_is_none_has_a_word_all_the_same))
