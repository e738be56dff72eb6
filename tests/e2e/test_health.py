# SPDX-License-Identifier: MIT
"""Active health checks, with hosts that fail on order. Every wait is for an event, so a busy machine may be late."""

import json
import signal

import pytest
from certs import Authority
from grpc_lab import grpc, serves  # noqa: F401
from host import Reply, wait_until
from host_h2 import Answer, Close, HostH2, Refuse
from wire import ask

CHECK = "healthCheck: {path: /healthz, interval: 100ms, timeout: 20s, unhealthyThreshold: 2, healthyThreshold: 2}"


def policy(*hosts, check=CHECK, more=""):
    listed = ", ".join(f"'{each if isinstance(each, str) else each.address}'" for each in hosts)
    return f"services:\n  a: {{hosts: [{listed}], match: {{prefix: /}}, {check}{more}}}\n"


def told(here, index=0):
    answer = ask(here.admin, path="/api/state", host=f"127.0.0.1:{here.admin}")
    return json.loads(answer.body)["services"][0]["hosts"][index]


def reload(here, text):
    before = len(here.log_lines("policy reloaded"))
    here.reload(text)
    here.signal(signal.SIGHUP)
    wait_until(lambda: len(here.log_lines("policy reloaded")) > before, what=here.log)


def checked(here, index, result):
    """Waits until two more checks of the host have this result."""
    before = told(here, index)["healthCheck"][result]
    wait_until(lambda: told(here, index)["healthCheck"][result] >= before + 2, what=lambda: told(here, index))


def unhealthy(here, *expected):
    wait_until(lambda: [told(here, i)["unhealthy"] for i in range(len(expected))] == list(expected), what=lambda: here.log())


def test_a_host_that_fails_its_checks_gets_no_calls_until_it_passes_them_again(gateway, host):
    bad, well = host().on("/healthz", Reply(503)), host()
    here = gateway(policy(bad, well, more=", outlier: {enabled: false}"))
    unhealthy(here, True, False)
    for _ in range(20):
        assert here.ask(path="/call").status == 200
    assert bad.count("/call") == 0 and well.count("/call") == 20
    state = told(here)
    assert not state["usable"] and not state["ejected"], state
    assert state["healthCheck"]["why"] == "its status is not one of healthCheck.statuses" and state["healthCheck"]["status"] == 503
    page = here.metrics()
    assert page[f'becalm_host_healthy{{service="a",host="{bad.address}"}}'] == 0
    assert page[f'becalm_host_healthy{{service="a",host="{well.address}"}}'] == 1
    assert page[f'becalm_health_checks_total{{service="a",host="{bad.address}",result="failed"}}'] >= 2
    # The requests of health checks, which do not count as calls.
    seen = bad.got("/healthz")[0]
    assert seen.method == "GET" and seen.get("host") == bad.address and seen.get("user-agent").startswith("becalm/")
    here.expect_metric(20, "becalm_calls_total")
    bad.on("/healthz", Reply(204))
    unhealthy(here, False, False)
    wait_until(lambda: here.ask(path="/call").status == 200 and bad.count("/call") > 0)
    here.end()
    lines = here.log()
    assert lines.count(f"host fails its health checks service=a host={bad.address}") == 1, lines
    assert lines.count(f"host passes its health checks again service=a host={bad.address}") == 1, lines
    assert "all hosts fail" not in lines


def test_only_failures_in_a_row_take_a_host_out(gateway, host):
    asked = []

    def every_other(request):
        asked.append(request)
        return Reply(503 if len(asked) % 2 else 200)

    there = host().on("/healthz", every_other)
    here = gateway(policy(there, host()))
    wait_until(lambda: told(here)["healthCheck"]["failed"] >= 4 and told(here)["healthCheck"]["passed"] >= 4)
    assert not told(here)["unhealthy"] and "health checks" not in here.log()


def test_if_all_fail_their_checks_calls_go_to_them_all_the_same(gateway, host):
    one, two = host().on("/healthz", Reply(500)), host().on("/healthz", Reply(500))
    here = gateway(policy(one, two))
    unhealthy(here, True, True)
    assert told(here)["usable"] and told(here, 1)["usable"]
    wait_until(lambda: here.ask(path="/call").status == 200 and one.count("/call") > 0 and two.count("/call") > 0)
    wait_until(lambda: "all hosts fail their health checks: calls still go to them service=a" in here.log())


