/* SPDX-License-Identifier: MIT */
#include "h1.h"

#include "unfilled.h"

#include <string.h>

/* ---- text ---- */

void h1_put(struct h1_out *out, struct becalm_text text)
{
    if (text.length > out->size - out->length) {
        out->full = true;
        return;
    }
    if (text.length > 0) {
        memcpy(out->at + out->length, text.at, text.length);
        out->length += text.length;
    }
}

/* Writes the digits before `end`, and returns how many. */
static size_t digits_before(char *end, uint64_t number)
{
    char *at = end;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return (size_t)(end - at);
}

#define DIGITS_MAX 20u

void h1_put_number(struct h1_out *out, uint64_t number)
{
    UNFILLED char digits[DIGITS_MAX];
    size_t count = digits_before(digits + sizeof digits, number);
    h1_put(out, (struct becalm_text){digits + sizeof digits - count, count});
}

/* A whole line or nothing, so that a full buffer never holds half a field. */
static inline __attribute__((always_inline)) void put_line(struct h1_out *out, struct becalm_text name,
                                                           struct becalm_text value)
{
    size_t length = name.length + value.length + sizeof ": \r\n" - 1;
    if (length > out->size - out->length) {
        out->full = true;
        return;
    }
    char *at = out->at + out->length;
    memcpy(at, name.at, name.length);
    at += name.length;
    *at++ = ':';
    *at++ = ' ';
    if (value.length > 0) {
        memcpy(at, value.at, value.length);
        at += value.length;
    }
    *at++ = '\r';
    *at = '\n';
    out->length += length;
}

void h1_put_line(struct h1_out *out, struct becalm_text name, struct becalm_text value)
{
    put_line(out, name, value);
}

void h1_put_number_line(struct h1_out *out, struct becalm_text name, uint64_t number)
{
    UNFILLED char digits[DIGITS_MAX];
    size_t count = digits_before(digits + sizeof digits, number);
    h1_put_line(out, name, (struct becalm_text){digits + sizeof digits - count, count});
}

void h1_put_fields(struct h1_out *out, const char *bytes, const struct h1_head *head, uint64_t skip)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct h1_field *field = &head->field[i];
        if (!field->hop && (skip >> field->id & 1) == 0) {
            put_line(out, h1_name(bytes, field), h1_value(bytes, field));
        }
    }
}

/* ---- the status line ---- */

enum { STATUS_MIN = 100, STATUS_MAX = 999 };

/* The registered ones (RFC 9110, 15 and the IANA registry). */
static const char *const phrases[] = {
    [100 - STATUS_MIN] = "Continue",
    [101 - STATUS_MIN] = "Switching Protocols",
    [102 - STATUS_MIN] = "Processing",
    [103 - STATUS_MIN] = "Early Hints",
    [200 - STATUS_MIN] = "OK",
    [201 - STATUS_MIN] = "Created",
    [202 - STATUS_MIN] = "Accepted",
    [203 - STATUS_MIN] = "Non-Authoritative Information",
    [204 - STATUS_MIN] = "No Content",
    [205 - STATUS_MIN] = "Reset Content",
    [206 - STATUS_MIN] = "Partial Content",
    [207 - STATUS_MIN] = "Multi-Status",
    [208 - STATUS_MIN] = "Already Reported",
    [226 - STATUS_MIN] = "IM Used",
    [300 - STATUS_MIN] = "Multiple Choices",
    [301 - STATUS_MIN] = "Moved Permanently",
    [302 - STATUS_MIN] = "Found",
    [303 - STATUS_MIN] = "See Other",
    [304 - STATUS_MIN] = "Not Modified",
    [305 - STATUS_MIN] = "Use Proxy",
    [307 - STATUS_MIN] = "Temporary Redirect",
    [308 - STATUS_MIN] = "Permanent Redirect",
    [400 - STATUS_MIN] = "Bad Request",
    [401 - STATUS_MIN] = "Unauthorized",
    [402 - STATUS_MIN] = "Payment Required",
    [403 - STATUS_MIN] = "Forbidden",
    [404 - STATUS_MIN] = "Not Found",
    [405 - STATUS_MIN] = "Method Not Allowed",
    [406 - STATUS_MIN] = "Not Acceptable",
    [407 - STATUS_MIN] = "Proxy Authentication Required",
    [408 - STATUS_MIN] = "Request Timeout",
    [409 - STATUS_MIN] = "Conflict",
    [410 - STATUS_MIN] = "Gone",
    [411 - STATUS_MIN] = "Length Required",
    [412 - STATUS_MIN] = "Precondition Failed",
    [413 - STATUS_MIN] = "Content Too Large",
    [414 - STATUS_MIN] = "URI Too Long",
    [415 - STATUS_MIN] = "Unsupported Media Type",
    [416 - STATUS_MIN] = "Range Not Satisfiable",
    [417 - STATUS_MIN] = "Expectation Failed",
    [421 - STATUS_MIN] = "Misdirected Request",
    [422 - STATUS_MIN] = "Unprocessable Content",
    [423 - STATUS_MIN] = "Locked",
    [424 - STATUS_MIN] = "Failed Dependency",
    [425 - STATUS_MIN] = "Too Early",
    [426 - STATUS_MIN] = "Upgrade Required",
    [428 - STATUS_MIN] = "Precondition Required",
    [429 - STATUS_MIN] = "Too Many Requests",
    [431 - STATUS_MIN] = "Request Header Fields Too Large",
    [451 - STATUS_MIN] = "Unavailable For Legal Reasons",
    [500 - STATUS_MIN] = "Internal Server Error",
    [501 - STATUS_MIN] = "Not Implemented",
    [502 - STATUS_MIN] = "Bad Gateway",
    [503 - STATUS_MIN] = "Service Unavailable",
    [504 - STATUS_MIN] = "Gateway Timeout",
    [505 - STATUS_MIN] = "HTTP Version Not Supported",
    [506 - STATUS_MIN] = "Variant Also Negotiates",
    [507 - STATUS_MIN] = "Insufficient Storage",
    [508 - STATUS_MIN] = "Loop Detected",
    [511 - STATUS_MIN] = "Network Authentication Required",
};

