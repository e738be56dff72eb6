/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "container.h"
#include "proxy/gateway_shared.h"

#include <stdlib.h>

/* Expect: 100-continue of a streamed request is sent to the host, and the body is not read before the host asks for it:
 * a host that refuses the request by its head alone saves the client the upload. */

#define WAIT (1 * BECALM_S) /* hosts that know nothing of Expect say nothing; curl waits as long */

struct expect {
    struct timer timer;
    struct exchange *exchange;
};

/* The body may come. False: the client's connection is broken; close it. */
static bool say_continue(const struct exchange *exchange)
{
    struct draft draft;
    draft_begin(&draft, NULL, 0);
    draft.status = 100;
    return exchange->stream->ops->interim(exchange->stream, &draft);
}

/* ---- of a body that streams ---- */

static void waited(struct timer *timer)
{
    struct expect *expect = CONTAINER_OF(timer, struct expect, timer);
    expect_met(expect->exchange);
}

bool expect_begin(struct exchange *exchange)
{
    struct expect *expect = calloc(1, sizeof *expect);
    if (expect != NULL) {
        expect->timer.fire = waited;
        expect->exchange = exchange;
        exchange->expect = expect;
    }
    return expect != NULL;
}

void expect_sent(struct exchange *exchange)
{
    if (exchange->expect != NULL) {
        struct loop *loop = &exchange->worker->loop;
        wheel_arm(&loop->wheel, &exchange->expect->timer, becalm_ns_after(loop->now, WAIT));
    }
}

bool expect_met(struct exchange *exchange)
{
    struct client_stream *stream = exchange->stream;
    if (exchange->expect == NULL) {
        return true; /* a 100 that the client did not ask for is not passed on */
    }
    expect_drop(exchange);
    if (!say_continue(exchange)) {
        stream->ops->cut(stream);
        return false;
    }
    if (exchange_wants_body(exchange)) {
        exchange_body_resumes(exchange);
        stream->ops->took(stream);
    }
    return true;
}

void expect_drop(struct exchange *exchange)
{
    if (exchange->expect != NULL) {
        timer_disarm(&exchange->expect->timer);
        free(exchange->expect);
        exchange->expect = NULL;
    }
}

void expect_answer(const struct exchange *exchange)
{
    if (exchange->head->expects_continue && exchange->request != REQUEST_WHOLE) {
        say_continue(exchange); /* a broken connection shows at the next read */
    }
}

/* ---- of a body that was collected: expectContinue ---- */

/* A POST whose host closes the connection without an answer is not repeated, since the host may have acted on it. A
 * host that was given the head alone, and has not asked for the body, has not. */

struct ask {
    struct timer timer;
    struct attempt *attempt;
};

static void asked_long_enough(struct timer *timer)
{
    struct attempt *attempt = CONTAINER_OF(timer, struct ask, timer)->attempt;
    ask_drop(attempt);
    attempt_body(attempt);
}

bool ask_begin(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct loop *loop = &exchange->worker->loop;
    if (attempt->asked_in_vain || exchange->body_streams || exchange->upgrades || bytes_left(&exchange->body) == 0 ||
        exchange_may_repeat(exchange)) {
        return false;
    }
    attempt->ask = calloc(1, sizeof *attempt->ask);
    if (attempt->ask == NULL) {
        return false;
    }
    attempt->ask->attempt = attempt;
    attempt->ask->timer.fire = asked_long_enough;
    wheel_arm(&loop->wheel, &attempt->ask->timer, becalm_ns_after(loop->now, WAIT));
    return true;
}

void ask_drop(struct attempt *attempt)
{
    if (attempt->ask != NULL) {
        timer_disarm(&attempt->ask->timer);
        free(attempt->ask);
        attempt->ask = NULL;
    }
}
