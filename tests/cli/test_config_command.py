"""`atoll config` tells what counts and who said so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [str(Path(sys.executable).parent / "atoll"), "config"]


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATOLL_")}
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=kept | env, capture_output=True, text=True, timeout=60, check=False
    )


def test_it_prints_every_setting_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "atoll.toml").write_text("[node]\nport = 9000\nidle_seconds = 1.5\n")
    found = run(tmp_path, "--json", "--engines=3", ATOLL_SPARES="2")
    assert found.returncode == 0, found.stderr
    said = {each["name"]: (each["value"], each["origin"]) for each in json.loads(found.stdout)}
    assert said["port"] == (9000, "atoll.toml:2") and said["idle_seconds"] == (1.5, "atoll.toml:3")
    assert said["engines"] == (3, "--engines") and said["spares"] == (2, "ATOLL_SPARES")
    assert said["host"] == ("127.0.0.1", "default") and said["control_hosts"] == ([], "default")
    lines = run(tmp_path, "--changed").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "VALUE", "ORIGIN"],
        ["port", "9000", "atoll.toml:2"],
        ["idle_seconds", "1.5", "atoll.toml:3"],
    ]


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "atoll.toml").write_text("[node]\n\nprot = 9000\n")
    found = run(tmp_path)
    assert (
        found.returncode == 1 and "atoll.toml:3 sets `prot`" in found.stderr and "did you mean `port`?" in found.stderr
    )
