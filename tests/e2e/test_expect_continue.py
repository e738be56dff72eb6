# SPDX-License-Identifier: MIT
"""expectContinue: a POST that may not be repeated gives its host the body when that has asked for it."""

import functools

import pytest
from host import Reply

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
RULES = "expectContinue: on\ninitialDelay: 1ms\nbudget: {kind: none}"


@pytest.fixture
def pair(pair):
    return functools.partial(pair, rules=RULES)


def seen(host, path="/pay"):
    """The requests with Expect, and their bodies."""
    return [(got.get("expect") == "100-continue", got.body) for got in host.got(path)]


def test_a_host_that_asks_for_the_body_gets_it(pair):
    gateway, host = pair()
    host.on("/pay", Reply(body=b"paid", interim=CONTINUE))
    for _ in range(3):
        answer = gateway.ask("POST", "/pay", body=b"5 euro")
        assert (answer.status, answer.body, answer.interim) == (200, b"paid", [])
    assert seen(host) == [(True, b"5 euro")] * 3 and host.connections == 1


@pytest.mark.parametrize("end", ["reset", "close"])
@pytest.mark.parametrize("pooled", [False, True])
def test_a_host_that_goes_before_it_asks_has_not_acted_and_the_post_is_sent_again(pair, end, pooled):
    gateway, host = pair()
    host.on("/pay", Reply(cut=0, early=True, end=end), Reply(body=b"paid", interim=CONTINUE))
    with gateway.wire() as wire:
        if pooled:
            assert wire.ask().status == 200
        assert wire.ask("POST", "/pay", body=b"5 euro").status == 200
    assert seen(host) == [(True, b""), (True, b"5 euro")]


def test_a_host_that_has_asked_for_the_body_may_have_acted(pair):
    gateway, host = pair()
    host.on("/pay", Reply(cut=0, interim=CONTINUE, end="reset"))
    answer = gateway.ask("POST", "/pay", body=b"5 euro")
    assert answer.status == 502 and "not_idempotent" in answer.get("proxy-status")
    assert seen(host) == [(True, b"5 euro")]


def test_a_host_that_knows_nothing_of_expect_gets_the_body_after_a_while(pair):
    gateway, host = pair()
    host.on("/pay", Reply(body=b"paid"))
    assert gateway.ask("POST", "/pay", body=b"5 euro").status == 200
    assert seen(host) == [(True, b"5 euro")]


def test_a_host_that_refuses_to_be_asked_is_not_asked(pair):
    gateway, host = pair()
    host.on("/pay", Reply(417, early=True), Reply(body=b"paid"))
    assert gateway.ask("POST", "/pay", body=b"5 euro").status == 200
    assert seen(host) == [(True, b""), (False, b"5 euro")]


@pytest.mark.parametrize("status", [200, 413])
def test_an_answer_to_the_head_alone_is_the_answer(pair, status):
    gateway, host = pair()
    host.on("/pay", Reply(status, b"known", early=True))
    answer = gateway.ask("POST", "/pay", body=b"5 euro")
    assert (answer.status, answer.body) == (status, b"known")
    assert seen(host) == [(True, b"")]
    assert gateway.ask().status == 200 and host.connections == 2, "the host may still wait for the body there"


def test_what_may_be_repeated_or_has_no_body_does_not_ask(pair):
    gateway, host = pair()
    host.on("*", Reply(200))
    assert gateway.ask("PUT", "/pay", body=b"5 euro").status == 200
    assert gateway.ask("POST", "/pay", body=b"5 euro", fields={"Idempotency-Key": "1"}).status == 200
    assert gateway.ask("POST", "/pay", body=b"").status == 200
    assert seen(host) == [(False, b"5 euro"), (False, b"5 euro"), (False, b"")]
