/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_EMIT_H
#define BECALM_IMPORT_EMIT_H

/* Collects a policy and prints it as YAML: keys in the order of the schema, each line with a comment that says where it
 * came from, so that the same input always prints the same text. Everything lives in one arena. Memory that runs out is
 * remembered, not reported: every function accepts the NULL that another one returned for lack of it, and emit_print()
 * returns NULL in the end. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emit;

/* `defaults:`, a service or an endpoint. */
struct emit_target;

struct emit *emit_new(void);
void emit_free(struct emit *);

/* Zeroed memory, and text, that live as long as the emit. The text is never NULL. */
void *emit_take(struct emit *, size_t bytes);
const char *emit_text(struct emit *, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct emit_target *emit_defaults(struct emit *);

/* The whole policy's own keys: http2.streams. */
struct emit_target *emit_settings(struct emit *);

/* An address to listen on, with the keys of a listener. The listener is written to the policy once emit_listen() was
 * called. */
struct emit_target *emit_listener(struct emit *, const char *address, const char *comment);
void emit_listen(struct emit_target *listener);

/* The service of this name, which is made if there is none. A name that no policy may have is changed, and the comment
 * says so. */
struct emit_target *emit_service(struct emit *, const char *name, const char *comment);

/* Iterates over the services: NULL gives the first; returns NULL after the last. */
struct emit_target *emit_next(struct emit *, const struct emit_target *service);
struct emit_target *emit_next_endpoint(struct emit_target *service, const struct emit_target *endpoint);

/* A new endpoint; its name is the wished one made fit for a name, with a number behind it if it is taken. */
struct emit_target *emit_endpoint(struct emit_target *service, const char *wish, const char *comment);

/* The name that it is printed by. */
const char *emit_name(const struct emit_target *);

/* Keys that belong to no target yet. */
struct emit_target *emit_loose(struct emit *, const char *comment);

/* Copies all keys, comments and notes of one target into another, which keeps the keys that it has. `clash` is called
 * with both values for a key that has another value there; it may be NULL. */
typedef void emit_clash_fn(void *data, const char *key, const char *value, const char *comment, const char *had);
void emit_copy(struct emit_target *to, const struct emit_target *from, emit_clash_fn *clash, void *data);

/* Have both the same keys with the same values? */
bool emit_same(const struct emit_target *, const struct emit_target *);

/* A pointer at the target for the dialect's own use; NULL at first. */
void **emit_slot(struct emit_target *);

/* Notes that a route leads to the target; and asks for it. */
void emit_set_called(struct emit_target *);
bool emit_is_called(const struct emit_target *);

/* Gives a key ("budget.kind") a value, written as YAML wants it, unless it has one. Returns the value that it had, or
 * NULL. The key must be one of the target's schema. */
const char *emit_put(struct emit_target *, const char *key, const char *value, const char *comment);
const char *emit_get(const struct emit_target *, const char *key);
/* The value that holds for the target: its own, or its service's, or that of the defaults; NULL: nothing is written. */
const char *emit_get_inherited(const struct emit_target *, const char *key);
const struct schema_key *emit_key(const struct emit_target *, const char *key);
void emit_drop(struct emit_target *, const char *key);

/* The comment of a key, or, for a NULL key, of the target itself; "" if there is none. */
const char *emit_comment(const struct emit_target *, const char *key);

/* One item of a `match` that is a list, written as YAML wants it: "{prefix: /a}". */
void emit_match(struct emit_target *, const char *text, const char *comment);

/* A text as YAML wants it: bare where that is safe, else in double quotes. */
const char *emit_quote(struct emit *, const char *text);

/* A comment under the target's keys, or, for a NULL target, at the top of the file. */
void emit_note(struct emit *, struct emit_target *, const char *text);
void emit_note_once(struct emit *, struct emit_target *, const char *text); /* unless it is there */

/* Has nothing been put anywhere? */
bool emit_is_empty(const struct emit *);

/* The whole policy, zero-terminated; the caller frees it. NULL: out of memory. */
char *emit_print(const struct emit *);

#endif
