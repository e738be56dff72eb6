/* SPDX-License-Identifier: MIT */
/* Any bytes as a URL: the parts lie inside of the URL, in its order, and the path begins with a slash. */
#include "http/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm_text text = {(const char *)data, size};
    struct becalm__url url = becalm__url_split(text);
    BECALM_ASSERT(url.http || !url.https);
    BECALM_ASSERT(url.path.length > 0 && url.path.at[0] == '/');
    BECALM_ASSERT(url.host.length <= size);
    for (size_t i = 0; i < url.host.length; i++) {
        char c = url.host.at[i];
        BECALM_ASSERT(c != '/' && c != '?' && c != '#' && c != '@');
    }
    for (size_t i = 0; i < url.path.length; i++) {
        BECALM_ASSERT(url.path.at[i] != '#');
    }
    bool constant = url.path.length == 1 && (size == 0 || url.path.at < text.at || url.path.at >= text.at + size);
    BECALM_ASSERT(constant || url.path.at + url.path.length <= text.at + size);
    return 0;
}
