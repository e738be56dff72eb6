/* SPDX-License-Identifier: MIT */
#include "transfer.h"

#include "attempt.h"
#include "copy.h"
#include "destination.h"
#include "line.h"
#include "multi_table.h"
#include "note.h"
#include "request.h"

#include "engine/apart_internal.h"
#include "engine/restart_internal.h"
#include "http/text_internal.h"
#include "unfilled.h"

#include <becalm/run.h>

#include <stdio.h>
#include <stdlib.h>

#define HELD_FOR      (10 * BECALM_MS) /* between two attempts to pass data on to a caller that has paused */
#define LOOKS         8u               /* at an attempt in flight, while an attempt's timeout passes */
#define LOOK_FOR_HOST (20 * BECALM_MS) /* the same for a probe for a host that restarts: other calls wait for it */

#define BEGIN_WITHIN (60 * BECALM_S) /* a body, where the policy has no deadline */

/* An answer whose end arrives so soon after its head counts as one that arrived at once. */
#define HEAD_FRESH (100 * BECALM_US)

/* The callbacks that this call replaces: those that becalm_curl_setopt() has recorded. If the head is part of the body,
 * nothing can be kept back, and a head that is kept without its body would arrive too late. */
static void takes_set(struct transfer *transfer)
{
    const struct handle_options *option = &transfer->handle->option;
    transfer->takes_body = handle_recorded(option, RECORDED_ALL_WRITE) && !option->headers_in_body;
    transfer->takes_head = handle_recorded(option, RECORDED_ALL_HEADER) && transfer->takes_body;
    transfer->takes_headers = handle_recorded(option, RECORDED_HEADERS);
    transfer->takes_connect = handle_recorded(option, RECORDED_CONNECT) && !option->connect_timeout;
    transfer->recorded = transfer->handle->recorded;
}

bool transfer_takes(const struct transfer *transfer, CURLoption option)
{
    if (option == CURLOPT_WRITEFUNCTION || option == CURLOPT_WRITEDATA) {
        return transfer->takes_body;
    }
    if (option == CURLOPT_HEADERFUNCTION || option == CURLOPT_HEADERDATA) {
        return transfer->takes_head;
    }
    return option == CURLOPT_HTTPHEADER && transfer->takes_headers;
}

/* ---- a step, and the work that it marks ---- */

/* The result of a call that ended without an answer for the caller. */
static CURLcode code_without_answer(const struct transfer *transfer)
{
    const struct becalm_record *record = &transfer->call.record;
    if (record->reason == BECALM_WHY_CANCELLED) {
        return transfer->code == CURLE_OK ? CURLE_ABORTED_BY_CALLBACK : transfer->code;
    }
    if (record->attempts > 0) {
        return transfer->code;
    }
    bool late = record->reason == BECALM_WHY_DEADLINE || record->reason == BECALM_WHY_NO_CONNECTION;
    return late ? CURLE_OPERATION_TIMEDOUT : CURLE_COULDNT_CONNECT;
}

/* This attempt is not wanted any more: it is removed when the transfer is settled. */
static void attempt_drop(struct attempt *attempt)
{
    attempt->state = ATTEMPT_GONE;
    attempt->transfer->gone |= 1u << attempt->slot;
}

/* There is at most one that is kept, and one that is passed on. */
static struct attempt *attempt_in(struct transfer *transfer, enum attempt_state state)
{
    for (uint32_t i = 0; i < transfer->top; i++) {
        if (transfer->attempt[i].state == state) {
            return &transfer->attempt[i];
        }
    }
    return NULL;
}

/* Where libcurl itself has nothing to say, since the end was not its doing. */
static void tell_error(const struct transfer *transfer)
{
    char *text = transfer->handle->option.error;
    const struct becalm_record *record = &transfer->call.record;
    if (text != NULL && (record->attempts == 0 || transfer->cut)) {
        (void)snprintf(text, CURL_ERROR_SIZE, "%s", becalm_reason_sentence(record->reason));
    }
}

/* The engine is done with a call that has no answer. If an answer was kept, the caller gets it: the part that
 * is there now, and the rest as it arrives. */
