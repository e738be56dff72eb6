# SPDX-License-Identifier: MIT
"""An application as most are: it calls another service for each request, and passes nothing on but `traceparent`.
    passer.py PATH PORT: listens at a Unix socket of that path, and calls http://next/ by way of the proxy at that port of 127.0.0.1."""

import http.client
import os
import socketserver
import sys
from http.server import BaseHTTPRequestHandler

PATH, PORT = sys.argv[1], int(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        call = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        call.request("GET", "/", headers={"Host": "next", "traceparent": self.headers.get("traceparent", "")})
        answer = call.getresponse()
        body = answer.read()
        call.close()
        self.send_response(200 if answer.status == 200 else 502)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(PATH + ".new", Handler)
os.rename(PATH + ".new", PATH)  # it is there when it listens
server.serve_forever()
