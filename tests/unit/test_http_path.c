/* SPDX-License-Identifier: MIT */
#include "http/path.h"

#include "unit/http_lab.h"

static bool reads(const char *target, struct becalm__path *path)
{
    return becalm__path_read(text(target), path);
}

static bool is_read(const char *target)
{
    struct becalm_text bare = text_bare(target);
    struct becalm__path path;
    bool fine = becalm__path_read(bare, &path);
    text_drop(bare);
    return fine;
}

static bool is_under(const char *target, const char *rule)
{
    char normal[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    return reads(target, &path) && becalm__path_under(becalm__path_normalize(&path, normal), text(rule));
}

static bool is_exactly(const char *target, const char *rule)
{
    char normal[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    return reads(target, &path) && becalm__path_is(becalm__path_normalize(&path, normal), text(rule));
}

static void test_path__none_and_the_asterisk_are_paths(void **state)
{
    (void)state;
    struct becalm__path path;
    check_true(becalm__path_read((struct becalm_text){NULL, 0}, &path));
    check_eq_u64(path.text.length, 0);
    check_true(is_exactly("*", "*"));
    check_true(is_under("*", "/"));
    check_true(!is_under("*", "/x"));
    check_true(becalm__path_is(path.text, (struct becalm_text){NULL, 0}));
    check_true(!becalm__path_under(path.text, text("/x")));
    check_true(becalm__path_under(path.text, text("/")));
}

static void test_path__the_query_is_no_part_of_it(void **state)
{
    (void)state;
    struct becalm__path path;
    check_true(reads("/a?b=/../%zz#", &path));
    check_eq_u64(path.text.length, 2);
    check_true(is_exactly("/a?", "/a"));
}

static void test_path__what_may_mean_another_path_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "/..",       "/.",      "/a/../b", "/a/./b", "/a/..",   "/a/.?x",   "/%2e%2e/b", "/a/%2E",    "/.%2e",
        "/..%2fb",   "/a%2f..", "/..\\b",  "/a\\..", "/..%5Cb", "/..;/b",   "/.;x=1/b",  "/%2e.;a/b", "/%",
        "/%2",       "/%zz",    "/%2z",    "/a b",   "/a\tb",   "/a\x7f",   "/a#b",      "a",         "a/b",
        "http://a/", "?a",      "**",      "*/a",    "%2f",     "/a/%2f/.", "/.%2F",     "/a\x01",    "..",
    };
    static const char *const fine[] = {"/",        "/...",  "/.well-known/x", "/a..b", "/..a",     "/a..", "/a/.../b",
                                       "/a;b=..c", "/%2F",  "/%25",           "//",    "/a//b",    "/~",   "/\xc3\xa9",
                                       "/a;v=1",   "/.a/b", "/a;..",          "/;",    "/a?/../b", "/%00", "*?x"};
    for (size_t i = 0; i < COUNT(refused); i++) {
        if (is_read(refused[i])) {
            fail_msg("accepted %s", refused[i]);
        }
    }
    for (size_t i = 0; i < COUNT(fine); i++) {
        if (!is_read(fine[i])) {
            fail_msg("refused %s", fine[i]);
        }
    }
}

static void test_path__escapes_of_plain_letters_are_undone(void **state)
{
    (void)state;
    char memory[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    check_true(reads("/%70%61%79%2d%7E/%2f%c3%A9%20x", &path));
    struct becalm_text normal = becalm__path_normalize(&path, memory);
    check_eq_u64(normal.length, 20);
    assert_memory_equal(normal.at, "/pay-~/%2F%C3%A9%20x", 20);
    check_true(is_exactly("/%70%61y", "/pay"));
    check_true(!is_exactly("/%70%61y", "/pa"));
    check_true(!is_exactly("/%70%61", "/pay"));
    check_true(is_exactly("/a%2fb", "/a%2Fb"));
    check_true(!is_exactly("/a%2fb", "/a/b"));
    check_true(!is_exactly("/a%2fb", "/a%2"));
    check_true(!is_exactly("/%50ay", "/pay")); /* that is a capital P */
}

static void test_path__a_prefix_ends_with_a_segment(void **state)
{
    (void)state;
    check_true(is_under("/pay", "/pay"));
    check_true(is_under("/pay/x", "/pay"));
    check_true(is_under("/pay/", "/pay"));
    check_true(!is_under("/payment", "/pay"));
    check_true(!is_under("/pa", "/pay"));
    check_true(!is_under("/Pay", "/pay"));
    check_true(!is_under("/pay", "/pay/"));
    check_true(is_under("/pay/x", "/pay/"));
    check_true(is_under("/%70ay/x", "/pay"));
    check_true(!is_under("/%70ayment", "/pay"));
    check_true(!is_under("/pay%2Fx", "/pay"));
    check_true(is_under("/", "/"));
    check_true(is_under("/x", "/"));
    check_true(!is_under("//pay", "/pay"));
}

static void test_path__of_any_length_is_compared_as_far_as_rules_go(void **state)
{
    (void)state;
    static char target[3 * BECALM__PATH_RULE_MAX + 16];
    static char rule[BECALM__PATH_RULE_MAX + 1];
    char *at = target + 1;
    target[0] = '/';
    rule[0] = '/';
    for (size_t i = 1; i < BECALM__PATH_RULE_MAX; i++) {
        memcpy(at, "%61", 3);
        at += 3;
        rule[i] = 'a';
    }
    *at = '\0';
    check_true(is_exactly(target, rule));
    check_true(is_under(target, rule));
    memcpy(at, "%2F", 4); /* three bytes more, and no end of the segment */
    check_true(!is_exactly(target, rule));
    check_true(!is_under(target, rule));
    memcpy(at, "/", 2);
    check_true(!is_exactly(target, rule));
    check_true(is_under(target, rule));
}

BECALM_TESTS(cmocka_unit_test(test_path__none_and_the_asterisk_are_paths),
             cmocka_unit_test(test_path__the_query_is_no_part_of_it),
             cmocka_unit_test(test_path__what_may_mean_another_path_is_refused),
             cmocka_unit_test(test_path__escapes_of_plain_letters_are_undone),
             cmocka_unit_test(test_path__a_prefix_ends_with_a_segment),
             cmocka_unit_test(test_path__of_any_length_is_compared_as_far_as_rules_go))
