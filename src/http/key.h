/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_KEY_H
#define BECALM_HTTP_KEY_H

#include <becalm/http.h>

#define BECALM__KEY_RANDOM 16u /* bytes that a key is made of */
#define BECALM__KEY_TEXT   37u /* of its text, the zero included */

/* A fresh idempotency key: a UUID of version 4, which any service takes as one. */
void becalm__key_write(const unsigned char random[BECALM__KEY_RANDOM], char text[BECALM__KEY_TEXT]);

#endif
