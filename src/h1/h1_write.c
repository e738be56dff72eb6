/* SPDX-License-Identifier: MIT */
#include "h1.h"

#include "message/packed.h"
#include "message/phrase.h"
#include "unfilled.h"

#include <string.h>

/* ---- lines ---- */

/* Names and most values have less than 32 bytes: two moves that may overlap cost less than a call of memcpy(). */
static inline __attribute__((always_inline)) char *put_bytes(char *to, struct becalm_text from)
{
    size_t length = from.length;
    if (length > 32) {
        memcpy(to, from.at, length);
    } else if (length >= 16) {
        memcpy(to, from.at, 16);
        memcpy(to + length - 16, from.at + length - 16, 16);
    } else if (length >= 8) {
        memcpy(to, from.at, 8);
        memcpy(to + length - 8, from.at + length - 8, 8);
    } else if (length >= 4) {
        memcpy(to, from.at, 4);
        memcpy(to + length - 4, from.at + length - 4, 4);
    } else if (length > 0) {
        to[0] = from.at[0];
        to[length / 2] = from.at[length / 2];
        to[length - 1] = from.at[length - 1];
    }
    return to + length;
}

/* A whole line or nothing, so that a full buffer never holds half a field. */
static inline __attribute__((always_inline)) void put_line(struct text_sink *out, struct becalm_text name,
                                                           struct becalm_text value)
{
    size_t length = name.length + value.length + sizeof ": \r\n" - 1;
    if (length > out->size - out->length) {
        out->full = true;
        return;
    }
    char *at = put_bytes(out->at + out->length, name);
    *at++ = ':';
    *at++ = ' ';
    at = put_bytes(at, value);
    *at++ = '\r';
    *at = '\n';
    out->length += length;
}

void h1_put_line(struct text_sink *out, struct becalm_text name, struct becalm_text value)
{
    put_line(out, name, value);
}

void h1_hide_line(struct text_sink *out, size_t value_length)
{
    if (out->full || out->size == out->length) {
        out->full = true;
        return;
    }
    char *value = out->at + out->length - 2 - value_length;
    memmove(value + 1, value, value_length + 2);
    *value = ' ';
    out->length++;
}

void h1_put_number_line(struct text_sink *out, struct becalm_text name, uint64_t number)
{
    UNFILLED char digits[TEXT_DIGITS_MAX];
    h1_put_line(out, name, text_digits(digits, number));
}

/* The end of a field's line behind its CR LF, as it came; 0: it came with other blanks than the one that is written. */
static inline uint32_t plain_end(const struct head *head, const struct field *field)
{
    const char *bytes = head->bytes;
    uint32_t colon = field->name + field->name_length;
    uint32_t end = field->value + field->value_length + 2;
    bool plain = end <= head->length && field->value == colon + 2 && bytes[colon] == ':' && bytes[colon + 1] == ' ' &&
                 bytes[end - 2] == '\r' && bytes[end - 1] == '\n';
    return plain ? end : 0;
}

/* Lines that follow each other are copied at once. `line`: where the line ends that is passed on before them; 0: none
 * is. */
static __attribute__((noinline)) void put_one_by_one(struct text_sink *out, const struct head *head, uint64_t skip,
                                                     uint32_t line)
{
    uint32_t from = 0;
    uint32_t to = line;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (field->hop || (skip >> field->id & 1) != 0) {
            continue;
        }
        uint32_t end = plain_end(head, field);
        if (end != 0 && field->name == to) {
            to = end;
            continue;
        }
        text_put(out, (struct becalm_text){head->bytes + from, to - from});
        from = field->name;
        to = end;
        if (end == 0) {
            put_line(out, field_name(head, field), field_value(head, field));
            from = 0;
        }
    }
    text_put(out, (struct becalm_text){head->bytes + from, to - from});
}

/* Most heads are passed on as they came, but for Host, which is written anew and nearly always the first field: then
 * they are one piece. */
static void put_passed(struct text_sink *out, const struct head *head, uint64_t skip, uint32_t line)
{
    uint64_t without = head->seen & skip;
    bool host = line == 0 && without == FIELD_BIT(FIELD_HOST) && head->field[0].id == FIELD_HOST; /* there is one */
    if (!head->as_it_came || (without != 0 && !host) || head->field_count < 2) {
        put_one_by_one(out, head, skip, line);
        return;
    }
    const struct field *last = &head->field[head->field_count - 1];
    uint32_t from = line > 0 ? 0 : head->field[host].name;
    text_put(out, (struct becalm_text){head->bytes + from, last->value + last->value_length + 2 - from});
}

void h1_put_fields(struct text_sink *out, const struct head *head, uint64_t skip)
{
    put_passed(out, head, skip, 0);
}

/* ---- the status line ---- */

enum { STATUS_MIN = 100, STATUS_MAX = 999 };

static void put_status_begin(struct text_sink *out, uint32_t status)
{
    BECALM_ASSERT(status >= STATUS_MIN && status <= STATUS_MAX);
    char line[] = "HTTP/1.1 000 ";
    line[9] = (char)('0' + status / 100);
    line[10] = (char)('0' + status / 10 % 10);
    line[11] = (char)('0' + status % 10);
    text_put(out, (struct becalm_text){line, sizeof line - 1});
}

