# SPDX-License-Identifier: MIT
"""The oddities of clients and hosts, one row each."""

import time

from lab import Oddity, answers, asks, normal_answer, read_answer, read_body, read_head, read_request

STAMP = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: odd\r\n"
FINE = b"HTTP/1.1 200 OK\r\n" + STAMP + b"Content-Length: 4\r\n\r\nfine"
GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
ROWS = []

TWO_WAYS = "two readers may find different ends of it"
SPLIT = "a reader further on may take it for another field, or for two"


def row(group, name, ask=None, play=None, **more):
    if isinstance(ask, bytes):
        ask = asks(ask)
    if isinstance(play, bytes):
        play = answers(play)
    ROWS.append(Oddity(group, name, ask or asks(GET), play or answers(FINE), **more))


def get(fields=b"", target=b"/", version=b"HTTP/1.1"):
    return b"GET " + target + b" " + version + b"\r\nHost: a.test\r\n" + fields + b"\r\n"


def post(fields, body, method=b"POST", target=b"/"):
    return method + b" " + target + b" HTTP/1.1\r\nHost: a.test\r\n" + fields + b"\r\n" + body


def sized(body, method=b"POST", fields=b""):
    return post(b"Content-Length: %d\r\n" % len(body) + fields, body, method)


def chunked(body, fields=b"", method=b"POST", target=b"/"):
    return post(b"Transfer-Encoding: chunked\r\n" + fields, body, method, target)


def answer(status=b"200 OK", fields=b"", body=b"fine", version=b"HTTP/1.1"):
    return version + b" " + status + b"\r\n" + fields + b"Content-Length: %d\r\n\r\n" % len(body) + body


def raw(status, fields, body=b"", version=b"HTTP/1.1"):
    return version + b" " + status + b"\r\n" + fields + b"\r\n" + body


# ---- requests: heads ----

