/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_EXCHANGE_SCRIPT_H
#define BECALM_TESTS_EXCHANGE_SCRIPT_H

/* Exchanges at random: bytes as a script of what clients, hosts, the clock and the operator do to one worker of a
 * gateway (exchange_lab.h). When it is over everybody goes, and nothing may be left behind: no exchange, no slot, no
 * buffer. Whatever is wrong ends the program. */

#include <stddef.h>
#include <stdint.h>

void exchange_script_run(const uint8_t *script, size_t);

/* How the program lets one allocation fail, after so many that don't; UINT32_MAX: none. NULL: it can't. */
extern void (*exchange_script_fail)(uint32_t after);

#endif
