/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CONFIG_H
#define BECALM_CONFIG_H

/* The policy file: one file says how every service retries. Loading succeeds completely or not at all: the result is a
 * config, or diagnostics that give the place, the error and the correction. docs/policy.md explains the keys,
 * becalm.yaml(5) lists them. */

#include <becalm/http.h>
#include <becalm/policy.h>

BECALM_BEGIN_DECLS

/* A note changes nothing; only `becalm import` makes them. */
enum becalm_severity { BECALM_ERROR, BECALM_WARNING, BECALM_NOTE };

/* One finding: file:line:column: error: message [code]. */
struct becalm_diag {
    enum becalm_severity severity;
    uint32_t line;    /* from 1 */
    uint32_t column;  /* from 1 */
    const char *code; /* a constant: "unknown-key" */
    char file[256];
    char message[512]; /* the problem; the correction */
};

#define BECALM_DIAGS_MAX 100u

/* The caller's list. Zero it before the first use; no destructor. */
struct becalm_diags {
    uint32_t count;  /* entries in `diag` */
    uint32_t errors; /* of all findings, also those beyond BECALM_DIAGS_MAX */
    uint32_t warnings;
    uint32_t notes;
    struct becalm_diag diag[BECALM_DIAGS_MAX];
};

/* Adds one finding; past the maximum it is only counted. printf-like. */
BECALM_API void becalm_diag_add(struct becalm_diags *, enum becalm_severity, const char *file, uint32_t line,
                                uint32_t column, const char *code, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 7, 8)))
#endif
    ;

/* "file:line:col: error: message [code]", zero-terminated, cut at `size`. Returns the length. */
BECALM_API size_t becalm_diag_write(const struct becalm_diag *, char *text, size_t size);

enum becalm_role { BECALM_ROLE_GATEWAY, BECALM_ROLE_SIDECAR };
enum becalm_paths { BECALM_PATHS_RESOLVED, BECALM_PATHS_AS_IS };
enum becalm_log_level { BECALM_LOG_ERROR, BECALM_LOG_WARN, BECALM_LOG_INFO, BECALM_LOG_DEBUG };
enum becalm_log_format { BECALM_LOG_TEXT, BECALM_LOG_JSON };
enum becalm_log_access { BECALM_ACCESS_OFF, BECALM_ACCESS_JSON, BECALM_ACCESS_COMBINED };

/* Which header fields tell hosts about the client. AUTO: none from a sidecar, all from a gateway. */
enum becalm_forwarded {
    BECALM_FORWARDED_AUTO,
    BECALM_FORWARDED_ALL,
    BECALM_FORWARDED_X,        /* X-Forwarded-For, -Proto, -Host */
    BECALM_FORWARDED_STANDARD, /* Forwarded, RFC 7239 */
    BECALM_FORWARDED_OFF
};

/* Header fields whose ids a sidecar uses to join its program's outgoing calls to the program's incoming requests; a bit
 * each. */
enum becalm_join {
    BECALM_JOIN_TRACEPARENT = 1 << 0,
    BECALM_JOIN_B3 = 1 << 1,
    BECALM_JOIN_CLOUD_TRACE = 1 << 2,
    BECALM_JOIN_REQUEST_ID = 1 << 3,
    BECALM_JOIN_ALL = (1 << 4) - 1
};

enum becalm_client_auth { BECALM_CLIENT_AUTH_NONE, BECALM_CLIENT_AUTH_OPTIONAL, BECALM_CLIENT_AUTH_REQUIRED };
enum becalm_tls_version { BECALM_TLS_1_2, BECALM_TLS_1_3 };
enum becalm_tls_verify { BECALM_TLS_VERIFY_FULL, BECALM_TLS_VERIFY_NONE };

/* A file that the policy names, and the position of its name. A relative path is relative to the policy's folder. */
struct becalm_file {
    const char *path;    /* NULL: none */
    const char *written; /* the path as it is written in the policy */
    uint32_t line;
    uint32_t column;
};

