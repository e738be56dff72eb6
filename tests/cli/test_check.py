# SPDX-License-Identifier: MIT
"""becalm check, as it is typed."""

import json
import re
import resource
import subprocess
import textwrap

import pytest

from conftest import GUARD, SANITIZED


@pytest.fixture
def check(becalm, tmp_path):
    """check("services: ...", "--json"): the text becomes policy.yaml."""

    def run(text, *args):
        (tmp_path / "policy.yaml").write_text(textwrap.dedent(text), encoding="utf-8")
        return becalm("check", *args, "policy.yaml")

    return run


def findings(done):
    return json.loads(done.stdout)["findings"]


# Every rule: a file that breaks it, the finding, and a file that is almost the same and valid.
RULES = [
    (
        "stacked-retries",
        """\
        gatewayRetries: false
        services:
          front: {calls: [orders]}
          orders: {calls: [ledger]}
          ledger: {maxRetries: 3}
        """,
        "policy.yaml:5:3: warning: calls are retried at 2 layers on the way to ledger: one request to front can become "
        "12 attempts (orders 3 x ledger 4) [stacked-retries]\n"
        "    let only the layer next to the failure retry: keep `ledger`, write `maxRetries: 0` for `orders`\n",
        """\
        gatewayRetries: false
        services:
          front: {calls: [orders]}
          orders: {calls: [ledger], maxRetries: 0}
          ledger: {maxRetries: 2}
        """,
    ),
    (
        "no-jitter",
        "defaults: {jitter: none}\n",
        "policy.yaml:1:20: warning: defaults: retries without jitter: callers that failed together retry together "
        "[no-jitter]\n"
        "    write `jitter: full`, or remove the key: that is the default\n",
        "defaults: {jitter: none, maxRetries: 0}\n",
    ),
    (
        "no-budget",
        "services: {a: {budget: {kind: none}}}\n",
        "policy.yaml:1:31: warning: a: retries without any budget: in an outage every call makes 3 attempts [no-budget]\n"
        "    write `budget: {kind: earned, percent: 10}`, or remove `budget`: that is the default\n",
        "services: {a: {budget: {kind: ratio}}}\n",
    ),
    (
        "no-slow-call-rate",
        "services: {a: {breaker: {failureRateThreshold: 50}}}\n",
        "policy.yaml:1:48: warning: a: the breaker counts failures only: a service that hangs without failing never opens "
        "it [no-slow-call-rate]\n"
        "    write `slowCallRateThreshold: 80` and a `slowCallDurationThreshold` below the attempt timeout (5s)\n",
        "services: {a: {breaker: {failureRateThreshold: 50, slowCallRateThreshold: 80, slowCallDurationThreshold: 4s}}}\n",
    ),
    (
        "post-retry",
        "services: {a: {endpoints: {pay: {match: {method: POST}, idempotent: true}}}}\n",
        "policy.yaml:1:69: warning: a/pay: `idempotent: true` repeats POST and PATCH without an Idempotency-Key: they may be executed twice [post-retry]\n"
        "    write `idempotencyKey: required`, or remove `idempotent`: then only calls with a key are retried\n",
        """\
        services:
          a:
            endpoints:
              pay: {match: {method: POST}, idempotent: true, idempotencyKey: required}
              look: {match: {method: GET}, idempotent: true}
        """,
    ),
    (
        "enforced-repeats",
        "services: {a: {endpoints: {pay: {match: {method: POST}, idempotencyKey: enforced, idempotent: true}}}}\n",
        "policy.yaml:1:95: warning: a/pay: `idempotencyKey: enforced` sends no call twice, so `idempotent: true` has no effect on calls with a key [enforced-repeats]\n"
        "    remove it; if the service knows keys itself, write `idempotencyKey: required`\n",
        "services: {a: {endpoints: {pay: {match: {method: POST}, idempotencyKey: enforced}}}}\n",
    ),
    (
        "short-ttl",
        "idempotencyStore: {ttl: 5m}\nservices: {a: {idempotencyKey: enforced}}\n",
        "policy.yaml:2:32: warning: a: a key is forgotten 5m after its call (idempotencyStore.ttl): a request that a client repeats later is executed twice [short-ttl]\n"
        "    write `idempotencyStore: {ttl: 24h}`, or at least as long as clients may repeat a request\n",
        "idempotencyStore: {ttl: 5m}\nservices: {a: {idempotencyKey: required}}\n",
    ),
    (
        "fallback-circle",
        "services: {a: {hosts: ['h:1'], fallback: {service: b}}, b: {hosts: ['g:1', 'h:1']}}\n",
        "policy.yaml:1:52: warning: a: b, its fallback, has the same host h:1: if one fails, so does the other [fallback-circle]\n"
        "    name a service that is independent of both, or write an answer: `fallback: {status: 503}`\n",
        "services: {a: {hosts: ['h:1'], fallback: {service: b}}, b: {hosts: ['g:1', 'h:2']}}\n",
    ),
    (
        "grpc-keys",
        "services: {a: {idempotencyKey: required, retryOn: [unavailable, resource-exhausted]}}\n",
        "policy.yaml:1:32: note: a: a key is looked up with the whole request, so nothing is sent before its end: a client that waits for an answer before it ends its stream waits forever [grpc-keys]\n"
        "    write `idempotencyKey` in the endpoints of unary methods, by their path, not for streams\n",
        "services: {a: {idempotencyKey: required, retryOn: [unavailable, 503]}}\n",
    ),
    (
        "keys-apart",
        "store: {redis: redis://cache}\nservices: {a: {idempotencyKey: enforced}}\n",
        "policy.yaml:2:32: warning: a: instances share a store, but each remembers enforced keys by itself: a request that a client repeats at another instance is executed twice [keys-apart]\n"
        "    write `idempotencyStore: {redis: inherit, secretFile: FILE}`\n",
        "store: {redis: redis://cache}\nservices: {a: {idempotencyKey: required}}\n",
    ),
    (
        "enforced-away",
        "store: {redis: redis://cache}\n"
        "idempotencyStore: {redis: inherit, secretFile: s, encryptFile: e, onAway: local}\n"
        "services: {a: {idempotencyKey: enforced}}\n",
        "policy.yaml:3:32: warning: a: while the store is away an enforced key is known to only one instance, so that a call "
        "may be executed twice [enforced-away]\n"
        "    remove `onAway`: then calls with an enforced key are refused, and required keys are kept in memory\n",
        "store: {redis: redis://cache}\n"
        "idempotencyStore: {redis: inherit, secretFile: s, encryptFile: e, onAway: refuse}\n"
        "services: {a: {idempotencyKey: enforced}}\n",
    ),
    (
        "store-plain-answers",
        "store: {redis: redis://cache}\nidempotencyStore: {redis: inherit, secretFile: s}\nservices: {a: {}}\n",
        "policy.yaml:2:48: note: answers to calls with a key are in the store unencrypted, for everyone with access to it "
        "[store-plain-answers]\n"
        "    write `encryptFile: FILE` beside `secretFile`\n",
        "store: {redis: redis://cache}\nidempotencyStore: {redis: inherit, secretFile: s, encryptFile: e}\nservices: {a: {}}\n",
    ),
    (
        "health-check-timeout",
        "services: {a: {healthCheck: {path: /healthz, interval: 1s, timeout: 5s}}}\n",
        "policy.yaml:1:12: warning: a: a health check may take 5s, but the next one is due after 1s: a host that hangs is detected later than the interval says [health-check-timeout]\n"
        "    write `timeout: 1s` or less\n",
        "services: {a: {healthCheck: {path: /healthz, interval: 5s, timeout: 5s}}}\n",
    ),
    (
        "health-check-load",
        "services: {a: {traffic: 10/s, instances: 5, healthCheck: {path: /healthz}}}\n",
        "policy.yaml:1:12: warning: a: its hosts get 1 health checks per second, beside 10 calls [health-check-load]\n"
        "    write a longer `interval`, or rely on ejection (`outlier`), which sends no requests\n",
        "services: {a: {traffic: 10/s, instances: 4, healthCheck: {path: /healthz}}}\n",
    ),
    (
        "key-room",
        "services: {a: {traffic: 100/s, instances: 4, idempotencyKey: enforced}}\n",
        "policy.yaml:1:62: warning: a: up to 25.000/s for 24h are 2160001 keys in each instance, and 2110 MiB with answers of "
        "1 KiB; there is room for 100000 and 64 MiB, beyond which keys are refused with 503 and answers are lost [key-room]\n"
        "    write `idempotencyStore: {maxEntries: 2160001, maxBytes: 2110MiB}`, with 1187 MiB of memory for the keys "
        "themselves, or a shorter `ttl`\n",
        "idempotencyStore: {maxEntries: 2160001, maxBytes: 2110MiB}\nservices: {a: {instances: 4, idempotencyKey: enforced}}\n",
    ),
    (
        "key-memory",
        "services: {a: {traffic: 0.1/s, idempotencyKey: required}}\n",
        "policy.yaml:1:48: note: a: up to 0.100/s for 24h are 8641 keys in each instance: 5 MiB, and 14 MiB with answers of "
        "1 KiB [key-memory]\n"
        "    nothing is wrong; idempotencyStore has room for them\n",
        "services: {a: {traffic: 0.1/s, idempotencyKey: optional}}\n",
    ),
    (
        "timeouts-exceed-deadline",
        "services: {a: {maxRetries: 3, attemptTimeout: 5s}}\n",
        "policy.yaml:1:28: warning: a: 4 attempts of 5s and waits of up to 700ms take 20.7s, but the deadline is 16s "
        "[timeouts-exceed-deadline]\n"
        "    write `attemptTimeout: 3.8s`, or `maxRetries: 2`, or a `deadline` of at least 20.7s\n",
        "services: {a: {maxRetries: 3, attemptTimeout: 3.8s}}\n",
    ),
    (
        "fresh-timeout",
        """\
        gatewayRetries: false
        services:
          front: {calls: [orders], maxRetries: 0}
          orders: {calls: [ledger], maxRetries: 0, attemptTimeout: 2s}
          ledger: {deadline: 20s}
        """,
        "policy.yaml:5:22: warning: ledger: a new timeout of 20s for calls from orders, although the caller of orders gives up after 2s [fresh-timeout]\n"
        "    write a `deadline` at the first service and none here: the time that is left is sent along; or at most 2s\n",
        """\
        defaults: {deadline: 20s}
        gatewayRetries: false
        services:
          front: {calls: [orders], maxRetries: 0}
          orders: {calls: [ledger], maxRetries: 0, attemptTimeout: 2s}
          ledger: {}
        """,
    ),
    (
        "many-attempts",
        "services: {a: {maxRetries: 5, attemptTimeout: 1s}}\n",
        "policy.yaml:1:28: warning: a: 6 attempts per call: a service that fails 5 times is down, and gets 6 times the load for it "
        "[many-attempts]\n"
        "    write `maxRetries: 2`\n",
        "services: {a: {maxRetries: 4, attemptTimeout: 1s}}\n",
    ),
    (
        "tiny-percent",
        "defaults: {budget: {percent: 0.1}}\nservices: {a: {}}\n",
        "policy.yaml:1:30: warning: defaults: a budget below 1 % allows almost no retries; in other systems 0.1 means 10 % "
        "[tiny-percent]\n    for 10 %, write `percent: 10`\n",
        "defaults: {budget: {percent: 1}}\nservices: {a: {}}\n",
    ),
    (
        "budget-floor",
        "services: {a: {traffic: 200/s, instances: 4, budget: {kind: ratio, minPerSecond: 10}}}\n",
        "policy.yaml:1:82: warning: a: `minPerSecond: 10` in each of the 4 instances that call a are 40 retries a second "
        "(20 % of its traffic) on top of the percentage [budget-floor]\n"
        "    write `minPerSecond: 2`, or remove the key\n",
        "services: {a: {traffic: 200/s, instances: 1, budget: {kind: ratio, minPerSecond: 10}}}\n",
    ),
    (
        "concurrency-budget",
        "services: {a: {budget: {kind: concurrency}}}\n",
        "policy.yaml:1:31: warning: a: a concurrency budget changes with latency: 20 % of the calls in progress are more retries when calls are slow, and when calls fail fast only minConcurrency (3) counts [concurrency-budget]\n"
        "    write `budget: {kind: ratio, percent: 20}`: a share of calls, at any latency; or `kind: earned`\n",
        "services: {a: {budget: {kind: ratio, percent: 20}}}\n",
    ),
    (
        "gateway-on-top",
        """\
        role: gateway
        services:
          front: {calls: [ledger]}
          ledger: {}
        """,
        "policy.yaml:3:3: warning: the gateway retries calls to front (3 attempts), on top of the retries below it "
        "(ledger) [gateway-on-top]\n"
        "    write `gatewayRetries: false` at the top of the file, or `maxRetries: 0` for `front`\n",
        """\
        role: gateway
        gatewayRetries: false
        services:
          front: {calls: [ledger]}
          ledger: {}
        """,
    ),
    (
        "hedge-and-retry",
        "services: {a: {maxRetries: 1, hedge: {enabled: true}}}\n",
        "policy.yaml:1:48: warning: a: hedge and maxRetries are written together, but a call uses only one of them: calls that can be repeated hedge, all other calls retry [hedge-and-retry]\n"
        "    keep one: `hedge` against slow answers, or `maxRetries` against failures\n",
        "defaults: {maxRetries: 1}\nservices: {a: {hedge: {enabled: true}}, b: {maxRetries: 0, hedge: {enabled: true}}}\n",
    ),
    (
        "breaker-never-trips",
        """\
        services:
          a:
            traffic: 20/s
            instances: 10
            breaker: {minimumNumberOfCalls: 50, slowCallRateThreshold: 80, slowCallDurationThreshold: 4s}
        """,
        "policy.yaml:5:37: warning: a: the breaker waits for 50 calls in 10 s, but with the declared traffic an instance "
        "makes 20 calls to a in that time: it never opens [breaker-never-trips]\n"
        "    write `minimumNumberOfCalls: 10`, or a longer `slidingWindowSize`\n",
        """\
        services:
          a:
            traffic: 20/s
            instances: 10
            breaker: {minimumNumberOfCalls: 20, slowCallRateThreshold: 80, slowCallDurationThreshold: 4s}
        """,
    ),
    (
        "no-breaker-no-limit",
        "services: {a: {breaker: {enabled: false}, limit: {kind: none}}}\n",
        "policy.yaml:1:35: warning: a: retries with neither a breaker nor a limit: a service that is down gets the full load "
        "[no-breaker-no-limit]\n"
        "    remove `limit: {kind: none}` or `breaker: {enabled: false}`\n",
        "services: {a: {breaker: {enabled: false}}, b: {limit: {kind: none}}}\n",
    ),
    (
        "retry-4xx",
        "services: {a: {retryOn: [5xx, 400, 404, 429]}}\n",
        "policy.yaml:1:25: warning: a: retryOn lists 400, 404: a 4xx says that the request is wrong, and a retry sends the same request "
        "[retry-4xx]\n"
        "    of the 4xx list only 429\n",
        "services: {a: {retryOn: [5xx, 429]}, b: {retryOn: [409], idempotencyKey: required}}\n",
    ),
    (
        "slow-above-timeout",
        "services: {a: {attemptTimeout: 2s, breaker: {slowCallRateThreshold: 80, slowCallDurationThreshold: 3s}}}\n",
        "policy.yaml:1:100: warning: a: a call is slow after 3s, but an attempt is cut after 2s: slow calls count as failed, if at all [slow-above-timeout]\n"
        "    write `slowCallDurationThreshold: 1.6s`, which is below the attempt timeout\n",
        "services: {a: {attemptTimeout: 3s, breaker: {slowCallRateThreshold: 80, slowCallDurationThreshold: 3s}}}\n",
    ),
    (
        "tiny-delay",
        "services: {a: {initialDelay: 0s}}\n",
        "policy.yaml:1:30: warning: a: with an initialDelay of 0 every wait is 0: retries arrive while the cause still "
        "lasts [tiny-delay]\n"
        "    write `initialDelay: 100ms`, or at least the usual latency of the service\n",
        "services: {a: {initialDelay: 10ms}}\n",
    ),
    (
        "decorrelated-at-cap",
        "services: {a: {jitter: decorrelated, maxDelay: 500ms}}\n",
        "policy.yaml:1:24: warning: a: from retry 2 on, three times the previous wait can be 900ms, above the cap of 500ms: every wait beyond the cap is exactly 500ms, and callers retry in step [decorrelated-at-cap]\n"
        "    write `jitter: full`, which also spreads waits at the cap, or a longer `maxDelay`\n",
        "services: {a: {jitter: decorrelated, maxDelay: 900ms, attemptTimeout: 4s}}\n",
    ),
    (
        "rate-shared",
        "services: {a: {rate: {enabled: true}, endpoints: {x: {}, y: {}}}}\n",
        "policy.yaml:1:32: warning: a: `rate` covers 2 endpoints of a: a server that throttles one resource must not slow "
        "the others [rate-shared]\n"
        "    write `rate: {enabled: true}` in the one endpoint that is throttled\n",
        "services: {a: {endpoints: {x: {rate: {enabled: true}}, y: {}}}}\n",
    ),
    (
        "store-password-inline",
        "store: {redis: 'redis://u:secret@localhost'}\nservices: {a: {}}\n",
        "policy.yaml:1:16: warning: the policy has the password of the store, and every reader of the file sees it "
        "[store-password-inline]\n"
        "    write `passwordFile: FILE` or `passwordEnv: VARIABLE` beside `redis`\n",
        "store: {redis: 'redis://u@localhost'}\nservices: {a: {}}\n",
    ),
    (
        "same-match",
        "services:\n  a: {match: {host: Shop.test, prefix: /x}}\n  b: {match: {host: shop.test, prefix: /x}}\n",
        "policy.yaml:3:3: warning: b has the same match as a, which is first in the file: no request reaches this one [same-match]\n"
        "    write another `match` for one of them, or remove one\n",
        "services:\n  a: {match: {host: shop.test, prefix: /x}}\n  b: {match: {host: shop.test, prefix: /y}}\n",
    ),
    (
        "unreachable-endpoint",
        "services:\n  pay:\n    match: {prefix: /pay}\n    endpoints: {health: {match: {prefix: /status}}}\n",
        "policy.yaml:4:17: warning: no request reaches health: pay gets requests for /pay/..., and health is for /status/... "
        "[unreachable-endpoint]\n"
        "    an endpoint gets only requests of its service: widen the `match` of pay, or change this one\n",
        "services:\n  pay:\n    match: [{prefix: /pay}, {path: /status}]\n    endpoints: {health: {match: {prefix: /status}}}\n",
    ),
    (
        "cycle",
        """\
        gatewayRetries: false
        defaults: {maxRetries: 0}
        services:
          a: {calls: [b]}
          b: {calls: [c]}
          c: {calls: [a]}
        """,
        "policy.yaml:6:14: error: services call each other in a circle: a > b > c > a; the number of attempts of a request has no bound [cycle]\n"
        "    remove `a` from the calls of `c`; if no request goes round the whole circle, silence this rule with that reason\n",
        """\
        gatewayRetries: false
        defaults: {maxRetries: 0}
        services:
          a: {calls: [b, c]}
          b: {calls: [c]}
          c: {}
        """,
    ),
    (
        "unknown-callee",
        "services: {a: {maxRetries: 0, calls: [leger]}, ledger: {}}\n",
        "policy.yaml:1:38: warning: a calls leger, which no file declares [unknown-callee]\n"
        "    did you mean `ledger`? if not, declare it: `leger: {}`\n",
        "services: {a: {maxRetries: 0, calls: [postgres]}, ledger: {}}\n",
    ),
    (
        "unknown-rule",
        "lint: {ignore: {jitter: no}}\n",
        "policy.yaml:1:1: warning: lint.ignore names jitter, which is no rule [unknown-rule]\n"
        "    did you mean `no-jitter`?\n",
        "lint: {ignore: {no-jitter: there is one caller}}\n",
    ),
]
CODES = [rule[0] for rule in RULES]


