/* SPDX-License-Identifier: MIT */
#include "policy/import/directives.h"

#include "check.h"

#include <stdio.h>

typedef struct yaml_tree *parse_fn(const char *, const char *, size_t, struct becalm_diags *);

static struct becalm_diags diags;
static char out[4096];
static size_t out_length;

static void put(const char *text)
{
    size_t length = strlen(text);
    assert_true(out_length + length < sizeof out);
    memcpy(out + out_length, text, length + 1);
    out_length += length;
}

/* A tree on one line: [1:1[1:1 listen 1:8 80]]. */
static void put_node(const struct yaml_node *node)
{
    char place[32];
    (void)snprintf(place, sizeof place, "%u:%u", (unsigned)node->line, (unsigned)node->column);
    put(place);
    if (node->kind == YAML_SCALAR) {
        check_eq_u64(strlen(node->text), node->length);
        put(" ");
        put(node->text);
        return;
    }
    put("[");
    for (uint32_t i = 0; i < node->count; i++) {
        put(i > 0 ? ", " : "");
        put_node(node->item[i]);
    }
    put("]");
}

static struct yaml_tree *parse_exact(parse_fn *parse, const char *text, size_t length)
{
    memset(&diags, 0, sizeof diags);
    char *exact = malloc(length == 0 ? 1 : length); /* an overrun is the sanitizer's to find */
    assert_non_null(exact);
    memcpy(exact, text, length);
    struct yaml_tree *tree = parse("f", exact, length, &diags);
    free(exact); /* a tree keeps nothing of it */
    assert_true(tree != NULL || diags.errors > 0);
    return tree;
}

static void expect(parse_fn *parse, const char *text, const char *tree)
{
    struct yaml_tree *got = parse_exact(parse, text, strlen(text));
    check_eq_u64(diags.errors, 0);
    assert_non_null(got);
    out_length = 0;
    put_node(got->root);
    assert_string_equal(out, tree);
    yaml_free(got);
}

static void expect_error(parse_fn *parse, const char *text, uint32_t line, uint32_t column, const char *message)
{
    yaml_free(parse_exact(parse, text, strlen(text)));
    assert_true(diags.errors > 0);
    check_eq_u64(diags.diag[0].line, line);
    check_eq_u64(diags.diag[0].column, column);
    assert_non_null(strstr(diags.diag[0].message, message));
}

static void test_directives__nothing_is_an_empty_block(void **state)
{
    (void)state;
    parse_fn *const all[] = {nginx_parse, haproxy_parse, ini_parse, properties_parse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        expect(all[i], "", "1:1[]");
        expect(all[i], "\xef\xbb\xbf# a comment\r\n\t\n", "1:1[]");
    }
}

static void test_directives__nginx_words_and_blocks_have_their_places(void **state)
{
    (void)state;
    expect(nginx_parse, "worker_processes  auto;", "1:1[1:1[1:1 worker_processes, 1:19 auto]]");
    expect(nginx_parse, "http {\n  server { listen 80; }\n}\n",
           "1:1[1:1[1:1 http, 1:6[2:3[2:3 server, 2:10[2:12[2:12 listen, 2:19 80]]]]]]");
    expect(nginx_parse, "a b{c d;}e f;", "1:1[1:1[1:1 a, 1:3 b, 1:4[1:5[1:5 c, 1:7 d]]], 1:10[1:10 e, 1:12 f]]");
}

static void test_directives__nginx_quotes_escapes_and_variables(void **state)
{
    (void)state;
    expect(nginx_parse, "a \"b ; {\" 'c \"d' \"e\\\"\\n\";", "1:1[1:1[1:1 a, 1:3 b ; {, 1:11 c \"d, 1:18 e\"\n]]");
    expect(nginx_parse, "set $x ${y}z{ }", "1:1[1:1[1:1 set, 1:5 $x, 1:8 ${y}z, 1:13[]]]");
    expect(nginx_parse, "location ~ \\.php$ { }", "1:1[1:1[1:1 location, 1:10 ~, 1:12 \\.php$, 1:19[]]]");
    expect(nginx_parse, "a b#c; # d; e\nf;", "1:1[1:1[1:1 a, 1:3 b#c], 2:1[2:1 f]]");
    expect(nginx_parse, "a 'h\xc3\xbcte' b;", "1:1[1:1[1:1 a, 1:3 h\xc3\xbcte, 1:10 b]]");
}

