/* SPDX-License-Identifier: MIT */
#include "plan/amplification.h"
#include "plan/budget.h"
#include "plan/contention.h"
#include "plan/figure.h"
#include "plan/latency.h"
#include "plan/prometheus.h"
#include "plan/tune.h"

#include "check.h"

#include <becalm/rand.h>

#include <math.h>

/* Within a millionth part. */
static void check_near(double actual, double expected)
{
    if (fabs(actual - expected) > 1e-6 * (fabs(expected) > 1 ? fabs(expected) : 1)) {
        print_error("%.9g, expected %.9g\n", actual, expected);
        fail();
    }
}

/* ---- figures ---- */

static void check_figure(double value, uint32_t decimals, const char *expected)
{
    char text[FIGURE_MAX];
    check_eq_u64(figure_write(value, decimals, text, sizeof(text)), strlen(expected));
    check_eq_str(text, expected);
}

static void test_plan_figure__is_grouped_rounded_half_away_and_without_trailing_zeros(void **state)
{
    (void)state;
    check_figure(0, 1, "0");
    check_figure(999, 0, "999");
    check_figure(1000, 0, "1,000");
    check_figure(51200, 1, "51,200");
    check_figure(1257.789, 1, "1,257.8");
    check_figure(155.1328, 1, "155.1");
    check_figure(1.551328, 3, "1.551");
    check_figure(0.25, 1, "0.3");
    check_figure(-0.25, 1, "-0.3");
    check_figure(-0.04, 1, "0");
    check_figure(1.005, 2, "1.01");
    check_figure(999999999999999.0, 3, "999,999,999,999,999");
    check_figure(1e15, 3, "1.000e+15");
    check_figure(1e126, 0, "1.000e+126");
    check_figure((double)INFINITY, 0, "-");
}

static void test_plan_figure__is_cut_at_the_end_of_its_room(void **state)
{
    (void)state;
    char text[4];
    check_eq_u64(figure_write(51200, 0, text, sizeof(text)), 3);
    check_eq_str(text, "51,");
    check_eq_u64(figure_bar(1, 10, true, text, sizeof(text)), 3);
    check_eq_str(text, "\u2588");
    check_eq_u64(figure_bar(1, 10, true, text, 1), 0);
    check_eq_str(text, "");
}

static void test_plan_figure__is_finer_when_small(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"}, {0.00756, "0.0076"}, {0.126, "0.13"}, {5.0385, "5.04"}, {12.34, "12.3"}, {1e-9, "0"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[FIGURE_MAX];
        figure_write_fine(rows[i].value, text, sizeof(text));
        check_eq_str(text, rows[i].text);
    }
}