static BECALM__COLD void finish(struct transfer *transfer, const struct becalm_action *action)
{
    struct attempt *kept = attempt_in(transfer, ATTEMPT_KEPT);
    if (action->last_answer && kept != NULL) {
        transfer->answered = kept->easy;
        attempt_release(kept);
        transfer->code = kept->refused ? CURLE_WRITE_ERROR : kept->code;
        transfer->state = (kept->ended && !kept->held) || kept->refused ? TRANSFER_ENDED : TRANSFER_PASSING;
        return;
    }
    transfer->code = code_without_answer(transfer);
    transfer->state = TRANSFER_ENDED;
    tell_error(transfer);
}

static BECALM__COLD void cancel_marked(struct transfer *transfer, const struct becalm_event *event, uint32_t cancel)
{
    for (uint32_t slot = 0; cancel >> slot != 0; slot++) {
        struct attempt *attempt = &transfer->attempt[slot];
        if ((cancel >> slot & 1) == 0 || attempt->state != ATTEMPT_FLYING) {
            continue;
        }
        bool failed = event->kind == BECALM_EVENT_HEAD && event->slot == slot;
        if (failed && transfer->takes_body) {
            attempt->state = ATTEMPT_KEPT;
        } else {
            attempt_drop(attempt);
        }
        if (event->kind == BECALM_EVENT_TIMER) { /* its time was over */
            transfer->code = CURLE_OPERATION_TIMEDOUT;
            transfer->cut = true;
            transfer->seen =
                (struct seen){.grpc_status = BECALM_GRPC_NONE, .outcome = {.kind = BECALM_OUTCOME_TIMED_OUT}};
            transfer->retry_after[0] = '\0';
        }
    }
}

/* An attempt that is not the first is sent. */
static BECALM__COLD void again(struct transfer *transfer, const struct becalm_action *action)
{
    note_retry(transfer, action);
    struct attempt *kept = attempt_in(transfer, ATTEMPT_KEPT);
    if (kept != NULL) {
        attempt_drop(kept); /* the answer of the next attempt counts */
    }
}

static bool host_is_up(const struct transfer *transfer)
{
    return becalm__restart_is_up(transfer->call.target->restart);
}

/* When to see next how far the attempts in flight are. */
static becalm_ns look_in(const struct transfer *transfer)
{
    becalm_ns usual = transfer->call.policy->attempt_timeout / LOOKS;
    return host_is_up(transfer) ? usual : becalm_ns_min(usual, LOOK_FOR_HOST);
}

static void send_mark(struct transfer *transfer, const struct becalm_event *event, const struct becalm_action *action)
{
    struct attempt *attempt = &transfer->attempt[action->slot];
    transfer->due |= 1u << action->slot;
    transfer->top = action->slot < transfer->top ? transfer->top : action->slot + 1;
    transfer->look_at = becalm_ns_after(event->at.now, look_in(transfer));
    attempt->due_number = action->attempt;
    attempt->due_at = event->at.now;
    attempt->timeout_at = action->timeout_at;
}

static void answer(struct transfer *transfer, struct attempt *attempt)
{
    if (attempt->state == ATTEMPT_PASSED) {
        return; /* since its head, of which the engine was told only now: see headed() */
    }
    transfer->answered = attempt->easy;
    if (attempt->head.length + attempt->body.length == 0) { /* nothing was kept back */
        attempt->state = ATTEMPT_PASSED;
        return;
    }
    attempt_release(attempt);
    if (attempt->refused) {
        transfer->code = CURLE_WRITE_ERROR;
    }
}

static void act(struct transfer *transfer, const struct becalm_event *event, const struct becalm_action *action,
                unsigned means)
{
    if ((action->flags & BECALM_DO_CANCEL) != 0) {
        cancel_marked(transfer, event, action->cancel);
    }
    if ((means & METER_STEP_WAITS) != 0) {
        transfer->look_at = BECALM_NEVER; /* no attempt is in flight */
    }
    if ((means & METER_STEP_SENDS) != 0) {
        again(transfer, action);
    }
    if ((action->flags & BECALM_DO_SEND) != 0) {
        send_mark(transfer, event, action);
    }
    if ((action->flags & BECALM_DO_ANSWER) != 0) {
        answer(transfer, &transfer->attempt[action->slot]);
    }
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        if ((action->flags & BECALM_DO_ANSWER) != 0) {
            transfer->state = TRANSFER_ENDED;
        } else {
            finish(transfer, action);
        }
    }
}

