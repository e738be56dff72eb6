/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_NGINX_ON_H
#define BECALM_IMPORT_NGINX_ON_H

/* Settings that are the same in nginx.conf and in the annotations of ingress-nginx, because the controller writes an
 * nginx.conf. */

#include "source.h"

/* Writes the differences that apply to every policy of an nginx at the top of the file. */
void nginx_preface(struct source *);

/* 60, 60s, 1m, 1h30m, 500ms; without a unit seconds. False: an error was reported. */
bool nginx_time(struct source *, const struct from *, const struct yaml_node *word, becalm_ns *out);

/* The conditions of proxy_next_upstream, word by word: error, timeout, http_503, off. */
struct nginx_on {
    struct source_list list;
    bool application; /* one of them is an error of the application */
    bool off;
};
void nginx_on_add(struct source *, struct nginx_on *, struct emit_target *rules, const struct from *word,
                  const char *text);

/* Puts them; false if nothing is retried. */
bool nginx_on_put(struct source *, const struct nginx_on *, struct emit_target *rules, const struct from *,
                  uint64_t retries);

/* There is no wait between attempts; and if no conditions are written, these are nginx's own. */
void nginx_at_once(struct source *, struct emit_target *rules, const struct from *count, bool written);

/* proxy_next_upstream_timeout: after that time no further attempt begins, but the one in progress may go on. */
void nginx_whole_time(struct source *, struct emit_target *rules, const struct from *, becalm_ns time,
                      becalm_ns attempt);

#endif
