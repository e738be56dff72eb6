/* SPDX-License-Identifier: MIT */
#include "top_lab.h"

/* Two states a second apart: one service fails, one is fine, one is idle. */
static void fill(struct view *view)
{
    const struct lab_service before[] = {{.name = "cart"}, {.name = "payment"}, {.name = "search"}};
    const struct lab_service after[] = {
        {"cart", .first = 100},
        {"payment", .first = 50, .after = 10, .failed = 40, .retries = 20, .shed = 30, .unpaid = 5},
        {.name = "search"},
    };
    *view = (struct view){.admin = "gate:9900"};
    check_true(table_add(&view->table, lab_state(100, "t0", before, 3)));
    check_true(table_add(&view->table, lab_state(101, "t0", after, 3)));
}

static char *drawn(struct view *view, uint32_t width, uint32_t height, bool live)
{
    struct screen s = {.width = width, .height = height, .live = live, .reset = ""};
    view_draw(view, &s);
    check_true(!s.full);
    return s.text;
}

static bool shows(struct view *view, const char *text)
{
    char *screen = drawn(view, 80, 24, true);
    bool found = strstr(screen, text) != NULL;
    free(screen);
    return found;
}

static enum view_wish press(struct view *view, const char *characters)
{
    enum view_wish wish = VIEW_STAY;
    for (; *characters != '\0'; characters++) {
        wish = view_key(view, (struct key){KEY_CHARACTER, *characters});
    }
    return wish;
}

static enum view_wish press_key(struct view *view, enum key_kind kind)
{
    return view_key(view, (struct key){kind, 0});
}

static void test_view__a_screen_looks_like_this(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    char *screen = drawn(&view, 80, 0, false);
    check_eq_str(screen, "becalm top  gate:9900  gateway 0.1.0  up 1m41s  200 requests/s  3 clients\n"
                         "!! 1 of 3 services in trouble\n"
                         "     SERVICE          STATE           REQ/S RETRY/S   1ST    OK  AMPL\n"
                         "  !! payment          failing           100    20.0 50.0% 60.0% 1.28x\n"
                         "     cart             fine              100       0  100%  100% 1.00x\n"
                         "     search           idle                0       0     -     -     -\n"
                         "-- payment ---------------------------------------------------------------------\n"
                         "breaker     CLOSED, 3 of 50 calls failed\n"
                         "budget      earned: 9.5 of 10.0 retries left, retries are 5.0% of the calls\n"
                         "in flight   7, limit 100\n"
                         "queue       4 calls wait\n"
                         "hosts       1 of 1 usable\n"
                         "refused     breaker_open 30.0/s\n"
                         "not retried budget_empty 5.0/s\n");
    free(screen);
    view_free(&view);
}

static void test_view__handshakes_and_ended_connections_have_a_line_where_there_are_any(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    struct state *latest = (struct state *)(uintptr_t)table_latest(&view.table);
    check_true(!shows(&view, "TLS") && !shows(&view, "HTTP/2") && !shows(&view, "certificate"));
    latest->clients = (struct state_handshakes){3, 14, {{"alert", "timeout"}, {2, 1}, 2}};
    latest->hosts = (struct state_handshakes){.full = 1};
    check_true(shows(&view, "TLS clients: 3 full, 14 resumed, ! failed: alert 2, timeout 1\033"));
    check_true(shows(&view, "TLS hosts: 1 full, 0 resumed\033"));
    latest->clients_ended = (struct state_words){{"pings"}, {7}, 1};
    check_true(shows(&view, "HTTP/2 clients ended: pings 7\033") && !shows(&view, "HTTP/2 hosts"));
    latest->hosts_ended = (struct state_words){{"protocol"}, {1}, 1};
    check_true(shows(&view, "HTTP/2 hosts ended: protocol 1\033"));
    strcpy(latest->certificate, "shop.pem");
    latest->expires_in = 7 * 86400 + 1;
    check_true(!shows(&view, "shop.pem"));
    latest->expires_in = 7 * 86400;
    check_true(shows(&view, "! certificate expires in 7d00h: shop.pem"));
    latest->expires_in = 0;
    check_true(shows(&view, "!! certificate has expired: shop.pem"));
    view_free(&view);
}

