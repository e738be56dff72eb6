/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "handle.h"

#include <becalm/curl.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- known handles ---- */

static void plain_remove(struct handles *handles, struct handle *handle)
{
    bool listed = handle->older != NULL || handle->newer != NULL || handles->oldest == handle;
    if (!listed) {
        return;
    }
    *(handle->older == NULL ? &handles->oldest : &handle->older->newer) = handle->newer;
    *(handle->newer == NULL ? &handles->newest : &handle->newer->older) = handle->older;
    handle->older = NULL;
    handle->newer = NULL;
    handles->plain_count--;
}

void handles_keep(struct handles *handles, struct handle *handle)
{
    plain_remove(handles, handle);
    handle->recorded = true;
}

void handles_use(struct handles *handles, struct handle *handle)
{
    if (handle->recorded || handles->newest == handle) {
        return;
    }
    plain_remove(handles, handle);
    handle->older = handles->newest;
    *(handles->newest == NULL ? &handles->oldest : &handles->newest->newer) = handle;
    handles->newest = handle;
    handles->plain_count++;
}

uint32_t handles_plain_max(uint64_t descriptors)
{
    uint64_t most = descriptors / 4 / HANDLE_DESCRIPTORS;
    most = most < HANDLES_PLAIN_KEPT ? HANDLES_PLAIN_KEPT : most;
    return most < HANDLES_PLAIN_MOST ? (uint32_t)most : HANDLES_PLAIN_MOST;
}

/* The plain one that has been idle the longest, if there are too many of them; NULL: none has to go. */
static struct handle *plain_spare(const struct handles *handles, becalm_ns now)
{
    struct handle *handle = handles->plain_count < HANDLES_PLAIN_KEPT ? NULL : handles->oldest;
    /* acquire: pairs with the release at the end of its call, whose traces are then all there */
    while (handle != NULL && (handle->in != NULL || atomic_load_explicit(&handle->busy, memory_order_acquire))) {
        handle = handle->newer;
    }
    bool room = handles->plain_count < handles->plain_max;
    return handle != NULL && room && becalm_ns_since(now, handle->called_at) < HANDLES_PLAIN_IDLE ? NULL : handle;
}

static void options_free(struct handle_options *option)
{
    free(option->url);
    free(option->custom);
    *option = (struct handle_options){0};
}

static void handle_free(struct handle *handle)
{
    if (handle != NULL) {
        becalm_curl_multi_free(handle->multi);
        curl_multi_cleanup(handle->own);
        options_free(&handle->option);
        free(handle);
    }
}

void handles_forget(struct handles *handles, struct handle *handle)
{
    plain_remove(handles, handle);
    map_remove(&handles->by_address, handle->easy);
    handle_free(handle);
}

void handles_reset(struct handles *handles, struct handle *handle)
{
    if (handle->multi == NULL) { /* there are no connections to be kept */
        handles_forget(handles, handle);
        return;
    }
    if (handle->option.connections > 0) {
        (void)curl_multi_setopt(handle->own, CURLMOPT_MAXCONNECTS, 0L);
    }
    options_free(&handle->option);
    handle->keyed = false;
    handle->operation = NULL;
    handle->deadline_at = 0;
    handle->route.target = NULL;
    handle->recorded = false;
    handles_use(handles, handle);
}

struct handle *handles_add(struct handles *handles, CURL *easy, becalm_ns now)
{
    struct handle *handle = plain_spare(handles, now);
    if (handle != NULL) { /* its multi handle serves another */
        plain_remove(handles, handle);
        map_remove(&handles->by_address, handle->easy);
        handle->called_at = 0;
        handle->route.target = NULL;
    } else {
        handle = calloc(1, sizeof *handle);
    }
    if (handle == NULL || !map_add(&handles->by_address, easy, handle)) {
        handle_free(handle);
        return NULL;
    }
    handle->easy = easy;
    /* Each new handle drops one spare record more, so that the records of many old handles go, but not at once. */
    struct handle *another = plain_spare(handles, now);
    if (another != NULL) {
        handles_forget(handles, another);
    }
    return handle;
}

void handles_free(struct handles *handles)
{
    uint32_t at = 0;
    for (struct handle *handle; (handle = map_left(&handles->by_address, &at)) != NULL;) {
        handles_forget(handles, handle);
    }
    map_free(&handles->by_address);
}

/* ---- options ---- */

/* libcurl's names of these warn that they are deprecated; programs use them all the same. */
#define OPTION_PUT      (CURLOPTTYPE_LONG + 54)
#define OPTION_HTTPPOST (CURLOPTTYPE_OBJECTPOINT + 24)

/* Values that are kept as they come: where, and the bit that says so; 0: the value itself says it. */
#define KEPT(field) offsetof(struct handle_options, field), sizeof(((struct handle_options *)0)->field)

