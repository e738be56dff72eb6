/* SPDX-License-Identifier: MIT */
/* Comparisons of matches must agree with the router: tested with all requests of a small world. */
#include "policy/routing/match.h"

#include "policy/routing/route.h"
#include "unit/http_lab.h"

#define MATCHES 512

/* Every match of a small world; the strings are constants. */
static size_t world_make(struct becalm_match world[MATCHES])
{
    static const char *const hosts[] = {NULL, "a.x", "*.x", "*.b.x", "a.x:81"};
    static const char *const paths[] = {NULL, "/", "/p", "/p/", "/pq", "/p/q"};
    static const char *const methods[] = {NULL, "GET"};
    size_t count = 0;
    for (size_t h = 0; h < COUNT(hosts); h++) {
        for (size_t p = 0; p < COUNT(paths); p++) {
            for (size_t m = 0; m < COUNT(methods); m++) {
                for (unsigned kind = 0; kind < 3; kind++) {
                    struct becalm_match match = {.host = hosts[h], .method = methods[m]};
                    *(kind == 0 ? &match.prefix : kind == 1 ? &match.start : &match.path) = paths[p];
                    if (!match_is_empty(&match)) {
                        world[count++] = match;
                    }
                }
            }
        }
    }
    return count;
}

static bool request_fits(const struct becalm_match *match, unsigned number)
{
    static const char *const hosts[] = {"a.x", "b.x", "c.b.x", "other", "a.x:81", "d.x:81"};
    static const char *const paths[] = {"/", "/p", "/p/", "/p/q", "/p/q/r", "/pq", "/pqr", "/z"};
    const char *host = hosts[number % COUNT(hosts)];
    const char *path = paths[number / COUNT(hosts) % COUNT(paths)];
    const char *method = number / COUNT(hosts) / COUNT(paths) == 0 ? "GET" : "PUT";
    const struct becalm_match request = {.host = host, .path = path, .method = method};
    return match_covers(match, &request);
}

#define REQUESTS (6 * 8 * 2)

static void test_match__covers_and_meets_are_what_single_requests_say(void **state)
{
    (void)state;
    static struct becalm_match world[MATCHES];
    size_t count = world_make(world);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            bool all = true;
            bool some = false;
            struct becalm_match common;
            bool said = match_common(&world[i], &world[k], &common);
            for (unsigned r = 0; r < REQUESTS; r++) {
                bool one = request_fits(&world[i], r);
                bool other = request_fits(&world[k], r);
                all = all && (one || !other);
                some = some || (one && other);
                check_true(!said || request_fits(&common, r) == (one && other));
            }
            check_true(!match_covers(&world[i], &world[k]) || all);
            check_true(match_meets(&world[i], &world[k]) || !some);
        }
    }
}

/* The router and match_compare() choose the same one of two. */
static void test_match__the_more_specific_is_the_one_that_the_router_takes(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"host: a.x", "host: '*.x'"},    {"host: '*.b.x'", "host: '*.x'"}, {"host: '*.x'", "path: /p/q"},
        {"host: 'a.x:80'", "host: a.x"}, {"path: /p/q", "prefix: /p/q"},   {"prefix: /p/q", "start: /p/q"},
        {"start: /p/q", "prefix: /p"},   {"prefix: /p", "method: GET"},    {"prefix: /p, method: GET", "prefix: /p"},
        {"start: /p", "prefix: /"},
    };
    static struct becalm_diags diags;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        char text[256];
        struct becalm_config *config = NULL;
        (void)snprintf(text, sizeof text, "services: {less: {match: {%s}}, more: {match: {%s}}}\n", pairs[i][1],
                       pairs[i][0]);
        assert_int_equal(becalm_config_parse(&config, "test", text, strlen(text), NULL, &diags), 0);
        const struct becalm_match *less = &becalm_config_service(config, 0)->match;
        const struct becalm_match *more = &becalm_config_service(config, 1)->match;
        struct route_table *table = route_table_make(config);
        const char *host = strstr(text, "*.b.x") != NULL ? "a.b.x" : "a.x";
        struct route_request request = {.host = {host, strlen(host)}, .path = {"/p/q", 4}, .method = {"GET", 3}};
        check_eq_u64(route_find(table, &request).service, 1);
        check_true(route_find(table, &request).match == more);
        check_true(match_compare(more, less) < 0 && match_compare(less, more) > 0);
        route_table_free(table);
        becalm_config_free(config);
    }
}

static void test_match__two_headers_meet_and_no_match_says_both(void **state)
{
    (void)state;
    const struct becalm_match a = {.header_name = "a", .header_value = "1"};
    const struct becalm_match b = {.header_name = "B", .header_value = "1"};
    const struct becalm_match same = {.header_name = "A", .header_value = "1", .prefix = "/x"};
    struct becalm_match common;
    check_true(match_meets(&a, &b) && !match_common(&a, &b, &common));
    check_true(match_covers(&a, &same) && !match_covers(&same, &a));
    check_true(match_common(&a, &same, &common));
    check_eq_str(common.prefix, "/x");
}

static void test_match__is_told_in_one_line(void **state)
{
    (void)state;
    char text[128];
    match_write(&(struct becalm_match){.host = "a.x", .prefix = "/p", .method = "GET"}, text, sizeof text);
    check_eq_str(text, "GET a.x/p/...");
    match_write(&(struct becalm_match){.start = "/p", .header_name = "n", .header_value = "v"}, text, sizeof text);
    check_eq_str(text, "/p* with n: v");
    match_write(&(struct becalm_match){.prefix = "/"}, text, sizeof text);
    check_eq_str(text, "every path");
}

BECALM_TESTS(cmocka_unit_test(test_match__covers_and_meets_are_what_single_requests_say),
             cmocka_unit_test(test_match__the_more_specific_is_the_one_that_the_router_takes),
             cmocka_unit_test(test_match__two_headers_meet_and_no_match_says_both),
             cmocka_unit_test(test_match__is_told_in_one_line))
