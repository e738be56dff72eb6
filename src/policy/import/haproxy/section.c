/* SPDX-License-Identifier: MIT */
#include "haproxy_internal.h"

#include <string.h>

struct from haproxy_from(const struct haproxy *in, const struct line *line, const char *path, const char *remark)
{
    if (line->node != NULL) {
        in->s->file = line->file;
    }
    return (struct from){line->node, path, remark};
}

bool haproxy_time(struct source *s, const struct from *from, const struct yaml_node *word, becalm_ns *out)
{
    static const struct {
        const char *unit;
        becalm_ns length;
    } units[] = {{"us", BECALM_US},    {"ms", BECALM_MS},      {"", BECALM_MS},        {"s", BECALM_S},
                 {"m", 60 * BECALM_S}, {"h", 3600 * BECALM_S}, {"d", 86400 * BECALM_S}};
    const char *text = word == NULL ? "" : word->text;
    size_t digits = strspn(text, "0123456789");
    uint64_t number = 0;
    for (size_t i = 0; i < digits && number < UINT32_MAX; i++) {
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    for (size_t i = 0; digits > 0 && number < UINT32_MAX && i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + digits, units[i].unit) == 0) {
            *out = number > BECALM_NEVER / 2 / units[i].length ? BECALM_NEVER / 2 : number * units[i].length;
            return true;
        }
    }
    source_error(s, word == NULL ? from->node : word, "bad-value",
                 "%s: \"%.64s\" is not a time; write it like 30s or 500ms", from->path, text);
    return false;
}

const struct yaml_node *haproxy_behind(const struct yaml_node *line, const char *word)
{
    for (uint32_t i = 1; line != NULL && i < directive_words(line); i++) {
        if (strcmp(directive_text(line, i), word) == 0) {
            return directive_word(line, i + 1) == NULL ? directive_word(line, i) : directive_word(line, i + 1);
        }
    }
    return NULL;
}

bool haproxy_has(const struct yaml_node *line, const char *word)
{
    return haproxy_behind(line, word) != NULL;
}

const struct yaml_node *haproxy_parameter(const struct section *section, const struct yaml_node *server,
                                          const char *word)
{
    const struct yaml_node *own = haproxy_behind(server, word);
    return own != NULL ? own : haproxy_behind(section->settings.default_server.node, word);
}

uint64_t haproxy_count(struct source *s, const struct section *section, const struct yaml_node *server,
                       const char *word, uint64_t otherwise)
{
    const struct yaml_node *value = haproxy_parameter(section, server, word);
    uint64_t number = 0;
    if (value == NULL) {
        return otherwise;
    }
    if (!value_integer(value->text, &number) || number > UINT32_MAX) {
        source_error(s, value, "bad-value", "%s: \"%.64s\" is not a number", word, value->text);
        return otherwise;
    }
    return number;
}

/* ---- sections ---- */

static void setting_note(struct settings *settings, const struct yaml_node *node, const char *file)
{
    const struct {
        const char *first;
        const char *second; /* NULL: any */
        struct line *line;
    } rows[] = {{"mode", NULL, &settings->mode},
                {"retries", NULL, &settings->retries},
                {"retry-on", NULL, &settings->retry_on},
                {"option", "redispatch", &settings->redispatch},
                {"timeout", "connect", &settings->connect},
                {"timeout", "server", &settings->server},
                {"timeout", "queue", &settings->queue},
                {"contimeout", NULL, &settings->connect},
                {"srvtimeout", NULL, &settings->server},
                {"balance", NULL, &settings->balance},
                {"default-server", NULL, &settings->default_server},
                {"http-request", "disable-l7-retry", &settings->no_retry}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool second = rows[i].second == NULL || strcmp(directive_text(node, 1), rows[i].second) == 0;
        if (strcmp(directive_text(node, 0), rows[i].first) == 0 && second) {
            *rows[i].line = (struct line){node, file};
        }
    }
    if (directive_is(node, "no") && strcmp(directive_text(node, 1), "option") == 0 &&
        strcmp(directive_text(node, 2), "redispatch") == 0) {
        settings->redispatch = (struct line){node, file};
    }
}

static void section_settings(struct section *section, const struct settings *outer)
{
    const struct yaml_node *block = directive_block(section->line.node);
    section->settings = outer == NULL ? (struct settings){0} : *outer;
    section->settings.no_retry = (struct line){0}; /* rules are not inherited */
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        setting_note(&section->settings, block->item[i], section->line.file);
    }
}

static bool section_keep(struct haproxy *in, const struct section *section)
{
    if (in->count == in->space) { /* the arena keeps the old ones as well: twice the memory at most */
        uint32_t space = in->space == 0 ? 16 : in->space * 2;
        struct section *more = emit_take(in->s->emit, space * sizeof *more);
        if (more == NULL) {
            return false;
        }
        if (in->count > 0) {
            memcpy(more, in->section, in->count * sizeof *more);
        }
        in->section = more;
        in->space = space;
    }
    in->section[in->count++] = *section;
    return true;
}

/* `from NAME` names the defaults; else they are those above. */
static const struct settings *defaults_of(const struct section *defaults, uint32_t count, const struct yaml_node *line)
{
    const struct yaml_node *from = haproxy_behind(line, "from");
    for (uint32_t i = count; from != NULL && i-- > 0;) {
        if (strcmp(defaults[i].name, from->text) == 0) {
            return &defaults[i].settings;
        }
    }
    return count == 0 ? NULL : &defaults[count - 1].settings;
}

void haproxy_file(struct haproxy *in, const struct object *file)
{
    static const char *const kinds[] = {"frontend", "backend", "listen"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < file->node->count; i++) {
        count += directive_is(file->node->item[i], "defaults");
    }
    struct section *defaults = emit_take(in->s->emit, (count + 1) * sizeof *defaults);
    if (defaults == NULL) {
        return;
    }
    count = 0;
    in->s->file = file->file;
    for (uint32_t i = 0; i < file->node->count; i++) {
        const struct yaml_node *node = file->node->item[i];
        struct section section = {.line = {node, file->file}, .name = directive_text(node, 1)};
        if (directive_text(node, 0)[0] == '.') {
            source_no_equal(in->s, NULL, &(struct from){node, directive_text(node, 0), NULL},
                            "conditions are not evaluated: the lines between them are read");
        }
        if (directive_is(node, "defaults")) {
            section_settings(&section, haproxy_has(node, "from") ? defaults_of(defaults, count, node) : NULL);
            defaults[count++] = section;
        }
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (directive_is(node, kinds[k])) {
                section.kind = kinds[k];
                section_settings(&section, defaults_of(defaults, count, node));
                (void)section_keep(in, &section);
            }
        }
    }
}

bool haproxy_is_http(const struct section *section)
{
    return strcmp(directive_text(section->settings.mode.node == NULL ? section->line.node : section->settings.mode.node,
                                 1),
                  "http") == 0;
}
