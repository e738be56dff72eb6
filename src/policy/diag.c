/* SPDX-License-Identifier: MIT */
#include "diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What a file holds must not drive a terminal: control characters, also those of the C1 block (0xC2 0x80 to 0xC2 0x9F),
 * become question marks. A file name from argv need not even be UTF-8; other bytes are left as they are. */
static void text_tame(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != 0; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            *c = '?';
        } else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) {
            c[0] = '?';
            c[1] = '?';
        }
    }
}

/* Ends a text that found no room with dots, and not in the middle of a character. */
static void text_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
        end--;
    }
    memcpy(text + end, "...", 4);
}

void becalm_diag_add(struct becalm_diags *diags, enum becalm_severity severity, const char *file, uint32_t line,
                     uint32_t column, const char *code, const char *format, ...)
{
    switch (severity) {
    case BECALM_ERROR:
        diags->errors++;
        break;
    case BECALM_WARNING:
        diags->warnings++;
        break;
    case BECALM_NOTE:
        diags->notes++;
        break;
    }
    if (diags->count >= BECALM_DIAGS_MAX) {
        return;
    }
    struct becalm_diag *diag = &diags->diag[diags->count++];
    diag->severity = severity;
    diag->line = line;
    diag->column = column;
    diag->code = code;
    if (snprintf(diag->file, sizeof diag->file, "%s", file == NULL ? "" : file) >= (int)sizeof diag->file) {
        text_cut(diag->file, sizeof diag->file);
    }
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(diag->message, sizeof diag->message, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof diag->message) {
        text_cut(diag->message, sizeof diag->message);
    }
    text_tame(diag->file);
    text_tame(diag->message);
}

const char *diag_severity_word(enum becalm_severity severity)
{
    switch (severity) {
    case BECALM_ERROR:
        return "error";
    case BECALM_WARNING:
        return "warning";
    case BECALM_NOTE:
        return "note";
    }
    BECALM_UNREACHABLE();
}

size_t becalm_diag_write(const struct becalm_diag *diag, char *text, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const char *word = diag_severity_word(diag->severity);
    const char *code = diag->code == NULL ? "" : diag->code;
    const char *open = diag->code == NULL ? "" : " [";
    const char *close = diag->code == NULL ? "" : "]";
    int length;
    if (diag->line == 0) { /* the file as a whole, or no file: it could not be read, or --set was wrong */
        length = snprintf(text, size, "%s: %s: %s%s%s%s", diag->file, word, diag->message, open, code, close);
    } else {
        length = snprintf(text, size, "%s:%u:%u: %s: %s%s%s%s", diag->file, (unsigned)diag->line,
                          (unsigned)diag->column, word, diag->message, open, code, close);
    }
    if (length < 0) {
        text[0] = 0;
        return 0;
    }
    return (size_t)length < size ? (size_t)length : size - 1;
}

void diags_sort(struct becalm_diags *diags)
{
    for (uint32_t i = 1; i < diags->count; i++) {
        struct becalm_diag moved = diags->diag[i];
        uint32_t at = i;
        for (; at > 0; at--) {
            const struct becalm_diag *before = &diags->diag[at - 1];
            if (strcmp(before->file, moved.file) != 0 || before->line < moved.line ||
                (before->line == moved.line && before->column <= moved.column)) {
                break;
            }
            diags->diag[at] = *before;
        }
        diags->diag[at] = moved;
    }
}

void diags_make_room(struct becalm_diags *diags, enum becalm_severity severity)
{
    if (diags->count < BECALM_DIAGS_MAX) {
        return;
    }
    for (enum becalm_severity least = BECALM_NOTE; least > severity; least--) {
        for (uint32_t i = diags->count; i-- > 0;) {
            if (diags->diag[i].severity == least) {
                diags->count--;
                memmove(&diags->diag[i], &diags->diag[i + 1], (diags->count - i) * sizeof diags->diag[0]);
                return;
            }
        }
    }
}
