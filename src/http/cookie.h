/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_COOKIE_H
#define BECALM_HTTP_COOKIE_H

/* The Cookie field of a request, as RFC 6265, 4.2.1 has it: name=value pairs with semicolons between them. Servers
 * read malformed cookies in different ways: a server that sees a cookie where another sees none confuses users. So
 * every line outside of that grammar is malformed here; only the blank behind a semicolon may be missing or longer. */

#include <becalm/http.h>

enum becalm__cookie { BECALM__COOKIE_PAIR, BECALM__COOKIE_END, BECALM__COOKIE_BAD };

/* Takes the next pair from the front of one line. The value keeps its quotation marks. After BAD no more pairs
 * may be taken, and the pairs before it must not be trusted either. */
enum becalm__cookie becalm__cookie_take(struct becalm_text *line, struct becalm_text *name, struct becalm_text *value);

#endif
