/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC      "becalm\r\n" /* a text editor would change it */
#define VERSION    2u           /* moves with anything in the file, the engine's objects too */
#define HEAD_BYTES SHARED_HEAD
#define CELLS      1u /* a process makes a handful of notes: exact counts are worth more than no contention */
#define BOOT_BYTES 40u
#define NEW_FILE   ".new" /* written under the lock, then renamed, so nobody sees half a file */

#define LOCK_TRIES 2000
#define LOCK_PAUSE (1 * BECALM_MS)
#define HOLD_TRIES 100 /* a file that is replaced under us so often in a row is not meant to be used */

enum kind { KIND_BUDGET = 1, KIND_BREAKER = 2 };

/* The head of the file; the engine's object follows at HEAD_BYTES. */
struct head {
    char magic[8];
    uint32_t version;
    uint32_t kind;
    uint64_t bytes;       /* of the whole file */
    uint64_t fingerprint; /* of the policy */
    char boot[BOOT_BYTES];
    union {
        struct becalm_budget_policy budget;
        struct becalm_breaker_policy breaker;
    } policy; /* for who comes with other numbers */
};

_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the object begins on a line of its own");
_Static_assert(sizeof(MAGIC) - 1 == 8, "the magic fills its field");

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

static uint32_t want_kind(const struct shared_want *want)
{
    return want->budget != NULL ? KIND_BUDGET : KIND_BREAKER;
}

static uint64_t want_fingerprint(const struct shared_want *want)
{
    return want->budget != NULL ? budget_fingerprint(want->budget) : breaker_fingerprint(want->breaker);
}

static size_t want_bytes(const struct shared_want *want)
{
    return HEAD_BYTES + (want->budget != NULL ? becalm_budget_bytes(want->budget, CELLS)
                                              : becalm_breaker_bytes(want->breaker, CELLS));
}

static bool want_sound(const struct shared_want *want, const unsigned char *memory, becalm_ns now)
{
    return want->budget != NULL ? becalm_budget_sound(memory + HEAD_BYTES, want->budget, CELLS, now)
                                : becalm_breaker_sound(memory + HEAD_BYTES, want->breaker, CELLS, now);
}

/* A policy out of a file is checked before anything believes it: flags first, because reading a bool or an enum that
 * holds anything else is not allowed. */
static bool stored_policy(const struct head *head, struct shared_want *want)
{
    unsigned char byte;
    if (head->kind == KIND_BUDGET) {
        memcpy(&byte, &head->policy.budget.of_attempts, 1);
        if (byte > 1 || becalm_budget_check(&head->policy.budget, NULL) != 0) {
            return false;
        }
        want->budget = &head->policy.budget;
    } else {
        memcpy(&byte, &head->policy.breaker.enabled, 1);
        unsigned char other;
        memcpy(&other, &head->policy.breaker.per_attempt, 1);
        if (byte > 1 || other > 1 || becalm_breaker_check(&head->policy.breaker, NULL) != 0) {
            return false;
        }
        want->breaker = &head->policy.breaker;
    }
    return want_fingerprint(want) == head->fingerprint && want_bytes(want) == head->bytes;
}

/* ---- which file ---- */

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

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* "pay/charge" becomes "pay%2Fcharge.budget": any name is one file, and two names never the same. */
static void file_name(const struct shared_want *want, char *out, size_t size)
{
    size_t length = 0;
    for (const char *at = want->name; *at != '\0' && length + 4 < size; at++) {
        if (is_plain(*at) || (*at == '.' && at > want->name)) {
            out[length++] = *at;
        } else {
            length += (size_t)snprintf(out + length, size - length, "%%%02X", (unsigned)(unsigned char)*at);
        }
    }
    (void)snprintf(out + length, size - length, "%s", want->budget != NULL ? ".budget" : ".breaker");
}

/* ---- looking at what is there ---- */

enum look { LOOK_GOOD, LOOK_ABSENT, LOOK_STALE, LOOK_OLDER, LOOK_CHANGED, LOOK_BAD };

