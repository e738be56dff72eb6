# SPDX-License-Identifier: MIT
"""Fixtures of the end-to-end tests: real gateway processes and hosts that misbehave, on loopback and in bounded time.
The program is the one named by BECALM. Every gateway must exit with 0 after TERM, without a sanitizer's report."""

import os
import pathlib
import platform
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = os.environ.get("BECALM", str(ROOT / "build/dev/becalm"))
sys.path.insert(0, str(HERE))

from certs import Authority  # noqa: E402
from host import Host, Reply, wait_until  # noqa: E402
from message import request  # noqa: E402
from ports import free_port  # noqa: E402
import store  # noqa: E402
from wire import Wire, ask  # noqa: E402

HAND_OVER = (  # the descriptors of its first argument become 3, 4 and so on, as systemd passes sockets
    "import fcntl, os, sys; fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1].split(',')];"
    "[os.dup2(fd, 3 + n, inheritable=True) for n, fd in enumerate(fds)]; [os.close(fd) for fd in fds];"
    "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds))); os.execv(sys.argv[2], sys.argv[2:])"
)

# A shell that starts the tests in the background lets them ignore SIGINT, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

START_SECONDS = 120  # guards: a sanitized program on a busy machine may need a minute
END_SECONDS = 120
LONG_SECONDS = 50  # a test that fails behind so many has waited for a guard


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A test whose guard ran out is the last one of its file: the tests behind it would wait for as long, all of them, and ctest
    would end the file without a word about any."""
    report = (yield).get_result()
    if report.failed and report.duration > LONG_SECONDS:
        item.session.shouldfail = f"{item.name} failed after {report.duration:.0f} s: a guard has run out"


def can_trace():
    if shutil.which("strace") is None or platform.machine() not in ("x86_64", "aarch64") or any(word in PROGRAM for word in ("asan", "tsan")):
        return False
    return subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


class Gateway:
    """One process. `policy` is its text; settings that a test does not care about are chosen to make it fast."""

    def __init__(
        self,
        folder,
        policy,
        sets=(),
        wrapper=(),
        workers=1,
        delay="0s",
        env=None,
        admin="127.0.0.1",
        listen="127.0.0.1",
        handed=(),
        dumpable=None,
        protocols=None,
        tls=None,
        parts=(),
    ):
        """listen, admin: the IP address, with a free port; None: as in the policy. handed: listening sockets that the
        gateway gets by LISTEN_FDS. dumpable: None lets a test without root privileges inspect the process. tls: the
        text behind `tls:` of its listener. parts: more files and folders of its policy."""
        self.folder = folder
        self.path = folder / "becalm.yaml"
        self.path.write_text(policy)
        self.sets = list(sets)
        self.wrapper = list(wrapper)
        self.workers = workers
        self.delay = delay
        self.options = ["--dumpable"] if (os.geteuid() != 0 if dumpable is None else dumpable) else []
        self.protocols = protocols
        self.admin_ip = admin
        self.listen_ip = listen
        self.tls = tls
        self.parts = list(map(str, parts))
        self.handed = [each.fileno() for each in handed]
        if handed:
            self.wrapper += [sys.executable, "-c", HAND_OVER, ",".join(map(str, self.handed))]
        self.env = env or {}
        self.process = None
        self.ended = False
        for _ in range(5):
            if self._start():
                return
        raise AssertionError("can't start: " + self.log())

    def _start(self):
        self.port, self.admin = free_port(), free_port()
        fixed = [f"workers={self.workers}", f"drain.delay={self.delay}"]
        if self.listen_ip is not None:
            address = f"{self.listen_ip}:{self.port}"
            more = {"tls": self.tls, "protocols": self.protocols}
            spoken = "".join(f", {key}: {value}" for key, value in more.items() if value is not None)
            fixed.append(f"listen={f'{{address: {address}{spoken}}}' if spoken else address}")
        if self.admin_ip is not None:
            fixed.append(f"admin={self.admin_ip}:{self.admin}")
        command = [*self.wrapper, PROGRAM, "proxy", *self.options]
        for each in fixed + self.sets:
            command += ["--set", each]
        self.err = open(self.folder / "stderr", "wb")
        self.out = open(self.folder / "stdout", "wb")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind("")  # the kernel chooses a name
            manager.settimeout(0.05)
            self.process = subprocess.Popen(
                [*command, str(self.path), *self.parts],
                stdin=subprocess.DEVNULL,
                stdout=self.out,
                stderr=self.err,
                pass_fds=self.handed,
                env={
                    **os.environ,
                    "NO_COLOR": "1",
                    "LC_ALL": "C.UTF-8",
                    "NOTIFY_SOCKET": "@" + manager.getsockname()[1:].decode(),
                    **self.env,
                },
            )
            until = time.monotonic() + START_SECONDS
            while self.process.poll() is None and time.monotonic() < until:
                if self._is_ready(manager) or "NOTIFY_SOCKET" in self.env:
                    return True
        if self.process.poll() is None or "in use" not in self.log():
            self.kill()
            raise AssertionError("does not listen: " + self.log())
        return False

    def _is_ready(self, manager):
        """As a service manager hears it."""
        try:
            return b"READY=1" in manager.recv(4096)
        except TimeoutError:
            return False

    # Its output.

    def log(self):
        """The gateway's stderr: its log."""
        return (self.folder / "stderr").read_text(errors="replace")

    def access(self, least=0):
        """Its access log, line by line. The gateway writes it after the answers: this waits for `least` lines."""
        if least:
            wait_until(lambda: len(self.access()) >= least, what=self.access)
        return (self.folder / "stdout").read_text(errors="replace").splitlines()

    def log_lines(self, word):
        return [line for line in self.log().splitlines() if word in line]

    def told(self, word, count=1):
        """The lines of the log with this word, once there are enough: a thread of the gateway writes them after its answers. A
        gateway that has ended writes no more."""
        ended = False
        while len(self.log_lines(word)) < count:
            assert not ended, f"{word!r} is not in the log of a gateway that has ended: {self.log()}"
            wait_until(
                lambda: len(self.log_lines(word)) >= count or self.process.poll() is not None,
                what=lambda: f"in the log: {self.log_lines(word)}",
            )
            ended = self.process.poll() is not None
        return self.log_lines(word)

    def resident_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", self._proc("status")).group(1))

    def cpu_seconds(self):
        user, system = self._proc("stat").rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """It stands still until SIGCONT. The signal comes a moment behind its call."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)

    def open_fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def fill_descriptors(self, host, calls=20):
        """Leaves the gateway no descriptor: calls that the host answers once the event is set take all that it may
        open. Returns the event and the clients. Clients without a request would be closed for newer ones."""
        go = threading.Event()
        host.on("*", Reply(when=go.is_set))
        most = self.settled_fds() + 2 * calls
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (most, most))
        crowd = []
        while host.count() < calls:  # one may be refused, if a file is read at that moment
            before = host.count()
            crowd.append(self.wire().send(request()))
            wait_until(lambda: host.count() > before or select.select([crowd[-1].socket], [], [], 0)[0])
        wait_until(lambda: self.open_fds() == most)
        return go, crowd

    def settled_fds(self):
        """Connections to the admin address are closed a moment behind their answer."""
        seen = [self.open_fds()]
        while len(seen) < 10 or len(set(seen[-10:])) > 1:
            time.sleep(0.02)
            seen.append(self.open_fds())
        return seen[-1]

    def sanitized(self):
        """Memory and speed mean nothing then. clang's sanitizers are inside of the program, gcc's are libraries."""
        return "BECALM_SANITIZED" in os.environ or re.search(r"lib[at]san", self.maps()) is not None

    def maps(self):
        """The files that it has mapped."""
        return self._proc("maps")

    def _proc(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}").read_text()

    def metrics(self):
        """{name with its labels: value}."""
        answer = ask(self.admin, path="/metrics", host=f"127.0.0.1:{self.admin}")
        assert answer.status == 200, answer.body
        rows = [line.rsplit(" ", 1) for line in answer.body.decode().splitlines() if line and line[0] != "#"]
        return {name: float(value) for name, value in rows}

    def metric(self, name, **labels):
        """The sum of the rows of that name with these labels."""
        found = 0.0
        for row, value in self.metrics().items():
            if row.split("{")[0] == name and all(f'{key}="{word}"' in row for key, word in labels.items()):
                found += value
        return found

    def expect_metric(self, value, name, **labels):
        """Waits until it has that value: a call is counted after its last byte is written, so a moment after its answer."""
        wait_until(lambda: self.metric(name, **labels) == value, what=lambda: (name, labels, self.metric(name, **labels)))

    # Orders to the gateway.

    def ask(self, method="GET", path="/", **more):
        return ask(self.port, method, path, **more)

    def wire(self, **more):
        return Wire(self.port, **more)

    def reload(self, policy):
        """As an editor or Kubernetes does it: a new file takes the old one's name."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(policy)
        os.replace(fresh, self.path)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self.ended = True

    def end(self):
        """Sends TERM, and checks the rules of every end."""
        if self.ended:
            return
        self.ended = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
            raise AssertionError(f"did not end within {END_SECONDS} s of TERM: " + self.log()) from None
        self.check(code)

    def check(self, code):
        log = self.log()
        for word in ("Sanitizer", "runtime error:", "assertion"):
            assert word not in log, log
        assert code == 0, f"ended with {code}: {log}"


