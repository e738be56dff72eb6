/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_CHECK_CMD_CHECK_FORMAT_H
#define BECALM_CLI_CHECK_CMD_CHECK_FORMAT_H

/* The findings of `becalm check` in the formats of pipelines. */

#include "cli/cli.h"
#include "policy/lint/lint.h"

enum check_format { CHECK_TEXT, CHECK_JSON, CHECK_GITHUB, CHECK_SARIF, CHECK_JUNIT, CHECK_FORMATS };

/* "text json github sarif junit" */
#define CHECK_FORMAT_WORDS "text json github sarif junit"

/* CHECK_FORMATS: no format has this name. */
enum check_format check_format_named(const char *word);

/* Prints the findings that are not silenced. `files` are those that were asked for, "-" for standard input. `strict`:
 * warnings fail. */
void check_format_print(enum check_format, const struct lint_report *, const char *const *files, uint32_t file_count,
                        bool strict);

#endif
