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

static void test_path__what_is_no_path_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {"/%",   "/%2",    "/%zz", "/%2z",      "/a b", "/a\tb", "/a\x7f",
                                          "/a#b", "a",      "a/b",  "http://a/", "?a",   "**",    "*/a",
                                          "%2f",  "/a\x01", "..",   "/%25%",     "\\a",  ";",     "/%%2525"};
    static const char *const fine[] = {"/",        "/...",  "/.well-known/x", "/a..b", "/..a",     "/a..", "/a/.../b",
                                       "/a;b=..c", "/%2F",  "/%25",           "//",    "/a//b",    "/~",   "/\xc3\xa9",
                                       "/a;v=1",   "/.a/b", "/a;..",          "/;",    "/a?/../b", "/%00", "*?x"};
    for (size_t i = 0; i < COUNT(refused); i++) {
        if (is_read(refused[i])) {
            fail_msg("accepted %s", refused[i]);
        }
    }
    for (size_t i = 0; i < COUNT(fine); i++) {
        struct becalm__path path;
        if (!is_read(fine[i]) || !reads(fine[i], &path) || path.dotted) {
            fail_msg("refused %s", fine[i]);
        }
    }
}

static void test_path__two_dots_are_known_in_every_spelling(void **state)
{
    (void)state;
    static const char *const climbing[] = {
        "/..",         "/a/../b",   "/a/..",       "/%2e%2e/b", "/.%2e",     "/..%2fb",     "/a%2f..",
        "/..\\b",      "/a\\..",    "/..%5Cb",     "/..;/b",    "/%2e.;a/b", "/..%3bx/b",   "/a/..;",
        "/%252e%252e", "/.%252E/b", "/%25252e./b", "/..%252fb", "/a%255c..", "/%25%32%65.", "/a/..%00x",
        "/..%3f",      "/..%23",    "//..",        "/./..",     "/;x/..",    "/%25%32e%2e", "/..?x",
    };
    for (size_t i = 0; i < COUNT(climbing); i++) {
        struct becalm__path path;
        if (!reads(climbing[i], &path) || !path.climbs || !path.dotted) {
            fail_msg("%s does not climb", climbing[i]);
        }
    }
}

static void test_path__most_paths_are_their_own_resolved_form(void **state)
{
    (void)state;
    static const char *const plain[] = {"/",       "/a",       "/a/",       "/a/b/c.d", "/...",      "/a..",
                                        "/.a",     "/%70ay",   "/a%20b",    "/a@b:c",   "/a%40b",    "/%25",
                                        "/100%25", "/a%C3%A9", "/\xc3\xa9", "*",        "/a?b//;/./"};
    for (size_t i = 0; i < COUNT(plain); i++) {
        struct becalm__path path;
        if (!reads(plain[i], &path) || path.odd || path.dotted) {
            fail_msg("%s is odd", plain[i]);
        }
    }
}

static void test_path__the_resolved_form_is_what_a_service_may_make_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *target, *resolved;
    } rows[] = {
        {"//pay", "/pay"},
        {"/pay;x", "/pay"},
        {"/pay%2f", "/pay/"},
        {"/pay\\", "/pay/"},
        {"/./pay", "/pay"},
        {"/pay/.", "/pay/"},
        {"/.", "/"},
        {"/./", "/"},
        {"//", "/"},
        {"///a///b//", "/a/b/"},
        {"/a/./b/./", "/a/b/"},
        {"/;x/pay", "/pay"},
        {"/pay;x=1/y;z", "/pay/y"},
        {"/pay%3Bx", "/pay"},
        {"/%2Fpay", "/pay"},
        {"/a%5cpay", "/a/pay"},
        {"/%2e/pay", "/pay"},
        {"/.%2Fpay", "/pay"},
        {"/.;x/pay", "/pay"},
        {"/pay%00.txt", "/pay"},
        {"/pay%3Fx", "/pay"},
        {"/pay%23x", "/pay"},
        {"/%2570ay", "/pay"},
        {"/pay%252fx", "/pay/x"},
        {"/%25%37%30ay", "/pay"},
        {"/a%20b//c", "/a%20b/c"},
        {"/\xc3\xa9//", "/%C3%A9/"},
        {"/a%2525//", "/a%25/"},
        {"/group%2Fproject", "/group/project"},
        {"/repo/./Packages", "/repo/Packages"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char memory[BECALM__PATH_NORMAL_MAX];
        struct becalm__path path;
        check_true(reads(rows[i].target, &path) && path.odd && !path.climbs);
        struct becalm_text got = becalm__path_resolve(&path, memory);
        if (got.length != strlen(rows[i].resolved) || memcmp(got.at, rows[i].resolved, got.length) != 0) {
            fail_msg("%s is %.*s", rows[i].target, (int)got.length, got.at);
        }
    }
}

static void test_path__a_long_way_to_a_short_path_is_seen_to_its_end(void **state)
{
    (void)state;
    static char target[60000];
    char memory[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    for (size_t i = 0; i + 8 < sizeof target; i += 2) {
        memcpy(target + i, "/.", 2);
    }
    memcpy(target + sizeof target - 9, "./pay", 6);
    check_true(reads(target, &path) && !path.climbs);
    struct becalm_text got = becalm__path_resolve(&path, memory);
    check_eq_u64(got.length, 4);
    assert_memory_equal(got.at, "/pay", 4);
    memset(target, 'a', 2000);
    target[0] = '/';
    check_true(reads(target, &path));
    check_true(becalm__path_resolve(&path, memory).length > BECALM__PATH_RULE_MAX);
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
    check_true(is_exactly("/v1%3acharge%40x", "/v1:charge@x"));
    check_true(is_exactly("/\xc3\xa9{}", "/%C3%A9%7B%7D"));
    check_true(is_exactly("/a;b", "/a;b"));
    check_true(!is_exactly("/a%3bb", "/a;b"));
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
             cmocka_unit_test(test_path__what_is_no_path_is_refused),
             cmocka_unit_test(test_path__two_dots_are_known_in_every_spelling),
             cmocka_unit_test(test_path__most_paths_are_their_own_resolved_form),
             cmocka_unit_test(test_path__the_resolved_form_is_what_a_service_may_make_of_it),
             cmocka_unit_test(test_path__a_long_way_to_a_short_path_is_seen_to_its_end),
             cmocka_unit_test(test_path__escapes_of_plain_letters_are_undone),
             cmocka_unit_test(test_path__a_prefix_ends_with_a_segment),
             cmocka_unit_test(test_path__of_any_length_is_compared_as_far_as_rules_go))
