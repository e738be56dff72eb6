/* SPDX-License-Identifier: MIT */
/* The messages of `becalm exec`: a line per retry, one at a bad end, and a report in JSON. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_exec.h"

#include "cli/json.h"
#include "policy/value.h"

#include <errno.h>
#include <string.h>

#define TEXT_BYTES 128

/* "exited with 7", "was killed by signal 9 (Killed)". */
static void how_it_ended(char *text, size_t size, const struct exec_end *end)
{
    if (end->start_error != 0) {
        (void)snprintf(text, size, "could not be started: %s", strerror(end->start_error));
    } else if (end->timed_out) {
        (void)snprintf(text, size, "took too long and was stopped");
    } else if (end->killed_by != 0) {
        (void)snprintf(text, size, "was killed by signal %d (%s)", end->killed_by, strsignal(end->killed_by));
    } else {
        (void)snprintf(text, size, "exited with %d%s", end->code,
                       end->by_output ? ", but its output matches --fail-if" : "");
    }
}

/* "in 1.97s": about three digits are enough for a reader. */
static void when(char *text, size_t size, becalm_ns wait)
{
    becalm_ns step = wait < BECALM_S ? BECALM_MS : wait < 10 * BECALM_S ? 10 * BECALM_MS : 100 * BECALM_MS;
    int length = snprintf(text, size, wait < BECALM_MS ? "at once" : "in ");
    if (wait >= BECALM_MS) {
        (void)value_write_duration(wait / step * step, text + length, size - (size_t)length);
    }
}

void exec_say_retry(const struct exec_retry *retry, void *data)
{
    const struct exec_voice *voice = data;
    char ended[TEXT_BYTES];
    char wait[TEXT_BYTES];
    how_it_ended(ended, sizeof ended, &retry->last);
    when(wait, sizeof wait, retry->wait);
    if (retry->of == EXEC_UNLIMITED) {
        (void)cli_fail(&cmd_exec, "%s %s; retry %u %s", voice->name, ended, retry->retry, wait);
    } else {
        (void)cli_fail(&cmd_exec, "%s %s; retry %u of %u %s", voice->name, ended, retry->retry, retry->of, wait);
    }
}

void exec_say_lost(const struct shared *shared, void *data)
{
    const struct exec_voice *voice = data;
    (void)cli_fail(&cmd_exec, "%s: %s: %s; there are no more retries", voice->name, shared->path, shared->lost);
}

/* The engine's sentences are about requests; sentences that would puzzle the user of a command are replaced. */
static const char *sentence_of(enum becalm_reason reason)
{
    static const struct {
        enum becalm_reason reason;
        const char *sentence;
    } own[] = {
        {BECALM_WHY_STOPPED, "its output matches --stop-if"},
        {BECALM_WHY_NOT_REPLAYABLE, "its standard input was longer than --stdin-max"},
        {BECALM_WHY_ANSWER_DELIVERED, "it printed more than --output-max, which was shown"},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (own[i].reason == reason) {
            return own[i].sentence;
        }
    }
    return becalm_reason_sentence(reason);
}

/* A command that ran to its end can have printed why it failed. A command that was stopped, not found or not run can't,
 * and cron(8) would then send no mail. */
static bool speaks_for_itself(const struct exec_end *end)
{
    return end->code >= 0 && end->start_error == 0 && !end->timed_out;
}

/* The most frequent cause of this end, for a user who sees it for the first time; empty: no hint. */
static const char *hint_of(const struct exec_voice *voice, const struct exec_report *report)
{
    if (report->last.start_error == ENOENT && strpbrk(voice->name, " |&;<>$`*") != NULL) {
        return "; a line for the shell is run by sh: -- sh -c 'LINE'";
    }
    if (report->record.reason == BECALM_WHY_BUDGET_EMPTY && voice->earned) {
        return "; runs that succeed pay for retries here, see --budget";
    }
    return "";
}

void exec_say_end(const struct exec_voice *voice, const struct exec_report *report)
{
    const struct becalm_record *record = &report->record;
    char ended[TEXT_BYTES];
    const char *word = becalm_reason_word(record->reason);
    const char *sentence = sentence_of(record->reason);
    if (report->output_error != 0) {
        (void)cli_fail(&cmd_exec, "the output of %s can't be written: %s", voice->name, strerror(report->output_error));
    }
    bool silent = voice->json || (voice->quiet && speaks_for_itself(&report->last));
    if (silent || record->reason == BECALM_WHY_OK || report->signal != 0) {
        return;
    }
    if (report->last.code < 0) {
        (void)cli_fail(&cmd_exec, "%s was not run: %s (%s)", voice->name, sentence, word);
        return;
    }
    how_it_ended(ended, sizeof ended, &report->last);
    (void)cli_fail(&cmd_exec, "%s %s; gave up after %u attempt%s: %s (%s)%s", voice->name, ended, record->attempts,
                   record->attempts == 1 ? "" : "s", sentence, word, hint_of(voice, report));
}

