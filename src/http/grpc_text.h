/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_GRPC_TEXT_H
#define BECALM_HTTP_GRPC_TEXT_H

/* gRPC's own header fields, as text. */

#include <becalm/http.h>

/* Is this the Content-Type of a gRPC call? "application/grpc", also with a suffix such as "+proto"; not that of
 * gRPC-Web, which has its trailers in the body. */
bool becalm__grpc_is_type(struct becalm_text content_type);

/* The code in a grpc-status field. BECALM_GRPC_NONE: the field is not there. What is not the number of a code is
 * UNKNOWN, as gRPC's own clients read it. */
uint32_t becalm__grpc_status_read(struct becalm_text field);
/* What two such fields of one message say; BECALM_GRPC_NONE for one that is not there. Some clients read the first of
 * two that differ, others the last: that is UNKNOWN, so that no failure can be taken for a success. */
uint32_t becalm__grpc_status_both(uint32_t one, uint32_t other);

#endif
