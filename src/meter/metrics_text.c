/* SPDX-License-Identifier: MIT */
#include "metrics_text.h"

#define TOTAL "_total"

static void put_header(struct metrics_text *m, const char *keyword, const char *type, const char *text)
{
    size_t length = strlen(m->name);
    if (m->open_metrics && strcmp(type, "counter") == 0) {
        BECALM_ASSERT(length > strlen(TOTAL) && strcmp(m->name + length - strlen(TOTAL), TOTAL) == 0);
        length -= strlen(TOTAL);
    }
    buffer_chars(m->out, keyword);
    buffer_bytes(m->out, m->name, length);
    buffer_chars(m->out, " ");
    buffer_chars(m->out, text);
    buffer_chars(m->out, "\n");
}

void metrics_family(struct metrics_text *m, const char *name, const char *type, const char *help)
{
    m->name = name;
    put_header(m, "# HELP ", type, help);
    put_header(m, "# TYPE ", type, type);
}

void metrics_sample(struct metrics_text *m, const char *suffix)
{
    buffer_chars(m->out, m->name);
    buffer_chars(m->out, suffix);
    m->labelled = false;
}

void metrics_label(struct metrics_text *m, const char *name, const char *value)
{
    buffer_chars(m->out, m->labelled ? "," : "{");
    m->labelled = true;
    buffer_chars(m->out, name);
    buffer_chars(m->out, "=\"");
    for (;;) {
        size_t plain = strcspn(value, "\"\\\n");
        buffer_bytes(m->out, value, plain);
        value += plain;
        if (*value == '\0') {
            break;
        }
        buffer_chars(m->out, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\");
        value++;
    }
    buffer_chars(m->out, "\"");
}

static void put_gap(struct metrics_text *m)
{
    buffer_chars(m->out, m->labelled ? "} " : " ");
}

void metrics_number(struct metrics_text *m, uint64_t value)
{
    put_gap(m);
    buffer_number(m->out, value);
    buffer_chars(m->out, "\n");
}

void metrics_decimal(struct metrics_text *m, uint64_t value, unsigned decimals)
{
    put_gap(m);
    buffer_decimal(m->out, value, decimals);
    buffer_chars(m->out, "\n");
}

void metrics_exemplar(struct metrics_text *m, uint64_t count, const char *trace_id, uint64_t value_us, uint64_t wall_ms)
{
    put_gap(m);
    buffer_number(m->out, count);
    buffer_chars(m->out, " # {trace_id=\"");
    buffer_chars(m->out, trace_id);
    buffer_chars(m->out, "\"} ");
    buffer_decimal(m->out, value_us, 6);
    buffer_chars(m->out, " ");
    buffer_decimal(m->out, wall_ms, 3);
    buffer_chars(m->out, "\n");
}

void metrics_infinity(struct metrics_text *m)
{
    put_gap(m);
    buffer_chars(m->out, "+Inf\n");
}

void metrics_single(struct metrics_text *w, const char *name, const char *type, const char *help, uint64_t value)
{
    metrics_family(w, name, type, help);
    metrics_sample(w, "");
    metrics_number(w, value);
}

void metrics_end(struct metrics_text *m)
{
    buffer_chars(m->out, m->open_metrics ? "# EOF\n" : "");
}
