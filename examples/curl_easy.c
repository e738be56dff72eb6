/* SPDX-License-Identifier: MIT */
/* Fetches a URL with the rules of a policy, and prints each retry and the result: curl_easy POLICY URL
 *
 *   cc curl_easy.c $(pkg-config --cflags --libs libbecalm-curl) */
#include <becalm/becalm.h>
#include <becalm/curl.h>

#include <stdio.h>

static void on_retry(const struct becalm_curl_retry *retry, void *data)
{
    (void)data;
    (void)fprintf(stderr, "retry %u of %u of %s after %.1f ms: %s\n", retry->retry, retry->of, retry->service,
                  (double)retry->slept / 1e6, becalm_outcome_word(retry->outcome));
}

int main(int argc, char **argv)
{
    static struct becalm_diags diags;
    struct becalm_client_options options = {.on_retry = on_retry};
    struct becalm_record record;
    if (argc != 3) {
        (void)fprintf(stderr, "usage: curl_easy POLICY URL\n");
        return 2;
    }
    struct becalm_client *client = becalm_client_load(argv[1], &options, &diags);
    for (uint32_t i = 0; i < diags.count; i++) {
        (void)fprintf(stderr, "%s:%u: %s\n", diags.diag[i].file, diags.diag[i].line, diags.diag[i].message);
    }
    if (client == NULL) {
        return 1;
    }
    CURL *easy = curl_easy_init();
    (void)becalm_curl_setopt(easy, client, CURLOPT_URL, argv[2]);
    (void)becalm_curl_setopt(easy, client, CURLOPT_WRITEFUNCTION, NULL);
    (void)becalm_curl_setopt(easy, client, CURLOPT_WRITEDATA, stdout); /* gets the final answer only */
    (void)becalm_curl_setopt(easy, client, CURLOPT_HTTPHEADER, NULL);  /* lets Becalm add its headers */
    CURLcode code = becalm_curl_perform(easy, client);
    if (becalm_curl_record(easy, client, &record)) {
        (void)fprintf(stderr, "%s after %u attempts: %s\n", curl_easy_strerror(code), record.attempts,
                      becalm_reason_sentence(record.reason));
    }
    becalm_curl_cleanup(easy, client);
    becalm_client_free(client);
    return code == CURLE_OK ? 0 : 1;
}
