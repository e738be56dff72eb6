# SPDX-License-Identifier: MIT
"""Fallbacks: another service, or an answer of the policy, in place of a service that fails."""

import json

import pytest
from host import Reply
from host_h2 import HostH2, Refuse
from wire import ask

ANSWER = 'status: 200, headers: ["Content-Type: application/json", "X-Stale: yes"], body: \'{"items": []}\''
OPEN = "breaker: {mode: consecutive, failureThreshold: 1, waitDurationInOpenState: 1h}"


@pytest.fixture
def lab(gateway, host):
    """lab("status: 200", rules="..."): a service main with that fallback, one named other; answers the gateway and both hosts."""

    def make(fallback, rules="maxRetries: 0", other="", more="", sets=()):
        main, stand_in = host(), host().on("/", Reply(200, body=b"other"))
        text = f"""
services:
  main: {{hosts: ["{main.address}"], match: {{host: main.test}}, {rules}, fallback: {{{fallback}}}{more}}}
  other: {{hosts: ["{stand_in.address}"]{other}}}
"""
        return gateway(text, sets=["log.access=json", *sets]), main, stand_in

    return make


def get(gateway, **more):
    return gateway.ask(host="main.test", **more)


def last_decision(gateway, service="main"):
    page = ask(gateway.admin, path=f"/api/decisions?service={service}", host=f"127.0.0.1:{gateway.admin}")
    return json.loads(page.body)["decisions"][0]


def is_stale(answer):
    return (answer.status, answer.body, answer.get("x-stale"), answer.get("becalm-fallback")) == (200, b'{"items": []}', "yes", "main")


def test_the_answer_of_the_policy_stands_in_for_a_failure_and_for_an_open_breaker(lab):
    gateway, main, _ = lab(ANSWER, rules=f"maxRetries: 0, {OPEN}")
    main.on("/", Reply(503, body=b"down"))
    failed, refused = get(gateway), get(gateway)
    assert is_stale(failed) and is_stale(refused) and main.count() == 1
    assert refused.get("content-type") == "application/json" and "breaker_open" in refused.get("proxy-status")
    assert failed.get("becalm-retry") is None and failed.get("retry-after") is None  # a success for the client
    gateway.expect_metric(2, "becalm_fallbacks_total", service="main", by="answer")
    gateway.expect_metric(0, "becalm_calls_total", service="main", result="first_attempt")
    gateway.expect_metric(2, "http_server_requests_total", service="main", code="200")
    assert last_decision(gateway)["fallback"] == "answer" and last_decision(gateway)["reason"] == "breaker_open"
    assert '"fallback":"answer"' in gateway.access(least=2)[-1]


def test_only_what_the_policy_names_has_a_fallback(lab):
    gateway, main, _ = lab(f"on: [open], {ANSWER}", rules=f"maxRetries: 0, {OPEN}")
    main.on("/", Reply(503, body=b"down")).on("/gone", Reply(404))
    assert get(gateway, path="/gone").status == 404  # an answer, and no failure
    assert (get(gateway).status, get(gateway).status) == (503, 200)


def test_another_service_answers_and_its_success_is_its_own(lab):
    gateway, main, other = lab("service: other", rules="maxRetries: 1, initialDelay: 1ms, budget: {kind: none}", other=", endpoints: {e: {match: {prefix: /e}}}")
    main.on("/", Reply(503, body=b"x" * 100000)).on("/e", Reply(end="reset", raw=b""))  # more than is kept, and nothing at all
    other.on("/e", Reply(200, body=b"endpoint"))
    first, second = get(gateway), get(gateway, path="/e")
    assert (first.status, first.body, second.body) == (200, b"other", b"endpoint")
    assert first.get("becalm-fallback") == "main" and main.count("/") == 2
    assert other.requests[0].get("host") == "main.test" and other.requests[0].get("x-request-id") == main.requests[0].get("x-request-id")
    gateway.expect_metric(2, "becalm_fallbacks_total", service="main", by="service")
    gateway.expect_metric(1, "becalm_calls_total", service="other", endpoint="e")
    gateway.expect_metric(1, "http_server_requests_total", service="other", endpoint="e", code="200")
    gateway.expect_metric(0, "http_server_requests_total", service="main")
    assert last_decision(gateway)["fallback"] == "other" and len(gateway.access(least=2)) == 2


def test_where_that_service_fails_too_the_answer_of_the_policy_is_left(lab):
    gateway, main, other = lab(f"service: other, {ANSWER}", other=", maxRetries: 0, fallback: {status: 418}")
    main.on("/", Reply(503))
    other.on("/", Reply(503))
    assert is_stale(get(gateway)) and (main.count(), other.count()) == (1, 1)
    assert ask(gateway.port, host="other").status == 418  # asked for itself, it has its own


