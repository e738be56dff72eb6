/* SPDX-License-Identifier: MIT */
#include "top_lab.h"

static void add(struct table *table, uint32_t at, const struct lab_service *service, uint32_t count)
{
    check_true(table_add(table, lab_state(at, "t0", service, count)));
}

static void test_table__one_state_has_no_rates(void **state)
{
    struct table table = {.row = NULL};
    (void)state;
    check_true(table_latest(&table) == NULL);
    add(&table, 0, &(struct lab_service){"a", .first = 1000, .failed = 1000}, 1);
    check_eq_u64(table_window(&table), 0);
    check_eq_u64(table.row[0].figures.rate[STATE_ARRIVALS], 0);
    check_eq_u64(table.row[0].figures.success, STATE_NONE);
    check_eq_u64(table.row[0].troubles, 0);
    check_eq_u64(table.row[0].trend.count, 0);
    table_free(&table);
}

static void test_table__rates_are_what_counts_grew_by(void **state)
{
    struct table table = {.row = NULL};
    (void)state;
    add(&table, 0, &(struct lab_service){"a", .first = 1000}, 1);
    add(&table, 2, &(struct lab_service){"a", .first = 1180, .after = 16, .failed = 4, .retries = 20, .shed = 4}, 1);
    const struct table_figures *figures = &table.row[0].figures;
    check_eq_u64(figures->rate[STATE_ARRIVALS], 100000); /* 200 in 2 s, in thousandths per second */
    check_eq_u64(figures->rate[STATE_RETRIES], 10000);
    check_eq_u64(figures->refused, 2000);
    check_eq_u64(figures->success_first, 900000);
    check_eq_u64(figures->success, 980000);
    check_eq_u64(figures->amplification, 1102040); /* 1 + 20 retries of 196 calls that sent anything */
    struct table_figures of_endpoint;
    table_endpoint(&table, &table.row[0], &table.row[0].service->endpoint[0], &of_endpoint);
    assert_memory_equal(&of_endpoint, figures, sizeof of_endpoint);
    table_free(&table);
}

static void test_table__rates_are_means_of_ten_seconds_and_the_trend_goes_on(void **state)
{
    struct table table = {.row = NULL};
    (void)state;
    for (uint32_t i = 0; i <= 30; i++) {
        add(&table, i, &(struct lab_service){"a", .first = i <= 20 ? 0 : (i - 20) * 50}, 1);
    }
    check_eq_u64(table_window(&table), 10 * BECALM_S);
    check_eq_u64(table.row[0].figures.rate[STATE_ARRIVALS], 50000);
    check_eq_u64(table.row[0].trend.count, 30);
    check_eq_u64(table.row[0].trend.requests[19], 0);
    check_eq_u64(table.row[0].trend.requests[20], 50000);
    for (uint32_t i = 31; i < 200; i++) {
        add(&table, i, &(struct lab_service){"a", .first = i * 50}, 1);
    }
    check_eq_u64(table.row[0].trend.count, TABLE_TREND_MAX);
    check_eq_u64(table.row[0].trend.requests[0], 50000);
    table_free(&table);
}

static void test_table__a_restart_or_a_break_begins_anew(void **state)
{
    struct table table = {.row = NULL};
    (void)state;
    add(&table, 0, &(struct lab_service){"a", .first = 1000}, 1);
    add(&table, 1, &(struct lab_service){"a", .first = 1010}, 1);
    check_true(table_add(&table, lab_state(2, "t1", &(struct lab_service){"a", .first = 5}, 1)));
    check_eq_u64(table_window(&table), 0);
    check_eq_u64(table.row[0].figures.rate[STATE_ARRIVALS], 0);
    check_eq_u64(table.row[0].trend.count, 1);
    check_true(table_add(&table, lab_state(3, "t1", &(struct lab_service){"a", .first = 25}, 1)));
    check_eq_u64(table.row[0].figures.rate[STATE_ARRIVALS], 20000);
    table_break(&table);
    check_eq_u64(table.row[0].figures.rate[STATE_ARRIVALS], 20000);
    check_true(table_add(&table, lab_state(4, "t1", &(struct lab_service){"a", .first = 99}, 1)));
    check_eq_u64(table_window(&table), 0);
    table_free(&table);
}

static void test_table__services_may_come_go_and_move(void **state)
{
    struct table table = {.row = NULL};
    const struct lab_service before[] = {{"a", .first = 10}, {"b", .first = 100}};
    const struct lab_service after[] = {{"b", .first = 107}, {"c", .first = 3}};
    (void)state;
    add(&table, 0, before, 2);
    add(&table, 1, after, 2);
    check_eq_u64(table.row_count, 2);
    check_true(lab_row(&table, "a") == NULL);
    check_eq_u64(lab_row(&table, "b")->figures.rate[STATE_ARRIVALS], 7000);
    check_eq_u64(lab_row(&table, "c")->figures.rate[STATE_ARRIVALS], 3000);
    add(&table, 2, NULL, 0);
    check_eq_u64(table.row_count, 0);
    table_free(&table);
}

