# SPDX-License-Identifier: MIT
"""Certificates that change while the gateway runs, and those that are wrong."""

import os
import signal
import ssl
import subprocess
import threading

import pytest
from certs import Authority
from conftest import PROGRAM, free_port, policy_of, wait_until
from host_h2 import HostH2
from http2 import Http2
from wire import Wire

# Policies that take turns: for all, for the service, and how many of its hosts are left out.
OTHERS = [("", "", 0), ("log: {access: json}", "attemptTimeout: 50s", 0), ("replay: {perRequest: 1KiB}", "deadline: 70s", 1)]


def shown_by(gateway, authority):
    with Wire(gateway.port, tls=authority.client(), name="a.test") as wire:
        assert wire.ask().status == 200
        return wire.socket.getpeercert()["serialNumber"]


def hup(gateway, words):
    before = len(gateway.log_lines(words))
    gateway.signal(signal.SIGHUP)
    wait_until(lambda: len(gateway.log_lines(words)) > before)


def refused(gateway, word):
    """The files are as they are now; the gateway may have noticed earlier states of them by itself."""
    gateway.signal(signal.SIGHUP)
    wait_until(lambda: gateway.log_lines(word))


def test_tls_reload__hup_brings_a_new_certificate_and_loses_no_connection(gateway, host, authority):
    first, second = authority.issue(), authority.issue()
    edge = gateway(policy_of([host()]), tls=first.tls, workers=2)
    before = shown_by(edge, authority)
    with Wire(edge.port, tls=authority.client(), name="a.test") as wire:
        assert wire.ask().status == 200
        second.put_at(first)
        hup(edge, "policy reloaded")
        wait_until(lambda: shown_by(edge, authority) != before)
        assert wire.ask().status == 200  # with the certificate that it began with


def test_tls_reload__a_new_file_is_noticed_by_itself(gateway, host, authority):
    first, second = authority.issue(), authority.issue()
    edge = gateway(policy_of([host()]), tls=first.tls)
    before = shown_by(edge, authority)
    (first.cert.parent / "another file").write_text("is none of our business")
    second.put_at(first)
    wait_until(lambda: shown_by(edge, authority) != before)


@pytest.mark.parametrize(
    "less, more, how",
    [
        ("tls.clientAuth: optional", "tls.clientAuth: required", {}),
        ("tls.minVersion: 1.2", "tls.minVersion: 1.3", {"maximum_version": ssl.TLSVersion.TLSv1_2}),
        ("tls.strictSni: false", "tls.strictSni: true", {"name": "nobody.test", "check_hostname": False}),
        ("protocols: [h1]", "protocols: [h2]", {"alpn": ["http/1.1"]}),
    ],
    ids=["clientAuth", "minVersion", "strictSni", "protocols"],
)
def test_tls_reload__what_is_asked_of_clients_changes_with_the_policy_alone(gateway, host, authority, less, more, how):
    """The files are the same: a client that was accepted before is refused, and accepted again with the old policy."""
    this, shown, port = host(), authority.issue(), free_port()
    name, alpn = how.pop("name", "a.test"), how.pop("alpn", None)

    def policy(words):
        of_tls, of_listener = (", " + words[4:], "") if words.startswith("tls.") else ("", ", " + words)
        ca = f", clientCa: {authority.cert}" if "clientAuth" in words else ""
        listener = f"{{address: '127.0.0.1:{port}', tls: {{certificates: [{shown.yaml}]{ca}{of_tls}}}{of_listener}}}"
        return f"listen: [{listener}]\n" + policy_of([this])

    def comes_in():
        context = authority.client(**how)
        if alpn:
            context.set_alpn_protocols(alpn)
        try:
            with Wire(port, tls=context, name=name) as wire:
                return wire.ask().status == 200
        except (ssl.SSLError, OSError, AssertionError):
            return False

    edge = gateway(policy(less), listen=None)
    assert comes_in()
    edge.reload(policy(more))
    wait_until(lambda: not comes_in())
    edge.reload(policy(less))
    wait_until(comes_in)


