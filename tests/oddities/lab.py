# SPDX-License-Identifier: MIT
"""Runs one oddity by one way: straight to a host, or through a gateway. Returns the view of both ends in a normal form.

The reader here is lenient on purpose: it stands for the many programs that accept odd messages. Only the following is
normalised, because RFC 9110 and RFC 9112 let or make every proxy change it:
- names of fields are in lower case; fields of one name are one list, but for Set-Cookie; the order of names is free;
- the version, which is each sender's own, and how a body is framed: only its bytes count, and whether it came whole;
- Content-Length, but for answers to HEAD and 304, where it speaks of another answer;
- fields for one connection (7.6.1) and those that Connection names; Upgrade counts where the protocol is switched;
- Via without the proxy's own entry; Date where the host sent none; Expect and the 100 that answers it, which a proxy may
  do itself (10.1.1), but not what becomes of the upload; an absolute target becomes Host and path (RFC 9112, 3.2.2);
- what each proxy adds about itself: Server of nginx where there is none, Proxy-Status, Becalm-*, deadline and attempt."""

import socket
import struct
import threading
import time

PATIENCE = 3.0  # seconds without a byte, then the message is taken for unfinished
PIECE = 65536

HOP = {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "content-length", "upgrade", "expect"}
ADDED = {
    "proxy-status", "becalm-retry", "becalm-explain", "x-request-deadline-ms", "x-envoy-attempt-count",
    "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-request-id",
}  # fmt: skip
OWN_VIA = ("becalm",)


class Line:
    """A socket that is read leniently."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""
        self.ended = None  # "close", "reset", "silence"
        sock.settimeout(PATIENCE)
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data, pieces=None, pause=0.0):
        """pieces: the number of bytes per write."""
        try:
            if pieces is None:
                self.sock.sendall(data)
            else:
                for at in range(0, len(data), pieces):
                    self.sock.sendall(data[at : at + pieces])
                    time.sleep(pause)
        except OSError:
            pass  # reading tells
        return self

    def more(self):
        if self.ended is not None:
            return False
        try:
            data = self.sock.recv(PIECE)
        except TimeoutError:
            self.ended = "silence"
            return False
        except OSError:
            self.ended = "reset"
            return False
        if not data:
            self.ended = "close"
            return False
        self.buffer += data
        return True

    def until(self, mark):
        """Up to this mark and with it; None: it did not come."""
        while mark not in self.buffer:
            if not self.more():
                return None
        end = self.buffer.index(mark) + len(mark)
        data, self.buffer = self.buffer[:end], self.buffer[end:]
        return data

    def exactly(self, count):
        """As many of these bytes as come."""
        while len(self.buffer) < count and self.more():
            pass
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def rest(self):
        while self.more():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def line(self):
        data = self.until(b"\n")
        return None if data is None else data.rstrip(b"\r\n").decode("latin-1")

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        self.ended = "reset"


class Message:
    """One request or answer, as it was read."""

    def __init__(self, start, fields):
        self.start = start
        self.fields = fields
        self.body = b""
        self.trailers = []
        self.whole = False

    def all(self, name):
        return [value for key, value in self.fields if key == name]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    @property
    def status(self):
        words = self.start.split(" ")
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0

    @property
    def method(self):
        return self.start.split(" ")[0]


def read_head(line):
    """None: it did not come."""
    start = line.line()
    while start == "":
        start = line.line()
    if start is None:
        return None
    fields = []
    while True:
        text = line.line()
        if text is None:
            return None
        if text == "":
            return Message(start, fields)
        if text[0] in " \t" and fields:
            fields[-1] = (fields[-1][0], fields[-1][1] + " " + text.strip())
        else:
            name, _, value = text.partition(":")
            fields.append((name.strip().lower(), value.strip(" \t")))


def read_chunks(line, message):
    while True:
        size = line.line()
        try:
            size = int(size.split(";")[0].strip(), 16)
        except (AttributeError, ValueError):
            return
        if size == 0:
            break
        piece = line.exactly(size)
        message.body += piece
        if len(piece) < size or line.line() != "":
            return
    while True:
        text = line.line()
        if text is None:
            return
        if text == "":
            message.whole = True
            return
        name, _, value = text.partition(":")
        message.trailers.append((name.strip().lower(), value.strip()))


def read_body(line, message, bodiless=False, until_close=False):
    coding = ",".join(message.all("transfer-encoding")).lower()
    length = message.get("content-length")
    if bodiless:
        message.whole = True
    elif coding.endswith("chunked"):
        read_chunks(line, message)
    elif length is not None and length.split(",")[0].strip().isdigit():
        count = int(length.split(",")[0])
        message.body = line.exactly(count)
        message.whole = len(message.body) == count
    elif until_close:
        message.body = line.rest()
        message.whole = line.ended == "close"
    else:
        message.whole = True
    return message


def read_request(line):
    message = read_head(line)
    return None if message is None else read_body(line, message)


def read_answer(line, method="GET"):
    """The 1xx before it, and it; None: there is none."""
    interim = []
    while True:
        message = read_head(line)
        if message is None:
            return interim, None
        if not 100 <= message.status < 200 or message.status == 101:
            break
        interim.append(message)
    bodiless = method == "HEAD" or message.status in (101, 204, 304)
    return interim, read_body(line, message, bodiless, until_close=True)


# The normal form.


def normal_fields(message, keep=()):
    named = {word.strip().lower() for value in message.all("connection") for word in value.split(",")}
    found = {}
    for name, value in message.fields:
        if name == "via":
            entries = [entry.strip() for entry in value.split(",")]
            value = ", ".join(entry for entry in entries if not any(own in entry for own in OWN_VIA))
            if not value:
                continue
        if name in ADDED or ((name in HOP or name in named) and name not in keep):
            continue
        found.setdefault(name, []).append(value)
    return {name: values if name == "set-cookie" else ", ".join(values) for name, values in found.items()}


def normal_request(message):
    method, _, rest = message.start.partition(" ")
    target = rest.rpartition(" ")[0]
    fields = normal_fields(message, keep=("upgrade",) if message.get("sec-websocket-key") else ())
    if target.startswith("http://"):
        authority, _, path = target[7:].partition("/")
        fields["host"] = authority
        target = "/" + path
    return (method, target, fields, message.body, message.trailers, message.whole)


def normal_interim(message):
    _, _, phrase = message.start.partition(" ")
    return (phrase, normal_fields(message))


def normal_answer(interim, message, method="GET"):
    hints = [normal_interim(each) for each in interim if each.status != 100]
    if message is None:
        return (hints, None)
    keep = ("upgrade",) if message.status == 101 else ()
    if method == "HEAD" or message.status == 304:
        keep += ("content-length",)
    fields = normal_fields(message, keep)
    _, _, status = message.start.partition(" ")
    return (hints, status.rstrip(" "), fields, message.body, message.trailers, message.whole)


# Hosts and runs.


class Host:
    """A host on a port of 127.0.0.1 that plays one part at a time: `play(line, host)` for each connection's requests."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.play = None
        self.seen = []
        self.lines = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        line = Line(sock)
        sock.settimeout(30)
        with self.lock:
            self.lines.add(line)
        try:
            while self.play is not None and self.play(line, self) == "again":
                pass
            sock.settimeout(PATIENCE)
            sock.shutdown(socket.SHUT_WR)
            line.rest()
        except OSError:
            pass  # the other side has gone first, or the part has reset it
        finally:
            sock.close()
            with self.lock:
                self.lines.discard(line)

    def saw(self, message):
        if message is not None:
            self.seen.append(message)
        return message

    def quiet(self):
        """No connection is left: those that are idle are ended, and their other ends have seen it."""
        self.play = None
        with self.lock:
            lines = list(self.lines)
        for line in lines:
            try:
                line.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        until = time.monotonic() + 5
        while self.lines and time.monotonic() < until:
            time.sleep(0.001)
        for line in list(self.lines):
            line.sock.close()

    def close(self):
        self.quiet()
        self.listener.close()


