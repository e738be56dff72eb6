# SPDX-License-Identifier: MIT
"""Figures of one run, from the output of `becalm sim --json --series`."""

import math


def focus(run):
    """The service that rows are about: the last one."""
    return list(run["services"])[-1]


def load(run):
    """Attempts at the service per call: in the fault from its second second on, or in all."""
    return run["services"][focus(run)]["amplification"]["mean"]


def peak(run):
    """The load of the worst five seconds, relative to the offered load."""
    return run["services"][focus(run)]["amplification"]["peak_5s"]


def worst(run):
    """The worst second."""
    return run["services"][focus(run)]["amplification"]["peak_1s"]


def worst_tried(run):
    """The worst second, with connections that were refused: those are no load, and not free either."""
    service = focus(run)
    series = run["series"]["services"][service]
    tried = [a + b for a, b in zip(series["arrivals"], series["connections_refused"])]
    return max(tried) / run["services"][service]["offered"]


def success(run):
    return run["clients"]["success"]


def before(run):
    return run["clients"]["success_before_fault"]


def in_fault(run):
    return run["clients"]["success_in_fault"]


def after(run):
    return run["clients"]["success_after_fault"]


def recovery(run):
    """Seconds; infinite for never."""
    seconds = run["clients"]["recovered_after_s"]
    return math.inf if seconds is None else seconds


def lost(run):
    """Calls without success."""
    clients = run["series"]["clients"]
    return sum(clients["calls"]) - sum(clients["successes"])


def success_in(start, end):
    """The success of calls that began in these seconds. At the very end of a run no caller earns budget any more."""

    def success_of_window(run):
        clients = run["series"]["clients"]
        return sum(clients["successes"][start:end]) / sum(clients["calls"][start:end])

    return success_of_window


def local(run):
    """Calls that their callers' own rules refused before anything was sent, in the fault from its second second on."""
    return run["clients"]["failed_locally"]


def median_in_fault(run):
    """Of the calls that succeeded, in seconds, in the fault from its second second on."""
    return run["clients"]["latency_p50_in_fault_ms"] / 1000


def latency(quantile):
    """Of the calls that succeeded, in milliseconds: "p50", "p99" or "p999"."""

    def latency_at(run):
        return run["clients"][f"latency_{quantile}_ms"]

    return latency_at


def client(name):
    """Success of one client's calls, in the whole run."""

    def success_of_client(run):
        return run["by_client"][name]["success"]

    return success_of_client


def client_in_fault(name):
    """Of one client's calls."""

    def success_of_client(run):
        return run["by_client"][name]["success_in_fault"]

    return success_of_client
