# SPDX-License-Identifier: MIT
"""becalm import: other people's configuration becomes a policy that loads, and nothing of it is lost silently."""

import json
import pathlib
import re
import resource

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "policies" / "import"

# Whole outputs: expected/NAME.yaml is the policy, expected/NAME.warnings is stderr.
CASES = {
    "seed-istio": ["istio", "virtualservice-retry.yaml", "destinationrule-outlier.yaml"],
    "seed-grpc": ["grpc", "hedging.json"],
    "istio-shop": ["istio", "istio-shop.yaml"],
    "grpc-service-config": ["grpc", "grpc-service-config.json"],
    "envoy-bootstrap": ["envoy", "envoy-bootstrap.yaml"],
    "envoy-fragment": ["envoy", "envoy-fragment.yaml"],
    "gateway-api": ["gateway-api", "gateway-api.yaml"],
}


@pytest.fixture
def imported(becalm):
    """imported("istio", "text"): the output, which must load. `values` are its keys, with their comments cut off."""

    def run(dialect, text, *options):
        done = becalm("import", dialect, *options, "-", stdin=text)
        assert done.returncode == 0, done.stderr
        assert not re.search(r"[ \t]$", done.stdout, re.M)
        checked = becalm("check", "-", stdin=done.stdout)
        assert checked.returncode == 0, checked.stdout + checked.stderr + done.stdout
        done.values = [re.sub(r"  +# .*", "", line) for line in done.stdout.splitlines()]
        done.values = [line.strip() for line in done.values if line.strip() and not line.lstrip().startswith("#")]
        return done

    return run


@pytest.mark.parametrize("name", CASES)
def test_import__prints_the_whole_policy_and_all_warnings(becalm, name):
    done = becalm("import", *CASES[name], cwd=FOLDER)
    assert done.stdout == (FOLDER / "expected" / f"{name}.yaml").read_text(encoding="utf-8")
    assert done.stderr == (FOLDER / "expected" / f"{name}.warnings").read_text(encoding="utf-8")
    assert done.returncode == 0


