/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_H
#define BECALM_IMPORT_H

/* Translates the retry configuration of other products into a policy. docs/import.md has the tables. */

#include <becalm/config.h>

/* The names of the dialects, NULL after the last; and whether a dialect of this name exists. */
const char *import_word(size_t index);
bool import_knows(const char *word);

#define IMPORT_BYTES_MAX (16u * 1024u * 1024u) /* of one file */

struct import;

/* NULL: out of memory. Diagnostics go to *diags, which must live as long. The dialect of each object is recognised by
 * its content; `word` names the dialect of objects that are not recognised, and may be NULL. */
struct import *import_new(const char *word, struct becalm_diags *diags);
void import_free(struct import *);

/* Adds one file, of one or more YAML documents, or JSON. False: errors are in the diags, and broken objects are left
 * out. */
bool import_add(struct import *, const char *name, const char *text, size_t length);

/* Translates all files together: the policy's text, which the caller frees. NULL: errors are in the diags. A bad value
 * is left out with a warning, if there are other values. A setting without an equivalent is a warning, and a comment in
 * the text. Call it once. */
char *import_finish(struct import *);

/* Counts of import_finish(). */
struct import_counts {
    uint32_t services;
    uint32_t routes;
    uint32_t left_out; /* findings about something that is left out */
    uint32_t changed;  /* values that were changed */
};
const struct import_counts *import_counts(const struct import *);

#endif
