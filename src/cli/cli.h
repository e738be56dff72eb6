/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_H
#define BECALM_CLI_H

/* The command line: every command is one row of a table, from which parsing, --help, usage errors and shell completion
 * are all made. Exit codes: 0 fine, 1 findings or failure, 2 usage.
 *
 * Typed as usual: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, flags in one word (-ab); options and plain arguments
 * in any order after the command's name; -- ends the options; - is a plain argument. The last of a repeated option
 * counts. Every command has --help and -h; no table lists them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

#define CLI_OPTIONS_MAX 32
#define CLI_WORDS_MAX   256

/* The completions that a shell offers for an argument. A command whose own `complete` is CLI_NOTHING takes no plain
 * arguments. */
enum cli_complete { CLI_NOTHING, CLI_FILE, CLI_WORDS };

struct cli_option {
    const char *name;     /* long, without the dashes; NULL ends the table */
    char letter;          /* 0: none */
    const char *argument; /* NULL: a flag; else its name in --help: FILE */
    const char *help;     /* one line */
    enum cli_complete complete;
    const char *words; /* CLI_WORDS: separated by spaces */
    bool many;         /* may be given more than once */
};

struct cli_args;

struct cli_command {
    const char *name;    /* "check"; NULL ends the table */
    const char *summary; /* one line for the list of commands */
    const char *usage; /* after "becalm ": "check [options] POLICY...", "plan budget [options]": begins with its path */
    const char *purpose;                   /* one or more paragraphs, wrapped at 80 columns by hand */
    const struct cli_option *options;      /* may be NULL */
    const char *examples;                  /* lines, each indented by two spaces */
    const struct cli_command *subcommands; /* NULL: none. With them, `run` and `options` are not looked at */
    enum cli_complete complete;            /* of its plain arguments */
    const char *words;
    bool passes_on; /* its plain arguments are the command line of another program: the first ends the options */
    int failure;    /* the exit code of its own failures and of wrong usage; 0: 1 and 2 */
    int (*run)(const struct cli_command *command, const struct cli_args *args);
};

/* The parsed command line: options by their row, and plain arguments. */
struct cli_args {
    uint32_t given[CLI_OPTIONS_MAX];         /* how often */
    const char *value[CLI_OPTIONS_MAX];      /* the last one */
    const char *const *all[CLI_OPTIONS_MAX]; /* `many`: all of them, ends with NULL */
    const char *const *words;
    uint32_t word_count;
};

/* By name: asserts that the command has this option. */
bool cli_has(const struct cli_command *, const struct cli_args *, const char *option);
const char *cli_value(const struct cli_command *, const struct cli_args *, const char *option); /* NULL: not given */
const char *const *cli_values(const struct cli_command *, const struct cli_args *, const char *option); /* of `many` */

/* "becalm check: message\nTry 'becalm check --help'.\n" on stderr; returns 2, or the command's `failure`. */
int cli_usage(const struct cli_command *, const char *format, ...) CLI_PRINTF(2, 3);
/* "becalm check: message\n" on stderr; returns 1, or the command's `failure`. */
int cli_fail(const struct cli_command *, const char *format, ...) CLI_PRINTF(2, 3);

/* All commands in the order of --help; NULL ends. main.c has the list, cmd_NAME.c the row of each. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_command cmd_init, cmd_proxy, cmd_top, cmd_demo, cmd_exec, cmd_sim, cmd_check, cmd_plan,
    cmd_import, cmd_diff, cmd_doctor, cmd_fault, cmd_schema, cmd_rules, cmd_completion, cmd_help;

/* Runs the command in argv; returns the exit code. Makes sure that all output has reached stdout. */
int cli_main(int argc, char **argv);

/* The root of all commands; --version is its option. */
extern const struct cli_command cli_root;

/* For code that walks the tables: a subcommand by index, NULL after the last; a subcommand by name, NULL if there is
 * none; the words of a command ("plan budget") and their length. */
const struct cli_command *cli_child(const struct cli_command *, size_t index);
const struct cli_command *cli_child_named(const struct cli_command *, const char *name);
const char *cli_path(const struct cli_command *, size_t *length);

/* Prints --help. */
void cli_help(const struct cli_command *, FILE *);

/* "unknown command 'chek'; did you mean 'check'?" on stderr; returns 2. */
int cli_unknown_command(const struct cli_command *parent, const char *name);

/* Colour for terminals: empty strings when NO_COLOR is set or stdout is no terminal. */
struct cli_style {
    const char *bold, *dim, *red, *yellow, *green, *reset;
};
struct cli_style cli_style(FILE *);
bool cli_utf8(void); /* may block characters be printed? */

#endif
