/* SPDX-License-Identifier: MIT */
#include "path.h"

#include "text_internal.h"

/* The classes of bytes in a path. */
enum kind {
    OTHER,  /* allowed, and spelled as an escape in the normal form */
    PLAIN,  /* unchanged in every form */
    BAD,    /* refused */
    DOT,    /* may be all of its segment */
    BORDER, /* a slash */
    BACK,   /* a backslash, which is a border to some */
    CUT,    /* a semicolon */
    ESCAPE, /* a percent sign */
    QUERY   /* a question mark */
};

/* RFC 3986, 3.3: pchar is plain, except the semicolon. Bytes outside ASCII are OTHER. */
/* clang-format off */
static const unsigned char kinds[256] = {
    BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
    BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD,
    BAD, PLAIN, OTHER, BAD, PLAIN, ESCAPE, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, DOT, BORDER,
    PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, CUT, OTHER, PLAIN, OTHER, QUERY,
    PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
    PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, OTHER, BACK, OTHER, OTHER, PLAIN,
    OTHER, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN,
    PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, OTHER, OTHER, OTHER, PLAIN, BAD,
};
/* clang-format on */

static int hex_value(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that an escape at the front of a text stands for; -1 if it is no escape. */
static int escape_value(const char *at, size_t length)
{
    if (length < 3 || hex_value(at[1]) < 0 || hex_value(at[2]) < 0) {
        return -1;
    }
    return hex_value(at[1]) * 16 + hex_value(at[2]);
}

#define NESTED_MAX 3u /* escapes of escapes: no service undoes more of them */

/* The character at the front of a text when all escapes are undone, also those that appear only by that: %252e is a
 * dot, and so is %25%32%65. Sets the number of bytes that it takes. */
static int innermost(struct becalm_text rest, unsigned depth, size_t *width)
{
    int value = (unsigned char)rest.at[0];
    *width = 1;
    if (value != '%' || (value = escape_value(rest.at, rest.length)) < 0) {
        return (unsigned char)rest.at[0];
    }
    *width = 3;
    for (unsigned i = 0; value == '%' && depth < NESTED_MAX && i < NESTED_MAX; i++) {
        size_t digit[2] = {0, 0};
        int high = -1;
        int low = -1;
        struct becalm_text inner = {rest.at + *width, rest.length - *width};
        if (inner.length > 0) {
            high = hex_value(innermost(inner, depth + 1, &digit[0]));
            text_skip(&inner, digit[0]);
        }
        if (high >= 0 && inner.length > 0) {
            low = hex_value(innermost(inner, depth + 1, &digit[1]));
        }
        if (low < 0) {
            break;
        }
        value = high * 16 + low;
        *width += digit[0] + digit[1];
    }
    return value;
}

/* The bytes since the last border: 0 to 2 dots, or anything else. */
#define NO_DOTS 3u

/* A segment has ended, at a border or at a character that cuts it. */
static void segment_end(struct becalm__path *path, unsigned dots)
{
    path->odd |= dots < NO_DOTS;
    path->dotted |= dots == 1 || dots == 2;
    path->climbs |= dots == 2;
}

/* Moves on by an escape. Returns its width; 0: it is none. */
static size_t read_escape(struct becalm_text rest, struct becalm__path *path, unsigned *dots)
{
    size_t width;
    if (escape_value(rest.at, rest.length) < 0) {
        return 0;
    }
    int c = innermost(rest, 0, &width);
    path->escaped = true;
    path->odd |= width > 3;
    switch ((enum kind)kinds[c]) {
    case DOT:
        *dots += *dots < NO_DOTS;
        break;
    case BORDER:
    case BACK:
        path->odd = true;
        segment_end(path, *dots);
        *dots = 0;
        break;
    case CUT:
    case QUERY:
        path->odd = true;
        segment_end(path, *dots);
        *dots = NO_DOTS;
        break;
    case BAD:
        if (c == 0 || c == '#') {
            path->odd = true;
            segment_end(path, *dots);
        }
        *dots = NO_DOTS;
        break;
    case PLAIN:
    case OTHER:
    case ESCAPE:
        *dots = NO_DOTS;
        break;
    }
    return width;
}

/* Reads up to the query or the end. Returns the length; sets *fine to false where it is refused. */
static size_t read_segments(struct becalm_text target, struct becalm__path *path, unsigned *dots, bool *fine)
{
    size_t i = 0;
    while (i < target.length) {
        size_t width = 1;
        switch ((enum kind)kinds[(unsigned char)target.at[i]]) {
        case PLAIN:
            *dots = NO_DOTS;
            break;
        case BORDER:
            if (*dots != NO_DOTS) {
                segment_end(path, *dots);
            }
            *dots = 0;
            break;
        case DOT:
            *dots += *dots < NO_DOTS;
            break;
        case OTHER:
            path->escaped = true;
            *dots = NO_DOTS;
            break;
        case BACK:
            path->escaped = path->odd = true;
            segment_end(path, *dots);
            *dots = 0;
            break;
        case CUT:
            path->odd = true;
            segment_end(path, *dots);
            *dots = NO_DOTS;
            break;
        case ESCAPE:
            width = read_escape((struct becalm_text){target.at + i, target.length - i}, path, dots);
            if (width == 0) {
                *fine = false;
                return i;
            }
            break;
        case QUERY:
            return i;
        case BAD:
            *fine = false;
            return i;
        }
        i += width;
    }
    return i;
}

bool becalm__path_read(struct becalm_text target, struct becalm__path *path)
{
    unsigned dots = NO_DOTS;
    bool fine = true;
    *path = (struct becalm__path){.text = {target.at, 0}};
    path->text.length = read_segments(target, path, &dots, &fine);
    if (dots != 0 && dots != NO_DOTS) { /* a slash at the end is no empty segment */
        segment_end(path, dots);
    }
    return fine && (target.length == 0 || text_is(path->text, "*") || text_peek(path->text) == '/');
}

/* One character of a path in its normal form: one byte, or an escape of three. */
static size_t spell(int value, char unit[3])
{
    static const char digits[] = "0123456789ABCDEF";
    enum kind kind = (enum kind)kinds[value];
    if (kind == PLAIN || kind == DOT) {
        unit[0] = (char)value;
        return 1;
    }
    unit[0] = '%';
    unit[1] = digits[value / 16];
    unit[2] = digits[value % 16];
    return 3;
}

struct becalm_text becalm__path_normalize(const struct becalm__path *path, char normal[BECALM__PATH_NORMAL_MAX])
{
    struct becalm_text rest = path->text;
    size_t written = 0;
    if (!path->escaped) {
        return path->text;
    }
    while (!text_ended(rest) && written <= BECALM__PATH_RULE_MAX) {
        char c = rest.at[0];
        if (c == '/' || c == ';') {
            normal[written++] = c;
            text_skip(&rest, 1);
            continue;
        }
        int value = c == '%' ? escape_value(rest.at, rest.length) : (unsigned char)c;
        BECALM_ASSERT(value >= 0); /* becalm__path_read() has seen it */
        written += spell(value, normal + written);
        text_skip(&rest, c == '%' ? 3 : 1);
    }
    return (struct becalm_text){normal, written};
}

/* The segment that has ended stays, unless it is empty or a dot. */
static size_t segment_keep(const char *text, size_t start, size_t length)
{
    return length - start == 1 && text[start] == '.' ? start : length;
}

struct becalm_text becalm__path_resolve(const struct becalm__path *path, char resolved[BECALM__PATH_NORMAL_MAX])
{
    struct becalm_text rest = path->text;
    size_t length = 0;
    size_t start = 0; /* of the segment */
    bool cut = false;
    bool ended = false;
    while (!text_ended(rest) && !ended && length <= BECALM__PATH_RULE_MAX) {
        size_t width;
        bool raw = rest.at[0] != '%';
        int c = innermost(rest, 0, &width);
        text_skip(&rest, width);
        if (c == '/' || c == '\\') {
            length = segment_keep(resolved, start, length);
            if (length == 0 || length > start) {
                resolved[length++] = '/';
            }
            start = length;
            cut = false;
        } else if (!raw && (c == '\0' || c == '?' || c == '#')) {
            ended = true;
        } else if (c == ';') {
            cut = true;
        } else if (!cut) {
            length += spell(c, resolved + length);
        }
    }
    /* Of one that is longer than any rule, the rest of the segment has not been seen. */
    bool whole = ended || text_ended(rest);
    return (struct becalm_text){resolved, whole ? segment_keep(resolved, start, length) : length};
}
