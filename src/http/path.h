/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_PATH_H
#define BECALM_HTTP_PATH_H

/* The path of a request, as rules are compared with it. A client must not choose which rule it falls under while the
 * service sees the same path. So a path has two forms. It belongs to the target that both forms lead to, or is refused
 * if these differ:
 *
 * - Its normal form is as it came, with each character spelled in one way (RFC 3986, 6.2.2): /%70ay is /pay, and /a%40b
 *   is /a@b. Escapes of / \ ; ? # % and of characters that a path must escape stay, with their digits in upper case:
 *   /a%2fb is /a%2Fb and not /a/b.
 * - Its resolved form is the path as a service may read it: escaped slashes and backslashes are slashes, a segment ends
 * at its semicolon, empty segments and . are left out, escapes of escapes are undone, and the path ends at an escaped
 *   question mark, number sign or zero byte. Most paths are their own resolved form, and cost nothing more.
 *
 * A segment that is .. in either form is never resolved: `climbs` says that there is one. A percent sign without two
 * digits is refused. Case, dots and blanks at the end of a segment, and a slash at the end of the path are not changed:
 * only the service knows their meaning. */

#include <becalm/http.h>

#include <string.h>

/* A path that was read. It points into the request's bytes. */
struct becalm__path {
    struct becalm_text text; /* without the query */
    bool escaped;            /* its normal form is not the text itself */
    bool odd;                /* its resolved form is not its normal form */
    bool dotted;             /* the path has segments that are . or .. */
    bool climbs;             /* the path has segments that are .. */
};

/* Reads the path at the front of `target`, up to its query. "*" is one (OPTIONS), and so is none at all (CONNECT).
 * False: it is refused, for a bad escape, a blank, a control character, a fragment, or no slash in front. */
bool becalm__path_read(struct becalm_text target, struct becalm__path *);

#define BECALM__PATH_RULE_MAX   1024u /* no rule is longer, so that this much of a path is enough */
#define BECALM__PATH_NORMAL_MAX (BECALM__PATH_RULE_MAX + 3)

/* The path in its normal form: itself, or in `normal`, and no more of it than a rule can see. */
struct becalm_text becalm__path_normalize(const struct becalm__path *, char normal[BECALM__PATH_NORMAL_MAX]);

/* The path in its resolved form, in `resolved`; of one that is odd and does not climb. */
struct becalm_text becalm__path_resolve(const struct becalm__path *, char resolved[BECALM__PATH_NORMAL_MAX]);

/* A rule is a path in its normal form, and not longer than BECALM__PATH_RULE_MAX; so is `path`, of any length. */
static inline bool becalm__path_is(struct becalm_text path, struct becalm_text rule)
{
    return path.length == rule.length && (rule.length == 0 || memcmp(path.at, rule.at, rule.length) == 0);
}

/* Does it begin with the rule, up to the end of a segment? /pay/x is under /pay, and /payment is not. A rule that ends
 * with a slash has said where its segment ends: /pay is not under /pay/. Everything is under "/", even "*". */
static inline bool becalm__path_under(struct becalm_text path, struct becalm_text rule)
{
    if (path.length <= rule.length || rule.length <= 1) {
        return becalm__path_is(path, rule) || (rule.length == 1 && rule.at[0] == '/');
    }
    /* The end of the segment is compared first: it is one byte, and most rules fail here. */
    return (path.at[rule.length] == '/' || rule.at[rule.length - 1] == '/') &&
           memcmp(path.at, rule.at, rule.length) == 0;
}

/* Does it begin with the rule, wherever that ends? */
static inline bool becalm__path_starts(struct becalm_text path, struct becalm_text rule)
{
    return path.length >= rule.length && memcmp(path.at, rule.at, rule.length) == 0;
}

#endif
