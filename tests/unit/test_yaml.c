/* SPDX-License-Identifier: MIT */
#include "policy/yaml.h"

#include "check.h"

#include <stdio.h>

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

/* A tree on one line: {1:1 a: 1:4 b} with the place before each node; quoted texts have quotes, | blocks a bar. */
static void put_node(const struct yaml_node *node)
{
    char place[32];
    (void)snprintf(place, sizeof place, "%u:%u ", (unsigned)node->line, (unsigned)node->column);
    put(place);
    if (node->kind == YAML_SCALAR) {
        const char *quote = node->plain ? "" : node->literal ? "|" : "'";
        check_eq_u64(strlen(node->text), node->length);
        put(quote);
        put(node->text);
        put(quote);
        return;
    }
    put(node->kind == YAML_MAPPING ? "{" : "[");
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0) {
            put(", ");
        }
        if (node->kind == YAML_MAPPING) {
            put_node(node->key[i]);
            put(": ");
        }
        put_node(node->item[i]);
    }
    put(node->kind == YAML_MAPPING ? "}" : "]");
}

static struct yaml_tree *parse(const char *text, size_t length)
{
    memset(&diags, 0, sizeof diags);
    char *exact = malloc(length + 1); /* an overrun is the sanitizer's to find */
    assert_non_null(exact);
    char *text_copy = length == 0 ? exact : realloc(exact, length);
    assert_non_null(text_copy);
    memcpy(text_copy, text, length);
    struct yaml_tree *tree = yaml_parse("f", text_copy, length, &diags);
    free(text_copy); /* a tree keeps nothing of it */
    assert_true(tree != NULL || diags.errors > 0);
    return tree;
}

static void check_tree(const char *text, const char *expected)
{
    struct yaml_tree *tree = parse(text, strlen(text));
    out_length = 0;
    out[0] = 0;
    if (tree != NULL) {
        put_node(tree->root);
    }
    yaml_free(tree);
    check_eq_u64(diags.errors, 0);
    check_eq_str(out, expected);
}

/* All diagnostics, a line each, without "f:" and "error: ". */
static void check_diags(const char *expected)
{
    out_length = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < diags.count; i++) {
        char line[1024];
        const struct becalm_diag *d = &diags.diag[i];
        (void)snprintf(line, sizeof line, "%s%u:%u: %s [%s]", i == 0 ? "" : "\n", (unsigned)d->line,
                       (unsigned)d->column, d->message, d->code);
        put(line);
    }
    check_eq_str(out, expected);
}

static void check_errors_of(const char *text, size_t length, const char *expected)
{
    yaml_free(parse(text, length));
    check_diags(expected);
}

static void check_errors(const char *text, const char *expected)
{
    check_errors_of(text, strlen(text), expected);
}

static void test_yaml__an_empty_file_is_an_error_at_its_start(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "# a comment\n", "---\n", "--- ~\n", "null", "   "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_errors(texts[i], "1:1: the file is empty; write at least one key and its value [empty]");
    }
    yaml_free(NULL);
}

static void test_yaml__every_node_has_its_place(void **state)
{
    (void)state;
    check_tree("a: b\n", "1:1 {1:1 a: 1:4 b}");
    check_tree("# c\na:\n  - b\n  - {c: d}\n", "2:1 {2:1 a: 3:3 [3:5 b, 4:5 {4:6 c: 4:9 d}]}");
    check_tree("a:\nb: ''\n", "1:1 {1:1 a: 1:3 , 2:1 b: 2:4 ''}");
    check_tree("[]", "1:1 []");
    check_tree("a: {}\n", "1:1 {1:1 a: 1:4 {}}");
}

static void test_yaml__columns_count_characters_and_lines_end_as_in_editors(void **state)
{
    (void)state;
    check_tree("\xc3\xa9\xe2\x82\xac: {\xf0\x9f\x98\x80: x}",
               "1:1 {1:1 \xc3\xa9\xe2\x82\xac: 1:5 {1:6 \xf0\x9f\x98\x80: 1:9 x}}");
    check_tree("a: 1\r\nb: 2\r\n", "1:1 {1:1 a: 1:4 1, 2:1 b: 2:4 2}");
    check_tree("a: 1\rb: 2\r", "1:1 {1:1 a: 1:4 1, 2:1 b: 2:4 2}");
    check_tree("a: \"x\xe2\x80\xa8y\"\nb: 2\n", "1:1 {1:1 a: 1:4 'x\xe2\x80\xa8y', 2:1 b: 2:4 2}");
}

