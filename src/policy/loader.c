/* SPDX-License-Identifier: MIT */
#include "loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Was an error reported for this place before loading? A value whose ${NAME} could not be replaced would be wrong for
 * every rule. */
static bool was_told(const struct loader *l, const char *file, uint32_t line, uint32_t column)
{
    for (uint32_t i = 0; i < l->told; i++) {
        const struct becalm_diag *diag = &l->diags->diag[i];
        if (diag->severity == BECALM_ERROR && diag->line == line && diag->column == column &&
            strcmp(diag->file, file) == 0) {
            return true;
        }
    }
    return false;
}

void loader_error(struct loader *l, uint32_t line, uint32_t column, const char *code, const char *format, ...)
{
    char message[sizeof l->diags->diag[0].message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *file = line == 0 ? "--set" : l->name;
    uint32_t at = column == 0 ? 1 : column;
    if (line != 0 && was_told(l, file, line, at)) {
        l->untold++;
        return;
    }
    becalm_diag_add(l->diags, BECALM_ERROR, file, line == 0 ? 1 : line, at, code, "%s", message);
}

uint32_t loader_errors(const struct loader *l)
{
    return l->diags->errors + l->untold;
}

bool loader_no_memory(struct loader *l)
{
    l->no_memory = true;
    return false;
}

bool name_is_fine(struct loader *l, const struct yaml_node *key, const char *what)
{
    static const char *const more = "-_.:/";
    for (const char *c = key->text; *c != '\0'; c++) {
        bool fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!fine && strchr(more, *c) == NULL) {
            loader_error(l, key->line, key->column, "wrong-type",
                         "the name of a %s is made of letters, digits, - _ . : and /; \"%.64s\" is not", what,
                         key->text);
            return false;
        }
    }
    if (key->length == 0 || key->length > 128) {
        loader_error(l, key->line, key->column, "wrong-type", "the name of a %s has 1 to 128 characters", what);
        return false;
    }
    if (strcmp(key->text, ".") == 0 || strcmp(key->text, "..") == 0) { /* clients resolve these in a path */
        loader_error(l, key->line, key->column, "wrong-type",
                     "\"%s\" can't be the name of a %s: write one with a letter", key->text, what);
        return false;
    }
    return true;
}

const struct yaml_node *loader_inside(const struct yaml_node *mapping, const char *key)
{
    return mapping == NULL || mapping->kind != YAML_MAPPING ? NULL : yaml_get(mapping, key);
}

void loader_needs(struct loader *l, const struct yaml_node *key, bool fine, const char *message)
{
    if (key != NULL && !fine) {
        loader_error(l, key->line, key->column, "conflict", "%s", message);
    }
}
