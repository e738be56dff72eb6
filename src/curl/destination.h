/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_DESTINATION_H
#define BECALM_CURL_DESTINATION_H

/* The destination to which libcurl sends a URL. It may differ from the text: libcurl resolves dots in the path, and
 * follows redirections. */

#include "handle.h"

/* The URL as libcurl makes it, to be freed with curl_free(); NULL: it stays as it is. `url` is zero-terminated. */
char *destination_written(struct becalm_text url, bool path_as_is);

/* Was the handle's latest request led from this route's URL to `url` by redirections? Then that is no URL that it was
 * told, and the next request begins again where this one did. */
bool destination_led(CURL *, const struct handle_route *, struct becalm_text url);

/* Did redirections lead the handle's latest request to another scheme, host or port than it was made for? Also true if
 * the original is unknown. */
bool destination_is_strange(CURL *, const struct handle *);

#endif
