/* SPDX-License-Identifier: MIT */
#include <becalm/reason.h>

const char *becalm_reason_word(enum becalm_reason reason)
{
    static const char *const words[BECALM_REASON_COUNT] = {
#define REASON_WORD(name, word, sentence) [name] = word,
        BECALM_REASONS(REASON_WORD)
#undef REASON_WORD
    };
    return (unsigned)reason < BECALM_REASON_COUNT ? words[reason] : "unknown";
}

const char *becalm_reason_sentence(enum becalm_reason reason)
{
    static const char *const sentences[BECALM_REASON_COUNT] = {
#define REASON_SENTENCE(name, word, sentence) [name] = sentence,
        BECALM_REASONS(REASON_SENTENCE)
#undef REASON_SENTENCE
    };
    return (unsigned)reason < BECALM_REASON_COUNT ? sentences[reason] : "no such reason";
}
