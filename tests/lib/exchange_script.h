/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_EXCHANGE_SCRIPT_H
#define BECALM_TESTS_EXCHANGE_SCRIPT_H

/* Random exchanges: bytes as a script of the actions of clients, hosts, the clock and the operator on one worker of a
 * gateway (exchange_lab.h). At its end all clients and hosts go, and no exchange, slot or buffer may be left. Any
 * violation ends the program. */

#include <stddef.h>
#include <stdint.h>

void exchange_script_run(const uint8_t *script, size_t);

/* A function that lets one allocation fail, after a number of successful ones; UINT32_MAX: none fails. NULL: the
 * program can't do that. */
extern void (*exchange_script_fail)(uint32_t after);

#endif
