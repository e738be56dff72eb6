# SPDX-License-Identifier: MIT
"""At the end of a drain both sides of a websocket hear that the gateway goes, and no frame is torn for it."""

import re
import socket
import threading

import pytest

from conftest import policy_of
from message import request

GOING_AWAY = b"\x88\x02\x03\xe9"


class Room:
    """A host whose only connection is a tunnel: its first bytes, the bytes that it gets, and the end."""

    def __init__(self, first, protocol="websocket"):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.first = first
        self.protocol = protocol
        self.got = b""
        self.reset = False
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        made, _ = self.server.accept()
        with made:
            made.settimeout(30)
            head = b""
            while b"\r\n\r\n" not in head:
                head += made.recv(65536)
            answer = f"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: {self.protocol}\r\n\r\n"
            made.sendall(answer.encode() + self.first)
            try:
                while data := made.recv(65536):
                    self.got += data
            except ConnectionError:
                self.reset = True


def rest_of(wire):
    """All that comes until the end."""
    got = wire.rest
    try:
        while data := wire.socket.recv(65536):
            got += data
    except ConnectionError:
        got += b" and a reset"
    return got


def leave(gateway, room, says=b"", protocol="websocket", workers=1):
    """Opens the tunnel, sends bytes, drains; returns the bytes that the client and the host got."""
    policy = f"upgrades: [websocket, tcp]\n{policy_of([room])}"
    made = gateway(policy, sets=["drain.limit=2s"], workers=workers)
    with made.wire() as wire:
        wire.send(request(fields={"Connection": "Upgrade", "Upgrade": protocol}) + says)
        assert wire.answer().status == 101
        while len(wire.rest) < len(room.first):
            wire.rest += wire.socket.recv(65536)
        made.process.terminate()
        got = rest_of(wire)
    room.thread.join(30)
    made.end()
    return got, room.got


def unmask(frame):
    assert re.fullmatch(rb"\x88\x82......", frame, re.DOTALL)
    return bytes(byte ^ frame[2 + at] for at, byte in enumerate(frame[6:]))


@pytest.mark.parametrize("first, workers", [(b"", 1), (b"\x82\x7e\x00\x80" + b"x" * 128, 2)], ids=["silent", "long"])
def test_both_sides_hear_that_the_gateway_goes(gateway, first, workers):
    says = b"\x81\x82abcdxy"
    room = Room(first)
    got, heard = leave(gateway, room, says, workers=workers)
    assert got == first + GOING_AWAY and not room.reset
    assert heard[: len(says)] == says and unmask(heard[len(says) :]) == b"\x03\xe9"


def test_no_close_frame_lands_inside_of_another_frame(gateway):
    torn = b"\x81\x05hel"
    room = Room(torn)
    got, heard = leave(gateway, room, says=b"\x81\x85abcdxy")
    assert got.startswith(torn) and GOING_AWAY not in got
    assert heard == b"\x81\x85abcdxy"


def test_who_has_said_that_it_closes_is_told_nothing(gateway):
    closes = b"\x88\x02\x03\xe8"
    room = Room(closes)
    got, heard = leave(gateway, room)
    assert got.startswith(closes) and GOING_AWAY not in got and unmask(heard) == b"\x03\xe9"


def test_other_tunnels_get_no_frames(gateway):
    room = Room(b"bytes", protocol="tcp")
    got, heard = leave(gateway, room, says=b"more", protocol="tcp")
    assert got.startswith(b"bytes") and GOING_AWAY not in got and heard == b"more"