@pytest.mark.parametrize("code, bad, said, good", RULES, ids=CODES)
def test_check__each_rule_finds_what_it_is_for_and_nothing_else(check, code, bad, said, good):
    done = check(bad)
    # A file that breaks one rule may break another; the rule's own finding must be there word by word.
    assert said in done.stdout
    assert done.stderr == ""
    assert done.returncode == (1 if ": error: " in said else 0)
    assert findings(check(good, "--json")) == []


@pytest.mark.parametrize("code, bad", [(rule[0], rule[1]) for rule in RULES if rule[0] != "unknown-rule"])
def test_check__each_rule_can_be_silenced_with_a_reason(check, code, bad):
    quiet = f'lint: {{ignore: {{{code}: "a test"}}}}\n' + textwrap.dedent(bad)
    assert code not in [finding["code"] for finding in findings(check(quiet, "--json"))]
    assert "1 silenced\n" in check(quiet).stdout


def test_check__services_that_stand_in_for_each_other_are_both_told(check):
    said = check("services: {a: {fallback: {service: b}}, b: {fallback: {service: a}}}\n").stdout
    assert "a: its fallback is b, and the fallback of b leads back: if one fails, the other gets the load of both [fallback-circle]" in said
    assert "b: its fallback is a, and the fallback of a leads back" in said
    assert "fallback-circle" not in check("services: {a: {fallback: {service: b}}, b: {fallback: {service: c}}, c: {}}\n").stdout


