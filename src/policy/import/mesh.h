/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_MESH_H
#define BECALM_IMPORT_MESH_H

/* Settings that have the same meaning in Istio and Envoy, because Istio configures Envoys. */

#include "source.h"

#define MESH_BASE     (25 * BECALM_MS) /* Envoy's backoff where none is written; its cap is ten times the base */
#define MESH_CAP      10u
#define MESH_PERCENT  200000u /* of a retry budget, in ppm */
#define MESH_MINIMUM  3u      /* its min_retry_concurrency */
#define MESH_EJECTION (30 * BECALM_S)

/* Writes the differences that apply to every policy of an Envoy at the top of the file. */
void mesh_preface(struct source *);

/* The conditions of retry_on, a text with commas, and the numbers of retriable_status_codes (its node may be NULL). A
 * list that is not written is the given default. `block` is where it would have stood. */
void mesh_retry_on(struct source *, struct emit_target *, const struct from *on, const struct from *codes,
                   const struct from *block, const char *otherwise);

/* Others repeat an error of the application as often as any other failure, Becalm once per call: tells it, where the
 * list has 500 and the target more than one retry. */
void mesh_application_tell(struct source *, struct emit_target *, const struct source_list *, const struct from *);

/* The waits between attempts. Nodes may be NULL. */
void mesh_backoff(struct source *, struct emit_target *, const struct from *base, const struct from *cap,
                  const struct from *block);

/* A timeout that 0 switches off: into `deadline`, or into `attemptTimeout`, which can't be off. */
void mesh_deadline(struct source *, struct emit_target *, const struct from *);
void mesh_attempt_timeout(struct source *, struct emit_target *, const struct from *);

/* How many retries and requests may be in progress. `budget` wins over `retries`, as it does in Envoy; nodes may be
 * NULL. */
struct mesh_limits {
    struct from budget; /* the mapping */
    struct from percent;
    struct from minimum;
    struct from interval;
    struct from retries;
    struct from requests;
    struct from pending;
};
void mesh_limits(struct source *, struct emit_target *, const struct mesh_limits *);

/* Ejection of hosts after failures in a row. Nodes may be NULL; `block` is not. */
struct mesh_outlier {
    struct from block;
    struct from consecutive;
    struct from gateway; /* how many of 502, 503 and 504 in a row are enough; 0 or no node: that is off */
    struct from interval;
    struct from ejection;
    struct from percent;
};
void mesh_outlier(struct source *, struct emit_target *, const struct mesh_outlier *);

#endif