@pytest.mark.parametrize("name", CASES)
def test_import__what_it_prints_loads_and_fits_the_terminal(becalm, name):
    policy = FOLDER / "expected" / f"{name}.yaml"
    done = becalm("check", policy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error" not in done.stderr
    assert max(map(len, policy.read_text(encoding="utf-8").splitlines())) <= 80


@pytest.mark.parametrize("name", CASES)
def test_import__every_value_says_where_it_came_from(name):
    above = ""
    for line in (FOLDER / "expected" / f"{name}.yaml").read_text(encoding="utf-8").splitlines():
        continued = above.endswith(",")
        if re.match(r" +[\w.-]+: ", line) and not continued:
            comment = line.partition(" # ")[2] or above.partition("# ")[2]
            assert comment, line
        above = line


@pytest.mark.parametrize("name", CASES)
def test_import__every_warning_is_a_comment_as_well(name):
    policy = re.sub(r"\s+#?\s*", " ", (FOLDER / "expected" / f"{name}.yaml").read_text(encoding="utf-8"))
    for line in (FOLDER / "expected" / f"{name}.warnings").read_text(encoding="utf-8").splitlines():
        found = re.match(r"([^:]+):(\d+):\d+: (warning|note): (.*) \[[\w-]+\]", line)
        if found is None:  # the summary
            continue
        file, number, level, message = found.groups()
        assert f"{level}: {file}:{number} {message}" in policy


# ---- counts ----


INSIDE = {
    "nginx": "upstream app { server app:80; }\nserver {\n  listen 80;\n  location / { proxy_pass http://app; }\n}\n",
    "HCL": 'server {\n  bind_address = "0.0.0.0"\n}\nKind = "service-router"\n',
    "HAProxy": "defaults\n  retries 3\nbackend a\n  server a 127.0.0.1:80\n",
}


@pytest.mark.parametrize("before", ["", "---\n", "# of the cluster\n\n"])
@pytest.mark.parametrize("inside", INSIDE)
def test_import__what_a_config_map_holds_does_not_say_what_the_file_is(becalm, inside, before):
    """`kubectl get configmap,virtualservice -o yaml`: the whole file was taken for an nginx.conf, and refused."""
    held = "".join(f"    {line}\n" for line in INSIDE[inside].splitlines())
    text = f"""{before}apiVersion: v1
kind: ConfigMap
metadata: {{name: web}}
data:
  default.conf: |
{held}---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: shop}}
spec:
  hosts: [shop]
  http:
  - route: [{{destination: {{host: shop}}}}]
    retries: {{attempts: 3}}
"""
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 0, done.stderr
    assert "maxRetries: 3" in done.stdout
    assert 'kind "ConfigMap" has no equivalent' in done.stderr, "it is not lost silently"


@pytest.mark.parametrize(
    "dialect, text, value",
    [
        ("istio", "retries: {attempts: 3}", "maxRetries: 3"),
        ("istio", "retries: {attempts: 0}", "maxRetries: 0"),
        ("istio", "retries: {perTryTimeout: 1s}", "maxRetries: 0"),
        ("envoy", "retry_policy: {num_retries: 3}", "maxRetries: 3"),
        ("envoy", "retry_policy: {}", "maxRetries: 1"),
        ("gateway-api", "retry: {attempts: 3}", "maxRetries: 3"),
        ("grpc", "hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s}", "max: 2"),
        ("grpc", "hedgingPolicy: {maxAttempts: 50, hedgingDelay: 1s}", "max: 4"),
    ],
)
def test_import__counts_retries_where_others_count_attempts(imported, dialect, text, value):
    assert value in imported(dialect, text).values


GRPC_RETRY = """{"retryPolicy": {"maxAttempts": %s, "initialBackoff": "%s", "maxBackoff": "%s",
                 "backoffMultiplier": %s, "retryableStatusCodes": %s}}"""


@pytest.mark.parametrize("attempts, retries", [(2, 1), (3, 2), (5, 4), (6, 4)])
def test_import__a_first_grpc_attempt_is_no_retry(imported, attempts, retries):
    assert f"maxRetries: {retries}" in imported("grpc", GRPC_RETRY % (attempts, "1s", "2s", 2, '["ABORTED"]')).values


# ---- values ----


@pytest.mark.parametrize(
    "written, read", [("0.5s", "500ms"), ("1.500s", "1.5s"), ("25ms", "25ms"), ("1m30s", "90s"), ("2h", "2h"), ("0.0015s", "1.5ms")]
)
def test_import__durations_of_every_dialect_are_read(imported, written, read):
    assert f"deadline: {read}" in imported("istio", f"timeout: {written}").values


def test_import__a_timeout_of_zero_is_none(imported):
    assert "deadline: none" in imported("istio", "timeout: 0s").values
    done = imported("envoy", "retry_policy: {per_try_timeout: 0s}")
    assert "attemptTimeout: none" in done.values


def test_import__a_cap_below_the_base_means_the_cap(imported):
    values = imported("grpc", GRPC_RETRY % (3, "5s", "1s", 1.6, "[UNAVAILABLE, 10]")).values
    assert "initialDelay: 1s" in values and "maxDelay: 1s" in values and "multiplier: 1.6" in values
    assert "retryOn: [unavailable, aborted, connect-failure, refused-stream, reset]" in values


def test_import__values_that_no_policy_may_have_are_cut_with_a_warning(imported):
    done = imported("istio", "retries: {attempts: 5000, perTryTimeout: 48h}")
    assert "maxRetries: 1000" in done.values and "attemptTimeout: 24h" in done.values
    assert "<stdin>:1:21: warning: retries.attempts is 5000; maxRetries goes up to 1000, and that is written [out-of-range]" in done.stderr
    done = imported("grpc", GRPC_RETRY % (3, "1s", "2s", 0.5, "[]"))
    assert "multiplier: 1" in done.values
    assert "retryPolicy.backoffMultiplier is 0.5; multiplier goes down to 1" in done.stderr


def test_import__conditions_that_envoy_takes_wider_are_spelled_out(imported):
    assert "retryOn: [5xx]" in imported("envoy", "retry_policy: {retry_on: 5xx}").values
    wider = "retryOn: [gateway-error, reset, connect-failure, refused-stream, timeout]"
    assert wider in imported("envoy", "retry_policy: {retry_on: gateway-error}").values


def test_import__a_long_list_goes_on_in_the_next_line(imported):
    done = imported("istio", "retries: {attempts: 1, retryOn: 'connect-failure,refused-stream,unavailable,cancelled,500,501,502'}")
    assert "  retryOn: [connect-failure, refused-stream, unavailable, cancelled, 500, 501,\n            502]\n" in done.stdout


def test_import__envoy_reads_status_codes_only_when_retry_on_says_so(imported):
    done = imported("envoy", "retry_policy: {retry_on: 5xx, retriable_status_codes: [409]}")
    assert "retryOn: [5xx]" in done.values
    assert "Envoy looks at them only if retry_on has retriable-status-codes" in done.stderr


def test_import__envoy_takes_one_item_for_a_list_of_one(becalm):
    """As its parser of JSON and YAML does, wherever a list is wanted."""
    listed = (FOLDER / "envoy-lists.yaml").read_text(encoding="utf-8")
    single = re.sub(r"(\n *)- ", r"\1  ", listed).replace('["*"]', '"*"').replace("[503]", "503")
    assert single.count("- ") == 0 and single != listed
    one, other = (becalm("import", "envoy", "-", stdin=text) for text in (listed, single))
    assert (one.returncode, other.returncode) == (0, 0), other.stderr
    assert one.stdout == other.stdout and one.stderr == other.stderr
    assert "503" in one.stdout and "10.0.0.1:80" in one.stdout


def test_import__names_that_no_policy_may_have_are_changed_and_told_apart(imported):
    text = "clusters:\n- {name: 'a|b', connect_timeout: 1s}\n- {name: 'a b', connect_timeout: 2s}\n"
    done = imported("envoy", text)
    assert "a-b:" in done.values and "a-b-2:" in done.values
    assert '# <stdin>:2 name "a|b"' in done.stdout


def test_import__strange_texts_stay_one_value(imported):
    value = json.dumps('/a: #b"c\\d\u2028e\n- f\u00e9\x85', ensure_ascii=True)
    done = imported("istio", f"hosts: [a]\nhttp:\n- match: [{{headers: {{x: {{exact: {value}}}}}}}]\n  timeout: 1s\n")
    assert 'header: {x: "/a: #b\\"c\\\\d\\u2028e\\x0a- f\u00e9\\x85"}' in done.stdout


def test_import__a_match_that_no_request_can_fit_is_left_out(imported):
    done = imported("istio", "hosts: [a]\nhttp:\n- match: [{uri: {exact: /a/../b}}]\n  timeout: 1s\n")
    assert "is left out: a policy can't express its match" in done.stdout


def test_import__a_service_gets_each_of_its_routes_and_no_more(imported):
    routes = "".join(f"- match: {{path: {path}}}\n  route: {{cluster: pay}}\n" for path in ("/v1/charge", "/v1/check"))
    done = imported("envoy", "name: x\nvirtual_hosts:\n- name: v\n  domains: ['*']\n  routes:\n  " + routes.replace("\n", "\n  "))
    assert "- {path: /v1/charge}" in done.values and "- {path: /v1/check}" in done.values
    assert "endpoints:" not in done.values


# ---- whose rules ----


@pytest.mark.parametrize(
    "dialect, text, values",
    [
        ("istio", "retries: {attempts: 1, retryOn: 503}", ["maxRetries: 1", "retryOn: [503]"]),
        ("istio", "outlierDetection: {}", ["consecutive5xxErrors: 5", "interval: 10s", "maxEjectionPercent: 10"]),
        ("istio", "retryBudget: {}", ["kind: concurrency", "percent: 20", "minConcurrency: 3", "level: service"]),
        ("istio", "connectionPool: {http: {maxRetries: 7}}", ["kind: concurrency", "percent: 0", "minConcurrency: 7"]),
        ("istio", "trafficPolicy: {connectionPool: {http: {http2MaxRequests: 9}}}", ["kind: fixed", "max: 9"]),
        ("grpc", "retryThrottling: {maxTokens: 10, tokenRatio: 0.1234}", ["kind: grpc", "maxTokens: 10", "tokenRatio: 0.123"]),
        ("grpc", "timeout: 1s", ["deadline: 1s"]),
        ("envoy", "circuit_breakers: {thresholds: [{max_requests: 5}]}", ["kind: fixed", "max: 5"]),
        ("envoy", "outlier_detection: {consecutive_5xx: 9}", ["consecutive5xxErrors: 9", "baseEjectionTime: 30s"]),
        ("gateway-api", "retryConstraint: {}", ["kind: ratio", "percent: 20", "window: 10s", "minPerSecond: 10"]),
        ("gateway-api", "timeouts: {request: 3s}", ["deadline: 3s"]),
    ],
)
def test_import__a_bare_fragment_becomes_the_defaults(imported, dialect, text, values):
    done = imported(dialect, text)
    assert done.values[:2] == ["version: 1", "defaults:"]
    assert "services:" not in done.values
    for value in values:
        assert value in done.values


VIRTUAL_SERVICE = """kind: VirtualService
metadata: {name: cart, namespace: shop}
spec: {hosts: [cart], http: [{timeout: 1s}]}
"""
DESTINATION_RULE = """kind: DestinationRule
metadata: {name: rule}
spec: {host: cart.shop.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}}
"""


@pytest.mark.parametrize("texts", [(VIRTUAL_SERVICE, DESTINATION_RULE), (DESTINATION_RULE, VIRTUAL_SERVICE)])
def test_import__a_service_is_one_whatever_it_is_called_and_whichever_comes_first(imported, texts):
    values = imported("istio", "---\n".join(texts)).values
    values = values[values.index("services:") :]
    assert values[1] == "cart:" and values.count("connectTimeout: 1s") == 1
    assert "deadline: 1s" in values and "endpoints:" not in values


def test_import__the_same_short_name_in_two_namespaces_is_two_services(imported):
    rule = "kind: DestinationRule\nmetadata: {namespace: %s}\nspec: {host: a, trafficPolicy: {outlierDetection: {}}}\n"
    values = imported("istio", rule % "x" + "---\n" + rule % "y").values
    assert "a:" in values and "a.y:" in values


def test_import__a_list_of_objects_is_read_as_its_items(imported):
    items = "".join("- " + "  ".join(text.splitlines(True)) for text in (VIRTUAL_SERVICE, DESTINATION_RULE))
    assert "connectTimeout: 1s" in imported("istio", "kind: List\nitems:\n" + items).values


def test_import__a_route_inherits_nothing_from_the_route_for_the_rest(imported):
    text = """hosts: [a]
http:
- match: [{uri: {prefix: /slow}}]
  timeout: 60s
- timeout: 1s
  retries: {attempts: 5, perTryTimeout: 100ms, retryOn: 5xx}
"""
    done = imported("istio", text)
    endpoint = done.values[done.values.index("slow:") :]
    assert "attemptTimeout: none" in endpoint
    for value in ("maxRetries: 2", "deadline: 60s"):
        assert value in endpoint or value.replace("60s", "1m") in endpoint
    assert "retryOn: [connect-failure, refused-stream, unavailable, cancelled]" in endpoint


def test_import__a_grpc_method_inherits_nothing_from_its_service(imported):
    retry = json.loads(GRPC_RETRY % (3, "1s", "2s", 2, '["ABORTED"]'))
    config = {
        "methodConfig": [
            {"name": [{"service": "s", "method": "m"}], "timeout": "9s"},
            {"name": [{"service": "s"}], **retry},
            {"name": [{}], "timeout": "1s"},
        ]
    }
    values = imported("grpc", json.dumps(config)).values
    service = values[values.index("s:") : values.index("endpoints:")]
    endpoint = values[values.index("endpoints:") :]
    assert "deadline: none" in service and "maxRetries: 2" in service
    assert "deadline: 9s" in endpoint and "maxRetries: 0" in endpoint


def test_import__two_sources_of_one_key_are_a_conflict_and_the_first_wins(imported):
    text = "kind: VirtualService\nspec: {hosts: [a], http: [{timeout: %s}]}\n"
    done = imported("istio", text % "1s" + "---\n" + text % "2s")
    assert "deadline: 1s" in done.values and "deadline: 2s" not in done.values
    assert "<stdin>:5:27: warning: http would make deadline 2s, but it is 1s already, from <stdin>:2 timeout [conflict]" in done.stderr


@pytest.mark.parametrize(
    "dialect, text, values",
    [
        ("istio", "hosts: [a]\nhttp: [{route: [{destination: {host: a}}]}]\n", ["maxRetries: 2", "deadline: none"]),
        ("envoy", "virtual_hosts: [{name: v, routes: [{match: {prefix: /}, route: {cluster: a}}]}]\n", ["maxRetries: 0", "deadline: 15s"]),
        ("grpc", "methodConfig: [{name: [{service: a}]}]\n", ["maxRetries: 0", "deadline: none"]),
        ("gateway-api", "rules: [{backendRefs: [{name: a}]}]\n", ["maxRetries: 0"]),
    ],
)
def test_import__what_is_not_written_is_what_the_product_does(imported, dialect, text, values):
    done = imported(dialect, text)
    for value in values:
        assert value in done.values
    assert "# not written: " in done.stdout


def test_import__a_route_that_cannot_be_said_is_left_out_aloud(imported):
    text = "hosts: [a]\nhttp:\n- match: [{uri: {prefix: /a}, queryParams: {x: {exact: y}}}]\n  timeout: 1s\n"
    done = imported("istio", text)
    assert "deadline" not in "".join(done.values)
    assert "match.queryParams has no equivalent: an endpoint can't have this condition, so the route is left out" in done.stderr
    assert "The route at <stdin>:3 is left out" in done.stdout


# ---- errors ----


@pytest.mark.parametrize(
    "dialect, text, error",
    [
        ("istio", "", "<stdin>:1:1: error: there is nothing in the file [empty]"),
        ("istio", "---\n# nothing\n---\n", "<stdin>:1:1: error: there is nothing in the file [empty]"),
        ("istio", "- a\n", "<stdin>:1:1: error: the document is not a mapping of keys, as Istio wants it [wrong-type]"),
        ("istio", "retries: 3\n", "<stdin>:1:10: error: retries is not a mapping of keys, as Istio wants it [wrong-type]"),
        ("istio", "retries: {attempts: many}\n", '<stdin>:1:21: error: retries.attempts: "many" is not a whole number [bad-value]'),
        ("istio", "retries: {attempts: -1}\n", '<stdin>:1:21: error: retries.attempts: "-1" is not a whole number [bad-value]'),
        ("istio", "---\na: 1\n---\ntimeout: 3\n", '<stdin>:4:10: error: timeout: "3" is not a duration; write it like 1.5s or 250ms [bad-value]'),
        ("grpc", "hedgingPolicy: {hedgingDelay: 1s}\n", "<stdin>:1:16: error: hedgingPolicy.maxAttempts is not written; gRPC needs it [missing]"),
        ("grpc", "hedgingPolicy: {maxAttempts: 1}\n", "<stdin>:1:30: error: hedgingPolicy.maxAttempts: 1 is below 2, the least that gRPC takes [bad-value]"),
        (
            "grpc",
            "hedgingPolicy: {maxAttempts: 2, nonFatalStatusCodes: [NOPE]}\n",
            '<stdin>:1:55: error: hedgingPolicy.nonFatalStatusCodes: "NOPE" is not a gRPC status code [bad-value]',
        ),
        (
            "grpc",
            "hedgingPolicy: {maxAttempts: 2}\nretryPolicy: {}\n",
            "<stdin>:1:16: error: hedgingPolicy stands beside retryPolicy; gRPC takes one of them [conflict]",
        ),
        ("envoy", "outlier_detection: []\n", "<stdin>:1:20: error: outlier_detection is not a mapping of keys, as Envoy wants it [wrong-type]"),
        (
            "envoy",
            "circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 101}}}]}\n",
            "<stdin>:1:73: error: retry_budget.budget_percent is above 100 percent [bad-value]",
        ),
        ("gateway-api", "retry: {codes: [200]}\n", "<stdin>:1:17: error: retry.codes: 200 is not from 400 to 599 [bad-value]"),
    ],
)
def test_import__a_broken_file_is_an_error_with_its_place(becalm, dialect, text, error):
    done = becalm("import", dialect, "-", stdin=text)
    assert done.returncode == 1
    assert error in done.stderr.splitlines()


def test_import__bad_yaml_in_a_later_document_points_to_its_line(becalm):
    done = becalm("import", "istio", "-", stdin="timeout: 1s\n---\na: 1\n---\nb: [1\n")
    assert done.returncode == 1
    assert re.match(r"<stdin>:[56]:\d+: error: .* \[yaml-syntax\]\n", done.stderr)


def test_import__all_errors_are_told_at_once(becalm):
    done = becalm("import", "istio", "-", stdin="timeout: x\nretries: {attempts: y, perTryTimeout: z}\n")
    assert done.stderr.count(" error: ") >= 2


def test_import__an_error_is_seen_behind_a_hundred_warnings(becalm):
    text = "".join(f"unknown{i}: 1\n" for i in range(150)) + "timeout: x\n"
    done = becalm("import", "istio", "-", stdin=text)
    assert done.returncode == 1
    assert '<stdin>:151:10: error: timeout: "x" is not a duration' in done.stderr
    assert "and 138 more\n" in done.stderr


def test_import__all_of_many_warnings_are_in_the_policy(imported):
    text = "".join(f"unknown{i}: 1\n" for i in range(150)) + "timeout: 1s\n"
    done = imported("istio", text)
    assert "and 138 more; the comments in the policy name all of them\n" in done.stderr
    assert done.stdout.count("# note: ") == 150


# ---- the command ----


def test_import__strict_fails_on_warnings_and_prints_all_the_same(becalm):
    done = becalm("import", "envoy", "--strict", "-", stdin="retry_policy: {retry_priority: {}}\n")
    assert done.returncode == 0
    assert "note: retry_policy.retry_priority has no equivalent" in done.stderr
    done = becalm("import", "envoy", "--strict", "-", stdin="retry_policy: {retriable_headers: []}\n")
    assert done.returncode == 1
    assert "warning: retry_policy.retriable_headers has no equivalent" in done.stderr
    assert "maxRetries: 1" in done.stdout


def test_import__json_has_the_policy_and_the_findings(becalm):
    done = becalm("import", "istio", "--json", "-", stdin="timeout: 1s\nx: 1\n")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr == ""
    assert "deadline: 1s" in answer["policy"]
    assert answer["findings"] == [
        {
            "code": "no-equal",
            "severity": "note",
            "file": "<stdin>",
            "line": 2,
            "column": 1,
            "message": "x has no equivalent: it does not concern retries, or Becalm does not know it",
        }
    ]
    assert answer["summary"] == {"errors": 0, "warnings": 0, "notes": 1, "services": 0, "routes": 0, "leftOut": 0, "changed": 0}


def test_import__json_of_a_broken_file_has_no_policy(becalm):
    done = becalm("import", "istio", "--json", "-", stdin="timeout: x\n")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["policy"] is None and answer["summary"] == {"errors": 1, "warnings": 0, "notes": 0, "services": 0, "routes": 0, "leftOut": 0, "changed": 0}


def test_import__a_file_that_is_not_there_is_a_failure(becalm):
    done = becalm("import", "istio", "nowhere.yaml")
    assert done.returncode == 1
    assert done.stderr == "becalm import: nowhere.yaml: No such file or directory\n"


@pytest.mark.parametrize("args", [["import", "istio"], ["import"], ["import", "linkrd", "a.yaml"], ["import", "istio", "--no", "a"]])
def test_import__wrong_usage_exits_with_two(becalm, args):
    done = becalm(*args)
    assert done.returncode == 2 and done.stdout == ""


@pytest.mark.parametrize("path", [[], ["istio"], ["grpc"], ["envoy"], ["gateway-api"]])
def test_import__help_fits_the_terminal(becalm, path):
    done = becalm("import", *path, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("Usage: becalm import")
    assert "\nExamples:\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_import__a_large_file_takes_no_time(becalm):
    services = "".join(f"---\nkind: VirtualService\nspec: {{hosts: [h{i}], http: [{{timeout: 1s}}]}}\n" for i in range(2000))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = becalm("import", "istio", "-", stdin=services)
    assert done.returncode == 0 and resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 15
    assert done.stdout.count("deadline: 1s") == 2000


def test_import__the_inside_of_a_grpc_retry_policy_is_enough(becalm, tmp_path):
    fragment = tmp_path / "fragment.json"
    fragment.write_text('{"maxAttempts": 3, "initialBackoff": ".1s", "maxBackoff": "1s", "backoffMultiplier": 2,'
                        ' "retryableStatusCodes": ["UNAVAILABLE"]}')
    done = becalm("import", "grpc", fragment)
    assert done.returncode == 0
    assert "maxRetries: 2" in done.stdout
    assert "initialDelay: 100ms" in done.stdout


def test_import__every_object_is_read_by_what_it_is(becalm, tmp_path):
    route = "kind: HTTPRoute\nspec: {rules: [{backendRefs: [{name: b, port: 80}], retry: {attempts: 4}}]}\n"
    cluster = "clusters: [{name: c, circuit_breakers: {thresholds: [{max_requests: 9}]}}]\nstatic_resources: {}\n"
    service = "methodConfig: [{name: [{service: d}], timeout: 7s}]\n"
    mixed = "---\n".join([VIRTUAL_SERVICE, route, "kind: Deployment\n", cluster, service])
    for words in ([], ["istio"], ["grpc"]):
        done = becalm("import", *words, "-", stdin=mixed)
        assert done.returncode == 0, done.stderr
        for part in ("  cart: ", "  b: ", "  c: ", "  d: ", "maxRetries: 4", "max: 9", "deadline: 7s", "deadline: 1s"):
            assert part in done.stdout
        assert 'note: kind "Deployment" has no equivalent' in done.stderr


def test_import__a_word_that_is_neither_a_dialect_nor_a_file_is_wrong_usage(becalm):
    done = becalm("import", "linkrd", "a.yaml")
    assert done.returncode == 2
    assert "'linkrd' is neither a dialect nor a file" in done.stderr


def test_import__a_file_without_a_word_about_retries_is_an_error(becalm, tmp_path):
    config = tmp_path / "other.yaml"
    config.write_text("foo: bar\n")
    done = becalm("import", "istio", config)
    assert done.returncode == 1
    assert "error: there is nothing about retries of Istio in it" in done.stderr
    assert done.stdout == ""


# ---- where requests go ----


@pytest.mark.parametrize(
    "dialect, text",
    [
        (
            "envoy",
            "virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {timeout: 0s, retry_policy: {num_retries: 9},"
            " weighted_clusters: {clusters: [{name: old, weight: 90}, {name: new, weight: 10}]}}}]}]\n",
        ),
        ("istio", "hosts: [shop]\nhttp: [{retries: {attempts: 9}, route: [{destination: {host: old}, weight: 90}, {destination: {host: new}, weight: 10}]}]\n"),
        ("gateway-api", "rules: [{retry: {attempts: 9}, backendRefs: [{name: old, weight: 90}, {name: new, weight: 10}]}]\n"),
    ],
)
def test_import__shares_are_no_defaults_and_the_heaviest_gets_all(becalm, imported, dialect, text):
    done = imported(dialect, text)
    assert "requests are not split (90 of 100 to old, 10 of 100 to new): all of them go to old" in done.stderr
    assert "maxRetries: 9" in done.values[done.values.index("old:") :]
    assert "maxRetries: 9" not in done.values[: done.values.index("services:")]
    assert becalm("import", dialect, "--strict", "-", stdin=text).returncode == 1


def test_import__a_share_of_everything_is_no_split(becalm):
    text = "hosts: [a]\nhttp: [{route: [{destination: {host: a}, weight: 100}, {destination: {host: b}, weight: 0}]}]\n"
    done = becalm("import", "istio", "--strict", "-", stdin=text)
    assert done.returncode == 0 and done.stderr.count("\n") == 3


def test_import__a_cluster_that_a_header_names_is_left_out(imported):
    text = "virtual_hosts: [{name: v, routes: [{match: {prefix: /}, route: {cluster_header: x, timeout: 9s}}, {match: {prefix: /}, route: {cluster: a}}]}]\n"
    done = imported("envoy", text)
    assert "no cluster is named; the route is left out" in done.stderr and "deadline: 9s" not in done.values


def test_import__a_route_that_an_earlier_one_hides_is_left_out_with_a_note(imported):
    text = "hosts: [a]\nhttp: [{route: [{destination: {host: b}}]}, {match: [{uri: {prefix: /x}}], route: [{destination: {host: c}}], timeout: 7s}]\n"
    done = imported("istio", text)
    assert "note: match has no equivalent: no request comes to it: the route at line 2 takes them first" in done.stderr
    assert "deadline: 7s" not in done.values


# ---- any bytes ----


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + VIRTUAL_SERVICE,
        "%YAML 1.2\n---\n" + VIRTUAL_SERVICE,
        VIRTUAL_SERVICE.replace("\n", "\r\n"),
        "---\nnull\n---\n~\n---\n" + VIRTUAL_SERVICE + "---\nnull\n...\n",
        VIRTUAL_SERVICE + "...\n",
        "# a comment\n---\n---\n" + VIRTUAL_SERVICE,
    ],
)
def test_import__bytes_that_say_nothing_are_passed_over(becalm, text):
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 0 and done.stderr.count("\n") == 3
    assert "deadline: 1s" in done.stdout


