/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "handle.h"

#include <becalm/curl.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- who is known ---- */

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

/* The plain one that has been idle the longest, if there are too many of them; NULL: nobody has to go. */
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
    /* One more for each that comes, so that a crowd that is gone is forgotten, but not at once. */
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

static bool text_record(char **copy, const char *text)
{
    char *fresh = text == NULL ? NULL : strdup(text);
    if (text != NULL && fresh == NULL) {
        return false;
    }
    free(*copy);
    *copy = fresh;
    return true;
}

static void method_record(struct handle_options *option, const char *method, enum handle_body body)
{
    option->method = method;
    option->body = body;
}

static void post_record(struct handle_options *option)
{
    method_record(option, "POST", option->fields ? BODY_MEMORY : BODY_CALLBACK);
}

/* The options that are written down, one function per kind of value. */
static void number_record(struct handle_options *option, CURLoption which, long value)
{
    if (which == CURLOPT_HTTPGET && value != 0) {
        method_record(option, "GET", BODY_NONE);
    } else if (which == CURLOPT_POST && value != 0) {
        post_record(option);
    } else if (which == CURLOPT_POST) {
        method_record(option, "GET", BODY_NONE);
    } else if (which == CURLOPT_NOBODY && value != 0) {
        method_record(option, "HEAD", BODY_NONE);
    } else if (which == CURLOPT_NOBODY) {
        if (option->method != NULL && strcmp(option->method, "HEAD") == 0) { /* any other stays what it is */
            method_record(option, "GET", BODY_NONE);
        }
    } else if (which == CURLOPT_UPLOAD || (int)which == CURLOPTTYPE_LONG + 54) { /* and CURLOPT_PUT, deprecated */
        method_record(option, value != 0 ? "PUT" : "GET", value != 0 ? BODY_CALLBACK : BODY_NONE);
    } else if (which == CURLOPT_HEADER) {
        option->headers_in_body = value != 0;
    } else if (which == CURLOPT_NOPROGRESS) {
        option->progresses = value == 0;
    } else if (which == CURLOPT_PATH_AS_IS) {
        option->path_as_is = value != 0;
    } else if (which == CURLOPT_MAXCONNECTS) {
        option->connections = value;
    } else if (which == CURLOPT_CONNECTTIMEOUT || which == CURLOPT_CONNECTTIMEOUT_MS) {
        option->connect_timeout = value != 0;
        option->connect_ms = 0;
        option->recorded |= RECORDED_CONNECT;
    }
}

static bool pointer_record(struct handle_options *option, CURLoption which, void *value)
{
    if (which == CURLOPT_WRITEDATA) {
        option->write_data = value;
        option->recorded |= RECORDED_WRITE_DATA;
    } else if (which == CURLOPT_HEADERDATA) {
        option->header_data = value;
        option->recorded |= RECORDED_HEADER_DATA;
    } else if (which == CURLOPT_READDATA) {
        option->read_data = value;
        option->recorded |= RECORDED_READ_DATA;
    } else if (which == CURLOPT_SEEKDATA) {
        option->seek_data = value;
        option->recorded |= RECORDED_SEEK_DATA;
    } else if (which == CURLOPT_XFERINFODATA) {
        option->progress_data = value;
        option->recorded |= RECORDED_PROGRESS_DATA;
    } else if (which == CURLOPT_HTTPHEADER) {
        option->headers = value;
        option->recorded |= RECORDED_HEADERS;
    } else if (which == CURLOPT_CURLU) {
        option->curlu = value;
    } else if (which == CURLOPT_SHARE) {
        option->share = value;
    } else if (which == CURLOPT_ERRORBUFFER) {
        option->error = value;
    } else if (which == CURLOPT_URL) {
        return text_record(&option->url, value);
    } else if (which == CURLOPT_CUSTOMREQUEST) {
        return text_record(&option->custom, value);
    } else if (which == CURLOPT_POSTFIELDS || which == CURLOPT_COPYPOSTFIELDS) {
        option->fields = value != NULL; /* NULL is a POST too, with a body from the read function */
        post_record(option);
    } else if (which == CURLOPT_MIMEPOST || (int)which == CURLOPTTYPE_OBJECTPOINT + 24) { /* and HTTPPOST, deprecated */
        method_record(option, "POST", BODY_FORM);
    }
    return true;
}

typedef void any_function(void);

static void function_record(struct handle_options *option, CURLoption which, any_function *value)
{
    if (which == CURLOPT_WRITEFUNCTION) {
        option->write = (curl_write_callback)value;
        option->recorded |= RECORDED_WRITE;
    } else if (which == CURLOPT_HEADERFUNCTION) {
        option->header = (curl_write_callback)value;
        option->recorded |= RECORDED_HEADER;
    } else if (which == CURLOPT_READFUNCTION) {
        option->read = (curl_read_callback)value;
        option->recorded |= RECORDED_READ;
    } else if (which == CURLOPT_SEEKFUNCTION) {
        option->seek = (curl_seek_callback)value;
        option->recorded |= RECORDED_SEEK;
    } else if (which == CURLOPT_XFERINFOFUNCTION) {
        option->progress = (curl_xferinfo_callback)value;
        option->recorded |= RECORDED_PROGRESS;
    }
}

bool handle_record(struct handle *handle, CURLoption which, const void *value)
{
    handle->recorded = true;
    handle->route.target = NULL; /* a header may lead elsewhere */
    if ((int)which >= CURLOPTTYPE_OFF_T) {
        return true; /* sizes and blobs say nothing that is needed here */
    }
    if ((int)which >= CURLOPTTYPE_FUNCTIONPOINT) {
        function_record(&handle->option, which, *(any_function *const *)value);
        return true;
    }
    if ((int)which >= CURLOPTTYPE_OBJECTPOINT) {
        return pointer_record(&handle->option, which, *(void *const *)value);
    }
    number_record(&handle->option, which, *(const long *)value);
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
