# SPDX-License-Identifier: MIT
"""gRPC through the gateway: Debian's grpcio on both sides, and python's h2 where a frame must come at a certain moment."""

import json
import queue
import threading

import pytest
from conftest import policy_of, wait_until
from grpc_lab import SECONDS, Fails, GrpcClient, grpc, serves  # noqa: F401: a fixture
from host_h2 import Answer, Close, HostH2, Refuse
from http2 import Http2
from wire import ask

Code = grpc.StatusCode
H2 = "protocol: h2\n"
FREE = H2 + "budget: {kind: none}\ninitialDelay: 1ms\n"  # as many retries as maxRetries says, and soon
TRUST = "trust: [127.0.0.1]\nlog: {access: json}\n"
GRPC = ("content-type", "application/grpc")
ASKS = (GRPC, ("te", "trailers"))


def message(data):
    """A message as gRPC writes it: not compressed, its length, its bytes."""
    return b"\0" + len(data).to_bytes(4, "big") + data


def trailers_only(code, *more):
    return Answer(fields=(GRPC, ("grpc-status", str(code)), *more))


def unary(data, code=0, *more):
    return Answer(fields=(GRPC,), body=message(data), trailers=(("grpc-status", str(code)), *more))


@pytest.fixture
def grpc_pair(gateway, serves):
    """A gateway in front of one real server, and a client of it."""
    clients = []

    def make(rules=H2, text=TRUST, options=(), compression=None, **methods):
        this = serves(compression=compression, **methods)
        edge = gateway(policy_of([this], text, rules), protocols="[h2, h1]")
        clients.append(GrpcClient(f"127.0.0.1:{edge.port}", options, compression=compression))
        return clients[-1], this, edge

    yield make
    for each in clients:
        each.channel.close()


@pytest.fixture
def h2_pair(gateway, serves):
    """A gateway in front of a host that speaks HTTP/2 by hand, and a client that does."""
    clients = []

    def make(rules=FREE, text=TRUST, **how):
        this = serves(HostH2, **how)
        edge = gateway(policy_of([this], text, rules), protocols="[h2, h1]")
        clients.append(Http2(edge.port))
        return clients[-1], this, edge

    yield make
    for each in clients:
        each.socket.close()


def asks(client, data=b"x", path="/lab.Lab/Unary", fields=(), end=True):
    """One call by hand, and its answer when it is whole."""
    stream = client.begin("POST", path, (*ASKS, *fields), end=False)
    client.body(stream, message(data), end=end)
    if end:
        client.until(lambda: client.answers[stream].ended or client.answers[stream].reset is not None)
    return client.answers[stream] if end else stream


def last_access(edge, count=1):
    """The access-log line of the latest of `count` calls."""
    wait_until(lambda: len(edge.access()) >= count, what=edge.access)
    return json.loads(edge.access()[count - 1])


# ---- interop: client and server through the gateway ----


@pytest.mark.parametrize("size", [0, 1, 65531, 65536, 4 << 20])
def test_grpc__unary_of_all_sizes(grpc_pair, size):
    client, this, _ = grpc_pair(unary=lambda asked, context: asked)
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    answer, call = client.unary(data)
    assert answer == data and call.code() == Code.OK and len(this.called) == 1


def test_grpc__server_client_and_both_sides_stream(grpc_pair):
    client, _, _ = grpc_pair(
        server=lambda asked, context: (asked * n for n in range(200)),
        client=lambda each, context: b",".join(each),
        both=lambda each, context: (b"<" + one + b">" for one in each),
    )
    many = [b"%d" % n for n in range(500)]
    assert list(client.server(b"ab")) == [b"ab" * n for n in range(200)]
    assert client.client(many)[0] == b",".join(many)
    assert client.client([])[0] == b""
    assert list(client.both(iter(many))) == [b"<" + one + b">" for one in many]
    assert list(client.both(iter([]))) == []


def test_grpc__ping_pong_and_megabytes_each_way_on_one_stream(grpc_pair):
    client, _, _ = grpc_pair(both=lambda each, context: (one for one in each))
    says = queue.Queue()
    answers = client.both(iter(says.get, None))
    for size in (0, 1, 70000, 1 << 20, 3):
        says.put(bytes(size))
        assert next(answers) == bytes(size)
    says.put(None)
    assert list(answers) == [] and answers.code() == Code.OK


def test_grpc__a_stream_without_a_message_ends_in_a_frame_of_its_own(h2_pair):
    """gRPC asks for an empty DATA frame then. Servers in Go know no other end, and wait."""
    client, this, _ = h2_pair(at_end=lambda asked: unary(b"none"))
    stream = client.begin("POST", "/lab.Lab/Client", ASKS, end=False)
    client.connection.end_stream(stream)
    client.flush()
    assert client.answer(stream).body == message(b"none")
    assert [(each.alone, each.body) for each in this.requests] == [(False, b"")]
    client.ask(path="/plain")
    assert this.requests[1].alone, "and what has no body says so in its head"