static void test_view__a_service_says_what_is_spoken(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    view.page = VIEW_SERVICE;
    strcpy(view.chosen, "payment");
    check_true(shows(&view, "spoken      clients HTTP/1 50.0/s, gRPC 50.0/s; hosts HTTP/2 20.0/s"));
    strcpy(view.chosen, "search");
    check_true(shows(&view, "spoken      clients none; hosts none"));
    view_free(&view);
}

static void test_view__a_narrow_screen_has_fewer_columns_and_whole_titles(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    char *screen = drawn(&view, 40, 0, false);
    check_true(strstr(screen, "\n     SERVICE  STATE           REQ/S\n") != NULL);
    check_true(strstr(screen, "\n  !! payment  failing           100\n") != NULL);
    free(screen);
    screen = drawn(&view, 52, 0, false);
    check_true(strstr(screen, "\n     SERVICE    STATE           REQ/S RETRY/S    OK\n") != NULL);
    free(screen);
    view.page = VIEW_SERVICE;
    strcpy(view.chosen, "payment");
    screen = drawn(&view, 40, 0, false);
    check_true(strstr(screen, "\nENDPOINT       BREAKER      REQ/S   1ST \n") != NULL);
    free(screen);
    view_free(&view);
}

/* For all sizes and pages: exactly the lines of the terminal, and none too wide. */
static void test_view__fits_every_size(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    for (uint32_t page = VIEW_LIST; page <= VIEW_HELP; page++) {
        view.page = (enum view_page)page;
        strcpy(view.chosen, "payment");
        for (uint32_t height = 1; height < 45; height++) {
            for (uint32_t width = 1; width < 200; width += 13) {
                char *screen = drawn(&view, width, height, true);
                uint32_t lines = 0;
                for (char *line = strtok(screen, "\r"); line != NULL; line = strtok(NULL, "\r")) {
                    line += *line == '\n';
                    char *end = strstr(line, "\033[K");
                    lines += end != NULL;
                    check_true(end == NULL || (size_t)(end - line) <= width);
                }
                check_eq_u64(lines, height);
                free(screen);
            }
        }
    }
    view_free(&view);
}

static void test_view__the_cursor_stays_on_the_worst_until_it_is_moved(void **state)
{
    struct view view;
    const struct lab_service after[] = {{"cart", .breaker = "OPEN"}, {.name = "payment"}, {.name = "search"}};
    (void)state;
    fill(&view);
    check_eq_str(view_chosen(&view)->name, "payment");
    check_true(table_add(&view.table, lab_state(102, "t0", after, 3)));
    check_eq_str(view_chosen(&view)->name, "cart");
    press(&view, "jj");
    press_key(&view, KEY_DOWN);
    check_eq_str(view_chosen(&view)->name, "search");
    press_key(&view, KEY_UP);
    check_eq_str(view_chosen(&view)->name, "payment");
    press(&view, "G");
    check_eq_str(view_chosen(&view)->name, "search");
    press(&view, "g");
    check_eq_str(view_chosen(&view)->name, "cart");
    view_free(&view);
}

static void test_view__filters_by_a_part_of_the_name(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    press(&view, "/ARq");
    check_true(shows(&view, "no service has this in its name"));
    press_key(&view, KEY_BACKSPACE);
    press_key(&view, KEY_ENTER);
    check_true(shows(&view, "cart") && shows(&view, "search") && !shows(&view, "payment  "));
    check_true(shows(&view, "filter: AR"));
    press_key(&view, KEY_ESCAPE);
    check_true(shows(&view, "payment  "));
    view_free(&view);
}

static void test_view__opens_a_service_and_comes_back(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    check_eq_u64(press_key(&view, KEY_ENTER), VIEW_ASK);
    check_true(shows(&view, "more than 5 % of the calls fail") && shows(&view, "ENDPOINT"));
    press(&view, "G");
    check_true(shows(&view, "asking the gateway"));
    view.decision_count = 1;
    view.decision[0] = (struct state_decision){.time = "2026-01-02T03:04:05.678Z",
                                               .reason = "budget_empty",
                                               .method = "GET",
                                               .target = "/x",
                                               .change = "Successes fill it."};
    strcpy(view.decisions_of, "payment");
    check_true(!shows(&view, "asking the gateway"));
    press(&view, "G");
    check_true(shows(&view, "03:04:05.678 budget_empty") && shows(&view, "Successes fill it."));
    check_eq_u64(press(&view, "q"), VIEW_STAY);
    check_true(shows(&view, "SERVICE"));
    check_eq_u64(press(&view, "q"), VIEW_QUIT);
    view_free(&view);
}

