/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_DIAG_H
#define BECALM_POLICY_DIAG_H

#include <becalm/config.h>

/* "error", "warning". */
const char *diag_severity_word(enum becalm_severity);

/* In the order of the file, not of the checks that found them: people read from top to bottom. Those at the same place
 * stay in their order, and those of other files where they are. */
void diags_sort(struct becalm_diags *);

/* Removes a less severe finding from a full list: an error must be shown even after a hundred warnings, and a warning
 * after a hundred notes. */
void diags_make_room(struct becalm_diags *, enum becalm_severity);

#endif