static enum look bad(char *why, size_t size, const char *what)
{
    (void)snprintf(why, size, "%s (remove it to begin anew)", what);
    return LOOK_BAD;
}

/* The system's own word: on a file system that is read-only, say, there is nothing to remove. */
static enum look refused(char *why, size_t size)
{
    (void)snprintf(why, size, "%s", strerror(errno));
    return LOOK_BAD;
}

static enum look look_at_file(const struct directory *directory, int fd, size_t *bytes, char *why, size_t size)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return refused(why, size);
    }
    if (!S_ISREG(status.st_mode)) {
        return bad(why, size, "it is no plain file");
    }
    if (directory->group_shared ? status.st_gid != directory->group : status.st_uid != geteuid()) {
        return bad(why, size, directory->group_shared ? "it is of another group" : "it belongs to another user");
    }
    if ((status.st_mode & (directory->group_shared ? 007 : 077)) != 0) {
        return bad(why, size, "other users may open it");
    }
    if (status.st_size < (off_t)HEAD_BYTES) {
        return bad(why, size, "it is too short");
    }
    *bytes = (size_t)status.st_size;
    return LOOK_GOOD;
}

static enum look look_at_head(const struct head *head, const struct shared_want *want, size_t bytes, char *why,
                              size_t size)
{
    char boot[BOOT_BYTES];
    if (memcmp(head->magic, MAGIC, sizeof head->magic) != 0) {
        return bad(why, size, "it does not begin as such a file does");
    }
    if (head->version > 0 && head->version < VERSION) {
        return LOOK_OLDER; /* after an upgrade a thousand jobs must not lose their retries until somebody tidies up */
    }
    if (head->version != VERSION) {
        return bad(why, size, head->version == 0 ? "its head is damaged" : "it is of a newer version of becalm");
    }
    if (head->kind != want_kind(want)) {
        return bad(why, size, "it is of another kind");
    }
    if (head->bytes != bytes) {
        return bad(why, size, "it does not have the size that it says");
    }
    boot_read(boot);
    if (memcmp(head->boot, boot, sizeof boot) != 0) {
        return LOOK_STALE;
    }
    return head->fingerprint == want_fingerprint(want) ? LOOK_GOOD : LOOK_CHANGED;
}

/* A file that was found, in memory; fd -1: none. */
struct mapping {
    int fd;
    unsigned char *memory;
    size_t bytes;
    struct head head; /* checked, and then no longer read from the file */
};

static bool mapping_make(struct mapping *map, int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    map->fd = fd;
    map->memory = memory;
    map->bytes = bytes;
    return true;
}

static void mapping_drop(struct mapping *map)
{
    if (map->fd >= 0) {
        (void)munmap(map->memory, map->bytes);
        close(map->fd);
        map->fd = -1;
    }
}

/* Looks at an open file and maps it, if it is good or only made for other numbers. */
static enum look look(const struct shared *shared, int fd, struct mapping *map, becalm_ns now, char *why, size_t size)
{
    size_t bytes = 0;
    struct shared_want stored = {.name = shared->want.name};
    if (look_at_file(shared->directory, fd, &bytes, why, size) == LOOK_BAD) {
        return LOOK_BAD;
    }
    if (pread(fd, &map->head, sizeof map->head, 0) != (ssize_t)sizeof map->head) {
        return bad(why, size, "it can't be read");
    }
    enum look found = look_at_head(&map->head, &shared->want, bytes, why, size);
    if (found == LOOK_STALE || found == LOOK_OLDER || found == LOOK_BAD) {
        return found;
    }
    if (!stored_policy(&map->head, &stored)) {
        return bad(why, size, "its head is damaged");
    }
    if (!mapping_make(map, fd, bytes)) {
        return refused(why, size);
    }
    if (!want_sound(&stored, map->memory, now)) {
        (void)munmap(map->memory, map->bytes);
        map->fd = -1;
        return bad(why, size, "its contents are damaged");
    }
    return found;
}

