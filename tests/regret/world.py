# SPDX-License-Identifier: MIT
"""Worlds: drawn at random from a seed and a number, written as scenario files, and read back.

A world is a scenario file as nested dicts; a leaf is text or a number as in the file. Only
random() of Python's generator is used, because only that one gives the same numbers in every version.
"""

import math
import random
import re

SHAPES = ("one", "one", "chain", "page", "page", "diamond")
TIMES = ("constant", "normal", "exponential", "lognormal", "pareto", "tail", "reports")
FAULTS = (
    "capacity",
    "ramp",
    "errors",
    "dead",
    "latency",
    "hangs",
    "badHosts",
    "cutCallers",
    "silent",
    "refuse",
    "killHosts",
    "rolling",
    "partition",
    "surge",
)
UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
CALLS = 240  # that a world has at least by its rate; those that come out below 150 are not counted


class Dice:
    """Draws, from a seed and a number, the same in every version of Python."""

    def __init__(self, seed, number):
        self.next = random.Random(f"{seed}/{number}").random

    def uniform(self, low, high):
        return low + (high - low) * self.next()

    def log(self, low, high):
        """As many between 1 and 10 as between 10 and 100."""
        return low * (high / low) ** self.next()

    def whole(self, low, high):
        return min(high, low + int((high - low + 1) * self.next()))

    def pick(self, choices):
        return choices[int(len(choices) * self.next())]

    def chance(self, share):
        return self.next() < share


# Figures as the file has them.


def duration(seconds):
    if seconds < 1:
        return f"{max(0.001, seconds * 1000):.3f}".rstrip("0").rstrip(".") + "ms"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def seconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s|m|h)", str(text)).groups()
    return float(number) * UNITS[unit]


def rate(per_second):
    return f"{per_second:.3g}/s" if per_second >= 1 else f"{per_second * 60:.3g}/m"


def per_second(text):
    number, unit = re.fullmatch(r"([0-9.e+]+)/(s|m)", str(text)).groups()
    return float(number) / UNITS[unit]


def percent(text):
    return float(str(text).rstrip("%")) / 100


# Times: their mean and their quantiles.


def mean(time):
    ((kind, value),) = [(k, v) for k, v in time.items() if k != "weight"]
    if kind in ("constant", "exponential"):
        return seconds(value)
    if kind == "normal":
        return seconds(value["mean"])
    if kind == "lognormal":
        return seconds(value["median"]) * math.exp(float(value["sigma"]) ** 2 / 2)
    if kind == "pareto":
        alpha = float(value["alpha"])
        return seconds(value["least"]) * alpha / (alpha - 1)
    weight = sum(float(part["weight"]) for part in value.values())
    return sum(float(part["weight"]) * mean(part) for part in value.values()) / weight


def below(time, limit):
    """The share of requests that take no longer than this number of seconds."""
    if limit <= 0:
        return 0.0
    ((kind, value),) = [(k, v) for k, v in time.items() if k != "weight"]
    if kind == "constant":
        return 1.0 if limit >= seconds(value) else 0.0
    if kind == "exponential":
        return 1 - math.exp(-limit / seconds(value))
    if kind == "normal":
        centre, spread = seconds(value["mean"]), seconds(value["deviation"])
        return _normal((limit - centre) / spread) - _normal((-limit - centre) / spread)
    if kind == "lognormal":
        return _normal(math.log(limit / seconds(value["median"])) / float(value["sigma"]))
    if kind == "pareto":
        least = seconds(value["least"])
        return 1 - (least / limit) ** float(value["alpha"]) if limit > least else 0.0
    weight = sum(float(part["weight"]) for part in value.values())
    return sum(float(part["weight"]) * below(part, limit) for part in value.values()) / weight


def _normal(deviations):
    return (1 + math.erf(deviations / math.sqrt(2))) / 2