static void test_directives__what_is_no_utf8_becomes_a_question_mark(void **state)
{
    (void)state;
    expect(nginx_parse, "a h\xfcte;", "1:1[1:1[1:1 a, 1:3 h?te]]");
    expect(haproxy_parse, "a \xc3", "1:1[1:1[1:1 a, 1:3 ?]]");
}

static void test_directives__nginx_skips_code_of_lua(void **state)
{
    (void)state;
    expect(nginx_parse, "content_by_lua_block {\n local t = {a = \"}\"} -- }\n} a b;",
           "1:1[1:1[1:1 content_by_lua_block, 1:22[]], 3:3[3:3 a, 3:5 b]]");
    expect_error(nginx_parse, "access_by_lua_block { {", 1, 22, "never closed");
}

static void test_directives__nginx_says_what_is_missing(void **state)
{
    (void)state;
    expect_error(nginx_parse, "listen 80", 1, 10, "a \";\" is missing");
    expect_error(nginx_parse, "server {\n  listen 80\n}", 3, 1, "a \";\" is missing in front");
    expect_error(nginx_parse, "http {\n server {\n}\n", 1, 6, "never closed");
    expect_error(nginx_parse, "a b; }", 1, 6, "was not opened");
    expect_error(nginx_parse, "a b;;", 1, 5, "no directive");
    expect_error(nginx_parse, "{ a b; }", 1, 1, "needs a name");
    expect_error(nginx_parse, "a \"b;", 1, 3, "never closed");
    expect_error(nginx_parse, "a \"b\"c;", 1, 6, "behind a quoted word");
}

static void test_directives__haproxy_sections_end_where_the_next_begins(void **state)
{
    (void)state;
    expect(haproxy_parse, "defaults\n  retries 3\nbackend b # x\n\tserver s 1.2.3.4:80 check\n",
           "1:1[1:1[1:1 defaults, 1:1[2:3[2:3 retries, 2:11 3]]], "
           "3:1[3:1 backend, 3:9 b, 3:1[4:2[4:2 server, 4:9 s, 4:11 1.2.3.4:80, 4:22 check]]]]");
    expect(haproxy_parse, ".if defined(X)\nglobal\nlog a\n",
           "1:1[1:1[1:1 .if, 1:5 defined(X)], 2:1[2:1 global, 2:1[3:1[3:1 log, 3:5 a]]]]");
}

static void test_directives__haproxy_quotes_escapes_and_long_lines(void **state)
{
    (void)state;
    expect(haproxy_parse, "acl a\\ b \"c \\\"d\" 'e\\f' g\"h i\"j",
           "1:1[1:1[1:1 acl, 1:5 a b, 1:10 c \"d, 1:18 e\\f, 1:24 gh ij]]");
    expect(haproxy_parse, "a \\#b \\x41 \\\r\n  c\nd", "1:1[1:1[1:1 a, 1:3 #b, 1:7 A, 2:3 c], 3:1[3:1 d]]");
    expect(haproxy_parse, "\\\n# x\n \\\r\nd\n\\",
           "1:1[4:1[4:1 d]]"); /* nothing but the end of a line is no directive */
    expect(haproxy_parse, "a \"\" b", "1:1[1:1[1:1 a, 1:3 , 1:6 b]]");
    expect_error(haproxy_parse, "a b\nc \"d\ne", 2, 3, "not closed on its line");
    expect_error(haproxy_parse, "a \\xg1", 1, 5, "hexadecimal");
}

