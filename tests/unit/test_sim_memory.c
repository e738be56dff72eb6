/* SPDX-License-Identifier: MIT */
/* The simulator's allocations: for the objects of a world, and never for its events. */
#include "sim/reference.h"
#include "sim/world.h"

#include "allocator.h"
#include "check.h"

#if BECALM_OWN_ALLOCATOR
static uint64_t allocations;

BECALM_VISIBLE void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

BECALM_VISIBLE void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

BECALM_VISIBLE void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}

BECALM_VISIBLE void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

/* Calls that go well, are retried, time out and wait, of a loop and of a rate, through a gate and past it. */
static const char text[] = "name: memory\n"
                           "about: a little of everything\n"
                           "length: 2s\n"
                           "timeout: 100ms\n"
                           "link: {latency: 1ms}\n"
                           "services:\n"
                           "  front: {workers: 20, time: {exponential: 5ms}, calls: [back]}\n"
                           "  back: {workers: 10, time: {exponential: 5ms}, errors: 5%, gate: true}\n"
                           "clients:\n"
                           "  users: {to: front, rate: 1500/s, callers: 10}\n"
                           "  loops: {to: back, loop: {think: 20ms}, callers: 10}\n";

struct cost {
    uint64_t allocations;
    uint64_t events;
};

static struct cost cost_of(const char *length)
{
    static struct becalm_diags diags;
    const char *const set[] = {length, NULL};
    struct becalm_load_options load = {.set = set};
    struct scenario_file *file = NULL;
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct world_options options = {.seed = 1};
    struct world_result result;
    memset(&diags, 0, sizeof diags);
    int rc = scenario_parse(&file, "memory.yaml", text, sizeof text - 1, &load, &diags);
    check_eq_str(rc == 0 ? "" : diags.diag[0].message, "");
    const struct scenario *plan = scenario_of(file);
    check_true(reference_options("becalm", plan, &hop, &gate, &options));
    uint64_t before = allocations;
    check_true(world_run(plan, &options, &result) == 0);
    struct cost cost = {.allocations = allocations - before, .events = result.events};
    world_result_free(plan, &result);
    scenario_free(file);
    return cost;
}
#endif

static void test_sim_memory__no_event_allocates(void **state)
{
    (void)state;
#if BECALM_OWN_ALLOCATOR
    struct cost one = cost_of("length=2s");
    struct cost ten = cost_of("length=20s");
    check_true(one.events > 10000);
    check_true(ten.events > 9 * one.events);
    /* Tables grow by doubling, and are nearly at their final size after 2 s. */
    check_between_u64(ten.allocations, one.allocations, one.allocations + 20);
#else
    skip();
#endif
}

BECALM_TESTS(cmocka_unit_test(test_sim_memory__no_event_allocates))
