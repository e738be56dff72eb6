# SPDX-License-Identifier: MIT
"""becalm plan, as a user types it, and against a real Prometheus."""

import json
import os
import re
import subprocess

import prometheus_server
import pytest

# Where a proxy is set up, it is not for the servers of these tests.
NO_PROXY = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def plan(becalm, *args, **more):
    done = becalm("plan", *args, env=NO_PROXY, **more)
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if '"' not in line), done.stdout
    return done


def says(becalm, *args, **more):
    """The output of a successful run."""
    done = plan(becalm, *args, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(becalm, *args, **more):
    return json.loads(says(becalm, *args, "--json", **more))


def check_usage(becalm, message, command, *args):
    done = plan(becalm, command, *args)
    assert done.stdout == ""
    assert done.stderr == f"becalm plan {command}: {message}\nTry 'becalm plan {command} --help'.\n"
    assert done.returncode == 2


def check_failure(becalm, message, command, *args, **more):
    done = plan(becalm, command, *args, **more)
    assert done.stdout == ""
    assert done.stderr == f"becalm plan {command}: {message}\n"
    assert done.returncode == 1


def check_loads(becalm, yaml):
    """The YAML that is printed for pasting is a policy. Warnings are allowed: it is only a part of one."""
    done = becalm("check", "-", stdin=yaml)
    assert done.returncode == 0, done.stdout + done.stderr


def pasted(text):
    """The part of the text under the last heading."""
    return text.split("To paste into the policy file\n\n")[1]


# ---- amplification ----


def test_amplification__of_ten_services(becalm):
    assert says(becalm, "amplification", "--services", 10, "--rps", 100, "--retries", 1) == """\
10 services in a chain, 100 rps, up to 2 attempts per layer

service            rps      factor
      1            100          1x  ▏
      2            200          2x  ▏
      3            400          4x  ▍
      4            800          8x  ▋
      5          1,600         16x  █▎
      6          3,200         32x  ██▌
      7          6,400         64x  █████
      8         12,800        128x  ██████████
      9         25,600        256x  ████████████████████
     10         51,200        512x  ████████████████████████████████████████
    all        102,300      1,023x

When it fails, the last service gets 51,200 rps (512x), all together 102,300
rps.
With marks only the layer above it retries: 200 rps (2x).
"""


def test_amplification__with_a_budget(becalm):
    args = ("amplification", "--services", 10, "--rps", 100, "--retries", 1, "--budget", "5%")
    assert says(becalm, *args) == """\
10 services in a chain, 100 rps, up to 2 attempts per layer

                 without budgets                  with 5 %
service           rps     factor           rps     factor
      1           100         1x           100         1x  ████████████▉
      2           200         2x           105      1.05x  █████████████▌
      3           400         4x         110.3     1.103x  ██████████████▎
      4           800         8x         115.8     1.158x  ██████████████▉
      5         1,600        16x         121.6     1.216x  ███████████████▋
      6         3,200        32x         127.6     1.276x  ████████████████▌
      7         6,400        64x           134      1.34x  █████████████████▎
      8        12,800       128x         140.7     1.407x  ██████████████████▏
      9        25,600       256x         147.7     1.477x  ███████████████████
     10        51,200       512x         155.1     1.551x  ████████████████████
    all       102,300     1,023x       1,257.8    12.578x

When it fails, the last service gets 51,200 rps (512x), all together 102,300
rps.
With the budgets it gets 155.1 rps (1.551x), all together 1,257.8 rps.
With marks as well only the layer above it retries: 105 rps (1.05x).
"""
    answer = as_json(becalm, *args)
    assert answer["budget_percent"] == 5
    assert answer["unbudgeted"] == {"rps": 51200, "factor": 512}
    assert answer["unbudgeted_total"] == {"rps": 102300, "factor": 1023}
    assert answer["budgeted"] == {"rps": 155.133, "factor": 1.551328}
    assert answer["budgeted_total"] == {"rps": 1257.789, "factor": 12.577893}
    assert answer["marked"] == {"rps": 105, "factor": 1.05}
    assert [load["service"] for load in answer["loads"]] == list(range(1, 11))
    assert answer["loads"][-1]["budgeted"] == answer["budgeted"]


def test_amplification__of_layers_in_a_locale_without_blocks(becalm):
    args = ("amplification", "--layers", "3", "--attempts", "4")
    plain = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run([becalm.program, "plan", *args], stdout=subprocess.PIPE, encoding="ascii", env=plain)
    assert done.stdout == """\
4 services in a chain, 1 rps, up to 4 attempts per layer

service            rps      factor
      1              1          1x  #
      2              4          4x  ###
      3             16         16x  ##########
      4             64         64x  ########################################
    all             85         85x

When it fails, the last service gets 64 rps (64x), all together 85 rps.
With marks only the layer above it retries: 4 rps (4x).
"""


@pytest.mark.parametrize(
    "args, factor",
    [
        (("--layers", 3, "--attempts", 3), 27),
        (("--layers", 3, "--retries", 3), 64),
        (("--services", 4, "--retries", 2), 27),
        (("--services", 4), 27),
        (("--services", 1, "--retries", 5), 1),
        (("--services", 64, "--attempts", 100), 1e126),
        (("--layers", 2, "--retries", 0, "--budget", "10%"), 1),
    ],
)
def test_amplification__factors(becalm, args, factor):
    assert as_json(becalm, "amplification", *args)["unbudgeted"]["factor"] == pytest.approx(factor)
    assert f"{factor:,}x" in says(becalm, "amplification", *args) or factor > 1e15


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "give --services or --layers"),
        (("--services", 2, "--layers", 2), "give --services or --layers, not both"),
        (("--services", 2, "--retries", 1, "--attempts", 2), "give --retries or --attempts, not both"),
        (("--services", 0), "--services 0: must be a whole number from 1 to 64"),
        (("--services", 65), "--services 65: must be a whole number from 1 to 64"),
        (("--layers", "x"), "--layers x: must be a whole number from 1 to 63"),
        (("--layers", 2, "--attempts", 0), "--attempts 0: must be a whole number from 1 to 100"),
        (("--layers", 2, "--rps", 0), "--rps 0: must be a number above 0, up to 1000000000, with at most 6 decimals"),
        (("--layers", 2, "--budget", 0), "--budget 0: must be a percentage above 0, up to 100, such as 5%"),
        (("--layers", 2, "--budget", "5x"), "--budget 5x: must be a percentage above 0, up to 100, such as 5%"),
        (("--layers", 2, "more"), "unexpected argument 'more'"),
    ],
)
def test_amplification__usage(becalm, args, message):
    check_usage(becalm, message, "amplification", *args)


