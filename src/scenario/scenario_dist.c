/* SPDX-License-Identifier: MIT */
#include "scenario_load_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/file.h"
#include "policy/value.h"

#define SAMPLE_MAX (3600 * BECALM_S)

/* One distribution, with all that it needs. */

struct dist_word {
    const char *key;
    enum dist_kind kind;
    const char *part[2]; /* of a mapping; NULL: the key's value is a duration */
    const char *example;
};

static const struct dist_word dist_words[] = {
    {"constant", DIST_CONSTANT, {NULL, NULL}, "{constant: 10ms}"},
    {"exponential", DIST_EXPONENTIAL, {NULL, NULL}, "{exponential: 10ms}"},
    {"lognormal", DIST_LOGNORMAL, {"median", "sigma"}, "{lognormal: {median: 10ms, sigma: 0.5}}"},
    {"pareto", DIST_PARETO, {"least", "alpha"}, "{pareto: {least: 10ms, alpha: 2.5}}"},
    {"normal", DIST_NORMAL, {"mean", "deviation"}, "{normal: {mean: 10ms, deviation: 2ms}}"},
    {"mixture", DIST_MIXTURE, {NULL, NULL}, NULL},
    {"samples", DIST_SAMPLES, {NULL, NULL}, NULL},
};

static struct dist dist_from(enum dist_kind kind, const struct dist_keys *keys)
{
    switch (kind) {
    case DIST_CONSTANT:
        return (struct dist){.kind = kind, .mean = keys->constant};
    case DIST_EXPONENTIAL:
        return (struct dist){.kind = kind, .mean = keys->exponential};
    case DIST_LOGNORMAL:
        return (struct dist){.kind = kind, .mean = keys->median, .shape = keys->sigma};
    case DIST_PARETO:
        return (struct dist){.kind = kind, .mean = keys->least, .shape = keys->alpha};
    case DIST_NORMAL:
        return (struct dist){
            .kind = kind, .mean = keys->mean, .shape = (uint32_t)(keys->deviation * 1000000 / keys->mean)};
    case DIST_MIXTURE:
    case DIST_SAMPLES:
        break; /* not reached: these two are more than a set of keys */
    }
    BECALM_UNREACHABLE();
}

/* A file of samples. */

