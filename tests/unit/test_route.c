/* SPDX-License-Identifier: MIT */
#include "policy/routing/route.h"

#include "h1/h1.h"
#include "unit/http_lab.h"

/* A table, and the config that it points into. */
struct lab {
    struct becalm_config *config;
    struct route_table *table;
};

static struct lab lab_make(const char *services)
{
    static struct becalm_diags diags;
    struct lab lab = {NULL, NULL};
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    if (becalm_config_parse(&lab.config, "test", services, strlen(services), NULL, &diags) != 0) {
        fail_msg("%u:%u %s", diags.diag[0].line, diags.diag[0].column, diags.diag[0].message);
    }
    lab.table = route_table_make(lab.config);
    assert_non_null(lab.table);
    return lab;
}

static void lab_free(struct lab *lab)
{
    route_table_free(lab->table);
    becalm_config_free(lab->config);
}

static struct becalm_text part(const char *line, unsigned number)
{
    while (number-- > 0) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    return (struct becalm_text){line, strcspn(line, " ")};
}

/* "service", "service/endpoint", "-" for no service, "400". The request is "METHOD host path"; "-" is an absent
 * host. */
static void route_word(const struct lab *lab, const struct route_request *request, char word[160])
{
    struct route route = route_find(lab->table, request);
    if (route.bad_path || route.service == ROUTE_NONE) {
        check_eq_u64(route.service, ROUTE_NONE);
        check_eq_u64(route.endpoint, ROUTE_NONE);
        (void)snprintf(word, 160, "%s", route.bad_path ? "400" : route.ambiguous ? "ambiguous" : "-");
        return;
    }
    if (route.ambiguous) {
        (void)snprintf(word, 160, "ambiguous");
        return;
    }
    const struct becalm_service *service = becalm_config_service(lab->config, route.service);
    bool has_endpoint = route.endpoint != ROUTE_NONE;
    (void)snprintf(word, 160, "%s%s%s", service->name, has_endpoint ? "/" : "",
                   has_endpoint ? service->endpoints[route.endpoint].name : "");
}

struct row {
    const char *request;
    const char *expected;
};

static void check_rows(const char *services, const struct row *rows, size_t count)
{
    struct lab lab = lab_make(services);
    for (size_t i = 0; i < count; i++) {
        char word[160];
        struct route_request request = {
            .method = part(rows[i].request, 0), .host = part(rows[i].request, 1), .path = part(rows[i].request, 2)};
        if (request.host.length == 1 && request.host.at[0] == '-') {
            request.host = (struct becalm_text){NULL, 0};
        }
        route_word(&lab, &request, word);
        if (strcmp(word, rows[i].expected) != 0) {
            fail_msg("%s goes to %s, expected %s", rows[i].request, word, rows[i].expected);
        }
    }
    lab_free(&lab);
}

#define CHECK_ROWS(services, ...)                    \
    do {                                             \
        const struct row rows_[] = {__VA_ARGS__};    \
        check_rows((services), rows_, COUNT(rows_)); \
    } while (0)

static void test_route__nobody_is_found_without_services(void **state)
{
    (void)state;
    CHECK_ROWS("version: 1\n", {"GET a /", "-"}, {"GET - /", "-"}, {"GET a /..", "400"});
}

static void test_route__a_service_without_match_is_found_by_its_name(void **state)
{
    (void)state;
    CHECK_ROWS("services: {payment-service: {}, Ledger: {}}", {"GET payment-service /", "payment-service"},
               {"POST payment-service /any/path?x=1", "payment-service"},
               {"GET PAYMENT-Service:8080 /", "payment-service"}, {"GET payment-service. /", "payment-service"},
               {"GET payment-service.:80 /", "payment-service"}, {"GET payment-service: /", "payment-service"},
               {"GET ledger /", "Ledger"}, {"GET payment /", "-"}, {"GET payment-service.local /", "-"},
               {"GET payment-service:x /", "-"}, {"GET payment-service:99999 /", "-"},
               {"GET payment-service:1:2 /", "-"}, {"GET - /", "-"});
}

