# SPDX-License-Identifier: MIT
"""Thousands of requests whose connection is reset after the host has read them."""

import os
import random

from host import Reply
from load import Load
from message import is_signed, request, signed

SOAK = os.environ.get("BECALM_SOAK") == "1"
RULES = "initialDelay: 1ms\nmaxDelay: 5ms\nbudget: {kind: none}\nbreaker: {enabled: false}\noutlier: {enabled: false}\n"


def test_no_post_without_a_key_is_executed_twice_in_thousands_of_resets(pair):
    """At a random byte of the answer each, or before it; every tenth is answered, so that connections are kept. BECALM_SOAK=1: ten
    thousand of them."""
    gateway, host = pair(rules=RULES)
    chance = random.Random(20260101)

    def reply(got):
        body = signed(got.target.encode())
        return Reply(body=body) if chance.random() < 0.1 else Reply(body=body, cut=chance.randrange(100), end="reset")

    host.on("*", reply)
    load = Load(gateway.port, count=11000 if SOAK else 3000, clients=16, make=lambda n: ("POST", request("POST", f"/{n}", body=b"pay")))
    results = load.run_through()
    executed = [got.target for got in host.requests]
    assert len(executed) == len(set(executed)), "a POST was sent twice"
    assert len(results) == len(executed) == load.sent, "each was read before its reset, so each was sent once"
    assert load.sent >= 1000, "a machine that is too busy for all of them in a minute does some of them"
    assert all(is_signed(result.answer.body) for result in results if result.status == 200)
