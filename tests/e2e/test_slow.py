# SPDX-License-Identifier: MIT
"""Services that are slow but healthy: whoever did not choose a timeout is told that there is one."""

import json
import threading

import pytest

from conftest import policy_of
from host import Reply, wait_until
from test_lines import status_of_upload

LINE = "given up after the default timeout"
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


def told(gateway):
    return [json.loads(line) for line in gateway.log_lines(LINE)]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_attempt_that_ends_by_the_default_is_told_with_the_key_to_set(pair, workers):
    endpoints = "endpoints:\n  year: {match: {path: /year}}\n  quick: {match: {path: /quick}, attemptTimeout: 1s}\n"
    gateway, host = pair("log: {format: json}", ONCE + endpoints, workers=workers)
    host.on("*", Reply(cut=0, end="hang"))
    host.on("/fine", Reply(body=b"fine"))
    assert gateway.ask(path="/fine").status == 200
    assert at_once(gateway, "/", "/", "/", "/year", "/year", "/quick", "/quick") == [504] * 7
    wait_until(lambda: len(told(gateway)) == 2)
    lines = {line.get("endpoint"): line for line in told(gateway)}
    assert {name: line["set"] for name, line in lines.items()} == {
        None: "services.a.attemptTimeout",
        "year": "services.a.endpoints.year.attemptTimeout",
    }
    for line in lines.values():
        assert line["level"] == "warn" and line["service"] == "a"
        assert line["timeout_ms"] == 5000 and line["deadline_ms"] == 16000
    gateway.reload(gateway.path.read_text().replace("maxRetries: 0", "maxRetries: 1\n    initialDelay: 1ms", 1))
    wait_until(lambda: gateway.log_lines("policy reloaded"))
    assert gateway.ask(path="/fine").status == 200
    host.on("/", Reply(cut=0, end="hang"), Reply())
    assert gateway.ask().status in (200, 504)  # another policy, and this time the retry may bring an answer
    wait_until(lambda: len(told(gateway)) == 3)


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
