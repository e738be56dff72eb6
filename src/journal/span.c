/* SPDX-License-Identifier: MIT */
#include "span.h"

#include <string.h>

#define ALIGNED 8u

/* Adds as much of the text as fits. The reader must handle a UTF-8 character that is cut in half. */
static uint16_t add(union span_room *room, struct becalm_text text)
{
    size_t length = text.length < SPAN_TEXT_MAX ? text.length : SPAN_TEXT_MAX;
    if (length > 0) {
        memcpy(room->bytes + room->note.bytes, text.at, length);
    }
    room->note.bytes += (uint32_t)length;
    return (uint16_t)length;
}

void span_begin(union span_room *room)
{
    BECALM_ASSERT(room->note.spans >= 1 && room->note.spans <= 1 + BECALM_RECORD_MAX);
    room->note.bytes =
        (uint32_t)(offsetof(struct span_note, attempt) + (room->note.spans - 1) * sizeof(struct span_attempt));
}

void span_add_text(union span_room *room, enum span_text which, struct becalm_text text)
{
    room->note.text[which] = add(room, text);
}

void span_add_host(union span_room *room, uint32_t attempt, struct becalm_text name)
{
    room->note.attempt[attempt].host = add(room, name);
}

void span_end(union span_room *room)
{
    uint32_t rest = (ALIGNED - room->note.bytes % ALIGNED) % ALIGNED;
    memset(room->bytes + room->note.bytes, 0, rest);
    room->note.bytes += rest;
}

static const char *texts_of(const struct span_note *note)
{
    return (const char *)&note->attempt[note->spans - 1];
}

struct becalm_text span_text(const struct span_note *note, enum span_text which)
{
    const char *at = texts_of(note);
    for (enum span_text i = 0; i < which; i++) {
        at += note->text[i];
    }
    return (struct becalm_text){note->text[which] == 0 ? NULL : at, note->text[which]};
}

struct becalm_text span_host(const struct span_note *note, uint32_t attempt)
{
    const char *at = texts_of(note);
    for (enum span_text i = 0; i < SPAN_TEXTS; i++) {
        at += note->text[i];
    }
    for (uint32_t i = 0; i < attempt; i++) {
        at += note->attempt[i].host;
    }
    return (struct becalm_text){note->attempt[attempt].host == 0 ? NULL : at, note->attempt[attempt].host};
}