static void test_plan_figure__of_a_duration_has_three_digits(void **state)
{
    (void)state;
    static const struct {
        becalm_ns duration;
        const char *text;
    } rows[] = {{0, "0"},
                {999, "999ns"},
                {1234567, "1.23ms"},
                {376499999, "376ms"},
                {376500000, "377ms"},
                {999950000, "1s"},
                {90 * BECALM_S, "90s"},
                {2 * 3600 * BECALM_S, "2h"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[FIGURE_MAX];
        figure_write_duration(rows[i].duration, text, sizeof(text));
        check_eq_str(text, rows[i].text);
    }
}

static void test_plan_figure__rounds_durations_up_to_the_digits_asked_for(void **state)
{
    (void)state;
    check_eq_u64(figure_round_up(0, 2), 0);
    check_eq_u64(figure_round_up(99, 2), 99);
    check_eq_u64(figure_round_up(100, 2), 100);
    check_eq_u64(figure_round_up(101, 2), 110);
    check_eq_u64(figure_round_up(991 * BECALM_MS, 2), 1000 * BECALM_MS);
    check_eq_u64(figure_round_up(BECALM_NEVER - 1, 2), BECALM_NEVER);
}

static void test_plan_figure__draws_a_bar_that_is_seen_whenever_it_is_not_zero(void **state)
{
    (void)state;
    char text[64];
    check_eq_u64(figure_bar(0, 10, false, text, sizeof(text)), 0);
    figure_bar(0.0001, 10, false, text, sizeof(text));
    check_eq_str(text, "#");
    figure_bar(0.0001, 10, true, text, sizeof(text));
    check_eq_str(text, "\u258f");
    figure_bar(0.5, 10, false, text, sizeof(text));
    check_eq_str(text, "#####");
    figure_bar(0.55, 10, true, text, sizeof(text));
    check_eq_str(text, "\u2588\u2588\u2588\u2588\u2588\u258c");
    figure_bar(7, 3, false, text, sizeof(text));
    check_eq_str(text, "###");
}

/* ---- amplification ---- */

static void test_plan_amplification__of_one_service_is_one(void **state)
{
    (void)state;
    struct plan_amplification out;
    plan_amplify(&(struct plan_chain){.services = 1, .attempts = 4, .rps = 100}, &out);
    check_near(out.bare[0].rps, 100);
    check_near(out.bare_total.rps, 100);
    check_near(out.marked.factor, 1);
}

static void test_plan_amplification__of_ten_services_with_one_retry_is_512(void **state)
{
    (void)state;
    struct plan_amplification out;
    plan_amplify(&(struct plan_chain){.services = 10, .attempts = 2, .rps = 100}, &out);
    check_near(out.bare[9].rps, 51200);
    check_near(out.bare[9].factor, 512);
    check_near(out.bare_total.rps, 102300);
    check_near(out.marked.rps, 200);
    check_near(out.paid[9].rps, 51200); /* without a budget */
}

static void test_plan_amplification__with_five_percent_is_1_551(void **state)
{
    (void)state;
    struct plan_amplification out;
    plan_amplify(&(struct plan_chain){.services = 10, .attempts = 2, .rps = 100, .budgeted = true, .budget_ppm = 50000},
                 &out);
    check_near(out.paid[9].rps, 155.13282159785163);
    check_near(out.paid_total.rps, 1257.7892535548839);
    check_near(out.marked.rps, 105);
    check_near(out.bare[9].rps, 51200);
}

static void test_plan_amplification__of_three_layers_is_the_cube_of_the_attempts(void **state)
{
    (void)state;
    struct plan_amplification out;
    plan_amplify(&(struct plan_chain){.services = 4, .attempts = 4, .rps = 1}, &out);
    check_near(out.bare[3].factor, 64);
    plan_amplify(&(struct plan_chain){.services = 4, .attempts = 3, .rps = 1}, &out);
    check_near(out.bare[3].factor, 27);
}

static void test_plan_amplification__is_not_made_worse_by_a_budget_that_nobody_uses(void **state)
{
    (void)state;
    struct plan_amplification out;
    plan_amplify(&(struct plan_chain){.services = 3, .attempts = 1, .rps = 1, .budgeted = true, .budget_ppm = 1000000},
                 &out);
    check_near(out.paid[2].factor, 1);
}

/* ---- contention ---- */

static void test_plan_contention__of_one_client_is_none(void **state)
{
    (void)state;
    check_near(plan_collisions(0, 1), 0);
    check_near(plan_collisions(1, 1), 0);
    check_near(plan_alone(1, 1), 1);
    check_near(plan_alone(0, 1), 0);
    check_near(plan_quiet_window(1), 1);
}

static void test_plan_contention__of_1000_clients_in_1024_slots_is_488_pairs(void **state)
{
    (void)state;
    check_near(plan_collisions(1000, 1024), 487.79296875);
    check_near(plan_collisions(1000, 1), 499500);
    check_near(plan_quiet_window(1000), 499500);
}

static void test_plan_contention__depends_on_the_jitter(void **state)
{
    (void)state;
    struct plan_jitter jitter = plan_jitter(1000, 1024);
    check_near(jitter.none, 499500);
    check_near(jitter.full, 487.79296875);
    check_near(jitter.equal, 2 * 487.79296875);
    check_near(jitter.decorrelated, 499500 * (4.0 / 9 + 5.0 / 9 / 1024));
    jitter = plan_jitter(10, 1); /* with one slot nothing helps */
    check_near(jitter.full, 45);
    check_near(jitter.equal, 45);
    check_near(jitter.decorrelated, 45);
}

/* Throws clients into slots, and counts. */
static void test_plan_contention__is_what_dice_say(void **state)
{
    (void)state;
    enum { CLIENTS = 100, SLOTS = 64, ROUNDS = 2000 };
    uint64_t seed = 7;
    uint64_t pairs = 0;
    uint64_t alone = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t in_slot[SLOTS] = {0};
        for (int i = 0; i < CLIENTS; i++) {
            in_slot[becalm_rand_next(&seed) % SLOTS]++;
        }
        for (int i = 0; i < SLOTS; i++) {
            pairs += in_slot[i] * (in_slot[i] - (in_slot[i] > 0)) / 2;
            alone += in_slot[i] == 1;
        }
    }
    double expected = plan_collisions(CLIENTS, SLOTS);
    assert_true(fabs((double)pairs / ROUNDS - expected) < 0.01 * expected); /* seed 7 */
    expected = plan_alone(CLIENTS, SLOTS);
    assert_true(fabs((double)alone / ROUNDS - expected) < 0.02 * expected);
}

