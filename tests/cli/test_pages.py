# SPDX-License-Identifier: MIT
"""README and the pages: short enough, every link leads somewhere, every page is in the index, and their examples are
right."""

import re
import subprocess
from xml.etree import ElementTree

import pytest
import yaml

from conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
FIRST = [ROOT / "README.md", *(ROOT / f"docs/{name}.md" for name in ("tutorial", "migrate", "files", "policy", "kubernetes", "pipelines"))]


def anchors(page):
    """As GitHub makes them."""
    found = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for title in re.findall(r"^#+ (.+)$", text, re.M):
        plain = re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages__every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = page if path == "" else (page.parent / path).resolve()
        assert there.exists(), target
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), target


def test_pages__readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_pages__the_index_has_every_page():
    index = (ROOT / "docs/README.md").read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert page.name == "README.md" or f"({page.name}" in index, page.name


def test_pages__the_policies_that_they_show_are_right(becalm, tmp_path):
    shown = 0
    for page in FIRST:
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.S | re.M):
            tree = yaml.safe_load(block)
            if not isinstance(tree, dict) or not set(tree) <= {"listen", "defaults", "services", "explain", "include", "version"}:
                continue
            shown += 1
            (tmp_path / "conf.d").mkdir(exist_ok=True)
            (tmp_path / "shown.yaml").write_text(block)
            env = {"PAYMENT_HOST": "10.0.0.1:80", "REDIS": "secret"}
            block = re.sub(r"\$\{file:[^}]*\}", "${REDIS}", block)
            (tmp_path / "shown.yaml").write_text(block)
            done = becalm("check", "shown.yaml", env=env)
            assert done.returncode == 0, (page.name, block, done.stdout)
    assert shown >= 8


def test_pages__readme_s_minute_has_a_policy_that_is_right(becalm, tmp_path):
    (policy,) = re.findall(r"<<'YAML'\n(.*?)^YAML", (ROOT / "README.md").read_text(), re.S | re.M)
    (tmp_path / "becalm.yaml").write_text(policy)
    assert becalm("check", "--strict", "becalm.yaml").returncode == 0


def test_pages__every_command_that_readme_names_is_there(commands):
    named = set(re.findall(r"`becalm ([a-z]+)", (ROOT / "README.md").read_text()))
    assert named and named <= {path.split()[0] for path in commands.help if path}


