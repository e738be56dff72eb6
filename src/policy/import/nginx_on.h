/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_NGINX_ON_H
#define BECALM_IMPORT_NGINX_ON_H

/* What nginx.conf and the annotations of ingress-nginx mean alike, because the controller writes an nginx.conf. */

#include "source.h"

/* Tells at the top of the file what differs for every policy that comes from an nginx. */
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

/* proxy_next_upstream_timeout: nothing is passed on after that time, but what runs may go on. */
void nginx_whole_time(struct source *, struct emit_target *rules, const struct from *, becalm_ns time,
                      becalm_ns attempt);

#endif
