/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_ATTEMPT_H
#define BECALM_CURL_ATTEMPT_H

/* One attempt of a call: a handle inside of the multi handle, its request headers, and the part of its answer that the
 * caller has not got yet. transfer.c decides its result. */

#include "transfer_state.h"

/* Sends it, with callbacks and headers of ours on a recorded handle; false: `code` says why not. Removes it again. */
bool attempt_dispatch(struct attempt *);
void attempt_remove(struct attempt *);

/* Gives the caller's handle its own options again. */
void attempt_restore(struct transfer *);

/* Other headers were recorded: those in flight send them next, if libcurl follows anything. */
void attempt_headers_again(struct transfer *);

/* Gives the caller the bytes that were held back; further bytes go straight to it. */
void attempt_release(struct attempt *);

/* Once more, if it was `held`. True: the caller has it all. */
bool attempt_deliver(struct attempt *);

#endif