static enum look look_up(const struct shared *shared, struct mapping *map, becalm_ns now, char *why, size_t size)
{
    map->fd = -1;
    int fd = openat(shared->directory->fd, shared->file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ELOOP || errno == EISDIR)) {
        return bad(why, size, errno == ELOOP ? "it is a link" : "it is a directory");
    }
    if (fd < 0) {
        return errno == ENOENT ? LOOK_ABSENT : refused(why, size);
    }
    enum look found = look(shared, fd, map, now, why, size);
    if (map->fd < 0) {
        close(fd);
    }
    return found;
}

/* ---- making a new one ---- */

/* Another process holds the lock for less than a millisecond, unless it was stopped in that very moment: so nobody
 * waits for ever. */
static bool lock(const struct directory *directory, int how)
{
    const struct timespec pause = {.tv_nsec = (long)LOCK_PAUSE};
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(directory->fd, how | LOCK_NB) == 0) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static void unlock(const struct directory *directory)
{
    (void)flock(directory->fd, LOCK_UN);
}

#define LOCKED "another process has locked it and does not come to an end"

/* The whole file in memory; `from` is the mapped one that it replaces, or NULL. */
static void image_make(unsigned char *image, const struct shared_want *want, const unsigned char *from, becalm_ns now)
{
    struct head *head = (struct head *)image;
    memset(image, 0, want_bytes(want));
    memcpy(head->magic, MAGIC, sizeof head->magic);
    head->version = VERSION;
    head->kind = want_kind(want);
    head->bytes = want_bytes(want);
    head->fingerprint = want_fingerprint(want);
    boot_read(head->boot);
    const struct head *old = (const struct head *)from;
    if (want->budget != NULL) {
        head->policy.budget = *want->budget;
        struct becalm_budget *to = becalm_budget_init(image + HEAD_BYTES, want->budget, CELLS);
        if (from != NULL) {
            becalm_budget_carry(to, want->budget, (const struct becalm_budget *)(from + HEAD_BYTES),
                                &old->policy.budget, now);
        }
    } else {
        head->policy.breaker = *want->breaker;
        struct becalm_breaker *to = becalm_breaker_init(image + HEAD_BYTES, want->breaker, CELLS);
        if (from != NULL) {
            becalm_breaker_carry(to, (const struct becalm_breaker *)(from + HEAD_BYTES));
        }
    }
}

