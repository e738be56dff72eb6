/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_SITE_H
#define BECALM_REDIS_SITE_H

/* The Redis that a policy names: its URL, and for that of `store:` what stands beside it: user, password, certificates,
 * timeout. Libraries and commands use it alike. */

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

/* `url` is the policy's, of `store:` or of one of its rules. False: *diags says what is wrong, or there is no memory.
 * What diagnostics point at is `at` where the URL is no store's. */
bool redis_site_open(struct redis_site *, const struct becalm_config *, const char *url, struct becalm_origin at,
                     struct becalm_diags *);
void redis_site_close(struct redis_site *);
/* Do both lead to the same place, by the same certificates? */
bool redis_site_same(const struct redis_site *, const struct redis_site *);

/* Puts what it knows into the options; `site` must live as long as the connection. */
void redis_site_use(const struct redis_site *, struct redis_options *);

/* The user and password of now. A sentence about what is wrong with the file or variable, or NULL. */
const char *redis_site_login(const struct redis_site *, struct redis_place *);

#endif