# ---- budget ----


def test_budget__from_figures(becalm):
    text = says(becalm, "budget", "--requests-per-second", "100.77", "--retries-per-second", "5.77")
    assert text == """\
Retry budget from the figures given

requests per second, on average         100.77
retries per second, at most               5.77
retries / requests                       5.7 %
recommended budget                         6 %   the next whole percent

To paste into the policy file

defaults:
  budget: {kind: ratio, percent: 6, of: attempts, window: 2m}
"""
    check_loads(becalm, pasted(text))


def test_budget__with_few_requests_in_flight(becalm):
    args = ("budget", "--requests-per-second", "100.77", "--retries-per-second", "5.77")
    args += ("--latency", "50ms", "--instances", "40", "--service", "payment")
    text = says(becalm, *args)
    assert text == """\
Retry budget from the figures given

requests per second, on average         100.77
retries per second, at most               5.77
retries / requests                       5.7 %
recommended budget                         6 %   the next whole percent

At 50ms per request and 40 instances

requests in flight                        5.04   0.13 per instance
6 % of them, retries                       0.3   0.0076 per instance: below one
with a minimum of 1                         40   40 x 1

An instance has 0.13 requests in flight, and 6 % of them are less than one
retry. A budget on requests in flight (kind: concurrency, Envoy's) needs
minConcurrency: 1 here, and 40 instances x 1 = 40 retries in flight, 794 % of
the requests.

In one gateway that all instances call through, 6 % are 0.3 retries in flight:
it needs the minimum too, but once per replica instead of once per instance.

Counted over 2m instead of in flight, an instance may send 18.1 retries: a ratio
needs no minimum.

To paste into the policy file

services:
  payment:
    budget: {kind: ratio, percent: 6, of: attempts, window: 2m}
    # or Envoy's kind; 40 x 1 = 40 in flight over all instances:
    # budget: {kind: concurrency, percent: 6, minConcurrency: 1}
"""
    check_loads(becalm, pasted(text))
    check_loads(becalm, re.sub(r"# (budget)", r"\1", re.sub(r" +budget.*\n", "", pasted(text), count=1)))
    answer = as_json(becalm, *args)
    assert answer["recommended_percent"] == 6
    assert answer["share_percent"] == 5.7259
    assert answer["concurrency"] == {
        "latency_ms": 50,
        "active": 5.0385,
        "active_per_instance": 0.125963,
        "allowed": 0.30231,
        "allowed_per_instance": 0.007558,
        "low": True,
        "minimum": 1,
        "minimum_total": 40,
    }
    assert len(answer["notes"]) == 3
    assert answer["yaml"] == pasted(text)


