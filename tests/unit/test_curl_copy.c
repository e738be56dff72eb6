/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "curl/copy.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE(name, value) "a.example\tFALSE\t/\tFALSE\t0\t" name "\t" value

static void learn(CURL *easy, const char *line)
{
    assert_int_equal(curl_easy_setopt(easy, CURLOPT_COOKIELIST, line), CURLE_OK);
}

/* How many it has, and whether this is one of them. */
static uint64_t knows(CURL *easy, const char *line)
{
    struct curl_slist *cookies = NULL;
    uint64_t found = 0;
    assert_int_equal(curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &cookies), CURLE_OK);
    for (const struct curl_slist *cookie = cookies; cookie != NULL; cookie = cookie->next) {
        found += line == NULL || strcmp(cookie->data, line) == 0;
    }
    curl_slist_free_all(cookies);
    return found;
}

static void test_copy__who_has_no_cookies_gets_none(void **state)
{
    (void)state;
    struct handle_options option = {0};
    struct curl_slist *given;
    CURL *easy = curl_easy_init();
    CURL *copy = copy_make(easy, &option, &given);
    assert_null(given);
    copy_cookies_take(easy, copy, given);
    check_eq_u64(knows(easy, NULL), 0);
    copy_free(copy, given);
    curl_easy_cleanup(easy);
}

static void test_copy__only_what_it_has_learned_is_taken(void **state)
{
    (void)state;
    struct handle_options option = {0};
    struct curl_slist *given;
    CURL *easy = curl_easy_init();
    learn(easy, LINE("same", "1"));
    learn(easy, LINE("changed", "1"));
    learn(easy, LINE("others", "1"));
    CURL *copy = copy_make(easy, &option, &given);
    check_eq_u64(knows(copy, NULL), 3);
    learn(easy, LINE("others", "2")); /* meanwhile */
    learn(copy, LINE("changed", "2"));
    learn(copy, LINE("fresh", "1"));
    copy_cookies_take(easy, copy, given);
    check_eq_u64(knows(easy, NULL), 4);
    check_eq_u64(knows(easy, LINE("same", "1")), 1);
    check_eq_u64(knows(easy, LINE("changed", "2")), 1);
    check_eq_u64(knows(easy, LINE("others", "2")), 1);
    check_eq_u64(knows(easy, LINE("fresh", "1")), 1);
    copy_free(copy, given);
    curl_easy_cleanup(easy);
}

static void test_copy__what_it_was_told_to_forget_is_forgotten(void **state)
{
    (void)state;
    struct handle_options option = {0};
    struct curl_slist *given;
    CURL *easy = curl_easy_init();
    learn(easy, LINE("session", "1"));
    CURL *copy = copy_make(easy, &option, &given);
    learn(copy, "ALL");
    copy_cookies_take(easy, copy, given);
    learn(easy, LINE("next", "1")); /* libcurl clears away when another comes */
    check_eq_u64(knows(easy, NULL), 1);
    copy_free(copy, given);
    curl_easy_cleanup(easy);
}

static void test_copy__what_is_shared_is_shared_and_stays(void **state)
{
    (void)state;
    struct curl_slist *given;
    CURLSH *share = curl_share_init();
    CURL *easy = curl_easy_init();
    CURL *other = curl_easy_init();
    struct handle_options option = {.share = share};
    assert_int_equal(curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE), CURLSHE_OK);
    (void)curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_HSTS); /* where libcurl knows of it */
    (void)curl_easy_setopt(easy, CURLOPT_SHARE, share);
    (void)curl_easy_setopt(other, CURLOPT_SHARE, share);
    learn(easy, LINE("name", "1"));
    CURL *copy = copy_make(easy, &option, &given);
    learn(other, LINE("name", "2"));
    check_eq_u64(knows(copy, LINE("name", "2")), 1);
    copy_cookies_take(easy, copy, given);
    copy_free(copy, given);
    check_eq_u64(knows(easy, NULL), 1);
    check_eq_u64(knows(easy, LINE("name", "2")), 1);
    curl_easy_cleanup(easy);
    curl_easy_cleanup(other);
    assert_int_equal(curl_share_cleanup(share), CURLSHE_OK);
}

static CURLSTScode on_hsts(CURL *easy, struct curl_hstsentry *entry, struct curl_index *index, void *data)
{
    unsigned *calls = data;
    (void)easy, (void)entry, (void)index;
    (*calls)++;
    return CURLSTS_DONE;
}

static CURLSTScode on_hsts_read(CURL *easy, struct curl_hstsentry *entry, void *data)
{
    bool *read = data;
    (void)easy;
    (void)snprintf(entry->name, entry->namelen, "a.example");
    entry->expire[0] = '\0'; /* never */
    *read = !*read;
    return *read ? CURLSTS_OK : CURLSTS_DONE;
}

/* An empty file. */
static void file_make(char path[])
{
    assert_int_equal(close(mkstemp(path)), 0);
}

static void file_check_empty(const char *path)
{
    struct stat state; /* by its name: libcurl writes another, and then it has that */
    assert_int_equal(stat(path, &state), 0);
    check_eq_u64((uint64_t)state.st_size, 0);
}

static void test_copy__its_end_writes_nothing(void **state)
{
    (void)state;
    struct handle_options option = {0};
    struct curl_slist *given;
    unsigned calls = 0;
    bool read = false;
    char jar[] = "/tmp/becalm-jar-XXXXXX";
    char services[] = "/tmp/becalm-altsvc-XXXXXX";
    file_make(jar);
    file_make(services);
    CURL *easy = curl_easy_init();
    (void)curl_easy_setopt(easy, CURLOPT_COOKIEJAR, jar);
    (void)curl_easy_setopt(easy, CURLOPT_ALTSVC, services);
    (void)curl_easy_setopt(easy, CURLOPT_HSTSREADFUNCTION, on_hsts_read);
    (void)curl_easy_setopt(easy, CURLOPT_HSTSREADDATA, &read);
    (void)curl_easy_setopt(easy, CURLOPT_HSTSWRITEFUNCTION, on_hsts);
    (void)curl_easy_setopt(easy, CURLOPT_HSTSWRITEDATA, &calls);
    (void)curl_easy_setopt(easy, CURLOPT_HSTS_CTRL, (long)CURLHSTS_ENABLE);
    CURL *copy = copy_make(easy, &option, &given);
    learn(copy, LINE("name", "1"));
    copy_free(copy, given);
    check_eq_u64(calls, 0);
    file_check_empty(jar);
    file_check_empty(services);
    curl_easy_cleanup(easy);
    (void)unlink(jar);
    (void)unlink(services);
}

BECALM_TESTS(cmocka_unit_test(test_copy__who_has_no_cookies_gets_none),
             cmocka_unit_test(test_copy__only_what_it_has_learned_is_taken),
             cmocka_unit_test(test_copy__what_it_was_told_to_forget_is_forgotten),
             cmocka_unit_test(test_copy__what_is_shared_is_shared_and_stays),
             cmocka_unit_test(test_copy__its_end_writes_nothing))
