"""Compile the hot path: the modules every request goes through, from typed Python to C, with mypyc.

    python tools/compile_hot.py        say which modules these are
    python tools/compile_hot.py OUT    C and shared libraries into OUT; what is in OUT/lib is installed

The modules stay Python: people, mypy and tests read the same files, and where there are no headers of Python they run
as they are, at two thirds of the speed. So a build does not fail for want of them: it says what is missing, and so does
`atoll doctor`. CMake installs the libraries beside the texts, where Python prefers them.

Other modules are strangers to the compiler (`follow_imports = skip`): what it makes depends on these files alone, not
on which packages happen to be installed, and takes 20 seconds instead of a minute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# In the order of a request. Their structs and dataclasses live elsewhere: mypyc drops the keywords and the defaults of
# these. What is Final becomes part of the code, so constants that tests change are not.
HOT = (
    "front/connection.py",
    "front/framing.py",
    "front/peer.py",
    "front/http1.py",
    "front/exchange.py",
    "front/sockets.py",
    "front/flow.py",
    "front/shared.py",
    "engine/pool.py",
    "engine/homes.py",
    "engine/tenants.py",
    "engine/placement.py",
    "engine/session.py",
    "engine/calls.py",
    "engine/table.py",
    "engine/ledger.py",
    "engine/link.py",
    "wire/codec.py",
    "wire/generated.py",
    "observe/meter.py",
    "tallies.py",
)
SOURCES = [ROOT / "atoll" / name for name in HOT]
MARK = Path("atoll/_engine/hot_path.txt")  # in OUT/lib: what was compiled
GROUP = "atoll_hot"
CONFIG = """\
[mypy]
follow_imports = skip
ignore_missing_imports = True
"""


def fingerprint() -> str:
    """What is to be compiled. Tests compare it with what was."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in [*SOURCES, Path(__file__)])).hexdigest()


def lacking() -> str:
    """Why nothing can be compiled here; empty if it can."""
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
        opt_level="2",  # 3 takes half as long again and gains nothing
        debug_level="0",
        target_dir=str(out / "c"),
        group_name=GROUP,
    )
    for extension in extensions:  # its warnings as errors are for the developers of mypyc
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