@pytest.mark.parametrize("bad", ["b: [1\n", "retries: {attempts: {{ .Values.attempts }}}\n"])
def test_import__a_broken_document_is_left_out_and_the_rest_is_printed(becalm, bad):
    done = becalm("import", "istio", "-", stdin=bad + "---\n" + VIRTUAL_SERVICE)
    assert done.returncode == 1 and done.stderr.count(" error: ") == 1
    assert "deadline: 1s" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "spec:\n{{- if .Values.on }}\n  a: 1\n{{- end }}\n",
        "{% for host in hosts %}\n- {{ host }}\n{% endfor %}\n",
        "kind: VirtualService\nspec: {hosts: [a], http: [{retries: {attempts: {{ .Values.n }}}}]}\n",
    ],
)
def test_import__a_template_is_named_and_to_be_rendered_first(becalm, text):
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 1
    assert done.stderr == "<stdin>:1:1: error: this is a template; render it first: helm template . | becalm import - [template]\n"


def test_import__one_bad_value_leaves_the_rest(becalm):
    text = "kind: VirtualService\nspec: {hosts: [a], http: [{timeout: 3s, retries: {attempts: '${N}'}, route: [{destination: {host: a}}]}]}\n"
    done = becalm("import", "-", stdin=text)
    assert done.returncode == 1 and "deadline: 3s" in done.stdout
    assert '"${N}" is not a value but a placeholder; render the template first' in done.stderr


