/* SPDX-License-Identifier: MIT */
#include "story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct words {
    char *text;
    size_t size;
    size_t at;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
say(struct words *words, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(words->text + words->at, words->size - words->at, format, args);
    va_end(args);
    size_t room = words->size - words->at - 1;
    words->at += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room;
}

static uint64_t ms(becalm_ns ns)
{
    return (ns + BECALM_MS / 2) / BECALM_MS;
}

static void say_event(struct words *words, const struct story *story)
{
    const struct becalm_event *event = story->event;
    /* The engine keeps the time of attempts itself, and nothing else makes it abandon one on a timer. */
    bool timed_out = (story->action->flags & BECALM_DO_CANCEL) != 0;
    switch (event->kind) {
    case BECALM_EVENT_BEGIN:
        say(words, "begins");
        break;
    case BECALM_EVENT_HEAD:
    case BECALM_EVENT_DONE:
        say(words, event->kind == BECALM_EVENT_HEAD ? "got head %s" : "got %s",
            becalm_outcome_word(event->outcome.kind));
        if (event->outcome.status != 0) {
            say(words, " %" PRIu32, event->outcome.status);
        }
        say(words, " on %" PRIu32, story->attempt);
        break;
    case BECALM_EVENT_TIMER:
        say(words, timed_out ? "timed out" : "wakes");
        break;
    case BECALM_EVENT_SENT:
        say(words, "has sent all of %" PRIu32, story->attempt);
        break;
    case BECALM_EVENT_HELD:
        say(words, "keeps back %s on %" PRIu32, becalm_outcome_word(event->outcome.kind), story->attempt);
        break;
    case BECALM_EVENT_CANCEL:
        say(words, "is cancelled");
        break;
    case BECALM_EVENT_LEFT:
        say(words, "may have been left");
        break;
    case BECALM_EVENT_SERVE:
        say(words, story->line ? "is called by the line" : "is called by the gate");
        break;
    case BECALM_EVENT_LINE_UP: /* of lines that threads share: there are none here */
        break;
    }
}

/* Writes the actions of this step; returns the separator for the next words. */
static const char *say_deeds(struct words *words, const struct becalm_action *action)
{
    const char *arrow = " -> ";
    if ((action->flags & BECALM_DO_CANCEL) != 0) {
        say(words, "%scancel", arrow);
        for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
            if ((action->cancel & 1u << slot) != 0) {
                say(words, " slot %" PRIu32, slot);
            }
        }
        arrow = ", ";
    }
    if ((action->flags & BECALM_DO_SEND) != 0) {
        say(words, "%ssend %" PRIu32, arrow, action->attempt);
        if (action->host != BECALM_NO_HOST) {
            say(words, " to host %" PRIu32, action->host);
        }
        if (action->why == BECALM_WHY_HEDGE || action->why == BECALM_WHY_NO_HOST) {
            say(words, action->why == BECALM_WHY_HEDGE ? " (hedge)" : " (probe)");
        }
        arrow = ", ";
    }
    if ((action->flags & BECALM_DO_ANSWER) != 0) {
        say(words, "%sanswer", arrow);
        arrow = ", ";
    }
    return arrow;
}

static const char *mark_word(enum becalm_mark_kind mark)
{
    switch (mark) {
    case BECALM_MARK_NONE:
    case BECALM_MARK_OVERLOADED_HOST:
    case BECALM_MARK_OVERLOADED:
        return "overloaded";
    case BECALM_MARK_SPENT:
        return "spent";
    case BECALM_MARK_UNASKED:
        return "spent, unasked";
    }
    return "";
}

static void say_action(struct words *words, const struct becalm_action *action)
{
    const char *arrow = say_deeds(words, action);
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        say(words, "%sfinish (%s)", arrow, becalm_reason_word(action->why));
        say(words, "%s", action->last_answer ? " with the last answer" : "");
        if (action->mark != BECALM_MARK_NONE) {
            say(words, " marked %s", mark_word(action->mark));
        }
    } else if (becalm_action_delays_retry(action)) {
        say(words, "%swait %" PRIu64 "ms (%s)", arrow, ms(action->wait.wait), becalm_reason_word(action->why));
    } else if ((action->flags & BECALM_DO_PARK) != 0) {
        say(words, "%sparked", arrow);
    } else if (action->why == BECALM_WHY_QUEUED || action->why == BECALM_WHY_RATE) {
        say(words, "%s%s", arrow, becalm_reason_word(action->why));
    } else if (action->flags == 0) {
        say(words, "%sgoes on", arrow);
    }
    if (becalm_action_moves_breaker(action)) {
        say(words, ", breaker %s to %s", becalm_breaker_word(action->breaker_from),
            becalm_breaker_word(action->breaker_to));
    }
}

size_t story_tell(const struct story *story, char *text, size_t size)
{
    struct words words = {text, size, 0};
    say_event(&words, story);
    say_action(&words, story->action);
    return words.at;
}
