# SPDX-License-Identifier: MIT
"""Bodies that come slowly: a least rate, also of those that stream, and room for others beside them."""

import json
import threading
import time

import pytest

from host import Reply, wait_until
from message import request

SLOW, OTHER = "127.0.0.2", "127.0.0.3"
SMALL = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
STREAMED = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 500000\r\n\r\n" + b"x" * 100000
STREAMED_CHUNKED = CHUNKED + b"186a0\r\n" + b"x" * 100000 + b"\r\n"

DRIPS = {
    "a body that is kept": (SMALL, b"x"),
    "chunks of a byte": (CHUNKED, b"1\r\nx\r\n"),
    "a chunk's size": (CHUNKED, b"0"),
    "an extension of a chunk": (CHUNKED + b"5;", b"x"),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n"),
    "a body that streams": (STREAMED, b"x"),
    "chunks that stream": (STREAMED_CHUNKED, b"1\r\nx\r\n"),
}


def drip(wire, piece, pause=0.05, seconds=20):
    """Sends it again and again until there is an answer or an end; how many seconds that took."""
    began = time.monotonic()
    try:
        while wire.says_nothing(pause) and time.monotonic() < began + seconds:
            wire.send(piece)
    except OSError:
        pass
    return time.monotonic() - began


@pytest.mark.parametrize("what", DRIPS)
def test_a_body_that_drips_ends_after_its_time(pair, what):
    gateway, host = pair("bodyTimeout: 600ms")
    first, piece = DRIPS[what]
    with gateway.wire() as wire:
        wire.send(first)
        assert drip(wire, piece, pause=0.05 if what != "a chunk's size" else 0.1) < 15, "it goes on and on"
        answer = wire.answer("POST")
        assert answer.status in (400, 408) if what == "a chunk's size" else answer.status == 408
        if answer.status == 408:
            assert json.loads(answer.body)["reason"] == "body_timeout"
    if answer.status == 408:
        gateway.expect_metric(1, "becalm_bounds_reached_total", bound="bodyTimeout", action="cut")
    assert gateway.ask().status == 200


def test_a_slow_upload_that_keeps_the_rate_goes_through(pair):
    """16 KiB in each bodyTimeout, with pauses nearly as long, like a large file on a bad line."""
    gateway, host = pair("bodyTimeout: 4s")
    total = 10 * 16384
    with gateway.wire() as wire:
        wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % total)
        for _ in range(10):
            time.sleep(0.5)
            wire.send(b"x" * 16384)
        assert wire.answer("POST").status == 200
    assert len(host.requests[-1].body) == total


def test_what_a_slow_host_takes_its_time_for_is_not_the_clients(pair):
    """The upload waits for the host far longer than bodyTimeout."""
    gateway, host = pair("bodyTimeout: 1s", rules="attemptTimeout: 60s\ndeadline: 90s")
    stopped = threading.Event()

    def reply(_):
        if not stopped.is_set():
            stopped.set()
            time.sleep(2.5)  # the host's only thread: it reads nothing in this time
        return Reply()

    host.on("/", reply)
    body = b"x" * 12_000_000
    with gateway.wire() as wire:
        sender = threading.Thread(target=lambda: wire.send(request("POST", "/", body=body)))
        sender.start()
        assert wire.answer("POST").status == 200
        sender.join(20)


def test_none_lets_a_body_take_as_long_as_it_likes(pair):
    gateway, host = pair("bodyTimeout: none\nheaderTimeout: 1s")
    with gateway.wire() as wire:
        wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n")
        for _ in range(20):
            time.sleep(0.07)
            wire.send(b"x")
        assert wire.answer("POST").status == 200


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("first", [SMALL, STREAMED], ids=["kept", "streams"])
@pytest.mark.parametrize("source", [SLOW, OTHER], ids=["same client", "others"])
def test_slow_bodies_of_a_crowd_make_room(pair, workers, first, source):
    """All within bodyTimeout; a client that has more connections than the new one gives up its slowest."""
    gateway, host = pair("maxConnections: 20", rules="maxRetries: 0", workers=workers)
    wires = [gateway.wire(source=SLOW).send(first) for _ in range(20)]
    try:
        wait_until(lambda: gateway.metric("becalm_connections") == 20)
        time.sleep(1)  # a body that has just begun is not slow
        assert [gateway.ask(source=source).status for _ in range(12)] == [200] * 12
    finally:
        for wire in wires:
            wire.close()


def test_a_body_that_comes_well_is_not_given_up(pair):
    gateway, host = pair("maxConnections: 3", rules="maxRetries: 0")
    total = 60 * 20000
    with gateway.wire(source=SLOW) as one, gateway.wire(source=SLOW) as two, gateway.wire(source=SLOW) as three:
        wires = [one, two, three]
        for wire in wires:
            wire.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % total)
        for turn in range(60):
            for wire in wires:
                wire.send(b"x" * 20000)
            if turn % 10 == 5:
                assert gateway.ask(source=OTHER).status == 503
            time.sleep(0.02)
        assert [wire.answer("POST").status for wire in wires] == [200] * 3
