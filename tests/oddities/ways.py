# SPDX-License-Identifier: MIT
"""The proxies between, each set up by an expert's rules to change as little as possible, and without
retries, so that a host sees each request once."""

import pathlib
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

BECALM = """
explain: off
upgrades: [websocket, tcp, SPDY/3.1]
services:
  a:
    hosts: [{host}]
    match: {{prefix: /}}
    maxRetries: 0
    attemptTimeout: 20s
    deadline: 30s
    breaker: {{enabled: false}}
    endpoints:
      duplex: {{match: {{path: /duplex}}, replay: off}}
"""

NGINX = """
daemon off; master_process off; worker_processes 1; error_log stderr crit; pid nginx.pid;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    underscores_in_headers on; ignore_invalid_headers off; merge_slashes off;
    large_client_header_buffers 8 32k; client_max_body_size 0;
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    upstream a {{ server {host} max_fails=0; keepalive 16; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://a;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_pass_header Server; proxy_pass_header Date; proxy_pass_header X-Accel-Buffering;
            proxy_pass_header X-Accel-Expires; proxy_ignore_headers X-Accel-Expires X-Accel-Buffering;
            proxy_buffering off; proxy_request_buffering off; proxy_buffer_size 64k; proxy_buffers 8 64k;
            proxy_next_upstream off; proxy_redirect off;
        }}
    }}
}}
"""

HAPROXY = """
global
    nbthread 1
    tune.http.maxhdr 256
    tune.bufsize 65536
    no strict-limits
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    timeout tunnel 20s
    retries 0
    http-reuse safe
frontend f
    bind 127.0.0.1:{port}
    default_backend b
backend b
    server a {host}
"""


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Peer:
    """A process of nginx or HAProxy in front of a host."""

    def __init__(self, name, folder, host):
        self.port = _free_port()
        if name == "nginx":
            config = folder / "nginx.conf"
            config.write_text(NGINX.format(host=host.address, port=self.port))
            command = ["nginx", "-p", str(folder), "-c", str(config)]
        else:
            config = folder / "haproxy.cfg"
            config.write_text(HAPROXY.format(host=host.address, port=self.port))
            command = ["haproxy", "-db", "-f", str(config)]
        command[0] = find(name)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < until, f"{name} does not start"
                time.sleep(0.02)

    def end(self):
        self.process.terminate()
        self.process.wait(10)


def find(name):
    return shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
