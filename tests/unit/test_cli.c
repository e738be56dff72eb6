/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700

#include "cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/check.h"

/* The command-line parser with its own table: the arguments that a command gets. tests/cli tests the real one. */

#define EXIT_RAN 7

static char seen[1024]; /* the arguments of the command, one word per line */

static void see(const char *what, const char *value)
{
    size_t length = strlen(seen);
    (void)snprintf(seen + length, sizeof seen - length, "%s%s\n", what, value);
}

static int tell(const struct cli_command *command, const struct cli_args *args)
{
    see("", command->name);
    if (cli_has(command, args, "flag")) {
        see("flag", "");
    }
    if (cli_has(command, args, "quick")) {
        see("quick", "");
    }
    if (cli_value(command, args, "name") != NULL) {
        see("name=", cli_value(command, args, "name"));
    }
    for (const char *const *set = cli_values(command, args, "set"); *set != NULL; set++) {
        see("set=", *set);
    }
    for (uint32_t i = 0; i < args->word_count; i++) {
        see("", args->words[i]);
    }
    assert_null(args->words[args->word_count]);
    return EXIT_RAN;
}

static const struct cli_option options[] = {
    {.name = "flag", .letter = 'f', .help = "a flag"},
    {.name = "quick", .letter = 'q', .help = "another"},
    {.name = "name", .letter = 'n', .argument = "NAME", .help = "with a value"},
    {.name = "set", .letter = 's', .argument = "KEY=VALUE", .help = "as often as you like", .many = true},
    {.name = NULL},
};

static const struct cli_command below[] = {
    {.name = "leaf",
     .usage = "parent leaf [options] FILE...",
     .summary = "",
     .purpose = "",
     .options = options,
     .complete = CLI_FILE,
     .run = tell},
    {.name = "bare", .usage = "parent bare", .summary = "", .purpose = "", .options = options, .run = tell},
    {.name = NULL},
};

static const struct cli_command one = {.name = "one",
                                       .usage = "one FILE...",
                                       .summary = "",
                                       .purpose = "",
                                       .options = options,
                                       .complete = CLI_FILE,
                                       .run = tell};
static const struct cli_command parent = {
    .name = "parent", .usage = "parent COMMAND", .summary = "", .purpose = "", .subcommands = below};

const struct cli_command *const cli_commands[] = {&one, &parent, NULL};

/* Types one line, split at blanks, and returns the exit code. */
static int type(const char *line)
{
    static char copy[8192];
    static char *argv[1024];
    int argc = 0;
    (void)snprintf(copy, sizeof copy, "becalm %s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    seen[0] = '\0';
    return cli_main(argc, argv);
}

static void expect(const char *line, const char *expected)
{
    check_eq_u64((uint64_t)type(line), EXIT_RAN);
    check_eq_str(seen, expected);
}

static void expect_refused(const char *line)
{
    check_eq_u64((uint64_t)type(line), 2);
    check_eq_str(seen, "");
}

static void test_cli__nothing_typed_is_a_usage_error(void **state)
{
    char *none[] = {NULL};
    (void)state;
    check_eq_u64((uint64_t)cli_main(0, none), 2);
    expect_refused("");
    expect_refused("parent");
}

static void test_cli__a_command_runs_without_arguments(void **state)
{
    (void)state;
    expect("one", "one\n");
    expect("parent leaf", "leaf\n");
}

static void test_cli__options_have_four_spellings(void **state)
{
    (void)state;
    expect("one --name x", "one\nname=x\n");
    expect("one --name=x", "one\nname=x\n");
    expect("one -n x", "one\nname=x\n");
    expect("one -nx", "one\nname=x\n");
}

static void test_cli__values_may_look_like_anything(void **state)
{
    (void)state;
    expect("one --name=", "one\nname=\n");
    expect("one --name=a=b", "one\nname=a=b\n");
    expect("one --name -q", "one\nname=-q\n");
    expect("one --name --", "one\nname=--\n");
    expect("one -n=x", "one\nname==x\n");
}

static void test_cli__flags_share_a_dash_and_the_last_letter_may_take_a_value(void **state)
{
    (void)state;
    expect("one -fq", "one\nflag\nquick\n");
    expect("one -qnx", "one\nquick\nname=x\n");
    expect("one -qn x", "one\nquick\nname=x\n");
}

static void test_cli__options_and_arguments_come_in_any_order(void **state)
{
    (void)state;
    expect("one a --flag b -n x c", "one\nflag\nname=x\na\nb\nc\n");
    expect("parent leaf a --flag", "leaf\nflag\na\n");
}

static void test_cli__two_dashes_end_the_options(void **state)
{
    (void)state;
    expect("one -f -- -q --name -- --help", "one\nflag\n-q\n--name\n--\n--help\n");
}

static void test_cli__one_dash_is_an_argument(void **state)
{
    (void)state;
    expect("one - -f", "one\nflag\n-\n");
}

static void test_cli__the_last_of_a_repeated_option_counts(void **state)
{
    (void)state;
    expect("one --name a --name b --flag --flag", "one\nflag\nname=b\n");
}

static void test_cli__an_option_of_many_keeps_all_in_order(void **state)
{
    (void)state;
    expect("one --set a=1 x -sb=2 --set=c=3", "one\nset=a=1\nset=b=2\nset=c=3\nx\n");
}

static void test_cli__mistakes_run_nothing(void **state)
{
    (void)state;
    expect_refused("two");
    expect_refused("parent two");
    expect_refused("parent --flag leaf");
    expect_refused("one --nothing");
    expect_refused("one --nam x");
    expect_refused("one --=x");
    expect_refused("one -x");
    expect_refused("one -fx");
    expect_refused("one --flag=yes");
    expect_refused("one --name");
    expect_refused("one -n");
    expect_refused("one -qn");
    expect_refused("parent bare word");
    expect_refused("--flag");
    expect_refused("-");
    expect_refused("--");
    expect_refused("---");
}

static void test_cli__help_runs_nothing_and_succeeds(void **state)
{
    const char *const lines[] = {"--help", "-h", "parent -h", "one --help", "one x -fh", "parent leaf -h --nothing"};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        check_eq_u64((uint64_t)type(lines[i]), 0);
        check_eq_str(seen, "");
    }
}

