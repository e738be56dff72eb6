/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_SHARED_INTERNAL_H
#define BECALM_EXEC_SHARED_INTERNAL_H

#include "shared.h"

/* ---- shared_image.c: the contents of the file ---- */

#define BOOT_BYTES 40u

/* The head of the file; the engine's object follows at SHARED_HEAD. */
struct shared_head {
    char magic[8];
    uint32_t version;
    uint32_t kind;
    uint64_t bytes;       /* of the whole file */
    uint64_t fingerprint; /* of the policy */
    char boot[BOOT_BYTES];
    union {
        struct becalm_budget_policy budget;
        struct becalm_breaker_policy breaker;
        struct becalm_lease_policy lease;
    } policy; /* for processes that come with other numbers */
};

/* The result of examining a file, or its head. */
enum look {
    LOOK_GOOD,
    LOOK_ABSENT,
    LOOK_STALE,   /* from before the last boot */
    LOOK_OLDER,   /* of an older version of becalm */
    LOOK_CHANGED, /* made for other numbers */
    LOOK_BAD
};

/* Examines the head of a file of this many bytes. LOOK_BAD: `damage` has the reason. */
enum look shared_head_look(const struct shared_head *, const struct shared_want *, size_t bytes, const char **damage);

/* The policy that a good or changed file was made for, as a want that points into the head. False: it is damaged. */
bool shared_head_want(const struct shared_head *, struct shared_want *);

size_t shared_image_bytes(const struct shared_want *); /* of the whole file */

/* The engine's object in it, as after init; the head is left alone. */
void shared_image_init(unsigned char *image, const struct shared_want *);

/* The whole file in memory; `from` is the mapped one that it replaces, or NULL. */
void shared_image_make(unsigned char *image, const struct shared_want *, const unsigned char *from, becalm_ns now);

/* Does the engine find the object of the file sound? */
bool shared_image_sound(const unsigned char *image, const struct shared_want *, becalm_ns now);

/* ---- shared_file.c: finding it, or making it ---- */

/* Fills in the file's name and path. */
void shared_file_name(struct shared *);

/* The directory's lock, LOCK_SH or LOCK_EX. False: it could not be had, SHARED_LOCKED. */
bool shared_lock(const struct directory *, int how);
void shared_unlock(const struct directory *);
#define SHARED_LOCKED "another process has locked it and does not come to an end"

/* Maps the file, which is made if there is none or if it can't be used as it is; in use, in the place of the one
 * before. False: why not. */
bool shared_attach(struct shared *, becalm_ns now, char *why, size_t size);

/* The same, but only for a file that can be used as it is, with any numbers. */
bool shared_attach_found(struct shared *, becalm_ns now, char *why, size_t size);

#endif
