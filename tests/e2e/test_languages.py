# SPDX-License-Identifier: MIT
"""The snippets of docs/languages, unchanged: each reaches the service, and the headers that it passes on arrive."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, free_port
from host import Reply, wait_until
from wire import ask

PATIENCE = 120  # seconds; a busy machine may need most of them
PAGES = {"python": "python", "node": "js", "shell": "sh", "go": "go", "java": "java", "php": "php", "csharp": "csharp"}
LIBRARIES = {"python-requests": "requests", "python-httpx": "httpx", "python-aiohttp": "aiohttp", "node-undici": "undici", "node-axios": "axios"}
PAGES |= {page: "python" if page.startswith("python") else "js" for page in LIBRARIES}
FILES = {"go": "main.go", "java": "Main.java", "csharp": "main.cs"}
COMPILED = ("go", "java", "csharp")
# The commands that run a file, as in a shell; a compiler comes first. A test kills the last one.
RUNS = {
    "python": f"exec {sys.executable} -B {{file}}",
    "js": "exec node {file}",
    "sh": "exec sh {file}",
    "go": "GOCACHE={folder}/cache go build -o {folder}/program {file} && exec {folder}/program",
    "java": "javac -d {folder} {file} && exec java -cp {folder} Main",
    "php": "exec php {serves} {file}",
    "csharp": "mcs -r:System.Net.Http.dll -out:{folder}/main.exe {file} && exec mono {folder}/main.exe",
}
NEEDS = {"python": sys.executable, "js": "node", "sh": "sh", "go": "go", "java": "javac", "php": "php", "csharp": "mcs"}


def snippets(page):
    """The blocks of a page in its language."""
    text = (ROOT / f"docs/languages/{page}.md").read_text()
    return re.findall(rf"^```{PAGES[page]}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def policy_of_page(host, text=""):
    found = re.search(r"^```yaml\n(.*?)^```$", (ROOT / "docs/languages.md").read_text(), re.MULTILINE | re.DOTALL)
    return text + found.group(1).replace("127.0.0.1:9001", host.address)


def command(page, folder, text, port=None):
    language = PAGES[page]
    if language in COMPILED and os.environ.get("BECALM_SOAK") != "1":
        pytest.skip("compilers take long: make soak runs this")
    if shutil.which(NEEDS[language]) is None:
        pytest.skip(f"no {NEEDS[language]} here")
    if page in LIBRARIES and not installed(language, LIBRARIES[page]):
        pytest.skip(f"no {LIBRARIES[page]} here")
    path = folder / FILES.get(language, f"snippet.{language}")
    path.write_text(text)
    serves = "" if port is None else f"-S 127.0.0.1:{port}"
    return ["sh", "-c", RUNS[language].format(file=path, folder=folder, serves=serves)]


def installed(language, library):
    """Can a program of this language use it?"""
    asks = {"python": [sys.executable, "-c", f"import {library}"], "js": ["node", "-e", f"require('{library}')"]}
    return subprocess.run(asks[language], env=plain_environment(), capture_output=True, timeout=PATIENCE).returncode == 0


def plain_environment():
    """No proxies; every Node finds Debian's packages for Node."""
    plain = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    return {**plain, "NODE_PATH": os.pathsep.join(filter(None, [plain.get("NODE_PATH"), "/usr/share/nodejs"]))}


def environment(gateway, **more):
    return {**plain_environment(), "BECALM": f"http://127.0.0.1:{gateway.port}", **more}


@pytest.mark.parametrize("page", PAGES)
def test_every_way_in_leads_to_the_service(gateway, host, tmp_path, page):
    there = host().on("/charge", Reply(200, body=b"charged"))
    here = gateway(policy_of_page(there))
    done = subprocess.run(
        command(page, tmp_path, snippets(page)[0]), env=environment(here), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.splitlines() == ["charged"] * 3 and done.returncode == 0, done.stderr
    assert [each.target for each in there.requests] == ["/charge"] * 3


def test_a_script_passes_its_deadline_on(gateway, host, tmp_path):
    there = host().on("/charge", Reply(200, body=b"charged"))
    here = gateway(policy_of_page(there))
    run = command("shell", tmp_path, snippets("shell")[1])
    subprocess.run(run, env=environment(here, LEFT_MS="9000"), check=True, capture_output=True, timeout=PATIENCE)
    assert int(there.requests[0].get("x-request-deadline-ms")) <= 9000


@pytest.mark.parametrize("page", [page for page in PAGES if page != "shell"])
def test_deadlines_go_down_and_marks_up_through_an_application(gateway, host, tmp_path, page):
    """The application of the page, its sidecar, and payment behind the sidecar; a gateway in front calls the
    application."""
    payment = host().on("/charge", Reply(200, body=b"charged"))
    sidecar = gateway(policy_of_page(payment))
    port = free_port()
    application = subprocess.Popen(
        command(page, tmp_path, "\n".join(snippets(page)[1:]), port), env=environment(sidecar, PORT=str(port)), stderr=subprocess.PIPE
    )
    try:
        wait_until(lambda: application.poll() is not None or answers(port), seconds=PATIENCE)
        assert application.poll() is None, application.stderr.read()
        payment.forget()
        told = {"X-Request-Deadline-Ms": "25000"}
        answer = ask(port, host=f"127.0.0.1:{port}", fields=told)
        assert answer.body == b"charged" and answer.get("becalm-retry") is None
        assert 0 < int(payment.requests[0].get("x-request-deadline-ms")) <= 25000
        payment.on("/charge", Reply(503))
        answer = ask(port, host=f"127.0.0.1:{port}", fields=told)
        assert answer.status == 502 and answer.get("becalm-retry").startswith("spent"), answer.fields
    finally:
        application.kill()
        application.wait(10)


def answers(port):
    try:
        return ask(port, host=f"127.0.0.1:{port}").status == 200
    except OSError:
        return False
