/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_ROUTING_MATCH_H
#define BECALM_POLICY_ROUTING_MATCH_H

/* Compares two matches: does one match all requests of the other, some, or none? The rules are those of route.h; here
 * matches are compared with each other, not with a request. `next` is ignored. */

#include <becalm/config.h>

/* No conditions at all? */
bool match_is_empty(const struct becalm_match *);

/* Does `wide` fit every request that `narrow` fits? */
bool match_covers(const struct becalm_match *wide, const struct becalm_match *narrow);

/* Can one request fit both? */
bool match_meets(const struct becalm_match *, const struct becalm_match *);

/* The match for requests that fit both. False: there are none, or no match can express it (two headers). Texts are
 * borrowed. */
bool match_common(const struct becalm_match *, const struct becalm_match *, struct becalm_match *common);

/* Which of two that fit the same request wins: below 0 for the first. 0: the first in the file. */
int match_compare(const struct becalm_match *, const struct becalm_match *);

/* "POST shop.example/pay/..." for sentences; cut at `size`. */
void match_write(const struct becalm_match *, char *text, size_t size);

#endif