/* A chain of certificates in PEM, the listener's own first, and its private key. */
struct becalm_certificate {
    struct becalm_file cert;
    struct becalm_file key;
};

/* The role of a listener as it is written. */
enum becalm_listener_role { BECALM_LISTENER_ROLE_AUTO, BECALM_LISTENER_ROLE_GATEWAY, BECALM_LISTENER_ROLE_SIDECAR };

#define BECALM_LISTENER_SHARED  UINT32_MAX
#define BECALM_HEADER_BYTES_MAX (64u * 1024) /* of maxHeaderBytes: the buffers of the gateway hold no larger head */

/* May requests for hosts that no service names be passed on from this listener? AUTO: for the program beside a sidecar.
 */
enum becalm_listener_unlisted { BECALM_UNLISTED_AUTO, BECALM_UNLISTED_PASS, BECALM_UNLISTED_REFUSE };

/* One address at which the gateway accepts connections of clients. */
struct becalm_listener {
    const char *address; /* "127.0.0.1:8080", "unix:/path" */
    const char *file;    /* the policy file that has it; NULL: none */
    uint32_t line;       /* of its `tls`, else of the address */
    uint32_t column;
    enum becalm_listener_role role_written;
    enum becalm_role role; /* of this listener, or that of the policy */
    uint32_t service;      /* the index of the one service that is behind it, or BECALM_LISTENER_SHARED */
    bool tls;
    const struct becalm_certificate *certificates; /* at least one with TLS; the first is the default */
    uint32_t certificate_count;
    struct becalm_file client_ca; /* the authority that signs the certificates of clients */
    enum becalm_client_auth client_auth;
    enum becalm_tls_version min_version;
    bool strict_sni; /* a client that asks for no name, or for a name that no certificate has, is refused */
    struct becalm_file ticket_keys; /* none: random keys of this process */
    bool h1;                        /* HTTP/1 is accepted */
    bool h2;                        /* HTTP/2 is accepted, from clients that begin with its preface */
    bool proxy_protocol;            /* each connection begins with a header that names the client's address */
    enum becalm_listener_unlisted unlisted_written;
    bool passes_unlisted; /* services with `unlisted` are found by it */
};

/* The protocol of connections to a service's hosts. */
enum becalm_protocol {
    BECALM_PROTOCOL_AUTO, /* with TLS the host's choice by ALPN, without TLS HTTP/1 */
    BECALM_PROTOCOL_H1,
    BECALM_PROTOCOL_H2 /* without TLS by prior knowledge */
};

/* The header that a connection to a service's host begins with, before TLS. It names the client, so each connection
 * belongs to one client. */
enum becalm_introduction {
    BECALM_INTRODUCTION_NONE,
    BECALM_INTRODUCTION_V1, /* the PROXY protocol, as a line of text */
    BECALM_INTRODUCTION_V2  /* the PROXY protocol, in binary */
};

/* TLS to a service's hosts. */
struct becalm_host_tls {
    bool enabled;
    uint32_t line; /* of `tls`, or of the first https:// */
    uint32_t column;
    const char *server_name; /* NULL: the host's name */
    struct becalm_file ca;   /* none: the authorities of the system */
    struct becalm_file cert; /* our own, for a host that asks for a client certificate */
    struct becalm_file key;
    enum becalm_tls_verify verify;
};

#define BECALM_FLEET_DEFAULT "default"

/* The Redis that all instances of a fleet share. */
struct becalm_store {
    const char *redis; /* its URL; NULL: there is none */
    uint32_t line;     /* of it */
    uint32_t column;
    const char *user;                 /* NULL: that of the URL, if it has one */
    struct becalm_file password_file; /* at most one of both; none: that of the URL, if it has one */
    const char *password_env;         /* the name of a variable */
    becalm_ns timeout;
    struct becalm_host_tls tls; /* with rediss:// */
};

