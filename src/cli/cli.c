/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"

#include "policy/text/escape.h"
#include "policy/value.h"

#include <becalm/version.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GO_ON         (-1) /* not an exit code: nothing was wrong, and nothing is done yet */
#define NAMES_MAX     64
#define MESSAGE_BYTES ESCAPE_BYTES_MAX

static const struct cli_option root_options[] = {
    {.name = "version", .letter = 'V', .help = "print the version"},
    {.name = NULL},
};

const struct cli_command cli_root = {
    .name = "becalm",
    .usage = "COMMAND [options] ...",
    .purpose = "Retries that calm a storm instead of feeding it: runs the gateway or sidecar,\n"
               "and simulates, checks, plans and imports the policy file that it obeys.",
    .options = root_options,
    .examples = "  becalm demo\n"
                "  becalm init && becalm proxy becalm.yaml\n"
                "  becalm check becalm.yaml\n"
                "  becalm exec --retries 3 --timeout 10s -- curl -fsS https://shop.example/\n"
                "  becalm sim metastable --compare all\n"
                "  becalm help plan budget\n",
};

/* ---- the tables as a tree ---- */

const struct cli_command *cli_child(const struct cli_command *command, size_t index)
{
    if (command == &cli_root) {
        return cli_commands[index];
    }
    if (command->subcommands == NULL || command->subcommands[index].name == NULL) {
        return NULL;
    }
    return &command->subcommands[index];
}

const struct cli_command *cli_child_named(const struct cli_command *command, const char *name)
{
    const struct cli_command *child = NULL;
    for (size_t i = 0; (child = cli_child(command, i)) != NULL; i++) {
        if (strcmp(child->name, name) == 0) {
            return child;
        }
    }
    return NULL;
}

static bool has_children(const struct cli_command *command)
{
    return command == &cli_root || command->subcommands != NULL;
}

/* The usage begins with the path, and the command's own name ends the path. */
const char *cli_path(const struct cli_command *command, size_t *length)
{
    const char *at = command->usage;
    size_t name = strlen(command->name);
    *length = 0;
    while (command != &cli_root) {
        size_t word = strcspn(at, " \n");
        BECALM_ASSERT(word > 0);
        if (word == name && memcmp(at, command->name, name) == 0) {
            *length = (size_t)(at - command->usage) + word;
            break;
        }
        at += word + (at[word] != '\0' ? 1 : 0);
    }
    return command->usage;
}

static size_t option_count(const struct cli_command *command)
{
    size_t count = 0;
    while (command->options != NULL && command->options[count].name != NULL) {
        count++;
    }
    BECALM_ASSERT(count <= CLI_OPTIONS_MAX);
    return count;
}

/* ---- error messages ---- */

static void complain(const struct cli_command *command, const char *format, va_list list)
{
    char message[MESSAGE_BYTES]; /* a longer one is cut */
    size_t length;
    const char *path = cli_path(command, &length);
    (void)vsnprintf(message, sizeof message, format, list);
    escape_text(message, sizeof message);
    fprintf(stderr, "becalm%s%.*s: %s\n", length > 0 ? " " : "", (int)length, path, message);
}

int cli_usage(const struct cli_command *command, const char *format, ...)
{
    va_list list;
    size_t length;
    const char *path = cli_path(command, &length);
    va_start(list, format);
    complain(command, format, list);
    va_end(list);
    fprintf(stderr, "Try 'becalm%s%.*s --help'.\n", length > 0 ? " " : "", (int)length, path);
    return command->failure != 0 ? command->failure : 2;
}

int cli_fail(const struct cli_command *command, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    complain(command, format, list);
    va_end(list);
    return command->failure != 0 ? command->failure : 1;
}

int cli_unknown_command(const struct cli_command *parent, const char *name)
{
    const char *names[NAMES_MAX];
    const struct cli_command *child = NULL;
    size_t count = 0;
    for (size_t i = 0; (child = cli_child(parent, i)) != NULL && count < NAMES_MAX; i++) {
        names[count++] = child->name;
    }
    const char *nearest = value_nearest(name, names, count);
    if (nearest == NULL) {
        return cli_usage(parent, "unknown command '%s'", name);
    }
    return cli_usage(parent, "unknown command '%s'; did you mean '%s'?", name, nearest);
}

