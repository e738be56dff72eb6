/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CONTAINER_H
#define BECALM_CONTAINER_H

#include <stddef.h>

/* The struct that a member is embedded in, by a pointer to the member. The comparison is never evaluated. It makes the
 * compiler warn about a pointer of another type than the member's. */
#define CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member) + 0 * sizeof((pointer) == &((type *)0)->member)))

#endif
