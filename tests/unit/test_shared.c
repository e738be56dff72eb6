/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exec/shared.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/check.h"

#define THREADS 8
#define NOW     (1000 * BECALM_S) /* any instant will do */

/* A directory of its own for every test. */
struct fixture {
    char path[64];
    struct directory directory;
    struct becalm_budget_policy budget;
    struct becalm_breaker_policy breaker;
    char why[256];
};

static void open_fixture(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    (void)snprintf(f->path, sizeof f->path, "/tmp/test_shared.XXXXXX");
    assert_non_null(mkdtemp(f->path));
    check_true(directory_open(&f->directory, f->path, f->why, sizeof f->why));
    becalm_budget_defaults(&f->budget, BECALM_BUDGET_TOKENS);
    f->budget.capacity = 1000;
    f->budget.refill_per_second = 0;
    becalm_breaker_defaults(&f->breaker);
    f->breaker.mode = BECALM_BREAKER_CONSECUTIVE;
}

static void close_fixture(struct fixture *f)
{
    (void)unlinkat(f->directory.fd, "x.budget", 0);
    (void)unlinkat(f->directory.fd, "x.breaker", 0);
    directory_close(&f->directory);
    check_eq_u64((uint64_t)rmdir(f->path), 0); /* nothing else was left behind */
}

static int open_budget(struct fixture *f, struct shared *shared)
{
    return shared_open(shared, &(struct shared_want){.name = "x", .budget = &f->budget}, &f->directory, NOW, f->why,
                       sizeof f->why);
}

static int open_breaker(struct fixture *f, struct shared *shared)
{
    return shared_open(shared, &(struct shared_want){.name = "x", .breaker = &f->breaker}, &f->directory, NOW, f->why,
                       sizeof f->why);
}

/* Takes as many as there are, and says how many that was. */
static uint64_t take_all(const struct shared *shared, const struct becalm_budget_policy *policy)
{
    struct becalm_moment at = {.now = NOW};
    uint64_t taken = 0;
    for (;;) {
        struct becalm_spend spend = {.held = false};
        if (!becalm_budget_take(shared_budget(shared), policy, &at, BECALM_OUTCOME_BROKEN, &spend)) {
            return taken;
        }
        taken++;
    }
}

static void test_shared__is_made_full_and_found_as_it_was_left(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    check_eq_u64(shared.news, SHARED_MADE);
    check_eq_u64(take_all(&shared, &f.budget), 1000);
    shared_close(&shared);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    check_eq_u64(shared.news, SHARED_FOUND);
    check_eq_u64(take_all(&shared, &f.budget), 0);
    shared_close(&shared);
    shared_close(&shared); /* harmless */
    close_fixture(&f);
}

struct racer {
    struct fixture *f;
    pthread_barrier_t *start;
    pthread_t thread;
    struct directory directory;
    uint64_t taken;
};

/* Each has a mapping of its own, at an address of its own, as processes do. */
static void *race(void *data)
{
    struct racer *r = data;
    struct fixture f = *r->f;
    struct shared shared;
    f.directory = r->directory;
    (void)pthread_barrier_wait(r->start);
    if (open_budget(&f, &shared) == 0) {
        r->taken = take_all(&shared, &f.budget);
        shared_close(&shared);
    }
    return NULL;
}

/* Threads that open it at the same time; the lock is between descriptors, so each has one of its own. */
static uint64_t race_all(struct fixture *f)
{
    pthread_barrier_t start;
    struct racer racers[THREADS];
    uint64_t taken = 0;
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.f = f, .start = &start, .directory = f->directory};
        racers[i].directory.fd = open(f->path, O_RDONLY | O_DIRECTORY);
        check_eq_u64((uint64_t)pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(racers[i].thread, NULL);
        directory_close(&racers[i].directory);
        taken += racers[i].taken;
    }
    pthread_barrier_destroy(&start);
    return taken;
}

static void test_shared__whoever_makes_it_first_there_is_one_budget(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        struct fixture f;
        open_fixture(&f);
        check_eq_u64(race_all(&f), 1000);
        close_fixture(&f);
    }
}

static void test_shared__whoever_comes_with_new_numbers_first_what_was_spent_stays_spent(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    check_eq_u64(take_all(&shared, &f.budget), 1000);
    shared_close(&shared);
    f.budget.capacity = 500;
    check_eq_u64(race_all(&f), 0);
    close_fixture(&f);
}

