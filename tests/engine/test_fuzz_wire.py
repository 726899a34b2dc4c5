"""The engine's wire decoder and its backlog, fuzzed under AddressSanitizer: engine/fuzz/, built and run here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLAGS = [
    "-std=c++20",
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
]


def fuzzed(folder: Path, name: str, rounds: int, *more: str) -> None:
    program = folder / name
    sources = [ROOT / "engine" / "fuzz" / f"{name}.cc", *(ROOT / "engine" / "src" / each for each in more)]
    compiler = os.environ.get("CXX", "g++")
    include = f"-I{ROOT / 'engine' / 'src'}"
    subprocess.run([compiler, *FLAGS, include, *map(str, sources), "-o", str(program)], check=True)
    seed = int.from_bytes(os.urandom(4), "little")
    given = [str(program), str(rounds), str(seed)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-4000:]}"
    assert f"{rounds} rounds survived" in done.stdout


def test_the_decoder_of_the_engine_survives_random_input(tmp_path: Path) -> None:
    fuzzed(tmp_path, "fuzz_wire", 500)


def test_frames_leave_the_backlog_whole_and_in_order_whatever_the_socket_takes(tmp_path: Path) -> None:
    fuzzed(tmp_path, "fuzz_backlog", 300, "link/backlog.cc")
