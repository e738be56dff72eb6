/* SPDX-License-Identifier: MIT */
/* Challenges and credentials: a login that belongs to the connection is found only where its name is written, and
 * always if no quotation is open before it. */
#define _GNU_SOURCE
#include "proxy/host/login.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool contains(const char *text, size_t length, const char *word)
{
    size_t width = strlen(word);
    for (size_t i = 0; i + width <= length; i++) {
        if (strncasecmp(text + i, word, width) == 0) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char more[] = ", NTLM";
    char *text = malloc(size + sizeof more);
    BECALM_ASSERT(text != NULL);
    memcpy(text, data, size);
    memcpy(text + size, more, sizeof more);
    bool named = login_named((struct becalm_text){text, size});
    BECALM_ASSERT(!named || contains(text, size, "ntlm") || contains(text, size, "negotiate"));
    bool longer = login_named((struct becalm_text){text, size + sizeof more - 1});
    BECALM_ASSERT(longer || memchr(data, '"', size) != NULL);
    BECALM_ASSERT(longer || !named);
    free(text);
    return 0;
}
