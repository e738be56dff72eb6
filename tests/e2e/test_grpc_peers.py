# SPDX-License-Identifier: MIT
"""grpc of C++ and of Go, as clients and as servers, through the gateway: `make soak`, since their compilers take a while.

`peers/lab.cc` and `peers/lab.go` are the same program. As a server each answers /lab.Lab/Unary (the message), Server (as many messages as
the request says, each longer by a byte), Client (how many messages and bytes came), Both (each message), Wait (nothing, until it is
cancelled), Left (milliseconds of the deadline), Seen (how often something was counted), and the health service of its library. A call's
metadata may ask for more: x-text and x-raw-bin come back in the head and in trailers, x-code and x-message-bin are the status,
x-head sends a head before it, x-name counts the call, x-fails fails only that many, x-pushback says when to come back.
As a client each runs cases by name, and prints a line for each: `ok`, or what went wrong."""

import os
import pathlib
import shutil
import subprocess
import time

import pytest
from conftest import free_port, policy_of, wait_until

HERE = pathlib.Path(__file__).resolve().parent / "peers"
GO_GRPC = pathlib.Path("/usr/share/gocode/src/google.golang.org/grpc")
PATIENCE = 900
LANGUAGES = ("go", "cc")
PAIRS = [(client, server) for client in LANGUAGES for server in LANGUAGES]
CASES = "empty large sizes client server both metadata status unimplemented deadline left cancel compression health".split()
RULES = "protocol: h2\nbudget: {kind: none}\ninitialDelay: 1ms\nmaxRetries: 1\nbreaker: {enabled: false}\noutlier: {enabled: false}\nattemptTimeout: 300s\ndeadline: none"
TRUST = "trust: [127.0.0.1]\nlog: {access: json}\n"

pytestmark = pytest.mark.skipif(os.environ.get("BECALM_SOAK") != "1", reason="their compilers take a while: make soak")


def words_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout.split()


def compile_go(program, folder):
    if shutil.which("go") is None or not GO_GRPC.is_dir():
        pytest.skip("Go's grpc is not installed: golang-go and golang-google-grpc-dev")
    more = {"GOPATH": str(GO_GRPC.parents[2]), "GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", program, HERE / "lab.go"], check=True, timeout=PATIENCE, env={**os.environ, **more})


def compile_cc(program, folder):
    if shutil.which("g++") is None or shutil.which("pkg-config") is None or subprocess.run(["pkg-config", "--exists", "grpc++"]).returncode != 0:
        pytest.skip("grpc of C++ is not installed: g++ and libgrpc++-dev")
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["g++", "-std=c++17", *warnings, "-o", program, HERE / "lab.cc", *words_of("pkg-config", "--cflags", "--libs", "grpc++")], check=True, timeout=PATIENCE)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """program("go"): its path."""
    made = {}

    def make(language):
        if language not in made:
            folder = tmp_path_factory.mktemp(language)
            {"go": compile_go, "cc": compile_cc}[language](folder / "lab", folder)
            made[language] = str(folder / "lab")
        return made[language]

    return make


@pytest.fixture
def started():
    """started(command): a process, which ends with the test."""
    made = []

    def make(*command, **more):
        made.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more))
        return made[-1]

    yield make
    for each in made:
        each.kill()
        each.wait(60)
        each.stdin.close()
        each.stdout.close()


class Server:
    def __init__(self, started, path, *words):
        self.address = f"127.0.0.1:{free_port()}"
        self.process = started(path, "serve", self.address, *words)


def lines(path, edge, *words, **env):
    """Runs a client, once the gateway and the server are ready; returns its output."""
    said = subprocess.run([path, "ask", f"127.0.0.1:{edge.port}", *words], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **env})
    assert said.returncode == 0, said.stderr
    return said.stdout.splitlines()


def settled(path, edge):
    wait_until(lambda: lines(path, edge, "empty") == ["empty ok"], what=lambda: lines(path, edge, "empty"))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("client, server", PAIRS)
def test_grpc_peers__each_understands_the_other(gateway, authority, started, program, client, server, tls):
    mine, words, rules, listens = authority.issue(), [], RULES, {}
    if tls:
        words = [f"cert={mine.cert}", f"key={mine.key}"]
        rules = RULES.replace("protocol: h2", f"tls: {{ca: {authority.cert}, serverName: a.test}}")
        listens = {"tls": authority.issue().tls}
    this = Server(started, program(server), *words)
    edge = gateway(policy_of([this], TRUST, rules), protocols="[h2, h1]", **listens)
    asks = program(client)
    more = [f"ca={authority.cert}"] if tls else []
    wait_until(lambda: lines(asks, edge, *more, "empty") == ["empty ok"])
    every = [*CASES, "retries", "pushback"]
    assert lines(asks, edge, *more, *every) == [f"{case} ok" for case in every]
    assert edge.metric("becalm_h2_goaway_total") == 0


@pytest.mark.parametrize("client, server", PAIRS)
def test_grpc_peers__a_client_that_retries_by_itself_hears_of_ours(gateway, started, program, client, server):
    """Three attempts of the client, two of the gateway for each: the page says so, and to leave one of them out."""
    this = Server(started, program(server))
    edge = gateway(policy_of([this], TRUST, RULES), protocols="[h2, h1]")
    settled(program(client), edge)
    retry = '{"maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.02s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}'
    config = f'config={{"methodConfig": [{{"name": [{{"service": "lab.Lab"}}], "retryPolicy": {retry}}}]}}'
    assert lines(program(client), edge, config, "fails", GRPC_GO_RETRY="on") == ["times 6", "fails ok"]


@pytest.mark.parametrize("server", LANGUAGES)
def test_grpc_peers__connections_that_grow_old_cost_no_call(gateway, started, program, server):
    """The server sends GOAWAY on each connection after a moment, while calls go on, one after the other, of four
    clients."""
    this = Server(started, program(server), "age=100")
    edge = gateway(policy_of([this], TRUST, RULES.replace("maxRetries: 1", "maxRetries: 0")), protocols="[h2, h1]")
    settled(program("go"), edge)
    clients = [started(program(language), "ask", f"127.0.0.1:{edge.port}", "many") for language in LANGUAGES * 2]
    time.sleep(10)
    for each in clients:
        said = each.communicate("\n", timeout=PATIENCE)[0].splitlines()
        assert said[-1] == "many ok" and int(said[0].split()[1]) > 10, said


def test_grpc_peers__nobody_is_called_out_for_pings(gateway, started, program):
    """A stream that is silent for a minute. Its client asks whether the gateway lives, the C++ one every second; the gateway asks its
    host, which would end a connection that does so every ten seconds (too_many_pings)."""
    said = {}
    for client, server in PAIRS:
        this = Server(started, program(server))
        edge = gateway(policy_of([this], TRUST, RULES), protocols="[h2, h1]")
        settled(program(client), edge)
        asks = started(program(client), "ask", f"127.0.0.1:{edge.port}", f"keepalive={10000 if client == 'go' else 1000}", "open")
        assert asks.stdout.readline() == "open\n"
        said[client, server] = (asks, edge)
    time.sleep(60)
    for (client, server), (asks, edge) in said.items():
        assert asks.communicate("\n\n", timeout=PATIENCE)[0].splitlines() == ["open", "open ok"], (client, server)
        assert edge.metric("becalm_h2_goaway_total") == 0 and edge.metric("becalm_redone_total") == 0
