/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_SCRIPT_H
#define BECALM_REDIS_SCRIPT_H

/* Scripts that run in Redis. */

#include <stddef.h>

/* Its name in Redis is the SHA-1 of its text, so that two versions never meet. */
struct redis_script {
    const char *text;
    size_t length;
    const char *sha; /* 40 hex digits, made with the program */
};

/* A script that is built in, src/redis/NAME.lua: `name` is in the table of CMakeLists.txt. */
struct redis_script redis_script(const char *name);

#endif
