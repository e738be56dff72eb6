# SPDX-License-Identifier: MIT
"""A retry beside an attempt that takes much longer than usual, before its written timeout."""

import threading

import pytest

from host import Reply, wait_until
from test_admin import target


def times(seconds):
    """The timeout is the deadline, too: a retry after it would find no time left."""
    return f"attemptTimeout: {seconds}s\ndeadline: {seconds}s\n"


def overdue_of(gateway):
    return target(gateway)["attemptTimeout"].get("overdueMs")


def learn(gateway, overdue_ms):
    """Asks quickly until it is known that half of the timeout is much longer than usual."""
    wait_until(lambda: gateway.ask().status == 200 and overdue_of(gateway) == overdue_ms, 60)


class Hung:
    """A request in a thread of its own, whose first attempt hangs at its host; later attempts are answered."""

    def __init__(self, gateway, hosts, **request):
        self.gateway, self.hosts, self.request, self.answer = gateway, hosts, request, None
        lock, hangs = threading.Lock(), [Reply(cut=0, end="hang")]

        def first_hangs(_):
            with lock:
                return hangs.pop() if hangs else Reply(body=b"second")

        for host in hosts:
            host.forget()
            host.on("/hangs", first_hangs)
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()
        wait_until(lambda: self.seen() == 1)

    def _ask(self):
        self.answer = self.gateway.ask(path="/hangs", **self.request)

    def seen(self):
        return sum(host.count("/hangs") for host in self.hosts)

    def end(self):
        self.thread.join()
        return self.answer.status, self.seen()


@pytest.mark.parametrize("hosts", [1, 2])
def test_an_attempt_that_hangs_gets_another_beside_it_before_its_timeout(pair, hosts):
    gateway, these = pair(rules=times(10), hosts=hosts)
    these = [these] if hosts == 1 else these
    assert target(gateway)["attemptTimeout"] == {"kind": "written", "ms": 10000}
    learn(gateway, 5000)
    assert target(gateway)["attemptTimeout"] == {"kind": "written", "ms": 10000, "overdueMs": 5000}
    hung = Hung(gateway, these)
    assert gateway.ask().status == 200  # a later request is answered, so the service does not queue
    assert hung.end() == (200, 2)
    assert hung.answer.body == b"second"
    assert [host.count("/hangs") for host in these] == ([2] if hosts == 1 else [1, 1])


def test_a_key_of_the_policy_switches_it_off(pair):
    gateway, host = pair(rules=times(2) + "retryOverdue: false\n")
    for _ in range(100):
        assert gateway.ask().status == 200
    assert overdue_of(gateway) is None
    hung = Hung(gateway, [host])
    assert gateway.ask().status == 200
    assert hung.end() == (504, 1)


def test_a_post_is_not_sent_twice(pair):
    gateway, host = pair(rules=times(2))
    learn(gateway, 1000)
    hung = Hung(gateway, [host], method="POST", body=b"once")
    assert gateway.ask().status == 200
    assert hung.end() == (504, 1)


def test_where_no_later_request_is_answered_there_is_none(pair):
    """Such a service may be overloaded."""
    gateway, host = pair(rules=times(2))
    learn(gateway, 1000)
    assert Hung(gateway, [host]).end() == (504, 1)
