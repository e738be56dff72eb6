/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_PARTS_H
#define BECALM_POLICY_PARTS_H

/* A policy in several files: the first file has the defaults and settings, its parts add services. So a platform team
 * owns the former, and other teams own their services. */

#include <becalm/config.h>

#include "arena.h"
#include "yaml.h"

#define PARTS_MAX 1024u /* files */

/* Memory that must live until the config is built. */
struct parts {
    struct yaml_tree **trees;
    uint32_t count;
    const char **paths; /* files and folders, as `include` and the options say; the config's arena; ends with NULL */
};

/* Reads `include` of the first file, and `more` (NULL, or ends with NULL), and puts the services of all of them behind
 * those of the first. Relative paths of `include` are relative to that file's folder. Errors are diagnostics. False:
 * out of memory. */
bool parts_merge(struct parts *, struct yaml_tree *first, struct arena *, const struct becalm_load_options *,
                 struct becalm_diags *);
void parts_free(struct parts *);

/* The files of a part: itself, or those of a folder that end in .yaml or .yml, by their names; none that begins with a
 * dot. False: it can't be read, with errno. */
typedef bool parts_fn(const char *path, void *data); /* false ends it */
bool parts_files(const char *part, parts_fn *each, void *data);

#endif
