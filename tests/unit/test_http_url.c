/* SPDX-License-Identifier: MIT */
#include "http/url.h"

#include "unit/http_lab.h"

static void check_url(const char *url, const char *host, const char *path, const char *protocol)
{
    struct becalm__url parts = becalm__url_split(text(url));
    char said[200];
    char expected[200];
    (void)snprintf(said, sizeof said, "%.*s %.*s %s", (int)parts.host.length, parts.host.at, (int)parts.path.length,
                   parts.path.at,
                   parts.https  ? "https"
                   : parts.http ? "http"
                                : "other");
    (void)snprintf(expected, sizeof expected, "%s %s %s", host, path, protocol);
    check_eq_str(said, expected);
}

static void test_url__nothing_is_no_host_and_the_root(void **state)
{
    (void)state;
    check_url("", "", "/", "http");
    check_url("http://", "", "/", "http");
    check_url("://", "", "/", "other");
}

static void test_url__host_and_path_are_told_apart(void **state)
{
    (void)state;
    check_url("http://pay.local/pay/42", "pay.local", "/pay/42", "http");
    check_url("HTTPS://Pay.Local:8443/pay?a=/b", "Pay.Local:8443", "/pay?a=/b", "https");
    check_url("http://[::1]:80/x", "[::1]:80", "/x", "http");
    check_url("pay.local/x", "pay.local", "/x", "http"); /* as libcurl takes it */
    check_url("pay.local:8080", "pay.local:8080", "/", "http");
}

static void test_url__what_is_not_sent_is_left_out(void **state)
{
    (void)state;
    check_url("http://user:secret@pay.local/x#there", "pay.local", "/x", "http");
    check_url("http://a@b@pay.local", "pay.local", "/", "http");
    check_url("http://pay.local#a/b", "pay.local", "/", "http");
    check_url("http://pay.local/?q#f", "pay.local", "/?q", "http");
}

static void test_url__a_query_without_a_path_is_at_the_root(void **state)
{
    (void)state;
    check_url("http://pay.local?x=//y", "pay.local", "/", "http");
    check_url("pay.local?to=http://x", "pay.local", "/", "http");
}

static void test_url__other_protocols_are_seen(void **state)
{
    (void)state;
    check_url("ftp://files/x", "files", "/x", "other");
    check_url("file:///etc/hosts", "", "/etc/hosts", "other");
    check_url("httpx://h/", "h", "/", "other");
}

BECALM_TESTS(cmocka_unit_test(test_url__nothing_is_no_host_and_the_root),
             cmocka_unit_test(test_url__host_and_path_are_told_apart),
             cmocka_unit_test(test_url__what_is_not_sent_is_left_out),
             cmocka_unit_test(test_url__a_query_without_a_path_is_at_the_root),
             cmocka_unit_test(test_url__other_protocols_are_seen))