def test_grpc__a_client_that_waits_for_the_first_metadata_gets_it_before_anything_else(grpc_pair):
    def slowly(each, context):
        context.send_initial_metadata((("x-ready", "yes"),))
        yield from each

    client, _, _ = grpc_pair(both=slowly)
    says = queue.Queue()
    answers = client.both(iter(says.get, None))
    assert dict(answers.initial_metadata())["x-ready"] == "yes"
    says.put(b"a")
    assert next(answers) == b"a"
    says.put(None)
    assert list(answers) == []


def test_grpc__metadata_passes_both_ways_text_and_binary(grpc_pair):
    raw = bytes(range(256))

    def tells(asked, context):
        context.send_initial_metadata((("x-first", "1"), ("x-first", "2"), ("x-raw-bin", raw)))
        context.set_trailing_metadata((("x-last", "a"), ("x-last", "b"), ("x-sum-bin", raw * 8), ("set-cookie", "c=1"), ("authorization", "d")))
        return asked

    client, this, _ = grpc_pair(unary=tells)
    _, call = client.unary(b"x", metadata=(("x-mine", "m"), ("x-mine-bin", raw)))
    assert [value for key, value in call.initial_metadata() if key == "x-first"] == ["1", "2"]
    assert dict(call.initial_metadata())["x-raw-bin"] == raw
    # All fields pass: gRPC metadata may have names that HTTP/1 does not allow in trailers.
    assert call.trailing_metadata() == (("x-last", "a"), ("x-last", "b"), ("x-sum-bin", raw * 8), ("set-cookie", "c=1"), ("authorization", "d"))
    assert this.called[0].metadata["x-mine"] == "m" and this.called[0].metadata["x-mine-bin"] == raw


@pytest.mark.parametrize("code", [code for code in Code if code is not Code.OK])
def test_grpc__every_status_and_its_message_pass(grpc_pair, code):
    client, this, edge = grpc_pair(H2 + "maxRetries: 0", unary=lambda asked, context: context.abort(code, "weil's so ist: \u00fc %\n"))
    error = client.failure()
    assert (error.code(), error.details()) == (code, "weil's so ist: \u00fc %\n") and len(this.called) == 1
    line = last_access(edge)
    assert line["status"] == 200 and line["grpc_status"] == code.name


@pytest.mark.parametrize("path", ["/lab.Lab/Nothing", "/nobody.Knows/It"])
def test_grpc__unimplemented_is_the_servers_to_say(grpc_pair, path):
    client, _, edge = grpc_pair(unary=lambda asked, context: asked)
    assert client.failure(method=path).code() == Code.UNIMPLEMENTED
    assert last_access(edge)["reason"] != "no_route"


@pytest.mark.parametrize("how", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_grpc__compression_is_between_client_and_server(grpc_pair, how):
    client, _, edge = grpc_pair(unary=lambda asked, context: asked, compression=how)
    assert client.unary(bytes(1 << 20))[0] == bytes(1 << 20)
    assert last_access(edge)["bytes"] < 100_000


def test_grpc__messages_of_one_call_are_compressed_or_not_as_each_side_likes(grpc_pair):
    def streams(asked, context):
        context.set_compression(grpc.Compression.Gzip)
        yield asked
        context.disable_next_message_compression()
        yield asked

    client, _, edge = grpc_pair(unary=lambda asked, context: asked, server=streams)
    large = bytes(100_000)
    assert client.unary(large, compression=grpc.Compression.Gzip)[0] == large
    assert client.unary(large, compression=grpc.Compression.NoCompression)[0] == large
    assert list(client.server(large)) == [large, large]
    assert 100_000 < last_access(edge, 3)["bytes"] < 150_000  # one of two


def test_grpc__the_flag_of_a_compressed_message_passes_as_it_is(h2_pair):
    packed = b"\1" + (9).to_bytes(4, "big") + b"squeezed!"
    client, this, _ = h2_pair(at_end=lambda asked: Answer(fields=(GRPC, ("grpc-encoding", "own")), body=asked.body + message(b"plain"), trailers=(("grpc-status", "0"),)))
    stream = client.begin("POST", "/lab.Lab/Unary", (*ASKS, ("grpc-encoding", "own"), ("grpc-accept-encoding", "own, identity")), end=False)
    client.body(stream, packed)
    answer = client.answer(stream)
    assert answer.body == packed + message(b"plain") and answer.fields["grpc-encoding"] == "own"
    assert (this.requests[0].field("grpc-encoding"), this.requests[0].field("grpc-accept-encoding")) == ("own", "own, identity")


def test_grpc__metadata_of_a_stream_passes_both_ways(grpc_pair):
    raw = bytes(range(256))

    def tells(each, context):
        context.send_initial_metadata((("x-first", "1"),))
        yield from each
        context.set_trailing_metadata((("x-sum-bin", raw),))
        context.set_code(Code.OUT_OF_RANGE)
        context.set_details("weil's so ist: \u00fc %\n")

    client, this, _ = grpc_pair(both=tells)
    answers = client.both(iter([b"a", b"b"]), metadata=(("x-mine-bin", raw),))
    came = []
    with pytest.raises(grpc.RpcError):
        came.extend(answers)
    assert dict(answers.initial_metadata())["x-first"] == "1" and dict(answers.trailing_metadata())["x-sum-bin"] == raw
    assert (answers.code(), answers.details()) == (Code.OUT_OF_RANGE, "weil's so ist: \u00fc %\n")
    assert this.called[0].metadata["x-mine-bin"] == raw


def test_grpc__health_passes_through(grpc_pair):
    """grpc.health.v1: Check is unary, Watch a stream; SERVING is the field 1 with 1."""

    def watch(asked, context):
        yield b"\x08\x01"
        yield b"\x08\x02"

    client, _, _ = grpc_pair(
        unary={"/grpc.health.v1.Health/Check": lambda asked, context: b"\x08\x01"}, server={"/grpc.health.v1.Health/Watch": watch}
    )
    assert client.unary(b"", "/grpc.health.v1.Health/Check")[0] == b"\x08\x01"
    assert list(client.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=SECONDS)) == [b"\x08\x01", b"\x08\x02"]