/* When to be woken: at the latest when the engine says so, and before to look how far it is. An answer that is passed
 * on has only the caller's own deadline; and if the caller has paused it, no callback says when it goes on, so that
 * it is asked again. */
static becalm_ns wake_at(struct transfer *transfer, becalm_ns engine_at)
{
    if (transfer->state >= TRANSFER_ENDED) {
        return BECALM_NEVER; /* there is nothing more to look at */
    }
    const struct attempt *passed = attempt_in(transfer, ATTEMPT_PASSED);
    if (passed == NULL) {
        return becalm_ns_min(engine_at, transfer->look_at);
    }
    becalm_ns again_at = passed->held ? becalm_ns_after(becalm_run_now(), HELD_FOR) : BECALM_NEVER;
    return becalm_ns_min(engine_at, becalm_ns_min(again_at, transfer->must_end_at));
}

static struct becalm_moment moment(struct transfer *transfer)
{
    return client_moment(transfer->client, (uintptr_t)transfer + transfer->steps++);
}

static void step(struct transfer *transfer, struct becalm_event *event);

/* The part of a step that is about queues. True: the call entered a queue by another step, which has done the rest. */
static BECALM__COLD bool lines_do(struct transfer *transfer, const struct becalm_action *action)
{
    if ((action->flags & (BECALM_DO_SERVE | BECALM_DO_PARK)) != 0) {
        struct becalm_moment at = moment(transfer);
        line_serve(transfer, action->flags, &at);
    }
    if ((action->flags & BECALM_DO_LINE_UP) != 0) {
        step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_LINE_UP});
        return true;
    }
    line_note(transfer);
    return false;
}

/* The attempt has left libcurl's own queue since the last look: its time began then. */
static BECALM__COLD void line_left(struct attempt *attempt)
{
    becalm_ns sent_at = becalm_ns_since(becalm_run_now(), outcome_began(attempt->easy));
    attempt->unsent = false;
    (void)becalm_call_goes(&attempt->transfer->call, attempt->slot, sent_at);
}

/* The end of an attempt or of its head, with any outcome: did it get a connection while no host was known to accept
 * any? Then transfers that wait for its host go on. */
static inline void host_note(struct transfer *transfer, struct attempt *attempt)
{
    if (attempt->unsent) {
        line_left(attempt);
    }
    if (!host_is_up(transfer) && transfer->seen.outcome.kind != BECALM_OUTCOME_REFUSED) {
        line_host_back(transfer, attempt);
    }
}

static void step_at(struct transfer *transfer, const struct becalm_event *event)
{
    const unsigned about_lines = BECALM_DO_SERVE | BECALM_DO_PARK | BECALM_DO_LINE_UP;
    UNFILLED struct becalm_action action;                                 /* the step clears it */
    bool locked = transfer->lined || event->kind == BECALM_EVENT_LINE_UP; /* as lines_step() does */
    if (locked) {
        lines_lock(transfer->target->lines);
    }
    becalm_call_step(&transfer->call, event, &action);
    if (locked) {
        lines_unlock(transfer->target->lines);
    }
    act(transfer, event, &action, note_step(transfer, event, &action));
    if (((action.flags & about_lines) != 0 || transfer->lined) && lines_do(transfer, &action)) {
        return;
    }
    transfer->engine_at = action.wake_at;
    multi_wake_at(transfer->multi, transfer, wake_at(transfer, action.wake_at));
    multi_dirty(transfer->multi, transfer);
}

static void step(struct transfer *transfer, struct becalm_event *event)
{
    event->at = moment(transfer);
    step_at(transfer, event);
}

/* Keeps the facts about an answer when its handle is used again: their text is in the handle. */
static void seen_keep(struct transfer *transfer)
{
    struct becalm_text text = transfer->seen.retry_after;
    size_t length = text.length < sizeof transfer->retry_after ? text.length : 0; /* longer than any date: nonsense */
    if (length > 0) {
        memcpy(transfer->retry_after, text.at, length);
    }
    transfer->retry_after[length] = '\0';
}