def test_budget__with_many_requests_in_flight_needs_no_minimum(becalm):
    args = ("--requests-per-second", 1000, "--retries-per-second", 57, "--latency", "1s", "--instances", 40)
    answer = as_json(becalm, "budget", *args)
    assert answer["concurrency"]["allowed_per_instance"] == 1.5
    assert answer["concurrency"]["low"] is False
    assert answer["notes"] == []
    assert "minConcurrency" not in answer["yaml"]


def test_budget__of_a_storm(becalm):
    answer = as_json(becalm, "budget", "--requests-per-second", 10, "--retries-per-second", 6)
    assert answer["storm"] is True
    assert answer["recommended_percent"] == 20
    assert answer["notes"] == [
        "More than 20 % retries are a storm or a failing service, not a measure for healthy traffic. Measure "
        "again when the service is healthy; 20 % is the most that makes sense."
    ]


def test_budget__of_hardly_any_traffic_is_earned(becalm):
    args = ("--requests-per-second", "0.1", "--retries-per-second", 0, "--latency", "1s")
    answer = as_json(becalm, "budget", *args)
    assert answer["recommended_percent"] == 1
    assert "kind: earned, percent: 1" in answer["yaml"]
    check_loads(becalm, answer["yaml"])


def test_budget__names_that_yaml_would_misread_are_quoted(becalm):
    args = ("--requests-per-second", 10, "--retries-per-second", 1, "--service", 'a: "b"\\')
    assert as_json(becalm, "budget", *args)["yaml"].splitlines()[1] == r'  "a: \"b\"\\":'


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "give --requests-per-second and --retries-per-second, or --prometheus URL"),
        (("--requests-per-second", 1), "give --requests-per-second and --retries-per-second, or --prometheus URL"),
        (
            ("--requests-per-second", 1, "--retries-per-second", 2),
            "--requests-per-second counts retries too: it can't be below --retries-per-second",
        ),
        (
            ("--requests-per-second", "1e3", "--retries-per-second", 2),
            "--requests-per-second 1e3: must be a number above 0, up to 1000000000, with at most 6 decimals",
        ),
        (
            ("--requests-per-second", 1, "--retries-per-second", "-1"),
            "--retries-per-second -1: must be a number from 0, up to 1000000000, with at most 6 decimals",
        ),
        (
            ("--requests-per-second", 9, "--retries-per-second", 1, "--latency", "50"),
            "--latency 50: must be a duration from 1ns to 1h, such as 250ms or 1.5s",
        ),
        (
            ("--requests-per-second", 9, "--retries-per-second", 1, "--instances", 0),
            "--instances 0: must be a whole number from 1 to 1000000",
        ),
        (
            ("--requests-per-second", 9, "--retries-per-second", 1, "--window", "1h"),
            "--window goes with --prometheus",
        ),
        (
            ("--requests-per-second", 9, "--prometheus", "http://127.0.0.1:9"),
            "give rates or --prometheus, not both",
        ),
        (("--prometheus", "file:///etc/passwd"), "--prometheus: must be an address such as http://localhost:9090"),
    ],
)
def test_budget__usage(becalm, args, message):
    check_usage(becalm, message, "budget", *args)


