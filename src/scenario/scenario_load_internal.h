/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_SCENARIO_LOAD_INTERNAL_H
#define BECALM_SIM_SCENARIO_LOAD_INTERNAL_H

/* Types and functions that the files of the scenario loader share. */

#include "policy/apply.h"
#include "scenario_schema.h"

#define FAULTS_MAX      1000u
#define LINKS_MAX       1000u
#define POLICIES_MAX    64u
#define ENDPOINTS_MAX   100u     /* of one service */
#define PARTS_MAX       100u     /* of one mixture */
#define CONNECTIONS_MAX 1000000u /* of one client */
#define CALLS_MAX       100000u  /* that one request may cause below a service, retries aside */

struct scenario_file {
    struct arena arena;
    struct scenario scenario;
    struct scenario_service *services; /* the same as in the scenario, while they are being filled */
    struct scenario_client *clients;
    struct scenario_fault *faults;
    struct scenario_link *links;
    struct scenario_policy *policies;
};

/* The file while it is being read: the mappings by name, or NULL. */
struct reading {
    struct loader l;
    struct scenario_file *file;
    const char *path; /* NULL: the text is no file's, and names no others */
    const struct yaml_node *services;
    const struct yaml_node *clients;
    const struct yaml_node *faults;
    const struct yaml_node *links;
    const struct yaml_node *policies;
};

/* ---- scenario_load.c ---- */

/* The value of a key, or NULL if there is none; the node may be of any kind. */
const struct yaml_node *value_of(const struct yaml_node *node, const char *key);

/* The text under a key of an entry, or NULL if it is no text: that was reported. */
const struct yaml_node *text_of(const struct yaml_node *entry, const char *key);

/* A key that must be there; `name` is the one of the client, service or fault that should have it. */
void need(struct loader *, const struct yaml_node *name, const struct yaml_node *node, const char *key,
          const char *example);

/* A mapping by name, with as many entries as there may be; or NULL, which was reported if it is wrong. */
const struct yaml_node *named(struct loader *, const struct yaml_node *node, const char *key, uint32_t max);

/* The service or client that a text of the file names; SCENARIO_NONE: reported. */
uint32_t service_named(struct reading *, const struct yaml_node *text, const char *key);
uint32_t client_named(struct reading *, const struct yaml_node *text, const char *key);

/* `from` must be the name of a client or of a service, and of one that calls `to`: else no request ever goes that way.
 * Both may be NULL. `to` itself is checked elsewhere. */
void calls_between_check(struct reading *, const struct yaml_node *from, const struct yaml_node *to);

/* ---- scenario_dist.c ---- */

/* Reads a distribution; `what` is its key in the file. Errors are reported. */
void dist_load(struct reading *, const char *what, const struct yaml_node *, struct dist *);

/* ---- scenario_calls.c ---- */

/* Checks `calls` of all services: there is no circle, there are not too many calls, and each service has a caller.
 * False: out of memory. */
bool calls_check(struct reading *);

/* ---- scenario_client.c, scenario_fault.c ---- */

/* False: no memory. */
bool client_load(struct reading *, struct scenario_client *, uint32_t index);
bool client_check(struct reading *, uint32_t index);
bool fault_load(struct reading *, struct scenario_fault *, uint32_t index);

/* Checks values that are valid by themselves but must fit the rest of the file. */
void fault_check(struct reading *, uint32_t index);

#endif
