/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_HANDLE_H
#define BECALM_CURL_HANDLE_H

/* A client's record of an easy handle, because libcurl can't be asked for its options: the recorded options, and the
 * multi handle with which becalm_curl_perform() drives it, and which keeps its connections. A plain handle, without
 * recorded options, is only remembered for a while: a program that makes a new handle for every call fills no memory.
 */

#include "map.h"

#include <becalm/http.h>

#include <curl/curl.h>

/* libcurl does not tell us when the program has cleaned up a plain handle, and each may have three descriptors. So many
 * are remembered in any case; more as long as each was in a call during the last minute, and up to `plain_max`; still
 * more only if all are in a call. */
#define HANDLES_PLAIN_KEPT 32u
#define HANDLES_PLAIN_MOST 1000u
#define HANDLES_PLAIN_IDLE (60 * BECALM_S)
#define HANDLE_DESCRIPTORS 3u

struct becalm_curl_multi;
struct client_target;

/* The options that becalm_curl_setopt() has recorded, as bits. Other options may have been set without it, so they are
 * neither replaced nor restored. */
enum handle_recorded {
    RECORDED_WRITE = 1, /* WRITEFUNCTION ... */
    RECORDED_WRITE_DATA = 2,
    RECORDED_HEADER = 4,
    RECORDED_HEADER_DATA = 8,
    RECORDED_READ = 16,
    RECORDED_READ_DATA = 32,
    RECORDED_SEEK = 64,
    RECORDED_SEEK_DATA = 128,
    RECORDED_PROGRESS = 256, /* XFERINFOFUNCTION */
    RECORDED_PROGRESS_DATA = 512,
    RECORDED_HEADERS = 1024, /* HTTPHEADER */
    RECORDED_CONNECT = 2048, /* CONNECTTIMEOUT or CONNECTTIMEOUT_MS */
    /* A function without its data, or data without its function, can't be called: only both are taken over. */
    RECORDED_ALL_WRITE = RECORDED_WRITE | RECORDED_WRITE_DATA,
    RECORDED_ALL_HEADER = RECORDED_HEADER | RECORDED_HEADER_DATA,
    RECORDED_ALL_READ = RECORDED_READ | RECORDED_READ_DATA,
    RECORDED_ALL_SEEK = RECORDED_SEEK | RECORDED_SEEK_DATA,
    RECORDED_ALL_PROGRESS = RECORDED_PROGRESS | RECORDED_PROGRESS_DATA
};

/* Where the request's body comes from. */
enum handle_body {
    BODY_NONE,
    BODY_MEMORY,  /* POSTFIELDS: libcurl sends it again by itself */
    BODY_FORM,    /* MIMEPOST, HTTPPOST: the same, if its parts can be rewound, which is not known before */
    BODY_CALLBACK /* READFUNCTION, or a FILE */
};

/* As recorded by becalm_curl_setopt(). Zeroed: libcurl's defaults. */
struct handle_options {
    unsigned recorded; /* bits of handle_recorded */
    curl_write_callback write;
    void *write_data;
    curl_write_callback header;
    void *header_data;
    curl_read_callback read;
    void *read_data;
    curl_seek_callback seek;
    void *seek_data;
    curl_xferinfo_callback progress;
    void *progress_data;
    bool progresses; /* NOPROGRESS is 0 */
    struct curl_slist *headers;
    CURLU *curlu;
    CURLSH *share;
    char *error;        /* ERRORBUFFER */
    long connections;   /* MAXCONNECTS; 0: not recorded */
    char *url;          /* a copy; NULL: not recorded */
    char *custom;       /* CUSTOMREQUEST, a copy */
    const char *method; /* NULL: not recorded, and then nor is the body */
    enum handle_body body;
    bool fields; /* POSTFIELDS is there, for a method that sends it */
    bool connect_timeout;
    long connect_ms;      /* the value that the library has set instead; 0: none */
    bool headers_in_body; /* CURLOPT_HEADER: the head can't be told from the body */
    bool path_as_is;
};

/* Were all these recorded? */
static inline bool handle_recorded(const struct handle_options *option, unsigned all)
{
    return (option->recorded & all) == all;
}

#define HANDLE_URL_MAX 256u

/* The target of the latest request: most often the next request has the same one, and no search is needed. */
struct handle_route {
    struct client_target *target; /* NULL: not known */
    struct client_origin *origin;
    size_t url_length;
    size_t method_length;
    char method[16];
    char url[HANDLE_URL_MAX]; /* zero-terminated */
};

struct handle {
    CURL *easy;
    bool recorded; /* something was, or it has an operation or a deadline: kept until becalm_curl_cleanup() */
    bool keyed;    /* every call gets a fresh idempotency key */
    const char *operation;
    becalm_ns deadline_at; /* of the next call; 0: none */
    struct handle_options option;
    struct handle_route route;
    struct becalm_curl_multi *in; /* the program's multi that it is in; NULL: none */
    BECALM_ATOMIC(bool) over;     /* its call there has ended, of which other threads want to know */
    bool cancel;                  /* its call there is to be cancelled, and it is in the list of those */
    struct handle *next_cancel;
    struct becalm_curl_multi *multi; /* for becalm_curl_perform(); NULL: never called */
    CURLM *own;                      /* the multi handle that it wraps */
    becalm_ns called_at;             /* when its latest call began, of which there is a record; 0: there is none */
    BECALM_ATOMIC(bool) busy;        /* in a becalm_curl_perform(), which ends without the client's mutex */
    struct handle *older;            /* plain ones, in order of use */
    struct handle *newer;
};

struct handles {
    struct map by_address;
    struct handle *oldest; /* of the plain ones */
    struct handle *newest;
    uint32_t plain_count;
    uint32_t plain_max;
};

/* NULL: not known. */
static inline struct handle *handles_find(const struct handles *handles, const CURL *easy)
{
    return map_find(&handles->by_address, easy);
}

/* The most plain handles that are remembered with this limit of descriptors: they may use a quarter of the descriptors.
 */
uint32_t handles_plain_max(uint64_t descriptors);

struct handle *handles_add(struct handles *, CURL *, becalm_ns now); /* one that is not known; NULL: no memory */
void handles_forget(struct handles *, struct handle *);              /* and frees it */
void handles_use(struct handles *, struct handle *);   /* of the plain ones it is the last to be forgotten */
void handles_keep(struct handles *, struct handle *);  /* it has recorded options: kept until its end */
void handles_reset(struct handles *, struct handle *); /* plain, with its connections and its record */
void handles_free(struct handles *);

/* In a wait of ours, where libcurl can't: does the caller, if it was recorded, want to go on? */
bool handle_goes_on(const struct handle *);

/* Records an option. `value` points to the long, curl_off_t or pointer. False: no memory. */
bool handle_record(struct handle *, CURLoption, const void *value);

#endif
