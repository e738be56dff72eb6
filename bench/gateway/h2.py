#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cost of a request of HTTP/2, or with TLS, through the gateway, in units without noise: user instructions
(cachegrind) and system calls (strace), with bench/gateway/policy.yaml on, by h2load. Both are a long run less a short
one, so that start, end and handshakes are not in them. HAProxy, nginx, nghttpx and floor.c (the protocols and nothing
else) are counted in the same way if they are asked for; one that is not installed is left out.

    bench/gateway/h2.py --becalm build/release/becalm --programs build/release/bench/gateway [--peer haproxy --peer nginx --peer nghttpx --peer floor]

With --race N all run at once, and N times each gets the same load in random order: the CPU time of each, a long run less a short one, and the
median of the ratios within a rotation, with an interval that has the true median with a probability of 95 %."""

import argparse
import itertools
import math
import pathlib
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHEGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--vgdb=no", "--cachegrind-out-file=/dev/null"]
WIDE, FEW, H1 = ["-c", "8", "-m", "16"], ["-c", "8", "-m", "4"], ["--h1", "-c", "64"]
GRPC = ["-H", "content-type: application/grpc", "-H", "te: trailers", "-d"]
# name: (TLS to clients, the hosts' protocol, h2load's connections and streams, its further options, bytes of an answer,
# requests of a short and of a long run)
CASES = {
    "h2c to h1": (False, "h1", WIDE, [], 200, 2048, 8192),
    "TLS h2 to h1": (True, "h1", WIDE, [], 200, 2048, 8192),
    "h2c to h2c": (False, "h2", WIDE, [], 200, 2048, 8192),
    "gRPC unary, h2c to h2c": (False, "h2", WIDE, GRPC, 200, 2048, 8192),
    "TLS h1 to h1": (True, "h1", H1, [], 200, 2048, 8192),
    "64 KiB, h2c to h1": (False, "h1", FEW, [], 65536, 256, 1280),
    "64 KiB, TLS h2 to h1": (True, "h1", FEW, [], 65536, 256, 1280),
    "64 KiB, h2c to h2c": (False, "h2", FEW, [], 65536, 256, 1280),
}
PEERS = {"haproxy": ["haproxy", "-db", "-f"], "nginx": ["nginx", "-c"], "nghttpx": ["nghttpx"], "floor": ["floor"]}
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
        self.tls, self.spoken, self.load, self.more, self.size, self.short, self.long = CASES[case]
        self.host = free_port()
        (folder / str(self.size)).write_bytes(b"x" * self.size)
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
            return [str(self.programs / "floor"), "h1" if self.load is H1 else "h2", self.spoken, f"127.0.0.1:{port}", f"127.0.0.1:{self.host}", *files]
        if self.peer == "nghttpx":
            return self.nghttpx(port)
        path = self.folder / f"{self.peer}.conf"
        path.write_text(self.haproxy(port) if self.peer == "haproxy" else self.nginx(port))
        return [*PEERS[self.peer], str(path), *(["-p", str(self.folder)] if self.peer == "nginx" else [])]

    def haproxy(self, port):
        cert, key = self.files()
        (self.folder / "both.pem").write_bytes(cert.read_bytes() + key.read_bytes())
        listen = f"127.0.0.1:{port} " + (f"ssl crt {self.folder}/both.pem alpn h2,http/1.1" if self.tls else "proto h2")
        return HAPROXY.format(listen=listen, host=f"127.0.0.1:{self.host}", server="proto h2" if self.spoken == "h2" else "")

    def nghttpx(self, port):
        """Its first file is the key. As it is by default it writes an access log and its own name, and ends connections after a while."""
        spoken = "h2" if self.spoken == "h2" else "http/1.1"
        listen = f"--frontend=127.0.0.1,{port}" + ("" if self.tls else ";no-tls")
        quiet = ["--accesslog-file=/dev/null", "--errorlog-file=/dev/null", "--conf=/dev/null", "--no-ocsp", "--single-process", "--workers=1"]
        own = [str(each) for each in reversed(self.files())] if self.tls else []
        return ["nghttpx", *quiet, listen, f"--backend=127.0.0.1,{self.host};;proto={spoken}", *own]

    def nginx(self, port):
        cert, key = self.files()
        by_h1 = 'proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";'
        return NGINX.format(
            host=f"127.0.0.1:{self.host}",
            listen=f"127.0.0.1:{port}" + (" ssl" if self.tls else "") + ("" if self.load is H1 else " http2"),
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
        url = f"{'https' if self.tls else 'http'}://127.0.0.1:{port}/{self.size}"
        done = subprocess.run(["h2load", "-t", "1", *self.load, "-n", str(count), *more, url], capture_output=True, text=True, check=True, timeout=600).stdout
        if f"{count} succeeded" not in done or "0 failed" not in done:
            raise SystemExit(done)

    def instructions(self, count):
        process, port = self.gateway(CACHEGRIND)
        self.ask(port, count)
        stop(process)
        self.log.seek(0)
        return int(re.search(r"I\s+refs:\s+([\d,]+)", self.log.read())[1].replace(",", ""))

    def traced(self, process, port, count):
        """System calls of a number of requests, waiting for events included."""
        path = self.folder / "calls"
        command = ["strace", "--follow-forks", "--summary-only", "--summary-columns=calls,name", "--output", str(path), "--attach", str(process.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            if "attached" not in tracer.stderr.readline():
                raise SystemExit("strace could not attach")
            self.ask(port, count)
            tracer.send_signal(signal.SIGINT)
            tracer.communicate()
        return int(re.search(r"(\d+) total", path.read_text())[1])

    def system_calls(self):
        """Per request; the connections to the host are there already."""
        process, port = self.gateway([])
        self.ask(port, self.short)
        few, many = self.traced(process, port, self.short), self.traced(process, port, self.long)
        stop(process)
        return (many - few) / (self.long - self.short)


def cpu_of(process):
    """Nanoseconds that it ran, in user space and in the kernel."""
    tasks = pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks)


def interval(values):
    """The median, and two of the values between which the true one is with a probability of 95 %."""
    values = sorted(values)
    away = math.ceil(0.98 * math.sqrt(len(values)))
    middle = (len(values) - 1) / 2
    return statistics.median(values), values[max(0, math.floor(middle - away))], values[min(len(values) - 1, math.ceil(middle + away))]


def race(arguments, case, folder):
    """CPU time per request of all of them, in the same rotations."""
    stages, running = {}, {}
    try:
        for peer in [None, *arguments.peer]:
            place = folder / (peer or "becalm")
            place.mkdir()
            stages[peer] = Stage(arguments, place, case, peer)
            running[peer] = stages[peer].gateway([])
            stages[peer].ask(running[peer][1], stages[peer].short)
        cost = {peer: [] for peer in stages}
        for _ in range(arguments.race):
            for peer in random.sample(list(stages), len(stages)):
                (process, port), stage = running[peer], stages[peer]
                few, many = stage.short // 4, stage.long // 2  # short slices: other load hits all programs equally
                marks = [cpu_of(process)]
                for count in (few, many):
                    stage.ask(port, count)
                    marks.append(cpu_of(process))
                cost[peer].append((marks[2] - 2 * marks[1] + marks[0]) / (many - few) / 1000)
        print(f"{case:<26}{'becalm':<10}{statistics.median(cost[None]):>10.1f} us", flush=True)
        for peer in arguments.peer:
            middle, low, high = interval([ours / theirs for ours, theirs in zip(cost[None], cost[peer])])
            print(f"{case:<26}{peer:<10}{statistics.median(cost[peer]):>10.1f} us{middle:>8.2f}  [{low:.2f}, {high:.2f}]", flush=True)
    finally:
        for process, _ in running.values():
            stop(process)
        for stage in stages.values():
            stop(stage.backend)


def installed(arguments, peer):
    found = (arguments.programs / "floor").exists() if peer == "floor" else shutil.which(peer)
    if not found:
        print(f"{peer} is not installed", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--becalm", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="where `backend` is")
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--peer", choices=PEERS, action="append", default=[], help="counted, too")
    parser.add_argument("--race", type=int, metavar="N", help="CPU time instead, in so many rotations")
    arguments = parser.parse_args()
    arguments.peer = [peer for peer in arguments.peer if installed(arguments, peer)]
    if arguments.race:
        for case in arguments.case or CASES:
            with tempfile.TemporaryDirectory() as folder:
                race(arguments, case, pathlib.Path(folder))
        return
    print(f"{'case':<26}{'program':<10}{'instructions':>14}{'system calls':>14}")
    for case, peer in itertools.product(arguments.case or CASES, [None, *arguments.peer]):
        with tempfile.TemporaryDirectory() as folder:
            stage = Stage(arguments, pathlib.Path(folder), case, peer)
            try:
                instructions = (stage.instructions(stage.long) - stage.instructions(stage.short)) / (stage.long - stage.short)
                print(f"{case:<26}{peer or 'becalm':<10}{instructions:>14,.0f}{stage.system_calls():>14.2f}", flush=True)
            finally:
                stop(stage.backend)


if __name__ == "__main__":
    main()