static int unknown_option(const struct cli_command *command, const char *name, size_t length)
{
    const char *names[CLI_OPTIONS_MAX + 1];
    char typed[64];
    size_t count = option_count(command);
    for (size_t i = 0; i < count; i++) {
        names[i] = command->options[i].name;
    }
    names[count++] = "help";
    (void)snprintf(typed, sizeof typed, "%.*s", (int)length, name); /* nothing so long is near to anything */
    const char *nearest = value_nearest(typed, names, count);
    if (nearest == NULL) {
        return cli_usage(command, "unknown option '--%.*s'", (int)length, name);
    }
    return cli_usage(command, "unknown option '--%.*s'; did you mean '--%s'?", (int)length, name, nearest);
}

/* ---- arguments ---- */

/* One command's arguments while they are read. */
struct reader {
    const struct cli_command *command;
    char **argv; /* the arguments that are left; ends with NULL */
    struct cli_args args;
    const char **memory; /* CLI_OPTIONS_MAX lists and the words, `stride` pointers each, all NULL at first */
    size_t stride;
};

/* The list of one option of `many`, or at CLI_OPTIONS_MAX the plain arguments. */
static const char **list_of(const struct reader *reader, size_t index)
{
    return &reader->memory[index * reader->stride];
}

static void note(struct reader *reader, size_t index, const char *value)
{
    list_of(reader, index)[reader->args.given[index]] = value;
    reader->args.given[index]++;
    reader->args.value[index] = value;
}

static int read_long(struct reader *reader, const char *name)
{
    const struct cli_command *command = reader->command;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    size_t count = option_count(command);
    for (size_t i = 0; i < count; i++) {
        const struct cli_option *option = &command->options[i];
        if (strlen(option->name) != length || memcmp(option->name, name, length) != 0) {
            continue;
        }
        if (option->argument == NULL && value != NULL) {
            return cli_usage(command, "option '--%s' takes no value", option->name);
        }
        if (option->argument != NULL && value == NULL) {
            value = *reader->argv;
            if (value == NULL) {
                return cli_usage(command, "option '--%s' needs a value: --%s %s", option->name, option->name,
                                 option->argument);
            }
            reader->argv++;
        }
        note(reader, i, value);
        return GO_ON;
    }
    return unknown_option(command, name, length);
}

/* Letters of one word: flags, of which the last may be an option whose value is the rest of the word or the next one.
 */
static int read_letters(struct reader *reader, const char *letters)
{
    const struct cli_command *command = reader->command;
    size_t count = option_count(command);
    for (; *letters != '\0'; letters++) {
        size_t i = 0;
        if (*letters == 'h') {
            cli_help(command, stdout);
            return 0;
        }
        while (i < count && command->options[i].letter != *letters) {
            i++;
        }
        if (i == count) {
            return cli_usage(command, "unknown option '-%c'", *letters);
        }
        if (command->options[i].argument == NULL) {
            note(reader, i, NULL);
            continue;
        }
        const char *value = letters + 1;
        if (*value == '\0') {
            value = *reader->argv;
            if (value == NULL) {
                return cli_usage(command, "option '-%c' needs a value: -%c %s", *letters, *letters,
                                 command->options[i].argument);
            }
            reader->argv++;
        }
        note(reader, i, value);
        return GO_ON;
    }
    return GO_ON;
}

static int read_word(struct reader *reader, const char *word)
{
    if (reader->command->complete == CLI_NOTHING) {
        return cli_usage(reader->command, "unexpected argument '%s'", word);
    }
    if (reader->args.word_count == CLI_WORDS_MAX && !reader->command->passes_on) {
        return cli_usage(reader->command, "too many arguments: at most %d", CLI_WORDS_MAX);
    }
    list_of(reader, CLI_OPTIONS_MAX)[reader->args.word_count++] = word;
    return GO_ON;
}

