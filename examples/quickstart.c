/* SPDX-License-Identifier: MIT */
/* A flaky operation made calm: README.md's quick start, with a log line per retry.
 *
 *   cc quickstart.c $(pkg-config --cflags --libs libbecalm) -o quickstart */
#include <becalm/becalm.h>

#include <stdio.h>

/* Stands for a function that calls a server. The server refuses it twice before it succeeds. */
static void fetch(const struct becalm_try *now, struct becalm_outcome *outcome, void *data)
{
    int *answer = data;
    if (now->attempt < 2) {
        outcome->kind = BECALM_OUTCOME_REFUSED; /* the request was never sent, so it may be sent again */
        return;
    }
    *answer = 42;
}

static void log_retry(const struct becalm_retry *retry, void *data)
{
    (void)data;
    printf("retry %u of %u in %.0f ms: %s\n", retry->retry, retry->of, (double)retry->wait.wait / 1e6,
           becalm_outcome_word(retry->outcome.kind));
}

int main(void)
{
    int answer = 0;
    struct becalm_guard_options options = {.on_retry = log_retry};
    struct becalm_guard *guard = becalm_guard_new(&options, NULL); /* one per service that you call */
    enum becalm_reason why = guard == NULL ? BECALM_WHY_NONE : becalm_run(guard, fetch, &answer);
    printf("%s: %s; the answer is %d\n", becalm_reason_word(why), becalm_reason_sentence(why), answer);
    becalm_guard_free(guard);
    return why == BECALM_WHY_OK ? 0 : 1;
}
