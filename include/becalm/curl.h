/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_H
#define BECALM_CURL_H

/* libcurl with the engine around it: call becalm_curl_perform() instead of curl_easy_perform(). The retries, waits,
 * deadline, budget, breaker, throttle and limit of a policy happen inside. In libbecalm-curl, not libbecalm.
 *
 *   struct becalm_client *client = becalm_client_load("becalm.yaml", NULL, NULL);      once per program
 *   CURLcode rc = becalm_curl_perform(easy, client);                                   from any thread
 *
 * libcurl offers no way to read the options of a handle. So options set with curl_easy_setopt() are unknown here and
 * stay untouched. Options set with becalm_curl_setopt() are RECORDED: they are replaced during a call and restored
 * after it. A handle without recorded options is PLAIN: its callbacks see every attempt as it comes. So an attempt that
 * has delivered a byte of a body is not repeated (answer_delivered), nor is an attempt whose request had a body
 * (not_replayable).
 *
 * Each of these options has an effect when it is recorded:
 *   WRITEFUNCTION and WRITEDATA        answers of failed attempts are held back: the program sees only the final answer
 *   HEADERFUNCTION and HEADERDATA      and so are their headers (only together with the two above)
 *   POSTFIELDS, COPYPOSTFIELDS         the body is sent again
 *   MIMEPOST, HTTPPOST                 the same; if a part can't go back, the call ends with CURLE_SEND_FAIL_REWIND
 *   UPLOAD or POST, with SEEKFUNCTION and SEEKDATA, or with READFUNCTION as NULL and READDATA (a FILE)   the same
 *   HTTPHEADER, NULL if there are none each attempt says its number and how much time is left
 *   CONNECTTIMEOUT, CONNECTTIMEOUT_MS  0 means the policy's connectTimeout
 *   HTTPGET, NOBODY, POST, UPLOAD, PUT, MIMEPOST, HTTPPOST, CUSTOMREQUEST      the method is known, also for routes;
 *                                      a call is hedged only if one of them (not CUSTOMREQUEST alone) and the write
 *                                      function were recorded, in a multi
 *   URL, CURLU                         the URL is known after redirections, too; a CURLU that is not recorded is never
 *                                      known, and its request belongs to no service
 *   PATH_AS_IS                         dots in the path stay for the routes, too
 *   XFERINFOFUNCTION, XFERINFODATA and NOPROGRESS      becalm_curl_perform() asks it in waits between attempts, too
 *   ERRORBUFFER                        says why a call was refused or cut
 *   MAXCONNECTS                        takes effect
 *   SHARE                              hedges use the share, too
 * Record a function and its data together: if only one of the two was recorded (NULL counts), both are left untouched.
 * To change a recorded option, record it again. CURLOPT_HEADER must be recorded if the write function is. */

#include <becalm/call.h>
#include <becalm/config.h>

#include <curl/curl.h>

BECALM_BEGIN_DECLS

/* ---- the client: policies, and the state that all calls to a service share; for all threads of a program ---- */

struct becalm_client;

/* One retry, reported when it is sent, in the thread of the call. Texts may be absent, and are valid during the
 * callback only. */
struct becalm_curl_retry {
    const char *operation; /* becalm_curl_operation()'s; NULL: none */
    const char *service;
    const char *endpoint; /* NULL: the service's own rules */
    struct becalm_text method;
    struct becalm_text url;
    uint32_t retry;                   /* 1 is the first ... */
    uint32_t of;                      /* how many retries the policy allows */
    struct becalm_wait wait;          /* delay, jittered; wait is the planned sleep */
    becalm_ns slept;                  /* the time that was really slept */
    enum becalm_outcome_kind outcome; /* the outcome of the attempt before: the cause of the retry */
    uint32_t status;                  /* the HTTP status of that attempt; 0: it got no answer */
    uint32_t grpc_status;             /* its gRPC status; BECALM_GRPC_NONE: it got none */
    CURLcode code;                    /* its result */
    struct becalm_text retry_after;   /* the answer's header, as it came */
    struct becalm_text request_id;    /* X-Request-Id of a recorded handle */
    enum becalm_reason reason;        /* backoff, hint or hedge */
};

struct becalm_client_options {
    void (*on_retry)(const struct becalm_curl_retry *, void *data); /* any thread; NULL: retries are not reported */
    void (*on_breaker)(const char *service, enum becalm_breaker_state from, enum becalm_breaker_state to, void *data);
    void *data; /* for the two above */
};

