# SPDX-License-Identifier: MIT
"""The shipped files: packages that install, start and leave no trace when removed, the root of the image, the bill of
materials. With BECALM_SOAK=1 also in a Debian of their own, and the image as buildah makes it; that needs the
network."""

import http.server
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("BECALM", ROOT / "build/dev/becalm")).resolve()
BUILD = PROGRAM.parent
SOAK = os.environ.get("BECALM_SOAK") == "1"
GUARD = 120  # seconds, a guard against hanging
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its root")
soak = pytest.mark.skipif(not SOAK, reason="BECALM_SOAK=1 runs it")


def run(*command, **more):
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600, **more
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def codename():
    return re.search(r"VERSION_CODENAME=(\S+)", pathlib.Path("/etc/os-release").read_text())[1]


def processor_seconds():
    """Of all that this process has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def free_ports():
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]


def starts(command, enter=None, meanwhile=lambda listen, admin: None):
    """The gateway that the command starts gets ready, serves the test's requests, and ends after TERM."""
    for _ in range(5):  # another process may have taken a port meanwhile
        listen, admin = free_ports()
        sets = ["--set", f"listen=127.0.0.1:{listen}", "--set", f"admin=127.0.0.1:{admin}", "--set", "drain.delay=0s"]
        process = subprocess.Popen([*map(str, command), *sets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=enter)
        try:
            until = time.monotonic() + GUARD
            while process.poll() is None and time.monotonic() < until:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz", timeout=GUARD) as answer:
                        ready = answer.status == 200
                except OSError:
                    time.sleep(0.05)
                    continue
                if ready:
                    meanwhile(listen, admin)
                    process.terminate()
                    assert process.wait(GUARD) == 0
                    return
        finally:
            if process.poll() is None:
                process.kill()
        said = process.communicate(timeout=GUARD)[0].decode()
        if "in use" not in said:
            raise AssertionError("does not get ready: " + said)
    raise AssertionError("found no free port")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """{"deb": path, "rpm": path} of the package of the command, made by cpack as make deb and make rpm make it."""
    made = {}
    for kind in ("DEB", "RPM"):
        folder = tmp_path_factory.mktemp(kind.lower())
        run("cpack", "-G", kind, "-B", folder, *([] if SOAK else ["-D", "CPACK_COMPONENTS_ALL=command"]), cwd=BUILD)
        found = sorted(folder.glob(f"*.{kind.lower()}"), key=lambda path: "dev" in path.name)
        assert len(found) == (2 if SOAK else 1), found
        made[kind.lower()] = found[0]
    return made


EXPECTED = {
    "/etc/becalm/becalm.yaml",
    "/usr/bin/becalm",
    "/usr/lib/systemd/system/becalm.service",
    "/usr/lib/systemd/system/becalm.socket",
    "/usr/share/bash-completion/completions/becalm",
    "/usr/share/becalm/becalm.schema.json",
    "/usr/share/becalm/grafana/becalm.json",
    "/usr/share/becalm/policies/sidecar.yaml",
    "/usr/share/becalm/prometheus/becalm.rules.yaml",
    "/usr/share/fish/vendor_completions.d/becalm.fish",
    "/usr/share/zsh/site-functions/_becalm",
}


def manuals(files):
    return {path.split("/")[-1].removesuffix(".gz") for path in files if path.startswith("/usr/share/man/")}


def works(root):
    """The files of a package below a root: the gateway starts with the package's policy, and the unit starts that
    gateway."""
    policy = root / "etc/becalm/becalm.yaml"
    assert "no findings" in run(root / "usr/bin/becalm", "check", "--strict", policy)
    starts([root / "usr/bin/becalm", "proxy", policy])
    unit = (root / "usr/lib/systemd/system/becalm.service").read_text()
    assert "\nExecStart=/usr/bin/becalm proxy --quiet /etc/becalm/becalm.yaml\n" in unit
    schema = json.loads((root / "usr/share/becalm/becalm.schema.json").read_text())
    assert schema == json.loads(run(root / "usr/bin/becalm", "schema"))


def test_deb__is_installed_started_and_removed_without_a_trace(packages, tmp_path):
    root = tmp_path / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text("")
    dpkg = ["dpkg", f"--root={root}", "--force-not-root", "--force-script-chrootless", "--force-depends"]
    path = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    run(*dpkg, "-i", packages["deb"], env={**os.environ, **path})
    files = set(run("dpkg-query", f"--root={root}", "-L", "becalm").split())
    assert EXPECTED <= files
    pages = {page.name for page in (ROOT / "man").iterdir() if page.suffix != ".3"}
    assert pages <= manuals(files)
    works(root)
    (root / "etc/becalm/becalm.yaml").write_text("listen: 127.0.0.1:1\n")
    run(*dpkg, "--remove", "becalm", env={**os.environ, **path})
    assert (root / "etc/becalm/becalm.yaml").read_text() == "listen: 127.0.0.1:1\n", "a removed package leaves what people wrote"
    assert not (root / "usr/bin/becalm").exists()
    run(*dpkg, "--purge", "becalm", env={**os.environ, **path})
    left = [each for each in root.rglob("*") if each.is_file() and "var/lib/dpkg" not in str(each)]
    assert left == []


def test_deb__says_what_it_needs(packages):
    fields = dict(line.strip().split(": ", 1) for line in run("dpkg-deb", "-f", packages["deb"]).splitlines() if ": " in line)
    for library in ("libc6", "libssl3", "libyaml-0-2", "libnghttp2-14"):
        assert re.search(rf"\b{library}\b", fields["Depends"]), fields["Depends"]
    assert "libcurl4" in fields["Recommends"], "loaded only by who asks others"
    assert fields["Version"] == re.search(r'BECALM_VERSION +"(.*)"', (ROOT / "include/becalm/version.h").read_text())[1]


def test_dev__brings_what_its_pkg_config_files_require():
    """Else the first `pkg-config libbecalm` on an empty machine fails: it reads private requirements too."""
    wanted = set()
    for path in [*BUILD.glob("*.pc"), *BUILD.glob("*/*.pc")]:
        for line in re.findall(r"^Requires(?:\.private)?: (.*)$", path.read_text(), re.M):
            wanted |= {word.split()[0] for word in line.split(",")}
    wanted -= {"libbecalm"}
    assert {"yaml-0.1", "libcurl"} <= wanted
    settings = (BUILD / "CPackConfig.cmake").read_text()
    debian = re.search(r'CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "(.*)"', settings)[1].split(", ")
    red_hat = re.search(r'CPACK_RPM_LIBRARY_PACKAGE_REQUIRES "(.*)"', settings)[1].split(", ")
    openssl = [each for each in red_hat if each.startswith(("libssl.so.", "libcrypto.so."))]  # for a Redis with TLS, loaded then
    assert len(openssl) == 2, red_hat
    assert any(each.startswith("libssl") for each in debian), debian
    assert {f"pkgconfig({name})" for name in wanted} == set(red_hat) - set(openssl)
    for name in wanted:
        owners = {line.split(":")[0] for line in run("dpkg", "-S", f"*/pkgconfig/{name}.pc").splitlines()}
        assert owners & set(debian), (name, owners)


def test_rpm__is_unpacked_and_started(packages, tmp_path):
    listed = set(run("rpm", "-qpl", packages["rpm"]).split())
    assert EXPECTED <= listed
    assert {page.name for page in (ROOT / "man").iterdir() if page.suffix != ".3"} <= manuals(listed)
    assert run("rpm", "-qpc", packages["rpm"]).split() == ["/etc/becalm/becalm.yaml"]
    assert "libssl.so.3" in run("rpm", "-qpR", packages["rpm"])
    run("rpm2archive", packages["rpm"])
    run("tar", "xzf", f"{packages['rpm']}.tgz", "-C", tmp_path)
    works(tmp_path)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    root = tmp_path_factory.mktemp("image") / "root"
    run(ROOT / "tools/image-root", PROGRAM, root)
    return root


def enter(root):
    def change():
        os.chroot(root)
        os.chdir("/")
        os.setgroups([])
        os.setgid(65532)
        os.setuid(65532)

    return change


@is_root
def test_image__its_root_serves_as_its_user_with_nothing_else_in_it(image):
    starts(["/usr/bin/becalm", "proxy", "/etc/becalm/becalm.yaml"], enter(image))
    names = {path.name for path in image.rglob("*") if path.is_file()}
    assert not names & {"sh", "bash", "busybox", "apt", "dpkg"}
    # Commands with libcurl: top asks a gateway that does not run, traces go to a collector.
    top = subprocess.run(["/usr/bin/becalm", "top", "--once", "http://127.0.0.1:1"], preexec_fn=enter(image), capture_output=True, text=True)
    assert top.returncode == 1 and "loading a library" not in top.stderr, top


class Mine(http.server.BaseHTTPRequestHandler):
    """A service of one's own, on this machine."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"mine\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def ways(root, port):
    """README's five ways inside of a root that has nothing but the program: as its user, with files that were put into it."""

    def becalm(*words, code=0):
        done = subprocess.run(["/usr/bin/becalm", *map(str, words)], preexec_fn=enter(root), capture_output=True,
                              text=True, timeout=GUARD)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def ask(url, **more):
        request = urllib.request.Request(url)
        for kind, proxy in more.items():
            request.set_proxy(proxy, kind)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=GUARD) as answer:
            return answer.read()

    folder = root / "tmp"
    (folder / "gateway.yaml").write_text(f'services:\n  files: {{hosts: ["127.0.0.1:{port}"], match: {{prefix: /}}}}\n')
    (folder / "sidecar.yaml").write_text(f'role: sidecar\nservices:\n  files: {{hosts: ["127.0.0.1:{port}"], match: {{host: files}}}}\n')

    def gateway(listen, admin):
        assert ask(f"http://127.0.0.1:{listen}/") == b"mine\n"
        assert "files" in becalm("top", "--once", f"http://127.0.0.1:{admin}"), "asks by libcurl, which is in the image for it"

    def sidecar(listen, _):
        assert ask("http://files/", http=f"127.0.0.1:{listen}") == b"mine\n"

    starts(["/usr/bin/becalm", "proxy", "/tmp/gateway.yaml"], enter(root), gateway)
    starts(["/usr/bin/becalm", "proxy", "/tmp/sidecar.yaml"], enter(root), sidecar)
    becalm("exec", "--retries", 2, "--delay", "1ms", "--budget", "image", "--", "/usr/bin/becalm", "check", "/tmp/gateway.yaml")
    assert "image" in becalm("exec", "--list-budgets")
    becalm("exec", "--retries", 1, "--delay", "1ms", "--", "/usr/bin/becalm", "check", "/tmp/none.yaml", code=1)
    (folder / "nginx.conf").write_text("events {}\nhttp { upstream pay { server 10.0.0.1:80; } server { listen 80; location / { proxy_pass http://pay; } } }\n")
    (folder / "imported.yaml").write_text(becalm("import", "/tmp/nginx.conf"))
    becalm("check", "/tmp/imported.yaml")
    assert "pay" in becalm("sim", "--graph", "/tmp/imported.yaml", "--kill", "pay")


