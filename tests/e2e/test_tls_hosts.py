# SPDX-License-Identifier: MIT
"""TLS towards hosts: verification, names, sessions, and the outcome of a failed handshake."""

import contextlib
import socket
import ssl
import struct

import pytest
from accepting import Accepting
from certs import Authority
from conftest import policy_of, wait_until
from host import Reply, Tunnel
from wire import Wire

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def hosts_of(these, more, rules="", scheme=""):
    """A policy for hosts with TLS; more: further keys of `tls:`."""
    return policy_of(these, "", f"tls: {{{more}}}\n{rules}") if not scheme else policy_of(these, "", rules)


def handshakes(gateway, result):
    return gateway.metric("becalm_tls_handshakes_total", side="hosts", result=result)


@pytest.mark.parametrize("version", [V12, V13])
def test_tls_hosts__bodies_of_all_sizes_pass_both_ways(gateway, host, authority, version):
    this = host(tls=authority.issue().server(minimum_version=version, maximum_version=version))
    edge = gateway(hosts_of([this], f"ca: {authority.cert}"))
    with edge.wire() as wire:
        for size in (0, 1, 4096, 16384, 16385, 65536, 300_000, 1_000_000):
            body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            this.on("/", Reply(body=body), Reply(body=body, chunked=True))
            for _ in range(2):
                assert wire.ask("POST", body=body).body == body
            assert this.got()[-1].body == body
    assert this.connections == 1
    assert this.got()[0].tls.version() == {V12: "TLSv1.2", V13: "TLSv1.3"}[version]
    assert this.got()[0].tls.selected_alpn_protocol() is None  # this host knows none
    assert handshakes(edge, "full") == 1


def test_tls_hosts__the_host_hears_its_name_and_our_protocol(gateway, host, authority):
    heard = []
    context = authority.issue("orders.test", ["DNS:orders.test"]).server()
    context.set_alpn_protocols(["h2", "http/1.1"])
    context.sni_callback = lambda _, name, __: heard.append(name)
    this = host(tls=context)
    edge = gateway(hosts_of([this], f"ca: {authority.cert}, serverName: orders.test", "protocol: h1"))
    assert edge.ask().status == 200
    assert heard == ["orders.test"] and this.got()[0].tls.selected_alpn_protocol() == "http/1.1"


def test_tls_hosts__a_host_is_verified_by_the_name_that_it_is_called_by(gateway, host, authority):
    """localhost by its name, with SNI; 127.0.0.1 by its address, without."""
    heard = []
    context = authority.issue("x", ["DNS:localhost"]).server()
    context.sni_callback = lambda _, name, __: heard.append(name)
    this = host(tls=context)
    rules = "    match: {prefix: /}\n"
    edge = gateway(
        f"services:\n  a:\n    hosts: ['https://localhost:{this.port}']\n    tls: {{ca: {authority.cert}}}\n{rules}"
    )
    wait_until(lambda: edge.ask().status == 200)  # as soon as the name is known
    assert heard[-1] == "localhost"
    other = gateway(f"services:\n  a:\n    hosts: ['https://{this.address}']\n    tls: {{ca: {authority.cert}}}\n{rules}")
    answer = other.ask()
    assert answer.status == 502 and answer.get("proxy-status").startswith("becalm; error=tls_protocol_error")
    assert heard[-1] is None
    assert handshakes(other, "bad_certificate") == 1
    wait_until(lambda: other.log_lines("IP address mismatch"))


def test_tls_hosts__the_dot_of_the_root_is_no_part_of_a_name(gateway, host, authority):
    """It is for resolvers: names with it are asked for as they stand. Certificates and SNI do not have it."""
    heard = []
    context = authority.issue("x", ["DNS:orders.test"]).server()
    context.sni_callback = lambda _, name, __: heard.append(name)
    edge = gateway(hosts_of([host(tls=context)], f"ca: {authority.cert}, serverName: orders.test."))
    assert edge.ask().status == 200 and heard == ["orders.test"]


