/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_NOTIFY_H
#define BECALM_GATEWAY_NOTIFY_H

/* Messages to systemd (sd_notify), and the sockets that it hands over (LISTEN_FDS), without its library. */

#include <becalm/ns.h>

/* "READY=1", "STOPPING=1", "RELOADING=1\nMONOTONIC_USEC=..."; does nothing without systemd. */
void notify(const char *state);
void notify_reloading(void);

/* A quarter of the watchdog's time, or BECALM_NEVER: how often to check whether all threads move, and to send
 * "WATCHDOG=1". */
becalm_ns notify_watchdog(void);

/* Descriptors that systemd has passed to this process: the number of the first, and how many there are. 0 if they were
 * meant for another process. */
uint32_t notify_descriptors(int *first);

#endif