static int read_all(struct reader *reader)
{
    int rc = GO_ON;
    bool options = true;
    while (rc == GO_ON && *reader->argv != NULL) {
        const char *arg = *reader->argv++;
        if (!options || arg[0] != '-' || arg[1] == '\0') {
            rc = read_word(reader, arg);
            options = options && !reader->command->passes_on;
        } else if (strcmp(arg, "--") == 0) {
            options = false;
        } else if (strcmp(arg, "--help") == 0) {
            cli_help(reader->command, stdout);
            rc = 0;
        } else if (arg[1] == '-') {
            rc = read_long(reader, arg + 2);
        } else {
            rc = read_letters(reader, arg + 1);
        }
    }
    return rc;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct reader reader = {.command = command, .argv = argv, .stride = (size_t)argc + 1};
    reader.memory = calloc((CLI_OPTIONS_MAX + 1) * reader.stride, sizeof *reader.memory);
    if (reader.memory == NULL) {
        return cli_fail(command, "there is not enough memory");
    }
    for (size_t i = 0; i < CLI_OPTIONS_MAX; i++) {
        reader.args.all[i] = list_of(&reader, i);
    }
    reader.args.words = list_of(&reader, CLI_OPTIONS_MAX);
    int rc = read_all(&reader);
    if (rc == GO_ON) {
        rc = command->run(command, &reader.args);
    }
    free(reader.memory);
    return rc;
}

/* ---- asking for options by name ---- */

static size_t index_of(const struct cli_command *command, const char *option)
{
    size_t count = option_count(command);
    size_t i = 0;
    while (i < count && strcmp(command->options[i].name, option) != 0) {
        i++;
    }
    BECALM_ASSERT(i < count);
    return i;
}

bool cli_has(const struct cli_command *command, const struct cli_args *args, const char *option)
{
    return args->given[index_of(command, option)] > 0;
}

const char *cli_value(const struct cli_command *command, const struct cli_args *args, const char *option)
{
    return args->value[index_of(command, option)];
}

const char *const *cli_values(const struct cli_command *command, const struct cli_args *args, const char *option)
{
    return args->all[index_of(command, option)];
}

/* ---- the whole ---- */

static bool is(const char *arg, const char *letter, const char *name)
{
    return strcmp(arg, letter) == 0 || strcmp(arg, name) == 0;
}

/* An option where a command should stand. */
static int option_of_parent(const struct cli_command *parent, const char *arg)
{
    if (is(arg, "-h", "--help")) {
        cli_help(parent, stdout);
        return 0;
    }
    if (parent == &cli_root) {
        if (is(arg, "-V", "--version")) {
            printf("becalm %s\n", becalm_version());
            return 0;
        }
        if (arg[1] == '-' && arg[2] != '\0') {
            return unknown_option(parent, arg + 2, strcspn(arg + 2, "="));
        }
        return cli_usage(parent, "unknown option '%s'", arg);
    }
    return cli_usage(parent, "a command must come before '%s'", arg);
}

static int dispatch(int argc, char **argv)
{
    const struct cli_command *command = &cli_root;
    while (has_children(command)) {
        if (argc == 0) {
            cli_help(command, stderr);
            return 2;
        }
        if (argv[0][0] == '-') {
            return option_of_parent(command, argv[0]);
        }
        const struct cli_command *child = cli_child_named(command, argv[0]);
        if (child == NULL) {
            return cli_unknown_command(command, argv[0]);
        }
        command = child;
        argc--;
        argv++;
    }
    return run(command, argc, argv);
}

/* A program that is started with a standard descriptor closed would give its number to the next file or socket, and
 * then write messages into that. So each gets one that fails the way a closed one does: not open in its direction. */
static void hold_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY); /* the lowest free number, so it is fd */
        }
    }
}

/* A pipe without a reader. The error of a write in the middle is no longer in errno at the end. */
static bool reader_went_away(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/* A failed write is an error: otherwise a full disk would leave half a policy behind and exit 0. A reader
 * that went away has seen enough, and needs no message. */
static int finish(int rc)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fflush(stdout) == 0 && !failed) {
        return rc;
    }
    if (errno == EPIPE || reader_went_away()) {
        return rc == 0 ? 1 : rc;
    }
    if (errno == 0) {
        return cli_fail(&cli_root, "can't write to standard output");
    }
    return cli_fail(&cli_root, "can't write to standard output: %s", strerror(errno));
}

int cli_main(int argc, char **argv)
{
    hold_standard_descriptors();
    int skip = argc > 0 ? 1 : 0;
    return finish(dispatch(argc - skip, argv + skip));
}
