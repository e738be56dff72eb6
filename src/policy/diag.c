/* SPDX-License-Identifier: MIT */
#include "diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/escape.h"

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
    escape_copy(diag->file, sizeof diag->file, file == NULL ? "" : file);
    char message[2 * sizeof diag->message]; /* so that escape_copy() sees whether the text is too long */
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    escape_copy(diag->message, sizeof diag->message, message);
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