/* A new file, of ours alone or of the directory's group, whatever the umask says. */
static int image_create(const struct directory *directory)
{
    (void)unlinkat(directory->fd, NEW_FILE, 0); /* of one who was killed here */
    int fd = openat(directory->fd, NEW_FILE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && directory->group_shared && (fchown(fd, (uid_t)-1, directory->group) != 0 || fchmod(fd, 0660) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int image_write(const struct shared *shared, const unsigned char *image, size_t bytes)
{
    int directory = shared->directory->fd;
    int fd = image_create(shared->directory);
    if (fd < 0) {
        return -1;
    }
    /* Written, not mapped: a file system that is full says so, instead of killing us. */
    ssize_t written = write(fd, image, bytes);
    if (written != (ssize_t)bytes || renameat(directory, NEW_FILE, directory, shared->file) != 0) {
        errno = written >= 0 && written != (ssize_t)bytes ? ENOSPC : errno;
        close(fd);
        return -1;
    }
    return fd;
}

/* Puts a new file in the place of none or of `map`, and becomes that. Under the lock. */
static bool replace(const struct shared *shared, struct mapping *map, becalm_ns now, char *why, size_t size)
{
    size_t bytes = want_bytes(&shared->want);
    unsigned char *image = aligned_alloc(64, (bytes + 63) / 64 * 64);
    int fd = -1;
    if (image != NULL) {
        image_make(image, &shared->want, map->fd >= 0 ? map->memory : NULL, now);
        memcpy(&map->head, image, sizeof map->head);
        fd = image_write(shared, image, bytes);
    }
    mapping_drop(map);
    free(image);
    if (fd < 0 || !mapping_make(map, fd, bytes)) {
        (void)snprintf(why, size, "it can't be made: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    return true;
}

/* ---- opening ---- */

/* Finds the file, or makes it. In use, other numbers than ours are taken as they are: who came with them knew ours. */
static bool find_or_make(struct shared *shared, struct mapping *map, becalm_ns now, char *why, size_t size)
{
    switch (look_up(shared, map, now, why, size)) {
    case LOOK_GOOD:
        return true;
    case LOOK_ABSENT:
    case LOOK_STALE:
        shared->news = SHARED_MADE;
        return replace(shared, map, now, why, size);
    case LOOK_OLDER:
        shared->news = SHARED_RENEWED;
        return replace(shared, map, now, why, size);
    case LOOK_CHANGED:
        if (shared->memory != NULL) {
            return true;
        }
        shared->news = SHARED_CHANGED;
        return replace(shared, map, now, why, size);
    case LOOK_BAD:
        return false;
    }
    BECALM_UNREACHABLE();
}

static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page;
}

/* Makes the mapping ours; in use, in the place of the one before, because the call in progress knows that address. */
static bool settle(struct shared *shared, struct mapping *map, char *why, size_t size)
{
    bool budget = shared->want.budget != NULL;
    if (shared->memory == NULL) {
        shared->memory = map->memory;
    } else if (pages(map->bytes) != pages(shared->bytes) ||
               (budget && map->head.policy.budget.kind != shared->budget.kind)) {
        (void)snprintf(why, size, "another process has changed its kind or size");
        mapping_drop(map);
        return false;
    } else {
        void *memory = mmap(shared->memory, map->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, map->fd, 0);
        BECALM_ASSERT(memory == shared->memory); /* replacing a mapping by one of the same size needs nothing new */
        (void)munmap(map->memory, map->bytes);
        close(shared->fd);
    }
    shared->fd = map->fd;
    shared->bytes = map->bytes;
    memcpy(shared->head, &map->head, sizeof map->head);
    if (budget) {
        shared->budget = map->head.policy.budget;
    } else {
        shared->breaker = map->head.policy.breaker;
    }
    return true;
}

/* The lock only if there is something to make: a thousand jobs that start at once find what is there without it. */
static bool attach(struct shared *shared, becalm_ns now, char *why, size_t size)
{
    struct mapping map;
    bool in_use = shared->memory != NULL;
    enum look found = look_up(shared, &map, now, why, size);
    if (found == LOOK_BAD) {
        return false;
    }
    if (found != LOOK_GOOD && !(in_use && found == LOOK_CHANGED)) {
        mapping_drop(&map);
        if (!lock(shared->directory, LOCK_EX)) {
            (void)snprintf(why, size, LOCKED);
            return false;
        }
        bool fine = find_or_make(shared, &map, now, why, size); /* another process may have been faster */
        unlock(shared->directory);
        if (!fine) {
            return false;
        }
    }
    return settle(shared, &map, why, size);
}

int shared_open(struct shared *shared, const struct shared_want *want, const struct directory *directory, becalm_ns now,
                char *why, size_t size)
{
    memset(shared, 0, sizeof *shared);
    shared->fd = -1;
    shared->directory = directory;
    shared->want.name = want->name;
    if (want->budget != NULL) {
        shared->budget = *want->budget;
        shared->want.budget = &shared->budget;
    } else {
        shared->breaker = *want->breaker;
        shared->want.breaker = &shared->breaker;
    }
    file_name(want, shared->file, sizeof shared->file);
    (void)snprintf(shared->path, sizeof shared->path, "%s/%s", directory->path, shared->file);
    return attach(shared, now, why, size) ? 0 : BECALM_EIO;
}

/* ---- using it ---- */

struct becalm_budget *shared_budget(const struct shared *shared)
{
    BECALM_ASSERT(shared->memory != NULL && shared->want.budget != NULL);
    return (struct becalm_budget *)(shared->memory + HEAD_BYTES);
}

struct becalm_breaker *shared_breaker(const struct shared *shared)
{
    BECALM_ASSERT(shared->memory != NULL && shared->want.breaker != NULL);
    return (struct becalm_breaker *)(shared->memory + HEAD_BYTES);
}

/* Private memory in the same place, as after init. */
static void lose(struct shared *shared, const char *why)
{
    (void)snprintf(shared->lost, sizeof shared->lost, "%s", why);
    close(shared->fd);
    shared->fd = -1;
    void *memory =
        mmap(shared->memory, shared->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    BECALM_ASSERT(memory == shared->memory); /* replacing a mapping by one of the same size needs nothing new */
    if (shared->want.budget != NULL) {
        (void)becalm_budget_init(shared->memory + HEAD_BYTES, shared->want.budget, CELLS);
    } else {
        (void)becalm_breaker_init(shared->memory + HEAD_BYTES, shared->want.breaker, CELLS);
    }
}

/* Is it still the file of that name? */
static bool is_in_place(const struct shared *shared, const struct stat *ours)
{
    struct stat named;
    return fstatat(shared->directory->fd, shared->file, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_ino == ours->st_ino && named.st_dev == ours->st_dev;
}

/* What is wrong with the file that we have in use; NULL: nothing. Touching memory whose file was cut short would kill
 * us, so that is asked first. */
static const char *damage_of(const struct shared *shared, const struct stat *ours, becalm_ns now)
{
    if (ours->st_size < (off_t)shared->bytes) {
        return "it was cut short while in use";
    }
    if (memcmp(shared->memory, shared->head, sizeof(struct head)) != 0 ||
        !want_sound(&shared->want, shared->memory, now)) {
        return "it was damaged while in use";
    }
    return NULL;
}

/* Under the lock. Returns those that are no longer in their place; `lost` gets those that can't be used. */
static uint32_t check_all(struct shared *shared, uint32_t count, becalm_ns now, uint32_t *lost)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct stat ours;
        if (shared[i].fd < 0) {
            continue;
        }
        if (fstat(shared[i].fd, &ours) != 0 || !is_in_place(&shared[i], &ours)) {
            moved |= 1u << i;
            continue;
        }
        const char *damage = damage_of(&shared[i], &ours, now);
        if (damage != NULL) {
            lose(&shared[i], damage);
            *lost |= 1u << i;
        }
    }
    return moved;
}

/* Those of `which` that are in use. */
static uint32_t lose_all(struct shared *shared, uint32_t count, uint32_t which, const char *why)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < count; i++) {
        if ((which >> i & 1) != 0 && shared[i].fd >= 0) {
            lose(&shared[i], why);
            lost |= 1u << i;
        }
    }
    return lost;
}

uint32_t shared_hold(struct shared *shared, uint32_t count, becalm_ns now)
{
    uint32_t lost = 0;
    uint32_t moved = 0;
    for (int try = 0; count > 0 && try < HOLD_TRIES; try++) {
        if (!lock(shared[0].directory, LOCK_SH)) {
            return lost | lose_all(shared, count, UINT32_MAX, LOCKED);
        }
        moved = check_all(shared, count, now, &lost);
        if (moved == 0) {
            return lost;
        }
        unlock(shared[0].directory);
        for (uint32_t i = 0; i < count; i++) {
            char why[sizeof shared[i].lost];
            if ((moved >> i & 1) != 0 && !attach(&shared[i], now, why, sizeof why)) {
                lose(&shared[i], why);
                lost |= 1u << i;
            }
        }
    }
    return lost | lose_all(shared, count, moved, "it is replaced again and again");
}

void shared_release(const struct shared *shared, uint32_t count)
{
    if (count > 0) {
        unlock(shared[0].directory);
    }
}

void shared_close(struct shared *shared)
{
    if (shared == NULL || shared->memory == NULL) {
        return;
    }
    (void)munmap(shared->memory, shared->bytes);
    shared->memory = NULL;
    if (shared->fd >= 0) {
        close(shared->fd);
        shared->fd = -1;
    }
}
