# SPDX-License-Identifier: MIT
"""The permissions that the process gives up before it serves clients; test_confine.c tests their effect."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from conftest import PROGRAM, Gateway, policy_of

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture
def folder():
    """One that another user may read, too."""
    path = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def wrapper():
    """Root may read all of /proc, so the process becomes another user."""
    if os.geteuid() != 0:
        return []
    if subprocess.run([*NOBODY, PROGRAM, "--version"], capture_output=True).returncode != 0:
        pytest.skip("another user can't run the program where it is")
    return NOBODY


def owner(gateway):
    """The owner of the files in /proc about its memory: root, if no other process of its user may read them."""
    return os.stat(f"/proc/{gateway.process.pid}/environ").st_uid


@pytest.mark.parametrize("dumpable", [False, True])
def test_nobody_sees_its_memory_unless_asked_to(host, folder, dumpable):
    gateway = Gateway(folder, policy_of([host()]), wrapper=wrapper(), dumpable=dumpable)
    try:
        status = pathlib.Path(f"/proc/{gateway.process.pid}/status").read_text()
        assert "NoNewPrivs:\t1\n" in status
        user = os.geteuid() or 65534
        assert owner(gateway) == (user if dumpable else 0)
        assert gateway.ask().status == 200
        assert gateway.metric("process_open_fds") > 5 and gateway.metric("process_resident_memory_bytes") > 0
    finally:
        gateway.end()
