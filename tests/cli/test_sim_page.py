# SPDX-License-Identifier: MIT
"""The page, the picture and the timelines of becalm sim. Numbers must be those of --json."""

import json
import os
import re
import xml.etree.ElementTree as ET

import pytest

from test_sim import SHORT, fine, short  # noqa: F401 (a fixture)

STORM = """\
name: storm
about: a small service that loses its capacity for ten seconds
length: 60s
attempts: 4
timeout: 1s
link: {latency: 1ms}
services:
  api: {workers: 1, time: {exponential: 10ms}}
clients:
  users: {to: api, rate: 80/s, callers: 5}
faults:
  slow: {at: 10s, for: 10s, service: api, capacity: 0.1}
"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def storm(tmp_path):
    (tmp_path / "storm.yaml").write_text(STORM)
    return "storm.yaml"


@pytest.fixture
def draw(becalm, tmp_path):
    """draw("short.yaml", ...): the page as text and as a tree."""

    def run(*args):
        fine(becalm("sim", *args, "--html", "page.html"))
        text = (tmp_path / "page.html").read_text()
        return text, ET.fromstring(text)

    return run


def words(element):
    return " ".join("".join(element.itertext()).split())


def tables(page):
    """Each table as a list of rows: {column: cell}."""
    found = []
    for table in page.iter("table"):
        names = [words(cell) for cell in table.find("thead/tr")]
        found.append([dict(zip(names, map(words, row))) for row in table.iterfind("tbody/tr")])
    return found


def section(page, heading):
    return next(each for each in page.iter("section") if words(each.find("h2")) == heading)


def share(value):
    """As it is printed: cut, not rounded."""
    ppm = round(value * 1e6)
    return f"{ppm // 10000} %" if ppm % 1000000 == 0 else f"{ppm // 100 / 100:.2f} %"


def factor(value):
    """As it is printed: a half is rounded up."""
    thousandths = (round(value * 1e6) + 500) // 1000
    return f"{thousandths // 1000}.{thousandths % 1000:03}x"


def heights(path, count, left, bottom, width):
    """The heights of a curve of steps, in tenths of a pixel."""
    x, y = (round(float(n) * 10) for n in re.match(r"M([\d.]+) ([\d.]+)", path).groups())
    found, at = [], left
    assert x == left
    for kind, number in re.findall(r"([HV])([\d.]+)", path):
        number = round(float(number) * 10)
        if kind == "V":
            y = number
        else:
            while at < number:
                found.append(bottom - y)
                at = left + width * len(found) // count
    return found


def test_page__needs_nothing_but_itself(draw, short):
    for args in (), ("--compare", "all"):
        text, page = draw(short, *args)
        assert not re.search(r"https?:|//|\bsrc=|\bhref=|url\(|@import|<script|<link|javascript", text)
        csp = next(meta.get("content") for meta in page.iter("meta") if meta.get("http-equiv"))
        assert csp == "default-src 'none'; style-src 'unsafe-inline'"
        ids = [each.get("id") for each in page.iter() if each.get("id")]
        assert len(ids) == len(set(ids)) > 0
        assert page.get("lang") == "en" and "prefers-color-scheme:dark" in text


def test_page__every_chart_has_a_name_and_a_description(draw, short):
    _, page = draw(short, "--compare", "all")
    charts = [figure.find("svg") for figure in page.iter("figure")]
    assert len(charts) > 30
    for chart in charts:
        assert chart.get("role") == "img"
        title, desc = chart.find("title"), chart.find("desc")
        assert words(title) and words(desc)
        assert chart.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"


def test_page__the_same_run_gives_the_same_bytes(draw, short):
    first, again, other = (draw(short, "--compare", "none,becalm", "--seed", seed)[0] for seed in (3, 3, 4))
    assert first == again != other


def test_page__its_figures_are_those_of_json(becalm, draw, storm):
    args = storm, "--compare", "none,naive,becalm"
    runs = json.loads(fine(becalm("sim", *args, "--json")))
    figures, reasons = tables(draw(*args)[1])
    assert [row["policy"] for row in figures] == [row["policy"] for row in reasons] == ["none", "naive", "becalm"]
    for run, row, why in zip(runs, figures, reasons):
        load, clients, target = run["services"]["api"]["amplification"], run["clients"], run["targets"]["api"]
        after = clients["recovered_after_s"]
        assert row == {
            "policy": run["policy"],
            "load, mean": factor(load["mean"]),
            "load, worst 5 s": factor(load["peak_5s"]),
            "load, worst 1 s": factor(load["peak_1s"]),
            "success before": share(clients["success_before_fault"]),
            "success in fault": share(clients["success_in_fault"]),
            "success after": share(clients["success_after_fault"]),
            "recovers": "never" if after is None else f"{after} s",
            "latency, median": f"{clients['latency_p50_ms']:.3f} ms",
            "latency, p99": f"{clients['latency_p99_ms']:.3f} ms",
        }
        assert why["calls"] == f"{clients['calls']:,}"
        assert why["per first attempt"] == share(target["retry_ratio"])
        told = dict(each.rsplit(" ", 1) for each in why["calls without success, by reason"].split(", "))
        assert {name: int(count.replace(",", "")) for name, count in told.items()} == {**target["refused"], **target["ended"]}


def test_page__seeds_have_a_spread(becalm, draw, short):
    args = short, "--policy", "naive", "--seeds", "3"
    runs = json.loads(fine(becalm("sim", *args, "--json")))
    peaks = [run["services"]["back"]["amplification"]["peak_1s"] for run in runs]
    page = draw(*args)[1]
    cell = tables(page)[0][0]["load, worst 1 s"]
    assert cell == f"{factor(sum(peaks) / 3)}{factor(min(peaks))} to {factor(max(peaks))}"
    assert "seeds 1 to 3 in the first table" in words(page.find("body/header"))


def test_page__curves_are_the_series(becalm, draw, short):
    args = short, "--policy", "naive"
    series = json.loads(fine(becalm("sim", *args, "--json", "--series")))["series"]
    page = draw(*args)[1]
    chart = section(page, "Success").find("div/figure/svg")
    curve = next(path.get("d") for path in chart.iter("path") if path.get("class") == "real")
    clients = series["clients"]
    wanted = [good * 10**6 // calls * 1200 // 10**6 for good, calls in zip(clients["successes"], clients["calls"])]
    assert heights(curve, 20, 480, 1380, 3020) == wanted
    load = section(page, "Load").findall("div/figure")
    assert [words(each.find("figcaption/strong")) for each in load] == ["front", "back"]
    curve = next(path.get("d") for path in load[1].iter("path") if path.get("class") == "real")
    wanted = [count * 20000 * 1200 // 4000000 for count in series["services"]["back"]["arrivals"]]
    assert heights(curve, 20, 480, 1380, 3020) == wanted
    fault = next(rect for rect in chart.iter("rect") if rect.get("class") == "fault")
    assert (fault.get("x"), fault.get("width")) == ("108.4", "60.4"), "from 4 s to 8 s of 20 s"


def test_page__says_what_came_of_it(draw, storm):
    text, page = draw(storm, "--compare", "naive,becalm")
    said = words(next(each for each in page.iter("p") if each.get("class") == "verdict"))
    assert re.match(r"After the fault's end becalm recovers in \d+ s; naive does not recover within this run\. ", said), said
    load = r"\d\.\d{3}x the offered load with"
    assert re.search(rf"api gets {load} naive and {load} becalm\.$", said), said
    success = [words(each) for each in section(page, "Success").iterfind("div/figure/figcaption")]
    assert success[0] == "naive\u2717 not within this run"
    assert re.fullmatch(r"becalm\u2713 recovers after \d+ s", success[1]), "a word and a sign, not only a colour"


def test_page__the_most_is_that_of_a_second_however_long_the_run(becalm, draw, storm):
    args = storm, "--policy", "none", "--set", "length=400s"
    most = json.loads(fine(becalm("sim", *args, "--json")))["services"]["api"]["queue_max"]
    assert words(section(draw(*args)[1], "Queue").find("div/figure/figcaption")) == f"apiup to {most:,}"


def test_page__draws_only_what_a_policy_has(draw, short):
    page = draw(short, "--compare", "none,breaker,becalm")[1]
    breaker = section(page, "Breaker at back")
    assert [words(each) for each in breaker.iter("strong")] == ["breaker", "becalm"]
    assert words(breaker.findall("p")[-1]) == "Without a breaker: none."
    queue = section(page, "Queue at back")
    assert not list(queue.iter("svg")) and words(queue.findall("p")[-1]) == "No request waited at the end of any second."
    headings = [words(each) for each in draw(short, "--policy", "none")[1].iter("h2")]
    assert "Breaker" not in headings and "Retry budget" not in headings


def test_page__bars_are_the_amplification_of_every_service(becalm, draw, short):
    args = short, "--compare", "naive,becalm"
    runs = json.loads(fine(becalm("sim", *args, "--json")))
    figures = section(draw(*args)[1], "Amplification along the chain").findall("div/figure")
    for run, figure in zip(runs, figures, strict=True):
        shown = [words(each) for each in figure.iter("text")]
        wanted = [(name, factor(each["amplification"]["mean"])) for name, each in run["services"].items()]
        assert list(zip(shown[::2], shown[1::2])) == wanted


def test_page__a_run_without_a_fault_or_without_an_after(draw, short, tmp_path):
    (tmp_path / "calm.yaml").write_text(SHORT.split("faults:")[0])
    text, page = draw("calm.yaml", "--compare", "none,becalm")
    assert 'class="fault"' not in text and "recovers" not in words(page.find("body"))
    text, page = draw(short, "--policy", "none", "--set", "faults.outage.for=16s")
    said = words(next(each for each in page.iter("p") if each.get("class") == "verdict"))
    assert said == "In the fault no call succeeds. In the fault, in the mean, back gets 1.000x the offered load."


def test_page__without_an_offered_load_shows_attempts(becalm, draw):
    args = "contention", "--compare", "none,full"
    runs = json.loads(fine(becalm("sim", *args, "--json", "--series")))
    page = draw(*args)[1]
    headings = [words(each) for each in page.iter("h2")]
    assert "Attempts at row" in headings and "Load at row" not in headings and "Amplification" not in headings
    most = [max(run["series"]["services"]["row"]["arrivals"]) for run in runs]
    shown = [words(each) for each in section(page, "Attempts at row").iterfind("div/figure/figcaption")]
    assert shown == [f"noneup to {most[0]:,}", f"fullup to {most[1]:,}"]
    attempts = [run["services"]["row"]["attempts"] for run in runs]
    said = words(next(each for each in page.iter("p") if each.get("class") == "verdict"))
    assert said.endswith(f"In all row gets {attempts[0]:,} attempts with none and {attempts[1]:,} attempts with full.")


def test_page__text_of_a_file_stays_text(draw, tmp_path):
    about = "<script>alert(1)</script> & \\e[31m"
    (tmp_path / "odd.yaml").write_text(SHORT.replace("a service that is dead for four seconds", f'"{about}"'))
    os.rename(tmp_path / "odd.yaml", tmp_path / "<b>.yaml")
    (tmp_path / "<i>&.yaml").write_text("defaults: {maxRetries: 0}\n")
    text, page = draw("<b>.yaml", "--policy", "<i>&.yaml")
    assert not list(page.iter("script")) and not list(page.iter("i"))
    assert "<script>alert(1)</script> & ?[31m" in words(page.find("body/header"))
    assert tables(page)[0][0]["policy"] == "<i>&.yaml"


def test_page__is_whole_or_not_there(becalm, short, tmp_path):
    (tmp_path / "real.html").write_text("old")
    os.chmod(tmp_path / "real.html", 0o640)
    os.symlink("real.html", tmp_path / "link.html")
    fine(becalm("sim", short, "--html", "link.html"))
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "real.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "real.html").stat().st_mode & 0o777 == 0o640
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["link.html", "real.html", "short.yaml"], "nothing temporary stays"
    done = becalm("sim", short, "--html", "nowhere/page.html")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "becalm sim: --html nowhere/page.html: No such file or directory\n"
    done = becalm("sim", short, "--html", "page.html", "--picture", "nowhere/picture.svg")
    assert (done.returncode, done.stdout) == (1, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == left, "a page that was begun goes away again"
    done = becalm("sim", short, "--html", ".")
    assert (done.returncode, done.stderr) == (1, "becalm sim: --html .: Is a directory\n")
    done = becalm("sim", short, "--picture", "/dev/full")
    assert (done.returncode, done.stderr) == (1, "becalm sim: --picture /dev/full: No space left on device\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == left


def test_page__goes_beside_any_other_output(becalm, short, tmp_path):
    plain = fine(becalm("sim", short, "--compare", "all", "--json"))
    args = "--html", "page.html", "--picture", "picture.svg"
    assert fine(becalm("sim", short, "--compare", "all", "--json", *args)) == plain
    ET.fromstring((tmp_path / "page.html").read_text())
    ET.fromstring((tmp_path / "picture.svg").read_text())


def test_picture__is_one_file_for_light_and_dark(becalm, storm, tmp_path):
    texts = []
    for _ in range(2):
        fine(becalm("sim", storm, "--compare", "naive,becalm", "--picture", "picture.svg"))
        texts.append((tmp_path / "picture.svg").read_text())
    assert texts[0] == texts[1]
    picture = ET.fromstring(texts[0])
    assert picture.tag == SVG + "svg" and picture.get("width") and picture.find(SVG + "title") is not None
    assert "prefers-color-scheme:dark" in picture.find(SVG + "style").text
    assert not re.search(r"https?:", texts[0].replace('xmlns="http://www.w3.org/2000/svg"', ""))
    shown = [each.text for each in picture.iter(SVG + "text")]
    assert shown[0] == "storm: success over time"
    assert "\u2717 not within this run" in shown
    assert any(re.fullmatch(r"\u2713 recovers after \d+ s", each) for each in shown)


NAIVE_STORY = """\
short: a service that is dead for four seconds
policy naive: calls that begin from 4.000 s on
fault from 4.000 s, for 4.000 s