@pytest.fixture
def gateway(tmp_path):
    """gateway(policy, sets=["role=sidecar"]): a running one; ended, and its end judged, with the test."""
    made = []

    def make(policy, **more):
        folder = tmp_path / f"gateway{len(made)}"
        folder.mkdir()
        made.append(Gateway(folder, policy, **more))
        return made[-1]

    yield make
    problems = []
    for each in made:
        try:
            each.end()
        except AssertionError as problem:
            problems.append(problem)
    if problems:
        raise problems[0]


@pytest.fixture
def authority(tmp_path):
    """An authority that signs certificates."""
    return Authority(tmp_path / "authority")


@pytest.fixture
def host():
    """host(): a running host of its own."""
    made = []

    def make(**more):
        made.append(Host(**more))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def pair(gateway, host):
    """pair(more policy): a gateway and the one host of its service `a`, which takes everything."""

    def make(text="", rules="", hosts=1, **more):
        these = [host() for _ in range(hosts)]
        return gateway(policy_of(these, text, rules), **more), these[0] if hosts == 1 else these

    return make


@pytest.fixture
def redis_of(tmp_path):
    """Keys in a Redis of its own, as the policy says it."""
    if store.SERVER is None:
        pytest.skip("redis-server is not installed")
    running = store.Redis(tmp_path).start()
    (tmp_path / "secret").write_text("0123456789abcdef0123456789abcdef")
    running.be_trusted()
    yield f"store: {{redis: '{running.url}'}}\nidempotencyStore: {{redis: inherit, secretFile: {tmp_path}/secret, timeout: 30s}}\n"
    running.stop()


def policy_of(hosts, text="", rules=""):
    """A policy with one service `a` for every path; `rules` are lines of that service."""
    lines = [text, "services:", "  a:", f"    hosts: [{', '.join(each.address for each in hosts)}]"]
    lines.append("    match: {prefix: /}")
    lines += ["    " + line for line in rules.splitlines()]
    return "\n".join(lines) + "\n"


__all__ = ["policy_of", "wait_until"]