/* ---- budget ---- */

static struct plan_budget budget_of(double requests, double retries, becalm_ns latency, uint32_t instances)
{
    struct plan_budget out;
    plan_budget(
        &(struct plan_traffic){.requests = requests, .retries = retries, .latency = latency, .instances = instances},
        &out);
    return out;
}

static void test_plan_budget__without_retries_is_one_percent(void **state)
{
    (void)state;
    struct plan_budget out = budget_of(100, 0, 0, 1);
    check_near(out.share, 0);
    check_eq_u64(out.percent, 1);
    check_true(!out.storm && !out.low);
}

static void test_plan_budget__of_5_77_retries_in_100_77_requests_is_6_percent(void **state)
{
    (void)state;
    struct plan_budget out = budget_of(100.77, 5.77, 0, 1);
    check_near(out.share, 0.0572591);
    check_eq_u64(out.percent, 6);
}

static void test_plan_budget__of_a_whole_percent_is_that_percent(void **state)
{
    (void)state;
    for (uint32_t percent = 1; percent <= 20; percent++) {
        check_eq_u64(budget_of(100, percent, 0, 1).percent, percent);
        check_eq_u64(budget_of(0.3, 0.3 * percent / 100, 0, 1).percent, percent);
    }
    check_eq_u64(budget_of(100, 5.001, 0, 1).percent, 6);
}

static void test_plan_budget__stops_where_retries_are_the_disease(void **state)
{
    (void)state;
    check_true(!budget_of(100, 20, 0, 1).storm);
    struct plan_budget out = budget_of(100, 60, 0, 1);
    check_true(out.storm);
    check_eq_u64(out.percent, 20);
}

static void test_plan_budget__needs_a_minimum_where_few_requests_are_in_flight(void **state)
{
    (void)state;
    struct plan_budget out = budget_of(100.77, 5.77, 50 * BECALM_MS, 40);
    check_near(out.active, 5.0385);
    check_near(out.active_each, 0.1259625);
    check_near(out.allowed, 0.30231);
    check_near(out.allowed_each, 0.00755775);
    check_true(out.low);
    check_eq_u64(out.minimum, 1);
    check_eq_u64(out.minimum_total, 40);
    check_near(out.window_each, 100.77 / 40 * 120 * 0.06);
    check_true(!out.sparse);
}

static void test_plan_budget__needs_none_where_many_are(void **state)
{
    (void)state;
    struct plan_budget out = budget_of(1000, 57, 1000 * BECALM_MS, 40); /* 25 in flight, 6 % are 1.5 */
    check_true(!out.low);
    check_eq_u64(out.minimum, 0);
    check_eq_u64(out.minimum_total, 0);
    check_true(!budget_of(100, 10, BECALM_S, 10).low); /* 10 in flight, 10 % are one whole retry */
    check_true(budget_of(100, 10, BECALM_S, 11).low);
}

static void test_plan_budget__says_when_even_a_window_has_too_little_traffic(void **state)
{
    (void)state;
    check_true(budget_of(0.1, 0.005, BECALM_S, 1).sparse);
    check_true(!budget_of(0.2, 0.01, BECALM_S, 1).sparse); /* 24 requests, 5 % are 1.2 */
}

/* ---- latencies ---- */

/* Reads `text` as a file. */
static bool read_text(struct plan_latency *latency, const char *text, char why[PLAN_WHY_MAX])
{
    FILE *in = tmpfile();
    assert_non_null(in);
    fputs(text, in);
    rewind(in);
    bool read = plan_latency_read(latency, in, "file", why);
    (void)fclose(in);
    return read;
}

