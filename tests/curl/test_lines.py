# SPDX-License-Identifier: MIT
"""Calls wait in line: for a slot of the limit, and for a host that restarts. Each is asked of real calls to a real
host, by threads that block and by multi handles."""

import contextlib
import os
import threading
import time

import pytest
from conftest import SECONDS, in_time, service
from host import Host, Reply, wait_until

SOAK = os.environ.get("BECALM_SOAK") == "1"
WAYS = ["easy", "multi", "socket"]
PATIENT = {"attemptTimeout": "60s", "connectTimeout": "60s", "deadline": "100s"}  # a busy machine takes its time


def reasons(result):
    return sorted({call["reason"] for call in result.calls})


@contextlib.contextmanager
def meanwhile(*steps):
    """Runs these actions at their times, in seconds from now or from when a function was true, beside the body of the
    with statement."""
    began = time.monotonic()

    def run():
        since = began
        for at, do in steps:
            if callable(at):
                wait_until(at)
                since = time.monotonic()
            else:
                time.sleep(max(0, since + at - time.monotonic()))
            do()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


# ---- for a slot ----


@pytest.mark.parametrize("limit", ["{kind: fixed, max: 8}", "{min: 8, max: 8}"])
def test_lines__threads_wait_for_a_slot(host, lab, limit):
    host.on("/", Reply(200, b"fine", delay=0.002))
    repeat = 47 if SOAK else 12
    result = lab(service(limit=limit, **PATIENT), f"http://{host.address}/", threads=64, repeat=repeat)
    assert reasons(result) == ["ok"] and len(result.calls) == 64 * repeat
    assert result.count("becalm_gate_queue") == 0


@pytest.mark.parametrize("way", ["multi", "socket"])
def test_lines__multi_handles_of_several_threads_wait_for_each_others_slots(host, lab, way):
    host.on("/", Reply(200, b"fine", delay=0.002))
    policy = service(limit="{kind: fixed, max: 3}", **PATIENT)
    result = lab(policy, f"http://{host.address}/", interface=way, threads=4, at_once=60)
    assert reasons(result) == ["ok"] and len(result.calls) == 240


@pytest.mark.parametrize("way", WAYS)
def test_lines__who_waits_is_bound_by_its_deadline(host, lab, way):
    host.on("/", Reply(200, b"fine", delay=2))
    many = {"threads": 3} if way == "easy" else {"at_once": 3}
    policy = service(limit="{kind: fixed, max: 1}", attemptTimeout="60s", deadline="1s", maxRetries=0)
    calls = lab(policy, f"http://{host.address}/", interface=way, **many).calls
    assert [(call["code"], call["reason"]) for call in calls] == [(28, "deadline")] * 3


def test_lines__who_waits_can_be_cancelled(host, lab):
    host.on("/", Reply(200, b"fine", delay=30))
    result = lab(service(limit="{kind: fixed, max: 1}", **PATIENT), f"http://{host.address}/", threads=3, cancel_ms=300)
    assert reasons(result) == ["cancelled"] and {call["code"] for call in result.calls} == {42}


@pytest.mark.parametrize("way", ["easy", "multi"])
def test_lines__a_bound_of_the_queue_holds(host, lab, way):
    """All have asked before the first is answered."""
    many = {"threads": 6} if way == "easy" else {"at_once": 6}
    policy = service(limit="{kind: fixed, max: 1}", gate="{maxQueue: 2}", **PATIENT)
    wanted = ["limit"] * 3 + ["ok"] * 3

    def ask(factor):
        host.on("/", Reply(200, b"fine", delay=min(factor, 16)))
        return lab(policy, f"http://{host.address}/", interface=way, **many)

    result = in_time(ask, lambda result: sorted(call["reason"] for call in result.calls) == wanted)
    assert sorted(call["reason"] for call in result.calls) == wanted
    assert {call["code"] for call in result.calls if call["reason"] == "limit"} == {7}


@pytest.mark.parametrize("way", ["easy", "multi"])
def test_lines__pages_are_whole_again_when_a_service_that_hung_is_back(host, lab, way):
    """World 1r: 30 threads, a page every two seconds, the service hangs for eight; short: a quarter of each time. A
    busy machine is slower, and gets all times longer by the same factor."""
    assert in_time(lambda factor: lost_pages(host, lab, way, (1 if SOAK else 0.25) * factor), lambda lost: lost == []) == []