static inline struct asked asked_of(const struct transfer *transfer)
{
    return (struct asked){&transfer->target->retry_on, transfer->handle};
}

/* libcurl says that a time was over: was it the caller's (CURLOPT_TIMEOUT and the like), or the policy's for a
 * connection, which is the one that we set? */
static BECALM__COLD bool is_impatient(const struct transfer *transfer, CURL *easy)
{
    becalm_ns connect = (becalm_ns)transfer->handle->option.connect_ms * BECALM_MS;
    return connect == 0 || outcome_connected(easy) || outcome_lasted(easy) < connect;
}

static void see_end(struct transfer *transfer, CURL *easy, CURLcode code)
{
    const struct asked asked = asked_of(transfer);
    if (code == CURLE_OK) {
        outcome_of_head(easy, &asked, &transfer->seen);
    } else {
        outcome_of_failure(easy, code, &asked, &transfer->seen);
        transfer->seen.outcome.impatient = code == CURLE_OPERATION_TIMEDOUT && is_impatient(transfer, easy);
    }
    seen_keep(transfer);
}

static bool text_same(struct becalm_text text, const char *at, size_t length)
{
    return text.length == length && (length == 0 || memcmp(text.at, at, length) == 0);
}

/* The target of a request for this URL, which is zero-terminated. */
static BECALM__COLD struct client_target *target_of(const struct transfer *transfer, struct becalm_text url,
                                                    struct becalm_text method)
{
    const struct curl_slist *headers = transfer->takes_headers ? transfer->handle->option.headers : NULL;
    char *made = destination_written(url, transfer->handle->option.path_as_is);
    struct client_target *target =
        client_find(transfer->client, made == NULL ? url : (struct becalm_text){made, strlen(made)}, method, headers);
    curl_free(made);
    return target;
}

/* The target of the request, most often the same as the handle's latest. */
static struct client_target *target_find(struct transfer *transfer, struct becalm_text method)
{
    const struct handle_options *option = &transfer->handle->option;
    struct handle_route *route = &transfer->handle->route;
    char *made;
    struct becalm_text url = request_url(transfer, &made);
    struct client_target *target;
    struct client_origin *origin;
    bool same = route->target != NULL && text_same(url, route->url, route->url_length);
    if (!same && route->target != NULL && option->url == NULL && option->curlu == NULL &&
        destination_led(transfer->easy, route, url)) {
        url = (struct becalm_text){route->url, route->url_length}; /* there it begins again */
        same = true;
    }
    if (same && text_same(method, route->method, route->method_length)) {
        target = route->target;
        origin = route->origin;
    } else {
        target = target_of(transfer, url, method);
        origin = client_origin_of(transfer->client, target, url);
        route->target = NULL; /* the earlier target is not the latest any more */
        if (url.length < sizeof route->url && method.length < sizeof route->method) {
            memmove(route->url, url.at, url.length);
            route->url[url.length] = '\0';
            memcpy(route->method, method.at, method.length);
            route->method_length = method.length;
            route->url_length = url.length;
            route->target = target;
            route->origin = origin;
        }
    }
    transfer->origin = origin;
    if (made != NULL) {
        curl_free(made);
    }
    return target;
}

void transfer_begin(struct transfer *transfer)
{
    takes_set(transfer);
    /* Of a method that was not recorded libcurl is sure only later: see request_learn(). Here it is a
     * guess, for the route. */
    bool asked = request_knows_method(transfer) || transfer->client->by_method || transfer->takes_body;
    struct becalm_text method = asked ? request_method(transfer) : (struct becalm_text){"", 0};
    transfer->target = target_find(transfer, method);
    transfer->site = client_site(transfer->client, transfer->target, transfer->handle->operation);
    transfer->code = CURLE_OK;
    transfer->answered = transfer->easy;
    transfer->state = TRANSFER_DECIDING;
    transfer->cut = false;
    transfer->top = 0;
    transfer->gone = 0;
    transfer->due = 0;
    transfer->untold = NULL;
    transfer->retry_after[0] = '\0';
    transfer->seen = (struct seen){.grpc_status = BECALM_GRPC_NONE};
    struct becalm_request request = request_make(transfer, method);
    line_ready(transfer, &request);
    becalm_call_init(&transfer->call, &transfer->target->policy,
                     transfer->origin == NULL ? &transfer->target->target : &transfer->origin->target, &request);
    step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_BEGIN});
}

