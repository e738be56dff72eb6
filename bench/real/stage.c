/* SPDX-License-Identifier: MIT */
/* The real world of a scenario without the proxies: its services, and its clients, which make the same calls as a
 * simulated seed at the same instants. It is one process, so that all parts have one clock.
 *
 *   stage plan SCENARIO                 prints the processes to start, as JSON
 *   stage run SCENARIO SEED WIRES       runs it: prints "ready", waits for a line, and prints the results, as JSON
 *
 * WIRES is a file with a line for each of these:
 *
 *   host SERVICE NUMBER ADDRESS         where a host listens
 *   via FROM NUMBER ADDRESS             the proxy of the n-th caller of a client, or instance of a service */
#define _GNU_SOURCE

#include "service.h"

#include <becalm/rand.h>
#include <inttypes.h>

#include "sim/reference.h"

enum { NAME_MAX_BYTES = 64, DRAIN_SECONDS = 20, STATUS_MAX = 600 };

/* A client, or a service that calls others: one proxy for each of its callers. */
struct from {
    const char *name;
    struct caller *caller;
    uint32_t count;
};

/* A call as the simulated seed has it. */
struct planned_call {
    becalm_ns at;
    uint32_t client;
};

struct client {
    uint64_t *begun;
    uint64_t *good; /* both by the second in which the call began */
    uint64_t *latency_us;
};

struct fault {
    struct timer timer; /* first */
    struct stage *stage;
    const struct scenario_fault *plan;
};

struct stage {
    struct loop loop;
    struct dist_tables tables;
    const struct scenario *plan;
    uint32_t seconds;
    struct service *service;
    struct client *client;
    struct from *from; /* clients, then services */
    struct fault *fault;
    struct timer next_call;
    struct planned_call *call;
    size_t calls, calls_size, calls_made;
    uint64_t newest; /* while calls are collected: the latest call of the simulation */
    size_t pending;
    uint64_t status[STATUS_MAX];
};

/* A client's call in progress. */
struct client_call {
    struct ask ask; /* first */
    struct stage *stage;
    uint32_t client;
    becalm_ns began_at;
};

struct loop *stage_loop(struct stage *stage)
{
    return &stage->loop;
}

const struct dist_tables *stage_tables(const struct stage *stage)
{
    return &stage->tables;
}

uint32_t stage_second(const struct stage *stage)
{
    becalm_ns second = stage->loop.now / BECALM_S;
    return second < stage->seconds ? (uint32_t)second : UINT32_MAX;
}

static struct caller *caller_draw(struct stage *stage, const struct from *from)
{
    return &from->caller[becalm_rand_below(becalm_rand_next(&stage->loop.random), from->count)];
}

struct caller *stage_caller(struct stage *stage, const struct service *from, uint32_t callee)
{
    (void)callee; /* one proxy knows all of them */
    return caller_draw(stage, &stage->from[stage->plan->client_count + (uint32_t)(from - stage->service)]);
}

static void give_up(const char *what, const char *name)
{
    fprintf(stderr, "stage: %s: %s\n", name, what);
    exit(2);
}

/* ---- the calls of a seed ---- */

static void call_note(void *self, const struct world_trace *trace)
{
    struct stage *stage = self;
    if (trace->call <= stage->newest) {
        return;
    }
    stage->newest = trace->call; /* the first that is heard of a call is its beginning */
    if (stage->calls == stage->calls_size) {
        stage->calls_size = stage->calls_size == 0 ? 4096 : stage->calls_size * 2;
        stage->call = realloc(stage->call, stage->calls_size * sizeof *stage->call);
        must(stage->call != NULL, "realloc");
    }
    struct planned_call *call = &stage->call[stage->calls++];
    call->at = trace->event->at.now;
    for (call->client = 0; strcmp(stage->plan->clients[call->client].name, trace->from) != 0; call->client++) {
    }
}

/* Arrivals draw from a stream of their own, so they are the same with every policy: here with none. */
static void calls_collect(struct stage *stage, uint64_t seed)
{
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct world_options options;
    struct world_result result;
    must(reference_options("none", stage->plan, &hop, &gate, &options), "the policy none");
    options.seed = seed;
    options.trace = call_note;
    options.trace_self = stage;
    must(world_run(stage->plan, &options, &result) == 0, "the simulation");
    world_result_free(stage->plan, &result);
}

/* ---- clients ---- */