const char *h1_status_phrase(uint32_t status)
{
    size_t index = (size_t)status - STATUS_MIN;
    bool known = status >= STATUS_MIN && index < sizeof phrases / sizeof *phrases && phrases[index] != NULL;
    return known ? phrases[index] : "";
}

struct becalm_text h1_phrase(const char *bytes, const struct h1_head *head)
{
    return (struct becalm_text){bytes + head->phrase, head->phrase_length};
}

void h1_put_status_begin(struct h1_out *out, uint32_t status)
{
    BECALM_ASSERT(status >= STATUS_MIN && status <= STATUS_MAX);
    char line[] = "HTTP/1.1 000 ";
    line[9] = (char)('0' + status / 100);
    line[10] = (char)('0' + status / 10 % 10);
    line[11] = (char)('0' + status % 10);
    h1_put(out, (struct becalm_text){line, sizeof line - 1});
}

void h1_put_status_line(struct h1_out *out, uint32_t status, struct becalm_text phrase)
{
    h1_put_status_begin(out, status);
    h1_put(out, phrase);
    h1_put(out, (struct becalm_text){"\r\n", 2});
}

void h1_put_status(struct h1_out *out, uint32_t status)
{
    const char *phrase = h1_status_phrase(status);
    h1_put_status_line(out, status, (struct becalm_text){phrase, strlen(phrase)});
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

/* ---- dates ---- */

static void two_digits(char *text, int64_t number)
{
    text[0] = (char)('0' + number / 10 % 10);
    text[1] = (char)('0' + number % 10);
}

void h1_date(char text[30], int64_t seconds)
{
    enum { DAY = 86400, ERA_DAYS = 146097, FROM_MARCH_0 = 719468 };
    static const char weekdays[] = "ThuFriSatSunMonTueWed"; /* 1 January 1970 was a Thursday */
    static const char months[] = "MarAprMayJunJulAugSepOctNovDecJanFeb";
    /* From 1970 on; the year 9999 is the last that the format can write. */
    seconds = seconds < 0 ? 0 : seconds > INT64_C(253402300799) ? INT64_C(253402300799) : seconds;
    int64_t days = seconds / DAY;
    int64_t left = seconds % DAY;
    /* Years that begin in March have their leap day at the end; eras of 400 such years are all alike. */
    int64_t era = (days + FROM_MARCH_0) / ERA_DAYS;
    int64_t day_of_era = (days + FROM_MARCH_0) % ERA_DAYS;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* from March, 0 */
    int64_t year = era * 400 + year_of_era + (month >= 10);
    memcpy(text, "Xxx, 00 Xxx 0000 00:00:00 GMT", 30);
    memcpy(text, weekdays + 3 * (days % 7), 3);
    two_digits(text + 5, day_of_year - (153 * month + 2) / 5 + 1);
    memcpy(text + 8, months + 3 * month, 3);
    two_digits(text + 12, year / 100);
    two_digits(text + 14, year % 100);
    two_digits(text + 17, left / 3600);
    two_digits(text + 20, left / 60 % 60);
    two_digits(text + 23, left % 60);
}