static becalm_ns quantile(const struct plan_latency *latency, double q)
{
    becalm_ns out = 0;
    check_true(plan_latency_quantile(latency, q, &out));
    return out;
}

static void test_plan_latency__of_one_line_is_every_quantile(void **state)
{
    (void)state;
    struct plan_latency latency;
    char why[PLAN_WHY_MAX];
    check_true(read_text(&latency, "12.5", why));
    check_eq_u64(quantile(&latency, 0.5), 12500 * BECALM_US);
    check_eq_u64(quantile(&latency, 0.995), 12500 * BECALM_US);
    plan_latency_free(&latency);
    plan_latency_free(&latency); /* twice is harmless */
}

static void test_plan_latency__lines_have_units_comments_and_more_decimals_than_nanoseconds(void **state)
{
    (void)state;
    struct plan_latency latency;
    char why[PLAN_WHY_MAX];
    check_true(read_text(&latency,
                         "# a comment\n\n  10 \r\n20ms # and one behind\n0.03s\n40000us\n"
                         "50.12345678901234\n0.0601234567890123s\n70000.1234us",
                         why));
    check_eq_u64(latency.count, 7);
    static const becalm_ns expected[] = {10000000, 20000000, 30000000, 40000000, 50123456, 60123456, 70000123};
    for (size_t i = 0; i < 7; i++) {
        check_near(latency.point[i].at, (double)expected[i]);
    }
    plan_latency_free(&latency);
}

static void test_plan_latency__quantiles_are_by_nearest_rank(void **state)
{
    (void)state;
    char text[8192] = "";
    char why[PLAN_WHY_MAX];
    struct plan_latency latency;
    for (int i = 1000; i >= 1; i--) { /* in the wrong order */
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d\n", i);
    }
    check_true(read_text(&latency, text, why));
    check_eq_u64(latency.answers, 1000);
    check_eq_u64(quantile(&latency, 0.5), 500 * BECALM_MS);
    check_eq_u64(quantile(&latency, 0.95), 950 * BECALM_MS);
    check_eq_u64(quantile(&latency, 0.995), 995 * BECALM_MS);
    check_eq_u64(quantile(&latency, 1), 1000 * BECALM_MS);
    plan_latency_free(&latency);
}

static void check_refused(const char *text, const char *expected)
{
    struct plan_latency latency;
    char why[PLAN_WHY_MAX] = "";
    check_true(!read_text(&latency, text, why));
    check_eq_str(why, expected);
    plan_latency_free(&latency);
}

static void test_plan_latency__refuses_what_is_none_and_says_where(void **state)
{
    (void)state;
    static const char what[] = "not a latency; write 12.5ms, or 12.5 for milliseconds";
    char expected[PLAN_WHY_MAX];
    static const char *const wrong[] = {"fast", "-1", "1e3", "1,5", "12 ms", "25h", "nan", "0x10"};
    check_refused("", "file: no latency in it");
    check_refused("# nothing\n\n", "file: no latency in it");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char text[64];
        snprintf(text, sizeof(text), "1\n%s\n", wrong[i]);
        snprintf(expected, sizeof(expected), "file:2: %s", what);
        check_refused(text, expected);
    }
    char line[300];
    memset(line, '1', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    check_refused(line, "file:1: the line is too long; one latency per line");
}

static void test_plan_latency__of_a_histogram_is_interpolated_as_prometheus_does(void **state)
{
    (void)state;
    struct plan_latency latency;
    char why[PLAN_WHY_MAX];
    struct plan_bucket bucket[] = {{(double)INFINITY, 1000}, {0.1, 500}, {0.2, 900}, {1, 990}}; /* in any order */
    check_true(plan_latency_from_buckets(&latency, bucket, 4, why));
    check_eq_u64(latency.answers, 1000);
    check_eq_u64(quantile(&latency, 0.25), 50 * BECALM_MS);
    check_eq_u64(quantile(&latency, 0.5), 100 * BECALM_MS);
    check_eq_u64(quantile(&latency, 0.7), 150 * BECALM_MS);
    check_eq_u64(quantile(&latency, 0.99), 1000 * BECALM_MS);
    becalm_ns beyond = 0;
    check_true(!plan_latency_quantile(&latency, 0.995, &beyond));
    check_eq_u64(beyond, 1000 * BECALM_MS);
    plan_latency_free(&latency);
}

