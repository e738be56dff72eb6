/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_DIRECTORY_H
#define BECALM_EXEC_DIRECTORY_H

/* The runtime directory, where the processes of one user share files that need not outlive the machine's boot:
 * $XDG_RUNTIME_DIR/becalm, else /run/user/UID/becalm, else /tmp/becalm-UID. */

#include <stddef.h>

#define DIRECTORY_PATH_MAX 512

/* Opens it, and makes it if it is not there. It is ours alone (mode 0700) or it is not used. Returns a descriptor, and
 * its path; or -1, and why not. */
int directory_open(char path[DIRECTORY_PATH_MAX], char *why, size_t size);

#endif