@pytest.mark.parametrize("fault", ["authority", "name", "expired"])
def test_tls_hosts__whoever_is_not_the_host_gets_no_request(gateway, host, authority, tmp_path, fault):
    stranger = Authority(tmp_path / "stranger", "somebody else")
    shown = {
        "authority": lambda: stranger.issue(),
        "name": lambda: authority.issue("b.test", ["DNS:b.test"]),
        "expired": lambda: authority.issue(days=-1),
    }[fault]()
    this = host(tls=shown.server())
    edge = gateway(hosts_of([this], f"ca: {authority.cert}, serverName: a.test", "maxRetries: 3\n"))
    for _ in range(2):
        answer = edge.ask()
        assert answer.status == 502
        assert answer.get("proxy-status").startswith("becalm; error=tls_protocol_error")
    assert this.requests == []
    assert handshakes(edge, "bad_certificate") == 2  # never retried


def test_tls_hosts__without_ca_the_systems_authorities_are_believed_and_no_others(gateway, host, authority):
    this = host(tls=authority.issue().server())
    policy = hosts_of([this], "serverName: a.test")
    assert gateway(policy).ask().status == 502
    assert gateway(policy, env={"SSL_CERT_FILE": str(authority.cert)}).ask().status == 200


def test_tls_hosts__verify_none_believes_everybody_and_is_called_out(gateway, host, authority):
    this = host(tls=authority.issue("b.test", ["DNS:b.test"]).server())
    edge = gateway(hosts_of([this], "verify: none"))
    assert edge.ask().status == 200
    assert len(edge.told("[tls-unverified]")) == 1


def test_tls_hosts__a_host_that_asks_who_we_are_is_told(gateway, host, authority):
    ours = authority.issue("becalm", ["URI:spiffe://test/becalm"])
    for version in (V12, V13):
        context = authority.issue().server(client_ca=authority.cert, minimum_version=version, maximum_version=version)
        this = host(tls=context)
        edge = gateway(hosts_of([this], f"ca: {authority.cert}, cert: {ours.cert}, key: {ours.key}"))
        assert edge.ask().status == 200
        assert ("URI", "spiffe://test/becalm") in this.got()[0].tls.getpeercert()["subjectAltName"]
        silent = gateway(hosts_of([this], f"ca: {authority.cert}", "attemptTimeout: 2s\n"))
        assert silent.ask().status in (502, 504)
        assert this.count() == 1


@pytest.mark.parametrize("version", [V12, V13])
def test_tls_hosts__the_latest_session_is_offered_again(gateway, host, authority, version):
    this = host(tls=authority.issue().server(minimum_version=version, maximum_version=version))
    edge = gateway(hosts_of([this], f"ca: {authority.cert}"))
    this.on("/", Reply(fields={"Connection": "close"}, end="close"))
    for _ in range(5):
        assert edge.ask().status == 200
    assert this.connections == 5
    assert handshakes(edge, "full") == 1 and handshakes(edge, "resumed") == 4


def test_tls_hosts__tickets_that_come_later_do_not_close_an_idle_connection(gateway, host, authority):
    """TLS 1.3's tickets may come while no answer is expected, and do not count as unsolicited bytes."""
    this = host(tls=authority.issue().server(minimum_version=V13, num_tickets=8))
    edge = gateway(hosts_of([this], f"ca: {authority.cert}"))
    for _ in range(20):
        assert edge.ask().status == 200
        assert edge.ask("POST", body=b"careful").status == 200
    assert this.connections == 1


def test_tls_hosts__words_that_nobody_asked_for_close_an_idle_connection(gateway, host, authority):
    this = host(tls=authority.issue().server())
    edge = gateway(hosts_of([this], f"ca: {authority.cert}"))
    assert edge.ask().status == 200
    this.say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    wait_until(lambda: this.open == 0)
    assert edge.ask().status == 200
    assert this.connections == 2


