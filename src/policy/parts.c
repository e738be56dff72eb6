/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "substitute.h"

#define PATH_BYTES 4096

static int is_policy(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* Not alphasort, which depends on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

bool parts_files(const char *part, parts_fn *each, void *data)
{
    struct stat status;
    struct dirent **entries = NULL;
    if (stat(part, &status) != 0) {
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        (void)each(part, data);
        return true;
    }
    int count = scandir(part, &entries, is_policy, by_name);
    bool more = true;
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        int length =
            snprintf(path, sizeof path, "%s%s%s", part, part[strlen(part) - 1] == '/' ? "" : "/", entries[i]->d_name);
        more = more && length > 0 && (size_t)length < sizeof path && each(path, data);
        free(entries[i]);
    }
    free(entries);
    return count >= 0;
}

struct merge {
    struct parts *parts;
    struct yaml_tree *first;
    struct arena *arena;
    const struct becalm_load_options *options;
    struct becalm_diags *diags;
    uint32_t path_count;
    bool no_memory;
};

/* The place of an earlier service with this name. */
static void duplicate(const struct merge *m, const struct yaml_node *key, const struct yaml_node *before,
                      const char *file)
{
    becalm_diag_add(m->diags, BECALM_ERROR, file, key->line, key->column, "duplicate-key",
                    "the service \"%.64s\" is here twice; the first is at %s:%u, keep one of them", key->text,
                    before->file == NULL ? m->first->name : before->file, (unsigned)before->line);
}

/* Puts one more pair into a mapping. */
static bool append(struct arena *arena, struct yaml_node *mapping, struct yaml_node *key, struct yaml_node *value)
{
    struct yaml_node **keys = arena_take(arena, (mapping->count + 1) * sizeof *keys);
    struct yaml_node **items = arena_take(arena, (mapping->count + 1) * sizeof *items);
    if (keys == NULL || items == NULL) {
        return false;
    }
    if (mapping->count > 0) {
        memcpy(keys, mapping->key, mapping->count * sizeof(struct yaml_node *));
        memcpy(items, mapping->item, mapping->count * sizeof(struct yaml_node *));
    }
    keys[mapping->count] = key;
    items[mapping->count] = value;
    mapping->key = keys;
    mapping->item = items;
    mapping->count++;
    return true;
}

/* The mapping `services` of the first file; created if it is missing. NULL: it is no mapping, which the loader will
 * report, or no memory. */
static struct yaml_node *services_of_the_first(struct merge *m)
{
    struct yaml_node *root = m->first->root;
    struct yaml_node *services = (struct yaml_node *)(uintptr_t)yaml_get(root, "services");
    if (services == NULL) {
        struct yaml_node *key = arena_take(m->arena, sizeof *key);
        services = arena_take(m->arena, sizeof *services);
        if (key == NULL || services == NULL) {
            m->no_memory = true;
            return NULL;
        }
        *key = (struct yaml_node){.kind = YAML_SCALAR, .line = 1, .column = 1, .text = "services", .length = 8};
        *services = (struct yaml_node){.kind = YAML_MAPPING, .line = 1, .column = 1};
        m->no_memory = !append(m->arena, root, key, services);
    } else if (yaml_is_null(services)) {
        *services = (struct yaml_node){.kind = YAML_MAPPING, .line = services->line, .column = services->column};
    }
    return services->kind == YAML_MAPPING && !m->no_memory ? services : NULL;
}

static void services_take(struct merge *m, const struct yaml_node *from, const char *file)
{
    struct yaml_node *into = services_of_the_first(m);
    for (uint32_t i = 0; into != NULL && i < from->count && !m->no_memory; i++) {
        struct yaml_node *key = from->key[i];
        uint32_t before = 0;
        while (before < into->count && strcmp(into->key[before]->text, key->text) != 0) {
            before++;
        }
        if (before < into->count) {
            duplicate(m, key, into->key[before], file);
            continue;
        }
        key->file = file;
        m->no_memory = !append(m->arena, into, key, from->item[i]);
    }
}

/* A part has services and nothing else. */
static void part_take(struct merge *m, struct yaml_tree *tree, const char *file)
{
    const struct yaml_node *root = tree->root;
    if (yaml_is_null(root)) {
        return;
    }
    if (root->kind != YAML_MAPPING) {
        becalm_diag_add(m->diags, BECALM_ERROR, file, root->line, root->column, "wrong-type",
                        "a part of a policy is a mapping; write services: {name: {...}}");
        return;
    }
    for (uint32_t i = 0; i < root->count; i++) {
        const struct yaml_node *key = root->key[i];
        const struct yaml_node *value = root->item[i];
        if (yaml_is(key, "services") && value->kind == YAML_MAPPING) {
            services_take(m, value, file);
        } else if (yaml_is(key, "services") && !yaml_is_null(value)) {
            becalm_diag_add(m->diags, BECALM_ERROR, file, value->line, value->column, "wrong-type",
                            "services is a mapping of names; write name: {...}");
        } else if (!yaml_is(key, "services") && !(yaml_is(key, "version") && yaml_is(value, "1"))) {
            becalm_diag_add(m->diags, BECALM_ERROR, file, key->line, key->column, "unknown-key",
                            "a part of a policy has no key \"%.64s\"; it has services, and all other keys belong in %s",
                            key->text, m->first->name);
        }
    }
}