static void test_directives__ini_has_sections_keys_and_nested_keys(void **state)
{
    (void)state;
    expect(ini_parse, "a=b\n[profile x]\nretry_mode = standard # c\n; d\n",
           "1:1[1:1[1:1 a, 1:3 b], 2:1[2:2 profile x, 2:1[3:1[3:1 retry_mode, 3:14 standard]]]]");
    expect(ini_parse, "[d]\ns3 =\n  max = 5\n  min=1\nx = 1",
           "1:1[1:1[1:2 d, 1:1[2:1[2:1 s3, 2:1[3:3[3:3 max, 3:9 5], 4:3[4:3 min, 4:7 1]]], 5:1[5:1 x, 5:5 1]]]]");
    expect_error(ini_parse, "[a\nb = c", 1, 1, "write a \"]\"");
    expect_error(ini_parse, "[a]\nb c", 2, 1, "no \"=\"");
}

static void test_directives__properties_have_escapes_and_long_lines(void **state)
{
    (void)state;
    expect(properties_parse, "a.b=c d \ne : f\n! g\nh i\nj",
           "1:1[1:1[1:1 a.b, 1:5 c d], 2:1[2:1 e, 2:5 f], 4:1[4:1 h, 4:3 i], 5:1[5:1 j, 5:2 ]]");
    expect(properties_parse, "a\\:b = c, \\\n   d\\te", "1:1[1:1[1:1 a:b, 1:8 c, d\te]]");
}

static void test_directives__bounds_are_errors_and_not_crashes(void **state)
{
    (void)state;
    static char text[1024 * 1024];
    for (size_t i = 0; i + 1 < sizeof text; i += 2) {
        memcpy(text + i, "a ", 2);
    }
    assert_null(parse_exact(nginx_parse, text, sizeof text));
    assert_string_equal(diags.diag[0].code, "too-many");
    for (size_t i = 0; i + 1 < sizeof text; i += 2) {
        memcpy(text + i, "a{", 2);
    }
    assert_null(parse_exact(nginx_parse, text, sizeof text));
    assert_string_equal(diags.diag[0].code, "too-deep");
    assert_null(parse_exact(haproxy_parse, "a\0b", 3));
    assert_string_equal(diags.diag[0].code, "bad-text");
}

static bool looks(bool (*is)(const char *, size_t), const char *text)
{
    return is(text, strlen(text));
}

static void test_directives__each_language_knows_its_own(void **state)
{
    (void)state;
    static const char nginx[] = "# x\nhttp {\n  server { listen 80; }\n}\n";
    static const char haproxy[] = "# x\ndefaults\n  mode http\nbackend b\n  server s \"${A}\"\n";
    static const char ini[] = "# x\n[default]\nretry_mode = standard\n";
    static const char properties[] = "# x\nresilience4j.retry.instances.a.maxAttempts=3\n";
    static const char yaml[] = "defaults:\n  maxRetries: 3\nhttp:\n- match: [{uri: {prefix: /}}]\n";
    static const char json[] = "[{\"a\": 1}]\n";
    const char *const texts[] = {nginx, haproxy, ini, properties, yaml, json};
    bool (*const is[])(const char *, size_t) = {nginx_is, haproxy_is, ini_is, properties_is};
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++) {
            check_eq_u64(looks(is[i], texts[j]), i == j);
        }
        assert_false(looks(is[i], ""));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directives__nothing_is_an_empty_block),
        cmocka_unit_test(test_directives__nginx_words_and_blocks_have_their_places),
        cmocka_unit_test(test_directives__nginx_quotes_escapes_and_variables),
        cmocka_unit_test(test_directives__what_is_no_utf8_becomes_a_question_mark),
        cmocka_unit_test(test_directives__nginx_skips_code_of_lua),
        cmocka_unit_test(test_directives__nginx_says_what_is_missing),
        cmocka_unit_test(test_directives__haproxy_sections_end_where_the_next_begins),
        cmocka_unit_test(test_directives__haproxy_quotes_escapes_and_long_lines),
        cmocka_unit_test(test_directives__ini_has_sections_keys_and_nested_keys),
        cmocka_unit_test(test_directives__properties_have_escapes_and_long_lines),
        cmocka_unit_test(test_directives__bounds_are_errors_and_not_crashes),
        cmocka_unit_test(test_directives__each_language_knows_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
