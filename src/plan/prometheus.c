/* SPDX-License-Identifier: MIT */
#include "prometheus.h"

#include "libcurl/libcurl.h"
#include "policy/value.h"
#include "policy/yaml.h"

#include <becalm/version.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX    512u  /* a histogram has a dozen buckets */
#define POINTS_MAX     5000u /* of a subquery: a window of a month need not be walked by the minute */
#define QUERY_MAX      1024u /* two names of at most 200 bytes, and the query around them */
#define NAME_MAX_BYTES 200u
#define CONNECT_MS     5000L

struct answer {
    char *text;
    size_t length;
    bool too_large;
    bool no_memory;
};

/* Text from a server may contain escape sequences: no control character reaches a terminal. */
static void quiet(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = ' ';
        }
    }
}

static bool fail(char why[PLAN_WHY_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(char why[PLAN_WHY_MAX], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, PLAN_WHY_MAX, format, list);
    va_end(list);
    quiet(why);
    return false;
}

static size_t on_body(char *data, size_t unit, size_t count, void *user)
{
    struct answer *answer = user;
    size_t more = unit * count;
    if (more > YAML_BYTES_MAX - answer->length) {
        answer->too_large = true;
        return 0; /* curl ends the transfer */
    }
    char *text = realloc(answer->text, answer->length + more + 1);
    if (text == NULL) {
        answer->no_memory = true;
        return 0;
    }
    memcpy(text + answer->length, data, more);
    answer->text = text;
    answer->length += more;
    text[answer->length] = '\0';
    return more;
}

/* The server's name for messages: never the password that a URL may hold. */
static void name_of(const char *url, char *text, size_t size)
{
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + 3;
    size_t authority = strcspn(host, "/?#");
    size_t user = 0; /* the length of the part before the last @ */
    for (size_t i = 0; i < authority; i++) {
        if (host[i] == '@') {
            user = i + 1;
        }
    }
    host += user;
    authority -= user;
    snprintf(text, size, "%.*s", (int)(authority < 200 ? authority : 200), host);
}

/* The server that is asked, and the libcurl handle. */
struct asking {
    const struct prometheus *server;
    struct libcurl libcurl;
    CURL *curl;
};

static void set_up(const struct asking *asking, const char *url, struct answer *answer)
{
    const struct libcurl *libcurl = &asking->libcurl;
    CURL *curl = asking->curl;
    libcurl->easy_setopt(curl, CURLOPT_URL, url);
    libcurl->easy_setopt(curl, CURLOPT_USERAGENT, "becalm/" BECALM_VERSION);
    libcurl->easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    libcurl->easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    libcurl->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    libcurl->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    libcurl->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(asking->server->timeout / BECALM_MS));
#if LIBCURL_VERSION_NUM >= 0x075500
    libcurl->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    libcurl->easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static bool explain_failure(const struct asking *asking, CURLcode code, const struct answer *answer,
                            char why[PLAN_WHY_MAX])
{
    const struct prometheus *server = asking->server;
    char name[208];
    char text[48];
    name_of(server->url, name, sizeof(name));
    if (answer->too_large) {
        return fail(why, "%s: the answer is larger than 1MiB", name);
    }
    if (answer->no_memory) {
        return fail(why, "out of memory");
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        value_write_duration(server->timeout, text, sizeof(text));
        return fail(why, "%s: no answer within %s", name, text);
    }
    return fail(why, "%s: %s", name, asking->libcurl.easy_strerror(code));
}

/* The whole address of a question: the base without slashes at its end, the path, the escaped query. */
static char *make_url(const struct asking *asking, const char *query)
{
    const char *base = asking->server->url;
    char *url = NULL;
    char *escaped = asking->libcurl.easy_escape(asking->curl, query, 0);
    if (escaped != NULL) {
        size_t length = strlen(base);
        while (length > 0 && base[length - 1] == '/') {
            length--;
        }
        static const char path[] = "/api/v1/query?query=";
        size_t size = length + sizeof(path) + strlen(escaped);
        url = malloc(size);
        if (url != NULL) {
            snprintf(url, size, "%.*s%s%s", (int)length, base, path, escaped);
        }
    }
    asking->libcurl.free(escaped);
    return url;
}

/* Asks one question. Returns the number of samples, or -1. */
static int ask(const struct prometheus *server, const char *query, struct plan_bucket *sample, char why[PLAN_WHY_MAX])
{
    int count = -1;
    struct answer answer = {0};
    char *url = NULL;
    struct asking asking = {.server = server};
    CURLcode code = CURLE_OUT_OF_MEMORY;
    libcurl_load(&asking.libcurl);
    asking.curl = asking.libcurl.easy_init();
    if (asking.curl == NULL) {
        explain_failure(&asking, code, &answer, why);
        goto out;
    }
    url = make_url(&asking, query);
    if (url == NULL) {
        explain_failure(&asking, code, &answer, why);
        goto out;
    }
    set_up(&asking, url, &answer);
    code = asking.libcurl.easy_perform(asking.curl);
    if (code != CURLE_OK) {
        explain_failure(&asking, code, &answer, why);
        goto out;
    }
    long status = 0;
    asking.libcurl.easy_getinfo(asking.curl, CURLINFO_RESPONSE_CODE, &status);
    char inner[PLAN_WHY_MAX] = "";
    char name[208];
    name_of(server->url, name, sizeof(name));
    count = prometheus_parse(answer.text == NULL ? "" : answer.text, answer.length, sample, SAMPLES_MAX, inner);
    if (status != 200) {
        /* Prometheus explains its errors in JSON; a proxy in front of it does not. */
        bool told = count < 0 && strncmp(inner, "the server says", 15) == 0;
        count = -1;
        fail(why, "%.80s: HTTP %ld%s%.160s", name, status, told ? ", " : "", told ? inner : "");
    } else if (count < 0) {
        fail(why, "%.80s: %.160s", name, inner);
    }
out:
    free(url);
    free(answer.text);
    asking.libcurl.easy_cleanup(asking.curl);
    return count;
}

static bool parse_number(const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* One element of data.result: {"metric": {"le": "0.1"}, "value": [1700000000.1, "42"]}. */
static bool parse_sample(const struct yaml_node *node, struct plan_bucket *out)
{
    const struct yaml_node *metric = node->kind == YAML_MAPPING ? yaml_get(node, "metric") : NULL;
    const struct yaml_node *value = node->kind == YAML_MAPPING ? yaml_get(node, "value") : NULL;
    const struct yaml_node *le = NULL;
    if (metric != NULL && metric->kind == YAML_MAPPING) {
        le = yaml_get(metric, "le");
    }
    if (value == NULL || value->kind != YAML_SEQUENCE || value->count != 2 || value->item[1]->kind != YAML_SCALAR) {
        return false;
    }
    *out = (struct plan_bucket){0};
    if (le != NULL && (le->kind != YAML_SCALAR || !parse_number(le->text, &out->le))) {
        return false;
    }
    return parse_number(value->item[1]->text, &out->count);
}

static int parse_result(const struct yaml_node *root, struct plan_bucket *sample, size_t room, char why[PLAN_WHY_MAX])
{
    static const char strange[] = "the answer is not one of a Prometheus";
    const struct yaml_node *status = root->kind == YAML_MAPPING ? yaml_get(root, "status") : NULL;
    if (status != NULL && yaml_is(status, "error")) {
        const struct yaml_node *error = yaml_get(root, "error");
        bool told = error != NULL && error->kind == YAML_SCALAR;
        fail(why, "the server says: %.150s", told ? error->text : "error");
        return -1;
    }
    const struct yaml_node *data = root->kind == YAML_MAPPING ? yaml_get(root, "data") : NULL;
    const struct yaml_node *result = data != NULL && data->kind == YAML_MAPPING ? yaml_get(data, "result") : NULL;
    if (status == NULL || !yaml_is(status, "success") || result == NULL || result->kind != YAML_SEQUENCE) {
        fail(why, "%s", strange);
        return -1;
    }
    if (result->count > room) {
        fail(why, "the answer has %u series, more than %zu", result->count, room);
        return -1;
    }
    for (uint32_t i = 0; i < result->count; i++) {
        if (!parse_sample(result->item[i], &sample[i])) {
            fail(why, "%s", strange);
            return -1;
        }
    }
    return (int)result->count;
}

int prometheus_parse(const char *text, size_t length, struct plan_bucket *sample, size_t room, char why[PLAN_WHY_MAX])
{
    int count = -1;
    struct yaml_tree *tree = NULL;
    struct becalm_diags *diags = calloc(1, sizeof(*diags)); /* too large for a stack */
    if (diags == NULL) {
        fail(why, "out of memory");
        goto out;
    }
    tree = yaml_parse("answer", text, length, diags);
    if (tree == NULL || tree->root == NULL) {
        fail(why, "the answer is not JSON: %.150s", diags->count > 0 ? diags->diag[0].message : "empty");
        goto out;
    }
    count = parse_result(tree->root, sample, room, why);
out:
    yaml_free(tree);
    free(diags);
    return count;
}

bool prometheus_metric_name(const char *text)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    size_t length = strlen(text);
    return length > 0 && length <= NAME_MAX_BYTES && strchr(first, text[0]) != NULL && strspn(text, rest) == length;
}

/* "{service=\"...\"}" with PromQL's escapes, or nothing. False: the name is too long. */
static bool write_selector(const char *service, char *text, size_t size)
{
    text[0] = '\0';
    if (service == NULL) {
        return true;
    }
    size_t at = (size_t)snprintf(text, size, "{service=\"");
    for (; *service != '\0'; service++) {
        if (at + 5 >= size) {
            return false;
        }
        if (*service == '"' || *service == '\\') {
            text[at++] = '\\';
        }
        text[at++] = *service;
    }
    memcpy(text + at, "\"}", 3);
    return true;
}

static uint64_t seconds(becalm_ns duration)
{
    return duration < BECALM_S ? 1 : duration / BECALM_S;
}

static bool no_data(const struct prometheus *server, const char *metric, const char *selector, const char *hint,
                    char why[PLAN_WHY_MAX])
{
    char name[208];
    char window[48];
    name_of(server->url, name, sizeof(name));
    value_write_duration(server->window, window, sizeof(window));
    return fail(why, "%.60s: no data for %.60s%.60s in the last %s%s", name, metric, selector, window, hint);
}

/* One number out of the rates of a counter over the window: `over` is max_over_time or avg_over_time. */
static bool ask_rate(const struct prometheus *server, const char *over, const char *metric, double *out,
                     char why[PLAN_WHY_MAX])
{
    struct plan_bucket sample[SAMPLES_MAX];
    char selector[NAME_MAX_BYTES];
    char query[QUERY_MAX];
    if (!write_selector(server->service, selector, sizeof(selector))) {
        return fail(why, "the service's name is too long");
    }
    uint64_t window = seconds(server->window);
    uint64_t rate = seconds(server->rate);
    uint64_t step = window / POINTS_MAX > rate ? window / POINTS_MAX : rate;
    snprintf(query, sizeof(query), "%s(sum(rate(%s%s[%" PRIu64 "s]))[%" PRIu64 "s:%" PRIu64 "s])", over, metric,
             selector, rate, window, step);
    int count = ask(server, query, sample, why);
    if (count < 0) {
        return false;
    }
    if (count == 0 || !isfinite(sample[0].count)) {
        return no_data(server, metric, selector, ", or less than two samples within --rate", why);
    }
    *out = sample[0].count;
    return true;
}

bool prometheus_traffic(const struct prometheus *server, double *requests, double *retries, char why[PLAN_WHY_MAX])
{
    if (!ask_rate(server, "avg_over_time", PROMETHEUS_REQUESTS, requests, why) ||
        !ask_rate(server, "max_over_time", PROMETHEUS_RETRIES, retries, why)) {
        return false;
    }
    return *requests > 0 || no_data(server, PROMETHEUS_REQUESTS, "", ": it stands still", why);
}

bool prometheus_latency(const struct prometheus *server, const char *metric, struct plan_latency *latency,
                        char why[PLAN_WHY_MAX])
{
    *latency = (struct plan_latency){0};
    struct plan_bucket sample[SAMPLES_MAX];
    char selector[NAME_MAX_BYTES];
    char query[QUERY_MAX];
    if (!write_selector(server->service, selector, sizeof(selector))) {
        return fail(why, "the service's name is too long");
    }
    snprintf(query, sizeof(query), "sum by (le) (increase(%s_bucket%s[%" PRIu64 "s]))", metric, selector,
             seconds(server->window));
    int count = ask(server, query, sample, why);
    if (count < 0) {
        return false;
    }
    char inner[PLAN_WHY_MAX];
    if (count == 0 || !plan_latency_from_buckets(latency, sample, (size_t)count, inner)) {
        char bucket[NAME_MAX_BYTES + 16];
        snprintf(bucket, sizeof(bucket), "%s_bucket", metric);
        return no_data(server, bucket, selector, "", why);
    }
    return true;
}
