/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "cmd_sim.h"
#include "cli/cli.h"

#include "policy/diag.h"
#include "policy/value.h"
#include "report/timeline.h"
#include "scenario/builtin.h"
#include "sim/reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A name that holds a slash or ends in .yaml is a file. */
static bool is_path(const char *name)
{
    size_t length = strlen(name);
    return strchr(name, '/') != NULL || (length > 5 && strcmp(name + length - 5, ".yaml") == 0);
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Prints the errors and warnings about a file; returns the exit code. */
static int diags_tell(struct sim *s, int rc)
{
    diags_sort(s->diags);
    for (uint32_t i = 0; i < s->diags->count; i++) {
        char line[1024];
        becalm_diag_write(&s->diags->diag[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    uint32_t all = s->diags->errors + s->diags->warnings;
    if (all > s->diags->count) {
        fprintf(stderr, "and %" PRIu32 " more\n", all - s->diags->count);
    }
    if (s->diags->errors > 1) {
        fprintf(stderr, "%" PRIu32 " errors\n", s->diags->errors);
    }
    memset(s->diags, 0, sizeof *s->diags);
    return rc == 0 ? 0 : rc == BECALM_ENOMEM ? sim_no_memory(s) : 1;
}

/* ---- the scenario ---- */

static int scenario_open(struct sim *s, const char *name)
{
    const struct becalm_load_options options = {.set = s->scenario_set};
    const struct embedded *builtin = builtin_find(name);
    int rc = 0;
    if (is_path(name)) {
        rc = scenario_load(&s->file, name, &options, s->diags);
    } else if (builtin != NULL) {
        rc = scenario_parse(&s->file, name, (const char *)builtin->text, builtin->length, &options, s->diags);
    } else if (builtin_nearest(name) != NULL) {
        return cli_usage(s->command, "there is no scenario '%s'; did you mean '%s'?", name, builtin_nearest(name));
    } else {
        return cli_usage(s->command, "there is no scenario '%s'; --list names them, and files end in .yaml", name);
    }
    rc = diags_tell(s, rc);
    s->plan = rc == 0 ? scenario_of(s->file) : NULL;
    return rc;
}

static int graph_open(struct sim *s, const char *path)
{
    const struct becalm_load_options policy = {.shared_budgets = true, .substitute = true};
    const struct becalm_load_options options = {.set = s->scenario_set};
    struct becalm_config *config = NULL;
    char *text = NULL;
    size_t length = 0;
    if (!is_path(path)) {
        return cli_usage(s->command, "--graph is a policy file, which holds a / or ends in .yaml; '%s' does not", path);
    }
    int rc = diags_tell(s, becalm_config_load(&config, path, &policy, s->diags));
    rc = rc == 0 ? sim_graph_write(s, config, path, &text, &length) : rc;
    if (rc == 0) {
        rc = diags_tell(s, scenario_parse(&s->file, "graph", text, length, &options, s->diags));
        s->plan = rc == 0 ? scenario_of(s->file) : NULL;
    }
    free(text);
    becalm_config_free(config);
    return rc;
}

/* ---- policies ---- */

/* A policy of ours may have more services than the scenario. That is no error, but a slip of the pen looks the same. */
static void services_warn(const struct sim *s, const struct choice *choice, const struct becalm_config *config)
{
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        const char *name = becalm_config_service(config, i)->name;
        if (scenario_find(s->plan, name) == SCENARIO_NONE) {
            fprintf(stderr, "becalm sim: warning: %s: the scenario has no service '%s', so its rules are not used\n",
                    choice->name, name);
        }
    }
}

static int choice_from_file(struct sim *s, struct choice *choice)
{
    const struct becalm_load_options options = {.shared_budgets = true, .substitute = true, .set = s->policy_set};
    struct becalm_config *config = NULL;
    int rc = diags_tell(s, becalm_config_load(&config, choice->name, &options, s->diags));
    if (rc == 0) {
        services_warn(s, choice, config);
        rc = file_policies_make(&choice->policies, config, s->plan, &choice->options) == 0 ? 0 : sim_no_memory(s);
    }
    becalm_config_free(config);
    return rc;
}

/* Our default policy with --set. Timeouts that it does not touch stay the scenario's, as without it. */
static int choice_from_set(struct sim *s, struct choice *choice)
{
    static const char text[] = "version: 1\n";
    const struct becalm_load_options options = {.shared_budgets = true, .set = s->policy_set};
    struct becalm_config *config = NULL;
    int rc = becalm_config_parse(&config, "becalm", text, sizeof text - 1, &options, s->diags);
    rc = diags_tell(s, rc);
    if (rc == 0) {
        rc = file_policies_make_built_in(&choice->policies, config, s->plan, &choice->options) == 0 ? 0
                                                                                                    : sim_no_memory(s);
    }
    becalm_config_free(config);
    return rc;
}

static int unknown_policy(const struct sim *s, const char *name)
{
    const char *names[SIM_POLICIES_MAX];
    uint32_t count = 0;
    for (unsigned i = 0; reference_name(s->plan, i) != NULL && count < SIM_POLICIES_MAX; i++) {
        names[count++] = reference_name(s->plan, i);
    }
    for (unsigned i = 0; s->plan->policy_count > 0 && reference_at(i) != NULL && count < SIM_POLICIES_MAX; i++) {
        names[count++] = reference_at(i)->name;
    }
    const char *nearest = value_nearest(name, names, count);
    if (nearest == NULL) {
        return cli_usage(s->command, "there is no policy '%s'; --list names them, and files end in .yaml", name);
    }
    return cli_usage(s->command, "there is no policy '%s'; did you mean '%s'?", name, nearest);
}

static bool is_changeable(const struct choice *choice)
{
    return is_path(choice->name) || strcmp(choice->name, "becalm") == 0;
}

static int choice_load(struct sim *s, struct choice *choice)
{
    if (is_path(choice->name)) {
        return choice_from_file(s, choice);
    }
    if (s->policy_set[0] != NULL && is_changeable(choice)) {
        return choice_from_set(s, choice);
    }
    bool known = reference_options(choice->name, s->plan, &choice->hop, &choice->gate, &choice->options);
    return known ? 0 : unknown_policy(s, choice->name);
}

static int choice_add(struct sim *s, const char *name)
{
    for (uint32_t i = 0; i < s->choice_count; i++) {
        if (strcmp(s->choices[i].name, name) == 0) {
            return 0;
        }
    }
    if (s->choice_count == SIM_POLICIES_MAX) {
        return cli_usage(s->command, "too many policies: at most %u", SIM_POLICIES_MAX);
    }
    s->choices[s->choice_count++].name = name;
    return 0;
}

static int choices_named(struct sim *s, const char *compare)
{
    int rc = 0;
    s->compare = strdup(compare);
    if (s->compare == NULL) {
        return sim_no_memory(s);
    }
    for (char *name = s->compare, *next; rc == 0 && name != NULL; name = next) {
        next = strchr(name, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (name[0] == '\0') {
            rc = cli_usage(s->command, "--compare is 'all' or names with commas between them; '%s' is not", compare);
        } else if (strcmp(name, "all") == 0) {
            const char *each;
            for (unsigned i = 0; rc == 0 && (each = reference_name(s->plan, i)) != NULL; i++) {
                rc = choice_add(s, each);
            }
        } else {
            rc = choice_add(s, name);
        }
    }
    return rc;
}

/* The scenario's own last policy if it has policies, else `becalm`. */
static const char *default_policy(const struct sim *s)
{
    unsigned last = 0;
    while (reference_name(s->plan, last + 1) != NULL) {
        last++;
    }
    return reference_name(s->plan, last);
}

/* policy.services.NAME...: of a service that is there. A policy file may name others, but nothing would come of it. */
static int set_check(const struct sim *s, const char *set)
{
    static const char start[] = "services.";
    const char *names[SCENARIO_SERVICES_MAX];
    char name[128];
    if (!starts_with(set, start)) {
        return 0;
    }
    const char *from = set + strlen(start);
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(from, ".="), from);
    if (scenario_find(s->plan, name) != SCENARIO_NONE) {
        return 0;
    }
    for (uint32_t i = 0; i < s->plan->service_count; i++) {
        names[i] = s->plan->services[i].name;
    }
    const char *near = value_nearest(name, names, s->plan->service_count);
    return cli_usage(s->command, "--set policy.%s: the scenario has no service '%s'%s%s%s", set, name,
                     near == NULL ? "" : "; did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
}

/* Those of --compare, then that of --policy; without either, the default one. */
static int choices_load(struct sim *s)
{
    const char *compare = cli_value(s->command, s->args, "compare");
    const char *policy = cli_value(s->command, s->args, "policy");
    bool changeable = false;
    int rc = 0;
    for (const char **set = s->policy_set; rc == 0 && *set != NULL; set++) {
        rc = set_check(s, *set);
    }
    if (rc != 0) {
        return rc;
    }
    s->choices = calloc(SIM_POLICIES_MAX, sizeof *s->choices);
    if (s->choices == NULL) {
        return sim_no_memory(s);
    }
    rc = compare == NULL ? 0 : choices_named(s, compare);
    const char *graph = cli_value(s->command, s->args, "graph");
    if (rc == 0 && (policy != NULL || graph != NULL || compare == NULL)) {
        rc = choice_add(s, policy != NULL ? policy : graph != NULL ? graph : default_policy(s));
    }
    for (uint32_t i = 0; rc == 0 && i < s->choice_count; i++) {
        changeable |= is_changeable(&s->choices[i]);
        rc = choice_load(s, &s->choices[i]);
    }
    if (rc == 0 && s->policy_set[0] != NULL && !changeable) {
        rc = cli_usage(s->command, "--set %s changes becalm or a policy file, and '%s' is neither", s->policy_set[0],
                       s->choices[0].name);
    }
    return rc;
}

/* ---- the command line ---- */

/* defaults.KEY and policy.KEY are of the policy, all other keys of the scenario. */
static bool sets_sort(struct sim *s)
{
    const char *const *all = s->set = cli_values(s->command, s->args, "set");
    size_t count = 0;
    while (all[count] != NULL) {
        count++;
    }
    s->scenario_set = calloc(count + 1, sizeof *s->scenario_set);
    s->policy_set = calloc(count + 1, sizeof *s->policy_set);
    if (s->scenario_set == NULL || s->policy_set == NULL) {
        return false;
    }
    size_t scenario = 0;
    size_t policy = 0;
    for (size_t i = 0; i < count; i++) {
        if (starts_with(all[i], "policy.")) {
            s->policy_set[policy++] = all[i] + strlen("policy.");
        } else if (starts_with(all[i], "defaults.")) {
            s->policy_set[policy++] = all[i];
        } else {
            s->scenario_set[scenario++] = all[i];
        }
    }
    return true;
}

static int integer_read(const struct sim *s, const char *option, uint64_t least, uint64_t most, uint64_t *value)
{
    const char *text = cli_value(s->command, s->args, option);
    if (text != NULL && (!value_integer(text, value) || *value < least || *value > most)) {
        return cli_usage(s->command, "--%s is an integer from %" PRIu64 " to %" PRIu64 "; '%s' is not", option, least,
                         most, text);
    }
    return 0;
}

/* A timeline is that of one run, and text. */
static int trace_read(struct sim *s)
{
    static const char *const others[] = {"compare", "seeds", "json", "html", "picture"};
    uint64_t calls = 3;
    const char *from = cli_value(s->command, s->args, "trace-from");
    if ((sim_has(s, "trace-calls") || from != NULL) && !sim_has(s, "trace")) {
        return cli_usage(s->command, "--trace-calls and --trace-from need --trace");
    }
    s->trace_from = BECALM_NEVER;
    if (from != NULL && !value_duration(from, &s->trace_from)) {
        return cli_usage(s->command, "--trace-from is a time of the run, like 75s; '%s' is not", from);
    }
    for (size_t i = 0; sim_has(s, "trace") && i < sizeof others / sizeof *others; i++) {
        if (sim_has(s, others[i])) {
            return cli_usage(s->command, "--trace shows calls of one run, without --%s", others[i]);
        }
    }
    int rc = integer_read(s, "trace-calls", 1, TIMELINE_CALLS_MAX, &calls);
    s->trace_calls = (uint32_t)calls;
    return rc;
}

static int options_read(struct sim *s)
{
    static const char *const files[] = {"html", "picture"};
    uint64_t seeds = 1;
    int rc = integer_read(s, "seed", 0, SIM_SEED_MAX - SIM_SEEDS_MAX, &s->seed);
    if (rc == 0) {
        rc = integer_read(s, "seeds", 1, SIM_SEEDS_MAX, &seeds);
    }
    s->seeds = (uint32_t)seeds;
    if (rc == 0) {
        rc = trace_read(s);
    }
    for (size_t i = 0; rc == 0 && i < sizeof files / sizeof *files; i++) {
        const char *path = cli_value(s->command, s->args, files[i]);
        if (path != NULL && strcmp(path, "-") == 0) {
            rc = cli_usage(s->command, "--%s writes a file, and '-' is no name for one", files[i]);
        }
    }
    if (rc == 0 && sim_has(s, "series") && !sim_has(s, "json")) {
        rc = cli_usage(s->command, "--series needs --json");
    }
    if (rc == 0 && !sets_sort(s)) {
        rc = sim_no_memory(s);
    }
    return rc;
}

/* ---- --list ---- */

/* The sentence about a built-in scenario is in its file. */
static struct scenario_file *builtin_open(struct sim *s, const struct embedded *builtin)
{
    struct scenario_file *file = NULL;
    int rc = scenario_parse(&file, builtin->name, (const char *)builtin->text, builtin->length, NULL, s->diags);
    return diags_tell(s, rc) == 0 ? file : NULL;
}

static void list_row(struct json *json, const struct report_style *style, const char *name, const char *about)
{
    if (json == NULL) {
        report_term(stdout, style, name, about);
        return;
    }
    json_object(json, NULL);
    json_text(json, "name", name);
    json_text(json, "about", about);
    json_object_end(json);
}

static void list_scenarios(struct sim *s, struct json *json, const struct report_style *style)
{
    for (const struct embedded *each = embedded_scenarios; each->name != NULL; each++) {
        struct scenario_file *file = builtin_open(s, each);
        const char *about = file == NULL ? NULL : scenario_of(file)->about;
        list_row(json, style, each->name, about == NULL ? "" : about);
        scenario_free(file);
    }
}

static void list_policies(struct json *json, const struct report_style *style)
{
    const struct reference *each;
    for (unsigned i = 0; (each = reference_at(i)) != NULL; i++) {
        list_row(json, style, each->name, each->about);
    }
}

static int list(struct sim *s)
{
    struct report_style style = sim_style();
    if (sim_has(s, "json")) {
        struct json json;
        json_begin(&json, stdout);
        json_object(&json, NULL);
        json_array(&json, "scenarios");
        list_scenarios(s, &json, &style);
        json_array_end(&json);
        json_array(&json, "policies");
        list_policies(&json, &style);
        json_array_end(&json);
        json_object_end(&json);
        json_end(&json);
        return 0;
    }
    puts("Scenarios:");
    list_scenarios(s, NULL, &style);
    puts("\nPolicies:");
    list_policies(NULL, &style);
    return 0;
}

/* ---- the command ---- */

static void sim_free(struct sim *s)
{
    for (uint32_t i = 0; i < s->choice_count; i++) {
        file_policies_free(&s->choices[i].policies);
    }
    free(s->choices);
    free(s->compare);
    scenario_free(s->file);
    free(s->scenario_set);
    free(s->policy_set);
    free(s->diags);
}

static int sim_run(const struct cli_command *command, const struct cli_args *args)
{
    struct sim s = {.command = command, .args = args, .seed = 1};
    const char *graph = cli_value(command, args, "graph");
    uint32_t wanted = cli_has(command, args, "list") || graph != NULL ? 0 : 1;
    int rc = 0;
    if (args->word_count > wanted) {
        return cli_usage(command, "unexpected argument '%s'", args->words[wanted]);
    }
    if (args->word_count < wanted) {
        return cli_usage(command, "which scenario? 'becalm sim --list' names those that are built in");
    }
    if (cli_has(command, args, "kill") && graph == NULL) {
        return cli_usage(command, "--kill needs --graph");
    }
    bool lists = cli_has(command, args, "list");
    s.diags = calloc(1, sizeof *s.diags);
    rc = s.diags == NULL ? sim_no_memory(&s) : lists ? list(&s) : options_read(&s);
    if (rc == 0 && !lists) {
        rc = graph != NULL ? graph_open(&s, graph) : scenario_open(&s, args->words[0]);
        rc = rc == 0 ? choices_load(&s) : rc;
        rc = rc == 0 ? sim_runs(&s) : rc;
    }
    sim_free(&s);
    return rc;
}

#define POLICY_WORDS "none naive jitter breaker envoy finagle grpc sre sre-throttle aws becalm"

static const struct cli_option options_of_sim[] = {
    {.name = "policy",
     .argument = "NAME|FILE",
     .help = "the policy of every hop; a file holds a / or ends in .yaml (default: becalm, or the scenario's last)",
     .complete = CLI_WORDS,
     .words = POLICY_WORDS},
    {.name = "compare",
     .argument = "NAME,...",
     .help = "run these policies, or 'all', and print one table",
     .complete = CLI_WORDS,
     .words = "all " POLICY_WORDS},
    {.name = "graph",
     .argument = "FILE",
     .help = "no SCENARIO: the call graph of this policy file, run with its rules",
     .complete = CLI_FILE},
    {.name = "kill", .argument = "NAME", .help = "with --graph: the service that is dead for 30 s"},
    {.name = "seed", .argument = "N", .help = "the seed of the random numbers (default: 1)"},
    {.name = "seeds", .argument = "N", .help = "run N seeds from there on, and print the spread"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .help = "override a key of the scenario, or of the policy: defaults.KEY; may be repeated",
     .many = true},
    {.name = "json", .help = "print the figures as JSON"},
    {.name = "series", .help = "with --json: also the counts of each second"},
    {.name = "html",
     .argument = "FILE",
     .help = "write a page with charts, which needs no network",
     .complete = CLI_FILE},
    {.name = "picture",
     .argument = "FILE",
     .help = "write one SVG picture: success over time, by policy",
     .complete = CLI_FILE},
    {.name = "trace", .help = "print the timeline of single calls: the first of the fault"},
    {.name = "trace-from", .argument = "TIME", .help = "with --trace: the first from this time of the run on"},
    {.name = "trace-calls", .argument = "N", .help = "with --trace: the number of calls (default: 3)"},
    {.name = "timing", .help = "print the speed of the simulator on standard error"},
    {.name = "list", .help = "print the scenarios and policies that are built in"},
    {.name = NULL},
};

const struct cli_command cmd_sim = {
    .name = "sim",
    .summary = "run an incident in virtual time, to see the effect of a policy",
    .usage = "sim [options] SCENARIO",
    .purpose = "Runs clients, services and faults in virtual time, with the engine and the\n"
               "policy that run in production. Prints how much load retries make, how many calls\n"
               "succeed, and when the services have recovered. SCENARIO is a built-in name, or a\n"
               "file if it has a / or ends in .yaml. The same seed gives the same result on\n"
               "every machine.",
    .options = options_of_sim,
    .examples = "  becalm sim metastable\n"
                "  becalm sim metastable --compare all\n"
                "  becalm sim metastable --compare none,naive,becalm --html storm.html\n"
                "  becalm sim metastable --policy breaker --trace\n"
                "  becalm sim ./checkout.yaml --policy policy.yaml --seeds 10\n"
                "  becalm sim --graph policy.yaml --kill ledger\n"
                "  becalm sim chain --set defaults.budget.percent=5 --json\n",
    .complete = CLI_WORDS,
    .words = embedded_scenarios_words,
    .run = sim_run,
};
