/* SPDX-License-Identifier: MIT */
#include "cmd_plan.h"

#include "plan/contention.h"

#include <inttypes.h>

#define ROUNDS      10u /* Ethernet's windows: 2^0 to 2^10 */
#define CLIENTS_MAX UINT64_C(1000000000)
#define SLOTS_MAX   UINT64_C(1000000000000)
#define BAR         30
#define BAR_BYTES   (BAR * 3 + 1)

static void print_row(uint64_t clients, uint64_t slots, uint64_t first)
{
    char window[FIGURE_MAX];
    char pairs[FIGURE_MAX];
    char alone[FIGURE_MAX];
    char bar[BAR_BYTES];
    double collisions = plan_collisions(clients, slots);
    double most = plan_collisions(clients, first);
    figure_write((double)slots, 0, window, sizeof(window));
    figure_write(collisions, 1, pairs, sizeof(pairs));
    figure_write(plan_alone(clients, slots), 1, alone, sizeof(alone));
    figure_bar(most > 0 ? collisions / most : 0, BAR, cli_utf8(), bar, sizeof(bar));
    printf("%13s  %13s  %13s%s%s\n", window, pairs, alone, *bar == '\0' ? "" : "  ", bar);
}

static bool among_rounds(uint64_t slots)
{
    return slots <= (UINT64_C(1) << ROUNDS) && (slots & (slots - 1)) == 0;
}

static void print_table(uint64_t clients, uint64_t slots)
{
    uint64_t row = 1;
    bool shown = among_rounds(slots);
    printf("%13s  %13s  %13s\n", "window", "collisions", "alone in slot");
    for (uint32_t round = 0; round <= ROUNDS; round++, row *= 2) {
        if (!shown && slots < row) {
            print_row(clients, slots, 1);
            shown = true;
        }
        print_row(clients, row, 1);
    }
    if (!shown) {
        print_row(clients, slots, 1);
    }
}

static void print_jitter(const char *kind, double pairs, const char *why)
{
    char text[FIGURE_MAX];
    figure_write(pairs, 1, text, sizeof(text));
    printf("%13s  %13s  %s\n", kind, text, why);
}

static void print_text(uint64_t clients, uint64_t slots)
{
    struct plan_jitter jitter = plan_jitter(clients, slots);
    char count[FIGURE_MAX];
    char window[FIGURE_MAX];
    char pairs[FIGURE_MAX];
    char quiet[FIGURE_MAX];
    figure_write((double)clients, 0, count, sizeof(count));
    figure_write((double)slots, 0, window, sizeof(window));
    figure_write(plan_collisions(clients, slots), 1, pairs, sizeof(pairs));
    figure_write(plan_quiet_window(clients), 0, quiet, sizeof(quiet));
    plan_print_heading(clients == 1 ? "%s client that failed chooses from a window of slots"
                                    : "%s clients that failed together choose from a window of slots",
                       count);
    print_table(clients, slots);
    putchar('\n');
    plan_print_sentence("In %s slot%s %s collisions are expected: pairs in the same slot, N(N-1)/2W.", window,
                        slots == 1 ? "" : "s", pairs);
    if (clients > 2) {
        plan_print_sentence("For less than one it takes more than %s slots, N(N-1)/2.", quiet);
    }
    putchar('\n');
    plan_print_heading("The effect of jitter, when the delay is %s slot%s long", window, slots == 1 ? "" : "s");
    printf("%13s  %13s\n", "jitter", "collisions");
    print_jitter("none", jitter.none, "all wait the same time: one slot");
    print_jitter("full", jitter.full, "over the whole delay");
    print_jitter("equal", jitter.equal, "over its second half");
    print_jitter("decorrelated", jitter.decorrelated, "at the cap, where two of three wait for it");
}

static void json_row(struct json *json, uint64_t clients, uint64_t slots)
{
    json_object(json, NULL);
    json_integer(json, "window", slots);
    json_number(json, "collisions", plan_collisions(clients, slots), 3);
    json_number(json, "alone", plan_alone(clients, slots), 3);
    json_object_end(json);
}

static void print_json(uint64_t clients, uint64_t slots)
{
    struct json json;
    struct plan_jitter jitter = plan_jitter(clients, slots);
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_integer(&json, "clients", clients);
    json_integer(&json, "window", slots);
    json_number(&json, "collisions", plan_collisions(clients, slots), 3);
    json_number(&json, "alone", plan_alone(clients, slots), 3);
    json_number(&json, "quiet_window", plan_quiet_window(clients), 0);
    json_array(&json, "windows");
    for (uint32_t round = 0; round <= ROUNDS; round++) {
        json_row(&json, clients, UINT64_C(1) << round);
    }
    json_array_end(&json);
    json_object(&json, "jitter");
    json_number(&json, "none", jitter.none, 3);
    json_number(&json, "full", jitter.full, 3);
    json_number(&json, "equal", jitter.equal, 3);
    json_number(&json, "decorrelated", jitter.decorrelated, 3);
    json_object_end(&json);
    json_object_end(&json);
    json_end(&json);
}

int plan_run_contention(const struct cli_command *command, const struct cli_args *args)
{
    struct plan_reader reader = {.command = command, .args = args};
    uint64_t clients = plan_read_integer(&reader, "clients", 1, CLIENTS_MAX, 0);
    uint64_t slots = plan_read_integer(&reader, "window", 1, SLOTS_MAX, UINT64_C(1) << ROUNDS);
    if (reader.rc == 0 && clients == 0) {
        reader.rc = cli_usage(command, "--clients is missing: --clients N");
    }
    if (reader.rc != 0) {
        return reader.rc;
    }
    if (plan_has(&reader, "json")) {
        print_json(clients, slots);
    } else {
        print_text(clients, slots);
    }
    return 0;
}