static struct attempt *attempt_of(struct transfer *transfer, const CURL *easy)
{
    for (uint32_t i = 0; i < transfer->top; i++) {
        if (transfer->attempt[i].added && transfer->attempt[i].easy == easy) {
            return &transfer->attempt[i];
        }
    }
    return NULL;
}

static void head_see(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    const struct asked asked = asked_of(transfer);
    outcome_of_head(attempt->easy, &asked, &transfer->seen);
    seen_keep(transfer);
    if (transfer->seen.outcome.kind != BECALM_OUTCOME_OK) { /* of a success nobody asks */
        request_learn_failed(transfer, attempt);
    }
    attempt->judged = true;
    attempt->status = transfer->seen.outcome.status;
}

static void head_tell(struct attempt *attempt, struct becalm_moment at)
{
    struct transfer *transfer = attempt->transfer;
    struct becalm_event event = {
        .kind = BECALM_EVENT_HEAD, .slot = attempt->slot, .at = at, .outcome = transfer->seen.outcome};
    event.outcome.delivered = !transfer->takes_body && outcome_delivered(attempt->easy);
    host_note(transfer, attempt);
    step_at(transfer, &event);
}

/* Reports the head of an attempt whose head was not seen before its end. */
static void judge(struct attempt *attempt)
{
    head_see(attempt);
    head_tell(attempt, moment(attempt->transfer));
}

/* An answer's head has arrived, inside of libcurl's callback. If it is good the answer is passed on at once. Most
 * answers are complete in the same turn of libcurl, so the engine hears of the head or the end after that turn, but
 * with the time at which the head arrived. */
static void headed(struct attempt *attempt)
{
    struct transfer *transfer = attempt->transfer;
    head_see(attempt);
    bool is_good = transfer->seen.outcome.kind == BECALM_OUTCOME_OK && !transfer->seen.grpc;
    if (is_good && transfer->multi->only != NULL) { /* no other attempt in flight could have the answer */
        transfer->untold = attempt;
        transfer->headed_at = becalm_run_now();
        answer(transfer, attempt);
    } else {
        head_tell(attempt, moment(transfer));
    }
}

void transfer_tell(struct transfer *transfer)
{
    struct attempt *attempt = transfer->untold;
    if (attempt != NULL) {
        struct becalm_moment at = moment(transfer);
        at.now = transfer->headed_at; /* the time that the caller has spent on it since is not the service's */
        transfer->untold = NULL;
        head_tell(attempt, at);
    }
}

/* Did an answer take so long from its head to its end that the engine must hear of both? */
static bool is_late(const struct transfer *transfer, becalm_ns now)
{
    return transfer->untold != NULL && becalm_ns_since(now, transfer->headed_at) >= HEAD_FRESH;
}

/* The end of an attempt that the engine has finished: it was dropped, or its answer is kept or passed on. */
static BECALM__COLD void done_after(struct transfer *transfer, const struct attempt *attempt, CURLcode code)
{
    if (attempt->state != ATTEMPT_GONE) {
        transfer->code = code;
    }
    if (attempt->state == ATTEMPT_KEPT) {
        if (code == CURLE_ABORTED_BY_CALLBACK) {
            transfer_cancel(transfer); /* the caller gave up while we waited to retry */
        }
        return;
    }
    if (attempt->state == ATTEMPT_PASSED) {
        transfer->cut = false;
        transfer->state = attempt->held ? transfer->state : TRANSFER_ENDED;
    }
    multi_dirty(transfer->multi, transfer);
}

