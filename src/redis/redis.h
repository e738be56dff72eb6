/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REDIS_H
#define BECALM_REDIS_REDIS_H

/* A connection to one Redis, on the loop of one thread: commands with a callback, and scripts. A script is sent by its
 * hash, and once more in full if the server does not know it yet. A connection that is lost, refused, silent for too
 * long, or that sends something that is no Redis reply, is closed and made again after a backoff with full jitter. No
 * call waits for that.
 *
 * Sentinels are asked in turn for the server, which must confirm that it is a master. If a node of a cluster redirects
 * a command, the connection moves to the node that it names: all keys of a user are in one slot. */

#include "loop/bytes.h"
#include "loop/loop.h"
#include "place.h"
#include "reply.h"
#include "script.h"

#define REDIS_TIMEOUT  BECALM_S /* to connect, to greet, to answer */
#define REDIS_WORD_MAX 32u
#define REDIS_RUN_MAX  41u

/* One command, in the caller's memory, which must stay valid until `done` is called, once. Zero it, set `done` and
 * `script`, then call redis_word() for each word. */
struct redis_command {
    struct redis_command *next;
    const struct redis_script *script; /* NULL: the words are the command. Else they begin with the number of keys */
    struct bytes words;
    uint32_t count;
    becalm_ns sent_at;
    uint32_t ahead; /* replies that are due before its own, and are ignored */
    bool whole;     /* sent with the script's text */
    /* NULL: the connection was lost, and it is unknown whether the server has executed the command. The reply is valid
     * until `done` returns. `done` may send commands and free its own, but must not call redis_free(). */
    void (*done)(struct redis_command *, const struct reply *);
};
bool redis_word(struct redis_command *, const char *, size_t length); /* false: no memory */
bool redis_number(struct redis_command *, uint64_t);
void redis_command_free(struct redis_command *); /* its words */

enum redis_state {
    REDIS_AWAY,       /* not connected: waits until it may connect again */
    REDIS_ASKING,     /* a Sentinel for the server */
    REDIS_CONNECTING, /* also the handshake of TLS */
    REDIS_GREETING,   /* authenticates; no command is sent before the server has answered to that */
    REDIS_UP
};

/* Why a connection was lost: the first word of the server's error, or a word of this client. */
enum redis_loss {
    REDIS_LOSS_NONE,
    REDIS_LOSS_TIMEOUT,
    REDIS_LOSS_REFUSED,
    REDIS_LOSS_CLOSED,
    REDIS_LOSS_NONSENSE,
    REDIS_LOSS_UNRESOLVED,
    REDIS_LOSS_TLS,
    REDIS_LOSS_SENTINEL, /* no Sentinel knows a master */
    REDIS_LOSS_REPLICA,  /* the server is no master */
    REDIS_LOSS_MOVED,
    REDIS_LOSS_READONLY,
    REDIS_LOSS_MASTERDOWN,
    REDIS_LOSS_LOADING,
    REDIS_LOSS_CLUSTERDOWN,
    REDIS_LOSS_TRYAGAIN,
    REDIS_LOSS_MISCONF,
    REDIS_LOSS_NOREPLICAS,
    REDIS_LOSS_OOM,
    REDIS_LOSS_BUSY,
    REDIS_LOSS_WRONGPASS,
    REDIS_LOSS_NOAUTH,
    REDIS_LOSS_NOPERM,
    REDIS_LOSS_OTHER,
    REDIS_LOSSES
};
const char *redis_loss_word(enum redis_loss);

/* For display. */
struct redis_count {
    uint64_t connects;
    uint64_t answered; /* commands */
    uint64_t dropped;  /* commands that got no answer */
    uint64_t lost[REDIS_LOSSES];
    uint64_t reloads;      /* the server did not know a script */
    becalm_ns spent;       /* from sending to the answer, all together */
    uint64_t within[5];    /* answers that took at most 1, 5, 20, 100 and 1000 ms: each counts in all that follow */
    becalm_ns answered_at; /* the last one; 0: none yet */
};
extern const becalm_ns redis_bounds[5];

struct redis;

/* The user of the connection. Both may be NULL. */
struct redis_user {
    void (*up)(struct redis_user *);   /* commands may be sent */
    void (*lost)(struct redis_user *); /* after `done` of all that were on their way */
};

struct tls_context;
struct redis_options {
    struct loop *loop;
    struct redis_place place;
    becalm_ns timeout;       /* 0: REDIS_TIMEOUT */
    becalm_ns wait_base;     /* before it connects again, full jitter: from 0: 220 ms, */
    becalm_ns wait_cap;      /* doubling, to 0: 1.8 s */
    uint32_t reply_bytes;    /* of the longest reply that may come; 0: REPLY_BYTES */
    bool wants_run;          /* redis_run() is needed */
    struct tls_context *tls; /* with place.tls; kept by reference */
    const char *server_name; /* that a certificate must have; NULL: the host's */
    struct redis_user *user;
    /* Before each connection: user and password as they are now. NULL: as they are in `place`. */
    void (*login)(const void *self, struct redis_place *);
    const void *login_self;
    /* Finds an address of a host, for each new connection. False: there is none now. NULL: hosts are addresses. */
    bool (*find)(void *self, const char *host, union address_socket *);
    /* Called once for each change: the server answers (NULL), or the connection was lost, with the word of the loss or
     * the server's own. */
    void (*note)(void *self, const char *why);
    void *self;
};

struct redis *redis_make(const struct redis_options *); /* NULL: no memory */
void redis_free(struct redis *);                        /* calls `done` of all that were on their way */

/* The longest wait before it connects again, from now on. */
void redis_wait_at_most(struct redis *, becalm_ns);

/* False: the connection is not up, or there is no memory; `done` is not called. */
bool redis_send(struct redis *, struct redis_command *);

/* The same for one that has time: it is written together with the next command, so that the server wakes up once for
 * both. redis_send_late() writes it now if it still waits. At most one waits. */
bool redis_send_along(struct redis *, struct redis_command *);
void redis_send_late(struct redis *);

/* The answer is one for which there is nothing to do but to begin anew. `why` ends at its first space. */
void redis_lose(struct redis *, const char *why);
/* Why a script's reply is wrong, in one word. */
const char *redis_refusal(const struct reply *);
/* The answer was good: the next loss begins a new story, with a short backoff. */
void redis_good(struct redis *);

enum redis_state redis_state(const struct redis *);
/* Is something on its way that the server must do next: connecting, greeting, answering? */
bool redis_waits(const struct redis *);
/* Does it answer well: up, and not lost since the last redis_good()? */
bool redis_is_good(const struct redis *);
const char *redis_error(const struct redis *); /* why the connection was last lost; "": never */
const char *redis_host(const struct redis *);  /* the server that is connected, or was last; "" before */
/* The name of this run of the server, from the moment when the connection is up: another one after each start. "":
 * wants_run is false, or the server does not tell. */
const char *redis_run(const struct redis *);
struct redis_count redis_count(const struct redis *);

#endif
