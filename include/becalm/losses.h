/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOSSES_H
#define BECALM_LOSSES_H

/* Which clients lose the retries of a budget. A client whose requests always fail would spend the retries of all
 * clients. So the clients that lost most retries lately may not spend the last half of a budget while other clients
 * also want retries. A retry counts as lost until it succeeds or turns out not to be sent. The clients that lost most
 * are the smallest set that together lost more than half. If one client fails and many others hardly do, the set is
 * that client; if one attacker uses many addresses, the set is all of these addresses. A client that is alone may spend
 * everything.
 *
 * The table has BECALM_FLOWS clients and is written only when a retry is wanted. Losses count half after 8.6 s. */

#include <becalm/gate.h>

BECALM_BEGIN_DECLS

struct becalm_losses {
    struct becalm_flow flow[BECALM_FLOWS]; /* word: {epoch:24, asked:20, lost:20} */
};

BECALM_API void becalm_losses_init(struct becalm_losses *);

/* This client wants a retry that costs `price`, from a budget that has `left` and may hold `cap`. False: the rest of
 * the budget is reserved for other clients. */
BECALM_API bool becalm_losses_admit(struct becalm_losses *, uint64_t flow, becalm_ns now, uint64_t left, uint64_t cap,
                                    uint64_t price);

/* take: the retry was paid, and counts as lost. give: it has succeeded, or was not sent. */
BECALM_API void becalm_losses_take(struct becalm_losses *, uint64_t flow, becalm_ns now);
BECALM_API void becalm_losses_give(struct becalm_losses *, uint64_t flow, becalm_ns now);

BECALM_END_DECLS

#endif
