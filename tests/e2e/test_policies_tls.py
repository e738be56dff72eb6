# SPDX-License-Identifier: MIT
"""The worked policies with TLS run as they stand, with the certificates of their own script, but for the addresses."""

import pathlib
import shutil
import ssl
import subprocess

import pytest
from conftest import free_port
from http2 import Http2
from wire import Wire, ask

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAID = {"X-Forwarded-Client-Cert": "URI=spiffe://shop/cart"}


@pytest.fixture
def worked(gateway, tmp_path):
    """worked(name, addresses): a gateway with that policy, where some addresses are others."""
    folder = tmp_path / "tls"
    shutil.copytree(ROOT / "policies/tls", folder, ignore=shutil.ignore_patterns("certs"))
    subprocess.run(["sh", folder / "certificates.sh"], check=True, timeout=60)

    def make(name, addresses):
        text = (folder / f"{name}.yaml").read_text().replace("certs/", f"{folder}/certs/")
        for old, new in addresses.items():
            assert old in text
            text = text.replace(old, f"127.0.0.1:{new}")
        return gateway(text, listen=None)

    make.certs = folder / "certs"
    return make


def client(certs, shows=None):
    context = ssl.create_default_context(cafile=certs / "ca.pem")
    context.check_hostname = False
    if shows is not None:
        context.load_cert_chain(certs / f"{shows}.pem", certs / f"{shows}.key")
    return context


def test_policies_tls__the_edge_speaks_both_versions(worked, host):
    this, port = host(), free_port()
    worked("edge", {"127.0.0.1:8443": port, "127.0.0.1:8081": this.address.split(":")[1]})
    with Wire(port, tls=client(worked.certs), name="localhost") as wire:
        assert wire.ask().status == 200
    with Http2(port, tls=client(worked.certs)) as other:
        assert other.ask().status == 200
    assert this.count() == 2


def test_policies_tls__two_sidecars_show_each_other_who_they_are(worked, host):
    this, between, door = host(), free_port(), free_port()
    orders = worked("orders-sidecar", {"127.0.0.1:15443": between, "127.0.0.1:8082": this.address.split(":")[1]})
    worked("cart-sidecar", {"127.0.0.1:15443": between, "127.0.0.1:15001": door})
    assert ask(door, fields=SAID).status == 200
    assert this.got()[0].get("x-forwarded-client-cert") == SAID["X-Forwarded-Client-Cert"], "the cart is believed"
    with Wire(between, tls=client(worked.certs, "edge"), name="orders.shop") as wire:
        assert wire.ask(fields=SAID).status == 200
    assert this.got()[1].get("x-forwarded-client-cert") is None, "another one comes in, and is not"
    with pytest.raises(ssl.SSLError, match="(?i)certificate.required"):
        with Wire(between, tls=client(worked.certs), name="orders.shop") as wire:
            wire.ask()
    orders.expect_metric(1, "becalm_tls_handshakes_total", side="clients", result="no_certificate")
    assert this.count() == 2
