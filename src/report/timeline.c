/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include "report.h"
#include "story.h"

#include <inttypes.h>
#include <stdlib.h>

/* A call of a service that is part of a client's call. These calls are numbered in the order in which they begin. */
struct part {
    uint64_t call;
    uint32_t number;
};

struct chapter {
    uint32_t begun; /* parts so far, the client's own call the first */
    struct part *part;
    size_t part_count, part_size;
};

struct timeline {
    FILE *out;
    becalm_ns from;
    uint32_t calls;
    uint64_t newest; /* the newest call of a client so far; calls are counted from 1 */
    uint64_t first;  /* that is told of; 0: none yet */
    bool no_memory;
    struct chapter chapter[TIMELINE_CALLS_MAX];
};

struct timeline *timeline_new(FILE *out, becalm_ns from, uint32_t calls)
{
    struct timeline *timeline = calls > TIMELINE_CALLS_MAX ? NULL : calloc(1, sizeof *timeline);
    if (timeline != NULL) {
        timeline->out = out;
        timeline->from = from;
        timeline->calls = calls;
    }
    return timeline;
}

void timeline_free(struct timeline *timeline)
{
    for (uint32_t i = 0; timeline != NULL && i < TIMELINE_CALLS_MAX; i++) {
        free(timeline->chapter[i].part);
    }
    free(timeline);
}

bool timeline_whole(const struct timeline *timeline)
{
    return !timeline->no_memory;
}

bool timeline_empty(const struct timeline *timeline)
{
    return timeline->first == 0;
}

/* The number of a part, from 1; 0: no memory. Parts that have ended are looked for no more, so the newest go first. */
static uint32_t part_number(struct chapter *chapter, uint64_t call)
{
    for (size_t i = chapter->part_count; i > 0; i--) {
        if (chapter->part[i - 1].call == call) {
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
    chapter->part[chapter->part_count++] = (struct part){call, ++chapter->begun};
    return chapter->begun;
}

static void part_forget(struct chapter *chapter, uint64_t call)
{
    for (size_t i = 0; i < chapter->part_count; i++) {
        if (chapter->part[i].call == call) {
            chapter->part[i] = chapter->part[--chapter->part_count];
            return;
        }
    }
}

static void put_line(FILE *out, const struct world_trace *trace, uint64_t call, uint32_t part)
{
    char text[352];
    becalm_ns now = trace->event->at.now;
    story_tell(&(struct story){trace->event, trace->attempt, trace->action, false}, text, sizeof text);
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
    fprintf(out, " %s\n", text);
}

void timeline_step(void *self, const struct world_trace *trace)
{
    struct timeline *timeline = self;
    if (trace->call > timeline->newest) { /* the first that is heard of a call is its beginning */
        timeline->newest = trace->call;
        if (timeline->first == 0 && trace->event->at.now >= timeline->from) {
            timeline->first = trace->call;
        }
    }
    if (timeline->first == 0 || trace->call < timeline->first || trace->call - timeline->first >= timeline->calls) {
        return;
    }
    struct chapter *chapter = &timeline->chapter[trace->call - timeline->first];
    uint32_t part = part_number(chapter, trace->part);
    timeline->no_memory |= part == 0;
    put_line(timeline->out, trace, trace->call - timeline->first + 1, part);
    if ((trace->action->flags & BECALM_DO_FINISH) != 0) {
        part_forget(chapter, trace->part);
    }
}