def test_import__a_grpc_retry_policy_that_grpc_refuses_retries_nothing(imported):
    done = imported("grpc", json.dumps({"methodConfig": [{"name": [{"service": "s"}], "timeout": "9s", "retryPolicy": {"initialBackoff": "1s"}}]}))
    assert "maxAttempts is not written, so that gRPC refuses it: nothing is retried" in done.stderr
    assert "maxRetries: 0" in done.values and "deadline: 9s" in done.values


def test_import__an_address_that_cannot_be_said_ends_nothing(imported):
    pipe = "{name: a, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: ./x.sock}}}}]}]}}"
    done = imported("envoy", f"static_resources: {{clusters: [{pipe}, {{name: b, connect_timeout: 2s}}]}}\n")
    assert "is no address that can be called from here" in done.stderr and "connectTimeout: 2s" in done.values


def test_import__a_dump_of_twelve_mebibytes_is_read(becalm, tmp_path):
    item = "- kind: Pod\n  metadata: {name: p%d, labels: {app: x, tier: y}}\n  spec: {note: " + "z" * 600 + "}\n"
    dump = tmp_path / "dump.yaml"
    head = "kind: List\nitems:\n- kind: VirtualService\n  spec: {hosts: [a], http: [{timeout: 1s}]}\n"
    dump.write_text(head + "".join(item % i for i in range(19000)))
    assert dump.stat().st_size > 12 << 20
    done = becalm("import", dump)
    assert done.returncode == 0, done.stderr
    assert "deadline: 1s" in done.stdout and len(done.stdout) < 5000
    assert 'kind "Pod" has no equivalent: it is in no dialect that Becalm knows (19000 times)' in done.stderr