HEADS = {
    "plain": get(),
    "names of fields in odd case": get(b"x-ODD-Case: 1\r\nACCEPT: */*\r\n"),
    "no blank behind the colon": get(b"X-A:1\r\n"),
    "many blanks around a value": get(b"X-A:   1   \r\n"),
    "an empty value": get(b"X-A:\r\nX-B: \r\n"),
    "a tab in a value": get(b"X-A: 1\t2\r\n"),
    "bytes above 127 in a value": get(b"X-A: caf\xe9 \xc3\xa9\r\n"),
    "quotes, commas and semicolons": get(b'X-A: "a, b"; c="\\"", d\r\n'),
    "every character of a token in a name": get(b"x!#$%&'*+-.^_`|~09: 1\r\n"),
    "an underscore in a name": get(b"x_a: 1\r\n"),
    "one field twice": get(b"X-A: 1\r\nX-B: 2\r\nX-A: 3\r\n"),
    "two Cookie lines": get(b"Cookie: a=1\r\nCookie: b=2\r\n"),
    "a cookie with odd bytes": get(b'Cookie: a="x y"; b=%00; c={"d":[1]}\r\n'),
    "100 fields": get(b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(99))),
    "a value of 6 KiB": get(b"X-A: " + b"v" * 6144 + b"\r\n"),
    "a target of 6 KiB": get(target=b"/" + b"t" * 6144),
    "Authorization": get(b"Authorization: Basic YTpi\r\n"),
    "Via of a proxy before": get(b"Via: 1.0 fred, 1.1 p.example.net\r\n"),
    "X-Forwarded-For of a proxy before": get(b"X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n"),
    "Connection names a field": get(b"Connection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n"),
    "Connection: close": get(b"Connection: close\r\n"),
    "TE: trailers": get(b"TE: trailers\r\nConnection: TE\r\n"),
    "Keep-Alive and Proxy-Connection": get(b"Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"),
    "an upgrade that nobody takes": get(b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
    "Range": get(b"Range: bytes=0-1\r\nIf-Range: \"e\"\r\n"),
    "conditions": get(b"If-None-Match: \"a\", W/\"b\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
    "Accept-Encoding": get(b"Accept-Encoding: br;q=1.0, gzip;q=0.8, *;q=0.1\r\n"),
    "trace and baggage": get(b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nbaggage: a=1,b=2;p\r\n"),
    "a body's fields without a body": get(b"Content-Type: text/plain\r\nContent-Encoding: gzip\r\n"),
    "Connection: keep-alive, Upgrade without Upgrade": get(b"Connection: keep-alive, Upgrade\r\n"),
    "TE with weights": get(b"TE: trailers;q=0.5, deflate;q=0.1\r\nConnection: te\r\n"),
    "a Referer with a fragment": get(b"Referer: http://b.test/x?y#z\r\n"),
    "Sec-Fetch and client hints": get(b'Sec-Fetch-Mode: navigate\r\nSec-CH-UA: "A";v="1", "B";v="2"\r\n'),
    "Pragma and Cache-Control": get(b"Pragma: no-cache\r\nCache-Control: no-cache, max-age=0\r\n"),
    "two Accept lines": get(b"Accept: text/html\r\nAccept: */*;q=0.1\r\n"),
    "Max-Forwards and Date": get(b"Max-Forwards: 3\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
}  # fmt: skip
for name, data in HEADS.items():
    row("request heads", name, data)

row("request heads", "one byte at a time", asks(get(b"X-A: 1\r\n"), pieces=1))
row("request heads", "cut between CR and LF", asks(get(b"X-A: 1\r\n"), pieces=15))
row("request heads", "an empty line before", b"\r\n" + GET)
row("request heads", "an LF before", b"\n" + GET, becalm="unsafe", why=SPLIT, rule="request line")
row("request heads", "two requests at once", asks(get(target=b"/1") + get(target=b"/2"), count=2))
row("request heads", "half-closed behind it", asks(GET, half_close=True))
for name, fields, rule in (
    ("a folded field", b"X-A: 1\r\n 2\r\n", "several lines"),
    ("a blank before a colon", b"X-A : 1\r\n", "proper name"),
    ("a control byte in a value", b"X-A: 1\x012\r\n", "forbidden"),
    ("a CR alone in a value", b"X-A: 1\r2\r\n", "forbidden"),
    ("a line without a colon", b"nonsense\r\n", "proper name"),
    ("two Host lines", b"Host: b.test\r\n", "Host"),
):
    row("request heads", name, get(fields), becalm="unsafe", why=SPLIT, rule=rule)
row("request heads", "lines that end in LF", GET.replace(b"\r\n", b"\n"), becalm="unsafe", why=TWO_WAYS, rule="request line")  # fmt: skip
row("request heads", "200 fields", get(b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(199))), becalm="refused",
    why="a request has at most 128 fields", rule="too many fields")  # fmt: skip

row("request heads", "50 requests at once", asks(b"".join(get(target=b"/%d" % n) for n in range(50)), count=50))
row("request heads", "20 requests at once, half-closed behind them",
    asks(b"".join(get(target=b"/%d" % n) for n in range(20)), count=20, half_close=True))  # fmt: skip
row("request heads", "a length of 0 on GET", get(b"Content-Length: 0\r\n"))
row("request heads", "a head of 24 KiB", get(b"".join(b"X-%d: %s\r\n" % (n, b"h" * 1000) for n in range(24))))
row("request heads", "a line's end behind a body", asks(sized(b"old browsers") + b"\r\n" + GET, count=2))

# ---- requests: targets and methods ----

for name, target in {
    "an empty query": b"/?",
    "a query with odd characters": b"/?a=b|c&d={\"e\":[1,2]}&f=<g>^`",
    "two question marks": b"/a?b?c=/d//e/../f",
    "escaped bytes": b"/%41%7e/%e2%82%ac?%00",
    "an escaped slash": b"/group%2Fproject",
    "a dot segment": b"/repo/./Packages",
    "two slashes": b"/a//b",
    "a semicolon": b"/a;v=1/b",
    "a plus, a star, a tilde": b"/a+b/*/~c/@d/!$&'(),=:",
    "a colon in the first segment": b"/a:b",
    "a trailing dot": b"/a.",
}.items():
    row("targets", name, get(target=target))
row("targets", "a percent sign alone", get(target=b"/100%"), becalm="unsafe",
    why="no URI: readers undo it in different ways, around the rules for paths", rule="path")  # fmt: skip
row("targets", "an absolute URL", b"GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\n\r\n")
row("targets", "an absolute URL and another Host", b"GET http://a.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n")
row("targets", "an absolute URL without a path", b"GET http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n")
row("targets", "an absolute URL with a port", b"GET http://a.test:80/x HTTP/1.1\r\nHost: a.test:80\r\n\r\n")
row("targets", "an absolute URL on HTTP/1.0 without Host", b"GET http://a.test/x HTTP/1.0\r\n\r\n")
row("targets", "a fragment", get(target=b"/a#b"), becalm="unsafe", why="no target has one: RFC 9112, 3.2 wants 400", rule="target")
row("targets", "bytes above 127", get(target=b"/caf\xe9"), becalm="unsafe", why="no URI: RFC 9112, 3.2 wants 400", rule="target")
row("targets", "a dot-dot segment", get(target=b"/a/../b"), becalm="unsafe", why="it walks around the rules for paths",
    rule="path")  # fmt: skip
for name, host in {
    "Host with a port": b"a.test:8080",
    "Host with an empty port": b"a.test:",
    "Host with the usual port": b"a.test:80",
    "Host in capitals": b"A.TEST",
    "Host with a trailing dot": b"a.test.",
    "Host is an IPv6 address": b"[::1]:80",
    "Host is an IPv4 address": b"127.0.0.1",
    "an underscore in Host": b"a_b.test",
}.items():
    row("targets", name, b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
for method in ("DELETE", "OPTIONS", "PATCH", "PROPFIND", "M-SEARCH", "QUERY", "VERSION-CONTROL", "BREW", "get",
               "X_PRIVATE.1", "A" * 40, "TRACE"):  # fmt: skip
    row("methods", method if len(method) < 40 else "of 40 letters", asks(get().replace(b"GET", method.encode(), 1), method))
row("methods", "OPTIONS *", asks(b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "OPTIONS"))
row("methods", "HEAD", asks(b"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HEAD"), raw(b"200 OK", b"Content-Length: 4\r\n"))
row("methods", "GET with a body", sized(b"a body", b"GET"))
row("methods", "DELETE with a body", sized(b"a body", b"DELETE"))
row("methods", "QUERY with a body", sized(b"a body", b"QUERY"))
row("methods", "HTTP/1.0 with Host", get(version=b"HTTP/1.0"))
row("methods", "POST of HTTP/1.0", b"POST / HTTP/1.0\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody")
row("methods", "OPTIONS with a body", sized(b"a body", b"OPTIONS"))
row("methods", "GET with chunks", chunked(b"4\r\nbody\r\n0\r\n\r\n", method=b"GET"))
row("methods", "HTTP/1.0 without Host", b"GET / HTTP/1.0\r\nX-A: 1\r\n\r\n")
row("methods", "HTTP/1.0 that keeps its connection",
    asks(get(b"Connection: keep-alive\r\n", version=b"HTTP/1.0") * 2, count=2))  # fmt: skip

# ---- requests: bodies ----

BIG = bytes(range(256)) * 1200  # more than is kept for a replay


def chunks(data, size):
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces)


BODIES = {
    "a length": sized(b"body"),
    "a length of 0": sized(b""),
    "no length": post(b"", b""),
    "zeros before a length": post(b"Content-Length: 0004\r\n", b"body"),
    "300 KB": sized(BIG),
    "chunks": chunked(b"4\r\nbody\r\n0\r\n\r\n"),
    "no chunk but the last": chunked(b"0\r\n\r\n"),
    "chunks of one byte": chunked(chunks(b"a longer body" * 20, 1) + b"0\r\n\r\n"),
    "300 KB of chunks": chunked(chunks(BIG, 5000) + b"0\r\n\r\n"),
    "a chunk of 300 KB": chunked(chunks(BIG, len(BIG)) + b"0\r\n\r\n"),
    "sizes in capitals and with zeros": chunked(b"0004\r\nbody\r\n000A\r\n0123456789\r\n00\r\n\r\n"),
    "chunk extensions": chunked(b'4;a=b;c="d;e"\r\nbody\r\n0;last\r\n\r\n'),
    "a trailer": chunked(b"4\r\nbody\r\n0\r\nX-Sum: 9\r\n\r\n"),
    "a trailer that is announced": chunked(b"4\r\nbody\r\n0\r\nX-Sum: 9\r\n\r\n", b"Trailer: X-Sum\r\n"),
    "two trailers behind 300 KB": chunked(chunks(BIG, 9999) + b"0\r\nX-Sum: 9\r\nDigest: a=b\r\n\r\n"),
    "a body of a coding": sized(b"\x1f\x8b\x08\x00" + b"z" * 20, fields=b"Content-Encoding: gzip\r\n"),
    "a form of parts": sized(b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b--\r\n",
                             fields=b"Content-Type: multipart/form-data; boundary=b\r\n"),
}  # fmt: skip
for name, data in BODIES.items():
    row("request bodies", name, asks(data, "POST"))
row("request bodies", "one byte at a time", asks(sized(b"slow"), pieces=1))
row("request bodies", "half-closed behind it", asks(sized(b"a body"), half_close=True))
row("request bodies", "5 MB", asks(sized(BIG * 16)))
row("request bodies", "a chunk extension of 200 bytes", chunked(b"4;" + b"e" * 200 + b"\r\nbody\r\n0\r\n\r\n"))
row("request bodies", "a size of 16 digits", chunked(b"0000000000000004\r\nbody\r\n0\r\n\r\n"))
row("request bodies", "Chunked in capitals", post(b"Transfer-Encoding: Chunked\r\n", b"4\r\nbody\r\n0\r\n\r\n"))
row("request bodies", "two POSTs at once", asks(sized(b"one") + chunked(b"3\r\ntwo\r\n0\r\n\r\n"), count=2))
for name, fields, body, rule in (
    ("the same length twice", b"Content-Length: 4\r\nContent-Length: 4\r\n", b"body", "Content-Length"),
    ("a list of lengths", b"Content-Length: 4, 4\r\n", b"body", "Content-Length"),
    ("a length and chunks", b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"4\r\nbody\r\n0\r\n\r\n", "exclude"),
    ("a tab before a length", b"Content-Length:\t4\r\n", b"body", "tab"),
    ("gzip, chunked", b"Transfer-Encoding: gzip, chunked\r\n", b"4\r\nbody\r\n0\r\n\r\n", "chunked"),
    ("blanks behind a chunk's size", b"Transfer-Encoding: chunked\r\n", b"4  \r\nbody\r\n0\r\n\r\n", "size"),
    ("chunk lines that end in LF", b"Transfer-Encoding: chunked\r\n", b"4\nbody\n0\n\n", "size"),
):
    row("request bodies", name, asks(post(fields, body), "POST"), becalm="unsafe", why=TWO_WAYS, rule=rule)


# ---- Expect, and the side that sends first ----


def expecting(send, wait=True):
    """A client that sends its body after a 100, or after a while without an answer."""

    def ask(line):
        line.send(post(b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(send), b""))
        line.sock.settimeout(2.5)
        first = read_head(line)
        if first is None:
            line.ended = None
        elif first.status != 100:
            return [("no body was sent", normal_answer([], read_body(line, first, until_close=True)))]
        line.sock.settimeout(5)
        line.send(send)
        return [("the body was sent", normal_answer(*read_answer(line)))]

    return ask


def continues(line, host):
    message = read_head(line)
    if message is None:
        return "close"
    if message.get("expect"):
        line.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    host.saw(read_body(line, message))
    line.send(FINE)
    return "again"


def refuses(line, host):
    """Without a look at the body."""
    message = read_head(line)
    if message is None:
        return "close"
    message.whole = True
    host.saw(message)
    line.send(answer(b"413 Too Much", STAMP + b"Connection: close\r\n", b"no"))
    line.half_close()
    line.rest()
    return "close"


row("expectations", "100-continue, and 4 bytes", expecting(b"body"), continues)
row("expectations", "100-continue, and 300 KB", expecting(BIG), continues)
row("expectations", "100-continue, and the host refuses 300 KB", expecting(BIG), refuses)
row("expectations", "100-continue, and the host does not know it", expecting(BIG))
row("expectations", "100-Continue in capitals, and the body at once",
    sized(b"body", fields=b"EXPECT: 100-CONTINUE\r\n"))  # fmt: skip
row("expectations", "100-continue without a body", get(b"Expect: 100-continue\r\n"))
row("expectations", "100-continue on HTTP/1.0", asks(b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody"))
row("expectations", "another expectation", asks(sized(b"body", fields=b"Expect: miracles\r\n")), becalm="refused",
    why="nobody defines another: RFC 9110, 10.1.1 has 417 for it", rule="Expect")  # fmt: skip


def says_ping(line):
    """Waits for the echo of its bytes before it goes on."""
    line.send(chunked(b"4\r\nping\r\n", target=b"/duplex"))
    message = read_head(line)
    if message is None:
        return [("no answer before the end of the request",)]
    line.send(b"0\r\n\r\n")
    return [normal_answer([], read_body(line, message, until_close=True))]


def says_pong(line, host):
    message = read_head(line)
    if message is None:
        return "close"
    size = line.line()
    body = line.exactly(int(size, 16))
    line.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npong\r\n")
    line.line()
    read_body(line, message)
    message.body = body + message.body
    host.saw(message)
    line.send(b"0\r\n\r\n")
    return "again"


row("expectations", "an echo before the request's end", says_ping, says_pong)


def early(line, host):
    """Answers when the head is complete, then reads the body."""
    message = read_head(line)
    if message is None:
        return "close"
    line.send(FINE)
    read_body(line, message)
    message.body, message.whole = b"", True  # how much of it came before the answer was through is a matter of speed
    host.saw(message)
    return "again"


row("expectations", "an answer before 300 KB of body are through", asks(sized(BIG), "POST"), early)

row("expectations", "a refusal while 5 MB are on their way", asks(sized(BIG * 16), "POST"), refuses)

# ---- answers: statuses and phrases ----

for status in ("200 OK", "201 Created", "202 Accepted", "203 Non-Authoritative Information", "206 Partial Content",
               "207 Multi-Status", "226 IM Used", "299 Miscellaneous Persistent Warning", "300 Multiple Choices", "302 Found",
               "308 Permanent Redirect", "402 Payment Required", "404 Not Found", "418 I'm a teapot", "425 Too Early",
               "429 Too Many Requests", "451 Unavailable For Legal Reasons", "499 Client Closed Request",
               "500 Internal Server Error", "503 Service Unavailable", "511 Network Authentication Required",
               "520 Unknown Error", "599 Network Connect Timeout", "600 Six Hundred", "777 Lucky", "999 Request denied"):  # fmt: skip
    row("statuses", status, play=answer(status.encode()))
row("statuses", "204 No Content", play=raw(b"204 No Content", b"X-A: 1\r\n"))
row("statuses", "205 Reset Content", play=raw(b"205 Reset Content", b"Content-Length: 0\r\n"))
row("statuses", "304 without a length", play=raw(b"304 Not Modified", b'ETag: "a"\r\n'))
row("statuses", "304 with a length", play=raw(b"304 Not Modified", b'ETag: "a"\r\nContent-Length: 4\r\n'))
row("statuses", "401 with two challenges",
    play=answer(b"401 Unauthorized", b'WWW-Authenticate: Basic realm="a"\r\nWWW-Authenticate: Bearer realm="b", error="c"\r\n'))
row("statuses", "407 of a host that is a proxy", play=answer(b"407 Proxy Authentication Required", b'X-A: 1\r\n'))
row("statuses", "426 with Upgrade", play=answer(b"426 Upgrade Required", b"Upgrade: TLS/1.0\r\nConnection: Upgrade\r\n"))
for name, status in {
    "a phrase of its own": b"200 All is well",
    "an empty phrase": b"200 ",
    "no blank behind the status": b"200",
    "a phrase with bytes above 127": b"404 Pas trouv\xe9",
    "a phrase with odd characters": b'500 "<b>&\t!',
    "a phrase of 500 bytes": b"200 " + b"p" * 500,
}.items():
    row("statuses", name, play=answer(status))
row("statuses", "a status of two digits", play=answer(b"99 Low"), becalm="unsafe", why="no status", rule="status")
row("statuses", "a status of four digits", play=answer(b"1000 High"), becalm="unsafe",
    why="a reader of three digits takes it for 100, and the next answer for this one", rule="status line")  # fmt: skip

row("statuses", "206 of many ranges", play=answer(b"206 Partial Content", b"Content-Type: multipart/byteranges; boundary=b\r\n"))
row("statuses", "503 with Retry-After", play=answer(b"503 Service Unavailable", b"Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))
row("statuses", "204 with a length of 0", play=raw(b"204 No Content", b"Content-Length: 0\r\n"))
row("statuses", "205 with a body", play=answer(b"205 Reset Content", b"", b"odd"))
row("statuses", "302 without Location", play=answer(b"302 Moved", b"", b""))

# ---- answers: heads ----

GIVEN = {
    "Date, Server, Age": b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: odd/1\r\nAge: 7\r\n",
    "no Date": b"X-A: 1\r\n",
    "Via of a proxy behind": b"Via: 1.1 inner, HTTP/2 cache\r\n",
    "Proxy-Authenticate": b"X-Proxy-Authenticate: a\r\n",
    "three Set-Cookie": b"Set-Cookie: a=1, 2; Path=/\r\nSet-Cookie: b=2; Expires=Sun, 06 Nov 1994 08:49:37 GMT\r\nSet-Cookie: c\r\n",
    "a field twice": b"X-A: 1\r\nX-B: 2\r\nX-A: 3\r\n",
    "names in odd case": b"x-ODD: 1\r\nETAG: \"e\"\r\n",
    "no blank behind a colon": b"X-A:1\r\n",
    "blanks around a value": b"X-A:  \t 1 \t \r\n",
    "an empty value": b"X-A:\r\n",
    "bytes above 127 in a value": b"X-A: caf\xe9 \xc3\xa9\r\n",
    "odd names": b"x!#$%&'*+-.^_`|~: 1\r\nx_y: 2\r\n",
    "120 fields": b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(120)),
    "200 Set-Cookie": b"".join(b"Set-Cookie: c%d=%d\r\n" % (n, n) for n in range(200)),
    "a value of 12 KiB": b"X-A: " + b"v" * 12288 + b"\r\n",
    "Connection names a field": b"Connection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n",
    "Keep-Alive": b"Keep-Alive: timeout=5, max=100\r\nConnection: keep-alive\r\n",
    "Connection: close": b"Connection: close\r\n",
    "X-Accel-Buffering and X-Accel-Expires": b"X-Accel-Buffering: no\r\nX-Accel-Expires: 5\r\n",
    "X-Powered-By, P3P, X-Runtime": b'X-Powered-By: PHP/5\r\nP3P: CP="a"\r\nX-Runtime: 0.1\r\n',
    "Link, Alt-Svc, Refresh": b'Link: </a>; rel="next", </b>; rel=prev\r\nAlt-Svc: h3=":443"; ma=1\r\nRefresh: 5; url=/x\r\n',
    "Content-Disposition in UTF-8": b"Content-Disposition: attachment; filename*=UTF-8''%e2%82%ac; filename=\"\xe2\x82\xac\"\r\n",
    "Location of itself": b"Location: http://a.test/elsewhere?x=1#f\r\n",
    "a coding": b"Content-Encoding: br\r\nVary: Accept-Encoding, *\r\n",
    "Accept-Ranges and Content-Range": b"Accept-Ranges: bytes\r\nContent-Range: bytes 0-3/10\r\n",
    "Trailer without trailers": b"Trailer: X-Sum\r\n",
    "an offer to upgrade, as Apache's": b"Upgrade: h2,h2c\r\nConnection: Upgrade, Keep-Alive\r\n",
    "two Server, two ETag, two Content-Type": b'Server: a\r\nServer: b\r\nETag: "1"\r\nETag: "2"\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n',
    "a Date that is none": b"Date: now\r\nExpires: 0\r\nLast-Modified: -1\r\n",
    "Warning and Pragma": b'Warning: 199 a "b" "c"\r\nPragma: no-cache\r\n',
    "Content-Length's neighbours": b"Content-Language: de\r\nContent-MD5: x\r\nContent-Location: /y\r\n",
    "Strict-Transport-Security and CSP": b"Strict-Transport-Security: max-age=1\r\nContent-Security-Policy: default-src 'self'; img-src *\r\n",
}
for name, fields in GIVEN.items():
    row("answer heads", name, play=answer(fields=fields))
row("answer heads", "a head of 40 KiB", play=answer(fields=b"".join(b"X-%d: %s\r\n" % (n, b"h" * 1000) for n in range(40))))
row("answer heads", "an empty line before it", play=b"\r\n" + FINE)
row("answer heads", "one byte at a time", play=answers(FINE, pieces=1))
row("answer heads", "two answers on one connection", asks(GET * 2, count=2))
for name, data, rule in (
    ("a folded field", answer(fields=b"X-A: 1\r\n 2\r\n"), "several lines"),
    ("lines that end in LF", FINE.replace(b"\r\n", b"\n"), "status line"),
    ("a control byte in a value", answer(fields=b"X-A: 1\x012\r\n"), "forbidden"),
    ("a NUL in a value", answer(fields=b"X-A: 1\x002\r\n"), "forbidden"),
    ("a blank before a colon", answer(fields=b"X-A : 1\r\n"), "proper name"),
    ("a line without a colon", answer(fields=b"nonsense\r\n"), "proper name"),
    ("a name with a blank", answer(fields=b"X A: 1\r\n"), "proper name"),
):
    row("answer heads", name, play=data, becalm="unsafe", why=SPLIT if "LF" not in name else TWO_WAYS, rule=rule)

# ---- answers: bodies ----

CHUNKED = b"Transfer-Encoding: chunked\r\n"
LONG = bytes(range(255)) * 8000
BY = {
    "chunks": raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n0\r\n\r\n"),
    "no chunk but the last": raw(b"200 OK", CHUNKED, b"0\r\n\r\n"),
    "chunks of one byte": raw(b"200 OK", CHUNKED, chunks(b"a longer body" * 20, 1) + b"0\r\n\r\n"),
    "2 MB of chunks": raw(b"200 OK", CHUNKED, chunks(LONG, 7777) + b"0\r\n\r\n"),
    "2 MB by length": answer(body=LONG),
    "sizes in capitals and with zeros": raw(b"200 OK", CHUNKED, b"000A\r\n0123456789\r\n000\r\n\r\n"),
    "chunk extensions": raw(b"200 OK", CHUNKED, b'4;a=b;c="d"\r\nfine\r\n0;x\r\n\r\n'),
    "blanks behind a chunk's size": raw(b"200 OK", CHUNKED, b"4  \r\nfine\r\n0  \r\n\r\n"),
    "Chunked in capitals": raw(b"200 OK", b"Transfer-Encoding: CHUNKED\r\n", b"4\r\nfine\r\n0\r\n\r\n"),
    "the same length twice": raw(b"200 OK", b"Content-Length: 4\r\nContent-Length: 4\r\n", b"fine"),
    "a length with zeros": raw(b"200 OK", b"Content-Length: 0004\r\n", b"fine"),
    "a gzip body": answer(fields=b"Content-Encoding: gzip\r\n", body=b"\x1f\x8b\x08\x00" + b"\x00\xff" * 30),
    "a trailer": raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n0\r\nX-Sum: 9\r\n\r\n"),
    "a trailer that is announced": raw(b"200 OK", CHUNKED + b"Trailer: X-Sum\r\n", b"4\r\nfine\r\n0\r\nX-Sum: 9\r\n\r\n"),
    "trailers of gRPC": raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n0\r\ngrpc-status: 0\r\ngrpc-message: ok\r\n\r\n"),
    "Server-Timing behind 2 MB": raw(b"200 OK", CHUNKED, chunks(LONG, 70000) + b"0\r\nServer-Timing: a;dur=1\r\n\r\n"),
}  # fmt: skip
for name, data in BY.items():
    row("answer bodies", name, asks(get(b"TE: trailers\r\nConnection: TE\r\n")), data)
row("answer bodies", "until the connection closes", play=answers(raw(b"200 OK", b"", b"fine"), "close"))
row("answer bodies", "HTTP/1.0 until the connection closes",
    play=answers(raw(b"200 OK", b"", LONG, b"HTTP/1.0"), "close"))  # fmt: skip
row("answer bodies", "chunks and Connection: close",
    play=answers(raw(b"200 OK", CHUNKED + b"Connection: close\r\n", b"4\r\nfine\r\n0\r\n\r\n"), "close"))  # fmt: skip
row("answer bodies", "identity and a length", play=raw(b"200 OK", b"Transfer-Encoding: identity\r\nContent-Length: 4\r\n", b"fine"),
    becalm="unsafe", why=TWO_WAYS, rule="exclude")  # fmt: skip
row("answer bodies", "HTTP/1.0 with a length", play=answers(answer(version=b"HTTP/1.0"), "close"))
row("answer bodies", "HTTP/1.0 that keeps its connection", play=answer(fields=b"Connection: keep-alive\r\n", version=b"HTTP/1.0"))
row("answer bodies", "chunks to a client of HTTP/1.0",
    asks(get(version=b"HTTP/1.0")), raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n0\r\n\r\n"))  # fmt: skip
HEAD = asks(b"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n", "HEAD")
row("answer bodies", "HEAD with chunked", HEAD, raw(b"200 OK", CHUNKED))
row("answer bodies", "HEAD without a length", HEAD, raw(b"200 OK", b"X-A: 1\r\n"))
row("answer bodies", "HEAD answered with 404", HEAD, raw(b"404 Not Found", b"Content-Length: 99\r\n"))
row("answer bodies", "one byte at a time", play=answers(answer(body=b"slowly"), pieces=1, pause=0.005))
row("answer bodies", "cut in the middle of a length", play=answers(raw(b"200 OK", b"Content-Length: 9\r\n", b"fine"), "close"))
row("answer bodies", "cut in the middle of a chunk", play=answers(raw(b"200 OK", CHUNKED, b"9\r\nfine"), "close"))
row("answer bodies", "cut before the last chunk", play=answers(raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n"), "close"))
for name, fields, body, why, rule in (
    ("two lengths", b"Content-Length: 4\r\nContent-Length: 9\r\n", b"fine", TWO_WAYS, "Content-Length"),
    ("a list of lengths", b"Content-Length: 4, 4\r\n", b"fine", TWO_WAYS, "Content-Length"),
    ("a length and chunks", b"Content-Length: 4\r\n" + CHUNKED, b"4\r\nfine\r\n0\r\n\r\n", TWO_WAYS, "exclude"),
    ("gzip, chunked", b"Transfer-Encoding: gzip, chunked\r\n", b"4\r\nfine\r\n0\r\n\r\n",
     "nobody here undoes the coding, and it is for one connection only", "chunked"),
    ("a chunk's size that is none", CHUNKED, b"xyz\r\nfine\r\n0\r\n\r\n", TWO_WAYS, "size"),
    ("chunk lines that end in LF", CHUNKED, b"4\nfine\n0\n\n", TWO_WAYS, "size"),
):  # fmt: skip
    row("answer bodies", name, play=raw(b"200 OK", fields, body), becalm="unsafe", why=why, rule=rule)
row("answer bodies", "chunks of HTTP/1.0", play=answers(raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n0\r\n\r\n", b"HTTP/1.0"), "close"),
    becalm="unsafe", why="HTTP/1.0 knows no chunks: " + TWO_WAYS, rule="HTTP/1.0")  # fmt: skip


row("answer bodies", "a chunk extension of 200 bytes",
    play=raw(b"200 OK", CHUNKED, b"4;" + b"e" * 200 + b"\r\nfine\r\n0\r\n\r\n"))  # fmt: skip
row("answer bodies", "a length above 2^32 to HEAD", HEAD, raw(b"200 OK", b"Content-Length: 9999999999\r\n"))
row("answer bodies", "a length of 0 and bytes behind it", play=answers(raw(b"200 OK", b"Content-Length: 0\r\n", b"junk"), "close"))
row("answer bodies", "a body behind the answer to HEAD", HEAD, answers(FINE, "close"))
row("answer bodies", "a body behind 204", play=answers(raw(b"204 No Content", b"", b"junk"), "close"))
row("answer bodies", "Content-Encoding without a body", play=answer(fields=b"Content-Encoding: gzip\r\n", body=b""))
row("answer bodies", "to HTTP/1.0 that keeps its connection, in chunks",
    asks(get(b"Connection: keep-alive\r\n", version=b"HTTP/1.0")), raw(b"200 OK", CHUNKED, b"4\r\nfine\r\n0\r\n\r\n"))  # fmt: skip


def events(line, host):
    """The second event comes when a client has had time for the first."""
    if host.saw(read_request(line)) is None:
        return "close"
    line.send(raw(b"200 OK", STAMP + b"Content-Type: text/event-stream\r\n" + CHUNKED, b"7\r\ndata: 1\r\n"))
    time.sleep(0.6)
    line.send(b"7\r\ndata: 2\r\n0\r\n\r\n")
    return "again"


def listens(line):
    line.send(GET)
    head = read_head(line)
    if head is None:
        return [("no answer",)]
    line.until(b"data: 1")
    begun = time.monotonic()
    line.until(b"data: 2")
    apart = time.monotonic() - begun > 0.2
    return [("the first event came before the second", apart, normal_answer([], head)[1:3])]


row("answer bodies", "events as they happen", listens, events)

# ---- interim answers, upgrades, closes ----

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
for name, data in {
    "103 Early Hints": HINTS,
    "103 twice": HINTS + HINTS.replace(b"a.css", b"b.css"),
    "102 Processing": b"HTTP/1.1 102 Processing\r\n\r\n",
    "a 1xx that nobody knows": b"HTTP/1.1 155 Still there\r\nX-A: 1\r\n\r\n",
    "100 that nobody asked for": b"HTTP/1.1 100 Continue\r\n\r\n",
}.items():
    row("interim answers", name, play=data + FINE)
row("interim answers", "103 and then 500", play=HINTS + answer(b"500 Internal Server Error"))
row("interim answers", "103 and then 304", play=HINTS + raw(b"304 Not Modified", b'ETag: "a"\r\n'))
row("interim answers", "103 to HEAD", HEAD, HINTS + raw(b"200 OK", b"Content-Length: 4\r\n"))
row("interim answers", "103 to a POST", asks(sized(b"body"), "POST"), HINTS + FINE)


def hints_first(line, host):
    if host.saw(read_request(line)) is None:
        return "close"
    line.send(HINTS)
    time.sleep(0.6)
    line.send(FINE)
    return "again"


def reads_hints(line):
    line.send(GET)
    first = read_head(line)
    begun = time.monotonic()
    interim, last = read_answer(line)
    apart = time.monotonic() - begun > 0.2
    return [("the hints came first", apart, first and first.status, normal_answer(interim, last))]


row("interim answers", "103 long before the answer", reads_hints, hints_first)

SOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)


def switches(behind=b"", fields=None):
    def play(line, host):
        if host.saw(read_request(line)) is None:
            return "close"
        line.send((SWITCH if fields is None else raw(b"101 Switching Protocols", fields)) + behind)
        line.send(line.exactly(4)[::-1])
        return "close"

    return play


def upgrades(early=b"", late=b"ping", expect=4, fields=SOCKET):
    def ask(line):
        line.send(get(fields) + early)
        interim, message = read_answer(line)
        line.send(late)
        return [normal_answer(interim, message), line.exactly(expect)]

    return ask


row("upgrades", "a websocket", upgrades(), switches())
row("upgrades", "a websocket with bytes behind its head", upgrades(expect=9), switches(b"hello"))
row("upgrades", "a websocket whose client speaks at once", upgrades(b"ping", b""), switches())
HIXIE = b"Connection: Upgrade\r\nUpgrade: WebSocket\r\nOrigin: http://a.test\r\n"  # of 2009, before it had keys
row("upgrades", "a websocket without a key", upgrades(fields=HIXIE), switches(fields=HIXIE))
row("upgrades", "a websocket whose host proves nothing", upgrades(),
    switches(fields=b"Connection: Upgrade\r\nUpgrade: websocket\r\n"))  # fmt: skip
row("upgrades", "a websocket to HTTP/1.1 with keep-alive beside Upgrade",
    upgrades(fields=SOCKET.replace(b"Connection: Upgrade", b"Connection: keep-alive, Upgrade")), switches())  # fmt: skip
row("upgrades", "a websocket that the host refuses", get(SOCKET), answer(b"403 Forbidden"))
for protocol in (b"tcp", b"SPDY/3.1"):
    fields = b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n"
    row("upgrades", "to " + protocol.decode(), upgrades(fields=fields), switches(fields=fields))
row("upgrades", "101 without a request for it", play=SWITCH, becalm="unsafe", why="it would make a tunnel of a request",
    rule="101")  # fmt: skip
NONE = {"becalm": "changed", "why": "a gateway says 502 where it got no answer: RFC 9110, 15.6.3"}
row("closes", "no answer at all", play=answers(b"", "close"), **NONE)
row("closes", "a reset instead of an answer", play=answers(b"", "reset"), **NONE)
row("closes", "half a head", play=answers(b"HTTP/1.1 200 OK\r\nX-A", "close"), **NONE)
row("closes", "a reset in the middle of a body", play=answers(raw(b"200 OK", b"Content-Length: 9\r\n", b"fine"), "reset"))
row("closes", "closed behind a whole answer", play=answers(FINE, "close"))
