# SPDX-License-Identifier: MIT
"""Full socket buffers: a host that does not read requests."""

import contextlib
import socket
import threading
import time

from message import request

BODY = bytes(range(256)) * 400


class Deaf:
    """A host on a Unix socket, whose buffers are small. It answers /fill without reading its body, and closes the
    connection on order, whatever else was sent on it. It reads and keeps other bodies."""

    def __init__(self, path):
        self.path = str(path)
        self.bodies = []
        self.pause = 0.007
        self.asked, self.hang_up = threading.Event(), threading.Event()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                there, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(there,), daemon=True).start()

    def _serve(self, there):
        with contextlib.suppress(OSError), there:
            data = b""
            while b"\r\n\r\n" not in data:
                # A /fill has its head read and nothing behind it, so that on a busy machine its buffers hold as much as elsewhere.
                data += there.recv(1 if data.startswith(b"POST /f") else 65536 if len(data) > 6 else 1)
            head, _, body = data.partition(b"\r\n\r\n")
            if b"POST /fill" in head:
                self.asked.set()
                time.sleep(self.pause)  # more of the body is written meanwhile
                there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                self.hang_up.wait(20)
                return
            there.settimeout(1)
            with contextlib.suppress(TimeoutError):
                while len(body) < len(BODY) and (more := there.recv(65536)):
                    body += more
            self.bodies.append(body)
            there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def close(self):
        self.socket.close()


def next_after(gateway, host, size):
    """The status of the request that follows one of that size on the same connections; None: it had to take another one."""
    host.asked, host.hang_up = threading.Event(), threading.Event()
    with gateway.wire() as wire:
        wire.send(request("POST", "/fill", body=bytes(size)))
        host.asked.wait(20)
        try:
            if wire.answer("POST").get("connection") == "close":
                return None
            wire.send(request("POST", "/next", body=BODY))
            time.sleep(2 * host.pause)  # it is written, or waits
            host.hang_up.set()
            return wire.answer("POST").status
        finally:
            host.hang_up.set()


def test_a_body_that_streams_is_sent_whole_or_not_at_all(gateway, tmp_path):
    """The pooled connection takes nothing of it, since the request before has filled its buffers to the brim, and then
    turns out to be dead. How much fills them to the brim is tried out."""
    host = Deaf(tmp_path / "host")
    made = gateway(f"services: {{a: {{hosts: ['unix:{host.path}'], match: {{prefix: /}}}}}}\n")
    statuses = []
    while set(statuses) != {200, 502} and host.pause < 1:
        host.pause *= 3  # a busy machine needs longer until all bytes are written that fit
        statuses += [status for size in range(200_000, 240_000, 1000) if (status := next_after(made, host, size))]
    host.close()
    assert set(statuses) == {200, 502}, statuses  # 502: a part of the body was sent, so that it can't be sent again
    assert all(body == BODY for body in host.bodies), [len(body) for body in host.bodies]