# ---- ejection, and keys that are nearly right ----


@pytest.mark.parametrize(
    "dialect, text, count, warned",
    [
        ("istio", "outlierDetection: {consecutiveGatewayErrors: 3}", 3, True),
        ("istio", "outlierDetection: {consecutiveGatewayErrors: 3, consecutive5xxErrors: 0}", 3, True),
        ("istio", "outlierDetection: {consecutiveGatewayErrors: 5}", 5, False),
        ("istio", "outlierDetection: {consecutiveGatewayErrors: 7, consecutive5xxErrors: 4}", 4, False),
        ("istio", "outlierDetection: {consecutiveGatewayErrors: 0}", 5, False),
        ("istio", "outlierDetection: {consecutiveGatewayErrors: 0, consecutive5xxErrors: 0}", None, False),
        ("envoy", "outlier_detection: {consecutive_gateway_failure: 3}", 5, False),
        ("envoy", "outlier_detection: {consecutive_gateway_failure: 3, enforcing_consecutive_gateway_failure: 100}", 3, True),
        ("envoy", "outlier_detection: {consecutive_5xx: 9, enforcing_consecutive_gateway_failure: 100}", 5, True),
        ("envoy", "outlier_detection: {enforcing_consecutive_5xx: 0, enforcing_consecutive_gateway_failure: 100}", 5, True),
        ("envoy", "outlier_detection: {enforcing_consecutive_5xx: 0, consecutive_gateway_failure: 3}", None, False),
        ("envoy", "outlier_detection: {enforcing_consecutive_5xx: 50}", 5, True),
    ],
)
def test_import__gateway_errors_eject_where_they_come_first(becalm, imported, dialect, text, count, warned):
    done = imported(dialect, text)
    if count is None:
        assert "enabled: false" in done.values and not any(value.startswith("consecutive5xx") for value in done.values)
    else:
        assert f"consecutive5xxErrors: {count}" in done.values and "enabled: false" not in done.values
    assert (becalm("import", dialect, "--strict", "-", stdin=text).returncode == 1) == warned
    assert (": warning: " in done.stderr) == warned


