/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SCHEMA_H
#define BECALM_POLICY_SCHEMA_H

/* The keys of a policy file, as tables; loading, suggestions and `check --explain` all use them. A key has a type, a
 * range, the field for its value, and one sentence about its effect. Keys inside mappings have dotted names. */

#include <becalm/config.h>

enum schema_type {
    TYPE_INTEGER,       /* uint32_t */
    TYPE_BOOLEAN,       /* bool */
    TYPE_DURATION,      /* becalm_ns */
    TYPE_PERCENT,       /* uint32_t, parts per million */
    TYPE_DECIMAL,       /* uint32_t, times `scale` */
    TYPE_SIZE,          /* uint64_t, bytes */
    TYPE_RATE,          /* uint64_t, thousandths per second */
    TYPE_WORD,          /* an enum: one of `words`, in the enum's order */
    TYPE_WORDS,         /* uint32_t: a list of some of `words`, a bit each */
    TYPE_EITHER,        /* bool: words[0] is false, words[1] is true */
    TYPE_TEXT,          /* const char * */
    TYPE_ADDRESS,       /* const char *: host:port or unix:/path */
    TYPE_HOST,          /* const char *: match.host, one or a list: hosts_spread() */
    TYPE_PATH,          /* const char *: match.path, match.prefix */
    TYPE_METHOD,        /* const char *: match.method */
    TYPE_KEY_SCOPE,     /* const char *: keyScope */
    TYPE_CLIENT_KEY,    /* const char *: clientKey */
    TYPE_REDIS,         /* const char *: budget.shared.redis, for drivers that know shared budgets */
    TYPE_LIST,          /* const char *const *, ends with NULL; a single text is a list of one */
    TYPE_HOSTS,         /* the same, of addresses and of https://name; const char *const * of a struct becalm_service */
    TYPE_LISTEN,        /* addresses, each alone or in a mapping with its protocols and TLS: struct becalm_settings */
    TYPE_LISTEN_OWN,    /* the same: struct becalm_service */
    TYPE_ADMIN,         /* one of these, or the key's word: struct becalm_settings */
    TYPE_FILE,          /* struct becalm_file */
    TYPE_CERTIFICATES,  /* a list of mappings: struct becalm_listener */
    TYPE_PROTOCOLS,     /* the protocols of a listener: struct becalm_listener */
    TYPE_NETWORKS,      /* the same, of networks, or the word unix */
    TYPE_STATUSES,      /* uint64_t[10]: a list of 200, 200-299 or 2xx, a bit each */
    TYPE_RETRY_ON,      /* struct becalm_retry_on */
    TYPE_NON_FATAL,     /* uint32_t: a set of outcomes, in the words of retryOn */
    TYPE_BUDGET_KIND,   /* enum; another kind brings its own defaults for the rest of `budget` */
    TYPE_LIMIT_KIND,    /* enum, or auto */
    TYPE_PRESET,        /* no field of its own: sets the whole breaker */
    TYPE_RETRY_MODE,    /* no field of its own either: sets budget, jitter and rate */
    TYPE_JITTER_FACTOR, /* TYPE_DECIMAL that implies proportional jitter */
    TYPE_ATTEMPT_TIMEOUT, /* a duration, or one of the words of enum becalm_timeout_kind */
    TYPE_HEDGE_DELAY,     /* a duration, or a quantile: p95 */
    TYPE_HEADER           /* match.header: {name: value} */
};

struct schema_key {
    const char *name;
    enum schema_type type;
    size_t offset;     /* of the field */
    uint64_t min, max; /* numbers, in the field's unit */
    uint32_t scale;    /* TYPE_DECIMAL */
    const char *word;  /* one word that stands beside numbers ("off", "none", "auto"), stored as `stands_for` */
    uint64_t stands_for;
    const char *const *words; /* ends with NULL */
    const char *sentence;
};

struct schema {
    const struct schema_key *keys;
    uint32_t count;
};

#define SCHEMA_KEYS_MAX 128u

extern const struct schema schema_rules;       /* struct becalm_rules: `defaults:`, a service, an endpoint */
extern const struct schema schema_service;     /* struct becalm_service: beside them in a service */
extern const struct schema schema_endpoint;    /* struct becalm_endpoint */
extern const struct schema schema_settings;    /* struct becalm_settings: at the top */
extern const struct schema schema_listener;    /* struct becalm_listener: in `listen` */
extern const struct schema schema_certificate; /* struct becalm_certificate: in `certificates` of a listener */

/* Is `name` the name of a mapping: are there keys that begin with it and a dot? */
bool schema_is_map(const struct schema *, const char *name);
const struct schema_key *schema_find(const struct schema *, const char *name);

/* The words of a TYPE_BUDGET_KIND and the like, in the enum's order. */
extern const char *const schema_budget_kinds[];
extern const char *const schema_limit_kinds[]; /* auto first */

#endif