def service_below(service, limit):
    """The same of a service, with those of its endpoints that take a time of their own."""
    heavy = [each for each in service.get("endpoints", {}).values() if "time" in each]
    shares = [percent(each.get("share", "0%")) for each in heavy]
    usual = (1 - sum(shares)) * below(service["time"], limit)
    return usual + sum(share * below(each["time"], limit) for share, each in zip(shares, heavy))


def is_tight(world):
    """Whether the timeout is below the time of nine tenths of the requests to the last service: its own time, and that
    of the way to it, without any wait."""
    if world.get("timeout", "1s") == "none":
        return False
    left = seconds(world.get("timeout", "1s")) - way(world)
    return service_below(world["services"][focus(world)], left) < 0.9


def way(world):
    """The time of a call from its client down to the last service and back, without that service's own time."""
    hop = 2 * seconds(world.get("link", {}).get("latency", "0.5ms"))
    name = next(iter(world["clients"].values()))["to"]
    total = hop
    while world["services"][name].get("calls"):
        total += hop + mean(world["services"][name]["time"])
        name = world["services"][name]["calls"][0]
    return total


def focus(world):
    """The service that the world is about: the last one."""
    return list(world["services"])[-1]


def has_gate(world):
    return any(service.get("gate") in (True, "true") for service in world["services"].values())


def without_gates(world):
    services = {
        name: {key: value for key, value in service.items() if key != "gate"}
        for name, service in world["services"].items()
    }
    return {**world, "services": services}


def unwritten(world):
    """The same without a written timeout: a program that waits by itself has a minute."""
    return {**world, "timeout": "60s"}


def with_role(world, role):
    """The same with this role at each client, and at each service that makes calls, that has none written."""

    def settled(place, calls):
        return {**place, "role": role} if calls and "role" not in place else place

    return {
        **world,
        "services": {name: settled(each, "calls" in each) for name, each in world["services"].items()},
        "clients": {name: settled(each, True) for name, each in world["clients"].items()},
    }


def has_fault(world):
    return bool(world.get("faults"))


# The draw.


def draw(seed, number):
    """World `number` of a seed."""
    dice = Dice(seed, number)
    shape = dice.pick(SHAPES)
    time = _time(dice, dice.log(0.002, 20))
    typical = mean(time)
    timeout = min(60.0, max(0.05, typical * dice.log(1.2, 60)))
    services, copies = _upper(dice, shape)
    leaf = {"time": time}
    at_leaf = _workers(dice, leaf, typical, 150 / 2 ** max(0, len(services) - 2))
    _extras(dice, leaf, time, timeout)
    services["leaf"] = leaf
    for service in services.values():
        if "fanOut" not in service and dice.chance(0.3 if service is leaf else 0.15):
            service["gate"] = "true"
    # A page must come often enough to be counted, so a wide one loads the service more than it might.
    at_top = max(at_leaf / copies, CALLS / 1800)
    length = math.ceil(max(240, CALLS / at_top, 16 * timeout if timeout < 30 else 10 * timeout))
    world = {"length": f"{length}s", "timeout": duration(timeout)}
    far = dice.chance(0.3) and timeout > 0.2
    world["link"] = {"latency": "5ms" if far else "0.5ms"}
    if dice.chance(0.3):
        world["link"]["loss"] = "0.1%"
    world["services"] = services
    world["clients"] = {"users": _client(dice, next(iter(services)), shape, at_top, typical)}
    if dice.chance(0.55):
        world["faults"] = _faults(dice, world, length, timeout)
    return world


def _time(dice, typical):
    kind = dice.pick(TIMES)
    if kind == "constant" or kind == "exponential":
        return {kind: duration(typical)}
    if kind == "normal":
        return {kind: {"mean": duration(typical), "deviation": duration(typical * dice.uniform(0.05, 0.4))}}
    if kind == "lognormal":
        return {kind: {"median": duration(typical), "sigma": f"{dice.uniform(0.2, 1.2):.2f}"}}
    if kind == "pareto":
        return {kind: {"least": duration(typical / 2), "alpha": f"{dice.uniform(1.4, 3):.2f}"}}
    if kind == "tail":  # most are quick, some take ten times as long
        slow = dice.whole(2, 20)
        return _mixture(100 - slow, {"exponential": duration(typical)}, slow, {"exponential": duration(10 * typical)})
    quick = dice.whole(5, 40)  # reports, and something quick beside them
    report = {"lognormal": {"median": duration(typical), "sigma": f"{dice.uniform(0.2, 0.6):.2f}"}}
    return _mixture(quick, {"exponential": duration(typical / 50)}, 100 - quick, report)