# ---- tune ----


def test_tune__from_quantiles(becalm):
    args = ("tune", "--latency-p50", "40ms", "--latency-p99-5", "900ms", "--deadline", "4s")
    text = says(becalm, *args)
    assert text == """\
Latencies as given

p50                  40ms
p99.5               900ms

Policy for a deadline of 4s

attemptTimeout      990ms   p99.5 x 1.1, rounded up to two digits
initialDelay        100ms   a round trip (p50), but at least 100ms
maxRetries              2   as many as fit
maxDelay            200ms   the longest of these waits

3 x 990ms               2.97s   attempts, each to its timeout
2 waits                 300ms   100ms 200ms
together                3.27s   of 4s

Hedging, instead of retries of idempotent calls

delay                 p95   of live latencies
cost                  5 %   more requests: one call in 20 sends a second one

To paste into the policy file

defaults:
  deadline: 4s
  attemptTimeout: 990ms
  maxRetries: 2
  initialDelay: 100ms
  maxDelay: 200ms
  multiplier: 2
  jitter: full
  # for idempotent calls, instead of retries:
  # hedge: {enabled: true, delay: p95}
"""
    check_loads(becalm, pasted(text))
    check_loads(becalm, pasted(text).replace("# hedge", "hedge"))
    assert as_json(becalm, *args)["yaml"] == pasted(text)


