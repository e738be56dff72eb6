/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_CONFIG_DATA_H
#define BECALM_POLICY_CONFIG_DATA_H

/* The struct behind becalm_config, for the files of this folder: config.c builds it, explain.c prints it. */

#include <becalm/config.h>

#include "arena.h"
#include "schema.h"

struct becalm_origins {
    struct becalm_origin key[SCHEMA_KEYS_MAX]; /* by the key's position in schema_rules */
};

struct becalm_config {
    struct arena arena;
    char *name;
    const char *const *parts;
    struct becalm_settings settings;
    struct becalm_rules defaults;
    struct becalm_service *services;
    uint32_t service_count;
};

#endif
