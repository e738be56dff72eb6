# SPDX-License-Identifier: MIT
"""The programs in the race, and their processes: each pinned to a core, its output kept in a folder."""

import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

START_SECONDS = 20  # under valgrind it takes a while until a gateway listens
STOP_SECONDS = 20

# The same failures are retried as in bench/gateway/policy.yaml.
HAPROXY_RETRIES = """option redispatch
    retries 2
    retry-on conn-failure empty-response response-timeout 502 503 504"""
HAPROXY_NO_RETRIES = "retries 0"

GATEWAY = (
    "{becalm} proxy --dumpable {here}/policy.yaml --set listen={listen} --set admin={admin} --set services.backend.hosts=[{backend}]"
)


class Trouble(Exception):
    """The race cannot go on; the message says why."""


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def cores():
    """Where load and backend run, and where the gateways: two cores if there are two."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


class Process:
    """A program on one core, with its output in a file. It ends with us, even if we are killed."""

    def __init__(self, name, command, core, folder, **pipes):
        self.name = name
        self.log = pathlib.Path(folder) / f"{name}.log"
        pinned = ["setpriv", "--pdeathsig", "KILL", "taskset", "--cpu-list", str(core), *command]
        with open(self.log, "w") as log:
            pipes.setdefault("stdin", subprocess.DEVNULL)
            pipes.setdefault("stdout", log)
            try:
                self.child = subprocess.Popen(pinned, stderr=log, **pipes)
            except FileNotFoundError as missing:
                raise Trouble(f"{missing.filename} is not installed") from missing
        self.pid = self.child.pid

    def said(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-12:])

    def trouble(self, what):
        return Trouble(f"{self.name} {what}:\n{self.said()}")

    def wait_for(self, address):
        """Until it answers at the address."""
        host, port = address.split(":")
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self.child.poll() is not None:
                raise self.trouble("has ended instead of listening")
            try:
                with socket.create_connection((host, int(port)), timeout=1):
                    return
            except OSError:
                time.sleep(0.02)
        raise self.trouble(f"does not listen on {address}")

    def schedule(self):
        """Nanoseconds on a core, and nanoseconds of waiting for it, of all its threads."""
        ran = waited = 0
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            on_core, in_queue, _ = path.read_text().split()
            ran += int(on_core)
            waited += int(in_queue)
        return ran, waited

    def resident_bytes(self, of="VmRSS"):
        """Of all its memory, or with RssAnon without the files that it has mapped."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{of}:\s+(\d+) kB", status)[1]) * 1024

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe:
                pipe.close()


class Load(Process):
    """bench/gateway/load.c; the comment at its top has its commands."""

    def __init__(self, programs, connections, addresses, folder):
        command = [str(programs / "load"), str(connections), *addresses]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        super().__init__("load", command, cores()[0], folder, **pipes)
        if self.child.stdout.readline() != "ready\n":
            raise self.trouble("could not open its connections")

    def _do(self, line):
        """Requests, median and 99th percentile of their latency in ns."""
        try:
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()
            return tuple(int(word) for word in self.child.stdout.readline().split()[:3])
        except BrokenPipeError:
            return ()

    def slice(self, target, size, milliseconds):
        return self._do(f"slice {target} {size} {milliseconds}") or self._lost()

    def each(self, target, size):
        return self._do(f"each {target} {size}") or self._lost()

    def _lost(self):
        self.child.wait(STOP_SECONDS)
        raise self.trouble("gave up")


def first_line(command):
    """The version of a program; most print it on standard error."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError:
        return "not installed"
    return (done.stdout.splitlines() or ["silent"])[0]


def filled(name, folder, **values):
    """A copy of bench/gateway/NAME in the folder, with the values between its @ signs."""
    text = (HERE / name).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    path = pathlib.Path(folder) / name
    path.write_text(text)
    return str(path)


class Contestants:
    """How to start each of them. A command is made for a folder of its own, an address and the backend's address."""

    NAMES = ("becalm", "haproxy", "haproxy-bare", "nginx", "relay")

    def __init__(self, programs, gateway):
        self.programs = programs
        self.becalm = os.environ.get("BECALM", str(ROOT / "build/release/becalm"))
        self.gateway = gateway or GATEWAY

    def command(self, name, folder, listen, backend):
        if name == "becalm":
            words = {"becalm": self.becalm, "here": HERE, "admin": free_address()}
            return shlex.split(self.gateway.format(listen=listen, backend=backend, **words))
        if name == "nginx":
            return ["nginx", "-p", folder, "-c", filled("nginx.conf", folder, listen=listen, backend=backend)]
        if name == "relay":
            return [str(self.programs / "relay"), listen, backend]
        retries = HAPROXY_RETRIES if name == "haproxy" else HAPROXY_NO_RETRIES
        config = filled("haproxy.cfg", folder, listen=listen, backend=backend, retries=retries)
        return ["haproxy", "-db", "-q", "-f", config]

    def versions(self):
        return [first_line([self.becalm, "--version"]), first_line(["haproxy", "-v"]), first_line(["nginx", "-v"])]


class Stage:
    """The backend, and the programs in front of it. All processes end with this object."""

    def __init__(self, contestants, folder):
        self.contestants = contestants
        self.folder = folder
        self.running = []
        self.backend_address = free_address()
        command = [str(contestants.programs / "backend"), self.backend_address]
        backend = self._keep(Process("backend", command, cores()[0], folder))
        backend.wait_for(self.backend_address)

    def _keep(self, process):
        self.running.append(process)
        return process

    def gateway(self, name, under=()):
        """A contestant that listens, and its address; `under` goes in front of its command."""
        folder = tempfile.mkdtemp(prefix=name, dir=self.folder)
        address = free_address()
        command = [*under, *self.contestants.command(name, folder, address, self.backend_address)]
        process = self._keep(Process(name, command, cores()[1], folder))
        process.wait_for(address)
        return process, address

    def load(self, connections, addresses):
        return self._keep(Load(self.contestants.programs, connections, addresses, self.folder))

    def stop(self, process):
        process.stop()
        self.running.remove(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.stop()