def test_tune__refuses_five_retries_in_two_seconds(becalm):
    args = ("tune", "--retries", 5, "--max-delay", "30s", "--deadline", "2s", "--latency-p50", "200ms")
    done = plan(becalm, *args)
    assert done.stdout == """\
Latencies as given

p50                 200ms

5 retries do not fit into a deadline of 2s

6 x 200ms                1.2s   attempts, each at p50
5 waits                  6.2s   200ms 400ms 800ms 1.6s 3.2s
together                 7.4s   of 2s
on average               4.3s   with full jitter, whose waits are half of these

What fits: maxRetries 2, with maxDelay 400ms.

maxDelay 30s is longer than the whole deadline of 2s: no wait can reach it.
"""
    assert done.stderr == "becalm plan tune: 5 retries need 7.4s, the deadline is 2s\n"
    assert done.returncode == 1
    done = plan(becalm, *args, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["refused"] is True
    assert answer["fits"] == 2
    assert answer["at_p50"] == {
        "attempts": 6,
        "attempt_ms": 200,
        "attempts_ms": 1200,
        "waits_ms": 6200,
        "together_ms": 7400,
    }
    assert answer["yaml"] is None


def test_tune__judges_what_fits_without_p99_5(becalm):
    assert says(becalm, "tune", "--retries", 2, "--deadline", "2s", "--latency-p50", "200ms") == """\
Latencies as given

p50                 200ms

2 retries fit into a deadline of 2s

3 x 200ms               600ms   attempts, each at p50
2 waits                 600ms   200ms 400ms
together                 1.2s   of 2s
on average              900ms   with full jitter, whose waits are half of these
"""


def test_tune__says_when_the_last_attempt_may_be_cut(becalm):
    args = ("--latency-p50", "200ms", "--latency-p95", "420ms", "--latency-p99-5", "900ms", "--deadline", "2s")
    answer = as_json(becalm, "tune", *args)
    assert (answer["fits"], answer["max_retries"], answer["at_timeout"]["together_ms"]) == (0, 1, 2180)
    assert answer["hedge"] == {"delay_ms": 420, "cost_percent": 5, "p99_5_ms": None}
    assert answer["notes"] == [
        "If every attempt runs into its timeout, 2.18s are needed: the last attempt then has less than its timeout. "
        "It is worth it, because most failures come faster. check will remark on it."
    ]
    check_loads(becalm, answer["yaml"])


def test_tune__says_when_the_deadline_is_shorter_than_an_attempt(becalm):
    answer = as_json(becalm, "tune", "--latency-p50", "200ms", "--latency-p99-5", "900ms", "--deadline", "500ms")
    assert (answer["attempt_timeout_ms"], answer["max_retries"]) == (500, 0)
    assert len(answer["notes"]) == 1
    check_loads(becalm, answer["yaml"])


LATENCIES = "# made up\n" + "".join(f"{10 + i % 100}\n" for i in range(1980)) + "0.8s\n" * 20


@pytest.mark.parametrize("source", ["latencies.txt", "-"])
def test_tune__from_a_file_or_standard_input(becalm, tmp_path, source):
    (tmp_path / "latencies.txt").write_text(LATENCIES)
    text = says(becalm, "tune", "--deadline", "2s", source, stdin=LATENCIES if source == "-" else None)
    assert text == """\
Latencies of 2,000 answers

p50                  59ms
p95                 105ms
p99.5               800ms

Policy for a deadline of 2s

attemptTimeout      880ms   p99.5 x 1.1, rounded up to two digits
initialDelay        100ms   a round trip (p50), but at least 100ms
maxRetries              1   as many as fit
maxDelay            100ms   the longest of these waits

2 x 880ms               1.76s   attempts, each to its timeout
1 wait                  100ms
together                1.86s   of 2s

Hedging, instead of retries of idempotent calls

delay                 p95
                    105ms   at the time of this measurement
cost                  5 %   more requests: one call in 20 sends a second one
p99.5               164ms   instead of 800ms, if hosts are slow independently

To paste into the policy file

defaults:
  deadline: 2s
  attemptTimeout: 880ms
  maxRetries: 1
  initialDelay: 100ms
  maxDelay: 100ms
  multiplier: 2
  jitter: full
  # for idempotent calls, instead of retries:
  # hedge: {enabled: true, delay: p95}
"""
    check_loads(becalm, pasted(text))


def test_tune__of_few_latencies_says_so(becalm):
    answer = as_json(becalm, "tune", "--deadline", "2s", "-", stdin="12\n13\n")
    assert answer["latency"] == {"p50_ms": 12, "p95_ms": 13, "p99_5_ms": 13, "answers": 2}
    assert answer["notes"] == ["2 answers are few: p99.5 needs at least 200, better ten times that."]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "latencies.txt: no latency in it"),
        ("1\n2\nslow\n", "latencies.txt:3: not a latency; write 12.5ms, or 12.5 for milliseconds"),
        ("1" * 1000, "latencies.txt:1: the line is too long; one latency per line"),
        ("1\0\n", "latencies.txt:1: the line is too long; one latency per line"),
        ("1\n" * 1000001, "latencies.txt: more than 1000000 latencies; take a sample of them"),
    ],
    ids=["empty", "word", "long", "zero", "many"],
)
def test_tune__of_a_file_that_is_none(becalm, tmp_path, text, message):
    (tmp_path / "latencies.txt").write_text(text)
    check_failure(becalm, message, "tune", "--deadline", "2s", "latencies.txt")


def test_tune__of_a_file_that_cannot_be_read(becalm, tmp_path):
    check_failure(becalm, "none.txt: No such file or directory", "tune", "--deadline", "2s", "none.txt")
    (tmp_path / "folder").mkdir()
    check_failure(becalm, "folder: cannot be read", "tune", "--deadline", "2s", "folder")


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "--deadline is missing: --deadline 2s"),
        (("--deadline", "2s"), "give --latency-p50 and --latency-p99-5, a FILE or --prometheus URL"),
        (("--deadline", "2s", "a", "b"), "one FILE at most"),
        (
            ("--deadline", "2s", "--latency-p50", "1ms", "a"),
            "give quantiles, a FILE or --prometheus, not two of them",
        ),
        (("--deadline", "2s", "--latency-p99-5", "1ms"), "--latency-p50 is missing"),
        (
            ("--deadline", "2s", "--latency-p50", "1ms"),
            "--latency-p99-5 is missing; without it only --retries can be judged",
        ),
        (
            ("--deadline", "2s", "--latency-p50", "2ms", "--latency-p99-5", "1ms"),
            "quantiles must ascend: p50, p95, p99.5",
        ),
        (
            ("--deadline", "2s", "--latency-p50", "0", "--latency-p99-5", "1ms"),
            "--latency-p50 0: must be a duration from 1us to 24h, such as 250ms or 1.5s",
        ),
        (
            ("--deadline", "2s", "a", "--initial-delay", "2s", "--max-delay", "1s"),
            "--max-delay can't be below --initial-delay",
        ),
        (("--deadline", "2s", "a", "--metric", "m"), "--metric goes with --prometheus"),
        (
            ("--deadline", "2s", "--prometheus", "http://127.0.0.1:9", "--metric", "a{"),
            "--metric a{: not the name of a metric",
        ),
    ],
)
def test_tune__usage(becalm, args, message):
    check_usage(becalm, message, "tune", *args)