@is_root
def test_image__goes_the_five_ways(image, service):
    ways(image, service)


def test_image__is_small_and_no_root_s(image):
    size = sum(path.stat().st_size for path in image.rglob("*") if path.is_file())
    assert size < 24 * 1024 * 1024
    file = (ROOT / "Containerfile").read_text()
    assert "\nUSER 65532:65532\n" in file and 'ENTRYPOINT ["/usr/bin/becalm"]' in file and "\nFROM scratch\n" in file


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "becalm"
    run(ROOT / "tools/bundle", PROGRAM, folder)
    return folder


def test_bundle__runs_from_anywhere_with_its_own_libraries(bundle, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(bundle, moved, symlinks=True)
    link = tmp_path / "becalm"
    link.symlink_to("elsewhere/bin/becalm")
    clean = {"PATH": "/usr/bin:/bin"}
    assert run(link, "--version", env=clean) == run(PROGRAM, "--version")
    traced = run(moved / "lib/ld.so", "--library-path", moved / "lib", "--list", moved / "libexec/becalm")
    loaded = re.findall(r"=> (\S+)", traced)
    assert len(loaded) >= 5 and all(path.startswith(str(moved)) for path in loaded), traced
    assert "Connection refused" in subprocess.run([link, "top", "--once", "http://127.0.0.1:1"], env=clean, capture_output=True, text=True).stderr, "by libcurl"
    starts([link, "proxy", moved / "share/becalm/becalm.yaml"])


@is_root
def test_bundle__needs_nothing_of_the_system(bundle):
    """Its own folder is the whole root: no other library, no shell."""
    starts(["/lib/ld.so", "--library-path", "/lib", "/libexec/becalm", "proxy", "/share/becalm/becalm.yaml"], enter(bundle))


def test_sbom__names_what_the_program_loads(tmp_path):
    bill = json.loads(run(ROOT / "tools/sbom", PROGRAM))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    names = {each["name"]: each["version"] for each in bill["components"]}
    assert {"libssl3", "libyaml-0-2", "libc6", "uplot", "libcurl4"} <= set(names) and all(names.values())


@pytest.mark.parametrize("tool", ["bundle", "image-root", "sbom"])
def test_tools__fail_where_openssl_is_missing(tool, tmp_path):
    """libcurl may be missing, and is left out then."""
    (tmp_path / "ldconfig").write_text("#!/bin/sh\n")
    (tmp_path / "ldconfig").chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [ROOT / "tools" / tool, PROGRAM, *([] if tool == "sbom" else [tmp_path / "made"])]
    done = subprocess.run(command, env=path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=GUARD)
    assert (done.returncode, done.stdout) == (1, "")
    assert "OpenSSL is missing: ldconfig -p lists no libssl that" in done.stderr
    assert not (tmp_path / "made").exists()
    real = run("sh", "-c", "PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep libssl")
    (tmp_path / "libraries").write_text(real)
    (tmp_path / "ldconfig").write_text(f"#!/bin/sh\ncat {tmp_path}/libraries\n")
    made = run(*command, env=path)
    names = made + "".join(each.name for each in (tmp_path / "made").rglob("*.so*"))
    assert "libssl" in names and "libcurl" not in names


# ---- in a Debian of its own ----


@soak
@is_root
def test_deb__in_a_clean_debian(packages, tmp_path):
    root = tmp_path / "debian"
    depends = run("dpkg-deb", "-f", packages["deb"], "Depends").strip()
    needs = [each.split()[0] for each in depends.split(", ")]  # of alternatives the first; no versions
    run("mmdebstrap", "--variant=minbase", "--include=" + ",".join(needs), codename(), root)
    shutil.copy(packages["deb"], root / "tmp/becalm.deb")
    run("chroot", root, "dpkg", "-i", "/tmp/becalm.deb")
    starts(["/usr/bin/becalm", "proxy", "/etc/becalm/becalm.yaml"], enter(root))
    run("chroot", root, "dpkg", "--purge", "becalm")
    assert not (root / "usr/bin/becalm").exists() and not (root / "etc/becalm/becalm.yaml").exists()


@soak
@is_root
def test_image__as_buildah_makes_it(image, service, tmp_path):
    context = tmp_path / "context"
    context.mkdir()
    shutil.copytree(image, context / "root", symlinks=True)
    run("buildah", "--storage-driver=vfs", "build", "--isolation=chroot", "-q", "-t", "becalm-test", "-f", ROOT / "Containerfile", context)
    try:
        name = run("buildah", "--storage-driver=vfs", "from", "becalm-test").strip()
        settings = json.loads(run("buildah", "--storage-driver=vfs", "inspect", name))["OCIv1"]["config"]
        assert settings["User"] == "65532:65532" and settings["Entrypoint"] == ["/usr/bin/becalm"]
        mounted = pathlib.Path(run("buildah", "--storage-driver=vfs", "mount", name).strip())
        starts([*settings["Entrypoint"], *settings["Cmd"]], enter(mounted))
        ways(mounted, service)
        run("buildah", "--storage-driver=vfs", "rm", name)
    finally:
        run("buildah", "--storage-driver=vfs", "rmi", "-f", "becalm-test")


@soak
@is_root
def test_newcomer__walks_the_five_ways_in_a_debian_of_its_own(packages, tmp_path, capsys):
    """An empty Debian, the packages, and README: gateway, sidecar, libcurl, shell, and checks of existing
    configurations. The walk prints the time of each step."""
    root = tmp_path / "debian"
    run("mmdebstrap", "--variant=apt", "--include=python3,curl,gcc,libc6-dev,pkg-config", codename(), root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    for each in packages["deb"].parent.glob("*.deb"):
        shutil.copy(each, root / "tmp")
    run("chroot", root, "sh", "-c", "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y /tmp/*.deb")
    shutil.copy(ROOT / "tests/package/walk.sh", root / "tmp/walk.sh")
    for each in ("quickstart.c", "storm.c"):
        shutil.copy(ROOT / "examples" / each, root / "tmp")
        built = f"cc /tmp/{each} -o /tmp/example $(pkg-config --cflags --libs libbecalm) && /tmp/example"
        assert run("chroot", root, "sh", "-c", built).strip(), each
    (root / "dev/null").exists() or os.mknod(root / "dev/null", 0o20666, os.makedev(1, 3))
    said = run("chroot", root, "bash", "/tmp/walk.sh", free_block())
    assert [line.split()[1] for line in said.splitlines() if line.startswith("way: ")] == ["gateway", "sidecar", "libcurl", "shell", "check", "kubernetes"]
    with capsys.disabled():
        print(said)


@soak
@is_root
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="there is no repository to clone")
def test_newcomer__gets_from_an_empty_debian_to_the_running_demonstration(tmp_path, capsys):
    """git clone, make run. Ten minutes of processor time are a bound that holds beside any load; how long it took is printed."""
    root = tmp_path / "debian"
    run("mmdebstrap", "--variant=apt", codename(), root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    run("git", "clone", "-q", "--bare", ROOT, root / "srv/becalm.git")
    authorities = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")  # of a network that has one of its own, too
    if authorities.exists():
        shutil.copy(authorities, root / "srv/authorities.crt")
    begun, used = time.monotonic(), processor_seconds()
    script = """
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq git make >/dev/null 2>&1 || exit
        cd /root && git -c safe.directory='*' clone -q /srv/becalm.git becalm && cd becalm || exit
        echo cloned
        exec make run
    """
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "NODE_EXTRA_CA_CERTS": "/srv/authorities.crt"}
    said = run("chroot", root, "sh", "-c", script, env=clean)
    used = processor_seconds() - used
    said = said[said.index("cloned\n"):]
    with capsys.disabled():
        print(f"{time.monotonic() - begun:.0f} s, {used:.0f} s of processor time\n{said}")
    assert used < 600
    assert re.search(r"naive retries +\d+ calls.*\n  becalm +\d+ calls", said, re.S)
    assert "no charts" not in said
    setup = said[:said.index("The same incident")].splitlines()
    assert len(setup) < 12, "says what it does, and not all that others say"


@soak
@is_root
def test_bundle__runs_in_another_release(bundle, tmp_path):
    """With another C library than the one that it was built with."""
    root = tmp_path / "other"
    run("mmdebstrap", "--variant=essential", "bullseye" if codename() != "bullseye" else "bookworm", root)
    shutil.copytree(bundle, root / "opt/becalm", symlinks=True)
    starts(["/opt/becalm/bin/becalm", "proxy", "/opt/becalm/share/becalm/becalm.yaml"], enter(root))


def free_block():
    """Three ports in a row that were free a moment ago."""
    for first in range(23100, 32000, 10):
        try:
            for port in range(first, first + 3):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("found no free ports")
