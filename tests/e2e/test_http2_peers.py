# SPDX-License-Identifier: MIT
"""HTTP/2 with node on both sides, and with clients in Java and PHP: `peers/` has their programs. Go is in test_go.py,
gRPC in test_grpc_peers.py."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import policy_of
from ports import free_port

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
PATIENCE = 300
TRUST = "log: {access: json}\n"
LENGTHS = (0, 1, 70_000, 1_000_000)


def said(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def has(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


class Node:
    """A host."""

    def __init__(self, *certificate):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.process = subprocess.Popen(["node", PEERS / "speaks.js", "serve", str(port), *map(str, certificate)], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"listens\n"

    def close(self):
        self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()


@has("node")
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_http2_peers__node_on_both_sides(gateway, authority, tls):
    mine = authority.issue()
    this = Node(mine.cert, mine.key) if tls else Node()
    try:
        rules = f"tls: {{ca: {authority.cert}, serverName: a.test}}\n" if tls else "protocol: h2\n"
        more = {"tls": authority.issue().tls} if tls else {}
        edge = gateway(policy_of([this], TRUST, rules + "attemptTimeout: 60s"), protocols="[h2, h1]", **more)
        url, ca = f"{'https' if tls else 'http'}://127.0.0.1:{edge.port}", [authority.cert] if tls else []
        for length in LENGTHS:
            assert said("node", PEERS / "speaks.js", "ask", url, 40, length, *ca) == [f"200 {length} {length}"] * 40
        assert edge.metric("becalm_h2_goaway_total") == 0
    finally:
        this.close()


@pytest.fixture
def echo(gateway, authority):
    """echo(tls): a gateway in front of node, and its URL."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    this = Node()

    def make(tls):
        more = {"tls": authority.issue("localhost").tls} if tls else {}
        edge = gateway(policy_of([this], TRUST, "protocol: h2\nattemptTimeout: 60s"), protocols="[h2, h1]", **more)
        return edge, f"{'https' if tls else 'http'}://localhost:{edge.port}/"

    yield make
    this.close()


@has("javac")
@pytest.mark.skipif(os.environ.get("BECALM_SOAK") != "1", reason="its compiler takes a while: make soak")
@pytest.mark.parametrize("tls, spoken", [(True, "HTTP_2"), (False, "HTTP_1_1")])
def test_http2_peers__java(echo, authority, tmp_path, tls, spoken):
    """In clear text the client asks for an upgrade, which a server may ignore: then it goes on over HTTP/1.1."""
    edge, url = echo(tls)
    said("javac", "-d", tmp_path, PEERS / "Speaks.java")
    for length in LENGTHS:
        lines = said("java", "-cp", tmp_path, "Speaks", url, 20, length, *([authority.cert] if tls else []))
        assert lines == [f"{spoken} 200 {length}"] * 20
    assert edge.metric("becalm_h2_goaway_total") == 0


@has("php")
def test_http2_peers__php(echo, authority):
    """With TLS alone: libcurl 7.88 can't share a connection in clear text, with any server."""
    if "curl" not in said("php", "-m"):
        pytest.skip("PHP has no curl: php-curl")
    edge, url = echo(True)
    for length in LENGTHS:
        assert said("php", PEERS / "speaks.php", url, 20, length, authority.cert) == [f"HTTP/2 200 {length}"] * 20
    assert edge.metric("becalm_h2_goaway_total") == 0