[ 4.0017s] call 1 users > front begins -> send 0
[ 4.0037s] call 1.2 front > back begins -> send 0
[ 4.0057s] call 1.2 front > back got broken 503 on 0 -> send 1, wait 0ms (backoff)
[ 4.0077s] call 1.2 front > back got broken 503 on 1 -> send 2, wait 0ms (backoff)
[ 4.0097s] call 1.2 front > back got broken 503 on 2 -> answer, finish (attempts_spent) marked spent
[ 4.0107s] call 1 users > front got rejected 503 on 0 -> answer, finish (retries_off)
"""
BECALM_STORY = """\
short: a service that is dead for four seconds
policy becalm: calls that begin from 4.500 s on
fault from 4.000 s, for 4.000 s

[ 4.5374s] call 1 users > front begins -> send 0
[ 4.5394s] call 1.2 front > back begins -> send 0
[ 4.5414s] call 1.2 front > back got broken 503 on 0 -> answer, finish (budget_empty) marked spent
[ 4.5424s] call 1 users > front got rejected 503 on 0 -> answer, finish (stopped) marked spent
[ 4.5517s] call 2 users > front begins -> send 0
[ 4.5537s] call 2.2 front > back begins -> send 0
[ 4.5557s] call 2.2 front > back got broken 503 on 0 -> answer, finish (budget_empty) marked spent
[ 4.5567s] call 2 users > front got rejected 503 on 0 -> answer, finish (stopped) marked spent
"""


def test_trace__tells_of_the_first_calls_of_the_fault(becalm, short):
    text = fine(becalm("sim", short, "--policy", "naive", "--trace", "--trace-calls", "1"))
    assert text == NAIVE_STORY
    text = fine(becalm("sim", short, "--trace", "--trace-from", "4.5s", "--trace-calls", "2"))
    assert text == BECALM_STORY


def test_trace__without_a_fault_tells_of_the_first_calls_of_the_run(becalm, tmp_path):
    (tmp_path / "calm.yaml").write_text(SHORT.split("faults:")[0])
    lines = fine(becalm("sim", "calm.yaml", "--trace", "--trace-calls", "2")).splitlines()
    assert lines[1] == "policy becalm: calls that begin from 0.000 s on"
    calls = {re.match(r"\[ *[\d.]+s\] call (\d+)", line).group(1) for line in lines[3:]}
    assert calls == {"1", "2"} and sum("begins" in line for line in lines) == 4
    assert sum(line.endswith("-> answer, finish (ok)") for line in lines) == 4


def test_trace__says_when_there_is_nothing_to_tell(becalm, short):
    assert fine(becalm("sim", short, "--trace", "--trace-from", "20s")).endswith("\nNo call begins from then on.\n")


@pytest.mark.parametrize(
    "args, said",
    [
        (("--trace-calls", "2"), "--trace-calls and --trace-from need --trace"),
        (("--trace", "--trace-calls", "0"), "--trace-calls is an integer from 1 to 1000; '0' is not"),
        (("--trace", "--trace-from", "soon"), "--trace-from is a time of the run, like 75s; 'soon' is not"),
        (("--trace", "--json"), "--trace shows calls of one run, without --json"),
        (("--trace", "--compare", "all"), "--trace shows calls of one run, without --compare"),
        (("--trace", "--html", "page.html"), "--trace shows calls of one run, without --html"),
    ],
)
def test_trace__usage(becalm, short, args, said):
    done = becalm("sim", short, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"becalm sim: {said}\nTry 'becalm sim --help'.\n"
