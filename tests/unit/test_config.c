/* SPDX-License-Identifier: MIT */
#include <becalm/config.h>

#include <stdio.h>

#include "check.h"

static struct becalm_diags diags;

static struct becalm_config *parse_with(const char *text, const struct becalm_load_options *options)
{
    struct becalm_config *config = NULL;
    memset(&diags, 0, sizeof diags);
    int rc = becalm_config_parse(&config, "policy.yaml", text, strlen(text), options, &diags);
    check_true((rc == 0) == (config != NULL));
    check_true((rc == 0) == (diags.errors == 0));
    return config;
}

static struct becalm_config *parse(const char *text)
{
    struct becalm_config *config = parse_with(text, NULL);
    if (config == NULL) {
        char line[1024];
        (void)becalm_diag_write(&diags.diag[0], line, sizeof line);
        print_error("%s\n", line);
        fail();
    }
    return config;
}

static struct becalm_config *load(const char *name)
{
    char path[256];
    struct becalm_config *config = NULL;
    memset(&diags, 0, sizeof diags);
    (void)snprintf(path, sizeof path, "%s/%s", BECALM_POLICIES, name);
    int rc = becalm_config_load(&config, path, NULL, &diags);
    for (uint32_t i = 0; i < diags.count; i++) {
        char line[1024];
        (void)becalm_diag_write(&diags.diag[i], line, sizeof line);
        print_error("%s\n", line);
    }
    check_eq_u64((uint64_t)rc, 0);
    return config;
}

/* The text must be refused, and these must be its diagnostics, one per line. */
static void check_refused(const char *text, const char *expected)
{
    char all[4096] = "";
    struct becalm_config *config = parse_with(text, NULL);
    check_true(config == NULL);
    for (uint32_t i = 0; i < diags.count; i++) {
        size_t used = strlen(all);
        used += becalm_diag_write(&diags.diag[i], all + used, sizeof all - used - 2);
        all[used] = '\n';
        all[used + 1] = '\0';
    }
    check_eq_str(all, expected);
}

static void test_config__an_empty_defaults_is_the_default_policy(void **state)
{
    (void)state;
    struct becalm_config *config = parse("defaults:\n");
    struct becalm_policy built_in;
    becalm_policy_defaults(&built_in);
    built_in.timeout_kind = BECALM_TIMEOUT_LEARNED; /* a value set in C counts as chosen, an unwritten key does not */
    built_in.retry_overdue = true;                  /* drivers of a program's own may have room for one attempt only */
    built_in.deadline = BECALM_RULES_LONGEST;
    const struct becalm_rules *rules = becalm_config_defaults(config);
    check_eq_u64((uint64_t)memcmp(&rules->policy, &built_in, sizeof built_in), 0);
    check_eq_u64(becalm_config_services(config), 0);
    becalm_config_free(config);
    becalm_config_free(NULL);
}

static void test_config__only_a_sidecar_trusts_its_machine_by_itself(void **state)
{
    (void)state;
    struct becalm_config *gateway = parse("version: 1\n");
    struct becalm_config *sidecar = parse("role: sidecar\n");
    struct becalm_config *neither = parse("role: sidecar\ntrust: []\n");
    assert_null(becalm_config_settings(gateway)->trust[0]);
    assert_null(becalm_config_settings(neither)->trust[0]);
    check_eq_str(becalm_config_settings(sidecar)->trust[0], "127.0.0.0/8");
    check_eq_str(becalm_config_settings(sidecar)->trust[2], "unix");
    becalm_config_free(gateway);
    becalm_config_free(sidecar);
    becalm_config_free(neither);
}

static void test_config__the_reference_file_says_what_the_defaults_are(void **state)
{
    (void)state;
    struct becalm_config *reference = load("reference.yaml");
    struct becalm_config *empty = parse("{}");
    const struct becalm_rules *written = becalm_config_defaults(reference);
    const struct becalm_rules *built_in = becalm_config_defaults(empty);
    struct becalm_policy a = written->policy;
    a.hedge.non_fatal = built_in->policy.hedge.non_fatal; /* nonFatal's words are coarser than the engine's set */
    check_eq_u64((uint64_t)memcmp(&a, &built_in->policy, sizeof a), 0);
    check_eq_u64((uint64_t)memcmp(&written->retry_on, &built_in->retry_on, sizeof written->retry_on), 0);
    check_eq_u64(written->connect_timeout, built_in->connect_timeout);
    check_eq_u64(written->auto_limit, built_in->auto_limit);
    const struct becalm_settings *x = becalm_config_settings(reference);
    const struct becalm_settings *y = becalm_config_settings(empty);
    check_eq_str(x->listen[0], y->listen[0]);
    check_eq_str(x->admin, y->admin);
    check_true(x->trust[0] == NULL && y->trust[0] == NULL);
    check_eq_u64(x->drain_limit, y->drain_limit);
    check_eq_u64(x->max_header_bytes, y->max_header_bytes);
    check_eq_u64(x->max_body, y->max_body);
    check_eq_u64(x->store_ttl, y->store_ttl);
    becalm_config_free(reference);
    becalm_config_free(empty);
}

static void check_coordinated(const struct becalm_config *config)
{
    check_eq_u64(becalm_config_services(config), 3);
    const struct becalm_rules *defaults = becalm_config_defaults(config);
    check_eq_u64(defaults->policy.max_retries, 3);
    check_eq_u64(defaults->policy.backoff.jitter, BECALM_JITTER_PROPORTIONAL);
    check_eq_u64(defaults->policy.backoff.jitter_ppm, 500000);
    const struct becalm_service *payment = becalm_config_find(config, "payment-service");
    const struct becalm_service *inventory = becalm_config_find(config, "inventory-service");
    check_eq_u64(payment->rules.policy.max_retries, 2);
    check_eq_u64(payment->rules.policy.backoff.base, 200 * BECALM_MS);
    check_eq_u64(payment->rules.policy.backoff.cap, 10 * BECALM_S);
    check_eq_str(payment->hosts[0], "payment-service:80");
    check_eq_str(payment->match.host, "payment-service");
    check_eq_u64(inventory->rules.policy.max_retries, 5);
    check_eq_u64(inventory->rules.policy.backoff.cap, 30 * BECALM_S);
    check_eq_u64(becalm_config_find(config, "notification-service")->rules.policy.max_retries, 1);
    check_true(!becalm_config_settings(config)->gateway_retries);
}

