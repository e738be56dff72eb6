/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_STATE_H
#define BECALM_TOP_STATE_H

/* The state of a gateway, read from /api/state and /api/decisions, as docs/admin.md describes them. Unknown names are
 * skipped, because newer gateways may have more. */

#include <becalm/ns.h>
#include <becalm/reason.h>

#define STATE_NONE     UINT64_MAX /* the gateway did not say */
#define STATE_NAME_MAX 129u       /* as long as the policy lets names be, and a zero */
#define STATE_WORD_MAX 24u

#define STATE_SERVICES_MAX  10000u /* each */
#define STATE_ENDPOINTS_MAX 10000u
#define STATE_HOSTS_MAX     10000u

/* Reasons that this program does not know are one more. */
#define STATE_REASONS (BECALM_REASON_COUNT + 1)

#define STATE_PROTOCOLS 3u /* HTTP/1, HTTP/2, gRPC */

/* Counts from the start of the gateway. Those by reason begin at STATE_REFUSED and STATE_NOT_RETRIED. */
enum state_count {
    STATE_ARRIVALS,
    STATE_FIRST_ATTEMPT, /* calls that succeeded at once */
    STATE_AFTER_RETRY,   /* calls that succeeded later */
    STATE_FAILED,        /* calls that did not; refused ones are among them */
    STATE_RETRIES,
    STATE_HEDGES,
    STATE_CLIENTS,                                     /* requests by protocol: STATE_PROTOCOLS counts */
    STATE_HOSTS = STATE_CLIENTS + STATE_PROTOCOLS,     /* attempts by protocol */
    STATE_REFUSED = STATE_HOSTS + STATE_PROTOCOLS,     /* calls for which nothing was sent */
    STATE_NOT_RETRIED = STATE_REFUSED + STATE_REASONS, /* retries that were due and not made */
    STATE_COUNTS = STATE_NOT_RETRIED + STATE_REASONS
};

/* Retries are in millionths here and below. */
struct state_budget {
    char kind[STATE_WORD_MAX];
    uint64_t left; /* NONE: no limit */
    uint64_t cap;
    uint64_t retry_ratio; /* ppm */
};

struct state_breaker {
    char state[STATE_WORD_MAX]; /* "HALF_OPEN" */
    uint64_t retest;            /* microseconds; NONE: neither open nor half open */
    uint64_t calls;             /* in its window */
    uint64_t failed;
    uint64_t slow;
};

struct state_limit {
    uint64_t now; /* NONE: no limit */
    uint64_t in_flight;
};

struct state_gate {
    uint64_t waiting;
    uint64_t shed_share; /* ppm */
    bool overloaded;
    bool shared; /* the limit is that of the service, and is counted there */
};

struct state_latency {
    uint64_t p50; /* microseconds; NONE: no calls */
    uint64_t p99;
};

struct state_endpoint {
    char name[STATE_NAME_MAX];
    uint64_t count[STATE_COUNTS];
    struct state_budget budget;
    struct state_budget service_budget;
    struct state_breaker breaker;
    struct state_limit limit;
    struct state_gate gate;
    struct state_latency latency;
};

struct state_host {
    char name[STATE_NAME_MAX];
    char address[STATE_NAME_MAX]; /* "": the name is not resolved */
    uint64_t in_flight;
    bool usable;
    bool ejected;
    bool unhealthy;       /* the host fails its health checks */
    uint64_t ejected_for; /* microseconds */
    uint64_t times_ejected;
    uint64_t quiet;    /* microseconds */
    uint64_t attempts; /* that ended lately */
    uint64_t failed;   /* of them */
};

struct state_service {
    char name[STATE_NAME_MAX];
    struct state_host *host;
    uint32_t host_count;
    bool ejections_ignored;
    struct state_endpoint *endpoint;
    uint32_t endpoint_count;
};

/* Counts by a word; those that are 0 are left out, and so are more than there is room for. */
#define STATE_WORDS_MAX 16u
struct state_words {
    char word[STATE_WORDS_MAX][STATE_WORD_MAX];
    uint64_t count[STATE_WORDS_MAX];
    uint32_t words;
};

/* Handshakes of TLS with one side. */
struct state_handshakes {
    uint64_t full;
    uint64_t resumed;
    struct state_words failed;
};

struct state {
    becalm_ns at; /* when it came, on this side's clock */
    char version[STATE_WORD_MAX];
    char id[STATE_NAME_MAX];
    char role[STATE_WORD_MAX];
    char time[32];
    char started[32];
    uint64_t uptime; /* seconds */
    uint64_t connections;
    uint64_t unrouted;
    bool draining;
    uint64_t faults; /* on order, in force */
    bool reload_failed;
    char reload_why[256];
    bool tls;
    struct state_handshakes clients;
    struct state_handshakes hosts;
    struct state_words clients_ended; /* connections that speak HTTP/2 */
    struct state_words hosts_ended;
    char certificate[256]; /* the one that expires first; "": there is none */
    int64_t expires_in;    /* seconds, by the gateway's clock */
    struct state_service *service;
    uint32_t service_count;
};

/* NULL: the text is not this page, or memory ran out. Free the result with state_free(). */
struct state *state_read(const char *text, size_t length);
void state_free(struct state *);

/* A count by reason has its word; the one behind the last is "other". */
const char *state_reason_word(uint32_t reason);

/* One of the latest calls. */
struct state_decision {
    char time[32];
    char method[STATE_WORD_MAX];
    char target[STATE_NAME_MAX];
    char reason[STATE_WORD_MAX];
    char change[256];
    uint64_t status;   /* 0: none */
    uint64_t attempts; /* 0: nothing was sent */
    uint64_t took;     /* microseconds */
};

#define STATE_DECISIONS_MAX 50u

/* Returns how many of /api/decisions were read, at most STATE_DECISIONS_MAX; -1: the text is not this page. */
int state_read_decisions(const char *text, size_t length, struct state_decision *);

#endif
