# SPDX-License-Identifier: MIT
"""Services that are slow but healthy: an operator who did not write a timeout learns that there is one."""

import json
import threading

import pytest

from conftest import policy_of
from host import Reply, wait_until
from load import Load, reasons, statuses
from test_admin import target
from test_lines import status_of_upload

LINE = "and the policy has no timeout"
ONCE = "maxRetries: 0\nbreaker: {enabled: false}\nlimit: {kind: none}\n"


def at_once(gateway, *paths):
    """Asks for all of them at the same time; their statuses."""
    statuses = {}

    def ask(index, path):
        statuses[index] = gateway.ask(path=path).status

    threads = [threading.Thread(target=ask, args=each) for each in enumerate(paths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [statuses[index] for index in range(len(paths))]


def timeout_of(gateway, path):
    names = {"/": "default", "/year": "year", "/quick": "quick"}
    timeout = target(gateway, endpoint=names.get(path, "report"))["attemptTimeout"]
    return timeout["kind"], timeout["ms"]


def learn(gateway, path):
    """Asks quickly until it is known that this is quick."""
    wait_until(lambda: gateway.ask(path=path).status == 200 and timeout_of(gateway, path) == ("learned", 5000), 60)


def told(gateway):
    return [json.loads(line) for line in gateway.log_lines(LINE)]


def test_a_report_of_seven_seconds_arrives_and_a_hang_is_given_up_and_told_with_the_key_to_set(pair):
    """The policy has no timeout. The times of other calls are known, so that both kinds are overdue after 5 s. The
    report is slow, but healthy: its service answers other calls. The calls of the other service hang, all of them: that
    opens their breaker, and ends them."""
    endpoints = (
        "endpoints:\n  year: {match: {path: /year}}\n  quick: {match: {path: /quick}, attemptTimeout: 1s}\n"
        "  report: {match: {prefix: /report}}\n"
    )
    rules = "maxRetries: 0\nlimit: {kind: none}\nbreaker: {mode: consecutive, failureThreshold: 2}\n"
    gateway, host = pair("log: {format: json}", rules + endpoints, workers=2)
    for path in ("/", "/year", "/report/quick"):
        assert timeout_of(gateway, path) == ("start", 30000)
        learn(gateway, path)
    assert timeout_of(gateway, "/quick") == ("written", 1000)
    gateway.expect_metric(5, "becalm_attempt_timeout_seconds", service="a", endpoint="report")
    host.on("*", Reply(cut=0, end="hang"))
    host.on("/report/slow", Reply(delay=7))
    asked = ["/report/slow", "/", "/", "/", "/year", "/year", "/quick", "/quick"]
    assert at_once(gateway, *asked) == [200] + [504] * 7
    wait_until(lambda: len(told(gateway)) == 2)
    lines = {line.get("endpoint"): line for line in told(gateway)}
    assert {name: line["set"] for name, line in lines.items()} == {
        None: "services.a.attemptTimeout",
        "year": "services.a.endpoints.year.attemptTimeout",
    }
    for line in lines.values():
        assert line["level"] == "warn" and line["service"] == "a"
        assert line["timeout_ms"] == 5000 and line["deadline_ms"] == 60000


@pytest.mark.parametrize("role", ["gateway", "sidecar"])
def test_a_service_that_needs_seven_seconds_from_now_on_loses_no_call(pair, role):
    """Answers of 5 s are overdue, because they were quick until now. But clients would wait for 60 s, so that an answer
    after 7 s is in time: the limit is not cut for it, and no call is refused."""
    gateway, host = pair(f"role: {role}")
    learn(gateway, "/")
    host.on("*", Reply(delay=7))
    results = Load(gateway.port, rate=6, seconds=10).run_through()
    assert statuses(results) == {200: len(results)}, reasons(results)


def test_before_anything_is_known_nothing_is_overdue(pair):
    """The first answer that a newcomer asks for is a slow one, and so are the next."""
    gateway, host = pair(rules="breaker: {minimumNumberOfCalls: 2}\n")
    host.on("*", Reply(delay=7))
    assert at_once(gateway, *["/"] * 5) == [200] * 5
    assert host.count() == 5 and gateway.log_lines(LINE) == []
    assert timeout_of(gateway, "/") == ("start", 30000)


def test_what_is_overdue_is_asked_of_another_host_too(pair):
    gateway, hosts = pair(hosts=2)
    learn(gateway, "/")
    replies = [Reply(cut=0, end="hang"), Reply()]
    lock = threading.Lock()

    def first_hangs(_):
        with lock:
            return replies.pop(0) if replies else Reply()

    for host in hosts:
        host.forget()
        host.on("/", first_hangs)
    assert gateway.ask().status == 200
    assert [host.count() for host in hosts] == [1, 1]


WRITTEN = {
    "service": ("", "attemptTimeout: 2s\n", []),
    "defaults": ("defaults: {attemptTimeout: 2s}\n", "", []),
    "command line": ("", "", ["defaults.attemptTimeout=2s"]),
}


@pytest.mark.parametrize("where", WRITTEN)
def test_who_wrote_a_timeout_is_not_told_of_it(pair, where):
    text, rules, sets = WRITTEN[where]
    gateway, host = pair(text + "log: {level: debug}\n", ONCE + rules, sets=sets)
    host.on("/", Reply(cut=0, end="hang"))
    assert gateway.ask().status == 504
    assert gateway.ask(path="/other").status == 200
    assert gateway.log_lines(LINE) == []


def test_other_failures_are_no_timeouts(gateway, host):
    there = host()
    made = gateway(policy_of([there], "idleTimeout: 500ms", ONCE))
    there.on("/reset", Reply(cut=0, end="reset"))
    there.on("/cut", Reply(body=b"x" * 1000, cut=500, end="hang"))
    there.on("/503", Reply(503))
    assert made.ask(path="/reset").status == 502
    assert made.ask(path="/503").status == 503
    with pytest.raises((EOFError, ConnectionError)):
        made.ask(path="/cut")
    there.on("/up", Reply(early=True, raw=b"", end="deaf"))
    wait_until(lambda: status_of_upload(made) in (504, None))
    wait_until(lambda: made.metric("becalm_active_requests") == 0)
    assert made.log_lines(LINE) == []


def test_an_attempt_without_a_timeout_has_all_the_time_of_its_call(pair):
    times = "attemptTimeout: 200ms\ndeadline: 20s\nendpoints:\n  report: {match: {path: /report}, attemptTimeout: none}\n"
    gateway, host = pair("", ONCE + times)
    host.on("*", Reply(delay=0.6, body=b"late"))
    assert gateway.ask(path="/").status == 504
    assert gateway.ask(path="/report").body == b"late"
