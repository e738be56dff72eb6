# SPDX-License-Identifier: MIT
"""Gateways and the ways to their Redis: users, files, sockets, TLS, Sentinels, a cluster."""

import json
import os
import signal
import socket
import subprocess
import time

import pytest
from conftest import PROGRAM, ROOT, free_port, policy_of
from host import Reply, wait_until
from store import SERVER, Redis, degraded, leased, rules
from wire import ask

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")

ROSTER = "+hset +hlen +hgetall +hdel +pexpire"
USER = "on >{} resetkeys ~becalm:{{prod}}:* resetchannels -@all +eval +evalsha +time +mget +set +ping +auth +client|setname"


@pytest.fixture
def server(tmp_path):
    """server("--option", ...): a running redis-server."""
    made = []

    def make(*words, **more):
        made.append(Redis(tmp_path, *words, **more))
        return made[-1].start()

    yield make
    for each in made:
        each.stop()


def top(url, fleet="prod", **more):
    """A busy machine is no reason to give up the store, so it has time to answer."""
    more = {"timeout": "20s", **more}
    lines = [f"fleet: {fleet}", "store:", f'  redis: "{url}"', *(f"  {key}: {value}" for key, value in more.items())]
    return "\n".join(lines)


def state(gateway):
    answer = ask(gateway.admin, path="/api/state", host=f"127.0.0.1:{gateway.admin}")
    return json.loads(answer.body)


def leases(gateway, count=1):
    wait_until(lambda: len(leased(gateway)) >= count, what=gateway.log)


def test_a_user_with_a_password_in_a_file_that_changes(gateway, host, server, tmp_path):
    redis = server()
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    redis.tell("ACL", "SETUSER", "becalm", *USER.format("first").split())
    made = gateway(policy_of([host()], top(redis.url, user="becalm", passwordFile=secret), rules()))
    leases(made)
    redis.tell("ACL", "SETUSER", "becalm", "resetpass", ">second")
    redis.tell("CLIENT", "KILL", "USER", "becalm")
    wait_until(lambda: "WRONGPASS" in made.log() or "closed" in made.log())
    secret.write_text("second\n")
    leases(made, 2)


def test_a_password_from_the_environment(gateway, host, server):
    redis = server("--requirepass", "hidden")
    made = gateway(policy_of([host()], top(redis.url, passwordEnv="STORE_PASSWORD"), rules()), env={"STORE_PASSWORD": "hidden"})
    leases(made)
    made.reload(policy_of([host()], top(redis.url, passwordEnv="NOWHERE"), rules()))
    wait_until(lambda: "store.passwordEnv: it is not set" in made.log())
    assert made.ask().status == 200


def test_a_unix_socket(gateway, host, server, tmp_path):
    server("--unixsocket", tmp_path / "socket")
    made = gateway(policy_of([host()], top(f"redis+unix://{tmp_path}/socket"), rules()))
    leases(made)


def test_two_fleets_in_one_redis_have_two_budgets(gateway, host, server):
    redis = server()
    one = gateway(policy_of([host()], top(redis.url, "one"), rules()))
    other = gateway(policy_of([host()], top(redis.url, "other"), rules()))
    wait_until(lambda: leased(one) and leased(other))
    assert redis.says("EXISTS becalm:{one}:p:a:200000:100000 becalm:{other}:p:a:200000:100000") == b":2"
    one.reload(policy_of([host()], top(redis.url, "other"), rules()))
    leases(one, 2)
    wait_until(lambda: redis.says("KEYS becalm:{other}:r:*")[:2] >= b"*2")


def test_tls_with_a_certificate_on_both_sides(gateway, host, server, authority):
    ours, theirs = authority.issue("becalm"), authority.issue("cache")
    tls = ["--tls-cert-file", theirs.cert, "--tls-key-file", theirs.key, "--tls-ca-cert-file", authority.cert]
    redis = Redis(authority.folder, *tls)
    port = redis.port
    redis.words += ["--tls-port", str(port), "--port", "0"]
    try:
        redis.start()
        url = f"rediss://localhost:{port}"
        good = top(url, ca=authority.cert, cert=ours.cert, key=ours.key)
        made = gateway(policy_of([host()], good, rules()))
        leases(made)
        url = f"rediss://127.0.0.1:{port}"  # no name whose address is not known yet
        good = top(url, ca=authority.cert, cert=ours.cert, key=ours.key)
        unknown = gateway(policy_of([host()], top(url, cert=ours.cert, key=ours.key), rules()))
        wait_until(lambda: degraded(unknown))  # the system does not know the authority of its certificate
        assert "error=tls" in degraded(unknown)[0], degraded(unknown)
        misled = gateway(policy_of([host()], good + "\n  serverName: other.test", rules()))
        wait_until(lambda: degraded(misled))
        assert "error=tls" in degraded(misled)[0], degraded(misled)
    finally:
        redis.stop()


