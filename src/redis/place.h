/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_PLACE_H
#define BECALM_REDIS_PLACE_H

/* The address of a Redis, and our user and password there. */

#include "loop/address.h"

#define REDIS_HOSTS_MAX 8u
#define REDIS_HOST_MAX  (ADDRESS_NAME_MAX + 8)

struct redis_place {
    char host[REDIS_HOSTS_MAX][REDIS_HOST_MAX]; /* as address_parse() takes them: with their ports, or unix:/path */
    uint32_t host_count;                        /* any of them will do: nodes of a cluster, or Sentinels */
    char master[64]; /* the name by which Sentinels know the server; "": the hosts are servers */
    char user[64];
    char password[256];
    uint32_t database;
    bool tls;
};

/* redis://[user[:password]@]host[:port][,host[:port]...][/database][?sentinel=name], with %XX in user, password and
 * name; rediss:// with TLS; or redis+unix:///path. NULL, or a sentence that names the error. */
const char *redis_place_parse(const char *url, struct redis_place *);

#endif