/* The treatment of a call while the shared store of keys does not answer. */
enum becalm_keys_away {
    BECALM_KEYS_AWAY_AUTO,   /* an enforced key is refused, any other is local */
    BECALM_KEYS_AWAY_REFUSE, /* 503 */
    BECALM_KEYS_AWAY_LOCAL,  /* the key is kept in memory, by this instance alone */
    BECALM_KEYS_AWAY_PASS    /* as if keys were optional */
};

/* Idempotency keys that all gateways of a fleet keep together. */
struct becalm_keys {
    bool shared;                     /* in the Redis of `store` */
    struct becalm_file secret_file;  /* set if they are shared */
    struct becalm_file encrypt_file; /* none: answers are stored without encryption */
    uint64_t max_answer;
    becalm_ns timeout;
    becalm_ns lease;
    uint32_t replicas; /* the number of replicas that must have an enforced key before its call is sent */
    bool fence;        /* send hosts a number that grows each time a call begins the key */
    enum becalm_keys_away away;
};

/* The clients whose traceparent is continued; for requests of other clients a new trace begins. */
enum becalm_trace_parent { BECALM_TRACE_PARENT_ALL, BECALM_TRACE_PARENT_TRUSTED, BECALM_TRACE_PARENT_NONE };

/* Tracing: the collector that gets spans of calls and attempts, and which calls are traced. */
struct becalm_tracing {
    const char *endpoint; /* the URL of a collector that takes OTLP over HTTP; NULL: there is none */
    uint32_t line;        /* of it */
    uint32_t column;
    const char *const *headers; /* "name: value", for it; ends with NULL */
    const char *service;        /* service.name */
    uint32_t share_ppm;         /* the share of the traces that begin here that are sampled */
    enum becalm_trace_parent parent;
    becalm_ns timeout;          /* of one export */
    struct becalm_host_tls tls; /* with https:// */
};

/* A loaded file, immutable, shared by threads. */
struct becalm_config;

struct becalm_load_options {
    bool shared_budgets; /* the caller supports `budget.shared`; else the key is refused with "not yet" */
    bool allow_unknown;  /* unknown keys are warnings: for rolling upgrades */
    bool substitute;     /* ${NAME} in a value is put in from the environment, ${file:PATH} from a file */
    const char *const
        *parts; /* files and folders with more services, as `include` names them; ends with NULL; may be NULL */
    const char *const *set; /* "key.path=value" overrides, applied after the file; ends with NULL; may be NULL */
};

/* Loads a file, or text that is already in memory (`name` is for the diagnostics). 0, BECALM_EPARSE with errors in
 * *diags, BECALM_EIO with errno and a diagnostic, or BECALM_ENOMEM. Warnings do not fail. `options` may be NULL. */
BECALM_API int becalm_config_load(struct becalm_config **, const char *path, const struct becalm_load_options *,
                                  struct becalm_diags *);
BECALM_API int becalm_config_parse(struct becalm_config **, const char *name, const char *text, size_t length,
                                   const struct becalm_load_options *, struct becalm_diags *);
BECALM_API void becalm_config_free(struct becalm_config *);

#define BECALM_LISTEN_DEFAULT "127.0.0.1:8080"
#define BECALM_ADMIN_DEFAULT  "127.0.0.1:9900"

