# SPDX-License-Identifier: MIT
"""A gateway in a terminal: Ctrl-C drains and says so, and a second one ends it at once."""

import os
import pty
import select
import time

from conftest import PROGRAM, free_port, policy_of
from host import wait_until
from wire import ask

GUARD = 120  # seconds, a guard against waiting for ever


class Terminal:
    """A process with a terminal of its own."""

    def __init__(self, command):
        self.text = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(command[0], command)

    def until(self, wanted):
        """Reads until this was written."""
        end = time.monotonic() + GUARD
        while wanted not in self.text:
            assert time.monotonic() < end and select.select([self.terminal], [], [], GUARD)[0], self.text
            self.text += os.read(self.terminal, 65536).decode()

    def press(self, key):
        os.write(self.terminal, key)

    def end(self):
        """How it ended, when it has."""
        try:
            while select.select([self.terminal], [], [], GUARD)[0]:
                self.text += os.read(self.terminal, 65536).decode()
        except OSError:
            pass  # the other side is closed
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_ctrl_c_drains_and_says_that_a_second_one_ends_it(tmp_path, host):
    admin = free_port()
    path = tmp_path / "becalm.yaml"
    path.write_text(policy_of([host()], f"listen: 127.0.0.1:{free_port()}\nadmin: 127.0.0.1:{admin}\ndrain: {{delay: 10m, limit: 10m}}"))
    gateway = Terminal([PROGRAM, "proxy", str(path)])
    gateway.until(f"admin on http://127.0.0.1:{admin}/")
    wait_until(lambda: ask(admin, "GET", "/readyz", host="localhost").status == 200)
    assert "Ctrl-C" not in gateway.text
    gateway.press(b"\x03")
    gateway.until("draining; press Ctrl-C again to end at once")
    wait_until(lambda: ask(admin, "GET", "/readyz", host="localhost").status == 503)
    gateway.press(b"\x03")
    assert gateway.end() == 0, "within the guard, which is far below the ten minutes of a drain"
    assert gateway.text.count("Ctrl-C again") == 1