static void test_route__hosts_are_compared_without_case_port_and_final_dot(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  four: {match: {host: 10.0.0.1}, hosts: [\"h:1\"]}\n"
               "  six: {match: {host: \"[2001:DB8::1]\"}, hosts: [\"h:1\"]}\n"
               "  bare: {match: {host: \"::1\"}, hosts: [\"h:1\"]}\n"
               "  dot: {match: {host: Dot.Example.}, hosts: [\"h:1\"]}\n",
               {"GET 10.0.0.1:80 /", "four"}, {"GET [2001:db8::1] /", "six"}, {"GET [2001:DB8::1]:8080 /", "six"},
               {"GET [::1]:80 /", "bare"}, {"GET [::1 /", "-"}, {"GET [::1]x /", "-"}, {"GET dot.example /", "dot"},
               {"GET DOT.EXAMPLE.:1 /", "dot"}, {"GET 2001:db8::1 /", "-"});
}

static void test_route__a_port_in_the_match_is_wanted_and_wins(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  any: {match: {host: a}}\n"
               "  high: {match: {host: \"a:8080\"}}\n"
               "  plain: {match: {host: \"b:80\"}}\n",
               {"GET a /", "any"}, {"GET a:8080 /", "high"}, {"GET a:81 /", "any"}, {"GET b /", "plain"},
               {"GET b:80 /", "plain"}, {"GET b:81 /", "-"});
}

static void test_route__a_star_is_every_name_below(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  wide: {match: {host: \"*.example.com\"}}\n"
               "  near: {match: {host: \"*.eu.example.com\"}}\n"
               "  one: {match: {host: a.eu.example.com}}\n"
               "  rest: {match: {host: \"*\"}}\n",
               {"GET x.example.com /", "wide"}, {"GET x.y.EXAMPLE.com:81 /", "wide"}, {"GET example.com /", "rest"},
               {"GET xexample.com /", "rest"}, {"GET b.eu.example.com /", "near"}, {"GET a.eu.example.com /", "one"},
               {"GET .example.com /", "rest"}, {"GET eu.example.com /", "wide"}, {"GET - /", "rest"},
               {"GET bad:port /", "rest"});
}

static void test_route__who_does_not_fit_leaves_it_to_the_wider_host(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  rest: {match: {prefix: /}}\n"
               "  wide: {match: {host: \"*.x\", prefix: /w}}\n"
               "  one: {match: {host: a.x, prefix: /o}}\n",
               {"GET a.x /o/1", "one"}, {"GET a.x /w/1", "wide"}, {"GET a.x /other", "rest"}, {"GET z /", "rest"});
}

static void test_route__the_host_decides_before_the_path(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  rest: {match: {prefix: /a/very/long/prefix}}\n"
               "  named: {}\n",
               {"GET named /a/very/long/prefix", "named"}, {"GET other /a/very/long/prefix", "rest"},
               {"GET other /a", "-"});
}

static void test_route__exact_path_then_longest_prefix_then_the_file(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  root: {match: {prefix: /}}\n"
               "  short: {match: {prefix: /pay}}\n"
               "  long: {match: {prefix: /pay/v2}}\n"
               "  slash: {match: {prefix: /pay/}}\n"
               "  exact: {match: {path: /pay/v2/charge}}\n"
               "  again: {match: {path: /pay/v2/charge}}\n",
               {"GET h /pay", "short"}, {"GET h /pay/", "slash"}, {"GET h /pay/x", "slash"}, {"GET h /pay/v2", "long"},
               {"GET h /pay/v2/", "long"}, {"GET h /pay/v22", "slash"}, {"GET h /pay/v2/charge", "exact"},
               {"GET h /pay/v2/charge/1", "long"}, {"GET h /payment", "root"}, {"GET h /", "root"},
               {"GET h /pay/v2/charge?x=/pay", "exact"}, {"OPTIONS h *", "root"});
}

