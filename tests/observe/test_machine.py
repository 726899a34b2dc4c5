"""A machine on which a node will not do well is told apart, with what to do."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from atoll.observe import machine
from atoll.observe.machine import machine_problems
from tests.cli.dev_session import ATOLL, environment


def root_with(folder: Path, *, total_kb: int, limit: str = "max") -> Path:
    """A folder with the files of /proc and /sys that a node reads."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/meminfo").write_text(f"MemTotal:       {total_kb} kB\nMemAvailable:   {total_kb} kB\n")
    (folder / "proc/self/cgroup").write_text("0::/node\n")
    (folder / "sys/fs/cgroup/node").mkdir(parents=True)
    (folder / "sys/fs/cgroup/node/memory.max").write_text(f"{limit}\n")
    return folder


def test_a_machine_that_is_well_has_no_problem(tmp_path: Path) -> None:
    root = root_with(tmp_path / "root", total_kb=8_000_000)
    assert list(machine_problems(tmp_path / "not yet", root=root)) == []


def test_a_control_group_that_is_too_small_is_named(tmp_path: Path) -> None:
    root = root_with(tmp_path / "root", total_kb=8_000_000, limit=str(200 << 20))
    [problem] = machine_problems(tmp_path, root=root)
    assert "has 200 MB of memory, and a node needs 512 MB" in problem.text and "MemoryMax=" in problem.hint


def test_a_clock_behind_the_data_folder_is_named(tmp_path: Path) -> None:
    root = root_with(tmp_path / "root", total_kb=8_000_000)
    (tmp_path / "atoll.db").touch()
    os.utime(tmp_path / "atoll.db", (4e9, 4e9))
    [problem] = machine_problems(tmp_path, root=root)
    assert f"{tmp_path}/atoll.db is of 2096-10-02 07:06 UTC" in problem.text and "set the clock" in problem.hint
    [problem] = machine_problems(tmp_path / "none", root=root, now=86_400.0)  # no battery: it begins in 1970
    assert "says 1970-01-02 00:00 UTC" in problem.text
    assert list(machine_problems(tmp_path, root=root, now=4e9 - 60)) == []


def test_a_volume_that_is_almost_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_with(tmp_path / "root", total_kb=8_000_000)
    found = os.statvfs(tmp_path)
    monkeypatch.setattr(machine, "LEAST_DISK_MB", (found.f_bavail * found.f_frsize >> 20) + 1_000)
    [problem] = machine_problems(tmp_path / "a" / "b", root=root)
    assert "MB left: writes will fail with 507" in problem.text


def test_doctor_and_the_log_of_a_start_name_the_same_problem(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "atoll.db").touch()  # an empty file is a new database
    os.utime(data / "atoll.db", (time.time() + 1e8,) * 2)
    here = environment(tmp_path) | {"ATOLL_DATA": str(data)}
    told = subprocess.run(
        [ATOLL, "doctor", "--no-sandbox"],
        cwd=tmp_path,
        env=here,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "the clock of this machine says" in told.stdout and "hint: set the clock" in told.stdout
    with subprocess.Popen(
        [ATOLL, "serve", "--port", "0", "--json", "--engines", "1"], cwd=tmp_path, env=here, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as node:  # fmt: skip
        assert node.stdout is not None
        assert '"ready"' in node.stdout.readline()
        node.terminate()
        _, said = node.communicate(timeout=60)
    assert "WARNING atoll: the clock of this machine says" in said
