# SPDX-License-Identifier: MIT
"""Healthy services are served in full, however slow they are."""

import os

from host import Reply
from load import Load, statuses
from message import is_signed, request, signed


def test_a_slow_healthy_service_is_served_in_full(pair):
    """300 requests a second that take a second each: 300 at a time, from the first moment on."""
    rate = 40 if os.environ.get("BECALM_SANITIZED") else 300
    gateway, host = pair()
    host.on("*", lambda got: Reply(body=signed(got.target.encode()), delay=1))
    results = Load(gateway.port, rate=rate, seconds=4, make=lambda n: ("GET", request(path=f"/{n}"))).run_through()
    assert statuses(results) == {200: len(results)} and len(results) > 2.5 * rate
    assert all(is_signed(result.answer.body) for result in results)
    assert host.count() == len(results), "and nothing is retried"


def test_bodies_both_ways_under_load_are_nobody_elses(pair):
    gateway, host = pair(workers=2)
    host.on("*", lambda got: Reply(body=signed(got.target.encode() + got.body), chunked=len(got.body) % 2 == 0))

    def make(number):
        body = b"%d," % number * (number % 4000)
        return "PUT", request("PUT", f"/{number}", body=body)

    results = Load(gateway.port, count=1500, clients=32, make=make).run_through()
    assert statuses(results) == {200: 1500}
    for result in results:
        body = b"%d," % result.number * (result.number % 4000)
        assert result.answer.body == signed(b"/%d" % result.number + body)