void transfer_done(struct transfer *transfer, CURL *easy, CURLcode code)
{
    struct attempt *attempt = attempt_of(transfer, easy);
    if (attempt == NULL) {
        return;
    }
    transfer->multi->flying--;
    attempt->busy = false;
    attempt->ended = true;
    attempt->code = code;
    if (attempt->state == ATTEMPT_KEPT || attempt->state == ATTEMPT_GONE || transfer->state != TRANSFER_DECIDING) {
        done_after(transfer, attempt, code);
        return;
    }
    transfer->code = code;
    transfer->cut = false;
    struct becalm_outcome *outcome = &transfer->seen.outcome;
    bool is_cut = code == CURLE_OPERATION_TIMEDOUT || code == CURLE_PARTIAL_FILE;
    if (is_cut && !attempt->judged && !transfer->takes_body && outcome_delivered(easy)) {
        judge(attempt); /* an answer had begun: its head counts, as if it had been seen on arrival */
    }
    bool is_known = attempt->judged && code == CURLE_OK && !transfer->seen.grpc; /* by its head, and it is whole */
    struct becalm_event event = {.kind = BECALM_EVENT_DONE, .slot = attempt->slot, .at = moment(transfer)};
    if (!is_known || is_late(transfer, event.at.now)) {
        transfer_tell(transfer);
    }
    if (!is_known) {
        see_end(transfer, easy, code);
    }
    transfer->untold = NULL;
    if (outcome->kind != BECALM_OUTCOME_OK) { /* of a success nobody asks */
        request_learn_failed(transfer, attempt);
        outcome->delivered = attempt->judged || (!transfer->takes_body && outcome_delivered(easy));
    }
    attempt->status = outcome->status != 0 ? outcome->status : attempt->status;
    event.outcome = *outcome;
    host_note(transfer, attempt);
    step_at(transfer, &event);
    if (attempt->state == ATTEMPT_FLYING) { /* no caller wants its answer */
        attempt_drop(attempt);
    }
}

/* The answer is being passed on: the caller's deadline has passed, or a paused caller gets its data again. */
static BECALM__COLD void timer_passed(struct transfer *transfer, struct attempt *attempt)
{
    bool given = !attempt->held || attempt_deliver(attempt);
    if (becalm_run_now() >= transfer->must_end_at) {
        attempt_drop(attempt);
        transfer->code = CURLE_OPERATION_TIMEDOUT;
        transfer->cut = true;
        if (transfer->state == TRANSFER_DECIDING) {
            step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_DONE,
                                                  .slot = attempt->slot,
                                                  .outcome = {.kind = BECALM_OUTCOME_TIMED_OUT}});
        }
        transfer->state = TRANSFER_ENDED;
    } else if (attempt->refused) {
        transfer->code = CURLE_WRITE_ERROR;
        transfer->state = TRANSFER_ENDED;
    } else if (given && attempt->ended) {
        transfer->state = TRANSFER_ENDED;
    }
    multi_wake_at(transfer->multi, transfer, wake_at(transfer, BECALM_NEVER));
    multi_dirty(transfer->multi, transfer);
}

/* Was the attempt's whole timeout, and not only the rest of a deadline, too short to get a connection? Then it was
 * never sent. */
static bool never_sent(const struct attempt *attempt, becalm_ns now, struct seen *seen)
{
    const struct transfer *transfer = attempt->transfer;
    becalm_ns time = becalm_ns_left(attempt->due_at, attempt->timeout_at);
    if (now < attempt->timeout_at || time < transfer->call.policy->attempt_timeout) {
        return false;
    }
    const struct asked asked = asked_of(transfer);
    outcome_of_failure(attempt->easy, CURLE_OPERATION_TIMEDOUT, &asked, seen);
    return seen->outcome.kind == BECALM_OUTCOME_REFUSED;
}

/* Does it still wait for a connection that libcurl may not make yet (CURLMOPT_MAX_HOST_CONNECTIONS and the like)? */
static bool line_waits(struct attempt *attempt, becalm_ns now)
{
    struct becalm_call *call = &attempt->transfer->call;
    attempt->unsent = outcome_in_line(attempt->easy);
    if (attempt->unsent) {
        becalm_call_unsent(call, attempt->slot, BECALM_NEVER);
        return true;
    }
    attempt->timeout_at = becalm_call_goes(call, attempt->slot, now);
    return false;
}

/* The attempt ends here, though libcurl has not reported its end. */
static void attempt_cut(struct attempt *attempt, const struct seen *seen)
{
    struct transfer *transfer = attempt->transfer;
    attempt_drop(attempt);
    transfer->code = CURLE_OPERATION_TIMEDOUT;
    transfer->cut = true;
    transfer->seen = *seen;
    seen_keep(transfer);
    step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_DONE, .slot = attempt->slot, .outcome = seen->outcome});
}