def _mixture(quick_weight, quick, slow_weight, slow):
    return {"mixture": {"quick": {"weight": quick_weight, **quick}, "slow": {"weight": slow_weight, **slow}}}


def _upper(dice, shape):
    """The services above the last one, and how many calls of it one call becomes."""
    instances = dice.pick((1, 1, 4, 20))
    hop = {"time": {"constant": "1ms"}, "instances": instances}
    if shape == "one":
        return {}, 1
    if shape == "chain":
        depth = dice.whole(1, 5)
        names = [f"s{i}" for i in range(depth)] + ["leaf"]
        return {name: {**hop, "calls": [below_it]} for name, below_it in zip(names, names[1:])}, 1
    if shape == "page":
        wide = round(dice.log(4, 100))
        return {"page": {**hop, "fanOut": wide, "calls": ["leaf"]}}, wide
    return {
        "top": {**hop, "calls": ["left", "right"]},
        "left": {**hop, "calls": ["leaf"]},
        "right": {**hop, "calls": ["leaf"]},
    }, 2


def _workers(dice, leaf, typical, most):
    """Gives the service its hosts and workers, and says how many calls a second it gets. In a long chain that are fewer,
    for policies that retry at every hop make a thousand of each."""
    wanted = dice.log(1, most)
    leaf["hosts"] = dice.pick((1, 1, 2, 3, 10))
    if dice.chance(0.3):
        return wanted
    busy = dice.uniform(0.05, 0.98)
    leaf["workers"] = max(1, math.ceil(wanted * typical / busy / leaf["hosts"]))
    queue = dice.pick((None, None, {"order": "lifo"}, {"expiry": "true"}, {"codel": "true"}, "max"))
    if queue == "max":
        queue = {"max": round(dice.log(5, 1000))}
    if queue is not None:
        leaf["queue"] = queue
    # Whole workers have more capacity than was drawn: then the number of calls is raised by the same factor.
    return min(2 * wanted, busy * leaf["workers"] * leaf["hosts"] / typical)


def _extras(dice, leaf, time, timeout):
    if dice.chance(0.3):
        leaf["errors"] = dice.pick(("0.1%", "1%", "5%"))
    leaf["hangs"] = {
        "percent": dice.pick(("0%", "0%", "0%", "0.1%", "1%")),
        "time": duration(timeout * dice.uniform(3, 10)),
    }
    if dice.chance(0.1):
        heavy = _time(dice, mean(time) * 8)
        leaf["endpoints"] = {"heavy": {"share": f"{dice.whole(2, 30)}%", "time": heavy}}


def _client(dice, to, shape, calls, typical):
    callers = round(dice.log(1, 2000))
    if dice.chance(0.15):
        callers = min(callers, 50)
        think = max(0.001, callers / calls - typical)
        return {"to": to, "loop": {"think": {"exponential": duration(think)}}, "callers": callers}
    client = {"to": to, "rate": rate(calls), "callers": callers}
    if dice.chance(0.6 if shape == "page" else 0.2):
        client["retries"] = "false"
    return client


