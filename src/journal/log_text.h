/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOURNAL_LOG_TEXT_H
#define BECALM_JOURNAL_LOG_TEXT_H

/* How a line of the log looks. Each of these ends with a newline and has no other, whatever the values are. */

#include "log.h"

#include "meter/buffer.h"

/* They return the length, at most LOG_LINE_MAX. */
size_t log_text_line(char text[LOG_LINE_MAX], enum becalm_log_format, enum becalm_log_level, uint64_t wall,
                     const char *message, const struct log_pair *pairs, size_t count);
size_t log_text_access(char text[LOG_LINE_MAX], enum becalm_log_access, const struct log_access *);

/* 2026-01-02T03:04:05.678Z */
void log_text_time(struct buffer *, uint64_t wall);

#endif
