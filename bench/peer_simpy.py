#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The model of policies/scenarios/metastable.yaml before its fault, with the policy `jitter`, as a SimPy program, which
bench_sim.py runs beside `becalm sim`. It prints one line of JSON: calls, attempts, the mean time of a call and seconds
of CPU."""

import json
import random
import sys
import time

import simpy

LENGTH, RATE, WORKERS = 60.0, 850.0, 10
SERVICE, LINK, TIMEOUT = 0.010, 0.0005, 1.0
ATTEMPTS, BASE, CAP = 4, 0.1, 10.0


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.env = simpy.Environment()
        self.workers = simpy.Resource(self.env, WORKERS)
        self.calls = self.attempts = self.good = 0
        self.took = 0.0

    def serve(self, answered):
        """One attempt at the service. It is served even if its caller has given up."""
        yield self.env.timeout(LINK)
        with self.workers.request() as worker:
            yield worker
            yield self.env.timeout(self.random.expovariate(1 / SERVICE))
        yield self.env.timeout(LINK)
        answered.succeed()

    def call(self):
        env = self.env
        begun = env.now
        for attempt in range(ATTEMPTS):
            if attempt > 0:
                yield env.timeout(self.random.uniform(0, min(CAP, BASE * 2 ** (attempt - 1))))
            self.attempts += 1
            answered = env.event()
            env.process(self.serve(answered))
            yield answered | env.timeout(TIMEOUT)
            if answered.triggered:
                self.good += 1
                self.took += env.now - begun
                return

    def arrive(self):
        while True:
            yield self.env.timeout(self.random.expovariate(RATE))
            self.calls += 1
            self.env.process(self.call())

    def run(self):
        self.env.process(self.arrive())
        self.env.run(until=LENGTH)


def main():
    world = World(int(sys.argv[1]))
    begun = time.process_time()
    world.run()
    spent = time.process_time() - begun
    print(
        json.dumps(
            {
                "version": simpy.__version__,
                "calls": world.calls,
                "attempts": world.attempts,
                "mean_ms": world.took / world.good * 1000,
                "cpu_s": spent,
            }
        )
    )


if __name__ == "__main__":
    main()
