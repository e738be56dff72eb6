# SPDX-License-Identifier: MIT
"""POSTs over HTTP/2 connections that get GOAWAY or RST_STREAM, or die, at every kind of frame: none is executed twice,
and none is lost that was never sent. BECALM_SOAK=1 sends 10,000 of them; BECALM_DRILL_SEED repeats a run."""

import hashlib
import os
import random
import socket
import struct
import threading

import pytest
from conftest import policy_of, wait_until
from host_h2_drill import HostDrill
from http2 import SETTINGS, WINDOW, frame
from load import Load, statuses
from message import request

SOAK = os.environ.get("BECALM_SOAK") == "1"
SEED = int(os.environ.get("BECALM_DRILL_SEED", random.randrange(10**9) if SOAK else 17))
RULES = """protocol: h2
maxRetries: 12
initialDelay: 1ms
maxDelay: 5ms
budget: {kind: none}
breaker: {enabled: false}
outlier: {enabled: false}
limit: {kind: none}
throttle: {enabled: false}
attemptTimeout: 60s
deadline: 120s"""
KEPT = 64 * 1024  # replay.perRequest: of more than that a part may be gone


def body_of(number):
    """Of many lengths: none, some bytes, more than a frame, more than a window, and sometimes more than is kept to be sent again."""
    length = (0, 5, 300, 20_000, 5, 60_000, 7, 200_000)[number % 8]
    return (b"%d " % number) * (length // 6) + b"x" * (length % 6)


def judge(hosts, results, seed):
    """Which calls were done twice, were lost, or were answered for nothing."""
    doubled, lost, torn, unfounded = [], [], [], []
    done = {}
    for host in hosts:
        for path, count in host.done.items():
            done[path] = done.get(path, 0) + count
    spoilt = set().union(*(host.spoilt for host in hosts))
    aborts = [at for host in hosts for at in host.aborts]
    for result in results:
        path, body = f"/{result.number}", body_of(result.number)
        digests = {host.bodies[path] for host in hosts if path in host.bodies}
        if done.get(path, 0) > 1:
            doubled.append(path)
        if digests - {hashlib.sha256(body).hexdigest()}:
            torn.append(path)
        if result.status == 200 and (path not in done or result.answer.body != b"done " + path.encode()):
            unfounded.append(path)
        unknowable = path in spoilt or len(body) > KEPT or any(result.at <= at <= result.at + result.took for at in aborts)
        if result.status != 200 and not unknowable:
            lost.append((path, result.status, result.error))
    said = (seed, statuses(results), sum(host.refusals for host in hosts), sum(host.accepted for host in hosts))
    assert (doubled, lost, torn, unfounded) == ([], [], [], []), (doubled[:9], lost[:9], torn[:9], unfounded[:9], said)


@pytest.mark.parametrize("kind", ["ends", "aborts", "tls"])
def test_h2_lost__no_post_is_done_twice_and_none_is_lost_that_was_never_sent(gateway, authority, kind):
    count = {"ends": 5000, "aborts": 4000, "tls": 1000}[kind] if SOAK else 300
    tls = None
    if kind == "tls":
        tls = authority.issue().server()
        tls.set_alpn_protocols(["h2"])
    hosts = [HostDrill(f"{SEED}/{kind}/{n}", aborts=kind == "aborts", tls=tls) for n in range(2)]
    try:
        rules = RULES + (f"\ntls: {{ca: {authority.cert}}}" if tls else "")
        edge = gateway(policy_of(hosts, f"replay: {{perRequest: {KEPT // 1024}KiB}}", rules))
        make = lambda number: ("POST", request("POST", f"/{number}", body=body_of(number)))  # noqa: E731
        results = Load(edge.port, clients=24, count=count, seconds=600, make=make).run_through()
        edge.end()
        wait_until(lambda: not any(host.live for host in hosts))  # now the hosts know which requests were written
        judge(hosts, results, SEED)
        troubles = hosts[0].troubles + hosts[1].troubles
        print(statuses(results), len(troubles), "kinds of", sum(troubles.values()), "troubles", sum(host.refusals for host in hosts), "refused")
        assert len(results) >= count and statuses(results)[200] > count // 2
        assert len(troubles) > (80 if SOAK else 15), troubles
    finally:
        for host in hosts:
            host.close()


class Deaf:
    """Allows all on its first connection and reads nothing of it; then that is reset. The connections behind it are served."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.peer, self.drill = None, None
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        self.peer, _ = self.listener.accept()
        opened = struct.pack(">I", 2**30)
        self.peer.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**30)) + frame(WINDOW, 0, 0, opened))
        self.drill = HostDrill("calm", trouble=0, listener=self.listener)

    def die(self):
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()


def post_behind_a_full_socket(edge, deaf):
    """The status of a POST whose connection dies while the socket has taken nothing more for a while."""
    waiting = lambda: edge.metric("becalm_buffered_bytes") > 0  # noqa: E731
    with edge.wire() as upload, edge.wire() as small:
        upload.send(b"PUT /big HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
        sender = threading.Thread(target=send_all, args=(upload, 100_000_000), daemon=True)
        sender.start()
        wait_until(lambda: deaf.drill is not None)  # it has opened its windows
        wait_until(lambda: all(waiting() for _ in range(20)))  # its windows are open, so it is the socket that is full
        small.send(request("POST", "/small", body=b"pay"))
        wait_until(lambda: edge.metric("http_client_concurrent_requests", service="a") == 2)
        deaf.die()
        assert upload.answer().status == 502
        status = small.answer().status
        upload.socket.close()
        sender.join(60)
    return status


def test_h2_lost__what_the_socket_did_not_take_was_never_sent(gateway):
    """On a busy machine the gateway may find room for it after all, and then the fate of the call is unknown: so the
    test has some tries."""
    for _ in range(5):
        deaf = Deaf()
        with deaf.listener:
            edge = gateway(policy_of([deaf], "replay: {perRequest: 1KiB}", RULES))
            if post_behind_a_full_socket(edge, deaf) == 200:
                break
    assert deaf.drill.done == {"/small": 1}
    assert edge.metric("http_client_retry_attempts_total", service="a") == 0
    edge.expect_metric(1, "becalm_redone_total", service="a")


def send_all(wire, length):
    try:
        for _ in range(length // 65536):
            wire.send(bytes(65536))
    except OSError:
        pass  # it was answered, and the host does not read the rest
