# SPDX-License-Identifier: MIT
"""Traces: traceparent as W3C Trace Context has it, a span for each call and attempt, and their way to a collector."""

import json
import os
import pathlib
import re
import sys
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree

import grpc
import pytest
import trace_picture
from conftest import ROOT, free_port, policy_of
from grpc_lab import Fails, GrpcClient, serves  # noqa: F401
from host import Reply, wait_until
from otlp import CLIENT, PATH, SERVER, Collector, tree
from wire import Wire

sys.path.insert(0, str(ROOT / "tests/cli"))

import prometheus_server  # noqa: E402

ID, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{ID}-{SPAN}-01"
DRAWN = (
    "A bar for each call and each attempt, from its beginning to its end, below the one that it belongs to: two attempts of the outer gateway are answered 503; "
    "its second retry reaches a slow host by way of the inner one, which sends a hedge after 50 ms, takes its answer and cancels the other."
)
FREE = "initialDelay: 1ms\nbudget: {kind: none}\nlimit: {kind: none}\nbreaker: {enabled: false}"


def context(request):
    """The trace and the span that a host was told of, and whether it is sampled."""
    (value,) = request.all("traceparent")
    found = re.fullmatch("00-([0-9a-f]{32})-([0-9a-f]{16})-0([0-3])", value)
    assert found and set(found[1]) != {"0"} and set(found[2]) != {"0"}, value
    return found[1], found[2], int(found[3])