/* The troubles of a service whose counts grew from 0 to these within a second. */
static uint32_t troubles(struct lab_service service)
{
    struct table table = {.row = NULL};
    add(&table, 0, &(struct lab_service){"a", .breaker = service.breaker}, 1);
    service.name = "a";
    add(&table, 1, &service, 1);
    uint32_t found = table.row[0].troubles;
    table_free(&table);
    return found;
}

#define BIT(name) (1u << TROUBLE_##name)

static void test_trouble__each_is_found_above_its_threshold_and_not_at_it(void **state)
{
    (void)state;
    check_eq_u64(troubles((struct lab_service){.first = 0}), 0);
    check_eq_u64(troubles((struct lab_service){.first = 95, .failed = 5}), 0);
    check_eq_u64(troubles((struct lab_service){.first = 94, .failed = 6}), BIT(FAILING));
    check_eq_u64(troubles((struct lab_service){.first = 95, .failed = 5, .shed = 5}), 0);
    check_eq_u64(troubles((struct lab_service){.first = 940, .failed = 60, .shed = 60}), BIT(FAILING) | BIT(REFUSING));
    check_eq_u64(troubles((struct lab_service){.first = 70, .retries = 30}), 0);
    check_eq_u64(troubles((struct lab_service){.first = 69, .retries = 31}), BIT(MANY_RETRIES));
    check_eq_u64(troubles((struct lab_service){.first = 50, .retries = 50}), BIT(MANY_RETRIES));
    check_eq_u64(troubles((struct lab_service){.first = 50, .retries = 51}), BIT(MANY_RETRIES) | BIT(STORM));
    check_eq_u64(troubles((struct lab_service){.first = 90, .retries = 3, .unpaid = 3}), 0);
    check_eq_u64(troubles((struct lab_service){.first = 90, .retries = 3, .unpaid = 4}), BIT(BUDGET_EMPTY));
    check_eq_u64(troubles((struct lab_service){.breaker = "OPEN"}), BIT(BREAKER_OPEN));
    check_eq_u64(troubles((struct lab_service){.breaker = "FORCED_OPEN"}), BIT(FORCED_OPEN));
    check_eq_u64(troubles((struct lab_service){.breaker = "HALF_OPEN"}), BIT(HALF_OPEN));
    check_eq_u64(troubles((struct lab_service){.breaker = "METRICS_ONLY"}), 0);
    check_eq_u64(troubles((struct lab_service){.ejected = true}), BIT(NO_HOST) | BIT(EJECTED));
    check_eq_u64(troubles((struct lab_service){.ejected = true, .ignored = true}), BIT(HOSTS_BAD));
    check_eq_u64(troubles((struct lab_service){.unhealthy = true}), BIT(UNHEALTHY));
    check_eq_u64(troubles((struct lab_service){.all_unhealthy = true}), BIT(HOSTS_BAD));
    check_eq_u64(troubles((struct lab_service){.first = 95, .after = 5}), 0);
    check_eq_u64(troubles((struct lab_service){.first = 94, .after = 6}), BIT(SAVED));
}

static void test_table__the_worst_comes_first(void **state)
{
    struct table table = {.row = NULL};
    const struct lab_service before[] = {{.name = "fine"},    {.name = "also-fine"}, {"half", .breaker = "HALF_OPEN"},
                                         {.name = "failing"}, {.name = "worse"},     {"open", .breaker = "OPEN"}};
    const struct lab_service after[] = {{"fine", .first = 900},
                                        {.name = "also-fine"},
                                        {"half", .breaker = "HALF_OPEN"},
                                        {"failing", .first = 80, .failed = 20},
                                        {"worse", .first = 10, .failed = 90},
                                        {"open", .breaker = "OPEN"}};
    static const char *const order[] = {"open", "worse", "failing", "half", "also-fine", "fine"};
    (void)state;
    add(&table, 0, before, 6);
    add(&table, 1, after, 6);
    for (uint32_t i = 0; i < 6; i++) {
        check_eq_str(table.row[i].name, order[i]);
    }
    check_eq_u64(table_worst(&table.row[0]), TROUBLE_BREAKER_OPEN);
    check_eq_u64(table_worst(&table.row[5]), TROUBLE_COUNT);
    table_free(&table);
}

BECALM_TESTS(cmocka_unit_test(test_table__one_state_has_no_rates),
             cmocka_unit_test(test_table__rates_are_what_counts_grew_by),
             cmocka_unit_test(test_table__rates_are_means_of_ten_seconds_and_the_trend_goes_on),
             cmocka_unit_test(test_table__a_restart_or_a_break_begins_anew),
             cmocka_unit_test(test_table__services_may_come_go_and_move),
             cmocka_unit_test(test_trouble__each_is_found_above_its_threshold_and_not_at_it),
             cmocka_unit_test(test_table__the_worst_comes_first))
