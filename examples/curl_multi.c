/* SPDX-License-Identifier: MIT */
/* Fetches many URLs at once with the rules of a policy, in one thread: curl_multi POLICY URL...
 *
 *   cc curl_multi.c $(pkg-config --cflags --libs libbecalm-curl) */
#include <becalm/becalm.h>
#include <becalm/curl.h>

#include <stdio.h>

static size_t ignore(char *at, size_t size, size_t count, void *data)
{
    (void)at;
    (void)data;
    return size * count;
}

static void add(struct becalm_curl_multi *multi, struct becalm_client *client, const char *url)
{
    CURL *easy = curl_easy_init();
    (void)becalm_curl_setopt(easy, client, CURLOPT_URL, url);
    (void)becalm_curl_setopt(easy, client, CURLOPT_HTTPGET, 1L);
    (void)becalm_curl_setopt(easy, client, CURLOPT_WRITEFUNCTION, ignore); /* gets the final answer only */
    (void)becalm_curl_setopt(easy, client, CURLOPT_WRITEDATA, NULL);       /* set both, or Becalm takes over neither */
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, url);
    (void)becalm_curl_multi_add_handle(multi, easy);
}

/* Prints the results of calls that have ended, and frees their handles. Returns the number of failed calls. */
static int finish(struct becalm_curl_multi *multi, struct becalm_client *client)
{
    int failed = 0;
    int left;
    CURLMsg *message;
    while ((message = becalm_curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = message->easy_handle;
        const struct becalm_record *record = becalm_curl_multi_record(multi, easy);
        char *url = NULL;
        long status = 0;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &url);
        /* Where a hedge has won, its handle is not the one that was added. */
        (void)curl_easy_getinfo(becalm_curl_multi_answered(multi, easy), CURLINFO_RESPONSE_CODE, &status);
        (void)printf("%s: %ld after %u attempts: %s\n", url, status, record->attempts,
                     becalm_reason_sentence(record->reason));
        failed += message->data.result != CURLE_OK;
        becalm_curl_cleanup(easy, client); /* also removes the handle from the multi */
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int running = 1;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: curl_multi POLICY URL...\n");
        return 2;
    }
    struct becalm_client *client = becalm_client_load(argv[1], NULL, NULL);
    if (client == NULL) {
        return 1; /* the reason is on stderr */
    }
    CURLM *curl = curl_multi_init();
    struct becalm_curl_multi *multi = becalm_curl_multi_new(curl, client);
    for (int i = 2; i < argc; i++) {
        add(multi, client, argv[i]);
    }
    while (running > 0) {
        (void)becalm_curl_multi_perform(multi, &running);
        failed += finish(multi, client);
        if (running > 0) {
            (void)becalm_curl_multi_poll(multi, NULL, 0, 1000, NULL);
        }
    }
    becalm_curl_multi_free(multi);
    (void)curl_multi_cleanup(curl);
    becalm_client_free(client);
    return failed == 0 ? 0 : 1;
}