def test_check__each_rule_has_a_section_in_the_documentation(becalm):
    sections = re.findall(r"^### ([a-z0-9-]+)$", (becalm.root / "docs/lint.md").read_text(), re.M)
    assert sections == CODES
    manual = (becalm.root / "man/becalm-check.1").read_text()
    assert [code for code in CODES if f".It Cm {code}\n" not in manual] == []


def test_check__keys_that_instances_share_are_counted_together_in_the_store(check):
    text = (
        "store: {redis: redis://cache}\nidempotencyStore: {redis: inherit, secretFile: s, encryptFile: e}\n"
        "services: {a: {traffic: 100/s, instances: 4, idempotencyKey: enforced}}\n"
    )
    assert (
        "policy.yaml:3:62: note: a: up to 100.000/s for 24h are 8640001 keys in the store: 10712 MiB of Redis, and 19150 MiB "
        "with answers of 1 KiB [key-memory]\n"
        "    give Redis that `maxmemory`, with `maxmemory-policy noeviction`, and write `maxEntries: 2160001` (198 MiB in each "
        "instance): if the store forgets keys, each instance sends it its last 100000 keys again\n"
    ) in check(text).stdout
    plain = "    give Redis that `maxmemory`, with `maxmemory-policy noeviction`\n"
    assert plain in check(text.replace("secretFile: s", "secretFile: s, maxEntries: 2160001")).stdout
    assert plain not in check(text.replace("secretFile: s", "secretFile: s, maxEntries: 2160000")).stdout
    assert plain in check(text.replace("enforced", "required")).stdout