def test_where_all_fail_the_caller_hears_of_the_last(lab):
    gateway, main, other = lab("service: other", other=", maxRetries: 0")
    main.on("/", Reply(503))
    other.on("/", Reply(500, body=b"both"))
    answer = get(gateway)
    assert (answer.status, answer.body) == (500, b"both")


def test_nothing_is_done_twice_for_a_fallback(lab):
    gateway, main, other = lab("service: other")
    main.on("/", Reply(503, body=b"maybe done"))
    assert get(gateway, method="POST", body=b"pay").status == 503 and other.count() == 0
    main.stop()  # no process listens: the request was not executed
    posted = get(gateway, method="POST", body=b"pay")
    assert posted.body == b"other" and other.requests[0].body == b"pay"


def test_nothing_that_reached_a_host_is_done_again_though_its_connection_is_gone(lab):
    gateway, main, other = lab("service: other")
    main.on("/", Reply(raw=b"", end="reset"))
    assert get(gateway, method="POST", body=b"pay").status == 502 and other.count() == 0
    assert get(gateway, method="PUT", body=b"pay").body == b"other"


def test_a_body_that_is_gone_goes_nowhere_else_though_no_host_has_acted_on_it(gateway, host):
    """HTTP/2 can refuse a request when all of it is there: the request was not executed, but its body was not kept."""
    main, other = HostH2(at_end=lambda asked: Refuse(7)), host().on("/", Reply(200, body=b"other"))
    here = gateway(
        f"replay: {{perRequest: 1KiB}}\nservices:\n  main: {{hosts: ['{main.address}'], protocol: h2, match: {{host: main.test}}, maxRetries: 0, fallback: {{service: other}}}}\n"
        f"  other: {{hosts: ['{other.address}']}}\n"
    )
    try:
        assert get(here, method="PUT", body=b"x" * 50000).status == 502 and other.count() == 0
        assert get(here, method="POST", body=b"x" * 100).body == b"other" and other.requests[0].body == b"x" * 100
    finally:
        main.close()


def test_a_call_of_grpc_gets_no_answer_of_the_policy(lab):
    """It would take it for a broken message; another service may answer."""
    gateway, main, _ = lab(ANSWER)
    main.stop()
    asked = {"content-type": "application/grpc", "te": "trailers"}
    answer = get(gateway, method="POST", fields=asked, body=b"\0\0\0\0\0")
    assert answer.get("grpc-status") == "14" and answer.get("x-stale") is None and answer.get("becalm-fallback") is None
    assert is_stale(get(gateway))


def test_a_body_that_was_not_kept_goes_nowhere_else(lab):
    gateway, main, other = lab("service: other", sets=["replay.perRequest=1KiB"])
    main.on("/", Reply(503, body=b"down"))
    assert get(gateway, method="PUT", body=b"x" * 100000).status == 503 and other.count() == 0
    assert get(gateway, method="PUT", body=b"x" * 100).body == b"other"  # a PUT may be done twice


@pytest.mark.parametrize("rules, fields", [("mode: shadow", {}), ("idempotencyKey: required", {"Idempotency-Key": "k1"})])
def test_shadow_mode_and_calls_that_hold_a_key_have_none(lab, rules, fields):
    gateway, main, other = lab(f"service: other, {ANSWER}", rules=f"maxRetries: 0, {rules}")
    main.on("/", Reply(503, body=b"down"))
    answer = get(gateway, method="POST", fields=fields, body=b"pay")
    assert (answer.status, answer.body, other.count()) == (503, b"down", 0)


def test_a_failing_answer_of_the_policy_says_not_to_try_again(lab):
    gateway, main, _ = lab('status: 503, headers: ["retry-after: 30"], body: later', rules=f"maxRetries: 0, {OPEN}")
    main.on("/", Reply(503))
    get(gateway)
    answer = get(gateway, method="HEAD")
    assert (answer.status, answer.get("retry-after"), answer.get("content-length"), answer.body) == (503, "30", "5", b"")
    assert answer.get("becalm-retry") is not None


def test_a_call_that_is_shed_has_one(lab):
    gateway, main, _ = lab("on: [shed], status: 204", rules="maxRetries: 0, limit: {kind: fixed, max: 1}, gate: {maxQueue: 0}")
    other_came = []
    main.on("/slow", Reply(when=lambda: other_came))
    with gateway.wire() as wire:
        wire.send(b"GET /slow HTTP/1.1\r\nHost: main.test\r\n\r\n")
        main.wait(1)
        shed = get(gateway)
        assert (shed.status, shed.body, shed.get("content-length")) == (204, b"", None)
        other_came.append(True)
        assert wire.answer().status == 200
