/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "text_internal.h"

bool becalm_http_idempotent(struct becalm_text method)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (text_is(method, methods[i])) {
            return true;
        }
    }
    return false;
}
