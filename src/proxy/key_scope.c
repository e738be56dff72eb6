/* SPDX-License-Identifier: MIT */
#include "key_scope.h"

#include "http/cookie.h"
#include "http/text_internal.h"

static void add(struct key_scope *scope, struct becalm_text text)
{
    BECALM_ASSERT(scope->count < KEY_SCOPE_MAX);
    scope->text[scope->count++] = text;
}

static struct becalm_text chars(const char *text)
{
    return (struct becalm_text){text, strlen(text)};
}

/* Without its port, if that is the one that is meant without one. */
static struct becalm_text port_cut(struct becalm_text host)
{
    struct becalm_text port = host;
    uint64_t number = 0;
    size_t at = host.length;
    while (at > 0 && host.at[at - 1] != ':' && host.at[at - 1] != ']') {
        at--;
    }
    if (at == 0 || host.at[at - 1] != ':') {
        return host;
    }
    text_skip(&port, at);
    bool none = text_ended(port);
    text_take_number(&port, &number);
    host.length = text_ended(port) && (none || number == 80) ? at - 1 : host.length;
    return host;
}

/* "A.Test.:80" is a.test. */
static struct becalm_text host_normal(struct becalm_text host, char room[KEY_SCOPE_HOST])
{
    if (host.at == NULL || host.length > KEY_SCOPE_HOST) {
        return host;
    }
    host = port_cut(host);
    if (host.length > 1 && host.at[host.length - 1] == '.') {
        host.length--;
    }
    for (size_t i = 0; i < host.length; i++) {
        room[i] = to_lower(host.at[i]);
    }
    return (struct becalm_text){room, host.length};
}

static bool same_name(struct becalm_text name, const char *wanted)
{
    if (name.length != strlen(wanted)) {
        return false;
    }
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i] == '_' ? '-' : to_lower(name.at[i]);
        if (c != (wanted[i] == '_' ? '-' : to_lower(wanted[i]))) {
            return false;
        }
    }
    return true;
}

static bool counts(const struct head *head, const struct field *field, const char *name)
{
    return !field->hop && same_name(field_name(head, field), name);
}

static void add_lines(struct key_scope *scope, const char *name, const struct head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (counts(head, &head->field[i], name)) {
            add(scope, chars(name));
            add(scope, field_value(head, &head->field[i]));
        }
    }
}

/* The cookies of this name in one line. False: the line is malformed, or has more of them than any client would send.
 */
static bool add_cookies(struct key_scope *scope, const char *wanted, struct becalm_text line)
{
    struct becalm_text name;
    struct becalm_text value;
    for (;;) {
        switch (becalm__cookie_take(&line, &name, &value)) {
        case BECALM__COOKIE_PAIR:
            if (!text_is(name, wanted)) {
                break;
            }
            if (scope->count == KEY_SCOPE_MAX) {
                return false;
            }
            add(scope, value);
            break;
        case BECALM__COOKIE_END:
            return true;
        case BECALM__COOKIE_BAD:
            return false;
        }
    }
}

static void add_cookie(struct key_scope *scope, const char *wanted, const struct head *head)
{
    size_t before = scope->count;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (counts(head, &head->field[i], "cookie") &&
            !add_cookies(scope, wanted, field_value(head, &head->field[i]))) {
            scope->count = before;
            add(scope, (struct becalm_text){0}); /* no value is absent, so that this list is none of values */
            add_lines(scope, "cookie", head);
            return;
        }
    }
}

void key_scope_read(struct key_scope *scope, const char *word, struct becalm_text host, const struct head *head)
{
    struct becalm_text rest = chars(word);
    scope->count = 0;
    add(scope, host_normal(host, scope->host));
    add(scope, rest);
    if (text_take_word(&rest, "header:")) {
        add_lines(scope, rest.at, head);
    } else if (text_take_word(&rest, "cookie:")) {
        add_cookie(scope, rest.at, head);
    } else if (text_is(rest, "authorization")) {
        add_lines(scope, "authorization", head);
    } else if (text_is(rest, "credentials")) {
        add_lines(scope, "authorization", head);
        add_lines(scope, "cookie", head);
        add_lines(scope, "x-api-key", head);
    }
}
