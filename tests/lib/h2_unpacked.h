/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_H2_UNPACKED_H
#define BECALM_TESTS_H2_UNPACKED_H

/* Compares fields with a head that our encoder packed: nghttp2 unpacks the head. */

#include "h2/h2_packer.h"

#include <nghttp2/nghttp2.h>

#include <string.h>

static inline bool h2_unpacked_same(const nghttp2_nv *field, const struct h2_field *packed)
{
    bool secret = (field->flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0;
    return field->namelen == packed->name.length && memcmp(field->name, packed->name.at, field->namelen) == 0 &&
           field->valuelen == packed->value.length && memcmp(field->value, packed->value.at, field->valuelen) == 0 &&
           secret == (packed->remembering == H2_SECRET);
}

/* NULL: the fields are equal. Else the difference. */
static inline const char *h2_unpacked(nghttp2_hd_inflater *peer, const char *bytes, size_t length,
                                      const struct h2_field *packed, size_t count)
{
    size_t seen = 0;
    int flags = 0;
    while ((flags & NGHTTP2_HD_INFLATE_FINAL) == 0) {
        nghttp2_nv field;
        flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(peer, &field, &flags, (const uint8_t *)bytes, length, 1);
        if (used < 0) {
            return nghttp2_strerror((int)used);
        }
        bytes += used;
        length -= (size_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
            if (seen == count || !h2_unpacked_same(&field, &packed[seen])) {
                return "another field";
            }
            seen++;
        }
    }
    nghttp2_hd_inflate_end_headers(peer);
    return seen == count ? NULL : "fields are missing";
}

#endif