def test_sentinels_are_asked_for_the_master_and_again_when_it_is_lost(gateway, host, server):
    first = server()
    second = server("--replicaof", "127.0.0.1", first.port)
    lines = f"sentinel monitor mine 127.0.0.1 {first.port} 1\nsentinel down-after-milliseconds mine 1000\nsentinel failover-timeout mine 5000\n"
    watch = server(sentinel=lines)
    wait_until(lambda: b"slave0" in first.says("INFO replication"))
    wait_until(lambda: b"127.0.0.1:%d" % second.port in watch.says("SENTINEL replicas mine"))
    # One that does not answer stands first, and costs nothing but its turn.
    made = gateway(policy_of([host()], top(f"redis://127.0.0.1:1,{watch.address}?sentinel=mine"), rules()))
    leases(made)
    assert b"becalm" in first.says("CLIENT LIST")
    first.kill()
    wait_until(lambda: degraded(made))
    wait_until(lambda: b"role:master" in second.says("INFO replication"), seconds=60)
    leases(made, 2)
    assert b"becalm" in second.says("CLIENT LIST")


def test_a_node_of_a_cluster_sends_on_to_the_one_that_has_the_slot(gateway, host, server):
    buses = [free_port(), free_port()]
    nodes = [server("--cluster-enabled", "yes", "--cluster-port", bus) for bus in buses]
    ids = [node.tell("CLUSTER MYID").split()[1] for node in nodes]
    for node, slots in zip(nodes, ((0, 8191), (8192, 16383))):
        node.tell("CLUSTER", "ADDSLOTSRANGE", *slots)
    nodes[0].tell("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, buses[1])
    for node in nodes:
        wait_until(lambda node=node: b"cluster_state:ok" in node.says("CLUSTER INFO"), what=lambda: "no cluster")
    slot = int(nodes[0].says("CLUSTER", "KEYSLOT", "becalm:{prod}:p:a:200000:100000")[1:])
    owner = 0 if slot <= 8191 else 1
    for node in nodes:
        made = gateway(policy_of([host()], top(node.url), rules()))
        leases(made)
        assert not degraded(made)
    there = nodes[owner].says("CLUSTER", "GETKEYSINSLOT", slot, 100)
    assert (there.count(b":r:"), there.count(b":p:")) == (2, 1), "two gateways, one pot"
    # The slot moves. Until then, neither node answers commands with two keys: the gateway is on its own share.
    other = nodes[1 - owner]
    other.tell("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[owner])
    nodes[owner].tell("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1 - owner])
    nodes[owner].tell("FLUSHALL")
    wait_until(lambda: degraded(made))
    assert "error=TRYAGAIN" in degraded(made)[0], degraded(made)
    for node in (other, nodes[owner]):
        node.tell("CLUSTER", "SETSLOT", slot, "NODE", ids[1 - owner])
    leases(made, 2)
    assert other.says("EXISTS becalm:{prod}:p:a:200000:100000") == b":1"


def test_check_names_all_permissions_that_are_missing(server, tmp_path):
    redis = server()
    (tmp_path / "secret").write_text("first\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(top(redis.url, user="becalm", passwordFile="secret") + "\nservices: {a: {budget: {shared: {percent: 20}}}}\n")

    def check():
        done = subprocess.run([PROGRAM, "check", "--store", policy], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert "does not let us in: WRONGPASS" in check()[1]
    redis.tell("ACL", "SETUSER", "becalm", *ROSTER.split(), *USER.format("first").replace("+evalsha ", "").replace("+set ", "").split())
    redis.tell("ACL", "SETUSER", "becalm", *ROSTER.split())
    code, said = check()
    assert code == 1 and "run ACL SETUSER becalm +evalsha +set [store]" in said, said
    redis.tell("ACL", "SETUSER", "becalm", "+evalsha", "+set", "resetkeys", "~other:*")
    assert "run ACL SETUSER becalm ~becalm:{prod}:* [store]" in check()[1]
    redis.tell("ACL", "SETUSER", "becalm", "~becalm:{prod}:*")
    code, said = check()
    assert code == 0 and "answers, and grants all permissions" in said, said
    done = subprocess.run([PROGRAM, "check", "--store", "--set", f"store.redis=redis://localhost:{redis.port}", policy], capture_output=True, text=True, check=False)
    assert f"{policy}:1:1: note: the store localhost:{redis.port} answers" in done.stdout, "what --set says has no place in the file"
    redis.tell("REPLICAOF", "127.0.0.1", "1")
    assert "can't be used: READONLY" in check()[1]
    redis.kill()
    assert f"the store {redis.address} does not let us in: refused" in check()[1]


def test_check_opens_the_secrets_of_keys_and_asks_what_a_full_store_forgets(server, tmp_path):
    redis = server()
    policy = tmp_path / "policy.yaml"
    policy.write_text(top(redis.url) + "\nidempotencyStore: {redis: inherit, secretFile: s, encryptFile: e}\nservices: {a: {}}\n")

    def check():
        done = subprocess.run([PROGRAM, "check", "--store", policy], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, said = check()
    assert code == 1 and "idempotencyStore.secretFile: " in said, said
    (tmp_path / "s").write_text("too short\n")
    assert "its first line is shorter than 16 bytes" in check()[1]
    (tmp_path / "s").write_text("0123456789abcdef\nshort\n")
    assert "its second line, the secret before, is shorter than 16 bytes" in check()[1]
    (tmp_path / "s").write_text("0123456789abcdef\n")
    code, said = check()
    assert code == 1 and "idempotencyStore.encryptFile: " in said, said
    (tmp_path / "e").write_text("one " + "5a" * 32 + "\n")
    code, said = check()
    assert code == 0 and "answers, and grants all permissions" in said and "maxmemory-policy" not in said, said
    redis.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    code, said = check()
    assert "(maxmemory-policy allkeys-lru)" in said and "noeviction" in said, said
    redis.tell("ACL", "SETUSER", "default", "-config")  # it may not be asked, and that is all right
    code, said = check()
    assert code == 0 and "maxmemory-policy" not in said, said
    redis.tell("ACL", "SETUSER", "default", "-info", "-wait")
    assert "run ACL SETUSER default +info [store]" in check()[1]
    policy.write_text(policy.read_text().replace("encryptFile: e", "encryptFile: e, replicas: 1"))
    assert "run ACL SETUSER default +info +wait [store]" in check()[1]


def test_metrics_and_state_show_the_store_and_the_budget(gateway, host, server):
    redis = server()
    made = gateway(policy_of([host()], top(redis.url), rules()))
    labels = {"service": "a", "endpoint": "default"}
    made.expect_metric(1, "becalm_redis_up", store=redis.address)
    made.expect_metric(0, "becalm_shared_degraded", **labels)
    made.expect_metric(1, "becalm_shared_live", **labels)
    assert made.metric("becalm_shared_percent", **labels) == 20
    wait_until(lambda: made.ask().status == 200 and made.metric("becalm_shared_told_total", **labels) > 0)
    wait_until(lambda: made.metric("becalm_shared_granted_total", **labels) > 0)
    assert made.metric("becalm_redis_exchanges_total", store=redis.address, result="ok") > 0
    assert made.metric("becalm_redis_seconds_count", store=redis.address) > 0
    shown = state(made)
    assert shown["fleet"] == "prod" and shown["stores"][0]["up"] and "error" not in shown["stores"][0]
    shared = shown["services"][0]["endpoints"][0]["sharedBudget"]
    assert shared["percent"] == 20 and not shared["degraded"]
    redis.kill()
    made.expect_metric(0, "becalm_redis_up", store=redis.address)
    made.expect_metric(1, "becalm_shared_degraded", **labels)
    assert made.metric("becalm_redis_errors_total", store=redis.address, error="closed") == 1
    shown = state(made)
    assert not shown["stores"][0]["up"] and shown["stores"][0]["error"] in ("closed", "refused")
    assert shown["services"][0]["endpoints"][0]["sharedBudget"]["degraded"]


def fleet(gateway):
    answer = ask(gateway.admin, path="/api/fleet", host=f"127.0.0.1:{gateway.admin}")
    return json.loads(answer.body)["stores"]


def seen(gateway):
    """The processes of its fleet, by their numbers."""
    return {each["id"]: each for store in fleet(gateway) for each in store["instances"]}


def show(gateway):
    done = subprocess.run([PROGRAM, "top", "--fleet", "--once", f"127.0.0.1:{gateway.admin}"], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_gateway_shows_the_whole_fleet(gateway, host, server):
    redis = server()
    good, bad = host(), host()
    bad.on("*", Reply(status=503))
    calm = gateway(policy_of([good], top(redis.url), rules()))
    busy = gateway(policy_of([bad], top(redis.url), rules()))
    other = gateway(policy_of([good], top(redis.url), rules(5)))
    wait_until(lambda: all(len(seen(each)) == 3 for each in (calm, busy, other)), what=lambda: fleet(calm))
    ids = {each: state(each)["id"] for each in (calm, busy, other)}

    def retried():
        assert busy.ask().status == 503
        return seen(calm)[ids[busy]]["retriesPerSecond"] > 0

    wait_until(retried, what=lambda: fleet(calm))
    assert fleet(calm)[0]["up"] and fleet(calm)[0]["fleet"] == "prod"
    policies = {who: seen(calm)[ids[who]]["policy"] for who in ids}
    assert policies[calm] != policies[other]
    lines = show(calm).splitlines()
    assert "fleet prod" in lines[0] and "3 instances" in lines[0] and " up, answered " in lines[0], lines
    assert lines[0].endswith(" % of 20 % allowed"), lines
    assert lines[2].startswith(ids[other][:12]) and lines[2].endswith("differs"), lines  # worst first
    redis.tell("HSET", "becalm:{prod}:who", "evil", '9999999999999 "},{\033[2J x y 1 1 1 1 1')
    dead = f"{int(time.time() * 1000) - 20000} pod 0.1.0 abc 9000000 9000000 1 0 60"  # told 20 s ago, by an older version
    redis.tell("HSET", "becalm:{prod}:who", "dead", dead)
    wait_until(lambda: "dead" in seen(calm), what=lambda: fleet(calm))
    assert "evil" not in seen(calm)
    assert seen(calm)["dead"]["sharedCallsPerSecond"] == 9000
    said = show(calm)
    assert said.splitlines()[2].startswith("dead") and said.splitlines()[2].endswith("silent"), said
    assert " 9000 calls/s" not in said.splitlines()[0], said  # its lease is over
    redis.tell("HDEL", "becalm:{prod}:who", "dead")
    other.end()  # a gateway that ends says so
    wait_until(lambda: ids[other] not in seen(calm), what=lambda: fleet(calm))
    redis.kill()
    wait_until(lambda: not fleet(calm)[0]["up"])


def test_who_may_not_tell_about_itself_still_shares_budgets(gateway, host, server, tmp_path):
    redis = server()
    (tmp_path / "secret").write_text("first\n")
    redis.tell("ACL", "SETUSER", "becalm", *USER.format("first").split())
    made = gateway(policy_of([host()], top(redis.url, user="becalm", passwordFile=tmp_path / "secret"), rules()))
    leases(made)
    wait_until(lambda: "executing the script" in fleet(made)[0].get("error", ""), what=lambda: fleet(made))
    assert not degraded(made) and made.metric("becalm_redis_up") == 1


def test_the_worked_example_starts_with_one_command():
    """Three gateways and a Redis: each knows of the others."""
    ports = [free_port() for _ in range(7)]
    words = [ROOT / "tools/fleet", PROGRAM, ROOT / "policies/fleet.yaml"]
    environment = {**os.environ, "BECALM_FLEET_PORTS": " ".join(map(str, ports))}
    running = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def live(port):
        try:
            answer = ask(port, path="/metrics", host=f"127.0.0.1:{port}")
        except OSError:
            return 0
        rows = [line for line in answer.body.decode().splitlines() if line.startswith("becalm_shared_live{")]
        return float(rows[0].split()[-1]) if rows else 0

    try:
        wait_until(lambda: running.poll() is not None or all(live(port) == 3 for port in ports[3:6]))
        assert running.poll() is None, running.stdout.read()
        running.terminate()
        running.wait(timeout=60)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.stdout.close()
    with pytest.raises(ConnectionRefusedError):  # nothing is left behind
        socket.create_connection(("127.0.0.1", ports[6]))