def test_check__a_call_that_nothing_ends_is_told(check):
    said = check("services: {a: {attemptTimeout: none, deadline: none}}\n").stdout
    assert (
        "policy.yaml:1:48: warning: a: without a deadline or an attemptTimeout, a call that hangs never ends "
        "[fresh-timeout]\n"
        "    write a `deadline` that is as long as the slowest answer may take\n"
    ) in said
    assert "While a service restarts, a call to it waits for up to 3.75s (a)\n" in said
    assert findings(check("services: {a: {attemptTimeout: none, deadline: 10m}}\n", "--json")) == []


def test_check__the_example_of_the_documentation_is_what_it_says(becalm, check):
    page = (becalm.root / "docs/check.md").read_text()
    policy = re.search(r"```yaml\n(.*?)```\n", page, re.S).group(1)
    said = re.search(r"```\n\$ becalm check policy.yaml\n(.*?)```\n", page, re.S).group(1)
    assert check(policy).stdout == said


@pytest.mark.parametrize("text", ["defaults:\n", "defaults: {}\n", "version: 1\n", "services: {a: {}}\n"])
def test_check__the_default_policy_gives_no_finding(check, text):
    done = check(text, "--strict")
    assert done.returncode == 0
    assert done.stdout.endswith("policy.yaml: no findings\n")


