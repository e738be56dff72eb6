/* SPDX-License-Identifier: MIT */
#include "cli.h"

#include <string.h>

#define WIDTH      80
#define LEFT_MAX   30 /* a longer option has its help on the next line */
#define LEFT_BYTES 128

static const struct cli_option help_option = {.name = "help", .letter = 'h', .help = "print this help"};

/* Prints words from `column` on, and continues lines at `indent`. Newlines of the text stay. */
static void print_wrapped(FILE *out, const char *text, size_t column, size_t indent)
{
    bool first = true;
    for (;;) {
        text += strspn(text, " ");
        size_t length = strcspn(text, " \n");
        if (length > 0) {
            size_t space = first ? 0 : 1;
            if (!first && column + space + length > WIDTH) {
                fprintf(out, "\n%*s", (int)indent, "");
                column = indent;
                space = 0;
            }
            fprintf(out, "%s%.*s", space > 0 ? " " : "", (int)length, text);
            column += space + length;
            first = false;
            text += length;
        }
        if (*text == '\0') {
            putc('\n', out);
            return;
        }
        if (*text == '\n') {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
            text++;
        }
    }
}

/* One line of two columns. */
static void print_row(FILE *out, const char *left, const char *right, size_t indent)
{
    size_t length = strlen(left);
    if (length + 2 > indent) {
        fprintf(out, "%s\n%*s", left, (int)indent, "");
    } else {
        fprintf(out, "%-*s", (int)indent, left);
    }
    print_wrapped(out, right, indent, indent);
}

/* "  -j, --json" or "      --explain TARGET"; returns its length. */
static size_t option_left(const struct cli_option *option, char *left)
{
    char letter[] = {'-', option->letter, ',', '\0'};
    int length = snprintf(left, LEFT_BYTES, "  %3s --%s%s%s", option->letter != 0 ? letter : "", option->name,
                          option->argument != NULL ? " " : "", option->argument != NULL ? option->argument : "");
    return length < 0 ? 0 : (size_t)length;
}

static void print_options(const struct cli_command *command, FILE *out)
{
    char left[LEFT_BYTES];
    size_t indent = option_left(&help_option, left);
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        size_t length = option_left(o, left);
        if (length > indent && length <= LEFT_MAX) {
            indent = length;
        }
    }
    fputs("\nOptions:\n", out);
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        (void)option_left(o, left);
        print_row(out, left, o->help, indent + 2);
    }
    (void)option_left(&help_option, left);
    print_row(out, left, help_option.help, indent + 2);
}

static void print_commands(const struct cli_command *command, FILE *out)
{
    char left[LEFT_BYTES];
    const struct cli_command *child = NULL;
    size_t indent = 0;
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        size_t length = strlen(child->name) + 2;
        indent = length > indent ? length : indent;
    }
    fputs("\nCommands:\n", out);
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        (void)snprintf(left, sizeof left, "  %s", child->name);
        print_row(out, left, child->summary, indent + 2);
    }
}

/* Text that ends with one newline, whether it was written with one or not. */
static void print_text(FILE *out, const char *text)
{
    size_t length = strlen(text);
    fputs(text, out);
    if (length == 0 || text[length - 1] != '\n') {
        putc('\n', out);
    }
}

void cli_help(const struct cli_command *command, FILE *out)
{
    size_t path;
    (void)cli_path(command, &path);
    fputs("Usage: becalm ", out);
    print_wrapped(out, command->usage, sizeof "Usage: becalm " - 1, sizeof "Usage: becalm " + path);
    putc('\n', out);
    print_text(out, command->purpose);
    if (cli_child(command, 0) != NULL) {
        print_commands(command, out);
    }
    print_options(command, out);
    if (command->examples != NULL) {
        fputs("\nExamples:\n", out);
        print_text(out, command->examples);
    }
    if (command == &cli_root) {
        fputs("\nExit codes: 0 fine, 1 findings or failure, 2 wrong usage.\n"
              "'becalm COMMAND --help' says more, and so do the manual pages.\n",
              out);
    }
}

static int help_run(const struct cli_command *self, const struct cli_args *args)
{
    const struct cli_command *command = &cli_root;
    (void)self;
    for (uint32_t i = 0; i < args->word_count; i++) {
        const struct cli_command *child = cli_child_named(command, args->words[i]);
        if (child == NULL) {
            return cli_unknown_command(command, args->words[i]);
        }
        command = child;
    }
    cli_help(command, stdout);
    return 0;
}

const struct cli_command cmd_help = {
    .name = "help",
    .summary = "print the help of a command",
    .usage = "help [COMMAND [SUBCOMMAND]]",
    .purpose = "Prints the same help as the command's --help.",
    .examples = "  becalm help check\n"
                "  becalm help plan budget\n",
    .complete = CLI_WORDS, /* without words: the names of the commands */
    .run = help_run,
};
