"""The hot path is compiled if possible, and works as plain Python otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from atoll.front import connection
from tools import compile_hot

ROOT = Path(__file__).resolve().parent.parent


def test_the_hot_path_is_compiled_if_headers_are_installed() -> None:
    assert connection.__file__.endswith(".so") is not bool(compile_hot.lacking())


def test_the_hot_path_works_as_plain_python() -> None:
    rooms = ["tests/front/test_exchange.py", "tests/wire", "tests/engine/test_calls.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.interpreted", "-p", "no:cacheprovider", *rooms]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_no_module_of_the_hot_path_has_code_that_mypyc_breaks() -> None:
    """mypyc drops the keywords of msgspec's structs (frozen) and the defaults of dataclasses."""
    for path in compile_hot.SOURCES:
        text = path.read_text()
        assert "@dataclass" not in text and "(Struct" not in text, f"{path.name}: move the data elsewhere"