/* Makes a client from a policy file, or from the same text in memory. A request belongs to a service by its URL, as in
 * the gateway; a request that belongs to no service is made once, as by curl_easy_perform(), and counted
 * (becalm_unrouted_requests_total). `limit: auto` is aimd here. `role`, `gatewayRetries` and `hosts` are ignored: the
 * URL decides where a request goes. Of `gate` only `maxQueue` and `maxQueueTime` count; `idempotencyKey: required` is
 * treated as optional. A first attempt that finds no slot in the limit waits in a queue, and so do calls to a host that
 * restarts. The file is not read again when it changes. Returns NULL on errors, which are in *diags; if there are none
 * in it, there was no memory. If `diags` is NULL, errors are written to stderr. `options` may be NULL too. A path or
 * text that is NULL is an error, like an empty one. */
BECALM_API struct becalm_client *becalm_client_load(const char *path, const struct becalm_client_options *,
                                                    struct becalm_diags *);
BECALM_API struct becalm_client *becalm_client_parse(const char *text, size_t length,
                                                     const struct becalm_client_options *, struct becalm_diags *);

/* Makes a client without a file: one service of this name (bytes that are no UTF-8 become U+FFFD), to which all URLs
 * belong. The policy is copied; NULL: the defaults. Returns NULL if the name is empty, if the policy does not pass its
 * check (then *complaint, if given, says why), or if memory runs out (then the sentence in *complaint is NULL). */
BECALM_API struct becalm_client *becalm_client_new(const char *service, const struct becalm_policy *,
                                                   const struct becalm_client_options *, struct becalm_complaint *);

/* Frees the client. Before that, its last call must be over, its multis freed, and the handles with a record cleaned
 * up: becalm_curl_cleanup() still needs the client. NULL is fine. */
BECALM_API void becalm_client_free(struct becalm_client *);

/* The page of metrics that the gateway has, under the same names: becalm-metrics(7). A handle's operation is the label
 * `operation`. Prometheus' text format, zero-terminated, on the heap: free() it. NULL: no memory. Any thread. */
BECALM_API char *becalm_client_metrics(struct becalm_client *);

/* The shared state of a service, for reading; `endpoint` may be NULL. NULL: the policy has no service or endpoint of
 * this name. */
BECALM_API const struct becalm_target *becalm_client_target(const struct becalm_client *, const char *service,
                                                            const char *endpoint);

/* ---- handles ---- */

/* All functions accept a client that is NULL, because its policy could not be read, and a multi that is NULL: setopt,
 * reset and cleanup do libcurl's part, and all other functions return CURLE_BAD_FUNCTION_ARGUMENT, CURLM_BAD_HANDLE,
 * false or NULL. */

/* Use becalm_curl_setopt() instead of curl_easy_setopt() to record an option. Options that are not named above may be
 * set with either function. In a callback of a call the option takes effect at once, as with libcurl.
 * (curl_easy_setopt() in a callback would overwrite options that the call has replaced.) CURLE_BAD_FUNCTION_ARGUMENT
 * for CURLOPT_CONNECT_ONLY: the program could not use the connection. */
BECALM_API CURLcode becalm_curl_setopt(CURL *, struct becalm_client *, CURLoption, ...);

/* From now on each call of this handle carries an Idempotency-Key, a fresh one per call and the same on all its
 * attempts, so that a POST may be repeated. The key is sent as a header. So CURLOPT_HTTPHEADER must have been recorded
 * before, or headers set with curl_easy_setopt() would be lost; the function returns CURLE_BAD_FUNCTION_ARGUMENT in
 * that case. */
BECALM_API CURLcode becalm_curl_idempotency_key(CURL *, struct becalm_client *);

/* Names the operation that this handle's calls belong to: a label of metrics and a field of retries. A client keeps
 * BECALM_OPERATIONS_MAX names; calls with further names get no label. The text is copied, with U+FFFD for bytes that
 * are no UTF-8; NULL: none. */
#define BECALM_OPERATIONS_MAX 64u
BECALM_API CURLcode becalm_curl_operation(CURL *, struct becalm_client *, const char *operation);

/* The handle's next call must be over at this instant of CLOCK_MONOTONIC (becalm_run_now()), if the policy's deadline
 * does not come first. This deadline holds for one call, until the end of its answer: an answer that is still arriving
 * then is cut, with CURLE_OPERATION_TIMEDOUT. (The policy's deadline holds until the answer's head.) A recorded header
 * grpc-timeout does the same if the recorded Content-Type is application/grpc. */
BECALM_API CURLcode becalm_curl_deadline(CURL *, struct becalm_client *, becalm_ns deadline_at);

/* Use these instead of curl_easy_reset() and curl_easy_cleanup() for every handle that one of the four functions above
 * was called with. After reset the handle is plain, and keeps its connections and its decision record. After cleanup
 * the client has forgotten the handle. (A new handle may have the address of an old one.) A handle in a
 * becalm_curl_multi is removed from it first. Do not call them in a callback of the handle. Use cleanup also for a
 * handle with CURLOPT_CLOSESOCKETFUNCTION: it closes the handle's connections, which outlive a plain handle. */
