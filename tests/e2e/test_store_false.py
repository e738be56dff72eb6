# SPDX-License-Identifier: MIT
"""A false Redis: it greets as a real one does, and then gives all kinds of wrong answers. No gateway crashes, grows or
waits because of them."""

import contextlib
import socket
import threading
import time

import pytest
from conftest import policy_of
from host import Reply, wait_until
from store import rules as shared_rules
from test_keys_enforced import ENFORCED, charge
from test_keys_shared import reason_of, shared

SLOW = object()


class False_:
    """Answers each EVALSHA and EVAL, and each command to a Sentinel, with `lie`: bytes, or a function of the server
    that gives them."""

    def __init__(self, lie):
        self.lie = lie
        self.asked = self.connected = 0
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.door.accept()
                self.connected += 1
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link):
        with contextlib.suppress(OSError, ValueError), link, link.makefile("rb") as lines:
            while line := lines.readline():
                words = []
                for _ in range(int(line[1:])):
                    words.append(lines.read(int(lines.readline()[1:]) + 2)[:-2])
                self._answer(link, words[0].upper())

    def _answer(self, link, word):
        if not word.startswith((b"EVAL", b"SENTINEL")):
            link.sendall(b"+PONG\r\n" if word == b"PING" else b"+OK\r\n")
            return
        self.asked += 1
        lie = self.lie(self) if callable(self.lie) else self.lie
        if isinstance(lie, tuple):  # slowly, a byte after the other, for ever
            while True:
                link.sendall(lie[1])
                time.sleep(0.05)
        link.sendall(lie)

    def close(self):
        self.door.close()


