/* SPDX-License-Identifier: MIT */
#include "h2_static.h"

#include <string.h>

/* clang-format off */
#define T(text) {text, sizeof(text) - 1}
struct entry {
    struct becalm_text name;
    struct becalm_text value;
};
static const struct entry entries[1 + H2_STATIC_COUNT] = {
    {T(""), T("")}, /* there is no number 0 */
    {T(":authority"), T("")},
    {T(":method"), T("GET")},
    {T(":method"), T("POST")},
    {T(":path"), T("/")},
    {T(":path"), T("/index.html")},
    {T(":scheme"), T("http")},
    {T(":scheme"), T("https")},
    {T(":status"), T("200")},
    {T(":status"), T("204")},
    {T(":status"), T("206")},
    {T(":status"), T("304")},
    {T(":status"), T("400")},
    {T(":status"), T("404")},
    {T(":status"), T("500")},
    {T("accept-charset"), T("")},
    {T("accept-encoding"), T("gzip, deflate")},
    {T("accept-language"), T("")},
    {T("accept-ranges"), T("")},
    {T("accept"), T("")},
    {T("access-control-allow-origin"), T("")},
    {T("age"), T("")},
    {T("allow"), T("")},
    {T("authorization"), T("")},
    {T("cache-control"), T("")},
    {T("content-disposition"), T("")},
    {T("content-encoding"), T("")},
    {T("content-language"), T("")},
    {T("content-length"), T("")},
    {T("content-location"), T("")},
    {T("content-range"), T("")},
    {T("content-type"), T("")},
    {T("cookie"), T("")},
    {T("date"), T("")},
    {T("etag"), T("")},
    {T("expect"), T("")},
    {T("expires"), T("")},
    {T("from"), T("")},
    {T("host"), T("")},
    {T("if-match"), T("")},
    {T("if-modified-since"), T("")},
    {T("if-none-match"), T("")},
    {T("if-range"), T("")},
    {T("if-unmodified-since"), T("")},
    {T("last-modified"), T("")},
    {T("link"), T("")},
    {T("location"), T("")},
    {T("max-forwards"), T("")},
    {T("proxy-authenticate"), T("")},
    {T("proxy-authorization"), T("")},
    {T("range"), T("")},
    {T("referer"), T("")},
    {T("refresh"), T("")},
    {T("retry-after"), T("")},
    {T("server"), T("")},
    {T("set-cookie"), T("")},
    {T("strict-transport-security"), T("")},
    {T("transfer-encoding"), T("")},
    {T("user-agent"), T("")},
    {T("vary"), T("")},
    {T("via"), T("")},
    {T("www-authenticate"), T("")},
};
#undef T

/* The first of each name, by the length of the name; 0 ends them. */
static const uint8_t of_length[][7] = {
    [3] = {21, 60}, [4] = {33, 34, 37, 38, 45, 59}, [5] = {4, 22, 50}, [6] = {19, 32, 35, 54},
    [7] = {2, 6, 8, 36, 51, 52}, [8] = {39, 42, 46}, [10] = {1, 55, 58}, [11] = {53}, [12] = {31, 47},
    [13] = {18, 23, 24, 30, 41, 44}, [14] = {15, 28}, [15] = {16, 17}, [16] = {26, 27, 29, 61}, [17] = {40, 57},
    [18] = {48}, [19] = {25, 43, 49}, [25] = {56}, [27] = {20},
};
/* clang-format on */

/* Of equal length, which is not 0: names of one length mostly differ in their ends. */
static bool same_name(const char *a, const char *b, size_t length)
{
    return a[0] == b[0] && a[length - 1] == b[length - 1] && memcmp(a, b, length) == 0;
}

uint32_t h2_static_name(struct becalm_text name)
{
    if (name.length >= sizeof of_length / sizeof *of_length) {
        return 0;
    }
    const uint8_t *number = of_length[name.length];
    while (*number != 0 && !same_name(entries[*number].name.at, name.at, name.length)) {
        number++;
    }
    return *number;
}

/* How many have the name of the first. */
static uint32_t run_of(uint32_t first)
{
    switch (first) {
    case 2: /* :method */
    case 4: /* :path */
    case 6: /* :scheme */
        return 2;
    case 8: /* :status */
        return 7;
    default:
        return 1;
    }
}

uint32_t h2_static_field(uint32_t first, struct becalm_text value)
{
    for (uint32_t i = first; i < first + run_of(first); i++) {
        const struct becalm_text *known = &entries[i].value;
        if (known->length == value.length && memcmp(known->at, value.at, value.length) == 0) {
            return i;
        }
    }
    return 0;
}
