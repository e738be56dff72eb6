/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_DATE_H
#define BECALM_MESSAGE_DATE_H

#include <stdint.h>

/* "Sun, 06 Nov 1994 08:49:37 GMT", 29 bytes and a zero. */
void date_write(char text[30], int64_t seconds);

#endif