static void test_config__the_same_policy_loads_bare_and_inside_its_configmap(void **state)
{
    (void)state;
    struct becalm_config *bare = load("coordinated.yaml");
    struct becalm_config *inside = load("coordinated-configmap.yaml");
    check_coordinated(bare);
    check_coordinated(inside);
    /* A position inside is a position in the outer file. */
    check_eq_u64(becalm_rules_origin(becalm_config_defaults(bare), "maxRetries").line, 4);
    check_eq_u64(becalm_rules_origin(becalm_config_defaults(bare), "maxRetries").column, 15);
    check_eq_u64(becalm_rules_origin(becalm_config_defaults(inside), "maxRetries").line, 11);
    check_eq_u64(becalm_rules_origin(becalm_config_defaults(inside), "maxRetries").column, 19);
    becalm_config_free(bare);
    becalm_config_free(inside);
}

static void test_config__the_gateway_does_not_retry_on_top_of_its_services_and_the_sidecar_does(void **state)
{
    (void)state;
    struct becalm_config *config = load("coordinated.yaml");
    struct becalm_policy policy;
    becalm_rules_policy(config, &becalm_config_find(config, "payment-service")->rules, &policy);
    check_eq_u64(policy.max_retries, 0);
    check_eq_u64(policy.limit.kind, BECALM_LIMIT_SLOTS);
    becalm_config_free(config);
    const char *const set[] = {"role=sidecar", NULL};
    config = parse_with("gatewayRetries: false\nservices: {a: {maxRetries: 2}}\n",
                        &(struct becalm_load_options){.set = set});
    becalm_rules_policy(config, &becalm_config_find(config, "a")->rules, &policy);
    check_eq_u64(policy.max_retries, 2);
    check_eq_u64(policy.limit.kind, BECALM_LIMIT_AIMD);
    becalm_config_free(config);
}

static void test_config__the_role_of_a_services_own_listener_is_the_services(void **state)
{
    (void)state;
    struct becalm_config *config =
        parse_with("role: sidecar\ngatewayRetries: false\nservices:\n"
                   "  in: {listen: {address: 127.0.0.1:1, role: gateway}, maxRetries: 2, endpoints: {e: {}}}\n"
                   "  out: {maxRetries: 2}\n",
                   NULL);
    struct becalm_policy policy;
    const struct becalm_settings *settings = becalm_config_settings(config);
    becalm_rules_policy(config, &becalm_config_find(config, "in")->endpoints[0].rules, &policy);
    check_eq_u64(policy.max_retries, 0);
    check_eq_u64(policy.limit.kind, BECALM_LIMIT_SLOTS);
    becalm_rules_policy(config, &becalm_config_find(config, "out")->rules, &policy);
    check_eq_u64(policy.max_retries, 2);
    check_eq_u64(policy.limit.kind, BECALM_LIMIT_AIMD);
    check_eq_u64(settings->listener_count, 2);
    check_eq_u64(settings->listeners[0].service, BECALM_LISTENER_SHARED);
    check_eq_u64(settings->listeners[0].role, BECALM_ROLE_SIDECAR);
    check_eq_u64(settings->listeners[1].service, 0);
    check_eq_u64(settings->listeners[1].role, BECALM_ROLE_GATEWAY);
    assert_null(settings->trust_by_role[BECALM_ROLE_GATEWAY][0]);
    assert_string_equal(settings->trust_by_role[BECALM_ROLE_SIDECAR][0], "127.0.0.0/8");
    becalm_config_free(config);
}

static void test_config__an_endpoint_inherits_key_by_key_and_knows_where_from(void **state)
{
    (void)state;
    struct becalm_config *config = parse("defaults:\n"
                                         "  maxRetries: 4\n"
                                         "  budget: {percent: 20}\n"
                                         "services:\n"
                                         "  pay:\n"
                                         "    budget: {start: 2}\n"
                                         "    endpoints:\n"
                                         "      charge: {match: {method: POST, path: /c}, maxRetries: 1}\n");
    const struct becalm_service *pay = becalm_config_find(config, "pay");
    check_eq_u64(pay->endpoint_count, 1);
    const struct becalm_endpoint *charge = &pay->endpoints[0];
    check_eq_str(charge->name, "charge");
    check_eq_str(charge->match.method, "POST");
    check_eq_str(charge->match.path, "/c");
    check_eq_u64(charge->rules.policy.max_retries, 1);
    check_eq_u64(charge->rules.policy.budget.share_ppm, 200000);
    check_eq_u64(charge->rules.policy.budget.start, 2000000);
    check_eq_u64(becalm_rules_origin(&charge->rules, "maxRetries").level, BECALM_FROM_ENDPOINT);
    check_eq_u64(becalm_rules_origin(&charge->rules, "maxRetries").line, 8);
    check_eq_u64(becalm_rules_origin(&charge->rules, "budget.start").level, BECALM_FROM_SERVICE);
    check_eq_u64(becalm_rules_origin(&charge->rules, "budget.percent").level, BECALM_FROM_DEFAULTS);
    check_eq_u64(becalm_rules_origin(&charge->rules, "budget.percent").line, 3);
    check_eq_u64(becalm_rules_origin(&charge->rules, "jitter").level, BECALM_FROM_BUILT_IN);
    check_eq_u64(becalm_rules_origin(&charge->rules, "nonsense").level, BECALM_FROM_BUILT_IN);
    becalm_config_free(config);
}

static void test_config__another_kind_of_budget_brings_its_own_defaults(void **state)
{
    (void)state;
    struct becalm_config *config = parse("defaults: {budget: {percent: 20, kind: earned}}\n"
                                         "services:\n"
                                         "  a: {budget: {capacity: 7, kind: tokens}}\n"
                                         "  b: {breaker: {minimumNumberOfCalls: 5, preset: resilience4j}}\n"
                                         "  c: {retryMode: adaptive}\n"
                                         "  d: {limit: {max: 9, kind: fixed}}\n");
    const struct becalm_policy *a = &becalm_config_find(config, "a")->rules.policy;
    check_eq_u64(a->budget.kind, BECALM_BUDGET_TOKENS);
    check_eq_u64(a->budget.capacity, 7);
    check_eq_u64(a->budget.refill_per_second, 20);
    check_eq_u64(becalm_rules_origin(&becalm_config_find(config, "a")->rules, "budget.percent").level,
                 BECALM_FROM_BUILT_IN);
    const struct becalm_policy *b = &becalm_config_find(config, "b")->rules.policy;
    check_eq_u64(b->breaker.failure_share_ppm, 500000);
    check_eq_u64(b->breaker.min_calls, 5);
    const struct becalm_policy *c = &becalm_config_find(config, "c")->rules.policy;
    check_eq_u64(c->budget.kind, BECALM_BUDGET_AWS);
    check_true(c->rate.enabled);
    const struct becalm_rules *d = &becalm_config_find(config, "d")->rules;
    check_eq_u64(d->policy.limit.kind, BECALM_LIMIT_FIXED);
    check_eq_u64(d->policy.limit.max, 9);
    check_true(!d->auto_limit);
    becalm_config_free(config);
}

