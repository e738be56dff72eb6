/* SPDX-License-Identifier: MIT */
/* A program that has functions under the names which files of the libraries share among themselves: test_install.sh
 * makes them, and each ends the program. Its calls go through all folders of the libraries, to an address where no
 * process listens.
 */
#include <becalm/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    static const char text[] = "version: 1\n"
                               "services: {ledger: {match: {host: 127.0.0.1}, maxRetries: 2, initialDelay: 1ms, "
                               "restart: {enabled: false}}}\n";
    int rc = 1;
    char *page = NULL;
    struct becalm_record record;
    CURL *easy = curl_easy_init();
    struct becalm_client *client = becalm_client_parse(text, sizeof text - 1, NULL, NULL);
    if (easy == NULL || client == NULL) {
        goto out;
    }
    curl_easy_setopt(easy, CURLOPT_URL, "http://127.0.0.1:1/");
    CURLcode code = becalm_curl_perform(easy, client);
    if (code != CURLE_COULDNT_CONNECT || !becalm_curl_record(easy, client, &record) || record.attempts != 3) {
        fprintf(stderr, "expected three refused attempts, got %s\n", curl_easy_strerror(code));
        goto out;
    }
    page = becalm_client_metrics(client);
    if (page == NULL || strstr(page, "ledger") == NULL) {
        fprintf(stderr, "expected metrics of the service, got %s\n", page == NULL ? "nothing" : page);
        goto out;
    }
    rc = 0;
out:
    free(page);
    becalm_curl_cleanup(easy, client);
    becalm_client_free(client);
    return rc;
}
