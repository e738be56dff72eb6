# SPDX-License-Identifier: MIT
"""HTTP/1 messages, read byte by byte by rules of their own: nothing here is the gateway's code."""

import hashlib

# Trailers that are malformed, or have fields that belong to a head only.
BAD_TRAILERS = {
    "a length": b"content-length: 9\r\n\r\n",
    "a coding": b"etag: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a host": b"host: b\r\n\r\n",
    "a folded field": b"etag: a\r\n b\r\n\r\n",
    "a blank before the colon": b"etag : a\r\n\r\n",
    "no colon": b"GET /smuggled HTTP/1.1\r\n\r\n",
    "a nul byte": b"etag: a\x00b\r\n\r\n",
}


class Message:
    """One request or answer. `answers` is the method of the request that it answers; None: it is a request itself."""

    def __init__(self, answers=None):
        self.answers = answers
        self.start = None
        self.fields = []
        self.body = b""
        self.trailers = []
        self.interim = []  # statuses of 1xx answers before it
        self.head_ended = False
        self.complete = False
        self._until = None  # "length", "chunked", "close"
        self._left = 0
        self._buffer = b""
        self._step = "size"

    # Its content.

    @property
    def status(self):
        return int(self.start.split(" ")[1])

    @property
    def version(self):
        return self.start.split(" ")[0 if self.answers is not None else 2]

    @property
    def method(self):
        return self.start.split(" ")[0]

    @property
    def target(self):
        return self.start.split(" ")[1]

    def all(self, name):
        return [value for key, value in self.fields if key == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        return ", ".join(values) if values else default

    def trailer(self, name):
        return dict(self.trailers).get(name.lower())

    # Reading it.

    def feed(self, data):
        """Takes the bytes of this message; returns the rest."""
        self._buffer += data
        while not self.complete and self._advance():
            pass
        if not self.complete:
            return b""
        rest, self._buffer = self._buffer, b""
        return rest

    def closed(self):
        """The connection ended. True: that is where this message ends."""
        if self.head_ended and self._until == "close":
            self.complete = True
        return self.complete

    def _advance(self):
        if not self.head_ended:
            return self._take_head()
        if self._until == "chunked":
            return self._take_chunk()
        self.body += self._buffer[: self._left] if self._until == "length" else self._buffer
        self._buffer = self._buffer[self._left :] if self._until == "length" else b""
        if self._until == "length":
            self._left -= min(self._left, len(self.body) - (self._total - self._left))
            self.complete = self._left == 0
        return False

    def _take_head(self):
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        self.start = lines[0]
        self.fields = _fields(lines[1:])
        if self.answers is not None and 100 <= self.status < 200 and self.status != 101:
            self.interim.append(self.status)
            return True
        self.head_ended = True
        self._frame()
        return True

    def _frame(self):
        bodiless = self.answers is not None and (
            self.answers == "HEAD" or self.status in (101, 204, 304) or self.answers == "CONNECT" and self.status < 300
        )
        length = self.get("content-length")
        if bodiless:
            self.complete = True
        elif self.get("transfer-encoding") is not None:
            assert self.get("transfer-encoding") == "chunked" and length is None, self.fields
            self._until = "chunked"
        elif length is not None:
            self._until, self._left, self._total = "length", int(length), int(length)
            self.complete = self._left == 0
        elif self.answers is not None:
            self._until = "close"
        else:
            self.complete = True

    def _take_chunk(self):
        if self._step == "data":
            if len(self._buffer) < self._left + 2:
                return False
            assert self._buffer[self._left : self._left + 2] == b"\r\n", "a chunk without its end"
            self.body += self._buffer[: self._left]
            self._buffer = self._buffer[self._left + 2 :]
            self._step = "size"
            return True
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        if self._step == "size":
            self._left = int(line.split(b";")[0], 16)
            self._step = "data" if self._left > 0 else "trailers"
        elif line:
            self.trailers += _fields([line.decode("latin-1")])
        else:
            self.complete = True
        return True


def _fields(lines):
    return [(name.lower(), value.strip(" \t")) for name, value in (line.split(":", 1) for line in lines)]


def request(method="GET", path="/", host="a.test", fields=(), body=None, version="HTTP/1.1"):
    """The bytes of a request."""
    lines = [f"{method} {path} {version}", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in (fields.items() if isinstance(fields, dict) else fields)]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def signed(payload):
    """A body with a checksum and its request's name, so that a test sees whether it is whole and in the right place."""
    return hashlib.sha256(payload).hexdigest().encode() + b" " + payload


def is_signed(body):
    digest, blank, payload = body.partition(b" ")
    return blank == b" " and hashlib.sha256(payload).hexdigest().encode() == digest
