/* SPDX-License-Identifier: MIT */
#include "story.h"

#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- words ---- */

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

size_t story_event(const struct becalm_event *event, uint32_t attempt, char *text, size_t size)
{
    struct words words = {text, size, 0};
    switch (event->kind) {
    case BECALM_EVENT_BEGIN:
        say(&words, "begins");
        break;
    case BECALM_EVENT_HEAD:
    case BECALM_EVENT_DONE:
        say(&words, event->kind == BECALM_EVENT_HEAD ? "got head %s" : "got %s",
            becalm_outcome_word(event->outcome.kind));
        if (event->outcome.status != 0) {
            say(&words, " %" PRIu32, event->outcome.status);
        }
        say(&words, " on %" PRIu32, attempt);
        break;
    case BECALM_EVENT_TIMER:
        say(&words, "wakes");
        break;
    case BECALM_EVENT_CANCEL:
        say(&words, "is cancelled");
        break;
    case BECALM_EVENT_SERVE:
        say(&words, "is called by the gate");
        break;
    }
    return words.at;
}

/* What is done now; returns what stands before whatever comes next. */
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
        if (action->why == BECALM_WHY_HEDGE) {
            say(words, " (hedge)");
        }
        arrow = ", ";
    }
    if ((action->flags & BECALM_DO_ANSWER) != 0) {
        say(words, "%sanswer", arrow);
        arrow = ", ";
    }
    return arrow;
}

size_t story_action(const struct becalm_action *action, char *text, size_t size)
{
    struct words words = {text, size, 0};
    const char *arrow = say_deeds(&words, action);
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        say(&words, "%sfinish (%s)", arrow, becalm_reason_word(action->why));
        say(&words, "%s", action->last_answer ? " with the last answer" : "");
        if (action->mark != BECALM_MARK_NONE) {
            say(&words, " marked %s", action->mark == BECALM_MARK_SPENT ? "spent" : "overloaded");
        }
    } else if (action->why == BECALM_WHY_BACKOFF || action->why == BECALM_WHY_HINT) {
        say(&words, "%swait %" PRIu64 "ms (%s)", arrow, ms(action->wait.wait), becalm_reason_word(action->why));
    } else if (action->why == BECALM_WHY_QUEUED || action->why == BECALM_WHY_RATE) {
        say(&words, "%s%s", arrow, becalm_reason_word(action->why));
    } else if (action->flags == 0) {
        say(&words, "%sgoes on", arrow);
    }
    if (action->breaker_from != action->breaker_to) {
        say(&words, ", breaker %s to %s", becalm_breaker_word(action->breaker_from),
            becalm_breaker_word(action->breaker_to));
    }
    return words.at;
}

/* ---- timelines ---- */

/* A call of a service that is part of a client's call; they are numbered in the order in which they begin. */
struct part {
    uint64_t op;
    uint32_t number;
};

struct chapter {
    uint32_t begun; /* parts so far, the client's own call the first */
    struct part *part;
    size_t part_count, part_size;
};

struct story {
    FILE *out;
    becalm_ns from;
    uint32_t calls;
    uint64_t newest; /* the newest call of a client so far; calls are counted from 1 */
    uint64_t first;  /* that is told of; 0: none yet */
    bool no_memory;
    struct chapter chapter[STORY_CALLS_MAX];
};

struct story *story_new(FILE *out, becalm_ns from, uint32_t calls)
{
    struct story *story = calls > STORY_CALLS_MAX ? NULL : calloc(1, sizeof *story);
    if (story != NULL) {
        story->out = out;
        story->from = from;
        story->calls = calls;
    }
    return story;
}

void story_free(struct story *story)
{
    for (uint32_t i = 0; story != NULL && i < STORY_CALLS_MAX; i++) {
        free(story->chapter[i].part);
    }
    free(story);
}

bool story_whole(const struct story *story)
{
    return !story->no_memory;
}

/* The number of a part, from 1; 0: no memory. Parts that have ended are looked for no more, so the newest go first. */
static uint32_t part_number(struct chapter *chapter, uint64_t op)
{
    for (size_t i = chapter->part_count; i > 0; i--) {
        if (chapter->part[i - 1].op == op) {
            return chapter->part[i - 1].number;
        }
    }
    if (chapter->part_count == chapter->part_size) {
        size_t larger = chapter->part_size == 0 ? 16 : chapter->part_size * 2;
        struct part *moved = realloc(chapter->part, larger * sizeof *moved);
        if (moved == NULL) {
            return 0;
        }
        chapter->part = moved;
        chapter->part_size = larger;
    }
    chapter->part[chapter->part_count++] = (struct part){op, ++chapter->begun};
    return chapter->begun;
}

static void part_forget(struct chapter *chapter, uint64_t op)
{
    for (size_t i = 0; i < chapter->part_count; i++) {
        if (chapter->part[i].op == op) {
            chapter->part[i] = chapter->part[--chapter->part_count];
            return;
        }
    }
}

static void put_line(FILE *out, const struct world_trace *trace, uint64_t call, uint32_t part)
{
    char event[96];
    char action[256];
    becalm_ns now = trace->event->at.now;
    story_event(trace->event, trace->attempt, event, sizeof event);
    story_action(trace->action, action, sizeof action);
    fprintf(out, "[%2" PRIu64 ".%04" PRIu64 "s] call %" PRIu64, now / BECALM_S, now % BECALM_S / (BECALM_MS / 10),
            call);
    if (part > 1) {
        fprintf(out, ".%" PRIu32, part);
    }
    putc(' ', out);
    report_plain(out, trace->is_gate ? "gate" : trace->from);
    fputs(" > ", out);
    report_plain(out, trace->to);
    if (trace->endpoint != NULL) {
        putc('/', out);
        report_plain(out, trace->endpoint);
    }
    fprintf(out, " %s%s\n", event, action);
}

void story_step(void *self, const struct world_trace *trace)
{
    struct story *story = self;
    if (trace->call > story->newest) { /* the first that is heard of a call is its beginning */
        story->newest = trace->call;
        if (story->first == 0 && trace->event->at.now >= story->from) {
            story->first = trace->call;
        }
    }
    if (story->first == 0 || trace->call < story->first || trace->call - story->first >= story->calls) {
        return;
    }
    struct chapter *chapter = &story->chapter[trace->call - story->first];
    uint32_t part = part_number(chapter, trace->op);
    story->no_memory |= part == 0;
    put_line(story->out, trace, trace->call - story->first + 1, part);
    if ((trace->action->flags & BECALM_DO_FINISH) != 0) {
        part_forget(chapter, trace->op);
    }
}