static void test_config__the_shop_loads_with_all_that_a_service_can_have(void **state)
{
    (void)state;
    struct becalm_config *config = load("shop.yaml");
    const struct becalm_service *payment = becalm_config_find(config, "payment");
    check_eq_u64(payment->host_count, 2);
    check_eq_str(payment->match.prefix, "/pay");
    check_eq_u64(payment->call_count, 1);
    check_eq_str(payment->calls[0], "ledger");
    check_eq_u64(payment->traffic_milli, 200000);
    check_eq_u64(payment->instances, 4);
    check_eq_u64(payment->endpoints[0].rules.key, BECALM_KEY_REQUIRED);
    check_eq_str(payment->endpoints[1].match.header_name, "X-Client");
    check_eq_str(payment->endpoints[1].match.header_value, "mobile");
    check_eq_u64(payment->endpoints[1].rules.policy.hedge.delay, 50 * BECALM_MS);
    becalm_config_free(config);
}

static void test_config__every_error_of_a_file_is_reported_in_one_run(void **state)
{
    (void)state;
    check_refused(
        "defaults:\n"
        "  maxRetry: 3\n"
        "  initialDelay: 100\n"
        "  multiplier: 0.5\n"
        "  jitter: some\n"
        "services:\n"
        "  a:\n"
        "    budget: {kind: ernaed}\n"
        "    endpoints: [x]\n",
        "policy.yaml:2:3: error: defaults has no key \"maxRetry\"; did you mean \"maxRetries\"? [unknown-key]\n"
        "policy.yaml:3:17: error: initialDelay: \"100\" is not a duration; write a number with its unit, like "
        "100ms, 1.5s or 2m [wrong-type]\n"
        "policy.yaml:4:15: error: multiplier: 0.5 is below 1, the least allowed [out-of-range]\n"
        "policy.yaml:5:11: error: jitter: \"some\" is not known here; write full, none, equal, decorrelated or "
        "proportional [wrong-type]\n"
        "policy.yaml:8:20: error: budget.kind: \"ernaed\" is not known here; write earned, ratio, tokens, "
        "concurrency, adaptive, grpc, aws or none [wrong-type]\n"
        "policy.yaml:9:16: error: endpoints is a mapping of names; write name: {...} [wrong-type]\n");
}

static void test_config__errors_come_in_the_order_of_the_file(void **state)
{
    (void)state;
    check_refused(
        "defaults: {maxRetry: 1}\n"
        "services: {a: {maxRetries: 1, maxRetries: 2}}\n"
        "lissen: x\n",
        "policy.yaml:1:12: error: defaults has no key \"maxRetry\"; did you mean \"maxRetries\"? [unknown-key]\n"
        "policy.yaml:2:31: error: the key \"maxRetries\" is here twice; the first is at line 2, keep one of them "
        "[duplicate-key]\n"
        "policy.yaml:3:1: error: the top of a policy has no key \"lissen\"; did you mean \"listen\"? [unknown-key]\n");
}

static void test_config__what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    check_refused(
        "defaults: {initialDelay: 2s, maxDelay: 1s}\n",
        "policy.yaml:1:40: error: defaults: maxDelay is below initialDelay; the longest wait must be at least "
        "the first [conflict]\n");
    check_refused("defaults: {jitter: full, jitterFactor: 0.5}\n",
                  "policy.yaml:1:20: error: jitterFactor is for proportional jitter; write jitter: proportional, or "
                  "remove one of them [conflict]\n");
    check_refused("version: 2\n",
                  "policy.yaml:1:10: error: this Becalm knows version 1 of the format; write version: 1 "
                  "[out-of-range]\n");
}

static void test_config__what_is_not_there_yet_is_refused_and_never_ignored(void **state)
{
    (void)state;
    check_refused("listen: [{address: '127.0.0.1:1', protocols: []}]\n",
                  "policy.yaml:1:46: error: protocols: the list is empty; write [h1], [h2, h1] or [h2] "
                  "[wrong-type]\n");
    check_refused(
        "defaults: {budget: {shared: {redis: x, percent: 5}}}\n",
        "policy.yaml:1:37: error: budget.shared.redis: a budget that all instances share through Redis needs a "
        "gateway, libbecalm-curl or becalm exec, and libbecalm alone has no store; remove the key [not-yet]\n");
    check_refused("store: {redis: 'redis://x'}\ndefaults: {budget: {shared: {percent: 5}}}\n",
                  "policy.yaml:2:39: error: defaults: a budget that all instances share through Redis needs a gateway, "
                  "libbecalm-curl or becalm exec, and libbecalm alone has no store; remove budget.shared [not-yet]\n");
}

static void test_config__tls_of_listeners_and_hosts_is_read_with_its_lines(void **state)
{
    (void)state;
    struct becalm_config *config = NULL;
    memset(&diags, 0, sizeof diags);
    const char *text = "listen:\n"
                       "  - 127.0.0.1:1\n"
                       "  - address: 127.0.0.1:2\n"
                       "    tls: {certificates: [{cert: a.pem, key: /k/a.key}], clientCa: ca.pem, minVersion: 1.3}\n"
                       "services:\n"
                       "  a: {hosts: ['https://a.test', 'https://[::1]', 'https://b.test:8443']}\n"
                       "  b: {hosts: ['b.test:1'], tls: {serverName: c.test, verify: none}}\n"
                       "  c.test: {tls: {ca: ca.pem}}\n";
    assert_int_equal(becalm_config_parse(&config, "/etc/p.yaml", text, strlen(text), NULL, &diags), 0);
    const struct becalm_settings *settings = becalm_config_settings(config);
    assert_int_equal(settings->listener_count, 2);
    assert_false(settings->listeners[0].tls);
    const struct becalm_listener *listener = &settings->listeners[1];
    assert_true(listener->tls);
    check_eq_str(settings->listen[1], "127.0.0.1:2");
    check_eq_str(listener->certificates[0].cert.path, "/etc/a.pem"); /* beside the policy */
    assert_int_equal(listener->certificates[0].cert.line, 4);
    assert_int_equal(listener->certificates[0].cert.column, 33);
    check_eq_str(listener->certificates[0].key.path, "/k/a.key");
    assert_int_equal(listener->client_auth, BECALM_CLIENT_AUTH_REQUIRED); /* by clientCa alone */
    assert_int_equal(listener->min_version, BECALM_TLS_1_3);
    const struct becalm_service *service = becalm_config_find(config, "a");
    assert_true(service->tls.enabled);
    assert_int_equal(service->tls.verify, BECALM_TLS_VERIFY_FULL);
    check_eq_str(service->hosts[0], "a.test:443");
    check_eq_str(service->hosts[1], "[::1]:443");
    check_eq_str(service->hosts[2], "b.test:8443");
    assert_int_equal(becalm_config_find(config, "b")->tls.verify, BECALM_TLS_VERIFY_NONE);
    check_eq_str(diags.diag[0].code, "tls-unverified");
    check_eq_str(becalm_config_find(config, "c.test")->hosts[0], "c.test:443");
    becalm_config_free(config);
}

