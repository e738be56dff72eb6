/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_EXCHANGE_LAB_H
#define BECALM_TESTS_EXCHANGE_LAB_H

/* One worker of a gateway between clients and hosts that a test plays itself, in virtual time. The worker's code is
 * that of production, from the socket to the engine; only its clock stands still until the test moves it, its random
 * numbers begin with a fixed seed, and it has no thread: it runs when the test lets it. Each message that a client or
 * host receives becomes one line, so that an exchange reads the same every time:
 *
 *   [  0ms] client 1 says GET /a
 *   [  0ms] host a1 hears GET /a
 *   [ 40ms] host a1 says 200 and 5 bytes
 *   [ 40ms] client 1 hears 200 and 5 bytes
 *
 * With protocol: h2 the test plays the host by frames, and the lines name them:
 *
 *   [  0ms] host a1 hears SETTINGS, HEADERS 1 end
 *
 * There are two hosts, a and b. Clients and hosts are numbered by their connections, in the order in which they came.
 * It needs no test framework, so that a fuzz target uses it, too. */

#include "gateway/gateway.h"

#define LAB_ENDS_MAX    32
#define LAB_TRACE_BYTES 16384

struct lab_end {
    int fd;    /* -1: closed */
    char host; /* 'a' or 'b'; 0: a client */
    uint32_t number;
    bool shut;   /* it has said that it sends no more */
    bool deaf;   /* it has heard that the gateway sends no more */
    bool paused; /* it does not read for now */
    bool h2;     /* a host that is spoken to by HTTP/2: its frames are named */
};

struct lab {
    struct gateway *gateway;
    struct worker *worker;
    char folder[64]; /* of the hosts' sockets */
    int folder_fd;   /* locked while this process lives; the next process removes the folders of killed ones */
    int listen_fd[2];
    int null_fd; /* where its log goes */
    becalm_ns began_at;
    struct lab_end end[LAB_ENDS_MAX]; /* clients and hosts, in the order in which they came */
    uint32_t ends;
    uint32_t clients;
    uint32_t hosts;
    char trace[LAB_TRACE_BYTES];
    size_t length;
};

/* A gateway with this policy, in which %s stands for the address of host "a", and a second one for that of "b". A
 * policy with `listen` has its `workers`, too, of which the lab moves the first. False: there is no such gateway;
 * standard error says why. */
bool lab_open(struct lab *, const char *policy);
void lab_close(struct lab *);

/* A client connects. Returns its number. */
uint32_t lab_client(struct lab *);

/* A client or host sends bytes, and the gateway handles them. The bytes begin with a request or status line, or
 * continue the earlier ones. */
void lab_client_says(struct lab *, uint32_t client, const char *);
void lab_host_says(struct lab *, uint32_t host, const char *);
void lab_client_says_bytes(struct lab *, uint32_t client, const char *, size_t);
void lab_host_says_bytes(struct lab *, uint32_t host, const char *, size_t);
/* Sends no more, but goes on listening. */
void lab_client_leaves(struct lab *, uint32_t client);
void lab_host_leaves(struct lab *, uint32_t host);
/* Closes its connection at any point. */
void lab_client_goes(struct lab *, uint32_t client);
void lab_host_goes(struct lab *, uint32_t host);

/* It stops reading, or goes on. */
void lab_pause(struct lab *, bool is_client, uint32_t number);

/* Reloads the policy. Requests in progress keep their old policy. */
bool lab_reload(struct lab *, const char *policy);

/* Time passes: every timer fires when it is due. */
void lab_pass(struct lab *, becalm_ns);
/* The gateway handles all pending events, and no time passes. */
void lab_settle(struct lab *);

#endif
