# SPDX-License-Identifier: MIT
"""Clients and hosts that violate HTTP/2, with handmade frames: the gateway's reaction to each, and that no violation
passes on to the other side."""

import hpack
from accepting import Accepting
from conftest import policy_of
from http2 import CONTINUATION, DATA, GOAWAY, HEADERS, PREFACE, PRIORITY, PUSH, RST, SETTINGS, WINDOW, Frames, frame
from message import request
from wire import Wire

END, END_HEAD = 1, 4
PROTOCOL_ERROR = b"\0\0\0\1"
ALONE = "protocol: h2\nmaxRetries: 0\nbreaker: {enabled: false}\noutlier: {enabled: false}\nrestart: {enabled: false}\nlimit: {kind: none}"


def text(value):
    return value if isinstance(value, bytes) else value.encode()


def string(value):
    """A string of HPACK, without Huffman."""
    value, rest = text(value), len(text(value)) - 127
    if rest < 0:
        return bytes([len(value)]) + value
    more = [127]
    while rest >= 128:
        more.append(rest % 128 + 128)
        rest //= 128
    return bytes([*more, rest]) + value


def fields(*pairs):
    """Literals that enter no table."""
    return b"".join(b"\x10" + string(name) + string(value) for name, value in pairs)


def head_of(**changed):
    """The pseudo fields of a request. None: it has none of that name."""
    usual = {"method": "GET", "scheme": "http", "authority": "a", "path": "/", **changed}
    return [(":" + name, value) for name, value in usual.items() if value is not None]


# ---- requests ----

