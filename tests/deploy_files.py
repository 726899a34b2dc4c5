"""Reads the files of deploy/ and around it, for tests that compare them with the node."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # comes with schemathesis and mkdocs

from tests.debian import require

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
OVERLAY = DEPLOY / "kubernetes/overlays/production"


def files() -> list[Path]:
    """Every file that starts, builds or calls a node somewhere else."""
    around = [ROOT / "Dockerfile", *(ROOT / ".github").rglob("*.yml"), *(ROOT / ".devcontainer").glob("*.json")]
    return sorted(path for path in [*DEPLOY.rglob("*"), *around] if path.is_file() and path.suffix != ".md")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def commands(path: Path) -> Iterator[str]:
    """Each call of `atoll` in a file, up to the end of its line, without comments and what encloses it."""
    for line in path.read_text("utf-8").splitlines():
        found = re.search(r"(?:^|[#=>\s(;&]|/opt/atoll/bin/)(atoll (?:[a-z][\w-]*|--)\b.*)", line)
        if found and re.search(r"(?:^\s*#\s{3,}|ExecStart=|run: |^\s*- |^\s{6,}\$?)(?:\S*/)?atoll ", line):
            yield re.sub(r'"?\$\{?\w+(?:::\d+)?\}?"?', "x", found[1])


def compose(**variables: str) -> Any:
    """compose.yaml with its variables filled in."""
    known = {"DOMAIN": "workers.example", **variables}

    def value(found: re.Match[str]) -> str:
        return known.get(found[1]) or found[2] or ""

    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    return yaml.safe_load(re.sub(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}", value, text))


@cache
def kubernetes(folder: Path = OVERLAY) -> dict[str, Any]:
    """The objects of an overlay by their kinds, merged by kubectl."""
    kubectl = require("kubernetes-client", "kubectl")
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}


def image() -> dict[str, str]:
    """The variables of the image."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return dict(re.findall(r"(ATOLL_\w+)=(\S+)", text))


def directive(name: str) -> str:
    """The value of a line of the Dockerfile; the last if there are several."""
    return re.findall(rf"^{name} (.*)$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)[-1]


def cloud_init() -> Any:
    """The file with values where Terraform fills them in."""
    values = {"domain": "workers.example", "operators": "192.0.2.0/24 198.51.100.0/24", "volume": "vol0"}
    text = (DEPLOY / "terraform/cloud-init.yaml").read_text("utf-8")
    return yaml.safe_load(re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], found[1]), text))


def cloud_file(path: str) -> str:
    return next(each["content"] for each in cloud_init()["write_files"] if each["path"] == path)


def node_settings() -> dict[str, dict[str, str]]:
    """The variables with which each place starts a node."""
    table = tomllib.loads(cloud_file("/etc/atoll/atoll.toml"))["node"]
    by_toml = {f"ATOLL_{key.upper()}": ",".join(v) if isinstance(v, list) else str(v) for key, v in table.items()}
    unit = (DEPLOY / "systemd/atoll.service").read_text("utf-8")
    flags = dict(re.findall(r" --([a-z-]+) (\S+)", re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0]))
    by_flags = {f"ATOLL_{name.upper().replace('-', '_')}": value for name, value in flags.items() if name != "config"}
    return {
        "Dockerfile": image(),
        "compose.yaml": {**image(), **compose()["services"]["node"]["environment"]},
        "kubernetes": {**image(), **kubernetes()["ConfigMap"]["data"]},
        "terraform": {**by_flags, **by_toml},
    }


def seccomp() -> Any:
    return json.loads((DEPLOY / "docker/seccomp.json").read_text("utf-8"))
