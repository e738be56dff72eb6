# SPDX-License-Identifier: MIT
"""A real Prometheus on a free port, with series made up beforehand or scraped, and servers that misbehave."""

import contextlib
import http.server
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

STEP = 15  # seconds between samples
HOURS = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Series:
    """Counters in OpenMetrics text, each by its rate at any time."""

    def __init__(self):
        self.end = int(time.time()) // STEP * STEP + 600  # beyond now, so that a slow test still finds samples
        self.families = {}

    def counter(self, family, labels, rate, kind="counter", suffix="_total"):
        """`rate(age)` is per second, `age` seconds before now."""
        value = 0.0
        lines = self.families.setdefault((family, kind), [])
        names = ",".join(f'{name}="{text}"' for name, text in labels.items())
        now = self.end - 600
        for at in range(self.end - HOURS * 3600, self.end + 1, STEP):
            lines.append(f"{family}{suffix}{{{names}}} {value:.6f} {at}")
            value += rate(now - at) * STEP

    def histogram(self, family, labels, rates):
        """Cumulative rates by bound, in ascending order, with +Inf last."""
        for bound, rate in rates.items():
            self.counter(family, {**labels, "le": bound}, lambda age, rate=rate: rate, "histogram", "_bucket")
        for suffix in ("_count", "_sum"):
            self.counter(family, labels, lambda age: rates["+Inf"], "histogram", suffix)

    def text(self):
        parts = []
        for (family, kind), lines in self.families.items():
            parts.append(f"# TYPE {family} {kind}")
            parts += lines
        return "\n".join(parts + ["# EOF", ""])


@contextlib.contextmanager
def running(folder, series):
    """Its URL, while it runs on these series."""
    (folder / "series.txt").write_text(series.text())
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 15s}\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "series.txt", folder / "data"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with configured(folder) as url:
        yield url


@contextlib.contextmanager
def configured(folder, *options):
    """Its URL, while it runs with prometheus.yml in the folder."""
    port = free_port()
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                *options,
            ],
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(server, url, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(30)


def wait_until_ready(server, url, log):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        try:
            if opener.open(f"{url}/-/ready", timeout=5).status == 200:
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def installed():
    return shutil.which("prometheus") is not None and shutil.which("promtool") is not None


@contextlib.contextmanager
def answering(status, body, seen=None):
    """A server that gives one answer to everything; it notes the paths that were asked for."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if seen is not None:
                seen.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def silent():
    """Accepts connections, and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