# ---- contention ----


def test_contention__of_a_thousand_clients(becalm):
    assert says(becalm, "contention", "--clients", 1000, "--window", 1024) == """\
1,000 clients that failed together choose from a window of slots

       window     collisions  alone in slot
            1        499,500              0  ██████████████████████████████
            2        249,750              0  ███████████████
            4        124,875              0  ███████▌
            8       62,437.5              0  ███▊
           16       31,218.8              0  █▉
           32       15,609.4              0  █
           64        7,804.7              0  ▌
          128        3,902.3            0.4  ▎
          256        1,951.2             20  ▏
          512          975.6          141.8  ▏
        1,024          487.8          376.8  ▏

In 1,024 slots 487.8 collisions are expected: pairs in the same slot, N(N-1)/2W.
For less than one it takes more than 499,500 slots, N(N-1)/2.

The effect of jitter, when the delay is 1,024 slots long

       jitter     collisions
         none        499,500  all wait the same time: one slot
         full          487.8  over the whole delay
        equal          975.6  over its second half
 decorrelated        222,271  at the cap, where two of three wait for it
"""


def test_contention__in_json(becalm):
    answer = as_json(becalm, "contention", "--clients", 1000)
    assert answer["window"] == 1024
    assert answer["collisions"] == 487.793
    assert [row["window"] for row in answer["windows"]] == [2**c for c in range(11)]
    assert answer["windows"][10]["collisions"] == 487.793
    assert answer["quiet_window"] == 499500
    assert answer["jitter"]["none"] == 499500


def test_contention__shows_a_window_that_is_no_power_of_two_in_its_place(becalm):
    def windows(window):
        text = says(becalm, "contention", "--clients", 10, "--window", window)
        return re.findall(r"^ *([\d,]+) ", text.split("\n\n")[1], re.M)

    powers = ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1,024"]
    assert windows(512) == powers
    assert windows(3) == powers[:2] + ["3"] + powers[2:]
    assert windows(5000) == powers + ["5,000"]


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "--clients is missing: --clients N"),
        (("--clients", 0), "--clients 0: must be a whole number from 1 to 1000000000"),
        (("--clients", 5, "--window", 0), "--window 0: must be a whole number from 1 to 1000000000000"),
    ],
)
def test_contention__usage(becalm, args, message):
    check_usage(becalm, message, "contention", *args)


# ---- Prometheus ----

BUCKETS = {"0.075": 20, "0.1": 60, "0.25": 96, "0.5": 99, "1": 99.9, "2.5": 100, "+Inf": 100}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """The figures of Agoda for one service, a second one beside it that never retries, and a histogram."""
    if not prometheus_server.installed() and not os.environ.get("CI"):
        pytest.skip("prometheus is not installed")

    def peak(high, low):
        return lambda age: high if 1800 <= age < 2400 else low

    series = prometheus_server.Series()
    pay = {"service": "payment", "endpoint": "charge"}
    series.counter("http_client_requests", {**pay, "status": "success"}, lambda age: 95.0)
    series.counter("http_client_requests", {**pay, "status": "server_error"}, lambda age: 5.77)
    series.counter("http_client_requests", {"service": "search", "status": "success"}, lambda age: 50.0)
    series.counter("http_client_retry_attempts", {**pay, "attempt": "1"}, peak(4.77, 1.0))
    series.counter("http_client_retry_attempts", {**pay, "attempt": "2"}, peak(1.0, 0.25))
    series.histogram("becalm_request_duration_seconds", pay, BUCKETS)
    series.histogram("tail_seconds", pay, {"0.1": 98, "0.2": 99, "+Inf": 100})
    series.histogram("off_the_scale_seconds", pay, {"0.1": 90, "+Inf": 100})
    with prometheus_server.running(tmp_path_factory.mktemp("prometheus"), series) as url:
        yield url


