"""The engine's wire decoder, fuzzed under AddressSanitizer: engine/fuzz/fuzz_wire.cc, built and run here."""

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


def test_the_decoder_of_the_engine_survives_random_input(tmp_path: Path) -> None:
    program = tmp_path / "fuzz_wire"
    source = ROOT / "engine" / "fuzz" / "fuzz_wire.cc"
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, *FLAGS, f"-I{ROOT / 'engine' / 'src'}", str(source), "-o", str(program)], check=True)
    seed = int.from_bytes(os.urandom(4), "little")
    done = subprocess.run([str(program), "500", str(seed)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-4000:]}"
    assert "500 rounds survived" in done.stdout