static void test_yaml__nothing_is_a_boolean_or_a_number_by_accident(void **state)
{
    (void)state;
    check_tree("{a: yes, b: 010, c: 1.50, d: ~, e: 1:30, no: on}",
               "1:1 {1:2 a: 1:5 yes, 1:10 b: 1:13 010, 1:18 c: 1:21 1.50, 1:27 d: 1:30 ~, 1:33 e: 1:36 1:30, "
               "1:42 no: 1:46 on}");
}

static void test_yaml__json_is_yaml(void **state)
{
    (void)state;
    check_tree("{\"a\":[1,\ttrue,null],\n\t\"b\":\"x\\/\\u00e9\\n\"}",
               "1:1 {1:2 'a': 1:6 [1:7 1, 1:10 true, 1:15 null], 2:2 'b': 2:6 'x/\xc3\xa9\n'}");
}

static void test_yaml__a_duplicate_key_points_at_the_second_and_names_the_first(void **state)
{
    (void)state;
    check_errors("a: 1\nb:\n  c: 1\n  \"c\": 2\nd: 1\na: 2\na: 3\n",
                 "4:3: the key \"c\" is here twice; the first is at line 3, keep one of them [duplicate-key]\n"
                 "6:1: the key \"a\" is here twice; the first is at line 1, keep one of them [duplicate-key]\n"
                 "7:1: the key \"a\" is here twice; the first is at line 1, keep one of them [duplicate-key]");
    check_errors("[{a: 1}, {a: 1}]", "");
    check_errors("{a: 1, A: 1, 'a ': 1}", "");
}

static void test_yaml__a_tree_without_the_refused_pairs_comes_back(void **state)
{
    (void)state;
    static const char text[] =
        "a: 1\na: 2\n<<: {c: 1}\n? [x]\n: 3\nb: !!int 4\nd: *gone\ne: [x, *lost]\n*this : 5\n---\n";
    struct yaml_tree *tree = parse(text, strlen(text));
    assert_non_null(tree);
    out_length = 0;
    put_node(tree->root);
    check_eq_str(out, "1:1 {1:1 a: 1:4 1, 6:1 b: 6:4 4, 8:1 e: 8:4 [8:5 x]}");
    yaml_free(tree);
    check_diags("2:1: the key \"a\" is here twice; the first is at line 1, keep one of them [duplicate-key]\n"
                "3:1: merge keys (<<) are not used here; write the keys out, or use `defaults:` [merge-key]\n"
                "4:3: a list can't be a key; write a name [key-type]\n"
                "6:4: the tag !!int is not used here; remove it [tag]\n"
                "7:4: the anchor &gone is not defined above; define it, or write the value out [alias]\n"
                "8:8: the anchor &lost is not defined above; define it, or write the value out [alias]\n"
                "9:1: the anchor &this is not defined above; define it, or write the value out [alias]\n"
                "10:1: a second document begins here; put it into a file of its own [second-document]");
}

static void test_yaml__keys_are_texts(void **state)
{
    (void)state;
    check_errors("{? {a: b} : 1}", "1:4: a mapping can't be a key; write a name [key-type]");
    check_errors("{'': 1}", "1:2: the key is empty; write a name before the \":\" [key-type]");
    check_tree("{\"<<\": 1}", "1:1 {1:2 '<<': 1:8 1}");
}

static void test_yaml__tags_that_change_nothing_are_let_through(void **state)
{
    (void)state;
    check_tree("!!map {a: !!str b, c: !!seq [d]}", "1:1 {1:8 a: 1:11 b, 1:20 c: 1:23 [1:30 d]}");
    check_errors("a: !secret b\n", "1:4: the tag !secret is not used here; remove it [tag]");
    check_errors("a: !!map [b]\n", "1:4: the tag !!map is not used here; remove it [tag]");
    check_errors("a: ! b\n", "1:4: the tag ! is not used here; remove it [tag]");
}

