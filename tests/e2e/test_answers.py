# SPDX-License-Identifier: MIT
"""Every answer says why: our own answers, the fields on others', and the logs."""

import json
import re
import socket

import pytest
from conftest import free_port, policy_of
from host import Reply, fill, wait_until
from wire import ask

QUICK = "initialDelay: 1ms\nmaxDelay: 2ms\nbudget: {kind: none}\n"


def test_a_dead_host_gives_502_with_its_reason(gateway):
    made = gateway(
        f"services:\n  a:\n    hosts: ['127.0.0.1:{free_port()}']\n    match: {{prefix: /}}\n    maxRetries: 1\n"
        "    initialDelay: 1ms\n    budget: {kind: none}\n    restart: {enabled: false}\n"
    )
    answer = made.ask()
    assert answer.status == 502
    assert answer.get("proxy-status") == 'becalm; error=connection_refused; details="attempts_spent"'
    problem = json.loads(answer.body)
    assert problem["status"] == 502 and problem["reason"] == "attempts_spent" and problem["attempts"] == 2
    assert problem["type"].startswith("tag:") or problem["type"].startswith("urn:"), problem
    assert problem["title"]


def test_an_open_breaker_gives_503_with_retry_after(pair):
    gateway, host = pair(rules="maxRetries: 0\nbreaker: {minimumNumberOfCalls: 5, waitDurationInOpenState: 30s}")
    host.on("/", Reply(503, b"down"))
    for _ in range(5):
        assert gateway.ask().body == b"down"
    answer = gateway.ask()
    assert answer.status == 503 and json.loads(answer.body)["reason"] == "breaker_open"
    assert "error=destination_unavailable" in answer.get("proxy-status") and "breaker_open" in answer.get(
        "proxy-status"
    )
    assert 1 <= int(answer.get("retry-after")) <= 60
    assert answer.get("becalm-retry", "").startswith("spent")
    assert host.count() == 5


def test_retry_after_is_spread(pair):
    """Ten thousand callers that are told the same second come back in the same second."""
    gateway, host = pair(rules="maxRetries: 0\nbreaker: {minimumNumberOfCalls: 1, waitDurationInOpenState: 60s}")
    host.on("/", Reply(503))
    gateway.ask()
    assert len({gateway.ask().get("retry-after") for _ in range(50)}) > 1


def test_a_hanging_host_gives_504(pair):
    gateway, host = pair(rules="maxRetries: 0\nattemptTimeout: 1s")
    host.on("/", Reply(cut=0, end="hang"))
    answer = gateway.ask()
    assert answer.status == 504 and "http_response_timeout" in answer.get("proxy-status")