def test_check__breaker_rules_judge_only_a_breaker_that_is_written(check):
    text = "services: {a: {traffic: 0.1/s}}\n"  # the default breaker could never open here
    assert findings(check(text, "--json")) == []


def test_check__a_bad_file_from_top_to_bottom(check):
    done = check(
        """\
        defaults:
          maxRetries: 3
          jitter: none
          attemptTimeout: 2s
          budget: {kind: none}
        services:
          front: {calls: [orders]}
          orders: {calls: [ledger]}
          ledger: {}
        """
    )
    assert done.stdout == textwrap.dedent(
        """\
        policy.yaml:3:11: warning: defaults: retries without jitter: callers that failed together retry together [no-jitter]
            write `jitter: full`, or remove the key: that is the default
        policy.yaml:5:18: warning: defaults: retries without any budget: in an outage every call makes 4 attempts [no-budget]
            write `budget: {kind: earned, percent: 10}`, or remove `budget`: that is the default
        policy.yaml:7:3: warning: the gateway retries calls to front (4 attempts), on top of the retries below it (orders) [gateway-on-top]
            write `gatewayRetries: false` at the top of the file, or `maxRetries: 0` for `front`
        policy.yaml:9:3: warning: calls are retried at 2 layers on the way to ledger: one request to front can become 16 attempts (orders 4 x ledger 4) [stacked-retries]
            let only the layer next to the failure retry: keep `ledger`, write `maxRetries: 0` for `orders`

        Worst case per client request, in attempts at each service
          service                   no budgets   budgets    dead   marks  client waits
          ledger                           64x       64x     64x      4x          8.7s
            client > front x4 > orders x4 > ledger x4
          orders                           16x       16x     16x      4x          8.7s
            client > front x4 > orders x4
          front                             4x        4x      4x      4x          8.7s
            client > front x4
          While a service restarts, a call to it waits for up to 1.5s (front)

        policy.yaml: 0 errors, 4 warnings
        """
    )
    assert done.stderr == ""
    assert done.returncode == 0


def unwritten(done):
    return [line.strip() for line in done.stdout.splitlines() if "is not written" in line]


def test_check__says_where_nobody_wrote_an_attempt_timeout(check):
    says = "Where `attemptTimeout` is not written it is learned, and no answer within 1m is cut: "
    six = "services: {a: {}, b: {}, c: {attemptTimeout: 30s}, d: {}, e: {}, f: {}, g: {}}\n"
    assert unwritten(check(six)) == [says + "a, b, d, e, f and 1 more"]
    assert unwritten(check("services: {a: {attemptTimeout: 5s, endpoints: {x: {match: {path: /x}}}}}\n")) == []
    assert unwritten(check("defaults: {attemptTimeout: 7s}\nservices: {a: {}}\n")) == []
    endpoint = "services: {a: {endpoints: {x: {match: {path: /x}, attemptTimeout: 4s}}}}\n"
    assert unwritten(check(endpoint)) == [says + "a"]
    written = json.loads(check("services: {a: {}, b: {attemptTimeout: 5s}}\n", "--json").stdout)["amplification"]
    assert [(node["service"], node["timeout_written"]) for node in written] == [("a", False), ("b", True)]


def test_check__strict_fails_on_warnings(check):
    assert check("defaults: {jitter: none}\n").returncode == 0
    assert check("defaults: {jitter: none}\n", "--strict").returncode == 1


def test_check__json_has_findings_summary_and_amplification(check):
    done = check("services: {a: {calls: [b], maxRetries: 0}, b: {jitter: none, initialDelay: 50ms}}\n", "--json")
    assert json.loads(done.stdout) == {
        "findings": [
            {
                "code": "no-jitter",
                "severity": "warning",
                "file": "policy.yaml",
                "line": 1,
                "column": 56,
                "message": "b: retries without jitter: callers that failed together retry together",
                "remedy": "write `jitter: full`, or remove the key: that is the default",
            }
        ],
        "summary": {"errors": 0, "warnings": 1},
        "amplification": [
            {"service": "a", "path": ["a"], "unbudgeted": 1, "budgeted": 1, "dead": 1, "marked": 1, "longest_ms": 60000, "restart_ms": 3750, "timeout_written": False},
            {
                "service": "b",
                "path": ["a", "b"],
                "unbudgeted": 3,
                "budgeted": 2.5,
                "dead": 1,
                "marked": 2.5,
                "longest_ms": 60000,
                "restart_ms": 3750,
                "timeout_written": False,
            },
        ],
    }
    assert done.returncode == 0


def test_check__errors_of_a_file_are_findings_too(check):
    done = check("defaults:\n  maxRetry: 3\n  jitter: some\n", "--json")
    said = json.loads(done.stdout)
    assert [(f["code"], f["severity"], f["line"], f["column"]) for f in said["findings"]] == [
        ("unknown-key", "error", 2, 3),
        ("wrong-type", "error", 3, 11),
    ]
    assert "maxRetries" in said["findings"][0]["remedy"]
    assert said["summary"] == {"errors": 2, "warnings": 0}
    assert said["amplification"] == []
    assert done.returncode == 1
    text = check("defaults:\n  maxRetry: 3\n  jitter: some\n")
    assert re.search(r"^policy.yaml:2:3: error: .*\[unknown-key\]$", text.stdout, re.M)
    assert text.stdout.endswith("policy.yaml: 2 errors, 0 warnings\n")
    assert text.returncode == 1


def test_check__unknown_keys_may_be_warnings(check):
    done = check("defaults: {maxRetry: 3}\n", "--allow-unknown", "--json")
    assert [(f["code"], f["severity"]) for f in findings(done)] == [("unknown-key", "warning")]
    assert done.returncode == 0


def test_check__a_file_that_is_not_there(becalm):
    done = becalm("check", "nowhere.yaml")
    assert done.stdout == (
        "nowhere.yaml:1:1: error: No such file or directory [unreadable]\nnowhere.yaml: 1 error, 0 warnings\n"
    )
    assert done.returncode == 1