static void test_yaml__an_alias_is_a_copy_at_its_own_place(void **state)
{
    (void)state;
    check_tree("a: &x {b: [1]}\nc: *x\n", "1:1 {1:1 a: 1:4 {1:8 b: 1:11 [1:12 1]}, 2:1 c: 2:4 {1:8 b: 1:11 [1:12 1]}}");
    check_tree("- &x a\n- *x\n- &x b\n- *x\n", "1:1 [1:3 a, 2:3 a, 3:3 b, 4:3 b]");
    check_tree("&x a: *x\n", "1:1 {1:1 a: 1:7 a}");
    struct yaml_tree *tree = parse("a: &x {b: [1]}\nc: *x\n", 21);
    assert_non_null(tree);
    const struct yaml_node *a = yaml_get(yaml_get(tree->root, "a"), "b");
    const struct yaml_node *c = yaml_get(yaml_get(tree->root, "c"), "b");
    assert_ptr_not_equal(a, c); /* an override of one value changes no other */
    assert_ptr_not_equal(a->item[0], c->item[0]);
    yaml_free(tree);
}

static void test_yaml__an_alias_in_its_own_anchor_is_an_error(void **state)
{
    (void)state;
    check_errors("a: &x [*x]\n", "1:8: the alias *x stands inside its own anchor; write the value out [alias]");
    check_errors("*x", "1:1: the anchor &x is not defined above; define it, or write the value out [alias]");
    check_errors("a: *x\nb: &x 1\n",
                 "1:4: the anchor &x is not defined above; define it, or write the value out [alias]");
}

/* `count` times `part`, in memory of the caller. */
static char *many(const char *part, size_t count)
{
    size_t length = strlen(part);
    char *text = malloc(length * count + 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * length, part, length);
    }
    text[length * count] = 0;
    return text;
}

static void test_yaml__64_levels_are_not_too_deep_and_65_are(void **state)
{
    (void)state;
    char *open = many("[", 65);
    char *close = many("]", 65);
    char text[256];
    (void)snprintf(text, sizeof text, "%.64s%.64s", open, close);
    check_errors(text, "");
    (void)snprintf(text, sizeof text, "%.65s%.65s", open, close);
    check_errors(text, "1:65: values are nested more than 64 levels deep; make the nesting flatter [too-deep]");
    (void)snprintf(text, sizeof text, "- &x %.32s%.32s\n- %.31s*x%.31s\n", open, close, open, close);
    check_errors(text, "");
    (void)snprintf(text, sizeof text, "- &x %.32s%.32s\n- %.32s*x%.32s\n", open, close, open, close);
    check_errors(text, "2:35: values are nested more than 64 levels deep; make the nesting flatter [too-deep]");
    free(open);
    free(close);
}

static void test_yaml__hostile_nesting_ends_at_once(void **state)
{
    (void)state;
    static const char *const parts[] = {"[", "{", "- ", "? ", "{a: ", "[{"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *text = many(parts[i], 100000);
        yaml_free(parse(text, strlen(text)));
        check_eq_u64(diags.count, 1);
        check_eq_str(diags.diag[0].code, "too-deep");
        free(text);
    }
}

static void test_yaml__the_node_after_100000_is_too_many(void **state)
{
    (void)state;
    char *text = many("a,", YAML_NODES_MAX);
    for (size_t i = 1; i < YAML_NODES_MAX; i++) {
        memcpy(text + 2 * i, ",a", 2);
    }
    memcpy(text, "[a", 2);
    memcpy(text + 2 * (YAML_NODES_MAX - 1), "] ", 2);
    check_errors(text, ""); /* 99999 items and the list */
    memcpy(text + 2 * (YAML_NODES_MAX - 1), ",a", 2);
    check_errors(text, "1:200000: the file has over 100000 values, counting each use of an alias; make it smaller "
                       "[too-many]");
    free(text);
}

static void test_yaml__an_alias_bomb_hits_the_cap(void **state)
{
    (void)state;
    char text[2048] = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c <= 'k'; c++) {
        char line[128];
        char p = (char)(c - 1);
        (void)snprintf(line, sizeof line, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, p, p, p, p, p, p,
                       p, p, p, p);
        strcat(text, line);
    }
    check_errors(text, "5:29: the file has over 100000 values, counting each use of an alias; make it smaller "
                       "[too-many]");
}

