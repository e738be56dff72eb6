# SPDX-License-Identifier: MIT
"""A real redis-server of a test's own: on a free port, in a fresh folder, alone, with Sentinels or in a cluster."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import free_port
from host import wait_until

SERVER = shutil.which("redis-server")
NUMBERS = itertools.count()


def encode(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Redis:
    def __init__(self, folder, *words, port=None, sentinel=None, ip="127.0.0.1", env=None):
        """words: more options of the server. sentinel: the lines of a Sentinel's file. ip: on loopback. env: more of its environment."""
        self.folder = folder / f"redis{next(NUMBERS)}"
        self.folder.mkdir()
        self.ip = ip
        self.port = port or free_port()
        self.address = f"{ip}:{self.port}"
        self.url = f"redis://{self.address}"
        self.words = list(map(str, words))
        self.sentinel = sentinel
        self.env = {**os.environ, **(env or {})}
        self.process = None

    def start(self):
        for _ in range(5):
            if self._start():
                return self
            self._move()
        raise AssertionError("redis-server does not start: " + (self.folder / "log").read_text()[-2000:])

    def _move(self):
        """Another process has its port, or the port of its bus."""
        self.port = free_port()
        self.address = f"{self.ip}:{self.port}"
        self.url = f"redis://{self.address}"

    def _start(self):
        words = ["--port", str(self.port), "--bind", self.ip, "--dir", str(self.folder), "--logfile", "log"]
        if self.sentinel is not None:
            path = self.folder / "sentinel.conf"
            if not path.exists():
                path.write_text(self.sentinel)
            words = [str(path), "--sentinel", *words]
        else:
            words += ["--save", "", "--dbfilename", "dump.rdb"]
        self.process = subprocess.Popen([SERVER, *words, *self.words], stdout=subprocess.DEVNULL, env=self.env)
        plain = "--tls-port" not in self.words

        def is_there():
            return self.says("PING").startswith((b"+PONG", b"-NOAUTH")) if plain else self.is_open()

        wait_until(lambda: self.process.poll() is not None or is_there(), what=lambda: "redis-server does not start")
        return self.process.poll() is None

    def is_open(self):
        try:
            socket.create_connection((self.ip, self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def says(self, *words):
        """The first of its answer; nothing if there is none. One word is a whole command."""
        words = words[0].split() if len(words) == 1 else words
        try:
            with socket.create_connection((self.ip, self.port), timeout=10) as link:
                link.sendall(encode(*words))
                heard = link.recv(65536)
                while heard.startswith(b"*") and b"\r\n" not in heard[-2:]:
                    heard += link.recv(65536)
                return heard.strip() if heard.count(b"\r\n") == 1 else heard
        except OSError:
            return b""

    def tell(self, *words):
        said = self.says(*words)
        assert said and not said.startswith(b"-"), (words, said)
        return said

    def be_trusted(self, fleet="default"):
        """Gateways find no new server, which they would not trust for a lease."""
        run = next(line[7:] for line in self.says("INFO server").splitlines() if line.startswith(b"run_id:"))
        self.tell("HSET", f"becalm:{{{fleet}}}:era", "r", run)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.go_on()
            self.kill()


class Relay:
    """Stands between gateways and a Redis: `to` may be changed; answers of the server can be delayed or replaced."""

    def __init__(self, to):
        self.to = to
        self.delay = 0.0
        self.says = None
        self.links = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            self.links += [near, far]
            threading.Thread(target=self._carry, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near, True), daemon=True).start()

    def _carry(self, source, sink, answers):
        try:
            while chunk := source.recv(65536):
                if answers:
                    time.sleep(self.delay)
                    chunk = self.says or chunk
                sink.sendall(chunk)
        except OSError:
            pass
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self):
        for each in self.links:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


RULES = """breaker: {{enabled: false}}
limit: {{kind: none}}
maxRetries: 3
initialDelay: 1ms
maxDelay: 2ms
budget: {{kind: none, shared: {{percent: {percent}}}}}"""


def rules(percent=20):
    return RULES.format(percent=percent)


def leased(gateway):
    return gateway.log_lines("leased from the store")


def degraded(gateway):
    return gateway.log_lines("degraded to the own share")


@pytest.fixture
def redis(tmp_path):
    """One that runs as long as the test."""
    made = Redis(tmp_path)
    made.start()
    yield made
    made.stop()
