/* SPDX-License-Identifier: MIT */
/* crowd URL INSTANCES BUDGETS SECONDS CALLS: INSTANCES instances of the real client of shared budgets, each with its
 * own connection, in one process: each makes CALLS first attempts a second in each of its budgets, and all of them want
 * a retry. Prints a line for each second: how many are connected, how many connections were tried, exchanges answered,
 * and how many are on their own share. bench/fleet/figures.py drives it and looks at the Redis. */
#define _GNU_SOURCE
#include "redis/leases.h"
#include "redis/roster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP (20 * BECALM_MS)

struct member {
    struct leases *leases;
    struct roster *roster;
    struct becalm_lease **lease;
    uint64_t owed; /* first attempts, in thousandths */
    uint32_t number;
};

struct crowd {
    struct loop loop;
    struct timer step;
    struct member *member;
    struct becalm_lease_policy policy;
    uint32_t count, budgets, calls;
};

static void woken(struct loop *loop)
{
    (void)loop;
}

static bool find(void *self, const char *host, union address_socket *socket)
{
    struct address address;
    (void)self;
    bool right = address_parse(host, &address) && address.kind != ADDRESS_NAME;
    if (right) {
        *socket = address.socket;
    }
    return right;
}

static void tell(void *self, struct roster_entry *entry)
{
    const struct member *member = self;
    snprintf(entry->id, sizeof entry->id, "crowd-%" PRIu32, member->number);
    snprintf(entry->name, sizeof entry->name, "crowd");
    snprintf(entry->version, sizeof entry->version, "0");
    snprintf(entry->policy, sizeof entry->policy, "0");
}

static void give_up(const char *why)
{
    fprintf(stderr, "crowd: %s\n", why);
    exit(1);
}

static void member_open(struct crowd *crowd, uint32_t number, const char *url)
{
    struct member *member = &crowd->member[number];
    struct leases_options options = {.redis = {.loop = &crowd->loop, .find = find, .timeout = REDIS_TIMEOUT},
                                     .fleet = "crowd"};
    const char *why = redis_place_parse(url, &options.redis.place);
    if (why != NULL) {
        give_up(why);
    }
    member->number = number;
    member->leases = leases_make(&options);
    member->lease = calloc(crowd->budgets, sizeof *member->lease);
    if (member->leases == NULL || member->lease == NULL) {
        give_up("no memory");
    }
    member->roster = roster_make(&(struct roster_options){
        .loop = &crowd->loop, .redis = leases_redis(member->leases), .fleet = "crowd", .tell = tell, .self = member});
    leases_bind_begin(member->leases);
    for (uint32_t i = 0; i < crowd->budgets; i++) {
        char name[32];
        void *memory = aligned_alloc(64, becalm_lease_bytes(1));
        if (memory == NULL) {
            give_up("no memory");
        }
        snprintf(name, sizeof name, "service/%" PRIu32, i);
        member->lease[i] = becalm_lease_init(memory, 1);
        if (!leases_bind(member->leases, name, member->lease[i], &crowd->policy)) {
            give_up("no memory");
        }
    }
    leases_bind_end(member->leases);
}

/* Every call wants a retry. */
static void step_fires(struct timer *timer)
{
    struct crowd *crowd = (struct crowd *)((char *)timer - offsetof(struct crowd, step));
    struct becalm_moment at = {.now = crowd->loop.now};
    for (uint32_t i = 0; i < crowd->count; i++) {
        struct member *member = &crowd->member[i];
        member->owed += crowd->calls * (STEP / BECALM_MS);
        for (; member->owed >= 1000; member->owed -= 1000) {
            for (uint32_t k = 0; k < crowd->budgets; k++) {
                becalm_lease_begin(member->lease[k], &at);
                (void)becalm_lease_take(member->lease[k], &at);
            }
        }
    }
    wheel_arm(&crowd->loop.wheel, timer, becalm_ns_after(crowd->loop.now, STEP));
}

static void second_print(const struct crowd *crowd, uint32_t second)
{
    uint64_t up = 0;
    uint64_t connects = 0;
    uint64_t answered = 0;
    uint64_t degraded = 0;
    for (uint32_t i = 0; i < crowd->count; i++) {
        const struct redis *redis = leases_redis(crowd->member[i].leases);
        struct redis_count count = redis_count(redis);
        up += redis_state(redis) == REDIS_UP;
        connects += count.connects;
        answered += count.answered;
        degraded += becalm_lease_degraded(crowd->member[i].lease[0]);
    }
    printf("%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", second, up, connects, answered, degraded);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct crowd crowd = {.count = argc == 6 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0};
    if (crowd.count == 0) {
        give_up("usage: crowd URL INSTANCES BUDGETS SECONDS CALLS");
    }
    crowd.budgets = (uint32_t)strtoul(argv[3], NULL, 10);
    crowd.calls = (uint32_t)strtoul(argv[5], NULL, 10);
    crowd.member = calloc(crowd.count, sizeof *crowd.member);
    if (crowd.member == NULL || loop_init(&crowd.loop, woken) != 0) {
        give_up("no memory");
    }
    becalm_lease_defaults(&crowd.policy);
    crowd.policy.enabled = true;
    for (uint32_t i = 0; i < crowd.count; i++) {
        member_open(&crowd, i, argv[1]);
    }
    crowd.step.fire = step_fires;
    wheel_arm(&crowd.loop.wheel, &crowd.step, crowd.loop.now);
    becalm_ns begun = crowd.loop.now;
    uint32_t seconds = (uint32_t)strtoul(argv[4], NULL, 10);
    for (uint32_t second = 1; second <= seconds; second++) {
        while (becalm_ns_since(crowd.loop.now, begun) < second * BECALM_S) {
            loop_turn(&crowd.loop, true);
        }
        second_print(&crowd, second);
    }
    return 0;
}
