/* SPDX-License-Identifier: MIT */
/* The contents of a shared file: its head, the policy that it was made for, and the engine's object. */
#define _POSIX_C_SOURCE 200809L /* O_CLOEXEC */
#include "shared_internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MAGIC   "becalm\r\n" /* a text editor would change it */
#define VERSION 2u           /* moves with anything in the file, the engine's objects too */
#define CELLS   1u           /* a process makes a handful of notes: exact counts are worth more than no contention */

_Static_assert(sizeof(struct shared_head) <= SHARED_HEAD, "the object begins on a line of its own");
_Static_assert(sizeof(MAGIC) - 1 == 8, "the magic fills its field");

enum kind { KIND_BUDGET = 1, KIND_BREAKER = 2, KIND_LEASE = 3 };

/* ---- which policy ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        hash = (hash ^ (value >> 8 * i & 0xff)) * UINT64_C(0x100000001b3); /* FNV-1a */
    }
    return hash;
}

static uint64_t mix_all(const uint64_t *values, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        hash = mix(hash, values[i]);
    }
    return hash;
}

_Static_assert(alignof(uint64_t) != 8 || sizeof(struct becalm_budget_policy) == 80,
               "a new field belongs into the fingerprint");
_Static_assert(alignof(uint64_t) != 8 || sizeof(struct becalm_breaker_policy) == 80,
               "a new field belongs into the fingerprint");

static uint64_t budget_fingerprint(const struct becalm_budget_policy *p)
{
    const uint64_t values[] = {
        p->kind,           p->share_ppm,         p->start,           p->never_sent_cost,  p->window,
        p->min_per_second, p->of_attempts,       p->min_concurrency, p->min_share_ppm,    p->max_share_ppm,
        p->capacity,       p->refill_per_second, p->refill_every,    p->max_tokens_milli, p->token_ratio_milli,
        p->retry_cost,     p->timeout_cost,
    };
    return mix_all(values, sizeof values / sizeof values[0]);
}

static uint64_t breaker_fingerprint(const struct becalm_breaker_policy *p)
{
    const uint64_t values[] = {
        p->enabled,
        p->per_attempt,
        p->mode,
        p->failure_share_ppm,
        p->slow_share_ppm,
        p->slow_after,
        p->window_kind,
        p->window_size,
        p->min_calls,
        p->probes,
        p->half_open_for,
        p->open_for,
        p->open_factor_ppm,
        p->open_cap,
        p->failure_threshold,
        p->success_threshold,
    };
    return mix_all(values, sizeof values / sizeof values[0]);
}

static uint64_t lease_fingerprint(const struct becalm_lease_policy *p)
{
    const uint64_t values[] = {p->enabled, p->share_ppm, p->floor};
    return mix_all(values, sizeof values / sizeof values[0]);
}

static enum kind want_kind(const struct shared_want *want)
{
    return want->budget != NULL ? KIND_BUDGET : want->breaker != NULL ? KIND_BREAKER : KIND_LEASE;
}

static uint64_t want_fingerprint(const struct shared_want *want)
{
    switch (want_kind(want)) {
    case KIND_BUDGET:
        return budget_fingerprint(want->budget);
    case KIND_BREAKER:
        return breaker_fingerprint(want->breaker);
    case KIND_LEASE:
        return lease_fingerprint(want->lease);
    }
    BECALM_UNREACHABLE();
}

size_t shared_image_bytes(const struct shared_want *want)
{
    switch (want_kind(want)) {
    case KIND_BUDGET:
        return SHARED_HEAD + becalm_budget_bytes(want->budget, CELLS);
    case KIND_BREAKER:
        return SHARED_HEAD + becalm_breaker_bytes(want->breaker, CELLS);
    case KIND_LEASE:
        return SHARED_HEAD + becalm_lease_bytes(CELLS);
    }
    BECALM_UNREACHABLE();
}

/* ---- the head ---- */

/* The kernel's name for the time since it was started: instants on our clock mean nothing beyond it. Empty where it
 * can't be read; then soundness alone has to find an old file. */
static void boot_read(char boot[BOOT_BYTES])
{
    memset(boot, 0, BOOT_BYTES);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t length = read(fd, boot, BOOT_BYTES - 1);
        boot[length > 0 ? strcspn(boot, "\n") : 0] = '\0';
        close(fd);
    }
}

static enum look bad(const char **damage, const char *what)
{
    *damage = what;
    return LOOK_BAD;
}