def test_check__standard_input(becalm):
    done = becalm("check", "-", stdin="defaults: {jitter: none}\n")
    assert done.stdout.startswith("<stdin>:1:20: warning: defaults: retries without jitter")
    assert done.stdout.endswith("<stdin>: 0 errors, 1 warning\n")
    assert becalm("check", "-", stdin="").returncode == 1


def test_check__a_fifo_and_dev_stdin_are_files_too(becalm, tmp_path):
    """Process substitution: the shell hands over /dev/fd/63, which is a pipe."""
    (tmp_path / "p.yaml").write_text("defaults: {jitter: none}\n")
    for command in ('"$0" check <(cat p.yaml)', 'cat p.yaml | "$0" check /dev/stdin', '"$0" check /dev/stdin <p.yaml'):
        done = subprocess.run(
            ["bash", "-c", command, becalm.program], cwd=tmp_path, capture_output=True, text=True, timeout=GUARD
        )
        assert (done.returncode, "retries without jitter" in done.stdout) == (0, True), done.stdout + done.stderr


def test_check__max_amplification_fails_above_it(check):
    text = "gatewayRetries: false\nservices:\n  a: {calls: [b]}\n  b: {maxRetries: 1}\n"
    assert check(text, "--max-amplification", "2").returncode == 0
    done = check(text, "--max-amplification=1.5")
    assert done.returncode == 1
    assert (
        "policy.yaml:4:3: error: b: one client request can become 2 attempts, budgets included; at most 1.5 are allowed "
        "[max-amplification]\n"
        "    write a smaller `maxRetries` for `b`, or `budget: {kind: ratio, percent: 10}`\n"
    ) in done.stdout
    ratio = text.replace("maxRetries: 1", "budget: {kind: ratio, percent: 10}")
    assert check(ratio, "--max-amplification", "1.1").returncode == 0


def test_check__the_remedy_names_the_layers_to_switch_off(check):
    text = "services: {a: {calls: [b]}, b: {calls: [c]}, c: {}}\n"
    said = {f["message"].split(":")[0]: f["remedy"] for f in findings(check(text, "--json", "--max-amplification", "3"))}
    assert said["c"] == "write `maxRetries: 0` for `a`, `b`: then only calls to `c` are retried"


def test_check__ten_services_are_512_times_as_in_plan(check):
    lines = ["gatewayRetries: false", "defaults: {maxRetries: 1, budget: {kind: ratio, percent: 5}}", "services:"]
    lines += [f"  s{i}: {{calls: [s{i + 1}]}}" for i in range(1, 10)] + ["  s10: {}"]
    last = json.loads(check("\n".join(lines) + "\n", "--json").stdout)["amplification"][-1]
    assert (last["service"], last["unbudgeted"], last["budgeted"]) == ("s10", 512, 1.551)
    assert last["path"] == [f"s{i}" for i in range(1, 11)]


def test_check__several_files_are_one_graph(becalm, tmp_path):
    (tmp_path / "gateway.yaml").write_text("gatewayRetries: false\nservices:\n  front: {calls: [orders]}\n")
    (tmp_path / "orders.yaml").write_text("role: sidecar\nservices:\n  orders: {calls: [ledger]}\n  ledger: {}\n")
    done = becalm("check", "gateway.yaml", "orders.yaml")
    assert done.stdout.startswith("orders.yaml:4:3: warning: calls are retried at 2 layers on the way to ledger")
    assert "    client > front > orders x3 > ledger x3\n" in done.stdout
    assert done.stdout.endswith("2 files: 0 errors, 1 warning\n")


def test_check__one_bad_file_of_several_is_named_and_the_others_still_read(becalm, tmp_path):
    (tmp_path / "a.yaml").write_text("nonsense: 1\n")
    (tmp_path / "b.yaml").write_text("rubbish: 1\n")
    done = becalm("check", "a.yaml", "b.yaml")
    assert re.findall(r"^(\S+): error:", done.stdout, re.M) == ["a.yaml:1:1", "b.yaml:1:1"]
    assert done.returncode == 1


def test_check__set_overrides_the_file(check):
    done = check("services: {a: {}}\n", "--set", "defaults.jitter=none", "--set", "defaults.maxRetries=1")
    assert "--set:1:1: warning:" in done.stdout
    assert "client > a x2\n" in done.stdout


def test_check__explain_says_each_value_where_it_came_from_and_what_it_does(check):
    text = """\
    defaults:
      maxRetries: 3
    services:
      payment:
        initialDelay: 200ms
        endpoints:
          charge: {attemptTimeout: 1s}
    """
    done = check(text, "--explain", "payment/charge", "--set", "defaults.maxDelay=5s")
    lines = done.stdout.splitlines()
    assert lines[0] == "payment/charge (policy.yaml:7)"
    assert lines[1:3] == [
        "  maxRetries: 3                                         policy.yaml:2",
        "    how many retries a call may make: retries, not attempts",
    ]
    assert "  initialDelay: 200ms                                   policy.yaml:5" in lines
    assert "  maxDelay: 5s                                          --set" in lines
    assert "  attemptTimeout: 1s                                    policy.yaml:7" in lines
    assert "  growth: exponential                                   default" in lines
    assert all(len(line) <= 80 for line in lines)
    assert done.returncode == 0
    service = check(text, "--explain", "payment").stdout
    assert service.startswith("payment (policy.yaml:4)\n") and "charge" not in service


def test_check__explain_all_and_as_json(check):
    text = "services: {a: {maxRetries: 1, endpoints: {x: {}}}, b: {}}\n"
    said = check(text, "--explain", "all").stdout
    assert re.findall(r"^(\S+) \(policy.yaml:1\)$", said, re.M) == ["a", "a/x", "b"]
    told = json.loads(check(text, "--explain", "a/x", "--json").stdout)["explain"]
    assert [(t["service"], t["endpoint"], t["file"]) for t in told] == [("a", "x", "policy.yaml")]
    assert told[0]["values"][0] == {
        "key": "maxRetries",
        "value": "1",
        "from": "service",
        "file": "policy.yaml",
        "line": 1,
        "column": 28,
        "sentence": "how many retries a call may make: retries, not attempts",
    }


