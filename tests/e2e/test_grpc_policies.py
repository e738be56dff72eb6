# SPDX-License-Identifier: MIT
"""The worked policy of gRPC, and `becalm import grpc`: grpcio's own client runs a service config, Becalm runs the
import of it, and servers count how often one call comes to them. Budgets, breakers and limits of Becalm are switched
off for that, because they make these numbers smaller."""

import json
import subprocess

import pytest
import yaml
from conftest import PROGRAM, ROOT
from grpc_lab import Fails, GrpcClient, grpc, serves  # noqa: F401: a fixture
from host_h2 import Close, HostH2, Refuse

Code = grpc.StatusCode
ADDED = {"breaker": {"enabled": False}, "outlier": {"enabled": False}, "restart": {"enabled": False}, "limit": {"kind": "none"}}


def test_grpc_policies__the_worked_policy_does_what_it_says(gateway, serves):
    balance, transfer = Fails(Code.UNAVAILABLE), Fails(Code.UNAVAILABLE)

    def watch(asked, context):
        yield b"1"
        yield b"2"
        context.abort(Code.UNAVAILABLE, "over")

    this = serves(
        unary={
            "/shop.Ledger/Balance": balance,
            "/shop.Ledger/Transfer": transfer,
            "/grpc.health.v1.Health/Check": lambda asked, context: b"\x08\x01",
        },
        server={"/shop.Ledger/Watch": watch},
    )
    text = (ROOT / "policies/grpc.yaml").read_text().replace('"127.0.0.1:50051", "127.0.0.1:50052"', this.address)
    sets = ["defaults.attemptTimeout=60s", "defaults.deadline=90s"]  # the machine may be busy
    edge = gateway(text, sets=sets, protocols="[h2, h1]")
    with GrpcClient(f"127.0.0.1:{edge.port}") as client:
        assert client.unary(b"x", "/shop.Ledger/Balance")[0] == b"x" and balance.times == 2
        assert client.failure(b"x", "/shop.Ledger/Transfer").code() == Code.UNAVAILABLE and transfer.times == 1
        assert client.unary(b"", "/grpc.health.v1.Health/Check")[0] == b"\x08\x01"
        answers = client.channel.unary_stream("/shop.Ledger/Watch")(b"", timeout=50)
        assert [next(answers), next(answers)] == [b"1", b"2"]
        with pytest.raises(grpc.RpcError):
            next(answers)
        assert answers.code() == Code.UNAVAILABLE and answers.details() == "over"


def retries(attempts, codes, **more):
    """A service config for every method of lab.Lab."""
    policy = {"maxAttempts": attempts, "initialBackoff": "0.01s", "maxBackoff": "0.02s", "backoffMultiplier": 1, "retryableStatusCodes": codes}
    return {"methodConfig": [{"name": [{"service": "lab.Lab"}], "retryPolicy": policy}], **more}