enum look shared_head_look(const struct shared_head *head, const struct shared_want *want, size_t bytes,
                           const char **damage)
{
    char boot[BOOT_BYTES];
    if (memcmp(head->magic, MAGIC, sizeof head->magic) != 0) {
        return bad(damage, "it does not begin like a shared file of becalm");
    }
    if (head->version > 0 && head->version < VERSION) {
        return LOOK_OLDER; /* after an upgrade a thousand jobs must not lose their retries until a person tidies up */
    }
    if (head->version != VERSION) {
        return bad(damage, head->version == 0 ? "its head is damaged" : "it is of a newer version of becalm");
    }
    if (head->kind != want_kind(want)) {
        return bad(damage, "it is of another kind");
    }
    if (head->bytes != bytes) {
        return bad(damage, "it does not have the size that it says");
    }
    boot_read(boot);
    if (memcmp(head->boot, boot, sizeof boot) != 0) {
        return LOOK_STALE;
    }
    return head->fingerprint == want_fingerprint(want) ? LOOK_GOOD : LOOK_CHANGED;
}

/* A policy out of a file is checked before anything believes it: flags first, because reading a bool or an enum that
 * holds anything else is not allowed. */
bool shared_head_want(const struct shared_head *head, struct shared_want *want)
{
    unsigned char byte;
    if (head->kind == KIND_BUDGET) {
        memcpy(&byte, &head->policy.budget.of_attempts, 1);
        if (byte > 1 || becalm_budget_check(&head->policy.budget, NULL) != 0) {
            return false;
        }
        want->budget = &head->policy.budget;
    } else if (head->kind == KIND_LEASE) {
        memcpy(&byte, &head->policy.lease.enabled, 1);
        if (byte > 1 || becalm_lease_check(&head->policy.lease, NULL) != 0) {
            return false;
        }
        want->lease = &head->policy.lease;
    } else {
        memcpy(&byte, &head->policy.breaker.enabled, 1);
        unsigned char other;
        memcpy(&other, &head->policy.breaker.per_attempt, 1);
        if (byte > 1 || other > 1 || becalm_breaker_check(&head->policy.breaker, NULL) != 0) {
            return false;
        }
        want->breaker = &head->policy.breaker;
    }
    return want_fingerprint(want) == head->fingerprint && shared_image_bytes(want) == head->bytes;
}

/* ---- the whole ---- */

void shared_image_init(unsigned char *image, const struct shared_want *want)
{
    switch (want_kind(want)) {
    case KIND_BUDGET:
        (void)becalm_budget_init(image + SHARED_HEAD, want->budget, CELLS);
        break;
    case KIND_BREAKER:
        (void)becalm_breaker_init(image + SHARED_HEAD, want->breaker, CELLS);
        break;
    case KIND_LEASE:
        (void)becalm_lease_init(image + SHARED_HEAD, CELLS);
        break;
    }
}

/* Carries the state of a mapped file's object over to a new one with other numbers. */
static void image_carry(unsigned char *image, const struct shared_want *want, const unsigned char *from, becalm_ns now)
{
    const struct shared_head *old = (const struct shared_head *)from;
    switch (want_kind(want)) {
    case KIND_BUDGET:
        becalm_budget_carry((struct becalm_budget *)(image + SHARED_HEAD), want->budget,
                            (const struct becalm_budget *)(from + SHARED_HEAD), &old->policy.budget, now);
        break;
    case KIND_BREAKER:
        becalm_breaker_carry((struct becalm_breaker *)(image + SHARED_HEAD),
                             (const struct becalm_breaker *)(from + SHARED_HEAD));
        break;
    case KIND_LEASE: /* another percentage is another budget of the store */
        break;
    }
}

void shared_image_make(unsigned char *image, const struct shared_want *want, const unsigned char *from, becalm_ns now)
{
    struct shared_head *head = (struct shared_head *)image;
    memset(image, 0, shared_image_bytes(want));
    memcpy(head->magic, MAGIC, sizeof head->magic);
    head->version = VERSION;
    head->kind = want_kind(want);
    head->bytes = shared_image_bytes(want);
    head->fingerprint = want_fingerprint(want);
    boot_read(head->boot);
    switch (want_kind(want)) {
    case KIND_BUDGET:
        head->policy.budget = *want->budget;
        break;
    case KIND_BREAKER:
        head->policy.breaker = *want->breaker;
        break;
    case KIND_LEASE:
        head->policy.lease = *want->lease;
        break;
    }
    shared_image_init(image, want);
    if (from != NULL) {
        image_carry(image, want, from, now);
    }
}

bool shared_image_sound(const unsigned char *image, const struct shared_want *want, becalm_ns now)
{
    switch (want_kind(want)) {
    case KIND_BUDGET:
        return becalm_budget_sound(image + SHARED_HEAD, want->budget, CELLS, now);
    case KIND_BREAKER:
        return becalm_breaker_sound(image + SHARED_HEAD, want->breaker, CELLS, now);
    case KIND_LEASE:
        return becalm_lease_sound(image + SHARED_HEAD, CELLS, now);
    }
    BECALM_UNREACHABLE();
}