def test_tls_hosts__a_pooled_connection_that_died_costs_nobody_an_error(gateway, host, authority):
    this = host(tls=authority.issue().server())
    edge = gateway(hosts_of([this], f"ca: {authority.cert}"))
    for _ in range(5):
        assert edge.ask().status == 200
        this.drop_idle()
        assert edge.ask("POST", body=b"x").status == 200


def test_tls_hosts__an_answer_without_length_is_whole_only_with_tls_own_end(gateway, authority):
    """Any machine on the way can send a FIN, but not a close_notify."""
    context = authority.issue().server()
    for polite in (True, False):
        listener = socket.create_server(("127.0.0.1", 0))
        edge = gateway(
            f"services:\n  a:\n    hosts: ['https://127.0.0.1:{listener.getsockname()[1]}']\n"
            f"    tls: {{ca: {authority.cert}}}\n    match: {{prefix: /}}\n"
        )
        with edge.wire() as wire, listener:
            wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            listener.settimeout(30)
            there = context.wrap_socket(listener.accept()[0], server_side=True)
            there.recv(4096)
            there.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf of")
            wire.socket.recv(1, socket.MSG_PEEK)
            if polite:
                there.settimeout(5)
                try:
                    there = there.unwrap()
                except (TimeoutError, OSError):
                    pass
                there.close()
                assert wire.answer().body == b"half of"
            else:
                there.detach_from = socket.socket(fileno=there.detach())
                there.detach_from.close()
                with pytest.raises((EOFError, ConnectionResetError)):
                    wire.answer()


class Enough(Accepting):
    """It reads the beginning of a request, answers and closes while the rest is still being written."""

    def __init__(self, tls):
        self.paths = []
        super().__init__(tls)

    def serve(self, peer, number):
        with peer:
            came = b""
            while b"\r\n\r\n" not in came:
                came += peer.recv(4096)
            self.paths.append(came.split()[1])
            peer.sendall(b"HTTP/1.1 413 Enough\r\nContent-Length: 2\r\n\r\nno")


def test_tls_hosts__a_host_that_has_heard_enough_is_asked_once_and_its_answer_passes(gateway, authority):
    """The end comes between two writes of one request: a part of it was sent."""
    this = Enough(authority.issue().server())
    try:
        edge = gateway(hosts_of([this], f"ca: {authority.cert}", "breaker: {enabled: false}"))
        for number in range(60):
            answer = edge.ask("POST", f"/{number}", body=b"x" * 1_000_000)
            assert (answer.status, answer.body) == (413, b"no")
        assert this.paths == [b"/%d" % number for number in range(60)]
    finally:
        this.listener.close()


class Farewell(Accepting):
    """It sends close_notify in one segment with the last bytes of its answer, and then waits for the gateway's end. It never reads a second request."""

    def __init__(self, context, answer):
        self.context, self.answer, self.paths = context, answer, []
        super().__init__()

    def serve(self, peer, number):
        came, made = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(came, made, server_side=True)

        def until_done(function):
            while True:
                try:
                    return function()
                except ssl.SSLWantReadError:
                    peer.sendall(made.read())
                    came.write(peer.recv(65536) or exit())  # which ends this thread

        with peer:
            until_done(tls.do_handshake)
            self.paths.append(until_done(lambda: tls.read(65536)).split()[1])
            tls.write(self.answer)
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.unwrap()
            peer.sendall(made.read())
            while peer.recv(65536):
                pass


@pytest.mark.parametrize("length", [b"", b"Content-Length: 2\r\n"])
def test_tls_hosts__a_farewell_behind_an_answer_ends_it_and_its_connection(gateway, authority, length):
    """Many hosts close their socket only when the gateway has said goodbye, too."""
    this = Farewell(authority.issue().server(), b"HTTP/1.1 200 OK\r\n" + length + b"\r\nok")
    try:
        edge = gateway(hosts_of([this], f"ca: {authority.cert}"))
        for number in range(3):
            answer = edge.ask("POST", f"/{number}", body=b"x")
            assert (answer.status, answer.body) == (200, b"ok")
        assert this.paths == [b"/0", b"/1", b"/2"]
    finally:
        this.listener.close()


