/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_PATH_H
#define BECALM_HTTP_PATH_H

/* The path of a request, as rules are compared with it. There is one way to write a path that a rule names, or the
 * request is refused: otherwise a client chooses which rule it falls under while the service sees the same path.
 *
 * - Escapes of unreserved characters are undone (RFC 3986, 6.2.2.2): /%70ay is /pay. Other escapes stay, with their
 *   digits in upper case: /a%2fb is /a%2Fb and not /a/b. A percent sign without two digits is refused.
 * - Dot segments are refused, and not resolved, escaped or not. Services that take \, %2F or %5C for a slash, or cut a
 *   segment at a semicolon, would see a dot segment in /..%2Fx and /..;/x: those are refused as well.
 * - Nothing else is touched: case counts, and // is not /. */

#include <becalm/http.h>

#include <string.h>

/* A path that was read. It points into the request's bytes. */
struct becalm__path {
    struct becalm_text text; /* without the query */
    bool escaped;            /* it has percent signs */
};

/* Reads the path at the front of `target`, up to its query. "*" is one (OPTIONS), and so is none at all (CONNECT).
 * False: it is refused, for the above or for a blank, a control character, a fragment, or no slash in front. */
bool becalm__path_read(struct becalm_text target, struct becalm__path *);

#define BECALM__PATH_RULE_MAX   1024u /* no rule is longer, so that this much of a path's normal form is enough */
#define BECALM__PATH_NORMAL_MAX (BECALM__PATH_RULE_MAX + 3)

/* The path in its normal form: itself, if it has no escapes, else in `normal`, and no more of it than a rule can see.
 */
struct becalm_text becalm__path_normalize(const struct becalm__path *, char normal[BECALM__PATH_NORMAL_MAX]);

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
    /* Where the segment ends is asked first: it is one byte, and of many rules few get further. */
    return (path.at[rule.length] == '/' || rule.at[rule.length - 1] == '/') &&
           memcmp(path.at, rule.at, rule.length) == 0;
}

#endif
