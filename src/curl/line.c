/* SPDX-License-Identifier: MIT */
#include "line.h"

#include "multi_state.h"

#include "container.h"
#include "engine/apart_internal.h"

#include <becalm/run.h>

#include <stdatomic.h>
#include <stddef.h>

BECALM__COLD void line_serve(struct transfer *transfer, unsigned flags, const struct becalm_moment *at)
{
    lines_serve(transfer->target->lines, &transfer->call, flags, at, transfer->multi);
}

/* With the lock of the lines, in any thread. The stack is emptied as a whole, so no entry can have been reused
 * meanwhile (no ABA problem). release: the thread that takes the entry sees the decision. */
static void wake(struct line_owner *owner, const void *from)
{
    struct transfer *transfer = CONTAINER_OF(owner, struct transfer, owner);
    struct becalm_curl_multi *multi = transfer->multi;
    struct transfer *first = atomic_load_explicit(&multi->called, memory_order_relaxed);
    do {
        transfer->next_called = first;
    } while (!atomic_compare_exchange_weak_explicit(&multi->called, &first, transfer, memory_order_release,
                                                    memory_order_relaxed));
    if (multi != from) {
        (void)curl_multi_wakeup(multi->curl);
    }
}

void line_ready(struct transfer *transfer, struct becalm_request *request)
{
    transfer->owner.wake = wake;
    transfer->lined = false;
    transfer->lined_once = false;
    request->queue = &transfer->target->lines->queue;
    request->parking = transfer->origin == NULL ? NULL : &transfer->origin->line.parking;
    request->lines_shared = true;
    request->owner = &transfer->owner;
}

BECALM__COLD void line_note(struct transfer *transfer)
{
    struct becalm_curl_multi *multi = transfer->multi;
    bool lined = becalm_call_in_line(&transfer->call);
    multi->lined += lined ? !transfer->lined : 0;
    multi->lined -= !lined && transfer->lined;
    transfer->lined = lined;
    transfer->lined_once |= lined;
    if (lined) {
        bool parked = transfer->call.phase == BECALM_PHASE_PARKED;
        transfer->look_at =
            parked ? lines_parking_wake_at(transfer->target->lines, &transfer->call, becalm_run_now()) : BECALM_NEVER;
    }
}

BECALM__COLD void line_host_back(struct transfer *transfer, const struct attempt *attempt)
{
    struct becalm_moment at = client_moment(transfer->client, (uintptr_t)transfer + transfer->steps++);
    if (transfer->origin != NULL && outcome_fresh(attempt->easy) &&
        becalm_call_accepted(&transfer->call, attempt->slot, at.now)) {
        line_serve(transfer, BECALM_DO_PARK, &at);
    }
}

BECALM__COLD void line_look(struct transfer *transfer, becalm_ns now)
{
    if (transfer->call.phase == BECALM_PHASE_PARKED && now >= transfer->look_at) {
        struct becalm_moment at = client_moment(transfer->client, (uintptr_t)transfer + transfer->steps++);
        line_serve(transfer, BECALM_DO_PARK, &at);
    }
}

BECALM__COLD void line_end(struct transfer *transfer)
{
    lines_pass(transfer->target->lines);
}

BECALM__COLD static struct transfer *take_called(struct becalm_curl_multi *multi)
{
    struct transfer *transfer = atomic_exchange_explicit(&multi->called, NULL, memory_order_acquire);
    struct transfer *first = NULL;
    while (transfer != NULL) {
        struct transfer *next = transfer->next_called;
        transfer->next_called = first;
        first = transfer;
        transfer = next;
    }
    return first;
}

struct transfer *line_take_called(struct becalm_curl_multi *multi)
{
    /* relaxed: a call that is added now wakes this thread up */
    return atomic_load_explicit(&multi->called, memory_order_relaxed) == NULL ? NULL : take_called(multi);
}
