/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_URL_H
#define BECALM_HTTP_URL_H

/* The parts of a URL that decide which target a request belongs to: its host and its path, as libcurl reads them. */

#include <becalm/http.h>

struct becalm__url {
    struct becalm_text host; /* with its port, if that is written; without user and password */
    struct becalm_text path; /* with its query; "/" if it has none */
    bool https;              /* without a port it means 443 */
    bool http;               /* or https: other protocols belong to no service */
};

/* Accepts any bytes, and changes nothing: the results point into `text`, or are constants. */
struct becalm__url becalm__url_split(struct becalm_text text);

#endif