static void test_plan_latency__of_an_empty_histogram_is_refused(void **state)
{
    (void)state;
    struct plan_latency latency;
    char why[PLAN_WHY_MAX];
    struct plan_bucket none[] = {{0.1, 0}, {(double)INFINITY, 0}};
    struct plan_bucket open[] = {{0.1, 3}, {0.2, 3}};
    struct plan_bucket nan[] = {{0.1, (double)NAN}, {(double)INFINITY, (double)NAN}};
    check_true(!plan_latency_from_buckets(&latency, none, 0, why));
    check_true(!plan_latency_from_buckets(&latency, none, 2, why));
    check_true(!plan_latency_from_buckets(&latency, open, 2, why));
    check_true(!plan_latency_from_buckets(&latency, nan, 2, why));
    check_eq_str(why, "no answers in the histogram");
    plan_latency_free(&latency);
}

static void test_plan_latency__buckets_that_cross_by_a_hair_are_straightened(void **state)
{
    (void)state;
    struct plan_latency latency;
    char why[PLAN_WHY_MAX];
    struct plan_bucket bucket[] = {{0.1, 100.001}, {0.2, 100}, {(double)INFINITY, 100}};
    check_true(plan_latency_from_buckets(&latency, bucket, 3, why));
    check_eq_u64(quantile(&latency, 0.5), 50 * BECALM_MS);
    check_eq_u64(quantile(&latency, 1), 100 * BECALM_MS);
    plan_latency_free(&latency);
}

/* 90 answers take 10 ms, 10 take 1 s: with a hedge after 10 ms only one call in a hundred meets two slow answers. */
static void test_plan_latency__with_a_hedge_is_slow_only_if_both_are(void **state)
{
    (void)state;
    char text[2048] = "";
    char why[PLAN_WHY_MAX];
    struct plan_latency latency;
    for (int i = 0; i < 100; i++) {
        strcat(text, i < 90 ? "10\n" : "1000\n");
    }
    check_true(read_text(&latency, text, why));
    becalm_ns hedged = 0;
    check_true(plan_latency_hedged(&latency, 10 * BECALM_MS, 0.99, &hedged));
    check_eq_u64(hedged, 20 * BECALM_MS);
    check_true(plan_latency_hedged(&latency, 10 * BECALM_MS, 0.995, &hedged));
    check_eq_u64(hedged, 1000 * BECALM_MS);
    check_eq_u64(quantile(&latency, 0.99), 1000 * BECALM_MS);
    plan_latency_free(&latency);
}

/* ---- tuning ---- */

static struct plan_tuning tune(becalm_ns deadline_ms, becalm_ns p50_ms, becalm_ns p99_5_ms)
{
    struct plan_tuning out;
    plan_tune(&(struct plan_tune_input){.deadline = deadline_ms * BECALM_MS,
                                        .p50 = p50_ms * BECALM_MS,
                                        .p99_5 = p99_5_ms * BECALM_MS},
              &out);
    return out;
}

static void test_plan_tune__waits_double_up_to_the_cap_and_never_overflow(void **state)
{
    (void)state;
    check_eq_u64(plan_wait(100, 350, 0), 100);
    check_eq_u64(plan_wait(100, 350, 1), 100);
    check_eq_u64(plan_wait(100, 350, 2), 200);
    check_eq_u64(plan_wait(100, 350, 3), 350);
    check_eq_u64(plan_wait(100, BECALM_NEVER, 200), BECALM_NEVER);
    check_eq_u64(plan_wait(0, 350, 9), 0);
}

static void test_plan_tune__puts_the_timeout_just_above_p99_5(void **state)
{
    (void)state;
    check_eq_u64(tune(60000, 40, 900).attempt_timeout, 990 * BECALM_MS);
    check_eq_u64(tune(60000, 40, 901).attempt_timeout, 1000 * BECALM_MS);
    check_eq_u64(tune(60000, 40, 376).attempt_timeout, 420 * BECALM_MS); /* 413.6 */
}

static void test_plan_tune__never_goes_below_what_a_policy_takes(void **state)
{
    (void)state;
    struct plan_tuning out;
    plan_tune(&(struct plan_tune_input){.deadline = 10 * BECALM_MS, .p50 = 20 * BECALM_US, .p99_5 = 80 * BECALM_US},
              &out);
    check_eq_u64(out.attempt_timeout, BECALM_MS);
    check_eq_u64(out.base, BECALM_MS);
    check_eq_u64(out.retries, 2);
}

