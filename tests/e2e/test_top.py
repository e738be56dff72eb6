# SPDX-License-Identifier: MIT
"""becalm top, as people see it: in tmux, beside a real gateway of which one service has a dead host."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest
from conftest import PROGRAM, free_port
from host import Reply, wait_until

SECONDS = 30  # a busy machine takes its time


def run_top(*args, env=None):
    return subprocess.run(
        [PROGRAM, "top", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "80", **(env or {})},
    )


class Terminal:
    """A shell in tmux, with a server of its own. The shell outlives the program, so its terminal can be looked at."""

    def __init__(self, folder, width=80, height=24):
        self.socket = folder / "tmux"
        self.pid_file = folder / "pid"
        self._tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", width, "-y", height, "sh")

    def _tmux(self, *words):
        env = {name: value for name, value in os.environ.items() if name != "TMUX"}
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), *map(str, words)],
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            env={**env, "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *args, locale="C.UTF-8", no_color=""):
        words = " ".join([PROGRAM, "top", *args])
        env = f"LC_ALL={locale} NO_COLOR={no_color}"
        self.type(f"PS1='ready '; clear; sh -c 'echo $$ >{self.pid_file}; exec env {env} {words}'")

    def type(self, line):
        self._tmux("send-keys", "-l", line)
        self.keys("Enter")

    def keys(self, *names):
        for name in names:
            self._tmux("send-keys", name)

    def resize(self, width, height):
        self._tmux("resize-window", "-x", width, "-y", height)

    def text(self, colours=False):
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def lines(self):
        return self.text().split("\n")

    def pid(self):
        return int(self.pid_file.read_text())

    def shows(self, *words):
        """Waits until all of them are on the screen, and gives it."""
        try:
            wait_until(lambda: all(word in self.text() for word in words), SECONDS)
        except AssertionError:
            raise AssertionError(f"not seen: {words} in\n{self.text()}") from None
        return self.text()

    def ended(self, code):
        """The rules of every end: the shell's screen is back, with a cursor, lines and echo."""
        wait_until(lambda: "ready" in self.text() and "SERVICE" not in self.text(), SECONDS)
        self.type("echo code=$?")
        self.shows(f"code={code}")
        assert self._tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]
        self.type("stty -a")
        screen = self.shows("icanon", "isig")
        assert re.search(r"[^-]icanon", screen) and re.search(r"[^-]echo ", screen)

    def close(self):
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    made = []

    def make(**more):
        made.append(Terminal(tmp_path, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


class Traffic:
    """A few requests all the time, until it is stopped."""

    def __init__(self, gateway, *paths):
        self.stopped = False
        self.thread = threading.Thread(target=self._run, args=(gateway, paths), daemon=True)
        self.thread.start()

    def _run(self, gateway, paths):
        while not self.stopped:
            for path in paths:
                try:
                    gateway.ask(path=path)
                except (OSError, AssertionError):
                    pass
            time.sleep(0.02)

    def stop(self):
        self.stopped = True
        self.thread.join(30)


@pytest.fixture
def town(gateway, host):
    """A gateway with a service that is fine and one whose only host is dead, and traffic to both."""
    fine = host()
    there = gateway(
        "services:\n"
        f"  fine: {{hosts: [{fine.address}], match: {{prefix: /fine}}, endpoints: {{pay: {{match: {{path: /fine/pay}}}}}}}}\n"
        f"  dead: {{hosts: ['127.0.0.1:{free_port()}'], match: {{prefix: /dead}}}}\n"
        "  idle: {hosts: ['127.0.0.1:1'], match: {prefix: /idle}}\n"
    )
    traffic = Traffic(there, "/fine/x", "/fine/pay", "/dead/x")
    there.town_admin = f"127.0.0.1:{there.admin}"
    yield there
    traffic.stop()


# Once, for scripts.


def in_trouble(admin, service):
    done = run_top("--once", "--json", "--interval", "500ms", admin)
    assert (done.returncode, done.stderr) == (0, "")
    state = json.loads(done.stdout)
    return state["services"][0]["name"] == service and "breaker open" in state["services"][0]["troubles"]


def test_json_has_the_worst_service_first_and_its_figures(town):
    wait_until(lambda: in_trouble(town.town_admin, "dead"), SECONDS)
    done = run_top("--once", "--json", "--interval", "1s", town.town_admin)
    state = json.loads(done.stdout)
    assert state["role"] == "gateway" and state["windowSeconds"] >= 1
    dead, *others = state["services"]
    assert (dead["name"], dead["severity"], dead["success"]) == ("dead", "critical", 0)
    assert dead["refusedPerSecond"]["breaker_open"] > 0
    fine = {each["name"]: each for each in others}["fine"]
    assert (fine["severity"], fine["success"], fine["amplification"]) == ("fine", 1, 1)
    assert [each["name"] for each in fine["endpoints"]] == ["default", "pay"]
    assert sum(each["requestsPerSecond"] for each in fine["endpoints"]) == pytest.approx(fine["requestsPerSecond"], abs=0.01)


def test_once_is_text_of_eighty_columns(town):
    done = run_top("--once", town.town_admin)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
    for word in ("3 services" if "no trouble" in done.stdout else "of 3 services", "fine", "dead", "idle", "budget", "refused"):
        assert word in done.stdout


def test_once_by_a_unix_socket_and_with_a_token(gateway, host, tmp_path):
    token = tmp_path / "token"
    token.write_text("correct-horse\n")
    socket = tmp_path / "admin.sock"
    policy = f"adminTokenFile: {token}\nservices:\n  a: {{hosts: [{host().address}], match: {{prefix: /}}}}\n"
    gateway(policy, sets=[f"admin=unix:{socket}"], admin=None)
    place = f"unix:{socket}"
    done = run_top("--once", "--interval", "100ms", place)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"becalm top: {place}: 401: the gateway asks for a token; give --token-file\n"
    done = run_top("--once", "--interval", "100ms", "--token-file", str(token), place)
    assert (done.returncode, done.stderr) == (0, "") and "1 service, no trouble" in done.stdout
    token.write_text("wrong")
    done = run_top("--once", "--token-file", str(token), place)
    assert done.returncode == 1 and "does not know the token" in done.stderr
    done = run_top("--once", "--token-file", str(tmp_path / "none"), place)
    assert done.returncode == 1 and "can't read" in done.stderr


def test_a_gateway_that_is_away_is_an_error_once():
    port = free_port()
    done = run_top("--once", f"127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"becalm top: 127.0.0.1:{port}: Connection refused\n"


def test_what_is_no_gateway_is_an_error(host):
    other = host().on("/api/state", Reply(body=b"<html>"), Reply(status=500))
    assert "this is not the state of a gateway" in run_top("--once", other.address).stderr
    assert "HTTP 500" in run_top("--once", other.address).stderr


def test_several_gateways_are_a_line_each_and_the_worst_comes_first(town, gateway, host):
    other = host()
    calm = gateway(f"services: {{a: {{hosts: [{other.address}], match: {{prefix: /}}}}}}\n")
    wait_until(lambda: in_trouble(town.town_admin, "dead"), SECONDS)
    gone = f"127.0.0.1:{free_port()}"
    names = [f"127.0.0.1:{calm.admin}", town.town_admin, gone]
    done = run_top("--once", "--json", "-n", "300ms", *names)
    assert (done.returncode, done.stderr) == (1, ""), "one of them is away"
    listed = json.loads(done.stdout)["gateways"]
    assert [each["admin"] for each in listed] == [gone, town.town_admin, names[0]]
    assert "error" in listed[0] and set(listed[0]) == {"admin", "error"}
    assert listed[1]["severity"] == "critical" and listed[1]["inTrouble"][0] == {"name": "dead", "severity": "critical", "trouble": "breaker open"}
    assert listed[1]["services"] == 3 and listed[1]["requestsPerSecond"] > 0
    assert listed[2]["severity"] == "fine" and listed[2]["inTrouble"] == [] and listed[2]["requestsPerSecond"] == 0 and "success" not in listed[2]
    done = run_top("--once", "-n", "300ms", *names[:2])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and all(len(line) <= 80 for line in lines) and len(lines) == 4
    assert lines[0].startswith("becalm top  2 gateways  0 away  1 in trouble  ")
    assert lines[2].startswith(f"!! {town.town_admin}") and " dead: breaker open " in lines[2]
    assert lines[3].startswith(f"   {names[0]}") and " fine " in lines[3]


def test_each_address_of_a_name_is_a_gateway(town):
    done = run_top("--once", "--json", "--all", "-n", "100ms", f"localhost:{town.admin}")
    listed = {each["admin"]: each for each in json.loads(done.stdout)["gateways"]}
    assert "services" in listed[town.town_admin], "asked by its address, not by the name"
    done = run_top("--once", "--all", "localhost:nonsense")
    assert done.returncode == 2 and "localhost: " in done.stderr


def test_usage_errors():
    for args, message in (
        (["--json"], "--json needs --once"),
        (["--interval", "5"], "--interval is a duration"),
        (["--interval", "1ms"], "100ms to 1h"),
        (["--fleet", "a:1", "b:2"], "--fleet asks one gateway"),
        (["--once", "a:1", "b"], "'b' is no admin address"),
        (["a:1", "b:2"], "this is no terminal"),
        (["9900"], "'9900' is no admin address"),
        ([], "this is no terminal; use --once"),
    ):
        done = run_top(*args)
        assert done.returncode == 2 and message in done.stderr, args


# Live.


def test_live_at_80x24_and_120x40(town, terminal):
    there = terminal()
    there.start(town.town_admin)
    screen = there.shows("!! dead", "breaker open", "fine  ", "idle  ", "tries again in")
    lines = there.lines()
    assert lines[0].startswith("becalm top  127.0.0.1:") and "requests/s" in lines[0]
    assert lines[2].split() == ["SERVICE", "STATE", "REQ/S", "RETRY/S", "1ST", "OK", "AMPL", "TREND"]
    assert lines[3].startswith("> !! dead"), "the worst comes first, with the cursor"
    assert lines[15].startswith("-- dead ---") and lines[23].startswith("q quit")
    there.shows("refused     breaker_open")
    wait_until(lambda: re.search("[\u2581-\u2588]{3}", there.text()), SECONDS)
    there.resize(120, 40)
    there.shows("HOSTS TREND")
    wait_until(lambda: there.lines()[39].startswith("q quit"), SECONDS)
    there.resize(40, 10)
    wait_until(lambda: there.lines()[9].startswith("q quit") and "breaker  " not in there.text(), SECONDS)
    there.keys("q")
    there.ended(0)
    assert "\033" not in screen


def test_keys_choose_open_filter_and_help(town, terminal):
    there = terminal()
    there.start("--interval", "200ms", town.town_admin)
    there.shows("> !! dead")
    there.keys("Enter")
    there.shows("a breaker refuses calls until its next probes succeed", "HOST  ", "q back")
    there.keys("G")
    there.shows("breaker_open", "GET /dead/x", "The breaker ")
    there.keys("q")
    there.shows("SERVICE")
    there.keys("Down")
    there.shows(">    fine")
    there.keys("j", "k", "Enter")
    there.shows("fine  no trouble", "default        CLOSED", "pay            CLOSED")
    there.keys("Escape")
    there.shows(">    fine")
    there.keys("/", "i", "d")
    there.shows("filter: id_", ">    idle")
    assert "dead" not in there.text()
    there.keys("Escape")
    there.shows("!! dead")
    there.keys("p")
    there.shows("PAUSED")
    there.keys("p", "?")
    there.shows("any key goes back", "retry storm")
    there.keys("x", "q")
    there.ended(0)


def test_an_ascii_locale_and_no_color(town, terminal):
    there = terminal()
    there.start(town.town_admin, locale="C", no_color="1")
    there.shows("!! dead", "breaker open")
    wait_until(lambda: re.search(r"x [.:=+*%#-]{3}", there.text()), SECONDS)
    assert there.text().isascii()
    assert re.search(r"\033\[(3[0-9]|1)m", there.text(colours=True)) is None
    there.keys("q")
    there.ended(0)


def test_colour_is_doubled_by_a_sign_and_a_word(town, terminal):
    there = terminal()
    there.start(town.town_admin)
    there.shows("!! dead", "breaker open")
    assert "\033[31m!!" in there.text(colours=True) and "\033[31mbreaker open" in there.text(colours=True)
    there.keys("q")
    there.ended(0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV])
def test_signals_leave_the_terminal_as_it_was(town, terminal, number):
    there = terminal()
    there.start(town.town_admin)
    there.shows("SERVICE")
    os.kill(there.pid(), number)
    there.ended(128 + number)


def test_it_stops_and_goes_on_in_the_shell(town, terminal):
    there = terminal()
    there.type(f"set -m; PS1='ready '; clear; {PROGRAM} top {town.town_admin}")
    there.shows("SERVICE")
    there.keys("C-z")
    there.shows("Stopped", "ready")
    there.type("clear; fg")
    there.shows("SERVICE")
    there.keys("q")
    there.ended(0)


def test_a_gateway_may_go_away_and_come_back(gateway, host, terminal, tmp_path):
    socket = tmp_path / "admin.sock"
    policy = f"admin: unix:{socket}\nservices:\n  a: {{hosts: [{host().address}], match: {{prefix: /}}}}\n"
    there = terminal()
    there.start(f"unix:{socket}")
    there.shows("!! away: No such file or directory; again in")
    first = gateway(policy, admin=None)
    there.keys("r")
    there.shows("1 service, no trouble")
    first.end()
    there.shows("!! away, this is", "again in", "SERVICE")
    gateway(policy, admin=None)
    there.keys("r")
    there.shows("1 service, no trouble")
    there.keys("q")
    there.ended(0)
