/* SPDX-License-Identifier: MIT */
/* A C++ program that knows the installed library only. Prints the version that it runs with. */
#include <becalm/becalm.h>

#include <cstdio>
#include <cstring>

int main()
{
    becalm_policy policy;
    becalm_complaint complaint;
    becalm_policy_defaults(&policy);
    if (becalm_policy_check(&policy, &complaint) != 0) {
        std::fprintf(stderr, "the default policy is wrong: %s.%s\n", complaint.part, complaint.sentence);
        return 1;
    }
    becalm_config *config = nullptr;
    static becalm_diags diags;
    static const char text[] = "version: 1\nservices: {ledger: {maxRetries: 1}}\n";
    if (becalm_config_parse(&config, "text", text, sizeof text - 1, nullptr, &diags) != 0) {
        std::fprintf(stderr, "the policy is wrong: %s\n", diags.diag[0].message);
        return 1;
    }
    becalm_config_free(config);
    std::puts(becalm_version());
    return std::strcmp(becalm_version(), BECALM_VERSION) != 0;
}
