"""What every request goes through is compiled where it can be, and works as well where it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from atoll.front import connection
from tools import compile_hot

ROOT = Path(__file__).resolve().parent.parent


def test_it_is_compiled_where_there_are_headers() -> None:
    assert connection.__file__.endswith(".so") is not bool(compile_hot.lacking())


def test_it_works_as_python_too() -> None:
    rooms = ["tests/front/test_exchange.py", "tests/wire", "tests/engine/test_calls.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.interpreted", "-p", "no:cacheprovider", *rooms]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_no_module_of_it_holds_what_mypyc_would_break() -> None:
    """It drops the keywords of msgspec's structs (frozen) and the defaults of dataclasses."""
    for path in compile_hot.SOURCES:
        text = path.read_text()
        assert "@dataclass" not in text and "(Struct" not in text, f"{path.name}: move the data elsewhere"