/* ---- JSON ---- */

static double milliseconds(becalm_ns time)
{
    return (double)time / (double)BECALM_MS;
}

static void write_attempts(struct json *json, const struct becalm_record *record)
{
    uint32_t kept = becalm_record_kept(record);
    json_array(json, "attempts");
    for (uint32_t i = 0; i < kept; i++) {
        const struct becalm_record_attempt *attempt = &record->attempt[i];
        json_object(json, NULL);
        json_integer(json, "attempt", attempt->number);
        json_text(json, "outcome", attempt->open ? NULL : becalm_outcome_word(attempt->outcome));
        if (attempt->open || attempt->outcome == BECALM_OUTCOME_CANCELLED) {
            json_null(json, "code");
        } else {
            json_integer(json, "code", attempt->status);
        }
        json_number(json, "waited_ms", milliseconds(attempt->waited), 3);
        json_number(json, "took_ms", milliseconds(attempt->took), 3);
        json_object_end(json);
    }
    json_array_end(json);
}

void exec_write_json(FILE *out, const struct exec_voice *voice, const struct exec_report *report)
{
    const struct becalm_record *record = &report->record;
    struct json json;
    json_begin(&json, out);
    json_object(&json, NULL);
    json_text(&json, "command", voice->name);
    json_text(&json, "reason", becalm_reason_word(record->reason));
    json_text(&json, "would", record->would == BECALM_WHY_NONE ? NULL : becalm_reason_word(record->would));
    json_integer(&json, "exit_code", (uint64_t)report->code);
    if (report->last.code < 0) {
        json_null(&json, "last_code");
    } else {
        json_integer(&json, "last_code", (uint64_t)report->last.code);
    }
    json_integer(&json, "attempt_count", record->attempts);
    json_number(&json, "took_ms", milliseconds(becalm_ns_since(record->ended_at, record->began_at)), 3);
    json_integer(&json, "have", record->have);
    json_integer(&json, "need", record->need);
    json_text(&json, "breaker",
              report->breaker_from == report->breaker_to ? NULL : becalm_breaker_word(report->breaker_to));
    write_attempts(&json, record);
    json_object_end(&json);
    json_end(&json);
}

/* ---- Prometheus ---- */

/* A label's value in quotes. Bytes that are no printable ASCII become question marks, because they may be no UTF-8. */
static void write_label(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            (void)fprintf(out, "\\%c", c);
        } else {
            (void)fputc(c < ' ' || c > '~' ? '?' : c, out);
        }
    }
    (void)fputc('"', out);
}

static void write_gauge(FILE *out, const char *command, const char *name, const char *help, double value)
{
    (void)fprintf(out, "# HELP becalm_exec_%s %s\n# TYPE becalm_exec_%s gauge\nbecalm_exec_%s{command=", name, help,
                  name, name);
    write_label(out, command);
    (void)fprintf(out, "} %.15g\n", value);
}

void exec_write_textfile(FILE *out, const struct exec_voice *voice, const struct exec_report *report, uint64_t wall)
{
    const struct becalm_record *record = &report->record;
    const char *name = voice->name;
    double seconds = milliseconds(becalm_ns_since(record->ended_at, record->began_at)) / 1000;
    write_gauge(out, name, "last_success", "1 if the latest run succeeded in the end, else 0.",
                record->reason == BECALM_WHY_OK);
    write_gauge(out, name, "last_exit_code", "The exit code of becalm exec.", report->code);
    write_gauge(out, name, "last_attempts", "Attempts of the latest run.", record->attempts);
    write_gauge(out, name, "last_duration_seconds", "How long the latest run took, waits included.", seconds);
    write_gauge(out, name, "last_end_timestamp_seconds", "When the latest run ended, in seconds since 1970.",
                (double)wall);
    (void)fprintf(out, "# HELP becalm_exec_last_reason Why the latest run ended: 1 for that reason.\n"
                       "# TYPE becalm_exec_last_reason gauge\nbecalm_exec_last_reason{command=");
    write_label(out, name);
    (void)fprintf(out, ",reason=\"%s\"} 1\n", becalm_reason_word(record->reason));
}
