# SPDX-License-Identifier: MIT
"""Policies and certificates that change under all kinds of calls at once: none fails."""

import os
import ssl
import threading

import pytest

pytest.importorskip("grpc")

from conftest import wait_until  # noqa: E402
from grpc_lab import SECONDS, GrpcHost  # noqa: E402
from host_h2 import HostH2  # noqa: E402
from http2 import Http2  # noqa: E402
from wire import Wire  # noqa: E402

import grpc  # noqa: E402

LARGE = b"u" * 300_000  # streams: more than is kept for a retry
TIMES = 200 if os.environ.get("BECALM_SOAK") else 12


class Work(threading.Thread):
    """One kind of calls, again and again, each time on a connection of its own or on one that stays."""

    def __init__(self, name, call):
        super().__init__(daemon=True)
        self.name, self.call = name, call
        self.over, self.done, self.failed = threading.Event(), 0, []

    def run(self):
        while not self.over.is_set():
            try:
                self.call()
                self.done += 1
            except Exception as error:  # any exception means that a call has failed
                self.failed.append(f"{self.name}: {error!r}")
                return


def h1(port, tls=None, body=b"x" * 3000, asks=5):
    with Wire(port, tls=tls, name="a.test" if tls else None) as wire:
        for _ in range(asks):
            assert wire.ask("POST", "/h1", body=body).status == 200


def h2(port, tls=None, body=b"y" * 3000, asks=5):
    with Http2(port, **({"tls": tls} if tls else {})) as client:
        for _ in range(asks):
            streams = [client.begin("POST", "/h2", end=False) for _ in range(4)]
            for stream in streams:
                client.body(stream, body)
            assert [client.answer(stream).status for stream in streams] == [200] * 4


def talk(channel, method, pause):
    """A stream in both directions that outlives some reloads."""

    def say():
        for number in range(20):
            yield b"%d" % number
            pause.wait(0.02)

    heard = list(channel.stream_stream(f"/lab.Lab/{method}")(say(), timeout=SECONDS))
    assert heard == [b"%d" % number for number in range(20)]


def in_force(edge, authority, number, shown):
    """Does the first worker that is asked have that policy and that certificate? Each has them from its next turn on, so at most a
    few calls find the ones of before: an answer of a worker ends a turn of it."""
    for _ in range(20):
        with Wire(edge.port, tls=authority.client(), name="a.test") as wire:
            certificate = ssl.DER_cert_to_PEM_cert(wire.socket.getpeercert(binary_form=True))
            if wire.ask(path=f"/number/{number}/").status == 200 and certificate in shown.cert.read_text():
                return True
    return False


def test_mixed_calls_lose_nothing_by_reloads(gateway, host, authority):
    """Twelve reloads, with BECALM_SOAK=1 two hundred: of policies, of the listener's certificate, of both."""
    shown, others = authority.issue(), [authority.issue() for _ in range(3)]
    plain, shared = [host(), host()], [HostH2(), HostH2()]
    spoken = GrpcHost(both=lambda said, context: iter(said))

    def policy(number):
        text = ("", "log: {access: json}", "replay: {perRequest: 1KiB}", "headerTimeout: 20s")[number % 4]
        rules = ("", ", attemptTimeout: 50s", ", deadline: 70s")[number % 3]
        here = [plain[: 1 + number % 2], shared[: 1 + number // 2 % 2]]  # one of the hosts comes and goes
        here = [", ".join(f"'{each.address}'" for each in hosts) for hosts in here]
        return (
            f"{text}\nservices:\n"
            f"  grpc: {{hosts: ['{spoken.address}'], protocol: h2, match: {{prefix: /lab.Lab/}}, maxRetries: 0{rules}}}\n"
            f"  h2: {{hosts: [{here[1]}], protocol: h2, match: {{prefix: /h2}}, maxRetries: 0{rules}}}\n"
            f"  h1: {{hosts: [{here[0]}], match: {{prefix: /h1}}, maxRetries: 0{rules}}}\n"
            f"  number: {{hosts: ['{plain[0].address}'], match: {{prefix: /number/{number}/}}}}\n"
        )

    edge = gateway(policy(0), tls=shown.tls, workers=2, protocols="[h2, h1]")
    secure = grpc.secure_channel(f"localhost:{edge.port}", grpc.ssl_channel_credentials(authority.cert.read_bytes()))
    pause = threading.Event()
    works = [
        Work("h1", lambda: h1(edge.port, authority.client())),
        Work("an upload by h1", lambda: h1(edge.port, authority.client(), LARGE, 2)),
        Work("h2", lambda: h2(edge.port, authority.client())),
        Work("an upload by h2", lambda: h2(edge.port, authority.client(), LARGE, 1)),
        Work("gRPC", lambda: talk(secure, "Both", pause)),
    ]

    def wrong():
        """Then there is no use in waiting."""
        ended = ["the gateway has ended"] if edge.process.poll() is not None else []
        return ended + [said for each in works for said in each.failed]

    def wait_for(true):
        wait_until(lambda: wrong() or true(), what=lambda: [(each.name, each.done) for each in works])
        assert wrong() == []

    for each in works:
        each.start()
    try:
        for number in range(1, TIMES + 1):
            number_in_force = number if number % 3 != 2 else number - 1
            if number % 3 != 1:
                others[number % 3].put_at(shown)
            if number % 3 != 2:
                edge.reload(policy(number))
            before = len(edge.log_lines("policy reloaded"))
            edge.signal(1)
            wait_for(lambda: len(edge.log_lines("policy reloaded")) > before)
            assert in_force(edge, authority, number_in_force, shown), number
        least = [each.done for each in works]
        wait_for(lambda: all(each.done > was for each, was in zip(works, least)))  # and they go on
        for each in works:
            each.over.set()
        wait_for(lambda: not any(each.is_alive() for each in works))
        assert all(in_force(edge, authority, number_in_force, shown) for _ in range(20))  # each worker has had a turn since
        for service in ("grpc", "h2", "h1"):
            assert edge.metric("http_client_concurrent_requests", service=service) == 0, service
        assert edge.metric("becalm_calls_total", service="h1") == sum(each.count("/h1") for each in plain)
    finally:
        for each in works:
            each.over.set()
        secure.close()
        for each in shared:
            each.close()
        spoken.close()
