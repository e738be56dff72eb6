/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOSSES_H
#define BECALM_LOSSES_H

/* Which clients lose the retries of a budget. A client whose requests always fail would spend the retries of all
 * clients; so half of what a budget holds is kept from the clients that have lost most of it lately, while others
 * want retries, too. A retry is
 * lost until it succeeds, or is not sent after all. The clients that lost most are the fewest that together lost
 * more than half: of one client that fails and many that hardly do it is the one, and of one that comes by many
 * addresses it is all of them. One client alone may have everything.
 *
 * A table of BECALM_FLOWS clients, written only when a retry is wanted. What is in it counts half after 8.6 s. */

#include <becalm/gate.h>

BECALM_BEGIN_DECLS

struct becalm_losses {
    struct becalm_flow flow[BECALM_FLOWS]; /* word: {epoch:24, asked:20, lost:20} */
};

BECALM_API void becalm_losses_init(struct becalm_losses *);

/* This client wants a retry that costs `price`, of a budget that has `left` and may hold `cap`. False: what is left is
 * for others. */
BECALM_API bool becalm_losses_admit(struct becalm_losses *, uint64_t flow, becalm_ns now, uint64_t left, uint64_t cap,
                                    uint64_t price);

/* It was paid; and it has succeeded, or was not sent. */
BECALM_API void becalm_losses_take(struct becalm_losses *, uint64_t flow, becalm_ns now);
BECALM_API void becalm_losses_give(struct becalm_losses *, uint64_t flow, becalm_ns now);

BECALM_END_DECLS

#endif
