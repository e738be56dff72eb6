/* SPDX-License-Identifier: MIT */
#include "cmd_check_format.h"

#include <becalm/version.h>

#include <string.h>

#include "cli/json.h"
#include "policy/diag.h"

enum check_format check_format_named(const char *word)
{
    static const char *const names[] = {"text", "json", "github", "sarif", "junit"};
    for (uint32_t i = 0; i < CHECK_FORMATS; i++) {
        if (strcmp(word, names[i]) == 0) {
            return (enum check_format)i;
        }
    }
    return CHECK_FORMATS;
}

static const char *file_name(const char *word)
{
    return strcmp(word, "-") == 0 ? "<stdin>" : word;
}

/* "problem; correction" */
static void sentence(const struct lint_finding *f, char *text, size_t size)
{
    (void)snprintf(text, size, "%s%s%s", f->message, f->remedy[0] == '\0' ? "" : "; ", f->remedy);
}

/* ---- GitHub: a line per finding, which a workflow shows beside the line of the file ---- */

/* Text of a workflow command: % and line ends are its own, and : and , in a property. */
static void github_text(const char *text, bool property)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '%' || *c == '\r' || *c == '\n' || (property && (*c == ':' || *c == ','))) {
            printf("%%%02X", (unsigned)*c);
        } else {
            putchar(*c);
        }
    }
}

static void github_finding(const struct lint_finding *f)
{
    char text[sizeof f->message + sizeof f->remedy + 4];
    sentence(f, text, sizeof text);
    printf("::%s file=", f->severity == BECALM_NOTE ? "notice" : diag_severity_word(f->severity));
    github_text(f->file, true);
    printf(",line=%u,col=%u,title=", f->line, f->column);
    github_text(f->code, true);
    fputs("::", stdout);
    github_text(text, false);
    putchar('\n');
}

/* ---- SARIF: one run with its rules and results ---- */

/* The rules that found something, each once. */
static bool is_first_of_its_code(const struct lint_report *report, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (!report->findings[i].silenced && strcmp(report->findings[i].code, report->findings[at].code) == 0) {
            return false;
        }
    }
    return true;
}

static void sarif_rule(struct json *json, const char *code)
{
    char where[256];
    const struct lint_rule *rule = lint_rules;
    while (rule->code != NULL && strcmp(rule->code, code) != 0) {
        rule++;
    }
    json_object(json, NULL);
    json_text(json, "id", code);
    if (rule->code != NULL) {
        (void)snprintf(where, sizeof where, "docs/lint.md#%s says more", code);
        json_object(json, "shortDescription");
        json_text(json, "text", rule->title);
        json_object_end(json);
        json_object(json, "help");
        json_text(json, "text", where);
        json_object_end(json);
    }
    json_object_end(json);
}

/* A path as a relative or a file URI, with reserved characters escaped. */
static void sarif_uri(struct json *json, const char *file)
{
    static const char hex[] = "0123456789ABCDEF";
    char uri[4 * sizeof((struct lint_finding *)NULL)->file];
    size_t used = 0;
    if (file[0] == '/') {
        used = (size_t)snprintf(uri, sizeof uri, "file://");
    }
    for (const unsigned char *c = (const unsigned char *)file; *c != '\0' && used + 4 < sizeof uri; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                     strchr("/-_.~", *c) != NULL;
        if (plain) {
            uri[used++] = (char)*c;
        } else {
            uri[used++] = '%';
            uri[used++] = hex[*c >> 4];
            uri[used++] = hex[*c & 15];
        }
    }
    uri[used] = '\0';
    json_text(json, "uri", uri);
}

static void sarif_result(struct json *json, const struct lint_finding *f)
{
    char text[sizeof f->message + sizeof f->remedy + 4];
    sentence(f, text, sizeof text);
    json_object(json, NULL);
    json_text(json, "ruleId", f->code);
    json_text(json, "level", diag_severity_word(f->severity));
    json_object(json, "message");
    json_text(json, "text", text);
    json_object_end(json);
    json_array(json, "locations");
    json_object(json, NULL);
    json_object(json, "physicalLocation");
    json_object(json, "artifactLocation");
    sarif_uri(json, f->file);
    json_object_end(json);
    json_object(json, "region");
    json_integer(json, "startLine", f->line == 0 ? 1 : f->line);
    json_integer(json, "startColumn", f->column == 0 ? 1 : f->column);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

static void sarif_print(const struct lint_report *report)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_text(&json, "version", "2.1.0");
    json_array(&json, "runs");
    json_object(&json, NULL);
    json_object(&json, "tool");
    json_object(&json, "driver");
    json_text(&json, "name", "becalm check");
    json_text(&json, "version", BECALM_VERSION);
    json_array(&json, "rules");
    for (uint32_t i = 0; i < report->count; i++) {
        if (!report->findings[i].silenced && is_first_of_its_code(report, i)) {
            sarif_rule(&json, report->findings[i].code);
        }
    }
    json_array_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    json_array(&json, "results");
    for (uint32_t i = 0; i < report->count; i++) {
        if (!report->findings[i].silenced) {
            sarif_result(&json, &report->findings[i]);
        }
    }
    json_array_end(&json);
    json_object_end(&json);
    json_array_end(&json);
    json_object_end(&json);
    json_end(&json);
}