static void test_config__names_in_trust_need_somebody_who_asks_for_them(void **state)
{
    (void)state;
    static const char asks[] = "listen: {address: 127.0.0.1:1, tls: {certificates: {cert: a, key: b}, clientCa: c}}\n"
                               "trust: [spiffe://a/b]\n";
    static const char nobody[] = "listen: 127.0.0.1:1\ntrust: [10.0.0.0/8, spiffe://a/b]\n";
    struct becalm_config *config = parse(asks);
    assert_int_equal(diags.count, 0);
    becalm_config_free(config);
    config = parse(nobody);
    check_eq_str(diags.diag[0].code, "trust-unasked");
    assert_int_equal(diags.diag[0].line, 2);
    becalm_config_free(config);
}

static void test_config__a_service_that_passes_hosts_has_rules_that_pass(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_config *config =
        parse("role: sidecar\ndefaults: {maxRetries: 3, outlier: {enabled: true}, hedge: {enabled: true}}\n"
              "services: {a: {unlisted: pass}, b: {unlisted: pass, maxRetries: 1, match: {host: '*.b'}}, c: {}}\n");
    assert_int_equal(diags.count, 0);
    const struct becalm_service *a = becalm_config_find(config, "a");
    becalm_rules_policy(config, &a->rules, &policy);
    assert_true(policy.max_retries == 0 && !policy.breaker.enabled && !policy.outlier.enabled &&
                !policy.restart.enabled && !policy.hedge.enabled && !policy.throttle.enabled);
    assert_int_equal(policy.limit.kind, BECALM_LIMIT_NONE);
    assert_int_equal(becalm_rules_origin(&a->rules, "maxRetries").level, BECALM_FROM_BUILT_IN);
    check_eq_str(a->match.host, "*");
    check_eq_str(a->hosts[0], "*");
    assert_int_equal(a->host_count, 1);
    assert_int_equal(becalm_config_find(config, "b")->rules.policy.max_retries, 1);
    assert_int_equal(becalm_config_find(config, "c")->rules.policy.max_retries, 3);
    becalm_config_free(config);
}

static void test_config__listeners_pass_hosts_that_no_service_names_where_nobody_else_comes(void **state)
{
    (void)state;
    static const struct {
        const char *listener;
        bool passes;
    } cases[] = {
        {"127.0.0.1:1", true},
        {"unix:/a", true},
        {"'[::1]:1'", true},
        {"0.0.0.0:1", false},
        {"10.0.0.1:1", false},
        {"{address: 127.0.0.1:1, role: gateway}", false},
        {"{address: 127.0.0.1:1, unlisted: refuse}", false},
        {"{address: 0.0.0.0:1, unlisted: pass}", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "role: sidecar\nlisten: %s\nservices: {a: {unlisted: pass}}\n",
                       cases[i].listener);
        struct becalm_config *config = parse(text);
        const struct becalm_settings *settings = becalm_config_settings(config);
        assert_int_equal(settings->listeners[0].passes_unlisted, cases[i].passes);
        assert_int_equal(diags.count, cases[i].passes ? 0 : 1);
        if (!cases[i].passes) {
            check_eq_str(diags.diag[0].code, "unlisted-unreached");
        }
        becalm_config_free(config);
    }
    struct becalm_config *config = parse("services: {a: {listen: 127.0.0.1:2}}\nrole: sidecar\nlisten: []\n");
    assert_false(becalm_config_settings(config)->listeners[0].passes_unlisted);
    becalm_config_free(config);
}

static void test_config__a_fallback_is_inherited_key_by_key(void **state)
{
    (void)state;
    struct becalm_config *config =
        parse("defaults: {fallback: {service: b, status: 200, headers: ['X-A:  1 ', 'b: 2']}}\n"
              "services: {a: {fallback: {on: [open]}, endpoints: {e: {fallback: {service: none, body: x}}}}, b: {}}\n");
    assert_int_equal(diags.count, 0);
    const struct becalm_service *a = becalm_config_find(config, "a");
    assert_int_equal(a->rules.fallback.on, BECALM_FALLBACK_OPEN);
    check_eq_str(a->rules.fallback.service, "b");
    check_eq_str(a->rules.fallback.fields[0], "x-a");
    check_eq_str(a->rules.fallback.fields[1], "1 ");
    check_eq_str(a->rules.fallback.fields[3], "2");
    assert_null(a->rules.fallback.fields[4]);
    const struct becalm_fallback *own = &a->endpoints[0].rules.fallback;
    assert_true(own->service == NULL && own->status == 200 && own->on == BECALM_FALLBACK_OPEN);
    check_eq_str(own->body, "x");
    check_eq_str(own->fields[0], "x-a");
    assert_int_equal(becalm_config_find(config, "b")->rules.fallback.on, BECALM_FALLBACK_ALL);
    becalm_config_free(config);
}

static void test_config__tls_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    check_refused("listen: [{address: '127.0.0.1:1', tls: {}}]\n",
                  "policy.yaml:1:40: error: tls needs a certificate; write tls: {certificates: [{cert: FILE, key: "
                  "FILE}]} [missing]\n");
    check_refused("services: {a: {hosts: ['https://a.test', 'a.test:80']}}\n",
                  "policy.yaml:1:42: error: hosts: \"a.test:80\" is without TLS and other hosts of a use TLS; write "
                  "https:// before all, or make two services [conflict]\n");
    check_refused("services: {a: {hosts: ['a.test:80'], tls: {cert: x}}}\n",
                  "policy.yaml:1:50: error: a: tls.cert and tls.key belong together; write both, or none [missing]\n");
    check_refused(
        "services: {a: {hosts: ['https://a.test/path']}}\n",
        "policy.yaml:1:24: error: hosts: \"https://a.test/path\" is not an address; write host:port, "
        "[ipv6]:port, unix:/path, https://host for TLS, or srv://_http._tcp.name for SRV records [wrong-type]\n");
}

