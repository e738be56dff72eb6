/* SPDX-License-Identifier: MIT */
#include <becalm/outcome.h>

/* clang-format off */
const struct becalm_outcome_traits becalm_outcome_table[BECALM_OUTCOME_COUNT] = {
#define yes true
#define no false
#define OUTCOME_ROW(name, word_, listed_, retry_, earns_, verdict_, evidence_, health_, acceptance_, sentence_) \
    [name] = {                                          \
        .word = word_,                                  \
        .sentence = sentence_,                          \
        .listed = listed_,                              \
        .retry = BECALM_RETRY_##retry_,                 \
        .earns = earns_,                                \
        .verdict = BECALM_VERDICT_##verdict_,           \
        .evidence = BECALM_EVIDENCE_##evidence_,        \
        .health = BECALM_HEALTH_##health_,              \
        .acceptance = BECALM_ACCEPTANCE_##acceptance_,  \
    },
    BECALM_OUTCOMES(OUTCOME_ROW)
#undef OUTCOME_ROW
#undef yes
#undef no
};
/* clang-format on */

const char *becalm_outcome_word(enum becalm_outcome_kind kind)
{
    return (unsigned)kind < BECALM_OUTCOME_COUNT ? becalm_outcome_table[kind].word : "unknown";
}