/* ---- JUnit: a suite per file, a case per finding; a file without any is one case that passed ---- */

static void xml_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '<' || *c == '>' || *c == '&' || *c == '"') {
            printf("&#%u;", (unsigned)*c);
        } else {
            putchar(*c < 0x20 ? '?' : *c); /* XML 1.0 has no word for control characters */
        }
    }
}

static void junit_case(const struct lint_finding *f, bool fails)
{
    char text[sizeof f->message + sizeof f->remedy + 4];
    sentence(f, text, sizeof text);
    printf("    <testcase classname=\"");
    xml_text(f->file);
    printf("\" name=\"%s at %u:%u\">", f->code, f->line, f->column);
    /* A warning fails nothing by itself, and is read all the same. */
    printf(fails ? "<failure type=\"%s\" message=\"" : "<system-out>%s: ", diag_severity_word(f->severity));
    xml_text(text);
    puts(fails ? "\"/></testcase>" : "</system-out></testcase>");
}

static bool junit_fails(const struct lint_finding *f, bool strict)
{
    return f->severity == BECALM_ERROR || (strict && f->severity == BECALM_WARNING);
}

static void junit_suite(const struct lint_report *report, const char *name, bool strict)
{
    uint32_t tests = 0;
    uint32_t failures = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct lint_finding *f = &report->findings[i];
        bool counts = !f->silenced && strcmp(f->file, name) == 0;
        tests += counts;
        failures += counts && junit_fails(f, strict);
    }
    printf("  <testsuite name=\"");
    xml_text(name);
    printf("\" tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"0\">\n", tests == 0 ? 1 : tests, failures);
    for (uint32_t i = 0; i < report->count; i++) {
        if (!report->findings[i].silenced && strcmp(report->findings[i].file, name) == 0) {
            junit_case(&report->findings[i], junit_fails(&report->findings[i], strict));
        }
    }
    if (tests == 0) {
        printf("    <testcase classname=\"");
        xml_text(name);
        puts("\" name=\"no findings\"/>");
    }
    puts("  </testsuite>");
}

/* Findings that belong to no file of the command line: --set. */
static bool is_of_a_file(const struct lint_finding *f, const char *const *files, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(f->file, file_name(files[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_first_of_its_file(const struct lint_report *report, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (!report->findings[i].silenced && strcmp(report->findings[i].file, report->findings[at].file) == 0) {
            return false;
        }
    }
    return true;
}

static void junit_print(const struct lint_report *report, const char *const *files, uint32_t file_count, bool strict)
{
    puts("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    puts("<testsuites name=\"becalm check\">");
    for (uint32_t i = 0; i < file_count; i++) {
        junit_suite(report, file_name(files[i]), strict);
    }
    for (uint32_t i = 0; i < report->count; i++) {
        const struct lint_finding *f = &report->findings[i];
        if (!f->silenced && !is_of_a_file(f, files, file_count) && is_first_of_its_file(report, i)) {
            junit_suite(report, f->file, strict);
        }
    }
    puts("</testsuites>");
}

void check_format_print(enum check_format format, const struct lint_report *report, const char *const *files,
                        uint32_t file_count, bool strict)
{
    switch (format) {
    case CHECK_TEXT:
    case CHECK_JSON:
    case CHECK_FORMATS:
        break; /* cmd_check.c has them, with the figures */
    case CHECK_GITHUB:
        for (uint32_t i = 0; i < report->count; i++) {
            if (!report->findings[i].silenced) {
                github_finding(&report->findings[i]);
            }
        }
        break;
    case CHECK_SARIF:
        sarif_print(report);
        break;
    case CHECK_JUNIT:
        junit_print(report, files, file_count, strict);
        break;
    }
}