/* Until when a body may begin. libcurl waits a second for "100 Continue", and a read function for its data; but if the
 * function gives fewer bytes than announced, host and libcurl wait for each other without any event. */
static becalm_ns must_begin_at(const struct attempt *attempt)
{
    becalm_ns deadline = attempt->transfer->call.policy->deadline;
    return becalm_ns_after(attempt->due_at, deadline == BECALM_NEVER ? BEGIN_WITHIN : deadline);
}

/* Is the request's body still being sent? Then the attempt's timeout begins at its end. True: the engine had an event.
 */
static bool upload_look(struct attempt *attempt, becalm_ns now)
{
    static const struct seen given_up = {.grpc_status = BECALM_GRPC_NONE,
                                         .outcome = {.kind = BECALM_OUTCOME_CANCELLED}};
    struct transfer *transfer = attempt->transfer;
    enum upload upload = outcome_uploads(attempt->easy, &attempt->uploaded);
    if (upload == UPLOAD_STANDS || now >= transfer->must_end_at) {
        return false;
    }
    if (upload == UPLOAD_WAITS && now >= must_begin_at(attempt)) {
        attempt_cut(attempt, &given_up); /* most likely caused by the caller */
        return true;
    }
    becalm_call_streams(&transfer->call, attempt->slot);
    step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_SENT, .slot = attempt->slot});
    return true;
}

/* How far is an attempt that has no callback? True: the engine had an event, and nothing else is to be done. The
 * head is read only when it matters: more lines of it may still arrive. */
static bool attempt_look(struct attempt *attempt, becalm_ns now)
{
    struct transfer *transfer = attempt->transfer;
    struct seen seen;
    if (!transfer->takes_head && now >= transfer->engine_at && outcome_headed(attempt->easy)) {
        judge(attempt);
        return true;
    }
    if (line_waits(attempt, now)) {
        return false; /* in libcurl's own line: if its time is over, it was never sent */
    }
    if (!host_is_up(transfer) && outcome_connected(attempt->easy)) {
        line_host_back(transfer, attempt);
    }
    request_learn(transfer, attempt->easy); /* its time may be over: may it be repeated? */
    if (upload_look(attempt, now)) {
        return true;
    }
    if (!never_sent(attempt, now, &seen)) {
        return false;
    }
    attempt_cut(attempt, &seen);
    return true;
}

BECALM__COLD void transfer_timer(struct transfer *transfer)
{
    if (transfer->state >= TRANSFER_ENDED) { /* by something else, a moment ago */
        multi_wake_at(transfer->multi, transfer, BECALM_NEVER);
        return;
    }
    becalm_ns now = becalm_run_now();
    struct attempt *passed = attempt_in(transfer, ATTEMPT_PASSED);
    if (passed != NULL) {
        timer_passed(transfer, passed);
        return;
    }
    if (transfer->lined) {
        line_look(transfer, now);
        step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_TIMER});
        return;
    }
    transfer->look_at = BECALM_NEVER;
    for (uint32_t i = 0; i < transfer->top; i++) {
        struct attempt *attempt = &transfer->attempt[i];
        if (attempt->state != ATTEMPT_FLYING || !attempt->added || attempt->judged) {
            continue;
        }
        transfer->look_at = becalm_ns_after(now, look_in(transfer));
        if (attempt_look(attempt, now)) {
            return;
        }
    }
    /* The step has the time of the look. With a later time, the attempt's time might be over, and it would count as
     * sent although the look found that it was not. */
    struct becalm_event timer = {.kind = BECALM_EVENT_TIMER, .at = moment(transfer)};
    timer.at.now = now;
    step_at(transfer, &timer);
}

BECALM__COLD void transfer_called(struct transfer *transfer)
{
    if (transfer->state == TRANSFER_DECIDING) {
        step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_SERVE});
    }
}