def test_grpc__with_tls_on_both_sides(gateway, serves, authority):
    mine = authority.issue()
    credentials = grpc.ssl_server_credentials([(mine.key.read_bytes(), mine.cert.read_bytes())])
    this = serves(unary=lambda asked, context: asked, credentials=credentials)
    rules = f"tls: {{ca: {authority.cert}, serverName: a.test}}"
    edge = gateway(policy_of([this], TRUST, rules), protocols="[h2, h1]", tls=f"{{certificates: [{authority.issue().yaml}]}}")
    trusts = grpc.ssl_channel_credentials(authority.cert.read_bytes())
    name = [("grpc.ssl_target_name_override", "a.test")]
    with GrpcClient(lambda options: grpc.secure_channel(f"127.0.0.1:{edge.port}", trusts, options + name)) as client:
        assert client.unary(b"sealed")[0] == b"sealed"


# ---- deadlines and cancellation ----


def test_grpc__the_deadline_goes_out_on_every_attempt(grpc_pair):
    """The deadline that is passed on is the whole time left, not the timeout of an attempt: a stream may last longer
    than that."""
    client, this, _ = grpc_pair(FREE + "attemptTimeout: 20s", unary=Fails(Code.UNAVAILABLE, Code.UNAVAILABLE))
    assert client.unary(b"x", timeout=50)[0] == b"x"
    left = [each.left for each in this.called]
    assert len(left) == 3 and 50.2 > left[0] > left[1] > left[2] > 20
    assert [each.metadata.get("grpc-previous-rpc-attempts") for each in this.called] == [None, "1", "2"]


def test_grpc__without_a_deadline_none_goes_out(grpc_pair):
    client, this, _ = grpc_pair(unary=lambda asked, context: asked)
    assert client.unary(b"x", timeout=None)[0] == b"x"
    assert this.called[0].left > 1e9 and "x-request-deadline-ms" not in this.called[0].metadata


@pytest.mark.parametrize("word", ["99999999H", "00000050S"])
def test_grpc__deadlines_of_all_lengths_are_understood(h2_pair, word):
    client, this, _ = h2_pair(at_end=lambda asked: unary(b"y"))
    assert asks(client, fields=(("grpc-timeout", word),)).body == message(b"y")
    sent = [value for name, value in this.requests[0].fields if name == "grpc-timeout"]
    assert len(sent) == (0 if word.endswith("H") else 1), "one of ten thousand years is none"


@pytest.mark.parametrize("word", ["100000000S", "-1S", "+1S", "1", "S", "1s", "1.5S", "1 S", "", "18446744073709551616n"])
def test_grpc__what_is_no_deadline_is_not_passed_on(h2_pair, word):
    client, this, _ = h2_pair(at_end=lambda asked: unary(b"y"))
    assert asks(client, fields=(("grpc-timeout", word),)).body == message(b"y")
    assert this.requests[0].field("grpc-timeout") is None


def test_grpc__a_deadline_of_nothing_is_over_before_anybody_is_asked(h2_pair):
    client, this, edge = h2_pair(at_end=lambda asked: unary(b"y"))
    assert asks(client, fields=(("grpc-timeout", "0n"),)).fields["grpc-status"] == "4" and this.requests == []
    assert last_access(edge)["grpc_status"] == "DEADLINE_EXCEEDED"


