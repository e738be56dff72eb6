# SPDX-License-Identifier: MIT
"""Certificates for tests, made by the openssl command, and python's ssl contexts with them."""

import itertools
import os
import ssl
import subprocess

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*words, **more):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, timeout=60, check=False, **more)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Certificate:
    def __init__(self, cert, key):
        self.cert, self.key = cert, key

    @property
    def yaml(self):
        return f"{{cert: {self.cert}, key: {self.key}}}"

    @property
    def tls(self):
        """Behind `tls:` of a listener."""
        return f"{{certificates: [{self.yaml}]}}"

    def server(self, client_ca=None, **more):
        """The context of a server that shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        for name, value in more.items():
            setattr(context, name, value)
        return context

    def put_at(self, other):
        """Takes the place of another one, as a renewal does: each file by a rename, the key first."""
        for mine, theirs in ((self.key, other.key), (self.cert, other.cert)):
            fresh = theirs.with_suffix(".new")
            fresh.write_bytes(mine.read_bytes())
            os.replace(fresh, theirs)


class Authority:
    def __init__(self, folder, name="test authority"):
        folder.mkdir()
        self.folder = folder
        self.cert, self.key = folder / "ca.pem", folder / "ca.key"
        self.numbers = itertools.count()
        ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
        openssl("req", "-x509", *KEY, "-keyout", self.key, "-out", self.cert, "-subj", f"/CN={name}", "-days", 30, *ca)

    def issue(self, name="a.test", also=("DNS:a.test", "DNS:localhost", "IP:127.0.0.1"), days=30):
        """A certificate with that common name and these alternative names. Negative days: it has expired."""
        stem = self.folder / f"{next(self.numbers)}"
        made = Certificate(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extra = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        subject = ["-subj", f"/CN={name}" if name else "/O=nobody"]
        extra.write_text("basicConstraints=critical,CA:FALSE\n" + (f"subjectAltName={','.join(also)}\n" if also else ""))
        openssl("req", "-new", *KEY, "-keyout", made.key, "-out", request, *subject)
        signer = ["-CA", self.cert, "-CAkey", self.key, "-set_serial", 1000 + int(stem.name)]
        openssl("x509", "-req", "-in", request, *signer, "-days", days, "-extfile", extra, "-out", made.cert)
        return made

    def client(self, shows=None, **more):
        """The context of a client that believes this authority alone, and may show a certificate."""
        context = ssl.create_default_context(cafile=self.cert)
        if shows is not None:
            context.load_cert_chain(shows.cert, shows.key)
        for name, value in more.items():
            setattr(context, name, value)
        return context
