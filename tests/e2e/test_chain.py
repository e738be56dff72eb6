# SPDX-License-Identifier: MIT
"""Ten gateways in a row: the load on a dead leaf. BECALM_CHAIN_SECONDS makes the fault longer than the usual six."""

import os
import time

from conftest import policy_of
from host import Reply, wait_until
from load import Load, statuses
from message import request

LAYERS = 10
FAULT_SECONDS = float(os.environ.get("BECALM_CHAIN_SECONDS", "6"))


class At:
    def __init__(self, port):
        self.address = f"127.0.0.1:{port}"


TRUST = "trust: [127.0.0.0/8]"


def chain(gateway, leaf, text=TRUST, rules="", layers=LAYERS):
    """The first of them: each has the next one as its only host."""
    made = gateway(policy_of([leaf], text, rules))
    for _ in range(layers - 1):
        made = gateway(policy_of([At(made.port)], text, rules))
    return made


# So that no attempt ends by the clock, however busy the machine is.
PATIENT = "attemptTimeout: 30s\ndeadline: 60s"


def test_a_dead_leaf_behind_ten_gateways_sees_at_most_a_tenth_more(gateway, host):
    leaf = host()
    first = chain(gateway, leaf, rules=PATIENT)
    load = Load(first.port, rate=200, seconds=60 + FAULT_SECONDS, make=lambda n: ("GET", request(path="/")))
    load.start()
    wait_until(lambda: len(load.results) > 200)
    leaf.on("/", Reply(503, b"dead"))
    died = time.monotonic()
    time.sleep(FAULT_SECONDS)
    wait_until(lambda: sum(result.at >= died for result in list(load.results)) > 100)
    results = load.stop()
    before = [result for result in results if result.at + result.took < died]
    assert statuses(before) == {200: len(before)}
    sent = sum(result.at >= died for result in results)
    flying = sum(result.at < died <= result.at + result.took for result in results)
    seen = sum(got.at >= died for got in leaf.requests)
    assert seen <= 1.1 * (sent + flying), f"{seen} at the leaf for {sent} calls and {flying} in flight: {seen / sent:.2f}x"
    assert leaf.count() <= 1.1 * len(results)
    print(f"{seen} calls at the dead leaf for {sent} at the top: {seen / sent:.3f}x")


def test_a_leaf_that_refuses_connections_kills_nothing_above_it(gateway, host):
    leaf = host()
    first = chain(gateway, leaf)
    leaf.stop()
    results = Load(first.port, rate=100, seconds=2, make=lambda n: ("GET", request(path="/"))).run_through()
    assert set(statuses(results)) <= {502, 503}, "every call is answered"


def test_the_same_chain_without_marks_and_budgets_multiplies(gateway, host):
    """One retry in each of ten layers: 2^10 calls for one."""
    leaf = host()
    leaf.on("/", Reply(503))
    rules = "maxRetries: 1\ninitialDelay: 1us\nmaxDelay: 1us\nbudget: {kind: none}\nbreaker: {enabled: false}\n"
    rules += "outlier: {enabled: false}\nattemptTimeout: 1m\ndeadline: 1m"
    first = chain(gateway, leaf, "trust: [10.0.0.0/8]", rules)
    assert first.ask().status == 503
    assert leaf.count() == 2**LAYERS


def test_the_chain_recovers_with_its_leaf(gateway, host):
    """Every layer's breaker is open, and a probe gets through only when those of all layers are due."""
    leaf = host()
    first = chain(gateway, leaf)
    leaf.on("/", Reply(503))
    Load(first.port, rate=100, seconds=2, make=lambda n: ("GET", request(path="/"))).run_through()
    leaf.on("/", Reply(200))
    back = time.monotonic()
    load = Load(first.port, rate=50, seconds=60, make=lambda n: ("GET", request(path="/")))
    load.start()
    wait_until(lambda: [result.status for result in load.results[-20:]] == [200] * 20)
    print(f"all ten served again after {time.monotonic() - back:.1f} s")
    calls = len(load.results)
    time.sleep(1)
    later = load.stop()[calls:]
    assert statuses(later) == {200: len(later)}, "and stays so"
