/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_GRPC_TEXT_H
#define BECALM_HTTP_GRPC_TEXT_H

/* gRPC's own header fields, as text. */

#include <becalm/http.h>

/* Is this the Content-Type of a gRPC call? "application/grpc", also with a suffix such as "+proto"; not that of
 * gRPC-Web, which has its trailers in the body. */
bool becalm__grpc_is_type(struct becalm_text content_type);

/* The code in a grpc-status field. BECALM_GRPC_NONE: the field is not there. A value that is no code's number
 * is UNKNOWN, as for gRPC's own clients. */
uint32_t becalm__grpc_status_read(struct becalm_text field);
/* The status of a message with two grpc-status fields; BECALM_GRPC_NONE for a field that is missing. If the two differ,
 * some clients read the first and others the last: the status is UNKNOWN, so that no failure counts as a success. */
uint32_t becalm__grpc_status_both(uint32_t one, uint32_t other);

#endif
