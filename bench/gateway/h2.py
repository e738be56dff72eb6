#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a request of HTTP/2 through the gateway takes that no noise touches: user instructions (cachegrind) and system calls (strace), with
bench/gateway/policy.yaml on, by h2load with 8 connections of 16 streams. Instructions are a long run less a short one, so that
start, end and handshakes are not in them. HAProxy, nginx and floor.c (the protocols
and nothing else) are counted in the same way if they are asked for.

    bench/gateway/h2.py --becalm build/release/becalm --programs build/release/bench/gateway [--peer haproxy --peer nginx --peer floor]"""

import argparse
import itertools
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHEGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--vgdb=no", "--cachegrind-out-file=/dev/null"]
SHORT, LONG = 2048, 8192
LOAD = ["h2load", "-c", "8", "-m", "16", "-t", "1"]
# name: (TLS to clients, the hosts' protocol, what h2load sends beside it)
CASES = {
    "h2c to h1": (False, "h1", []),
    "TLS h2 to h1": (True, "h1", []),
    "h2c to h2c": (False, "h2", []),
    "gRPC unary, h2c to h2c": (False, "h2", ["-H", "content-type: application/grpc", "-H", "te: trailers", "-d"]),
}
PEERS = {"haproxy": ["haproxy", "-db", "-f"], "nginx": ["nginx", "-c"], "floor": ["floor"]}
HAPROXY = """global
    nbthread 1
    maxconn 1000
    no strict-limits
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 16s
    timeout http-keep-alive 60s
    http-reuse always
    option redispatch
    retries 2
    retry-on conn-failure empty-response response-timeout 502 503 504
listen race
    bind {listen}
    server one {host} {server}
