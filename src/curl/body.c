/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* fseeko */
#include "body.h"

#include <stdio.h>

bool body_is_read(const struct handle_options *option)
{
    return option->body == BODY_CALLBACK || option->body == BODY_FORM;
}

static FILE *file_of(const struct handle_options *option)
{
    return option->read_data == NULL ? stdin : option->read_data;
}

bool body_begin(struct body *body, const struct handle_options *option)
{
    *body = (struct body){.from = -1};
    switch (option->body) {
    case BODY_NONE:
    case BODY_MEMORY:
    case BODY_FORM: /* libcurl goes back itself; if a part can't, it sends nothing, and says so */
        return true;
    case BODY_CALLBACK:
        break;
    }
    if (option->seek != NULL) {
        return handle_recorded(option, RECORDED_ALL_SEEK);
    }
    if (option->read == NULL && handle_recorded(option, RECORDED_ALL_READ)) {
        body->from = ftello(file_of(option));
    }
    return body->from >= 0;
}

bool body_rewind(const struct body *body, const struct handle_options *option)
{
    if (option->body == BODY_FORM) {
        return true;
    }
    if (option->seek != NULL) {
        return option->seek(option->seek_data, 0, SEEK_SET) == CURL_SEEKFUNC_OK;
    }
    return body->from >= 0 && fseeko(file_of(option), body->from, SEEK_SET) == 0;
}