static void test_route__paths_are_compared_in_their_normal_form(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  pay: {match: {prefix: /%70ay}}\n"
               "  file: {match: {path: /a%2fb}}\n"
               "  rest: {match: {prefix: /}}\n",
               {"GET h /pay/x", "pay"}, {"GET h /%70%61%79/x", "pay"}, {"GET h /a%2Fb", "file"},
               {"GET h /a%2fb", "file"}, {"GET h /a/b", "rest"}, {"GET h /rest/../pay", "400"},
               {"GET h /rest/%2e%2E/pay", "400"}, {"GET h /%", "400"}, {"GET h /pay?x=/../%", "pay"},
               {"GET h pay", "400"});
}

static void test_route__a_path_that_may_be_another_is_only_taken_where_that_does_not_matter(void **state)
{
    (void)state;
    static const char services[] = "services:\n"
                                   "  a:\n"
                                   "    match: {host: h}\n"
                                   "    endpoints:\n"
                                   "      pay: {match: {prefix: /pay}}\n"
                                   "      post: {match: {method: POST, path: /order}}\n"
                                   "      file: {match: {path: /a%2fb}}\n"
                                   "  other: {match: {host: h, prefix: /x/y}}\n";
    CHECK_ROWS(services, {"GET h /pay", "a/pay"}, {"GET h //pay", "ambiguous"}, {"GET h /pay;x", "ambiguous"},
               {"GET h /pay%2f", "ambiguous"}, {"GET h /pay\\", "ambiguous"}, {"GET h /./pay", "ambiguous"},
               {"GET h /.//pay/x", "ambiguous"}, {"GET h /pay%3Bx", "ambiguous"}, {"GET h /%2fpay", "ambiguous"},
               {"GET h /pay%00", "ambiguous"}, {"GET h /%2570ay", "ambiguous"}, {"GET h /pay%3Fx", "ambiguous"},
               {"GET h /pay//x", "a/pay"}, {"GET h /pay/x;y", "a/pay"}, {"GET h /pay/./x", "a/pay"},
               {"GET h /pay/a%2Fb", "a/pay"}, {"GET h /pay.", "a"}, {"GET h /PAY", "a"},
               {"GET h /repo/./Packages", "a"}, {"GET h /group%2Fproject", "a"}, {"GET h //", "a"}, {"GET h /.", "a"},
               {"GET h /;jsessionid=1", "a"}, {"POST h /order", "a/post"}, {"POST h /order/", "a"},
               {"POST h /order%2F", "ambiguous"}, {"POST h /order/.", "ambiguous"}, {"POST h //order", "ambiguous"},
               {"GET h //order", "a"}, {"GET h /a%2fb", "a/file"}, {"GET h /a/b", "a"}, {"GET h /x/y", "other"},
               {"GET h /x//y", "ambiguous"}, {"GET h /x%2Fy", "ambiguous"}, {"GET h /x/./y/z", "ambiguous"},
               {"GET h /x/y//z", "other"}, {"GET g //pay", "-"}, {"GET h /x/../pay", "400"},
               {"GET h /%252e%252e/pay", "400"}, {"GET h /..;/pay", "400"});
    CHECK_ROWS("services: {root: {match: {prefix: /}}}\n", {"GET h //pay;x%2f./", "root"}, {"GET h /a/../b", "400"});
    CHECK_ROWS("paths: as-is\n"
               "services:\n"
               "  pay: {match: {prefix: /pay}}\n"
               "  rest: {match: {prefix: /}}\n",
               {"GET h //pay", "rest"}, {"GET h /pay;x", "rest"}, {"GET h /%70ay", "pay"}, {"GET h /pay/../x", "pay"},
               {"GET h /x/../pay", "rest"}, {"GET h /%", "400"});
}

static void test_route__method_and_header_break_the_tie(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  all: {match: {host: h}}\n"
               "  post: {match: {host: h, method: POST}}\n"
               "  longer: {match: {host: h, prefix: /x}}\n",
               {"GET h /", "all"}, {"POST h /", "post"}, {"post h /", "all"}, {"POSTS h /", "all"},
               {"POST h /x", "longer"});
}