"""
NGINX = """daemon off;
master_process off;
worker_processes 1;
error_log stderr warn;
pid nginx.pid;
events {{ worker_connections 1000; }}
http {{
    access_log off;
    keepalive_timeout 60s;
    keepalive_requests 1000000000;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream backend {{ server {host}; keepalive 1024; keepalive_requests 1000000000; }}
    server {{
        listen {listen};
        {certificate}
        http2_max_requests 1000000000;
        location / {{ {passes} }}
    }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    for _ in range(3000):  # under valgrind, beside other work, it takes a while
        if process.poll() is not None:
            raise SystemExit(f"{process.args[0]} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"{process.args[0]} does not listen")


def start(command, port, log):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
    wait_for(port, process)
    return process


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(60)


class Stage:
    def __init__(self, arguments, folder, case, peer=None):
        self.folder, self.becalm, self.programs, self.peer = folder, arguments.becalm, arguments.programs, peer
        self.tls, self.spoken, self.more = CASES[case]
        self.host = free_port()
        (folder / "200").write_bytes(b"x" * 200)
        (folder / "message").write_bytes(b"\0\0\0\0\x0a0123456789")
        own = [str(arguments.programs / "backend"), f"127.0.0.1:{self.host}"]
        h2 = ["nghttpd", "--no-tls", "-d", str(folder), "--trailer=grpc-status: 0", str(self.host)]
        self.backend = start(own if self.spoken == "h1" else h2, self.host, subprocess.DEVNULL)

    def gateway(self, under):
        port = free_port()
        command = self.ours(port) if self.peer is None else self.theirs(port)
        self.log = open(self.folder / "log", "w+")
        return start([*under, *command], port, self.log), port

    def theirs(self, port):
        if self.peer == "floor":  # bench/gateway/floor.c: nghttp2, OpenSSL, epoll, and nothing else
            files = [str(each) for each in self.files()] if self.tls else []
            return [str(self.programs / "floor"), "h2", self.spoken, f"127.0.0.1:{port}", f"127.0.0.1:{self.host}", *files]
        path = self.folder / f"{self.peer}.conf"
        path.write_text(self.haproxy(port) if self.peer == "haproxy" else self.nginx(port))
        return [*PEERS[self.peer], str(path), *(["-p", str(self.folder)] if self.peer == "nginx" else [])]

    def haproxy(self, port):
        cert, key = self.files()
        (self.folder / "both.pem").write_bytes(cert.read_bytes() + key.read_bytes())
        listen = f"127.0.0.1:{port} " + (f"ssl crt {self.folder}/both.pem alpn h2,http/1.1" if self.tls else "proto h2")
        return HAPROXY.format(listen=listen, host=f"127.0.0.1:{self.host}", server="proto h2" if self.spoken == "h2" else "")

    def nginx(self, port):
        cert, key = self.files()
        by_h1 = 'proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";'
        return NGINX.format(
            host=f"127.0.0.1:{self.host}",
            listen=f"127.0.0.1:{port} http2" + (" ssl" if self.tls else ""),
            certificate=f"ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {cert}; ssl_certificate_key {key};" if self.tls else "",
            passes="grpc_pass grpc://backend;" if self.spoken == "h2" else by_h1,
        )

    def ours(self, port):
        listen = f"{{address: '127.0.0.1:{port}', protocols: [h2, h1]{self.certificate()}}}"
        sets = [f"listen={listen}", "admin=none", f"services.backend.hosts=['127.0.0.1:{self.host}']", f"services.backend.protocol={self.spoken}"]
        return [str(self.becalm), "proxy", *(word for each in sets for word in ("--set", each)), str(HERE / "policy.yaml")]

    def certificate(self):
        if not self.tls:
            return ""
        cert, key = self.files()
        return f", tls: {{certificates: [{{cert: {cert}, key: {key}}}]}}"

    def files(self):
        cert, key = self.folder / "cert.pem", self.folder / "key.pem"
        if not cert.exists():
            made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost"]
            subprocess.run([*made, "-keyout", key, "-out", cert, "-days", "2"], check=True, capture_output=True)
        return cert, key

    def ask(self, port, count):
        more = [*self.more, str(self.folder / "message")] if self.more else []
        url = f"{'https' if self.tls else 'http'}://127.0.0.1:{port}/200"
        done = subprocess.run([*LOAD, "-n", str(count), *more, url], capture_output=True, text=True, check=True, timeout=600).stdout
        if f"{count} succeeded" not in done or "0 failed" not in done:
            raise SystemExit(done)

    def instructions(self, count):
        process, port = self.gateway(CACHEGRIND)
        self.ask(port, count)
        stop(process)
        self.log.seek(0)
        return int(re.search(r"I\s+refs:\s+([\d,]+)", self.log.read())[1].replace(",", ""))

    def system_calls(self):
        """Per request, waiting for events included; the connections to the host are there already."""
        path = self.folder / "calls"
        process, port = self.gateway([])
        self.ask(port, SHORT)
        command = ["strace", "--follow-forks", "--summary-only", "--summary-columns=calls,name", "--output", str(path), "--attach", str(process.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            if "attached" not in tracer.stderr.readline():
                raise SystemExit("strace could not attach")
            self.ask(port, LONG)
            tracer.send_signal(signal.SIGINT)
            tracer.communicate()
        stop(process)
        return int(re.search(r"(\d+) total", path.read_text())[1]) / LONG


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--becalm", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="where `backend` is")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--peer", choices=PEERS, action="append", default=[], help="counted, too")
    arguments = parser.parse_args()
    print(f"{'case':<26}{'program':<10}{'instructions':>14}{'system calls':>14}")
    for case, peer in itertools.product(arguments.case or CASES, [None, *arguments.peer]):
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(arguments, pathlib.Path(folder), case, peer)
            try:
                instructions = (stage.instructions(LONG) - stage.instructions(SHORT)) / (LONG - SHORT)
                print(f"{case:<26}{peer or 'becalm':<10}{instructions:>14,.0f}{stage.system_calls():>14.2f}", flush=True)
            finally:
                stop(stage.backend)


if __name__ == "__main__":
    main()