static void test_view__a_service_that_has_gone_is_not_another(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    press_key(&view, KEY_RIGHT);
    check_true(table_add(&view.table, lab_state(102, "t0", &(struct lab_service){.name = "cart"}, 1)));
    check_true(shows(&view, "payment is no longer among the services"));
    view_free(&view);
}

static void test_view__says_that_the_gateway_is_away(void **state)
{
    struct view view = {.admin = "gate:9900", .why = "Connection refused", .again = 3 * BECALM_S};
    (void)state;
    check_true(shows(&view, "!! away: Connection refused; again in 4s"));
    fill(&view);
    strcpy(view.why, "Connection refused");
    view.age = 12 * BECALM_S;
    check_true(shows(&view, "!! away, this is 12.0s old: Connection refused; again in 1s"));
    check_eq_u64(press(&view, "r"), VIEW_ASK);
    view_free(&view);
}

static void test_view__pauses_and_helps(void **state)
{
    struct view view;
    (void)state;
    fill(&view);
    check_eq_u64(press(&view, "p"), VIEW_STAY);
    check_true(shows(&view, "PAUSED"));
    check_eq_u64(press(&view, "p"), VIEW_ASK);
    press(&view, "?");
    check_true(shows(&view, "any key goes back") && shows(&view, "host ejected"));
    check_eq_u64(press(&view, "q"), VIEW_STAY);
    check_true(shows(&view, "SERVICE"));
    view_free(&view);
}

/* ---- keys ---- */

static enum key_kind last_of(const char *bytes)
{
    struct keys keys = {.length = 0};
    struct key key = {KEY_NONE, 0};
    for (; *bytes != '\0'; bytes++) {
        key = keys_byte(&keys, *bytes);
    }
    return keys_pending(&keys) ? keys_end(&keys).kind : key.kind;
}

static void test_keys__are_read_from_what_terminals_send(void **state)
{
    (void)state;
    check_eq_u64(last_of("j"), KEY_CHARACTER);
    check_eq_u64(last_of("\r"), KEY_ENTER);
    check_eq_u64(last_of("\x7f"), KEY_BACKSPACE);
    check_eq_u64(last_of("\x01"), KEY_NONE);
    check_eq_u64(last_of("\033"), KEY_ESCAPE);
    check_eq_u64(last_of("\033[A"), KEY_UP);
    check_eq_u64(last_of("\033OB"), KEY_DOWN);
    check_eq_u64(last_of("\033[5~"), KEY_PAGE_UP);
    check_eq_u64(last_of("\033[1;5C"), KEY_NONE);
    check_eq_u64(last_of("\033[1;5Cj"), KEY_CHARACTER);
    check_eq_u64(last_of("\033[11111111111111111111"), KEY_CHARACTER);
    check_eq_u64(last_of("\033[200"), KEY_NONE);
}

BECALM_TESTS(cmocka_unit_test(test_view__a_screen_looks_like_this),
             cmocka_unit_test(test_view__handshakes_and_ended_connections_have_a_line_where_there_are_any),
             cmocka_unit_test(test_view__a_service_says_what_is_spoken),
             cmocka_unit_test(test_view__a_narrow_screen_has_fewer_columns_and_whole_titles),
             cmocka_unit_test(test_view__fits_every_size),
             cmocka_unit_test(test_view__the_cursor_stays_on_the_worst_until_it_is_moved),
             cmocka_unit_test(test_view__filters_by_a_part_of_the_name),
             cmocka_unit_test(test_view__opens_a_service_and_comes_back),
             cmocka_unit_test(test_view__a_service_that_has_gone_is_not_another),
             cmocka_unit_test(test_view__says_that_the_gateway_is_away), cmocka_unit_test(test_view__pauses_and_helps),
             cmocka_unit_test(test_keys__are_read_from_what_terminals_send))
