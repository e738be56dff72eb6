/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"

#include "embedded.h"
#include "http/text_internal.h"

#include <stdio.h>

/* The dashboard's files, which are built into the program. The files contain no secrets: if the admin address needs a
 * token, the page loads without it and asks the user for it. */

extern const struct embedded embedded_dashboard[];

bool admin_wants_html(const struct admin_request *request)
{
    struct becalm_text accept = head_find(request->head, FIELD_ACCEPT);
    struct becalm_text html = text_of("text/html");
    for (size_t i = 0; accept.at != NULL && i + html.length <= accept.length; i++) {
        if (memcmp(accept.at + i, html.at, html.length) == 0) {
            return true;
        }
    }
    return false;
}

static const char *type_of(const char *name)
{
    static const struct {
        const char *end;
        const char *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t end = strlen(types[i].end);
        if (length > end && strcmp(name + length - end, types[i].end) == 0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

static void answer_with(const struct embedded *file, const struct admin_request *request, struct admin_answer *answer)
{
    struct becalm_text known = head_find_other(request->head, text_of("if-none-match"));
    answer->runs = true;
    answer->type = type_of(file->name);
    snprintf(answer->etag, sizeof answer->etag, "\"%s\"", file->hash);
    if (known.at != NULL && text_is(known, answer->etag)) {
        answer->status = 304;
    } else {
        buffer_bytes(&answer->page, file->text, file->length);
    }
}

void admin_file(struct becalm_text name, const struct admin_request *request, struct admin_answer *answer)
{
    for (const struct embedded *file = embedded_dashboard; file->name != NULL; file++) {
        if (text_is(name, file->name)) {
            answer_with(file, request, answer);
            return;
        }
    }
    admin_problem(answer, 404, "The dashboard has no such file.");
}

void admin_dashboard(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)admin;
    admin_file(text_of("index.html"), request, answer);
}

void admin_asset(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct becalm_text name = request->path;
    (void)admin;
    text_skip(&name, sizeof "/assets/" - 1);
    admin_file(name, request, answer);
}
