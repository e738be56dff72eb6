# SPDX-License-Identifier: MIT
"""The common part of hosts that speak HTTP/2: a listening socket, and a thread for each connection."""

import socket
import threading

GUARD = 60  # seconds to wait for an event: not a claim, a busy machine may need most of them


class Accepting:
    """serve(peer, number) is called in a thread of its own for each connection, the first of which has number 1. tls: a context with which the
    handshake is made before; one that fails is in `errors`, and its connection is not served."""

    def __init__(self, tls=None, listener=None):
        self.tls, self.errors, self.accepted = tls, [], 0
        self.listener = listener or socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.settimeout(GUARD)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            threading.Thread(target=self.begin, args=(peer, self.accepted), daemon=True).start()

    def begin(self, peer, number):
        try:
            peer = peer if self.tls is None else self.tls.wrap_socket(peer, server_side=True)
        except OSError as error:
            self.errors.append(error)
            return
        self.serve(peer, number)