static void test_config__a_store_has_a_name_space_a_user_and_files(void **state)
{
    (void)state;
    struct becalm_config *config = parse("fleet: prod-eu.1\nstore:\n  redis: rediss://cache\n  user: becalm\n"
                                         "  passwordFile: secret\n  timeout: 500ms\n  ca: ca.pem\n  verify: none\n");
    assert_non_null(config);
    const struct becalm_settings *settings = becalm_config_settings(config);
    check_eq_str(settings->fleet, "prod-eu.1");
    check_eq_str(settings->store.redis, "rediss://cache");
    check_eq_u64(settings->store.line, 3);
    check_eq_str(settings->store.user, "becalm");
    check_eq_str(settings->store.password_file.path, "secret");
    check_eq_u64(settings->store.timeout, 500 * BECALM_MS);
    check_true(settings->store.tls.enabled && settings->store.tls.verify == BECALM_TLS_VERIFY_NONE);
    becalm_config_free(config);
    config = parse("services: {a: {}}\n");
    check_eq_str(becalm_config_settings(config)->fleet, "default");
    check_true(becalm_config_settings(config)->store.redis == NULL);
    becalm_config_free(config);
}

static void test_config__traces_go_to_a_collector(void **state)
{
    (void)state;
    struct becalm_config *config =
        parse("tracing:\n  endpoint: https://collector:4318\n  headers: [\"authorization: Bearer x\", \"a:\"]\n"
              "  service: edge\n  sample: 2.5%\n  parent: trusted\n  timeout: 3s\n  ca: ca.pem\n  verify: none\n");
    assert_non_null(config);
    const struct becalm_tracing *tracing = &becalm_config_settings(config)->tracing;
    check_eq_str(tracing->endpoint, "https://collector:4318");
    check_eq_u64(tracing->line, 2);
    check_eq_str(tracing->headers[0], "authorization: Bearer x");
    check_true(tracing->headers[1] != NULL && tracing->headers[2] == NULL);
    check_eq_str(tracing->service, "edge");
    check_eq_u64(tracing->share_ppm, 25000);
    check_eq_u64(tracing->parent, BECALM_TRACE_PARENT_TRUSTED);
    check_eq_u64(tracing->timeout, 3 * BECALM_S);
    check_true(tracing->tls.enabled && tracing->tls.verify == BECALM_TLS_VERIFY_NONE);
    becalm_config_free(config);
    config = parse("services: {a: {}}\n");
    tracing = &becalm_config_settings(config)->tracing;
    check_true(tracing->endpoint == NULL && tracing->headers[0] == NULL && !tracing->tls.enabled);
    check_eq_u64(tracing->share_ppm, 10000);
    becalm_config_free(config);
    config = parse("tracing: {endpoint: none, sample: 1%}\n");
    check_true(becalm_config_settings(config)->tracing.endpoint == NULL);
    becalm_config_free(config);
}

static void test_config__what_does_not_fit_in_tracing_is_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {"collector:4318", "grpc://a:4317", "http://",
                                       "http://:4318",   "'http://a b'",  "http://u:p@a:43",
                                       "'http://a?b'",   "'http://a#b'",  "'http://a/\xc3\xa4'"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        char text[128];
        snprintf(text, sizeof text, "tracing: {endpoint: %s}\n", urls[i]);
        check_refused(text, "policy.yaml:1:21: error: tracing.endpoint is not the URL of a collector; write "
                            "http://collector:4318 or https://, without user and query, or none [wrong-type]\n");
    }
    check_refused("tracing: {sample: 1%}\n", "policy.yaml:1:10: error: tracing has no endpoint; write endpoint: "
                                             "http://collector:4318, or none [missing]\n");
    check_refused("tracing: {endpoint: \"http://a\", headers: [\"a: b\", \"secret\"]}\n",
                  "policy.yaml:1:42: error: tracing.headers: item 2 is no field; write \"name: value\" [wrong-type]\n");
    check_refused("tracing: {endpoint: \"http://a\", headers: \"a: b\\r\\nc: d\"}\n",
                  "policy.yaml:1:42: error: tracing.headers: item 1 is no field; write \"name: value\" [wrong-type]\n");
    check_refused("tracing: {endpoint: \"http://a\", headers: \": b\"}\n",
                  "policy.yaml:1:42: error: tracing.headers: item 1 is no field; write \"name: value\" [wrong-type]\n");
    check_refused("tracing: {endpoint: \"http://a\", ca: x}\n",
                  "policy.yaml:1:37: error: tracing.ca is for TLS; write endpoint: https://host:4318 [conflict]\n");
    check_refused("tracing: {endpoint: \"https://a\", cert: x}\n",
                  "policy.yaml:1:40: error: tracing.cert needs its private key; write key: FILE [conflict]\n");
    check_refused("tracing: {endpoint: \"https://a\", key: x}\n",
                  "policy.yaml:1:39: error: tracing.key needs its certificate; write cert: FILE [conflict]\n");
}

static void test_config__what_does_not_fit_in_a_store_is_refused(void **state)
{
    (void)state;
    check_refused("fleet: a b\n",
                  "policy.yaml:1:8: error: fleet is a name of at most 64 letters, digits, dots, hyphens "
                  "and underscores; write fleet: prod-eu [wrong-type]\n");
    check_refused("store: {user: a}\n",
                  "policy.yaml:1:8: error: store has no redis; write redis: redis://host:6379 [missing]\n"
                  "policy.yaml:1:15: error: store.user needs a password; write passwordFile: FILE or passwordEnv: "
                  "VARIABLE [conflict]\n");
    check_refused("store: {redis: redis://a}\nidempotencyStore: {redis: inherit}\n",
                  "policy.yaml:2:27: error: idempotencyStore.redis needs a secret that all gateways share; write "
                  "secretFile: FILE [conflict]\n");
    check_refused("idempotencyStore: {redis: inherit, secretFile: s}\n",
                  "policy.yaml:1:27: error: idempotencyStore.redis needs a store; write store: {redis: "
                  "redis://host:6379} at the top of the policy [conflict]\n");
    check_refused("idempotencyStore: {onAway: pass}\n",
                  "policy.yaml:1:28: error: idempotencyStore.onAway is for keys that gateways share; write redis: "
                  "inherit [conflict]\n");
    check_refused("idempotencyStore: {fence: true, replicas: 1}\n",
                  "policy.yaml:1:27: error: idempotencyStore.fence is for keys that gateways share; write redis: "
                  "inherit [conflict]\n"
                  "policy.yaml:1:43: error: idempotencyStore.replicas is for keys that gateways share; write redis: "
                  "inherit [conflict]\n");
    check_refused("store: {redis: redis://a, passwordFile: x, passwordEnv: Y}\n",
                  "policy.yaml:1:41: error: store has passwordFile and passwordEnv; write one of them [conflict]\n");
    check_refused("store: {redis: redis://a, ca: x}\n",
                  "policy.yaml:1:31: error: store.ca is for TLS; write redis: rediss://host:6379 [conflict]\n");
    check_refused("store: {redis: rediss://a, cert: x}\n",
                  "policy.yaml:1:34: error: store.cert needs its private key; write key: FILE [conflict]\n");
    check_refused("store: {redis: cache}\n", "policy.yaml:1:16: error: store.redis is not a store; write "
                                             "redis://host:6379, rediss:// with TLS, redis+unix:///path, or none "
                                             "[wrong-type]\n");
}