BECALM__COLD void transfer_cancel(struct transfer *transfer)
{
    switch (transfer->state) {
    case TRANSFER_DECIDING:
        transfer->code = CURLE_OK;
        transfer->cut = true;
        step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_CANCEL});
        return;
    case TRANSFER_PASSING:
        transfer->code = CURLE_ABORTED_BY_CALLBACK;
        transfer->state = TRANSFER_ENDED;
        multi_dirty(transfer->multi, transfer);
        return;
    case TRANSFER_ENDED:
    case TRANSFER_OVER:
        return;
    }
    BECALM_UNREACHABLE();
}

/* An attempt that could not even be handed to libcurl: an error of the calling program, which counts as no failure of
 * the service. */
static BECALM__COLD void send_failed(struct transfer *transfer, const struct attempt *attempt)
{
    char *text = transfer->handle->option.error;
    if (text != NULL) {
        (void)snprintf(text, CURL_ERROR_SIZE, "%s", curl_easy_strerror(attempt->code));
    }
    transfer->code = attempt->code;
    transfer->cut = false;
    step(transfer, &(struct becalm_event){.kind = BECALM_EVENT_DONE,
                                          .slot = attempt->slot,
                                          .outcome = {.kind = BECALM_OUTCOME_CANCELLED}});
}

static BECALM__COLD void remove_gone(struct transfer *transfer)
{
    for (uint32_t slot = 0; transfer->gone >> slot != 0; slot++) {
        if ((transfer->gone >> slot & 1) != 0 && transfer->attempt[slot].state == ATTEMPT_GONE) {
            attempt_remove(&transfer->attempt[slot]);
        }
    }
    transfer->gone = 0;
}

/* The answer of the former attempt in this slot is not wanted any more, and its handle is known. */
static BECALM__COLD void remove_former(struct transfer *transfer, struct attempt *attempt)
{
    transfer->answered = attempt->easy == transfer->answered ? transfer->easy : transfer->answered;
    attempt_remove(attempt);
}

static BECALM__OUTLINE void send_due(struct transfer *transfer)
{
    for (uint32_t slot = 0; transfer->due >> slot != 0; slot++) {
        struct attempt *attempt = &transfer->attempt[slot];
        if ((transfer->due >> slot & 1) == 0) {
            continue;
        }
        transfer->due &= ~(1u << slot);
        attempt->number = attempt->due_number;
        if (attempt->added || attempt->copied) {
            remove_former(transfer, attempt);
        }
        if (!attempt_dispatch(attempt)) {
            send_failed(transfer, attempt);
            return;
        }
    }
}

bool transfer_settle(struct transfer *transfer)
{
    if (transfer->gone != 0) {
        remove_gone(transfer);
    }
    while (transfer->due != 0 && transfer->state < TRANSFER_ENDED) {
        send_due(transfer);
    }
    return transfer->state == TRANSFER_ENDED;
}

/* The cookies that a hedge was given with the answer. */
static BECALM__COLD void cookies_take(const struct transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->top; i++) {
        const struct attempt *attempt = &transfer->attempt[i];
        if (attempt->copied && attempt->easy == transfer->answered) {
            copy_cookies_take(transfer->easy, attempt->easy, attempt->cookies);
        }
    }
}

void transfer_detach(struct transfer *transfer)
{
    for (uint32_t i = 0; i < transfer->top; i++) {
        attempt_remove(&transfer->attempt[i]);
    }
    if (transfer->recorded) {
        attempt_restore(transfer);
    }
    if (transfer->answered != transfer->easy) {
        cookies_take(transfer);
    }
    multi_wake_at(transfer->multi, transfer, BECALM_NEVER);
}

/* Forgets the copy that has the answer: the program can't ask for it any more. */
void transfer_forget(struct transfer *transfer)
{
    transfer->answered = transfer->easy;
    for (uint32_t i = 0; i < transfer->top; i++) {
        if (transfer->attempt[i].copied) {
            attempt_remove(&transfer->attempt[i]);
        }
    }
}

struct transfer *transfer_make(void)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL) {
        return NULL;
    }
    transfer->headed = headed;
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        transfer->attempt[i].transfer = transfer;
        transfer->attempt[i].slot = i;
    }
    return transfer;
}

void transfer_free(struct transfer *transfer)
{
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        buffer_free(&transfer->attempt[i].head);
        buffer_free(&transfer->attempt[i].body);
        free(transfer->attempt[i].copy);
    }
    free(transfer);
}
