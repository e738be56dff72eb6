# SPDX-License-Identifier: MIT
"""TLS towards clients: real openssl, curl and python's ssl against a running gateway."""

import socket
import ssl
import subprocess

import pytest
from certs import Authority, openssl
from conftest import free_port, policy_of, wait_until
from host import Reply
from wire import Wire

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture
def edge(gateway, host, authority):
    """edge(): a gateway with TLS before a plain host, and the context of a client that believes it."""

    def make(more="", rules="", text="", **options):
        this = host()
        shown = authority.issue()
        tls = f"{{certificates: [{shown.yaml}]{more}}}"
        made = gateway(policy_of([this], text, rules), tls=tls, **options)
        made.host, made.shown, made.believes = this, shown, authority.client()
        return made

    return make


def handshakes(gateway, result, side="clients"):
    return gateway.metric("becalm_tls_handshakes_total", side=side, result=result)


def said_once(gateway, words):
    """The log is written a moment later."""
    wait_until(lambda: gateway.log_lines(words))
    assert len(gateway.told(words)) == 1


def refused(gateway, context, name="a.test", say=b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
    """The alert that the client hears, in OpenSSL's words."""
    with pytest.raises(ssl.SSLError) as error:
        with Wire(gateway.port, tls=context, name=name) as wire:
            wire.send(say)
            wire.socket.recv(1)
    return str(error.value)


def s_client(gateway, *words, say=b"", name="a.test", patience=30):
    """The output of openssl s_client, which stays until the gateway closes."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port}", "-servername", name, *map(str, words)]
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, input=say, timeout=patience, check=False, **said).stdout.decode("latin-1")


@pytest.mark.parametrize("version", [V12, V13])
def test_tls__requests_and_answers_of_all_sizes_pass(edge, version):
    gateway = edge()
    context = gateway.believes
    context.minimum_version = context.maximum_version = version
    sizes = [0, 1, 4095, 4096, 4097, 16383, 16384, 16385, 65536, 200_000, 1_000_000]
    with Wire(gateway.port, tls=context, name="a.test") as wire:
        for size in sizes:
            body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            gateway.host.on("/", Reply(body=body))
            assert wire.ask("POST", body=body).body == body
            assert gateway.host.got()[-1].body == body
    assert gateway.host.connections == 1


def test_tls__many_requests_in_one_write_are_answered_in_turn(edge):
    gateway = edge()
    with Wire(gateway.port, tls=gateway.believes, name="a.test") as wire:
        wire.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i for i in range(200)))
        assert [wire.answer().body.split()[2] for _ in range(200)] == [b"/%d" % i for i in range(200)]


class Bio:
    """A client that has its sealed bytes in its own hands."""

    def __init__(self, gateway, piece=65536):
        self.raw = socket.create_connection(("127.0.0.1", gateway.port))
        self.raw.settimeout(30)
        self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.there, self.back, self.piece = ssl.MemoryBIO(), ssl.MemoryBIO(), piece
        self.tls = gateway.believes.wrap_bio(self.back, self.there, server_hostname="a.test")
        self.do(self.tls.do_handshake)

    def pump(self):
        sealed = self.there.read()
        for at in range(0, len(sealed), self.piece):
            self.raw.sendall(sealed[at : at + self.piece])

    def do(self, what):
        while True:
            try:
                return what()
            except ssl.SSLWantReadError:
                self.pump()
                data = self.raw.recv(65536)
                self.back.write(data) if data else self.back.write_eof()

    def write(self, data):
        self.tls.write(data)
        self.pump()

    def read(self):
        return self.do(lambda: self.tls.read(100_000))

    def close_notify(self):
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.pump()


def test_tls__bytes_that_come_one_by_one_are_understood(edge):
    """Each record is cut into TCP segments of one byte."""
    client = Bio(edge(), piece=1)
    client.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.read().startswith(b"HTTP/1.1 200")
    client.raw.close()


def test_tls__a_reader_that_stops_for_a_while_gets_the_whole_answer(edge):
    gateway = edge()
    gateway.host.on("/", Reply(body=b"0123456789abcdef" * 500_000))
    with Wire(gateway.port, tls=gateway.believes, name="a.test", receive_buffer=4096) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: gateway.metric("becalm_buffered_bytes") > 0)
        assert wire.answer().body == b"0123456789abcdef" * 500_000
    wait_until(lambda: gateway.metric("becalm_buffered_bytes") == 0)


def test_tls__curl_and_s_client_get_answers_and_http_1_1_by_alpn(edge, authority):
    gateway = edge()
    address = ["--resolve", f"a.test:{gateway.port}:127.0.0.1", f"https://a.test:{gateway.port}/x"]
    curl = ["curl", "-sS", "--cacert", str(authority.cert), "-w", "%{http_code} %{http_version}", "-o", "/dev/null"]
    done = subprocess.run([*curl, *address], capture_output=True, timeout=30, check=False)
    assert done.stdout == b"200 1.1", done.stderr
    said = s_client(
        gateway, "-CAfile", authority.cert, "-verify_return_error", "-alpn", "h2,http/1.1", "-ign_eof",
        say=b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )  # fmt: skip
    assert "ALPN protocol: http/1.1" in said and "Verify return code: 0 (ok)" in said and "HTTP/1.1 200" in said


def test_tls__a_client_that_speaks_none_of_our_protocols_is_told_so(edge):
    gateway = edge()
    context = gateway.believes
    context.set_alpn_protocols(["h2"])
    assert "NO_APPLICATION_PROTOCOL" in refused(gateway, context).upper().replace(" ", "_")
    assert handshakes(gateway, "no_common") == 1


def test_tls__old_versions_and_weak_ciphers_are_refused(edge):
    gateway = edge(more=", minVersion: 1.3")
    context = gateway.believes
    context.maximum_version = V12
    assert "PROTOCOL_VERSION" in refused(gateway, context).upper()
    other = edge()
    weak = other.believes
    weak.maximum_version = V12
    weak.set_ciphers("AES128-SHA:@SECLEVEL=0")
    assert "HANDSHAKE_FAILURE" in refused(other, weak).upper()
    for each in (gateway, other):
        assert handshakes(each, "no_common") == 1


def test_tls__the_certificate_is_chosen_by_the_name_that_the_client_asks_for(gateway, host, authority):
    these = [
        authority.issue("first.test", ["DNS:first.test"]),
        authority.issue("x", ["DNS:*.wild.test", "DNS:both.test"]),
        authority.issue("exact.wild.test", ["DNS:exact.wild.test"]),
        authority.issue("old-style.test", []),
    ]
    listener = f"{{certificates: [{', '.join(each.yaml for each in these)}]}}"
    edge = gateway(policy_of([host()]), tls=listener)
    context = authority.client(check_hostname=False)
    expected = {
        "first.test": 0, "both.test": 1, "a.wild.test": 1, "A.WILD.test": 1, "exact.wild.test": 2,
        "a.b.wild.test": 0, "wild.test": 0, "old-style.test": 3, "nobody.test": 0, None: 0,
        "both.test.": 1, "a.wild.test.": 1,
    }  # fmt: skip
    for name, number in expected.items():
        with Wire(edge.port, tls=context, name=name) as wire:
            shown = ssl.PEM_cert_to_DER_cert(these[number].cert.read_text())
            assert wire.socket.getpeercert(binary_form=True) == shown, name
            assert wire.ask().status == 200


@pytest.mark.parametrize("version", [V12, V13])
def test_tls__strict_sni_turns_away_who_asks_for_no_name_of_a_certificate(gateway, host, authority, version):
    these = [authority.issue("x", ["DNS:first.test", "DNS:*.wild.test"]), authority.issue("y", ["DNS:second.test"])]
    listener = f"{{certificates: [{', '.join(each.yaml for each in these)}], strictSni: true}}"
    edge = gateway(policy_of([host()]), tls=listener)
    context = authority.client(check_hostname=False, minimum_version=version, maximum_version=version)
    for name in ("first.test", "a.wild.test", "second.test"):
        with Wire(edge.port, tls=context, name=name) as wire:
            assert wire.ask().status == 200
            session = wire.socket.session
    for name in ("nobody.test", "wild.test", None):
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            Wire(edge.port, tls=context, name=name)
    wait_until(lambda: handshakes(edge, "unknown_name") == 3)
    assert "unrecognized name" in s_client(edge, name=".wild.test", patience=60)  # no label before the dot
    if version == V13:  # in TLS 1.2 a session has the name that it began with
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            Wire(edge.port, tls=context, name="nobody.test", session=session)


@pytest.mark.parametrize("version", [V12, V13])
def test_tls__sessions_are_resumed_on_every_worker_and_after_a_reload(edge, version):
    gateway = edge(workers=4)
    context = gateway.believes
    context.minimum_version = context.maximum_version = version
    session = None
    for number in range(20):
        with Wire(gateway.port, tls=context, name="a.test", session=session) as wire:
            assert wire.ask().status == 200
            assert wire.socket.session_reused == (number > 0)
            session = wire.socket.session
        if number == 10:
            gateway.reload(gateway.path.read_text() + "# new\n")
            wait_until(lambda: gateway.log_lines("policy reloaded"))
    assert handshakes(gateway, "full") == 1 and handshakes(gateway, "resumed") == 19


def test_tls__replicas_with_the_same_ticket_keys_resume_each_others_sessions(edge, tmp_path):
    keys = tmp_path / "tickets"
    new, old = (openssl("rand", "-base64", 80).replace(b"\n", b"") for _ in range(2))
    keys.write_bytes(old + b"\n")
    first = edge(more=f", ticketKeysFile: {keys}")
    with Wire(first.port, tls=first.believes, name="a.test") as wire:
        wire.ask()
        session = wire.socket.session
    keys.write_bytes(new + b"\n" + old + b"\n")
    second = edge(more=f", ticketKeysFile: {keys}")
    third = edge()
    for each, reused in ((second, True), (third, False)):
        with Wire(each.port, tls=first.believes, name="a.test", session=session) as wire:
            assert wire.ask().status == 200
            assert wire.socket.session_reused == reused


def test_tls__early_data_is_never_taken(edge, tmp_path):
    """A replayed request would be a retry that no budget paid for."""
    gateway = edge()
    session, early = tmp_path / "session", tmp_path / "early"
    early.write_bytes(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
    ask = b"GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    first = s_client(gateway, "-tls1_3", "-sess_out", session, "-ign_eof", say=ask)
    assert "Max Early Data: 0" in first
    s_client(gateway, "-tls1_3", "-sess_in", session, "-early_data", early, "-ign_eof", say=ask)
    assert gateway.host.count("/late") == 2 and gateway.host.count("/early") == 0


def test_tls__plain_http_to_a_tls_address_is_answered_in_plain_words_and_said_once(edge):
    gateway = edge()
    for _ in range(3):
        answer = gateway.ask()
        assert answer.status == 400 and b"https://" in answer.body
    said_once(gateway, "plain HTTP to an address with TLS")
    assert handshakes(gateway, "plain") == 3
    with gateway.wire() as wire:
        wire.send(b"\0\1\2\3garbage")
        assert wire.at_end()


def test_tls__tls_or_http_2_to_a_plain_address_ends_at_once_and_is_said_once(pair, authority):
    gateway, _ = pair("headerTimeout: 60s")
    for _ in range(3):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Wire(gateway.port, tls=authority.client(), name="a.test")
    said_once(gateway, "speaks TLS to an address without")
    with gateway.wire() as wire:
        wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert wire.answer().status == 505
        assert wire.at_end()
    said_once(gateway, "speaks HTTP/2")


def test_tls__a_handshake_that_does_not_come_is_ended_as_a_head_would_be(edge):
    gateway = edge(text="headerTimeout: 300ms")
    with gateway.wire() as silent, gateway.wire() as half:
        half.send(b"\x16\x03\x01\x02\x00\x01")
        assert silent.at_end() and half.at_end()
    assert handshakes(gateway, "timeout") == 2
    with Wire(gateway.port, tls=gateway.believes, name="a.test") as wire:
        assert wire.ask().status == 200


def test_tls__client_certificates_are_asked_for_checked_and_counted(gateway, host, authority, tmp_path):
    stranger = Authority(tmp_path / "stranger", "somebody else")
    shown = authority.issue()
    tls = f"{{certificates: [{shown.yaml}], clientCa: {authority.cert}}}"
    edge = gateway(policy_of([host()]), tls=tls)
    with Wire(edge.port, tls=authority.client(authority.issue("caller")), name="a.test") as wire:
        assert wire.ask().status == 200
    assert "CERTIFICATE_REQUIRED" in refused(edge, authority.client()).upper()
    other = authority.client(stranger.issue("caller"))
    assert "UNKNOWN_CA" in refused(edge, other).upper()
    assert "EXPIRED" in refused(edge, authority.client(authority.issue("caller", days=-1))).upper()
    assert handshakes(edge, "no_certificate") == 1 and handshakes(edge, "bad_certificate") == 2
    lenient = gateway(policy_of([host()]), tls=tls.replace("clientCa", "clientAuth: optional, clientCa"))
    with Wire(lenient.port, tls=authority.client(), name="a.test") as wire:
        assert wire.ask().status == 200
    assert "UNKNOWN_CA" in refused(lenient, other).upper()


@pytest.mark.parametrize("version", [V12, V13])
def test_tls__a_ticket_does_not_open_a_door_that_asks_for_a_certificate(gateway, host, authority, version):
    """Both listeners seal their tickets with the same keys."""
    shown = authority.issue()
    open_door, guarded = free_port(), free_port()
    doors = [
        f"{{address: 127.0.0.1:{open_door}, tls: {{certificates: [{shown.yaml}]}}}}",
        f"{{address: 127.0.0.1:{guarded}, tls: {{certificates: [{shown.yaml}], clientCa: {authority.cert}}}}}",
    ]
    edge = gateway(policy_of([host()], f"listen: [{', '.join(doors)}]"), listen=None)
    context = authority.client(minimum_version=version, maximum_version=version)
    with Wire(open_door, tls=context, name="a.test") as wire:
        assert wire.ask().status == 200
        session = wire.socket.session
    with pytest.raises(ssl.SSLError) as error:
        with Wire(guarded, tls=context, name="a.test", session=session) as wire:
            wire.ask()
    assert "ALERT" in str(error.value).upper()
    assert handshakes(edge, "no_certificate") == 1 and handshakes(edge, "resumed") == 0


def test_tls__the_end_of_a_connection_is_told_by_tls_too(edge):
    gateway = edge()
    with Wire(gateway.port, tls=gateway.believes, name="a.test") as wire:
        wire.socket.suppress_ragged_eofs = False
        assert wire.ask(fields={"Connection": "close"}).status == 200
        assert wire.socket.recv(100) == b""  # an end without close_notify would raise


@pytest.mark.parametrize("told", [True, False])
def test_tls__a_client_that_closes_its_side_gets_its_answer(edge, told):
    """With TLS's own end before the socket's, or without it."""
    gateway = edge()
    gateway.host.on("/", Reply(delay=0.2, body=b"late"))
    client = Bio(gateway)
    client.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    gateway.host.wait(1)
    if told:
        client.close_notify()
    client.raw.shutdown(socket.SHUT_WR)
    heard = b""
    while not heard.endswith(b"late"):
        client.back.write(client.raw.recv(65536))
        try:
            heard += client.tls.read(100_000)
        except ssl.SSLWantReadError:
            pass
    client.raw.close()


def test_tls__nobody_renegotiates(edge):
    gateway = edge()
    said = s_client(gateway, "-tls1_2", say=b"R\n")
    assert "RENEGOTIATING" in said and "no renegotiation" in said


def test_tls__nobody_untrusted_says_who_a_client_is_by_its_certificate(edge, pair):
    """x-forwarded-client-cert is passed on for clients in `trust:`."""
    gateway = edge()
    said = {"X-Forwarded-Client-Cert": "URI=spiffe://test/admin"}
    with Wire(gateway.port, tls=gateway.believes, name="a.test") as wire:
        assert wire.ask(fields=said).status == 200
    assert gateway.host.got()[0].get("x-forwarded-client-cert") is None
    for trust, passed in (("[]", None), ("[127.0.0.0/8]", said["X-Forwarded-Client-Cert"])):
        other, this = pair(f"trust: {trust}")
        assert other.ask(fields=said).status == 200
        assert this.got()[0].get("x-forwarded-client-cert") == passed