static void test_plan_tune__waits_a_round_trip_and_100_ms_where_there_is_room(void **state)
{
    (void)state;
    check_eq_u64(tune(4000, 40, 900).base, 100 * BECALM_MS);
    check_eq_u64(tune(4000, 212, 900).base, 220 * BECALM_MS);
    check_eq_u64(tune(200, 40, 60).base, 40 * BECALM_MS); /* 2 x 66 + 100 would be too much */
}

static void test_plan_tune__takes_as_many_retries_as_fit_but_two_at_most(void **state)
{
    (void)state;
    struct plan_tuning out = tune(4000, 40, 900); /* 3 x 990 + 100 + 200 = 3270; a fourth would make 4660 */
    check_eq_u64(out.fits, 2);
    check_eq_u64(out.retries, 2);
    check_eq_u64(out.worst.all, 3270 * BECALM_MS);
    check_eq_u64(out.cap, 200 * BECALM_MS);
    check_true(!out.cut && !out.refused && out.whole);
    out = tune(3270, 40, 900);
    check_eq_u64(out.fits, 2);
    out = tune(3269, 40, 900);
    check_eq_u64(out.fits, 1);
    check_eq_u64(out.cap, 100 * BECALM_MS);
    out = tune(60000, 40, 900);
    check_eq_u64(out.fits, 8);
    check_eq_u64(out.retries, 2);
}

static void test_plan_tune__prefers_a_retry_that_may_be_cut_to_none(void **state)
{
    (void)state;
    struct plan_tuning out = tune(2000, 200, 900); /* 2 x 990 + 200 = 2180, but 990 + 200 + 200 fits */
    check_eq_u64(out.fits, 0);
    check_eq_u64(out.retries, 1);
    check_true(out.cut && out.whole);
    out = tune(1389, 200, 900);
    check_eq_u64(out.retries, 0);
    check_true(!out.cut);
    check_eq_u64(out.cap, out.base);
}

static void test_plan_tune__says_when_the_deadline_is_shorter_than_an_attempt(void **state)
{
    (void)state;
    struct plan_tuning out = tune(500, 200, 900);
    check_true(!out.whole);
    check_eq_u64(out.attempt_timeout, 500 * BECALM_MS);
    check_eq_u64(out.retries, 0);
}

static void test_plan_tune__refuses_five_retries_with_a_30_s_cap_in_2_s(void **state)
{
    (void)state;
    struct plan_tuning out;
    plan_tune(
        &(struct plan_tune_input){
            .deadline = 2 * BECALM_S, .p50 = 200 * BECALM_MS, .retries = 5, .judge = true, .max_delay = 30 * BECALM_S},
        &out);
    check_true(out.refused);
    check_eq_u64(out.common.attempts, 1200 * BECALM_MS);
    check_eq_u64(out.common.waits, 6200 * BECALM_MS);
    check_eq_u64(out.common.all, 7400 * BECALM_MS);
    check_eq_u64(out.fits, 2);
    check_eq_u64(out.attempt_timeout, 0);
}

static void test_plan_tune__accepts_a_wish_that_fits_to_the_nanosecond(void **state)
{
    (void)state;
    struct plan_tune_input input = {
        .deadline = 1200 * BECALM_MS, .p50 = 200 * BECALM_MS, .retries = 2, .judge = true}; /* 600 + 200 + 400 */
    struct plan_tuning out;
    plan_tune(&input, &out);
    check_true(!out.refused);
    input.deadline--;
    plan_tune(&input, &out);
    check_true(out.refused);
}

static void test_plan_tune__survives_every_extreme(void **state)
{
    (void)state;
    static const becalm_ns sizes[] = {1, BECALM_MS, BECALM_S, PLAN_LATENCY_MAX};
    for (size_t d = 0; d < 4; d++) {
        for (size_t p = 0; p < 4; p++) {
            for (size_t q = p; q < 4; q++) {
                struct plan_tuning out;
                plan_tune(
                    &(struct plan_tune_input){
                        .deadline = sizes[d], .p50 = sizes[p], .p99_5 = sizes[q], .retries = 100, .judge = true},
                    &out);
                check_true(out.base > 0 && out.cap >= out.base && out.attempt_timeout > 0);
                check_true(out.worst.all >= out.worst.waits);
            }
        }
    }
}