def test_import__a_cluster_of_envoy_in_the_spelling_of_json_is_envoys(becalm):
    cluster = "{name: a, outlierDetection: {consecutive5xx: 3}, loadAssignment: {endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: h, portValue: 80}}}}]}]}}"
    done = becalm("import", "-", stdin=cluster)
    assert "The configuration of Envoy, translated" in done.stdout and "consecutive5xxErrors: 3" in done.stdout


@pytest.mark.parametrize(
    "dialect, text, meant",
    [
        ("istio", "outlierDetection: {consecutive5xx: 3}", "consecutive5xxErrors"),
        ("istio", "outlierDetection: {consecutiveGatewayError: 3}", "consecutiveGatewayErrors"),
        ("istio", "retries: {attempts: 2, perTryTimeouts: 1s}", "perTryTimeout"),
        ("envoy", "retry_policy: {retry_on: 5xx, num_retry: 3}", "num_retries"),
        ("envoy", "outlier_detection: {consecutive_5xxs: 3}", "consecutive_5xx"),
        ("grpc", "retryThrottling: {maxTokens: 10, tokenRate: 0.1}", "tokenRatio"),
    ],
)
def test_import__a_key_that_the_product_does_not_know_is_asked_about(becalm, dialect, text, meant):
    done = becalm("import", dialect, "--strict", "-", stdin=text)
    assert done.returncode == 1
    assert re.search(rf"<stdin>:1:\d+: warning: .* has no such key; is {meant} meant\?", done.stderr), done.stderr


