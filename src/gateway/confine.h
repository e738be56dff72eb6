/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_CONFINE_H
#define BECALM_GATEWAY_CONFINE_H

/* The rights that a gateway's process gives up before it reads a byte from outside. */

#include <stdbool.h>

/* For good, and for all threads that are started later; so call it before the first:
 * - no program that it starts gets more rights than it has (no_new_privs);
 * - no core dump and no debugger of another process of the same user sees its memory, which has tokens, keys and
 * answers of other people (PR_SET_DUMPABLE); /proc/self stays its own to read;
 * - it writes to no file that is not open yet, makes none but Unix sockets, and starts no program (Landlock, where the
 *   kernel has it). It may read everything, for a reload may name any file.
 * `dumpable` leaves the last two out. A kernel that can't do something goes without it. */
void confine(bool dumpable);

#endif