static void test_route__the_asterisk_and_no_path_belong_to_who_asks_for_no_path(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  pay: {match: {host: pay, prefix: /pay}}\n"
               "  all: {}\n",
               {"OPTIONS all *", "all"}, {"OPTIONS pay *", "-"}, {"CONNECT all:443", "all"}, {"CONNECT pay:443", "-"});
}

static void test_route__an_endpoint_is_chosen_by_the_same_rules(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  pay:\n"
               "    endpoints:\n"
               "      read: {match: {method: GET}}\n"
               "      list: {match: {prefix: /list}}\n"
               "      charge: {match: {method: POST, path: /charge}}\n"
               "      other: {match: {path: /charge}}\n"
               "      below: {match: {host: \"*.pay\", prefix: /list}}\n"
               "      port: {match: {host: \"pay:81\", prefix: /list}}\n"
               "  ledger:\n"
               "    endpoints:\n"
               "      any: {}\n",
               {"POST pay /charge", "pay/charge"}, {"PUT pay /charge", "pay/other"}, {"GET pay /charge", "pay/other"},
               {"GET pay /x", "pay/read"}, {"PUT pay /x", "pay"}, {"GET pay /list/1", "pay/list"},
               {"GET pay:81 /list/1", "pay/port"}, {"PUT ledger /", "ledger/any"}, {"GET pay /listing", "pay/read"});
}

struct headers {
    const struct head *head;
};

static bool has_header(const void *headers, const char *name, struct becalm_text value)
{
    const struct headers *h = headers;
    return head_has_value(h->head, text(name), value);
}

static void test_route__a_header_is_named_in_any_case_and_its_value_exact(void **state)
{
    (void)state;
    static const char bytes[] = "x-TIER: gold\r\nX-Tier: blue\r\nx-other: silver\r\n";
    static struct head head;
    memset(&head, 0, sizeof head);
    head.bytes = bytes;
    head.field_count = 3;
    head.field[0] = (struct field){.name = 0, .name_length = 6, .value = 8, .value_length = 4};
    head.field[1] = (struct field){.name = 14, .name_length = 6, .value = 22, .value_length = 4};
    head.field[2] = (struct field){.name = 28, .name_length = 7, .value = 37, .value_length = 6};
    static const struct row rows[] = {{"X-Tier: gold", "h/tier"},   {"X-TIER: blue", "h/tier"}, {"x-tier: Gold", "h"},
                                      {"x-tier: silver", "h"},      {"x-tie: gold", "h"},       {"x-tiers: gold", "h"},
                                      {"x-other: silver", "h/tier"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char services[160];
        char word[160];
        (void)snprintf(services, sizeof services, "services: {h: {endpoints: {tier: {match: {header: {%s}}}}}}",
                       rows[i].request);
        struct lab lab = lab_make(services);
        struct route_request request = {.host = text("h"), .path = text("/"), .method = text("GET")};
        route_word(&lab, &request, word); /* no headers at all */
        check_eq_str(word, "h");
        request.has_header = has_header;
        request.headers = &(struct headers){&head};
        route_word(&lab, &request, word);
        check_eq_str(word, rows[i].expected);
        lab_free(&lab);
    }
}

static void test_route__a_host_of_any_length_and_bytes_is_only_not_found(void **state)
{
    (void)state;
    struct lab lab = lab_make("services: {a: {match: {host: \"*.b\"}}, b: {}}");
    char host[600];
    memset(host, '.', sizeof host);
    for (size_t length = 0; length < sizeof host; length++) {
        struct becalm_text bare = {malloc(length + 1), length};
        memcpy((void *)(uintptr_t)bare.at, host, length);
        struct route_request request = {.host = bare, .path = text("/"), .method = text("GET")};
        check_eq_u64(route_find(lab.table, &request).service, ROUTE_NONE);
        text_drop(bare);
    }
    lab_free(&lab);
}

static void test_route__each_of_two_hundred_services_finds_its_own(void **state)
{
    (void)state;
    enum { SERVICES = 200 };
    static char services[SERVICES * 96];
    size_t used = (size_t)snprintf(services, sizeof services, "services:\n");
    for (unsigned i = 0; i < SERVICES; i++) {
        const char *form = i % 2 == 0 ? "  s%u: {match: {host: h%u.example}}\n" : "  s%u: {match: {prefix: /p%u}}\n";
        used += (size_t)snprintf(services + used, sizeof services - used, form, i, i);
    }
    struct lab lab = lab_make(services);
    for (unsigned i = 0; i < SERVICES; i++) {
        char host[32];
        char path[32];
        (void)snprintf(host, sizeof host, i % 2 == 0 ? "h%u.example" : "x%u", i);
        (void)snprintf(path, sizeof path, i % 2 == 0 ? "/q%u" : "/p%u/x", i);
        struct route_request request = {.host = text(host), .path = text(path), .method = text("GET")};
        check_eq_u64(route_find(lab.table, &request).service, i);
    }
    lab_free(&lab);
}

static void test_route__a_list_of_matches_takes_what_any_of_them_takes(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  accounts: {match: [{prefix: /users/}, {prefix: /login, method: POST}, {host: a.x}]}\n"
               "  orders: {match: [{prefix: /orders}, {prefix: /users/old}],\n"
               "    endpoints: {old: {match: [{path: /users/old/1}, {prefix: /orders/old}]}}}\n"
               "  web: {match: {prefix: /}}\n",
               {"GET h /users/1", "accounts"}, {"GET h /users", "web"}, {"POST h /login/x", "accounts"},
               {"GET h /login/x", "web"}, {"GET a.x /z", "accounts"}, {"GET h /orders/1", "orders"},
               {"GET h /users/old/2", "orders"}, {"GET h /users/old/1", "orders/old"},
               {"GET h /orders/old/3", "orders/old"}, {"GET a.x /orders", "accounts"});
}

