/* SPDX-License-Identifier: MIT */
/* The loader when memory is out: each allocation of a parse fails in turn, libyaml's too. */
#include "policy/yaml.h"

#include "allocator.h"
#include "check.h"

#if BECALM_OWN_ALLOCATOR
static bool armed;
static uint64_t before_failure; /* allocations that still succeed */
static bool failed;
static int64_t live;

static bool refuse(void)
{
    if (!armed) {
        return false;
    }
    if (before_failure > 0) {
        before_failure--;
        return false;
    }
    failed = true;
    return true;
}

BECALM_VISIBLE void *malloc(size_t size)
{
    if (refuse()) {
        return NULL;
    }
    live += armed;
    return __libc_malloc(size);
}

BECALM_VISIBLE void *calloc(size_t count, size_t size)
{
    if (refuse()) {
        return NULL;
    }
    live += armed;
    return __libc_calloc(count, size);
}

BECALM_VISIBLE void *realloc(void *memory, size_t size)
{
    if (refuse()) {
        return NULL;
    }
    live += armed && memory == NULL;
    return __libc_realloc(memory, size);
}

BECALM_VISIBLE void free(void *memory)
{
    live -= armed && memory != NULL;
    __libc_free(memory);
}

static const char text[] = "kind: ConfigMap\n"
                           "a: &a {b: [1, 2, 3], c: \"quoted\"}\n"
                           "d: [*a, *a, {? [x] : y}]\n"
                           "data:\n"
                           "  policy.yaml: |\n"
                           "    maxRetries: 3\n"
                           "    maxRetries: 4\n"
                           "    services: {a: {calls: [b, c]}}\n";

static struct becalm_diags diags;

/* One round with the first `succeed` allocations; false when it needed no more than these. */
static bool round_fails(uint64_t succeed, bool *inner_parsed)
{
    memset(&diags, 0, sizeof diags);
    before_failure = succeed;
    failed = false;
    live = 0;
    armed = true;
    struct yaml_tree *outer = yaml_parse("f", text, sizeof text - 1, &diags);
    struct yaml_tree *inner = NULL;
    if (outer != NULL) {
        inner = yaml_parse_inner(outer, yaml_get(yaml_get(outer->root, "data"), "policy.yaml"), &diags);
    }
    *inner_parsed = inner != NULL;
    yaml_free(inner);
    yaml_free(outer);
    armed = false;
    return failed;
}
#endif

static void test_yaml__survives_the_failure_of_any_allocation(void **state)
{
    (void)state;
#if BECALM_OWN_ALLOCATOR
    bool parsed = false;
    uint64_t rounds = 0;
    while (round_fails(rounds, &parsed)) {
        if (parsed || live != 0 || diags.errors == 0 || strcmp(diags.diag[diags.count - 1].code, "no-memory") != 0) {
            fail_msg("allocation %" PRIu64 ": parsed %d, %" PRId64 " blocks left, %u errors", rounds, parsed, live,
                     (unsigned)diags.errors);
        }
        rounds++;
    }
    check_true(parsed);
    check_eq_u64(diags.errors, 2); /* the key that is a list, the key that is there twice */
    check_eq_u64((uint64_t)live, 0);
    check_between_u64(rounds, 50, 1000); /* it has tried something */
#else
    skip();
#endif
}

BECALM_TESTS(cmocka_unit_test(test_yaml__survives_the_failure_of_any_allocation))