static void redis_explained(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                            void *data)
{
    (void)origin;
    (void)sentence;
    if (strcmp(key, "budget.shared.redis") == 0) {
        (void)snprintf(data, 64, "%s", value);
    }
}

static void test_config__a_shared_budget_in_the_store_needs_only_its_percent(void **state)
{
    (void)state;
    const struct becalm_load_options sharing = {.shared_budgets = true};
    struct becalm_config *config = parse_with("store: {redis: \"redis://s\"}\n"
                                              "services:\n"
                                              "  a: {}\n"
                                              "  b: {budget: {kind: none, shared: {percent: 5}},\n"
                                              "      endpoints: {x: {budget: {shared: {redis: none}}}, y: {}}}\n"
                                              "  c: {budget: {shared: {redis: \"redis://t\"}}}\n",
                                              &sharing);
    assert_non_null(config);
    const struct becalm_service *b = becalm_config_service(config, 1);
    check_true(becalm_config_service(config, 0)->rules.shared_redis == NULL); /* a store alone shares no budget */
    check_eq_str(b->rules.shared_redis, "redis://s");
    check_true(b->endpoints[0].rules.shared_redis == NULL);
    check_eq_str(b->endpoints[1].rules.shared_redis, "redis://s");
    check_eq_str(becalm_config_service(config, 2)->rules.shared_redis, "redis://t");
    becalm_config_free(config);
}

/* Loads a policy as a driver with shared budgets does. */
static void test_config__a_shared_budget_is_inherited_key_by_key_and_can_be_taken_out(void **state)
{
    (void)state;
    const struct becalm_load_options sharing = {.shared_budgets = true};
    struct becalm_config *config = parse_with("defaults: {budget: {shared: {redis: \"redis://u:secret@s\"}}}\n"
                                              "services:\n"
                                              "  a: {}\n"
                                              "  b: {budget: {kind: none, shared: {percent: 5}}}\n"
                                              "  c: {budget: {shared: {redis: none}}}\n",
                                              &sharing);
    assert_non_null(config);
    static const uint32_t share[] = {200000, 50000, 200000};
    for (uint32_t i = 0; i < 3; i++) {
        struct becalm_policy policy;
        becalm_rules_policy(config, &becalm_config_service(config, i)->rules, &policy);
        check_true(policy.lease.enabled == (i < 2));
        check_eq_u64(policy.lease.share_ppm, share[i]);
    }
    const struct becalm_rules *b = &becalm_config_service(config, 1)->rules;
    check_eq_u64(becalm_rules_origin(b, "budget.shared.redis").level,
                 BECALM_FROM_DEFAULTS); /* though its kind is new */
    char line[64] = "";
    becalm_rules_explain(b, redis_explained, line);
    check_eq_str(line, "redis://***@s");
    becalm_config_free(config);
}

static void test_config__what_must_not_be_switched_on_by_a_typing_error_is_refused(void **state)
{
    (void)state;
    check_refused("admin: 0.0.0.0:9900\n", "policy.yaml:1:8: error: admin: beyond loopback it needs a token; write "
                                           "adminTokenFile: FILE, or an address like 127.0.0.1:9900 [conflict]\n");
    check_refused("admin: 127.example:9900\n",
                  "policy.yaml:1:8: error: admin: 127.example:9900 is a name; write an address to listen on, like "
                  "127.0.0.1:8080 or unix:/path [wrong-type]\n");
    check_refused("listen: [127.0.0.1:80, localhost:81]\n",
                  "policy.yaml:1:24: error: listen: localhost:81 is a name; write an address to listen on, like "
                  "127.0.0.1:8080 or unix:/path [wrong-type]\n");
    check_refused("listen: localhost:81\nadmin: none\n",
                  "policy.yaml:1:9: error: listen: localhost:81 is a name; write an address to listen on, like "
                  "127.0.0.1:8080 or unix:/path [wrong-type]\n");
    check_refused(
        "upgrades: [websocket, h2c]\n",
        "policy.yaml:1:11: error: upgrades: \"h2c\" can't be tunnelled; write protocols that carry no requests, like "
        "[websocket, tcp, SPDY/3.1], or [] [wrong-type]\n");
    struct becalm_config *config = parse("admin: 0.0.0.0:9900\nadminTokenFile: /etc/becalm/token\nupgrades: []\n");
    becalm_config_free(config);
}

static void test_config__an_address_is_listened_on_once(void **state)
{
    (void)state;
    check_refused("listen: [127.0.0.1:80, 127.0.0.1:81, 127.0.0.1:80]\n",
                  "policy.yaml:1:38: error: listen: 127.0.0.1:80 is there twice; write each address once [conflict]\n");
    check_refused(
        "listen: [\"unix:/run/a:0\", {address: \"unix:/run/a:0\", proxyProtocol: true}]\n",
        "policy.yaml:1:27: error: listen: unix:/run/a:0 is there twice; write each address once [conflict]\n");
    check_refused("listen: 127.0.0.1:9900\n",
                  "policy.yaml:1:9: error: listen: 127.0.0.1:9900 is also the address of admin (its default); change "
                  "one of them, or write admin: none [conflict]\n");
    check_refused("admin: 127.0.0.1:80\nservices: {a: {hosts: [h:1], listen: 127.0.0.1:80}}\n",
                  "policy.yaml:2:38: error: listen: 127.0.0.1:80 is also the address of admin; change one of them, or "
                  "write admin: none [conflict]\n");
    becalm_config_free(parse("listen: [127.0.0.1:0, 127.0.0.1:0]\nadmin: 127.0.0.1:0\n"));
    becalm_config_free(parse("listen: 127.0.0.1:9900\nadmin: none\n"));
}

