# SPDX-License-Identifier: MIT
"""Ports that belong to one test program. A host that stops and starts again would otherwise find requests of another
test's gateway, whose own host had the port before: the kernel gives a free port to the next program that asks."""

import itertools
import random
import socket
import threading


def claimed_ports(size=200):
    """Ports in turn, of a block that is this program's alone for as long as it runs, though others look for ports, too.
    They are below the kernel's own range, so that no outgoing connection takes one."""
    blocks = list(range(10000, 32000, size))
    random.shuffle(blocks)
    for first in blocks:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0becalm-tests-ports-{first}")
        except OSError:
            claim.close()
            continue
        for port in itertools.cycle(range(first, first + size)):
            yield claim, port


PORTS = claimed_ports()
PORTS_LOCK = threading.Lock()


def free_port():
    """A port of 127.0.0.1 without a listener. Old connections on it that only wait for their end do not matter."""
    while True:
        with PORTS_LOCK:
            _, port = next(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
