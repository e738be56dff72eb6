/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_SOURCE_H
#define BECALM_IMPORT_SOURCE_H

/* Reads another system's configuration: typed values, with diagnostics that point into their file, and puts them into
 * the policy. No setting is dropped silently: it becomes a key, or it is listed as one that needs no key, or it is a
 * warning and a comment. */

#include "../value.h"
#include "../yaml.h"
#include "emit.h"

struct source {
    struct emit *emit;
    struct becalm_diags *diags;
    const struct dialect *dialect;
    const char *product; /* the product that has this format, for sentences: "Istio" */
    const char *file;    /* of the present object; set by the loop over objects */
    struct route *first_route;
    struct route *last_route;
    struct listener *listeners; /* see listeners.h */
    uint32_t left_out;          /* findings about something that is left out */
    uint32_t changed;           /* values that were changed */
};

/* One value of the source: its node, its name there ("retries.attempts"), and, if needed, a remark for the comment
 * beside the key. */
struct from {
    const struct yaml_node *node;
    const char *path;
    const char *remark;
};

/* Something is wrong with the source itself: nothing will be printed. */
void source_error(struct source *, const struct yaml_node *, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* How much a finding matters: requests go elsewhere or are called in another way, or nothing of that changes. */
enum finding { FINDING_WARNING, FINDING_NOTE };

/* Something has no equal in Becalm: a warning, and a comment under the target's keys (NULL: at the top). */
void source_no_equal(struct source *, struct emit_target *, const struct from *, const char *why);

/* The same for a setting that affects neither routing nor retries. */
void source_aside(struct source *, struct emit_target *, const struct from *, const char *why);

/* The comment that says where something came from: "vs.yaml:12 retries.attempts; the remark". */
const char *source_where(struct source *, const struct from *);

/* The value of a key. Keys are compared without case and underscores: protobuf's YAML may say retry_policy or
 * retryPolicy. NULL if there is none, or nothing in it, or `mapping` is no mapping. */
const struct yaml_node *source_get(const struct yaml_node *mapping, const char *key);
bool source_same(const char *a, const char *b);

/* Is the node of this kind? If not, an error names the right kind. For a NULL node: false without an error. */
bool source_is(struct source *, const struct from *, enum yaml_kind);

/* The text of a scalar, or NULL. */
const char *source_text(struct source *, const struct from *);

/* A key that a mapping may contain. */
struct field {
    const char *name; /* NULL ends the table */
    const char *why;  /* why it has no equal; NULL: it is read, or says nothing about calls */
};

/* Why TLS of all services has no equal. */
#define SOURCE_TLS_OF_NONE "only a service has TLS: write it there"

/* Begins a `why` that is a note: NOTE "hosts have no priorities". Others are warnings. */
#define NOTE "\x01"

/* Why a condition of a route has no equal; returned by source_rest() as true. */
extern const char source_narrows[];

/* Tells every key that has no equal, as its row says; a key that is not in the table is a note. True if one of them
 * is a condition of a route that no endpoint can have (`why` is source_narrows): the route must be left out, or it
 * would hold for more than it should. */
bool source_rest(struct source *, struct emit_target *, const struct yaml_node *mapping, const char *path,
                 const struct field *fields);

/* Typed values. False: there is no node, or an error was reported. */
bool source_integer(struct source *, const struct from *, uint64_t *);
bool source_decimal(struct source *, const struct from *, uint64_t scale,
                    uint64_t *);                                         /* digits beyond it are cut off */
bool source_duration(struct source *, const struct from *, becalm_ns *); /* 1.500s 25ms 1m30s */
bool source_boolean(struct source *, const struct from *, bool *);

/* Puts typed values into the policy, cut with a warning to the range of the schema. A key that has another value
 * already keeps it, with a warning. */
void source_put_integer(struct source *, struct emit_target *, const char *key, uint64_t, const struct from *);
void source_put_decimal(struct source *, struct emit_target *, const char *key, uint64_t, uint64_t scale,
                        const struct from *);
void source_put_percent(struct source *, struct emit_target *, const char *key, uint64_t ppm, const struct from *);
void source_put_duration(struct source *, struct emit_target *, const char *key, becalm_ns, const struct from *);
void source_put_word(struct source *, struct emit_target *, const char *key, const char *word, const struct from *);
/* The hosts are spoken to in HTTP/2, which is said once for a service. */
void source_put_h2(struct source *, struct emit_target *, const struct from *);
void source_put_text(struct source *, struct emit_target *, const char *key, const char *text, const struct from *);

/* tls.cert and tls.key of two names of files, each of which may be missing (no node): only both together are a setting.
 */
void source_put_certificate(struct source *, struct emit_target *, const struct from *cert, const struct from *key);

/* A key of the target has another value already, and keeps it. */
void source_conflict(struct source *, struct emit_target *, const struct from *, const char *key, const char *value,
                     const char *had);

/* A list in the making: "[5xx, reset]"; each item once. */
struct source_item {
    struct source_item *next;
    const char *text;
};
struct source_list {
    struct emit *emit;
    struct source_item *first;
    struct source_item *last;
    uint32_t count;
};
void source_list_add(struct source_list *, const char *item);
bool source_list_has(const struct source_list *, const char *item);
const char *source_list_first(const struct source_list *); /* NULL: it is empty */
void source_put_list(struct source *, struct emit_target *, const char *key, const struct source_list *,
                     const struct from *);

/* Reads a value if it is there and puts it. */
void source_take_integer(struct source *, struct emit_target *, const char *key, const struct from *);
void source_take_percent(struct source *, struct emit_target *, const char *key, const struct from *);
void source_take_duration(struct source *, struct emit_target *, const char *key, const struct from *);

#endif