static void test_shared__a_process_that_dies_in_the_middle_leaves_it_usable(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    open_fixture(&f);
    f.budget.capacity = 1000000;
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct shared own;
        if (open_budget(&f, &own) == 0) {
            struct becalm_spend spend = {.held = false};
            struct becalm_moment at = {.now = NOW};
            while (becalm_budget_take(shared_budget(&own), &f.budget, &at, BECALM_OUTCOME_BROKEN, &spend)) {
                becalm_budget_give(shared_budget(&own), &f.budget, &at, &spend, BECALM_SPEND_UNUSED);
            }
        }
        _exit(0);
    }
    check_true(pid > 0);
    while (becalm_budget_left(shared_budget(&shared), &f.budget, NOW) == 1000000 * (uint64_t)BECALM_TOKEN) {
    }
    check_eq_u64((uint64_t)kill(pid, SIGKILL), 0);
    check_eq_u64((uint64_t)waitpid(pid, NULL, 0), (uint64_t)pid);
    check_between_u64(take_all(&shared, &f.budget), 999999, 1000000);
    shared_close(&shared);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    shared_close(&shared);
    close_fixture(&f);
}

static void test_shared__a_breaker_opened_by_one_is_open_for_the_next(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    struct becalm_moment at = {.now = NOW};
    open_fixture(&f);
    check_eq_u64((uint64_t)open_breaker(&f, &shared), 0);
    for (unsigned i = 0; i < f.breaker.failure_threshold; i++) {
        struct becalm_permit permit = {.held = false};
        check_true(becalm_breaker_admit(shared_breaker(&shared), &f.breaker, &at, &permit));
        becalm_breaker_note(shared_breaker(&shared), &f.breaker, &at, &permit, BECALM_VERDICT_FAILED, 0);
    }
    shared_close(&shared);
    check_eq_u64((uint64_t)open_breaker(&f, &shared), 0);
    check_eq_u64(becalm_breaker_state(shared_breaker(&shared)), BECALM_BREAKER_OPEN);
    shared_close(&shared);
    f.breaker.failure_threshold++;
    check_eq_u64((uint64_t)open_breaker(&f, &shared), 0);
    check_eq_u64(shared.news, SHARED_CHANGED);
    check_eq_u64(becalm_breaker_state(shared_breaker(&shared)), BECALM_BREAKER_OPEN);
    shared_close(&shared);
    close_fixture(&f);
}

