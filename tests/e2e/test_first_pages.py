# SPDX-License-Identifier: MIT
"""README's minute and the tutorial, as they stand: their own lines in a shell, with ports of the test's own, and a wait for the event
where they wait for a second."""

import os
import re
import signal
import subprocess

import pytest
from conftest import PROGRAM, ROOT, free_port
from host import wait_until

GUARD = 120


@pytest.fixture
def shell(tmp_path):
    """shell(script): in a folder of its own, with becalm in the PATH. All that it starts ends with the test."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/becalm").symlink_to(PROGRAM)
    started = []

    def run(script, wait=True):
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=(tmp_path / f"out{len(started)}").open("wb"),
            stderr=(tmp_path / f"err{len(started)}").open("wb"),
            env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "NO_COLOR": "1"},
            start_new_session=True,
        )
        process.log = tmp_path / f"err{len(started)}"
        process.said = tmp_path / f"out{len(started)}"
        started.append(process)
        if wait:
            process.wait(GUARD)
            return process.said.read_text()
        return process

    run.folder = tmp_path
    yield run
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(GUARD)


def blocks(page, heading):
    """The blocks of code below a heading, as (language, text)."""
    part = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", (ROOT / page).read_text(), re.S | re.M)[1]
    return re.findall(r"^```(\w*)\n(.*?)^```", part, re.S | re.M)


def moved(text, **ports):
    for old, new in ports.items():
        text = text.replace(old.removeprefix("p"), str(new))
    return text


UP = "until curl -s -o /dev/null http://127.0.0.1:{}/; do sleep 0.1; done"
DOWN = "while curl -s -o /dev/null http://127.0.0.1:{}/; do sleep 0.1; done"


@pytest.mark.parametrize("page, part, checked", [("README.md", "One minute", True), ("docs/gateway.md", "In one minute", False)])
def test_a_first_minute_says_what_it_shows(shell, page, part, checked):
    (_, script), (_, answer) = blocks(page, part)
    service, listen, admin = free_port(), free_port(), free_port()
    script = moved(script, p9001=service, p8080=listen).replace("services:\n", f"admin: 127.0.0.1:{admin}\nservices:\n", 1)
    first, second = "& sleep 1\ncurl", "kill %1; sleep 1; curl"
    assert first in script and second in script, "they are replaced below"
    script = script.replace(first, f"& {UP.format(listen)}\ncurl").replace(second, f"kill %1; {DOWN.format(service)}; curl")
    said = shell(script)
    assert not checked or "no findings" in said, said
    well, gone = re.findall(r"^HTTP/1\.1 .*?(?=^HTTP/1\.1|\Z)", said, re.S | re.M)
    assert well.startswith("HTTP/1.1 200 OK")
    told = re.sub(r"retry-after: \d+", "retry-after: 1", gone.replace("\r", ""))  # drawn: it is spread
    for line in answer.splitlines():
        assert line in told.splitlines(), (line, gone)


def test_the_tutorial_does_what_it_says(shell):
    ports = {"p9001": free_port(), "p9002": free_port(), "p8080": free_port()}
    admin = free_port()
    listen = ports["p8080"]
    (_, hosts), = blocks("docs/tutorial.md", "1. A service that fails sometimes")
    (_, policy), (_, commands) = blocks("docs/tutorial.md", "2. Watch, and do nothing")
    (_, more), = blocks("docs/tutorial.md", "5. Say more about what you call")
    path = shell.folder / "becalm.yaml"
    policy = moved(policy, **ports).replace("services:\n", f"admin: 127.0.0.1:{admin}\nservices:\n", 1)
    path.write_text(policy)
    check, start, asks = commands.strip().splitlines()
    shell(moved(hosts, **ports).replace(" 0.2 ", " 0.5 ") + "wait", wait=False)  # fewer requests see it so
    assert check == "becalm check becalm.yaml" and start == "becalm proxy becalm.yaml &"
    shell("\n".join(UP.format(ports[each]) for each in ("p9001", "p9002")))
    gateway = shell("exec " + start.removesuffix("&"), wait=False)

    # For a second after a failure the gateway prefers the other host, and the failure may be that of the request which
    # finds out that it listens. So fewer requests, and several seconds of them.
    asks = moved(asks, **ports).replace("seq 200", "seq 60").replace("; do curl", "; do sleep 0.1; curl")
    assert "seq 60" in asks and "sleep 0.1" in asks

    def counted():
        return {code: int(count) for count, code in re.findall(r"(\d+) (\d{3})", shell(f"{UP.format(listen)}\n{asks}"))}

    before = counted()
    assert before.get("503", 0) > 0 and sum(before.values()) == 60, "in mode: shadow it does nothing"
    assert "becalm-explain" in shell(f"curl -si http://127.0.0.1:{listen}/").lower()
    path.write_text(policy.replace("    mode: shadow\n", ""))
    wait_until(lambda: "policy reloaded" in gateway.log.read_text())
    after = counted()
    assert after.get("503", 0) < before["503"] / 2 and sum(after.values()) == 60, (before, after)
    path.write_text(moved(more, **ports))
    said = shell("becalm check --explain shop/charge becalm.yaml && becalm check --route 'POST /charge' becalm.yaml")
    assert "becalm.yaml:" in said and "charge" in said
