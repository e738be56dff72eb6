/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_CONTROL_H
#define BECALM_GATEWAY_CONTROL_H

/* The gateway's control thread: reloads, draining, names, the CPU's share, and the admin address. Workers never wait
 * for it. */

#include "reload.h"

struct control;

struct control *control_make(struct gateway *); /* NULL: no memory or descriptors, with errno */
int control_start(struct control *);
void control_free(struct control *);

enum control_order { CONTROL_RELOAD = 1, CONTROL_DRAIN = 2, CONTROL_STOP = 4, CONTROL_NAMES = 8 };
void control_order(struct control *, unsigned orders); /* from any thread */
void control_wait(struct control *);
int control_end_fd(const struct control *);    /* becomes readable at the end */
int control_reload_fd(const struct control *); /* and when a reload is over */
bool control_moves(struct control *);          /* as loop_moves() */

/* Reloads the policy, and logs how that went: as reload_now(). The control thread's. */
int control_reload(struct control *, struct becalm_diags *);
const struct reload_place *control_place(const struct control *);

#endif
