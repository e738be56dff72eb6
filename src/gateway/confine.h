/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_CONFINE_H
#define BECALM_GATEWAY_CONFINE_H

/* The rights that a gateway's process gives up before it reads a byte from outside. */

#include <stdbool.h>

/* Gives up rights of the process for good. This applies to the calling thread and to threads that it starts later, so
 * call it before the first:
 * - no program that it starts gets more rights than it has (no_new_privs);
 * - no core dump and no debugger of another process of the same user sees its memory, which has tokens, keys and
 * answers of clients (PR_SET_DUMPABLE); the process can still read its own /proc/self;
 * - it opens no file for writing, makes no files except Unix sockets, and starts no program (Landlock, where the kernel
 * has it). It may read every file, because a reload may name any. `dumpable` leaves the last two out. A step that the
 * kernel does not support is skipped. */
void confine(bool dumpable);

#endif