static bool file_take(const char *path, void *data)
{
    struct merge *m = data;
    size_t length = 0;
    const char *why;
    if (m->parts->count >= PARTS_MAX) {
        becalm_diag_add(m->diags, BECALM_ERROR, path, 1, 1, "too-large", "there are more than %u parts; write fewer",
                        PARTS_MAX);
        return false;
    }
    char *text = file_read_regular(path, &length, &why);
    const char *file = arena_text(m->arena, path);
    if (text == NULL || file == NULL) {
        m->no_memory = file == NULL;
        if (text == NULL) {
            becalm_diag_add(m->diags, BECALM_ERROR, path, 1, 1, "unreadable", "%s", why);
        }
        free(text);
        return !m->no_memory;
    }
    struct yaml_tree *tree = yaml_parse(file, text, length, m->diags);
    free(text);
    if (tree == NULL) {
        return true;
    }
    m->parts->trees[m->parts->count++] = tree;
    if (m->options != NULL && m->options->substitute && !substitute_tree(tree, m->arena, m->diags)) {
        m->no_memory = true;
    }
    part_take(m, tree, file);
    return !m->no_memory;
}

/* A file or a folder, as `where` names it. */
static void path_take(struct merge *m, const char *path, const char *where, uint32_t line, uint32_t column)
{
    const char *kept = arena_text(m->arena, path);
    const char **paths = arena_take(m->arena, (m->path_count + 2) * sizeof *paths);
    if (kept == NULL || paths == NULL) {
        m->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < m->path_count; i++) {
        paths[i] = m->parts->paths[i];
    }
    paths[m->path_count++] = kept;
    m->parts->paths = paths;
    if (!parts_files(path, file_take, m) && !m->no_memory) {
        becalm_diag_add(m->diags, BECALM_ERROR, where, line, column, "unreadable", "%.128s: %s", path, strerror(errno));
    }
}

static void include_take(struct merge *m, const struct yaml_node *item)
{
    char path[PATH_BYTES];
    const char *slash = strrchr(m->first->name, '/');
    if (item->kind != YAML_SCALAR || item->length == 0) {
        becalm_diag_add(m->diags, BECALM_ERROR, m->first->name, item->line, item->column, "wrong-type",
                        "include is a list of files and folders; write [conf.d, extra.yaml]");
        return;
    }
    size_t folder = item->text[0] == '/' || slash == NULL ? 0 : (size_t)(slash - m->first->name) + 1;
    if (folder + item->length >= sizeof path) {
        becalm_diag_add(m->diags, BECALM_ERROR, m->first->name, item->line, item->column, "wrong-type",
                        "include: the path is too long; write a shorter one");
        return;
    }
    memcpy(path, m->first->name, folder);
    memcpy(path + folder, item->text, item->length + 1);
    path_take(m, path, m->first->name, item->line == 0 ? 1 : item->line, item->column == 0 ? 1 : item->column);
}

bool parts_merge(struct parts *parts, struct yaml_tree *first, struct arena *arena,
                 const struct becalm_load_options *options, struct becalm_diags *diags)
{
    struct merge m = {.parts = parts, .first = first, .arena = arena, .options = options, .diags = diags};
    const char *const *more = options == NULL ? NULL : options->parts;
    const struct yaml_node *include = first->root->kind == YAML_MAPPING ? yaml_get(first->root, "include") : NULL;
    *parts = (struct parts){.trees = NULL};
    if ((include == NULL || yaml_is_null(include)) && (more == NULL || *more == NULL)) {
        return true;
    }
    parts->trees = calloc(PARTS_MAX, sizeof(struct yaml_tree *));
    if (parts->trees == NULL) {
        return false;
    }
    if (include != NULL && include->kind == YAML_SEQUENCE) {
        for (uint32_t i = 0; i < include->count && !m.no_memory; i++) {
            include_take(&m, include->item[i]);
        }
    } else if (include != NULL && !yaml_is_null(include)) {
        include_take(&m, include);
    }
    for (; more != NULL && *more != NULL && !m.no_memory; more++) {
        path_take(&m, *more, *more, 1, 1);
    }
    return !m.no_memory;
}

void parts_free(struct parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        yaml_free(parts->trees[i]);
    }
    free(parts->trees);
}
