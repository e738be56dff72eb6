/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_SITE_H
#define BECALM_REDIS_SITE_H

/* The Redis that a policy names: its URL, and for the Redis of `store:` also its user, password, certificates and
 * timeout. The gateway, the library and the commands all use it. */

#include "redis.h"

#include <becalm/config.h>

struct redis_site {
    char *url;
    struct redis_place place; /* with the password as it was at the beginning */
    struct tls_context *tls;  /* NULL: without */
    char *server_name;
    char *user; /* NULL: that of the URL */
    char *password_file;
    char *password_env;
    becalm_ns timeout;
};

/* `url` is the policy's, of `store:` or of one of its rules. False: *diags has the error, or memory ran out. If the URL
 * is not that of `store:`, diagnostics point at `at`. */
bool redis_site_open(struct redis_site *, const struct becalm_config *, const char *url, struct becalm_origin at,
                     struct becalm_diags *);
void redis_site_close(struct redis_site *);
/* Do both lead to the same place, by the same certificates? */
bool redis_site_same(const struct redis_site *, const struct redis_site *);

/* Copies the site's settings into the options; `site` must live as long as the connection. */
void redis_site_use(const struct redis_site *, struct redis_options *);

/* Reads the present user and password. Returns NULL, or a sentence about the error in the file or variable. */
const char *redis_site_login(const struct redis_site *, struct redis_place *);

#endif
