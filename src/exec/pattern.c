/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "pattern.h"

#include <string.h>

/* In another locale letters may take several bytes, and then `.` would not match a byte that belongs to no letter.
 * Returns the value for locale_leave(). */
static locale_t locale_enter(const struct patterns *patterns)
{
    return patterns->bytes == (locale_t)0 ? (locale_t)0 : uselocale(patterns->bytes);
}

static void locale_leave(locale_t before)
{
    if (before != (locale_t)0) {
        (void)uselocale(before);
    }
}

bool patterns_set(struct patterns *patterns, enum pattern_use use, const char *text, char *why, size_t size)
{
    if (patterns->set[use]) {
        regfree(&patterns->regex[use]);
        patterns->set[use] = false;
    }
    if (patterns->bytes == (locale_t)0) {
        patterns->bytes = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    }
    locale_t before = locale_enter(patterns);
    int rc = regcomp(&patterns->regex[use], text, REG_EXTENDED | REG_NOSUB);
    locale_leave(before);
    if (rc != 0) {
        (void)regerror(rc, &patterns->regex[use], why, size);
        return false;
    }
    patterns->set[use] = true;
    return true;
}

bool patterns_any(const struct patterns *patterns)
{
    for (int use = 0; use < PATTERN_USES; use++) {
        if (patterns->set[use]) {
            return true;
        }
    }
    return false;
}

void patterns_free(struct patterns *patterns)
{
    for (int use = 0; use < PATTERN_USES; use++) {
        if (patterns->set[use]) {
            regfree(&patterns->regex[use]);
            patterns->set[use] = false;
        }
    }
    if (patterns->bytes != (locale_t)0) {
        freelocale(patterns->bytes);
        patterns->bytes = (locale_t)0;
    }
}

void matcher_begin(struct matcher *matcher)
{
    matcher->length = 0;
    matcher->continues = false;
}

static void ask(struct matcher *matcher, const struct patterns *patterns, bool ends, bool *found)
{
    int flags = (matcher->continues ? REG_NOTBOL : 0) | (ends ? 0 : REG_NOTEOL);
    locale_t before = locale_enter(patterns);
    matcher->line[matcher->length] = '\0';
    for (int use = 0; use < PATTERN_USES; use++) {
        if (patterns->set[use] && !found[use]) {
            found[use] = regexec(&patterns->regex[use], matcher->line, 0, NULL, flags) == 0;
        }
    }
    locale_leave(before);
}

static void line_end(struct matcher *matcher, const struct patterns *patterns, bool *found)
{
    ask(matcher, patterns, true, found);
    matcher_begin(matcher);
}

/* There is no more room for this line. Its later half stays, so that a match across the cut is found, too. */
static void line_cut(struct matcher *matcher, const struct patterns *patterns, bool *found)
{
    ask(matcher, patterns, false, found);
    memmove(matcher->line, matcher->line + matcher->length / 2, matcher->length - matcher->length / 2);
    matcher->length -= matcher->length / 2;
    matcher->continues = true;
}

void matcher_feed(struct matcher *matcher, const struct patterns *patterns, const char *bytes, size_t length,
                  bool *found)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            line_end(matcher, patterns, found);
            continue;
        }
        if (matcher->length == PATTERN_LINE_MAX) {
            line_cut(matcher, patterns, found);
        }
        matcher->line[matcher->length++] = bytes[i] == '\0' ? ' ' : bytes[i]; /* a NUL would end the line for regexec */
    }
}

void matcher_end(struct matcher *matcher, const struct patterns *patterns, bool *found)
{
    if (matcher->length > 0) {
        line_end(matcher, patterns, found);
    }
}