class Reads(Accepting):
    """It reads the beginning of a request, and resets the connection while the rest is still being written."""

    def __init__(self, tls):
        self.paths = []
        super().__init__(tls)

    def serve(self, peer, number):
        came = b""
        while b"\r\n\r\n" not in came:
            came += peer.recv(4096)
        self.paths.append(came.split()[1])
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()


def test_tls_hosts__a_post_that_a_host_has_read_in_part_is_not_sent_again(gateway, authority):
    """All bytes that were sent are acknowledged when the reset comes between two writes of the request."""
    this = Reads(authority.issue().server())
    try:
        rules = f"tls: {{ca: {authority.cert}}}\nbreaker: {{enabled: false}}"
        edge = gateway(policy_of([this], "replay: {perRequest: 4MiB}", rules))
        for number in range(100):
            assert edge.ask("POST", f"/{number}", body=b"x" * 3_000_000).status == 502
        assert this.paths == [b"/%d" % number for number in range(100)]
    finally:
        this.listener.close()


def test_tls_hosts__a_silent_host_is_left_after_the_connect_timeout(gateway):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    edge = gateway(
        f"services:\n  a:\n    hosts: ['https://127.0.0.1:{port}']\n    match: {{prefix: /}}\n"
        "    connectTimeout: 200ms\n    attemptTimeout: 30s\n    maxRetries: 1\n"
    )
    with listener:
        answer = edge.ask()
    assert answer.status == 504 and "connection_timeout" in answer.get("proxy-status")
    assert handshakes(edge, "timeout") == 2  # never sent, so it was tried again


def test_tls_hosts__a_host_that_goes_away_in_the_handshake_is_called_again(gateway, host, authority):
    """The host sent no alert: it restarts, for example."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(30)
    edge = gateway(
        f"services:\n  a:\n    hosts: ['https://127.0.0.1:{listener.getsockname()[1]}']\n    match: {{prefix: /}}\n"
        f"    tls: {{ca: {authority.cert}}}\n    maxRetries: 1\n"
    )
    context = authority.issue().server()
    with listener, edge.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        first = listener.accept()[0]
        first.recv(100)
        first.close()
        with context.wrap_socket(listener.accept()[0], server_side=True) as second:
            second.recv(4096)
            second.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            assert wire.answer().body == b"ok"
    assert handshakes(edge, "closed") == 1


def test_tls_hosts__a_plain_host_behind_https_is_a_failure_of_tls(gateway):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(30)
    edge = gateway(
        f"services:\n  a:\n    hosts: ['https://127.0.0.1:{listener.getsockname()[1]}']\n    match: {{prefix: /}}\n"
    )
    with listener, edge.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        there = listener.accept()[0]
        there.recv(4096)
        there.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert wire.answer().status == 502
        there.close()
    assert handshakes(edge, "plain") == 1


def test_tls_hosts__a_websocket_passes_between_two_sides_with_tls(gateway, host, authority):
    this = host(tls=authority.issue().server())
    this.on("/ws", Tunnel())
    shown = authority.issue()
    edge = gateway(hosts_of([this], f"ca: {authority.cert}"), tls=shown.tls)
    upgrade = b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with Wire(edge.port, tls=authority.client(), name="a.test") as wire:
        wire.send(upgrade)
        head = b""
        while b"\r\n\r\n" not in head:
            head += wire.socket.recv(1)
        assert head.startswith(b"HTTP/1.1 101")
        frame = b"\x82\xfe\x27\x10" + b"\0\0\0\0" + b"q" * 10_000
        for _ in range(20):
            wire.send(frame)
            back = b""
            while len(back) < len(frame):
                back += wire.socket.recv(65536)
            assert back == frame
