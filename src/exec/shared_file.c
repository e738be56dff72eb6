/* SPDX-License-Identifier: MIT */
/* Finding a shared file, looking whether it may be used, and making a new one. */
#define _GNU_SOURCE
#include "shared_internal.h"

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

#define NEW_FILE ".new" /* written under the lock, then renamed, so no process sees half a file */

#define LOCK_TRIES 2000
#define LOCK_PAUSE (1 * BECALM_MS)

/* ---- its name ---- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static const char *kind_suffix(const struct shared_want *want)
{
    return want->budget != NULL ? ".budget" : want->breaker != NULL ? ".breaker" : ".lease";
}

/* "pay/charge" becomes "pay%2Fcharge.budget": any name is one file, and two names never the same. */
void shared_file_name(struct shared *shared)
{
    const struct shared_want *want = &shared->want;
    char *out = shared->file;
    const size_t size = sizeof shared->file;
    size_t length = 0;
    for (const char *at = want->name; *at != '\0' && length + 4 < size; at++) {
        if (is_plain(*at) || (*at == '.' && at > want->name)) {
            out[length++] = *at;
        } else {
            length += (size_t)snprintf(out + length, size - length, "%%%02X", (unsigned)(unsigned char)*at);
        }
    }
    (void)snprintf(out + length, size - length, "%s", kind_suffix(want));
    (void)snprintf(shared->path, sizeof shared->path, "%s/%s", shared->directory->path, shared->file);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *shared_name_read(const char *file, char name[SHARED_NAME_MAX + 1])
{
    static const char *const kinds[] = {"budget", "breaker", "lease"};
    const char *dot = strrchr(file, '.');
    const char *kind = NULL;
    size_t length = 0;
    for (size_t i = 0; dot != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        kind = strcmp(dot + 1, kinds[i]) == 0 ? kinds[i] : kind;
    }
    for (const char *at = file; kind != NULL && at < dot; at++) {
        bool coded = *at == '%' && hex(at[1]) >= 0 && hex(at[2]) >= 0;
        if (length == SHARED_NAME_MAX || (!coded && !is_plain(*at) && (*at != '.' || at == file))) {
            return NULL;
        }
        name[length++] = coded ? (char)(hex(at[1]) * 16 + hex(at[2])) : *at;
        at += coded ? 2 : 0;
    }
    name[length] = '\0';
    return length == 0 || strlen(name) != length ? NULL : kind;
}

/* ---- examining the present file ---- */

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
    if (status.st_size < (off_t)SHARED_HEAD) {
        return bad(why, size, "it is too short");
    }
    *bytes = (size_t)status.st_size;
    return LOOK_GOOD;
}

/* A file that was found, in memory; fd -1: none. */
struct mapping {
    int fd;
    unsigned char *memory;
    size_t bytes;
    struct shared_head head; /* checked, and then no longer read from the file */
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
    const char *damage;
    struct shared_want stored = {.name = shared->want.name};
    if (look_at_file(shared->directory, fd, &bytes, why, size) == LOOK_BAD) {
        return LOOK_BAD;
    }
    if (pread(fd, &map->head, sizeof map->head, 0) != (ssize_t)sizeof map->head) {
        return bad(why, size, "it can't be read");
    }
    enum look found = shared_head_look(&map->head, &shared->want, bytes, &damage);
    if (found == LOOK_BAD) {
        return bad(why, size, damage);
    }
    if (found == LOOK_STALE || found == LOOK_OLDER) {
        return found;
    }
    if (!shared_head_want(&map->head, &stored)) {
        return bad(why, size, "its head is damaged");
    }
    if (!mapping_make(map, fd, bytes)) {
        return refused(why, size);
    }
    if (!shared_image_sound(map->memory, &stored, now)) {
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

/* ---- the directory's lock ---- */

/* Another process holds the lock for less than a millisecond, unless it was stopped in that very moment: so no process
 * waits for ever. */
bool shared_lock(const struct directory *directory, int how)
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

void shared_unlock(const struct directory *directory)
{
    (void)flock(directory->fd, LOCK_UN);
}

/* ---- making a new one ---- */

/* A new file, for us alone or for the directory's group; the umask is ignored. */
static int image_create(const struct directory *directory)
{
    (void)unlinkat(directory->fd, NEW_FILE, 0); /* left by a process that was killed here */
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
    size_t bytes = shared_image_bytes(&shared->want);
    unsigned char *image = aligned_alloc(64, (bytes + 63) / 64 * 64);
    int fd = -1;
    if (image != NULL) {
        shared_image_make(image, &shared->want, map->fd >= 0 ? map->memory : NULL, now);
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

/* Finds the file, or makes it. In use, other numbers than ours are taken as they are: the process that set them knew
 * ours. */
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
    } else if (shared->want.breaker != NULL) {
        shared->breaker = map->head.policy.breaker;
    } else {
        shared->lease = map->head.policy.lease;
    }
    return true;
}

/* Takes the lock only if a file must be made: a thousand jobs that start at once open the present file without it. */
bool shared_attach(struct shared *shared, becalm_ns now, char *why, size_t size)
{
    struct mapping map;
    bool in_use = shared->memory != NULL;
    enum look found = look_up(shared, &map, now, why, size);
    if (found == LOOK_BAD) {
        return false;
    }
    if (found != LOOK_GOOD && !(in_use && found == LOOK_CHANGED)) {
        mapping_drop(&map);
        if (!shared_lock(shared->directory, LOCK_EX)) {
            (void)snprintf(why, size, SHARED_LOCKED);
            return false;
        }
        bool fine = find_or_make(shared, &map, now, why, size); /* another process may have been faster */
        shared_unlock(shared->directory);
        if (!fine) {
            return false;
        }
    }
    return settle(shared, &map, why, size);
}

bool shared_attach_found(struct shared *shared, becalm_ns now, char *why, size_t size)
{
    struct mapping map;
    switch (look_up(shared, &map, now, why, size)) {
    case LOOK_GOOD:
    case LOOK_CHANGED:
        return settle(shared, &map, why, size);
    case LOOK_ABSENT:
        (void)snprintf(why, size, "%s", strerror(ENOENT));
        return false;
    case LOOK_STALE:
        (void)snprintf(why, size, "it is from before the last boot, and begins anew");
        return false;
    case LOOK_OLDER:
        (void)snprintf(why, size, "it is of an older version of becalm, and begins anew");
        return false;
    case LOOK_BAD:
        return false;
    }
    BECALM_UNREACHABLE();
}