static void test_config__the_admin_address_may_be_none(void **state)
{
    (void)state;
    struct becalm_config *config = parse("admin: none\n");
    assert_null(becalm_config_settings(config)->admin);
    becalm_config_free(config);
    config = parse("listen: [\"[::1]:80\", \"unix:/run/a\"]\nadmin: unix:/run/b\n");
    check_eq_str(becalm_config_settings(config)->admin, "unix:/run/b");
    becalm_config_free(config);
}

static void test_config__a_service_without_hosts_has_a_dns_name(void **state)
{
    (void)state;
    struct becalm_config *config = parse("services:\n"
                                         "  pay: {maxRetries: 1}\n"
                                         "  team/pay: {maxRetries: 1}\n"
                                         "  team/far: {hosts: [\"far:80\"]}\n");
    check_eq_u64(diags.warnings, 1);
    check_eq_str(diags.diag[0].code, "missing");
    check_eq_u64(diags.diag[0].line, 3);
    becalm_config_free(config);
}

static void test_config__a_key_of_another_kind_is_a_warning(void **state)
{
    (void)state;
    struct becalm_config *config = parse("services:\n"
                                         "  a: {budget: {minPerSecond: 10}}\n"
                                         "  b: {breaker: {failureThreshold: 3}}\n"
                                         "  c: {breaker: {preset: resilience4j}}\n");
    check_eq_u64(diags.warnings, 2);
    check_eq_str(diags.diag[0].code, "unused-key");
    check_eq_u64(diags.diag[0].line, 2);
    check_eq_u64(diags.diag[1].line, 3);
    becalm_config_free(config);
}

static void test_config__values_that_another_key_brought_say_which(void **state)
{
    (void)state;
    struct becalm_config *config = parse("services:\n"
                                         "  a: {breaker: {preset: resilience4j}}\n"
                                         "  b: {retryMode: adaptive}\n"
                                         "  c: {jitterFactor: 0.5}\n");
    const struct becalm_rules *a = &becalm_config_find(config, "a")->rules;
    const struct becalm_rules *b = &becalm_config_find(config, "b")->rules;
    const struct becalm_rules *c = &becalm_config_find(config, "c")->rules;
    check_eq_u64(becalm_rules_origin(a, "breaker.failureRateThreshold").line, 2);
    check_eq_u64(becalm_rules_origin(b, "budget.kind").line, 3);
    check_eq_u64(becalm_rules_origin(b, "rate.enabled").line, 3);
    check_eq_u64(becalm_rules_origin(c, "jitter").line, 4);
    becalm_config_free(config);
}

static void test_config__an_endpoint_may_need_its_services_budget_too(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_config *config = parse("services:\n"
                                         "  a:\n"
                                         "    budget: {kind: ratio, percent: 10, level: both}\n"
                                         "    endpoints:\n"
                                         "      x: {budget: {kind: none}}\n"
                                         "      y: {budget: {percent: 90, level: service}}\n");
    const struct becalm_service *a = becalm_config_find(config, "a");
    becalm_rules_policy(config, &a->endpoints[0].rules, &policy);
    check_eq_u64(policy.budget.kind, BECALM_BUDGET_NONE);
    check_eq_u64(policy.service_budget.kind, BECALM_BUDGET_RATIO);
    check_eq_u64(policy.service_budget.share_ppm, 100000);
    becalm_rules_policy(config, &a->endpoints[1].rules, &policy);
    check_eq_u64(policy.budget.share_ppm, 100000);
    becalm_config_free(config);
}

/* What the engine gets of a service's timeout: its kind, the time, and the deadline. */
static void check_timeout(const struct becalm_config *config, const char *service, enum becalm_timeout_kind kind,
                          const becalm_ns times[2])
{
    struct becalm_policy policy;
    becalm_rules_policy(config, &becalm_config_find(config, service)->rules, &policy);
    check_eq_u64(policy.timeout_kind, kind);
    check_eq_u64(policy.attempt_timeout, times[0]);
    check_eq_u64(policy.deadline, times[1]);
}

static void test_config__a_timeout_is_exact_learned_or_none_and_a_deadline_goes_with_it(void **state)
{
    (void)state;
    struct becalm_config *config =
        parse("services: {nothing: {}, some: {attemptTimeout: 2s}, none: {attemptTimeout: none},\n"
              "           all: {attemptTimeout: none, deadline: none}, long: {deadline: 300s}}\n");
    check_timeout(config, "nothing", BECALM_TIMEOUT_LEARNED, (becalm_ns[]){5 * BECALM_S, 60 * BECALM_S});
    check_timeout(config, "some", BECALM_TIMEOUT_EXACT, (becalm_ns[]){2 * BECALM_S, 16 * BECALM_S});
    check_timeout(config, "none", BECALM_TIMEOUT_NONE, (becalm_ns[]){5 * BECALM_S, 60 * BECALM_S});
    check_timeout(config, "all", BECALM_TIMEOUT_NONE, (becalm_ns[]){5 * BECALM_S, BECALM_NEVER});
    check_timeout(config, "long", BECALM_TIMEOUT_LEARNED, (becalm_ns[]){5 * BECALM_S, 300 * BECALM_S});
    becalm_config_free(config);
    config = parse("defaults: {attemptTimeout: 2s}\nservices: {a: {}, b: {attemptTimeout: learned}}\n");
    check_timeout(config, "a", BECALM_TIMEOUT_EXACT, (becalm_ns[]){2 * BECALM_S, 16 * BECALM_S});
    check_timeout(config, "b", BECALM_TIMEOUT_LEARNED, (becalm_ns[]){5 * BECALM_S, 60 * BECALM_S});
    becalm_config_free(config);
    check_refused(
        "defaults: {attemptTimeout: lerned}\n",
        "policy.yaml:1:28: error: attemptTimeout: \"lerned\" is not a duration; write a number with its unit, "
        "like 100ms, 1.5s or 2m, or the word learned or none [wrong-type]\n");
}

static void test_config__unknown_keys_can_be_allowed_for_a_rolling_upgrade(void **state)
{
    (void)state;
    struct becalm_config *config = parse_with("defaults: {maxRetries: 1, fromTheFuture: 3}\n",
                                              &(struct becalm_load_options){.allow_unknown = true});
    check_true(config != NULL);
    check_eq_u64(diags.warnings, 1);
    becalm_config_free(config);
}