static void test_yaml__a_mebibyte_is_read_and_a_byte_more_is_not(void **state)
{
    (void)state;
    char *text = many("#", YAML_BYTES_MAX + 1);
    memcpy(text, "a: 1\n", 5);
    check_errors_of(text, YAML_BYTES_MAX, "");
    check_errors_of(text, YAML_BYTES_MAX + 1, "1:1: the file is larger than 1 MiB; split it [too-large]");
    free(text);
}

/* Each of these was quadratic somewhere, or would be: keys and anchors in lists, say. */
static void test_yaml__large_files_of_one_kind_are_read(void **state)
{
    (void)state;
    char *text = malloc(YAML_BYTES_MAX);
    assert_non_null(text);
    size_t length = 0;
    for (uint32_t i = 0; i < 49999; i++) {
        length += (size_t)sprintf(text + length, "key%05u: x\n", (unsigned)i);
    }
    check_errors_of(text, length, "");
    length = 0;
    for (uint32_t i = 0; i < 30000; i++) {
        length += (size_t)sprintf(text + length, "- &a%u x\n- *a%u\n", (unsigned)i, (unsigned)i);
    }
    check_errors_of(text, length, "");
    free(text);
}

static void test_yaml__tabs_do_not_indent(void **state)
{
    (void)state;
    static const char *const texts[] = {"a:\n\tb: 1\n", "a: 1\n\tb: 2\n", "a: |\n\tb\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_errors(texts[i], "2:1: a tab can't indent a line; use spaces [yaml-syntax]");
    }
    check_tree("a:\tb\n", "1:1 {1:1 a: 1:4 b}");
}

static void test_yaml__bytes_that_are_no_text_are_named(void **state)
{
    (void)state;
    check_errors("\xef\xbb\xbf"
                 "a: 1\n",
                 "1:1: there is a byte order mark; save the file as UTF-8 without one [yaml-syntax]");
    check_errors_of("\xff\xfe"
                    "a\0",
                    4, "1:1: the byte 0xFF is no UTF-8; save the file as UTF-8 [yaml-syntax]");
    check_errors_of("a: 1\nb: \0\n", 10, "2:4: there is a zero byte; is this a text file in UTF-8? [yaml-syntax]");
    check_errors("a: \x1b[31m", "1:4: the control character U+001B can't stand here; remove it [yaml-syntax]");
    check_errors("a: \xc2\x85", "1:4: the control character U+0085 can't stand here; remove it [yaml-syntax]");
    static const char *const bad[] = {
        "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",
        "\xc3("};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        yaml_free(parse(bad[i], strlen(bad[i])));
        check_eq_u64(diags.errors, 1);
        check_true(strstr(diags.diag[0].message, "is no UTF-8") != NULL);
    }
    check_errors("a: \"\\0\"\n", "1:4: there is a \"\\0\" in the text; a value can't hold one [yaml-syntax]");
}

static void test_yaml__syntax_errors_point_at_their_cause(void **state)
{
    (void)state;
    check_errors("a:\n  b: 1\n   c: 2\n", "3:5: a \":\" can't stand here; indent the line like its neighbours, or put "
                                          "the text in quotes (in the mapping that begins at line 2) [yaml-syntax]");
    check_errors("a:\n  b: 1\n c: 2\n", "3:2: a key must begin here; check the indentation and the quotes (in the "
                                        "mapping that begins at line 1) [yaml-syntax]");
    check_errors("a: 1\nb\nc: 2\n", "2:1: there is no \": \" behind this key; write \"key: value\" [yaml-syntax]");
    check_errors("a: \"b\nc: d\n", "1:4: the quote that opens here is never closed; close it [yaml-syntax]");
    check_errors("a: [1,\n 2\n",
                 "3:1: the list is not closed; a \",\" or a \"]\" must stand here (in the [...] that begins at line 1) "
                 "[yaml-syntax]");
    check_errors("a: @b\n", "1:4: a text can't start with \"@\"; put it in quotes [yaml-syntax]");
    check_errors("a: *\n", "1:4: a text can't start with \"*\"; put it in quotes [yaml-syntax]");
    check_errors("{a: 1}}", "1:7: the document is complete above; check the indentation and the quotes [yaml-syntax]");
}