def test_grpc__a_deadline_that_passes_is_answered_so(h2_pair):
    """By the gateway, while the host says nothing. A client would have given up by itself in the same moment."""
    client, _, edge = h2_pair(at_end=lambda asked: None)
    answer = asks(client, fields=(("grpc-timeout", "200m"),))
    assert (answer.status, answer.fields["grpc-status"], answer.body) == (200, "4", b"")
    line = last_access(edge)
    assert (line["reason"], line["status"], line["grpc_status"]) == ("deadline", 504, "DEADLINE_EXCEEDED")


def test_grpc__a_deadline_that_passes_in_the_middle_of_an_answer_ends_it_with_a_status(h2_pair):
    client, this, edge = h2_pair(at_end=lambda asked: Answer(fields=(GRPC,), body=message(b"one"), end=False))
    for count, wait in enumerate(("300m", "2S", "20S"), 1):  # on a busy machine the answer may not even have begun by then
        answer = asks(client, fields=(("grpc-timeout", wait),))
        if answer.body:
            break
    assert answer.body == message(b"one") and answer.trailers["grpc-status"] == "4"
    assert last_access(edge, count)["grpc_status"] == "DEADLINE_EXCEEDED"
    wait_until(lambda: this.requests[-1].reset == 8)


def test_grpc__a_server_that_sleeps_is_left_at_the_deadline(grpc_pair):
    """On a stream whose client goes on talking: both sides hear of it."""
    begun, gone = threading.Event(), threading.Event()

    def sleeps(each, context):
        context.add_callback(gone.set)
        begun.set()
        yield next(each)
        gone.wait(SECONDS)

    client, _, _ = grpc_pair(both=sleeps, unary=lambda asked, context: asked)
    for seconds in (0.5, 5, 30):  # on a busy machine the call may not even have begun by then
        says = queue.Queue()
        says.put(b"a")
        answers = client.both(iter(says.get, None), timeout=seconds)
        with pytest.raises(grpc.RpcError):
            list(answers)
        says.put(None)
        assert answers.code() == Code.DEADLINE_EXCEEDED
        if begun.is_set():
            break
    assert begun.is_set() and gone.wait(SECONDS)
    assert client.unary(b"after")[0] == b"after"


def test_grpc__cancelled_before_a_message_is_sent(grpc_pair):
    begun, gone = threading.Event(), threading.Event()

    def waits(each, context):
        context.add_callback(gone.set)
        begun.set()
        return b",".join(each)

    client, _, _ = grpc_pair(client=waits, unary=lambda asked, context: asked)
    says = queue.Queue()
    call = client.channel.stream_unary("/lab.Lab/Client").future(iter(says.get, None), timeout=SECONDS)
    assert begun.wait(SECONDS)
    call.cancel()
    assert gone.wait(SECONDS) and call.code() == Code.CANCELLED
    says.put(None)
    assert client.unary(b"after")[0] == b"after"


def test_grpc__cancelled_before_anything_is_answered(grpc_pair):
    begun, gone = threading.Event(), threading.Event()

    def waits(asked, context):
        context.add_callback(gone.set)
        begun.set()
        gone.wait(SECONDS)

    client, _, _ = grpc_pair(unary=waits)
    call = client.channel.unary_unary("/lab.Lab/Unary").future(b"x", timeout=SECONDS)
    assert begun.wait(SECONDS)
    call.cancel()
    assert gone.wait(SECONDS) and call.code() == Code.CANCELLED


def test_grpc__cancelled_in_the_middle_of_a_stream(grpc_pair):
    gone = threading.Event()

    def waits(asked, context):
        context.add_callback(gone.set)
        yield b"1"
        gone.wait(SECONDS)

    client, _, edge = grpc_pair(server=waits, unary=lambda asked, context: asked)
    answers = client.server()
    assert next(answers) == b"1"
    answers.cancel()
    assert gone.wait(SECONDS) and answers.code() == Code.CANCELLED
    assert client.unary(b"after")[0] == b"after"
    assert edge.metric("circuit_breaker_transitions_total", service="a") == 0


# ---- the meaning of a status for the policy ----


def test_grpc__an_answer_of_trailers_only_is_retried_by_its_code(grpc_pair):
    fails = Fails(Code.UNAVAILABLE)
    client, _, edge = grpc_pair(FREE, unary=fails)
    assert client.unary(b"x")[0] == b"x" and fails.times == 2
    edge.expect_metric(1, "http_client_retry_attempts_total", service="a")


@pytest.mark.parametrize("code", [Code.RESOURCE_EXHAUSTED, Code.INTERNAL, Code.ABORTED, Code.DEADLINE_EXCEEDED])
def test_grpc__codes_are_retried_only_where_the_policy_names_them(grpc_pair, code):
    named = Fails(code)
    other = Fails(code)
    client, _, _ = grpc_pair(
        FREE + f"endpoints: {{named: {{match: {{path: /lab.Lab/Named}}, retryOn: [{code.name}]}}}}", unary={"Named": named, "Other": other}
    )
    assert client.unary(b"x", "Named")[0] == b"x" and named.times == 2
    assert client.failure(b"x", "Other").code() == code and other.times == 1