def test_check__explain_says_when_the_gateway_does_not_retry(check):
    said = check("gatewayRetries: false\nservices: {a: {}}\n", "--explain", "a").stdout.splitlines()
    assert said[1] == "  (gatewayRetries: false turns retries and hedges off while the role is gateway)"


def test_check__explain_of_what_is_not_there(check):
    done = check("services: {payment: {}}\n", "--explain", "paymnt")
    assert done.stderr == "becalm check: there is no service or endpoint 'paymnt'; did you mean 'payment'?\n"
    assert done.stdout == ""
    assert done.returncode == 1


def test_check__wrong_usage(becalm):
    done = becalm("check")
    assert done.stderr == (
        "becalm check: no policy is given: name at least one file, or - for standard input\nTry 'becalm check --help'.\n"
    )
    assert done.returncode == 2
    for wrong in ("0.5", "two", "-1", ""):
        done = becalm("check", f"--max-amplification={wrong}", "x.yaml")
        assert done.returncode == 2
        assert f"'{wrong}' is not\n" in done.stderr


def test_check__the_file_of_the_storm_article_gives_warnings_and_no_error(becalm):
    for name in ("coordinated.yaml", "coordinated-configmap.yaml"):
        done = becalm("check", "--json", becalm.root / "policies" / name)
        assert done.returncode == 0
        assert {f["severity"] for f in findings(done)} == {"warning"}
        assert [f["code"] for f in findings(done)] == ["many-attempts"]


def test_check__every_policy_of_ours_has_no_error(becalm):
    for path in sorted((becalm.root / "policies").glob("*.yaml")):
        assert becalm("check", path).returncode == 0, path


def test_check__a_hostile_graph_takes_no_time(becalm, tmp_path):
    """A chain as long as a file can hold, in which every service also calls the first one and an unknown one."""
    count = 1500 if SANITIZED else 12000
    lines = ["defaults: {maxRetries: 1000, multiplier: 1.000001}", "services:"]
    lines += [f"  s{i}: {{calls: [s{i + 1}, s0, x{i}]}}" for i in range(count)]
    (tmp_path / "long.yaml").write_text("\n".join(lines) + "\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = becalm("check", "--json", "long.yaml")
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 20  # its own time, however busy the machine is
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["amplification"]) == 2 * count + 1


def test_check__what_was_not_judged_is_not_fine(check):
    """More findings than are kept: the cycle behind them must not turn into success."""
    many = "".join(f"  s{i}: {{jitter: none}}\n" for i in range(600))
    done = check("services:\n" + many)
    assert done.returncode == 1
    assert "there are more than 500 findings, and the rest was not checked" in done.stdout
    assert json.loads(check("services:\n" + many, "--json").stdout)["summary"]["truncated"] is True


def test_check__silenced_findings_hide_no_error(check):
    many = "".join(f"  s{i}: {{jitter: none}}\n" for i in range(600))
    silence = 'lint: {ignore: {no-jitter: "a test"}}\n'
    done = check("services:\n  a: {calls: [b]}\n  b: {calls: [a]}\n" + many + silence)
    assert done.returncode == 1
    assert "[cycle]" in done.stdout


def test_check__a_semicolon_in_the_users_own_text_is_no_border(check):
    done = check('defaults: {jitter: "a; b"}\n')
    assert 'jitter: "a; b" is not known here; write full' in done.stdout
    finding = json.loads(check('defaults: {jitter: "a; b"}\n', "--json").stdout)["findings"][0]
    assert finding["message"].endswith('"a; b" is not known here')
    assert finding["remedy"].startswith("write full")


def test_check__the_path_is_the_one_that_the_budgets_do_not_hold(check):
    done = check(
        "gatewayRetries: false\n"
        "services:\n"
        "  r: {calls: [x, y]}\n"
        "  x: {maxRetries: 3, calls: [z]}\n"
        "  y: {maxRetries: 2, budget: {kind: none}, calls: [z]}\n"
        "  z: {maxRetries: 0}\n"
    )
    assert "client > r > y x3 > z" in done.stdout
    assert "    client > r > x x4 > z\n    with budgets: client > r > y x3 > z\n" in done.stdout


def test_check__an_endpoint_of_a_service_for_get_alone_repeats_no_post(check):
    done = check("services: {a: {match: {method: GET}, idempotent: true, endpoints: {x: {match: {path: /x}}}}}\n")
    assert "post-retry" not in done.stdout


ROUTES = """\
services:
  accounts: {hosts: ["a:1"], match: [{prefix: /users/}, {prefix: /login, method: POST}]}
  shop:
    hosts: ["s:1", "s:2"]
    match: {host: shop.example, start: /pay}
    endpoints: {gold: {match: {header: {X-Plan: gold}}, maxRetries: 1}}
  web: {hosts: ["w:1"], match: {prefix: /}}
"""


@pytest.mark.parametrize(
    "args, target, hosts",
    [
        (["--route", "/users/1"], ("accounts", None), ["a:1"]),
        (["--route", "POST /login?next=/"], ("accounts", None), ["a:1"]),
        (["--route", "GET /login"], ("web", None), ["w:1"]),
        (["--route", "GET /payment", "--host", "shop.example"], ("shop", None), ["s:1", "s:2"]),
        (["--route", "GET /pay", "--host", "shop.example", "--header", "x-plan: gold"], ("shop", "gold"), ["s:1", "s:2"]),
    ],
)
def test_check__a_route_is_told_with_its_service_and_endpoint(check, args, target, hosts):
    done = check(ROUTES, *args)
    assert done.returncode == 0
    assert f"comes to {'/'.join(filter(None, target))}\n" in done.stdout
    route = json.loads(check(ROUTES, "--json", *args).stdout)["routes"][0]
    assert (route["service"], route["endpoint"]) == target and route["hosts"] == hosts
    assert route["values"]["maxRetries"] == ("1" if target[1] else "2")


def test_check__a_route_names_who_would_have_taken_it_otherwise(check):
    done = check(ROUTES, "--route", "GET /users/1")
    assert "service   accounts: it matches /users/... (policy.yaml:2)\n" in done.stdout
    assert "not       web: it matches every path, which is less specific, or later in the file (policy.yaml:7)\n" in done.stdout


