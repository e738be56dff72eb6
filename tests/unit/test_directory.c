/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exec/directory.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/check.h"

static void test_directory__the_default_has_places_of_the_session_first(void **state)
{
    (void)state;
    char path[DIRECTORY_PATH_MAX];
    check_true(directory_default(path, 0, "/run/user/0", 0));
    check_eq_str(path, "/run/becalm-exec");
    check_true(!directory_default(path, 0, NULL, 1));
    check_true(directory_default(path, 1000, "/elsewhere/1000", 0));
    check_eq_str(path, "/elsewhere/1000/becalm");
    check_true(directory_default(path, 1000, "not/absolute", 0));
    check_eq_str(path, "/run/user/1000/becalm");
    check_true(directory_default(path, 1000, NULL, 0));
    check_eq_str(path, "/run/user/1000/becalm");
    check_true(directory_default(path, 1000, NULL, 1));
    check_eq_str(path, "/tmp/becalm-1000");
    check_true(directory_default(path, 1000, NULL, 2));
    check_eq_str(path, "/tmp/becalm-1000.1");
    check_true(!directory_default(path, 1000, NULL, DIRECTORY_PLACES));
}

static void test_directory__a_named_one_is_this_user_s_alone_or_of_a_group(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool used;
        bool group;
    } rows[] = {
        {0700, true, false},   {02770, true, true},   {0770, true, true},   {0755, false, false}, {0750, false, false},
        {03770, false, false}, {02775, false, false}, {0777, false, false}, {0701, false, false}, {0760, false, false},
    };
    char path[] = "/tmp/test_directory.XXXXXX";
    char why[256];
    assert_non_null(mkdtemp(path));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct directory directory;
        check_eq_u64((uint64_t)chmod(path, rows[i].mode), 0);
        check_true(directory_open(&directory, path, why, sizeof why) == rows[i].used);
        check_true(directory.group_shared == rows[i].group || !rows[i].used);
        check_true((directory.fd >= 0) == rows[i].used);
        directory_close(&directory);
    }
    check_eq_u64((uint64_t)rmdir(path), 0);
}

static void test_directory__links_strangers_and_what_is_not_there_are_refused(void **state)
{
    (void)state;
    char path[] = "/tmp/test_directory.XXXXXX";
    char link[sizeof path + 8];
    char why[256];
    struct directory directory;
    assert_non_null(mkdtemp(path));
    (void)snprintf(link, sizeof link, "%s.link", path);
    check_eq_u64((uint64_t)symlink(path, link), 0);
    check_true(!directory_open(&directory, link, why, sizeof why));
    check_eq_u64((uint64_t)unlink(link), 0);
    if (geteuid() == 0) { /* only root can give it away; its new owner could change it at will */
        check_eq_u64((uint64_t)chown(path, 65534, 65534), 0);
        check_true(!directory_open(&directory, path, why, sizeof why));
        check_eq_u64((uint64_t)chmod(path, 02770), 0);
        check_true(!directory_open(&directory, path, why, sizeof why));
    }
    check_eq_u64((uint64_t)rmdir(path), 0);
    check_true(!directory_open(&directory, path, why, sizeof why));
    check_eq_u64((uint64_t)access(path, F_OK), (uint64_t)-1); /* only the default one is made */
}

BECALM_TESTS(cmocka_unit_test(test_directory__the_default_has_places_of_the_session_first),
             cmocka_unit_test(test_directory__a_named_one_is_this_user_s_alone_or_of_a_group),
             cmocka_unit_test(test_directory__links_strangers_and_what_is_not_there_are_refused))
