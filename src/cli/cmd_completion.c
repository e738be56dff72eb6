/* SPDX-License-Identifier: MIT */
#include "cli.h"

#include <string.h>

/* Completion for three shells, from the tables that the command line is parsed by. All three work alike: find the
 * command from the words before the cursor, then offer the value of the option before it, or options after a dash, or
 * else the arguments of the command: subcommands, files or words. */

typedef void each_fn(const struct cli_command *);

/* Calls `each` for a command and all below it. */
static void walk(const struct cli_command *command, each_fn *each)
{
    const struct cli_command *child = NULL;
    each(command);
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        walk(child, each);
    }
}

static void print_path(const struct cli_command *command)
{
    size_t length;
    const char *path = cli_path(command, &length);
    printf("%.*s", (int)length, path);
}

/* Text inside of single quotes, with a backslash before the characters in `special`. bash and zsh leave the quotes to
 * write one; fish escapes it. */
static void print_quoted(const char *text, const char *special, const char *quote)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs(quote, stdout);
        } else {
            printf("%s%c", strchr(special, *text) != NULL ? "\\" : "", *text);
        }
    }
}

/* The words that can stand after a command: its subcommands, or those of its table, or all commands for `help`. */
static void print_words(const struct cli_command *command)
{
    const struct cli_command *parent = command->complete == CLI_WORDS && command->words == NULL ? &cli_root : command;
    const struct cli_command *child = NULL;
    if (cli_child(parent, 0) == NULL) {
        fputs(command->words, stdout);
        return;
    }
    for (size_t i = 0; (child = cli_child(parent, i)) != NULL; i++) {
        printf("%s%s", i > 0 ? " " : "", child->name);
    }
}

static bool has_words(const struct cli_command *command)
{
    return cli_child(command, 0) != NULL || command->complete == CLI_WORDS;
}

/* ---- bash ---- */

static void bash_known_path(const struct cli_command *command)
{
    if (command != &cli_root) {
        fputs(" | ' ", stdout);
        print_path(command);
        putchar('\'');
    }
}

static void bash_space_and_path(const struct cli_command *command)
{
    if (command != &cli_root) {
        putchar(' ');
        print_path(command);
    }
}

static void bash_values(const struct cli_command *command)
{
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        if (o->argument == NULL) {
            continue;
        }
        fputs("    '", stdout);
        bash_space_and_path(command);
        printf(" --%s'", o->name);
        if (o->letter != 0) {
            fputs(" | '", stdout);
            bash_space_and_path(command);
            printf(" -%c'", o->letter);
        }
        switch (o->complete) {
        case CLI_NOTHING:
            puts(") return ;;");
            break;
        case CLI_FILE:
            puts(") _becalm_files && return ;;");
            break;
        case CLI_WORDS:
            printf(") _becalm_words '%s' && return ;;\n", o->words);
            break;
        }
    }
}

static void bash_options(const struct cli_command *command)
{
    fputs("        '", stdout);
    bash_space_and_path(command);
    fputs("') _becalm_words '", stdout);
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        printf("--%s ", o->name);
    }
    puts("--help' ;;");
}

static void bash_arguments(const struct cli_command *command)
{
    if (!has_words(command) && command->complete == CLI_NOTHING) {
        return;
    }
    fputs("    '", stdout);
    bash_space_and_path(command);
    if (has_words(command)) {
        fputs("') _becalm_words '", stdout);
        print_words(command);
        puts("' ;;");
    } else {
        puts("') _becalm_files ;;");
    }
}

