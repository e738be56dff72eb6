/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_HUFFMAN_H
#define BECALM_H2_H2_HUFFMAN_H

/* The Huffman code of HPACK (RFC 7541, appendix B), as far as it is written. */

#include <becalm/http.h>

/* How many bytes a text takes. */
size_t h2_huffman_size(struct becalm_text);
/* Writes it, if that makes it shorter: at most one byte less than the text has. Returns where it ends; NULL: it would
 * not be shorter, and what stands there now means nothing. */
char *h2_huffman_put(char *to, struct becalm_text);

#endif
