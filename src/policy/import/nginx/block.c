/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* fnmatch */
#include "nginx_internal.h"

#include <fnmatch.h>
#include <string.h>

const char *const nginx_module_prefix[MODULES] = {[PROXY] = "proxy_", [GRPC] = "grpc_"};
const char *const nginx_setting_name[SETTINGS] = {
    [NEXT_UPSTREAM] = "next_upstream",         [NEXT_TRIES] = "next_upstream_tries",
    [NEXT_TIMEOUT] = "next_upstream_timeout",  [CONNECT_TIMEOUT] = "connect_timeout",
    [READ_TIMEOUT] = "read_timeout",           [SSL_VERIFY] = "ssl_verify",
    [SSL_TRUSTED] = "ssl_trusted_certificate", [SSL_NAME] = "ssl_name",
    [SSL_CERTIFICATE] = "ssl_certificate",     [SSL_KEY] = "ssl_certificate_key"};

void *nginx_pile_add(struct nginx *in, struct pile *pile, size_t size)
{
    if (pile->count == pile->space) { /* the arena keeps the old one as well: twice the memory at most */
        uint32_t space = pile->space == 0 ? 16 : pile->space * 2;
        char *more = emit_take(in->s->emit, space * size);
        if (more == NULL) {
            return NULL;
        }
        if (pile->count > 0) {
            memcpy(more, pile->at, pile->count * size);
        }
        pile->at = more;
        pile->space = space;
    }
    return (char *)pile->at + size * pile->count++;
}

struct hit nginx_hit_here(const struct nginx *in, const struct yaml_node *node)
{
    return (struct hit){node, in->s->file};
}

struct from nginx_from_of(const struct yaml_node *directive, const char *remark)
{
    return (struct from){directive, directive_text(directive, 0), remark};
}

/* ---- includes ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The name of the folder that a path's last part is in, as a length before its slash; 0 if there is none. */
static size_t folder_of(const char *path, const char **folder)
{
    const char *end = last_part(path);
    const char *begin = end == path ? end : end - 1;
    while (begin > path && begin[-1] != '/') {
        begin--;
    }
    *folder = begin;
    return end == path ? 0 : (size_t)(end - 1 - begin);
}

/* Does an `include` mean a file that was given? Its last part fits, and the folder, if both name one. */
static bool include_means(const char *pattern, const char *file)
{
    const char *wanted, *has;
    size_t wanted_length = folder_of(pattern, &wanted);
    size_t has_length = folder_of(file, &has);
    bool folders = wanted_length == 0 || has_length == 0 ||
                   (wanted_length == has_length && memcmp(wanted, has, wanted_length) == 0);
    return folders && fnmatch(last_part(pattern), last_part(file), FNM_PERIOD) == 0;
}

/* Files that say nothing about calls. */
static bool include_is_harmless(const char *pattern)
{
    static const char *const names[] = {"mime.types",  "fastcgi_params", "fastcgi.conf",           "uwsgi_params",
                                        "scgi_params", "koi-utf",        "options-ssl-nginx.conf", "*.load"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (fnmatch(names[i], last_part(pattern), 0) == 0) {
            return true;
        }
    }
    return strstr(pattern, "modules-enabled/") != NULL;
}

/* Calls `each` for the directives of a block; those of a file that it includes and that was given stand there, too. */
static void block_walk(struct nginx *in, const struct yaml_node *block, nginx_directive_fn *each, void *data,
                       unsigned depth)
{
    const char *file = in->s->file;
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        const struct yaml_node *directive = block->item[i];
        if (!directive_is(directive, "include")) {
            each(in, directive, data);
            continue;
        }
        for (uint32_t k = 0; depth > 0 && k < in->files->count; k++) {
            const struct object *other = &in->files->at[k];
            if (other->file != file && include_means(directive_text(directive, 1), other->file)) {
                in->s->file = other->file;
                block_walk(in, other->node, each, data, depth - 1);
                in->s->file = file;
            }
        }
    }
}

void nginx_block_each(struct nginx *in, const struct yaml_node *block, nginx_directive_fn *each, void *data)
{
    block_walk(in, block, each, data, INCLUDE_DEPTH);
}