@pytest.mark.parametrize(
    "reply, why",
    [
        (Reply(end="hang", raw=b""), "it did not answer in time"),
        (Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n\r\n", end="close"), "its answer is not HTTP/1"),
        (Reply(raw=b"", end="close"), "it closed the connection without an answer"),
        (Reply(raw=b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 500 No\r\n\r\n", end="close"), "its status is not one of healthCheck.statuses"),
        (Reply(302, fields={"Location": "/"}), None),
        (Reply(raw=b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", end="close"), None),
    ],
    ids=["silent", "no-http", "closed", "interim-then-500", "302", "interim-then-200"],
)
def test_what_counts_as_well(gateway, host, reply, why):
    there = host().on("/healthz", reply)
    here = gateway(policy(there, check=CHECK.replace("20s", "300ms") if why == "it did not answer in time" else CHECK))
    checked(here, 0, "failed" if why else "passed")
    assert told(here)["healthCheck"].get("why") == why


def test_nobody_there_fails_by_http_and_by_tcp(gateway, host):
    gone, there = host(), host()
    gone.stop()
    for check in (CHECK, "healthCheck: {kind: tcp, interval: 100ms, timeout: 20s}"):
        here = gateway(policy(gone, there, check=check))
        unhealthy(here, True, False)
        assert told(here)["healthCheck"]["why"] == "it does not accept connections"
        here.end()


def test_statuses_and_the_host_that_is_asked_for_are_as_written(gateway, host):
    there = host().on("/healthz", Reply(418))
    here = gateway(policy(there, check=CHECK.replace("path:", "statuses: [418, 2xx], host: pay.test, path:")))
    checked(here, 0, "passed")
    assert told(here)["healthCheck"]["failed"] == 0 and there.got("/healthz")[0].get("host") == "pay.test"


def test_what_is_known_outlives_a_reload_and_ends_with_its_checks(gateway, host):
    bad, well = host().on("/healthz", Reply(503)), host()
    here = gateway(policy(bad, well))
    unhealthy(here, True, False)
    failed = told(here)["healthCheck"]["failed"]
    reload(here, policy(well, bad, check=CHECK.replace("100ms", "1h")))  # the other way round, and hardly checked any more
    assert [told(here, i)["unhealthy"] for i in (0, 1)] == [False, True]
    assert told(here, 1)["healthCheck"]["failed"] >= failed
    bad.forget()
    for _ in range(10):
        here.ask(path="/call")
    assert bad.count("/call") == 0
    reload(here, policy(well, bad, check="maxRetries: 1"))
    assert [told(here, i)["unhealthy"] for i in (0, 1)] == [False, False] and "healthCheck" not in told(here, 1)


def test_hosts_with_tls_are_checked_by_tls(gateway, host, authority, tmp_path):
    there = host(tls=authority.issue().server())
    secure = ", tls: {ca: %s}"
    here = gateway(policy(f"https://{there.address}", more=secure % authority.cert))
    checked(here, 0, "passed")
    assert there.count("/healthz") >= 2
    stranger = Authority(tmp_path / "other")
    reload(here, policy(f"https://{there.address}", more=secure % stranger.cert))
    checked(here, 0, "failed")
    assert told(here)["healthCheck"]["why"] == "TLS with it failed"


def test_a_host_of_http2_is_asked_by_http2(gateway):
    status = [200]
    there = HostH2(at_head=lambda asked: Answer(status[0]) if asked.path == "/healthz" else None)
    here = gateway(policy(there, more=", protocol: h2"))
    checked(here, 0, "passed")
    assert there.requests[0].field(":authority") == there.address and there.requests[0].method == "GET"
    status[0] = 500
    checked(here, 0, "failed")
    assert told(here)["healthCheck"]["status"] == 500
    there.close()


GRPC = (("content-type", "application/grpc"),)
SERVING = b"\0\0\0\0\x02\x08\x01"
OVER_HTTP2 = {
    "interim-then-200": ("http", Answer(interim=(103,)), None),
    "interim-without-end": ("http", Answer(interim=(103,) * 200, hints=(("x", "v" * 8000),)), "its answer is too long"),
    "refused": ("http", Refuse(), "it ended its answer too early"),
    "closed": ("http", Close(), "it closed the connection without an answer"),
    "serving": ("grpc", Answer(fields=GRPC, body=SERVING, trailers=(("grpc-status", "0"),)), None),
    "more-than-a-window": ("grpc", Answer(fields=GRPC, body=SERVING + bytes(100000), trailers=(("grpc-status", "0"),)), None),
    "two-statuses": ("grpc", Answer(fields=GRPC, body=SERVING, trailers=(("grpc-status", "0"), ("grpc-status", "13"))), "grpc-status is not 0"),
    "trailers-only": ("grpc", Answer(fields=(*GRPC, ("grpc-status", "12"))), "grpc-status is not 0"),
    "no-status": ("grpc", Answer(fields=GRPC, body=SERVING), "its answer is not gRPC"),
    "404": ("grpc", Answer(status=404), "its answer is not gRPC"),
    "refused-by-grpc": ("grpc", Refuse(), "it ended its answer too early"),
}


@pytest.mark.parametrize("name", OVER_HTTP2)
def test_what_counts_as_well_over_http2(gateway, name):
    kind, reply, why = OVER_HTTP2[name]
    there = HostH2(at_end=lambda asked: reply)
    here = gateway(policy(there, check=CHECK.replace("path: /healthz", "kind: grpc") if kind == "grpc" else CHECK, more=", protocol: h2"))
    checked(here, 0, "failed" if why else "passed")
    assert told(here)["healthCheck"].get("why") == why
    there.close()


def test_a_host_of_http1_is_none_of_http2(gateway, host):
    there = host()
    here = gateway(policy(there, more=", protocol: h2"))
    checked(here, 0, "failed")
    assert told(here)["healthCheck"]["why"] == "it does not speak HTTP/2"


def test_grpc_asks_the_health_service(gateway, serves):  # noqa: F811
    health, asked = [b"\x08\x01"], []

    def check(message, context):
        asked.append(message)
        if health[0] is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return health[0]

    there = serves(unary={"/grpc.health.v1.Health/Check": check})
    kind = "healthCheck: {kind: grpc, grpcService: pay.v1.Pay, interval: 100ms, timeout: 20s}"
    here = gateway(policy(there, check=kind, more=", protocol: h2"))
    checked(here, 0, "passed")
    assert asked[0] == b"\x0a\x0apay.v1.Pay", asked
    health[0] = b"\x08\x02"  # NOT_SERVING
    checked(here, 0, "failed")
    assert told(here)["healthCheck"]["why"] == "it does not say SERVING"
    health[0] = None
    wait_until(lambda: told(here)["healthCheck"]["why"] == "grpc-status is not 0", what=lambda: told(here))
    assert told(here)["healthCheck"]["status"] == 5
    health[0] = b"\x08\x01"
    reload(here, policy(there, check=kind.replace("grpcService: pay.v1.Pay, ", ""), more=", protocol: h2"))
    checked(here, 0, "passed")
    assert asked[-1] == b""
