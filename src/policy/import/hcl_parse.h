/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_HCL_PARSE_H
#define BECALM_IMPORT_HCL_PARSE_H

/* HashiCorp's language, as far as configuration entries need it: `Key = value`, `Key { ... }`, lists, texts, numbers,
 * comments. No expressions, no templates. Bounds: 16 MiB, 200,000 nodes, 32 levels. */

#include "../yaml.h"

#define HCL_DEPTH_MAX 32u
#define HCL_NODES_MAX 200000u

/* A mapping; a block that comes several times is a list. NULL: errors are in *diags. */
struct yaml_tree *hcl_parse(const char *name, const char *text, size_t length, struct becalm_diags *diags);

#endif