@pytest.fixture
def collector():
    made = []

    def make(**more):
        made.append(Collector(**more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def tracing(collector, more="sample: 100%"):
    return f'tracing: {{endpoint: "{collector.endpoint}", {more}}}'


# traceparent


def test_without_a_collector_traceparent_passes_as_it_came_and_none_is_made(pair):
    gateway, host = pair()
    for fields in ({}, {"traceparent": PARENT, "tracestate": "a=b"}, {"traceparent": "mine"}):
        gateway.ask(fields=fields)
        got = host.requests[-1]
        assert [got.get(name) for name in ("traceparent", "tracestate")] == [fields.get("traceparent"), fields.get("tracestate")]


def test_the_access_log_names_the_trace(pair, collector):
    """That the host is told of, sampled or not, and whether or not the gateway takes part in it."""
    unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    plain, _ = pair("log: {access: json}")
    for fields in ({}, {"traceparent": PARENT}, {"traceparent": "mine"}):
        plain.ask(fields=fields)
    plain.end()
    assert [json.loads(line).get("trace_id") for line in plain.access()] == [None, ID, None]
    traced, host = pair("log: {access: json}\n" + tracing(collector(), "sample: 50%"))
    for fields in [{}] * 8 + [{"traceparent": PARENT}, {"traceparent": unsampled}]:
        traced.ask(fields=fields)
    traced.end()
    assert [json.loads(line)["trace_id"] for line in traced.access()] == [context(got)[0] for got in host.requests]
    assert host.requests[-1].get("traceparent") == unsampled


def test_a_trace_is_continued_or_begun(pair, collector):
    there = collector()
    gateway, host = pair(tracing(there))
    cases = [  # the incoming traceparent, and whether it is continued
        ({}, False),
        ({"traceparent": PARENT, "tracestate": "a=b"}, True),
        ({"TraceParent": f"00-{ID}-{SPAN}-03"}, True),
        ({"traceparent": f"cc-{ID}-{SPAN}-01-more", "tracestate": "a=b"}, True),
        ({"traceparent": f"ff-{ID}-{SPAN}-01", "tracestate": "a=b"}, False),
        ({"traceparent": f"00-{ID}-{SPAN}-01-more", "tracestate": "a=b"}, False),
        ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, False),
        ([("traceparent", PARENT), ("traceparent", PARENT), ("tracestate", "a=b")], False),
        ({"tracestate": "a=b"}, False),
    ]
    for fields, continued in cases:
        gateway.ask(fields=fields)
        trace, span, flags = context(host.requests[-1])
        assert (trace == ID) == continued and span != SPAN
        assert flags == (3 if "TraceParent" in fields else 1)
        said = dict(fields).get("tracestate")
        assert host.requests[-1].get("tracestate") == (said if continued else None)
    gateway.end()
    calls = [each for each in there.spans() if each.kind == SERVER]
    assert [each.parent for each in calls] == [SPAN if continued else None for _, continued in cases]
    assert len({each.trace for each in calls}) == 1 + sum(not continued for _, continued in cases)
    assert calls[1].data["traceState"] == "a=b" and "traceState" not in calls[4].data


def test_what_is_not_sampled_is_passed_on_so_and_not_exported(pair, collector):
    there = collector()
    gateway, host = pair(tracing(there, "sample: 0%"))
    gateway.ask(fields={"traceparent": f"00-{ID}-{SPAN}-00", "tracestate": "a=b"})
    assert context(host.requests[0]) == (ID, SPAN, 0) and host.requests[0].get("tracestate") == "a=b"
    gateway.ask(fields={"X-Request-Id": "mine"})
    assert context(host.requests[1])[2] == 0 and context(host.requests[1])[0] != ID
    gateway.ask(fields={"traceparent": PARENT, "X-Request-Id": "mine"})
    gateway.end()
    assert [each.trace for each in there.spans()] == [ID, ID]


def test_the_trace_that_begins_here_has_the_id_of_the_request(pair, collector):
    gateway, host = pair(tracing(collector()))
    gateway.ask()
    assert context(host.requests[0])[0] == host.requests[0].get("x-request-id")


@pytest.mark.parametrize(("whose", "source", "continued"), [("trusted", "127.0.0.9", True), ("trusted", "127.0.0.8", False), ("none", "127.0.0.9", False)])
def test_whose_trace_is_continued_can_be_chosen_and_others_are_linked(pair, collector, whose, source, continued):
    there = collector()
    gateway, host = pair(tracing(there, f"sample: 100%, parent: {whose}") + "\ntrust: [127.0.0.9]")
    with gateway.wire(source=source) as wire:
        wire.ask(fields={"traceparent": PARENT, "tracestate": "a=b"})
    assert (context(host.requests[0])[0] == ID) == continued
    assert host.requests[0].get("tracestate") == ("a=b" if continued else None)
    gateway.end()
    call = there.spans()[0]
    links = [(each["traceId"], each["spanId"]) for each in call.data.get("links", [])]
    assert (call.parent, links) == ((SPAN, []) if continued else (None, [(ID, SPAN)]))


def test_nothing_goes_to_strangers_and_their_attempts_are_spans_all_the_same(pair, collector):
    there = collector()
    gateway, host = pair(tracing(there), rules="send: []")
    gateway.ask(fields={"traceparent": PARENT, "tracestate": "a=b"})
    gateway.ask()
    assert not any(each.all(name) for each in host.requests for name in ("traceparent", "tracestate"))
    gateway.end()
    assert [each.kind for each in there.spans()] == [SERVER, CLIENT] * 2


# Spans


def test_a_call_with_two_retries_span_by_span(pair, collector):
    there = collector()
    gateway, host = pair(tracing(there, "sample: 100%, service: edge"), rules=FREE + "\nendpoints: {charge: {match: {path: /charge}}}")
    host.on("/charge", Reply(503, end="close"), Reply(end="reset", raw=b"HTTP/1.1 2"), Reply(200))
    assert gateway.ask(path="/charge", host="shop.test:80", fields={"traceparent": PARENT, "User-Agent": "me/1"}).status == 200
    gateway.end()
    _, (call,), children = tree(there.spans())
    attempts = children(call)
    assert (call.trace, call.parent, call.kind, call.name) == (ID, SPAN, SERVER, "GET /charge")
    assert call.resource["service.name"] == "edge" and call.resource["service.instance.id"]
    expected = {
        "http.request.method": "GET",
        "url.path": "/charge",
        "url.scheme": "http",
        "http.route": "/charge",
        "server.address": "shop.test",
        "server.port": 80,
        "client.address": "127.0.0.1",
        "user_agent.original": "me/1",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
        "http.response.status_code": 200,
        "becalm.service": "a",
        "becalm.endpoint": "charge",
        "becalm.reason": "ok",
        "becalm.attempts": 3,
        "becalm.request_id": host.requests[0].get("x-request-id"),
    }
    assert call.attributes == expected and not call.failed
    assert [(each.name, each.kind, each.failed) for each in attempts] == [("GET", CLIENT, True), ("GET", CLIENT, True), ("GET", CLIENT, False)]
    assert [each.get("http.request.resend_count") for each in attempts] == [None, 1, 2]
    assert [each.get("http.response.status_code") for each in attempts] == [503, None, 200]
    assert [each.get("error.type") for each in attempts] == ["503", "broken", None]
    assert [each.get("becalm.outcome") for each in attempts] == ["rejected", "broken", "ok"]
    assert {(each.get("server.address"), each.get("server.port"), each.get("url.full")) for each in attempts} == {
        ("127.0.0.1", host.port, f"http://127.0.0.1:{host.port}/charge")
    }
    assert {(each.get("becalm.service"), each.get("becalm.endpoint"), each.trace) for each in attempts} == {("a", "charge", ID)}
    # The spans of the host are children of the attempt.
    assert [context(each)[1] for each in host.requests] == [each.id for each in attempts]
    assert all(call.start <= each.start and each.end <= call.end for each in attempts)
    assert all(before.end <= after.start for before, after in zip(attempts, attempts[1:]))


def test_hedges_are_marked_and_whom_nobody_needed_has_not_failed(gateway, host, collector):
    there, slow, quick = collector(), host(), host()
    slow.on("/", Reply(when=lambda: False))
    rules = "attemptTimeout: 200s\ndeadline: 300s\nhedge: {enabled: true, delay: 50ms, percent: 100, cap: 100}"
    edge = gateway(policy_of([slow, quick], tracing(there), rules))
    while not any(each.get("x-envoy-attempt-count") == "1" for each in slow.requests):  # until the slow one was asked first
        assert edge.ask().status == 200
    edge.end()
    _, roots, children = tree(there.spans())
    first, hedge = next(children(each) for each in roots if children(each)[0].get("server.port") == slow.port)
    assert (first.get("becalm.outcome"), first.failed, first.get("becalm.hedge")) == ("cancelled", False, None)
    assert (hedge.get("becalm.outcome"), hedge.get("becalm.hedge"), hedge.get("http.request.resend_count")) == ("ok", True, 1)
    assert first.get("server.port") == slow.port and hedge.get("server.port") == quick.port
    assert first.start < hedge.start < first.end
    assert context(slow.requests[0])[1] == first.id and hedge.id in [context(each)[1] for each in quick.requests]


def test_through_two_gateways_each_span_hangs_below_the_right_attempt(gateway, host, collector):
    """The first retries twice, the second sends a hedge. With BECALM_PICTURE=FILE the trace is drawn there: docs/images/trace.svg."""
    there, slow, quick = collector(), host(), host()
    rules = "attemptTimeout: 200s\ndeadline: 300s\nhedge: {enabled: true, delay: 50ms, percent: 100, cap: 100, nonFatal: []}"
    inner = gateway(policy_of([slow, quick], tracing(there, "sample: 0%, service: inner"), rules))
    retries = FREE.replace("1ms", "15ms") + "\njitter: none"
    outer = gateway(policy_of([], tracing(there, "sample: 100%, service: outer"), retries).replace("hosts: []", f"hosts: [127.0.0.1:{inner.port}]"))
    answers = []
    both = lambda _: answers.pop(0) if answers else Reply(200, delay=0.02)  # noqa: E731
    slow.on("/pay", both)
    quick.on("/pay", both)

    def outcomes(spans):
        """Of the attempts of the second gateway, call by call."""
        _, (root,), children = tree(spans)
        below = [each for attempt in children(root) for each in children(attempt)]
        return [[each.get("becalm.outcome") for each in children(call)] for call in below]

    def traces():
        """{id: spans}, once all that hosts were told of has come."""
        told = {context(each)[1] for each in slow.requests + quick.requests}
        wait_until(lambda: told <= {each.id for each in there.spans()} and {each.parent for each in there.spans()} - {None} <= {each.id for each in there.spans()})
        spans = there.spans()
        assert told == {each.id for each in spans if each.kind == CLIENT and each.resource["service.name"] == "inner"}
        return {trace: [each for each in spans if each.trace == trace] for trace in dict.fromkeys(each.trace for each in spans)}

    wanted = [["rejected"], ["rejected"], ["cancelled", "ok"]]
    shown = []
    for _ in range(20):  # on a busy machine a hedge may be sent for an answer that was not meant to be slow
        answers[:] = [Reply(503, delay=0.02), Reply(503, delay=0.02), Reply(when=lambda: False)]
        assert outer.ask(path="/pay").status in (200, 503)
        shown = [spans for spans in traces().values() if outcomes(spans) == wanted]
        if shown:
            break
    known, (root,), children = tree(shown[0])
    assert len(known) == 1 + 3 + 3 + 4
    assert root.resource["service.name"] == "outer" and root.get("becalm.attempts") == 3
    assert [[(each.kind, each.resource["service.name"]) for each in children(attempt)] for attempt in children(root)] == [[(SERVER, "inner")]] * 3
    picture = trace_picture.draw(list(known.values()), "One call through two gateways, span by span", DRAWN)
    texts = [each.text for each in xml.etree.ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert [each for each in texts if each.startswith(("outer", "inner"))] == [
        "outer: call GET /",
        *("outer: first attempt", "inner: call GET /", "inner: first attempt"),
        *("outer: retry 1", "inner: call GET /", "inner: first attempt"),
        *("outer: retry 2", "inner: call GET /", "inner: first attempt", "inner: hedge 1"),
    ]
    if "BECALM_PICTURE" in os.environ:
        pathlib.Path(os.environ["BECALM_PICTURE"]).write_text(picture)


def test_a_call_that_fails_says_why_and_one_whose_client_left_has_no_status(pair, collector):
    there = collector()
    gateway, host = pair(tracing(there), rules="maxRetries: 0\nattemptTimeout: 200s\ndeadline: 300s")
    host.on("/bad?token=secret", Reply(500)).on("/none", Reply(404)).on("/hang", Reply(when=lambda: False))
    gateway.ask(path="/bad?token=secret")
    gateway.ask(path="/none")
    with gateway.wire() as wire:
        wire.send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        host.wait(1, "/hang")
        wire.reset()
    gateway.expect_metric(1, "http_server_requests_total", code="499")
    gateway.end()
    calls = [each for each in there.spans() if each.kind == SERVER]
    assert [(each.get("error.type"), each.get("http.response.status_code"), each.get("url.query")) for each in calls] == [
        ("500", 500, None),
        (None, 404, None),
        ("cancelled", None, None),
    ]
    attempts = [each for each in there.spans() if each.kind == CLIENT]
    assert [each.get("error.type") for each in attempts] == ["500", "404", None]
    assert "secret" not in json.dumps([each.data for each in there.spans()])


def test_a_wait_in_the_gate_is_an_event(pair, collector):
    there = collector()
    gateway, host = pair(tracing(there), rules="limit: {kind: fixed, max: 1, min: 1}\ngate: {maxQueueTime: 60s, targetQueueTime: 60s}\nattemptTimeout: 200s\ndeadline: 300s")
    gate = []
    host.on("/", Reply(when=lambda: gate))
    with gateway.wire() as one, gateway.wire() as other:
        one.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        host.wait(1)
        other.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        gateway.expect_metric(1, "becalm_pending_requests")
        gate.append(True)
        assert [each.answer().status for each in (one, other)] == [200, 200]
    gateway.end()
    calls = [each for each in there.spans() if each.kind == SERVER]
    assert [list(each.events) for each in calls] == [[], ["becalm.gate"]]
    event = calls[1].events["becalm.gate"]
    assert calls[1].start < int(event["timeUnixNano"]) <= calls[1].end and event["attributes"][0]["value"]["doubleValue"] > 0


def test_grpc_has_its_own_names(gateway, serves, collector):  # noqa: F811
    there = collector()
    server = serves(unary=Fails(grpc.StatusCode.UNAVAILABLE))
    edge = gateway(policy_of([server], tracing(there), FREE + "\nprotocol: h2\nidempotent: true\nretryOn: [unavailable]"), protocols="[h2, h1]")
    with GrpcClient(f"127.0.0.1:{edge.port}") as client:
        assert client.unary(b"x", metadata=[("traceparent", PARENT)])[0] == b"x"
        assert client.failure(method="Nothing").code() == grpc.StatusCode.UNIMPLEMENTED
    edge.end()
    spans = there.spans()
    calls = [each for each in spans if each.kind == SERVER]
    assert [(each.name, each.get("rpc.system"), each.get("rpc.service"), each.get("rpc.method")) for each in calls] == [
        ("lab.Lab/Unary", "grpc", "lab.Lab", "Unary"),
        ("lab.Lab/Nothing", "grpc", "lab.Lab", "Nothing"),
    ]
    assert [(each.get("rpc.grpc.status_code"), each.get("error.type")) for each in calls] == [(0, None), (12, "UNIMPLEMENTED")]
    attempts = [each for each in spans if each.parent == calls[0].id]
    assert [(each.get("rpc.grpc.status_code"), each.get("error.type")) for each in attempts] == [(14, "UNAVAILABLE"), (0, None)]
    assert calls[0].get("network.protocol.version") == "2" and calls[0].parent == SPAN
    assert [each.metadata["traceparent"].split("-")[2] for each in server.called] == [each.id for each in attempts]


def test_a_call_is_joined_to_a_request_by_the_trace_that_began_with_it(gateway, host, collector):
    """The request has an id of its own and no traceparent; its program passes on nothing but the traceparent that it got."""
    there, program, payment, door = collector(), host(), host(), free_port()
    rules = "attemptTimeout: 30s, deadline: 60s"
    side = gateway(
        f"{tracing(there)}\nrole: sidecar\ntrust: [127.0.0.0/8]\nservices:\n"
        f"  self: {{hosts: ['{program.address}'], listen: {{address: '127.0.0.1:{door}', role: gateway}}, {rules}}}\n"
        f"  payment: {{hosts: ['{payment.address}'], {rules}}}\n"
    )
    done = []
    program.on("/", Reply(when=lambda: done))
    with Wire(door) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: self\r\nX-Request-Id: mine\r\nX-Request-Deadline-Ms: 25000\r\n\r\n")
        program.wait(1)
        side.ask(host="payment", fields={"traceparent": program.requests[0].get("traceparent")})
        side.ask(host="payment")
        done.append(True)
        assert wire.answer().status == 200
    joined, alone = (int(each.get("x-request-deadline-ms")) for each in payment.requests)
    assert joined <= 25000 < alone


# The collector


def test_spans_come_in_batches_by_themselves_with_the_headers_of_the_policy(pair, collector):
    there = collector()
    gateway, _ = pair(tracing(there, 'sample: 100%, headers: ["Authorization: Bearer x", "x-scope: a"]'))
    for _ in range(20):
        gateway.ask()
    assert len(there.wait_spans(40)) == 40 and len(there.requests) < 20
    assert (there.requests[0].get("authorization"), there.requests[0].get("x-scope")) == ("Bearer x", "a")
    gateway.expect_metric(40, "becalm_spans_exported_total")
    assert there.connections == 1


def test_a_collector_that_is_busy_gets_it_again_and_one_that_refuses_does_not(pair, collector):
    there = collector()
    times = []

    def busy(_):
        times.append(time.monotonic())
        return Reply(503, fields={"Retry-After": "2"})

    def rejects_one(_):
        times.append(time.monotonic())
        return Reply(200, b'{"partialSuccess": {"rejectedSpans": "1"}}')

    there.on(PATH, busy, rejects_one, Reply(400), Reply(200, b"{}"))
    gateway, _ = pair(tracing(there))
    gateway.ask()
    wait_until(lambda: len(there.requests) == 2)
    assert len({each.body for each in there.requests}) == 1 and times[1] - times[0] > 1.9  # its own wait would be at most 1 s
    gateway.expect_metric(1, "becalm_spans_exported_total")
    gateway.expect_metric(1, "becalm_spans_dropped_total", reason="refused")
    gateway.ask()
    gateway.expect_metric(3, "becalm_spans_dropped_total", reason="refused")
    gateway.ask()
    gateway.expect_metric(3, "becalm_spans_exported_total")
    wait_until(lambda: gateway.log().count("traces are exported again") == 2, what=gateway.log)  # logged after the count
    assert gateway.log().count("traces are not exported") == 2


def test_a_collector_that_hangs_or_is_gone_is_in_nobodys_way(pair, collector):
    there = collector()
    there.on(PATH, Reply(when=lambda: False))
    gateway, host = pair(tracing(there, "sample: 100%, timeout: 60s"))
    before = time.monotonic()
    for _ in range(3):
        assert gateway.ask().status == 200
    there.wait(1)  # it has an export, and hangs
    for _ in range(1000):
        assert gateway.ask().status == 200
    there.stop()
    assert gateway.ask().status == 200 and gateway.metric("becalm_spans_dropped_total") == 0
    assert host.count() == 1004 and time.monotonic() - before < 60


def test_what_finds_no_room_is_dropped_and_counted(gateway, host, collector):
    """Each span has the largest size, and the collector does not accept them."""
    there, service = collector(), host()
    there.on(PATH, Reply(when=lambda: False))
    edge = gateway(policy_of([service], tracing(there, "sample: 100%, timeout: 60s") + "\nlog: {query: true}"))
    agent = {"User-Agent": "a" * 600}
    with edge.wire() as wire:
        for _ in range(2500):
            wire.ask(path="/" + "p" * 600 + "?" + "q" * 600, host="h" * 200, fields=agent)
            if edge.metric("becalm_spans_dropped_total", reason="no_room") > 0:
                break
    assert edge.metric("becalm_spans_dropped_total", reason="no_room") > 0


def test_by_tls_the_collector_is_verified(gateway, host, collector, authority):
    service = host()
    good = collector(tls=authority.issue().server())
    edge = gateway(policy_of([service], tracing(good, f"sample: 100%, ca: {authority.cert}")))
    edge.ask()
    edge.end()
    assert len(good.spans()) == 2
    edge = gateway(policy_of([service], tracing(good, "sample: 100%")))
    edge.ask()
    wait_until(lambda: "traces are not exported" in edge.log())
    assert len(good.spans()) == 2


def test_a_reload_turns_traces_on_to_another_collector_and_off(gateway, host, collector):
    one, other, service = collector(), collector(), host()
    edge = gateway(policy_of([service]))

    def asks(policy):
        edge.reload(policy)
        edge.signal(1)

    def all_here():
        told = [context(each)[1] for each in service.requests if each.get("traceparent")]
        return sorted(told) == sorted(each.id for there in (one, other) for each in there.spans() if each.kind == CLIENT)

    edge.ask()
    assert service.requests[0].get("traceparent") is None
    for there in (one, other):
        asks(policy_of([service], tracing(there)))
        wait_until(lambda there=there: edge.ask().status == 200 and there.requests)
    wait_until(all_here)
    asks(policy_of([service]))
    wait_until(lambda: edge.ask().status == 200 and not service.requests[-1].get("traceparent"))


# Exemplars


@pytest.mark.skipif(not prometheus_server.installed(), reason="prometheus is not installed")
def test_a_prometheus_scrapes_which_trace_shows_a_duration(pair, collector, tmp_path):
    gateway, host = pair(tracing(collector()))
    gateway.ask(fields={"traceparent": PARENT})
    job = f"{{job_name: becalm, scrape_interval: 1s, static_configs: [{{targets: ['127.0.0.1:{gateway.admin}']}}]}}"
    (tmp_path / "prometheus.yml").write_text(f"global: {{}}\nscrape_configs: [{job}]\n")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with prometheus_server.configured(tmp_path, "--enable-feature=exemplar-storage") as url:

        def found():
            query = {"query": "becalm_request_duration_seconds_bucket", "start": time.time() - 3600, "end": time.time() + 3600}
            with opener.open(f"{url}/api/v1/query_exemplars?{urllib.parse.urlencode(query)}", timeout=60) as answer:
                return [each["labels"] for series in json.load(answer)["data"] for each in series["exemplars"]]

        wait_until(found)
        assert found() == [{"trace_id": ID}]
    assert "# {" not in "".join(gateway.metrics())  # only clients that ask for OpenMetrics get it
