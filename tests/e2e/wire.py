# SPDX-License-Identifier: MIT
"""A client on a raw socket: it sends exactly the bytes of the test."""

import select
import socket
import struct

from message import Message, request

PATIENCE = 120  # seconds: no claim, for sanitizers are slow and machines busy


class Wire:
    def __init__(self, address, source=None, receive_buffer=None, tls=None, name=None, session=None):
        """address: a port of 127.0.0.1, or a path. tls: an ssl.SSLContext; name: the server's, in SNI."""
        local = isinstance(address, str)
        self.socket = socket.socket(socket.AF_UNIX if local else socket.AF_INET, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address if local else ("127.0.0.1", address))
        if not local:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                self.socket = tls.wrap_socket(self.socket, server_hostname=name, session=session)
            except BaseException:
                self.socket.close()
                raise
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def ask(self, method="GET", path="/", **more):
        """Sends a request and reads its answer."""
        self.send(request(method, path, **more))
        return self.answer(method)

    def answer(self, method="GET"):
        """The next answer. One that is cut short is an error."""
        answer = Message(answers=method)
        self.rest = answer.feed(self.rest)
        while not answer.complete:
            data = self.socket.recv(65536)
            if not data:
                if answer.closed():
                    break
                raise EOFError(f"cut after {answer.start!r} and {len(answer.body)} bytes of body")
            self.rest = answer.feed(data)
        return answer

    def at_end(self):
        """True: the other side has closed, and had nothing more to say."""
        try:
            return self.rest == b"" and self.socket.recv(65536) == b""
        except ConnectionResetError:
            return True

    def says_nothing(self, seconds):
        """True: neither bytes nor an end within that time."""
        return self.rest == b"" and not select.select([self.socket], [], [], seconds)[0]

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


def ask(port, method="GET", path="/", source=None, tls=None, name=None, **more):
    """One request on a connection of its own."""
    with Wire(port, source=source, tls=tls, name=name) as wire:
        return wire.ask(method, path, **more)