static void call_done(struct ask *ask, unsigned status, const char *mark)
{
    struct client_call *call = (struct client_call *)ask;
    struct stage *stage = call->stage;
    uint32_t second = (uint32_t)(call->began_at / BECALM_S);
    (void)mark;
    stage->status[status < STATUS_MAX ? status : 0]++;
    if (status == 200) {
        stage->client[call->client].good[second]++;
        stage->client[call->client].latency_us[second] += (stage->loop.now - call->began_at) / BECALM_US;
    }
    stage->pending--;
    free(call);
}

static void call_make(struct stage *stage, const struct planned_call *planned)
{
    struct client_call *call = must_calloc(1, sizeof *call);
    const struct scenario_client *plan = &stage->plan->clients[planned->client];
    *call = (struct client_call){{call_done}, stage, planned->client, planned->at};
    stage->client[planned->client].begun[planned->at / BECALM_S]++;
    stage->pending++;
    caller_ask(caller_draw(stage, &stage->from[planned->client]), &call->ask,
               &(struct question){plan->to, BECALM_NEVER});
}

static void calls_due(struct timer *timer)
{
    struct stage *stage = (struct stage *)((char *)timer - offsetof(struct stage, next_call));
    while (stage->calls_made < stage->calls && stage->call[stage->calls_made].at <= stage->loop.now) {
        call_make(stage, &stage->call[stage->calls_made++]);
    }
    if (stage->calls_made < stage->calls) {
        loop_arm(&stage->loop, timer, stage->call[stage->calls_made].at);
    }
}

/* ---- faults ---- */

/* The same turns as in src/sim/fault.c. */
static void fault_turns(struct timer *timer)
{
    struct fault *fault = (struct fault *)timer;
    const struct scenario_fault *plan = fault->plan;
    becalm_ns since = timer->at - plan->at;
    bool on = since < plan->length;
    becalm_ns next = plan->length;
    if (on && plan->on > 0) {
        becalm_ns phase = since % (plan->on + plan->off);
        on = phase < plan->on;
        next = becalm_ns_min(next, since - phase + (on ? plan->on : plan->on + plan->off));
    }
    if (on && plan->kind == FAULT_ROLLING) {
        next = becalm_ns_min(next, (since / plan->each + 1) * plan->each);
    }
    if (plan->kind != FAULT_SURGE) {
        service_turn(&fault->stage->service[scenario_find(fault->stage->plan, plan->service)], plan, on, since);
    }
    if (since < plan->length) {
        loop_arm(&fault->stage->loop, timer, plan->at + next);
    }
}

static void faults_begin(struct stage *stage)
{
    stage->fault = must_calloc(stage->plan->fault_count + 1, sizeof *stage->fault);
    for (uint32_t i = 0; i < stage->plan->fault_count; i++) {
        struct fault *fault = &stage->fault[i];
        *fault = (struct fault){{.fire = fault_turns}, stage, &stage->plan->faults[i]};
        loop_arm(&stage->loop, &fault->timer, fault->plan->at);
    }
}

/* ---- scenarios that can't be staged ---- */

static void fault_check(const struct scenario *plan, const struct scenario_fault *fault)
{
    bool of_store = fault->kind == FAULT_STORE || fault->kind == FAULT_KILL_STORE || fault->kind == FAULT_HANG_STORE ||
                    fault->kind == FAULT_EMPTY_STORE;
    if (fault->kind == FAULT_CUT_CALLERS || of_store || fault->kind == FAULT_LOSE_CONNECTIONS || fault->from != NULL ||
        plan->shared) {
        give_up("such a fault can't be staged", fault->name);
    }
    if (fault->kind == FAULT_SWALLOW && plan->pool_max == 0) {
        give_up("real connections are kept, and only new ones are swallowed: give the scenario a pool", fault->name);
    }
}

static void plan_check(const struct scenario *plan)
{
    for (uint32_t i = 0; i < plan->client_count; i++) {
        const struct scenario_client *client = &plan->clients[i];
        if (client->rate_milli == 0 || client->share_ppm != NULL || client->role == ROLE_LIBRARY) {
            give_up("a client needs a rate, no endpoints, and a role that is a proxy: sidecar or gateway",
                    client->name);
        }
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct scenario_service *service = &plan->services[i];
        bool calls = service->calls != NULL && service->calls[0] != NULL;
        if (service->endpoint_count > 0 || service->row || service->lifo || service->codel || service->effect ||
            service->quota_milli > 0) {
            give_up("endpoints, rows, effects, quotas and queues other than fifo can't be staged", service->name);
        }
        if (calls && service->role == ROLE_LIBRARY) {
            give_up("whoever calls others needs a role that is a proxy: sidecar or gateway", service->name);
        }
    }
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        fault_check(plan, &plan->faults[i]);
    }
}