def test_import__a_known_key_that_is_there_is_not_asked_for(imported):
    done = imported("istio", "outlierDetection: {consecutive5xx: 3, consecutive5xxErrors: 4, consecutiveErrors: 4}")
    assert "meant?" not in done.stderr and "consecutive5xxErrors: 4" in done.values


# ---- protocols to hosts ----

ENVOY_CLUSTER = "{name: a, load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: h, port_value: 80}}}}]}]}, %s}"
ENVOY_OPTIONS = "typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {%s}}"
ENVOY_FILE = "static_resources: {clusters: [" + ENVOY_CLUSTER + "]}"
INGRESS_FILE = """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i, annotations: {nginx.ingress.kubernetes.io/backend-protocol: %s}}
spec: {rules: [{http: {paths: [{path: /, backend: {service: {name: a, port: {number: 80}}}}]}}]}
"""
ROUTE_FILE = """apiVersion: gateway.networking.k8s.io/v1
kind: %s
metadata: {name: r}
spec: {rules: [{backendRefs: [{name: a, port: 80}]}]}
"""
RULE_FILE = "kind: DestinationRule\nmetadata: {name: r}\nspec: {host: a, trafficPolicy: {connectionPool: {http: {%s}}}}\n"


@pytest.mark.parametrize(
    "dialect, text, protocol, tls",
    [
        ("envoy", ENVOY_FILE % "http2_protocol_options: {}", "h2", False),
        ("envoy", ENVOY_FILE % (ENVOY_OPTIONS % "explicit_http_config: {http2_protocol_options: {}}"), "h2", False),
        ("envoy", ENVOY_FILE % (ENVOY_OPTIONS % "explicit_http_config: {http_protocol_options: {}}"), None, False),
        ("envoy", ENVOY_FILE % (ENVOY_OPTIONS % "auto_config: {}"), None, False),
        ("istio", RULE_FILE % "h2UpgradePolicy: UPGRADE", "h2", False),
        ("istio", RULE_FILE % "h2UpgradePolicy: DO_NOT_UPGRADE", None, False),
        ("grpc", '{"methodConfig": [{"name": [{"service": "a"}], "timeout": "1s"}]}', "h2", False),
        ("gateway-api", ROUTE_FILE % "GRPCRoute", "h2", False),
        ("gateway-api", ROUTE_FILE % "HTTPRoute", None, False),
        ("ingress-nginx", INGRESS_FILE % "GRPC", "h2", False),
        ("ingress-nginx", INGRESS_FILE % "GRPCS", "h2", True),
        ("ingress-nginx", INGRESS_FILE % "HTTPS", None, True),
        ("ingress-nginx", INGRESS_FILE % "http", None, False),
        ("nginx", "http { server { location / { grpc_pass grpc://h:80; } } }", "h2", False),
        ("nginx", "http { server { location / { grpc_pass grpcs://h:80; } } }", "h2", True),
        ("nginx", "http { server { location / { proxy_pass https://h:80; } } }", None, True),
        ("haproxy", "defaults\n mode http\nbackend b\n server s h:80 proto h2\n server t i:80 proto h2\n", "h2", False),
        ("haproxy", "defaults\n mode http\nbackend b\n server s h:80\n", None, False),
        ("kong", "_format_version: '3.0'\nservices: [{name: a, url: 'grpc://h:80', routes: [{paths: [/]}]}]\n", "h2", False),
        ("kong", "_format_version: '3.0'\nservices: [{name: a, url: 'http://h:80', routes: [{paths: [/]}]}]\n", None, False),
    ],
)
def test_import__hosts_are_spoken_to_as_the_source_does(becalm, imported, dialect, text, protocol, tls):
    values = imported(dialect, text).values
    assert ("protocol: h2" in values) == (protocol == "h2"), values
    assert any(value == "tls:" for value in values) == tls, values


