"""Builds the image and runs it with each profile of a container engine, without Docker: `python -m bench.image`.

Needs root, and installs buildah, podman, runc and debootstrap of Debian. The base image is made by debootstrap, so
that no registry is needed. Prints which layers of the sandbox hold; fails if deploy/docker/README.md says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROFILE = ROOT / "deploy/docker/seccomp.json"
BASE, IMAGE, NAME = "localhost/atoll-base:bookworm", "localhost/atoll:bench", "atoll-bench"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
CONFINING = {"unshare", "mount", "umount2", "pivot_root"}
# As in deploy/docker/README.md. The limits are those that a small machine allows.
FLAGS = ["--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--ulimit", "nofile=16384:16384"]
ALL = "namespaces, private root, uid 10001, no capabilities, limits, no new privileges, landlock ABI, seccomp"
ASK = """
import http.client
connection = http.client.HTTPConnection("localhost", 8080, timeout=4)
for host, path in (("localhost", "/readyz"), ("hello-world.localhost", "/")):
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    print(answer.status, answer.read().decode().strip())
"""


def run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:4])} … failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def podman(*words: str, check: bool = True) -> str:
    return run("podman", "--cgroup-manager", "cgroupfs", *words, check=check)


def make_base(folder: Path) -> None:
    """A minimal Debian that trusts what this machine trusts, such as a proxy's authority."""
    run("debootstrap", "--variant=minbase", "bookworm", str(folder / "debian"))
    run("cp", "-L", CERTIFICATES, str(folder / "debian/host-ca.crt"))
    run("tar", "-C", str(folder / "debian"), "-cf", str(folder / "base.tar"), ".")
    trust = [f"ENV {name}=/host-ca.crt" for name in ("PIP_CERT", "NODE_EXTRA_CA_CERTS")]
    podman("import", *(word for line in trust for word in ("--change", line)), str(folder / "base.tar"), BASE)


def build() -> None:
    where = ["--network", "host", "--isolation", "chroot", "--format", "docker"]
    run("buildah", "bud", *where, "--build-arg", f"DEBIAN={BASE}", "--tag", IMAGE, "--file", "Dockerfile", ".")


def layers(*flags: str) -> str:
    """What the node says of its sandbox when it is started with these flags."""
    start = ["run", "--detach", "--name", NAME, "--runtime", "runc", "--network", "none", *FLAGS, *flags]
    podman(*start, IMAGE, "serve", "--example")
    try:
        deadline = time.monotonic() + 60
        while not (said := re.search(r"^  sandbox: (.*)$", podman("logs", NAME), re.MULTILINE)):
            if time.monotonic() > deadline:
                raise SystemExit(f"the node did not start:\n{podman('logs', NAME)}")
            time.sleep(0.1)
        answers = podman("exec", NAME, "python3", "-c", ASK).splitlines()
        if answers != ['200 {"status":"ok"}', "200 Hello World!"]:
            raise SystemExit(f"the node answered {answers}")
        return said[1]
    finally:
        podman("stop", "--time", "30", NAME, check=False)
        podman("rm", "--force", NAME, check=False)


def without_namespaces(folder: Path) -> Path:
    """Our profile without the calls that Docker's default forbids."""
    profile = json.loads(PROFILE.read_text())
    for group in profile["syscalls"]:
        if set(group["names"]) == CONFINING:
            group |= {"action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    path = folder / "seccomp.json"
    path.write_text(json.dumps(profile))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-build", action="store_true", help="use the image of an earlier run")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("error: this needs root, to make a Debian and to run containers")
    run("apt-get", "install", "-y", "-q", "--no-install-recommends", "buildah", "podman", "runc", "debootstrap")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not options.no_build:
            make_base(folder)
            build()
        ours = layers("--security-opt", f"seccomp={PROFILE}")
        print("our profile:       ", ours)
        closed = layers("--security-opt", f"seccomp={without_namespaces(folder)}")
        print("without namespaces:", closed)
    if re.sub(r"ABI \d+", "ABI", ours) != ALL:
        raise SystemExit("error: layers are missing with our profile")
    if "missing: namespaces" not in closed or "landlock" not in closed or ", seccomp;" not in closed:
        raise SystemExit("error: the node does not say what is missing without namespaces")


if __name__ == "__main__":
    main()