/* ---- JSON ---- */

static void put_words(const char *const *words)
{
    putchar('[');
    for (uint32_t i = 0; words != NULL && words[i] != NULL; i++) {
        printf("%s\"%s\"", i == 0 ? "" : ", ", words[i]);
    }
    putchar(']');
}

static void put_counts(const char *name, const uint64_t *count, uint32_t seconds)
{
    printf("\"%s\": [", name);
    for (uint32_t i = 0; i < seconds; i++) {
        printf("%s%" PRIu64, i == 0 ? "" : ", ", count[i]);
    }
    putchar(']');
}

static const char *role_word(enum scenario_role role)
{
    return role == ROLE_GATEWAY ? "gateway" : "sidecar";
}

/* Prints the processes that the driver has to start. Names of a scenario have no quotes. */
static void plan_print(const struct scenario *plan)
{
    struct fault_span span = {0};
    bool faulty = scenario_fault_span(plan, &span);
    printf("{\"seconds\": %" PRIu64 ", \"timeoutMs\": %" PRIu64 ", \"fault\": ", plan->length / BECALM_S,
           reference_timeout(plan) / BECALM_MS);
    if (faulty) {
        printf("{\"at\": %.3f, \"over\": %.3f, \"service\": \"%s\"}", (double)span.at / 1e9, (double)span.over_at / 1e9,
               plan->faults[span.first].kind == FAULT_SURGE ? "" : plan->faults[span.first].service);
    } else {
        printf("null");
    }
    printf(",\n \"clients\": {");
    for (uint32_t i = 0; i < plan->client_count; i++) {
        const struct scenario_client *client = &plan->clients[i];
        becalm_ns timeout = client->timeout > 0 ? client->timeout : reference_timeout(plan);
        printf("%s\"%s\": {\"to\": \"%s\", \"callers\": %" PRIu32
               ", \"role\": \"%s\", \"retries\": %s, \"timeoutMs\": %" PRIu64 "}",
               i == 0 ? "" : ", ", client->name, client->to, client->callers, role_word(client->role),
               client->retries ? "true" : "false", timeout / BECALM_MS);
    }
    printf("},\n \"services\": {");
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct scenario_service *service = &plan->services[i];
        printf("%s\"%s\": {\"hosts\": %" PRIu32 ", \"gate\": %s, \"gateRetries\": %s, \"instances\": %" PRIu32
               ", \"role\": \"%s\", \"calls\": ",
               i == 0 ? "" : ", ", service->name, service->hosts, service->gate ? "true" : "false",
               service->gate_retries ? "true" : "false", service->instances, role_word(service->role));
        put_words(service->calls);
        putchar('}');
    }
    printf("}}\n");
}

static void result_print(struct stage *stage)
{
    printf("{\"late\": {\"medianUs\": %" PRIu32 ", \"p99Us\": %" PRIu32 "}, \"unanswered\": %zu,\n \"status\": {",
           loop_late_us(&stage->loop, 500000), loop_late_us(&stage->loop, 990000), stage->pending);
    const char *comma = "";
    for (unsigned i = 0; i < STATUS_MAX; i++) {
        if (stage->status[i] > 0) {
            printf("%s\"%u\": %" PRIu64, comma, i, stage->status[i]);
            comma = ", ";
        }
    }
    printf("},\n \"clients\": {");
    for (uint32_t i = 0; i < stage->plan->client_count; i++) {
        printf("%s\"%s\": {", i == 0 ? "" : ",\n  ", stage->plan->clients[i].name);
        put_counts("calls", stage->client[i].begun, stage->seconds);
        printf(", ");
        put_counts("successes", stage->client[i].good, stage->seconds);
        printf(", ");
        put_counts("latencyUs", stage->client[i].latency_us, stage->seconds);
        putchar('}');
    }
    printf("},\n \"services\": {");
    for (uint32_t i = 0; i < stage->plan->service_count; i++) {
        const struct service *service = &stage->service[i];
        printf("%s\"%s\": {\"requests\": %" PRIu64 ", ", i == 0 ? "" : ",\n  ", service->plan->name, service->requests);
        put_counts("arrivals", service->arrivals, stage->seconds);
        printf(", ");
        put_counts("good", service->good, stage->seconds);
        printf(", ");
        put_counts("failed", service->failed, stage->seconds);
        putchar('}');
    }
    printf("}}\n");
}

/* ---- beginning and end ---- */

