/* SPDX-License-Identifier: MIT */
#include "script.h"

#include "embedded.h"
#include "libssl/libssl.h"

#include <stdio.h>
#include <string.h>

extern const struct embedded embedded_redis[];

static void digest_write(struct redis_script *script)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (libssl_find() != NULL || EVP_Digest(script->text, script->length, digest, &size, EVP_sha1(), NULL) != 1) {
        size = 0; /* the hash stays all zeroes, which no script has, so the whole script is sent */
    }
    memset(script->sha, '0', sizeof script->sha - 1);
    script->sha[sizeof script->sha - 1] = 0;
    for (unsigned int i = 0; i < size && i < 20; i++) {
        snprintf(script->sha + (size_t)2 * i, 3, "%02x", digest[i]);
    }
}

struct redis_script redis_script(const char *name)
{
    const struct embedded *found = embedded_redis;
    while (strcmp(found->name, name) != 0) {
        found++;
    }
    struct redis_script script = {.text = (const char *)found->text, .length = found->length};
    digest_write(&script);
    return script;
}