RESET = "reset"
REQUESTS = [  # the result, the head
    *[(RESET, head_of(method=each)) for each in ("GE T", "GET /x HTTP/1.1\r\nX: y\r\n", "", b"G\x80T", "CONNECT")],
    *[(RESET, head_of(path=each)) for each in ("/ x", "/\r\nX: y", "*", "", "?x", "http://b/", "/a\tb", "/\x7f")],
    *[(400, head_of(path=each)) for each in ("/a#b", "/..%2f", b"/\xff")],
    *[(RESET, head_of(authority=each)) for each in ("", "a b", "a/b", "a?b", "a\r\nX: y", "\0a")],
    *[(400, head_of(authority=each)) for each in ("a:99999", "[::1", "u@a", "a,b")],
    *[(RESET, head_of(scheme=each)) for each in ("", "http://x")],
    (400, head_of(scheme="ftp")),
    *[(RESET, head_of(**{each: None})) for each in ("method", "scheme", "path", "authority")],
    (RESET, head_of(authority=None) + [("host", "b"), ("host", "b")]),
    (400, head_of() + [("host", "a:80")]),
    *[(RESET, head_of() + [("te", each)]) for each in ("gzip", "trailers, deflate", "")],
    *[(RESET, head_of() + [("x", each)]) for each in ("a\nb", "a\rb", "a\0b", " b", "b ", "\x7f")],
    *[(RESET, head_of() + [(each, "b")]) for each in ("x:y", "", "x a", "x\r\ny", b"x\x80", "X", ":x", ":path", ":protocol", ":status")],
    *[(RESET, head_of() + [(each, "x")]) for each in ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")],
    *[(RESET, head_of() + [("content-length", each)]) for each in ("1", "-1", "+0", "0, 0", "0x0", "18446744073709551616")],
    (RESET, [("x", "y"), *head_of()]),
    (417, head_of() + [("expect", "x")]),
]
BODIES = [  # the same, of one with a body of three bytes and perhaps trailers
    *[(RESET, [("content-length", each)], None) for each in ("2", "4", "3, 3", " 3", "3x")],
    (RESET, [("content-length", "3"), ("content-length", "3")], None),
    *[(RESET, [], [(each, "x")]) for each in (":path", ":x", "content-length", "transfer-encoding", "connection", "te", "X", "x y", "")],
    *[(RESET, [], [("x", each)]) for each in ("a\r\nb: c", "a\0b")],
    *[(400, [], [(each, "x")]) for each in ("host", "trailer")],
]


class Hostile(Frames):
    """A client that sends any frames, on one stream after the other."""

    def __init__(self, port):
        super().__init__(port)
        self.stream, self.decoder = -1, hpack.Decoder()

    def ask(self, head, body=None, trailers=None):
        """How it is answered: a status, or a reset with PROTOCOL_ERROR."""
        self.stream += 2
        self.send(frame(HEADERS, END_HEAD | (END if body is None else 0), self.stream, fields(*head)))
        if body is not None:
            self.send(frame(DATA, END if trailers is None else 0, self.stream, body))
        if trailers is not None:
            self.send(frame(HEADERS, END_HEAD | END, self.stream, fields(*trailers)))
        while True:
            kind, _, stream, payload = self.next(HEADERS, RST, GOAWAY)
            assert kind != GOAWAY, payload
            if kind == HEADERS:
                got = dict(self.decoder.decode(payload))
            if stream == self.stream:
                break  # else it says that it does not want the rest of the one before
        if kind == RST:
            assert payload == PROTOCOL_ERROR
            return RESET
        return int(got[":status"])


def test_http2_hostile__requests_that_no_host_gets(pair):
    edge, host = pair(protocols="[h2, h1]")
    with Hostile(edge.port) as client:
        for becomes, head in REQUESTS:
            assert client.ask(head) == becomes, head
        for becomes, more, trailers in BODIES:
            assert client.ask(head_of(method="POST") + more, b"abc", trailers) == becomes, (more, trailers)
        assert client.ask(head_of()) == 200 and host.count() == 1, "and the connection lives on"


def test_http2_hostile__trailers_that_there_is_no_room_for_are_not_lost_without_a_word(pair):
    edge, _ = pair("maxHeaderBytes: 64KiB", protocols="[h2, h1]")
    large = b"\x40" + string("x") + string("v" * 4000) + b"\xbe" * 51  # a field that enters the table, and is named again and again
    with Hostile(edge.port) as client:
        client.send(frame(HEADERS, END_HEAD, 1, fields(*head_of(method="POST"))) + frame(DATA, 0, 1, b"abc"))
        client.send(frame(HEADERS, END_HEAD | END, 1, large))
        assert client.next(HEADERS, RST, GOAWAY) == (RST, 0, 1, b"\0\0\0\x0b")


# ---- answers ----


class HandMade(Accepting):
    """A host whose answers are frames: `says` is its answer to the end of a request on this stream."""

    says = b""

    def __init__(self):
        self.heads = []
        super().__init__()

    def serve(self, peer, number):
        with peer:
            rest, decoder = b"", hpack.Decoder()
            peer.sendall(frame(SETTINGS, 0, 0))
            while piece := self.some(peer):
                rest += piece
                rest = rest[len(PREFACE) :] if rest.startswith(PREFACE) else rest
                while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
                    length = int.from_bytes(rest[:3], "big")
                    kind, flags, stream = rest[3], rest[4], int.from_bytes(rest[5:9], "big")
                    if kind == HEADERS:
                        self.heads.append(decoder.decode(rest[9 : 9 + length]))
                    if kind == SETTINGS and flags == 0:
                        peer.sendall(frame(SETTINGS, 1, 0))
                    if kind in (HEADERS, DATA) and flags & END:
                        peer.sendall(b"".join(each(stream) if callable(each) else each for each in self.says))
                    rest = rest[9 + length :]

    @staticmethod
    def some(peer):
        try:
            return peer.recv(65536)
        except OSError:
            return b""


def head(*pairs, end=False):
    return lambda stream: frame(HEADERS, END_HEAD | (END if end else 0), stream, fields(*pairs))


def data(body, end=True):
    return lambda stream: frame(DATA, END if end else 0, stream, body)


FINE = (":status", "200")
PAGE = [head(FINE), data(b"x")]
CUT, BAD = "cut", 502
BROKEN = CUT, 204  # 204 has no body, so that one with a body is malformed (RFC 9113, 8.1.1)


def trailed(*pairs, end=True):
    return [head(FINE), data(b"x", end=False), head(*pairs, end=end)]


ANSWERS = [  # the result, the frames
    *[(BAD, [head((":status", each)), data(b"x")]) for each in ("099", "1000", "20x", "", "2 0", "200 OK", "+20", "101", "000")],
    (BAD, [head((":status", "100")), data(b"x")]),
    (BAD, [head(("x", "y")), data(b"x")]),
    (BAD, [head(FINE, FINE), data(b"x")]),
    (BAD, [head(("x", "y"), FINE), data(b"x")]),
    *[(BAD, [head(FINE, (each, "x")), data(b"x")]) for each in ("connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection", "X", "x y", "x:y", "", ":path")],
    *[(BAD, [head(FINE, ("x", each)), data(b"x")]) for each in ("a\r\nSet-Cookie: b", "a\0b", " b", "b ")],
    *[(BAD, [head(FINE, ("content-length", each)), data(b"x")]) for each in ("-1", "+1", "1, 1", "1x")],
    (BAD, [head(FINE, ("content-length", "1"), ("content-length", "1")), data(b"x")]),
    (BAD, [head(FINE, ("content-length", "5"), end=True)]),
    (CUT, [head(FINE, ("content-length", "5")), data(b"x")]),
    (CUT, [head(FINE, ("content-length", "1")), data(b"xxxxx")]),
    (CUT, [head(FINE), head(FINE), data(b"x")]),
    (CUT, trailed((":status", "500"))),
    (CUT, trailed(("content-length", "3"))),
    (CUT, trailed(("transfer-encoding", "chunked"))),
    (CUT, trailed(("x", "a\r\nb: c"))),
    (CUT, trailed(("x", "y"), end=False)),
    (BAD, [head((":status", "103"), end=True)]),
    (BAD, [*[head((":status", "103"))] * 100, *PAGE]),
    (BAD, [data(b"x"), head(FINE, end=True)]),
    (BAD, [lambda stream: frame(PUSH, END_HEAD, stream, b"\0\0\0\2" + fields(*head_of())), *PAGE]),
    (BAD, [lambda stream: frame(HEADERS, END_HEAD | END, stream + 2, fields(FINE)), *PAGE]),
    (BAD, [lambda stream: frame(HEADERS, END_HEAD | END, 2, fields(FINE)), *PAGE]),
    (BAD, [frame(SETTINGS, 0, 0, b"\0\5\0\0\0\1"), *PAGE]),
    (BAD, [frame(SETTINGS, 0, 0, b"\0\4\x80\0\0\0"), *PAGE]),
    (BAD, [frame(WINDOW, 0, 0, bytes(4)), *PAGE]),
    (CUT, [head(FINE), data(b"x" * 20_000)]),
    (CUT, [head(FINE), lambda stream: frame(DATA, END | 8, stream, b"\xffx")]),
    (BAD, [lambda stream: frame(HEADERS, 0, stream, fields(FINE)) + frame(CONTINUATION, 0, stream) * 100, *PAGE]),
    (BAD, [lambda stream: frame(HEADERS, END_HEAD | END, stream, b"\xff" * 6)]),
    (BAD, [lambda stream: frame(RST, 0, stream, bytes(4))]),
    (200, PAGE),
    (200, [head(FINE), lambda stream: frame(DATA, END | 8, stream, b"\3x\0\0\0")]),
    (200, [frame(0xBE, 0, 0, b"x"), lambda stream: frame(PRIORITY, 0, stream, b"\0\0\0\0\1"), *PAGE]),
    (200, [lambda stream: frame(HEADERS, 0, stream, fields(FINE)) + frame(CONTINUATION, END_HEAD, stream, fields(("x", "y"))), data(b"x")]),
    (200, [*PAGE, lambda stream: frame(RST, 0, stream, bytes(4))]),
    (200, [head((":status", "103")), head((":status", "103")), *PAGE]),
    (200, trailed(("x", "y"))),
    (204, [head((":status", "204")), data(b"x")]),
    (304, [head((":status", "304"), ("content-length", "5"), end=True)]),
]


def test_http2_hostile__answers_that_no_client_takes_for_whole(gateway):
    """With a client that speaks HTTP/1: it must get one answer for each of two requests, in their order."""
    this = HandMade()
    try:
        edge = gateway(policy_of([this], "", ALONE))
        for becomes, says in ANSWERS:
            this.says = says
            with Wire(edge.port) as client:
                client.send(request())
                try:
                    answer = client.answer()
                    got = answer.status
                    assert got in (204, 304, BAD) or answer.body == b"x"
                    assert b"set-cookie" not in str(answer.fields).encode().lower()
                except (EOFError, ConnectionResetError):
                    got = CUT
                # If all of a broken answer came at once, nothing had been passed on yet, and the client is told.
                assert got == becomes or (becomes in BROKEN and got == BAD), [each(1) if callable(each) else each for each in says]
            this.says = PAGE
            assert edge.ask().body == b"x"
    finally:
        this.listener.close()


PASSED = [  # a request of HTTP/1, its fields that pass to HTTP/2, and those that do not
    (b"GET /x HTTP/1.0\r\n\r\n", {":method": "GET", ":path": "/x", ":authority": "a"}, ["host"]),
    (b"GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", {":authority": "b", ":path": "/x"}, ["host"]),
    (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {":path": "*"}, []),
    (
        b"GET / HTTP/1.1\r\nHost: A:80\r\nConnection: x-hop, TE\r\nX-Hop: 1\r\nTE: trailers, gzip\r\nKeep-Alive: 3\r\nProxy-Connection: x\r\nUpgrade: h2c\r\nX-UP: Y\r\n\r\n",
        {":authority": "A:80", "x-up": "Y", "te": "trailers"},
        ["x-hop", "connection", "keep-alive", "proxy-connection", "upgrade", "host"],
    ),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", {":method": "POST"}, ["transfer-encoding"]),
]


def test_http2_hostile__what_is_for_one_connection_of_http_1_does_not_become_a_field_of_http_2(gateway):
    this = HandMade()
    this.says = PAGE
    try:
        edge = gateway(policy_of([this], "", ALONE))
        for asked, there, gone in PASSED:
            with Wire(edge.port) as client:
                assert client.send(asked).answer().status == 200
            came = dict(this.heads[-1])
            assert there.items() <= came.items() and not set(gone) & set(came), came
            assert all(name == name.lower() for name in came)
    finally:
        this.listener.close()
