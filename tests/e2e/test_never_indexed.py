# SPDX-License-Identifier: MIT
"""HPACK's mark that a field is never indexed (RFC 7541, 6.2.3): a proxy that passes such a field on keeps the mark.
python's h2 is on both sides."""

import pytest
from conftest import policy_of
from hpack import NeverIndexedHeaderTuple as Secret
from host import Reply, wait_until
from host_h2 import Answer, HostH2
from http2 import Http2

H2 = "protocol: h2\n"
OURS = {"x-request-id", "traceparent", "x-request-deadline-ms", "grpc-timeout", "x-envoy-expected-rq-timeout-ms"}  # the gateway marks these itself


@pytest.fixture
def pair(gateway):
    """A client of HTTP/2, a gateway, and a host of HTTP/2."""
    made = []

    def make(rules="", text="", **how):
        this = HostH2(**how)
        edge = gateway(policy_of([this], text, H2 + rules), protocols="[h2, h1]")
        client = Http2(edge.port)
        made.extend((this.close, client.socket.close))
        return client, this, edge

    yield make
    for close in made:
        close()


def marks(fields):
    """The marked fields, without those that the gateway adds to a request."""
    return [tuple(each) for each in fields if isinstance(each, Secret) and each[0] not in OURS]


def values(fields, *names):
    return [tuple(each) for each in fields if each[0] in names]


# python's hpack says a field that stands in its table by a number, marked or not: so the values differ.
MIXED = [("x-plain", "1"), Secret("x-key", "2"), ("x-plain", "3"), Secret("x-plain", "4"), Secret("accept", "a/b"), Secret("x-empty", "")]
MARKED = [("x-key", "2"), ("x-plain", "4"), ("accept", "a/b"), ("x-empty", "")]


def test_never_indexed__requests_with_their_trailers_keep_their_marks(pair):
    client, this, _ = pair()
    for _ in range(3):  # the second and the third time the table has fields
        stream = client.begin("POST", "/up", [*MIXED, ("te", "trailers")], end=False)
        client.body(stream, b"abc", trailers=[("x-sum", "1"), Secret("x-seal", "2"), ("x-more", "3")])
        assert client.answer(stream).body == b"abc"
    for asked in this.requests:
        assert marks(asked.fields) == MARKED
        assert values(asked.fields, "x-plain") == [("x-plain", "1"), ("x-plain", "3"), ("x-plain", "4")]
        assert marks(asked.all_trailers) == [("x-seal", "2")]
        assert [tuple(each) for each in asked.all_trailers] == [("x-sum", "1"), ("x-seal", "2"), ("x-more", "3")]
    assert len(this.requests) == 3 and not this.errors


def test_never_indexed__parts_of_the_first_line_keep_their_marks(pair):
    client, this, _ = pair()
    for name, value in ((":path", "/?token=1"), (":authority", "secret.test"), (":method", "QUERY")):
        head = {":method": "GET", ":scheme": "http", ":authority": "a", ":path": "/"} | {name: value}
        stream = client.send([Secret(*each) if each[0] == name else each for each in head.items()], end=True)
        assert client.answer(stream).status == 200
        assert marks(this.requests[-1].fields) == [(name, value)]


def test_never_indexed__each_attempt_has_the_marks(pair):
    """A retry is written from the kept request."""
    client, this, _ = pair(at_end=lambda asked: Answer(status=503 if len(this.requests) == 1 else 200))
    assert client.ask("GET", "/", fields=MIXED).status == 200
    assert [marks(asked.fields) for asked in this.requests] == [MARKED, MARKED]


def test_never_indexed__answers_hints_and_trailers_keep_their_marks(pair):
    answer = Answer(
        body=b"abc",
        interim=(103,),
        hints=(("link", "</a>"), Secret("x-hint", "1")),
        fields=MIXED,
        trailers=(("x-sum", "1"), Secret("x-seal", "2")),
    )
    client, _, _ = pair(at_end=lambda asked: answer)
    for _ in range(3):
        got = client.ask(fields=[("te", "trailers")])
        assert (got.status, got.body, got.interim) == (200, b"abc", [103])
        assert marks(got.hints) == [("x-hint", "1")] and ("link", "</a>") in values(got.hints, "link")
        assert marks(got.all_fields) == MARKED
        assert marks(got.all_trailers) == [("x-seal", "2")] and len(got.all_trailers) == 2


def test_never_indexed__an_answer_that_was_held_back_has_its_marks(pair):
    """All attempts failed, and the client gets the last answer from the kept copy."""
    client, this, _ = pair("maxRetries: 1\nbudget: {minPerSecond: 100}\n", at_end=lambda asked: Answer(status=503, body=b"no", fields=MIXED))
    got = client.ask()
    assert (got.status, got.body, len(this.requests)) == (503, b"no", 2)
    assert marks(got.all_fields) == MARKED


@pytest.mark.parametrize("in_redis", [False, True])
def test_never_indexed__a_stored_answer_of_grpc_has_its_marks(pair, request, in_redis):
    message = b"\0\0\0\0\1x"
    answer = Answer(
        body=message, fields=(("content-type", "application/grpc"), *MIXED), trailers=(("grpc-status", "0"), Secret("x-seal", "2"), ("x-sum", "1"))
    )
    client, this, _ = pair("idempotencyKey: enforced\n", text=request.getfixturevalue("redis_of") if in_redis else "", at_end=lambda asked: answer)
    asks = [("content-type", "application/grpc"), ("te", "trailers"), ("idempotency-key", '"1"')]
    first, again = [client.ask("POST", "/lab.Lab/Unary", message, fields=asks) for _ in range(2)]
    assert "replayed" in again.fields["proxy-status"] and len(this.requests) == 1
    for got in (first, again):
        assert got.body == message and marks(got.all_fields) == MARKED
        assert marks(got.all_trailers) == [("x-seal", "2")] and len(got.all_trailers) == 3


def test_never_indexed__http_1_knows_no_mark(gateway, host):
    """A line of a field that was marked is as any other, also in trailers; and no answer of HTTP/1 becomes marked."""
    this = host()
    edge = gateway(policy_of([this]), protocols="[h2, h1]")
    this.on("/", Reply(body=b"abc", chunked=True, fields=(("X-Plain", "1"),), trailers=(("X-Sum", "3"),)))
    with Http2(edge.port) as client:
        stream = client.begin("POST", "/", [*MIXED, ("te", "trailers")], end=False)
        client.body(stream, b"abc", trailers=[("x-sum", "1"), Secret("x-seal", "2")])
        got = client.answer(stream)
        assert got.body == b"abc" and marks(got.all_fields) == [] and marks(got.all_trailers) == [] and got.trailers == {"x-sum": "3"}
    wait_until(lambda: len(this.got("/")) == 1)
    (asked,) = this.got("/")
    assert asked.get("x-key") == "2" and asked.get("x-empty") == "" and ("x-seal", "2") in asked.trailers