def test_a_host_that_does_not_accept_gives_504(gateway):
    """A backlog that is full drops the first packet of a connection, as a firewall does."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        crowd = fill(full)
        made = gateway(
            f"services:\n  a:\n    hosts: ['127.0.0.1:{full.getsockname()[1]}']\n    match: {{prefix: /}}\n"
            "    maxRetries: 0\n    connectTimeout: 200ms\n"
        )
        answer = made.ask()
        for each in crowd:
            each.close()
    assert answer.status == 504 and "connection_timeout" in answer.get("proxy-status")


def test_a_cut_answer_before_its_first_byte_went_out_gives_502(pair):
    gateway, host = pair(rules="maxRetries: 0")
    host.on("/", Reply(cut=10, end="close"))
    answer = gateway.ask()
    assert answer.status == 502 and answer.get("proxy-status").startswith("becalm; error=connection_terminated")


def test_the_last_real_answer_is_given_not_a_made_up_one(pair):
    gateway, host = pair(rules=QUICK + "maxRetries: 2")
    host.on("/", Reply(502, b"one"), Reply(503, b"two"), Reply(503, b"three", {"X-Real": "yes", "Retry-After": "7"}))
    answer = gateway.ask()
    assert (answer.status, answer.body, answer.get("x-real")) == (503, b"three", "yes")
    assert answer.get("retry-after") == "7" and host.count() == 3


def test_a_longer_failed_answer_is_not_lost_when_nothing_better_comes(pair):
    gateway, host = pair(rules=QUICK + "maxRetries: 2")
    host.on("/", Reply(503, b"x" * 100000))
    answer = gateway.ask()
    assert answer.status == 503
    if answer.body != b"x" * 100000:
        assert json.loads(answer.body)["lastStatus"] == 503
    assert host.count() == 3


def test_answers_of_the_host_pass_unchanged(pair):
    gateway, host = pair()
    for status in (200, 301, 400, 401, 404, 418, 500, 501):
        host.on(f"/{status}", Reply(status, b"body %d" % status, {"Location": "/x"}))
        answer = gateway.ask(path=f"/{status}")
        assert (answer.status, answer.body, answer.get("location")) == (status, b"body %d" % status, "/x")


@pytest.mark.parametrize(
    "head", [b"Content-Length: 4", b"Content-Length: 0004", b"Content-Length: 4\r\nContent-Length: 4",
             b"Content-Length: 4\r\nConnection: content-length"]
)
def test_an_answer_has_one_length_however_the_host_says_it(pair, head):
    edge, there = pair()
    there.on("/a", Reply(raw=b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nfour"))
    answer = edge.ask(path="/a")
    lengths = [value for name, value in answer.fields if name.lower() == "content-length"]
    assert (answer.status, answer.body, lengths) == (200, b"four", ["4"])


def test_explain_tells_the_decision_record(pair):
    gateway, host = pair("explain: true", rules=QUICK)
    host.on("/", Reply(503), Reply(200))
    host.on("/no", Reply(404))
    told = gateway.ask().get("becalm-explain")
    assert told.startswith("call; reason=ok;") and "attempts=2" in told, told
    assert told.count(", attempt;") == 2 and "outcome=rejected" in told and "status=503" in told and "waited=" in told
    assert "reason=permanent" in gateway.ask(path="/no").get("becalm-explain")


def test_explain_names_the_host(pair):
    gateway, host = pair("explain: true", rules=QUICK)
    assert f'host="{host.address}"' in gateway.ask().get("becalm-explain")


def test_explain_is_off_by_default_and_a_hosts_own_is_dropped(pair):
    gateway, host = pair()
    host.on("/", Reply(fields={"Becalm-Explain": "forged", "Becalm-Retry": "overloaded; scope=service"}))
    answer = gateway.ask()
    assert answer.get("becalm-explain") is None and answer.get("becalm-retry") is None


def test_the_access_log_has_a_line_per_request(pair):
    gateway, host = pair("log: {access: json, query: true}", rules=QUICK)
    host.on("/x?q=1", Reply(201, b"12345"))
    host.on("/bad", Reply(503), Reply(503), Reply(503, b"no"))
    gateway.ask(path="/x?q=1", fields={"X-Request-Id": "abc", "User-Agent": 'quo"te', "Referer": "r"})
    gateway.ask("PUT", "/bad", body=b"y")
    wait_until(lambda: len(gateway.access()) == 2)
    first, second = (json.loads(line) for line in gateway.access())
    assert (first["method"], first["target"], first["status"], first["bytes"]) == ("GET", "/x?q=1", 201, 5)
    assert (first["service"], first["reason"], first["attempts"], first["peer"]) == ("a", "ok", 1, "127.0.0.1")
    assert (first["request_id"], first["user_agent"], first["host"]) == ("abc", 'quo"te', "a.test")
    assert (second["status"], second["attempts"], second["reason"]) == (503, 3, "attempts_spent")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])


def test_the_access_log_has_requests_without_a_route_too(gateway, host):
    made = gateway(f"log: {{access: json}}\nservices:\n  a.test:\n    hosts: [{host().address}]\n")
    made.ask(path="/x", host="b.test")
    wait_until(lambda: len(made.access()) == 1)
    assert json.loads(made.access()[0])["status"] == 404


def test_the_combined_access_log_is_what_tools_expect(pair):
    gateway, host = pair("log: {access: combined}")
    gateway.ask(path="/c", fields={"User-Agent": "Agent/1.0"})
    wait_until(lambda: gateway.access())
    assert re.fullmatch(
        r'127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET /c HTTP/1\.1" 200 \d+ "-" "Agent/1\.0"',
        gateway.access()[0],
    )


def test_each_retry_has_a_log_line_with_its_fields(pair):
    gateway, host = pair("log: {format: json}", rules="initialDelay: 20ms\nbudget: {kind: none}\nmaxRetries: 2")
    host.on("/", Reply(503, fields={"Retry-After": "0"}), Reply(cut=9, end="reset"), Reply(200))
    assert gateway.ask(fields={"X-Request-Id": "r-1"}).status == 200
    wait_until(lambda: len(gateway.log_lines('"message":"retry"')) == 2)
    first, second = (json.loads(line) for line in gateway.log_lines('"message":"retry"'))
    assert (first["operation"], first["retry"], first["of"], first["outcome"]) == ("GET a", 1, 2, "rejected")
    assert (first["status"], first["request_id"], first["retry_after"]) == (503, "r-1", "0")
    assert first["delay_ms"] == 20 and 0 <= first["jittered_ms"] <= 20 and first["slept_ms"] >= first["jittered_ms"]
    assert f"{first['server.address']}:{first['server.port']}" == first["to"] == host.address
    assert (second["retry"], second["outcome"], second["delay_ms"]) == (2, "broken", 40)
    assert "status" not in second


def test_a_retry_line_tells_of_the_attempt_that_failed_and_where_it_goes_now(pair):
    gateway, hosts = pair("log: {format: json}", rules="initialDelay: 1ms\nbudget: {kind: none}", hosts=2)
    for host in hosts:
        host.on("/", Reply(200, b"", fields={"Grpc-Status": "14", "Content-Type": "application/grpc"}), Reply())
    while not gateway.log_lines('"message":"retry"'):
        gateway.ask("POST", fields={"Content-Type": "application/grpc", "Idempotency-Key": '"1"'})
        wait_until(lambda: gateway.metric("becalm_active_requests") == 0)
    line = json.loads(gateway.log_lines('"message":"retry"')[0])
    addresses = {host.address for host in hosts}
    assert f"{line['server.address']}:{line['server.port']}" in addresses - {line["to"]}
    assert line["to"] in addresses and line["grpc_status"] == "UNAVAILABLE"


def test_the_access_log_counts_the_bytes_of_our_own_answers(gateway, host):
    there = host()
    made = gateway(f"log: {{access: json}}\nservices:\n  a:\n    hosts: [{there.address}]\n    match: {{prefix: /a}}\n    maxRetries: 0\n")
    there.on("/a", Reply(raw=b"", end="reset"))
    lengths = [len(made.ask(path=path).body) for path in ("/a", "/b")]
    with made.wire() as wire:
        lengths.append(len(wire.send(b"GET bad\r\n\r\n").answer().body))
    wait_until(lambda: len(made.access()) == 3)
    assert [json.loads(line)["bytes"] for line in made.access()] == lengths and min(lengths) > 0


def test_a_failed_answer_to_head_keeps_its_length(pair):
    gateway, host = pair(rules="initialDelay: 1ms\nmaxRetries: 1\nbudget: {kind: none}")
    host.on("/", Reply(503, b"x" * 1234))
    with gateway.wire() as wire:
        answer = wire.ask("HEAD")
        assert (answer.status, answer.get("content-length")) == (503, "1234")
        assert wire.ask(path="/fine").status == 200
    host.on("/once", Reply(503, b"y" * 77), Reply(raw=b"", end="reset"))
    answer = gateway.ask("HEAD", "/once")
    assert answer.get("content-length") == "77" if answer.status == 503 else answer.status == 502


@pytest.mark.parametrize("reason", ["attempts_spent", "budget_empty", "not_idempotent", "permanent", "retries_off"])
def test_the_reason_is_the_same_word_everywhere(gateway, host, reason):
    there = host()
    rules = QUICK + "maxRetries: 1\n"
    if reason == "budget_empty":
        rules = "maxRetries: 1\ninitialDelay: 1ms\nbudget: {kind: ratio, percent: 0}"
    elif reason == "retries_off":
        rules = "maxRetries: 0"
    there.on("/", Reply(404 if reason == "permanent" else 503, b"no"))
    made = gateway(policy_of([there], "explain: true\nlog: {access: json}", rules))
    answer = made.ask("POST" if reason == "not_idempotent" else "GET", body=b"" if reason == "not_idempotent" else None)
    assert f"reason={reason}" in answer.get("becalm-explain")
    if reason != "permanent":
        assert f'details="{reason}"' in answer.get("proxy-status")
    wait_until(lambda: made.access())
    assert json.loads(made.access()[0])["reason"] == reason


def test_a_grpc_caller_gets_a_trailers_only_answer(gateway):
    made = gateway(
        f"services:\n  a:\n    hosts: ['127.0.0.1:{free_port()}']\n    match: {{prefix: /}}\n    maxRetries: 0\n"
    )
    answer = made.ask("POST", body=b"", fields={"Content-Type": "application/grpc"})
    assert answer.status == 200 and answer.get("grpc-status") == "14" and answer.body == b""


def test_shadow_mode_only_counts(pair):
    gateway, host = pair("explain: true", rules="mode: shadow\nmaxRetries: 2\nbreaker: {minimumNumberOfCalls: 5}")
    host.on("/", Reply(503, b"as it is"))
    for _ in range(20):
        answer = gateway.ask()
        assert answer.body == b"as it is"
    assert host.count() == 20, "nothing retried, nothing refused"
    assert "would=" in answer.get("becalm-explain")


def test_marks_of_trusted_hosts_are_honoured(pair):
    gateway, host = pair("trust: [127.0.0.0/8]", QUICK)
    host.on("/", Reply(503, b"stop", {"Becalm-Retry": "overloaded; scope=service"}))
    answer = gateway.ask()
    assert answer.body == b"stop" and host.count() == 1
    assert 'details="stopped"' in answer.get("proxy-status")


def test_marks_of_others_are_not(gateway, host):
    there = host()
    there.on("/", Reply(503, b"stop", {"Becalm-Retry": "overloaded; scope=service"}), Reply(200))
    for text in ("trust: [10.0.0.0/8]", ""):
        there.forget()
        made = gateway(policy_of([there], text, QUICK))
        there.on("/", Reply(503, b"stop", {"Becalm-Retry": "overloaded; scope=service"}), Reply(200))
        assert ask(made.port).status == 200 and there.count() == 2
