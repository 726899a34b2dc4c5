"""The files of docs and deploy/ that operators copy are valid for the node."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest

from atoll.cli.serve import serve
from atoll.config_loading import load

ROOT = Path(__file__).resolve().parents[2]
OPERATE = (ROOT / "docs" / "guides" / "operate.md").read_text("utf-8")


def test_the_settings_in_the_operators_guide_exist(tmp_path: Path) -> None:
    shown = re.search(r"```toml\n(.*?)```", OPERATE, re.DOTALL)
    assert shown is not None
    file = tmp_path / "atoll.toml"
    file.write_text(shown[1], "utf-8")
    settings = load(file, {}, {})
    assert (settings.control_auth, settings.sandbox, str(settings.data)) == ("token", "require", "/var/lib/atoll")


@pytest.mark.parametrize(
    "file", ["deploy/nginx/atoll.conf", "deploy/traefik/atoll.yml", "docs/guides/https-and-proxies.md"]
)
def test_every_proxy_setup_requires_tokens_and_names_its_proxy(file: str) -> None:
    commands = re.findall(
        r"^[#$ ]+atoll serve (.*--trusted-proxies.*)$", (ROOT / file).read_text("utf-8"), re.MULTILINE
    )
    assert commands
    for command in commands:
        given = serve.make_context("serve", shlex.split(command)).params
        assert (given["control_auth"], given["trusted_proxies"]) == ("token", "127.0.0.1")


def test_the_unit_starts_a_node_and_leaves_it_time_to_drain() -> None:
    unit = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names in units have capitals
    unit.read(ROOT / "deploy" / "systemd" / "atoll.service", "utf-8")
    service = unit["Service"]
    program, command, *arguments = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("atoll", "serve")
    given = serve.make_context("serve", arguments).params
    assert f"--config {given['config']}" in OPERATE  # the file that the guide writes
    assert given["control_auth"] == "token"
    assert given["data"] == f"/var/lib/{service['StateDirectory']}"
    settings = load(None, {}, {})
    assert float(service["TimeoutStopSec"]) > settings.drain_delay + settings.drain_seconds
    assert service["KillMode"] == "mixed"  # engines get no signal: they would end calls that should finish