static const struct {
    CURLoption option;
    size_t where;
    size_t size;
    unsigned bit;
} kept[] = {
    {CURLOPT_WRITEFUNCTION, KEPT(write), RECORDED_WRITE},
    {CURLOPT_WRITEDATA, KEPT(write_data), RECORDED_WRITE_DATA},
    {CURLOPT_HEADERFUNCTION, KEPT(header), RECORDED_HEADER},
    {CURLOPT_HEADERDATA, KEPT(header_data), RECORDED_HEADER_DATA},
    {CURLOPT_READFUNCTION, KEPT(read), RECORDED_READ},
    {CURLOPT_READDATA, KEPT(read_data), RECORDED_READ_DATA},
    {CURLOPT_SEEKFUNCTION, KEPT(seek), RECORDED_SEEK},
    {CURLOPT_SEEKDATA, KEPT(seek_data), RECORDED_SEEK_DATA},
    {CURLOPT_XFERINFOFUNCTION, KEPT(progress), RECORDED_PROGRESS},
    {CURLOPT_XFERINFODATA, KEPT(progress_data), RECORDED_PROGRESS_DATA},
    {CURLOPT_HTTPHEADER, KEPT(headers), RECORDED_HEADERS},
    {CURLOPT_CURLU, KEPT(curlu), 0},
    {CURLOPT_SHARE, KEPT(share), 0},
    {CURLOPT_ERRORBUFFER, KEPT(error), 0},
    {CURLOPT_MAXCONNECTS, KEPT(connections), 0},
};

static bool value_keep(struct handle_options *option, CURLoption which, const void *value)
{
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (kept[i].option == which) {
            memcpy((char *)option + kept[i].where, value, kept[i].size);
            option->recorded |= kept[i].bit;
            return true;
        }
    }
    return false;
}

static bool text_keep(char **copy, const char *text)
{
    char *fresh = text == NULL ? NULL : strdup(text);
    if (text != NULL && fresh == NULL) {
        return false;
    }
    free(*copy);
    *copy = fresh;
    return true;
}

static void method_set(struct handle_options *option, const char *method, enum handle_body body)
{
    option->method = method;
    option->body = body;
}

static void post_set(struct handle_options *option)
{
    method_set(option, "POST", option->fields ? BODY_MEMORY : BODY_CALLBACK);
}

/* The kind of the request, by the latest option that sets it. `on`: the value is not 0 or NULL. */
static void request_record(struct handle_options *option, CURLoption which, bool on)
{
    bool is_head = option->method != NULL && strcmp(option->method, "HEAD") == 0;
    switch ((int)which) {
    case CURLOPT_HTTPGET:
        if (on) {
            method_set(option, "GET", BODY_NONE);
        }
        break;
    case CURLOPT_NOBODY:
        if (on || is_head) { /* else the kind does not change */
            method_set(option, on ? "HEAD" : "GET", BODY_NONE);
        }
        break;
    case CURLOPT_UPLOAD:
    case OPTION_PUT:
        method_set(option, on ? "PUT" : "GET", on ? BODY_CALLBACK : BODY_NONE);
        break;
    case CURLOPT_POST:
        if (on) {
            post_set(option);
        } else {
            method_set(option, "GET", BODY_NONE);
        }
        break;
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        option->fields = on; /* NULL is a POST too, with a body from the read function */
        post_set(option);
        break;
    case CURLOPT_MIMEPOST:
    case OPTION_HTTPPOST:
        method_set(option, "POST", BODY_FORM);
        break;
    }
}

/* Options of which only matters whether the value is 0. */
static void switch_record(struct handle_options *option, CURLoption which, bool on)
{
    switch ((int)which) {
    case CURLOPT_HEADER:
        option->headers_in_body = on;
        break;
    case CURLOPT_NOPROGRESS:
        option->progresses = !on;
        break;
    case CURLOPT_PATH_AS_IS:
        option->path_as_is = on;
        break;
    case CURLOPT_CONNECTTIMEOUT:
    case CURLOPT_CONNECTTIMEOUT_MS:
        option->connect_timeout = on;
        option->connect_ms = 0;
        option->recorded |= RECORDED_CONNECT;
        break;
    }
}

bool handle_record(struct handle *handle, CURLoption which, const void *value)
{
    struct handle_options *option = &handle->option;
    handle->recorded = true;
    handle->route.target = NULL; /* a header may lead elsewhere */
    if ((int)which >= CURLOPTTYPE_OFF_T || value_keep(option, which, value)) {
        return true; /* sizes and blobs say nothing that is needed here */
    }
    if (which == CURLOPT_URL) {
        return text_keep(&option->url, *(char *const *)value);
    }
    if (which == CURLOPT_CUSTOMREQUEST) {
        return text_keep(&option->custom, *(char *const *)value);
    }
    if ((int)which < CURLOPTTYPE_FUNCTIONPOINT) {
        bool is_number = (int)which < CURLOPTTYPE_OBJECTPOINT;
        bool on = is_number ? *(const long *)value != 0 : *(void *const *)value != NULL;
        request_record(option, which, on);
        switch_record(option, which, on);
    }
    return true;
}

bool handle_goes_on(const struct handle *handle)
{
    const struct handle_options *option = &handle->option;
    if (!option->progresses || option->progress == NULL || !handle_recorded(option, RECORDED_ALL_PROGRESS)) {
        return true;
    }
    int stop = option->progress(option->progress_data, 0, 0, 0, 0);
    return stop == 0 || stop == CURL_PROGRESSFUNC_CONTINUE;
}