def test_prometheus__budget_of_one_service(becalm, prometheus):
    text = says(becalm, "budget", "--prometheus", prometheus, "--service", "payment")
    assert text == """\
Retry budget from Prometheus, last 1h, service payment

requests per second, on average         100.77
retries per second, at most               5.77
retries / requests                       5.7 %
recommended budget                         6 %   the next whole percent

To paste into the policy file

services:
  payment:
    budget: {kind: ratio, percent: 6, of: attempts, window: 2m}
"""
    check_loads(becalm, pasted(text))


def test_prometheus__budget_of_all_services(becalm, prometheus):
    answer = as_json(becalm, "budget", "--prometheus", prometheus + "/", "--latency", "50ms", "--window", "2h")
    assert answer["source"] == "prometheus"
    assert answer["requests_per_second"] == pytest.approx(150.77, abs=1e-3)
    assert answer["retries_per_second"] == pytest.approx(5.77, abs=1e-3)
    assert answer["recommended_percent"] == 4
    assert answer["concurrency"]["active"] == pytest.approx(7.5385, abs=1e-3)


def test_prometheus__budget_looks_no_further_back_than_the_window(becalm, prometheus):
    answer = as_json(becalm, "budget", "--prometheus", prometheus, "--service", "payment", "--window", "20m")
    assert answer["retries_per_second"] == pytest.approx(1.25, abs=1e-3)  # the peak is half an hour old
    assert answer["recommended_percent"] == 2


def test_prometheus__tune_from_a_histogram(becalm, prometheus):
    args = ("tune", "--deadline", "2s", "--prometheus", prometheus, "--service", "payment")
    text = says(becalm, *args)
    assert text == """\
Latencies of 360,000 answers

p50                93.8ms
p95                 246ms
p99.5               778ms

Policy for a deadline of 2s

attemptTimeout      860ms   p99.5 x 1.1, rounded up to two digits
initialDelay        100ms   a round trip (p50), but at least 100ms
maxRetries              1   as many as fit
maxDelay            100ms   the longest of these waits

2 x 860ms               1.72s   attempts, each to its timeout
1 wait                  100ms
together                1.82s   of 2s

Hedging, instead of retries of idempotent calls

delay                 p95
                    246ms   at the time of this measurement
cost                  5 %   more requests: one call in 20 sends a second one
p99.5               411ms   instead of 778ms, if hosts are slow independently

To paste into the policy file

services:
  payment:
    deadline: 2s
    attemptTimeout: 860ms
    maxRetries: 1
    initialDelay: 100ms
    maxDelay: 100ms
    multiplier: 2
    jitter: full
    # for idempotent calls, instead of retries:
    # hedge: {enabled: true, delay: p95}
"""
    check_loads(becalm, pasted(text))
    latency = as_json(becalm, *args)["latency"]
    assert latency == {"p50_ms": 93.75, "p95_ms": 245.833, "p99_5_ms": 777.778, "answers": 360000}


def test_prometheus__tune_says_when_the_tail_is_beyond_the_histogram(becalm, prometheus):
    args = ("tune", "--deadline", "2s", "--prometheus", prometheus, "--metric")
    assert as_json(becalm, *args, "tail_seconds")["notes"] == [
        "p99.5 lies beyond the histogram's last bucket; it was taken as that bucket's bound, 200ms."
    ]
    message = "more than one answer in 20 is beyond the histogram's last bucket"
    check_failure(becalm, message, *args, "off_the_scale_seconds")


