# SPDX-License-Identifier: MIT
"""becalm doctor, as typed: beside a gateway that runs, ports that others have, hosts that are not there, and a machine whose settings
are files of the test's own."""

import json
import os
import resource
import socket
import subprocess

import pytest
from conftest import PROGRAM, free_port
from host import Reply, wait_until
from store import redis  # noqa: F401


def doctor(*args, code=None, **more):
    """{topic: [(grade, text, remedy)]}."""
    done = subprocess.run(
        [PROGRAM, "doctor", "--json", *map(str, args)], capture_output=True, encoding="utf-8", timeout=120, env={**os.environ, "NO_COLOR": "1"}, **more
    )
    assert done.stderr == "" and done.returncode in (0, 1), done
    page = json.loads(done.stdout)
    lines = page["lines"]
    assert page["faults"] == sum(line["grade"] == "fault" for line in lines)
    assert page["warnings"] == sum(line["grade"] == "warning" for line in lines)
    assert all(line["grade"] == "ok" or line["remedy"] for line in lines), "whatever is not fine says what to do"
    assert done.returncode == (page["faults"] > 0 or ("--strict" in args and page["warnings"] > 0))
    found = {}
    for line in lines:
        found.setdefault(line["topic"], []).append((line["grade"], line["text"], line.get("remedy", "")))
    return found


def grades(lines):
    return [grade for grade, _, _ in lines]


def policy(folder, text, listen=None, admin=None):
    path = folder / "doctor.yaml"
    path.write_text(f"listen: 127.0.0.1:{listen or free_port()}\nadmin: 127.0.0.1:{admin or free_port()}\n{text}")
    return path


@pytest.fixture
def machine(tmp_path):
    """Writes the files of the kernel below a root of its own, all fine."""
    root = tmp_path / "machine"

    def write(**settings):
        files = {
            "proc/sys/net/core/somaxconn": "4096",
            "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999",
            "proc/sys/net/netfilter/nf_conntrack_count": "10",
            "proc/sys/net/netfilter/nf_conntrack_max": "100",
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/cpu.max": "max 100000",
            "sys/fs/cgroup/memory.max": "max",
        }
        for name in files:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(settings.get(path.name.replace(".", "_"), files[name]) + "\n")
        return root

    return write


def test_it_says_of_each_setting_of_the_machine_how_it_is(machine):
    fine = doctor("--root", machine(), "--admin", "127.0.0.1:1")
    assert grades(fine["kernel"]) == ["ok"] * 3 and grades(fine["memory"]) == ["ok"] and grades(fine["cpu"]) == ["ok"]
    assert grades(fine["gateway"]) == ["fault"], "one that was named and does not answer"
    bad = doctor("--root", machine(somaxconn="128", ip_local_port_range="60000 60999", nf_conntrack_count="80", memory_max=str(32 << 20)))
    assert grades(bad["kernel"]) == ["warning"] * 3
    assert "somaxconn is 128" in bad["kernel"][0][1] and "somaxconn=4096" in bad["kernel"][0][2]
    assert "1000 ports" in bad["kernel"][1][1] and "80 of 100" in bad["kernel"][2][1] and "=400" in bad["kernel"][2][2]
    assert bad["memory"][0][:2] == ("warning", "its cgroup allows 32 MiB")
    assert doctor("--root", machine(memory_max=str(64 << 20)))["memory"][0][:2] == ("ok", "its cgroup allows 64 MiB")


def test_workers_beyond_the_quota_and_descriptors_for_all_connections(machine, tmp_path):
    path = policy(tmp_path, "workers: 2\nmaxConnections: 500\nservices: {}\n")
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1063, 1063))  # noqa: E731
    enough = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1064))  # noqa: E731
    root = machine(cpu_max="50000 100000")
    found = doctor("--root", root, path, preexec_fn=few)
    assert found["cpu"][0][0] == "warning" and "workers: 2, and affinity and cgroup quota let 1 run" in found["cpu"][0][1]
    assert found["descriptors"][0][0] == "warning" and "may need 1064" in found["descriptors"][0][1] and "LimitNOFILE=1064" in found["descriptors"][0][2]
    assert doctor("--root", root, path, preexec_fn=enough)["descriptors"][0][0] == "ok", "the hard limit counts: the gateway takes it"
    assert grades(doctor("--root", root, "--set", "workers=1", path)["cpu"]) == ["ok"]


