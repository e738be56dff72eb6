/* SPDX-License-Identifier: MIT */
/* The file of a shared budget, breaker or lease, overwritten in any places with any bytes: it is refused with a reason,
 * or it can be used without harm. The input is a list of {place, byte}; its first two bits say which of them. */
#define _GNU_SOURCE
#include "exec/shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW (1000 * BECALM_S)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void overwrite(int directory, const char *name, const uint8_t *data, size_t size)
{
    struct stat status;
    int fd = openat(directory, name, O_RDWR | O_CLOEXEC);
    BECALM_ASSERT(fd >= 0 && fstat(fd, &status) == 0);
    for (size_t i = 0; i + 3 <= size; i += 3) {
        off_t at = (data[i] | data[i + 1] << 8) % status.st_size;
        BECALM_ASSERT(pwrite(fd, &data[i + 2], 1, at) == 1);
    }
    close(fd);
}

static void use(const struct shared *shared)
{
    struct becalm_moment at = {.now = NOW};
    const struct shared_want *want = &shared->want;
    if (want->budget != NULL) {
        struct becalm_budget *budget = shared_budget(shared);
        struct becalm_spend spend = {.held = false};
        becalm_budget_begin(budget, want->budget, &at);
        (void)becalm_budget_take(budget, want->budget, &at, BECALM_OUTCOME_BROKEN, &spend);
        becalm_budget_give(budget, want->budget, &at, &spend, BECALM_SPEND_UNUSED);
    } else if (want->lease != NULL) {
        struct becalm_lease *lease = shared_lease(shared);
        struct becalm_lease_request request;
        struct becalm_lease_answer answer = {.granted = 1, .live = 1, .room = 1, .next = BECALM_S, .ttl = BECALM_S};
        becalm_lease_begin(lease, &at);
        (void)becalm_lease_take(lease, &at);
        becalm_lease_give(lease);
        if (becalm_lease_ask(lease, want->lease, &at, &request)) {
            answer.number = request.number;
            answer.granted += request.granted;
            (void)becalm_lease_answer(lease, NOW, &answer);
        }
        (void)becalm_lease_lost(lease, want->lease, &at, &request);
        becalm_lease_tend(lease, want->lease, &at);
    } else {
        struct becalm_breaker *breaker = shared_breaker(shared);
        struct becalm_permit permit = {.held = false};
        (void)becalm_breaker_admit(breaker, want->breaker, &at, &permit);
        becalm_breaker_note(breaker, want->breaker, &at, &permit, BECALM_VERDICT_FAILED, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_shared.XXXXXX";
    char why[256] = "";
    struct becalm_budget_policy budget;
    struct becalm_breaker_policy breaker;
    struct becalm_lease_policy lease;
    struct shared shared;
    bool is_budget = size > 0 && (data[0] & 1) != 0;
    bool is_lease = size > 0 && !is_budget && (data[0] & 2) != 0;
    becalm_budget_defaults(&budget, BECALM_BUDGET_TOKENS);
    becalm_breaker_defaults(&breaker);
    becalm_lease_defaults(&lease);
    struct shared_want want = {
        .name = "x",
        .budget = is_budget ? &budget : NULL,
        .breaker = is_budget || is_lease ? NULL : &breaker,
        .lease = is_lease ? &lease : NULL,
    };
    BECALM_ASSERT(mkdtemp(path) != NULL);
    struct directory directory;
    BECALM_ASSERT(directory_open(&directory, path, why, sizeof why));
    const char *name = is_budget ? "x.budget" : is_lease ? "x.lease" : "x.breaker";
    BECALM_ASSERT(shared_open(&shared, &want, &directory, NOW, why, sizeof why) == 0);
    shared_close(&shared);
    overwrite(directory.fd, name, data + (size > 0), size - (size > 0));
    if (shared_open(&shared, &want, &directory, NOW, why, sizeof why) == 0) {
        use(&shared);
        shared_close(&shared);
    } else {
        BECALM_ASSERT(why[0] != '\0');
    }
    (void)unlinkat(directory.fd, name, 0);
    directory_close(&directory);
    (void)rmdir(path);
    return 0;
}
