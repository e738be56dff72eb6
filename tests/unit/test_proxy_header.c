/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "origin/proxy_header.h"

#include <string.h>

static union address_socket nobody;

/* Every part of it is not enough, and nothing behind it is read. */
static void check_header(const char *bytes, size_t count, const char *peer)
{
    char text[ADDRESS_TEXT_MAX];
    char more[PROXY_HEADER_MAX + 8];
    size_t length = 0;
    union address_socket found = nobody;
    for (size_t i = 0; i < count; i++) {
        char *part = malloc(i + 1); /* without a spare byte: a sanitizer sees a read beyond the end */
        assert_non_null(part);
        memcpy(part + 1, bytes, i);
        check_eq_u64(proxy_header_read(part + 1, i, &length, &found), PROXY_HEADER_MORE);
        free(part);
    }
    memcpy(more, bytes, count);
    memcpy(more + count, "GET /", 5);
    check_eq_u64(proxy_header_read(more, count + 5, &length, &found), PROXY_HEADER_DONE);
    check_eq_u64(length, count);
    address_write(&found, text, sizeof text);
    check_eq_str(text, peer);
}

static void check_bad(const char *bytes, size_t count)
{
    size_t length = 0;
    union address_socket found = nobody;
    check_eq_u64(proxy_header_read(bytes, count, &length, &found), PROXY_HEADER_BAD);
    assert_memory_equal(&found, &nobody, sizeof found);
}

#define GOOD(text, peer) check_header(text, sizeof(text) - 1, peer)
#define BAD(text)        check_bad(text, sizeof(text) - 1)
#define V2               "\r\n\r\n\0\r\nQUIT\n"