def test_check__a_route_names_nobody_whose_header_it_lacks(check):
    text = "services: {a: {hosts: ['a:1'], match: {prefix: /x}}, b: {hosts: ['b:1'], match: {prefix: /, header: {x-a: b}}}}\n"
    assert "not       b:" not in check(text, "--route", "GET /x").stdout
    assert "not       b:" in check(text, "--route", "GET /x", "--header", "X-A: b").stdout


def test_check__a_route_to_nobody_fails_and_says_so(check):
    done = check("services: {a: {}}\n", "--route", "GET /x")
    assert done.returncode == 1 and "comes to no service: no service matches it (404)" in done.stdout
    assert check("services: {a: {match: {prefix: /}}}\n", "--route", "GET /a/../b").returncode == 1
    assert check("services: {a: {}}\n", "--route", "GET").returncode == 2


@pytest.mark.parametrize(
    "match, error",
    [
        ("[]", "match is an empty list"),
        ("[{}]", "an item of match is empty"),
        ("[{prefix: /a, start: /b}]", "write one of them"),
        ("[{prefix: /a}, {host: 'a b'}]", "match.host"),
        ("[/a]", "match is a mapping"),
    ],
)
def test_check__a_list_of_matches_is_checked_item_by_item(check, match, error):
    done = check(f"services: {{a: {{match: {match}}}}}\n")
    assert done.returncode == 1 and error in done.stdout


def test_check__the_path_of_a_diamond_is_the_one_of_its_figure(check):
    text = """\
        gatewayRetries: false
        services:
          front: {maxRetries: 0, calls: [a, b]}
          a: {maxRetries: 1, calls: [db]}
          b: {maxRetries: 4, budget: {kind: ratio, percent: 20}, calls: [db]}
          db: {maxRetries: 2}
        """
    done = check(text)
    row = re.search(r"^  db +(\d+)x.*\n    (client .*)$", done.stdout, re.M)
    factors = [int(factor) for factor in re.findall(r" x(\d+)", row[2])]
    product = 1
    for factor in factors:
        product *= factor
    assert product == int(row[1]), done.stdout
    path = [node["path"] for node in json.loads(check(text, "--json").stdout)["amplification"] if node["service"] == "db"][0]
    assert path == ["front", "b", "db"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("defaults: {percent: 20}\n", "it belongs in budget: {percent: ...} or hedge: {percent: ...}"),
        ("breaker: {enabled: true}\n", "it belongs under defaults: or a service"),
        ("maxRetries: 2\n", "it belongs under defaults: or a service"),
        ("defaults: {deadline: 0s}\n", "for no limit write deadline: none"),
        ("workers: 0\n", "for the default write workers: auto"),
        ("defaults: {breaker: {slowCallRateThreshold: 0%}}\n",
         "to switch it off write breaker.slowCallRateThreshold: off"),
        ("defaults: {deadline: '${BECALM_NOBODY_SET_THIS}'}\n", "BECALM_NOBODY_SET_THIS is not in the environment"),
    ],
)
def test_check__a_slip_is_told_with_what_would_be_right(check, text, said):
    done = check(text)
    assert done.returncode == 1 and said in done.stdout


@pytest.mark.parametrize("key", ["deadline", "maxRetries", "hosts", "budget: {percent", "retryOn", "limit: {kind"])
def test_check__a_variable_that_nobody_set_is_one_error(becalm, key):
    end = "}" if "{" in key else ""
    done = becalm("check", "-", stdin=f"version: 1\nservices:\n  a:\n    match: {{prefix: /}}\n    {key}: '${{BECALM_NOBODY_SET_THIS}}'{end}\n")
    errors = [line for line in (done.stdout + done.stderr).splitlines() if " error: " in line and "no hosts" not in line]
    assert len(errors) == 1 and "BECALM_NOBODY_SET_THIS is not in the environment" in errors[0], errors


# ---- sentences for slips ----


def slip(becalm, text):
    done = becalm("check", "-", stdin="version: 1\n" + text)
    return (done.stdout + done.stderr).splitlines()


def test_check__a_status_that_is_no_failure_is_told_as_one(becalm):
    lines = slip(becalm, "services: {a: {hosts: ['b:80'], retryOn: [200]}}\n")
    assert lines[0] == "<stdin>:2:43: error: retryOn: 200 is no failure; write a status from 400 to 599 [wrong-type]"


def test_check__a_number_below_0_is_told_as_one(becalm):
    lines = slip(becalm, "services: {a: {hosts: ['b:80'], maxRetries: -1, deadline: -1s}}\n")
    assert lines[0] == '<stdin>:2:45: error: maxRetries: -1 is below 0; 0 is no retries, and there is no "for ever" [wrong-type]'
    assert lines[1] == "<stdin>:2:59: error: deadline: -1s is below 0; for no limit write none [wrong-type]"


def test_check__defaults_one_step_too_far_to_the_right_are_one_error(becalm):
    lines = slip(becalm, "services:\n  defaults:\n    maxRetries: 1\n    a: {hosts: ['b:80']}\n    b: {hosts: ['b:80']}\n")
    assert lines[0] == "<stdin>:3:3: error: defaults is no service; it stands at the top of the file, beside services: [unknown-key]"
    assert sum(": error:" in line for line in lines) == 1
    assert "services: stands at the top of the file" in slip(becalm, "defaults:\n  services: {a: {hosts: ['b:80']}}\n")[0]
    assert not any(": error:" in line for line in slip(becalm, "services: {defaults: {hosts: ['b:80']}}\n"))


def test_check__an_attempt_longer_than_the_deadline_is_told_at_its_place(becalm):
    lines = slip(becalm, "services:\n  a:\n    hosts: ['b:80']\n    maxRetries: 3\n    deadline: 8s\n    attemptTimeout: 20s\n")
    assert lines[0] == "<stdin>:7:21: warning: a: one attempt alone may take 20s, longer than the deadline of 8s [timeouts-exceed-deadline]"
    assert lines[1].strip() == "write an `attemptTimeout` below 8s, or a longer `deadline`"