/* "shop.yaml", "times.txt" -> "times.txt"; "incidents/shop.yaml" -> "incidents/times.txt". */
static char *path_beside(struct arena *arena, const char *path, const char *name)
{
    const char *slash = name[0] == '/' ? NULL : strrchr(path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *beside = arena_take(arena, folder + strlen(name) + 1);
    if (beside != NULL) {
        memcpy(beside, path, folder);
        memcpy(beside + folder, name, strlen(name) + 1);
    }
    return beside;
}

/* One duration per line; empty lines and those that begin with # count for nothing. */
static void samples_read(struct loader *l, char *text, size_t length, struct dist *dist)
{
    size_t lines = 1;
    for (size_t i = 0; i < length; i++) {
        lines += text[i] == '\n';
    }
    becalm_ns *samples = arena_take(l->arena, lines * sizeof *samples);
    if (samples == NULL) {
        (void)loader_no_memory(l);
        return;
    }
    text[length] = '\0';
    uint32_t count = 0;
    uint32_t line = 0;
    for (char *at = text, *next; at != NULL; at = next) {
        next = strchr(at, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        at[strcspn(at, "\r")] = '\0';
        line++;
        if (at[0] != '\0' && at[0] != '#' &&
            (!value_duration(at, &samples[count++]) || samples[count - 1] > SAMPLE_MAX)) {
            loader_error(l, line, 1, "wrong-type",
                         "\"%.64s\" is not a duration up to 1h; write one per line, like 12.5ms", at);
            return;
        }
    }
    *dist = (struct dist){.kind = DIST_SAMPLES, .samples = samples, .count = count};
    if (count == 0) {
        loader_error(l, 1, 1, "missing", "there is no sample; write one duration per line, like 12.5ms");
    }
}

static void samples_load(struct reading *r, const struct yaml_node *value, struct dist *dist)
{
    if (value->kind != YAML_SCALAR || value->length == 0) {
        loader_error(&r->l, value->line, value->column, "wrong-type", "samples is the name of a file");
        return;
    }
    if (r->path == NULL) {
        loader_error(&r->l, value->line, value->column, "conflict", "samples needs a scenario that is a file itself");
        return;
    }
    char *path = path_beside(r->l.arena, r->path, value->text);
    size_t length = 0;
    char *text = path == NULL ? NULL : file_read(path, &length);
    if (path == NULL) {
        (void)loader_no_memory(&r->l);
    } else if (text == NULL) {
        loader_error(&r->l, value->line, value->column, "unreadable", "samples: %.128s: %s", path, strerror(errno));
    } else if (length > YAML_BYTES_MAX) {
        loader_error(&r->l, value->line, value->column, "out-of-range", "samples: %.128s has over %u bytes", path,
                     YAML_BYTES_MAX);
    } else {
        struct loader inner = r->l;
        inner.name = path;
        samples_read(&inner, text, length, dist);
        r->l.no_memory = inner.no_memory;
    }
    free(text);
}

/* One distribution that was written as a mapping. */

static void dist_choose(struct reading *r, const char *what, const struct yaml_node *node, const struct dist_keys *keys,
                        uint32_t beside, struct dist *dist);

static void mixture_load(struct reading *r, const struct yaml_node *value, struct dist *dist)
{
    const struct yaml_node *parts = named(&r->l, value, "mixture", PARTS_MAX);
    struct dist_part *made = parts == NULL ? NULL : arena_take(r->l.arena, (parts->count + 1) * sizeof *made);
    uint64_t below = 0;
    if (parts == NULL || made == NULL) {
        r->l.no_memory |= parts != NULL;
        return;
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        static const char *const beside[] = {"samples", NULL};
        struct dist_keys keys;
        memset(&keys, 0, sizeof keys);
        struct space spaces[] = {{&schema_scenario_dist, &keys, NULL}, {&schema_scenario_weight, &keys, NULL}};
        struct place place = {.spaces = spaces,
                              .space_count = 2,
                              .what = "a part of a mixture",
                              .beside = beside,
                              .manual = SCENARIO_MANUAL};
        bool fine = apply_mapping(&r->l, &place, parts->item[i]);
        need(&r->l, parts->key[i], parts->item[i], "weight", "weight: 10");
        below += keys.weight;
        made[i].below = below;
        if (fine && keys.weight > 0) {
            dist_choose(r, parts->key[i]->text, parts->item[i], &keys, 1, &made[i].dist);
        }
    }
    *dist = (struct dist){.kind = DIST_MIXTURE, .parts = made, .count = parts->count};
    if (parts->count == 0) {
        loader_error(&r->l, value->line, value->column, "missing",
                     "a mixture has parts; write mixture: {usual: {weight: 99, exponential: 10ms}, ...}");
    }
}

/* Called for a mapping whose keys are all known and in range; `beside` of the keys do not belong to the distribution.
 */
static void dist_choose(struct reading *r, const char *what, const struct yaml_node *node, const struct dist_keys *keys,
                        uint32_t beside, struct dist *dist)
{
    if (node->count != 1 + beside) {
        loader_error(&r->l, node->line, node->column, "conflict",
                     "%.64s is one distribution; write for example %.64s: {exponential: 10ms}", what, what);
        return;
    }
    for (size_t i = 0; i < sizeof dist_words / sizeof *dist_words; i++) {
        const struct dist_word *word = &dist_words[i];
        const struct yaml_node *value = yaml_get(node, word->key);
        if (value == NULL || (word->kind == DIST_MIXTURE && beside > 0)) {
            continue; /* a mixture in a mixture was reported as an unknown key */
        }
        if (word->part[0] != NULL &&
            (value_of(value, word->part[0]) == NULL || value_of(value, word->part[1]) == NULL)) {
            loader_error(&r->l, value->line, value->column, "missing", "%s has %s and %s; write %.64s: %s", word->key,
                         word->part[0], word->part[1], what, word->example);
        } else if (word->kind == DIST_NORMAL && keys->deviation > keys->mean) {
            loader_error(&r->l, value->line, value->column, "conflict", "deviation must not be above mean");
        } else if (word->kind == DIST_MIXTURE) {
            mixture_load(r, node, dist);
        } else if (word->kind == DIST_SAMPLES) {
            samples_load(r, value, dist);
        } else {
            *dist = dist_from(word->kind, keys);
        }
    }
}

void dist_load(struct reading *r, const char *what, const struct yaml_node *node, struct dist *dist)
{
    static const char *const beside[] = {"mixture", "samples", NULL};
    struct dist_keys keys;
    memset(&keys, 0, sizeof keys);
    struct space spaces[] = {{&schema_scenario_dist, &keys, NULL}};
    struct place place = {
        .spaces = spaces, .space_count = 1, .what = what, .beside = beside, .manual = SCENARIO_MANUAL};
    if (apply_mapping(&r->l, &place, node)) {
        dist_choose(r, what, node, &keys, 0, dist);
    }
}