/* ---- answers of a Prometheus ---- */

static int parse(const char *text, struct plan_bucket *sample, size_t room, char why[PLAN_WHY_MAX])
{
    why[0] = '\0';
    return prometheus_parse(text, strlen(text), sample, room, why);
}

static void test_plan_prometheus__answer_without_series_has_none(void **state)
{
    (void)state;
    struct plan_bucket sample[2];
    char why[PLAN_WHY_MAX];
    assert_int_equal(
        parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}", sample, 2, why), 0);
}

static void test_plan_prometheus__answer_gives_values_and_buckets(void **state)
{
    (void)state;
    struct plan_bucket sample[3];
    char why[PLAN_WHY_MAX];
    assert_int_equal(parse("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
                           "{\"metric\":{\"le\":\"0.1\"},\"value\":[1700000000.123,\"5.77\"]},"
                           "{\"metric\":{\"le\":\"+Inf\"},\"value\":[1700000000.123,\"1e3\"]},"
                           "{\"metric\":{},\"value\":[1700000000,\"NaN\"]}]}}",
                           sample, 3, why),
                     3);
    check_near(sample[0].le, 0.1);
    check_near(sample[0].count, 5.77);
    check_true(isinf(sample[1].le) && sample[1].le > 0);
    check_near(sample[1].count, 1000);
    check_true(isnan(sample[2].count));
    check_near(sample[2].le, 0);
}

static void check_answer_refused(const char *text, const char *expected)
{
    struct plan_bucket sample[1];
    char why[PLAN_WHY_MAX];
    assert_int_equal(parse(text, sample, 1, why), -1);
    if (strncmp(why, expected, strlen(expected)) != 0) {
        print_error("\"%s\" gives \"%s\", expected \"%s\"\n", text, why, expected);
        fail();
    }
}

static void test_plan_prometheus__answer_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char strange[] = "the answer is not one of a Prometheus";
    check_answer_refused("", "the answer is not ");
    check_answer_refused("{\"status\":", "the answer is not JSON: ");
    check_answer_refused("<html></html>", strange);
    check_answer_refused("[]", strange);
    check_answer_refused("{}", strange);
    check_answer_refused("{\"status\":\"success\"}", strange);
    check_answer_refused("{\"status\":[]}", strange);
    check_answer_refused("{\"status\":\"success\",\"data\":{\"result\":{}}}", strange);
    check_answer_refused("{\"status\":\"success\",\"data\":{\"result\":[1]}}", strange);
    check_answer_refused("{\"status\":\"success\",\"data\":{\"result\":[{\"value\":[1]}]}}", strange);
    check_answer_refused("{\"status\":\"success\",\"data\":{\"result\":[{\"value\":[1,[]]}]}}", strange);
    check_answer_refused("{\"status\":\"success\",\"data\":{\"result\":[{\"value\":[1,\"five\"]}]}}", strange);
    check_answer_refused(
        "{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{\"le\":\"x\"},\"value\":[1,\"5\"]}]}}", strange);
    check_answer_refused("{\"status\":\"success\",\"data\":{\"result\":[{},{}]}}", "the answer has 2 series");
}

static void test_plan_prometheus__error_is_passed_on_without_control_characters(void **state)
{
    (void)state;
    check_answer_refused("{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse\\u001b[31m error\"}",
                         "the server says: parse [31m error");
    check_answer_refused("{\"status\":\"error\"}", "the server says: error");
}

static void test_plan_prometheus__metric_names_are_no_queries(void **state)
{
    (void)state;
    check_true(prometheus_metric_name("becalm_request_duration_seconds"));
    check_true(prometheus_metric_name("a:b_c9"));
    static const char *const wrong[] = {"", "9a", "a b", "a{", "up)or(vector(1)", "a-b", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        check_true(!prometheus_metric_name(wrong[i]));
    }
    char longer[300];
    memset(longer, 'a', sizeof(longer));
    longer[201] = '\0';
    check_true(!prometheus_metric_name(longer));
}

