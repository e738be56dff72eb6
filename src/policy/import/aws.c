/* SPDX-License-Identifier: MIT */
/* The file of AWS's SDKs, ~/.aws/config: retry_mode and max_attempts of a profile. A profile is about all calls of one
 * client to AWS, so it becomes `defaults:`. */
#include "dialect.h"
#include "directives.h"

#include <string.h>

#define STANDARD 3u /* attempts */
#define LEGACY   5u

static const struct yaml_node *setting(const struct yaml_node *section, const char *key)
{
    const struct yaml_node *block = section == NULL ? NULL : directive_block(section);
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        if (directive_is(block->item[i], key)) {
            return directive_word(block->item[i], 1);
        }
    }
    return NULL;
}

static bool has_retries(const struct yaml_node *section)
{
    return setting(section, "retry_mode") != NULL || setting(section, "max_attempts") != NULL;
}

static void mode_put(struct source *s, struct emit_target *target, const struct from *mode, const struct from *section)
{
    const struct from unwritten = {section->node, section->path, "the SDKs' default: legacy"};
    const struct from *from = mode->node != NULL ? mode : &unwritten;
    const char *text = mode->node == NULL ? "legacy" : mode->node->text;
    if (strcmp(text, "standard") == 0 || strcmp(text, "adaptive") == 0) {
        source_put_word(s, target, "retryMode", text, mode);
        source_put_duration(s, target, "initialDelay", BECALM_S, mode);
        source_put_duration(s, target, "maxDelay", 20 * BECALM_S, mode);
        source_put_word(s, target, "retryOn",
                        "[gateway-error, 500, 429, reset, connect-failure, refused-stream, timeout]", mode);
        return;
    }
    if (strcmp(text, "legacy") != 0) {
        source_error(s, from->node, "bad-value", "retry_mode: \"%.64s\" is neither standard, adaptive nor legacy",
                     text);
        return;
    }
    source_no_equal(s, target, from, "legacy differs from SDK to SDK; this is its meaning in botocore");
    source_put_duration(s, target, "initialDelay", BECALM_S, from);
    source_put_duration(s, target, "maxDelay", 24 * 3600 * BECALM_S, from);
    source_put_word(s, target, "retryOn",
                    "[gateway-error, 500, 509, 429, reset, connect-failure, refused-stream, timeout]", from);
}

static void section_read(struct source *s, const struct yaml_node *section)
{
    const char *name = directive_text(section, 0);
    const struct from from = {section, emit_text(s->emit, "[%s]", name), NULL};
    const struct from mode = {setting(section, "retry_mode"), "retry_mode", NULL};
    const struct from count = {setting(section, "max_attempts"), "max_attempts", NULL};
    struct emit_target *target = emit_defaults(s->emit);
    bool legacy = mode.node == NULL || strcmp(mode.node->text, "legacy") == 0;
    const struct from unwritten = {mode.node != NULL ? mode.node : section, mode.path, "its default"};
    uint64_t attempts = legacy ? LEGACY : STANDARD;
    if (count.node != NULL && !source_integer(s, &count, &attempts)) {
        attempts = legacy ? LEGACY : STANDARD;
    }
    if (attempts == 0) {
        source_error(s, count.node, "bad-value", "max_attempts: \"%.64s\" is below 1", count.node->text);
        return;
    }
    source_put_integer(s, target, "maxRetries", attempts - 1, count.node != NULL ? &count : &unwritten);
    mode_put(s, target, &mode, &from);
    source_put_word(s, target, "idempotent", "true",
                    &(struct from){from.node, from.path, "the SDKs repeat every call"});
    if (attempts > 2) {
        source_no_equal(s, target, count.node != NULL ? &count : &unwritten,
                        "an error of the application (500) is retried once per call");
    }
    const struct from bounds = {section, from.path, "the file says nothing about it"};
    source_put_word(s, target, "attemptTimeout", "none", &bounds);
    source_put_word(s, target, "deadline", "none", &bounds);
}

/* [default], else the first profile with keys about retries; other profiles are named in a note. */
static void document_read(struct source *s, const struct yaml_node *root)
{
    const struct yaml_node *chosen = NULL;
    for (uint32_t i = 0; i < root->count; i++) {
        const struct yaml_node *section = root->item[i];
        if (has_retries(section) && (chosen == NULL || directive_is(section, "default"))) {
            chosen = section;
        }
    }
    for (uint32_t i = 0; i < root->count; i++) {
        if (root->item[i] != chosen && has_retries(root->item[i])) {
            source_no_equal(
                s, NULL,
                &(struct from){root->item[i], emit_text(s->emit, "[%s]", directive_text(root->item[i], 0)), NULL},
                emit_text(s->emit, "one profile becomes the policy: [%s]; this one is left out",
                          directive_text(chosen, 0)));
        }
    }
    if (chosen != NULL) {
        section_read(s, chosen);
    }
}

static void aws_read(struct source *s, const struct objects *objects)
{
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        if (objects->at[i].node->kind == YAML_SEQUENCE) {
            document_read(s, objects->at[i].node);
        }
    }
}

static bool aws_recognises(const struct object *object)
{
    (void)object; /* the file is no YAML */
    return false;
}

/* A section, and one of the two settings at the start of a line. */
static bool aws_is_text(const char *text, size_t length)
{
    static const char *const keys[] = {"retry_mode", "max_attempts"};
    bool found = false;
    for (size_t i = 0; i < length && !found; i++) {
        for (size_t k = 0; (i == 0 || text[i - 1] == '\n') && k < sizeof keys / sizeof *keys; k++) {
            size_t size = strlen(keys[k]);
            found = found || (length - i > size && memcmp(text + i, keys[k], size) == 0);
        }
    }
    return found && ini_is(text, length);
}

const struct dialect dialect_aws = {.word = "aws",
                                    .product = "AWS's SDKs",
                                    .recognises = aws_recognises,
                                    .read = aws_read,
                                    .is_text = aws_is_text,
                                    .parse = ini_parse};