@pytest.mark.parametrize(
    "dialect, text, said",
    [
        ("envoy", ENVOY_FILE % (ENVOY_OPTIONS % "explicit_http_config: {http3_protocol_options: {}}"), "HTTP/3 is not spoken"),
        ("envoy", ENVOY_FILE % (ENVOY_OPTIONS % "use_downstream_protocol_config: {http2_protocol_options: {}}"), "follow the client's protocol"),
        ("istio", RULE_FILE % "useClientProtocol: true", "follow the client's protocol"),
        ("haproxy", "defaults\n mode http\nbackend b\n server s h:80 proto h2\n server t i:80\n", "all hosts of a service speak the same protocol"),
    ],
)
def test_import__a_protocol_that_hosts_cannot_be_spoken_to_in_is_a_warning(becalm, dialect, text, said):
    done = becalm("import", dialect, "--strict", "-", stdin=text)
    assert done.returncode == 1 and said in done.stderr, done.stderr


@pytest.mark.parametrize(
    "dialect, text",
    [
        ("envoy", ENVOY_FILE.replace("port_value: 80", "port_value: 0") % "connect_timeout: 1s"),
        ("haproxy", "defaults\n mode http\n timeout connect 1s\nbackend b\n server s 192.0.2.1:0\n"),
        ("haproxy", "defaults\n mode http\n timeout connect 1s\nbackend b\n server s 192.0.2.1:00\n"),
        ("nginx", "http { upstream u { server 192.0.2.1:0; } server { location / { proxy_pass http://u; proxy_connect_timeout 1s; } } }"),
        ("ingress-nginx", INGRESS_FILE.replace("number: 80", "number: 0") % "HTTP"),
        ("gateway-api", ROUTE_FILE.replace("port: 80", "port: 0") % "HTTPRoute"),
    ],
)
def test_import__a_host_with_port_0_is_left_out_with_a_warning(becalm, dialect, text):
    done = becalm("import", dialect, "--strict", "-", stdin=text)
    assert done.returncode == 1 and ": warning: " in done.stderr and re.search("(no|not an) address", done.stderr), done.stderr
    assert ":0" not in re.sub(r"#.*", "", done.stdout)
    assert becalm("check", "-", stdin=done.stdout).returncode == 0


def test_check__a_path_that_ends_with_0_is_a_host(becalm):
    assert becalm("check", "-", stdin="version: 1\nservices: {a: {hosts: ['unix:/run/a:0']}}\n").returncode == 0
    done = becalm("check", "-", stdin="version: 1\nservices: {a: {hosts: ['a:0']}}\n")
    assert done.returncode == 1 and "has port 0, which is for listeners" in done.stdout
