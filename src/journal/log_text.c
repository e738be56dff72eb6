/* SPDX-License-Identifier: MIT */
#include "log_text.h"

#include <string.h>

#define VALUE_MAX 1024u /* the most bytes of one value in a line */
#define TAIL      8u    /* bytes kept free for the end of a line */

struct civil {
    uint32_t year, month, day, hour, minute, second, millisecond;
};

/* The date of an instant, UTC. (gmtime_r() takes a lock. The years begin in March here, so that the leap day is the
 * last one: H. Hinnant, "chrono-compatible low-level date algorithms".) */
static struct civil civil_of(uint64_t wall)
{
    uint64_t seconds = wall / BECALM_S;
    uint64_t days = seconds / 86400 + 719468; /* since the first of March of the year 0 */
    uint64_t era = days / 146097;
    uint64_t of_era = days % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * of_year + 2) / 153; /* 0 is March */
    return (struct civil){
        .year = (uint32_t)(era * 400 + year + (month >= 10)),
        .month = (uint32_t)(month < 10 ? month + 3 : month - 9),
        .day = (uint32_t)(of_year - (153 * month + 2) / 5 + 1),
        .hour = (uint32_t)(seconds % 86400 / 3600),
        .minute = (uint32_t)(seconds % 3600 / 60),
        .second = (uint32_t)(seconds % 60),
        .millisecond = (uint32_t)(wall / BECALM_MS % 1000),
    };
}

static void put_clock(struct buffer *b, const struct civil *at)
{
    buffer_padded(b, at->hour, 2);
    buffer_chars(b, ":");
    buffer_padded(b, at->minute, 2);
    buffer_chars(b, ":");
    buffer_padded(b, at->second, 2);
}

void log_text_time(struct buffer *b, uint64_t wall)
{
    struct civil at = civil_of(wall);
    buffer_padded(b, at.year, 4);
    buffer_chars(b, "-");
    buffer_padded(b, at.month, 2);
    buffer_chars(b, "-");
    buffer_padded(b, at.day, 2);
    buffer_chars(b, "T");
    put_clock(b, &at);
    buffer_chars(b, ".");
    buffer_padded(b, at.millisecond, 3);
    buffer_chars(b, "Z");
}

static const char *level_word(enum becalm_log_level level)
{
    switch (level) {
    case BECALM_LOG_ERROR:
        return "error";
    case BECALM_LOG_WARN:
        return "warn";
    case BECALM_LOG_INFO:
        return "info";
    case BECALM_LOG_DEBUG:
        return "debug";
    }
    BECALM_UNREACHABLE();
}

/* Does it need no quotes in a line of text? */
static bool is_plain(struct becalm_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] <= ' ' || text.at[i] > '~' || strchr("\"\\=", text.at[i]) != NULL) {
            return false;
        }
    }
    return text.length > 0 && text.length <= VALUE_MAX;
}

static void put_value(struct buffer *b, enum becalm_log_format format, const struct log_pair *pair, size_t room)
{
    switch (pair->type) {
    case LOG_TEXT:
        if (format == BECALM_LOG_TEXT && pair->text.length <= room && is_plain(pair->text)) {
            buffer_bytes(b, pair->text.at, pair->text.length);
        } else {
            buffer_json_text(b, pair->text, room);
        }
        return;
    case LOG_NUMBER:
        buffer_number(b, pair->number);
        return;
    case LOG_MS:
        buffer_decimal(b, pair->number / BECALM_US, 3);
        return;
    case LOG_BOOL:
        buffer_chars(b, pair->number != 0 ? "true" : "false");
        return;
    }
    BECALM_UNREACHABLE();
}

/* Writes a separator and a pair. A pair for which there is no room left is not written at all. */
static void put_pair(struct buffer *b, enum becalm_log_format format, const struct log_pair *pair)
{
    bool json = format == BECALM_LOG_JSON;
    size_t overhead = strlen(pair->key) + (json ? 4 : 2); /* ,"": or a blank and = */
    size_t least = pair->type == LOG_TEXT ? 8 : 24; /* 24: the longest number has 20 digits, a point, and a sign */
    size_t room = buffer_room(b);
    if ((pair->type == LOG_TEXT && pair->text.at == NULL) || room < overhead + least) {
        return;
    }
    room -= overhead;
    buffer_chars(b, json ? ",\"" : " ");
    buffer_chars(b, pair->key);
    buffer_chars(b, json ? "\":" : "=");
    put_value(b, format, pair, room < VALUE_MAX ? room : VALUE_MAX);
}

/* Closes the line, in the bytes that were kept free. */
static size_t line_end(struct buffer *b, const char *end)
{
    b->size = LOG_LINE_MAX;
    BECALM_ASSERT(!b->full);
    buffer_chars(b, end);
    return b->length;
}