static void print_bash(void)
{
    fputs("# bash completion of becalm, printed by: becalm completion bash\n"
          "_becalm_words() {\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\")\n"
          "}\n"
          "_becalm_files() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
          "}\n"
          "_becalm() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} path= i\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case \"$path ${COMP_WORDS[i]}\" in\n"
          "        ''",
          stdout);
    walk(&cli_root, bash_known_path);
    fputs(") path+=\" ${COMP_WORDS[i]}\" ;;\n"
          "        esac\n"
          "    done\n"
          "    # --name=value arrives as three words.\n"
          "    if [[ $current == '=' ]]; then\n"
          "        current=\n"
          "    elif [[ $before == '=' ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    case \"$path $before\" in\n",
          stdout);
    walk(&cli_root, bash_values);
    fputs("    esac\n"
          "    if [[ $current == -* ]]; then\n"
          "        case \"$path\" in\n",
          stdout);
    walk(&cli_root, bash_options);
    fputs("        esac\n"
          "        return\n"
          "    fi\n"
          "    case \"$path\" in\n",
          stdout);
    walk(&cli_root, bash_arguments);
    fputs("    esac\n"
          "}\n"
          "complete -F _becalm becalm\n",
          stdout);
}

/* ---- zsh ---- */

static void zsh_function(const struct cli_command *command)
{
    size_t length;
    const char *path = cli_path(command, &length);
    fputs("_becalm", stdout);
    for (size_t i = 0; i < length; i++) {
        printf("%s%c", i == 0 ? "_" : "", path[i] == ' ' ? '_' : path[i]);
    }
}

/* The part after the second colon of a specification. */
static void zsh_action(enum cli_complete complete, const char *words)
{
    switch (complete) {
    case CLI_NOTHING:
        putchar(' ');
        break;
    case CLI_FILE:
        fputs("_files", stdout);
        break;
    case CLI_WORDS:
        printf("(%s)", words);
        break;
    }
}

/* '(-n --name)'{-n+,--name=}'[help]:ARGUMENT:action' */
static void zsh_option(const struct cli_option *o)
{
    const char *glued = o->argument != NULL ? "+" : "";
    const char *equals = o->argument != NULL ? "=" : "";
    fputs("        ", stdout);
    if (o->many) {
        fputs("'*'", stdout);
    } else if (o->letter != 0) {
        printf("'(-%c --%s)'", o->letter, o->name);
    }
    if (o->letter != 0) {
        printf("{-%c%s,--%s%s}", o->letter, glued, o->name, equals);
    } else {
        printf("--%s%s", o->name, equals);
    }
    fputs("'[", stdout);
    print_quoted(o->help, "[]:\\", "'\\''");
    putchar(']');
    if (o->argument != NULL) {
        putchar(':');
        print_quoted(o->argument, "[]:\\", "'\\''");
        putchar(':');
        zsh_action(o->complete, o->words);
    }
    puts("' \\");
}

/* A command with subcommands: the first word chooses one, and the rest are its arguments. */
static void zsh_parent(const struct cli_command *command)
{
    const struct cli_command *child = NULL;
    puts("        '1:command:->command' '*::argument:->argument'\n"
         "    case $state in\n"
         "    command)\n"
         "        commands=(");
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        printf("            '%s:", child->name);
        print_quoted(child->summary, "\\", "'\\''");
        puts("'");
    }
    puts("        )\n"
         "        _describe command commands ;;\n"
         "    argument)\n"
         "        case $words[1] in");
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        printf("        %s) ", child->name);
        zsh_function(child);
        puts(" ;;");
    }
    puts("        esac ;;\n"
         "    esac");
}

static void zsh_command(const struct cli_command *command)
{
    zsh_function(command);
    puts("() {\n"
         "    local curcontext=$curcontext state line\n"
         "    local -A opt_args\n"
         "    local -a commands\n"
         "    _arguments -C -s \\");
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        zsh_option(o);
    }
    puts("        '(- *)'{-h,--help}'[print this help]' \\");
    if (cli_child(command, 0) != NULL) {
        zsh_parent(command);
    } else if (command->complete == CLI_WORDS) {
        fputs("        '*:argument:(", stdout);
        print_words(command);
        puts(")'");
    } else if (command->complete == CLI_FILE) {
        puts("        '*:file:_files'");
    } else {
        puts("        && return");
    }
    puts("}");
}