BECALM_API void becalm_curl_reset(CURL *, struct becalm_client *);
BECALM_API void becalm_curl_cleanup(CURL *, struct becalm_client *);

/* ---- one call at a time ---- */

/* Makes the call and returns the code that curl_easy_perform() would have returned for the last attempt. If nothing was
 * sent: CURLE_COULDNT_CONNECT if a rule refused the call, CURLE_OPERATION_TIMEDOUT if its time was over,
 * CURLE_ABORTED_BY_CALLBACK if it was cancelled. Never hedges. The policy's timeouts begin when the request's body is
 * completely sent: an upload that makes progress is not cut. */
BECALM_API CURLcode becalm_curl_perform(CURL *, struct becalm_client *);

/* Ends the call that this handle is in, also in the middle of a wait; from any thread. In a becalm_curl_multi it ends
 * when that is driven next: becalm_curl_multi_poll() is woken up, a loop of the program's own is not. False: it is in
 * no call. */
BECALM_API bool becalm_curl_cancel(CURL *, struct becalm_client *);

/* Use becalm_curl_pause() instead of curl_easy_pause(), in a multi too: it acts on the handle that has the answer,
 * which may be the handle of a hedge. Call it in the thread of the call. */
BECALM_API CURLcode becalm_curl_pause(CURL *, struct becalm_client *, int bitmask);

/* The decision record of the handle's latest becalm_curl_perform(): why it ended as it did. Call it in the thread of
 * the call, before the next call of that thread. False: not known (any more). */
BECALM_API bool becalm_curl_record(CURL *, struct becalm_client *, struct becalm_record *);

/* The service whose rules applied to that call; the text is valid as long as the client. NULL: the URL belongs to no
 * service of the policy, so the call was made once, as libcurl alone would; or the handle's call is not known (any
 * more). */
BECALM_API const char *becalm_curl_service(CURL *, struct becalm_client *);

/* ---- many at once: no thread, nothing blocks ---- */

/* The state of one multi handle; belongs to its thread. */
struct becalm_curl_multi;

/* Wraps your multi handle, to which you may also add handles without Becalm. The wrapper uses CURLMOPT_TIMERFUNCTION
 * itself: set yours with becalm_curl_multi_setopt(). In the end free the wrapper before curl_multi_cleanup(), and both
 * before the client. NULL: out of memory. */
BECALM_API struct becalm_curl_multi *becalm_curl_multi_new(CURLM *, struct becalm_client *);
BECALM_API void becalm_curl_multi_free(struct becalm_curl_multi *); /* removes its handles; NULL is fine */

/* Use each of these instead of the libcurl function with the same ending of its name. A handle whose call has ended
 * stays until it is removed; removing a handle earlier cancels its call. In callbacks they return
 * CURLM_RECURSIVE_API_CALL. A program that waits with curl_multi_wait() or curl_multi_fdset() must not wait longer than
 * becalm_curl_multi_timeout() returns. */
BECALM_API CURLMcode becalm_curl_multi_add_handle(struct becalm_curl_multi *, CURL *);
BECALM_API CURLMcode becalm_curl_multi_remove_handle(struct becalm_curl_multi *, CURL *);
BECALM_API CURLMcode becalm_curl_multi_perform(struct becalm_curl_multi *, int *running);
BECALM_API CURLMcode becalm_curl_multi_socket_action(struct becalm_curl_multi *, curl_socket_t, int events,
                                                     int *running);
BECALM_API CURLMcode becalm_curl_multi_poll(struct becalm_curl_multi *, struct curl_waitfd *extra, unsigned extra_count,
                                            int timeout_ms, int *ready);
BECALM_API CURLMcode becalm_curl_multi_timeout(struct becalm_curl_multi *, long *timeout_ms);
BECALM_API CURLMsg *becalm_curl_multi_info_read(struct becalm_curl_multi *, int *left); /* valid until the next call */
BECALM_API CURLMcode becalm_curl_multi_setopt(struct becalm_curl_multi *, CURLMoption, ...);

/* For a handle whose call has ended and that is not yet removed: its record (NULL: the multi has no such handle), and
 * the handle to pass to curl_easy_getinfo(). If a hedge won, that is the handle of the hedge. */
BECALM_API const struct becalm_record *becalm_curl_multi_record(const struct becalm_curl_multi *, CURL *);
BECALM_API CURL *becalm_curl_multi_answered(const struct becalm_curl_multi *, CURL *);

BECALM_END_DECLS

#endif
