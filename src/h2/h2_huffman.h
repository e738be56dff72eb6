/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_HUFFMAN_H
#define BECALM_H2_H2_HUFFMAN_H

/* The Huffman code of HPACK (RFC 7541, appendix B), as far as it is written. */

#include <becalm/http.h>

/* How many bytes a text takes. */
size_t h2_huffman_size(struct becalm_text);
/* Writes the text in Huffman code, if that is shorter: at least one byte less than the text. Returns the end; NULL: it
 * would not be shorter, and the bytes at `to` are undefined. */
char *h2_huffman_put(char *to, struct becalm_text);

#endif