/* Settings of the gateway as a whole. Lists end with NULL. */
struct becalm_settings {
    const char *const *listen;               /* addresses: "127.0.0.1:8080", "unix:/path" */
    const struct becalm_listener *listeners; /* the same addresses, with their protocols and TLS */
    uint32_t listener_count;
    const char *admin;                /* NULL: none */
    struct becalm_listener admin_tls; /* how the admin address is spoken to */
    struct becalm_file admin_token;
    const char *admin_token_file; /* its path; NULL: none */
    enum becalm_role role;
    bool gateway_retries;
    uint32_t workers;         /* 0: one per CPU that the process may use */
    const char *const *trust; /* networks, "unix" for peers at Unix sockets, names of certificates (cn:, dns:, URIs) */
    const char *const
        *trust_by_role[2]; /* the same for listeners of either role, which differ if the policy does not say */
    enum becalm_forwarded forwarded;
    uint32_t join;          /* bits of enum becalm_join: by which ids calls are joined to requests; 0: by none */
    const char *client_key; /* how clients are told apart: "header:NAME", a header field of trusted peers;
                             * "certificate": the first name of a peer's certificate; NULL: by address */
    enum becalm_log_level log_level;
    enum becalm_log_format log_format;
    enum becalm_log_access log_access;
    bool log_query; /* the log and /api/decisions show queries */
    becalm_ns drain_delay;
    becalm_ns drain_limit;
    becalm_ns header_timeout;
    becalm_ns body_timeout; /* for each 16 KiB of a body; BECALM_NEVER: no limit */
    becalm_ns idle_timeout;
    becalm_ns stream_idle_timeout; /* of event streams; 0: 5 minutes, or idle_timeout if that is longer */
    becalm_ns tunnel_idle_timeout; /* 0: an hour, or idle_timeout if that is longer */
    uint32_t max_connections;
    uint32_t max_connections_per_client; /* 0: no limit of their own */
    uint64_t max_header_bytes;           /* at most BECALM_HEADER_BYTES_MAX */
    uint64_t max_body;                   /* UINT64_MAX: no limit */
    uint64_t max_buffered;               /* 0: a quarter of the memory that the process may have */
    uint64_t replay_per_request;
    uint64_t replay_total;
    const char *const *upgrades;
    bool connect;
    enum becalm_paths paths;       /* how paths are compared with rules */
    uint32_t max_tunnels;          /* 0: half of max_connections */
    uint32_t max_tunnels_per_host; /* 0: pool_max_per_host */
    uint32_t pool_max_per_host;    /* 0: as many as attempts and answers in progress are allowed */
    becalm_ns pool_idle;
    uint32_t pool_streams;  /* calls on one connection of HTTP/2 to a host */
    uint32_t http2_streams; /* requests on one connection of a client */
    uint64_t http2_window;  /* of one stream, either side: times the streams it fits into 31 bits */
    becalm_ns store_ttl;
    uint32_t store_max_entries;
    uint64_t store_max_bytes;
    struct becalm_keys keys;
    bool explain;
    const char *fleet; /* the name space of the objects that its instances share */
    struct becalm_store store;
    struct becalm_tracing tracing;
    const char *const *lint_code; /* rules that the file silences, and why; both end with NULL */
    const char *const *lint_reason;
};

/* The file's name, as diagnostics have it. */
BECALM_API const char *becalm_config_name(const struct becalm_config *);

/* The files and folders that the config was loaded from, without the first file; ends with NULL. */
BECALM_API const char *const *becalm_config_parts(const struct becalm_config *);

BECALM_API const struct becalm_settings *becalm_config_settings(const struct becalm_config *);

/* The services of a config and the endpoints of a service, in the file's order. */
BECALM_API uint32_t becalm_config_services(const struct becalm_config *);
BECALM_API const struct becalm_service *becalm_config_service(const struct becalm_config *, uint32_t index);
BECALM_API const struct becalm_service *becalm_config_find(const struct becalm_config *, const char *service);

enum becalm_budget_level { BECALM_LEVEL_ENDPOINT, BECALM_LEVEL_SERVICE, BECALM_LEVEL_BOTH };
enum becalm_key_rule {
    BECALM_KEY_OPTIONAL, /* a key allows retries */
    BECALM_KEY_REQUIRED, /* the service remembers keys: a key allows retries, and requests without one are refused */
    BECALM_KEY_OFF,      /* keys are ignored */
    BECALM_KEY_ENFORCED  /* the service does not remember keys: the gateway sends the request of each key once */
};