@pytest.fixture
def both_ways(gateway, serves, tmp_path):
    """Runs `work` with a client of gRPC that has the config itself, then with one that has none and asks through the
    import of it; each time with a fresh host, which `make` makes. Returns `count` of either host."""

    def run(config, make, work, count):
        direct = serves(**make())
        own = [("grpc.enable_retries", 1), ("grpc.service_config", json.dumps(config))]
        with GrpcClient(direct.address, own) as client:
            work(client)
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        done = subprocess.run([PROGRAM, "import", "grpc", str(path)], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        policy = yaml.safe_load(done.stdout)
        behind = serves(**make())
        policy["services"]["lab.Lab"]["hosts"] = [behind.address]
        assert policy["services"]["lab.Lab"]["protocol"] == "h2"
        mine = policy.setdefault("defaults", {})
        mine.update(ADDED)
        mine.setdefault("budget", {"kind": "none"})
        edge = gateway(yaml.safe_dump(policy), protocols="[h2, h1]", sets=["trust=[127.0.0.1]"])
        with GrpcClient(f"127.0.0.1:{edge.port}") as client:
            work(client)
        return count(direct), count(behind)

    return run


CASES = {  # config, codes with which the method fails, how often it is called by either
    "all attempts": (retries(4, ["UNAVAILABLE"]), [Code.UNAVAILABLE] * 9, 4),
    "until it works": (retries(4, ["UNAVAILABLE"]), [Code.UNAVAILABLE] * 2, 3),
    "another code": (retries(3, ["RESOURCE_EXHAUSTED"]), [Code.RESOURCE_EXHAUSTED] * 9, 3),
    "not listed": (retries(3, ["UNAVAILABLE"]), [Code.INTERNAL] * 9, 1),
    "then one that is not": (retries(5, ["UNAVAILABLE"]), [Code.UNAVAILABLE, Code.NOT_FOUND], 2),
    "errors of the application": (retries(4, ["INTERNAL", "UNKNOWN", "DATA_LOSS"]), [Code.INTERNAL, Code.UNKNOWN, Code.DATA_LOSS, Code.INTERNAL], 4),
    "what is permanent elsewhere": (retries(3, ["NOT_FOUND", "ABORTED"]), [Code.NOT_FOUND, Code.ABORTED, Code.NOT_FOUND], 3),
    "more than gRPC makes": (retries(9, ["UNAVAILABLE"]), [Code.UNAVAILABLE] * 9, 5),
    "nothing to retry": ({"methodConfig": [{"name": [{"service": "lab.Lab"}], "timeout": "30s"}]}, [Code.UNAVAILABLE] * 9, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_import_grpc__a_call_comes_as_often_as_with_grpcs_own_retries(both_ways, name):
    config, codes, times = CASES[name]

    def work(client):
        try:
            client.unary(b"x")
        except grpc.RpcError as error:
            assert error.code() in codes

    def make():
        return {"unary": Fails(*codes)}

    assert both_ways(config, make, work, lambda host: len(host.called)) == (times, times)


@pytest.mark.parametrize("wait, times", [("-1", 1), ("5", 3)])
def test_import_grpc__pushback_is_obeyed_alike(both_ways, wait, times):
    def make():
        return {"unary": Fails(Code.UNAVAILABLE, Code.UNAVAILABLE, grpc_retry_pushback_ms=wait)}

    def work(client):
        try:
            client.unary(b"x")
        except grpc.RpcError as error:
            assert error.code() == Code.UNAVAILABLE and wait == "-1"

    assert both_ways(retries(4, ["UNAVAILABLE"]), make, work, lambda host: len(host.called)) == (times, times)


LOST = {  # the host's reply to each call, the codes in the config, the number of attempts
    "connection": (Close, "UNAVAILABLE", 3),
    "connection, not listed": (Close, "INTERNAL", 1),
    "INTERNAL_ERROR": (lambda: Refuse(code=2), "INTERNAL", 3),
    "INTERNAL_ERROR, not listed": (lambda: Refuse(code=2), "UNAVAILABLE", 1),
    "CANCEL": (lambda: Refuse(code=8), "CANCELLED", 3),
    "CANCEL, not listed": (lambda: Refuse(code=8), "UNAVAILABLE", 1),
    "ENHANCE_YOUR_CALM": (lambda: Refuse(code=11), "RESOURCE_EXHAUSTED", 3),
    "ENHANCE_YOUR_CALM, not listed": (lambda: Refuse(code=11), "UNAVAILABLE", 1),
}


@pytest.mark.parametrize("name", LOST)
def test_import_grpc__what_is_lost_has_the_code_that_it_has_for_grpc(both_ways, name):
    """A connection that is lost is UNAVAILABLE, a stream that is reset has the gRPC code of its HTTP/2 code."""
    how, code, times = LOST[name]

    def make():
        return {"kind": HostH2, "at_end": lambda asked: how()}

    def work(client):
        client.failure(b"x")

    assert both_ways(retries(3, [code]), make, work, lambda host: len(host.requests)) == (times, times)


def test_import_grpc__throttling_ends_retries_at_the_same_call(both_ways):
    """Ten tokens: each failure takes one, and at five there are no more retries."""

    def make():
        return {"unary": Fails(*[Code.UNAVAILABLE] * 99)}

    def work(client):
        for _ in range(10):
            assert client.failure(b"x").code() == Code.UNAVAILABLE

    direct, behind = both_ways(retries(3, ["UNAVAILABLE"], retryThrottling={"maxTokens": 10, "tokenRatio": 0.1}), make, work, lambda host: len(host.called))
    assert direct == behind and 10 < direct < 30


def test_import_grpc__the_timeout_is_the_deadline_of_the_call(both_ways):
    """An answer that does not come ends it with DEADLINE_EXCEEDED; the retry that does not fit is not made."""

    def make():
        return {"kind": HostH2, "at_end": lambda asked: None}

    codes = []

    def work(client):
        codes.append(client.failure(b"x").code())

    config = retries(3, ["UNAVAILABLE"])
    config["methodConfig"][0]["timeout"] = "1s"
    assert max(both_ways(config, make, work, lambda host: len(host.requests))) <= 1
    assert codes == [Code.DEADLINE_EXCEEDED] * 2