static void print_zsh(void)
{
    puts("#compdef becalm\n"
         "# zsh completion of becalm, printed by: becalm completion zsh");
    walk(&cli_root, zsh_command);
    puts("# Read by zsh's own machinery, or by: source <(becalm completion zsh)\n"
         "if [[ $funcstack[1] == _becalm ]]; then\n"
         "    _becalm \"$@\"\n"
         "else\n"
         "    compdef _becalm becalm\n"
         "fi");
}

/* ---- fish ---- */

static void fish_known_path(const struct cli_command *command)
{
    if (command != &cli_root) {
        fputs(" '", stdout);
        print_path(command);
        putchar('\'');
    }
}

static void fish_rule(const struct cli_command *command)
{
    fputs("complete -c becalm -n '__becalm_at ", stdout);
    print_path(command);
    putchar('\'');
}

static void fish_description(const char *text)
{
    fputs(" -d '", stdout);
    print_quoted(text, "\\", "\\'");
    puts("'");
}

static void fish_option(const struct cli_command *command, const struct cli_option *o)
{
    fish_rule(command);
    printf(" -l %s", o->name);
    if (o->letter != 0) {
        printf(" -s %c", o->letter);
    }
    if (o->argument != NULL) {
        switch (o->complete) {
        case CLI_NOTHING:
            fputs(" -x", stdout);
            break;
        case CLI_FILE:
            fputs(" -r -F", stdout);
            break;
        case CLI_WORDS:
            printf(" -x -a '%s'", o->words);
            break;
        }
    }
    fish_description(o->help);
}

static void fish_command(const struct cli_command *command)
{
    const struct cli_command *child = NULL;
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        fish_rule(command);
        printf(" -a %s", child->name);
        fish_description(child->summary);
    }
    if (cli_child(command, 0) == NULL && command->complete == CLI_WORDS) {
        fish_rule(command);
        fputs(" -a '", stdout);
        print_words(command);
        puts("'");
    }
    if (command->complete == CLI_FILE) {
        fish_rule(command);
        puts(" -F");
    }
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        fish_option(command, o);
    }
}

static void print_fish(void)
{
    fputs("# fish completion of becalm, printed by: becalm completion fish\n"
          "function __becalm_at\n"
          "    set -l path\n"
          "    for word in (commandline -opc)\n"
          "        if contains -- (string join ' ' $path $word)",
          stdout);
    walk(&cli_root, fish_known_path);
    puts("\n"
         "            set -a path $word\n"
         "        end\n"
         "    end\n"
         "    test \"$path\" = \"$argv\"\n"
         "end\n"
         "complete -c becalm -f\n"
         "complete -c becalm -s h -l help -d 'print this help'");
    walk(&cli_root, fish_command);
}

/* ---- the command ---- */

static int completion_run(const struct cli_command *self, const struct cli_args *args)
{
    if (args->word_count == 0) {
        return cli_usage(self, "which shell? bash, zsh or fish");
    }
    if (args->word_count > 1) {
        return cli_usage(self, "unexpected argument '%s'", args->words[1]);
    }
    if (strcmp(args->words[0], "bash") == 0) {
        print_bash();
    } else if (strcmp(args->words[0], "zsh") == 0) {
        print_zsh();
    } else if (strcmp(args->words[0], "fish") == 0) {
        print_fish();
    } else {
        return cli_usage(self, "unknown shell '%s'; use bash, zsh or fish", args->words[0]);
    }
    return 0;
}

const struct cli_command cmd_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .usage = "completion bash|zsh|fish",
    .purpose = "Prints a script with which a shell completes becalm's commands, options and\n"
               "files. Packages install these scripts; use this where becalm is not installed.",
    .examples = "  source <(becalm completion bash)\n"
                "  becalm completion zsh >~/.zfunc/_becalm\n"
                "  becalm completion fish >~/.config/fish/completions/becalm.fish\n",
    .complete = CLI_WORDS,
    .words = "bash zsh fish",
    .run = completion_run,
};