def answers(data, end="again", pieces=None, pause=0.0):
    """A part: reads a request, says this, and then: again (keeps the connection), close, reset."""

    def play(line, host):
        if host.saw(read_request(line)) is None:
            return "close"
        line.send(data, pieces, pause)
        if end == "reset":
            time.sleep(0.05)  # written bytes are sent first
            line.reset()
        return end

    return play


def asks(data, method="GET", pieces=None, pause=0.0, count=1, half_close=False):
    """The client's part: sends these bytes and reads `count` answers."""

    def ask(line):
        line.send(data, pieces, pause)
        if half_close:
            line.half_close()
        return [normal_answer(*read_answer(line, method), method) for _ in range(count)]

    return ask


class Oddity:
    """`ask(line)` is the client's part and returns its view; `play(line, host)` is the host's. `becalm` is the result
    with Becalm: "same", "unsafe" (refused, as every proxy should), "refused" or "changed", and `why`, which
    docs/http1.md has too; `rule` is a part of the answer to the client."""

    def __init__(self, group, name, ask, play, becalm="same", why="", rule=""):
        self.group = group
        self.name = name
        self.ask = ask
        self.play = play
        self.becalm = becalm
        self.why = why
        self.rule = rule


def run(oddity, host, port):
    """The view of both ends, by a way that begins at this port and ends at this host."""
    host.seen = []
    host.play = oddity.play
    line = Line(socket.create_connection(("127.0.0.1", port)))
    try:
        told = oddity.ask(line)
    finally:
        line.sock.close()
    host.quiet()
    return told, [normal_request(message) for message in host.seen]


def same(direct, other):
    """Date and Server may be added where the host says none, Host where the client does; nothing else may differ."""
    (told, seen), (told_too, seen_too) = direct, other
    if len(seen) != len(seen_too) or len(told) != len(told_too):
        return False
    for one, two in zip(seen, seen_too):
        if "host" not in one[2]:  # HTTP/1.0 need not have one, and a proxy adds it
            two = (*two[:2], {k: v for k, v in two[2].items() if k != "host"}, *two[3:])
        if one != two:
            return False
    for one, two in zip(told, told_too):
        if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two) == 6:
            fields = {k: v for k, v in two[2].items() if k not in ("date", "server") or k in one[2]}
            two = (*two[:2], fields, *two[3:])
        if one != two:
            return False
    return True