static void byte_flip(const struct fixture *f, const char *name, off_t at, unsigned char flip)
{
    unsigned char byte;
    int fd = openat(f->directory.fd, name, O_RDWR);
    check_true(fd >= 0);
    check_eq_u64((uint64_t)pread(fd, &byte, 1, at), 1);
    byte ^= flip;
    check_eq_u64((uint64_t)pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Calls every function on it; whatever they return, none may crash or hang. */
static void use(struct fixture *f, bool budget)
{
    struct becalm_moment at = {.now = NOW};
    struct shared shared;
    if ((budget ? open_budget(f, &shared) : open_breaker(f, &shared)) != 0) {
        check_true(f->why[0] != '\0');
        return;
    }
    if (budget) {
        struct becalm_spend spend = {.held = false};
        becalm_budget_begin(shared_budget(&shared), &f->budget, &at);
        (void)becalm_budget_take(shared_budget(&shared), &f->budget, &at, BECALM_OUTCOME_BROKEN, &spend);
        becalm_budget_give(shared_budget(&shared), &f->budget, &at, &spend, BECALM_SPEND_UNUSED);
        (void)becalm_budget_left(shared_budget(&shared), &f->budget, NOW);
    } else {
        struct becalm_permit permit = {.held = false};
        (void)becalm_breaker_peek(shared_breaker(&shared), NOW);
        (void)becalm_breaker_admit(shared_breaker(&shared), &f->breaker, &at, &permit);
        becalm_breaker_note(shared_breaker(&shared), &f->breaker, &at, &permit, BECALM_VERDICT_FAILED, 0);
    }
    shared_close(&shared);
}

static void flip_every_byte(struct fixture *f, bool budget)
{
    const char *name = budget ? "x.budget" : "x.breaker";
    struct stat status;
    use(f, budget);
    check_eq_u64((uint64_t)fstatat(f->directory.fd, name, &status, 0), 0);
    for (off_t at = 0; at < status.st_size; at++) {
        (void)unlinkat(f->directory.fd, name, 0);
        use(f, budget);
        byte_flip(f, name, at, 0xff);
        use(f, budget);
    }
}

static void test_shared__no_damaged_byte_can_do_harm(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    flip_every_byte(&f, true);
    flip_every_byte(&f, false);
    f.breaker.mode = BECALM_BREAKER_RATE;
    f.breaker.window_kind = BECALM_WINDOW_COUNT;
    (void)unlinkat(f.directory.fd, "x.breaker", 0);
    flip_every_byte(&f, false);
    becalm_budget_defaults(&f.budget, BECALM_BUDGET_EARNED);
    (void)unlinkat(f.directory.fd, "x.budget", 0);
    flip_every_byte(&f, true);
    close_fixture(&f);
}

static void test_shared__what_would_lead_out_of_the_memory_or_never_end_is_refused(void **state)
{
    (void)state;
    static const struct {
        bool budget;
        off_t at;
    } rows[] = {
        {true, 256 + 7},       /* tokens taken: more than there ever were */
        {true, 256 + 64 + 20}, /* the window's slices */
        {true, 256 + 64 + 48}, /* its hint, which is used as an index */
        {false, 256},          /* a state that is none */
        {false, 256 + 64 + 4}, /* the window's size */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        struct shared shared;
        open_fixture(&f);
        use(&f, rows[i].budget);
        byte_flip(&f, rows[i].budget ? "x.budget" : "x.breaker", rows[i].at, 0xff);
        check_true((rows[i].budget ? open_budget(&f, &shared) : open_breaker(&f, &shared)) == BECALM_EIO);
        check_eq_str(f.why, "its contents are damaged (remove it to begin anew)");
        close_fixture(&f);
    }
}

static uint32_t hold(struct shared *shared)
{
    uint32_t lost = shared_hold(shared, 1, NOW);
    shared_release(shared, 1);
    return lost;
}

static uint64_t take_some(const struct shared *shared, unsigned most)
{
    struct becalm_moment at = {.now = NOW};
    uint64_t taken = 0;
    for (unsigned i = 0; i < most; i++) {
        struct becalm_spend spend = {.held = false};
        taken += becalm_budget_take(shared_budget(shared), &shared->budget, &at, BECALM_OUTCOME_BROKEN, &spend);
    }
    return taken;
}

static void test_shared__a_file_that_is_removed_in_use_is_made_anew_for_all(void **state)
{
    (void)state;
    struct fixture f;
    struct shared first;
    struct shared second;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &first), 0);
    check_eq_u64((uint64_t)open_budget(&f, &second), 0);
    const unsigned char *place = first.memory;
    check_eq_u64(take_some(&first, 400), 400);
    check_eq_u64((uint64_t)unlinkat(f.directory.fd, "x.budget", 0), 0);
    check_eq_u64(hold(&first) | hold(&second), 0);
    check_true(first.memory == place);
    check_eq_u64(take_some(&first, 600), 600);
    check_eq_u64(take_all(&second, &f.budget), 400); /* one budget again, without the rest of the old one */
    shared_close(&first);
    shared_close(&second);
    close_fixture(&f);
}

static void test_shared__who_has_it_in_use_follows_new_numbers(void **state)
{
    (void)state;
    struct fixture f;
    struct shared first;
    struct shared second;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &first), 0);
    check_eq_u64(take_some(&first, 500), 500);
    f.budget.capacity = 100;
    check_eq_u64((uint64_t)open_budget(&f, &second), 0);
    check_eq_u64(second.news, SHARED_CHANGED);
    check_eq_u64(hold(&first), 0);
    check_eq_u64(first.budget.capacity, 100);
    check_eq_u64(take_some(&first, 1000), 50);
    check_eq_u64(take_some(&second, 1000), 0);
    shared_close(&first);
    shared_close(&second);
    close_fixture(&f);
}

static void test_shared__numbers_that_go_back_and_forth_make_no_tokens(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t taken = 0;
    open_fixture(&f);
    for (unsigned i = 0; i < 40; i++) {
        struct shared shared;
        f.budget.capacity = 5 + i % 2;
        check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
        taken += take_some(&shared, i % 2); /* 3 of 6 are 2.5 of 5: were that 3, it would go on for ever */
        shared_close(&shared);
    }
    check_between_u64(taken, 1, 6);
    close_fixture(&f);
}

static void test_shared__another_kind_or_size_in_use_is_lost(void **state)
{
    (void)state;
    struct fixture f;
    struct shared first;
    struct shared second;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &first), 0);
    becalm_budget_defaults(&f.budget, BECALM_BUDGET_EARNED);
    check_eq_u64((uint64_t)open_budget(&f, &second), 0);
    check_eq_u64(hold(&first), 1);
    check_eq_str(first.lost, "another process has changed its kind or size");
    check_eq_u64(hold(&second), 0);
    shared_close(&first);
    shared_close(&second);
    close_fixture(&f);
}