def lost_pages(host, lab, way, part):
    """The calls that fail though the service is back, with so large a part of each time."""
    period, hangs, ends = 2 * part, 8 * part, 30 * part
    pages = round(ends / period)
    host.forget()
    host.on("/", Reply(200, b"fine"))
    times = {"attemptTimeout": f"{round(5000 * part)}ms", "deadline": f"{round(16000 * part)}ms"}
    policy = service(**({} if part == 1 else times), breaker="{enabled: false}")
    many = {"threads": 30, "repeat": pages} if way == "easy" else {"threads": 30, "at_once": pages}
    back_at = []
    with meanwhile(
        (lambda: host.count() >= 45, lambda: host.on("/", Reply(200, b"fine", delay=600))),  # within the second page
        (hangs, lambda: (host.on("/", Reply(200, b"fine")), back_at.append(time.monotonic()))),
    ):
        calls = lab(policy, f"http://{host.address}/", interface=way, period_ms=round(1000 * period), seconds=SECONDS * max(1, part), **many).calls
    assert len(calls) == 30 * pages and any(call["attempts"][:1] != ["ok"] for call in calls)
    began = min(each.at for each in host.requests) - min(call["at_ms"] for call in calls) / 1000
    back = back_at[0] - began + 1.5 * period  # one page may find all slots with those that hung
    return [call for call in calls if call["reason"] != "ok" and call["at_ms"] / 1000 > back]


# ---- for one of libcurl's connections ----


@pytest.mark.parametrize("way, plain", [("multi", 0), ("socket", 1)])
def test_lines__time_in_libcurls_own_line_is_no_time_of_the_attempt(host, lab, way, plain):
    """Through one connection the last of them waits for longer than an attempt may take."""
    host.on("/", Reply(200, b"fine", delay=0.3))
    policy = service(attemptTimeout="2400ms", connectTimeout="60s", deadline="100s", maxRetries=0)
    result = lab(policy, f"http://{host.address}/", interface=way, at_once=12, connections=1, plain=plain)
    assert [call["reason"] for call in result.calls] == ["ok"] * 12


@pytest.mark.parametrize("way, plain", [("multi", 1), ("socket", 0)])
def test_lines__who_waits_in_vain_for_a_connection_was_never_sent_and_blames_nobody(host, lab, way, plain):
    """One has the only connection for as long as its answer lasts, which the deadline of the others does not."""
    host.on("/", Reply(200, b"a long answer", pace=0.5))
    policy = service(
        attemptTimeout="60s", connectTimeout="60s", deadline="1s", breaker="{minimumNumberOfCalls: 2}", maxRetries=0
    )
    result = lab(policy, f"http://{host.address}/", interface=way, at_once=12, connections=1, plain=plain)
    waited = [call for call in result.calls if call["reason"] != "ok"]
    assert len(waited) == 11 and {call["reason"] for call in waited} == {"no_connection"}
    assert all(call["code"] == 28 and call["attempts"] == [] for call in waited)
    assert host.count() == 1 and result.others == []
    assert result.count("becalm_shed_total", reason="no_connection") == 11
    assert result.count("http_client_requests_total") == 1


# ---- for a host ----


@pytest.mark.parametrize("way", ["easy", "multi"])
@pytest.mark.parametrize("plain", [0, 1])
def test_lines__a_host_that_restarts_loses_nothing(host, lab, way, plain):
    host.on("/", Reply(200, b"fine"))
    count = 600 if SOAK else 200
    many = {"threads": 20, "repeat": count // 20, "period_ms": 200} if way == "easy" else {"at_once": count, "period_ms": 10}
    for _ in range(5):
        times, seen = [], host.count()
        note = lambda: times.append(time.monotonic())
        away = (lambda: host.count() >= seen + 40, lambda: (note(), host.stop(), times.append(host.count() - seen)))
        with meanwhile(away, (0.6, lambda: (host.start(), note()))):
            result = lab(service(), f"http://{host.address}/", interface=way, plain=plain, **many)
        if times[1] <= count // 2:  # else a busy machine let nearly all calls pass before the host went
            break
    assert reasons(result) == ["ok"] and len(result.calls) == count
    assert result.count("becalm_parked_total") > 10 and result.count("becalm_parked_calls") == 0
    away = times[2] - times[0]
    assert result.count("becalm_probes_total") < 34 + 10 * away, f"one each 100 ms of {away:.3f} s"


def test_lines__a_host_that_is_gone_is_not_waited_for(lab):
    gone = Host()
    gone.stop()
    policy = service(attemptTimeout="1s", breaker="{enabled: false}")
    result = lab(policy, f"http://{gone.address}/", threads=8, repeat=3)
    by_thread_round = [call["reason"] for call in result.calls]
    assert by_thread_round.count("no_host") >= 8 and by_thread_round[-1] == "attempts_spent"
    assert {call["code"] for call in result.calls} == {7}
    gone.close()


def test_lines__another_host_of_the_same_service_is_not_waited_for(host, lab):
    """The service is all of 127.0.0.1. That one port refuses is no reason to wait at another."""
    gone = Host()
    gone.stop()
    host.on("/", Reply(200, b"fine"))
    result = lab(service(), f"http://{host.address}/", threads=4, repeat=10, period_ms=100, other=f"http://{gone.address}/")
    here = [call for call in result.calls if call["reason"] == "ok"]
    assert len(here) == 4 * 10
    assert [call["reason"] for call in result.calls if call["reason"] != "ok"] == ["no_host"]
    assert result.count("becalm_parked_total") == 1
    gone.close()
