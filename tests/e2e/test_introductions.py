# SPDX-License-Identifier: MIT
"""proxyProtocol of a service: each connection to its hosts begins with the address of its client. Real receivers
(HAProxy, nginx) report the address that they got; and no request ever goes out on a connection that names another
client."""

import http.client
import shutil
import signal
import socket
import subprocess
import threading

import pytest
from conftest import free_port
from host import Reply, Tunnel, wait_until
from http2 import Http2
from message import request
from wire import Wire, ask

CLIENTS = 24
ROUNDS = 12

HAPROXY = """
defaults
    mode http
    timeout connect 60s
    timeout client 60s
    timeout server 60s
frontend f
    bind {at} accept-proxy {tls}
    http-request return status 200 content-type text/plain lf-string "%[src] %[src_port] %[dst] %[dst_port]"
"""
NGINX = """
daemon off; master_process off; worker_processes 1; error_log stderr crit; pid nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{
        listen {at} proxy_protocol {ssl};
        {tls}
        location / {{
            return 200 "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port";
        }}
    }}
}}
"""


def find(name):
    return shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


@pytest.fixture
def receiver(tmp_path, authority):
    """receiver("haproxy", tls, ip): starts a real one that reads the PROXY protocol and answers with the client's
    address; returns its own address."""
    started = []

    def make(name, tls=False, ip="127.0.0.1"):
        if find(name) is None:
            pytest.skip(f"{name} is not installed")
        folder = tmp_path / f"{name}{len(started)}"
        folder.mkdir()
        port = free_port()
        at = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        shown = authority.issue()
        both = folder / "both.pem"
        both.write_bytes(shown.cert.read_bytes() + shown.key.read_bytes())
        file = folder / "conf"
        if name == "haproxy":
            file.write_text(HAPROXY.format(at=at.strip("[]") if ":" not in ip else f"{ip}:{port}", tls=f"ssl crt {both} alpn h2,http/1.1" if tls else ""))
            command = [find(name), "-db", "-f", str(file)]
        else:
            spoken = f"ssl_certificate {shown.cert}; ssl_certificate_key {shown.key};" if tls else ""
            file.write_text(NGINX.format(at=at, folder=folder, ssl="ssl http2" if tls else "", tls=spoken))
            command = [find(name), "-p", str(folder), "-c", str(file)]
        started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))

        def listens():
            assert started[-1].poll() is None, "it did not start"
            with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
                return probe.connect_ex((ip, port)) == 0

        wait_until(listens)
        return at

    yield make
    for each in started:
        each.terminate()
        each.wait(30)


def has_v6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            return True
    except OSError:
        return False


