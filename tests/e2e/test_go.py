# SPDX-License-Identifier: MIT
"""Go's net/http on both sides, by HTTP/2 with TLS: an implementation that shares nothing with ours, curl's or python's."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import free_port, policy_of, wait_until

pytestmark = [
    pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed"),
    pytest.mark.skipif(os.environ.get("BECALM_SOAK") != "1", reason="its compiler takes a while: make soak"),
]


class Server:
    def __init__(self, program, certificate):
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([program, "serve", self.address, certificate.cert, certificate.key], stderr=subprocess.DEVNULL)

    def close(self):
        self.process.kill()
        self.process.wait(60)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("go")
    source = pathlib.Path(__file__).resolve().parent / "speaks.go"
    more = {"GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", folder / "speaks", source], check=True, timeout=900, env={**os.environ, **more})
    return str(folder / "speaks")


@pytest.mark.parametrize("protocol, spoken", [("h2", "HTTP/2.0"), ("h1", "HTTP/1.1")])
def test_go__many_uploads_at_once_on_a_connection_by_both_sides(gateway, authority, program, protocol, spoken):
    """More than a window each, with trailers behind the answers."""
    this = Server(program, authority.issue())
    try:
        rules = f"protocol: {protocol}\ntls: {{ca: {authority.cert}, serverName: a.test}}\nattemptTimeout: 60s\ndeadline: 60s"
        edge = gateway(policy_of([this], "log: {access: json}", rules), tls=authority.issue().tls, protocols="[h2, h1]")

        def answers(count, length):
            asks = [program, "ask", f"https://127.0.0.1:{edge.port}/", authority.cert, str(count), str(length)]
            return subprocess.run(asks, capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()

        wait_until(lambda: answers(1, 0)[0].startswith(f"HTTP/2.0 200 {spoken} 0"))
        for length in (0, 1, 70_000, 1_000_000):
            assert answers(40, length) == [f"HTTP/2.0 200 {spoken} {length} {length} <nil>"] * 40
    finally:
        this.close()