static void test_route__a_start_ends_anywhere(void **state)
{
    (void)state;
    CHECK_ROWS("services:\n"
               "  api: {match: {start: /api}}\n"
               "  deep: {match: {start: /api/v}}\n"
               "  whole: {match: {prefix: /apiary}}\n",
               {"GET h /api", "api"}, {"GET h /apis/x", "api"}, {"GET h /api/v2", "deep"}, {"GET h /api/x", "api"},
               {"GET h /apiary/1", "whole"}, {"GET h /apiaryx", "api"}, {"GET h /ap", "-"}, {"GET h /%61pix", "api"},
               {"GET h /x;a/../api", "400"});
}

BECALM_TESTS(cmocka_unit_test(test_route__nobody_is_found_without_services),
             cmocka_unit_test(test_route__a_service_without_match_is_found_by_its_name),
             cmocka_unit_test(test_route__hosts_are_compared_without_case_port_and_final_dot),
             cmocka_unit_test(test_route__a_port_in_the_match_is_wanted_and_wins),
             cmocka_unit_test(test_route__a_star_is_every_name_below),
             cmocka_unit_test(test_route__who_does_not_fit_leaves_it_to_the_wider_host),
             cmocka_unit_test(test_route__the_host_decides_before_the_path),
             cmocka_unit_test(test_route__exact_path_then_longest_prefix_then_the_file),
             cmocka_unit_test(test_route__paths_are_compared_in_their_normal_form),
             cmocka_unit_test(test_route__a_path_that_may_be_another_is_only_taken_where_that_does_not_matter),
             cmocka_unit_test(test_route__method_and_header_break_the_tie),
             cmocka_unit_test(test_route__the_asterisk_and_no_path_belong_to_who_asks_for_no_path),
             cmocka_unit_test(test_route__an_endpoint_is_chosen_by_the_same_rules),
             cmocka_unit_test(test_route__a_header_is_named_in_any_case_and_its_value_exact),
             cmocka_unit_test(test_route__a_host_of_any_length_and_bytes_is_only_not_found),
             cmocka_unit_test(test_route__a_list_of_matches_takes_what_any_of_them_takes),
             cmocka_unit_test(test_route__a_start_ends_anywhere),
             cmocka_unit_test(test_route__each_of_two_hundred_services_finds_its_own))