def test_tls_reload__whether_hosts_are_verified_changes_with_the_policy_alone(gateway, host, authority, tmp_path):
    this = host(tls=Authority(tmp_path / "stranger", "somebody else").issue().server())

    def policy(verify):
        return policy_of([this], "pool: {idle: 0s}", f"tls: {{ca: {authority.cert}, verify: {verify}}}\nmaxRetries: 0")

    edge = gateway(policy("none"))
    assert edge.ask().status == 200
    for verify, status in (("full", 502), ("none", 200)):
        edge.reload(policy(verify))
        wait_until(lambda want=status: edge.ask().status == want)


def test_tls_reload__a_bad_certificate_keeps_the_one_before_and_says_where(gateway, host, authority):
    first, other, late = authority.issue(), authority.issue(), authority.issue(days=-1)
    edge = gateway(policy_of([host()]), tls=first.tls)
    before = shown_by(edge, authority)
    good = first.key.read_bytes(), first.cert.read_bytes()
    first.key.write_bytes(other.key.read_bytes())
    refused(edge, "[key-mismatch]")
    first.key.write_bytes(late.key.read_bytes())
    first.cert.write_bytes(late.cert.read_bytes())
    refused(edge, "[expired]")
    first.cert.write_bytes(b"nothing")
    refused(edge, "[bad-certificate]")
    first.cert.unlink()
    refused(edge, "[unreadable]")
    assert shown_by(edge, authority) == before
    assert edge.metric("becalm_config_last_reload_successful") == 0
    first.key.write_bytes(good[0])
    first.cert.write_bytes(good[1])
    hup(edge, "policy reloaded")
    assert shown_by(edge, authority) == before


def keep_asking(edge, authority, stop, failed, done):
    """Requests over TLS, by HTTP/1.1 and by HTTP/2 with several streams at once, on new connections and on some that
    stay."""

    def h1(asks):
        with Wire(edge.port, tls=authority.client(), name="a.test") as wire:
            for _ in asks:
                assert wire.ask("POST", body=b"x" * 3000).status == 200
                done[0] += 1

    def h2(asks):
        with Http2(edge.port, tls=authority.client()) as client:
            for _ in asks:
                streams = [client.begin("POST", f"/{n}", end=False) for n in range(4)]
                for stream in streams:
                    client.body(stream, b"y" * 3000)
                assert [client.answer(stream).status for stream in streams] == [200] * 4
                done[0] += 4

    def again(work, stays):
        while not stop.is_set():
            try:
                work(iter(lambda: stop.is_set(), True) if stays else range(5))
            except (OSError, EOFError, AssertionError) as error:
                failed.append(repr(error))
                return

    return [threading.Thread(target=again, args=(work, stays)) for work in (h1, h2) for stays in (False, True)]


def test_tls_reload__new_certificates_and_policies_under_load_cost_no_request(gateway, host, authority):
    """Ten of each, with BECALM_SOAK=1 a hundred; the hosts speak TLS, one of them HTTP/2."""
    these, first, at_host = [authority.issue() for _ in range(3)], authority.issue(), authority.issue()
    alpn = at_host.server()
    alpn.set_alpn_protocols(["h2"])
    hosts = [host(tls=authority.issue().server()), HostH2(tls=alpn)]
    rules = f"tls: {{ca: {authority.cert}}}\nmaxRetries: 0\n"
    policies = [policy_of(hosts[: 2 - less], text, rules + more) for text, more, less in OTHERS]
    edge = gateway(policies[0], tls=first.tls, workers=2, protocols="[h2, h1]")
    stop, failed, done = threading.Event(), [], [0]
    threads = keep_asking(edge, authority, stop, failed, done)
    for each in threads:
        each.start()
    try:
        for number in range(100 if os.environ.get("BECALM_SOAK") == "1" else 10):
            these[number % 3].put_at(first)
            edge.reload(policies[number % len(policies)])
            hup(edge, "policy reloaded")
    finally:
        stop.set()
        for each in threads:
            each.join(60)
        hosts[1].close()
    assert failed == [] and done[0] > 0
    assert hosts[1].requests and hosts[0].requests