@pytest.mark.parametrize("name", ["haproxy", "nginx"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_real_receiver_is_told_whose_each_connection_is(gateway, receiver, authority, name, tls, version):
    """Clients of IPv4 and of IPv6, hosts of both, before TLS."""
    ips = ["127.0.0.1"] + (["::1"] if has_v6() else [])
    doors = {(client, there): free_port() for client in ips for there in ips}
    policy = "services:\n"
    for (client, there), port in doors.items():
        listens = f"[{client}]:{port}" if ":" in client else f"{client}:{port}"
        secured = f", tls: {{ca: {authority.cert}, serverName: a.test}}" if tls else ""
        policy += f"  s{port}: {{hosts: ['{receiver(name, tls, there)}'], listen: '{listens}', proxyProtocol: {version}{secured}}}\n"
    gateway(policy)
    for (client, _), port in doors.items():
        for _ in range(2):
            asker = http.client.HTTPConnection(client, port, timeout=60)
            for path in ("/one", "/two"):  # the second by the same connection
                asker.request("GET", path)
                ours = asker.sock.getsockname()
                assert asker.getresponse().read().decode() == f"{client} {ours[1]} {client} {port}", (client, port)
            asker.close()


def introductions(hosts):
    return [(each.get("x-me"), each.introduced) for there in hosts for each in there.requests if each.get("x-me")]


def check_introductions(hosts, version, port):
    """Every request came on a connection that names its own client."""
    seen = introductions(hosts)
    for me, introduced in seen:
        assert introduced == (version, ("TCP4", "127.0.0.1", int(me), "127.0.0.1", port)), (me, introduced)
    return seen


def me(wire):
    return {"X-Me": str(wire.socket.getsockname()[1])}


def crowd(port, rounds=ROUNDS, between=None, fine=(200,)):
    """Many clients at once, each with a connection of its own. Problems are returned."""
    wrong = []

    def one(number):
        try:
            with Wire(port) as wire:
                for turn in range(rounds):
                    answer = wire.ask(path=f"/{number}/{turn}", fields=me(wire))
                    if answer.status not in fine:
                        wrong.append((number, turn, answer.status, answer.get("proxy-status")))
                    if between is not None:
                        between(number, turn)
        except Exception as problem:  # noqa: BLE001 - a thread's problem is the test's
            wrong.append((number, repr(problem)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not wrong, wrong[:5]


CALM = "deadline: 60s\nattemptTimeout: 50s\nlimit: {kind: none}\nbreaker: {enabled: false}\noutlier: {enabled: false}\nhedge: {enabled: false}"


def policy_of(hosts, version, rules="", text=""):
    listed = ", ".join(f"'{each.address}'" for each in hosts)
    lines = [f"    {line}" for line in (CALM + "\n" + rules).splitlines() if line]
    return f"{text or 'pool: {idle: 1h}'}\nservices:\n  a:\n    hosts: [{listed}]\n    match: {{prefix: /}}\n    proxyProtocol: {version}\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_goes_out_under_the_name_of_another_client(gateway, host, version, workers):
    hosts = [host(introduced=True), host(introduced=True)]
    here = gateway(policy_of(hosts, f"v{version}"), workers=workers)
    crowd(here.port)
    assert len(check_introductions(hosts, version, here.port)) == CLIENTS * ROUNDS
    made = sum(each.connections for each in hosts)
    assert made <= CLIENTS * len(hosts), "a client's next request has its connection"
    wait_until(lambda: sum(each.open for each in hosts) == 0, what="they are closed with their clients")


def test_retries_and_hedges_go_out_under_their_own_clients_name(gateway, host):
    """One host fails half of the first attempts, both are slow now and then: attempts of one call are on several connections."""
    hosts = [host(introduced=True), host(introduced=True)]
    lock, tried, late = threading.Lock(), {}, {}

    def reply(request):
        with lock:
            tried[request.target] = number = tried.get(request.target, 0) + 1
        client, turn = map(int, request.target[1:].split("/"))
        if turn % 3 == 0 and number == 1:
            return Reply(503)
        if turn % 3 == 1 and number == 1:  # until the hedge has come
            late[request.target] = True
            return Reply(when=lambda: tried[request.target] > 1)
        return Reply()

    for each in hosts:
        each.on("*", reply)
    rules = "maxRetries: 2\ninitialDelay: 1ms\nbudget: {kind: none}\nhedge: {enabled: true, delay: 20ms, percent: 100, cap: 1000}"
    here = gateway(policy_of(hosts, "v2", rules).replace("    hedge: {enabled: false}\n", ""))
    crowd(here.port)
    seen = check_introductions(hosts, 2, here.port)
    assert len(seen) >= CLIENTS * ROUNDS * 5 // 3, len(seen)


def test_a_pool_of_one_serves_all_clients_in_turn(gateway, host):
    there = host(introduced=True)
    here = gateway(policy_of([there], "v1", text="pool: {maxPerHost: 1}\n"))
    crowd(here.port, rounds=3)
    assert len(check_introductions([there], 1, here.port)) == CLIENTS * 3


def test_a_reload_changes_the_version_for_clients_that_stay(gateway, host):
    there, plain = host(introduced=True), host()
    here = gateway(policy_of([there], "v1"))

    def reload(text):
        before = len(here.log_lines("policy reloaded"))
        here.reload(text)
        here.signal(signal.SIGHUP)
        wait_until(lambda: len(here.log_lines("policy reloaded")) > before, what=here.log)

    def says(wire, version):
        """A worker takes a new policy between two requests."""
        wire.ask(fields=me(wire))
        return there.requests[-1].introduced == (version, ("TCP4", "127.0.0.1", wire.socket.getsockname()[1], "127.0.0.1", here.port))

    with here.wire() as one, here.wire() as two:
        assert says(one, 1) and says(two, 1)
        reload(policy_of([there], "v2"))
        wait_until(lambda: says(one, 2) and says(two, 2))
        wait_until(lambda: there.open == 2, what="those of the version before are closed")
        reload(policy_of([plain], "off"))
        wait_until(lambda: one.ask(path="/plain").status == 200 and plain.count("/plain") > 0)
        wait_until(lambda: there.open == 0)
        for _ in range(3):
            assert one.ask().status == 200 and two.ask().status == 200
        assert plain.connections == 1, "which is everybody's again"


def test_a_dead_connection_is_made_anew_with_the_same_name(gateway, host):
    there = host(introduced=True)
    here = gateway(policy_of([there], "v2"))
    with here.wire() as one, here.wire() as two:
        for wire in (one, two):
            assert wire.ask(fields=me(wire)).status == 200
        there.drop_idle()
        for wire in (two, one):
            assert wire.ask(fields=me(wire)).status == 200
    assert len(check_introductions([there], 2, here.port)) == 4 and there.connections == 4


def test_streams_of_one_client_share_what_is_its_own(gateway, host):
    there = host(introduced=True)
    here = gateway(policy_of([there], "v2"), protocols="[h1, h2]")
    with Http2(here.port) as one, Http2(here.port) as two:
        for client in (one, two, one, two):
            port = str(client.socket.getsockname()[1])
            asked = [client.ask(path="/both", fields=[("x-me", port)]) for _ in range(2)]
            assert all(answer.status == 200 for answer in asked)
    assert len(check_introductions([there], 2, here.port)) == 8 and there.connections == 2
    wait_until(lambda: there.open == 0)


@pytest.mark.parametrize(("version", "word"), [("v1", (1, "UNKNOWN")), ("v2", (2, "LOCAL"))])
def test_a_health_check_says_that_it_is_nobodys(gateway, host, version, word):
    there = host(introduced=True)
    here = gateway(policy_of([there], version, "healthCheck: {path: /healthz, interval: 100ms, timeout: 20s}"))
    there.wait(2, "/healthz")
    assert {each.introduced for each in there.got("/healthz")} == {word}
    assert "fails its health checks" not in here.log()


@pytest.mark.parametrize("name", ["haproxy", "nginx"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_real_receiver_takes_health_checks(gateway, receiver, name, version):
    at = receiver(name)
    here = gateway(
        f"services:\n  a: {{hosts: ['{at}'], match: {{prefix: /}}, proxyProtocol: {version}, healthCheck: {{path: /, interval: 100ms, timeout: 20s}}}}\n"
    )
    wait_until(lambda: here.metric("becalm_health_checks_total", result="passed") >= 2, what=here.log)
    assert here.metric("becalm_health_checks_total", result="failed") == 0


def test_a_client_of_a_unix_socket_has_no_address(gateway, host, tmp_path):
    one, two = host(introduced=True), host(introduced=True)
    text = "".join(
        f"  {name}: {{hosts: ['{there.address}'], listen: 'unix:{tmp_path}/{name}', proxyProtocol: {name}}}\n" for name, there in (("v1", one), ("v2", two))
    )
    gateway("services:\n" + text)
    assert ask(f"{tmp_path}/v1").status == 200 and ask(f"{tmp_path}/v2").status == 200
    assert one.requests[0].introduced == (1, "UNKNOWN") and two.requests[0].introduced == (2, "UNKNOWN")


@pytest.mark.parametrize("family", ["TCP4", "TCP6"])
def test_who_came_behind_a_balancer_is_passed_on(gateway, host, family):
    there = host(introduced=True)
    port = free_port()
    here = gateway(f"services:\n  a: {{hosts: ['{there.address}'], listen: {{address: '127.0.0.1:{port}', proxyProtocol: true}}, proxyProtocol: v1}}\n")
    client = "203.0.113.9" if family == "TCP4" else "2001:db8::9"
    ours = "127.0.0.1" if family == "TCP4" else "::ffff:127.0.0.1"
    with Wire(port) as wire:
        wire.send(f"PROXY {family} {client} {client} 56324 443\r\n".encode())
        assert wire.ask().status == 200
    assert there.requests[0].introduced == (1, (family, client, 56324, ours, port))
    assert there.requests[0].get("x-forwarded-for") == client
    here.end()


def test_a_tunnel_begins_with_it_too(gateway, host):
    there = host(introduced=True).on("/", Tunnel())
    here = gateway(policy_of([there], "v2"))
    with here.wire() as wire:
        fields = {**me(wire), "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
        wire.ask(fields=fields)
    assert len(check_introductions([there], 2, here.port)) == 1


def test_one_address_serves_services_with_and_without_it(gateway, host):
    """Pools are of an address and of how it is spoken to."""
    there = host(introduced=True)
    here = gateway(
        f"services:\n  a: {{hosts: ['{there.address}'], match: {{prefix: /a}}, proxyProtocol: v1}}\n"
        f"  b: {{hosts: ['{there.address}'], match: {{prefix: /b}}, proxyProtocol: v2}}\n"
    )
    with here.wire() as wire:
        for path in ("/a", "/b", "/a", "/b"):
            assert wire.ask(path=path).status == 200
    assert [each.introduced[0] for each in there.requests] == [1, 2, 1, 2] and there.connections == 2


def test_an_idle_connection_of_one_client_makes_room_for_another(gateway, host):
    there, go = host(introduced=True), threading.Event()
    there.on("/slow", Reply(when=go.is_set))
    here = gateway(policy_of([there], "v2", text="pool: {maxPerHost: 2}\n"))
    with here.wire() as idle, here.wire() as slow, here.wire() as third:
        assert idle.ask(fields=me(idle)).status == 200
        slow.send(request(path="/slow", fields=me(slow)))
        there.wait(1, "/slow")
        assert third.ask(fields=me(third)).status == 200
        go.set()
        assert slow.answer().status == 200
        assert idle.ask(fields=me(idle)).status == 200
    assert len(check_introductions([there], 2, here.port)) == 4 and there.connections == 4


def test_a_login_stays_with_its_connection(gateway, host):
    """Its next step has to come on it, though there is another host."""
    hosts, people = [host(introduced=True), host(introduced=True)], set()

    def reply(got):
        word = got.get("authorization")
        if word is None:
            return Reply(200, str((got.introduced, got.peer) in people).encode())
        people.add((got.introduced, got.peer))
        return Reply(401, fields={"WWW-Authenticate": "NTLM go-on"})

    for each in hosts:
        each.on("*", reply)
    here = gateway(policy_of(hosts, "v2"))
    with here.wire() as wire:
        for _ in range(4):
            assert wire.ask(fields=me(wire)).body == b"False"
        assert wire.ask(fields={**me(wire), "Authorization": "NTLM hello"}).status == 401
        for _ in range(8):
            assert wire.ask(fields=me(wire)).body == b"True"
    check_introductions(hosts, 2, here.port)


class LateHandshake(threading.Thread):
    """A host that reads headers at once, and begins TLS with its first connection only when it is told to."""

    def __init__(self, context):
        super().__init__(daemon=True)
        self.context, self.heard, self.go = context, [], threading.Event()
        self.served = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                made, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(made, not self.heard), daemon=True).start()

    def serve(self, made, first):
        header = b""
        while not header.endswith(b"\r\n"):
            header += made.recv(1)
        self.heard.append(header)
        if first:
            self.go.wait(60)
        try:
            with self.context.wrap_socket(made, server_side=True) as secured:
                while got := secured.recv(65536):
                    self.served.append((header, got))
                    secured.sendall(b"HTTP/1.1 200 Fine\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            pass


def test_a_connection_that_its_client_did_not_wait_for_is_nobody_elses(gateway, authority):
    """It has named that client already, when TLS is through."""
    there = LateHandshake(authority.issue().server())
    here = gateway(
        f"services:\n  a: {{hosts: ['{there.address}'], match: {{prefix: /}}, proxyProtocol: v1, connectTimeout: 50s, attemptTimeout: 55s, deadline: 60s,"
        f" tls: {{ca: {authority.cert}, serverName: a.test}}}}\n"
    )
    with here.wire() as gone:
        gone.send(request(fields=me(gone)))
        wait_until(lambda: there.heard)
        gone.reset()
    here.expect_metric(1, "becalm_calls_total")  # it has ended
    there.go.set()
    for _ in range(4):
        with here.wire() as wire:
            port = wire.socket.getsockname()[1]
            assert wire.ask(fields=me(wire)).status == 200
            header, got = there.served[-1]
            assert header.split(b" ")[4] == str(port).encode() and b": %d\r\n" % port in got
    there.listener.close()


def test_streams_that_wait_in_line_take_what_is_their_own(gateway, host):
    there = host(introduced=True)
    here = gateway(policy_of([there], "v2", text="pool: {maxPerHost: 1, idle: 1h}\n"), protocols="[h1, h2]")
    with Http2(here.port) as client:
        port = str(client.socket.getsockname()[1])
        streams = [client.begin(fields=[("x-me", port)]) for _ in range(6)]
        assert [client.answer(each).status for each in streams] == [200] * 6
    assert len(check_introductions([there], 2, here.port)) == 6 and there.connections == 1


def test_a_connect_does_not_take_what_was_used_before(gateway, host):
    there = host(introduced=True)
    here = gateway(f"connect: on\nservices:\n  a.test: {{hosts: ['{there.address}'], proxyProtocol: v2}}\n")
    with here.wire() as wire:
        assert wire.ask(host="a.test", fields=me(wire)).status == 200
        assert wire.send(b"CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n").answer("CONNECT").status == 200
        assert wire.ask(path="/inside", fields=me(wire)).status == 200
    assert len(check_introductions([there], 2, here.port)) == 2 and there.connections == 2