BECALM_TESTS(cmocka_unit_test(test_plan_figure__is_grouped_rounded_half_away_and_without_trailing_zeros),
             cmocka_unit_test(test_plan_figure__is_cut_at_the_end_of_its_room),
             cmocka_unit_test(test_plan_figure__is_finer_when_small),
             cmocka_unit_test(test_plan_figure__of_a_duration_has_three_digits),
             cmocka_unit_test(test_plan_figure__rounds_durations_up_to_the_digits_asked_for),
             cmocka_unit_test(test_plan_figure__draws_a_bar_that_is_seen_whenever_it_is_not_zero),
             cmocka_unit_test(test_plan_amplification__of_one_service_is_one),
             cmocka_unit_test(test_plan_amplification__of_ten_services_with_one_retry_is_512),
             cmocka_unit_test(test_plan_amplification__with_five_percent_is_1_551),
             cmocka_unit_test(test_plan_amplification__of_three_layers_is_the_cube_of_the_attempts),
             cmocka_unit_test(test_plan_amplification__is_not_made_worse_by_a_budget_that_nobody_uses),
             cmocka_unit_test(test_plan_contention__of_one_client_is_none),
             cmocka_unit_test(test_plan_contention__of_1000_clients_in_1024_slots_is_488_pairs),
             cmocka_unit_test(test_plan_contention__depends_on_the_jitter),
             cmocka_unit_test(test_plan_contention__is_what_dice_say),
             cmocka_unit_test(test_plan_budget__without_retries_is_one_percent),
             cmocka_unit_test(test_plan_budget__of_5_77_retries_in_100_77_requests_is_6_percent),
             cmocka_unit_test(test_plan_budget__of_a_whole_percent_is_that_percent),
             cmocka_unit_test(test_plan_budget__stops_where_retries_are_the_disease),
             cmocka_unit_test(test_plan_budget__needs_a_minimum_where_few_requests_are_in_flight),
             cmocka_unit_test(test_plan_budget__needs_none_where_many_are),
             cmocka_unit_test(test_plan_budget__says_when_even_a_window_has_too_little_traffic),
             cmocka_unit_test(test_plan_latency__of_one_line_is_every_quantile),
             cmocka_unit_test(test_plan_latency__lines_have_units_comments_and_more_decimals_than_nanoseconds),
             cmocka_unit_test(test_plan_latency__quantiles_are_by_nearest_rank),
             cmocka_unit_test(test_plan_latency__refuses_what_is_none_and_says_where),
             cmocka_unit_test(test_plan_latency__of_a_histogram_is_interpolated_as_prometheus_does),
             cmocka_unit_test(test_plan_latency__of_an_empty_histogram_is_refused),
             cmocka_unit_test(test_plan_latency__buckets_that_cross_by_a_hair_are_straightened),
             cmocka_unit_test(test_plan_latency__with_a_hedge_is_slow_only_if_both_are),
             cmocka_unit_test(test_plan_tune__waits_double_up_to_the_cap_and_never_overflow),
             cmocka_unit_test(test_plan_tune__puts_the_timeout_just_above_p99_5),
             cmocka_unit_test(test_plan_tune__never_goes_below_what_a_policy_takes),
             cmocka_unit_test(test_plan_tune__waits_a_round_trip_and_100_ms_where_there_is_room),
             cmocka_unit_test(test_plan_tune__takes_as_many_retries_as_fit_but_two_at_most),
             cmocka_unit_test(test_plan_tune__prefers_a_retry_that_may_be_cut_to_none),
             cmocka_unit_test(test_plan_tune__says_when_the_deadline_is_shorter_than_an_attempt),
             cmocka_unit_test(test_plan_tune__refuses_five_retries_with_a_30_s_cap_in_2_s),
             cmocka_unit_test(test_plan_tune__accepts_a_wish_that_fits_to_the_nanosecond),
             cmocka_unit_test(test_plan_tune__survives_every_extreme),
             cmocka_unit_test(test_plan_prometheus__answer_without_series_has_none),
             cmocka_unit_test(test_plan_prometheus__answer_gives_values_and_buckets),
             cmocka_unit_test(test_plan_prometheus__answer_that_is_none_is_refused),
             cmocka_unit_test(test_plan_prometheus__error_is_passed_on_without_control_characters),
             cmocka_unit_test(test_plan_prometheus__metric_names_are_no_queries))
