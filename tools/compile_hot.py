"""Compiles the hot path, the modules that every request goes through, from typed Python to C with mypyc.

    python tools/compile_hot.py        lists the modules
    python tools/compile_hot.py OUT    writes C and shared libraries into OUT; OUT/lib is installed

The modules stay Python: people, mypy and tests read the same files. Without the headers of Python the modules run as
they are, at two thirds of the speed. So a build without the headers succeeds and says what is missing, and `atoll
doctor` says it too. CMake installs the libraries beside the sources, where Python prefers them.

The compiler does not follow imports of other modules (`follow_imports = skip`). Its output depends on these files
alone, not on the installed packages, and takes 20 seconds instead of a minute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# In the order of a request. Their structs and dataclasses live elsewhere, because mypyc drops the keywords and the
# defaults of these. mypyc compiles a Final value into the code, so constants that tests change are not Final.
HOT = (
    "front/connection.py",
    "front/line.py",
    "front/endpoint.py",
    "front/turns.py",
    "front/framing.py",
    "front/peer.py",
    "front/http1.py",
    "front/access.py",
    "front/exchange.py",
    "front/sockets.py",
    "front/flow.py",
    "front/reading.py",
    "front/shared.py",
    "front/ready.py",
    "engine/pool.py",
    "engine/loaded/versions.py",
    "engine/tenant_usage.py",
    "engine/calls/isolate_state.py",
    "engine/loaded/engine_session.py",
    "engine/calls/call.py",
    "engine/calls/call_table.py",
    "engine/calls/remote_port.py",
    "engine/calls/inside_caller.py",
    "engine/calls/inside.py",
    "engine/calls/waiting_bodies.py",
    "engine/link/ledger.py",
    "engine/link/link.py",
    "wire/codec.py",
    "wire/decoder.py",
    "wire/generated.py",
    "wire/sockets.py",
    "wire/inner.py",
    "wire/incoming.py",
    "wire/outgoing.py",
    "observe/meter.py",
    "tallies.py",
)
SOURCES = [ROOT / "atoll" / name for name in HOT]
MARK = Path("atoll/_engine/hot_path.txt")  # in OUT/lib: the fingerprint of the compiled sources
GROUP = "atoll_hot"
CONFIG = """\
[mypy]
follow_imports = skip
ignore_missing_imports = True
"""


def fingerprint() -> str:
    """Identifies the sources to compile. Tests compare it with that of the compiled ones."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in [*SOURCES, Path(__file__)])).hexdigest()


def lacking() -> str:
    """Why nothing can be compiled here; empty if everything is present."""
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "the headers of Python are missing (hint: apt install python3-dev, and build again)"
    return ""


def compile_to(out: Path) -> None:
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    config = out / "mypy.ini"
    config.write_text(CONFIG)
    os.chdir(ROOT)  # a module is named by its path from here
    extensions = mypycify(
        [f"--config-file={config}", f"--cache-dir={out / 'cache'}", *(f"atoll/{name}" for name in HOT)],
        opt_level="2",  # level 3 takes half as long again and gains nothing
        debug_level="0",
        target_dir=str(out / "c"),
        group_name=GROUP,
    )
    for extension in extensions:  # warnings as errors are meant for the developers of mypyc
        extension.extra_compile_args = [arg for arg in extension.extra_compile_args if arg != "-Werror"]
    command = build_ext(Distribution({"name": "atoll", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(out / "lib"), str(out / "objects")
    command.ensure_finalized()
    command.run()


def main(out: Path) -> None:
    shutil.rmtree(out / "lib", ignore_errors=True)
    mark = out / "lib" / MARK
    mark.parent.mkdir(parents=True)
    why = lacking()
    if why:
        print(f"-- the hot path is not compiled and runs at two thirds of its speed: {why}", file=sys.stderr)
    else:
        compile_to(out)
        mark.write_text(fingerprint())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        print(*SOURCES, sep="\n")
