/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BECALM_H
#define BECALM_BECALM_H

/* Becalm: retries that calm a storm instead of feeding it. This header includes all others, and describes their common
 * conventions.
 *
 * THE ENGINE DECIDES AND NEVER ACTS. It opens no socket, reads no clock, has no entropy, allocates nothing, takes no
 * lock, and keeps no state outside of the objects that it is given. A driver (your program) reports each event with its
 * time, and carries out the action that comes back:
 *
 *     event: kind, now, random bits  ->  becalm_call_step()  ->  action: flags, and the reason
 *
 * The same events give the same actions on every machine; there is no floating point. So a test or a simulation in
 * virtual time exercises the very code that serves traffic.
 *
 * TIME is becalm_ns: unsigned nanoseconds on a monotonic clock of the driver's choice. A driver reads its clock once
 * per wake-up and passes the value on. Instants end in _at, durations are nouns, BECALM_NEVER is the instant that does
 * not come. Arithmetic saturates (ns.h). An instant older than one seen before is harmless: no state moves back.
 *
 * RATIOS are integers in parts per million and end in _ppm: 100000 is 10 %. Other fixed-point fields say their unit in
 * the name (_milli) or in the comment. Upper bounds end in _max.
 *
 * RANDOMNESS: each event brings 64 good random bits (rand.h has a generator). Give every process and thread a seed of
 * its own: callers that share a seed would retry at the same moments, which jitter is there to prevent.
 *
 * NAMES are becalm_<noun>_<verb>, one header per noun. The verbs mean one thing each:
 *     defaults  fills a policy with values that are good as they are
 *     check     says whether a policy is valid, and if not, which field is wrong
 *     bytes     how much memory an object needs, where that depends on its policy
 *     init      makes an object in the caller's memory
 *     admit     asks for permission, and counts the question
 *     peek      asks, and changes nothing
 *     take,give move tokens or permits; each one that was taken is given back at most once
 *     note      records a result
 *     carry     moves the state of an old object into a new one, when a policy is reloaded
 *     step      drives a state machine
 *     new,free  make and end an object on the heap, as the wrapper in run.h does
 *     load      makes a config on the heap from a policy file, or lists all errors in the file (config.h)
 *     parse     makes a value of untrusted text, or refuses it
 *     write     makes text of a value, in the caller's memory
 *
 * MEMORY belongs to the caller. Fields are public for size and embedding only; touch them through the functions, unless
 * a comment says that they may be read. Objects are ready after init and need no destructor: when no thread uses one
 * any more, reuse or free its memory. Objects that have a bytes() function need memory that is aligned to 64. Do not
 * copy or move an object that is in use. No object keeps a pointer to a policy, with one exception: a call keeps the
 * policy of its init until its end.
 *
 * THREADS. A call, its event and its action belong to one thread at a time. The objects that calls share (budget,
 * breaker, throttle, rate, limit, gate, hedge, lease, mark, sketch, window, hosts) are safe from any number of threads
 * without locks. A policy is a value: no thread may change it while another reads it. becalm_moment.cell spreads
 * statistics over threads: give every thread a number of its own; a wrong number is slower, and still correct.
 *
 * ERRORS, VERDICTS AND BUGS are three things. An error is an int, 0 or one of BECALM_E... (base.h); only functions that
 * check or read policies return one. A verdict is no error: a refusal is an action with a reason (reason.h), the same
 * word in logs, metrics and headers. A bug, in the library or in its use, is an assertion: it stops the program, in
 * release builds too, through becalm_assert_failed(), which a program may define itself.
 *
 * STABILITY. Before 1.0 there is no stable ABI: compile with the headers of the library that you run with (version.h).
 *
 * In reading order: */

/* Foundations. */
#include <becalm/base.h>
#include <becalm/ns.h>
#include <becalm/rand.h>
#include <becalm/version.h>

/* The words. */
#include <becalm/outcome.h>
#include <becalm/reason.h>

/* Statistics. */
#include <becalm/due.h>
#include <becalm/sketch.h>
#include <becalm/window.h>

/* One decision each. */
#include <becalm/backoff.h>
#include <becalm/breaker.h>
#include <becalm/budget.h>
#include <becalm/deadline.h>
#include <becalm/gate.h>
#include <becalm/hedge.h>
#include <becalm/lease.h>
#include <becalm/limit.h>
#include <becalm/losses.h>
#include <becalm/mark.h>
#include <becalm/outlier.h>
#include <becalm/pick.h>
#include <becalm/rate.h>
#include <becalm/throttle.h>

/* Their composition. */
#include <becalm/call.h>
#include <becalm/policy.h>
#include <becalm/target.h>

/* A small driver around the engine, which reads the clock and sleeps. */
#include <becalm/run.h>

/* Around the engine: HTTP and gRPC translated into outcomes, and the policy file. */
#include <becalm/config.h>
#include <becalm/http.h>

#endif