def test_prometheus__without_data(becalm, prometheus):
    name = prometheus.removeprefix("http://")
    hint = ", or less than two samples within --rate"
    check_failure(
        becalm,
        f'{name}: no data for http_client_requests_total{{service="no\\"pe"}} in the last 1h{hint}',
        *("budget", "--prometheus", prometheus, "--service", 'no"pe'),
    )
    check_failure(
        becalm,
        f'{name}: no data for http_client_retry_attempts_total{{service="search"}} in the last 2h{hint}',
        *("budget", "--prometheus", prometheus, "--service", "search", "--window", "2h"),
    )
    check_failure(
        becalm,
        f"{name}: no data for nope_bucket in the last 1h",
        *("tune", "--deadline", "2s", "--prometheus", prometheus, "--metric", "nope"),
    )
    check_failure(becalm, f"{name}: HTTP 404", "budget", "--prometheus", prometheus + "/nowhere")


@pytest.mark.parametrize(
    "status, body, message",
    [
        (500, b"oops", "HTTP 500"),
        (302, b"", "HTTP 302"),
        (200, b"hello", "the answer is not one of a Prometheus"),
        (200, b"x" * 2000000, "the answer is larger than 1MiB"),
        (400, b'{"status":"error","error":"bad\\u001b query"}', "HTTP 400, the server says: bad  query"),
        (200, b'{"status":"error","error":"timeout"}', "the server says: timeout"),
    ],
    ids=["500", "302", "text", "large", "400", "error"],
)
def test_prometheus__answers_that_are_none(becalm, status, body, message):
    with prometheus_server.answering(status, body) as url:
        name = url.removeprefix("http://")
        check_failure(becalm, f"{name}: {message}", "budget", "--prometheus", url)


def test_prometheus__bad_json(becalm):
    with prometheus_server.answering(200, b'{"status": ') as url:
        done = plan(becalm, "budget", "--prometheus", url)
        name = re.escape(url.removeprefix("http://"))
        assert re.fullmatch(rf"becalm plan budget: {name}: the answer is not JSON: .+\n", done.stderr)
        assert done.returncode == 1


def test_prometheus__is_asked_once_per_figure_below_the_path_given(becalm):
    seen = []
    empty = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]}}'
    with prometheus_server.answering(200, empty, seen) as url:
        says(becalm, "budget", "--prometheus", url + "/prom/", "--rate", "2m", "--window", "720h")
    assert seen == [
        "/prom/api/v1/query?query=avg_over_time%28sum%28rate%28http_client_requests_total"
        "%5B120s%5D%29%29%5B2592000s%3A518s%5D%29",
        "/prom/api/v1/query?query=max_over_time%28sum%28rate%28http_client_retry_attempts_total"
        "%5B120s%5D%29%29%5B2592000s%3A518s%5D%29",
    ]


def test_prometheus__that_says_nothing_is_given_up(becalm):
    with prometheus_server.silent() as url:
        name = url.removeprefix("http://")
        check_failure(
            becalm, f"{name}: no answer within 300ms", "budget", "--prometheus", url, "--timeout", "300ms"
        )


def test_prometheus__that_is_not_there_is_named_without_its_password(becalm):
    port = prometheus_server.free_port()
    check_failure(
        becalm,
        f"127.0.0.1:{port}: Couldn't connect to server",
        *("tune", "--deadline", "2s", "--prometheus", f"http://me:secret@127.0.0.1:{port}/"),
    )


def test_plan__a_deadline_below_the_median_is_refused(becalm):
    done = becalm("plan", "tune", "--deadline", "100ms", "--latency-p50", "300ms", "--latency-p99-5", "320ms")
    assert done.returncode == 1
    assert "the deadline of 100ms is below p50, 300ms: more than half of the healthy answers come too late" in done.stderr
    assert becalm("plan", "tune", "--deadline", "900ms", "--latency-p50", "300ms", "--latency-p99-5", "320ms").returncode == 0


def test_plan_contention__one_is_one(becalm):
    done = becalm("plan", "contention", "--clients", "1", "--window", "1")
    assert "1 client that failed" in done.stdout and "In 1 slot " in done.stdout and "1 slot long" in done.stdout
    assert "1 clients" not in done.stdout and "1 slots" not in done.stdout
