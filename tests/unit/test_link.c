/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "top/link.h"

static void test_link__knows_an_admin_address(void **state)
{
    struct link_place place;
    char why[LINK_WHY_MAX];
    (void)state;
    check_true(link_place_parse(LINK_DEFAULT, &place, why));
    check_eq_str(place.url, "http://127.0.0.1:9900");
    check_eq_str(place.name, "127.0.0.1:9900");
    check_true(link_place_parse("[::1]:9900", &place, why));
    check_eq_str(place.url, "http://[::1]:9900");
    check_true(link_place_parse("https://gate:9900/", &place, why));
    check_eq_str(place.url, "https://gate:9900");
    check_eq_str(place.name, "gate:9900");
    check_true(link_place_parse("http://proxy:80/gate/", &place, why));
    check_eq_str(place.url, "http://proxy:80/gate");
    check_true(link_place_parse("unix:/run/a.sock", &place, why));
    check_eq_str(place.socket, "/run/a.sock");
    check_eq_str(place.name, "unix:/run/a.sock");
}

static void test_link__refuses_what_is_none(void **state)
{
    static const char *const none[] = {
        "", "9900", "gate", "ftp://gate:1", "http://", "https:///x", "me:secret@gate:9900", "a b:1", "unix:"};
    struct link_place place;
    char why[LINK_WHY_MAX];
    char path[200] = "unix:/";
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        check_true_at(!link_place_parse(none[i], &place, why), none[i], __FILE__, __LINE__);
    }
    memset(path + 6, 'x', 120);
    check_true(!link_place_parse(path, &place, why));
    check_eq_str(why, "the path of a Unix socket has 1 to 107 bytes");
}

BECALM_TESTS(cmocka_unit_test(test_link__knows_an_admin_address), cmocka_unit_test(test_link__refuses_what_is_none))
