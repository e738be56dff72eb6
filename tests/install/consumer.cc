/* SPDX-License-Identifier: MIT */
/* A C++ program that knows the installed library only. Prints the version that it runs with. */
#include <becalm/becalm.h>

#include <cstdio>
#include <cstring>

int main()
{
    becalm_policy policy;
    const char *why = nullptr;
    becalm_policy_defaults(&policy);
    if (becalm_policy_check(&policy, &why) != 0) {
        std::fprintf(stderr, "the default policy is wrong: %s\n", why);
        return 1;
    }
    std::puts(becalm_version());
    return std::strcmp(becalm_version(), BECALM_VERSION) != 0;
}