static const char config_map[] = "kind: ConfigMap\n"
                                 "data:\n"
                                 "  policy.yaml: |  # with a comment\n"
                                 "\n"
                                 "    # inner\n"
                                 "    a: 1\n"
                                 "    b:\n"
                                 "      - \xc3\xa9\n"
                                 "    a: 2\n"
                                 "    c: [\n";

static struct yaml_tree *parse_inner(struct yaml_tree *outer, const char *key)
{
    assert_non_null(outer);
    const struct yaml_node *block = yaml_get(yaml_get(outer->root, "data"), key);
    assert_non_null(block);
    return yaml_parse_inner(outer, block, &diags);
}

static void test_yaml__a_block_has_the_places_of_the_outer_file(void **state)
{
    (void)state;
    struct yaml_tree *outer = parse(config_map, strlen(config_map));
    struct yaml_tree *inner = parse_inner(outer, "policy.yaml");
    assert_null(inner);
    yaml_free(outer);
    check_diags("9:5: the key \"a\" is here twice; the first is at line 6, keep one of them [duplicate-key]\n"
                "11:5: a value is missing here; write one (in the [...] that begins at line 10) [yaml-syntax]");
}

static void test_yaml__a_block_parses_into_a_tree_of_its_own(void **state)
{
    (void)state;
    static const char *const blocks[][2] = {
        {"data:\n  p: |\n    a: 1\n    b: {c: d}\n", "3:5 {3:5 a: 3:8 1, 4:5 b: 4:8 {4:9 c: 4:12 d}}"},
        {"data:\n  p: |-\n\n\n     a: 1\n", "5:6 {5:6 a: 5:9 1}"},
        {"data: {\"p\": \"a: 1\\nb: 2\"}\n", "1:13 {1:13 a: 1:13 1, 1:13 b: 1:13 2}"},
        {"data:\n  p: >\n    {a: 1,\n     b: 2}\n", "2:6 {2:6 a: 2:6 1, 2:6 b: 2:6 2}"},
        {"data:\n  p: |2\n      {a: 1}\n", "3:7 {3:8 a: 3:11 1}"},
        {"data:\r\n  p: |\r\n    a: 1\r\n    b: 2\r\n", "3:5 {3:5 a: 3:8 1, 4:5 b: 4:8 2}"},
        {"x: &x |\n  a: 1\ndata: {p: *x}\n", "3:11 {3:11 a: 3:11 1}"},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct yaml_tree *outer = parse(blocks[i][0], strlen(blocks[i][0]));
        struct yaml_tree *inner = parse_inner(outer, "p");
        assert_non_null(inner);
        yaml_free(outer); /* the inner tree keeps nothing of it */
        out_length = 0;
        put_node(inner->root);
        check_eq_str(out, blocks[i][1]);
        check_eq_str(inner->name, "f");
        yaml_free(inner);
    }
}

static void test_yaml__blocks_in_blocks_keep_counting(void **state)
{
    (void)state;
    static const char text[] = "data:\n  p: |\n    data:\n      q: |\n        a: 1\n";
    struct yaml_tree *outer = parse(text, strlen(text));
    struct yaml_tree *middle = parse_inner(outer, "p");
    struct yaml_tree *inner = parse_inner(middle, "q");
    assert_non_null(inner);
    out_length = 0;
    put_node(inner->root);
    check_eq_str(out, "5:9 {5:9 a: 5:12 1}");
    yaml_free(inner);
    yaml_free(middle);
    yaml_free(outer);
}

static void test_yaml__an_empty_block_is_an_error_at_its_bar(void **state)
{
    (void)state;
    struct yaml_tree *outer = parse("data:\n  p: |\nx: 1\n", 18);
    assert_null(parse_inner(outer, "p"));
    yaml_free(outer);
    check_diags("2:6: the file is empty; write at least one key and its value [empty]");
}

static void test_yaml__a_part_counts_the_lines_above_it(void **state)
{
    (void)state;
    static const char text[] = "a: 1\ndata:\n  p: |\n    b: 1\n    b: 2\na: 3\n";
    memset(&diags, 0, sizeof diags);
    assert_null(yaml_parse_part("f", "", 0, 10, &diags));
    struct yaml_tree *part = yaml_parse_part("f", text, strlen(text), 10, &diags);
    yaml_free(parse_inner(part, "p"));
    yaml_free(part);
    check_diags("11:1: the file is empty; write at least one key and its value [empty]\n"
                "16:1: the key \"a\" is here twice; the first is at line 11, keep one of them [duplicate-key]\n"
                "15:5: the key \"b\" is here twice; the first is at line 14, keep one of them [duplicate-key]");
}

