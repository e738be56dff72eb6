/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_STATUS_INTERNAL_H
#define BECALM_HTTP_STATUS_INTERNAL_H

/* Functions that the files about statuses, gRPC codes and retryOn share. */

#include <becalm/http.h>

/* The code as a policy writes it ("deadline-exceeded"); NULL for a number that is none. */
const char *becalm__grpc_token(uint32_t code);

/* Does the list name this code? A number that is none counts as UNKNOWN. */
bool becalm__retry_on_has_grpc(const struct becalm_retry_on *, uint32_t code);

/* Any of these tokens (bits)? */
bool becalm__retry_on_any(const struct becalm_retry_on *, unsigned tokens);

/* The gRPC half of becalm_http_classify(): fills kind, listed, stop and hint. */
void becalm__grpc_classify(const struct becalm_retry_on *, const struct becalm_http_answer *, struct becalm_outcome *);

static inline enum becalm_listed becalm__listed(bool yes)
{
    return yes ? BECALM_LISTED_YES : BECALM_LISTED_NO;
}

#endif