/* Which requests belong to a service or endpoint. NULL: any. At most one of prefix, start and path is there. */
struct becalm_match {
    const char *host;
    const char *prefix; /* whole segments */
    const char *start;  /* any first characters */
    const char *path;
    const char *method;
    const char *header_name;
    const char *header_value;
    bool alias;                      /* not written in the policy: a shorter name of a host that is */
    const struct becalm_match *next; /* an alternative match; NULL: none */
};

/* When a fallback answers in place of the service; a bit each. */
enum becalm_fallback_on {
    BECALM_FALLBACK_OPEN = 1 << 0,   /* its breaker is open */
    BECALM_FALLBACK_SHED = 1 << 1,   /* limit, gate or throttle refused the call */
    BECALM_FALLBACK_FAILED = 1 << 2, /* the call has failed, and no retry is left */
    BECALM_FALLBACK_ALL = (1 << 3) - 1
};
struct becalm_fallback {
    uint32_t on;
    const char *service;        /* the service that is called instead; NULL: none */
    uint32_t status;            /* of the fixed answer in the policy; 0: there is none */
    const char *const *headers; /* of that answer, "name: value"; ends with NULL */
    const char *const *fields;  /* the same as name, value, name, value; ends with NULL */
    const char *body;           /* NULL: none */
};

/* The rules of a service or of an endpoint. */
struct becalm_rules {
    struct becalm_policy policy; /* as written; becalm_rules_policy() makes it ready for the engine */
    struct becalm_retry_on retry_on;
    becalm_ns connect_timeout;
    enum becalm_budget_level level;
    enum becalm_role role; /* towards clients: the policy's, or that of the service's own listeners */
    enum becalm_key_rule key;
    const char *key_scope; /* the scope of keys: "credentials", "authorization", "header:NAME", "cookie:NAME", "none" */
    bool expect_continue;  /* a POST that may not be repeated is sent with Expect: 100-continue, and its body only when
                              the host asks for it */
    bool replay;           /* a body is kept, so that it can be sent again; false: it is streamed from its first byte */
    bool auto_limit;       /* limit.kind is `auto`: slots in role gateway, aimd elsewhere */
    struct becalm_fallback fallback;
    const char *shared_redis; /* the store of the shared budget; NULL: there is none */
    /* The service's budget, for `level: service` and `both`; NULL in `defaults:`. */
    const struct becalm_budget_policy *service_budget;
    const struct becalm_origins *origins; /* where each value came from: becalm_rules_origin() */
};

struct becalm_endpoint {
    const char *name;
    uint32_t line; /* of its key */
    uint32_t column;
    struct becalm_match match;
    struct becalm_rules rules;
};

/* Header fields that the gateway adds to requests to the hosts of a service; a bit each. */
enum becalm_send {
    BECALM_SEND_DEADLINE = 1 << 0, /* in all its dialects */
    BECALM_SEND_ATTEMPTS = 1 << 1,
    BECALM_SEND_VIA = 1 << 2,
    BECALM_SEND_FORWARDED = 1 << 3,
    BECALM_SEND_REQUEST_ID = 1 << 4,
    BECALM_SEND_TRACE = 1 << 5,
    BECALM_SEND_ALL = (1 << 6) - 1
};

/* Active health checks: requests that the gateway itself sends to a service's hosts, independent of calls. */
enum becalm_health_check_kind {
    BECALM_HEALTH_CHECK_OFF,
    BECALM_HEALTH_CHECK_HTTP, /* a GET of `path` */
    BECALM_HEALTH_CHECK_TCP,  /* a connection, and the handshake where the hosts have TLS */
    BECALM_HEALTH_CHECK_GRPC  /* grpc.health.v1.Health/Check */
};

struct becalm_health_check {
    enum becalm_health_check_kind kind;
    const char *path;         /* HTTP */
    const char *host;         /* the value of Host, or :authority; NULL: the host as it is written */
    const char *grpc_service; /* GRPC: the service whose health is asked for; NULL: the whole server's */
    becalm_ns interval;       /* from the beginning of a check to that of the next, plus or minus a tenth */
    becalm_ns timeout;
    uint32_t unhealthy;  /* the failures in a row that take a host out */
    uint32_t healthy;    /* the successes in a row that bring it back */
    uint64_t status[10]; /* HTTP: which are right; bit n of word w: status 64 w + n */
};