static void test_shared__a_file_damaged_in_use_is_used_no_longer(void **state)
{
    (void)state;
    static const off_t places[] = {0, 100, 256 + 7}; /* the magic, the policy, the tokens */
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct fixture f;
        struct shared shared;
        open_fixture(&f);
        check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
        byte_flip(&f, "x.budget", places[i], 0xff);
        check_eq_u64(hold(&shared), 1);
        check_eq_str(shared.lost, "it was damaged while in use");
        check_eq_u64(take_all(&shared, &f.budget), 1000); /* private memory, for a call that is about to end */
        shared_close(&shared);
        close_fixture(&f);
    }
}

static void test_shared__nobody_replaces_what_is_held(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    check_eq_u64(shared_hold(&shared, 1, NOW), 0);
    int other = open(f.path, O_RDONLY | O_DIRECTORY);
    check_true(flock(other, LOCK_EX | LOCK_NB) != 0); /* which a change of settings needs */
    check_true(flock(other, LOCK_SH | LOCK_NB) == 0); /* and a use needs this */
    shared_release(&shared, 1);
    check_true(flock(other, LOCK_EX | LOCK_NB) == 0);
    close(other);
    shared_close(&shared);
    close_fixture(&f);
}

static void test_shared__a_directory_of_a_group_has_files_of_the_group(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    struct stat status;
    open_fixture(&f);
    directory_close(&f.directory);
    check_eq_u64((uint64_t)chmod(f.path, 02770), 0);
    check_true(directory_open(&f.directory, f.path, f.why, sizeof f.why));
    mode_t mask = umask(077);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    (void)umask(mask);
    check_eq_u64((uint64_t)stat(shared.path, &status), 0);
    check_eq_u64(status.st_mode & 0777, 0660);
    check_eq_u64(status.st_gid, f.directory.group);
    shared_close(&shared);
    check_eq_u64((uint64_t)chmod(shared.path, 0664), 0);
    check_true(open_budget(&f, &shared) != 0);
    check_eq_str(f.why, "other users may open it (remove it to begin anew)");
    close_fixture(&f);
}

static void test_shared__a_file_cut_short_under_it_becomes_private_memory(void **state)
{
    (void)state;
    struct fixture f;
    struct shared shared;
    open_fixture(&f);
    check_eq_u64((uint64_t)open_budget(&f, &shared), 0);
    check_eq_u64(hold(&shared), 0);
    check_eq_u64((uint64_t)truncate(shared.path, 0), 0);
    check_eq_u64(hold(&shared), 1);
    check_eq_str(shared.lost, "it was cut short while in use");
    check_eq_u64(hold(&shared), 0); /* said once */
    check_eq_u64(take_all(&shared, &f.budget), 1000);
    shared_close(&shared);
    close_fixture(&f);
}

BECALM_TESTS(cmocka_unit_test(test_shared__is_made_full_and_found_as_it_was_left),
             cmocka_unit_test(test_shared__whoever_makes_it_first_there_is_one_budget),
             cmocka_unit_test(test_shared__whoever_comes_with_new_numbers_first_what_was_spent_stays_spent),
             cmocka_unit_test(test_shared__a_process_that_dies_in_the_middle_leaves_it_usable),
             cmocka_unit_test(test_shared__a_breaker_opened_by_one_is_open_for_the_next),
             cmocka_unit_test(test_shared__no_damaged_byte_can_do_harm),
             cmocka_unit_test(test_shared__what_would_lead_out_of_the_memory_or_never_end_is_refused),
             cmocka_unit_test(test_shared__a_file_that_is_removed_in_use_is_made_anew_for_all),
             cmocka_unit_test(test_shared__who_has_it_in_use_follows_new_numbers),
             cmocka_unit_test(test_shared__numbers_that_go_back_and_forth_make_no_tokens),
             cmocka_unit_test(test_shared__another_kind_or_size_in_use_is_lost),
             cmocka_unit_test(test_shared__a_file_damaged_in_use_is_used_no_longer),
             cmocka_unit_test(test_shared__nobody_replaces_what_is_held),
             cmocka_unit_test(test_shared__a_directory_of_a_group_has_files_of_the_group),
             cmocka_unit_test(test_shared__a_file_cut_short_under_it_becomes_private_memory))
