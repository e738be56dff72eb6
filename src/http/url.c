/* SPDX-License-Identifier: MIT */
#include "http/url.h"

#include "http/text_internal.h"

/* "https://" at the front; libcurl takes a text without it as http. Returns how long it is. */
static size_t scheme_length(struct becalm_text text, struct becalm_text *scheme)
{
    for (size_t i = 0; i + 2 < text.length && text.at[i] != '/' && text.at[i] != '?' && text.at[i] != '#'; i++) {
        if (text.at[i] == ':' && text.at[i + 1] == '/' && text.at[i + 2] == '/') {
            *scheme = (struct becalm_text){text.at, i};
            return i + 3;
        }
    }
    *scheme = (struct becalm_text){"http", 4};
    return 0;
}

struct becalm__url becalm__url_split(struct becalm_text text)
{
    struct becalm__url url = {.path = {"/", 1}};
    struct becalm_text scheme;
    text_skip(&text, scheme_length(text, &scheme));
    url.https = text_is_word(scheme, "https");
    url.http = url.https || text_is_word(scheme, "http");
    size_t end = 0;
    size_t user = 0;
    for (; end < text.length && text.at[end] != '/' && text.at[end] != '?' && text.at[end] != '#'; end++) {
        if (text.at[end] == '@') {
            user = end + 1;
        }
    }
    url.host = (struct becalm_text){text.at + user, end - user};
    text_skip(&text, end);
    size_t length = 0;
    while (length < text.length && text.at[length] != '#') {
        length++;
    }
    if (length > 0 && text.at[0] == '/') {
        url.path = (struct becalm_text){text.at, length};
    }
    return url;
}