def bulk(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


LIES = {
    "a bulk of 2 GiB": b"$2147483647\r\nabc",
    "a bulk longer than any number": b"$99999999999999999999\r\n",
    "a bulk of less than nothing": b"$-7\r\nabc\r\n",
    "a list of 2^31": b"*2147483647\r\n",
    "a list of less than nothing": b"*-9\r\n",
    "lists in lists": b"*1\r\n" * 5000 + b":1\r\n",
    "flat lists in a list": b"*2\r\n*1\r\n$5\r\nbegun\r\n*1\r\n:1\r\n",
    "a number": b":1\r\n",
    "nothing": b"$-1\r\n",
    "no list": b"*-1\r\n",
    "an empty list": b"*0\r\n",
    "an empty text": b"$0\r\n\r\n",
    "another protocol": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "RESP3": b"%1\r\n+begun\r\n:1\r\n",
    "half an answer": b"*2\r\n$5\r\nbeg",
    "two answers to one question": b":1\r\n:2\r\n",
    "zeros for a budget": b"$40\r\n" + b"\0" * 40 + b"\r\n",
    "the most of everything for a budget": b"$40\r\n" + b"\xff" * 40 + b"\r\n",
    "an error without an end": b"-" + b"A" * 300000,
    "an error without a word": b"-\r\n",
    "a stored answer without its parts": bulk(b"done"),
    "a stored answer whose status is no number": bulk(b"done", b"many", b"", b"", b"x"),
    "a stored answer of no status": b"*5\r\n$4\r\ndone\r\n:7\r\n$0\r\n\r\n$0\r\n\r\n$1\r\nx\r\n",
    "a stored answer of another seal": b"*5\r\n$4\r\ndone\r\n:200\r\n$5\r\nothers\r\n$0\r\n\r\n$1\r\nx\r\n",
    "a status without a stored answer": b"*2\r\n$4\r\nlost\r\n:99999\r\n",
    "the word of an older secret": bulk(b"held", b"older", b"older"),
    "MOVED to itself": lambda server: b"-MOVED 1 127.0.0.1:%d\r\n" % server.port,
    "ASK itself": lambda server: b"-ASK 1 127.0.0.1:%d\r\n" % server.port,
    "MOVED to nowhere": b"-MOVED 1 127.0.0.1:1\r\n",
    "MOVED without a place": b"-MOVED\r\n",
    "MOVED to a long name": b"-MOVED 1 " + b"a" * 2000 + b":1\r\n",
    "MOVED to port 99999": b"-MOVED 1 127.0.0.1:99999\r\n",
    "NOSCRIPT for ever": b"-NOSCRIPT No matching script\r\n",
    "slow bytes of a bulk": (SLOW, b"$"),
    "slow bytes of a line": (SLOW, b"+"),
}


@pytest.fixture(params=LIES)
def false(request):
    made = False_(LIES[request.param])
    yield made
    made.close()


def resident(gateway):
    with open(f"/proc/{gateway.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_no_lie_of_a_store_is_a_retry_or_a_wait(gateway, host, false):
    """The own share goes on, and nothing more: 20 % of the calls, and the few that a share begins with."""
    bad, good = host(), host()
    bad.on("*", Reply(status=503))
    made = gateway(policy_of([bad], rules=shared_rules(20)), sets=[f"store.redis={false.url}", "store.timeout=200ms"])
    wait_until(lambda: false.asked > 0)
    before = resident(made)
    asked = 0
    while asked < 50 or false.asked < 2:
        assert made.ask().status == 503
        asked += 1
    assert bad.count() - asked <= 0.2 * asked + 4
    assert resident(made) - before < 8192, "KiB"


def test_no_lie_of_a_store_executes_a_key_or_refuses_what_has_none(gateway, host, false, tmp_path):
    there = host()
    made = gateway(policy_of([there], rules=ENFORCED), sets=shared(false.url, tmp_path, timeout="100ms", lease="1s"))
    wait_until(lambda: false.asked > 0)
    before = resident(made)
    for n in range(8):
        answer = charge(made, f"k{n}")
        assert (answer.status, reason_of(answer)) in ((503, "key_store_away"), (409, "key_unknown"), (409, "key_answer_lost")), answer
    assert there.count("/charge") == 0
    assert made.ask(path="/other").status == 200
    assert resident(made) - before < 8192, "KiB"


MASTERS = {
    "itself, which is none": lambda server: bulk(b"127.0.0.1", b"%d" % server.port),
    "nobody": b"*-1\r\n",
    "no port": bulk(b"127.0.0.1", b"0"),
    "a port that is no number": bulk(b"127.0.0.1", b"6379x"),
    "a long name": bulk(b"a" * 5000, b"6379"),
    "a name with an end of line": bulk(b"127.0.0.1\r\nPING", b"6379"),
    "half a place": bulk(b"127.0.0.1"),
    "an error": b"-IDONTKNOW\r\n",
}


@pytest.mark.parametrize("master", MASTERS)
def test_a_sentinel_that_lies_leaves_the_own_share(gateway, host, master):
    false = False_(MASTERS[master])
    try:
        good = host()
        made = gateway(policy_of([good], rules=shared_rules(20)), sets=[f"store.redis={false.url}?sentinel=mine", "store.timeout=2s"])
        wait_until(lambda: false.asked > 2)
        assert made.ask().status == 200
        assert made.told("degraded to the own share") and not made.log_lines("leased from the store")
    finally:
        false.close()


@pytest.mark.parametrize("wait", [b"9223372036854775807", b"18446744073709", b"-1"])
def test_a_store_can_t_say_for_how_long_clients_stay_away(gateway, host, tmp_path, wait):
    """A client that is told to come back in a hundred years never comes back."""
    false = False_(b"*2\r\n$6\r\nforgot\r\n:" + wait + b"\r\n")
    try:
        made = gateway(policy_of([host()], rules=ENFORCED), sets=shared(false.url, tmp_path, lease="3s"))
        wait_until(lambda: false.asked > 0)
        answer = charge(made, "k")
        assert answer.status == 503 and 0 < int(answer.get("retry-after")) <= 10, answer
    finally:
        false.close()