def test_pages__the_moving_picture_is_what_the_simulator_says(becalm):
    """make picture draws it again. It moves by itself: no script, and nothing that it would fetch."""
    drawn = subprocess.run([ROOT / "tools/animate", becalm.program], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert drawn == (ROOT / "docs/images/storm.svg").read_text(), "make picture"
    picture = ElementTree.fromstring(drawn)
    moving = picture.findall(".//{*}animate")
    assert len(moving) > 20 and picture.find("{*}title").text
    for each in moving:
        keys, values = each.get("keyTimes").split(";"), each.get("values").split(";")
        assert len(keys) == len(values) and keys[0] == "0" and keys[-1] == "1" and [float(key) for key in keys] == sorted(map(float, keys))
    assert not picture.findall(".//{*}script") and "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert "storm.svg" in (ROOT / "README.md").read_text().split("## ")[0]


def told_commands(page):
    """Every command line of becalm that a page shows: in a sentence, in a block for the shell, behind a prompt."""
    text = page.read_text()
    found = re.findall(r"`(becalm [^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M):
        found += re.findall((r"^(?:sudo )?" if kind == "sh" else r"^\$ ") + r"(becalm [^#|&;<>\n]*)", block.replace("\\\n", " "), re.M)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages__every_command_that_they_show_has_these_options(commands, page):
    for line in told_commands(page):
        words = line.split(" -- ")[0].split()[1:]
        path = []
        while words and " ".join([*path, words[0]]) in commands.help:
            path.append(words.pop(0))
        if path == [] or path == ["help"]:
            assert words[:1] in ([], ["--help"], ["--version"], ["..."]) or words[0].isupper(), line
            continue
        known = {name for _, name, _ in commands.options(" ".join(path))} | {"help"}
        given = {word[2:].split("=")[0].rstrip(",.)]") for word in words if re.match(r"--[a-z]", word)}
        assert given <= known, (line, given - known)


SAMPLES = {
    "envoy": ("envoy.yaml", "maxRetries: 3", """
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          route_config:
            virtual_hosts:
            - {name: a, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: pay, retry_policy: {retry_on: 5xx, num_retries: 3}}}]}
  clusters:
  - {name: pay, load_assignment: {cluster_name: pay, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}}
"""),
    "istio": ("virtualservice.yaml", "maxRetries: 3", """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: pay}
spec:
  hosts: [pay]
  http: [{route: [{destination: {host: pay}}], retries: {attempts: 3, retryOn: 5xx}}]
"""),
    "linkerd": ("profile.yaml", "kind: ratio", """
apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: pay.shop.svc.cluster.local, namespace: shop}
spec:
  routes: [{name: GET /, condition: {method: GET, pathRegex: /}, isRetryable: true}]
  retryBudget: {retryRatio: 0.2, minRetriesPerSecond: 10, ttl: 10s}
"""),
    "nginx": ("nginx.conf", "maxRetries: 2", """
events {}
http {
  upstream pay { server 10.0.0.1:80; server 10.0.0.2:80; server 10.0.0.3:80; server 10.0.0.4:80; }
  server { listen 8080; location / { proxy_pass http://pay; proxy_next_upstream error timeout http_503; proxy_next_upstream_tries 3; } }
}
"""),
    "haproxy": ("haproxy.cfg", "maxRetries: 3", """
defaults
  mode http
  retries 3
  retry-on 503 conn-failure
  timeout connect 1s
  timeout client 5s
  timeout server 5s
frontend in
  bind :8080
  default_backend pay
backend pay
  server a 10.0.0.1:80
"""),
    "resilience4j": ("application.yml", "maxRetries: 2", """
resilience4j:
  retry: {instances: {pay: {maxAttempts: 3, waitDuration: 200ms}}}
"""),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_migrate__its_three_commands_work_and_count_as_it_says(becalm, tmp_path, kind):
    name, expected, text = SAMPLES[kind]
    (tmp_path / name).write_text(text)
    lines = re.search(r"^```sh\n(becalm import.*?)^```", (ROOT / "docs/migrate.md").read_text(), re.S | re.M)[1]
    first, *others = [line.split("#")[0].split() for line in lines.splitlines()]
    assert first == ["becalm", "import", "YOUR-FILE", ">", "becalm.yaml"]
    done = becalm("import", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout, done.stdout
    (tmp_path / "becalm.yaml").write_text(done.stdout)
    for command in others:
        if command[1] == "sim" and kind != "istio":
            continue  # some seconds each; every policy gets the same run
        assert becalm(*command[1:], cwd=tmp_path).returncode == 0, command


def test_migrate__what_is_written_by_hand_is_right(becalm, tmp_path):
    """Polly's and tenacity's policies have the settings of the code beside them."""
    page = (ROOT / "docs/migrate.md").read_text()
    shown = re.findall(r"^```(csharp|python)\n(.*?)^```\n^```yaml\n(.*?)^```", page, re.S | re.M)
    assert [language for language, _, _ in shown] == ["csharp", "python"]
    (_, polly, polly_policy), (_, tenacity, tenacity_policy) = shown
    rules = yaml.safe_load(polly_policy)["defaults"]
    assert int(re.search(r"MaxRetryAttempts = (\d+)", polly)[1]) == rules["maxRetries"]
    assert re.search(r"FromMilliseconds\((\d+)\)", polly)[1] + "ms" == rules["initialDelay"]
    assert float(re.search(r"FailureRatio = ([\d.]+)", polly)[1]) * 100 == rules["breaker"]["failureRateThreshold"]
    assert int(re.search(r"MinimumThroughput = (\d+)", polly)[1]) == rules["breaker"]["minimumNumberOfCalls"]
    rules = yaml.safe_load(tenacity_policy)["defaults"]
    assert int(re.search(r"stop_after_attempt\((\d+)\)", tenacity)[1]) == rules["maxRetries"] + 1
    for policy in (polly_policy, tenacity_policy):
        (tmp_path / "becalm.yaml").write_text(policy)
        assert becalm("check", "becalm.yaml", cwd=tmp_path).returncode == 0


def test_pages__every_test_that_a_page_names_is_there():
    names = set()
    for path in [*(ROOT / "tests").glob("*/test_*"), *(ROOT / "fuzz").glob("fuzz_*.c")]:
        names.add(path.stem)
        if path.suffix in (".c", ".py"):
            names.update(re.findall(r"\b(test_\w+)\(", path.read_text()))
    for page in PAGES:
        for name, more in re.findall(r"\b(test_\w+)(\.\.\.)?", page.read_text()):
            found = name in names or (more and any(each.startswith(name) for each in names))
            assert found or name.endswith("_"), f"{page.name} names {name}, and no test has that name"


def test_pages__every_function_that_a_page_about_the_inside_names_is_there():
    sources = "".join(path.read_text() for folder in ("src", "include", "tests") for path in (ROOT / folder).rglob("*.[ch]"))
    known = set(re.findall(r"\b([a-z_]\w*)\(", sources))
    for name in ("call", "client", "exchange", "http2", "pool", "restart", "worker"):
        named = set(re.findall(r"`([a-z_]\w*)\(\)`", (ROOT / f"docs/{name}.md").read_text()))
        assert named and not named - known, f"docs/{name}.md names {sorted(named - known)}, which is no function"