struct becalm_service {
    const char *name;
    const char *file; /* the file with this service: the config's first file, or a part */
    uint32_t line;    /* of its key */
    uint32_t column;
    const char *const *hosts; /* "host:port", also of https://host; never empty: without `hosts` the service's own name,
                               * port 80, even if that is no DNS name, which is a warning */
    uint32_t host_count;
    const char *const *listen;               /* addresses that lead to this service alone; ends with NULL; or NULL */
    const struct becalm_listener *listeners; /* the same; they are also among those of the settings */
    uint32_t listener_count;
    bool unlisted; /* its requests go to the host that they name; `hosts` is "*" alone */
    struct becalm_host_tls tls;
    enum becalm_protocol protocol;
    enum becalm_introduction introduction; /* `proxyProtocol` */
    const char *replace_prefix; /* its hosts get this in place of match.prefix; NULL: paths are passed on unchanged */
    uint32_t send;              /* bits of enum becalm_send */
    struct becalm_health_check health_check;
    struct becalm_match match;
    struct becalm_rules rules; /* of requests that belong to no endpoint */
    const struct becalm_endpoint *endpoints;
    uint32_t endpoint_count;
    const char *const *calls; /* the call graph */
    uint32_t call_count;
    uint32_t calls_line; /* of the list; 0: there is none */
    uint32_t calls_column;
    uint64_t traffic_milli; /* calls per second over all instances, in thousandths; 0: not declared */
    uint32_t instances;     /* 1 if not declared */
};

/* If an attempt's timeout is learned or none: the minimum time after which an attempt is overdue, and the deadline if
 * the policy sets none, which is as long as most proxies wait. */
#define BECALM_RULES_LEAST   (5 * BECALM_S)
#define BECALM_RULES_LONGEST (60 * BECALM_S)

/* The policy that the engine is to run: retries and hedges are off if gatewayRetries is false and the role is gateway;
 * the role decides the kind of `limit: auto`; the service's budget is included where `level` needs two. */
BECALM_API void becalm_rules_policy(const struct becalm_config *, const struct becalm_rules *, struct becalm_policy *);

/* The rules of `defaults:`, which every service inherits. */
BECALM_API const struct becalm_rules *becalm_config_defaults(const struct becalm_config *);

enum becalm_origin_level {
    BECALM_FROM_BUILT_IN, /* the built-in default; not in the file */
    BECALM_FROM_DEFAULTS,
    BECALM_FROM_SERVICE,
    BECALM_FROM_ENDPOINT,
    BECALM_FROM_SET /* --set on the command line */
};

/* "default", "defaults", "service", "endpoint", "--set". */
BECALM_API const char *becalm_origin_word(enum becalm_origin_level);

struct becalm_origin {
    enum becalm_origin_level level;
    uint32_t line; /* 0 for BUILT_IN and SET */
    uint32_t column;
};

/* The file that has a value of a service's rules, by its origin; NULL service: `defaults`. */
BECALM_API const char *becalm_service_file(const struct becalm_config *, const struct becalm_service *,
                                           struct becalm_origin);

/* Where the value of a key ("maxRetries", "budget.percent") of these rules came from. An unknown key gives BUILT_IN. */
BECALM_API struct becalm_origin becalm_rules_origin(const struct becalm_rules *, const char *key);

/* Calls `each` for every key of the rules, in the order of the documentation: its path, its value as a policy file
 * would have it, where the value came from, and a sentence about the key's effect. */
typedef void becalm_explain_fn(const char *key, const char *value, struct becalm_origin, const char *sentence,
                               void *data);
BECALM_API void becalm_rules_explain(const struct becalm_rules *, becalm_explain_fn *each, void *data);

BECALM_END_DECLS

#endif