void h1_put_status_line(struct text_sink *out, uint32_t status, struct becalm_text phrase)
{
    put_status_begin(out, status);
    text_put(out, phrase);
    text_put_chars(out, "\r\n");
}

void h1_put_status(struct text_sink *out, uint32_t status)
{
    const char *phrase = status_phrase(status);
    h1_put_status_line(out, status, (struct becalm_text){phrase, strlen(phrase)});
}

/* ---- whole heads ---- */

static void put_added(struct text_sink *out, const struct draft *draft)
{
    for (uint32_t i = 0; i < draft->count; i++) {
        put_line(out, draft->added[i].name, draft->added[i].value);
    }
    out->full |= draft->values.full;
}

static __attribute__((noinline)) void put_packed(struct text_sink *out, struct becalm_text packed)
{
    struct packed_field field;
    while (packed_next(&packed, &field)) {
        if (field.name.length > 0) { /* else it is the phrase */
            put_line(out, field.name, field.value);
        }
    }
}

/* The request line, and Host. */
static void put_asked(struct text_sink *out, const struct draft *draft)
{
    static const char between[] = " HTTP/1.1\r\nhost: ";
    size_t length = draft->method.length + draft->path.length + draft->authority.length + sizeof between + 2;
    if (length > out->size - out->length) {
        out->full = true;
        return;
    }
    char *at = put_bytes(out->at + out->length, draft->method);
    *at++ = ' ';
    at = put_bytes(at, draft->path);
    memcpy(at, between, sizeof between - 1);
    at = put_bytes(at + sizeof between - 1, draft->authority);
    *at++ = '\r';
    *at = '\n';
    out->length += length;
}

void h1_put_request(struct text_sink *out, const struct draft *draft)
{
    put_asked(out, draft);
    h1_put_fields(out, draft->passed, draft->skip);
    text_put(out, draft->lines[0]);
    text_put(out, draft->lines[1]);
    text_put(out, draft->lines[2]);
    put_added(out, draft);
    if (draft->framing == BODY_OPEN) {
        text_put_chars(out, "transfer-encoding: chunked\r\n");
    }
    if (draft->upgrade.at != NULL) {
        text_put_chars(out,
                       draft->te_trailers ? "te: trailers\r\nconnection: te, upgrade\r\n" : "connection: upgrade\r\n");
        h1_put_field(out, "upgrade", draft->upgrade);
    } else if (draft->te_trailers) {
        text_put_chars(out, "te: trailers\r\nconnection: te\r\n");
    }
    text_put_chars(out, "\r\n");
}

/* The phrase of the draft, or of the packed answer, or the registered one. */
static void put_draft_status(struct text_sink *out, const struct draft *draft)
{
    struct becalm_text rest = draft->packed;
    struct packed_field phrase;
    if (draft->phrase.at != NULL) {
        h1_put_status_line(out, draft->status, draft->phrase);
    } else if (packed_next(&rest, &phrase)) {
        h1_put_status_line(out, draft->status, phrase.value);
    } else {
        h1_put_status(out, draft->status);
    }
}

/* The end of the status line that came, if it is the one that would be written here; 0: it is not. */
static uint32_t passed_status_end(const struct draft *draft)
{
    static const char begin[] = "HTTP/1.1 ";
    const struct head *head = draft->passed;
    bool same = draft->phrase.at == head->bytes + sizeof "HTTP/1.1 200 " - 1 && draft->status == head->status &&
                memcmp(head->bytes, begin, sizeof begin - 1) == 0;
    return same ? (uint32_t)(draft->phrase.at - head->bytes) + (uint32_t)draft->phrase.length + 2 : 0;
}

/* The copied lines begin with the status line, if that is passed on, too. */
static void put_passed_answer(struct text_sink *out, const struct draft *draft, enum http_version to)
{
    uint32_t status_end = passed_status_end(draft);
    if (status_end == 0) {
        put_draft_status(out, draft);
    }
    put_passed(out, draft->passed, to == HTTP_1_0 ? draft->skip | FIELD_BIT(FIELD_TRAILER) : draft->skip, status_end);
}

void h1_put_answer(struct text_sink *out, const struct draft *draft, enum http_version to)
{
    if (draft->passed != NULL) {
        put_passed_answer(out, draft, to);
    } else {
        put_draft_status(out, draft);
        put_packed(out, draft->packed);
    }
    put_added(out, draft);
    if (draft->framing == BODY_OPEN && to != HTTP_1_0) {
        text_put_chars(out, "transfer-encoding: chunked\r\n");
    }
    if (draft->upgrade.at != NULL) {
        text_put_chars(out, "connection: upgrade\r\n");
        h1_put_line(out, (struct becalm_text){"upgrade", 7}, draft->upgrade);
    }
    text_put_chars(out, draft->close     ? "connection: close\r\n\r\n"
                        : to == HTTP_1_0 ? "connection: keep-alive\r\n\r\n"
                                         : "\r\n");
}

/* ---- chunks ---- */

size_t h1_chunk_head(char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 1;
    while (count < 2 * sizeof length && length >> (4 * count) != 0) {
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        text[i] = digits[length >> (4 * (count - 1 - i)) & 15];
    }
    text[count] = '\r';
    text[count + 1] = '\n';
    return count + 2;
}