def test_tls_reload__the_expiry_of_each_certificate_is_a_metric_and_in_the_state(gateway, host, authority):
    import json

    from wire import ask

    shown = authority.issue(days=3)
    edge = gateway(policy_of([host()]), tls=shown.tls)
    when = ssl.cert_time_to_seconds(edge_expiry(shown))
    assert edge.metric("becalm_tls_certificate_expires_seconds", certificate=str(shown.cert)) == when
    state = json.loads(ask(edge.admin, path="/api/state", host=f"127.0.0.1:{edge.admin}").body)
    assert state["tls"]["certificates"] == [{"file": str(shown.cert), "expires": when}]
    assert {"side": "clients", "result": "full", "count": 0} in state["tls"]["handshakes"]
    assert edge.told("[expires]")
    said = subprocess.run([PROGRAM, "top", "--once", "-n", "100ms", f"127.0.0.1:{edge.admin}"], capture_output=True, text=True, timeout=60)
    assert any(f"! certificate expires in {days}d" in said.stdout for days in (2, 3)), said  # 3 in the second in which it was issued
    told = subprocess.run([PROGRAM, "top", "--once", "--json", "-n", "100ms", f"127.0.0.1:{edge.admin}"], capture_output=True, text=True, timeout=60)
    told = json.loads(told.stdout)
    assert told["certificate"]["file"] == str(shown.cert) and 2 * 86400 < told["certificate"]["expiresInSeconds"] <= 3 * 86400
    assert told["handshakes"]["clients"] == {"full": 0, "resumed": 0, "failed": {}} and told["http2"] == {"clientsEnded": {}, "hostsEnded": {}}
    assert told["services"][0]["protocolsPerSecond"] == {"clients": {"h1": 0, "h2": 0, "grpc": 0}, "hosts": {"h1": 0, "h2": 0, "grpc": 0}}


def edge_expiry(shown):
    told = subprocess.run(["openssl", "x509", "-in", shown.cert, "-noout", "-enddate"], capture_output=True, check=True)
    return told.stdout.decode().strip().removeprefix("notAfter=")


def test_tls_reload__the_admin_address_speaks_tls(gateway, host, authority):
    from wire import ask

    shown, port = authority.issue(), free_port()
    edge = gateway(
        policy_of([host()], f"admin: {{address: '127.0.0.1:{port}', tls: {{certificates: [{shown.yaml}]}}}}"), admin=None
    )
    with Wire(port, tls=authority.client(), name="localhost") as wire:
        for path in ("/healthz", "/metrics", "/api/state", "/healthz"):
            assert wire.ask(path=path, host=f"127.0.0.1:{port}").status == 200
    assert ask(port, path="/healthz", host=f"127.0.0.1:{port}").status == 400  # plain
    assert edge.process.poll() is None


def test_tls_reload__check_loads_the_certificates(authority, tmp_path):
    good, other, late = authority.issue(), authority.issue(), authority.issue(days=-1)
    policy = tmp_path / "p.yaml"

    def check(cert, key, more=""):
        listener = f"{{address: '127.0.0.1:1', tls: {{certificates: [{{cert: {cert}, key: {key}}}]{more}}}}}"
        policy.write_text(f"listen:\n  - {listener}\nservices: {{a: {{hosts: ['127.0.0.1:2'], deadline: 1s}}}}\n")
        done = subprocess.run([PROGRAM, "check", policy], capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout.decode()

    assert check(good.cert, good.key)[0] == 0
    code, said = check(good.cert, other.key)
    assert code == 1 and f"{policy}:2:" in said and "[key-mismatch]" in said
    assert "[expired]" in check(late.cert, late.key)[1]
    assert "[unreadable]" in check("/nowhere", good.key)[1]
    assert "[bad-certificate]" in check(good.key, good.key)[1]
    assert "[bad-ticket-keys]" in check(good.cert, good.key, f", ticketKeysFile: {good.key}")[1]
    copy = tmp_path / "here.pem"
    copy.write_bytes(good.cert.read_bytes() + good.key.read_bytes())
    assert check("here.pem", "here.pem")[0] == 0  # relative to the policy's folder