static void stage_make(struct stage *stage, const struct scenario *plan, uint64_t seed)
{
    stage->plan = plan;
    stage->seconds = (uint32_t)(plan->length / BECALM_S);
    loop_make(&stage->loop, seed);
    dist_init(&stage->tables);
    stage->service = must_calloc(plan->service_count, sizeof *stage->service);
    stage->client = must_calloc(plan->client_count, sizeof *stage->client);
    stage->from = must_calloc(plan->client_count + plan->service_count, sizeof *stage->from);
    for (uint32_t i = 0; i < plan->client_count; i++) {
        stage->client[i].begun = must_calloc(stage->seconds, sizeof(uint64_t));
        stage->client[i].good = must_calloc(stage->seconds, sizeof(uint64_t));
        stage->client[i].latency_us = must_calloc(stage->seconds, sizeof(uint64_t));
        stage->from[i] = (struct from){plan->clients[i].name, NULL, plan->clients[i].callers};
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct scenario_service *service = &plan->services[i];
        service_make(&stage->service[i], stage, service, stage->seconds);
        stage->from[plan->client_count + i] = (struct from){service->name, NULL, service->instances};
    }
    for (uint32_t i = 0; i < plan->client_count + plan->service_count; i++) {
        stage->from[i].caller = must_calloc(stage->from[i].count, sizeof(struct caller));
    }
}

static void wire_host(struct stage *stage, const char *name, uint32_t number, const char *address)
{
    uint32_t service = scenario_find(stage->plan, name);
    if (service == SCENARIO_NONE || number >= stage->plan->services[service].hosts) {
        give_up("no such host", name);
    }
    host_open(&stage->service[service].host[number], address);
}

static void wire_via(struct stage *stage, const char *name, uint32_t number, const char *address)
{
    uint32_t count = stage->plan->client_count + stage->plan->service_count;
    uint32_t i = 0;
    while (i < count && strcmp(stage->from[i].name, name) != 0) {
        i++;
    }
    if (i == count || number >= stage->from[i].count) {
        give_up("no such caller", name);
    }
    struct caller *caller = &stage->from[i].caller[number];
    *caller = (struct caller){.loop = &stage->loop, .to = address_parse(address)};
    snprintf(caller->name, sizeof caller->name, "%s-%" PRIu32, name, number);
}

static void wires_read(struct stage *stage, const char *path)
{
    char line[256];
    FILE *file = fopen(path, "r");
    must(file != NULL, path);
    while (fgets(line, sizeof line, file) != NULL) {
        char word[8];
        char name[NAME_MAX_BYTES];
        char address[32];
        uint32_t number;
        if (sscanf(line, "%7s %63s %" SCNu32 " %31s", word, name, &number, address) != 4) {
            give_up("not a wire", line);
        }
        (strcmp(word, "host") == 0 ? wire_host : wire_via)(stage, name, number, address);
    }
    fclose(file);
}

static void stage_run(struct stage *stage)
{
    char line[16];
    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
        exit(0); /* its caller has gone */
    }
    loop_begin(&stage->loop);
    faults_begin(stage);
    stage->next_call.fire = calls_due;
    if (stage->calls > 0) {
        loop_arm(&stage->loop, &stage->next_call, stage->call[0].at);
    }
    becalm_ns length = stage->plan->length;
    while (stage->loop.now < length || (stage->pending > 0 && stage->loop.now < length + DRAIN_SECONDS * BECALM_S)) {
        loop_turn(&stage->loop);
    }
    result_print(stage);
}

static const struct scenario *scenario_read(const char *path)
{
    struct scenario_file *file;
    struct becalm_diags diags = {0};
    if (scenario_load(&file, path, NULL, &diags) != 0) {
        give_up("becalm sim says what is wrong with it", path);
    }
    return scenario_of(file);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "plan") == 0) {
        const struct scenario *plan = scenario_read(argv[2]);
        plan_check(plan);
        plan_print(plan);
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "run") == 0) {
        struct stage *stage = must_calloc(1, sizeof *stage);
        uint64_t seed = strtoull(argv[3], NULL, 10);
        (void)descriptors_raise();
        const struct scenario *plan = scenario_read(argv[2]);
        plan_check(plan);
        stage_make(stage, plan, seed);
        calls_collect(stage, seed);
        wires_read(stage, argv[4]);
        stage_run(stage);
        return 0;
    }
    fprintf(stderr, "usage: stage plan SCENARIO\n       stage run SCENARIO SEED WIRES\n");
    return 2;
}