def test_a_port_in_use_says_by_whom(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        path = policy(tmp_path, "services: {}\n", listen=taken.getsockname()[1])
        ports = doctor(path)["port"]
        assert grades(ports) == ["fault", "ok"] and f"(process {os.getpid()})" in ports[0][1] and "`listen`" in ports[0][2]
    ports = doctor("--set", "listen=192.0.2.1:8080", "--set", f"admin=unix:{tmp_path}/none/admin", path)["port"]
    assert grades(ports) == ["fault", "fault"] and "no such address" in ports[0][1] and "No such file" in ports[1][1]
    before = sorted(tmp_path.iterdir())
    ports = doctor("--set", f"listen=unix:{tmp_path}/here", path)["port"]
    assert grades(ports) == ["ok", "ok"] and sorted(tmp_path.iterdir()) == before, "it leaves nothing behind"


def test_hosts_and_names_that_are_not_there(tmp_path, host):
    there = host()
    path = policy(
        tmp_path,
        f"""services:
  half: {{hosts: ["{there.address}", "127.0.0.1:{free_port()}"], match: {{prefix: /}}}}
  none: {{hosts: ["nowhere.invalid:80"], match: {{host: none}}}}
  local: {{hosts: ["localhost:{there.address.split(':')[1]}"], match: {{host: local}}}}
""",
    )
    found = doctor(path)
    assert ("ok", "half: 1 of 2 addresses answer", "") in found["host"]
    assert any(grade == "warning" and "half: 127.0.0.1" in text and "refused" in text for grade, text, _ in found["host"])
    assert any(grade == "fault" and text == "none: none of its hosts answers" for grade, text, _ in found["host"])
    assert any(grade == "ok" and text.startswith("local: 1 of ") for grade, text, _ in found["host"])
    assert grades(found["dns"]) == ["warning"] and "none: " in found["dns"][0][1] and "nowhere.invalid:80" in found["dns"][0][1]


def test_a_policy_that_is_wrong_and_one_with_findings(tmp_path):
    path = policy(tmp_path, "services: {a: {maxRetry: 3}}\n")
    found = doctor(path)
    assert found["policy"][0][0] == "fault" and f"{path}:3:" in found["policy"][0][1] and "maxRetries" in found["policy"][0][2]
    assert "port" not in found and "kernel" in found, "the machine is looked at all the same"
    path = policy(tmp_path, f'services: {{a: {{hosts: ["127.0.0.1:{free_port()}"], match: {{prefix: /}}, budget: {{kind: none}}}}}}\n')
    assert grades(doctor(path)["policy"]) == ["warning"]


def test_the_gateway_that_runs(gateway, host, tmp_path):
    there = host()
    there.on("/", Reply(200))
    made = gateway(f'services: {{a: {{hosts: ["{there.address}"], match: {{prefix: /}}}}}}\n')
    own = ["--set", f"listen=127.0.0.1:{made.port}", "--set", f"admin=127.0.0.1:{made.admin}"]
    found = doctor(*own, made.path)
    assert grades(found["gateway"]) == ["ok", "ok"] and "1 service, none in trouble" in found["gateway"][1][1]
    assert grades(found["port"]) == ["ok", "ok"], "its own"
    made.path.write_text("services: {a: {hosts: 3}}\n")
    wait_until(lambda: made.log_lines("policy not reloaded"))
    found = doctor("--admin", f"127.0.0.1:{made.admin}")
    assert any(grade == "fault" and "older policy" in text for grade, text, _ in found["gateway"])


def test_a_gateway_with_a_token_and_a_service_in_trouble(gateway, tmp_path):
    (tmp_path / "token").write_text("a-secret-that-is-long-enough\n")
    made = gateway(f'adminTokenFile: {tmp_path}/token\nservices: {{a: {{hosts: ["127.0.0.1:{free_port()}"], match: {{prefix: /}}, healthCheck: {{kind: tcp, interval: 100ms, unhealthyThreshold: 1}}}}}}\n', admin="0.0.0.0")
    wait_until(lambda: made.log_lines("all hosts fail"))
    found = doctor("--admin", f"127.0.0.1:{made.admin}")
    assert grades(found["gateway"]) == ["warning"] and "--token-file" in found["gateway"][0][2]
    found = doctor("--admin", f"127.0.0.1:{made.admin}", "--token-file", tmp_path / "token")
    assert ("warning", "1 of 1 services in trouble: a (hosts failing)", "`becalm top` says more") in found["gateway"]


def test_the_store(redis, tmp_path):  # noqa: F811
    text = "store: {{redis: redis://127.0.0.1:{}}}\nservices: {{}}\n"
    found = doctor(policy(tmp_path, text.format(redis.port)))
    assert grades(found["store"]) == ["ok"]
    found = doctor(policy(tmp_path, text.format(free_port())))
    assert grades(found["store"]) == ["fault"] and "refused" in found["store"][0][1]


def test_strict_words_and_wrong_usage(machine, tmp_path):
    assert "kernel" in doctor("--strict", "--root", machine(somaxconn="1"))
    done = subprocess.run([PROGRAM, "doctor", "--root", machine(somaxconn="1")], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0 and "\n                      > sysctl -w net.core.somaxconn=4096\n" in done.stdout
    assert done.stdout.rstrip().endswith(("0 faults, 1 warning", "0 faults, 2 warnings", "0 faults, 3 warnings"))
    done = subprocess.run([PROGRAM, "doctor", "--timeout", "soon"], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 2 and "--timeout" in done.stderr
