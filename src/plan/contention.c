/* SPDX-License-Identifier: MIT */
#include "contention.h"

static double pairs(uint64_t clients)
{
    return clients == 0 ? 0 : (double)clients * (double)(clients - 1) / 2;
}

double plan_collisions(uint64_t clients, uint64_t slots)
{
    return pairs(clients) / (double)slots;
}

/* base^exponent by squares. */
static double power(double base, uint64_t exponent)
{
    double product = 1;
    for (; exponent != 0; exponent >>= 1) {
        product *= (exponent & 1) != 0 ? base : 1;
        base *= base;
    }
    return product;
}

double plan_alone(uint64_t clients, uint64_t slots)
{
    if (clients == 0) {
        return 0;
    }
    return (double)clients * power(1 - 1 / (double)slots, clients - 1);
}

double plan_quiet_window(uint64_t clients)
{
    return pairs(clients) > 1 ? pairs(clients) : 1;
}

struct plan_jitter plan_jitter(uint64_t clients, uint64_t slots)
{
    double all = pairs(clients);
    double window = (double)slots;
    double half = window / 2 > 1 ? window / 2 : 1;
    /* min(cap, U[base, 3 cap]): two thirds land on the cap, which is in the last slot; one third spreads over all
     * slots. Two clients meet with the sum of the squares: (2/3 + 1/3W)^2 + (W-1)(1/3W)^2. */
    double same_slot = 4.0 / 9 + 5.0 / 9 / window;
    return (struct plan_jitter){
        .none = all, .full = all / window, .equal = all / half, .decorrelated = all * same_slot};
}
