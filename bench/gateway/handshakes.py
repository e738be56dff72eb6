#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""User instructions (cachegrind) of one TLS connection with one request on it, by a full handshake and by a resumed one: a long run
less a short one, so that start and end are not in them. TLS 1.3, a P-256 certificate, HTTP/1 to clients and to the host.

    bench/gateway/handshakes.py --becalm build/release/becalm --programs build/release/bench/gateway [--peer haproxy --peer nginx]"""

import argparse
import pathlib
import re
import socket
import ssl
import tempfile

import h2

SHORT, LONG = 40, 200
REQUEST = b"GET /200 HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(port, context, session):
    """One connection, one request. Returns the session that the next connection may resume."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as plain:
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as made:
            made.sendall(REQUEST)
            got = b""
            while b"\r\n\r\n" not in got or len(got.split(b"\r\n\r\n", 1)[1]) < 200:
                more = made.recv(65536)
                if not more:
                    raise SystemExit("the connection ended before the answer did")
                got += more
            return made.session, made.session_reused


def run(stage, resumed, count):
    process, port = stage.gateway(h2.CACHEGRIND)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    session, _ = connect(port, context, None)
    for _ in range(count):
        following, reused = connect(port, context, session if resumed else None)
        if reused != resumed:
            raise SystemExit("the handshake was not the one that is counted")
        session = following
    h2.stop(process)
    stage.log.seek(0)
    return int(re.search(r"I\s+refs:\s+([\d,]+)", stage.log.read())[1].replace(",", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--becalm", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="where `backend` is")
    parser.add_argument("--peer", choices=("haproxy", "nginx"), action="append", default=[], help="counted, too")
    arguments = parser.parse_args()
    print(f"{'program':<10}{'full':>14}{'resumed':>14}")
    for peer in [None, *arguments.peer]:
        with tempfile.TemporaryDirectory() as folder:
            stage = h2.Stage(arguments, pathlib.Path(folder), "TLS h2 to h1", peer)
            try:
                each = [(run(stage, resumed, LONG) - run(stage, resumed, SHORT)) / (LONG - SHORT) for resumed in (False, True)]
                print(f"{peer or 'becalm':<10}{each[0]:>14,.0f}{each[1]:>14,.0f}", flush=True)
            finally:
                h2.stop(stage.backend)


if __name__ == "__main__":
    main()
