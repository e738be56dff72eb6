# SPDX-License-Identifier: MIT
"""Makes a bad world smaller while its regret stays: removes parts without an effect, halves numbers, and writes rounder
figures. The remaining world shows the cause, or comes near to it."""

import copy
import math
import time

import world as worlds

KEEP = 0.7  # of the regret that the world began with


def minimise(world, judge, until=math.inf):
    """The smallest world that is found by changing one thing after the other until none can be changed any more.
    `judge` gives the verdict on a world."""
    first = judge(world)
    bad = _regrets(first)
    changed = True
    while changed:
        changed = False
        for candidate in candidates(world):
            if time.monotonic() > until:
                return world
            if candidate != world and stays(judge(candidate), first, bad):
                world, changed = candidate, True
                break
    return world


def _regrets(verdict):
    """Which of the two regrets the world is about: against none if there is one, else against the best."""
    return "than_none" if verdict.than_none > verdict.bounds[0] else "than_best"


def stays(verdict, first, bad):
    """Whether a smaller world is as bad: its interval excludes no regret, and most of the loss is still there."""
    if verdict.left_out or (verdict.tight and not first.tight):
        return False
    value, half = getattr(verdict, bad), getattr(verdict, bad + "_half")
    return value - half > 0 and value >= KEEP * getattr(first, bad)


def candidates(world):
    """Worlds with one thing less, those that lose most first."""
    yield from _without_parts(world)
    yield from _smaller_shapes(world)
    yield from _plainer_times(world)
    yield from _smaller_figures(world)


def _changed(world, path, value):
    """A copy with the value at the path set, or, if it is None, taken away."""
    result = copy.deepcopy(world)
    place = result
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


def _without_parts(world):
    if world.get("faults"):
        yield _changed(world, ("faults",), None)
        for name, fault in world["faults"].items():
            if len(world["faults"]) > 1:
                yield _changed(world, ("faults", name), None)
            if "flap" in fault:
                yield _changed(world, ("faults", name, "flap"), None)
    for name, service in world["services"].items():
        for key in ("endpoints", "gate", "queue", "errors", "hangs", "hosts", "workers", "instances"):
            if key in service:
                yield _changed(world, ("services", name, key), None)
    for name, client in world["clients"].items():
        for key in ("retries", "callers", "endpoints"):
            if key in client:
                yield _changed(world, ("clients", name, key), None)
    for key in ("link", "attempts"):
        if key in world:
            yield _changed(world, (key,), None)


def _smaller_shapes(world):
    """A hop less, a narrower page."""
    services = world["services"]
    hit = {fault.get("service") for fault in world.get("faults", {}).values()}
    top = next(iter(services))
    if len(services) > 1 and len(services[top].get("calls", ())) == 1 and top not in hit and "fanOut" not in services[top]:
        below_it = services[top]["calls"][0]
        smaller = _changed(world, ("services", top), None)
        for client in smaller["clients"].values():
            if client["to"] == top:
                client["to"] = below_it
        yield smaller
    for name, service in services.items():
        if service.get("fanOut", 1) > 1:
            yield _changed(world, ("services", name, "fanOut"), max(1, service["fanOut"] // 2))


def _plainer_times(world):
    for name, service in world["services"].items():
        typical = worlds.duration(float(f"{worlds.mean(service['time']):.2g}"))
        for plain in ({"constant": typical}, {"exponential": typical}):
            if "constant" not in service["time"] and plain != service["time"]:
                yield _changed(world, ("services", name, "time"), plain)


def _smaller_figures(world):
    """Half as long, half as many; and rounder."""
    length = worlds.seconds(world["length"])
    end = max(
        (worlds.seconds(f["at"]) + worlds.seconds(f["for"]) for f in world.get("faults", {}).values()), default=0
    )
    for shorter in (length // 2, length // 4 * 3):
        if shorter > end + 30:
            yield _changed(world, ("length",), f"{shorter:.0f}s")
    for name, service in world["services"].items():
        for key in ("workers", "hosts", "instances"):
            if isinstance(service.get(key), int) and service[key] > 1:
                yield _changed(world, ("services", name, key), service[key] // 2)
    for name, client in world["clients"].items():
        if client.get("callers", 1) > 1:
            yield _changed(world, ("clients", name, "callers"), client["callers"] // 2)
        if "rate" in client:
            rounder = worlds.rate(float(f"{worlds.per_second(client['rate']):.1g}"))
            yield _changed(world, ("clients", name, "rate"), rounder)
    timeout = worlds.seconds(world.get("timeout", "1s"))
    yield _changed(world, ("timeout",), worlds.duration(float(f"{timeout:.1g}")))
