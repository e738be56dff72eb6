/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "check.h"
#include "gateway/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/becalm-confine-XXXXXX";

/* A process can't get its permissions back, so each claim runs in its own process; the return value is its exit
 * status. */
static int in_child(int (*claim)(void), bool dumpable)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        confine(dumpable);
        _exit(claim());
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const char *in_folder(const char *name)
{
    static char path[sizeof folder + 32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool has_landlock(void)
{
    return syscall(444, NULL, 0, 1) > 0; /* landlock_create_ruleset: which version? */
}

static int new_file(void)
{
    return open(in_folder("new"), O_WRONLY | O_CREAT, 0600) >= 0 ? 0 : errno;
}

static int old_file(void)
{
    return open(in_folder("old"), O_WRONLY) >= 0 ? 0 : errno;
}

static int program(void)
{
    execl("/bin/true", "true", (char *)NULL);
    return errno;
}

static void test_confine__nothing_is_written_and_no_program_started(void **state)
{
    (void)state;
    if (!has_landlock()) {
        skip();
    }
    assert_int_equal(in_child(new_file, false), EACCES);
    assert_int_equal(in_child(old_file, false), EACCES);
    assert_int_equal(in_child(program, false), EACCES);
}

static int reads(void)
{
    char byte;
    int fd = open(in_folder("old"), O_RDONLY);
    return fd >= 0 && read(fd, &byte, 1) == 1 ? 0 : errno;
}

static int listens(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder("socket"));
    return bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0 &&
                   unlink(address.sun_path) == 0
               ? 0
               : errno;
}

static void test_confine__a_gateway_still_reads_files_and_listens_on_paths(void **state)
{
    (void)state;
    assert_int_equal(in_child(reads, false), 0);
    assert_int_equal(in_child(listens, false), 0);
}

static int is_dumpable(void)
{
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

static int is_limited(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static void test_confine__nobody_else_sees_its_memory_unless_asked_to(void **state)
{
    (void)state;
    assert_int_equal(in_child(is_dumpable, false), 0);
    assert_int_equal(in_child(is_dumpable, true), 1);
    assert_int_equal(in_child(old_file, true), 0); /* a core dump is written */
    assert_int_equal(in_child(is_limited, false), 1);
    assert_int_equal(in_child(is_limited, true), 1);
}

static int make_folder(void **state)
{
    (void)state;
    FILE *file = mkdtemp(folder) == NULL ? NULL : fopen(in_folder("old"), "w");
    return file != NULL && fputs("text", file) >= 0 && fclose(file) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(in_folder("new"));
    unlink(in_folder("old"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confine__nothing_is_written_and_no_program_started),
        cmocka_unit_test(test_confine__a_gateway_still_reads_files_and_listens_on_paths),
        cmocka_unit_test(test_confine__nobody_else_sees_its_memory_unless_asked_to),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
