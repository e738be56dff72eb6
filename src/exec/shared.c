/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "shared_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLD_TRIES 100 /* a file that is replaced under us so often in a row is not meant to be used */

static void begin(struct shared *shared, const struct shared_want *want, const struct directory *directory)
{
    memset(shared, 0, sizeof *shared);
    shared->fd = -1;
    shared->directory = directory;
    shared->want.name = want->name;
    if (want->budget != NULL) {
        shared->budget = *want->budget;
        shared->want.budget = &shared->budget;
    } else if (want->breaker != NULL) {
        shared->breaker = *want->breaker;
        shared->want.breaker = &shared->breaker;
    } else {
        shared->lease = *want->lease;
        shared->want.lease = &shared->lease;
    }
    shared_file_name(shared);
}

int shared_open(struct shared *shared, const struct shared_want *want, const struct directory *directory, becalm_ns now,
                char *why, size_t size)
{
    begin(shared, want, directory);
    return shared_attach(shared, now, why, size) ? 0 : BECALM_EIO;
}

int shared_see(struct shared *shared, const struct shared_want *want, const struct directory *directory, becalm_ns now,
               char *why, size_t size)
{
    begin(shared, want, directory);
    return shared_attach_found(shared, now, why, size) ? 0 : BECALM_EIO;
}

struct becalm_budget *shared_budget(const struct shared *shared)
{
    BECALM_ASSERT(shared->memory != NULL && shared->want.budget != NULL);
    return (struct becalm_budget *)(shared->memory + SHARED_HEAD);
}

struct becalm_breaker *shared_breaker(const struct shared *shared)
{
    BECALM_ASSERT(shared->memory != NULL && shared->want.breaker != NULL);
    return (struct becalm_breaker *)(shared->memory + SHARED_HEAD);
}

struct becalm_lease *shared_lease(const struct shared *shared)
{
    BECALM_ASSERT(shared->memory != NULL && shared->want.lease != NULL);
    return (struct becalm_lease *)(shared->memory + SHARED_HEAD);
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
    shared_image_init(shared->memory, &shared->want);
}

/* Is it still the file of that name? */
static bool is_in_place(const struct shared *shared, const struct stat *ours)
{
    struct stat named;
    return fstatat(shared->directory->fd, shared->file, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_ino == ours->st_ino && named.st_dev == ours->st_dev;
}

/* The damage of the file that is in use; NULL: none. Touching mapped memory whose file was truncated would kill us, so
 * the size is checked first. */
static const char *damage_of(const struct shared *shared, const struct stat *ours, becalm_ns now)
{
    if (ours->st_size < (off_t)shared->bytes) {
        return "it was cut short while in use";
    }
    if (memcmp(shared->memory, shared->head, sizeof(struct shared_head)) != 0 ||
        !shared_image_sound(shared->memory, &shared->want, now)) {
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
        if (!shared_lock(shared[0].directory, LOCK_SH)) {
            return lost | lose_all(shared, count, UINT32_MAX, SHARED_LOCKED);
        }
        moved = check_all(shared, count, now, &lost);
        if (moved == 0) {
            return lost;
        }
        shared_unlock(shared[0].directory);
        for (uint32_t i = 0; i < count; i++) {
            char why[sizeof shared[i].lost];
            if ((moved >> i & 1) != 0 && !shared_attach(&shared[i], now, why, sizeof why)) {
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
        shared_unlock(shared[0].directory);
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