size_t log_text_line(char text[LOG_LINE_MAX], enum becalm_log_format format, enum becalm_log_level level, uint64_t wall,
                     const char *message, const struct log_pair *pairs, size_t count)
{
    struct buffer b = {.at = text, .size = LOG_LINE_MAX - TAIL};
    const char *word = level_word(level);
    struct becalm_text said = {message, strlen(message)};
    buffer_chars(&b, format == BECALM_LOG_JSON ? "{\"time\":\"" : "");
    log_text_time(&b, wall);
    if (format == BECALM_LOG_JSON) {
        buffer_chars(&b, "\",\"level\":\"");
        buffer_chars(&b, word);
        buffer_chars(&b, "\",\"message\":");
        buffer_json_text(&b, said, VALUE_MAX);
    } else {
        buffer_chars(&b, " ");
        buffer_chars(&b, word);
        buffer_chars(&b, strlen(word) < 5 ? "  " : " ");
        buffer_bytes(&b, said.at, said.length < VALUE_MAX ? said.length : VALUE_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        put_pair(&b, format, &pairs[i]);
    }
    return line_end(&b, format == BECALM_LOG_JSON ? "}\n" : "\n");
}

static struct becalm_text cut(struct becalm_text text, size_t length)
{
    return (struct becalm_text){text.at, text.length < length ? text.length : length};
}

static const char *protocol(const struct log_access *access)
{
    return access->version == 0 ? "HTTP/1.0" : access->version == 1 ? "HTTP/1.1" : "HTTP/2.0";
}

/* Short and important values come first, because a line has a maximum length. */
static size_t access_json(struct buffer *b, const struct log_access *access)
{
    const struct log_pair pairs[] = {
        {"peer", LOG_TEXT, access->peer, 0},
        {"method", LOG_TEXT, access->method, 0},
        {"protocol", LOG_TEXT, text_of(protocol(access)), 0},
        {"status", LOG_NUMBER, {0}, access->status},
        {"grpc_status", LOG_TEXT, text_of(access->grpc_status), 0},
        {"bytes", LOG_NUMBER, {0}, access->body_bytes},
        {"took_ms", LOG_MS, {0}, access->took},
        {"service", LOG_TEXT, access->service, 0},
        {"endpoint", LOG_TEXT, access->endpoint, 0},
        {"attempts", LOG_NUMBER, {0}, access->attempts},
        {"reason", LOG_TEXT, text_of(access->reason), 0},
        {"detail", LOG_TEXT, text_of(access->detail), 0},
        {"fault", LOG_TEXT, access->fault, 0},
        {"fallback", LOG_TEXT, access->fallback, 0},
        {"request_id", LOG_TEXT, access->request_id, 0},
        {"trace_id", LOG_TEXT, access->trace_id, 0},
        {"host", LOG_TEXT, access->host, 0},
        {"target", LOG_TEXT, access->target, 0},
        {"referer", LOG_TEXT, access->referer, 0},
        {"user_agent", LOG_TEXT, access->user_agent, 0},
    };
    buffer_chars(b, "{\"time\":\"");
    log_text_time(b, access->wall);
    buffer_chars(b, "\"");
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        put_pair(b, BECALM_LOG_JSON, &pairs[i]);
    }
    return line_end(b, "}\n");
}

/* As Apache's mod_log_config escapes it (ap_escape_logitem): C's short forms, and \xhh for all that is not ASCII. */
static void put_apache(struct buffer *b, struct becalm_text text)
{
    static const char digit[] = "0123456789abcdef";
    static const char short_form[] = "\bb\nn\rr\tt\vv\"\"\\\\";
    size_t end = b->length + VALUE_MAX - 4;
    while (text.length > 0 && b->length <= end) {
        unsigned char c = (unsigned char)text.at[0];
        const char *brief = c == 0 ? NULL : strchr(short_form, c);
        size_t used = buffer_plain_run(text, end + 1 - b->length);
        if (used > 0) {
            buffer_bytes(b, text.at, used);
        } else if (brief != NULL && (brief - short_form) % 2 == 0) {
            buffer_bytes(b, (char[]){'\\', brief[1]}, 2);
        } else {
            buffer_bytes(b, (char[]){'\\', 'x', digit[c >> 4], digit[c & 15]}, 4);
        }
        used = used > 0 ? used : 1;
        text.at += used;
        text.length -= used;
    }
    buffer_chars(b, text.length > 0 ? "..." : "");
}

static void put_quoted(struct buffer *b, struct becalm_text text)
{
    buffer_chars(b, "\"");
    put_apache(b, text.length == 0 ? text_of("-") : text);
    buffer_chars(b, "\"");
}

/* 127.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET /a HTTP/1.1" 200 2326 "http://from/" "Agent/1.0" */
static size_t access_combined(struct buffer *b, const struct log_access *access)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct civil at = civil_of(access->wall);
    put_apache(b, access->peer.length == 0 ? text_of("-") : cut(access->peer, 64));
    buffer_chars(b, " - - [");
    buffer_padded(b, at.day, 2);
    buffer_chars(b, "/");
    buffer_bytes(b, months + 3 * (at.month - 1), 3);
    buffer_chars(b, "/");
    buffer_padded(b, at.year, 4);
    buffer_chars(b, ":");
    put_clock(b, &at);
    buffer_chars(b, " +0000] \"");
    put_apache(b, cut(access->method, 32));
    buffer_chars(b, " ");
    put_apache(b, access->target);
    buffer_chars(b, " ");
    buffer_chars(b, protocol(access));
    buffer_chars(b, "\" ");
    buffer_number(b, access->status);
    buffer_chars(b, " ");
    if (access->body_bytes == 0) {
        buffer_chars(b, "-");
    } else {
        buffer_number(b, access->body_bytes);
    }
    buffer_chars(b, " ");
    put_quoted(b, access->referer);
    buffer_chars(b, " ");
    put_quoted(b, access->user_agent);
    return line_end(b, "\n");
}

size_t log_text_access(char text[LOG_LINE_MAX], enum becalm_log_access form, const struct log_access *access)
{
    struct buffer b = {.at = text, .size = LOG_LINE_MAX - TAIL};
    return form == BECALM_ACCESS_COMBINED ? access_combined(&b, access) : access_json(&b, access);
}
