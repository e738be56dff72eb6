# SPDX-License-Identifier: MIT
"""Gateways that share a budget through a real Redis, which is killed, hung and misled."""

import shutil
import signal
import subprocess
import time

import pytest
from conftest import free_port, policy_of
from host import Reply, wait_until
from wire import Wire

SERVER = shutil.which("redis-server")
pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")

RULES = """breaker: {{enabled: false}}
limit: {{kind: none}}
maxRetries: 3
initialDelay: 1ms
maxDelay: 2ms
budget: {{kind: none, shared: {{redis: "{url}", percent: {percent}}}}}"""


class Redis:
    """A redis-server of its own, on a free port and in a fresh folder."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process = None

    def start(self):
        words = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        wait_until(lambda: self.says("PING") == b"+PONG\r\n", what=lambda: "redis-server does not start")

    def says(self, command):
        try:
            with Wire(self.port) as wire:
                wire.send(command.encode() + b"\r\n")
                return wire.socket.recv(4096)
        except OSError:
            return b""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()


@pytest.fixture
def redis(tmp_path):
    made = Redis(tmp_path)
    made.start()
    yield made
    made.stop()


def rules(redis, percent=20):
    return RULES.format(url=redis.url, percent=percent)


def leased(gateway):
    return gateway.log_lines("leased from the store")


def test_what_one_gateway_does_not_need_another_may_spend(gateway, host, redis):
    """One earns and needs nothing; all calls of the other fail: it has more than the share of its own, and both
    together no more than the share of all."""
    good, bad = host(), host()
    bad.on("*", Reply(status=503))
    rich = gateway(policy_of([good], rules=rules(redis)))
    poor = gateway(policy_of([bad], rules=rules(redis)))
    wait_until(lambda: leased(rich) and leased(poor))
    begun = time.monotonic()
    firsts, calls = 0, 0
    while bad.count() - calls <= 0.6 * calls or calls < 20:
        assert time.monotonic() - begun < 60, "it never gets more than its own share"
        for _ in range(20):
            assert rich.ask().status == 200
        assert poor.ask().status == 503
        firsts, calls = firsts + 20, calls + 1
    retries = bad.count() - calls
    seconds = time.monotonic() - begun
    assert retries <= 0.2 * (firsts + calls) + 2 + seconds / 10, (retries, firsts, calls)


def test_a_killed_store_leaves_the_own_share_and_a_new_one_is_found(gateway, host, redis):
    bad = host()
    bad.on("*", Reply(status=503))
    made = gateway(policy_of([bad], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.kill()
    wait_until(lambda: made.log_lines("degraded to the own share"))
    before = bad.count()
    for _ in range(100):
        assert made.ask().status == 503
    assert bad.count() - before <= 120 + 2
    redis.start()
    wait_until(lambda: len(leased(made)) == 2)
    assert len(made.log_lines("degraded to the own share")) == 1, "one line when it begins"


def test_a_hung_store_delays_no_call(gateway, host, redis):
    good = host()
    made = gateway(policy_of([good], rules=rules(redis)))
    wait_until(lambda: leased(made))
    redis.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: made.log_lines("degraded to the own share"))
    for _ in range(50):
        assert made.ask().status == 200
    redis.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(leased(made)) == 2)


def test_without_a_store_it_starts_and_serves(gateway, host, tmp_path):
    away = Redis(tmp_path)
    made = gateway(policy_of([host()], rules=rules(away)))
    assert made.ask().status == 200
    wait_until(lambda: made.log_lines("degraded to the own share"))


def test_another_percentage_is_another_pot(gateway, host, redis):
    hosts = [host()]
    made = gateway(policy_of(hosts, rules=rules(redis)))
    wait_until(lambda: b"a:200000:" in redis.says("KEYS *:b:*"))
    made.reload(policy_of(hosts, rules=rules(redis, percent=5)))
    wait_until(lambda: b"a:50000:" in redis.says("KEYS *:b:*"))


def test_tls_to_the_store_is_refused_where_it_is_written(gateway, host):
    made = gateway(policy_of([host()]))
    made.reload(policy_of([host()], rules='budget: {shared: {redis: "rediss://cache"}}'))
    wait_until(lambda: "TLS to Redis is not there yet" in made.log())
    assert "becalm.yaml:6:" in made.log()
    assert made.ask().status == 200