/* Marks the files that an `include` of this block, or of one in it, means, and tells of those that were not given. */
void nginx_includes_find(struct nginx *in, const struct yaml_node *block, unsigned depth)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const struct yaml_node *directive = block->item[i];
        const struct yaml_node *inner = directive_block(directive);
        if (inner != NULL && depth > 0) {
            nginx_includes_find(in, inner, depth - 1);
        }
        if (!directive_is(directive, "include")) {
            continue;
        }
        const char *pattern = directive_text(directive, 1);
        bool given = false;
        for (uint32_t k = 0; k < in->files->count; k++) {
            bool means = in->files->at[k].file != in->s->file && include_means(pattern, in->files->at[k].file);
            in->included[k] = in->included[k] || means;
            given = given || means;
        }
        if (!given && !include_is_harmless(pattern)) {
            const struct from from = {directive, emit_text(in->s->emit, "include %.64s", pattern), NULL};
            source_no_equal(in->s, NULL, &from,
                            "the file is not read; give it as well: becalm import nginx FILE FILE...");
        }
    }
}

/* ---- values ---- */

bool nginx_number_read(struct source *s, const struct from *from, const struct yaml_node *word, uint64_t *out)
{
    const struct from value = {word == NULL ? from->node : word, from->path, NULL};
    return source_integer(s, &value, out);
}

/* The value of a nginx_parameter name=value among the words of a directive; NULL: it has none. */
const char *nginx_parameter(const struct yaml_node *directive, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 2; i < directive_words(directive); i++) {
        const char *text = directive_text(directive, i);
        if (strncmp(text, name, length) == 0 && text[length] == '=') {
            return text + length + 1;
        }
    }
    return NULL;
}

bool nginx_has_word(const struct yaml_node *directive, const char *word)
{
    for (uint32_t i = 1; i < directive_words(directive); i++) {
        if (strcmp(directive_text(directive, i), word) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- scopes ---- */

static void setting_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    struct scope *scope = data;
    const char *name = directive_text(directive, 0);
    for (int m = 0; m < MODULES; m++) {
        size_t length = strlen(nginx_module_prefix[m]);
        for (int i = 0; strncmp(name, nginx_module_prefix[m], length) == 0 && i < SETTINGS; i++) {
            if (strcmp(name + length, nginx_setting_name[i]) == 0) {
                scope->hit[m][i] = nginx_hit_here(in, directive);
                in->repeats = in->repeats || nginx_has_word(directive, "non_idempotent");
            }
        }
    }
    if (strcmp(name, "set") == 0 && scope->variables < KEPT_MAX) {
        scope->variable[scope->variables++] =
            (struct kept){directive_text(directive, 1), nginx_hit_here(in, directive)};
    }
}

/* The settings of a block, with those of the one around it that it does not write. */
void nginx_scope_read(struct nginx *in, struct scope *scope, const struct scope *outer, const struct yaml_node *block)
{
    scope->outer = outer;
    scope->variables = 0;
    if (outer != NULL) {
        memcpy(scope->hit, outer->hit, sizeof scope->hit);
    } else {
        memset(scope->hit, 0, sizeof scope->hit);
    }
    nginx_block_each(in, block, setting_note, scope);
}

static const char *variable_find(const struct scope *scope, const char *name, size_t length)
{
    for (; scope != NULL; scope = scope->outer) {
        for (uint32_t i = scope->variables; i-- > 0;) {
            const char *known = scope->variable[i].name;
            if (known[0] == '$' && strlen(known + 1) == length && memcmp(known + 1, name, length) == 0) {
                return directive_text(scope->variable[i].hit.node, 2);
            }
        }
    }
    return NULL;
}

/* A text with the variables that are set in reach of it. NULL: one of them is not set, so the text is unknown. */
const char *nginx_variables_put(struct nginx *in, const struct scope *scope, const char *text)
{
    for (unsigned rounds = 0; strchr(text, '$') != NULL; rounds++) {
        const char *dollar = strchr(text, '$');
        bool braces = dollar[1] == '{';
        const char *name = dollar + 1 + braces;
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        const char *value = rounds < 8 ? variable_find(scope, name, length) : NULL;
        if (value == NULL || strlen(value) > 1024) {
            return NULL;
        }
        text = emit_text(in->s->emit, "%.*s%s%s", (int)(dollar - text), text, value,
                         name + length + (braces && name[length] == '}'));
    }
    return text;
}
