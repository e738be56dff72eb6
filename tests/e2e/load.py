# SPDX-License-Identifier: MIT
"""Many requests a second, sent at their times whether or not earlier ones were answered, on kept connections."""

import asyncio
import dataclasses
import threading
import time

from host import wait_until
from message import Message, request

PATIENCE = 60


@dataclasses.dataclass
class Result:
    number: int
    at: float  # when it was sent
    took: float
    answer: Message  # None: there was none
    error: str = ""
    silent: float = 0  # from when it began to connect, or was sent on a kept connection, until its bytes were written

    @property
    def status(self):
        return self.answer.status if self.answer is not None else 0


class Load(threading.Thread):
    """Load(port, rate=100, seconds=5).run_through() gives the results; or start() it, do something, and stop() it.
    make(n) gives method and bytes of the n-th request. With `clients`, each asks one request after another, all of them
    together at most at the rate if there is one: a machine that is late sends less, and no burst to make up for it.
    They come from the address `source` and go to `host`."""

    def __init__(self, port, rate=None, seconds=None, count=None, clients=None, make=None, source=None, host="127.0.0.1"):
        super().__init__(daemon=True)
        self.port = port
        self.host = host
        self.rate = rate
        self.seconds = seconds if seconds is not None else 2 * PATIENCE  # of a test that stops it
        self.most = count if count is not None else 10**9
        self.clients = clients
        self.source = (source, 0) if source else None
        self.make = make or (lambda number: ("GET", request(path="/")))
        self.results = []
        self.sent = 0
        self.broken = None
        self.held = False  # True: no request is sent now; at a rate, the omitted requests are sent afterwards
        self._free = []
        self._stopping = False

    def run(self):
        try:
            asyncio.run(self._main())
        except Exception as error:  # told to the test by stop()
            self.broken = error

    def run_through(self):
        self.start()
        return self.finish()

    def finish(self):
        self.join(self.seconds + PATIENCE + 10)
        assert not self.is_alive(), "the load did not come to its end"
        if self.broken is not None:
            raise self.broken
        return self.results

    def stop(self):
        self._stopping = True
        return self.finish()

    def wait(self, count, since=0):
        """Waits until `count` requests that were sent since then are answered, however long a busy machine takes."""
        wait_until(lambda: sum(result.at > since for result in list(self.results)) >= count, what=lambda: str(len(self.results)))

    def _over(self):
        return self._stopping or self.sent >= self.most or time.monotonic() >= self._until

    async def _main(self):
        self._until = time.monotonic() + self.seconds
        if self.clients is not None:
            self._next = time.monotonic()
            await asyncio.gather(*(self._client() for _ in range(self.clients)))
        else:
            await self._at_rate()
        for _, writer in self._free:
            writer.close()

    async def _client(self):
        while not self._over():
            if self.rate is not None:
                turn = max(self._next, time.monotonic())
                self._next = turn + 1 / self.rate
                await asyncio.sleep(turn - time.monotonic())
                if self._over():
                    return
            await self._one(self._number())

    async def _at_rate(self):
        begin = time.monotonic()
        open_ones = set()
        while not self._over():
            ahead = begin + self.sent / self.rate - time.monotonic()
            if ahead > 0:
                await asyncio.sleep(ahead)
            while self.held and not self._over():
                await asyncio.sleep(0.001)
            task = asyncio.ensure_future(self._one(self._number()))
            open_ones.add(task)
            task.add_done_callback(open_ones.discard)
        if open_ones:
            await asyncio.wait(open_ones)

    def _number(self):
        self.sent += 1
        return self.sent - 1

    async def _one(self, number):
        method, data = self.make(number)
        result = Result(number, time.monotonic(), 0, None)
        try:
            result.answer = await asyncio.wait_for(self._ask(method, data, result), PATIENCE)
        except (OSError, EOFError, asyncio.TimeoutError) as problem:
            result.error = repr(problem)
        result.took = time.monotonic() - result.at
        self.results.append(result)

    async def _ask(self, method, data, result):
        reader, writer = await self._connection()
        try:
            writer.write(data)
            result.silent = time.monotonic() - result.at
            answer = Message(answers=method)
            while not answer.complete:
                piece = await reader.read(65536)
                if not piece and not answer.closed():
                    raise EOFError(f"cut after {answer.start!r} and {len(answer.body)} bytes of body")
                answer.feed(piece)
        except BaseException:
            writer.close()
            raise
        if answer.get("connection") == "close" or answer.version == "HTTP/1.0":
            writer.close()
        else:
            self._free.append((reader, writer))
        return answer

    async def _connection(self):
        """A kept one unless it has ended meanwhile: a client looks before it asks, too."""
        while self._free:
            reader, writer = self._free.pop()
            await asyncio.sleep(0)  # so that an end that has come is seen
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.host, self.port, local_addr=self.source)


def success(results):
    """The share of answers that were 200."""
    return sum(result.status == 200 for result in results) / len(results)


def reasons(results):
    """{the reason of the gateway's own answer, or the error of the client: count}, for requests without a 200."""
    counts = {}
    for result in results:
        if result.status != 200:
            told = result.answer.get("proxy-status", "no reason") if result.answer is not None else result.error
            counts[told] = counts.get(told, 0) + 1
    return counts


def statuses(results):
    """{status: how many}; 0 is no answer."""
    counts = {}
    for result in results:
        counts[result.status] = counts.get(result.status, 0) + 1
    return counts
