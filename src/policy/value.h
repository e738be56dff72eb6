/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_VALUE_H
#define BECALM_POLICY_VALUE_H

/* Scalars of a policy: text into typed values. Each returns false for text that is none, and never guesses a unit. */

#include <becalm/config.h>

/* 100ms 1.5s 2m 1h 250us 10ns 1h30m (units go down), and 0; at most ten years; not "100". */
bool value_duration(const char *text, becalm_ns *out);

/* 10, 10.5, 10% -> ppm; 0 to 100 (the schema narrows). */
bool value_percent(const char *text, uint32_t *ppm);

/* 64KiB 1MiB 2GiB 1TiB 10kB 1MB 100 100B; at most INT64_MAX bytes; not "64K". */
bool value_size(const char *text, uint64_t *bytes);

bool value_integer(const char *text, uint64_t *out);

/* 2.0 with scale 1000000 -> 2000000; exact or false. */
bool value_decimal(const char *text, uint32_t scale, uint64_t *out);

/* true false on off yes no, in any case. */
bool value_boolean(const char *text, bool *out);

/* 200/s 12000/m 5/h 0.5/s -> thousandths per second, rounded; at most 10^9 per second. */
bool value_rate(const char *text, uint64_t *milli);

/* host:port, 127.0.0.1:80, [::1]:80, unix:/path. Port 0 is allowed, for listeners; ":80" is not: it would mean every
 * network, and that has to be written explicitly. */
bool value_address(const char *text);
bool value_address_of_host(const char *text);     /* one of these that can be called: its port is not 0 */
bool value_address_is_loopback(const char *text); /* of an address, not of a name: no other machine can reach it */
bool value_address_is_name(const char *text);     /* one of these, and host is neither an IP address nor a path */

bool value_https(const char *text); /* https://host or https://host:port, and nothing behind it */

/* srv://_http._tcp.example.com: the name of a service in DNS, whose SRV records say where it is. And where the domain
 * begins, behind the two labels. */
bool value_srv(const char *text);
const char *value_srv_domain(const char *text);

/* The values of a match. A host: pay.local, pay.local:8080, 10.0.0.1, [::1]:80, ::1, *.example.com, or * alone. A path
 * as http/path.h reads it, from its slash, without a query, at most 1024 bytes. A method in capital letters. */
bool value_match_host(const char *text);
bool value_path(const char *text);
bool value_upgrade(const char *text); /* a protocol's name, maybe with a version; no other HTTP: its requests would pass
                                         inside of the tunnel, and no rule would see them */
bool value_method(const char *text);

/* The scope of keys: credentials, authorization, none, or header:NAME and cookie:NAME with a token for a name. */
bool value_key_scope(const char *text);
bool value_client_key(const char *text);

/* A name of a peer's certificate, in `trust`: a URI like spiffe://cluster.local/shop, or all below one
 * (spiffe://cluster.local/ *, without the blank); dns:NAME, or dns:*.NAME; cn:NAME. */
#define VALUE_PEER_NAME_MAX 1024u
bool value_peer_name(const char *text);

/* A store of shared budgets: redis://host, redis://user:password@host:6379/0; rediss:// with TLS. And the beginning of
 * its host, to print the URL without user and password. NULL: the URL has another scheme. */
bool value_redis(const char *text);
bool value_redis_has_password(const char *text);
const char *value_redis_host(const char *text);

/* 200, 200-299, 2xx: from 100 to 599. Adds them to a set, bit n of word w is 64 w + n. */
#define VALUE_STATUS_WORDS 10u
bool value_statuses(const char *text, uint64_t set[VALUE_STATUS_WORDS]);
size_t value_write_statuses(const uint64_t set[VALUE_STATUS_WORDS], char *text, size_t size); /* 200-299, 404 */

/* 127.0.0.0/8, ::1, 10.0.0.1 */
bool value_cidr(const char *text);

/* The shortest exact form that is not below 1 of its unit: 1500ms -> "1.5s", 100ms -> "100ms", "0", "never". Cut at
 * `size`; returns the length. */
size_t value_write_duration(becalm_ns, char *text, size_t size);

/* The known name nearest to a mistyped one, or NULL if none is near: Damerau-Levenshtein without regard to case, dashes
 * and underscores, at most a third of the longer name; else one that begins with it. Of equals the first. */
const char *value_nearest(const char *text, const char *const *names, size_t count);

/* "exponential, linear or constant", of words that end with NULL. Cut at `size`. */
void value_join_words(const char *const *words, char *text, size_t size);

#endif
