/* SPDX-License-Identifier: MIT */
/* A C++ program that knows the installed libbecalm-curl only. Nobody listens where it calls. */
#include <becalm/curl.h>

#include <cstdio>

int main()
{
    becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.restart.enabled = false; /* else it would wait for somebody to listen */
    becalm_client *client = becalm_client_new("nobody", &policy, nullptr, nullptr);
    CURL *easy = curl_easy_init();
    becalm_record record;
    curl_easy_setopt(easy, CURLOPT_URL, "http://127.0.0.1:1/");
    CURLcode code = becalm_curl_perform(easy, client);
    bool refused = code == CURLE_COULDNT_CONNECT && becalm_curl_record(easy, client, &record) && record.attempts > 1;
    if (!refused) {
        std::fprintf(stderr, "expected refused attempts, got %s\n", curl_easy_strerror(code));
    }
    becalm_curl_cleanup(easy, client);
    becalm_client_free(client);
    return refused ? 0 : 1;
}
