/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "pattern.h"

#include <string.h>

bool patterns_set(struct patterns *patterns, enum pattern_use use, const char *text, char *why, size_t size)
{
    if (patterns->set[use]) {
        regfree(&patterns->regex[use]);
        patterns->set[use] = false;
    }
    int rc = regcomp(&patterns->regex[use], text, REG_EXTENDED | REG_NOSUB);
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
}

static void line_ask(struct matcher *matcher, const struct patterns *patterns, bool *found)
{
    matcher->line[matcher->length] = '\0';
    for (int use = 0; use < PATTERN_USES; use++) {
        if (patterns->set[use] && !found[use]) {
            found[use] = regexec(&patterns->regex[use], matcher->line, 0, NULL, 0) == 0;
        }
    }
    matcher->length = 0;
}

void matcher_feed(struct matcher *matcher, const struct patterns *patterns, const char *bytes, size_t length,
                  bool *found)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            line_ask(matcher, patterns, found);
            continue;
        }
        if (matcher->length == PATTERN_LINE_MAX) {
            line_ask(matcher, patterns, found);
        }
        matcher->line[matcher->length++] = bytes[i] == '\0' ? ' ' : bytes[i]; /* a NUL would end what regexec sees */
    }
}

void matcher_end(struct matcher *matcher, const struct patterns *patterns, bool *found)
{
    if (matcher->length > 0) {
        line_ask(matcher, patterns, found);
    }
}