static void test_cli__help_after_an_option_that_wants_a_value_is_the_value(void **state)
{
    (void)state;
    expect("one --name --help", "one\nname=--help\n");
}

static void test_cli__256_arguments_fit_and_257_do_not(void **state)
{
    char line[CLI_WORDS_MAX * 2 + 16] = "parent leaf";
    size_t length = strlen(line);
    (void)state;
    for (int i = 0; i < CLI_WORDS_MAX; i++) {
        line[length++] = ' ';
        line[length++] = 'w';
    }
    line[length] = '\0';
    check_eq_u64((uint64_t)type(line), EXIT_RAN);
    memcpy(line + length, " w", 3);
    expect_refused(line);
}

static void test_cli__the_path_is_the_head_of_the_usage(void **state)
{
    size_t length;
    (void)state;
    check_eq_u64((uint64_t)memcmp(cli_path(&below[0], &length), "parent leaf ", 12), 0);
    check_eq_u64(length, strlen("parent leaf"));
    (void)cli_path(&below[1], &length);
    check_eq_u64(length, strlen("parent bare"));
    (void)cli_path(&cli_root, &length);
    check_eq_u64(length, 0);
}

static void test_cli__a_file_has_no_colours(void **state)
{
    FILE *file = tmpfile();
    (void)state;
    assert_non_null(file);
    struct cli_style style = cli_style(file);
    check_eq_str(style.bold, "");
    check_eq_str(style.red, "");
    check_eq_str(style.reset, "");
    fclose(file);
}

static void test_cli__a_terminal_has_colours_unless_the_user_wants_none(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    (void)state;
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    FILE *terminal = fdopen(slave, "w");
    assert_non_null(terminal);
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(setenv("NO_COLOR", "", 1), 0);
    check_eq_str(cli_style(terminal).red, "\033[31m");
    check_eq_str(cli_style(terminal).reset, "\033[0m");
    assert_int_equal(setenv("TERM", "dumb", 1), 0);
    check_eq_str(cli_style(terminal).red, "");
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    check_eq_str(cli_style(terminal).red, "");
    fclose(terminal);
    close(master);
}

BECALM_TESTS(
    cmocka_unit_test(test_cli__nothing_typed_is_a_usage_error),
    cmocka_unit_test(test_cli__a_command_runs_without_arguments),
    cmocka_unit_test(test_cli__options_have_four_spellings), cmocka_unit_test(test_cli__values_may_look_like_anything),
    cmocka_unit_test(test_cli__flags_share_a_dash_and_the_last_letter_may_take_a_value),
    cmocka_unit_test(test_cli__options_and_arguments_come_in_any_order),
    cmocka_unit_test(test_cli__two_dashes_end_the_options), cmocka_unit_test(test_cli__one_dash_is_an_argument),
    cmocka_unit_test(test_cli__the_last_of_a_repeated_option_counts),
    cmocka_unit_test(test_cli__an_option_of_many_keeps_all_in_order), cmocka_unit_test(test_cli__mistakes_run_nothing),
    cmocka_unit_test(test_cli__help_runs_nothing_and_succeeds),
    cmocka_unit_test(test_cli__help_after_an_option_that_wants_a_value_is_the_value),
    cmocka_unit_test(test_cli__256_arguments_fit_and_257_do_not),
    cmocka_unit_test(test_cli__the_path_is_the_head_of_the_usage), cmocka_unit_test(test_cli__a_file_has_no_colours),
    cmocka_unit_test(test_cli__a_terminal_has_colours_unless_the_user_wants_none))