static void test_config__set_overrides_the_file_by_its_own_rules(void **state)
{
    (void)state;
    const char *const set[] = {"defaults.maxRetries=7", "services.a.b.hosts=[\"127.0.0.1:1\", \"127.0.0.1:2\"]",
                               "services.new.budget.percent=5", "role=sidecar", NULL};
    struct becalm_config *config =
        parse_with("services: {a.b: {maxDelay: 5s}}\n", &(struct becalm_load_options){.set = set});
    check_true(config != NULL);
    check_eq_u64(becalm_config_defaults(config)->policy.max_retries, 7);
    check_eq_u64(becalm_rules_origin(becalm_config_defaults(config), "maxRetries").level, BECALM_FROM_SET);
    check_eq_u64(becalm_config_find(config, "a.b")->host_count, 2);
    check_eq_u64(becalm_config_find(config, "new")->rules.policy.budget.share_ppm, 50000);
    check_eq_u64(becalm_config_settings(config)->role, BECALM_ROLE_SIDECAR);
    becalm_config_free(config);
    const char *const bad[] = {"defaults.maxRetry=7", "nonsense", "defaults.maxRetries.x=1", NULL};
    check_true(parse_with("defaults: {maxRetries: 1}\n", &(struct becalm_load_options){.set = bad}) == NULL);
    check_eq_u64(diags.errors, 3);
    check_eq_str(diags.diag[0].file, "--set");
}

static void test_config__a_file_that_is_not_there_is_one_clear_line(void **state)
{
    (void)state;
    struct becalm_config *config;
    memset(&diags, 0, sizeof diags);
    check_eq_u64((uint64_t)(int64_t)becalm_config_load(&config, "/no/such/file", NULL, &diags),
                 (uint64_t)(int64_t)BECALM_EIO);
    check_true(config == NULL);
    char line[512];
    (void)becalm_diag_write(&diags.diag[0], line, sizeof line);
    check_eq_str(line, "/no/such/file:1:1: error: No such file or directory [unreadable]");
}

static void test_config__at_most_a_hundred_diagnostics_are_kept_and_all_are_counted(void **state)
{
    (void)state;
    char text[8192] = "defaults:\n";
    for (int i = 0; i < 150; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "  zzzzzzzzz%d: 1\n", i);
    }
    check_true(parse_with(text, NULL) == NULL);
    check_eq_u64(diags.count, BECALM_DIAGS_MAX);
    check_eq_u64(diags.errors, 150);
}

static void count_keys(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                       void *data)
{
    (void)origin;
    check_true(key[0] != '\0' && value[0] != '\0' && sentence[0] != '\0');
    ++*(uint32_t *)data;
}

static void test_config__explain_tells_every_value_as_one_would_write_it(void **state)
{
    (void)state;
    uint32_t keys = 0;
    struct becalm_config *config = load("shop.yaml");
    becalm_rules_explain(&becalm_config_find(config, "payment")->endpoints[0].rules, count_keys, &keys);
    check_true(keys > 50);
    becalm_config_free(config);
}

BECALM_TESTS(cmocka_unit_test(test_config__an_empty_defaults_is_the_default_policy),
             cmocka_unit_test(test_config__only_a_sidecar_trusts_its_machine_by_itself),
             cmocka_unit_test(test_config__the_reference_file_says_what_the_defaults_are),
             cmocka_unit_test(test_config__the_same_policy_loads_bare_and_inside_its_configmap),
             cmocka_unit_test(test_config__the_gateway_does_not_retry_on_top_of_its_services_and_the_sidecar_does),
             cmocka_unit_test(test_config__the_role_of_a_services_own_listener_is_the_services),
             cmocka_unit_test(test_config__an_endpoint_inherits_key_by_key_and_knows_where_from),
             cmocka_unit_test(test_config__another_kind_of_budget_brings_its_own_defaults),
             cmocka_unit_test(test_config__the_shop_loads_with_all_that_a_service_can_have),
             cmocka_unit_test(test_config__every_error_of_a_file_is_reported_in_one_run),
             cmocka_unit_test(test_config__errors_come_in_the_order_of_the_file),
             cmocka_unit_test(test_config__what_contradicts_itself_is_refused),
             cmocka_unit_test(test_config__what_is_not_there_yet_is_refused_and_never_ignored),
             cmocka_unit_test(test_config__tls_of_listeners_and_hosts_is_read_with_its_lines),
             cmocka_unit_test(test_config__names_in_trust_need_somebody_who_asks_for_them),
             cmocka_unit_test(test_config__a_service_that_passes_hosts_has_rules_that_pass),
             cmocka_unit_test(test_config__listeners_pass_hosts_that_no_service_names_where_nobody_else_comes),
             cmocka_unit_test(test_config__a_fallback_is_inherited_key_by_key),
             cmocka_unit_test(test_config__tls_that_contradicts_itself_is_refused),
             cmocka_unit_test(test_config__a_store_has_a_name_space_a_user_and_files),
             cmocka_unit_test(test_config__traces_go_to_a_collector),
             cmocka_unit_test(test_config__what_does_not_fit_in_tracing_is_refused),
             cmocka_unit_test(test_config__what_does_not_fit_in_a_store_is_refused),
             cmocka_unit_test(test_config__a_shared_budget_in_the_store_needs_only_its_percent),
             cmocka_unit_test(test_config__a_shared_budget_is_inherited_key_by_key_and_can_be_taken_out),
             cmocka_unit_test(test_config__what_must_not_be_switched_on_by_a_typing_error_is_refused),
             cmocka_unit_test(test_config__an_address_is_listened_on_once),
             cmocka_unit_test(test_config__the_admin_address_may_be_none),
             cmocka_unit_test(test_config__a_service_without_hosts_has_a_dns_name),
             cmocka_unit_test(test_config__a_key_of_another_kind_is_a_warning),
             cmocka_unit_test(test_config__values_that_another_key_brought_say_which),
             cmocka_unit_test(test_config__an_endpoint_may_need_its_services_budget_too),
             cmocka_unit_test(test_config__a_timeout_is_exact_learned_or_none_and_a_deadline_goes_with_it),
             cmocka_unit_test(test_config__unknown_keys_can_be_allowed_for_a_rolling_upgrade),
             cmocka_unit_test(test_config__set_overrides_the_file_by_its_own_rules),
             cmocka_unit_test(test_config__a_file_that_is_not_there_is_one_clear_line),
             cmocka_unit_test(test_config__at_most_a_hundred_diagnostics_are_kept_and_all_are_counted),
             cmocka_unit_test(test_config__explain_tells_every_value_as_one_would_write_it))