static void test_yaml__get_is_and_null_answer_for_anything(void **state)
{
    (void)state;
    struct yaml_tree *tree = parse("{a: ~, b: '~', c: [x], d: , e: null, f: 'null', g: x}", 53);
    assert_non_null(tree);
    check_true(yaml_get(tree->root, "z") == NULL);
    check_true(yaml_get(NULL, "a") == NULL);
    check_true(yaml_get(yaml_get(tree->root, "c"), "x") == NULL);
    check_true(yaml_get(yaml_get(tree->root, "g"), "x") == NULL);
    check_true(yaml_is(yaml_get(tree->root, "g"), "x"));
    check_true(!yaml_is(yaml_get(tree->root, "g"), "xx"));
    check_true(!yaml_is(yaml_get(tree->root, "c"), "x"));
    check_true(!yaml_is(NULL, ""));
    check_true(yaml_is_null(NULL));
    static const char nulls[] = "ade";
    for (char key[2] = "a"; key[0] <= 'g'; key[0]++) {
        check_eq_u64(yaml_is_null(yaml_get(tree->root, key)), strchr(nulls, key[0]) != NULL);
    }
    yaml_free(tree);
}

static void test_yaml__goes_on_after_a_hundred_errors(void **state)
{
    (void)state;
    char *text = many("a: 1\n", 300);
    yaml_free(parse(text, strlen(text)));
    check_eq_u64(diags.count, BECALM_DIAGS_MAX);
    check_eq_u64(diags.errors, 299);
    free(text);
}

BECALM_TESTS(cmocka_unit_test(test_yaml__an_empty_file_is_an_error_at_its_start),
             cmocka_unit_test(test_yaml__every_node_has_its_place),
             cmocka_unit_test(test_yaml__columns_count_characters_and_lines_end_as_in_editors),
             cmocka_unit_test(test_yaml__nothing_is_a_boolean_or_a_number_by_accident),
             cmocka_unit_test(test_yaml__json_is_yaml),
             cmocka_unit_test(test_yaml__a_duplicate_key_points_at_the_second_and_names_the_first),
             cmocka_unit_test(test_yaml__a_tree_without_the_refused_pairs_comes_back),
             cmocka_unit_test(test_yaml__keys_are_texts),
             cmocka_unit_test(test_yaml__tags_that_change_nothing_are_let_through),
             cmocka_unit_test(test_yaml__an_alias_is_a_copy_at_its_own_place),
             cmocka_unit_test(test_yaml__an_alias_in_its_own_anchor_is_an_error),
             cmocka_unit_test(test_yaml__64_levels_are_not_too_deep_and_65_are),
             cmocka_unit_test(test_yaml__hostile_nesting_ends_at_once),
             cmocka_unit_test(test_yaml__the_node_after_100000_is_too_many),
             cmocka_unit_test(test_yaml__an_alias_bomb_hits_the_cap),
             cmocka_unit_test(test_yaml__a_mebibyte_is_read_and_a_byte_more_is_not),
             cmocka_unit_test(test_yaml__large_files_of_one_kind_are_read),
             cmocka_unit_test(test_yaml__tabs_do_not_indent),
             cmocka_unit_test(test_yaml__bytes_that_are_no_text_are_named),
             cmocka_unit_test(test_yaml__syntax_errors_point_at_their_cause),
             cmocka_unit_test(test_yaml__a_block_has_the_places_of_the_outer_file),
             cmocka_unit_test(test_yaml__a_block_parses_into_a_tree_of_its_own),
             cmocka_unit_test(test_yaml__blocks_in_blocks_keep_counting),
             cmocka_unit_test(test_yaml__an_empty_block_is_an_error_at_its_bar),
             cmocka_unit_test(test_yaml__a_part_counts_the_lines_above_it),
             cmocka_unit_test(test_yaml__get_is_and_null_answer_for_anything),
             cmocka_unit_test(test_yaml__goes_on_after_a_hundred_errors))