static void test_proxy_header__version_1(void **state)
{
    (void)state;
    struct address before;
    assert_true(address_parse("10.0.0.9:1", &before));
    nobody = before.socket;
    GOOD("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", "192.0.2.1:56324");
    GOOD("PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n", "[2001:db8::1]:56324");
    GOOD("PROXY UNKNOWN\r\n", "10.0.0.9:1");
    GOOD("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "10.0.0.9:1");
    BAD("GET / HTTP/1.1\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 56324\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 x\r\n");
    BAD("PROXY TCP4 192.0.2.256 192.0.2.2 56324 443\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\n");
    BAD("PROXY TCP6 192.0.2.1 192.0.2.2 56324 443\r\n");
    BAD("PROXY UDP4 192.0.2.1 192.0.2.2 56324 443\r\n");
    BAD("PROXY \r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 000443 443\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 443x 443\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 443 x\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.2 443 65536\r\n");
    BAD("PROXY TCP4 192.0.2.1 192.0.2.x 443 443\r\n");
    BAD("PROXY TCP4 192.0.2.1  443 443\r\n");
    BAD("PROXY TCP6 00000000000000000000000000000000000000000000000000000000000000 ::1 1 1\r\n");
    char endless[200];
    memset(endless, 'x', sizeof endless);
    memcpy(endless, "PROXY ", 6);
    check_bad(endless, sizeof endless);
    check_bad(endless, 107); /* the length of the longest line, with its end */
    memcpy(endless, "PROXY UNKNOWN ", 14);
    memcpy(endless + 105, "\r\n", 2);
    check_header(endless, 107, "10.0.0.9:1");
    memcpy(endless + 105, "xx\n", 3);
    endless[106] = '\r';
    check_bad(endless, 108);
}

static void test_proxy_header__version_2(void **state)
{
    (void)state;
    GOOD(V2 "\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb", "192.0.2.1:56324");
    GOOD(V2 "\x21\x11\0\x10\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb\4\0\1x", "192.0.2.1:56324"); /* an extension behind it */
    GOOD(V2 "\x21\x21\0\x24\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
            "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2\xdc\4\1\xbb",
         "[2001:db8::1]:56324");
    GOOD(V2 "\x20\0\0\0", "10.0.0.9:1");    /* LOCAL: the balancer's own */
    GOOD(V2 "\x21\0\0\3abc", "10.0.0.9:1"); /* of a family that is not told */
    BAD("\r\n\r\n\0\r\nQUIX\n\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb");
    BAD(V2 "\x31\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb"); /* version 3 */
    BAD(V2 "\x22\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb"); /* neither LOCAL nor PROXY */
    BAD(V2 "\x21\x11\0\4\xc0\0\2\1");                         /* a cut address */
    BAD(V2 "\x21\x21\0\x0c\x20\1\x0d\xb8\0\0\0\0\0\0\0\0");
    GOOD(V2 "\x20\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb", "10.0.0.9:1"); /* LOCAL: addresses don't count, */
    GOOD(V2 "\x20\x11\0\4\xc0\0\2\1", "10.0.0.9:1");                         /* nor cut ones */
    BAD(V2 "\x21\x11\3\xf1");                                                /* one byte more than there is room for */
    char longest[PROXY_HEADER_MAX] = V2 "\x21\x11\3\xf0\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb";
    check_header(longest, sizeof longest, "192.0.2.1:56324");
    BAD(V2 "\x21\x11\xff\xff"); /* longer than the gateway waits for */
}

static void check_written(uint32_t version, const char *from, const char *to, const char *bytes, size_t count)
{
    char header[PROXY_HEADER_WRITTEN];
    struct address one;
    struct address other;
    assert_true(address_parse(from, &one) && address_parse(to, &other));
    check_eq_u64(proxy_header_write(version, &one.socket, &other.socket, header), count);
    assert_memory_equal(header, bytes, count);
}

#define WRITES(version, from, to, text) check_written(version, from, to, text, sizeof(text) - 1)
#define MAPPED                          "\0\0\0\0\0\0\0\0\0\0\xff\xff"

/* As in the specification; a written header is read again as the same address. */
static void test_proxy_header__is_written_as_it_is_read(void **state)
{
    (void)state;
    WRITES(1, "192.0.2.1:56324", "192.0.2.2:443", "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n");
    WRITES(1, "[2001:db8::1]:1", "[2001:db8::2]:65535", "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n");
    WRITES(1, "unix:/a", "unix:/b", "PROXY UNKNOWN\r\n");
    WRITES(2, "192.0.2.1:56324", "192.0.2.2:443", V2 "\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\xdc\4\1\xbb");
    WRITES(2, "unix:/a", "127.0.0.1:1", V2 "\x21\0\0\0");
    WRITES(2, "[2001:db8::1]:56324", "[2001:db8::2]:443",
           V2 "\x21\x21\0\x24\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
              "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2\xdc\4\1\xbb");
    /* One family for both. */
    WRITES(1, "[::ffff:192.0.2.1]:5", "192.0.2.2:6", "PROXY TCP4 192.0.2.1 192.0.2.2 5 6\r\n");
    WRITES(1, "192.0.2.1:5", "[2001:db8::2]:6", "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 5 6\r\n");
    WRITES(1, "[2001:db8::1]:5", "192.0.2.2:6", "PROXY TCP6 2001:db8::1 ::ffff:192.0.2.2 5 6\r\n");
    WRITES(2, "192.0.2.1:5", "[::1]:6",
           V2 "\x21\x21\0\x24" MAPPED "\xc0\0\2\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\5\0\6");
    /* Where ours is not known. */
    WRITES(1, "192.0.2.1:5", "unix:/b", "PROXY TCP4 192.0.2.1 0.0.0.0 5 0\r\n");
    WRITES(1, "[2001:db8::1]:5", "unix:/b", "PROXY TCP6 2001:db8::1 :: 5 0\r\n");
    /* The longest line. */
    WRITES(
        1, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
        "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n");
}

static void test_proxy_header__of_our_own_names_nobody(void **state)
{
    (void)state;
    char header[PROXY_HEADER_WRITTEN];
    check_eq_u64(proxy_header_write_local(1, header), 15);
    assert_memory_equal(header, "PROXY UNKNOWN\r\n", 15);
    check_eq_u64(proxy_header_write_local(2, header), 16);
    assert_memory_equal(header, V2 "\x20\0\0\0", 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_header__version_1),
        cmocka_unit_test(test_proxy_header__version_2),
        cmocka_unit_test(test_proxy_header__is_written_as_it_is_read),
        cmocka_unit_test(test_proxy_header__of_our_own_names_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