def test_grpc__a_status_in_trailers_is_retried_while_nothing_was_delivered(h2_pair):
    """A head, no message, trailers with an error: a proxy that reads only the head takes this for a success."""
    fails = iter([Answer(fields=(GRPC, ("x-try", "1")), trailers=(("grpc-status", "14"),))])
    client, this, _ = h2_pair(at_end=lambda asked: next(fails, unary(b"fine")))
    answer = asks(client)
    assert answer.body == message(b"fine") and answer.trailers["grpc-status"] == "0" and len(this.requests) == 2


def test_grpc__a_head_that_comes_alone_waits_for_its_trailers(h2_pair):
    """In one write, so that no time passes between them."""
    client, this, _ = h2_pair(FREE + "maxRetries: 1", at_end=lambda asked: Answer(fields=(GRPC, ("x-try", "1")), trailers=(("grpc-status", "14"), ("x-end", "2"))))
    answer = asks(client)
    assert len(this.requests) == 2
    assert (answer.fields["x-try"], answer.trailers["grpc-status"], answer.trailers["x-end"]) == ("1", "14", "2")


def test_grpc__a_message_that_was_delivered_is_not_taken_back(h2_pair):
    client, this, edge = h2_pair(at_end=lambda asked: Answer(fields=(GRPC,), body=message(b"one"), end=False))
    stream = asks(client, end=False)
    client.body(stream, b"", end=True)
    client.connection.end_stream(stream)
    client.flush()
    client.until(lambda: client.answers[stream].body == message(b"one"))
    this.requests[0].connection.more(this.requests[0], trailers=(("grpc-status", "14"), ("grpc-message", "gone")))
    client.until(lambda: client.answers[stream].ended)
    assert client.answers[stream].trailers == {"grpc-status": "14", "grpc-message": "gone"} and len(this.requests) == 1
    line = last_access(edge)
    assert (line["reason"], line["grpc_status"]) == ("answer_delivered", "UNAVAILABLE")


def test_grpc__a_failure_in_trailers_opens_the_breaker_and_pays_no_budget(h2_pair):
    """Though each answer began as 200 and with a message."""
    rules = H2 + "maxRetries: 0\nbreaker: {enabled: true, mode: consecutive, failureThreshold: 3, waitDurationInOpenState: 60s}\n"
    client, this, edge = h2_pair(rules, at_end=lambda asked: unary(b"half", 14))
    for _ in range(3):
        assert asks(client).trailers["grpc-status"] == "14"
    answer = asks(client)
    assert answer.fields["grpc-status"] == "14" and answer.body == b"" and len(this.requests) == 3
    assert last_access(edge, 4)["reason"] == "breaker_open"


def test_grpc__an_answer_without_a_status_is_unknown(h2_pair):
    client, _, edge = h2_pair(at_end=lambda asked: Answer(fields=(GRPC,), body=message(b"x")))
    assert asks(client).body == message(b"x")
    assert last_access(edge)["grpc_status"] == "UNKNOWN"


