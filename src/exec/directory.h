/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_DIRECTORY_H
#define BECALM_EXEC_DIRECTORY_H

/* The directory of files that processes share and that need not survive a reboot. By default the processes of one user
 * share it. All of them search the same places in the same order, so that cron and a shell have one budget and not two.
 * Several users share a directory of a group by naming it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DIRECTORY_PATH_MAX 512

/* One that is open. */
struct directory {
    int fd;
    char path[DIRECTORY_PATH_MAX];
    bool group_shared; /* its files are the group's, else this user's alone */
    gid_t group;
};

#define DIRECTORY_PLACES 17u

/* Where the default one may be, the first place first: false behind the last. /run/becalm-exec for root. (/run/becalm
 * may be a gateway's, of another user.) For all other users that of the login session, where no other user can make
 * anything
 * (`runtime` is XDG_RUNTIME_DIR; NULL: /run/user/UID), then /tmp/becalm-UID, and if another user was faster to make
 * that, /tmp/becalm-UID.1 and so on. */
bool directory_default(char path[DIRECTORY_PATH_MAX], uid_t user, const char *runtime, uint32_t place);

/* Opens the one that is named, which must be there, and be this user's alone (mode 0700) or root's or this user's and
 * of a group (mode 2770). NULL: the default one, made if it is not there, and this user's alone. False, and why not. */
bool directory_open(struct directory *, const char *named, char *why, size_t size);

/* The same for a reader: makes no directory. */
bool directory_find(struct directory *, const char *named, char *why, size_t size);

/* One that is not open is fine: its fd is -1. */
void directory_close(struct directory *);

#endif
