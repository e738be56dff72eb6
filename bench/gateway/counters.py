# SPDX-License-Identifier: MIT
"""The cost of a request or a connection apart from time: instructions, system calls, bytes. Each contestant alone."""

import contextlib
import re
import resource
import signal
import subprocess
import time

from contestant import Trouble

SIZE = 200
CONNECTIONS = 64
IDLE_CONNECTIONS = 10000
DESCRIPTORS_SPARE = 1000
# The slices of the two runs whose difference is counted. In its first two seconds becalm learns from each answer how
# long answers take, later from one of 16; that costs a hundred instructions a request, and is not counted.
SHORT_MS, LONG_MS = 3000, 4000
OPEN_MS = 200  # in this time the connections to the backend are opened
TRACED_MS = 500
WARM_REQUESTS = 20000  # one of 64 is kept among becalm's 256 latest decisions: then their memory is in use

CACHEGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--vgdb=no", "--cachegrind-out-file=/dev/null"]


def _counted_run(stage, name, milliseconds):
    """Instructions of a whole run, from start to end, and requests in it."""
    process, address = stage.gateway(name, under=CACHEGRIND)
    load = stage.load(CONNECTIONS, [address])
    requests = load.each(0, SIZE)[0] + load.slice(0, SIZE, milliseconds)[0]
    stage.stop(load)
    stage.stop(process)
    found = re.search(r"I\s+refs:\s+([\d,]+)", process.log.read_text(errors="replace"))
    if not found:
        raise process.trouble("left no count of its instructions")
    return int(found[1].replace(",", "")), requests


def instructions(stage, name):
    """User instructions per request: a long run less a short one, so that start and end are not in it."""
    few, few_requests = _counted_run(stage, name, SHORT_MS)
    many, many_requests = _counted_run(stage, name, LONG_MS)
    return (many - few) / (many_requests - few_requests)


@contextlib.contextmanager
def _traced(process, path):
    """Counts the system calls of a running process."""
    command = ["strace", "--summary-only", "--summary-columns=calls,name", "--follow-forks"]
    command += ["--output", str(path), "--attach", str(process.pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        said = tracer.stderr.readline()
        if "attached" not in said:
            raise Trouble(f"strace could not attach: {said.strip()}")
        try:
            yield
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.communicate()


def system_calls(stage, name):
    """System calls per request, waiting for events included."""
    process, address = stage.gateway(name)
    load = stage.load(CONNECTIONS, [address])
    load.each(0, SIZE)
    load.slice(0, SIZE, OPEN_MS)
    path = process.log.with_name("calls")
    with _traced(process, path):
        requests = load.slice(0, SIZE, TRACED_MS)[0]
    stage.stop(load)
    stage.stop(process)
    total = re.search(r"(\d+) total", path.read_text())
    return int(total[1]) / requests


def memory(stage, name):
    """Resident bytes at the start, and per idle connection that has had one request. Code that runs for the first time meanwhile is no
    connection's: the kernel maps 64 KiB of it at once."""
    process, address = stage.gateway(name)
    at_start = process.resident_bytes()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    connections = min(IDLE_CONNECTIONS, limit - DESCRIPTORS_SPARE)
    warm = stage.load(CONNECTIONS, [address])  # memory that the first requests allocate does not count for connections
    requests = 0
    while requests < WARM_REQUESTS:
        requests += warm.slice(0, SIZE, TRACED_MS)[0]
    before = process.resident_bytes("RssAnon")
    load = stage.load(connections, [address])
    load.each(0, SIZE)
    time.sleep(0.2)
    after = process.resident_bytes("RssAnon")
    for each in (load, warm, process):
        stage.stop(each)
    return at_start, (after - before) / connections
