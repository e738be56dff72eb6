# SPDX-License-Identifier: MIT
"""Certificates that change while the gateway runs, and those that are wrong."""

import signal
import ssl
import subprocess
import threading

from conftest import PROGRAM, free_port, policy_of, wait_until
from wire import Wire


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


def test_tls_reload__new_certificates_under_load_cost_no_request(gateway, host, authority):
    these = [authority.issue() for _ in range(3)]
    first = authority.issue()
    edge = gateway(policy_of([host()]), tls=first.tls, workers=2)
    stop, failed, done = threading.Event(), [], [0]

    def load():
        context = authority.client()
        while not stop.is_set():
            try:
                with Wire(edge.port, tls=context, name="a.test") as wire:
                    for _ in range(5):
                        assert wire.ask().status == 200
                        done[0] += 1
            except (OSError, EOFError, AssertionError) as error:
                failed.append(repr(error))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for each in threads:
        each.start()
    for number in range(10):
        these[number % 3].put_at(first)
        hup(edge, "policy reloaded")
    stop.set()
    for each in threads:
        each.join()
    assert failed == [] and done[0] > 0


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
    assert edge.log_lines("[expires]")


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