NO_ANSWERS = {  # to a call of gRPC, whose client takes each for UNKNOWN
    "an empty status alone": Answer(fields=(GRPC, ("grpc-status", ""))),
    "an empty status in trailers": Answer(fields=(GRPC,), body=message(b"x"), trailers=(("grpc-status", ""),)),
    "two statuses": Answer(fields=(GRPC, ("grpc-status", "0"), ("grpc-status", "13"))),
    "two statuses in trailers": Answer(fields=(GRPC,), body=message(b"x"), trailers=(("grpc-status", "0"), ("grpc-status", "13"))),
    "and the other way round": Answer(fields=(GRPC,), body=message(b"x"), trailers=(("grpc-status", "13"), ("grpc-status", "0"))),
    "a status that comes too early": Answer(fields=(GRPC, ("grpc-status", "0")), body=message(b"x")),
    "a page": Answer(fields=(("content-type", "text/html"),), body=b"<p>hello"),
    "nothing at all": Answer(),
    "204": Answer(status=204, fields=(GRPC,)),
    "elsewhere": Answer(status=307, fields=(("location", "/x"),)),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_grpc__what_is_no_answer_of_grpc_is_a_failure(h2_pair, name):
    """It opens the breaker, and is sent again where that is asked for; else it passes as it is."""
    rules = FREE + "breaker: {enabled: true, mode: consecutive, failureThreshold: 3, waitDurationInOpenState: 60s}\nendpoints: {again: {match: {path: /again}, retryOn: [unknown]}}"
    wrong = NO_ANSWERS[name]
    client, this, edge = h2_pair(rules, at_end=lambda asked: unary(b"fine") if asked.path == "/again" and len(this.requests) == 2 else wrong)
    assert asks(client, path="/again").body == message(b"fine") and len(this.requests) == 2
    for _ in range(3):
        answer = asks(client)
        assert (answer.status, answer.body, answer.ended) == (wrong.status, wrong.body, True)
    assert last_access(edge, 2)["grpc_status"] == "UNKNOWN"
    assert asks(client).fields["grpc-message"] == "breaker_open" and len(this.requests) == 5


def test_grpc__a_success_in_the_head_does_not_hide_a_failure_in_trailers(h2_pair):
    """Though they come when the message has been delivered."""
    rules = FREE + "breaker: {enabled: true, mode: consecutive, failureThreshold: 3, waitDurationInOpenState: 60s}"
    client, this, _ = h2_pair(rules, at_end=lambda asked: Answer(fields=(GRPC, ("grpc-status", "0")), body=message(b"x"), end=False))
    for number in range(3):
        stream = client.begin("POST", "/lab.Lab/Unary", ASKS, end=False)
        client.body(stream, message(b"x"))
        client.until(lambda: client.answers[stream].body == message(b"x"))
        this.requests[number].connection.more(this.requests[number], trailers=(("grpc-status", "13"),))
        client.until(lambda: client.answers[stream].ended)
        assert client.answers[stream].trailers["grpc-status"] == "13"
    assert asks(client).fields["grpc-message"] == "breaker_open"


def test_grpc__a_status_that_is_said_twice_is_that_status(h2_pair):
    client, _, edge = h2_pair(at_end=lambda asked: unary(b"x", 0, ("grpc-status", "0")))
    assert asks(client).body == message(b"x")
    assert last_access(edge)["grpc_status"] == "OK"


def test_grpc__pushback_says_stop_or_when(grpc_pair):
    stop = Fails(Code.UNAVAILABLE, grpc_retry_pushback_ms="-1")
    soon = Fails(Code.UNAVAILABLE, grpc_retry_pushback_ms="300")
    client, this, edge = grpc_pair(FREE, unary={"Stop": stop, "Soon": soon})
    error = client.failure(b"x", "Stop")
    assert error.code() == Code.UNAVAILABLE and stop.times == 1
    assert client.unary(b"x", "Soon")[0] == b"x" and soon.times == 2
    wait_until(lambda: edge.log_lines("reason=hint"), what=edge.log)
    line = edge.log_lines("reason=hint")[0]
    assert "grpc_status=UNAVAILABLE" in line and "error.type=UNAVAILABLE" in line


def test_grpc__attempts_of_a_layer_above_are_counted_on(grpc_pair):
    client, this, _ = grpc_pair(FREE, unary=Fails(Code.UNAVAILABLE))
    client.unary(b"x", metadata=(("grpc-previous-rpc-attempts", "2"),))
    assert [each.metadata["grpc-previous-rpc-attempts"] for each in this.called] == ["2", "3"]


# ---- requests that are still coming ----


def test_grpc__a_stream_is_sent_again_from_what_was_kept_and_goes_on(h2_pair):
    """The first attempt fails while the client still sends: the second attempt gets all earlier bytes, and the later
    ones."""
    refused = []

    def at_head(asked):
        if not refused:
            refused.append(asked)
        return None

    client, this, _ = h2_pair(at_head=at_head, at_end=lambda asked: unary(b"%d" % len(asked.body)))
    stream = client.begin("POST", "/lab.Lab/Client", ASKS, end=False)
    client.body(stream, message(b"one"), end=False)
    wait_until(lambda: this.requests and this.requests[0].body == message(b"one"))
    this.requests[0].connection.answer(this.requests[0], trailers_only(14))
    wait_until(lambda: len(this.requests) == 2 and this.requests[1].body == message(b"one"))
    client.body(stream, message(b"two"), end=True)
    client.until(lambda: client.answers[stream].ended)
    assert this.requests[1].body == message(b"one") + message(b"two")
    assert client.answers[stream].trailers["grpc-status"] == "0" and len(this.requests) == 2


def test_grpc__what_is_too_much_to_keep_streams_and_is_not_sent_again(h2_pair):
    client, this, edge = h2_pair(FREE, TRUST + "replay: {perRequest: 4KiB}", at_end=lambda asked: trailers_only(14))
    answer = asks(client, bytes(100_000))
    assert answer.fields["grpc-status"] == "14" and len(this.requests) == 1
    assert len(this.requests[0].body) == 100_005
    assert last_access(edge)["reason"] == "not_replayable"


def test_grpc__a_refused_stream_is_sent_again_with_all_that_has_come(h2_pair):
    client, this, edge = h2_pair(H2, at_head=lambda asked: Refuse() if len(this.requests) == 1 else None, at_end=lambda asked: unary(asked.body))
    assert asks(client, b"pay").body == message(message(b"pay"))
    assert len(this.requests) == 2


def test_grpc__a_call_whose_connection_is_lost_is_not_sent_twice(h2_pair):
    """The policy does not say that the call may run twice."""
    client, this, _ = h2_pair(at_end=lambda asked: Close())
    assert asks(client).fields["grpc-status"] == "14" and len(this.requests) == 1


def test_grpc__a_connection_that_is_lost_behind_the_head_ends_in_a_status(h2_pair):
    client, this, edge = h2_pair(at_end=lambda asked: Answer(fields=(GRPC,), body=message(b"one"), end=False))
    stream = client.begin("POST", "/lab.Lab/Server", ASKS, end=False)
    client.body(stream, message(b"x"), end=True)
    client.until(lambda: client.answers[stream].body == message(b"one"))
    this.connections[0].close()
    client.until(lambda: client.answers[stream].ended)
    assert client.answers[stream].trailers["grpc-status"] == "14" and client.answers[stream].reset is None
    line = last_access(edge)
    assert (line["reason"], line["grpc_status"]) == ("answer_delivered", "UNAVAILABLE")


def test_grpc__silence_is_no_failure_of_a_stream(grpc_pair):
    """bodyTimeout and idleTimeout apply to peers that send or read too slowly; between two messages a stream may be
    silent."""
    client, this, edge = grpc_pair(both=lambda each, context: (one for one in each))
    says = queue.Queue()
    answers = client.both(iter(says.get, None))
    says.put(b"first")
    assert next(answers) == b"first"  # from here on the connection is not idle
    edge.reload(policy_of([this], TRUST + "idleTimeout: 500ms\nbodyTimeout: 500ms\nstreamIdleTimeout: 60s", H2))
    wait_until(lambda: edge.log_lines("policy reloaded"), what=edge.log)
    for _ in range(2):
        threading.Event().wait(1.5)
        says.put(b"a")
        assert next(answers) == b"a"
    says.put(None)
    assert list(answers) == [] and answers.code() == Code.OK


def test_grpc__a_stream_that_is_silent_for_too_long_is_ended(h2_pair):
    client, this, _ = h2_pair(text=TRUST + "streamIdleTimeout: 400ms", at_end=lambda asked: None)
    stream = asks(client, end=False)
    client.until(lambda: client.answers[stream].reset is not None or client.answers[stream].ended)
    assert client.answers[stream].reset == 8
    wait_until(lambda: this.requests[0].reset == 8)


# ---- our own answers ----


def test_grpc__calls_are_counted_by_the_protocol_of_each_side(h2_pair, gateway, host):
    """Two gateways: behind the second one hosts speak HTTP/1."""
    client, this, edge = h2_pair(at_end=lambda asked: unary(b"y") if asked.path.startswith("/lab") else Answer())
    assert asks(client).trailers["grpc-status"] == "0"
    assert client.ask().status == 200 and edge.ask().status == 200 and edge.ask().status == 200
    plain = gateway(policy_of([host()]))
    assert plain.ask().status == 200
    for each, side, counts in (
        (edge, "clients", {"h1": 2, "h2": 1, "grpc": 1}),
        (edge, "hosts", {"h1": 0, "h2": 3, "grpc": 1}),
        (plain, "clients", {"h1": 1, "h2": 0, "grpc": 0}),
        (plain, "hosts", {"h1": 1, "h2": 0, "grpc": 0}),
    ):
        for protocol, count in counts.items():
            each.expect_metric(count, "becalm_protocol_requests_total", side=side, protocol=protocol)
        state = json.loads(ask(each.admin, path="/api/state", host=f"127.0.0.1:{each.admin}").body)
        assert state["services"][0]["endpoints"][0]["protocols"][side] == counts
        assert state["http2"] == {"clientsEnded": {}, "hostsEnded": {}}


def keyed(path):
    return (("idempotency-key", f'"{path}"'),)


@pytest.mark.parametrize("in_redis", [False, True])
def test_grpc__an_answer_that_is_stored_for_its_key_has_its_trailers(h2_pair, request, in_redis):
    """Of one that has a message, and of one of trailers only; text and binary, twice the same name."""
    more = (("x-sum-bin", "AAEC"), ("x-two", "1"), ("x-two", "2"), ("grpc-message", "b%C3%A4h"))
    answers = {"/lab.Lab/Unary": unary(b"made" * 9000, 0, *more[:3]), "/lab.Lab/No": trailers_only(9, more[3])}
    text = TRUST + request.getfixturevalue("redis_of") if in_redis else TRUST
    client, this, edge = h2_pair(H2 + "idempotencyKey: enforced\n", text=text, at_end=lambda asked: answers[asked.path])
    for path, code, body in (("/lab.Lab/Unary", "0", message(b"made" * 9000)), ("/lab.Lab/No", "9", b"")):
        first = asks(client, path=path, fields=keyed(path))
        again = asks(client, path=path, fields=keyed(path))
        assert "replayed" in again.fields["proxy-status"] and "replayed" not in first.fields.get("proxy-status", "")
        for each in (first, again):
            where = each.trailers if body else each.fields
            assert (each.body, where["grpc-status"], each.ended) == (body, code, True), each
            assert "content-length" not in each.fields
        assert again.all_trailers == first.all_trailers and (not body or ("x-sum-bin", "AAEC") in again.all_trailers)
    assert [each.path for each in this.requests] == list(answers)
    assert last_access(edge, 2)["grpc_status"] == "OK" and last_access(edge, 4)["grpc_status"] == "FAILED_PRECONDITION"


@pytest.mark.parametrize("rule", ["required", "enforced"])
def test_grpc__what_is_kept_for_a_key_depends_on_its_status(h2_pair, rule):
    """4xx is an answer; 5xx may have been done, so it is one where the service knows no keys; 401 and 403: nothing was done."""
    client, this, edge = h2_pair(H2 + f"maxRetries: 0\nidempotencyKey: {rule}\n", at_end=lambda asked: trailers_only(int(asked.path[1:])))
    kept = {code: code in (0, 3, 5, 6, 9, 11) or (rule == "enforced" and code not in (7, 16)) for code in range(17)}
    for code in kept:
        got = [asks(client, path=f"/{code}", fields=keyed(code)) for _ in range(2)]
        assert [each.fields["grpc-status"] for each in got] == [str(code)] * 2
        assert ("replayed" in got[1].fields.get("proxy-status", "")) == kept[code], code
    counts = [len([each for each in this.requests if each.path == f"/{code}"]) for code in kept]
    assert counts == [1 if kept[code] else 2 for code in kept]


def test_grpc__no_route_is_unimplemented(gateway, serves):
    this = serves(HostH2)
    text = policy_of([this], TRUST, H2).replace("prefix: /", "prefix: /lab.Lab/")
    edge = gateway(text, protocols="[h2, h1]")
    with GrpcClient(f"127.0.0.1:{edge.port}") as client:
        error = client.failure(method="/other.Other/Get")
    assert error.code() == Code.UNIMPLEMENTED and error.details() == "no_route"
    assert (last_access(edge)["status"], last_access(edge)["grpc_status"]) == (404, "UNIMPLEMENTED")


def test_grpc__a_host_that_is_not_there_is_unavailable(grpc_pair):
    client, this, edge = grpc_pair(H2 + "maxRetries: 0\nrestart: {enabled: false}", unary=lambda asked, context: asked)
    this.close()
    error = client.failure()
    assert error.code() == Code.UNAVAILABLE
    line = last_access(edge)
    assert line["grpc_status"] == "UNAVAILABLE" and line["status"] in (502, 503)
    edge.expect_metric(1, "http_server_requests_total", service="a", code=str(line["status"]))


def test_grpc__what_the_gate_sheds_is_unavailable(grpc_pair):
    begun, go = threading.Event(), threading.Event()

    def waits(asked, context):
        begun.set()
        go.wait(SECONDS)
        return asked

    client, _, edge = grpc_pair(H2 + "limit: {kind: fixed, max: 1}\ngate: {maxQueue: 0}", unary=waits)
    first = client.channel.unary_unary("/lab.Lab/Unary").future(b"x", timeout=SECONDS)
    assert begun.wait(SECONDS)
    error = client.failure()
    go.set()
    assert (error.code(), error.details()) == (Code.UNAVAILABLE, "shed") and first.result(SECONDS) == b"x"
    edge.expect_metric(1, "becalm_shed_total", service="a", reason="shed")


def test_grpc__a_call_for_which_there_is_no_connection_is_resource_exhausted(h2_pair):
    """Its host takes one stream at a time, and that is in use for as long as the test likes."""
    rules = H2 + "attemptTimeout: 60s\nmaxRetries: 0\nendpoints: {soon: {match: {path: /lab.Lab/Unary}, attemptTimeout: 300ms}}"
    busy = Answer(fields=(GRPC,), body=message(b"one"), end=False)
    client, _, edge = h2_pair(rules, TRUST + "pool: {maxPerHost: 1}", streams=1, at_end=lambda asked: busy)
    first = client.begin("POST", "/lab.Lab/Server", ASKS, end=False)
    client.body(first, message(b"x"), end=True)
    client.until(lambda: client.answers[first].body == message(b"one"))
    answer = asks(client)
    assert answer.fields["grpc-status"] == "8" and answer.fields["grpc-message"] == "no_connection"
    line = last_access(edge)
    assert (line["reason"], line["grpc_status"], line["status"]) == ("no_connection", "RESOURCE_EXHAUSTED", 503)
    edge.expect_metric(1, "http_server_requests_total", service="a", code="503")


# ---- worked policies ----