def _faults(dice, world, length, timeout):
    at = length // 4
    long = max(1, min(round(dice.log(1, 60)), length // 4))
    names = list(world["services"])
    hit = dice.pick(names) if dice.chance(0.15) else "leaf"
    kind = dice.pick([kind for kind in FAULTS if _possible(world, hit, kind)])
    place = {"at": f"{at}s", "for": f"{long}s", "service": hit}
    if kind == "ramp":
        steps, lowest = 5, dice.uniform(0.01, 0.5)
        each = max(1, long // steps)
        left = [1 - (1 - lowest) * (i + 1) / steps for i in range(steps)]
        return {
            f"f{i}": {**place, "at": f"{at + i * each}s", "for": f"{each}s", "capacity": f"{share:.2f}"}
            for i, share in enumerate(left)
        }
    if kind == "surge":
        del place["service"]
        place["client"] = "users"
    place.update(_harm(dice, world["services"].get(hit), kind, timeout))
    if dice.chance(0.25):
        place["flap"] = {"on": duration(dice.log(0.5, 15)), "off": duration(dice.log(0.5, 15))}
    return {"f": place}


def _possible(world, hit, kind):
    service = world["services"][hit]
    if kind in ("capacity", "ramp"):
        return "workers" in service
    if kind in ("badHosts", "killHosts", "rolling"):
        return service.get("hosts", 1) > 1
    if kind in ("cutCallers", "silent"):
        above = [each for each in world["services"].values() if hit in each.get("calls", ())]
        callers = above[0]["instances"] if above else world["clients"]["users"]["callers"]
        return callers >= 4
    return kind != "surge" or "rate" in world["clients"]["users"]


def _harm(dice, service, kind, timeout):
    if kind == "capacity":
        return {"capacity": f"{dice.log(0.01, 0.9):.2f}"}
    if kind == "errors":
        return {"errors": dice.pick(("5%", "10%", "20%", "30%", "50%", "80%"))}
    if kind == "latency":
        return {"latency": duration(timeout * dice.log(0.1, 2))}
    if kind == "hangs":
        return {"hangs": dice.pick(("1%", "5%", "10%", "30%", "100%"))}
    if kind in ("badHosts", "killHosts"):
        return {kind: dice.whole(1, service["hosts"])}
    if kind in ("cutCallers", "silent"):
        harm = {"cutCallers": dice.pick(("5%", "10%", "30%", "50%"))}
        return {**harm, "silent": "true"} if kind == "silent" else harm
    if kind == "rolling":
        return {"rolling": duration(dice.uniform(1, 5))}
    if kind == "surge":
        return {"surge": f"{dice.log(1.3, 10):.1f}"}
    return {kind: "true"}  # dead, refuse, partition


# Files.


def text(world, about=""):
    """The scenario file of a world."""
    lines = [f"# {line}" for line in about.splitlines()]
    for key, value in world.items():
        if key in ("services", "clients", "faults"):
            if value:
                lines.append(f"{key}:")
                lines += [f"  {name}: {flow(each)}" for name, each in value.items()]
        else:
            lines.append(f"{key}: {flow(value)}")
    return "\n".join(lines) + "\n"


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return str(value)


def read(content):
    """The world of a scenario file: block mappings, and mappings and lists in braces on one line. No more of YAML."""
    root = {}
    levels = [(-1, root)]
    for line in content.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not line:
            continue
        indent = len(line) - len(line.lstrip())
        key, _, rest = line.strip().partition(":")
        while levels[-1][0] >= indent:
            levels.pop()
        value = _parse(_tokens(rest)) if rest.strip() else {}
        levels[-1][1][key] = value
        if not rest.strip():
            levels.append((indent, value))
    return root


def _tokens(line):
    return re.findall(r'"[^"]*"|[{}\[\],]|(?:[^\s{}\[\],:"]|:(?!\s|$))+|:', line)[::-1]


def _parse(tokens):
    token = tokens.pop()
    if token == "[":
        items = []
        while tokens[-1] != "]":
            items.append(_parse(tokens))
            if tokens[-1] == ",":
                tokens.pop()
        tokens.pop()
        return items
    if token != "{":
        return _scalar(token)
    mapping = {}
    while tokens[-1] != "}":
        key = tokens.pop()
        tokens.pop()
        mapping[key] = _parse(tokens)
        if tokens[-1] == ",":
            tokens.pop()
    tokens.pop()
    return mapping


def _scalar(token):
    return int(token) if re.fullmatch(r"[0-9]+", token) else token
